"""Outputs of a finished UltraEval run, scored again: `instance.jsonl` of its log folder (with `--write_out`).

A line holds `data` (the row), `ground_truth`, `prompt_inputs`, and `raw_outputs`: for GEN the texts, for PPL the token
log-probabilities of each option, without those of the first token. The model, the sampling parameters and the texts of
the tokens are not recorded. `config.json` beside it names the task's metric and postprocessing: upstream's runs write
`metric` (tasks/eval_task.py, `finish`), the files of its leaderboard say `metrics`.
"""

from __future__ import annotations

import hashlib
import math
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import chain
from operator import or_
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from pydantic import ValidationError

from helm_ext.errors import DatasetError, DatasetSchemaError, Location, Problem, RunEntryError, raise_for, show
from helm_ext.evalset import STATUSES, EvalSet, Places, Recorded, RecordedState, row_extra
from helm_ext.evalset.rows import StoredRows, Unrecorded, find_unrecorded
from helm_ext.files import LineSource, canonical_json, is_finite, read_json
from helm_ext.files.store import RowStore
from helm_ext.formats.ultraeval.checkout import open_checkout
from helm_ext.formats.ultraeval.config import Method, Metric, Options, RunConfig, Sampling, to_problems
from helm_ext.formats.ultraeval.questions import (
    check_options,
    iter_objects,
    no_rows,
    read_rows,
    to_adapter_spec,
    to_gen_instance,
    to_ppl_instance,
)
from helm_ext.formats.ultraeval.scoring import (
    TaskFacts,
    make_digest,
    parse_metric_argument,
    read_metrics,
    require_allowed,
    require_scores,
)
from helm_ext.formats.ultraeval.task import FULL_NAME

if TYPE_CHECKING:
    from helm.benchmark.scenarios.scenario import Instance

KEYS = {"data", "ground_truth", "prompt_inputs", "raw_outputs"}


_SAID_INSTEAD = {"metric": {"metric", "metrics"}, "postprocess": {"task_postprocess", "model_postprocess"}}
"""Arguments, and the keys of `config.json` in whose place they stand."""


def _read_config(path: Path, options: Options) -> RunConfig:
    """Return what `config.json` beside a log says; nothing where there is none. Raises DatasetError."""
    content = read_json(path) if path.is_file() else {}
    for name, keys in _SAID_INSTEAD.items():
        if getattr(options, name) is not None and isinstance(content, dict):
            content = {key: value for key, value in content.items() if key not in keys}
    try:
        return RunConfig.model_validate(content)
    except ValidationError as error:
        hint = "UltraEval wrote it beside the outputs; metric=NAME and postprocess=NAME say it in its place"
        raise DatasetSchemaError(to_problems(error, path, hint=hint, code="config")) from None


def _require_metrics(config: RunConfig, path: Path) -> Mapping[str, Metric]:
    """Return the run's metrics. Raises DatasetSchemaError where they are not known: no other will do."""
    if config.metrics:
        return config.metrics
    message = "names no metric" if path.is_file() else "no such file: how the run was scored is not known"
    hint = "metric=NAME says how to score; or put the config.json that UltraEval wrote with the outputs beside them"
    place = Location(str(path), field="metric" if path.is_file() else "")
    raise DatasetSchemaError.at(place, message, hint, code="no-metric")


_OTHER_LINE = "not a line of instance.jsonl"


def _check_row(row: Mapping[str, Any], place: Location) -> None:
    prompts, outputs = row.get("prompt_inputs"), row.get("raw_outputs")
    checks = {
        "data": isinstance(row.get("data"), dict),
        "prompt_inputs": isinstance(prompts, list) and all(isinstance(text, str) for text in prompts),
        "raw_outputs": isinstance(outputs, list),
    }
    if checks["data"] and not is_finite(row["data"]):  # HELM's page, which is shown the row, reads strict JSON
        message, hint = "NaN or Infinity, which are not JSON", "write a number or null; `raw_outputs` may hold them"
        raise DatasetSchemaError.at(place.at("data"), message, hint, code="not-json")
    raise_for([
        DatasetSchemaError.problem_at(place.at(key), f"{_OTHER_LINE}: {show(row.get(key))}", code="run-log")
        for key, good in checks.items() if not good
    ])  # fmt: skip


def _gen(index: int, row: Mapping[str, Any], place: Location, *, needs_row: bool) -> Instance:
    truth: Any = row.get("ground_truth")
    texts, prompts = row["raw_outputs"], row["prompt_inputs"]
    golds = [truth] if isinstance(truth, str) else truth
    if not isinstance(golds, list) or not golds or not all(isinstance(text, str) for text in golds):
        message = f"expected a string or a list of strings, got {show(truth)}"
        raise DatasetSchemaError.at(place.at("ground_truth"), message, code="run-log")
    if not all(isinstance(text, str) for text in texts):
        raise DatasetSchemaError.at(place.at("raw_outputs"), f"expected texts, got {show(texts)}", code="run-log")
    prompt = prompts[0] if prompts else ""
    instance = to_gen_instance(index, ("", prompt), truth, sampling=Sampling(), row=row["data"] if needs_row else None)
    completions = [{"text": text} for text in texts]
    return _with_recording(instance, [_state({"prompt": prompt}, completions)] if texts else [])


def _ppl(index: int, row: Mapping[str, Any], place: Location) -> Instance:
    options: dict[str, float] = row["data"]["target_scores"]
    prompt = row["prompt_inputs"][0] if row["prompt_inputs"] else ""
    instance = to_ppl_instance(index, ("", prompt), options)
    if not row["raw_outputs"]:
        return _with_recording(instance, [])
    lists = row["raw_outputs"][0]
    if isinstance(lists, list) and len(lists) == 1 and len(options) > 1:  # several workers: one more level
        lists = lists[0]
    if not isinstance(lists, list) or len(lists) != len(options) or not all(_is_numbers(values) for values in lists):
        message = f"expected the log-probabilities of {len(options)} options, got {show(lists)}"
        raise DatasetSchemaError.at(place.at("raw_outputs"), message, code="run-log")
    states = []
    for position, (option, values) in enumerate(zip(options, lists, strict=True)):
        # Upstream records nothing for the first token, and no token's text.
        tokens = [{"text": "", "logprob": value} for value in [0.0, *values]]
        whole = prompt + option
        state = _state({"prompt": whole, "max_tokens": 0, "echo_prompt": True}, [{"text": whole, "tokens": tokens}])
        states.append(RecordedState(**state, reference_index=position, request_mode="original"))
    return _with_recording(instance, states)


def _is_numbers(values: Any) -> bool:
    return isinstance(values, list) and all(
        isinstance(value, int | float) and not isinstance(value, bool) and value != math.inf for value in values
    )


def _state(request: dict[str, Any], completions: list[dict[str, Any]]) -> RecordedState:
    return RecordedState(result={"success": True, "completions": completions}, request=request)


def _with_recording(instance: Instance, states: list[RecordedState]) -> Instance:
    row_extra(instance)["recorded"] = Recorded(status="ok" if states else "not_run", states=states)
    return instance


KEPT_ROWS = 1_000
"""Logs of up to this many rows are kept in memory: an instance takes 50 kB where the options of PPL are long."""


@dataclass(frozen=True)
class LogRows:
    """A log, read once."""

    sha256: str
    """Of the bytes on disk, lower-case hex."""
    question_sha256: str
    """Of the log without its outputs: logs of several models agree in it."""
    lines: Sequence[int]
    """Line number of each row, from 1."""
    instances: Sequence[Instance]
    """Those up to the limit."""
    recorded: int
    """How many of them have outputs."""


def read_log_rows(path: Path, method: Method, *, needs_row: bool, limit: int | None) -> LogRows:
    """Read and check a log. Raises DatasetError with every line of another shape; `limit` leaves out none of those."""
    broken: list[Problem] = []
    problems: list[Problem] = []
    asked = hashlib.sha256()
    lines, statuses, unrecorded = array("q"), bytearray(), bytearray()
    store = RowStore(tuple[int, dict[str, Any]], KEPT_ROWS)
    with LineSource(path) as source:
        for line, row in iter_objects(source, path, broken, allow_nan=True):
            lines.append(line)
            try:
                made = _make(path, method, (line, row), len(lines) - 1, needs_row=needs_row)
            except DatasetError as error:
                problems += error.problems
                continue
            asked.update(canonical_json([row.get(key) for key in sorted(KEYS - {"raw_outputs"})]) + b"\n")
            if limit is None or len(statuses) < limit:
                recorded = row_extra(made)["recorded"]
                statuses.append(STATUSES.index(recorded["status"]))
                lacks = int(reduce(or_, map(find_unrecorded, recorded["states"]), 0))
                # The log-probabilities of options are the metric's own.
                unrecorded.append(lacks if method == "gen" else lacks & ~Unrecorded.LOGPROBS)
                store.add((line, row))
        digest = source.digest
    if not lines and not broken:
        broken.append(no_rows(path))
    raise_for(broken or problems)
    store.finish()
    nothing, places = np.zeros(len(statuses), np.uint8), np.arange(len(store), dtype=np.uint32)
    rows = StoredRows(
        store=store,
        make=partial(_make, path, method, needs_row=needs_row),
        numbers=places,
        told=(places,),
        splits=("test",),
        split=nothing,
        only=nothing,
        status=np.frombuffer(statuses, np.uint8),
        unrecorded=np.frombuffer(unrecorded, np.uint8),
    )
    instances = rows if store.kept is None else list(rows)
    return LogRows(digest, asked.hexdigest(), lines, instances, statuses.count(0))


def _make(path: Path, method: Method, stored: Sequence[Any], place: int, *, needs_row: bool) -> Instance:
    """Return the instance of a line and its row, with its recording. Raises DatasetError with what is wrong with it."""
    line, row = stored
    location = Location(str(path), line)
    _check_row(row, location)
    if method == "gen":
        return _gen(place, row, location, needs_row=needs_row)
    raise_for(check_options(row["data"], str(path), line))
    return _ppl(place, row, location)


class Log(NamedTuple):
    """A file with the outputs of a finished run."""

    path: Path
    method: Method | None
    """PPL where numbers were recorded, GEN where texts were; None where nothing was."""


def find_log(options: Options) -> Log | None:
    """Return the log that `data=` names without a script; None for any other task. Raises DatasetError."""
    path = options.data
    if path is None or options.transform is not None or not path.is_file():
        return None
    problems: list[Problem] = []
    with LineSource(path) as source:
        # Upstream writes the log-probabilities as they came, NaN and -Infinity among them.
        rows = (row for _, row in iter_objects(source, path, problems, allow_nan=True))
        first = next(rows, None)
        if first is not None and not problems:
            if not first.keys() >= KEYS:
                return None
            outputs = (row.get("raw_outputs") for row in chain((first,), rows))
            found = next((one for one in outputs if isinstance(one, list) and one), None)
            return Log(path, None if found is None else "gen" if isinstance(found[0], str) else "ppl")
    read_rows(path, allow_nan=True)  # which raises, with all problems
    return None


def check_log(log: Log, options: Options, *, execute: bool) -> tuple[list[Problem], dict[str, int]]:
    """Return every problem of a finished run and its counts; no metric is computed, so no code is run."""
    try:
        evalset = load_log(log, replace(options, allow_code=True), execute=execute)
    except DatasetError as error:
        with LineSource(log.path) as source:
            return list(error.problems), {"rows": sum(1 for _ in iter_objects(source, log.path, [], allow_nan=True))}
    counts = evalset.counts
    problems = list(evalset.warnings)
    if counts["not_run"]:
        message = f"{counts['not_run']} of {counts['eval']} rows were not run; a recorded run refuses the file"
        hint = "missing=skip scores the rest and reports how many were left out" if counts["recorded"] else ""
        problems.append(Problem.warning(log.path, message, hint, code="not-run"))
    return problems, counts


def load_log(log: Log, options: Options, *, execute: bool = True) -> EvalSet:
    """Return a finished UltraEval run with its outputs as recordings; import no postprocessing unless `execute`."""
    path, kind = log.path, log.method or ("ppl" if options.method == "ppl" else "gen")
    if options.method not in (None, kind):
        raise RunEntryError(f"method={options.method}: {path} holds the outputs of a {kind} run")
    beside = path.parent / "config.json"
    said = _read_config(beside, options)
    post = options.postprocess if options.postprocess is not None else said.postprocess(kind)
    metrics = (
        parse_metric_argument(options.metric, kind, post)
        if options.metric is not None
        else read_metrics(_require_metrics(said, beside), kind, post, str(beside))
    )
    require_allowed(metrics, allow_code=options.allow_code)
    checkout = open_checkout(options.root, path)
    used = require_scores(kind, metrics, post, checkout, execute=execute)
    rows = read_log_rows(path, kind, needs_row=metrics.need_row, limit=options.limit)
    title, folder = options.dataset_name, path.resolve().parent.name
    if title is None:
        full = (name for name in (folder, said.task_name) if FULL_NAME.fullmatch(name))
        title = next(full, f"{folder}_{path.stem}_{kind}")
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
