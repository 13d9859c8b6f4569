"""The two kinds of log files, read alike: the header, then the samples one by one.

`.eval` is a ZIP with a member for each sample and epoch, `.json` one document. Of a sample in an epoch that stands
twice in a `.eval`, the last counts, as for inspect_ai; its newest writers also keep a sample in several members, which
its own reader does not know yet ("chunks": log/_recorders/chunked/format.py).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import msgspec

from helm_ext.errors import DatasetIntegrityError, DatasetSchemaError, DatasetSyntaxError, Location
from helm_ext.files import parse_json
from helm_ext.files.opening import ZIP_MAGIC, open_raw
from helm_ext.formats.imported.structs import to_struct, without_nan
from helm_ext.formats.inspect_logs.archive import Archive
from helm_ext.formats.inspect_logs.document import Document
from helm_ext.formats.inspect_logs.header import HEADER_KEYS, Header, to_header
from helm_ext.formats.inspect_logs.samples import (
    Event,
    EventsData,
    Extras,
    Message,
    Sample,
    parse,
    parse_quickly,
)

_SAMPLE = re.compile(r"samples/(?P<id>.+)_epoch_[0-9]+\.json", re.DOTALL)
_SHELL = re.compile(r"(?P<prefix>samples/(?P<id>.+)_epoch_[0-9]+/)sample\.json", re.DOTALL)
_CHUNK = re.compile(
    r"samples/.+_epoch_[0-9]+/(?:(?:metadata|skeleton)|(?:messages|events|calls|attachments)/[a-z0-9]+)\.json",
    re.DOTALL,
)
_HEADER, _START = "header.json", "_journal/start.json"

_read_sample = parse_quickly(Sample)
_read_extras = parse_quickly(Extras)


@dataclass(slots=True)
class Logged:
    """A sample in an epoch, as it stands in a log."""

    sample: Sample
    path: str
    """What messages name: the file, of a `.eval` also the member."""
    line: int
    """Where it begins in what `path` names, from 1."""
    position: int
    """Where it begins in the file: its line, in a `.eval` its number."""
    read_extras: Callable[[], Extras]
    """Reads what only some samples are asked for."""


class LogFile(Protocol):
    """An open log, to be read once."""

    header: Header
    repeated: int
    """Samples that stand there again, in a later version; they are not read."""

    def samples(self) -> Iterator[Logged]:
        """Yield the samples. Raises DatasetError."""

    def digest(self) -> str:
        """Return the SHA-256 of the file's bytes. Called after the last sample."""


@contextmanager
def open_log(path: str | Path) -> Iterator[LogFile]:
    """Open a log of either kind, by its first bytes. Raises DatasetError."""
    with open_raw(path) as file:
        is_zip = file.read(len(ZIP_MAGIC)) == ZIP_MAGIC
    if is_zip:
        with Archive(path) as archive:
            yield _EvalFile(archive)
    else:
        yield _JsonFile(str(path))


class _EvalFile:
    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self.repeated = archive.count_repeated("samples/")
        name = next((one for one in (_HEADER, _START) if one in archive), None)
        if name is None:
            message, hint = f"a ZIP without {_HEADER} and {_START}", "a log of inspect_ai has one of them"
            raise DatasetSchemaError.at(archive.path, message, hint, code="schema")
        values = parse_json(archive.read(name), self._place(name), allow_nan=True)
        if not isinstance(values, dict):
            raise DatasetSchemaError.at(self._place(name), "expected an object", code="schema")
        if name == _START:
            values = {**values, "status": "started"}
        self.header = to_header(values, archive.path)

    def samples(self) -> Iterator[Logged]:
        for position, name in enumerate(list_samples(self._archive), start=1):
            logged = self._read(name, position)
            shell = _SHELL.fullmatch(name)
            if shell:
                self._add_chunks(logged, shell["prefix"])
            yield logged

    def digest(self) -> str:
        return self._archive.digest()

    def _place(self, name: str) -> str:
        return f"{self._archive.path}: {name}"

    def _read(self, name: str, position: int) -> Logged:
        data = self._archive.read(name)
        path = self._place(name)
        sample = _read_sample(data) or parse(data, Sample, path)
        return Logged(sample, path, 1, position, lambda: _read_extras(data) or parse(data, Extras, path))

    def _add_chunks(self, logged: Logged, prefix: str) -> None:
        """Add to a sample what stands in other members; most of it only when it is asked for."""
        metadata = f"{prefix}metadata.json"
        if metadata in self._archive:
            logged.sample.metadata = without_nan(self._parse(metadata))
        logged.read_extras = lambda: self._join_chunks(prefix)

    def _join_chunks(self, prefix: str) -> Extras:
        """Return the events and what they share; a reference to a text is its position."""
        messages, events, attachments = (
            self._join(f"{prefix}{what}/") for what in ("messages", "events", "attachments")
        )
        place = self._place(prefix)
        return Extras(
            attachments={str(position): str(text) for position, text in enumerate(attachments)},
            events=[to_struct(event, Event, "event", place) for event in events],
            events_data=EventsData([to_struct(message, Message, "message", place) for message in messages]),
        )

    def _join(self, folder: str) -> list[Any]:
        """Return the items of all chunks in a folder. A chunk's name is the position of its first item."""
        names = [name for name in self._archive.names if name.startswith(folder)]
        starts = sorted(int(stem) for name in names if (stem := name[len(folder) : -len(".json")]).isdecimal())
        items: list[Any] = []
        for start in starts:
            if start != len(items):
                place = Location(self._archive.path, field=f"{folder}{start}.json")
                raise DatasetIntegrityError.at(place, f"{len(items)} items stand before it", code="chunks")
            items += self._parse(f"{folder}{start}.json")
        return items

    def _parse(self, name: str) -> Any:
        return parse_json(self._archive.read(name), self._place(name), allow_nan=True)


def list_samples(archive: Archive) -> list[str]:
    """Return the members to begin reading samples at, those of one sample's epochs one after the other.

    Raises DatasetIntegrityError for a member among the samples that is not part of one.
    """
    groups: dict[str, list[str]] = {}
    for name in archive.names:
        if not name.startswith("samples/") or name.endswith("/"):
            continue
        match = _SAMPLE.fullmatch(name) or _SHELL.fullmatch(name)
        if match is not None:
            groups.setdefault(match["id"], []).append(name)
        elif not _CHUNK.fullmatch(name):
            raise DatasetIntegrityError.at(
                Location(archive.path, field=name),
                "no sample, and no part of one",
                "samples are named samples/ID_epoch_NUMBER.json",
                code="unexpected-member",
            )
    return [name for names in groups.values() for name in names]


class _JsonFile:
    repeated = 0

    def __init__(self, path: str) -> None:
        self._path = path
        self._digest = ""
        self.header = to_header(self._read_header(), path)

    def samples(self) -> Iterator[Logged]:
        with Document(self._path, "samples", _read_sample) as document:
            for piece in document.pieces():
                if piece.element:
                    data, line = piece.data, piece.line
                    sample = piece.value or parse(data, Sample, self._path, line)
                    yield Logged(sample, self._path, line, line, self._extras_reader(data, line))
            self._digest = document.digest()

    def digest(self) -> str:
        return self._digest

    def _extras_reader(self, data: bytes, line: int) -> Callable[[], Extras]:
        return lambda: _read_extras(data) or parse(data, Extras, self._path, line)

    def _read_header(self) -> dict[str, Any]:
        """Return the top-level values; those behind the samples only where they do not stand before them."""
        values: dict[str, Any] = {}
        with Document(self._path, "samples", parse_quickly(_Anything)) as document:
            for piece in document.pieces():
                if piece.element:
                    if {"status", "eval"} <= values.keys():  # inspect_ai writes the samples behind all of these
                        break
                elif piece.key in HEADER_KEYS:
                    if piece.key in values:
                        message = f"the key {piece.key} is given twice"
                        raise DatasetSyntaxError.at(
                            self._path, message, "remove one of the two", piece.line, code="duplicate-key"
                        )
                    values[piece.key] = parse_json(piece.data, self._path, piece.line, allow_nan=True)
        return values


class _Anything(msgspec.Struct):
    """An object whose keys do not matter."""
