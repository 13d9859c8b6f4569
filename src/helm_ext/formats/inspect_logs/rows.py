"""A log is read once, and its samples become rows: the epochs of one sample are the completions of one row.

All samples are seen before the first row is yielded: whether questions are conversations, and whether several options
are asked for, is said of a log as a whole, and the epochs of a sample may stand anywhere. What is kept of a sample is
what its row needs.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from helm_ext.errors import DatasetError, DatasetIntegrityError, Location, count, show
from helm_ext.evalset import garbage
from helm_ext.formats.imported.row import Answer, Call, Opened, Row, find_answer
from helm_ext.formats.inspect_logs import choices as multiple_choice
from helm_ext.formats.inspect_logs.choices import Shown
from helm_ext.formats.inspect_logs.log import Header, open_log
from helm_ext.formats.inspect_logs.samples import Choice, Logged, Output, Sample, Texts
from helm_ext.formats.inspect_logs.scores import JudgementReader, Scores
from helm_ext.scoring.reducers import FIRST, find_reducer

_CUT = ("max_tokens", "model_length", "length")
_FILTERED = "content_filter"
_COUNTED = (
    "failed_epochs", "failed_scored", "edited", "invalidated", "shuffled", "media", "other_choices", "other_completion",
    "duplicates", "no_answer", "source_unscored",
)  # fmt: skip
"""What is counted of samples, where there is any."""


def open_samples(path: str, tool: str, notes: Sequence[str]) -> Opened:
    """Read a log and return it opened, of the format `tool`; `notes` are said of it too. Raises DatasetError."""
    with garbage.paused(), open_log(path) as log:
        header = log.header
        rows = RowMaker(header)
        for logged in log.samples():
            rows.see(logged)
        if not rows.counts["lines"]:
            hint = "the eval was run without samples in its log (--no-log-samples), or ended before the first one"
            raise DatasetIntegrityError.at(path, "there are no samples", hint, code="no-rows")
        rows.counts["duplicates"] = log.repeated
        digest = log.digest()
    rows.needs_gold = rows.has_gold or not (header.scores or rows.has_scores)
    source = header.to_source(tool)
    names = rows.settle_scores()
    source.scores = rows.scores.reported
    source.main, reason = next(iter(source.scores), ""), "the first of its samples' scores"
    if header.headline is not None:
        score, metric, reason = header.headline
        source.main = names[score][metric]
    source.main_reason = reason if len(source.scores) > 1 else ""
    counts = rows.counts
    source.counts = {"lines": counts["lines"], **{what: counts[what] for what in _COUNTED if counts[what]}}
    source.notes = [*notes, *rows.notes()]
    return Opened(
        path=path,
        source=source,
        rows=rows.rows,
        digest=digest,
        adapter_spec={
            **({"method": "chat"} if rows.is_chat else {}),
            **({"multi_label": True} if rows.takes_all else {}),
        },
        scoring={"completions": rows.reducer} if rows.most_epochs > 1 else {},
        is_measured=rows.needs_gold,
    )


@dataclass(slots=True)
class _Epoch:
    """What is kept of a sample in an epoch."""

    number: int
    answer: Answer | None
    failed: str
    scores: Mapping[str, Any]
    """Those of the log, until all samples were seen."""
    shown: Shown | None = None
    judgements: Sequence[Mapping[str, Any]] = ()
    """What models said of the answer, without scales."""


@dataclass(slots=True)
class _Group:
    """One sample, with the epochs that were read of it."""

    row: Row
    """With what was asked, and no more."""
    choices: list[str] | None
    target: list[str]
    right: list[int] | None
    """The positions of the right ones of its choices; None where the target says none."""
    is_shuffled: bool
    epochs: list[_Epoch] = field(default_factory=list)
    scores: dict[str, float | None] = field(default_factory=dict)
    """Those of the log. Known when all samples were seen."""


class RowMaker:
    """Makes the rows of one log, and counts what is odd about its samples."""

    def __init__(self, header: Header) -> None:
        self._header = header
        self.scores = Scores(header.reducers, header.scores)
        main = header.scores[header.headline.score].get("reducer") if header.headline is not None else None
        named = [main] if isinstance(main, str) else header.reducers or ()
        self.reducer = next((one for one in named if one != FIRST and find_reducer(one) is not None), "mean")
        """How our scores of several epochs become one: as the log's headline, where that can be done here."""
        self._judgements = JudgementReader(header)
        self._settings = header.choice_settings
        self.counts: Counter[str] = Counter()
        self.takes_all = bool(self._settings and self._settings.get("multiple_correct"))
        """Whether all right options together are the answer. Known when all samples were seen."""
        self.is_chat = False
        """Whether a question is a conversation. Known when all samples were seen."""
        self.most_epochs = 1
        """The number of epochs of the sample that has most. Known when all samples were seen."""
        self._scored_epochs: set[int] = set()
        """How many scored epochs rows have. Known when all samples were seen."""
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

    def settle_scores(self) -> list[dict[str, str]]:
        """Make the log's scores of rows, all samples being seen; return `Scores.finish`."""
        header, groups = self._header, self._groups.values()
        for group in groups:
            group.epochs.sort(key=lambda epoch: epoch.number)
            given = [epoch.scores for epoch in group.epochs]
            group.scores = self.scores.of_row(given)
            self._scored_epochs.add(sum(map(bool, given)))
            for epoch in group.epochs:
                epoch.scores = {}
        scored = header.results.completed_samples
        is_whole = header.is_finished and not (isinstance(scored, int) and self.counts["lines"] < scored)
        names = self.scores.finish([group.scores for group in groups], is_whole=is_whole)
        self.counts["source_unscored"] = sum(None in group.scores.values() for group in groups)
        self.counts["no_answer"] = self.scores.no_answer
        if self.most_epochs == 1:
            self.counts["failed_epochs"] = 0  # these are rows that failed
        return names

    def notes(self) -> Iterator[str]:
        """Yield what a reader of the score must know, all samples being seen."""
        header, counts, read = self._header, self.counts, self.counts["lines"]
        if not header.is_finished:
            yield f"the run has not ended well, its status is {header.status}: missing=skip scores what it left"
        scored, planned = header.results.completed_samples, header.planned
        if isinstance(scored, int) and read < scored:
            yield f"the log holds {read} of the {scored} samples that its own scores are about"
        elif planned and read < planned:
            why = ": a limit" if header.is_finished else ""
            yield f"the log holds {read} of {planned} samples of the dataset (samples times epochs){why}"
        if not self.needs_gold:
            yield "no sample has a target: the log's own scores are all there is"
        for name in self.scores.unknown:
            yield f"the epochs_reducer {name} is not known: a row has no score of the log by it"
        if self.most_epochs > 1 and self.reducer == "mean" and header.reducers and "mean" not in header.reducers:
            yield "scores of several epochs are reported as their mean"
        if self.scores.is_over_epochs and len(self._scored_epochs) > 1:
            yield "the log's own scores are means over all epochs, of which some rows have fewer: they are not compared"
        for name, why in sorted(self.scores.left_out.items()):
            yield f"rows have no score {name} of the log: {why}"
        for said in self.scores.contradictions:
            yield f"{said}: one of them was changed, or the task has a metric of its own of that name"
        for what, one, many, said in _NOTED:
            if counts[what]:
                yield f"{count(counts[what], one, many)}{said}"

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
            choices = [texts.resolve(choice) for choice in sample.choices] if sample.choices else None
            given = [sample.target] if isinstance(sample.target, str) else sample.target
            target = [texts.resolve(text) for text in given]
            reads_letters = self._header.reads_letters
            right = multiple_choice.read_target(target, choices, letters=reads_letters) if choices else None
            self.has_gold |= bool(right) or (not choices and any(text.strip() for text in target))
            # The task's solver for multiple choice knows whether several options together are the answer.
            self.takes_all |= self._settings is None and right is not None and len(right) > 1
            row = Row(line=logged.position, id=sample.id, question=question, media=media, data=sample.metadata or {})
            is_shuffled = multiple_choice.was_shuffled(sample, self._settings)
            group = self._groups[key] = _Group(row, choices, target, right, is_shuffled)
        elif (question, media) != (group.row.question, group.row.media) or (
            len(sample.choices or ()) != len(group.choices or ())
        ):
            raise _error(logged, f"the epochs of sample {show(sample.id)} ask different questions", "epochs-differ")
        return group

    def _to_epoch(self, sample: Sample, texts: Texts, group: _Group) -> _Epoch:
        scores = {name: score.value for name, score in (sample.scores or {}).items()}
        if sample.score is not None:
            first: Mapping[str, Any] = next(iter(self._header.scores), {})
            scores = {str(first.get("scorer") or first.get("name") or "score"): sample.score.value}
        failed = _why_failed(sample)
        if failed:
            self.counts["failed_epochs"] += 1
            self.counts["failed_scored"] += bool(scores)
            return _Epoch(sample.epoch, None, failed, scores)
        answer = self._to_answer(sample.output or Output(), texts)
        shown = None
        if group.is_shuffled:
            self.counts["shuffled"] += 1
            shown = multiple_choice.find_shown(sample, answer.text, texts)
        said = [self._judgements.read(name, score, texts) for name, score in (sample.scores or {}).items()]
        return _Epoch(sample.epoch, answer, "", scores, shown, [one for one in said if one is not None])

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
            is_refusal=stop == _FILTERED or any(part.refusal for part in message.parts),
        )

    def _to_row(self, group: _Group) -> Row:
        row, epochs = group.row, group.epochs
        answered = [(epoch, epoch.answer) for epoch in epochs if epoch.answer is not None]
        row.source_scores = group.scores
        row.judgements = [
            self._judgements.settle(judgement, place)
            for place, (epoch, _) in enumerate(answered)
            for judgement in epoch.judgements
        ]
        row.answers = [answer for _, answer in answered] or None
        row.failed = "" if answered else epochs[0].failed
        if group.choices is None:
            row.gold = [text for text in group.target if text.strip()]
            if not row.gold and self.needs_gold:
                row.unscored = "the sample has no target"
            elif self.takes_all and len(row.gold) > 1:
                row.unscored = "any of several texts is right, where elsewhere all options together are"
        else:
            self._add_options(row, group, [(answer, epoch.shown) for epoch, answer in answered])
        return row

    def _add_options(self, row: Row, group: _Group, answered: Sequence[tuple[Answer, Shown | None]]) -> None:
        """Add the options of a row and what is right; put answers and options into one order."""
        texts = group.choices or []
        order: Sequence[int] = range(len(texts))
        if group.is_shuffled and answered:
            known = [(answer, shown) for answer, shown in answered if shown is not None]
            orders = {shown.order for _, shown in known}
            if len(known) < len(answered):
                row.unscored = "the log does not tell in which order the options were shown"
            elif len(orders) == 1:
                order = orders.pop()
                for answer, shown in known:
                    answer.text = shown.text
            else:
                for answer, shown in known:
                    is_cut_off = answer.finish_reason == "length"
                    answer.text = shown.in_order_of_dataset(texts, takes_all=self.takes_all, is_cut_off=is_cut_off)
        names = list(map(multiple_choice.label, range(len(texts))))
        row.options = dict(zip(names, [texts[original] for original in order], strict=True))
        right = group.right
        if right is None:
            target = group.target[0] if len(group.target) == 1 else group.target
            said = f"the target {show(target)} names none of the options" if self.needs_gold else ""
            row.unscored = row.unscored or said
            return
        row.gold = [name for name, original in zip(names, order, strict=True) if original in right]
        if len(right) > 1 and not self.takes_all:
            row.unscored = row.unscored or "the target names several options, and the task asks for one"


_NOTED = (
    ("failed_epochs", "epoch of a sample", "epochs of samples",
     " failed: our score of a row is made of its other epochs"),
    ("failed_scored", "failed sample has", "failed samples have",
     " scores in the log: its own scores count them, ours do not"),
    ("edited", "sample has a score that was", "samples have scores that were", " edited afterwards"),
    ("invalidated", "sample is", "samples are", " marked as invalid, and scored"),
    ("media", "image or file", "images and files", " in messages: a word stands for each"),
    ("media_removed", "image or file", "images and files",
     " of questions not in the log (log_images): questions that differ in them alone count as the same"),
    ("other_choices", "further completion of a sample", "further completions of samples",
     ": the first is scored, as in the log"),
    ("other_completion", "sample's output was", "samples' outputs were",
     " rewritten by the task: what the model said is scored"),
)  # fmt: skip
"""What is counted, one and many of it, and what is said of them."""


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


def _sum_logprobs(choice: Choice) -> float | None:
    if choice.logprobs is None or not choice.logprobs.content:
        return None
    total = math.fsum(token.logprob for token in choice.logprobs.content)
    return total if math.isfinite(total) else None


def _error(logged: Logged, message: str, code: str) -> DatasetError:
    place = Location(logged.path, logged.line)
    return DatasetIntegrityError.at(place, message, code=code)
