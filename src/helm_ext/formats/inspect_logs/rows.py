"""Samples of a log become rows: the epochs of one sample are the completions of one row."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from helm_ext.errors import DatasetError, DatasetIntegrityError, Location, show
from helm_ext.formats.imported.agents import Call, find_answer
from helm_ext.formats.imported.row import Answer, Row
from helm_ext.formats.imported.row import Message as Turn
from helm_ext.formats.inspect_logs import choices as multiple_choice
from helm_ext.formats.inspect_logs.choices import Shown
from helm_ext.formats.inspect_logs.header import Header
from helm_ext.formats.inspect_logs.judgements import JudgementReader
from helm_ext.formats.inspect_logs.reading import Logged
from helm_ext.formats.inspect_logs.samples import Choice, Output, Sample
from helm_ext.formats.inspect_logs.scores import Scores
from helm_ext.formats.inspect_logs.texts import Texts

_CUT = ("max_tokens", "model_length", "length")
_FILTERED = "content_filter"


@dataclass(slots=True)
class _Epoch:
    """What is kept of a sample in an epoch."""

    number: int
    answer: Answer | None
    failed: str
    scores: Mapping[str, Any]
    shown: Shown | None = None
    judgements: Sequence[Mapping[str, Any]] = ()
    """What models said of the answer, without scales."""


@dataclass(slots=True)
class _Group:
    """One sample, with the epochs that were read of it."""

    line: int
    id: int | str
    question: str | list[Turn]
    media: list[str]
    choices: list[str] | None
    target: str | list[str]
    metadata: dict[str, Any]
    is_shuffled: bool
    epochs: list[_Epoch] = field(default_factory=list)


class RowMaker:
    """Makes the rows of one log, and counts what is odd about its samples."""

    def __init__(self, header: Header, scores: Scores) -> None:
        self._header = header
        self._scores = scores
        self._judgements = JudgementReader(header)
        self._settings = header.choice_settings
        self._reads_letters = header.reads_letters
        self.counts: Counter[str] = Counter()
        self.takes_all = bool(self._settings and self._settings.get("multiple_correct"))
        """Whether all right options together are the answer. Known when all samples were seen."""
        self.is_chat = False
        """Whether a question is a conversation. Known when all samples were seen."""
        self.most_epochs = 1
        """The number of epochs of the sample that has most. Known when all samples were seen."""
        self.is_even = True
        """Whether every row has as many scored epochs. Known when the last row went."""
        self._scored_epochs: int | None = None
        self.has_gold = False
        """Whether the target of any sample says what is right. Known when all samples were seen."""
        self.has_scores = False
        """Whether any sample has a score of the log. Known when all samples were seen."""
        self.needs_gold = True
        """Whether a row without a gold is excluded from the score."""
        self._groups: dict[tuple[type, int | str], _Group] = {}

    def see(self, logged: Logged) -> None:
        """Keep what is needed of a sample. Raises DatasetError for one that stands there twice."""
        sample = logged.sample
        self.counts["lines"] += 1
        self.has_scores |= bool(sample.scores) or sample.score is not None
        self.counts["edited"] += any(score.history for score in (sample.scores or {}).values())
        self.counts["invalidated"] += sample.invalidation is not None
        texts = Texts(logged)
        group = self._find_group(logged, texts)
        if any(epoch.number == sample.epoch for epoch in group.epochs):
            raise _error(logged, f"epoch {sample.epoch} of sample {show(sample.id)} stands there twice", "duplicate-id")
        group.epochs.append(self._to_epoch(sample, texts, group))
        self.counts["media"] += texts.media
        self.most_epochs = max(self.most_epochs, len(group.epochs))

    def rows(self) -> Iterator[Row]:
        """Yield the rows, in the order in which their samples were seen first; they are not kept."""
        for key in list(self._groups):
            yield self._to_row(self._groups.pop(key))

    def _find_group(self, logged: Logged, texts: Texts) -> _Group:
        """Return the group of a sample, a new one for its first epoch. The question is the same in all epochs."""
        sample = logged.sample
        key = (type(sample.id), sample.id)
        group = self._groups.get(key)
        question, media = texts.to_question(sample.input), texts.find_media(sample.input)
        if group is None:
            self.counts["media_removed"] += texts.media_removed
            self.is_chat |= not isinstance(question, str)
            group = self._groups[key] = _Group(
                line=logged.position,
                id=sample.id,
                question=question,
                media=media,
                choices=[texts.resolve(choice) for choice in sample.choices] if sample.choices else None,
                target=_resolve_all(sample.target, texts),
                metadata=sample.metadata or {},
                is_shuffled=multiple_choice.was_shuffled(sample, self._settings),
            )
            self._see_target(group)
        elif (question, media, len(sample.choices or ())) != (group.question, group.media, len(group.choices or ())):
            raise _error(logged, f"the epochs of sample {show(sample.id)} ask different questions", "epochs-differ")
        return group

    def _see_target(self, group: _Group) -> None:
        """Learn what is asked for: whether anything is right, and whether several options together are.

        The task's solver for multiple choice knows about the latter.
        """
        if group.choices is None:
            self.has_gold |= bool(_to_golds(group.target))
        elif not self.has_gold or (self._settings is None and not self.takes_all):
            right = self._read_target(group)
            self.has_gold |= right is not None
            self.takes_all |= self._settings is None and right is not None and len(right) > 1

    def _read_target(self, group: _Group) -> list[int] | None:
        return multiple_choice.read_target(group.target, group.choices or (), letters=self._reads_letters)

    def _to_epoch(self, sample: Sample, texts: Texts, group: _Group) -> _Epoch:
        scores = {name: score.value for name, score in (sample.scores or {}).items()}
        if sample.score is not None:
            scores = {self._only_scorer(): sample.score.value}
        failed = _why_failed(sample)
        if failed:
            self.counts["failed_epochs"] += 1
            return _Epoch(sample.epoch, None, failed, scores)
        answer = self._to_answer(sample.output or Output(), texts)
        shown = None
        if group.is_shuffled:
            self.counts["shuffled"] += 1
            shown = multiple_choice.find_shown(sample, answer.text, texts)
        said = [self._judgements.read(name, score, texts) for name, score in (sample.scores or {}).items()]
        return _Epoch(sample.epoch, answer, "", scores, shown, [one for one in said if one is not None])

    def _only_scorer(self) -> str:
        """Return the name of the score in logs that have one."""
        first = self._header.scores[0] if self._header.scores else {}
        return str(first.get("scorer") or first.get("name") or "score")

    def _to_answer(self, output: Output, texts: Texts) -> Answer:
        """Return the answer: the first message, or the text that the solver made of the conversation."""
        completion = texts.resolve(output.completion or "")
        if not output.choices:
            return Answer(completion)
        choice = output.choices[0]
        self.counts["other_choices"] += len(output.choices) - 1
        message = choice.message
        text = texts.of_message(message)
        if message.tool_calls:
            text = find_answer(
                [Call(call.function, call.arguments or {}) for call in message.tool_calls], text, completion
            )
        elif completion and not text:
            text = completion
        elif completion and completion != text:
            self.counts["other_completion"] += 1
        stop = choice.stop_reason or ""
        return Answer(
            text,
            finish_reason="length" if stop in _CUT else stop,
            thinking=texts.thinking_of(message),
            logprob=_sum_logprobs(choice),
            is_refusal=stop == _FILTERED or _refuses(choice),
        )

    def _to_row(self, group: _Group) -> Row:
        epochs = sorted(group.epochs, key=lambda epoch: epoch.number)
        data = dict(group.metadata)
        answered = [epoch for epoch in epochs if epoch.answer is not None]
        answers = [epoch.answer for epoch in answered if epoch.answer is not None]
        scores = self._scores.of_row([epoch.scores for epoch in epochs])
        self.counts["source_unscored"] += None in scores.values()
        scored = sum(bool(epoch.scores) for epoch in epochs)
        self.is_even &= scored == (self._scored_epochs if self._scored_epochs is not None else scored)
        self._scored_epochs = scored
        row = Row(
            line=group.line,
            id=group.id,
            question=group.question,
            media=group.media,
            source_scores=scores,
            judgements=[
                self._judgements.settle(judgement, place)
                for place, epoch in enumerate(answered)
                for judgement in epoch.judgements
            ],
            answers=answers or None,
            failed="" if answers else epochs[0].failed,
            data=data,
        )
        if group.choices is None:
            row.gold = _to_golds(group.target)
            if not row.gold and self.needs_gold:
                row.unscored = "the sample has no target"
            elif self.takes_all and len(row.gold) > 1:
                row.unscored = "any of several texts is right, where elsewhere all options together are"
        else:
            self._add_options(row, group, answered)
        return row

    def _add_options(self, row: Row, group: _Group, answered: Sequence[_Epoch]) -> None:
        """Add the options of a row and what is right; put answers and options into one order."""
        texts = group.choices or []
        order: Sequence[int] = range(len(texts))
        if group.is_shuffled and answered:
            orders = {epoch.shown.order if epoch.shown else None for epoch in answered}
            if None in orders:
                row.unscored = "the log does not tell in which order the options were shown"
            elif len(orders) == 1:
                order = orders.pop() or order
                row.answers = [_with_text(epoch, epoch.shown.text) for epoch in answered if epoch.shown]
            else:
                row.answers = [
                    _with_text(
                        epoch,
                        epoch.shown.in_order_of_dataset(
                            texts, takes_all=self.takes_all, is_cut_off=epoch.answer.finish_reason == "length"
                        ),
                    )
                    for epoch in answered
                    if epoch.shown and epoch.answer is not None
                ]
        names = multiple_choice.labels(len(texts))
        row.options = dict(zip(names, [texts[original] for original in order], strict=True))
        right = self._read_target(group)
        if right is None and not self.needs_gold:
            return
        if right is None:
            row.unscored = row.unscored or f"the target {show(group.target)} names none of the options"
            return
        row.gold = [name for name, original in zip(names, order, strict=True) if original in right]
        if len(right) > 1 and not self.takes_all:
            row.unscored = row.unscored or "the target names several options, and the task asks for one"


def _why_failed(sample: Sample) -> str:
    """Return why a sample has no answer; "" where it has one."""
    if sample.error is not None:
        message = sample.error.get("message") if isinstance(sample.error, dict) else sample.error
        return f"error: {message}"
    output = sample.output
    if output is None or not (output.choices or output.completion):
        kind = sample.limit.get("type") if isinstance(sample.limit, dict) else sample.limit
        return f"limit: {kind}" if kind else "no output"
    return ""


def _resolve_all(target: str | list[str], texts: Texts) -> str | list[str]:
    return texts.resolve(target) if isinstance(target, str) else [texts.resolve(text) for text in target]


def _to_golds(target: str | list[str]) -> list[str]:
    return [text for text in ([target] if isinstance(target, str) else target) if text.strip()]


def _sum_logprobs(choice: Choice) -> float | None:
    if choice.logprobs is None or not choice.logprobs.content:
        return None
    total = math.fsum(token.logprob for token in choice.logprobs.content)
    return total if math.isfinite(total) else None


def _refuses(choice: Choice) -> bool:
    content = choice.message.content
    return not isinstance(content, str) and any(part.refusal for part in content)


def _with_text(epoch: _Epoch, text: str) -> Answer:
    assert epoch.answer is not None
    epoch.answer.text = text
    return epoch.answer


def _error(logged: Logged, message: str, code: str) -> DatasetError:
    place = Location(logged.path, logged.line)
    return DatasetIntegrityError.at(place, message, code=code)
