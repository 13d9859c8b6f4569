"""Rows of an importer in the shape of an `adapter_spec` file, so that one pipeline reads both."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from helm_ext.errors import DatasetError, Path, Problems, count
from helm_ext.evalset import MEDIA_KEY
from helm_ext.formats.imported.row import Answer, Opened, Row
from helm_ext.formats.request_states.reading import Place, Reader, State

_NOTHING_AROUND = (
    "instructions",
    "input_prefix",
    "input_suffix",
    "output_prefix",
    "output_suffix",
    "instance_prefix",
)
"""An imported question is the whole prompt: nothing is added to it."""

_CORRECT = "correct the row or remove it: a live run would ask the model, and could not score the answer"
_SAID = {
    "unscored": ("score", "left out of the score, and counted"),
    "none-right": ("right option", "whatever the answer, it is wrong, as the source counts it"),
}
"""What rows have not, and what becomes of them."""

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

_CUT = frozenset({"length", "max_tokens", "model_length"})
"""Words for an answer that was truncated: OpenAI's, then two of inspect_ai's."""


class _Place(Place):
    """Where a row stands. Fields go unnamed: theirs would be those of another file than the user's."""

    def error(self, *where: str | int, message: str, hint: str = "", code: str, is_integrity: bool = False) -> None:  # noqa: ARG002
        super().error(message=message, hint=hint, code=code, is_integrity=is_integrity)

    def warn(self, *where: str | int, message: str, hint: str = "", code: str, also: Path = ()) -> None:  # noqa: ARG002
        super().warn(message=message, hint=hint, code=code)


class ImportReader(Reader):
    """Reads what an importer has opened. Its source's counts are complete after the last state."""

    is_imported = True
    is_streamed = True

    def __init__(self, opened: Opened, problems: Problems, *, is_measured: bool = True) -> None:
        """Read `opened`; `is_measured`: whether its rows are compared with what is right."""
        super().__init__(opened.path, problems)
        self.is_measured = is_measured
        self.source = opened.source
        self._opened = opened
        source = opened.source
        spec = {**dict.fromkeys(_NOTHING_AROUND, ""), "method": "generation", "max_train_instances": 0}
        self.header = {
            "name": source.task or None,
            "display_name": opened.display_name or None,
            "description": opened.description or None,
            "adapter_spec": {**spec, **opened.adapter_spec},
            "scoring": dict(opened.scoring),
        }
        self._is_chat = self.header["adapter_spec"]["method"] == "chat"

    def states(self) -> Iterator[State]:
        """Yield the rows as states, and count what is odd about them."""
        source, may_be_live = self._opened.source, self._opened.may_be_live
        odd: Counter[str] = Counter()
        said: dict[tuple[str, str], tuple[int, int]] = {}
        """What is wrong with rows and why, to the first line and the number of rows."""
        read = 0
        try:
            for index, row in enumerate(self._opened.rows()):
                read += 1
                unscored = row.unscored or _find_same_options(row)
                state = self._to_state(row, _Place(self.problems, index, row.line, ()), unscored=unscored)
                if row.answers:  # rows are counted, not their answers: these are parts of `read`
                    odd["cut"] += any(answer.finish_reason in _CUT for answer in row.answers)
                    odd["refused"] += any(answer.is_refusal for answer in row.answers)
                if unscored and may_be_live:
                    message = f"the row has no score: {unscored}"
                    self.problems.add((), message, _CORRECT, code="unscored", line=row.line)
                    continue
                if unscored or row.none_right:
                    reason = ("unscored", unscored) if unscored else ("none-right", row.none_right)
                    first, number = said.get(reason, (row.line, 0))
                    said[reason] = first, number + 1
                    odd["none_right"] += not unscored
                yield state
        except DatasetError as error:
            self.problems.extend(error.problems)
        if not read and not self.problems.errors:
            self.problems.add((), "there are no rows", code="no-rows")
        source.counts = {"read": read, **{what: number for what, number in odd.items() if number}, **source.counts}
        for (code, why), (line, number) in sorted(said.items(), key=lambda one: one[0][0], reverse=True):
            what, ends = _SAID[code]
            self.problems.warn(
                (), f"{count(number, 'row has', 'rows have')} no {what}: {why}; {ends}", code=code, line=line
            )
        for note in source.notes:
            self.problems.warn((), note, code="import")
        self.digest = self._opened.digest()

    def locate(self, paths: Sequence[Path]) -> dict[Path, int]:  # noqa: ARG002 - rows know their lines
        """Return nothing: what is not about a row is about the file."""
        return {}

    def _to_state(self, row: Row, place: Place, *, unscored: str) -> State:
        """Return the row as a state. Written for speed: this runs once a row."""
        references, labels = _to_references(row, is_whole=not unscored)
        given: dict[str, Any] = {"text": row.question}
        if not isinstance(row.question, str):
            given = {"messages": [dict(message) for message in row.question]}
        elif self._is_chat:
            given = {"messages": [{"role": "user", "content": row.question}]}
        instance: dict[str, Any] = {"input": given, "references": references, "split": row.split}
        if row.id is not None:
            instance["id"] = row.id
        if row.chain_of_thought and row.split == "train":
            instance["chain_of_thought"] = row.chain_of_thought
        if row.data or row.media:
            instance["extra_data"] = {**row.data, MEDIA_KEY: list(row.media)} if row.media else dict(row.data)
        value: dict[str, Any] = {"instance": instance}
        if labels is not None and not unscored and not _are_made(labels, row.gold):
            value["answer_mapping"] = labels
        if row.failed:
            value["request"] = {"result": {"success": False, "error": row.failed}}
        elif row.likelihoods:
            value["likelihoods"] = list(row.likelihoods)
        elif row.answers:
            completions = list(map(_to_completion, row.answers))
            value["request"] = {"result": {"success": True, "completions": completions}}
        if row.judgements and row.answers:
            value["judgements"] = list(row.judgements)
        source = self._opened.source
        scores = {source.stat_name(name): score for name, score in row.source_scores.items() if score is not None}
        # Where nothing was answered nothing is compared, unless the rows may be asked yet.
        has_answer = bool(row.answers or row.likelihoods)
        not_given = [
            source.stat_name(name) for name, score in row.source_scores.items() if score is None and has_answer
        ]
        needs_gold = self.is_measured and (has_answer or self._opened.may_be_live) and not row.none_right
        return State(
            place, value, is_known=True, is_finite=True, unscored=bool(unscored), source_scores=scores or None,
            source_unscored=not_given or None, needs_gold=needs_gold,
        )  # fmt: skip


def _to_references(row: Row, *, is_whole: bool) -> tuple[list[dict[str, Any]], dict[str, int] | None]:
    """Return the references of a row, and label to position where it has options.

    Unless `is_whole`, nothing is scored: options that read the same are one, and none need be right.
    """
    if row.options is None:
        return [{"output": {"text": text}, "tags": ["correct"]} for text in row.gold], None
    options = row.options if is_whole else {text.strip(): text for text in row.options.values()}
    right = set(row.gold) if is_whole else set()
    references = [
        {"output": {"text": text}, "tags": ["correct"] if label in right else []} for label, text in options.items()
    ]
    return references, {label: position for position, label in enumerate(options)}


def _are_made(labels: Mapping[str, int], gold: Sequence[str]) -> bool:
    """Whether these labels are made for the row in any case (A, B, ...): rows that share them are read faster."""
    return "".join(labels) == _LETTERS[: len(labels)] and len(gold) < len(labels)


def _find_same_options(row: Row) -> str:
    """Return why an answer could not be told right from wrong: two options read the same; "" where it can."""
    if row.options is None or row.likelihoods:
        return ""
    texts = [text.strip() for text in row.options.values()]
    if len(set(texts)) == len(texts):
        return ""
    right = {text for text, label in zip(texts, row.options, strict=True) if label in row.gold}
    wrong = {text for text, label in zip(texts, row.options, strict=True) if label not in row.gold}
    return "two options read the same, and one of them is right" if right & wrong else ""


def _to_completion(answer: Answer) -> Mapping[str, Any]:
    completion: dict[str, Any] = {"text": answer.text}
    if answer.finish_reason:
        completion["finish_reason"] = {"reason": answer.finish_reason}
    if answer.thinking is not None:
        completion["thinking"] = {"text": answer.thinking}
    if answer.logprob is not None:
        completion["logprob"] = answer.logprob
    return completion
