"""Format 2, `ultraeval:` entries: its arguments, its files, and where its code is."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from helm_ext.errors import Problem, RunEntryError
from helm_ext.formats.format import (
    AS_GIVEN,
    FLAG,
    MISSING,
    NUMBER,
    PATH,
    SEVERAL,
    TEXT,
    THINKING,
    WHOLE_NUMBER,
    Argument,
    Claim,
    Format,
    Plan,
    Seen,
    one_of,
)

if TYPE_CHECKING:
    from helm.benchmark.metrics.metric import MetricSpec

    from helm_ext.evalset import EvalSet
    from helm_ext.formats.ultraeval.scoring import TaskFacts

_SCRIPTS = "transform*.py"
"""As upstream names them; any other program may lie beside the files of any format."""
_SCRIPT = re.compile(rb"^(?:def|class) transform\b|^(?:from|import) .*\btransform\b|^transform *=", re.MULTILINE)
"""What makes a program of another name a script."""
_KEYS = {"transform", "transforms", "target_scores", "raw_outputs"}
"""Of a task config (both spellings), of rows, and of a finished run's log."""


class _UltraEval(Format):
    name = "ultraeval"
    title = "UltraEval task set"
    dataset_title = "UltraEval task"
    expects = (
        "a task config, a folder datasets/NAME with transform scripts, a script, rows with `target_scores`, "
        "or the log of a run"
    )
    sources = ("config", "dataset", "data")
    kinds = frozenset({"folder", "json", ".py"})
    usage = (
        "ultraeval:config=FILE,model=... or ultraeval:dataset=NAME,method=gen,model=... "
        "or ultraeval:data=FILE,transform=SCRIPT,model=..."
    )
    scenario_class = "helm_ext.formats.ultraeval.scenario.UltraEvalScenario"
    several_tasks_in = "config"
    arguments = (
        Argument("config", PATH, "upstream's task config. Its paths are relative to the checkout's root, the parent of "
                 "`datasets/`", "one of `config`, `dataset` and `data` is needed", names_data=True),
        Argument("task", TEXT, "which task of the config or folder; `SHORT` or `<dataset>_<task>_<gen|ppl>`",
                 "all of a config's", names_data=True),
        Argument("data", PATH, "a data file, with `transform`; or the log of a finished run", names_data=True),
        Argument("transform", PATH, "a script", "the config's", names_data=True),
        Argument("dataset", TEXT, "a folder `datasets/NAME`, below `root` or the working directory or a folder above "
                 "it; or its path", names_data=True),
        Argument("method", one_of("gen", "ppl"), "answers are written, or the likeliest option wins",
                 "the config's, the script name's, else `gen`"),
        Argument("version", AS_GIVEN, "`0`, `v0`, `cot`: the script `transform_gen_v0.py`, ...",
                 "the config's, else the highest; the log says which", names_data=True),
        Argument("fewshot", WHOLE_NUMBER, "demonstrations in each prompt", "the config's, else 0"),
        Argument("seed", WHOLE_NUMBER, "seed of the demonstrations", "0"),
        Argument("limit", WHOLE_NUMBER, "the first N rows (HELM's `-m` then takes a random part of them)", "all"),
        Argument("demos", PATH, "draw demonstrations from this file instead", "the data itself", names_data=True),
        Argument("postprocess", TEXT, "from a completion to the answer: a name of the checkout's, or one of "
                 "[ours](#gen)", "the config's, else none"),
        THINKING,
        Argument("metric", SEVERAL, "upstream's name, HELM's, or several: `exact_match+rouge_l`; the first is the main "
                 "one", "the config's, else `exact_match` / `log_prob`"),
        Argument("root", PATH, "the UltraEval checkout", "found by walking up from the script or config",
                 names_data=True),
        Argument("dataset_name", TEXT, "what scripts are told as `dataset_name`", "`<dataset>_<task>_<gen|ppl>`"),
        Argument("params", PATH, "a parameter file for tasks whose config names none, as upstream's `--params`; "
                 "looked for from the working directory, then in the checkout", "none", names_data=True),
        Argument("max_tokens", WHOLE_NUMBER, "wins over the config's parameter file", "100"),
        Argument("allow_code", FLAG, "permits metrics that run the model's code", "`false`"),
        MISSING,
        Argument("temperature", NUMBER, "wins over the config's parameter file", "0", in_run_entry=False),
        Argument("name", TEXT, "the task's name in reports", "the full name", names_data=True, in_run_entry=False),
    )  # fmt: skip

    def claims(self, seen: Seen) -> Claim:
        """A script, a folder with scripts or in upstream's layout, a config, rows, or a log."""
        if seen.is_folder:
            if (seen.path / "config").is_dir() or any(seen.path.rglob(_SCRIPTS)):
                return Claim.SURE
            return Claim.MAYBE if (seen.path / "data").is_dir() else Claim.NO  # others have a folder of this name too
        if seen.suffix == ".py":
            return Claim.SURE if seen.path.match(_SCRIPTS) or _SCRIPT.search(seen.start) else Claim.NO
        return Claim.SURE if seen.keys & _KEYS else Claim.NO

    def name_file(self, path: str | Path) -> dict[str, str]:
        """Return the arguments that name a config, a dataset's folder, or a script (which needs `data` beside it)."""
        if Path(path).is_dir():
            return {"dataset": str(path)}
        return {{".py": "transform", ".jsonl": "data"}.get(Path(path).suffix, "config"): str(path)}

    def require_source(self, given: Mapping[str, Any]) -> None:
        """Raise RunEntryError unless exactly one source is given; a script alone names no rows."""
        if "transform" in given and not any(name in given for name in self.sources):
            script = given["transform"]
            hint = f"ultraeval:data=ROWS,transform={script},model=...; in a helm-ext command ROWS --as ultraeval "
            raise RunEntryError(f"{script}: a script, and no rows to run it on\n  hint: {hint}--arg transform={script}")
        super().require_source(given)

    def tasks(self, arguments: Mapping[str, Any]) -> list[dict[str, str]]:
        """Return what chooses each task of a config: of one method where `method=` is given."""
        if "config" not in arguments or "task" in arguments:
            return [{}]
        from helm_ext.formats.ultraeval.loading import tasks

        names = tasks(arguments["config"], method=arguments.get("method"))
        return [{"task": name} for name in names] if len(names) > 1 else [{}]

    def load(self, **arguments: Any) -> EvalSet:
        """Read a task and run its script. Raises RunEntryError, DatasetError."""
        from helm_ext.files import show_reading
        from helm_ext.formats.ultraeval import loading

        self.require_source(arguments)
        with show_reading(self.name_source(arguments)):
            return loading.load(**arguments)

    def check(self, *, execute: bool = True, **arguments: Any) -> tuple[list[Problem], dict[str, int]]:
        """Return every problem of a task and its counts; scripts are run unless `execute` is false."""
        from helm_ext.files import show_reading
        from helm_ext.formats.ultraeval import loading

        self.require_source(arguments)
        with show_reading(self.name_source(arguments)):
            return loading.check(execute=execute, **arguments)

    def plan(self, arguments: Mapping[str, Any], evalset: EvalSet) -> Plan:
        """Name the script's version, and the script's and the data's bytes, in the run's name."""
        facts = _facts(evalset)
        return Plan(
            {**arguments, "name": evalset.name},
            {**arguments, **facts.to_name_arguments()},
            groups=(f"UltraEval {facts.dataset}",),
        )

    def metric_spec(self, evalset: EvalSet) -> MetricSpec:
        """Return the task's own metric."""
        return _facts(evalset).to_metric_spec(evalset.scoring)

    def losses(self, evalset: EvalSet) -> Sequence[str]:
        """Return what scores a task and no other format has."""
        facts = _facts(evalset)
        lost = []
        if facts.postprocess:
            lost.append(f"the postprocess {facts.postprocess}: completions would be scored as they are")
        if facts.method == "ppl":
            lost.append("the perplexity rule of UltraEval (sum of log-probabilities of the whole string)")
        return [
            *lost,
            *(f"the metric {stat}, which UltraEval tasks alone can have" for stat in facts.metrics.definitions),
        ]

    def json_schema(self) -> dict[str, Any]:
        """Return the JSON Schema of upstream's task configs."""
        from helm_ext.formats.ultraeval.config import schema

        return schema()


def _facts(evalset: EvalSet) -> TaskFacts:
    from helm_ext.formats.ultraeval.scoring import TaskFacts

    assert isinstance(evalset.details, TaskFacts)
    return evalset.details


FORMAT = _UltraEval()
