"""What an importer makes of somebody else's file: rows, where they come from, and what the pipeline makes of them.

An importer (`table`, `lm_eval`, `inspect`, ...) only reads: `ImportedFormat.open` returns an `Opened` file, whose rows
are these. What a row means for HELM (references, splits, labels, recordings, scores) is said once for all of them, by
`ImportReader`: it hands the rows on in the shape of an `adapter_spec` file, so that one pipeline reads both. Values are
read here as other tools spell them: lists in cells of CSV, words for scores, the answers of agents.
"""

from __future__ import annotations

import ast
import json
import math
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from string import ascii_uppercase
from typing import Any, Literal, NamedTuple, TypedDict, TypeGuard

from helm_ext.errors import DatasetError, Path, Problems, count, show
from helm_ext.evalset import MEDIA_KEY, Likelihood, Source
from helm_ext.formats.request_states.reading import Place, Reader, State


def is_finite_number(value: object) -> TypeGuard[int | float]:
    """Whether a JSON value is a number that a float can hold: not true, false, NaN or a larger whole number."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def is_nan(value: object) -> bool:
    """Whether a JSON value is NaN, which Python writes for a number that there is not."""
    return isinstance(value, float) and math.isnan(value)


def as_object(value: Any) -> Mapping[str, Any]:
    """Return a JSON value that is an object; an empty one for any other."""
    return value if isinstance(value, Mapping) else {}


def as_list(value: Any) -> list[Any]:
    """Return a JSON value that is a list; an empty one for any other."""
    return value if isinstance(value, list) else []


class Message(TypedDict):
    """One turn of a conversation, as HELM has it."""

    role: str
    content: str


@dataclass(slots=True)
class Answer:
    """One completion."""

    text: str
    finish_reason: str = ""
    """`stop`, `length`, or another word of the source; after `length` the answer counts as truncated (`cut`)."""
    thinking: str | None = None
    """Reasoning that the source keeps apart from the answer."""
    logprob: float | None = None
    """Sum over its tokens, in nats."""
    is_refusal: bool = False
    """Whether the source says that the model refused. It is an answer, and counted."""


@dataclass(slots=True, kw_only=True)
class Row:
    """One question of somebody's file, what is right, and what came back."""

    line: int
    """Where it begins in its file; where lines mean nothing, its position from 1."""
    id: str | int | None
    question: str | Sequence[Message]
    """The text that was sent, or the conversation."""
    media: Sequence[str] = ()
    """What the question shows beside its text, in order: of each image or file what tells it from others, its URL or a
    digest of its bytes. A part of what is asked."""
    options: Mapping[str, str] | None = None
    """Label to text, in order; None for free text. Completions are read as one of the labels."""
    gold: Any = ()
    """What is right: the labels of right options, else accepted texts. Empty: `unscored` or `none_right`. As the file
    has it, until all rows were seen."""
    split: Literal["train", "valid", "test"] = "test"
    answers: Sequence[Answer] | None = None
    """Several where one question was asked several times (epochs, repeats). None: not run."""
    likelihoods: Sequence[Likelihood] = ()
    """One for each option, in their order: the row was asked by log-probabilities. `answers` is None then."""
    failed: str = ""
    """Why there is no answer, where the source says so."""
    unscored: str = ""
    """Why an answer that is there cannot be scored: the row is excluded from every score, and counted."""
    none_right: str = ""
    """Why no option is right: any answer is wrong, as the source has it. The row is scored."""
    source_scores: Mapping[str, float | None] = field(default_factory=dict)
    """The source's own score of this row, by the name that its report has. None: it made none of this row."""
    judgements: Sequence[Mapping[str, Any]] = ()
    """What models and people said of the answers: `helm_ext.judging.judgement.Judgement` as JSON."""
    chain_of_thought: str = ""
    """The reasoning that leads to the right answer: shown where the row is a demonstration."""
    data: Mapping[str, Any] = field(default_factory=dict)
    """What else of the row is kept, with the keys that `by=` names."""


@dataclass(kw_only=True)
class Opened:
    """One task of a file or folder, ready to be read once."""

    path: str
    """The file that messages name."""
    source: Source
    rows: Callable[[], Iterator[Row]]
    """Yields the rows, one by one. Raises DatasetError. Called once."""
    digest: str
    """SHA-256 of all bytes that were read, 64 hex digits."""
    adapter_spec: Mapping[str, Any] = field(default_factory=dict)
    """Keys of `adapter_spec` that differ from the defaults of `ImportReader`: nothing around the text, no
    demonstrations. Of what is asked alone, never of whom: it is part of the digest of the questions. Where all right
    options together are the answer, `multi_label`; where rows are conversations, `"method": "chat"`."""
    scoring: Mapping[str, Any] = field(default_factory=dict)
    """Keys of `scoring` where the importer knows better than the defaults. Arguments of the run entry win."""
    is_measured: bool = True
    """Whether answers are compared with what is right, beside the scores that the source gave. False where only the
    source can score its rows (`Source.main` is the main metric then): they need no gold, and nothing is measured unless
    the run entry names a metric of ours."""
    may_be_live: bool = False
    """Whether a file without any answer is a dataset to be run. Else it is refused."""
    cluster: str = ""
    """The key of rows that says what they belong to, where the file has one."""
    display_name: str = ""
    description: str = ""
    failed: str = ""
    """Why the first row that failed did, when the rows were read."""


_NOTHING_AROUND = (
    "instructions", "input_prefix", "input_suffix", "output_prefix", "output_suffix", "instance_prefix"
)  # fmt: skip
"""An imported question is the whole prompt: nothing is added to it."""

_CORRECT = "correct the row or remove it: a live run would ask the model, and could not score the answer"
_SAID = {
    "unscored": ("score", "left out of the score, and counted"),
    "none-right": ("right option", "whatever the answer, it is wrong, as the source counts it"),
}
"""What rows have not, and what becomes of them."""

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
                self._opened.failed = self._opened.failed or row.failed
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
            if code == "unscored" and source.scores:
                ends = ends.replace("the score", "our own scores")
            self.problems.warn(
                (), f"{count(number, 'row has', 'rows have')} no {what}: {why}; {ends}", code=code, line=line
            )
        for note in source.notes:
            self.problems.warn((), note, code="import")
        if source.beside:
            found = f"results are read from {', '.join(source.beside)}"
            self.problems.add((), found, code="beside", severity="note")
        self.digest = self._opened.digest

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
        if labels is not None and not unscored:
            # A, B, ... are made for the row in any case: rows that share them are read faster.
            are_made = "".join(labels) == ascii_uppercase[: len(labels)] and len(row.gold) < len(labels)
            if not are_made:
                value["answer_mapping"] = labels
        if row.failed:
            value["request"] = {"result": {"success": False, "error": row.failed}}
        elif row.likelihoods:
            value["likelihoods"] = list(row.likelihoods)
        elif row.answers:
            completions = list(map(_to_completion, row.answers))
            value["request"] = {"result": {"success": True, "completions": completions}}
        # A verdict on an answer that is not there is stale, and counted; who was not asked has said nothing of it.
        if judgements := [one for one in row.judgements if row.answers or one.get("status", "ok") == "ok"]:
            value["judgements"] = judgements
        # Where nothing was answered nothing is compared, unless the rows may be asked yet.
        has_answer = bool(row.answers or row.likelihoods)
        scores = {name: score for name, score in row.source_scores.items() if score is not None or has_answer}
        needs_gold = self.is_measured and (has_answer or self._opened.may_be_live) and not row.none_right
        return State(
            place, value, is_known=True, unscored=bool(unscored), needs_gold=needs_gold,
            extra=self._opened.source.name_scores(scores),
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


def _find_same_options(row: Row) -> str:
    """Return why an answer could not be told right from wrong: two options read the same; "" where it can."""
    if row.options is None or row.likelihoods:
        return ""
    are_right: dict[str, set[bool]] = {}
    for label, text in row.options.items():
        are_right.setdefault(text.strip(), set()).add(label in row.gold)
    return "two options read the same, and one of them is right" if {True, False} in are_right.values() else ""


def _to_completion(answer: Answer) -> Mapping[str, Any]:
    completion: dict[str, Any] = {"text": answer.text}
    if answer.finish_reason:
        completion["finish_reason"] = {"reason": answer.finish_reason}
    if answer.thinking is not None:
        completion["thinking"] = {"text": answer.thinking}
    if answer.logprob is not None:
        completion["logprob"] = answer.logprob
    return completion


_LONGEST_LITERAL = 1 << 20
"""Characters of a list that is written as Python does: the parser of Python needs far more memory than text."""
_LITERAL = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""", re.DOTALL)
_SIDE_BY_SIDE = re.compile(r"s\s*s")
"""Two texts without a comma between them: Python joins them to one, numpy's print means two."""
_WORDS = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
"""Correct, partially correct, incorrect, no answer."""
_LOWER_WORDS = {"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}
_SUBMIT = "submit"
_DELIMITER = "\n\n"
"""What `react` puts between what the model said and its answer."""


class RowError(ValueError):
    """A row, or a cell of it, cannot be read: what is wrong, and what to do. Who knows the file adds its name.

    `place`: the field or column, where the message does not name it.
    """

    def __init__(
        self, message: str, hint: str = "", *, place: str = "", line: int | None = None, code: str = ""
    ) -> None:
        super().__init__(message)
        self.hint, self.place, self.line, self.code = hint, place, line, code


NUMPY = "numpy"
"""The code of a RowError about a list as numpy prints it."""


def spells_list(cell: Any) -> TypeGuard[str]:
    """Return whether a cell of text looks as if it spelt a list."""
    return isinstance(cell, str) and cell.startswith("[") and cell.endswith("]")


def is_json(text: str) -> bool:
    """Return whether a text is JSON, and not a list as Python writes it."""
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def parse_list(text: str) -> Any:
    """Return the list or object that a text spells, as JSON or else as a Python literal. Raises RowError."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    hint = 'write it as JSON: ["a", "b"]'
    if len(text) > _LONGEST_LITERAL:
        raise RowError("this is no JSON, and too long to be read as Python", hint)
    try:
        value = ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        raise RowError(f"expected a list, got {show(text)}", hint) from None
    if _SIDE_BY_SIDE.search(_LITERAL.sub("s", text)):
        message = f"{show(text)} is a list as numpy prints it: without commas its parts cannot be told apart"
        raise RowError(message, hint, code=NUMPY)
    return value


def is_grade(value: Any) -> bool:
    """Whether a score's value is a grade (C, P, I, N) or a truth, and no number."""
    return isinstance(value, bool) or (isinstance(value, str) and _find_grade(value) is not None)


def _find_grade(text: str) -> float | None:
    return _WORDS.get(text, _LOWER_WORDS.get(text.lower()))


def to_number(value: Any) -> float | None:
    """Return a score's value as inspect_ai counts it: NaN where it was not scored, None for no finite number."""
    if isinstance(value, str):
        known = _find_grade(value)
        if known is not None:
            return known
        try:
            number = float(value)
        except ValueError:
            return None
        return number if math.isfinite(number) else None
    if isinstance(value, bool) or is_finite_number(value) or is_nan(value):
        return float(value)
    return None


class Call(NamedTuple):
    """A call of a tool."""

    name: str
    arguments: Mapping[str, Any]


def find_answer(calls: Sequence[Call], said: str, completion: str) -> str:
    """Return the answer of a message that calls tools: what its last call submits, where one does.

    inspect_ai's agents end by calling a tool, `submit(answer)` unless a task names it otherwise, and make a completion
    of what the model said beside the call and of the answer (agent/_react.py, solver/_basic_agent.py). A message may
    say nothing beside a call; outputs made in code then say `tool call for tool NAME` (model/_model_output.py).
    `said`: the text beside the calls; `completion`: what the task made of it, "" where nothing was made. Without a call
    that submits an answer it is the completion, else what was said.
    """
    for call in reversed(calls):
        values = list(call.arguments.values())
        if len(values) != 1 or not isinstance(values[0], str | int | float):
            continue
        submitted = str(values[0])
        if call.name == _SUBMIT and completion in ("", said):
            return submitted
        answer = submitted.strip()
        is_made_of_it = completion == answer or completion.endswith(f"{_DELIMITER}{answer}")
        if is_made_of_it and (answer or call.name == _SUBMIT):
            return submitted
    text = completion or said
    return "" if text in [f"tool call for tool {call.name}" for call in calls] else text
