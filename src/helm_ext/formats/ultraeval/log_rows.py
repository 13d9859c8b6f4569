"""The rows of a finished run's log (`run_log`): checked as they are read, stored, and made when they are scored."""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import numpy as np

from helm_ext.errors import Location, Problem, raise_for
from helm_ext.evalset import row_extra
from helm_ext.evalset.columns import STATUSES, Lacks, Recordings, RowColumns, find_lacks
from helm_ext.evalset.unread import RowsTask, UnreadRows
from helm_ext.files import LineSource, canonical_json
from helm_ext.files.store import Records, RowStore, iterate
from helm_ext.formats.ultraeval.rows import iter_objects, no_rows
from helm_ext.formats.ultraeval.run_log import KEYS, to_recorded_instance
from helm_ext.formats.ultraeval.task_files import Method

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from helm.benchmark.scenarios.scenario import Instance

__all__ = ["LogRows", "find_method", "read_log_rows"]

KEPT_ROWS = 1_000
"""Logs of up to this many rows are kept in memory: an instance takes 50 kB where the options of PPL are long."""


@dataclass(frozen=True)
class LogRows:
    """A log, read once."""

    sha256: str
    """Of the bytes on disk, lower-case hex."""
    question_sha256: str
    """Of the log without its outputs: logs of several models agree in it."""
    lines: Sequence[int]
    """Line number of each row, from 1."""
    instances: Sequence[Instance]
    """Those up to the limit."""
    recorded: int
    """How many of them have outputs."""


def find_method(path: Path) -> Method | None:
    """Return the method of a log: PPL where numbers were recorded, GEN where texts were; None where nothing was."""
    with LineSource(path) as source:
        for _, row in iter_objects(source, path, [], allow_nan=True):
            outputs = row.get("raw_outputs")
            if isinstance(outputs, list) and outputs:
                return "gen" if isinstance(outputs[0], str) else "ppl"
    return None


def read_log_rows(path: Path, method: Method, *, needs_row: bool, limit: int | None) -> LogRows:
    """Read and check a log. Raises DatasetError with every line of another shape; `limit` leaves out none of those."""
    broken: list[Problem] = []
    problems: list[Problem] = []
    asked = sha256()
    lines, statuses, lacks = array("q"), bytearray(), bytearray()
    store: RowStore[Sequence[Any]] = RowStore(tuple, tuple, KEPT_ROWS)
    with LineSource(path) as source:
        for line, row in iter_objects(source, path, broken, allow_nan=True):
            made = to_recorded_instance(len(lines), row, Location(str(path), line), method, needs_row=needs_row)
            lines.append(line)
            if isinstance(made, list):
                problems += made
                continue
            asked.update(canonical_json([row.get(key) for key in sorted(KEYS - {"raw_outputs"})]) + b"\n")
            if limit is None or len(statuses) < limit:
                recorded = row_extra(made)["recorded"]
                statuses.append(STATUSES.index(recorded["status"]))
                lacks.append(_find_lacks(recorded["states"]))
                store.add((line, row))
        digest = source.digest
    if not lines and not broken:
        broken.append(no_rows(path))
    raise_for(broken or problems)
    store.finish()
    make = partial(LogReader, path=path, method=method, needs_row=needs_row)
    instances: Sequence[Instance]
    if store.kept is not None:
        instances = list(make(rows=store).read(RowsTask((np.arange(len(store)),))))
    else:
        recordings = Recordings(status=np.frombuffer(statuses, np.uint8), lacks=np.frombuffer(lacks, np.uint8))
        nothing = np.zeros(len(statuses), np.uint8)
        columns = RowColumns(splits=("test",), split=nothing, only=nothing, recordings=recordings)
        instances = UnreadRows(make(rows=store.records), lambda places: RowsTask((places,)), columns)
    return LogRows(digest, asked.hexdigest(), lines, instances, statuses.count(0))


def _find_lacks(states: Sequence[Any]) -> int:
    """Return what the recording of a row does not hold. The log-probabilities of options are the metric's own."""
    lacks = 0
    for state in states:
        found = find_lacks(state)
        lacks |= found & ~Lacks.LOGPROBS if "reference_index" in state else found
    return lacks


@dataclass(frozen=True, kw_only=True)
class LogReader:
    """Makes instances of rows of a log: of line and row."""

    path: Path
    rows: RowStore[Sequence[Any]] | Records[Sequence[Any]]
    method: Method
    needs_row: bool

    def read(self, task: RowsTask) -> Iterator[Instance]:
        """Yield the instances of a task: places."""
        for place, (line, row) in zip(iterate(task[0]), self.rows.read(iterate(task[0])), strict=True):
            at = Location(str(self.path), line)
            made = to_recorded_instance(place, row, at, self.method, needs_row=self.needs_row)
            assert not isinstance(made, list)  # it was checked
            yield made
