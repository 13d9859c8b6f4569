"""What a run entry, or a mapping file, says of a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from helm_ext.errors import RunEntryError
from helm_ext.formats.arguments import PATH, SEVERAL, TEXT, Argument, Kind, one_of, read_path
from helm_ext.formats.imported.gold import Kind as GoldKind


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
    gold_kind: GoldKind | None = None
    index_base: int | None = None
    empty: Literal["answer", "not_run"] | None = None
    name: str | None = None
    display_name: str | None = None
    description: str | None = None
    adapter_spec: dict[str, Any] = field(default_factory=dict)
    scoring: dict[str, Any] = field(default_factory=dict)


def _path(name: str, value: Any) -> str:
    return str(value) if str(value).startswith("hub:") else read_path(name, value)


def _base(name: str, value: Any) -> int:
    if value not in (0, 1):
        raise RunEntryError(f"{name}={value}: expected 0 or 1")
    return int(value)


READ = (
    Argument("path", replace(PATH, parse=_path), "the table, a folder of `save_to_disk`, a mapping file "
             "`NAME.table.json`, or `hub:OWNER/NAME@REVISION`", names_data=True),
    Argument("question", TEXT, "the column of questions; like every column, also a path with dots into it: "
             "`doc.query`", "the only one called so", names_data=True),
    Argument("options", SEVERAL, "the column of options, or a column for each: `A+B+C+D`", "found by name",
             names_data=True),
    Argument("gold", TEXT, "the column of right answers", "the only one called so", names_data=True),
    Argument("output", SEVERAL, "the column of a model's outputs; several, `gpt+llama`: `helm-ext score` makes one "
             "run of each", "the only one called so; without one, a model is asked", names_data=True),
    Argument("scores", SEVERAL, "columns of scores that the output was given: numbers, true/false, yes/no, or C, "
             "P, I, N; `main_metric=` may name one", "none", names_data=True),
    Argument("judgements", SEVERAL, "columns of what was judged of the output: lists of judgements as in format "
             "1, or one judge's verdict, 1 or 0, true/false, yes/no, C or I, empty where there is none", "none",
             names_data=True),
    Argument("id", TEXT, "the column of the rows' names", "found by name", names_data=True),
    Argument("context", TEXT, "the column whose text stands before the question", "found by name",
             names_data=True),
    Argument("split", TEXT, "the column that says `train`, `validation` or `test`", "found by name",
             names_data=True),
    Argument("splits", SEVERAL, "the splits that are read", "all", names_data=True),
    Argument("gold_kind", one_of("label", "index", "text", "list", "flags"), "what a gold is",
             "decided over the whole column", names_data=True),
    Argument("index_base", Kind("`0` or `1`", _base), "the position of the first option", "decided over the whole "
             "column", names_data=True),
    Argument("empty", one_of("answer", "not_run"), "what an empty output is in CSV", "refused", names_data=True),
    Argument("sep", TEXT, "`comma`, `semicolon`, `tab`, `pipe`, or the character", "what the header has most of",
             names_data=True),
    Argument("header", one_of("yes", "no"), "`no`: the first line is a row, columns are called `1`, `2`, `3`",
             "`yes`", names_data=True),
)  # fmt: skip
"""Arguments that say how a table is read."""
