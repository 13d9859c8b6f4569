"""What a run entry, or a mapping file, says of a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from helm_ext.formats.imported.gold import Kind

__all__ = ["Options"]


@dataclass(frozen=True, kw_only=True)
class Options:
    """How a table is read; None where that is to be inferred."""

    path: str
    question: str | None = None
    context: str | None = None
    options: Sequence[str] | None = None
    gold: str | None = None
    output: Sequence[str] | None = None
    scores: Sequence[str] = ()
    """Columns of scores that the outputs were given."""
    judgements: Sequence[str] = ()
    """Columns of what was judged of the outputs."""
    id: str | None = None
    split: str | None = None
    splits: Sequence[str] | None = None
    """Of a dataset with several: those that are read."""
    by: Sequence[str] = ()
    sep: str | None = None
    header: Literal["yes", "no"] = "yes"
    gold_kind: Kind | None = None
    index_base: int | None = None
    empty: Literal["answer", "not_run"] | None = None
    name: str | None = None
    display_name: str | None = None
    description: str | None = None
    adapter_spec: dict[str, Any] = field(default_factory=dict)
    scoring: dict[str, Any] = field(default_factory=dict)
    mapping_file: str | None = None
    """The file that some of it was said in."""
