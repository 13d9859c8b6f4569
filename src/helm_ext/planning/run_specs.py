"""From a run entry of any format to an ordinary HELM RunSpec.

The dataset is read and validated before any model is called, and its digest is written into the scenario's arguments
and the run's name. Errors are raised here, where `helm-run` stops for them.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from helm.benchmark.annotation.annotator import AnnotatorSpec
from helm.benchmark.metrics.metric import MetricSpec
from helm.benchmark.run_spec import RunSpec
from helm.benchmark.scenarios.scenario import TRAIN_SPLIT, ScenarioSpec
from helm.common.hierarchical_logger import hlog, hwarn
from helm.common.object_spec import get_class_by_name

from helm_ext.evalset import DIGEST_LENGTH, EvalSet
from helm_ext.formats import planned
from helm_ext.formats.format import MISSING, Format, Plan
from helm_ext.formats.registry import get_format
from helm_ext.planning import CAPPED_ROWS, RUN_ARGUMENTS
from helm_ext.planning.names import fit_arguments, fit_name, full_name


def get_run_spec(entry: str, arguments: Mapping[str, Any]) -> RunSpec:
    """Return the RunSpec of a run entry, `NAME:arguments`, of any format.

    Raises RunEntryError for arguments, DatasetError for files, HubError for the hub.
    """
    check_settings()
    format_ = get_format(entry)
    options = format_.parse(arguments)
    format_.require_source(options)
    resolved = format_.resolve(options)
    evalset = format_.load(**{name: value for name, value in resolved.items() if name != MISSING.name})
    return make_run_spec(format_, format_.plan(resolved, evalset), evalset)


def make_run_spec(format_: Format, plan: Plan, evalset: EvalSet) -> RunSpec:
    """Return the RunSpec of an EvalSet: digest in the scenario's arguments and in the name, warnings logged.

    What is too long for HELM's file names is replaced by a digest (`names`); the full text is in `run_spec.json`.
    """
    _log_findings(evalset, skips_missing=plan.scenario_arguments.get(MISSING.name) == "skip")
    arguments = {
        **plan.scenario_arguments,
        "digest": evalset.digest[:DIGEST_LENGTH],
        "main_metric": evalset.scoring.main_metric,
    }
    if evalset.question_digest not in ("", evalset.digest):
        arguments["questions"] = evalset.question_digest[:DIGEST_LENGTH]
    if evalset.display_name and evalset.display_name != evalset.name:
        arguments["display_name"] = evalset.display_name
    if evalset.splits() - {TRAIN_SPLIT} == {"valid"}:
        arguments["main_split"] = "valid"
    if evalset.scored_rows is not None:
        arguments["live_rows"] = f"{evalset.scored_rows.live} of {evalset.scored_rows.recorded}"
    end = f",digest={evalset.digest[:DIGEST_LENGTH]}"
    name = fit_name(format_.name, plan.name_arguments, end)
    scenario_class = get_class_by_name(format_.scenario_class)
    fitted = fit_arguments(scenario_class, arguments)
    scenario = scenario_class(**fitted)
    planned.keep(scenario.key(), evalset)
    metrics = [format_.metric_spec(evalset), _cap_spec(evalset)]
    if fitted != arguments or name != full_name(format_.name, plan.name_arguments, end):
        full = {**arguments, **plan.name_arguments}
        metrics.append(MetricSpec(class_name=RUN_ARGUMENTS, args=full))
    return RunSpec(
        name=name,
        scenario_spec=ScenarioSpec(class_name=format_.scenario_class, args=fitted),
        adapter_spec=evalset.adapter_spec,
        metric_specs=metrics,
        groups=[scenario.name, *plan.groups],
        annotators=_annotators(evalset),
    )


def _cap_spec(evalset: EvalSet) -> MetricSpec:
    args: dict[str, Any] = {"rows": evalset.count_rows("recorded")}
    live = evalset.count_rows("live")
    return MetricSpec(class_name=CAPPED_ROWS, args=args if live == args["rows"] else {**args, "live_rows": live})


def _annotators(evalset: EvalSet) -> list[AnnotatorSpec] | None:
    """Multiple choice: show in helm-server which option a completion was read as, also for "The answer is (B)."."""
    if not evalset.has_options():
        return None
    args = evalset.scoring.to_args()
    if evalset.adapter_spec.output_mapping_pattern:
        args["output_mapping_pattern"] = evalset.adapter_spec.output_mapping_pattern
    if evalset.adapter_spec.multi_label:
        args["multi_label"] = True
    return [AnnotatorSpec(class_name="helm_ext.scoring.answers.AnswerAnnotator", args=args)]


def _log_findings(evalset: EvalSet, *, skips_missing: bool) -> None:
    for problem in evalset.warnings:
        if not (skips_missing and problem.code in ("not-run", "failed")):  # its hint has been followed; counted below
            (hwarn if problem.severity == "warning" else hlog)(str(problem))
    counted = ", ".join(f"{count} {what}" for what, count in evalset.counts.items())
    hlog(f"{evalset.name}: {counted}; SHA-256 {evalset.digest}")
    if evalset.source is not None and evalset.source.main_reason and evalset.scoring.own_metric is not None:
        main = evalset.scoring.main_metric
        headline = main == evalset.source.stat_name(evalset.source.main)
        hlog(f"{evalset.name}: main metric {main}" + (f", {evalset.source.main_reason}" if headline else ""))


def check_settings() -> None:
    """Raise HelmExtError for settings that make no sense (workers, limits, progress), before a file is read.

    Warns, once, of workers where `helm-run` uses HELM's own runner, which knows none. Limits of what is spent are
    enforced or refused by the clients (`clients.client.find_unenforced_limit`).
    """
    if not any(name.startswith("HELM_EXT_") for name in os.environ):
        return  # nothing is set, and what reads settings takes 3 % of a preview to import
    from helm_ext.engines.engine import WORKERS_ENV, find_engine
    from helm_ext.engines.progress import read_mode
    from helm_ext.running.spending import read_limits

    find_engine()
    read_mode()
    read_limits()
    if (workers := os.environ.get(WORKERS_ENV)) and Path(sys.argv[0]).name == "helm-run":
        parser = argparse.ArgumentParser(add_help=False)  # helm-run's is one, too: it takes the beginning of an option
        parser.add_argument("--runner-class-name", default="helm.")
        if parser.parse_known_args(sys.argv[1:])[0].runner_class_name.startswith("helm."):
            _warn(
                f"{WORKERS_ENV}={workers} is for runners of this package: HELM's own runs in this process alone\n"
                "  hint: --runner-class-name helm_ext.running.StreamingRunner"
            )


@cache
def _warn(message: str) -> None:
    hwarn(message)
