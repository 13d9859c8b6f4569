"""The members of a `.eval` log: a ZIP that inspect_ai adds to while a run goes on.

Member names that stand twice are legal, the last counts (inspect_ai, log/_recorders/eval.py). Since inspect_ai 0.3.206
members are compressed by Zstandard, ZIP method 93, which Python's zipfile knows from 3.14 on: raw members are
decompressed here, and their size and CRC are checked.
"""

from __future__ import annotations

import struct
import zipfile
import zlib
from pathlib import Path
from typing import BinaryIO

import zstandard
from typing_extensions import Self

from helm_ext.errors import DatasetError, DatasetSyntaxError, Problems, raise_for
from helm_ext.files.limits import COPY_BYTES, MAX_DOCUMENT_BYTES, format_size
from helm_ext.files.opening import Hashing, open_raw
from helm_ext.hub.archive import ZSTANDARD, Limits, open_archive

_LOCAL_HEADER = struct.Struct("<4s22xHH")
_MAX_WINDOW = 1 << 27
_USUAL_EXTRA = 64
"""Bytes read at once beyond the name and the data of a member: what is extra has some 20."""


class Archive:
    """An open `.eval` file. A context manager.

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
        self._members = dict(sorted(members.items(), key=lambda member: member[1].header_offset))
        self._zstandard = zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW)

    @property
    def names(self) -> list[str]:
        """The names of the members, each once, in the order of their bytes."""
        return list(self._members)

    def __contains__(self, name: str) -> bool:
        return name in self._members

    def count_repeated(self, prefix: str) -> int:
        """Return how many members come again later under the same name, of those whose names begin so."""
        names = [member.filename for member in self._archive.infolist() if member.filename.startswith(prefix)]
        return len(names) - len(set(names))

    def read(self, name: str) -> bytes:
        """Return a member's content. Raises DatasetSyntaxError for one that is damaged, or larger than 1 GiB."""
        member = self._members[name]
        if member.file_size > MAX_DOCUMENT_BYTES:
            raise self._error(name, f"larger than {format_size(MAX_DOCUMENT_BYTES)}, the limit for one member")
        raw = self._read_raw(member)
        try:
            data = self._decompress(raw, member)
        except (zlib.error, zstandard.ZstdError, EOFError) as error:
            raise self._error(name, f"cannot be decompressed: {error}") from error
        if len(data) != member.file_size or zlib.crc32(data) != member.CRC:
            raise self._error(name, "damaged: its size or checksum is not what the archive's directory says")
        return data

    def digest(self) -> str:
        """Return the SHA-256 of the file."""
        self._file.seek(0)
        hashing = Hashing(self._file)
        while hashing.read_chunk(COPY_BYTES):
            pass
        return hashing.hash.hexdigest()

    def close(self) -> None:
        """Close the file."""
        self._archive.close()
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _read_raw(self, member: zipfile.ZipInfo) -> bytes:
        """Return the member as it is compressed: behind 30 bytes, its name, and what is extra (APPNOTE.TXT, 4.3.7)."""
        if member.header_offset < 0:  # zipfile moves all offsets by what is missing before the directory
            raise self._error(member.filename, "damaged: it is not where the archive's directory says")
        self._file.seek(member.header_offset)
        data = self._file.read(_LOCAL_HEADER.size + len(member.filename) + member.compress_size + _USUAL_EXTRA)
        if len(data) >= _LOCAL_HEADER.size:
            magic, name_size, extra_size = _LOCAL_HEADER.unpack_from(data)
            begin = _LOCAL_HEADER.size + name_size + extra_size
            end = begin + member.compress_size
            if end > len(data):
                data += self._file.read(end - len(data))
            if magic == b"PK\x03\x04" and end <= len(data):
                return data[begin:end]
        raise self._error(member.filename, "damaged: it is not where the archive's directory says")

    def _decompress(self, raw: bytes, member: zipfile.ZipInfo) -> bytes:
        """Return what comes out, at most one byte more than the directory says."""
        if member.compress_type == zipfile.ZIP_STORED:
            return raw
        if member.compress_type == zipfile.ZIP_DEFLATED:
            return zlib.decompressobj(-zlib.MAX_WBITS).decompress(raw, member.file_size + 1)
        assert member.compress_type == ZSTANDARD
        with self._zstandard.stream_reader(raw, read_across_frames=True) as reader:
            return reader.read(member.file_size + 1)

    def _error(self, name: str, message: str) -> DatasetError:
        return DatasetSyntaxError.at(
            self.path, f"member {name}: {message}", "copy or download the file again", code="damaged-member"
        )
