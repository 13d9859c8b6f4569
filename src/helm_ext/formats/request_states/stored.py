"""What is stored of rows, and the instances that are made of them when it is known what each becomes."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from helm_ext.errors import Problems
from helm_ext.formats.request_states.reading import Place
from helm_ext.formats.request_states.rows import Row
from helm_ext.judging.judgement import Judgement

if TYPE_CHECKING:
    from helm.benchmark.scenarios.scenario import Instance
    from numpy.typing import NDArray

    from helm_ext.evalset.unread import RowsTask
    from helm_ext.files.store import Records, RowStore
    from helm_ext.formats.request_states.columns import Chosen
    from helm_ext.formats.request_states.instances import Builder

__all__ = ["Maker", "make_instances", "pack", "unpack"]


def pack(row: Row) -> tuple[Any, ...]:
    """Return what is stored of a row: all that is not known of it otherwise when its instance is made."""
    references = row.references
    return (
        row.instance, None if references is row.instance.get("references") else references, row.is_helm, row.labels,
        row.labels_from, row.found, row.has_unknown, row.extra, row.likelihoods, row.attributes, row.cluster,
        row.earlier, row.source_scores, row.source_unscored,
        None if row.judgements is None else [one.to_json() for one in row.judgements],
    )  # fmt: skip


_NOWHERE = Place(Problems(), 0, None, ())
"""What is wrong with a stored row was said when it was read."""


def unpack(record: Sequence[Any]) -> Row:
    """Return the row of a record."""
    (
        instance, references, is_helm, labels, labels_from, found, has_unknown, extra, likelihoods, attributes, cluster,
        earlier, source_scores, source_unscored, judgements,
    ) = record  # fmt: skip
    return Row(
        _NOWHERE, instance, instance.get("references") or [] if references is None else references,
        None, is_helm, False, labels, labels_from, found, has_unknown, 0, extra=extra, likelihoods=likelihoods,
        attributes=attributes, cluster=cluster, earlier=earlier, source_scores=source_scores,
        source_unscored=source_unscored,
        judgements=None if judgements is None else msgspec.convert(judgements, list[Judgement]),
    )  # fmt: skip


@dataclass(kw_only=True)
class Maker:
    """Makes the instances of a file out of its rows. Can be sent to another process."""

    builder: Builder
    splits: Sequence[str]
    renamed: Mapping[int, str]
    moves: bool

    def make(self, rows: Iterable[Row], task: RowsTask) -> Iterator[Instance]:
        """Yield the instances of a task (`_make_task`), of whose ordinals the rows are."""
        from helm_ext.evalset.columns import LIVE, RECORDED
        from helm_ext.files.store import iterate

        names: dict[int, Any] = {LIVE: "live", RECORDED: "recorded"}
        renamed, splits, builder = self.renamed, self.splits, self.builder
        for row, place, ordinal, index, split, only in zip(rows, *map(iterate, task), strict=True):
            given = row.instance.get("id")
            name = renamed.get(ordinal) if renamed else None
            if name is None:
                name = f"id{index}" if given is None or given == "" else str(given)
            row.helm_id = name
            row.split = splits[split]
            row.only = names.get(only)
            if only == LIVE:  # a row that is a demonstration of live runs, and scored in recorded ones
                row = copy.copy(row)  # noqa: PLW2901
                row.helm_id = f"{name}-demo"
            yield builder.build(row, place if self.moves else None)


@dataclass(kw_only=True)
class StoredReader:
    """Makes instances of rows on disk."""

    records: Records[Row]
    maker: Maker

    def read(self, task: RowsTask) -> Iterator[Instance]:
        """Yield the instances of a task."""
        from helm_ext.files.store import iterate

        return self.maker.make(self.records.read(iterate(task[1])), task)


def make_instances(chosen: Chosen, store: RowStore[Row], maker: Maker) -> Sequence[Instance]:
    """Return the instances of a file: made of the rows in memory, or of those on disk when somebody looks at them."""
    import numpy as np

    from helm_ext.evalset.unread import UnreadRows

    make_task = partial(_make_task, chosen)
    if store.kept is None:
        return UnreadRows(StoredReader(records=store.records, maker=maker), make_task, chosen.columns)
    task = make_task(np.arange(len(chosen.ordinals)))
    return list(maker.make(_take(store.kept, task[1].tolist()), task))


def _take(rows: list[Row], ordinals: Sequence[int]) -> Iterator[Row]:
    """Yield rows in memory; those that are not needed any more are taken away."""
    for ordinal, following in zip(ordinals, [*ordinals[1:], -1], strict=True):
        yield rows[ordinal]
        if following != ordinal:
            rows[ordinal] = None  # type: ignore[call-overload]


def _make_task(chosen: Chosen, places: NDArray[Any]) -> RowsTask:
    """Return what must be known to make instances: their places among those of the file, and of each the ordinal of
    its row, the row's `Place.index`, the split, and in which runs it takes part.
    """
    from helm_ext.evalset.unread import RowsTask

    columns = chosen.ordinals, chosen.indexes, chosen.columns.split, chosen.columns.only
    return RowsTask((places, *(column[places] for column in columns)))
