"""What a judge is asked, and how its replies are read: small TOML files, three of ours and those of users.

    criterion = "correct"                  # names the score: judge_correct
    prompt = '''... {question} ... {reference} ... {answer} ...'''
    max_tokens = 1024                      # of a reply; may be left out

    [reading]
    keys = ["grade"]                       # a reply says `GRADE: C`
    values = { C = 1, I = 0 }              # or: range = [1, 5]

A prompt with `{answer_a}` and `{answer_b}` compares the answers of two runs. Nothing else in braces may stand in it but
`{question}`, `{answer}` and `{reference}`; braces around anything but a name are text.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Mapping
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Any

import msgspec

from helm_ext.errors import (
    DatasetSchemaError,
    DatasetSyntaxError,
    Location,
    Problem,
    Problems,
    did_you_mean,
    raise_for,
    show,
)
from helm_ext.files import canonical_json, read_source
from helm_ext.judging.judgement import Scale
from helm_ext.judging.verdicts import Reading

OURS = ("correct", "helpful", "better")
_OF_UNCLEAR = ("unclear_choice", "unclear_refusal")
"""Ours too, which `--judge-unclear` picks."""

_PLACEHOLDER = re.compile(r"\{([A-Za-z_]+)\}")
_CONTENTS = ("question", "reference", "answer", "answer_a", "answer_b")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,39}")


class Rubric(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True, dict=True):
    """A rubric that was checked. `load_rubric` makes one."""

    criterion: str
    prompt: str
    max_tokens: int = 1024
    keys: list[str]
    values: dict[str, float] | None = None
    range: tuple[float, float] | None = None

    @property
    def is_pair(self) -> bool:
        """Whether two answers are compared."""
        return "answer_a" in self.contents

    @cached_property
    def contents(self) -> frozenset[str]:
        """What the prompt shows: names of placeholders."""
        return frozenset(_PLACEHOLDER.findall(self.prompt))

    @cached_property
    def scale(self) -> tuple[float, ...]:
        """The values that a reply may have, in order; of a range its two ends."""
        return self.range if self.range is not None else tuple(sorted(set((self.values or {}).values())))

    def to_scale(self) -> tuple[float, ...] | Scale:
        """Return the scale as judgements have it."""
        return self.scale if self.range is None else Scale(*self.range)

    @cached_property
    def sha256(self) -> str:
        """Digest of what the judge is asked. How its replies are read is not part of it: they can be read again."""
        asked = [self.criterion, self.prompt, list(self.scale), self.range is not None]
        return hashlib.sha256(canonical_json(asked)).hexdigest()

    @cached_property
    def reading(self) -> Reading:
        """What reads a reply."""
        return Reading(self.keys, self.values, self.range)

    def render(self, contents: Mapping[str, str]) -> str:
        """Return the prompt with these contents, each between two lines that none of them can know.

        The lines hold a digest of all contents: who writes an answer cannot write the line that ends it.
        """
        shown = {name: contents[name] for name in sorted(self.contents)}
        tag = hashlib.sha256(canonical_json(shown)).hexdigest()[:12]

        def put(match: re.Match[str]) -> str:
            name = match[1].replace("_", " ").upper()
            return f"[BEGIN {name} {tag}]\n{shown[match[1]]}\n[END {name} {tag}]"

        return _PLACEHOLDER.sub(put, self.prompt).strip()


def load_rubric(name: str) -> Rubric:
    """Read a rubric: a file, or one of `OURS` by its name, with or without `.toml`. Raises DatasetError."""
    path = Path(name)
    if not path.exists() and name.removesuffix(".toml") in (*OURS, *_OF_UNCLEAR):
        found = resources.files(__package__) / "rubrics" / f"{name.removesuffix('.toml')}.toml"
        return _parse(found.read_bytes(), name)
    if not path.exists():
        hint = did_you_mean(name, OURS) or f"a file, or one of {', '.join(OURS)}"
        raise DatasetSchemaError([Problem("no such rubric", Location(name), hint)])
    return _parse(read_source(path).data, str(path))


def _parse(data: bytes, path: str) -> Rubric:
    """Return the rubric of a file. Raises DatasetError with all that is wrong."""
    try:
        found = msgspec.toml.decode(data)
    except (msgspec.MsgspecError, ValueError) as error:
        line = re.search(r"at line (\d+)", str(error))
        place = Location(path, int(line[1]) if line else None)
        raise DatasetSyntaxError([Problem(f"not TOML: {error}", place)]) from error
    lines, problems = data.decode().splitlines(), Problems(path)

    def add(name: str, message: str, hint: str = "") -> None:
        key = re.escape(name.rpartition(".")[2])
        beginning = re.compile(rf"\s*(?:\[{key}\]|[\"']?{key}[\"']?\s*=)")
        line = next((number for number, text in enumerate(lines, 1) if beginning.match(text)), None)
        problems.add(Location(path, line, name), message, hint, code="rubric")

    reading = found.get("reading")
    given = {**found, **{f"reading.{key}": value for key, value in (reading if type(reading) is dict else {}).items()}}
    for name in given:
        if name not in _EXPECTED and name not in _MAY_BE_LEFT_OUT:
            known = {*_EXPECTED, *_MAY_BE_LEFT_OUT}
            add(name, "unknown key", did_you_mean(name, known) or f"known are {', '.join(sorted(known))}")
    for name, (is_right, expected) in {**_EXPECTED, **_MAY_BE_LEFT_OUT}.items():
        value = given.get(name)
        if not (is_right(value) if value is not None else name in _MAY_BE_LEFT_OUT):
            add(name, f"expected {expected}: {'it is not there' if value is None else f'got {show(value)}'}")
    names = _PLACEHOLDER.findall(str(found.get("prompt", "")))
    for name in dict.fromkeys(names):
        if name not in _CONTENTS:
            hint = did_you_mean(name, _CONTENTS) or f"known are {', '.join(_CONTENTS)}"
            add("prompt", f"{{{name}}} is nothing that a row has", hint)
    if {"answer", "answer_a", "answer_b"}.intersection(names) not in ({"answer"}, {"answer_a", "answer_b"}):
        add("prompt", "expected {answer}, or {answer_a} and {answer_b}", "that is what is judged")
    if ("reading.values" in given) == ("reading.range" in given):
        add("reading", "expected values or range, one of them", "values = { C = 1, I = 0 }; range = [1, 5]")
    raise_for(problems.finish())
    return msgspec.convert({**{k: v for k, v in found.items() if k != "reading"}, **reading}, Rubric, strict=False)


def _number(value: Any) -> float | None:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    return float(value) if is_number else None


def _are_verdicts(values: Any) -> bool:
    """Whether each token has a number, two numbers at least. Replies are read in any case."""
    if not isinstance(values, dict) or not all(token.strip() for token in values):
        return False
    numbers = {_number(value) for value in values.values()}
    return None not in numbers and len(numbers) > 1 and len({token.casefold() for token in values}) == len(values)


def _are_ends(ends: Any) -> bool:
    numbers = [_number(end) for end in ends] if isinstance(ends, list) and len(ends) == 2 else [None]
    return None not in numbers and 0 <= numbers[0] < numbers[1]  # type: ignore[operator]


_Rule = tuple[Callable[[Any], bool], str]
"""Whether a value is right, and what is expected."""

_EXPECTED: dict[str, _Rule] = {
    "criterion": (lambda name: isinstance(name, str) and _NAME.fullmatch(name) is not None,
                  "a name of letters, digits, - and _"),
    "prompt": (lambda prompt: isinstance(prompt, str), "a text"),
    "reading": (lambda reading: isinstance(reading, dict), "a table with keys, and values or range"),
    "reading.keys": (lambda keys: isinstance(keys, list) and bool(keys)
                     and all(isinstance(key, str) and key.strip() for key in keys),
                     'words that stand before the verdict, as ["grade"]'),
}  # fmt: skip
_MAY_BE_LEFT_OUT: dict[str, _Rule] = {
    "max_tokens": (lambda most: type(most) is int and most > 0, "a whole number from 1 on"),
    "reading.values": (
        _are_verdicts,
        "two verdicts or more, that differ in more than capitals, each with a number, as { C = 1, I = 0 }",
    ),
    "reading.range": (_are_ends, "the lowest and the highest number, from 0 on, as [1, 5]"),
}
