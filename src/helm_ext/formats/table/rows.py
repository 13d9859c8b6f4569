"""From cells to rows."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from helm_ext.formats.imported.gold import to_options
from helm_ext.formats.imported.row import Row
from helm_ext.formats.table.cells import CellError, look_up, to_json_value
from helm_ext.formats.table.profile import Profile
from helm_ext.formats.table.table import Cells
from helm_ext.formats.table.values import Values


def read_rows(values: Values, profile: Profile) -> Iterator[Row]:
    """Yield the rows. Raises DatasetError, though all that can be wrong was looked for before."""
    reader = _RowReader(values)
    for line, cells, split in values.cells():
        try:
            yield reader.read(line, cells, split, profile)
        except (CellError, ValueError) as error:
            values.refuse(str(error), getattr(error, "hint", ""), "cell", line)


class _RowReader:
    def __init__(self, values: Values) -> None:
        self._values = values
        layout = values.roles.layout
        right_first = values.roles.gold_is_option or (layout is not None and layout.shuffles)
        self._shuffles = values.is_live and right_first

    def read(self, line: int, cells: Cells, split: str, profile: Profile) -> Row:
        """Return one row. Raises CellError, ValueError."""
        roles = self._values.roles
        choices = self._values.choices(cells)
        gold = look_up(cells, roles.gold)
        right = profile.gold.read(profile.gold_spells(gold) if profile.gold_spells else gold, choices)
        if profile.gold.options is not None and choices is None:
            choices = profile.gold.options
        likelihoods = (look_up(cells, roles.likelihoods) or ()) if roles.likelihoods else ()
        is_asked = not self._values.is_live and not likelihoods
        given = look_up(cells, roles.id) if roles.id else None
        if self._values.is_live and choices is not None:
            choices, right = _relabel(choices, right)
        if self._shuffles and choices is not None:
            choices, right = _shuffle(choices, right, str(look_up(cells, roles.question)))
        thought = look_up(cells, roles.thought) if roles.thought else ""
        return Row(
            line=line,
            id=given if isinstance(given, str | int) and not isinstance(given, bool) else None,
            question=self._values.question(cells),
            options=choices,
            gold=right,
            split=self._values.split_of(cells, split, uses_column=profile.uses_split),
            answers=self._values.answers(cells, profile.gold, are_positions=profile.outputs_are_positions)
            if is_asked
            else None,
            likelihoods=likelihoods,
            unscored="" if right or not profile.is_measured else "the row has no gold",
            source_scores=self._values.scores(cells) if roles.source_scores or roles.scores else {},
            judgements=self._values.judgements(cells) if roles.judgements else (),
            data=self._kept(cells),
            chain_of_thought=thought,
        )

    def _kept(self, cells: Cells) -> dict[str, Any]:
        """Return the values that reports group by; of class labels, the names."""
        kept: dict[str, Any] = {}
        for column in self._values.options.by:
            value = look_up(cells, column)
            names = self._values.table.class_labels.get(column)
            if names is not None and isinstance(value, int) and 0 <= value < len(names):
                kept[column] = names[value]
            elif value is not None:
                # pandas writes 2020.0 where another cell of the column is empty
                is_whole = isinstance(value, float) and value.is_integer()
                kept[column] = int(value) if is_whole else to_json_value(value)
        return kept


def _relabel(options: Mapping[str, str], right: Sequence[str]) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the options under A, B, ..., for a prompt whose rows must have one sequence of labels (ARC has two)."""
    named = dict(zip(options, to_options(list(options.values())), strict=True))
    return {named[label]: text for label, text in options.items()}, tuple(named[label] for label in right)


def _shuffle(options: Mapping[str, str], right: Sequence[str], question: str) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the options in an order that the texts of question and options alone decide, and what is right."""
    texts = sorted(options.values(), key=lambda text: hashlib.sha256(f"{question}\0{text}".encode()).digest())
    shuffled = to_options(texts)
    accepted = {options[label] for label in right}
    return shuffled, tuple(label for label, text in shuffled.items() if text in accepted)
