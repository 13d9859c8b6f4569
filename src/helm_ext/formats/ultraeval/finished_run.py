"""A finished UltraEval run as an EvalSet: the outputs in its log (`run_log`) are recordings."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from helm_ext.errors import DatasetError, Location, Problem, RunEntryError
from helm_ext.evalset import EvalSet, Places
from helm_ext.files import LineSource
from helm_ext.formats.ultraeval import run_log
from helm_ext.formats.ultraeval.checkout import open_checkout
from helm_ext.formats.ultraeval.facts import TaskFacts, make_digest, require_allowed, require_scores
from helm_ext.formats.ultraeval.log_rows import find_method, read_log_rows
from helm_ext.formats.ultraeval.lowering import to_adapter_spec
from helm_ext.formats.ultraeval.metric_names import parse_metric_argument, read_metrics
from helm_ext.formats.ultraeval.options import Options
from helm_ext.formats.ultraeval.rows import iter_objects, read_rows
from helm_ext.formats.ultraeval.sampling import Sampling


def find_log(path: Path) -> Path | None:
    """Return the path of a file if it holds the outputs of a finished UltraEval run."""
    if not path.is_file():
        return None
    problems: list[Problem] = []
    with LineSource(path) as source:
        # Upstream writes the log-probabilities as they came, NaN and -Infinity among them.
        first = next(iter_objects(source, path, problems, allow_nan=True), None)
    if problems or first is None:
        read_rows(path, allow_nan=True)  # which raises, with all problems
    return path if first is not None and run_log.is_run_log(first[1]) else None


def check_log(path: Path, options: Options, *, execute: bool) -> tuple[list[Problem], dict[str, int]]:
    """Return every problem of a finished run and its counts; no metric is computed, so no code is run."""
    try:
        evalset = load_log(path, replace(options, allow_code=True), execute=execute)
    except DatasetError as error:
        return list(error.problems), {"rows": _count_rows(path)}
    counts = evalset.counts
    problems = list(evalset.warnings)
    if counts["not_run"]:
        message = f"{counts['not_run']} of {counts['eval']} rows were not run; a recorded run refuses the file"
        hint = "missing=skip scores the rest and reports how many were left out" if counts["recorded"] else ""
        problems.append(Problem(message, Location(str(path)), hint, "warning", "not-run"))
    return problems, counts


def _count_rows(path: Path) -> int:
    with LineSource(path) as source:
        return sum(1 for _ in iter_objects(source, path, [], allow_nan=True))


def load_log(path: Path, options: Options, *, execute: bool = True) -> EvalSet:
    """Return a finished UltraEval run with its outputs as recordings; import no postprocessing unless `execute`."""
    kind = find_method(path) or ("ppl" if options.method == "ppl" else "gen")
    if options.method not in (None, kind):
        raise RunEntryError(f"method={options.method}: {path} holds the outputs of a {kind} run")
    said = run_log.read_run_log_config(path)
    post = options.postprocess if options.postprocess is not None else said.postprocess(kind)
    metrics = (
        parse_metric_argument(options.metric, kind, post)
        if options.metric is not None
        else read_metrics(said.require_metrics(), kind, post, str(said.path))
    )
    require_allowed(metrics, allow_code=options.allow_code)
    checkout = open_checkout(options.root, path)
    used = require_scores(kind, metrics, post, checkout, execute=execute)
    rows = read_log_rows(path, kind, needs_row=metrics.need_row, limit=options.limit)
    title = options.dataset_name if options.dataset_name is not None else run_log.name_of(path, kind, said)
    facts = TaskFacts(
        method=kind,
        dataset=title.split("_")[0],
        script=path.stem,
        script_sha="none",
        data_sha=rows.sha256,
        metrics=metrics,
        postprocess=post if kind == "gen" else "",
        root=str(checkout.root) if checkout and used else None,
    )
    asked = [("questions", rows.question_sha256), ("scored", f"{metrics.names} {post}")]
    return EvalSet(
        name=options.name or title,
        format="ultraeval",
        digest=make_digest([("log", rows.sha256), *used.items()]),
        question_digest=make_digest([*asked, *used.items()]),
        instances=rows.instances,
        adapter_spec=to_adapter_spec(kind, Sampling()),
        scoring=facts.to_scoring(options.thinking),
        display_name=title,
        description=f"Outputs of a finished UltraEval run of {title}.",
        tags=(kind, facts.dataset),
        details=facts,
        counts={
            "rows": len(rows.lines),
            "train": 0,
            "eval": len(rows.instances),
            "recorded": rows.recorded,
            "not_run": len(rows.instances) - rows.recorded,
        },
        places=Places(str(path), rows.lines),
    )
