"""A judgement: what a model or a person said of one answer, and what it was that they judged.

It stands on its row: `judgements` of a request state in format 1 (docs/adapter_spec.md), and in a run's
`scenario_state.json` under `extra_data.helm_ext` of its instance. A judgement is bound to what was judged by
`judged_sha256`: when question, answer, rubric or reply are others than they were, it is *stale*, is used nowhere, and
is counted. Only `ok` ones have a value; all others are counted too.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

import msgspec

from helm_ext.errors import Path, did_you_mean, show
from helm_ext.parsing import split_thinking

_STATUSES = ("ok", "unparsed", "refused", "failed", "not_run")
"""What may stand in a file. `ok`: it has a value. `unparsed`: the reply says none. `refused`: the judge would not say.
`failed`: no reply came. `not_run`: it was not asked."""

STALE = "stale"
"""The status, in memory alone, of a judgement of something else than the row now holds."""
REPLACED = "replaced"
"""Likewise of one that a later judgement of the same judge replaces."""

NOT_OK = (*_STATUSES[1:], STALE)
"""What a judgement may be that is no score."""

Report = Callable[[Path, str, str], None]
"""(place inside the judgement, message, hint)."""


_Name = Annotated[str, msgspec.Meta(pattern=r"\S")]


class Scale(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Any number between two ends is a value."""

    min: float
    max: float


class HowDrawn(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """How a person's label came to be of this row."""

    design: str
    """`random`, `by_verdict`, `disagreements`, `by_label`, or a word of the user's."""
    stratum: str = ""
    p: Annotated[float, msgspec.Meta(gt=0, le=1)] | None = None
    """The chance that the row had to be drawn: above 0, at most 1."""
    draw: str = ""
    """Which draw it was, of several by one design."""


class Judgement(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What somebody said of one answer."""

    by: _Name
    """Who: a model's name, a rater's."""
    kind: Literal["model", "human"]
    criterion: _Name
    """What was judged: names the score, `judge_CRITERION`."""
    value: float | None = None
    """On the scale, None unless `ok`. Of a pair: how well the row's own answer does, whatever the order."""
    scale: tuple[float, ...] | Scale = (0.0, 1.0)
    """The values that there are, in order; or the ends."""
    status: str = "ok"
    order: Literal["given", "swapped"] | None = None
    """Of a pair, which answer was shown first: `given` (the row's own) or `swapped`."""
    completion: Annotated[int, msgspec.Meta(ge=0)] = 0
    """Which of the row's completions, from 0."""
    other: str | None = None
    """Of a pair: the answer that the row's own one was compared with."""
    reply: str | None = None
    """The judge's reply, whole."""
    thinking: str | None = None
    prompt_sha256: str | None = None
    """Digest of what the judge was sent."""
    rubric_sha256: str | None = None
    """Digest of what it was told to judge by (`rubrics.Rubric.sha256`)."""
    judged_sha256: str | None = None
    """`judged_digest` of what was judged."""
    params: dict[str, Any] | None = None
    """Decoding parameters of the judge."""
    model_version: str | None = None
    """The model that answered, as the provider calls it."""
    tokens: dict[str, int] | None = None
    """`in`, `out`."""
    cost: float | None = None
    """In US dollars."""
    at: str | None = None
    """When: ISO 8601."""
    drawn: HowDrawn | None = None

    @property
    def is_binary(self) -> bool:
        """Whether the value is 0 or 1: wrong or right."""
        return self.scale == (0.0, 1.0)

    @property
    def bounds(self) -> tuple[float, float]:
        """The lowest and the highest value that there is."""
        if isinstance(self.scale, Scale):
            return self.scale.min, self.scale.max
        return min(self.scale), max(self.scale)

    @property
    def identity(self) -> tuple[Any, ...]:
        """What a judge says once: what it says later replaces it."""
        other = None if self.other is None else _answer(self.other)
        return self.criterion, self.kind, self.by, self.order, self.completion, other

    def to_json(self) -> dict[str, Any]:
        """Return what stands in a file."""
        made: dict[str, Any] = msgspec.to_builtins(self)
        return made


def question_text(text: str | None, messages: Iterable[Mapping[str, Any]] | None = None) -> str:
    """Return the question that a judgement is bound to: the text, or the conversation with the roles in front."""
    return text or "\n".join(f"{message['role']}: {message['content']}" for message in messages or ())


def judged_digest(
    question: str, answer: str, rubric_sha256: str | None, *, other: str | None = None, reply: str | None = None
) -> str:
    """Return the SHA-256 of what was judged and what was replied, 64 hex digits. Thinking is no part of an answer."""
    judged = [question, _answer(answer), rubric_sha256, None if other is None else _answer(other), reply]
    return hashlib.sha256(json.dumps(judged, separators=(",", ":")).encode()).hexdigest()


def _answer(text: str) -> str:
    while (found := split_thinking(text)) is not None:
        text = found[1]
    return text


def bind(judgement: Judgement, question: str, answers: Sequence[str]) -> Judgement:
    """Return the judgement with the digest of what it is of, where it has none. `answers`: the row's completions."""
    if judgement.judged_sha256 is not None or judgement.completion >= len(answers):
        return judgement
    return msgspec.structs.replace(judgement, judged_sha256=_digest(judgement, question, answers))


def take_judgements(
    given: Iterable[Mapping[str, Any]], question: str, answers: Sequence[str] | None
) -> list[Judgement]:
    """Return the judgements of a row as `extra_data.helm_ext` has them; what is stale, or replaced, has this status.

    `answers`: the row's completions; None where the run does not hold them, so that nothing can be compared. Raises
    ValueError for what no run of ours wrote.
    """
    found = [msgspec.convert(one, Judgement) for one in given]
    last = {one.identity: number for number, one in enumerate(found)}
    taken = []
    for number, one in enumerate(found):
        if last[one.identity] != number:
            taken.append(msgspec.structs.replace(one, status=REPLACED, value=None))
        elif not _is_fresh(one, question, answers):
            taken.append(msgspec.structs.replace(one, status=STALE, value=None))
        else:
            taken.append(one)
    return taken


def _is_fresh(judgement: Judgement, question: str, answers: Sequence[str] | None) -> bool:
    if answers is None:
        return True
    if judgement.completion >= len(answers):
        return False
    return judgement.judged_sha256 in (None, _digest(judgement, question, answers))


def _digest(judgement: Judgement, question: str, answers: Sequence[str]) -> str:
    answer = answers[judgement.completion]
    return judged_digest(question, answer, judgement.rubric_sha256, other=judgement.other, reply=judgement.reply)


def judge_values(judgements: Iterable[Judgement]) -> dict[str, float | None]:
    """Return what each model said of an answer, by its name: None for one without a verdict.

    `judgements`: those of one criterion and completion. A judge that was asked in both orders says the mean of both.
    """
    found: dict[str, list[float | None]] = {}
    for one in judgements:
        if one.kind == "model" and one.status != REPLACED:
            found.setdefault(one.by, []).append(one.value)
    return {by: _mean(values) for by, values in found.items()}


def jury_value(values: Sequence[float | None], *, is_binary: bool) -> float | None:
    """Return the jury's value, given those of its judges; None where it has none.

    Of right and wrong, that of more than half of the judges, 0.5 where as many say the one as the other; on any other
    scale the mean. A judge without a verdict does not make the jury smaller: a mean needs all judges, a majority as
    many as decide it whatever the others would have said.
    """
    if not values or not is_binary:
        return _mean(values)
    half = len(values) / 2
    for verdict in (1.0, 0.0):
        if sum(value == verdict for value in values) > half:
            return verdict
    return None if None in values else 0.5


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known and len(known) == len(values) else None


_EXPECTED = {
    "by": "a name",
    "criterion": "a name",
    "kind": '"model" or "human"',
    "value": "a number",
    "scale": 'the values that there are, as [0, 1], or {"min": 1, "max": 5}',
    "order": "given or swapped",
    "completion": "the number of the completion, counted from 0",
    "params": "an object",
    "tokens": 'whole numbers, as {"in": 210, "out": 4}',
    "cost": "a number of US dollars",
    "drawn": 'an object, as {"design": "random", "stratum": "", "p": 0.1}; p is above 0 and at most 1',
}


def read_judgements(given: Any, report: Report) -> list[Judgement]:
    """Return the judgements of a list that somebody wrote; what is wrong is reported, and such a one left out."""
    if not isinstance(given, list):
        report((), f"expected a list, got {show(given)}", "")
        return []
    found = []
    for number, one in enumerate(given):
        flaws = list(_find_flaws(one))
        for where, message, hint in flaws:
            report((number, *where), message, hint)
        if not flaws:
            found.append(msgspec.convert(one, Judgement))
    return found


def find_flaws(
    given: Mapping[str, Any], kind: type[msgspec.Struct], expected: Mapping[str, str]
) -> Iterator[tuple[str, str, str]]:
    """Yield each key that is unknown, missing or not of its type: name, message, hint. `expected`: else a string."""
    fields = {field.name: field for field in msgspec.structs.fields(kind)}
    for name, value in given.items():
        if name not in fields:
            yield name, "unknown key", did_you_mean(name, fields) or f"known are {', '.join(fields)}"
            continue
        try:
            msgspec.convert(value, fields[name].type)
        except msgspec.ValidationError:
            yield name, f"expected {expected.get(name, 'a string')}, got {show(value)}", ""
    for name, field in fields.items():
        if field.required and name not in given:
            yield name, "missing", f"expected {expected.get(name, 'a string')}"


def _find_flaws(given: Any) -> Iterator[tuple[Path, str, str]]:
    """Yield what is wrong with a judgement: place, message, hint."""
    if not isinstance(given, dict):
        yield (), f"expected an object, got {show(given)}", "with by, kind, criterion and value"
        return
    flaws = list(find_flaws(given, Judgement, _EXPECTED))
    yield from (((name,), message, hint) for name, message, hint in flaws)
    if any(message.startswith("expected") for _, message, _ in flaws):
        return
    value, status = given.get("value"), given.get("status", "ok")
    scale: Any = msgspec.convert(given.get("scale", [0, 1]), tuple[float, ...] | Scale)
    if status not in _STATUSES:
        yield ("status",), f"unknown status {show(status)}", did_you_mean(status, _STATUSES)
    elif (value is None) == (status == "ok"):
        hint = "only ok has a value" if value is not None else 'where there is none, "status" says why: "unparsed", ...'
        yield ("value",), f"{show(value)} with status {status}", hint
    if isinstance(scale, Scale):
        is_scale, is_on = scale.min < scale.max, value is None or scale.min <= value <= scale.max
    else:
        is_scale, is_on = len(scale) > 1 and sorted(set(scale)) == list(scale), value is None or value in scale
    if not is_scale:
        yield ("scale",), f"expected at least two values, the lowest first, got {show(given['scale'])}", ""
    elif not is_on:
        yield ("value",), f"{show(value)} is not on the scale {show(msgspec.to_builtins(scale))}", ""
