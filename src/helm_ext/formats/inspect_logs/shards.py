"""Logs of workers beside the log that they were merged into: `NAME.shards/K/FILE.eval` beside `NAME.eval`.

inspect_ai lists such a shard no longer once its merged log ended well (log/_shard_listing.py, _util/log_layout.py); it
compares the times of files, which copies do not keep. Here a shard is covered where the merged log has its samples.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from helm_ext.errors import DatasetError, count
from helm_ext.formats.inspect_logs.archive import Archive
from helm_ext.formats.inspect_logs.header import FINISHED
from helm_ext.formats.inspect_logs.reading import list_samples, open_log

_SHARDS = ".shards"


class _Contents(NamedTuple):
    status: str
    asked: tuple[str, str]
    """Task and model."""
    samples: frozenset[str]
    """Names of the samples, epochs told apart."""

    def covers(self, shard: _Contents) -> bool:
        return self.status == FINISHED and self.asked == shard.asked and self.samples >= shard.samples


def drop_covered(folder: Path, names: Sequence[str]) -> list[str]:
    """Return the logs of a folder, by their names in it, without shards whose samples a merged log among them has.

    Of a folder that is itself `NAME.shards` all are there.
    """
    there = {*names}
    read: dict[Path, _Contents | None] = {}

    def look_at(path: Path) -> _Contents | None:
        if path not in read:
            read[path] = _read(path)
        return read[path]

    def is_covered(name: str) -> bool:
        return any(
            (whole := look_at(merged)) is not None
            and (shard := look_at(folder / name)) is not None
            and whole.covers(shard)
            for merged in _find_merged(folder / name)
            if merged.relative_to(folder).as_posix() in there
        )

    return [name for name in names if not (_is_shard(Path(name)) and is_covered(name))]


def describe_shards(path: Path, *, of_folder: bool) -> Iterator[str]:
    """Yield what must be known of a log that has shards, or is one. `of_folder`: whether a folder of logs is read."""
    beside = path.with_name(f"{path.stem.removesuffix('-recovered')}{_SHARDS}")
    shards = sorted(beside.glob("*/*.eval")) if of_folder and path.suffix == ".eval" else []
    whole = _read(path) if shards else None
    if whole is not None:
        covered = sum((shard := _read(one)) is not None and whole.covers(shard) for one in shards)
        if covered:
            yield f"{count(covered, 'shard')} in {beside.name} not read: this log has the same samples, merged"
    for merged in _find_merged(path) if _is_shard(path) else ():
        shard, whole = _read(path), _read(merged) if merged.is_file() else None
        both = len(whole.samples & shard.samples) if whole is not None and shard is not None else 0
        if both:
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


def _read(path: Path) -> _Contents | None:
    """Return what a log holds; None where that cannot be told: it is read, and its error says why."""
    try:
        with open_log(path) as log, Archive(path) as archive:
            asked = log.header.task, log.header.model
            return _Contents(log.header.status, asked, frozenset(list_samples(archive)))
    except DatasetError:
        return None
