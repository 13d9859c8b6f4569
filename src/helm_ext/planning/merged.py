"""Whether runs are those of shards of one dataset, and the RunSpec of a run of all their rows.

Runs of shards differ in the file, in its digest, and in what follows from these: names, groups,
values of attributes. All else must be equal, for their rows to be rows of one run.
"""

from __future__ import annotations

import copy
import hashlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
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
_DIGITS = "0123456789"
_NAME = re.compile(r"[^/\\?#%. ]([^/\\?#%]*[^/\\?#% ])?")


def plan_merge(runs: Sequence[RunFiles], *, name: str | None = None) -> tuple[list[Shard], RunSpec]:
    """Return the runs as shards, and the RunSpec of the run of all rows of these, in this order.

    `name`: of the run; default: what the names of the runs share. Raises RunEntryError where the runs are not those of
    shards (of two models, cut, of one file) or cannot be added up from their rows' stats, and DatasetSyntaxError.
    """
    shards = [_open(run) for run in runs]
    specs = [run.run_spec for run in runs]
    seen: dict[str, RunFiles] = {}
    for run, spec in zip(runs, specs, strict=True):
        with run.blaming("run_spec.json"):
            digest = _arguments(spec)["digest"]
            difference = next(_differences(_comparable(specs[0]), _comparable(spec)), None)
        if difference is not None:
            raise RunEntryError(
                f"{runs[0].folder} and {run.folder} are no shards of one run: {difference}\n  hint: name runs of one "
                "model and of the same arguments (of a folder: FOLDER/*MODEL); only the file may differ. A main metric "
                "is named in each file or run entry (main_metric=) where it would not be that of all"
            )
        if digest in seen:
            raise RunEntryError(
                f"{seen[digest].folder} and {run.folder} are runs of the same data (digest {digest}): its rows "
                "would count twice\n  hint: name each shard once"
            )
        seen[digest] = run
    merged = copy.deepcopy(specs[0])
    names = [spec["name"] for spec in specs]
    merged["name"] = _require_name(name) if name is not None else _join_names(names)
    merged["adapter_spec"].pop("max_eval_instances", None)  # no run of so many rows made it
    arguments = _join_arguments(specs)
    scenario_class = get_class_by_name(merged["scenario_spec"]["class_name"])
    fitted = fit_arguments(scenario_class, arguments)
    merged["scenario_spec"]["args"] = fitted
    merged["groups"][0] = scenario_class(**fitted).name
    told = {"runs": [{"run": run, "rows": shard.rows} for run, shard in zip(names, shards, strict=True)],
            "rows": sum(shard.rows for shard in shards)}  # fmt: skip
    full = arguments if fitted != arguments else {}
    of_all = {"class_name": RUN_ARGUMENTS, "args": {**full, _MERGED: told}}
    merged["metric_specs"] = [*_join_metrics(specs), of_all]
    with runs[0].blaming("run_spec.json"):
        return shards, _to_run_spec(merged)


def _to_run_spec(spec: JSONObject) -> RunSpec:
    """Return a RunSpec as HELM's codec does, whose import brings torch and spaCy along. Raises ValueError."""
    try:
        return dacite.from_dict(RunSpec, spec, dacite.Config(check_types=False))  # 1 for 1.0 is HELM's own
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
    for tool in (one["source"].get("tool") for one in arguments if one.get("source")):
        made = "is" if str(spec["name"]).startswith(f"{tool}:") else "was converted from"
        return (
            f"its file {made} {tool} data: what its columns, golds and reported scores mean is told by all of its "
            "rows, and may be told otherwise of other ones\n  hint: one run of all rows, of one file that holds them"
        )
    return (
        "is a merged run\n  hint: name the runs that it was made of" if any(_MERGED in one for one in arguments) else ""
    )


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


def _comparable(spec: JSONObject) -> JSONObject:
    """Return what runs of shards agree in."""
    left_out = _OF_SHARDS | _names_data(spec)
    metrics = _metrics(spec)
    return {
        "model": spec["adapter_spec"].get("model"),
        "adapter_spec": {key: value for key, value in spec["adapter_spec"].items() if key != "max_eval_instances"},
        "scenario": spec["scenario_spec"]["class_name"],
        "arguments": {key: value for key, value in _arguments(spec).items() if key not in left_out},
        "metrics": [one["class_name"] for one in metrics],
        "scoring": [
            {k: v for k, v in (one.get("args") or {}).items() if k not in ("attributes", "judged")} for one in metrics
        ],
        # Who judged may differ from shard to shard, the scales may not.
        "judged": [
            {name: told["scale"] for name, told in (one.get("args") or {}).get("judged", {}).items()} for one in metrics
        ],
        "attributes": [sorted({*(one.get("args") or {}).get("attributes", {})} - {SUB_SPLIT}) for one in metrics],
        "annotators": spec.get("annotators"),
        "data_augmenter_spec": spec.get("data_augmenter_spec"),
    }


def _differences(one: Any, other: Any, path: str = "") -> Iterator[str]:
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        for key in {**one, **other}:
            yield from _differences(one.get(key), other.get(key), f"{path}.{key}" if path else str(key))
    elif one != other:
        yield f"{path} is {show(one)} and {show(other)}"


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


def _metrics(spec: JSONObject) -> list[JSONObject]:
    """Return the metrics that are not about one file."""
    return [one for one in spec["metric_specs"] if one["class_name"] not in OF_ONE_FILE]


def _join_metrics(specs: Sequence[JSONObject]) -> list[JSONObject]:
    """Return the metrics, with all values of attributes and all judges that occur."""
    metrics = copy.deepcopy(_metrics(specs[0]))
    for metric, *others in zip(metrics, *map(_metrics, specs), strict=True):
        found: dict[str, set[str]] = {}
        judges: dict[str, set[str]] = {}
        for args in (other.get("args") or {} for other in others):
            for name, values in args.get("attributes", {}).items():
                found.setdefault(name, set()).update(values)
            for name, told in args.get("judged", {}).items():
                judges.setdefault(name, set()).update(told["judges"])
        for name, named in judges.items():
            metric["args"]["judged"][name]["judges"] = sorted(named)
        if found:
            metric["args"]["attributes"] = {name: sorted(values) for name, values in found.items()}
    return metrics


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
