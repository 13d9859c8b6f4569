"""Run spec functions: the run entries `adapter_spec:`, `ultraeval:` and `innodata:`.

Each reads and validates its dataset before any model is called, writes the digest into the scenario's arguments and the
run's name, and returns an ordinary HELM RunSpec. Errors are raised here, where `helm-run` stops for them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from helm.benchmark.annotation.annotator import AnnotatorSpec
from helm.benchmark.metrics.metric import MetricSpec
from helm.benchmark.run_spec import RunSpec
from helm.benchmark.scenarios.scenario import TRAIN_SPLIT, ScenarioSpec
from helm.common.hierarchical_logger import hlog, hwarn

from helm_ext.errors import RunEntryError, did_you_mean
from helm_ext.evalset import EvalSet, row_extra
from helm_ext.scenarios import DIGEST_LENGTH, AdapterSpecScenario, EvalSetScenario

__all__ = ["get_adapter_spec_run_spec", "get_innodata_run_spec", "get_ultraeval_run_spec"]

ADAPTER_SPEC_ARGUMENTS = (
    "dataset", "path", "method", "seed", "missing", "metrics", "main_metric", "output_format", "extract", "strip",
    "lower",
)  # fmt: skip

_SCORING_ONLY = ("metrics", "main_metric", "extract", "strip", "lower")
"""Arguments that change how rows are scored, not which rows there are: they stand in the metric's arguments."""

_MAX_FILE_NAME = 255
"""Bytes in a file name, on every file system in use. HELM makes file names of run names and scenario arguments."""


def get_adapter_spec_run_spec(**arguments: Any) -> RunSpec:
    """`adapter_spec:dataset=NAME|path=FILE[,method=][,seed=][,metrics=a+b][,missing=skip]...`.

    Raises RunEntryError for arguments, DatasetError for the file.
    """
    from helm_ext import catalog
    from helm_ext.formats import request_states

    _require_known("adapter_spec", arguments, ADAPTER_SPEC_ARGUMENTS)
    where = _one_of("adapter_spec", arguments, "dataset", "path")
    options = _parse_options({key: value for key, value in arguments.items() if key not in ("dataset", "path")})
    if where == "dataset":
        path = str(catalog.find_dataset(arguments["dataset"]))
        found = {"dataset": catalog.dataset_name(Path(path)) or Path(path).name}
    else:
        path = _short_path(arguments["path"])
        found = {"path": path}
    evalset = request_states.load(path, **options)
    scenario_options = {key: value for key, value in options.items() if key not in _SCORING_ONLY}
    return make_run_spec("adapter_spec", AdapterSpecScenario, evalset, found | scenario_options, found | options)


ULTRAEVAL_ARGUMENTS = (
    "config", "task", "data", "transform", "dataset", "method", "version", "fewshot", "seed", "limit", "demos",
    "postprocess", "metric", "root", "dataset_name", "max_tokens", "allow_code", "missing",
)  # fmt: skip


def get_ultraeval_run_spec(**arguments: Any) -> RunSpec:
    """`ultraeval:config=FILE[,task=]|dataset=NAME,method=gen|ppl[,version=]|data=FILE,transform=SCRIPT[,...]`.

    Raises RunEntryError for arguments, DatasetError for files.
    """
    from helm_ext import task_expander
    from helm_ext.formats import ultraeval
    from helm_ext.scenarios import UltraEvalScenario

    _require_known("ultraeval", arguments, ULTRAEVAL_ARGUMENTS)
    if not {"config", "dataset", "data"} & arguments.keys():
        # HELM took `config=FILE` off the arguments, for the run expander that makes one run a task.
        return task_expander.make_pending(arguments)
    options: dict[str, Any] = {
        key: _short_path(value) if key in ("config", "data", "transform", "demos", "root") else value
        for key, value in arguments.items()
    }
    if "metric" in options:
        options["metric"] = str(options["metric"]).split("+")
    if "allow_code" in options:
        options["allow_code"] = _parse_bool("allow_code", options["allow_code"])
    missing = _parse_options({key: options.pop(key) for key in ("missing",) if key in options})
    evalset = ultraeval.load(**options)
    options |= missing
    tags = dict(tag.split("=", 1) for tag in evalset.tags)
    named = options | {key: tags[key] for key in ("script", "script_sha", "data_sha")}
    if evalset.adapter_spec.method == "generation":
        args = evalset.scoring.to_args()
        if "postprocess" in tags:
            args["postprocess"] = {"name": tags["postprocess"]} | ({"root": tags["root"]} if "root" in tags else {})
        metric_spec = MetricSpec(class_name="helm_ext.metrics.EvalSetMetric", args=args)
    else:
        metric_spec = MetricSpec(class_name="helm_ext.likelihood.SentenceLikelihoodMetric", args={"rule": tags["rule"]})
    groups = (f"UltraEval {tags['dataset']}",)
    return make_run_spec(
        "ultraeval", UltraEvalScenario, evalset, options | {"name": evalset.name}, named, [metric_spec], groups
    )


INNODATA_ARGUMENTS = (
    "dataset", "path", "version", "split", "hub", "render", "replies", "metrics", "main_metric", "max_tokens", "limit",
    "missing", "extract", "strip", "lower",
)  # fmt: skip


def get_innodata_run_spec(**arguments: Any) -> RunSpec:
    """`innodata:dataset=NAME[,version=N][,split=]|path=FILE.zip[,render=text][,replies=FILE]...`.

    Raises RunEntryError for arguments, DatasetError for the bundle, HubError for the hub.
    """
    from helm_ext import hub
    from helm_ext.formats import innodata
    from helm_ext.scenarios import InnodataScenario

    _require_known("innodata", arguments, INNODATA_ARGUMENTS)
    where = _one_of("innodata", arguments, "dataset", "path")
    options: dict[str, Any] = {
        key: _short_path(value) if key in ("path", "replies") else value
        for key, value in arguments.items()
        if key not in _SCORING_ONLY
    }
    scoring = _parse_options({key: value for key, value in arguments.items() if key in _SCORING_ONLY})
    missing = options.pop("missing", "error")
    evalset = innodata.load(**options, **scoring)
    found = dict(options)
    if where == "dataset":
        # Frozen here: the run says for ever which version it was, also when it was asked for "the newest".
        found["version"] = hub.resolve(str(options["dataset"]), options.get("version"), options.get("hub")).version
    if missing != "error":
        found["missing"] = missing
    named = found | scoring
    args = evalset.scoring.to_args()
    if evalset.attributes:
        args["attributes"] = {key: list(values) for key, values in evalset.attributes.items()}
    metric_spec = MetricSpec(class_name="helm_ext.metrics.EvalSetMetric", args=args)
    return make_run_spec("innodata", InnodataScenario, evalset, found, named, [metric_spec], evalset.tags)


def make_run_spec(
    entry: str,
    scenario_class: type[EvalSetScenario],
    evalset: EvalSet,
    scenario_arguments: Mapping[str, Any],
    name_arguments: Mapping[str, Any],
    metric_specs: list[MetricSpec] | None = None,
    extra_groups: tuple[str, ...] = (),
) -> RunSpec:
    """Return the RunSpec of an EvalSet: digest in the scenario's arguments and in the name, warnings logged.

    Raises RunEntryError when HELM could not write files of that name.
    """
    _log_findings(evalset)
    arguments = {
        **scenario_arguments,
        "digest": evalset.digest[:DIGEST_LENGTH],
        "main_metric": evalset.scoring.main_metric,
    }
    if evalset.display_name and evalset.display_name != evalset.name:
        arguments["display_name"] = evalset.display_name
    splits = {instance.split for instance in evalset.instances if instance.split != TRAIN_SPLIT}
    if splits == {"valid"}:
        arguments["main_split"] = "valid"
    scenario = scenario_class(**arguments)
    name = entry + ":" + ",".join(f"{key}={_in_name(value)}" for key, value in name_arguments.items())
    name += f",digest={evalset.digest[:DIGEST_LENGTH]}"
    _require_writable_names(name, scenario.name, arguments)
    return RunSpec(
        name=name,
        scenario_spec=ScenarioSpec(
            class_name=f"{scenario_class.__module__}.{scenario_class.__qualname__}", args=arguments
        ),
        adapter_spec=evalset.adapter_spec,
        metric_specs=metric_specs
        or [MetricSpec(class_name="helm_ext.metrics.EvalSetMetric", args=evalset.scoring.to_args())],
        groups=[scenario.name, *extra_groups],
        annotators=_annotators(evalset),
    )


def _annotators(evalset: EvalSet) -> list[AnnotatorSpec] | None:
    """Multiple choice: show in helm-server which option a completion was read as, also for "The answer is (B)."."""
    if not any("labels" in row_extra(instance) for instance in evalset.instances):
        return None
    args = evalset.scoring.to_args()
    if evalset.adapter_spec.output_mapping_pattern:
        args["output_mapping_pattern"] = evalset.adapter_spec.output_mapping_pattern
    return [AnnotatorSpec(class_name="helm_ext.annotators.AnswerAnnotator", args=args)]


def _require_known(entry: str, arguments: Mapping[str, Any], known: tuple[str, ...]) -> None:
    unknown = [name for name in arguments if name not in known]
    if unknown:
        hint = did_you_mean(unknown[0], known) or f"known: {', '.join(known)}"
        raise RunEntryError(f"{entry}: unknown argument {unknown[0]!r}\n  hint: {hint}")


def _one_of(entry: str, arguments: Mapping[str, Any], *names: str) -> str:
    given = [name for name in names if name in arguments]
    if len(given) != 1:
        problem = "none is given" if not given else f"{' and '.join(given)} are given"
        raise RunEntryError(
            f"{entry}: exactly one of {', '.join(names)} is needed, {problem}\n"
            f"  hint: {entry}:{names[0]}=NAME,model=... or {entry}:path=FILE,model=..."
        )
    return given[0]


_CHOICES = {
    "missing": ("error", "skip"),
    "output_format": ("string", "list"),
}


def _parse_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Turn the values of a run entry, which HELM hands over as strings and numbers, into typed ones."""
    parsed: dict[str, Any] = {}
    for key, value in options.items():
        if key == "metrics":
            parsed[key] = str(value).split("+")
        elif key in ("strip", "lower"):
            parsed[key] = _parse_bool(key, value)
        elif key == "seed":
            if not isinstance(value, int):
                raise RunEntryError(f"seed={value}: expected a whole number")
            parsed[key] = value
        elif key in _CHOICES and value not in _CHOICES[key]:
            hint = did_you_mean(str(value), _CHOICES[key]) or f"one of {', '.join(_CHOICES[key])}"
            raise RunEntryError(f"{key}={value}: not a choice\n  hint: {hint}")
        else:
            parsed[key] = value if key in _CHOICES else str(value)
    return parsed


def _parse_bool(key: str, value: Any) -> bool:
    words = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
    word = str(value).lower()
    if word not in words:
        raise RunEntryError(f"{key}={value}: expected true or false")
    return words[word]


def _short_path(value: Any) -> str:
    """Return the path as it goes into names: relative where it lies below the working directory.

    HELM splits run entries at commas; a path with a comma is written with `%2C`.
    """
    path = str(value)
    if "%" in path and not os.path.exists(path):  # noqa: PTH110
        path = unquote(path)
    if os.path.isabs(path):  # noqa: PTH117
        relative = os.path.relpath(path)
        return relative if not relative.startswith(os.pardir) else path
    return path


def _in_name(value: Any) -> str:
    """Return a value as it stands in a run's name, which is a folder's name and is shown in reports."""
    text = "+".join(value) if isinstance(value, list) else str(value)
    return text.replace(",", "%2C").replace("\n", " ")


def _require_writable_names(name: str, group: str, arguments: Mapping[str, Any]) -> None:
    table = f"{group}_{group}_" + ",".join(f"{key}:{value}" for key, value in arguments.items()) + ".json"
    longest = max(len(name.encode()) + len(",model="), len(table.encode()))
    if longest > _MAX_FILE_NAME - 20:
        raise RunEntryError(
            f"{name[:80]}…: HELM makes file names of these arguments, and they come to {longest} bytes\n"
            "  hint: start helm-run nearer to the file and give a relative path, or put the file's folder into "
            "HELM_EXT_PATH and write dataset=NAME"
        )


def _log_findings(evalset: EvalSet) -> None:
    for problem in evalset.warnings:
        hwarn(str(problem))
    counted = ", ".join(f"{count} {what}" for what, count in evalset.counts.items())
    hlog(f"{evalset.name}: {counted}; SHA-256 {evalset.digest}")
