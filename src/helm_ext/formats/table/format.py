"""The format's object: `table:` entries, for tables of questions and answers in CSV, JSON, Parquet or Arrow."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from helm_ext.errors import DatasetError
from helm_ext.formats.format import FLAG, PATH, SEVERAL, TEXT, Argument, Claim, Seen, one_of, read_path
from helm_ext.formats.imported.format import GOLD_KIND, INDEX_BASE, SHARED_ARGUMENTS, ImportedFormat, own_arguments
from helm_ext.formats.request_states.format import FORMAT as REQUEST_STATES

if TYPE_CHECKING:
    from helm_ext.formats.imported.row import Opened


def _path(name: str, value: Any) -> str:
    return str(value) if str(value).startswith("hub:") else read_path(name, value)


_READ = tuple(replace(argument, names_data=True) for argument in (
    Argument("path", replace(PATH, parse=_path), "the table, a folder of `save_to_disk`, a mapping file "
             "`NAME.table.json`, or `hub:OWNER/NAME@REVISION`"),
    Argument("question", TEXT, "the column of questions; like every column, also a path with dots into it: "
             "`doc.query`", "the only one called so"),
    Argument("options", SEVERAL, "the column of options, or a column for each: `A+B+C+D`", "found by name"),
    Argument("gold", TEXT, "the column of right answers", "the only one called so"),
    Argument("output", SEVERAL, "the column of a model's outputs; several, `gpt+llama`: `helm-ext score` makes one "
             "run of each", "the only one called so; without one, a model is asked"),
    Argument("scores", SEVERAL, "columns of scores that the output was given: numbers, true/false, yes/no, or C, "
             "P, I, N; `NAME=COLUMN` calls one otherwise; `main_metric=` may name one", "none"),
    Argument("judgements", SEVERAL, "columns of what was judged of the output: lists of judgements as in format "
             "1, or one judge's verdict, 1 or 0, true/false, yes/no, C or I, empty where there is none", "none"),
    Argument("id", TEXT, "the column of the rows' names", "found by name"),
    Argument("context", TEXT, "the column whose text stands before the question", "found by name"),
    Argument("split", TEXT, "the column that says `train`, `validation` or `test`", "found by name"),
    Argument("splits", SEVERAL, "the splits that are read", "all"),
    Argument("gold_kind", GOLD_KIND, "what a gold is", "decided over the whole column"),
    Argument("index_base", INDEX_BASE, "the position of the first option", "decided over the whole column"),
    Argument("multi_label", FLAG, "several right options of a row: `true`, all of them together are the answer; "
             "`false`, any of them counts", "any of them counts; refused where outputs name several"),
    Argument("empty", one_of("answer", "not_run"), "what an empty output is in CSV", "refused"),
    Argument("sep", TEXT, "`comma`, `semicolon`, `tab`, `pipe`, or the character", "what the header has most of"),
    Argument("header", one_of("yes", "no"), "`no`: the first line is a row, columns are called `1`, `2`, `3`",
             "`yes`"),
))  # fmt: skip
"""Arguments that say how a table is read."""

_DRAWING = tuple(
    replace(argument, default=default)
    for name, default in (("max_train_instances", "5 where there is a train split, else 0"), ("seed", "0"))
    for argument in REQUEST_STATES.arguments
    if argument.name == name
)
"""Arguments of live runs: demonstrations are drawn from the rows where there is no train split."""

_KNOWN_ELSEWHERE = {
    "adapter_spec", "request_states", "target_scores", "transform", "transforms", "raw_outputs", "custom_id",
    "evaluation_id", "schema_version", "filtered_resps", "resps", "eval", "instance", "request",
}  # fmt: skip
"""Keys of other formats, of which no table is."""

_RECORD_KEYS = {"id", "messages", "expected"}
"""Those of a record of the Innodata hub, whose files stand in a bundle."""

_INNER = {
    "data": re.compile(rb'"data"\s*:\s*\['),
    "testcases": re.compile(rb'"testCases"\s*:\s*\['),
    "": re.compile(rb'\A[\s\xef\xbb\xbf]*\{\s*"\d+"\s*:\s*'),
}
"""Key of an object, in lower case, to what stands before the first of the rows that it holds; "": rows by numbers."""


class _Table(ImportedFormat):
    name = "table"
    title = "Table of questions and answers"
    dataset_title = "table"
    expects = "CSV, JSON Lines, a list of objects, Parquet or a saved dataset, with columns of questions and answers"
    usage = "table:path=FILE,model=... or table:path=FILE,question=COLUMN,gold=COLUMN,output=COLUMN,model=..."
    scenario_class = "helm_ext.formats.table.scenario.TableScenario"
    arguments = (*_READ, *_DRAWING, *SHARED_ARGUMENTS)

    def claims(self, seen: Seen) -> Claim:
        """A saved dataset, Parquet, CSV by its ending; JSON by the keys of its rows."""
        from helm_ext.formats.imported.tables import plain_suffix
        from helm_ext.formats.table.arrow import is_saved_dataset

        path = str(seen.path)
        if path.startswith("hub:"):
            return Claim.SURE
        if seen.is_folder:
            return Claim.SURE if is_saved_dataset(seen.path) else Claim.NO
        suffix = plain_suffix(path)
        if seen.start.startswith(b"PAR1") or (suffix == ".parquet" and seen.exists):
            return Claim.SURE
        if not seen.exists or seen.is_zip:
            return Claim.NO
        if seen.is_like_json():
            return self._claims_json(seen)
        return Claim.SURE if suffix in (".csv", ".tsv", ".tab") else Claim.NO

    def _claims_json(self, seen: Seen) -> Claim:
        from helm_ext.formats.table.layouts import is_of_tool
        from helm_ext.formats.table.roles import CANDIDATES

        keys = {key.casefold() for key in seen.keys}
        if seen.path.name.casefold().endswith(".table.json") and "path" in keys:
            return Claim.SURE
        if keys >= {"evalid", "results"}:
            return Claim.SURE  # promptfoo; its rows may stand further on than what is looked at
        holder = next((key for key in _INNER if key in keys), "")
        inner = _INNER[holder].search(seen.start)
        is_held = inner is not None
        if inner is not None:
            keys = {key.casefold() for key in Seen(seen.path, seen.start[inner.end() :]).keys}
        if is_of_tool(keys):
            return Claim.SURE
        if keys & _KNOWN_ELSEWHERE:
            return Claim.NO
        text = seen.start.removeprefix(b"\xef\xbb\xbf").lstrip()
        is_list = text.startswith(b"[") and text[1:].lstrip().startswith(b"{")
        # One object with a question and a gold: columns (pandas' `to_json`) or a single row, refused as such.
        is_object = not (keys.isdisjoint(CANDIDATES["question"]) or keys.isdisjoint(CANDIDATES["gold"]))
        is_table = is_list or seen.is_lines() or (is_held and holder == "data") or is_object
        return Claim.LIKELY if keys and is_table and not keys >= _RECORD_KEYS else Claim.NO

    def resolve(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments; a dataset of the Hub is named with its commit."""
        from helm_ext.formats.table.arrow import HUB, pin_revision

        path = str(arguments["path"])
        return {**arguments, "path": pin_revision(path)} if path.startswith(HUB) else dict(arguments)

    def datasets_among(self, files: Sequence[Path]) -> Sequence[Path]:
        """A table is read as the mapping file beside it says."""
        from helm_ext.formats.table.roles import SUFFIX, read_mapping

        mapped = set()
        for each in files:
            if each.name.casefold().endswith(SUFFIX):
                with suppress(DatasetError):  # one that cannot be read is reported when it is used
                    mapped.add(Path(read_mapping(str(each))[0].path).resolve())
        return [each for each in files if each.resolve() not in mapped]

    def tasks(self, arguments: Mapping[str, Any]) -> list[dict[str, str]]:
        """Return one task for each column of outputs, where several are named.

        Raises RunEntryError where scores are named too: they are those of one model's outputs. Raises DatasetError
        where the table does not have all of them: no run shall be made before the second name proves wrong.
        """
        from helm_ext.formats.table.loading import Loaded, list_outputs

        outputs = list_outputs(arguments)
        if len(outputs) < 2:
            return [{}]
        Loaded({**own_arguments(arguments), "output": outputs[:1]}).require_outputs(outputs)
        return [{"output": output.replace("+", "%2B")} for output in outputs]

    def read_model(self, **arguments: Any) -> str:
        """Return the name of the column of outputs, where it is more than "output"."""
        from helm_ext.formats.table.loading import Loaded, list_outputs

        outputs = list_outputs(arguments)
        return "" if len(outputs) > 1 else Loaded({**arguments, "output": outputs or None}).name_model()

    def open(self, **arguments: Any) -> Opened:
        """Open a table. Raises DatasetError, RunEntryError."""
        from helm_ext.formats.table.loading import Loaded

        output = arguments.get("output")
        if isinstance(output, str):  # one of `tasks`
            arguments["output"] = SEVERAL.parse("output", output)
        return Loaded(arguments).open()

    def describe(self, arguments: Mapping[str, Any]) -> list[str]:
        """Return which column was taken for what, and why."""
        from helm_ext.formats.table.loading import Loaded, list_outputs

        outputs = list_outputs(arguments)
        return Loaded({**own_arguments(arguments), "output": outputs[:1] or None}).describe(outputs)

    def json_schema(self) -> dict[str, Any]:
        """Return the JSON Schema of a mapping file."""
        from helm_ext.formats.table.roles import json_schema

        return json_schema(self.arguments)

    def _open(self, arguments: Mapping[str, Any]) -> tuple[Opened, dict[str, Any]]:
        """Add the `by` of a mapping file to the arguments of the pipeline."""
        from helm_ext.formats.table.roles import list_said

        if by := list_said(arguments, "by"):
            arguments = {**arguments, "by": by}
        return super()._open(arguments)


FORMAT = _Table()
