"""What is stored of rows, and the instances that are made of them when it is known what each becomes."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from helm_ext.errors import Problems
from helm_ext.formats.request_states.reading import Place
from helm_ext.formats.request_states.rows import Row
from helm_ext.judging.judgement import Judgement

if TYPE_CHECKING:
    from helm.benchmark.scenarios.scenario import Instance

    from helm_ext.files.store import RowStore
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
    chosen: Chosen

    def make(self, row: Row, place: int) -> Instance:
        """Return the instance of a row, which stands at a place among those of the file."""
        from helm_ext.evalset.rows import LIVE, RECORDED

        chosen = self.chosen
        given = row.instance.get("id")
        name = chosen.renamed.get(int(chosen.ordinals[place])) if chosen.renamed else None
        if name is None:
            name = f"id{chosen.indexes[place]}" if given is None or given == "" else str(given)
        only = chosen.only[place]
        if only == LIVE:  # a row that is a demonstration of live runs, and scored in recorded ones
            row, name = copy.copy(row), f"{name}-demo"
        row.helm_id = name
        row.split = chosen.splits[chosen.split[place]]
        row.only = "live" if only == LIVE else "recorded" if only == RECORDED else None
        return self.builder.build(row, place if chosen.moves else None)


def make_instances(chosen: Chosen, store: RowStore[Row], builder: Builder) -> Sequence[Instance]:
    """Return the instances of a file: made of the rows in memory, or of those on disk when somebody looks at them."""
    from helm_ext.evalset.rows import StoredRows

    make = Maker(builder=builder, chosen=chosen).make
    if store.kept is not None:
        return [make(row, place) for place, row in enumerate(store.release(chosen.ordinals.tolist()))]
    return StoredRows(
        store=store,
        make=make,
        numbers=chosen.ordinals,
        splits=chosen.splits,
        split=chosen.split,
        only=chosen.only,
        status=chosen.status,
        lacks=chosen.lacks,
        has_perturbations=chosen.has_perturbations,
        has_labels=chosen.has_labels,
    )
