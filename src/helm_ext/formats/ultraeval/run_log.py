"""Outputs of a finished UltraEval run, scored again: `instance.jsonl` of its log folder (with `--write_out`).

A line holds `data` (the row), `ground_truth`, `prompt_inputs`, and `raw_outputs`: for GEN the texts, for PPL the token
log-probabilities of each option, without those of the first token. The model, the sampling parameters and the texts of
the tokens are not recorded. `config.json` beside it names the task's metric and postprocessing: upstream's runs write
`metric` (tasks/eval_task.py, `finish`), the files of its leaderboard say `metrics`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter, ValidationError

from helm_ext.errors import DatasetSchemaError, Location, Problem, show
from helm_ext.evalset import Recorded, RecordedState, row_extra
from helm_ext.files import is_finite, read_json
from helm_ext.formats.ultraeval.config import Metric
from helm_ext.formats.ultraeval.lowering import check_options, to_gen_instance, to_ppl_instance
from helm_ext.formats.ultraeval.sampling import Sampling
from helm_ext.formats.ultraeval.task import FULL_NAME
from helm_ext.formats.ultraeval.task_files import Method

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from helm.benchmark.scenarios.scenario import Instance

KEYS = {"data", "ground_truth", "prompt_inputs", "raw_outputs"}


@dataclass(frozen=True)
class RunLog:
    """What the log's `config.json` says."""

    path: Path
    """The file, there or not."""
    metrics: Mapping[str, Metric] = field(default_factory=dict)
    task_name: str = ""
    task_postprocess: str = ""
    model_postprocess: str = ""
    """Upstream's `--postprocess`, of which PPL has two: the sum or the mean."""

    def postprocess(self, method: Method) -> str:
        """Return what made answers of the outputs. For PPL the task's, if any, replaces the model's, as upstream."""
        return self.task_postprocess or (self.model_postprocess if method == "ppl" else "")

    def require_metrics(self) -> Mapping[str, Metric]:
        """Return the run's metrics. Raises DatasetSchemaError where they are not known: no other will do."""
        if self.metrics:
            return self.metrics
        message = "names no metric" if self.path.is_file() else "no such file: how the run was scored is not known"
        hint = "metric=NAME says how to score; or put the config.json that UltraEval wrote with the outputs beside them"
        place = Location(str(self.path), field="metric" if self.path.is_file() else "")
        raise DatasetSchemaError.at(place, message, hint, code="no-metric")


def is_run_log(row: Mapping[str, Any]) -> bool:
    """Whether a row is a line of `instance.jsonl`."""
    return row.keys() >= KEYS


def read_run_log_config(path: Path) -> RunLog:
    """Return what `config.json` beside `instance.jsonl` says; nothing where there is none. Raises DatasetError."""
    beside = path.parent / "config.json"
    content = read_json(beside) if beside.is_file() else {}
    if not isinstance(content, dict):
        message, hint = f"expected an object, got {show(content)}", "the config.json that UltraEval wrote beside them"
        raise DatasetSchemaError.at(beside, message, hint, code="config")
    key = "metric" if "metric" in content else "metrics"
    try:
        metrics = TypeAdapter(dict[str, Metric]).validate_python(content.get(key) or {})
    except ValidationError:
        place = Location(str(beside), field=key)
        hint = "metric=NAME says how to score, in its place"
        raise DatasetSchemaError.at(place, "not the metrics of an UltraEval run", hint, code="config") from None
    name = content.get("task_name") or content.get("dataset_name") or ""
    posts = {key: str(content.get(key) or "") for key in ("task_postprocess", "model_postprocess")}
    return RunLog(beside, metrics, str(name), **posts)


def name_of(path: Path, method: str, said: RunLog) -> str:
    """Return the task's full name: that of the log's folder, else the config's, else made of the file's."""
    folder = path.resolve().parent.name
    full = [name for name in (folder, said.task_name) if FULL_NAME.fullmatch(name)]
    return full[0] if full else f"{folder}_{path.stem}_{method}"


def to_recorded_instance(
    index: int, row: Mapping[str, Any], place: Location, method: Method, *, needs_row: bool
) -> Instance | list[Problem]:
    """Return a row with its recording, or what is wrong with it."""
    found = _check_row(row, place)
    if method == "ppl" and not found:
        found = check_options(row["data"], place.path, place.line or 0)
    if found:
        return found
    made = _gen(index, row, place, needs_row=needs_row) if method == "gen" else _ppl(index, row, place)
    return [made] if isinstance(made, Problem) else made


def _check_row(row: Mapping[str, Any], place: Location) -> list[Problem]:
    prompts, outputs = row.get("prompt_inputs"), row.get("raw_outputs")
    checks = {
        "data": isinstance(row.get("data"), dict),
        "prompt_inputs": isinstance(prompts, list) and all(isinstance(text, str) for text in prompts),
        "raw_outputs": isinstance(outputs, list),
    }
    if checks["data"] and not is_finite(row["data"]):  # HELM's page, which is shown the row, reads strict JSON
        message, hint = "NaN or Infinity, which are not JSON", "write a number or null; `raw_outputs` may hold them"
        at = Location(place.path, place.line, "data")
        return [DatasetSchemaError.problem_at(at, message, hint, code="not-json")]
    return [
        _problem(key, f"not a line of instance.jsonl: {show(row.get(key))}", place)
        for key, good in checks.items()
        if not good
    ]


def _gen(index: int, row: Mapping[str, Any], place: Location, *, needs_row: bool) -> Instance | Problem:
    truth, texts, prompts = row["ground_truth"], row["raw_outputs"], row["prompt_inputs"]
    golds = [truth] if isinstance(truth, str) else truth
    if not isinstance(golds, list) or not golds or not all(isinstance(text, str) for text in golds):
        return _problem("ground_truth", f"expected a string or a list of strings, got {show(truth)}", place)
    if not all(isinstance(text, str) for text in texts):
        return _problem("raw_outputs", f"expected texts, got {show(texts)}", place)
    prompt = prompts[0] if prompts else ""
    instance = to_gen_instance(index, ("", prompt), truth, sampling=Sampling(), row=row["data"] if needs_row else None)
    completions = [{"text": text} for text in texts]
    return _with_recording(instance, [_state({"prompt": prompt}, completions)] if texts else [])


def _ppl(index: int, row: Mapping[str, Any], place: Location) -> Instance | Problem:
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
        return _problem("raw_outputs", message, place)
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


def _problem(key: str, message: str, place: Location) -> Problem:
    return DatasetSchemaError.problem_at(Location(place.path, place.line, key), message, code="run-log")
