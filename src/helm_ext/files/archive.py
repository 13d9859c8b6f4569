"""A ZIP from a stranger, opened without trusting it (docs/innodata.md, "Bundles").

Members are read by name and never extracted. Everything that the directory of the archive can tell is checked before a
byte is decompressed, so that a bomb costs nothing.
"""

from __future__ import annotations

import math
import os
import stat
import struct
import zipfile
from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import BinaryIO

from helm_ext.errors import DatasetIntegrityError, DatasetSyntaxError, Location, Problems, count, read_number, show

_IGNORED_NAMES = {".DS_Store"}
_IGNORED_FOLDER = "__MACOSX/"

_METHODS = {
    zipfile.ZIP_STORED: "stored",
    zipfile.ZIP_DEFLATED: "deflate",
    9: "deflate64",
    12: "bzip2",
    14: "LZMA",
    93: "Zstandard",
    99: "AES encryption",
}
_ACCEPTED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
ZSTANDARD = 93
"""The method of members that zipfile itself cannot decompress before Python 3.14."""

_MAX_DIRECTORY_BYTES = 1 << 20
"""A directory of three members has some 200 bytes; resource forks may add a few. zipfile reads it whole."""
_MAX_LONG_DIRECTORY_BYTES = 1 << 28
"""A directory of any number of members: about two million of them."""

_END_RECORD = struct.Struct("<4s4H2LH")
_END64_LOCATOR = struct.Struct("<4sLQL")
_END64_RECORD = struct.Struct("<4sQ2H2L4Q")
_UNKNOWN_32 = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class Limits:
    """How large a bundle may be when decompressed. The defaults can be changed by environment variables."""

    max_bytes: int = 8 << 30
    """All members together (HELM_EXT_MAX_BUNDLE_BYTES)."""
    max_ratio: float = 200
    """Decompressed to compressed size of a member beyond its first MiB (HELM_EXT_MAX_BUNDLE_RATIO)."""

    @classmethod
    def from_environ(cls) -> Limits:
        """Return the limits of this process. Raises HelmExtError for a variable that is no positive number."""
        return cls(
            max_bytes=int(read_number("HELM_EXT_MAX_BUNDLE_BYTES", cls().max_bytes, least=1, most=math.inf)),
            max_ratio=read_number("HELM_EXT_MAX_BUNDLE_RATIO", cls().max_ratio, least=1),
        )


def open_archive(
    file: BinaryIO, path: str, names: tuple[str, ...] | None, limits: Limits, problems: Problems
) -> tuple[zipfile.ZipFile, dict[str, zipfile.ZipInfo]] | None:
    """Open the archive in `file` and return it with its members by name; None when it must not be read.

    `names` are the members that there must be, and no others. None: any, also compressed by Zstandard, in an archive
    that was added to: of several members of one name the last is returned, and the first need not be listed any more.
    """
    grows = names is None

    def refuse(message: str, code: str, hint: str = "") -> None:
        problems.add(Location(path), message, hint, code=code, kind=DatasetSyntaxError)

    wrong = _check_end(file, _MAX_LONG_DIRECTORY_BYTES if grows else _MAX_DIRECTORY_BYTES)
    if wrong is not None:
        refuse(*wrong)
        return None
    try:
        archive = zipfile.ZipFile(file)
    except (zipfile.BadZipFile, NotImplementedError, ValueError, struct.error) as error:
        refuse(f"not a ZIP archive, or damaged: {error}", "not-a-zip")
        return None
    before = problems.errors
    members = archive.infolist()
    file.seek(0)
    begins_with_member = grows and file.read(4) == b"PK\x03\x04"
    if members and min(member.header_offset for member in members) > 0 and not begins_with_member:
        refuse("data before the first member", "leading-data", _MAKE_ANEW)
    methods = (*_ACCEPTED, ZSTANDARD) if grows else _ACCEPTED
    for member in members:
        _check_member(member, path, limits, problems, methods)
    if names is not None:
        _check_names(members, path, names, problems)
    total = sum(member.file_size for member in members)
    if total > limits.max_bytes:
        message = f"too large: {total} bytes when decompressed, the limit is {limits.max_bytes}"
        refuse(message, "too-large", "HELM_EXT_MAX_BUNDLE_BYTES changes the limit")
    if problems.errors > before:
        return None
    return archive, {member.filename: member for member in members if names is None or member.filename in names}


_MAKE_ANEW = "make the archive anew, with nothing before or behind it"
_COPY_AGAIN = "copy or download the file again"


def _check_end(file: BinaryIO, max_directory: int) -> tuple[str, str, str] | None:
    """Check the record that ends an archive: it is the last thing in the file, and the directory is small.

    Returns message, code and hint where it is not.
    """
    size = file.seek(0, os.SEEK_END)
    tail_size = min(size, _END_RECORD.size + 0xFFFF)
    file.seek(size - tail_size)
    tail = file.read(tail_size)
    at = tail.rfind(b"PK\x05\x06")
    if at < 0 or len(tail) - at < _END_RECORD.size:
        file.seek(0)
        if file.read(4) == b"PK\x03\x04":
            return "truncated: the end of the ZIP archive is missing", "truncated", _COPY_AGAIN
        return "not a ZIP archive", "not-a-zip", ""
    record = _END_RECORD.unpack_from(tail, at)
    directory_size, comment_size = record[5], record[7]
    extra = len(tail) - at - _END_RECORD.size - comment_size
    if extra > 0:
        return f"{count(extra, 'byte')} of trailing data after the archive", "trailing-data", _MAKE_ANEW
    if extra < 0:
        return "truncated: the comment of the ZIP archive is cut off", "truncated", _COPY_AGAIN
    if directory_size == _UNKNOWN_32:
        directory_size = _directory_size_64(file, size - tail_size + at)
    if directory_size > max_directory:
        message = f"the archive's directory has {directory_size} bytes: far too many members"
        return message, "too-many-members", ""
    return None


def _directory_size_64(file: BinaryIO, end: int) -> int:
    """Return the directory's size from a ZIP64 end record, 0 when that is malformed (zipfile then says so)."""
    if end < _END64_LOCATOR.size:
        return 0
    file.seek(end - _END64_LOCATOR.size)
    locator = _END64_LOCATOR.unpack(file.read(_END64_LOCATOR.size))
    if locator[0] != b"PK\x06\x07":
        return 0
    file.seek(end - _END64_LOCATOR.size - _END64_RECORD.size)
    data = file.read(_END64_RECORD.size)
    record = _END64_RECORD.unpack(data) if len(data) == _END64_RECORD.size else (b"",)
    return record[8] if record[0] == b"PK\x06\x06" else 0


def _refuse(path: str, problems: Problems, name: str, message: str, code: str, hint: str = "") -> None:
    problems.add(Location(path), f"member {show(name)}: {message}", hint, code=code, kind=DatasetIntegrityError)


def _check_member(
    member: zipfile.ZipInfo, path: str, limits: Limits, problems: Problems, methods: tuple[int, ...]
) -> None:
    name = member.orig_filename
    refuse = partial(_refuse, path, problems, name)
    if name.startswith(("/", "\\")) or name[1:2] == ":":
        refuse("absolute name", "absolute-name")
    elif ".." in name.replace("\\", "/").split("/"):
        refuse("path traversal", "path-traversal")
    elif "\0" in name:
        refuse("NUL in the name", "nul-in-name")
    if stat.S_ISLNK(member.external_attr >> 16):
        refuse("symbolic link", "symlink")
    if member.flag_bits & 0x1 or member.flag_bits & 0x40:
        refuse("encrypted", "encrypted", "make the archive without a password")
    elif member.compress_type not in methods:
        method = _METHODS.get(member.compress_type, "unknown")
        hint = "use deflate, the default of every tool, or no compression"
        refuse(f"compression method {member.compress_type} ({method})", "compression", hint)
    ratio = member.file_size / max(member.compress_size, 1)
    if member.file_size > (1 << 20) and ratio > limits.max_ratio:
        message = f"decompresses to {ratio:.0f} times its size, the limit is {limits.max_ratio:g}"
        refuse(message, "ratio", "HELM_EXT_MAX_BUNDLE_RATIO changes the limit")


def _check_names(members: list[zipfile.ZipInfo], path: str, names: tuple[str, ...], problems: Problems) -> None:
    counts = Counter(member.filename for member in members if not _is_ignored(member.filename))
    exactly = f"a bundle has exactly {', '.join(names)}"
    refuse = partial(_refuse, path, problems)
    for name, times in counts.items():
        if times > 1:
            refuse(name, f"occurs {times} times", "duplicate-member")
        if name not in names:
            in_folder = name.rpartition("/")[2] in names or name.endswith("/")
            hint = "put the files at the top of the archive, in no folder" if in_folder else exactly
            refuse(name, "unexpected", "unexpected-member", hint)
    for name in names:
        if name not in counts:
            refuse(name, "missing", "missing-member", exactly)


def _is_ignored(name: str) -> bool:
    return name.startswith(_IGNORED_FOLDER) or name.rpartition("/")[2] in _IGNORED_NAMES
