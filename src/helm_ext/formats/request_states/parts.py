"""The reading of a file: a fold over parts of it, rows that follow one another, read and checked by any process.

    states ──Reading──▶ Parts, some rows each ──merge, in the order of the file──▶ one Part: what is known of all rows

What is known of a part depends on its rows and the header alone. So it does not matter where a file is cut, nor who
reads: this process reads all parts, or several processes a range of the file each (`read_ranges`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from helm_ext.errors import DatasetError, Problems
from helm_ext.evalset import garbage
from helm_ext.files import canonical_json
from helm_ext.files.cutting import LineRange
from helm_ext.files.opening import open_raw
from helm_ext.formats.request_states.checks import Checks
from helm_ext.formats.request_states.header import Header
from helm_ext.formats.request_states.ids import Ids
from helm_ext.formats.request_states.questions import digest_question
from helm_ext.formats.request_states.ranges import RangeReader, split_range
from helm_ext.formats.request_states.reading import Reader
from helm_ext.formats.request_states.recorded import combine
from helm_ext.formats.request_states.rows import Row, RowReader
from helm_ext.formats.request_states.stored import pack
from helm_ext.formats.request_states.survey import Survey

if TYPE_CHECKING:
    from helm_ext.engines.engine import Engine
    from helm_ext.files.store import Segment, SpillWriter
    from helm_ext.formats.request_states.columns import Columns

__all__ = ["Part", "RangeWork", "Reading", "read_ranges"]

PART_ROWS = 10_000
"""Rows that become a part where one process reads all: ids are kept as texts until they are merged."""


@dataclass(kw_only=True)
class Part:
    """What is known of some rows that follow one another. Its size does not depend on theirs."""

    survey: Survey
    checks: Checks
    ids: Ids
    columns: Columns | None
    """None where a file is only checked."""
    questions: int = 0
    """Sum of the rows' digests: their order does not count."""

    @classmethod
    def begin(cls, header: Header, seed: int, *, is_checked: bool) -> Part:
        """Return what is known of no rows. `is_checked`: nothing is done with the file but that."""
        columns = None
        if not is_checked:
            from helm_ext.formats.request_states.columns import Columns

            columns = Columns(header.settings, seed)
        checks = Checks(header, reads_completions=is_checked)
        return cls(survey=Survey(header.settings), checks=checks, ids=Ids(), columns=columns)

    def see(self, row: Row) -> None:
        """Note a row that is right."""
        self.survey.see(row)
        self.ids.see(row)
        if self.columns is not None:
            self.columns.see(row)
            self.questions += digest_question(row)

    def see_recorded(self, row: Row, method: str, num_train_trials: int) -> None:
        """Count what is recorded for a row, when all its states are known."""
        if not row.is_helm and not method.startswith("multiple_choice_separate"):
            self.survey.see_status(row, row.found[0][0])
            return
        found = combine(row.found, method, row.options, num_train_trials, of_whole=row.compares_wholes)
        self.survey.see_status(row, found["status"])
        if "requests" in found:
            self.survey.has_incomplete = True
            self.checks.see_incomplete(row, found["requests"])

    def merge(self, other: Part, rows: int = 0) -> None:
        """Add what is known of the rows that follow. `rows`: where their positions begin to count."""
        self.survey.merge(other.survey)
        self.checks.merge(other.checks)
        self.ids.merge(other.ids, rows)
        if self.columns is not None and other.columns is not None:
            self.columns.merge(other.columns)
        self.questions += other.questions


@dataclass(kw_only=True)
class Reading:
    """Reads the states of a reader as parts."""

    reader: Reader
    header: Header
    seed: int
    keep: Callable[[Row], object] | None
    """What takes the rows; None where the file is only checked."""
    keep_all: Callable[[], object] | None = None
    """Lets what takes the rows hold them all in memory: HELM's states of one row may stand anywhere. None: it cannot,
    and reading ends at such a row."""
    wants_all: bool = False
    """Whether it has ended so."""
    _groups: dict[bytes, Row] = field(default_factory=dict)

    def parts(self, most: float = PART_ROWS) -> Iterator[Part]:
        """Yield parts of at most so many rows. Written for speed: this goes through all rows."""
        settings, problems = self.header.settings, self.reader.problems
        method, keep = settings.method or "", self.keep
        begin = partial(Part.begin, self.header, self.seed, is_checked=keep is None)
        rows = RowReader(settings.context, problems)
        part = begin()
        try:
            for state in self.reader.states():
                row = rows.read(state)
                if row is None:
                    continue
                is_new = row.is_right and not (row.is_helm and self._is_known(row))
                part.checks.see(row, state, is_new=is_new)
                if not is_new:
                    continue
                if keep is not None:
                    if row.is_helm:
                        if self.keep_all is None:
                            self.wants_all = True
                            return
                        self.keep_all()
                    keep(row)
                part.see(row)
                if not row.is_helm:
                    part.see_recorded(row, method, 1)
                if part.survey.rows >= most:
                    yield part
                    part = begin()
        except DatasetError as error:  # what ends reading half-way: limits, truncated compression
            problems.extend(error.problems)
        for row in self._groups.values():
            part.see_recorded(row, method, settings.num_train_trials)
        yield part

    def _is_known(self, row: Row) -> bool:
        """Whether there was a state of HELM's for the same instance; the first of them is given all recordings."""
        first = self._groups.setdefault(canonical_json(row.instance), row)
        if first is not row:
            first.found.extend(row.found)
        return first is not row


class RangeResult(NamedTuple):
    """What is known of a range of a file."""

    part: Part
    problems: Problems
    """Found in its rows."""
    rows: int
    """`Reader.rows`."""
    segments: list[Segment]
    """Where its rows are stored."""
    wants_all: bool
    """`Reading.wants_all`."""


@dataclass(frozen=True, kw_only=True)
class RangeWork:
    """How ranges of a file are read: what every process must know. Can be pickled."""

    path: str
    header: Header
    seed: int
    folder: str
    """Where rows are stored."""

    def begin(self) -> Callable[[LineRange], RangeResult]:
        """Return what reads ranges, in this process."""
        from helm_ext.files.store import SpillWriter

        return partial(self.read, SpillWriter(self.folder))

    def read(self, writer: SpillWriter, lines: LineRange) -> RangeResult:
        """Read a range. Raises DatasetNotFoundError, HelmExtError."""
        problems = Problems(self.path)
        with garbage.paused(), open_raw(self.path) as file:
            reader = RangeReader(self.path, problems, file, lines)
            reading = Reading(reader=reader, header=self.header, seed=self.seed, keep=lambda row: writer.add(pack(row)))
            parts = list(reading.parts(math.inf))
        part = parts[0] if parts else Part.begin(self.header, self.seed, is_checked=False)
        return RangeResult(part, problems, reader.rows, [writer.end()], reading.wants_all)


def read_ranges(work: RangeWork, ranges: Iterable[LineRange], engine: Engine, problems: Problems) -> RangeResult | None:
    """Return what is known of all ranges, read by the processes of `engine`; what they find goes to the problems.

    None: the file must be read in one piece, and nothing was added to the problems. So must those with an error in a
    row, of which what is said is then said by one reading, and those with HELM's own states. May raise DatasetError,
    BatchLostError.
    """
    whole, rows = Part.begin(work.header, work.seed, is_checked=False), 0
    segments: list[Segment] = []
    of_ranges: list[Problems] = []
    for found in engine.map(work.begin, ranges, split=partial(split_range, work.path)):
        if found.problems.errors or found.wants_all:
            return None
        of_ranges.append(found.problems)
        whole.merge(found.part, rows)
        rows += found.rows
        segments += found.segments
    if not rows:
        return None
    for following in of_ranges:
        problems.merge(following)
    return RangeResult(whole, problems, rows, segments, wants_all=False)
