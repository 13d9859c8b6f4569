"""Run spec functions: the run entries `adapter_spec:`, `ultraeval:` and `innodata:`.

Each reads and validates its dataset before any model is called, writes the digest into the scenario's arguments and the
run's name, and returns an ordinary HELM RunSpec. Errors are raised here, where `helm-run` stops for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from helm.benchmark.annotation.annotator import AnnotatorSpec
from helm.benchmark.metrics.metric import MetricSpec
from helm.benchmark.run_spec import RunSpec
from helm.benchmark.scenarios.scenario import TRAIN_SPLIT, ScenarioSpec
from helm.common.hierarchical_logger import hlog, hwarn

from helm_ext.evalset import EvalSet, row_extra
from helm_ext.formats import planned
from helm_ext.formats.run_entries import parse_arguments, require_one
from helm_ext.formats.scenarios import DIGEST_LENGTH, AdapterSpecScenario, EvalSetScenario
from helm_ext.planning.names import fit_arguments, fit_name, to_text

__all__ = ["get_adapter_spec_run_spec", "get_innodata_run_spec", "get_ultraeval_run_spec"]


def get_adapter_spec_run_spec(**arguments: Any) -> RunSpec:
    """`adapter_spec:dataset=NAME|path=FILE[,method=][,seed=][,metrics=a+b][,missing=skip]...`.

    Raises RunEntryError for arguments, DatasetError for the file.
    """
    from helm_ext.formats import catalog, request_states

    options = parse_arguments("adapter_spec", arguments)
    where = require_one("adapter_spec", options, "dataset", "path")
    given = options.pop(where)
    path = str(catalog.find_dataset(given)) if where == "dataset" else given
    found = {where: (catalog.dataset_name(Path(path)) or Path(path).name) if where == "dataset" else path}
    evalset = request_states.load(path, **options)
    # The file's own name, if it has one: files of several models may hold the completions of one dataset.
    named = {} if evalset.name == AdapterSpecScenario.default_name(found) else {"name": evalset.name}
    return make_run_spec("adapter_spec", AdapterSpecScenario, evalset, found | options | named, found | options)


def get_ultraeval_run_spec(**arguments: Any) -> RunSpec:
    """`ultraeval:config=FILE[,task=]|dataset=NAME,method=gen|ppl[,version=]|data=FILE,transform=SCRIPT[,...]`.

    Raises RunEntryError for arguments, DatasetError for files.
    """
    from helm_ext.formats import ultraeval
    from helm_ext.formats.scenarios import UltraEvalScenario
    from helm_ext.formats.ultraeval.facts import TaskFacts
    from helm_ext.planning import task_expander

    options = parse_arguments("ultraeval", arguments)
    if not {"config", "dataset", "data"} & options.keys():
        # HELM took `config=FILE` off the arguments, for the run expander that makes one run a task.
        return task_expander.make_pending(arguments)
    evalset = ultraeval.load(**{key: value for key, value in options.items() if key != "missing"})
    facts = evalset.details
    assert isinstance(facts, TaskFacts)
    named = options | facts.to_name_arguments()
    groups = (f"UltraEval {facts.dataset}",)
    options["name"] = evalset.name
    specs = [facts.to_metric_spec(evalset.scoring)]
    return make_run_spec("ultraeval", UltraEvalScenario, evalset, options, named, specs, groups)


def get_innodata_run_spec(**arguments: Any) -> RunSpec:
    """`innodata:dataset=NAME[,version=N][,split=]|path=FILE.zip[,render=text][,replies=FILE]...`.

    Raises RunEntryError for arguments, DatasetError for the bundle, HubError for the hub.
    """
    from helm_ext import hub
    from helm_ext.formats import innodata
    from helm_ext.formats.scenarios import InnodataScenario

    options = parse_arguments("innodata", arguments)
    where = require_one("innodata", options, "dataset", "path")
    if where == "dataset":
        # Frozen first: the run says for ever which version it was, also when it was asked for "the newest".
        resolved = hub.resolve(options["dataset"], options.get("version"), options.get("hub"))
        options["version"] = resolved.version
    evalset = innodata.load(**{key: value for key, value in options.items() if key != "missing"})
    return make_run_spec("innodata", InnodataScenario, evalset, options, options, extra_groups=evalset.tags)


def make_run_spec(
    entry: str,
    scenario_class: type[EvalSetScenario],
    evalset: EvalSet,
    scenario_arguments: Mapping[str, Any],
    name_arguments: Mapping[str, Any] | None = None,
    metric_specs: list[MetricSpec] | None = None,
    extra_groups: tuple[str, ...] = (),
) -> RunSpec:
    """Return the RunSpec of an EvalSet: digest in the scenario's arguments and in the name, warnings logged.

    What is too long for HELM's file names is replaced by a digest (`names`); the full text is in `run_spec.json`.
    """
    _log_findings(evalset, skips_missing=scenario_arguments.get("missing") == "skip")
    arguments = {
        **scenario_arguments,
        "digest": evalset.digest[:DIGEST_LENGTH],
        "main_metric": evalset.scoring.main_metric,
    }
    if evalset.question_digest not in ("", evalset.digest):
        arguments["questions"] = evalset.question_digest[:DIGEST_LENGTH]
    if evalset.display_name and evalset.display_name != evalset.name:
        arguments["display_name"] = evalset.display_name
    splits = {instance.split for instance in evalset.instances if instance.split != TRAIN_SPLIT}
    if splits == {"valid"}:
        arguments["main_split"] = "valid"
    named = name_arguments or scenario_arguments
    plain = f"{entry}:{','.join(f'{key}={to_text(value)}' for key, value in named.items())}"
    end = f",digest={evalset.digest[:DIGEST_LENGTH]}"
    name = fit_name(entry, named, end)
    fitted = fit_arguments(scenario_class, arguments)
    scenario = scenario_class(**fitted)
    planned.keep(scenario.key(), evalset)
    metrics = metric_specs or [_metric(evalset)]
    if fitted != arguments or name != plain + end:
        metrics = [*metrics, MetricSpec("helm_ext.planning.names.RunArguments", {**arguments, **named})]
    return RunSpec(
        name=name,
        scenario_spec=ScenarioSpec(
            class_name=f"{scenario_class.__module__}.{scenario_class.__qualname__}", args=fitted
        ),
        adapter_spec=evalset.adapter_spec,
        metric_specs=metrics,
        groups=[scenario.name, *extra_groups],
        annotators=_annotators(evalset),
    )


def _metric(evalset: EvalSet) -> MetricSpec:
    args = evalset.scoring.to_args()
    if evalset.attributes:
        args["attributes"] = {key: list(values) for key, values in evalset.attributes.items()}
    return MetricSpec(class_name="helm_ext.scoring.metrics.EvalSetMetric", args=args)


def _annotators(evalset: EvalSet) -> list[AnnotatorSpec] | None:
    """Multiple choice: show in helm-server which option a completion was read as, also for "The answer is (B)."."""
    if not any("labels" in row_extra(instance) for instance in evalset.instances):
        return None
    args = evalset.scoring.to_args()
    if evalset.adapter_spec.output_mapping_pattern:
        args["output_mapping_pattern"] = evalset.adapter_spec.output_mapping_pattern
    if evalset.adapter_spec.multi_label:
        args["multi_label"] = True
    return [AnnotatorSpec(class_name="helm_ext.scoring.annotators.AnswerAnnotator", args=args)]


def _log_findings(evalset: EvalSet, *, skips_missing: bool) -> None:
    for problem in evalset.warnings:
        if not (skips_missing and problem.code in ("not-run", "failed")):  # its hint has been followed; counted below
            hwarn(str(problem))
    counted = ", ".join(f"{count} {what}" for what, count in evalset.counts.items())
    hlog(f"{evalset.name}: {counted}; SHA-256 {evalset.digest}")
