"""Where a hub's files lie, and the one operation that everything rests on: create a file only if there is none.

    local folder     temporary file, fsync, link(2): the file appears whole, under a name that nobody has, or not at all
    object store     conditional put (If-None-Match, ifGenerationMatch=0, ...), offered by the stores in EXCLUSIVE
    memory://        one process; for tests

Everything else (network drives behind fsspec, ftp, ...) can be read, but not uploaded to: it cannot keep the promise.
"""

from __future__ import annotations

import errno
import shutil
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeAlias

from helm_ext.errors import HubError, show
from helm_ext.files.content import COPY_BYTES
from helm_ext.files.writing import PART, Part, open_part, sync_folder
from helm_ext.formats.innodata.hub.bundle import sha256_of

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

EXCLUSIVE = frozenset({"s3", "s3a", "gs", "gcs", "memory"})
"""fsspec protocols whose `pipe_file(mode="create")` is refused by the server when the object exists."""

_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS}


def open_storage(root: str | Path) -> Storage:
    """Return the storage of a folder or an fsspec URL. Raises HubError for one that cannot be opened."""
    text = str(root)
    if "\0" in text:
        raise HubError(f"{show(text)}: a null character is in no path")
    if "://" not in text or text.startswith("file://"):
        try:
            return LocalStorage(Path(text.removeprefix("file://")).expanduser())
        except RuntimeError as error:  # ~NAME of no user
            raise HubError(f"{text}: {error}\n  hint: ./{text} is a folder of that name") from error
    import fsspec

    try:
        file_system, path = fsspec.core.url_to_fs(text)
    except Exception as error:  # some file systems connect at once, and each has exceptions of its own
        raise HubError(f"{text}: cannot be opened: {str(error) or type(error).__name__}") from error
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
    """A folder on a local disk. Paths are relative to the hub's root, with `/`."""

    def __init__(self, root: Path) -> None:
        self.root = str(root)
        self.path = root

    def exists(self) -> bool:
        """Return whether anything is at the root."""
        with _explained(f"{self.path}: cannot be read", ""):
            if self.path.exists() and not self.path.is_dir():
                raise HubError(f"{self.path}: this is no folder, so no hub")
            return self.path.exists()

    def read(self, path: str) -> bytes:
        """Return a file's bytes. Raises FileNotFoundError."""
        with _explained(f"{self.path / path}: cannot be read", ""):
            return (self.path / path).read_bytes()

    def list_names(self, folder: str) -> list[str]:
        """Return the names in a folder, part files left out; [] where there is no such folder."""
        try:
            with _explained(f"{self.path / folder}: cannot be listed", ""):
                return sorted(entry.name for entry in (self.path / folder).iterdir() if entry.suffix != PART)
        except (FileNotFoundError, NotADirectoryError):
            return []

    def create(self, path: str, data: bytes) -> None:
        """Write a new file, whole and durable. Raises FileExistsError when there is one, and then changes nothing."""
        target = self.path / path
        with _explained(f"{target}: cannot be written"), self._part(target) as part:
            part.file.write(data)
            try:
                part.link()
            except OSError as error:
                if error.errno in _NO_LINKS:
                    raise HubError(
                        f"{self.root}: this file system has no hard links, which the hub needs to number versions "
                        "safely; nothing was changed\n  hint: choose a folder on a local disk with --hub"
                    ) from error
                raise

    def put(self, path: str, source: Path, digest: str) -> bool:
        """Store a file under a name that says its digest. One that is there already is kept, if it is sound.

        Returns whether the file was missing or damaged; False where that is not known.
        """
        target = self.path / path
        with _explained(f"{target}: cannot be written"):
            if _has_digest(lambda: target.open("rb"), digest):
                return False
            with self._part(target) as part, source.open("rb") as file:
                shutil.copyfileobj(file, part.file, COPY_BYTES)
                part.file.flush()
                if sha256_of(part.file) != digest:
                    raise HubError(f"{source}: changed while it was uploaded; nothing was changed")
                part.replace()  # whoever comes second brings the same bytes
        return True

    def fetch(self, path: str, digest: str, *, cached: bool) -> Path:  # noqa: ARG002 - nothing is cached
        """Return a local file with the bytes of `path`. Raises FileNotFoundError. The reader checks the digest."""
        found = self.path / path
        with _explained(f"{found}: cannot be read", ""):
            if not found.exists():
                raise FileNotFoundError(str(found))
            if not found.is_file():
                raise HubError(f"{found}: this is no regular file")
        return found

    @contextmanager
    def _part(self, target: Path) -> Iterator[Part]:
        """Open a part file beside `target`. It is readable for those who may read the hub's folder.

        The umask of whoever uploads does not decide that: with 077, others would see versions that they cannot open.
        """
        self._make_folders(target.parent)
        allowed = stat.S_IMODE(self.path.stat().st_mode)
        try:
            with open_part(target, allowed & 0o444 | 0o200) as part:
                yield part
        except FileNotFoundError as error:
            raise HubError(f"{target.parent}: a file vanished while it was written; nothing was changed") from error

    def _make_folders(self, folder: Path) -> None:
        """Make a folder and those above it, each one durable; inside the hub as open to others as the hub's own."""
        if folder.is_dir():
            return
        self._make_folders(folder.parent)
        try:
            folder.mkdir(exist_ok=True)
        except FileExistsError as error:
            raise NotADirectoryError(errno.ENOTDIR, "not a folder", str(folder)) from error
        if folder != self.path and self.path in folder.parents:
            with suppress(PermissionError):  # somebody else made it this moment, and gave it the same mode
                folder.chmod(stat.S_IMODE(self.path.stat().st_mode))
        sync_folder(folder.parent)


def _has_digest(open_it: Callable[[], BinaryIO], digest: str) -> bool:
    """Whether there is a file, and its digest is this one."""
    try:
        with open_it() as file:
            return sha256_of(file) == digest
    except FileNotFoundError:
        return False


_MEMORY_LOCK = threading.Lock()
"""fsspec's memory file system looks and then writes; only one thread at a time may."""


class RemoteStorage:
    """Any fsspec file system, with the methods of LocalStorage. Blobs are fetched into a cache folder to be read."""

    def __init__(self, root: str, file_system: AbstractFileSystem, path: str) -> None:
        self.root = root
        self.file_system = file_system
        self.path = path.rstrip("/")
        protocols = file_system.protocol
        self.protocols = {protocols} if isinstance(protocols, str) else set(protocols)

    def exists(self) -> bool:
        self.file_system.invalidate_cache()
        with self._explained("", "cannot be read", writes=False):
            return bool(self.file_system.exists(self.path))

    def read(self, path: str) -> bytes:
        with self._explained(path, "cannot be read", writes=False):
            return bytes(self.file_system.cat_file(f"{self.path}/{path}"))

    def list_names(self, folder: str) -> list[str]:
        """As LocalStorage. fsspec remembers listings; ours must be true now."""
        self.file_system.invalidate_cache()
        try:
            with self._explained(folder, "cannot be listed", writes=False):
                found = self.file_system.ls(f"{self.path}/{folder}", detail=False)
        except (FileNotFoundError, NotADirectoryError):
            return []
        names = {str(name).rstrip("/").rsplit("/", 1)[-1] for name in found}
        return sorted(name for name in names if name and not name.endswith(PART))

    def create(self, path: str, data: bytes) -> None:
        """As LocalStorage. One request: an object is whole or not there."""
        if not self.protocols & EXCLUSIVE:
            raise HubError(
                f"{self.root}: uploads need a store that can create an object only if there is none, and "
                f"{'/'.join(sorted(self.protocols))} is not known to; nothing was changed\n"
                f"  hint: use a local folder, or one of {', '.join(sorted(EXCLUSIVE))}"
            )
        lock = _MEMORY_LOCK if "memory" in self.protocols else nullcontext()
        with self._explained(path, "cannot be written"), lock:
            self.file_system.pipe_file(f"{self.path}/{path}", data, mode="create")

    def put(self, path: str, source: Path, digest: str) -> bool:
        target = f"{self.path}/{path}"
        with self._explained(path, "cannot be written"):
            if _has_digest(lambda: self.file_system.open(target, "rb"), digest):
                return False
            with source.open("rb") as file:
                if sha256_of(file) != digest:
                    raise HubError(f"{source}: changed while it was uploaded; nothing was changed")
            self.file_system.put_file(str(source), target)
            self.file_system.invalidate_cache()
            size = self.file_system.size(target)
            if size != source.stat().st_size:
                raise HubError(f"{self.root}/{path}: only {size} bytes were stored")
        return True

    def fetch(self, path: str, digest: str, *, cached: bool) -> Path:
        """As LocalStorage. What was fetched is kept in the user's cache folder.

        It is taken if its digest is right, unless `cached` is False: then the bytes come from where they are stored.
        """
        from platformdirs import user_cache_path

        found = user_cache_path("helm-ext") / "bundles" / f"{digest}.zip"
        with _explained(f"{found}: cannot be written"):
            if cached and _has_digest(lambda: found.open("rb"), digest):
                return found
            found.parent.mkdir(parents=True, exist_ok=True)
            with open_part(found) as part:
                with self._explained(path, "cannot be read", writes=False):
                    self.file_system.get_file(f"{self.path}/{path}", str(part.path))
                part.path.replace(found)  # it need not outlive a crash: whoever reads it compares the digest
        return found

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


Storage: TypeAlias = LocalStorage | RemoteStorage
"""What a hub's files lie in."""
