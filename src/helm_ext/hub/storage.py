"""Where a hub's files lie, and the one operation that everything rests on: create a file only if there is none.

    local folder     temporary file, fsync, link(2): the file appears whole, under a name that nobody has, or not at all
    object store     conditional put (If-None-Match, ifGenerationMatch=0, ...), offered by the stores in EXCLUSIVE
    memory://        one process; for tests

Everything else (network drives behind fsspec, ftp, ...) can be read, but not uploaded to: it cannot keep the promise.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from helm_ext.errors import HubError
from helm_ext.hub.bundle import sha256_of
from helm_ext.hub.pack import sync_folder

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

__all__ = ["EXCLUSIVE", "LocalStorage", "RemoteStorage", "Storage", "open_storage"]

EXCLUSIVE = frozenset({"s3", "s3a", "gs", "gcs", "memory"})
"""fsspec protocols whose `pipe_file(mode="create")` is refused by the server when the object exists."""

PART = ".part"
"""Suffix of files that are being written. Nothing reads them."""

_STALE_SECONDS = 24 * 3600
"""A part file that nobody wrote to for a day was left behind by a crash."""

_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS}


class Storage(Protocol):
    """What a hub needs. Paths are relative to the hub's root, with `/`."""

    root: str

    def exists(self) -> bool:
        """Return whether anything is at the root."""

    def read(self, path: str) -> bytes:
        """Return a file's bytes. Raises FileNotFoundError."""

    def list_names(self, folder: str) -> list[str]:
        """Return the names in a folder, part files left out; [] where there is no such folder."""

    def create(self, path: str, data: bytes) -> None:
        """Write a new file, whole and durable. Raises FileExistsError when there is one, and then changes nothing."""

    def put(self, path: str, source: Path, digest: str) -> bool:
        """Store a file under a name that says its digest. One that is there already is kept, if it is sound.

        Returns whether the file was missing or damaged; False where that is not known.
        """

    def fetch(self, path: str, digest: str) -> Path:
        """Return a local file with the bytes of `path`. Raises FileNotFoundError. The reader checks the digest."""


def open_storage(root: str | Path) -> Storage:
    """Return the storage of a folder or an fsspec URL. Raises HubError for an unknown protocol."""
    text = str(root)
    if "://" not in text or text.startswith("file://"):
        return LocalStorage(Path(text.removeprefix("file://")).expanduser())
    import fsspec

    try:
        file_system, path = fsspec.core.url_to_fs(text)
    except (ImportError, ValueError) as error:
        raise HubError(f"{text}: cannot be opened: {error}") from error
    return RemoteStorage(text, file_system, path)


@contextmanager
def _explained(what: str, ending: str = "; nothing was changed") -> Iterator[None]:
    """Turn what an operating system or a store says into a HubError; missing and existing files are not errors."""
    try:
        yield
    except (FileNotFoundError, FileExistsError, HubError):
        raise
    except OSError as error:
        reason = error.strerror or str(error) or type(error).__name__
        raise HubError(f"{what}: {reason}{ending}") from error


class LocalStorage:
    """A folder on a local disk."""

    def __init__(self, root: Path) -> None:
        self.root = str(root)
        self.path = root

    def exists(self) -> bool:
        """See Storage."""
        return self.path.exists()

    def read(self, path: str) -> bytes:
        """See Storage."""
        with _explained(f"{self.path / path}: cannot be read", ""):
            return (self.path / path).read_bytes()

    def list_names(self, folder: str) -> list[str]:
        """See Storage."""
        try:
            with _explained(f"{self.path / folder}: cannot be listed", ""):
                return sorted(entry.name for entry in (self.path / folder).iterdir() if entry.suffix != PART)
        except FileNotFoundError:
            return []

    def create(self, path: str, data: bytes) -> None:
        """See Storage. link(2) fails when the name is taken: that makes the claim exclusive, also over NFS."""
        target = self.path / path
        with _explained(f"{target}: cannot be written"), self._part(target) as (part, handle):
            _write(handle, data)
            os.fsync(handle)
            try:
                os.link(part, target)
            except OSError as error:
                if error.errno in _NO_LINKS:
                    raise HubError(
                        f"{self.root}: this file system has no hard links, which the hub needs to number versions "
                        "safely; nothing was changed\n  hint: choose a folder on a local disk with --hub"
                    ) from error
                raise
            sync_folder(target.parent)

    def put(self, path: str, source: Path, digest: str) -> bool:
        """See Storage."""
        target = self.path / path
        with _explained(f"{target}: cannot be written"):
            if _has_digest(target, digest):
                return False
            with self._part(target) as (part, handle), source.open("rb") as file:
                while chunk := file.read(1 << 20):
                    _write(handle, chunk)
                os.fsync(handle)
                with part.open("rb") as written:
                    if sha256_of(written) != digest:
                        raise HubError(f"{source}: changed while it was uploaded; nothing was changed")
                os.replace(part, target)  # noqa: PTH105 - whoever comes second brings the same bytes
                sync_folder(target.parent)
        return True

    def fetch(self, path: str, digest: str) -> Path:  # noqa: ARG002 - only caches need it
        """See Storage."""
        found = self.path / path
        if not found.is_file():
            raise FileNotFoundError(str(found))
        return found

    @contextmanager
    def _part(self, target: Path) -> Iterator[tuple[Path, int]]:
        """Open a part file beside `target`; it is gone at the end, whatever happens, unless the process is killed."""
        _make_folders(target.parent)
        _remove_stale_parts(target.parent)
        part = target.parent / f".{target.name}.{os.getpid()}-{secrets.token_hex(8)}{PART}"
        handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        try:
            yield part, handle
        finally:
            os.close(handle)
            part.unlink(missing_ok=True)


def _write(handle: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]


def _has_digest(path: Path, digest: str) -> bool:
    try:
        with path.open("rb") as file:
            return sha256_of(file) == digest
    except FileNotFoundError:
        return False


def _make_folders(folder: Path) -> None:
    """Make a folder and those above it, each one durable."""
    if folder.is_dir():
        return
    _make_folders(folder.parent)
    try:
        folder.mkdir(exist_ok=True)
    except FileExistsError as error:
        raise NotADirectoryError(errno.ENOTDIR, "not a folder", str(folder)) from error
    sync_folder(folder.parent)


def _remove_stale_parts(folder: Path) -> None:
    """Remove what killed uploads left behind, once it is old enough to be nobody's."""
    oldest = time.time() - _STALE_SECONDS
    for part in folder.glob(f".*{PART}"):
        try:
            if part.stat().st_mtime < oldest:
                part.unlink()
        except FileNotFoundError:  # somebody else was faster
            continue


_MEMORY_LOCK = threading.Lock()
"""fsspec's memory file system looks and then writes; only one thread at a time may."""


class RemoteStorage:
    """Any fsspec file system. Blobs are fetched into a cache folder before they are read."""

    def __init__(self, root: str, file_system: AbstractFileSystem, path: str) -> None:
        self.root = root
        self.file_system = file_system
        self.path = path.rstrip("/")
        protocols = file_system.protocol
        self.protocols = {protocols} if isinstance(protocols, str) else set(protocols)

    def exists(self) -> bool:
        """See Storage."""
        self.file_system.invalidate_cache()
        with self._explained("", "cannot be read", writes=False):
            return bool(self.file_system.exists(self.path))

    def read(self, path: str) -> bytes:
        """See Storage."""
        with self._explained(path, "cannot be read", writes=False):
            return bytes(self.file_system.cat_file(f"{self.path}/{path}"))

    def list_names(self, folder: str) -> list[str]:
        """See Storage. fsspec remembers listings; ours must be true now."""
        self.file_system.invalidate_cache()
        try:
            with self._explained(folder, "cannot be listed", writes=False):
                found = self.file_system.ls(f"{self.path}/{folder}", detail=False)
        except (FileNotFoundError, NotADirectoryError):
            return []
        names = {str(name).rstrip("/").rsplit("/", 1)[-1] for name in found}
        return sorted(name for name in names if name and not name.endswith(PART))

    def create(self, path: str, data: bytes) -> None:
        """See Storage. One request: an object is whole or not there."""
        if not self.protocols & EXCLUSIVE:
            raise HubError(
                f"{self.root}: uploads need a store that can create an object only if there is none, and "
                f"{'/'.join(sorted(self.protocols))} is not known to; nothing was changed\n"
                f"  hint: use a local folder, or one of {', '.join(sorted(EXCLUSIVE))}"
            )
        with self._explained(path, "cannot be written"):
            if "memory" in self.protocols:
                with _MEMORY_LOCK:
                    self.file_system.pipe_file(f"{self.path}/{path}", data, mode="create")
            else:
                self.file_system.pipe_file(f"{self.path}/{path}", data, mode="create")

    def put(self, path: str, source: Path, digest: str) -> bool:
        """See Storage. The name is the digest, so writing it twice changes nothing; it is written without a look."""
        target = f"{self.path}/{path}"
        with self._explained(path, "cannot be written"):
            with source.open("rb") as file:
                if sha256_of(file) != digest:
                    raise HubError(f"{source}: changed while it was uploaded; nothing was changed")
            self.file_system.put_file(str(source), target)
            self.file_system.invalidate_cache()
            size = self.file_system.size(target)
            if size != source.stat().st_size:
                raise HubError(f"{self.root}/{path}: only {size} bytes were stored; nothing was changed")
        return False

    def fetch(self, path: str, digest: str) -> Path:
        """See Storage. A cached file whose digest is wrong is fetched again."""
        from platformdirs import user_cache_path

        cached = user_cache_path("helm-ext") / "bundles" / f"{digest}.zip"
        if _has_digest(cached, digest):
            return cached
        cached.parent.mkdir(parents=True, exist_ok=True)
        _remove_stale_parts(cached.parent)
        part = cached.parent / f".{digest}.{os.getpid()}-{secrets.token_hex(8)}{PART}"
        try:
            with self._explained(path, "cannot be read", writes=False):
                self.file_system.get_file(f"{self.path}/{path}", str(part))
            shutil.move(part, cached)
        finally:
            part.unlink(missing_ok=True)
        return cached

    @contextmanager
    def _explained(self, path: str, what: str, *, writes: bool = True) -> Iterator[None]:
        """As `_explained`, also for the exceptions of the stores' own libraries, which are not OSErrors.

        A file that is not found when one is written means that there is no such bucket.
        """
        known: Any = (OSError, HubError)
        ending = "; nothing was changed" if writes else ""
        try:
            with _explained(f"{self.root}/{path}: {what}", ending):
                yield
        except FileNotFoundError as error:
            if not writes:
                raise
            raise HubError(f"{self.root}/{path}: {what}: no such bucket or folder{ending}") from error
        except known:
            raise
        except Exception as error:
            raise HubError(f"{self.root}/{path}: {what}: {type(error).__name__}: {error}{ending}") from error
