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
from collections.abc import Mapping
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

MAX_TOKENS = 1024

_PLACEHOLDER = re.compile(r"\{([A-Za-z_]+)\}")
_CONTENTS = ("question", "reference", "answer", "answer_a", "answer_b")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,39}")
_KEYS = ("criterion", "prompt", "max_tokens", "reading")
_READING = ("keys", "values", "range")


class Rubric(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True, dict=True):
    """A rubric that was checked. `load_rubric` makes one."""

    criterion: str
    prompt: str
    max_tokens: int = MAX_TOKENS
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
    try:
        found = msgspec.toml.decode(data)
    except (msgspec.MsgspecError, ValueError) as error:
        line = re.search(r"at line (\d+)", str(error))
        place = Location(path, int(line[1]) if line else None)
        raise DatasetSyntaxError([Problem(f"not TOML: {error}", place)]) from error
    return _Checker(path, data.decode().splitlines()).check(found)


class _Checker:
    """Collects what is wrong with a rubric's file."""

    def __init__(self, path: str, lines: list[str]) -> None:
        self.path, self.lines = path, lines
        self.problems = Problems(path)

    def check(self, found: dict[str, Any]) -> Rubric:
        """Return the rubric. Raises DatasetSchemaError with all that is wrong."""
        self.require_known(found, _KEYS, "")
        criterion, prompt, most = found.get("criterion"), found.get("prompt"), found.get("max_tokens", MAX_TOKENS)
        if not isinstance(criterion, str) or not _NAME.fullmatch(criterion):
            self.add("criterion", "a name of letters, digits, - and _", criterion)
        if not isinstance(prompt, str):
            self.add("prompt", "a text", prompt)
        else:
            self.check_prompt(prompt)
        if type(most) is not int or most < 1:
            self.add("max_tokens", "a whole number from 1 on", most)
        reading = found.get("reading")
        if not isinstance(reading, dict):
            self.add("reading", "a table with keys, and values or range", reading)
            reading = {}
        else:
            self.check_reading(reading)
        raise_for(self.problems.finish())
        return msgspec.convert(
            {"criterion": criterion, "prompt": prompt, "max_tokens": most, **reading}, Rubric, strict=False
        )

    def check_prompt(self, prompt: str) -> None:
        names = _PLACEHOLDER.findall(prompt)
        for name in dict.fromkeys(names):
            if name not in _CONTENTS:
                hint = did_you_mean(name, _CONTENTS) or f"known are {', '.join(_CONTENTS)}"
                self.add_at("prompt", f"{{{name}}} is nothing that a row has", hint)
        if {"answer", "answer_a", "answer_b"}.intersection(names) not in ({"answer"}, {"answer_a", "answer_b"}):
            self.add_at("prompt", "expected {answer}, or {answer_a} and {answer_b}", "that is what is judged")

    def check_reading(self, reading: dict[str, Any]) -> None:
        self.require_known(reading, _READING, "reading.")
        keys, values, ends = (reading.get(name) for name in _READING)
        if not isinstance(keys, list) or not keys or not all(isinstance(key, str) and key.strip() for key in keys):
            self.add("reading.keys", 'words that stand before the verdict, as ["grade"]', keys)
        if (values is None) == (ends is None):
            self.add_at("reading", "expected values or range, one of them", "values = { C = 1, I = 0 }; range = [1, 5]")
        if values is not None and (
            not isinstance(values, dict)
            or len(set(map(_number, values.values()))) < 2
            or not all(token.strip() and _number(value) is not None for token, value in values.items())
        ):
            self.add("reading.values", "two verdicts or more, each with a number, as { C = 1, I = 0 }", values)
        elif values is not None and len({token.casefold() for token in values}) < len(values):
            self.add_at("reading.values", "two verdicts are alike but for capitals", "replies are read in any case")
        if ends is not None and (
            not isinstance(ends, list)
            or len(ends) != 2
            or any(_number(end) is None or end < 0 for end in ends)
            or ends[0] >= ends[1]
        ):
            self.add("reading.range", "the lowest and the highest number, from 0 on, as [1, 5]", ends)

    def require_known(self, found: dict[str, Any], known: tuple[str, ...], before: str) -> None:
        for name in found:
            if name not in known:
                hint = did_you_mean(name, known) or f"known are {', '.join(known)}"
                self.add_at(f"{before}{name}", "unknown key", hint)

    def add(self, name: str, expected: str, value: Any) -> None:
        got = "it is not there" if value is None else f"got {show(value)}"
        self.add_at(name, f"expected {expected}: {got}", "")

    def add_at(self, name: str, message: str, hint: str) -> None:
        """Add a problem of a key, with the line that it stands on."""
        key = re.escape(name.rpartition(".")[2])
        beginning = re.compile(rf"\s*(?:\[{key}\]|[\"']?{key}[\"']?\s*=)")
        line = next((number for number, text in enumerate(self.lines, 1) if beginning.match(text)), None)
        self.problems.add(Location(self.path, line, name), message, hint, code="rubric")


def _number(value: Any) -> float | None:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    return float(value) if is_number else None
