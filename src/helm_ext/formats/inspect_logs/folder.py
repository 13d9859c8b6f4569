"""Which files of a folder are logs, and which of them is meant.

Logs of workers may stand beside the log that they were merged into: `NAME.shards/K/FILE.eval` beside `NAME.eval`.
inspect_ai lists such a shard no longer once its merged log ended well (log/_shard_listing.py, _util/log_layout.py); it
compares the times of files, which copies do not keep. Here a shard is covered where the merged log has its samples.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from helm_ext.errors import DatasetError, DatasetNotFoundError, count
from helm_ext.formats.imported.format import choose_part
from helm_ext.formats.seen import LOOKED_AT, Seen, look

_ZIP = b"PK\x03\x04"
_FIRST_MEMBERS = (b"_journal/", b"header.json", b"samples/")
_SPEC = re.compile(rb'"eval"\s*:\s*(\{)')
_SHARDS = ".shards"


def is_log(seen: Seen) -> bool:
    if seen.start.startswith(_ZIP):
        size = int.from_bytes(seen.start[26:28], "little")
        return seen.suffix == ".eval" or seen.start[30 : 30 + size].startswith(_FIRST_MEMBERS)
    spec = _SPEC.search(seen.start) if seen.is_like_json() and "eval" in seen.keys else None
    if spec is None:
        return False
    keys = Seen(seen.path, seen.start[spec.start(1) :]).keys
    if {"task", "model"} <= keys and seen.keys & {"plan", "status"}:
        return True
    is_truncated = len(seen.start) >= LOOKED_AT  # a log names all its samples before the model
    return is_truncated and {"task", "dataset"} <= keys


def find_logs(folder: Path) -> list[str]:
    """Return the names of the logs in a folder and those below it, hidden ones aside, with `/` between folders.

    Shards that their merged log covers are not among them.
    """
    found = []
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        if path.suffix.lower() in (".eval", ".json") and not any(part.startswith(".") for part in name.parts):
            seen = look(path)
            if seen.exists and not seen.is_folder and (path.suffix.lower() == ".eval" or is_log(seen)):
                found.append(name.as_posix())
    read = cache(_read)
    covered = {
        name
        for name in found
        for merged in (_find_merged(folder / name) if _is_shard(Path(name)) else ())
        if merged.relative_to(folder).as_posix() in found and read(merged).covers(read(folder / name))
    }
    return [name for name in found if name not in covered]


def find_log(path: str, log: str | None) -> str:
    """Return the path of the log that is meant. Raises DatasetError where a folder does not tell."""
    folder = Path(path)
    if not folder.is_dir():
        return path
    if log is not None and ".." not in Path(log).parts and (folder / log).is_file():
        return str(folder / log)  # a folder may hold thousands
    names = find_logs(folder)
    if not names:
        raise DatasetNotFoundError.at(path, "no logs of inspect_ai", code="not-found")
    return str(folder / choose_part(path, names, log, "log"))


class _Contents(NamedTuple):
    is_finished: bool = False
    asked: tuple[str, str] = "", ""
    """Task and model."""
    samples: frozenset[str] = frozenset()
    """Names of the samples, epochs told apart."""

    def covers(self, shard: _Contents) -> bool:
        return self.is_finished and self.asked == shard.asked and self.samples >= shard.samples


_UNREAD = _Contents()


def describe_shards(path: Path, *, of_folder: bool) -> Iterator[str]:
    """Yield what must be known of a log that has shards, or is one. `of_folder`: whether a folder of logs is read."""
    beside = path.with_name(f"{path.stem.removesuffix('-recovered')}{_SHARDS}")
    shards = sorted(beside.glob("*/*.eval")) if of_folder and path.suffix == ".eval" else []
    whole = _read(path) if shards else _UNREAD
    if covered := sum(whole.covers(_read(one)) for one in shards):
        yield f"{count(covered, 'shard')} in {beside.name} not read: this log has the same samples, merged"
    for merged in _find_merged(path) if _is_shard(path) else ():
        if both := len(_read(merged).samples & _read(path).samples):
            yield f"a shard of {merged.name}, which has {both} of its samples too: scored together, they count twice"


def _is_shard(path: Path) -> bool:
    """Whether a log stands in `NAME.shards/K/`."""
    name = path.parent.parent.name
    return path.suffix == ".eval" and name.endswith(_SHARDS) and name != _SHARDS


def _find_merged(shard: Path) -> Iterator[Path]:
    """Yield where the log may stand that a shard was merged into; one that was recovered has a name of its own."""
    beside = shard.parent.parent
    for suffix in (".eval", "-recovered.eval"):
        yield beside.with_name(beside.name.removesuffix(_SHARDS) + suffix)


def _read(path: Path) -> _Contents:
    """Return what a `.eval` holds; nothing where that cannot be told: it is read, and its error says why."""
    from helm_ext.formats.inspect_logs.files import EvalLog

    try:
        with EvalLog(path) as log:
            header = log.header
            return _Contents(header.is_finished, (header.task, header.model), frozenset(log.list_samples()))
    except DatasetError:
        return _UNREAD
