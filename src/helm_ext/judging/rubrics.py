"""What a judge is asked, and how its replies are read: small TOML files, three of ours and those of users.

    criterion = "correct"                  # names the score: judge_correct
    prompt = '''... {question} ... {reference} ... {answer} ...'''
    max_tokens = 1024                      # of a reply; may be left out

    [reading]
    keys = ["grade"]                       # a reply says `GRADE: C`
    values = { C = 1, I = 0 }              # or: range = [1, 5]

A prompt with `{answer_a}` and `{answer_b}` compares the answers of two runs. Nothing else in braces may stand in it but
`{question}`, `{answer}` and `{reference}`; braces around anything but a name are text.

A reply is read only where it can be read in one way. A verdict that is missed is counted as unparsed; one that is
misread is a wrong score. So a reply that was truncated, that names two verdicts, or that goes on behind a verdict in
words ("GRADE: I think ...") says nothing, unless its last line is a verdict and the others are only spoken of. Nor does
one that names another verdict in the lines behind ("GRADE: C", "Correction: the grade is I.").
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Annotated, Any

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
from helm_ext.judging.judgement import Scale, find_flaws
from helm_ext.parsing import split_thinking

OURS = ("correct", "helpful", "better")
_OF_UNCLEAR = ("unclear_choice", "unclear_refusal")
"""Ours too, which `--judge-unclear` picks."""

_PLACEHOLDER = re.compile(r"\{([A-Za-z_]+)\}")
_CONTENTS = ("question", "reference", "answer", "answer_a", "answer_b")

_WIDE = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}
"""Full-width forms of ASCII, as East Asian keyboards write them."""

_MARKS = re.compile(r"<\|[^|<>]{0,40}\|>|\*+|`+(?:\w{0,10}$)?|__", re.MULTILINE)
"""End tokens, and marks of Markdown."""

_BOXED = re.compile(r"\\boxed\{([^{}]{0,80})\}")
_QUOTES = " \t'\"“”„‚‘’«»#|"
_LEAD = re.compile(
    r"(?:^|[.!?。]\s+)[\s\-#'\"]*(?:(?:in|conclusion|so|therefore|thus|hence|overall|my|the|final|answer|grade|verdict|is)[\s,:]+){0,6}$",
    re.IGNORECASE,
)
"""What may stand before a verdict on its line: the end of a sentence, or words that say that here it comes."""

_AFTER = re.compile(r"[^\w/%½¼¾+\-–—,&(?]*$|(?P<more>[.!]\s+\S.*|\s*\([^()]*\)[^\w/]*|\s+[-–—]\s+.*)$")
"""What may stand behind a verdict on its line: nothing, another sentence, an aside or a reason."""

_WORD = re.compile(r"\b[Ia]\s+(?=[a-z])")
"""I and a, the words, in lines behind a verdict: no names of verdicts."""

_BEFORE, _BEHIND = 80, 200
"""How many characters before and behind are looked at."""

_NUMBER = re.compile(r"\d{1,4}(?:[.,]\d{1,2})?(?![\d.,]*\d)")
_OUT_OF = re.compile(r"\s*\(?(?:/|out of|of)\s*(\d{1,4})(?![\d.,]*\d)\)?", re.IGNORECASE)


@dataclass(frozen=True)
class _Mention:
    """A place where a verdict, or something in the place of one, is named. `value` None: nothing that is one."""

    value: float | None
    is_line: bool
    """Whether it is all that its line says."""
    is_said: bool
    """Whether it is said and not only spoken of."""
    line: int


def _decide(mentions: Sequence[_Mention]) -> float | None:
    """Return the value that the mentions leave no doubt about."""
    if not mentions or mentions[-1].value is None:
        return None
    last = mentions[-1]
    others = [one for one in mentions[:-1] if one.value != last.value]
    readable = [one for one in others if one.value is not None]
    if readable:
        # A verdict on a line of its own, behind others that were only spoken of.
        return (
            last.value if last.is_line and not any(one.is_line or one.line == last.line for one in readable) else None
        )
    return last.value if last.is_line or last.is_said else None


class Rubric(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True, dict=True):
    """A rubric that was checked. `load_rubric` makes one."""

    criterion: Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,39}\Z")]
    prompt: str
    max_tokens: Annotated[int, msgspec.Meta(ge=1)] = 1024
    keys: Annotated[list[Annotated[str, msgspec.Meta(pattern=r"\S")]], msgspec.Meta(min_length=1)]
    """What stands before a verdict."""
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

    # Replies: `KEY: VERDICT`, one of `values` or a number in `range`

    def read(self, reply: str, *, is_truncated: bool = False) -> float | None:
        """Return the reply's value; None where it has none, or cannot be read in one way alone."""
        if is_truncated:
            return None
        parts = split_thinking(reply)
        text = (reply if parts is None else parts[1]).translate(_WIDE).strip()
        text = _MARKS.sub("", _BOXED.sub(r"\1", text)).strip()
        text = self._tagged.sub(r"\1: \2", text)
        if text.startswith("{"):
            return self._read_json(text)
        if (whole := self._read_whole(text.strip(_QUOTES))) is not None:
            return whole
        lines = [line for line in text.split("\n") if line.strip()]
        mentions = self._find_mentions(lines)
        value = _decide(mentions)
        behind = lines[mentions[-1].line + 1 :] if mentions else []
        return None if any(self._names_another(_WORD.sub("", line), value) for line in behind) else value

    def _read_json(self, text: str) -> float | None:
        """Return the value in a reply that is one JSON object and nothing else."""
        try:
            pairs: Any = json.loads(text, object_pairs_hook=lambda pairs: pairs)
        except (ValueError, RecursionError):
            return None
        keys = {key.casefold() for key in self.keys}
        found = [value for key, value in pairs if key.casefold() in keys]
        if len(found) != 1 or isinstance(found[0], bool) or not isinstance(found[0], (str, int, float)):
            return None
        return self._read_whole(str(found[0]).strip())

    def _read_whole(self, text: str) -> float | None:
        value, rest = self._read_value(text[:_BEHIND])
        return value if len(text) < _BEHIND and rest in ("", ".", "!") else None

    def _read_value(self, text: str) -> tuple[float | None, str]:
        """Return the value that a text begins with, and what is behind it."""
        if self.values is not None:
            match = self._token.match(text)
            return (None, text) if match is None else (self._folded[match[0].casefold()], text[match.end() :])
        assert self.range is not None
        match = _NUMBER.match(text)
        if match is None:
            return None, text
        low, high = self.range
        value, rest = float(match[0].replace(",", ".")), text[match.end() :]
        if out_of := _OUT_OF.match(rest):
            if float(out_of[1]) != high:
                return None, text
            rest = rest[out_of.end() :]
        return (value, rest) if low <= value <= high else (None, text)

    def _find_mentions(self, lines: Sequence[str]) -> list[_Mention]:
        mentions = []
        for number, line in enumerate(lines):
            for match in self._key.finditer(line):
                before = line[max(0, match.start() - _BEFORE) : match.start()]
                value, rest = self._read_value(line[match.end() : match.end() + _BEHIND].lstrip(_QUOTES))
                after = _AFTER.match(rest)
                if after is None or self._names_another(after["more"] or "", value):
                    value = None
                is_line = not before.strip(_QUOTES) and not rest.strip(_QUOTES + ".!]")
                is_said = _LEAD.search(before) is not None and not before.lstrip().startswith(">")
                mentions.append(_Mention(value, is_line and value is not None, is_said, number))
        return mentions

    def _names_another(self, text: str, value: float | None) -> bool:
        """Whether what is said behind a verdict names another one."""
        starts = (match.start() for match in self._anywhere.finditer(text))
        return any(self._read_value(text[start : start + _BEHIND])[0] not in (None, value) for start in starts)

    @cached_property
    def _folded(self) -> dict[str, float]:
        return {token.casefold(): float(value) for token, value in (self.values or {}).items()}

    @cached_property
    def _token(self) -> re.Pattern[str]:
        tokens = "|".join(re.escape(token) for token in sorted(self._folded, key=len, reverse=True))
        return re.compile(rf"(?:{tokens})(?!\w|['’]\w)", re.IGNORECASE)

    @cached_property
    def _anywhere(self) -> re.Pattern[str]:
        return re.compile(rf"(?<![\w.,]){self._token.pattern if self.values is not None else '[0-9]'}", re.IGNORECASE)

    @cached_property
    def _key(self) -> re.Pattern[str]:
        keys = "|".join(re.escape(key) for key in self.keys)
        return re.compile(
            rf"(?<!\w)(?:{keys})(?:\s{{0,3}}[:=]\s{{0,3}}|\s+[-–—]\s+)|\[\[(?=[^\[\]]{{1,20}}\]\])", re.IGNORECASE
        )

    @cached_property
    def _tagged(self) -> re.Pattern[str]:
        keys = "|".join(re.escape(key) for key in self.keys)
        return re.compile(rf"<({keys})>\s*([^<>]{{0,40}}?)\s*</\1>", re.IGNORECASE)


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

    reading = found.pop("reading", None)
    if type(reading) is not dict:
        add("reading", "expected a table with keys, and values or range", "[reading]")
        reading = {}
    given = {**found, **reading}
    for name, message, hint in find_flaws(given, Rubric, _EXPECTED):
        add(name, message, hint)
    names = _PLACEHOLDER.findall(str(found.get("prompt", "")))
    for name in dict.fromkeys(names):
        if name not in _CONTENTS:
            hint = did_you_mean(name, _CONTENTS) or f"known are {', '.join(_CONTENTS)}"
            add("prompt", f"{{{name}}} is nothing that a row has", hint)
    if {"answer", "answer_a", "answer_b"}.intersection(names) not in ({"answer"}, {"answer_a", "answer_b"}):
        add("prompt", "expected {answer}, or {answer_a} and {answer_b}", "that is what is judged")
    if ("values" in given) == ("range" in given):
        add("reading", "expected values or range, one of them", "values = { C = 1, I = 0 }; range = [1, 5]")
    raise_for(problems.finish())
    made = msgspec.convert(given, Rubric)
    tokens = [token.strip().casefold() for token in made.values or ()]
    is_finite = all(map(math.isfinite, made.scale))
    if made.values is not None and not (
        is_finite and len(made.scale) > 1 and all(tokens) and len({*tokens}) == len(tokens)
    ):
        add("values", f"expected {_EXPECTED['values']}, got {show(given['values'])}")
    if made.range is not None and not (is_finite and 0 <= made.range[0] < made.range[1]):
        add("range", f"expected {_EXPECTED['range']}, got {show(given['range'])}")
    raise_for(problems.finish())
    return made


_EXPECTED = {
    "criterion": "a name of letters, digits, - and _",
    "max_tokens": "a whole number from 1 on",
    "keys": 'words that stand before the verdict, as ["grade"]',
    "values": "two verdicts or more, that differ in more than capitals, each with a number, as { C = 1, I = 0 }",
    "range": "the lowest and the highest number, from 0 on, as [1, 5]",
}
