"""Format `lm_eval:`: its arguments, and which files are its own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from helm_ext.formats.format import PATH, TEXT, Argument, Claim, Seen, one_of
from helm_ext.formats.imported.format import GOLD_KIND, INDEX_BASE, SHARED_ARGUMENTS, ImportedFormat

if TYPE_CHECKING:
    from helm_ext.formats.imported.row import Opened

_SIGNATURE = frozenset({"doc_id", "doc", "target", "arguments", "resps", "filtered_resps"})
_KEYS_OF_RESULTS = frozenset({"results", "configs", "versions"})


class _LmEval(ImportedFormat):
    name = "lm_eval"
    title = "lm-evaluation-harness log"
    dataset_title = "lm-evaluation-harness task"
    expects = "samples_*.jsonl of lm-evaluation-harness, its results_*.json, or the folder of both"
    kinds = frozenset({"folder", "json"})
    usage = "lm_eval:path=FILE,model=..."
    scenario_class = "helm_ext.formats.lm_eval.scenario.LmEvalScenario"
    arguments = (
        Argument("path", PATH, "`samples_*.jsonl`, `results_*.json`, or their folder (before 0.4.3: `results.json` and "
                 "the `.jsonl` beside it)", names_data=True),
        Argument("task", TEXT, "which task of a folder", "its only one", names_data=True),
        Argument("time", TEXT, "which run of a folder: the time in its files' names", "its only one", names_data=True),
        Argument("results", TEXT, "the results file; `none` reads the samples alone",
                 "`results_*.json` of the same time beside the samples", names_data=True),
        Argument("prediction", one_of("raw", "filtered"), "what is scored of generated answers: as they came, or what "
                 "a filter made of them", "`raw`; with `filter=`, `filtered`"),
        Argument("filter", TEXT, "the filter whose answers are scored", "the task's only one"),
        Argument("gold", TEXT, "the key of `doc` that says what is right: `doc.answer`", "`target`"),
        Argument("gold_kind", GOLD_KIND, "what golds are", "decided over all rows"),
        Argument("index_base", INDEX_BASE, "the position of the first option, for positions under `gold=`",
                 "decided over all rows"),
        *SHARED_ARGUMENTS,
    )  # fmt: skip

    def claims(self, seen: Seen) -> Claim:
        """Samples have their keys on the first line; a folder has files of their names."""
        if seen.keys >= _SIGNATURE:
            return Claim.SURE
        if not (seen.is_folder or seen.path.name.startswith(("samples_", "results"))):
            return Claim.NO
        from helm_ext.formats.lm_eval.report import RESULTS, SAMPLES, has_samples

        if seen.is_folder:
            return Claim.SURE if has_samples(seen.path) else Claim.NO
        if SAMPLES.fullmatch(seen.path.name) and {"doc_id", "doc"} <= seen.keys and b"\n" not in seen.start:
            return Claim.SURE  # the first line is longer than what is looked at
        return Claim.SURE if RESULTS.fullmatch(seen.path.name) and seen.keys >= _KEYS_OF_RESULTS else Claim.NO

    def tasks(self, arguments: Mapping[str, Any]) -> list[dict[str, str]]:
        """Return what chooses each task of a folder."""
        from helm_ext.formats.lm_eval.report import find_samples

        if "task" in arguments or "path" not in arguments:
            return [{}]
        found = find_samples(Path(str(arguments["path"])))
        names = sorted({one.task for one in found if arguments.get("time") in (None, one.time)})
        return [{"task": name} for name in names] if len(names) > 1 else [{}]

    def read_model(self, **arguments: Any) -> str:
        """Return the model that the results file names."""
        from helm_ext.formats.lm_eval.task import open_report

        return open_report(**arguments)[2].model

    def open(self, **arguments: Any) -> Opened:
        """Open the samples of one task. Raises DatasetError."""
        from helm_ext.formats.lm_eval.task import open_task

        return open_task(**arguments)


FORMAT = _LmEval()
"""The format, as the table in `formats.registry` names it."""
