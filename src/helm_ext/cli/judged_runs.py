"""Runs with more judgements on their rows, written as runs that are scored again are."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from helm_ext.analysis.row_stats import RowKey, row_key
from helm_ext.analysis.run_files import RunFiles
from helm_ext.cli.output import echo
from helm_ext.cli.request_runs import Settings
from helm_ext.cli.score import score_one
from helm_ext.cli.session import helm_output_to_stderr
from helm_ext.errors import DatasetNotFoundError, HelmExtError
from helm_ext.evalset import EXTRA_KEY
from helm_ext.files.writing import open_part
from helm_ext.judging.judgement import Judgement
from helm_ext.planning import RUN_ARGUMENTS

__all__ = ["Judged", "add_judgements", "require_run", "write_judged"]

Judged = Mapping[RowKey, Sequence[Judgement]]
"""What was said of each row."""

_KEY = "judgements"
_FOLDER = "judged"
"""Of HELM's output folder: the files that judged runs are scored from."""


def add_judgements(folder: Path, judged: Judged, output_path: Path, suite: str, local_path: Path) -> Path:
    """Write a run with more judgements, score it, and return its folder.

    An earlier judgement of the same answer and criterion by the same judge is replaced. Raises HelmExtError.
    """
    run = RunFiles(folder)
    model = str(run.adapter_spec.get("model", "")).removeprefix("recorded/")
    target = _find_target(run, output_path, model)
    seen = set()
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with open_part(target) as part:
            head = {"name": run.scenario_name, "adapter_spec": run.adapter_spec}
            part.file.write(orjson.dumps(head)[:-1] + b',"request_states":[\n')
            for number, state in enumerate(run.iter_states()):
                key = _key_of(state)
                if key not in seen and key in judged:
                    extra, new = _extra_of(state), [one.to_json() for one in judged[key]]
                    again = {_who(one) for one in new}
                    extra[_KEY] = [one for one in extra.get(_KEY) or () if _who(one) not in again] + new
                seen.add(key)
                part.file.write((b",\n" if number else b"") + orjson.dumps(state))
            part.file.write(b"\n]}\n")
            part.replace()
    except OSError as error:
        raise HelmExtError(f"{target}: cannot be written: {error.strerror}") from error
    written, _ = score_one(target, "adapter_spec", {}, model, output_path, suite, local_path)
    return written


def require_run(folder: Path) -> None:
    """Raise DatasetNotFoundError unless a finished run is there."""
    if not (folder / "scenario_state.json").exists():
        raise DatasetNotFoundError(f"{folder}: no finished run\n  hint: a folder below benchmark_output/runs/SUITE")


def write_judged(run: Path, judged: Judged, settings: Settings) -> None:
    """Write a run with more judgements, and say where. Raises HelmExtError."""
    with helm_output_to_stderr():
        folder = add_judgements(run, judged, settings.output_path, settings.suite, settings.local_path)
    echo(f"written to {folder}")


def _find_target(run: RunFiles, output_path: Path, model: str) -> Path:
    """Return the file that the judged run is scored from: the one that it was scored from before, if it was.

    One file for a dataset and model: so that a later judgement makes the earlier run of the file a stale one.
    """
    folder = output_path / _FOLDER
    told = (one.get("args") or {} for one in run.run_spec["metric_specs"] if one["class_name"] == RUN_ARGUMENTS)
    before = Path(str(next(told, {}).get("path", "")))
    if before.parent == folder:
        return before
    return folder / (re.sub(r"[^\w.-]+", "_", f"{run.scenario_name}-{model}") + ".json")


def _extra_of(state: dict[str, Any]) -> dict[str, Any]:
    """Return what is ours of a request state's row, where it can be added to."""
    instance = state["instance"]
    instance["extra_data"] = instance.get("extra_data") or {}
    extra: dict[str, Any] = instance["extra_data"].setdefault(EXTRA_KEY, {})
    return extra


def _key_of(state: dict[str, Any]) -> RowKey:
    instance = state["instance"]
    return row_key(instance["id"], instance.get("perturbation"), state["train_trial_index"])


def _who(judgement: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return what a judge says once."""
    return tuple(judgement.get(name) for name in ("criterion", "kind", "by", "order", "completion", "other"))
