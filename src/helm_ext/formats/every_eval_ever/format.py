"""Format `every_eval_ever:`: its arguments, and which files are its own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from helm_ext.formats.format import PATH, TEXT, Argument, Claim, Seen, one_of
from helm_ext.formats.imported.format import INDEX_BASE, SHARED_ARGUMENTS, ImportedFormat

if TYPE_CHECKING:
    from helm_ext.formats.imported.row import Opened


class _EveryEvalEver(ImportedFormat):
    name = "every_eval_ever"
    title = "Every Eval Ever record"
    dataset_title = "Every Eval Ever evaluation"
    expects = "UUID_samples.jsonl of Every Eval Ever, UUID.json beside it, or a folder of such records"
    kinds = frozenset({"folder", "json"})
    usage = "every_eval_ever:path=FILE,model=..."
    scenario_class = "helm_ext.formats.every_eval_ever.scenario.EveryEvalEverScenario"
    arguments = (
        Argument("path", PATH, "`UUID.json`, `UUID_samples.jsonl`, or a folder of records", names_data=True),
        Argument("record", TEXT, "which record of a folder: the UUID", "its only one", names_data=True),
        Argument("evaluation", TEXT, "which evaluation of a record: its `evaluation_name`", "its only one",
                 names_data=True),
        Argument("gold_kind", one_of("label", "index", "text", "list"), "what references are; `list`: several, or "
                 "Python lists of texts", "decided over all rows"),
        Argument("index_base", INDEX_BASE, "the position of the first option, where references are positions",
                 "decided over all rows"),
        *SHARED_ARGUMENTS,
    )  # fmt: skip

    def claims(self, seen: Seen) -> Claim:
        """Both files have their keys at the top; a folder holds samples with their keys."""
        if not (seen.is_folder or "schema_version" in seen.keys):
            return Claim.NO
        from helm_ext.formats.every_eval_ever.record import AGGREGATE_KEYS, INSTANCE_KEYS, has_records

        if seen.is_folder:
            return Claim.SURE if has_records(seen.path) else Claim.NO
        return Claim.SURE if seen.keys >= AGGREGATE_KEYS or seen.keys >= INSTANCE_KEYS else Claim.NO

    def tasks(self, arguments: Mapping[str, Any]) -> list[dict[str, str]]:
        """Return what chooses each evaluation of each record."""
        from helm_ext.formats.every_eval_ever.task import find_tasks

        if "path" not in arguments:
            return [{}]
        return find_tasks(Path(str(arguments["path"])), arguments.get("record"), arguments.get("evaluation"))

    def read_model(self, **arguments: Any) -> str:
        """Return the model that the record names; its samples are not read for it, unless they stand alone."""
        from helm_ext.formats.every_eval_ever.task import read_model

        return read_model(Path(str(arguments["path"])), arguments.get("record"))

    def open(self, **arguments: Any) -> Opened:
        """Open one evaluation of one record. Raises DatasetError."""
        from helm_ext.formats.every_eval_ever.task import open_evaluation

        arguments.pop("by", None)  # rows keep all
        return open_evaluation(Path(arguments.pop("path")), **arguments)


FORMAT = _EveryEvalEver()
"""The format, as the table in `formats.registry` names it."""
