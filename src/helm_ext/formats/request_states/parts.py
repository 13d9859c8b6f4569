"""The reading of a file: a fold over its rows, by this process, or by several that are given some lines each.

    states ──Part.read──▶ Part: what is known of these rows ──merge, in the order of the file──▶ what is known of all

What is known of a part depends on its rows and the header alone. So it does not matter where a file is cut, nor who
reads; the rows of each are in a store of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from helm_ext.errors import DatasetError, Problems
from helm_ext.evalset import garbage
from helm_ext.files import canonical_json
from helm_ext.formats.request_states.columns import Columns
from helm_ext.formats.request_states.header import Header
from helm_ext.formats.request_states.profile import Profile, Tally
from helm_ext.formats.request_states.reading import LineReader, Reader
from helm_ext.formats.request_states.recorded import combine
from helm_ext.formats.request_states.rows import Row, RowReader
from helm_ext.formats.request_states.rules import Checks

if TYPE_CHECKING:
    from helm_ext.files.store import Segment, SpillWriter


class OneProcessError(Exception):
    """One process must read a file: where something is wrong with it, so that one reading says it all."""


class OnePieceError(Exception):
    """The rows of a file must be together, in one process and in memory."""


class Part(Tally):
    """What is known of some rows that follow one another. Its size does not depend on theirs."""

    def __init__(self, header: Header, seed: int, *, is_checked: bool) -> None:
        """Know of no rows. `is_checked`: nothing is done with the file but that."""
        self.profile = Profile(header.settings)
        self.checks = Checks(header, reads_completions=is_checked)
        self.columns = Columns(header.settings, seed, is_checked=is_checked)

    def read(self, reader: Reader, header: Header, keep: Callable[[Row], object] | None, *, may_group: bool) -> None:
        """Read the states of a reader. Written for speed: this goes through all rows.

        `keep`: what takes the rows. `may_group`: whether rows are in memory, all of them: HELM's states of one row may
        stand anywhere. Raises OnePieceError where they must be, and are not.
        """
        settings, problems = header.settings, reader.problems
        method = settings.method or ""
        rows = RowReader(settings, problems)
        groups: dict[bytes, Row] = {}
        try:
            for state in reader.states():
                row = rows.read(state)
                if row is None:
                    continue
                is_new = row.is_right
                if is_new and row.is_helm:
                    if not may_group:
                        raise OnePieceError
                    first = groups.setdefault(canonical_json(row.instance), row)
                    is_new = first is row
                    if not is_new:
                        first.found.extend(row.found)
                self.profile.see_state(row)
                if not is_new:
                    continue
                self.checks.see(row, state)
                if keep is not None:
                    keep(row)
                self.profile.see(row)
                self.columns.see(row)
                if not row.is_helm:
                    self._see_recorded(row, method, 1)
        except DatasetError as error:  # what ends reading half-way: limits, truncated compression
            problems.extend(error.problems)
        for row in groups.values():
            self._see_recorded(row, method, settings.num_train_trials)

    def _see_recorded(self, row: Row, method: str, num_train_trials: int) -> None:
        """Count what is recorded for a row, when all its states are known."""
        if not row.is_helm and not method.startswith("multiple_choice_separate"):
            self.profile.see_status(row, row.found[0][0])
            return
        found = combine(row.found, method, row.options, num_train_trials, of_whole=row.compares_wholes)
        self.profile.see_status(row, found["status"], found.get("requests"))


class Lines(list[tuple[int, bytes]]):
    """Some lines of a file, with their numbers: what a process reads at a time."""

    @property
    def number(self) -> int:
        """How many they are."""
        return len(self)

    def __str__(self) -> str:
        return f"lines {self[0][0]} to {self[-1][0]}"

    def split(self) -> list[Lines]:
        """Return them in tenths, down to a line each, so that one that ends its reader can be named."""
        size = max(1, len(self) // 10)
        return [Lines(self[start : start + size]) for start in range(0, len(self), size)]


@dataclass(frozen=True, kw_only=True)
class PartWork:
    """How parts of a file are read: what every process must know. Can be pickled."""

    path: str
    header: Header
    seed: int
    folder: str
    """Where rows are stored."""

    def begin(self) -> Callable[[Lines], tuple[Part, Problems, Segment] | None]:
        """Return what reads lines, in this process."""
        from helm_ext.files.store import SpillWriter

        return partial(self.read, SpillWriter(self.folder))

    def read(self, writer: SpillWriter, lines: Lines) -> tuple[Part, Problems, Segment] | None:
        """Return what is known of lines, what was found in them, and where their rows are stored.

        None where there are errors. Raises OnePieceError.
        """
        problems, part = Problems(self.path), Part(self.header, self.seed, is_checked=False)
        with garbage.paused():
            reader = LineReader(self.path, problems, lines)
            part.read(reader, self.header, lambda row: writer.add(row.pack()), may_group=False)
        return None if problems.errors else (part, problems, writer.end())


def cut(lines: Iterable[tuple[int, bytes]], size: int) -> Iterator[Lines]:
    """Yield lines, some at a time: of `size` bytes or more."""
    some, length = Lines(), 0
    for line in lines:
        some.append(line)
        length += len(line[1]) + 1
        if length >= size:
            yield some
            some, length = Lines(), 0
    if some:
        yield some
