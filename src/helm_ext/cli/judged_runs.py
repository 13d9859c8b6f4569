"""Runs with more judgements on their rows, written as runs that are scored again are."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from helm_ext.analysis.json_arrays import RowKey, row_key
from helm_ext.analysis.runs import RunFiles
from helm_ext.analysis.siblings import Sibling, read_sibling
from helm_ext.cli.options import not_written
from helm_ext.cli.output import echo
from helm_ext.cli.score import print_scores, score_files
from helm_ext.cli.session import Settings
from helm_ext.errors import DatasetNotFoundError, RunEntryError
from helm_ext.evalset import EXTRA_KEY
from helm_ext.files import canonical_json
from helm_ext.files.writing import open_part
from helm_ext.judging.judgement import Judgement
from helm_ext.scoring.score import UNCLEAR, judge_stat

Judged = Mapping[RowKey, Sequence[Judgement]]
"""What was said of each row."""

_KEY = "judgements"
_FOLDER = "judged"
"""Of HELM's output folder: the files that judged runs are scored from."""
_LAST = "per_instance_stats.json"
"""The file of a run that is put in place last and taken away first: a killed one may hold the others alone."""


def write_judged(folder: Path, judged: Judged, settings: Settings, main_metric: str | None) -> None:
    """Write a run with more judgements, and score it as `helm-ext score` does.

    A run of the suite that was made so of the same answers, before they had these judgements, goes. A judgement takes
    the place of an earlier one of the same answer and criterion by the same judge. The main metric is what was judged,
    if that is one criterion, of which models spoke, and not only of unclear rows. Raises HelmExtError, also where the
    run that goes has judgements that the new one would lack.
    """
    run = RunFiles(folder)
    model = str(run.adapter_spec.get("model", "")).removeprefix("recorded/")
    name = str((run.run_spec["scenario_spec"].get("args") or {}).get("name") or run.scenario_name)
    # One file for the questions and the model, whatever was judged before: `siblings` knows its versions.
    stem = f"{name}-{model}-{_digest_questions(run)}"
    target = settings.output_path / _FOLDER / (re.sub(r"[^\w.-]+", "_", stem) + ".json")
    runs = settings.output_path / "runs" / settings.suite
    _require_none_lost(runs, target, run, judged)
    seen, by_models = set(), set()
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with open_part(target) as part:
            head = {"name": name, "adapter_spec": run.adapter_spec}
            part.file.write(orjson.dumps(head)[:-1] + b',"request_states":[\n')
            for number, state in enumerate(run.iter_states()):
                key = _key_of(state)
                if key not in seen and key in judged:
                    extra, new = _extra_of(state), [one.to_json() for one in judged[key]]
                    again = {_who(one) for one in new}
                    extra[_KEY] = [one for one in extra.get(_KEY) or () if _who(one) not in again] + new
                seen.add(key)
                said = ((state["instance"].get("extra_data") or {}).get(EXTRA_KEY) or {}).get(_KEY) or ()
                by_models |= {one["criterion"] for one in said if one["kind"] == "model"}
                part.file.write((b",\n" if number else b"") + _encode(state))
            part.file.write(b"\n]}\n")
            part.replace()
    except OSError as error:
        raise not_written(target, error) from error
    before = {path: read_sibling(path) for path in runs.glob("*:*")}
    criteria = {one.criterion for judgements in judged.values() for one in judgements}
    is_main = len(criteria) == 1 and criteria <= by_models - UNCLEAR.keys()  # what is unclear is a part of the rows
    if alone := criteria - by_models:
        echo(f"note: no model judged {', '.join(sorted(alone))}: labels are kept, and are part of no score", err=True)
    main = main_metric or (judge_stat(*criteria) if is_main else None)
    for scored in score_files([target], "adapter_spec", {} if main is None else {"main_metric": main}, model, settings):
        assert scored is not None  # what cannot be scored alone is raised
        identity = _identify(read_sibling(scored.files.folder))
        for path, one in before.items():
            if _identify(one) == identity and path != scored.files.folder:
                (path / _LAST).unlink(missing_ok=True)
                shutil.rmtree(path)
        for said in scored.list_warnings():
            echo(said, err=True)
        print_scores(scored)


def _identify(run: Sibling | None) -> tuple[str, Any] | None:
    """Return what runs of the same answers share, whichever of their metrics is the main one; None for no run."""
    if run is None:
        return None
    name, cap = run.identity
    return re.sub(r",main_metric=[^,]*", "", name), cap


def _require_none_lost(runs: Path, target: Path, run: RunFiles, judged: Judged) -> None:
    """Raise RunEntryError where a run that was scored from `target` has judgements that the new one would lack."""
    told = {(key, _who(one.to_json())) for key, new in judged.items() for one in new}
    told.update(_list_told(run))
    for path in runs.glob("*:*"):
        if read_sibling(path) is None or not (path / _LAST).is_file():
            continue
        there = RunFiles(path)
        if (there.run_spec["scenario_spec"].get("args") or {}).get("path") == str(target):
            lost = sorted({f"{who[0]} by {who[2]}" for key, who in set(_list_told(there)) - told})
            if lost:
                hint = "add to that run: name it (judge in: with --run); or name another --suite"
                raise RunEntryError(f"{path} has judgements that {run.folder} lacks: {', '.join(lost)}\n  hint: {hint}")


def _list_told(run: RunFiles) -> Iterator[tuple[RowKey, tuple[Any, ...]]]:
    """Yield who said something of which row."""
    for state in run.iter_states():
        for one in _extra_of(state).get(_KEY) or ():
            yield _key_of(state), _who(one)


def _digest_questions(run: RunFiles) -> str:
    digest = hashlib.sha256()
    for state in run.iter_states():
        asked = state["instance"]["input"]
        digest.update(canonical_json([_key_of(state), asked.get("text"), asked.get("messages")]))
    return digest.hexdigest()[:6]


def _encode(state: dict[str, Any]) -> bytes:
    try:
        return orjson.dumps(state)
    except TypeError:  # an integer of more than 64 bits
        return json.dumps(state).encode()


def require_run(folder: Path) -> None:
    """Raise DatasetNotFoundError unless a finished run is there."""
    if not (folder / "scenario_state.json").exists():
        raise DatasetNotFoundError(f"{folder}: no finished run\n  hint: a folder below benchmark_output/runs/SUITE")


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
