"""Write a file aside and put it in place: readers see the old file or the new one, whole, whenever we are killed.

Several files that belong together: `files.staged`.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, BinaryIO

from helm_ext.files.limits import COPY_BYTES, STALE_SECONDS

_NOT_HERE = {errno.ENOSYS, errno.EXDEV, errno.EINVAL, errno.EOPNOTSUPP, errno.EBADF}
"""What `copy_file_range` says where the kernel or a file system cannot do it."""

PART = ".part"
"""Suffix of files that are being written. Nothing reads them."""


class Part:
    """A file that is written beside `target`, in the same folder. Put it in place with `replace` or `link`."""

    def __init__(self, target: Path, path: Path, file: BinaryIO) -> None:
        self.target = target
        self.path = path
        self.file = file

    def replace(self) -> None:
        """Put the file in place of what is there. Raises OSError."""
        self.sync()
        self.path.replace(self.target)
        sync_folder(self.target.parent)

    def link(self) -> None:
        """Put the file in place if nothing is there, and raise FileExistsError if there is. Raises OSError.

        link(2) fails when the name is taken, also over NFS: of many who try, one succeeds.
        """
        self.sync()
        os.link(self.path, self.target)
        sync_folder(self.target.parent)

    def sync(self) -> None:
        """Make the bytes durable, before a name leads to them."""
        self.file.flush()
        os.fsync(self.file.fileno())


@contextmanager
def open_part(target: Path, mode: int | None = None) -> Iterator[Part]:
    """Open a part file beside `target`, and remove it at the end unless it was put in place. Raises OSError.

    `mode`: the file's permissions; None leaves them to the umask. Part files that killed processes left behind in the
    folder are removed on the occasion.
    """
    path = target.parent / f".{os.getpid()}-{secrets.token_hex(8)}{PART}"  # the target's own name may be of full length
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with os.fdopen(handle, "w+b", buffering=COPY_BYTES) as file:
            if mode is not None:
                os.fchmod(handle, mode)
            _remove_stale_parts(target.parent, os.fstat(handle).st_mtime)
            yield Part(target, path, file)
    finally:
        path.unlink(missing_ok=True)


def _remove_stale_parts(folder: Path, now: float) -> None:
    """Remove the part files to which nobody wrote for long.

    `now` is the time of a file that was written this moment: a file server's clock is not always ours, and a part file
    that is being written must not look old. What cannot be removed (another user's) does not matter.
    """
    for part in folder.glob(f".*{PART}"):
        with suppress(OSError):
            if part.stat().st_mtime < now - STALE_SECONDS:
                part.unlink()


def replace_file(file: BinaryIO, target: Path) -> None:
    """Copy an open binary file, from its beginning, to `target`. Raises OSError."""
    file.seek(0)
    with open_part(target) as part:
        shutil.copyfileobj(file, part.file, COPY_BYTES)
        part.replace()


def sync_folder(folder: Path) -> None:
    """Make a folder's entries durable. Systems that cannot open folders (Windows), or refuse it, do without."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def append_file(source: IO[bytes], target: IO[bytes]) -> None:
    """Write all of an open file, from its beginning, where another one stands; in the kernel where that is possible.

    Raises OSError.
    """
    target.flush()
    source.seek(0)
    left = os.fstat(source.fileno()).st_size
    try:
        while left and hasattr(os, "copy_file_range"):
            copied = os.copy_file_range(source.fileno(), target.fileno(), left)
            if not copied:
                break
            left -= copied
    except OSError as error:
        if error.errno not in _NOT_HERE:
            raise
    if left:
        source.seek(-left, os.SEEK_END)
        shutil.copyfileobj(source, target, COPY_BYTES)


def no_formula(value: Any) -> Any:
    """Return a cell of a CSV file with an apostrophe before a text that spreadsheets would take for a formula."""
    is_formula = isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r"))
    return f"'{value}" if is_formula else value
