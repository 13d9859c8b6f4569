"""What a format is shown of a file, to say whether it is its own: the path and the first bytes."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from pathlib import Path

from helm_ext.errors import DatasetError

LOOKED_AT = 65_536
"""Bytes at the start of a file, decompressed, that decide its format."""

_TOKEN = re.compile(r'"((?:[^"\\]|\\.)*)(?:"(\s*:)?|\\?\Z)|[{}\[\]]', re.DOTALL)
"""A string, which may be cut off at the end, with the colon after a key; or a bracket."""


class Claim(IntEnum):
    """How sure a format is that a file is one of its own."""

    NO = 0
    MAYBE = 1
    """Nothing speaks against it: any JSON. Counts where no other format is sure."""
    LIKELY = 2
    """Its shape is the format's, its keys say nothing: rows of JSON. Counts where no other format is sure."""
    SURE = 3


@dataclass(frozen=True)
class Seen:
    """What a format is shown of a file."""

    path: Path
    start: bytes = b""
    """The first bytes, decompressed; b"" for what is no file, or cannot be read."""
    is_folder: bool = False
    exists: bool = True
    is_zip: bool = False

    @property
    def suffix(self) -> str:
        """The ending of the file's name, in lower case."""
        return self.path.suffix.lower()

    @cached_property
    def keys(self) -> frozenset[str]:
        """The keys of the first JSON object, of those that stand in the first bytes. The rest may be no JSON."""
        return frozenset(_first_keys(self.start.decode("utf-8", "replace")))

    def is_like_json(self) -> bool:
        """Whether the first character begins a JSON object or array, or a comment before one."""
        return self.start.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b"{", b"[", b"/")


def _first_keys(text: str) -> Iterator[str]:
    """Yield the keys of the first object. It may stand in an array; keys of objects inside it are left out."""
    depth = 0
    """Of what is open inside the object, itself included; 0 before it."""
    for match in _TOKEN.finditer(text):
        found = match.group()
        if found in "{[":
            depth += 1 if depth or found == "{" else 0
        elif found in "}]":
            depth -= 1 if depth else 0
            if not depth and found == "}":
                return
        elif depth == 1 and match.group(2):
            yield match.group(1)


def look(path: str | Path) -> Seen:
    """Return what formats are shown of a file. Raises nothing for what is missing or broken: their errors say more."""
    path = Path(path)
    if path.is_dir():
        return Seen(path, is_folder=True)
    if not path.is_file():
        return Seen(path, exists=path.exists())
    return Seen(path, _read_start(path), is_zip=zipfile.is_zipfile(path))


def _read_start(path: Path) -> bytes:
    from helm_ext.files.opening import Reader

    try:
        reader = Reader(path)
    except DatasetError:
        return b""
    start = b""
    try:
        while len(start) < LOOKED_AT and (chunk := reader.read_chunk()):
            start += chunk
    except DatasetError:
        pass
    finally:
        reader.close()
    return start[:LOOKED_AT]
