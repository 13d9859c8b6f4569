"""What is known of a table that is recognised: a `Layout`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from helm_ext.formats.imported.gold import Kind
from helm_ext.formats.table.table import Cells

__all__ = [
    "GOLD", "LIKELIHOODS", "OPTIONS", "OUTPUT", "QUESTION", "SCORES", "THOUGHT", "Layout", "Named", "has",
]  # fmt: skip

GOLD, OPTIONS, THOUGHT, LIKELIHOODS, SCORES, QUESTION, OUTPUT = (
    "\0gold", "\0options", "\0thought", "\0likelihoods", "\0scores", "\0question", "\0output",
)  # fmt: skip
"""Keys of what a layout adapts: no column is called so."""


@dataclass(frozen=True, kw_only=True)
class Layout:
    """How a known table is laid out."""

    name: str
    why: str
    """By what it was recognised, in words."""
    roles: Mapping[str, str]
    """Role to column, or to a key of `adapt`."""
    adapt: Callable[[Cells], Mapping[str, Any]] | None = None
    """From the cells of a row to what a role needs beside them. Raises CellError."""
    shown: Mapping[str, str] = field(default_factory=dict)
    """Role to what of the cells it is, in words, where that is no column."""
    gold_kind: Kind | None = None
    index_base: int | None = None
    notes: Sequence[str] = ()
    """What a reader of the score must know."""
    live_notes: Sequence[str] = ()
    """The same, of live runs alone."""
    scoring: Mapping[str, Any] = field(default_factory=dict)
    live: Mapping[str, Any] = field(default_factory=dict)
    """Keys of `adapter_spec` for a live run."""
    shuffles: bool = False
    """Whether a live run must not show the options in the file's order, because the right one always comes first."""
    hidden_hint: str = ""
    """Why golds may be missing."""
    allows_hidden: bool = False
    """Whether rows without a gold are counted as not scored, instead of refused."""
    tool: str = ""
    """The tool that wrote the table."""
    model: Callable[[Cells], str] | None = None
    """Whose output a row holds. All rows of a table must agree: they are one run."""
    main: str = ""
    """The score of the tool that its own reports are headed by."""
    several_models: str = ""
    """What to do with a table of several."""


Named = Mapping[str, str]
"""Column in lower case to column."""


def has(named: Named, *columns: str) -> bool:
    """Whether a table has all of these columns, which are given in lower case."""
    return all(column in named for column in columns)
