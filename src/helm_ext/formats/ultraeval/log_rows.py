"""The rows of a finished run's log (`run_log`): read once to check them, and those of a large log again when they are
scored, some at a time.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from helm_ext.errors import DatasetChangedError, DatasetError, Location, Problem, raise_for
from helm_ext.evalset import row_extra
from helm_ext.evalset.columns import STATUSES, Lacks, Recordings, RowColumns, find_lacks
from helm_ext.evalset.unread import UnreadRows
from helm_ext.files import LineSource, canonical_json, iter_rows, parse_json
from helm_ext.files.finding import changed, iterate
from helm_ext.formats.ultraeval.rows import iter_objects, no_rows
from helm_ext.formats.ultraeval.run_log import KEYS, to_recorded_instance
from helm_ext.formats.ultraeval.task_files import Method

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from helm.benchmark.scenarios.scenario import Instance
    from numpy.typing import NDArray

__all__ = ["LogRows", "find_method", "read_log_rows"]

KEPT_ROWS = 1_000
"""Logs of up to this many rows are kept in memory: a row takes 50 kB where the options of PPL are long."""


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
    kept: list[Instance] | None = []
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
                if kept is not None:
                    kept.append(made)
                    kept = kept if len(kept) <= KEPT_ROWS else None
        digest = source.digest
    if not lines and not broken:
        broken.append(no_rows(path))
    raise_for(broken or problems)
    instances: Sequence[Instance]
    if kept is not None:
        instances = kept
    else:
        recordings = Recordings(status=np.frombuffer(statuses, np.uint8), lacks=np.frombuffer(lacks, np.uint8))
        nothing = np.zeros(len(statuses), np.uint8)
        columns = RowColumns(splits=("test",), split=nothing, only=nothing, recordings=recordings)
        reader = LogReader(path=path, sha256=digest, method=method, needs_row=needs_row)
        instances = UnreadRows(reader, lambda places: places, columns)
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
    """Reads rows of a log by going through it once more."""

    path: Path
    sha256: str
    method: Method
    needs_row: bool
    finds_rows: ClassVar[bool] = False

    def read(self, places: NDArray[Any]) -> Iterator[Instance]:
        """Yield the rows of these places, in ascending order. Raises DatasetChangedError if the file is another."""
        wanted = iterate(places)
        place = next(wanted, None)
        with LineSource(self.path) as source:
            for index, (line, text) in enumerate(iter_rows(source, str(self.path), [])):
                if index == place:
                    yield self._make(index, line, text)
                    place = next(wanted, None)
                    if place is None:
                        break
            if place is not None or source.digest != self.sha256:
                raise self._changed()

    def _make(self, index: int, line: int, text: bytes | None) -> Instance:
        try:
            row = parse_json(text or b"", str(self.path), line, allow_nan=True)
        except DatasetError as error:
            raise self._changed() from error
        if isinstance(row, dict):
            made = to_recorded_instance(
                index, row, Location(str(self.path), line), self.method, needs_row=self.needs_row
            )
            if not isinstance(made, list):
                return made
        raise self._changed()

    def _changed(self) -> DatasetChangedError:
        return changed(str(self.path))
