"""Whether runs are those of shards of one dataset, and the RunSpec of a run of all their rows.

Runs of shards differ in the file, in its digest, and in what follows from these: names, groups,
values of attributes. All else must be equal, for their rows to be rows of one run.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import dacite
from helm.benchmark.metrics.metric import MetricSpec, create_metric
from helm.benchmark.run_spec import RunSpec
from helm.common.object_spec import get_class_by_name

from helm_ext.adaptation.recorded import name_unmeasured
from helm_ext.errors import RunEntryError, show
from helm_ext.evalset import DIGEST_LENGTH
from helm_ext.evalset.rows import Unrecorded
from helm_ext.formats.scenario import EvalSetScenario
from helm_ext.planning import OF_ONE_FILE, RUN_ARGUMENTS
from helm_ext.planning.names import MAX_FILE_NAME, cut, fit_arguments
from helm_ext.running.merging import Shard
from helm_ext.scoring.breakdown import SUB_SPLIT
from helm_ext.scoring.completeness import LOGPROB_STATS
from helm_ext.scoring.folding import FoldingMetric, RunFacts

if TYPE_CHECKING:
    from helm_ext.analysis.runs import RunFiles

JSONObject = dict[str, Any]

_MERGED = "merged"
"""The argument of a metric of `run_spec.json` that says what a merged run was made of: `runs`, `rows`."""
_OF_SHARDS = frozenset({"digest", "questions", "live_rows", "main_split"})
"""Arguments of scenarios that are of each file, those aside that name the data."""
NOT_RUNS = ("eval_cache", "groups")
"""Folders that HELM makes beside its runs; helm-summarize passes over them (presentation/summarize.py)."""
_MEASURED = name_unmeasured(Unrecorded.TOKENS | Unrecorded.TRAIN_INSTANCES | Unrecorded.TRUNCATED)
"""Stats that every row has, unless a run says that nobody measured them."""
_OF_ROWS = re.compile(r"^\.metrics\.\d+\.args\.(attributes\.|judged\..*\.judges$)")
"""Paths of lists of what occurs in the rows."""
_NOTHING = ()
"""The value of a key that a run does not have; no JSON."""
_DIGITS = "0123456789"
_NAME = re.compile(r"[^/\\?#%. ]([^/\\?#%]*[^/\\?#% ])?")


def plan_merge(runs: Sequence[RunFiles], *, name: str | None = None) -> tuple[list[Shard], RunSpec]:
    """Return the runs as shards, and the RunSpec of the run of all rows of these, in this order.

    `name`: of the run; default: what the names of the runs share. Raises RunEntryError where the runs are not those of
    shards (of two models, cut, of one file) or cannot be added up from their rows' stats, and DatasetSyntaxError.
    """
    shards = [_open(run) for run in runs]
    with runs[0].blaming("run_spec.json"):
        return shards, _join_specs(shards, name)


def _join_specs(shards: Sequence[Shard], name: str | None) -> RunSpec:
    runs = [shard.files for shard in shards]
    specs = [run.run_spec for run in runs]
    shared = _find_shared(specs[0])
    seen: dict[str, RunFiles] = {}
    for run in runs:
        with run.blaming("run_spec.json"):
            digest = _arguments(run.run_spec)["digest"]
            shared = _join(shared, _find_shared(run.run_spec), f"{runs[0].folder} and {run.folder}")
        if digest in seen:
            raise RunEntryError(
                f"{seen[digest].folder} and {run.folder} are runs of the same data (digest {digest}): its rows "
                "would count twice\n  hint: name each shard once"
            )
        seen[digest] = run
    names = [spec["name"] for spec in specs]
    arguments = _join_arguments(specs)
    scenario_class = get_class_by_name(shared["scenario"])
    fitted = fit_arguments(scenario_class, arguments)
    made_of = [{"run": run, "rows": shard.rows} for run, shard in zip(names, shards, strict=True)]
    told = {_MERGED: {"runs": made_of, "rows": sum(shard.rows for shard in shards)}}
    full = arguments if fitted != arguments else {}
    merged = {
        **specs[0],
        "name": _require_name(name) if name is not None else _join_names(names),
        "scenario_spec": {**specs[0]["scenario_spec"], "args": fitted},
        "adapter_spec": shared["adapter_spec"],
        "metric_specs": [*shared["metrics"], {"class_name": RUN_ARGUMENTS, "args": {**full, **told}}],
        "groups": [scenario_class(**fitted).name, *specs[0]["groups"][1:]],
    }
    try:  # as HELM's codec does, whose import brings torch and spaCy along
        return dacite.from_dict(RunSpec, merged, dacite.Config(check_types=False))  # 1 for 1.0 is HELM's own
    except dacite.DaciteError as error:
        raise ValueError(f"no run spec of HELM's: {error}") from error


def _open(run: RunFiles) -> Shard:
    """Return a run as a shard. Raises RunEntryError where it cannot be one, whatever the others are."""
    with run.blaming("run_spec.json and stats.json"):
        names = [stat["name"] for stat in run.stats]
        counts = [
            stat["mean"]
            for stat in run.stats
            if stat["name"]["name"] in ("num_instances", "num_left_out") and stat.get("mean") is not None
        ]
        shard = Shard(run, _find_facts({name["name"] for name in names}), round(sum(counts)))
        if why := _find_obstacle(run, shard.rows, names):
            raise RunEntryError(f"{run.folder}: {why}")
    return shard


def _find_facts(names: set[str]) -> RunFacts:
    """Return what a run left out of all its rows, by what its stats do not have.

    Rows that were left out say nothing of it: where there are no others, nothing is missing.
    """
    if "num_instances" not in names:
        return RunFacts()
    unmeasured = _MEASURED - names
    return RunFacts(unmeasured=unmeasured | (LOGPROB_STATS if names.isdisjoint(("logprob", "max_prob")) else set()))


def _find_obstacle(run: RunFiles, rows: int, names: Sequence[JSONObject]) -> str:
    """Return why rows of a run are not all rows of its file, depend on its other rows, or cannot be added up; or ""."""
    spec, adapter_spec = run.run_spec, run.adapter_spec
    for metric in spec["metric_specs"]:
        try:
            made = create_metric(MetricSpec(metric["class_name"], metric.get("args") or {}))
            why = "" if isinstance(made, FoldingMetric) else "it wants all rows at once"
        except (ImportError, AttributeError, TypeError, ValueError) as error:
            why = str(error)
        if why:
            return (
                f"what its metric {metric['class_name']} makes of shards cannot be merged: {why}\n"
                "  hint: one run of all rows; metrics of helm-ext can be merged, in the version that made the run"
            )
    if any((name.get("perturbation") or {}).get("computed_on", "worst") != "worst" for name in names):
        return (
            "its rows are perturbed: worst cases want all rows at once, and cannot be merged\n"
            "  hint: one run of all rows"
        )
    scenario = spec["scenario_spec"]["class_name"]
    try:
        is_ours = issubclass(get_class_by_name(scenario), EvalSetScenario)
    except ImportError as error:
        return f"its scenario {scenario} cannot be imported here: {error}"
    if not is_ours:
        return f"no run of a file of rows: its scenario is {scenario}"
    most = adapter_spec.get("max_eval_instances")
    if most is not None and rows >= most:
        return (
            f"{rows} rows are evaluated, and --max-eval-instances was {most}: the file may have more, "
            "and a draw of each shard is no draw of all\n  hint: run it with a larger --max-eval-instances"
        )
    is_live = not str(adapter_spec.get("model_deployment", "")).startswith("recorded/")
    drawn = any(s["name"]["name"] == "num_train_instances" and s.get("max") for s in run.stats)
    if is_live and adapter_spec.get("max_train_instances") and drawn:
        return (
            "its demonstrations were drawn from this shard; one run draws them from all rows\n"
            "  hint: write demonstrations into the rows' prompts (max_train_instances 0), or run all rows at once"
        )
    arguments = [metric.get("args") or {} for metric in spec["metric_specs"]]
    if sources := [one["source"] for one in arguments if one.get("source")]:
        tool = sources[0].get("tool")
        made = "is" if str(spec["name"]).startswith(f"{tool}:") else "was converted from"
        return (
            f"its file {made} {tool} data: what its columns, golds and reported scores mean is told by all of its "
            "rows, and may be told otherwise of other ones\n  hint: one run of all rows, of one file that holds them"
        )
    if any(_MERGED in one for one in arguments):
        return "is a merged run\n  hint: name the runs that it was made of"
    return ""


def _arguments(spec: JSONObject) -> JSONObject:
    """Return the arguments of a run's scenario in full."""
    arguments: JSONObject = spec["scenario_spec"]["args"]
    if "arguments" not in arguments:
        return arguments
    full = next(dict(one["args"]) for one in spec["metric_specs"] if one["class_name"] == RUN_ARGUMENTS)
    return {key: value for key, value in full.items() if key != _MERGED}


def _names_data(spec: JSONObject) -> frozenset[str]:
    """Return the names of the arguments that name a run's file."""
    scenario_class = get_class_by_name(spec["scenario_spec"]["class_name"])
    return frozenset(one.name for one in scenario_class.format.arguments if one.names_data)


def _find_shared(spec: JSONObject) -> JSONObject:
    """Return what runs of shards agree in, but for lists of what occurs in their rows."""
    left_out = _OF_SHARDS | _names_data(spec)
    return {
        "model": spec["adapter_spec"].get("model"),
        "adapter_spec": {key: value for key, value in spec["adapter_spec"].items() if key != "max_eval_instances"},
        "scenario": spec["scenario_spec"]["class_name"],
        "arguments": {key: value for key, value in _arguments(spec).items() if key not in left_out},
        "metrics": [one for one in spec["metric_specs"] if one["class_name"] not in OF_ONE_FILE],
        "annotators": spec.get("annotators"),
        "data_augmenter_spec": spec.get("data_augmenter_spec"),
    }


def _join(one: Any, other: Any, runs: str, path: str = "") -> Any:
    """Return what two runs agree in as that of both. Raises RunEntryError for the first difference.

    Values of attributes, and judges, are those of both; who judged may differ from shard to shard, the scales may not.
    """
    known = [value for value in (one, other) if value != _NOTHING]
    if all(isinstance(value, Mapping) for value in known):
        one, other = one or {}, other or {}
        keys = {**one, **other}
        return {key: _join(one.get(key, _NOTHING), other.get(key, _NOTHING), runs, f"{path}.{key}") for key in keys}
    if _OF_ROWS.search(path) and (len(known) == 2 or path.endswith(f".{SUB_SPLIT}")):
        return sorted({*one, *other})
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return [_join(*pair, runs, f"{path}.{number}") for number, pair in enumerate(zip(one, other, strict=True))]
    if one != other:
        said = ["nothing" if value == _NOTHING else show(value) for value in (one, other)]
        raise RunEntryError(
            f"{runs} are no shards of one run: {path[1:]} is {said[0]} and {said[1]}\n  hint: name runs of one "
            "model and of the same arguments (of a folder: FOLDER/*MODEL); only the file may differ. A main metric "
            "is named in each file or run entry (main_metric=) where it would not be that of all"
        )
    return one


def _join_arguments(specs: Sequence[JSONObject]) -> JSONObject:
    """Return the arguments of the scenario: digests of all digests, and what the files' names share."""
    every = [_arguments(spec) for spec in specs]
    joined = {key: value for key, value in every[0].items() if key not in _OF_SHARDS}
    for name in _names_data(specs[0]) & joined.keys():
        values = [one.get(name) for one in every]
        if any(value != values[0] for value in values):
            joined[name] = _share([str(value) for value in values])
    joined["digest"] = _digest_of([str(one["digest"]) for one in every])
    if any("questions" in one for one in every):
        joined["questions"] = _digest_of([str(one.get("questions", one["digest"])) for one in every])
    if all(one.get("main_split") == "valid" for one in every):  # as of one file: one row of another split is enough
        joined["main_split"] = "valid"
    return joined


def _digest_of(digests: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(digests).encode()).hexdigest()[:DIGEST_LENGTH]


def _share(values: Sequence[str]) -> str:
    """Return what texts begin and end with, and how many they are between: `data/shard-~12~.jsonl`."""
    begin = os.path.commonprefix(values).rstrip(_DIGITS)  # noqa: RUF071 - texts, not paths alone
    end = os.path.commonprefix([value[len(begin) :][::-1] for value in values])[::-1].lstrip(_DIGITS)  # noqa: RUF071
    return f"{begin}~{len(values)}~{end}"


def _join_names(names: Sequence[str]) -> str:
    """Return the name of the run: its arguments are what those of the runs share; a digest ends what is too long."""
    entries = {name.partition(":")[0] for name in names}
    split = [dict(part.partition("=")[::2] for part in name.partition(":")[2].split(",")) for name in names]
    if len(entries) > 1 or any(one.keys() != split[0].keys() for one in split):
        raise RunEntryError("the names of the runs have not the same arguments\n  hint: --name NAME names the whole")
    joined = {}
    for key, value in split[0].items():
        values = [one[key] for one in split]
        same = len(set(values)) == 1
        joined[key] = value if same else _digest_of(values) if key == "digest" else _share(values)
    joined_name = f"{entries.pop()}:" + ",".join(f"{key}={value}" if value else key for key, value in joined.items())
    made = joined_name.replace(os.path.sep, "_")  # as HELM makes a folder of it
    if len(made.encode()) <= MAX_FILE_NAME:
        return made
    return f"{cut(made, MAX_FILE_NAME - DIGEST_LENGTH - 1)}~{_digest_of([made])}"


def _require_name(name: str) -> str:
    """Return a name that was given. Raises RunEntryError for what HELM's pages do not show, or cannot be a folder."""
    is_long = len(name.encode("utf-8", "surrogatepass")) > MAX_FILE_NAME
    if is_long or not (_NAME.fullmatch(name) and name.isprintable()) or name in NOT_RUNS:
        raise RunEntryError(
            f"--name {show(name)}: cannot be the name of a run: it is a folder that HELM's pages show\n"
            f"  hint: at most {MAX_FILE_NAME} bytes, without / \\ ? # %, and not a dot or a space at the beginning"
        )
    return name
