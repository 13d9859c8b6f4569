"""The lines of one question become one row, with all its scores and repeats."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from helm_ext.errors import DatasetIntegrityError, DatasetSchemaError, Location, Problems, raise_for
from helm_ext.formats.every_eval_ever.record import (
    KEPT,
    Aggregate,
    JSONObject,
    Sample,
    Turn,
    name_scores,
    read_conversation,
    read_gold,
    read_list,
    read_options,
)
from helm_ext.formats.imported.gold import GoldKind
from helm_ext.formats.imported.row import Answer, Call, Message, Row, as_list, as_object, find_answer
from helm_ext.judging.judgement import read_judgements

_JUDGEMENTS = "judgements"
"""The key of `metadata` under which our own export has each judgement of a row whole, as JSON."""
_ROLES = ("system", "user", "assistant")
_REFUSED = "content_filter"
"""inspect_ai's `stop_reason` of a model that refused; its converter keeps it in `metadata`."""


@dataclass(kw_only=True)
class RowMaker:
    """Makes rows of the samples of one task."""

    path: str
    aggregate: Aggregate | None
    golds: GoldKind | None
    """How references are read; None where no sample with choices has one."""
    are_lists: bool
    """Whether references of rows without choices are Python lists of texts."""
    needs_gold: bool
    counts: Counter[str] = field(default_factory=Counter)

    def rows(self, lines: Sequence[Sample]) -> Iterator[Row]:
        """Yield a row for each way in which the question of one id was asked. Raises DatasetError.

        `lines`: all of this id.
        """
        self.counts["lines"] += len(lines)
        if len(lines) == 1:
            yield self._to_row([lines], lines[0].sample_id)
            return
        by_question: dict[bytes, list[Sample]] = {}
        for sample in lines:
            by_question.setdefault(sample.asked, []).append(sample)
        for number, same in enumerate(by_question.values()):
            name = f"{same[0].sample_id}~{number + 1}" if number else same[0].sample_id
            yield self._to_row(self._find_repeats(same), name)

    def _find_repeats(self, lines: Sequence[Sample]) -> list[list[Sample]]:
        """Return the lines of each time that the question was asked: one for each score."""
        repeats: dict[str | bytes, dict[str, Sample]] = {}
        for sample in lines:
            content = sample.content
            scored = repeats.setdefault(sample.repeat if sample.repeat is not None else content, {})
            result = sample.evaluation_result_id or sample.evaluation_name
            known = scored.setdefault(result, sample)
            if known is sample:
                continue
            if known.content != content or known.evaluation != sample.evaluation:
                message = f"line {known.line} says something else of the same sample and result"
                place = Location(self.path, sample.line, "sample_id")
                raise DatasetIntegrityError.at(place, message, code="conflict")
            self.counts["duplicates"] += 1
        return [list(scored.values()) for scored in repeats.values()]

    def _to_row(self, repeats: Sequence[Sequence[Sample]], name: str) -> Row:
        first = repeats[0][0]
        answers: list[Answer] = []
        begins = []
        """Of each repeat, the number of its first answer."""
        failed = unscored = ""
        for lines in repeats:
            found = self._read_answers(lines[0])
            why_failed, why_unscored = _why_not(lines, found)
            failed, unscored = failed or why_failed, unscored or why_unscored
            begins.append(len(answers))
            answers += () if why_failed else found or ()
        options = read_options(first)
        gold = self._read_gold(first, options)
        scores, kept = self._read_scores(repeats)
        kept |= _keep_question(first)
        if name != first.sample_id:
            kept["sample_id"] = first.sample_id
        if options is not None or self.are_lists:
            kept["reference"] = first.input.reference
        return Row(
            line=first.line,
            id=name,
            question=_read_question(first),
            options=options,
            gold=gold,
            split="valid" if first.details.get("split") == "valid" else "test",
            answers=answers or None,
            failed="" if answers else failed,
            unscored=unscored or ("" if gold or not self.needs_gold else "no reference says what is right"),
            source_scores=scores,
            judgements=self._read_judgements(repeats, begins),
            data={**{key: value for key, value in first.details.items() if key != _JUDGEMENTS}, KEPT: kept},
        )

    def _read_gold(self, sample: Sample, options: Mapping[str, str] | None) -> Sequence[str]:
        references = sample.input.reference
        if options is None:
            read = read_list(references[0]) if self.are_lists and references else None
            return read if read is not None else references
        if self.golds is None:  # no sample has a reference
            return ()
        return self.golds.read(read_gold(sample, options, self.aggregate), options)

    def _read_scores(self, repeats: Sequence[Sequence[Sample]]) -> tuple[dict[str, float | None], JSONObject]:
        """Return the mean of each score over the repeats that were scored, None where none was, and what an export of
        the run restores of the lines.
        """
        values: dict[str, list[float]] = {}
        kept: JSONObject = {}
        for lines in repeats:
            for sample in lines:
                for score, value in name_scores(sample, self.aggregate)[0].items():
                    scored = values.setdefault(score, [])
                    if sample.is_scored:
                        scored.append(value)
                    said = {
                        "evaluation_name": sample.evaluation_name,
                        "answer_attribution": sample.answer_attribution,
                        "is_correct": sample.evaluation.is_correct,
                    }
                    kept.setdefault(score, said)
        means = {score: sum(found) / len(found) if found else None for score, found in values.items()}
        return means, {"scores": kept}

    def _read_judgements(
        self, repeats: Sequence[Sequence[Sample]], completions: Sequence[int]
    ) -> Sequence[Mapping[str, Any]]:
        """Return what models said of a row's answers. `completions`: of each repeat the number of its first answer.

        Upstream's schema names the judges of a result, and has one score of a sample: the judge's verdict, or that of
        all judges together. Raises DatasetSchemaError for judgements of our own export that are not as it writes them.
        """
        first, place = repeats[0][0], ("metadata", _JUDGEMENTS)
        if _JUDGEMENTS in first.details:
            problems = Problems(self.path)

            def report(where: tuple[str | int, ...], message: str, hint: str) -> None:
                problems.add(
                    (*place, *where), message, hint, line=first.line, code="judgement", kind=DatasetSchemaError
                )

            try:
                given = json.loads(first.details[_JUDGEMENTS])
            except (TypeError, ValueError, RecursionError) as error:
                report((), f"not JSON: {error}", "as `helm-ext export` writes it")
                given = []
            found = [one.to_json() for one in read_judgements(given, report)]
            raise_for(problems.finish())
            return found
        judged = [
            _to_judgement(sample, self.aggregate, completion)
            for lines, completion in zip(repeats, completions, strict=True)
            for sample in lines
        ]
        return [one for one in judged if one is not None]

    def _read_answers(self, sample: Sample) -> list[Answer] | None:
        """Return what of what came back is scored."""
        messages = sample.messages
        if messages is None:
            answers = _answers(sample)
        elif _is_talk(messages):
            answers = [_answer(sample, messages[-1].content or "", messages[-1].reasoning_trace)]
        else:
            self.counts["agentic"] += 1
            turns = [turn for turn in messages if turn.role == "assistant"]
            said = [turn for turn in turns if turn.content is not None or _last_words(turn)]
            answers = [_answer(sample, _last_words(said[-1]), said[-1].reasoning_trace)] if said else None
        return answers


def _read_question(sample: Sample) -> str | list[Message]:
    """Return what was asked: the prompt where the record has it, else the bare question.

    Where tools were used, what was said between question and answer is no prompt that could be sent again.
    """
    given, messages = sample.input, sample.messages
    if messages is not None and _is_talk(messages):
        return [{"role": turn.role, "content": turn.content or ""} for turn in messages[:-1]]
    conversation = read_conversation(given.formatted) if messages is None else None
    return conversation or given.formatted or given.raw


def _is_talk(messages: Sequence[Turn]) -> bool:
    """Whether a transcript is questions and answers in words alone, an answer last."""
    are_plain = all(
        turn.role in _ROLES and turn.content is not None and not turn.tool_calls and not turn.tool_call_id
        for turn in messages
    )
    return bool(messages) and messages[-1].role == "assistant" and are_plain


def _keep_question(sample: Sample) -> JSONObject:
    """Return what an export of the run restores of the question, where it is not the bare question."""
    given, is_transcript = sample.input, sample.messages is not None
    if given.formatted is None and not is_transcript:
        return {}
    return {"raw": given.raw} | (
        {"formatted": given.formatted} if is_transcript and given.formatted is not None else {}
    )


def _last_words(message: Turn) -> str:
    """Return what an agent's message says. Converters write arguments of calls as JSON (inspect's does)."""
    content = message.content or ""
    calls = [
        Call(str(one.get("name")), {key: _from_json(value) for key, value in (one.get("arguments") or {}).items()})
        for one in as_list(message.tool_calls)
        if isinstance(one, dict) and isinstance(one.get("arguments"), dict | None)
    ]
    return find_answer(calls, content, "") if calls else content


def _from_json(text: Any) -> Any:
    try:
        return json.loads(text)
    except (TypeError, ValueError, RecursionError):
        return text


def _answers(sample: Sample) -> list[Answer] | None:
    assert sample.output is not None  # where there are no messages
    texts, given = sample.output.raw, sample.output.reasoning_trace
    thoughts: list[Any] = [given] if isinstance(given, str) and given else given or []
    if len(thoughts) != len(texts):
        thoughts = ["\n".join(map(str, thoughts)) if thoughts else None, *[None] * len(texts)]
    return [_answer(sample, text, thought) for text, thought in zip(texts, thoughts, strict=False)] or None


def _answer(sample: Sample, text: str, thinking: Any) -> Answer:
    reason = sample.details.get("stop_reason") or ""
    return Answer(
        text,
        finish_reason=str(reason),
        thinking=thinking if isinstance(thinking, str) else None,
        is_refusal=reason == _REFUSED,
    )


def _why_not(lines: Sequence[Sample], answers: Sequence[Answer] | None) -> tuple[str, str]:
    """Return why there is no answer, and why it is not scored, as its lines say it: an error, our export's words."""
    error = next((line.error for line in lines if line.error is not None), None)
    reason = lines[0].details.get("left_out")
    if error is None or (reason == "not_run" and answers is None):
        return "", ""
    return ("", error) if reason == "unscored" else (error or "failed", "")


def _to_judgement(sample: Sample, aggregate: Aggregate | None, completion: int) -> JSONObject | None:
    """Return the judgement that a line's score is: None where no result says that a judge gave it, on which scale."""
    results = aggregate.find(sample) if aggregate else []
    if len(results) != 1 or not sample.is_scored:
        return None
    config, score = results[0].config, sample.evaluation.score
    names = [_name_judge(judge) for judge in as_list(as_object(config.get("llm_scoring")).get("judges"))]
    scale: list[float] | dict[str, float] | None = None
    if config.get("score_type") == "binary":
        scale = [0.0, 1.0] if score in (0, 1) else None
    elif config.get("score_type") == "continuous" and (bounds := results[0].bounds(score)):
        scale = {"min": bounds[0], "max": bounds[1]} if bounds[0] < bounds[1] else None
    if not names or None in names or scale is None:
        return None
    return {
        "by": " + ".join(map(str, names)), "kind": "model", "criterion": results[0].name, "value": score,
        "scale": scale, "completion": completion,
    }  # fmt: skip


def _name_judge(judge: Any) -> str | None:
    info = as_object(as_object(judge).get("model_info"))
    found = info.get("id") or info.get("name")
    return found if isinstance(found, str) and found.strip() else None
