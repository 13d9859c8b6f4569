"""Where a value stands in JSON text, comments or not: looked up only when there is something to report."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from helm_ext.errors import Path

STRING = r'"[^"\\]*(?:\\.[^"\\]*)*"'
COMMENT = r"//[^\n]*|/\*(?:[^*]|\*(?!/))*\*/"
TOKEN = re.compile(rf"{COMMENT}|{STRING}|[{{}}\[\]:,]|[^\s{{}}\[\]:,\"/]+", re.DOTALL)
KEY_END = re.compile(r"\s*:")


class _Container:
    """An open object or list, while its text is walked through."""

    __slots__ = ("expects_key", "is_object", "key", "path")

    def __init__(self, path: Path | None, *, is_object: bool) -> None:
        self.path = path
        """None inside a value that nobody asks about."""
        self.is_object = is_object
        self.expects_key = is_object
        self.key: str | int = "" if is_object else 0

    def inside(self) -> Path | None:
        """Return the path of the value that comes next."""
        return None if self.path is None else (*self.path, self.key)


def locate(text: str, paths: Iterable[Path]) -> dict[Path, int]:
    """Return the line (from 1) of each path such as ("request_states", 3, "instance", "id") in JSON text.

    A value stands where its key does; a path that is not there gets the line of the nearest ancestor that is. One pass
    for all paths, ended as soon as all are found.
    """
    wanted = dict.fromkeys(paths, 1)
    asked = {path[:length] for path in wanted for length in range(len(path) + 1)}
    found = _walk(text, asked) if wanted else {}
    for path in wanted:
        ancestors = (path[:length] for length in range(len(path), -1, -1))
        wanted[path] = next((found[ancestor] for ancestor in ancestors if ancestor in found), 1)
    return wanted


def _walk(text: str, asked: set[Path]) -> dict[Path, int]:
    """Return the lines of those paths in `asked` that are there."""
    found: dict[Path, int] = {}
    open_containers: list[_Container] = []
    line, last = 1, 0
    for match in TOKEN.finditer(text):
        piece = match[0]
        line += text.count("\n", last, match.start())
        last = match.start()
        if piece.startswith(("//", "/*")) or piece == ":":
            continue
        container = open_containers[-1] if open_containers else None
        if piece in "}]":
            if open_containers:
                open_containers.pop()
        elif piece == ",":
            if container is not None and isinstance(container.key, int):
                container.key += 1
            elif container is not None:
                container.expects_key = True
        elif container is not None and container.expects_key:
            container.key = _unquote(piece)
            container.expects_key = False
            place = container.inside()
            if place in asked and place is not None:
                found[place] = line
        else:
            place = () if container is None else container.inside()
            if place not in asked:
                place = None
            if place is not None:
                found.setdefault(place, line)
            if len(found) == len(asked):
                break
            if piece in "{[":
                open_containers.append(_Container(place, is_object=piece == "{"))
    return found


def _unquote(piece: str) -> str:
    if piece[0] != '"':
        return piece
    try:
        return str(json.loads(piece, strict=False))
    except json.JSONDecodeError:
        return piece[1:-1]
