"""The lines of one question become one row, with all its scores and repeats."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from helm_ext.errors import DatasetIntegrityError, Location
from helm_ext.formats.every_eval_ever.judgements import KEY as JUDGEMENTS
from helm_ext.formats.every_eval_ever.judgements import read_row_judgements
from helm_ext.formats.every_eval_ever.profile import name_scores, read_conversation, read_list, read_options
from helm_ext.formats.every_eval_ever.record import Aggregate
from helm_ext.formats.every_eval_ever.samples import Sample
from helm_ext.formats.every_eval_ever.schema import KEPT
from helm_ext.formats.imported.agents import Call, find_answer
from helm_ext.formats.imported.gold import GoldKind
from helm_ext.formats.imported.row import Answer, Message, Row

JSONObject = dict[str, Any]

_ROLES = ("system", "user", "assistant")
_REFUSED = "content_filter"
"""inspect_ai's `stop_reason` of a model that refused; its converter keeps it in `metadata`."""


class RowMaker:
    """Makes rows of the samples of one task."""

    def __init__(
        self,
        path: str,
        aggregate: Aggregate | None,
        golds: GoldKind | None,
        *,
        are_lists: bool,
        takes_extracted: bool,
        needs_gold: bool,
    ) -> None:
        self._path = path
        self._aggregate = aggregate
        self.golds = golds
        """How references are read; None where no sample with choices has one."""
        self.are_lists = are_lists
        """Whether references of rows without choices are Python lists of texts."""
        self.counts: Counter[str] = Counter()
        self._takes_extracted = takes_extracted
        self._needs_gold = needs_gold

    def rows(self, questions: Iterable[Sequence[Sample]]) -> Iterator[Row]:
        """Yield the rows of questions, each of which has all its lines. Raises DatasetError."""
        for lines in questions:
            self.counts["lines"] += len(lines)
            yield from self._to_rows(lines)

    def _to_rows(self, lines: Sequence[Sample]) -> Iterator[Row]:
        """Yield a row for each way in which the question of one id was asked."""
        if len(lines) == 1:
            yield self._to_row([lines], lines[0].id)
            return
        by_question: dict[bytes, list[Sample]] = {}
        for sample in lines:
            by_question.setdefault(sample.asked, []).append(sample)
        for number, same in enumerate(by_question.values()):
            name = same[0].id if not number else f"{same[0].id}~{number + 1}"
            yield self._to_row(self._find_repeats(same), name)

    def _find_repeats(self, lines: Sequence[Sample]) -> list[list[Sample]]:
        """Return the lines of each time that the question was asked: one for each score."""
        repeats: dict[str | bytes, dict[str, Sample]] = {}
        for sample in lines:
            content = sample.content
            scored = repeats.setdefault(sample.repeat if sample.repeat is not None else content, {})
            result = sample.result_id or sample.evaluation
            known = scored.setdefault(result, sample)
            if known is sample:
                continue
            if known.content != content or known.value["evaluation"] != sample.value["evaluation"]:
                message = f"line {known.line} says something else of the same sample and result"
                place = Location(self._path, sample.line, "sample_id")
                raise DatasetIntegrityError.at(place, message, code="conflict")
            self.counts["duplicates"] += 1
        return [list(scored.values()) for scored in repeats.values()]

    def _to_row(self, repeats: Sequence[Sequence[Sample]], name: str) -> Row:
        first = repeats[0][0]
        read = [self._read(lines[0]) for lines in repeats]
        question = read[0][0]
        reasons = [_why_not(lines, found) for lines, (_, found) in zip(repeats, read, strict=True)]
        answers: list[Answer] = []
        begins = []
        """Of each repeat, the number of its first answer."""
        for (_, found), (why, _) in zip(read, reasons, strict=True):
            begins.append(len(answers))
            answers += () if why else found or ()
        failed = "" if answers else next((why for why, _ in reasons if why), "")
        unscored = next((why for _, why in reasons if why), "")
        options = read_options(first)
        gold = self._read_gold(first, options)
        scores, kept = self._read_scores(repeats)
        kept |= _keep_question(first)
        if name != first.id:
            kept["sample_id"] = first.id
        if options is not None or self.are_lists:
            kept["reference"] = first.value["input"]["reference"]
        return Row(
            line=first.line,
            id=name,
            question=question,
            options=options,
            gold=gold,
            split="valid" if first.metadata.get("split") == "valid" else "test",
            answers=answers or None,
            failed=failed,
            unscored=unscored or ("" if gold or not self._needs_gold else "no reference says what is right"),
            source_scores=scores,
            judgements=read_row_judgements(self._path, repeats, begins, self._aggregate),
            data={**{key: value for key, value in first.metadata.items() if key != JUDGEMENTS}, KEPT: kept},
        )

    def _read_gold(self, sample: Sample, options: Mapping[str, str] | None) -> Sequence[str]:
        references = sample.value["input"]["reference"]
        if options is None:
            read = read_list(references[0]) if self.are_lists and references else None
            return read if read is not None else references
        if self.golds is None:  # no sample has a reference
            return ()
        return self.golds.read(references[0] if len(references) == 1 else references, options)

    def _read_scores(self, repeats: Sequence[Sequence[Sample]]) -> tuple[dict[str, float | None], JSONObject]:
        """Return the mean of each score over the repeats that were scored, None where none was, and what an export of
        the run restores of the lines.
        """
        values: dict[str, list[float]] = {}
        kept: JSONObject = {}
        for lines in repeats:
            for sample in lines:
                for score, value in name_scores(sample, self._aggregate)[0].items():
                    scored = values.setdefault(score, [])
                    if sample.is_scored:
                        scored.append(value)
                    said = {
                        "evaluation_name": sample.evaluation,
                        "answer_attribution": sample.value["answer_attribution"],
                    }
                    kept.setdefault(score, {**said, "is_correct": sample.value["evaluation"]["is_correct"]})
        means = {score: sum(found) / len(found) if found else None for score, found in values.items()}
        return means, {"scores": kept}

    def _read(self, sample: Sample) -> tuple[str | list[Message], list[Answer] | None]:
        """Return what was asked, and what of what came back is scored."""
        question, answers = self._read_output(sample)
        if self._takes_extracted and answers is not None:
            said = [one for one in sample.value["answer_attribution"] if one.get("is_terminal", True)]
            answers = [replace(answers[0], text=str(said[-1]["extracted_value"]))] if said else answers
        return question, answers

    def _read_output(self, sample: Sample) -> tuple[str | list[Message], list[Answer] | None]:
        """Return what was asked, and what came back."""
        value = sample.value
        given = value["input"]
        messages = value.get("messages")
        if messages is None:
            return read_conversation(given.get("formatted")) or _text_of(given), _answers(sample)
        if messages and messages[-1]["role"] == "assistant" and all(map(_is_plain, messages)):
            turns: list[Message] = [{"role": m["role"], "content": m["content"]} for m in messages[:-1]]
            return turns, [_answer(sample, messages[-1]["content"], messages[-1].get("reasoning_trace"))]
        # Tools were used: what was said between question and answer is no prompt that could be sent again.
        self.counts["agentic"] += 1
        last = next((m for m in reversed(messages) if m["role"] == "assistant" and _says(m)), None)
        answers = None if last is None else [_answer(sample, _last_words(last), last.get("reasoning_trace"))]
        return _text_of(given), answers


def _keep_question(sample: Sample) -> JSONObject:
    """Return what an export of the run restores of the question, where it is not the bare question."""
    given, is_transcript = sample.value["input"], sample.value.get("messages") is not None
    formatted = given.get("formatted")
    if formatted is None and not is_transcript:
        return {}
    return {"raw": given["raw"], **({"formatted": formatted} if is_transcript and formatted is not None else {})}


def _text_of(given: Mapping[str, Any]) -> str:
    """Return the prompt, where the record has it, else the bare question."""
    return str(given.get("formatted") or given["raw"])


def _says(message: Mapping[str, Any]) -> bool:
    """Whether a message says anything, be it by a call that submits an answer."""
    return message.get("content") is not None or bool(_last_words(message))


def _last_words(message: Mapping[str, Any]) -> str:
    """Return what an agent's message says. Converters write arguments of calls as JSON (inspect's does)."""
    content = message.get("content") or ""
    made = message.get("tool_calls")
    calls = [
        Call(str(one.get("name")), {key: _from_json(value) for key, value in (one.get("arguments") or {}).items()})
        for one in (made if isinstance(made, list) else ())
        if isinstance(one, dict) and isinstance(one.get("arguments"), dict | None)
    ]
    return find_answer(calls, content, "") if calls else content


def _from_json(text: Any) -> Any:
    try:
        return json.loads(text)
    except (TypeError, ValueError, RecursionError):
        return text


def _is_plain(message: Mapping[str, Any]) -> bool:
    return (
        message["role"] in _ROLES
        and isinstance(message.get("content"), str)
        and not message.get("tool_calls")
        and not message.get("tool_call_id")
    )


def _answers(sample: Sample) -> list[Answer] | None:
    output = sample.value["output"]
    thoughts = output.get("reasoning_trace") or []
    thoughts = [thoughts] if isinstance(thoughts, str) else thoughts
    texts = output["raw"]
    if len(thoughts) != len(texts):
        thoughts = ["\n".join(map(str, thoughts)) if thoughts else None, *[None] * len(texts)]
    return [_answer(sample, text, thought) for text, thought in zip(texts, thoughts, strict=False)] or None


def _answer(sample: Sample, text: str, thinking: Any) -> Answer:
    reason = sample.metadata.get("stop_reason") or ""
    return Answer(
        text,
        finish_reason=str(reason),
        thinking=thinking if isinstance(thinking, str) else None,
        is_refusal=reason == _REFUSED,
    )


def _why_not(lines: Sequence[Sample], answers: Sequence[Answer] | None) -> tuple[str, str]:
    """Return why there is no answer, and why it is not scored, as its lines say it: an error, our export's words."""
    error = next((str(line.value["error"]) for line in lines if line.value.get("error") is not None), None)
    reason = lines[0].metadata.get("left_out")
    if error is None or (reason == "not_run" and answers is None):
        return "", ""
    return ("", error) if reason == "unscored" else (error or "failed", "")
