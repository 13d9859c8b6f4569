"""Rows that are read a second time, when it is known what each becomes: instances, some at a time.

Where a file is JSON Lines on disk, each line is found by its place, in any order and by any process (`LineReader`).
What else there is (compressed files, files of other tools) is gone through from its beginning (`Rereader`).
"""

from __future__ import annotations

import copy
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from helm_ext.errors import Problems
from helm_ext.evalset.columns import LIVE, RECORDED
from helm_ext.files.finding import Identity, changed, iterate
from helm_ext.formats.request_states.reading import Place, Reader, parse_again
from helm_ext.formats.request_states.rows import Row, RowReader

if TYPE_CHECKING:
    from helm.benchmark.scenarios.scenario import Instance
    from numpy.typing import NDArray

    from helm_ext.formats.request_states.columns import Chosen
    from helm_ext.formats.request_states.header import Context
    from helm_ext.formats.request_states.instances import Builder

__all__ = ["LineReader", "Maker", "Rereader", "RowsTask", "Spans", "open_instances"]

_ONLY = {LIVE: "live", RECORDED: "recorded"}


class RowsTask(NamedTuple):
    """Some instances of a file, as numbers. Arrays are of one length; small, to be sent to another process."""

    places: NDArray[Any]
    """Among the instances of the file."""
    ordinals: NDArray[Any]
    """Which row each is made of."""
    split: NDArray[np.uint8]
    only: NDArray[np.uint8]
    spans: NDArray[Any] | None
    """Of each row: where its line begins in the file, how many bytes it has, and whether it has no keys but those of
    the format."""

    @property
    def number(self) -> int:
        """How many they are."""
        return len(self.places)

    def pick(self, some: slice) -> RowsTask:
        """Return some of the rows as a task."""
        return RowsTask(*(None if column is None else column[some] for column in self))  # type: ignore[arg-type]


@dataclass(kw_only=True)
class Maker:
    """Makes the instances of a file out of its rows. Can be sent to another process."""

    builder: Builder
    splits: Sequence[str]
    renamed: Mapping[int, str]
    moves: bool

    def make(self, rows: Iterable[Row], task: RowsTask) -> Iterator[Instance]:
        """Yield the instances of a task; `rows` are those of its ordinals."""
        renamed, splits, builder = self.renamed, self.splits, self.builder
        parts = map(iterate, (task.places, task.ordinals, task.split, task.only))
        for row, place, ordinal, split, only in zip(rows, *parts, strict=True):
            given = row.instance.get("id")
            name = renamed.get(ordinal) if renamed else None
            if name is None:
                name = f"id{row.place.index}" if given is None or given == "" else str(given)
            row.helm_id = name
            row.split = splits[split]
            row.only = _ONLY[only] if only else None
            if only == LIVE:  # a row that is a demonstration of live runs, and scored in recorded ones
                row = copy.copy(row)  # noqa: PLW2901
                row.helm_id = f"{name}-demo"
            yield builder.build(row, place if self.moves else None)


class Spans:
    """Where the lines of rows stand in a file, collected while it is read: 13 bytes a row."""

    def __init__(self) -> None:
        self._starts = array("q")
        self._sizes = array("I")
        self._known = bytearray()

    def add(self, start: int, size: int, *, is_known: bool) -> None:
        """Note the line of the next row."""
        self._starts.append(start)
        self._sizes.append(size)
        self._known.append(is_known)

    def merge(self, other: Spans) -> None:
        """Add the rows that follow."""
        self._starts.extend(other._starts)
        self._sizes.extend(other._sizes)
        self._known += other._known

    def pick(self, ordinals: NDArray[Any]) -> NDArray[Any]:
        """Return what `RowsTask.spans` holds of these rows."""
        columns = (self._starts, np.int64), (self._sizes, np.uint32), (self._known, np.uint8)
        return np.column_stack([np.frombuffer(column, kind)[ordinals] for column, kind in columns])


@dataclass(kw_only=True)
class LineReader:
    """Reads rows of a JSON Lines file by their place in it. Can be sent to another process on this machine."""

    path: str
    identity: Identity
    context: Context
    maker: Maker
    finds_rows: ClassVar[bool] = True

    def read(self, task: RowsTask) -> Iterator[Instance]:
        """Yield the instances of a task. Raises DatasetChangedError if the file is another one by now."""
        return self.maker.make(self.read_rows(task), task)

    def read_rows(self, task: RowsTask) -> Iterator[Row]:
        """Yield the rows of a task."""
        assert task.spans is not None
        problems = Problems(self.path)
        rows = RowReader(self.context, problems)
        with self.identity.open(self.path) as file:
            for ordinal, (start, size, is_known) in zip(*map(iterate, (task.ordinals, task.spans)), strict=True):
                file.seek(start)
                place = Place(problems, ordinal, None, ())
                state = parse_again(file.read(size), place, self.path, is_known=bool(is_known))
                yield _require(rows.read(state), self.path)
            self.identity.require(file.fileno(), self.path)


@dataclass(kw_only=True)
class Rereader:
    """Reads rows by going through a file once more."""

    open: Callable[[Problems], Reader]
    path: str
    context: Context
    maker: Maker | None = None
    finds_rows: ClassVar[bool] = False

    def read(self, task: RowsTask) -> Iterator[Instance]:
        """Yield the instances of a task; places are in ascending order."""
        assert self.maker is not None
        return self.maker.make(self.read_rows(iterate(task.ordinals)), task)

    def read_rows(self, ordinals: Iterable[int]) -> Iterator[Row]:
        """Yield the rows of these ordinals, which are in ascending order; one that is named twice comes twice."""
        wanted = iter(ordinals)
        next_one = next(wanted, None)
        if next_one is None:
            return
        problems = Problems(self.path)
        rows = RowReader(self.context, problems)
        for ordinal, state in enumerate(self.open(problems).states()):
            if ordinal == next_one:
                row = _require(rows.read(state), self.path)
                while ordinal == next_one:
                    yield row
                    next_one = next(wanted, None)
                if next_one is None:
                    return
        raise changed(self.path)


def open_instances(
    chosen: Chosen, again: Rereader, kept: list[Row] | None, spans: Spans | None, identity: Identity | None
) -> Sequence[Instance]:
    """Return the instances of a file: made of the rows that were kept, or to be read when somebody looks at them."""
    from helm_ext.evalset.unread import UnreadRows

    maker = again.maker
    assert maker is not None
    if kept is not None:
        task = make_task(chosen, None, np.arange(len(chosen.ordinals)))
        return list(maker.make(_take(kept, task.ordinals.tolist()), task))
    reader: LineReader | Rereader = again
    if spans is not None and identity is not None:
        reader = LineReader(path=again.path, identity=identity, context=again.context, maker=maker)
    return UnreadRows(reader, partial(make_task, chosen, spans), chosen.columns)


def _take(rows: list[Row], ordinals: Sequence[int]) -> Iterator[Row]:
    """Yield rows in memory; those that are not needed any more are taken away."""
    for ordinal, following in zip(ordinals, [*ordinals[1:], -1], strict=True):
        yield rows[ordinal]
        if following != ordinal:
            rows[ordinal] = None  # type: ignore[call-overload]


def make_task(chosen: Chosen, spans: Spans | None, places: NDArray[Any]) -> RowsTask:
    """Return what must be known to read these instances."""
    ordinals = chosen.ordinals[places]
    columns = chosen.columns
    found = None if spans is None else spans.pick(ordinals)
    return RowsTask(places, ordinals, columns.split[places], columns.only[places], found)


def _require(row: Row | None, path: str) -> Row:
    """Return a row that could be read before."""
    if row is None:
        raise changed(path)
    return row
