"""Texts to lists of segments (`output_format: "list"`)."""

from __future__ import annotations

import json
import re

from helm_ext.parsing.texts import compile_pattern

SEPARATOR = ";"
"""What stands between the segments of a list, unless a file names something else."""

BETWEEN_PARTS = "\x1f"
"""Stands between the parts of a segment that is a tuple. White space to Python, so it separates words too."""
_NO_PART = "\x00"
"""Stands for an empty part, so that ("", "a") is not ("a", "")."""

_FINAL_STOP = re.compile(r"(?<![.。．])[.。．]\Z")


def split_segments(text: str, separator: str = SEPARATOR) -> list[str]:
    """Split a list written as text on the separator. Segments are stripped; a final full stop is no part of one.

    Empty segments at the end are no segments (`a; b;` has two, "" has none). Elsewhere they are kept: they shift what
    follows, and an ordered comparison must see that.
    """
    segments = [trim(segment) for segment in text.split(separator)]
    while segments and not segments[-1]:
        segments.pop()
    return segments


def find_segments(text: str, pattern: str) -> list[str]:
    """Return each match of a pattern as a segment, trimmed as in `split_segments`.

    A pattern without a group gives the whole match, one with a group that group, one with several a tuple: its parts
    are trimmed, and joined by a character that no text has.
    Raises ValueError for what is no regular expression.
    """
    compiled = compile_pattern(pattern)
    segments = []
    for match in compiled.finditer(text):
        parts = [trim(part or "") for part in (match.groups() if compiled.groups else (match.group(),))]
        segments.append(parts[0] if len(parts) == 1 else BETWEEN_PARTS.join([part or _NO_PART for part in parts]))
    return segments


_FENCE = re.compile(r"\A```\w*\n(.*?)\n?```\Z", re.DOTALL)
_MARKED = re.compile(r"\s*(?:[-*•‣·–]\s+|\(?\d{1,3}[.)、]\s*(?!\d)|\(?(?P<letter>[A-Za-z])[.)]\s+)")
_NUMBERED = re.compile(r"(?:(?<=\A)|(?<=[\s,;]))\(?(\d{1,3})[.)]\s+")
_ALPHABET = "abcdefghijklmnopqrstuvwxyz"
_QUOTED = re.compile(r"""["“](?P<one>[^"“”]*)["”]|`(?P<two>[^`]*)`|'(?P<three>[^']*)'(?!\w)""")
_AND = re.compile(r",?\s(?:and|&)\s", re.IGNORECASE)
_COMMA = re.compile(r",(?!\d{3}(?!\d))|[，、]")


def read_list(text: str, separator: str = SEPARATOR, inside: str = "") -> list[str]:
    """Return the segments of a list, whatever way it is written: the first of these that the text is.

    A JSON list (also the only value of an object; other brackets around the whole go); lines with bullets or numbers,
    behind a line that ends in a colon; segments with the separator between them; numbers in the line ("1. a, 2. b");
    lines; quoted segments; words between commas, the last behind "and". The last two separate only where no segment
    that is asked for holds one: `inside` is those segments, and nothing else of them matters.
    """
    text = text.strip()
    fenced = _FENCE.match(text)
    text = fenced[1].strip() if fenced else text
    items = _read_json(text)
    if items is None and text[:1] == "[" and text[-1:] == "]" and "[" not in text[1:]:
        text = text[1:-1].strip()
    if items is None:
        items = _split_list(text, separator, inside)
    items = [_unquote(item) for item in items]
    while items and not items[-1]:
        items.pop()
    return items


def _read_json(text: str) -> list[str] | None:
    """Return the items of a JSON list of texts and numbers, alone or an object's only value; None for other texts."""
    if text[:1] not in {"[", "{"}:
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if isinstance(value, dict) and len(value) == 1:
        (value,) = value.values()
    if not isinstance(value, list) or not all(isinstance(one, str | int | float) for one in value):
        return None
    return [one if isinstance(one, str) else json.dumps(one) for one in value]


def _split_list(text: str, separator: str, inside: str) -> list[str]:
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) > 1 and lines[0].rstrip().endswith((":", "：")):
        del lines[0]
    marks = [_MARKED.match(line) for line in lines]
    letters = "".join(mark["letter"] or "" for mark in marks if mark).lower()
    if letters and (len(lines) == 1 or not _ALPHABET.startswith(letters)):  # initials: "J. Smith"
        marks = [None]
    if lines and all(marks) and (len(lines) > 1 or _NUMBERED.match(text, 1) is None):
        items = [line[mark.end() :] for line, mark in zip(lines, marks, strict=True) if mark]
        if len(items) > 1 or len(_NUMBERED.findall(text)) < 2:
            return [item.rstrip(" ,;") for item in items]
    if separator in text:
        return text.split(separator)
    if separator == SEPARATOR and "；" in text:
        return text.split("；")
    numbered = list(_NUMBERED.finditer(text))
    if len(numbered) > 1 and [int(one[1]) for one in numbered] == list(range(1, len(numbered) + 1)):
        ends = [one.start() for one in numbered[1:]] + [len(text)]
        return [text[one.end() : end].rstrip(" ,;\n") for one, end in zip(numbered, ends, strict=True)]
    if len(lines) > 1:
        return lines
    quoted = list(_QUOTED.finditer(text))
    if quoted and not re.sub(r"[\s,.]|\band\b|&", "", _QUOTED.sub("", text)):
        return [one[one.lastgroup or 0] for one in quoted]
    pieces = [text] if _COMMA.search(inside) else _COMMA.split(text)
    if _AND.search(inside):
        return pieces
    return [*pieces[:-1], *_AND.split(re.sub(r"\A\s*(?:and|&)\s+", "", pieces[-1]))]


def _unquote(segment: str) -> str:
    """Return a segment without its quotes and Markdown's marks."""
    segment = trim(segment)
    for mark in ("**", "`", '"', "'"):
        if len(segment) > 2 * len(mark) and segment.startswith(mark) and segment.endswith(mark):
            segment = trim(segment[len(mark) : -len(mark)])
    return segment


def trim(segment: str) -> str:
    """Return a segment without white space around it and a final full stop."""
    segment = segment.strip()
    if segment.endswith((".", "。", "．")):
        segment = _FINAL_STOP.sub("", segment).rstrip()
    return segment
