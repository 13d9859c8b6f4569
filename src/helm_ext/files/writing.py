"""Write files aside and put them in place: readers see the old ones or the new ones, whole, whenever we are killed.

One file (`open_part`) is written beside its target. Files that appear together, or not at all (`staged`), whoever else
writes the same ones at the same time:

    folder/
      stats.json, ...            what readers see: files of one writer, whole
      .staged-PID-RANDOM/        one writer's files while they are written: stats.json.part, ...; and its lock
      .commit.lock               held while files are put in place; empty, and left there (removing it would be a race)

A writer's lock is let go by the operating system when its process ends, also by `kill -9`: a staging folder whose lock
is free is nobody's, and is removed by the next writer. The staging folder is made and locked under `.commit.lock`, so
that nobody finds it before it is locked.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import IO, Any, BinaryIO

from filelock import FileLock, Timeout
from helm.common.hierarchical_logger import hlog, hwarn

from helm_ext.errors import HelmExtError
from helm_ext.files.content import COPY_BYTES, STALE_SECONDS

_NOT_HERE = {errno.ENOSYS, errno.EXDEV, errno.EINVAL, errno.EOPNOTSUPP, errno.EBADF}
"""What `copy_file_range` says where the kernel or a file system cannot do it."""

PART = ".part"
"""Suffix of files that are being written. Nothing reads them."""

STAGING = ".staged-"
COMMIT_LOCK = ".commit.lock"

_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
"""A full disk, a user's quota, a limit on the size of files (`ulimit -f`)."""


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
    if target.exists() and not target.is_file():  # /dev/stdout would become a file
        raise FileExistsError(errno.EEXIST, "there is something that is no file", str(target))
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


def append_file(source: IO[bytes], target: IO[bytes], size: int) -> None:
    """Write the first `size` bytes of an open file where another one stands; in the kernel where that is possible.

    Raises OSError, also where it has fewer.
    """
    target.flush()
    source.seek(0)
    left = size
    try:
        while left and hasattr(os, "copy_file_range"):
            copied = os.copy_file_range(source.fileno(), target.fileno(), left)
            if not copied:
                break
            left -= copied
    except OSError as error:
        if error.errno not in _NOT_HERE:
            raise
    source.seek(size - left)
    while left and (data := source.read(min(left, COPY_BYTES))):
        target.write(data)
        left -= len(data)
    if left:
        raise OSError(errno.EIO, f"{left} of {size} bytes are missing", source.name)


def no_formula(value: Any) -> Any:
    """Return a cell of a CSV file with an apostrophe before a text that spreadsheets would take for a formula."""
    is_formula = isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r"))
    return f"'{value}" if is_formula else value


class StagedFiles:
    """Files of one folder that appear together, or not at all. For use in one thread."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._names: list[str] = []
        self._staging: Path | None = None
        self._alive: FileLock | None = None

    @contextmanager
    def open(self, name: str) -> Iterator[IO[bytes]]:
        """Open the file `name` for writing; it stands elsewhere until `commit`."""
        if name not in self._names:
            self._names.append(name)
        with self.part(name).open("wb", buffering=COPY_BYTES) as file:
            yield file
            hlog(f"Writing {file.tell()} bytes to {self.folder / name}")
            file.flush()
            os.fsync(file.fileno())

    def part(self, name: str) -> Path:
        """Return where `name` stands until `commit`."""
        if self._staging is None:
            with locked(self.folder):
                self._remove_leftovers()
                self._staging = self.folder / f"{STAGING}{os.getpid()}-{secrets.token_hex(8)}"
                self._staging.mkdir()
                self._alive = _lock_of(self._staging)
                with suppress(NotImplementedError):
                    self._alive.acquire()
        return self._staging / (name + PART)

    def commit(self) -> None:
        """Put all files in place, those of other writers away.

        The file that was opened last is taken away first and put in place last, and the old files are gone before the
        first new one comes: whatever moment this is killed in, what is there is of one writer, and without the last
        file unless it is all. HELM takes no run for complete that lacks a file.

        Raises FileNotFoundError, with the old files untouched, if a file that was written is not there any more.
        """
        if not self._names:
            return
        parts = {name: self.part(name) for name in self._names}
        with locked(self.folder):
            for part in parts.values():
                part.stat()
            if len(parts) > 1:  # a single one is replaced at once
                for name in reversed(parts):
                    (self.folder / name).unlink(missing_ok=True)
            for name, part in parts.items():
                part.replace(self.folder / name)
            self._remove_leftovers()
        self._names.clear()

    def discard(self) -> None:
        """Remove what was written and not put in place."""
        if self._staging is not None:
            shutil.rmtree(self._staging, ignore_errors=True)
            self._staging = None
        if self._alive is not None:
            self._alive.release()
            self._alive = None
        self._names.clear()

    def _remove_leftovers(self) -> None:
        """Remove the staging folders of writers that are gone."""
        for staging in self.folder.glob(f"{STAGING}*"):
            if staging != self._staging and _is_abandoned(staging):
                shutil.rmtree(staging, ignore_errors=True)


@contextmanager
def staged(folder: Path) -> Iterator[StagedFiles]:
    """Stage files in `folder`, and put them in place when the block ends well. Raises HelmExtError for a full disk."""
    files = StagedFiles(folder)
    try:
        with _leaving_at_sigterm():
            yield files
            files.commit()
    except OSError as error:
        if error.errno not in _NO_ROOM:
            raise
        # What was to be flushed could not be either: the causes say the same, once for each file.
        raise HelmExtError(
            f"{folder}: the files cannot be written: {error.strerror}\n  hint: make room and start again; none of them "
            "is left half written"
        ) from None
    finally:
        files.discard()


@contextmanager
def _leaving_at_sigterm() -> Iterator[None]:
    """Let SIGTERM (`kill`, schedulers) end the process as an error does, with a shell's code for it: 143.

    Handlers of others stay; Python calls any in the main thread alone.
    """

    def leave(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - a handler's
        raise SystemExit(128 + number)

    is_main = threading.current_thread() is threading.main_thread()
    is_ours = is_main and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    if is_ours:
        signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        if is_ours:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the folder's commit lock. Somebody else may be the folder's owner, so anybody may lock it."""
    lock = FileLock(folder / COMMIT_LOCK, mode=0o666)
    try:
        lock.acquire()
    except NotImplementedError:
        hwarn(f"{folder}: this file system has no locks; two who write here at the same moment could mix their files")
    try:
        yield
    finally:
        lock.release()


def _lock_of(staging: Path) -> FileLock:
    return FileLock(staging / "lock", mode=0o666)


def _is_abandoned(staging: Path) -> bool:
    lock = _lock_of(staging)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        return False  # it is being written
    except (NotImplementedError, OSError):  # no locks here, or another user's folder
        with suppress(OSError):
            # The folder's time, not ours: a file server's clock may be another.
            return staging.stat().st_mtime < staging.parent.stat().st_mtime - STALE_SECONDS
        return False
    lock.release()
    return True
