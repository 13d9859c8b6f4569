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
from helm_ext.evalset.rows import STATUSES, Lacks, StoredRows, find_lacks
from helm_ext.files import LineSource, canonical_json
from helm_ext.files.store import RowStore
from helm_ext.formats.ultraeval.rows import iter_objects, no_rows
from helm_ext.formats.ultraeval.run_log import KEYS, to_recorded_instance
from helm_ext.formats.ultraeval.task_files import Method

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from helm.benchmark.scenarios.scenario import Instance

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
    nothing = np.zeros(len(statuses), np.uint8)
    rows = StoredRows(
        store=store,
        make=partial(_make, path, method, needs_row=needs_row),
        numbers=np.arange(len(store)),
        splits=("test",),
        split=nothing,
        only=nothing,
        status=np.frombuffer(statuses, np.uint8),
        lacks=np.frombuffer(lacks, np.uint8),
    )
    instances = rows if store.kept is None else list(rows)
    return LogRows(digest, asked.hexdigest(), lines, instances, statuses.count(0))


def _find_lacks(states: Sequence[Any]) -> int:
    """Return what the recording of a row does not hold. The log-probabilities of options are the metric's own."""
    lacks = 0
    for state in states:
        found = find_lacks(state)
        lacks |= found & ~Lacks.LOGPROBS if "reference_index" in state else found
    return lacks


def _make(path: Path, method: Method, stored: Sequence[Any], place: int, *, needs_row: bool) -> Instance:
    """Return the instance of a line and its row."""
    line, row = stored
    made = to_recorded_instance(place, row, Location(str(path), line), method, needs_row=needs_row)
    assert not isinstance(made, list)  # it was checked
    return made
