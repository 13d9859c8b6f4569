"""Lines of a file and the JSON values in them, in memory for one line at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal

from helm_ext.errors import DatasetError, DatasetSyntaxError, Problem, Problems
from helm_ext.files.json_text import parse_json
from helm_ext.files.limits import MAX_LINE_BYTES, format_size

Line = tuple[int, bytes | None]
"""The number of a line, from 1, and its bytes without the line end; None for a line beyond the limit."""


def split_lines(read_chunk: Callable[[], bytes], max_bytes: int = MAX_LINE_BYTES) -> Iterator[Line]:
    r"""Yield the lines of a file that `read_chunk` reads a piece of at a time, b"" at the end.

    Lines end at b"\n" only, and a b"\r" before it goes; U+2028 and the like are text. There is no line after the last
    b"\n". A line of more than `max_bytes` comes as None, as soon as that many are read, and is not held in memory.
    """
    number = 1
    pending: list[bytes] = []
    size = 0  # of the line so far, where a chunk ended in it
    while chunk := read_chunk():
        start = 0
        while (end := chunk.find(b"\n", start)) >= 0:  # `split` looks at each byte, `find` at many at once
            before, size = size, size + end - start
            if size > max_bytes:
                if before <= max_bytes:  # else it has been yielded
                    yield number, None
            elif before:
                pending.append(chunk[start:end])
                yield number, _join(pending)
            else:
                yield number, chunk[start : end - 1 if chunk[end - 1 : end] == b"\r" else end]
            if before:
                pending = []
            size = 0
            number += 1
            start = end + 1
        if start < len(chunk):
            before, size = size, size + len(chunk) - start
            if size <= max_bytes:
                pending.append(chunk[start:])
            elif before <= max_bytes:
                pending = []
                yield number, None
    if 0 < size <= max_bytes:
        yield number, _join(pending)


def _join(parts: list[bytes]) -> bytes:
    return b"".join(parts).removesuffix(b"\r")


def too_long(path: str, number: int, max_bytes: int = MAX_LINE_BYTES) -> Problem:
    """Return the problem of a line beyond the limit."""
    message, hint = f"the line is longer than {format_size(max_bytes)}, the limit", "JSON Lines has one record per line"
    return DatasetSyntaxError.problem_at(path, message, hint, number, code="too-large")


def _blank(path: str, number: int) -> Problem:
    return DatasetSyntaxError.problem_at(path, "blank line", "remove it", number, code="blank-line")


def iter_rows(
    lines: Iterable[Line], path: str, problems: Problems | list[Problem], *, blank: Literal["skip", "error"] = "skip"
) -> Iterator[Line]:
    """Yield the lines that are not blank; blank ones at the end are accepted, those before as `blank` says.

    A line beyond the limit is noted in `problems` and yielded as None.
    """
    blanks = range(0)
    for number, line in lines:
        if line is not None and not line.strip():
            blanks = range(blanks.start or number, number + 1)
            continue
        if blank == "error":
            for at in blanks:
                problems.extend([_blank(path, at)])
        blanks = range(0)
        if line is None:
            problems.extend([too_long(path, number)])
        yield number, line


def iter_json_lines(
    lines: Iterable[Line],
    path: str,
    problems: Problems | list[Problem],
    *,
    blank: Literal["skip", "error"] = "skip",
    allow_nan: bool = False,
) -> Iterator[tuple[int, Any]]:
    """Yield (line number, value) for each line that is JSON; what is not goes to `problems`, and reading goes on.

    `lines` is a LineSource or what `split_lines` yields. Blank lines at the end are always accepted, others as `blank`
    says.
    """
    for number, line in iter_rows(lines, path, problems, blank=blank):
        if line is None:
            continue
        try:
            value = parse_json(line, path, number, allow_nan=allow_nan)
        except DatasetError as error:
            problems.extend(error.problems)
            continue
        yield number, value
