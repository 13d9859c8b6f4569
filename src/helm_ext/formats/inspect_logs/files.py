"""The two kinds of log files, read alike: the header, then the samples one by one.

`.eval` is a ZIP with a member for each sample and epoch, `.json` one document. Of a member that stands twice the last
counts, as for inspect_ai (log/_recorders/eval.py); its newest writers also keep a sample in several members, which its
own reader does not know yet ("chunks": log/_recorders/chunked/format.py). Since inspect_ai 0.3.206 members are
compressed by Zstandard, ZIP method 93, which Python's zipfile knows from 3.14 on: raw members are decompressed here.
"""

from __future__ import annotations

import re
import struct
import zipfile
import zlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import zstandard
from typing_extensions import Self

from helm_ext.errors import (
    DatasetError,
    DatasetIntegrityError,
    DatasetSchemaError,
    DatasetSyntaxError,
    Location,
    Problems,
    raise_for,
)
from helm_ext.files import parse_json
from helm_ext.files.archive import ZSTANDARD, Limits, open_archive
from helm_ext.files.opening import MAX_DOCUMENT_BYTES, ZIP_MAGIC, Hashing, format_size, open_raw
from helm_ext.formats.imported.json_pieces import JsonPieces
from helm_ext.formats.imported.structs import to_struct, without_nan
from helm_ext.formats.inspect_logs.header import HEADER_KEYS, Header, to_header
from helm_ext.formats.inspect_logs.samples import Event, EventsData, Extras, Logged, Message, Sample, parse

_LOCAL_HEADER = struct.Struct("<4s22xHH")
_MAX_WINDOW = 1 << 27
_USUAL_EXTRA = 64
"""Bytes read at once beyond the name and the data of a member: what is extra has some 20."""

_SAMPLE = re.compile(r"samples/(?P<id>.+)_epoch_[0-9]+\.json", re.DOTALL)
_SHELL = re.compile(r"(?P<prefix>samples/(?P<id>.+)_epoch_[0-9]+/)sample\.json", re.DOTALL)
_CHUNK = re.compile(
    r"samples/.+_epoch_[0-9]+/(?:(?:metadata|skeleton)|(?:messages|events|calls|attachments)/[a-z0-9]+)\.json",
    re.DOTALL,
)
_HEADER, _START = "header.json", "_journal/start.json"


def open_log(path: str | Path) -> EvalLog | JsonLog:
    """Open a log of either kind, by its first bytes: a context manager, to be read once. Raises DatasetError."""
    with open_raw(path) as file:
        is_zip = file.read(len(ZIP_MAGIC)) == ZIP_MAGIC
    return EvalLog(path) if is_zip else JsonLog(path)


class Archive:
    """A ZIP that inspect_ai adds to while a run goes on. A context manager.

    Raises DatasetError for what is no ZIP, or one that must not be opened: the rules are those of bundles
    (docs/innodata.md), but that there may be any members, and names may stand twice.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = str(path)
        self._file: BinaryIO = open_raw(path)
        problems = Problems(self.path)
        try:
            opened = open_archive(self._file, self.path, None, Limits.from_environ(), problems)
            raise_for(problems.finish())
        except BaseException:
            self._file.close()
            raise
        assert opened is not None
        self._archive, members = opened
        self.members = dict(sorted(members.items(), key=lambda member: member[1].header_offset))
        """By name, in the order of their bytes."""
        names = [member.filename for member in self._archive.infolist() if member.filename.startswith("samples/")]
        self.repeated = len(names) - len(set(names))
        """Samples that stand there again, in a later version; they are not read."""
        self._zstandard = zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW)

    def read(self, name: str) -> bytes:
        """Return a member's content. Raises DatasetSyntaxError for one that is damaged, or larger than 1 GiB."""
        member = self.members[name]
        if member.file_size > MAX_DOCUMENT_BYTES:
            raise self._damaged(name, f"larger than {format_size(MAX_DOCUMENT_BYTES)}, the limit for one member")
        raw = self._read_raw(member)
        try:
            data = self._decompress(raw, member)
        except (zlib.error, zstandard.ZstdError, EOFError) as error:
            raise self._damaged(name, f"cannot be decompressed: {error}") from error
        if len(data) != member.file_size or zlib.crc32(data) != member.CRC:
            raise self._damaged(name, "damaged: its size or checksum is not what the archive's directory says")
        return data

    def digest(self) -> str:
        """Return the SHA-256 of the file."""
        self._file.seek(0)
        hashing = Hashing(self._file)
        hashing.drain()
        return hashing.hash.hexdigest()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._archive.close()
        self._file.close()

    def _read_raw(self, member: zipfile.ZipInfo) -> bytes:
        """Return the member as it is compressed: behind 30 bytes, its name, and what is extra (APPNOTE.TXT, 4.3.7)."""
        if member.header_offset >= 0:  # zipfile moves all offsets by what is missing before the directory
            self._file.seek(member.header_offset)
            data = self._file.read(_LOCAL_HEADER.size + len(member.filename) + member.compress_size + _USUAL_EXTRA)
            if len(data) >= _LOCAL_HEADER.size:
                magic, name_size, extra_size = _LOCAL_HEADER.unpack_from(data)
                begin = _LOCAL_HEADER.size + name_size + extra_size
                end = begin + member.compress_size
                if end > len(data):
                    data += self._file.read(end - len(data))
                if magic == ZIP_MAGIC and end <= len(data):
                    return data[begin:end]
        raise self._damaged(member.filename, "damaged: it is not where the archive's directory says")

    def _decompress(self, raw: bytes, member: zipfile.ZipInfo) -> bytes:
        """Return what comes out, at most one byte more than the directory says."""
        if member.compress_type == zipfile.ZIP_STORED:
            return raw
        if member.compress_type == zipfile.ZIP_DEFLATED:
            return zlib.decompressobj(-zlib.MAX_WBITS).decompress(raw, member.file_size + 1)
        assert member.compress_type == ZSTANDARD
        with self._zstandard.stream_reader(raw, read_across_frames=True) as reader:
            return reader.read(member.file_size + 1)

    def _damaged(self, name: str, message: str) -> DatasetError:
        hint = "copy or download the file again"
        return DatasetSyntaxError.at(self.path, f"member {name}: {message}", hint, code="damaged-member")


class EvalLog(Archive):
    """A `.eval` log."""

    def __init__(self, path: str | Path) -> None:
        super().__init__(path)
        try:
            self.header = self._read_header()
        except BaseException:
            self.__exit__()
            raise

    def _read_header(self) -> Header:
        name = next((one for one in (_HEADER, _START) if one in self.members), None)
        if name is None:
            message, hint = f"a ZIP without {_HEADER} and {_START}", "a log of inspect_ai has one of them"
            raise DatasetSchemaError.at(self.path, message, hint, code="schema")
        values = self._parse(name)
        if not isinstance(values, dict):
            raise DatasetSchemaError.at(self._place(name), "expected an object", code="schema")
        return to_header({**values, "status": "started"} if name == _START else values, self.path)

    def samples(self) -> Iterator[Logged]:
        """Yield the samples. Raises DatasetError."""
        for position, name in enumerate(self.list_samples(), start=1):
            data, place = self.read(name), self._place(name)
            logged = Logged(parse(data, Sample, place), place, 1, position, partial(parse, data, Extras, place))
            if shell := _SHELL.fullmatch(name):
                metadata = f"{shell['prefix']}metadata.json"
                if metadata in self.members:
                    logged.sample.metadata = without_nan(self._parse(metadata))
                logged.read_extras = partial(self._join_chunks, shell["prefix"])
            yield logged

    def list_samples(self) -> list[str]:
        """Return the members to begin reading samples at, those of one sample's epochs one after the other.

        Raises DatasetIntegrityError for a member among the samples that is not part of one.
        """
        groups: dict[str, list[str]] = {}
        for name in self.members:
            if not name.startswith("samples/") or name.endswith("/"):
                continue
            match = _SAMPLE.fullmatch(name) or _SHELL.fullmatch(name)
            if match is not None:
                groups.setdefault(match["id"], []).append(name)
            elif not _CHUNK.fullmatch(name):
                place, hint = Location(self.path, field=name), "samples are named samples/ID_epoch_NUMBER.json"
                message = "no sample, and no part of one"
                raise DatasetIntegrityError.at(place, message, hint, code="unexpected-member")
        return [name for names in groups.values() for name in names]

    def _join_chunks(self, prefix: str) -> Extras:
        """Return the events and what they share; a reference to a text is its position."""
        messages, events, texts = (self._join(f"{prefix}{what}/") for what in ("messages", "events", "attachments"))
        place = self._place(prefix)
        return Extras(
            attachments={str(position): str(text) for position, text in enumerate(texts)},
            events=[to_struct(event, Event, "event", place) for event in events],
            events_data=EventsData([to_struct(message, Message, "message", place) for message in messages]),
        )

    def _join(self, folder: str) -> list[Any]:
        """Return the items of all chunks in a folder. A chunk's name is the position of its first item."""
        stems = [name[len(folder) : -len(".json")] for name in self.members if name.startswith(folder)]
        items: list[Any] = []
        for start in sorted(int(stem) for stem in stems if stem.isdecimal()):
            if start != len(items):
                place = Location(self.path, field=f"{folder}{start}.json")
                raise DatasetIntegrityError.at(place, f"{len(items)} items stand before it", code="chunks")
            items += self._parse(f"{folder}{start}.json")
        return items

    def _place(self, name: str) -> str:
        return f"{self.path}: {name}"

    def _parse(self, name: str) -> Any:
        return parse_json(self.read(name), self._place(name), allow_nan=True)


class JsonLog:
    """A `.json` log. Its header is read first; samples that stand before it are read over."""

    repeated = 0

    def __init__(self, path: str | Path) -> None:
        self.path = str(path)
        values: dict[str, Any] = {}
        with JsonPieces(path, "samples") as document:
            for key, data, line in document:
                if key == "samples" and {"status", "eval"} <= values.keys():
                    break  # inspect_ai writes the samples behind all else
                if key in values:
                    message, hint = f"the key {key} is given twice", "remove one of the two"
                    raise DatasetSyntaxError.at(self.path, message, hint, line, code="duplicate-key")
                if key in HEADER_KEYS:
                    values[key] = parse_json(data, self.path, line, allow_nan=True)
        self.header = to_header(values, self.path)
        self._document = JsonPieces(path, "samples")

    def samples(self) -> Iterator[Logged]:
        """Yield the samples. Raises DatasetError."""
        for key, data, line in self._document:
            if key == "samples" and data != b"null":
                sample = parse(data, Sample, self.path, line)
                yield Logged(sample, self.path, line, line, partial(parse, data, Extras, self.path, line))

    def digest(self) -> str:
        """Return the SHA-256 of the file's bytes."""
        return self._document.digest

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._document.__exit__()
