"""The three files that HELM's web pages read of a run, made row by row.

HELM reads `scenario_state.json` and `per_instance_stats.json` whole, turns every element into dataclasses and back,
and holds all of it. Here one element is in memory at a time; what a page shows of a row's stats is kept, no more.
The files are those of `helm.benchmark.presentation.run_display.write_run_display_json`, which is restated below;
tests/contract/test_runner_sources.py fails when HELM changes it.
"""

from __future__ import annotations

import re
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
import orjson
from helm.benchmark.adaptation.adapter_spec import (
    ADAPT_LANGUAGE_MODELING,
    ADAPT_MULTIPLE_CHOICE_SEPARATE_CALIBRATED,
    ADAPT_MULTIPLE_CHOICE_SEPARATE_METHODS,
)
from helm.benchmark.augmentations.perturbation_description import PerturbationDescription
from helm.benchmark.presentation.run_display import _get_metric_names_for_groups
from helm.benchmark.scenarios.scenario import Instance
from helm.common.codec import _converter, from_json
from helm.common.hierarchical_logger import hlog
from helm.common.images_utils import encode_base64
from helm.common.multimodal_request_utils import gather_generated_image_locations
from helm.common.request import Request, RequestResult

from helm_ext.analysis.json_arrays import BytesRead, read_array
from helm_ext.evalset import row_extra
from helm_ext.files.writing import staged
from helm_ext.running.serialise import ArrayWriter
from helm_ext.scoring.bounded import limit_pattern

if TYPE_CHECKING:
    from collections.abc import Iterator

    from helm.benchmark.presentation.schema import Schema
    from helm.benchmark.run_spec import RunSpec


DISPLAY_FILES = ("instances.json", "display_predictions.json", "display_requests.json")
_READ_FILES = ("scenario_state.json", "per_instance_stats.json")

JSONObject = dict[str, Any]
Stats = dict[str, float]
T = TypeVar("T")


# HELM reads JSON into dataclasses and writes them again


def read_as_helm(cls: type[T], value: JSONObject) -> T:
    """Return the dataclass that HELM makes of JSON: unknown keys go, missing ones get their defaults.

    Plain equivalent: the last line. Saves 12 µs a row, a fifth of what helm-summarize takes for one. Held equal by
    tests/unit/running/test_display.py, which compares the files with those of HELM.
    """
    if not value.get("perturbation"):  # of a class that its name tells
        with suppress(msgspec.ValidationError):  # HELM converts what is not of a field's type
            return msgspec.convert(value, cls)
    return _converter.structure(value, cls)


def _write_perturbation(value: JSONObject | None) -> tuple[bytes | None, JSONObject | None]:
    """Return a text that stands for a perturbation as a key, and the perturbation as HELM writes it."""
    return (None, None) if value is None else _write_known_perturbation(orjson.dumps(value))


@lru_cache(maxsize=1024)
def _write_known_perturbation(raw: bytes) -> tuple[bytes, JSONObject]:
    written = _converter.unstructure(_converter.structure(orjson.loads(raw), PerturbationDescription))
    return orjson.dumps(written), written


# The stats of a row that a page shows


class _ShownStats:
    """Means of the stats of the run's groups, by (instance id, perturbation, trial). Equal ones are one object."""

    SHARED = 10_000

    def __init__(self, names: set[str]) -> None:
        self._names = names
        self._by_row: dict[tuple[str, bytes | None, int], Stats] = {}
        self._shared: dict[tuple[tuple[str, float], ...], Stats] = {}

    def read(self, path: Path, read: BytesRead) -> None:
        """Keep those of a run."""
        names = self._names
        for row in read_array(path, None, read):
            means = {
                stat["name"]["name"]: float(stat["mean"])
                for stat in row["stats"]
                if stat["name"]["name"] in names and stat.get("mean") is not None
            }
            perturbation, _ = _write_perturbation(row.get("perturbation"))
            key = (str(row["instance_id"]), perturbation, int(row["train_trial_index"]))
            earlier = self._by_row.get(key)
            self._by_row[key] = self._share(means if earlier is None else {**earlier, **means})

    def _share(self, means: Stats) -> Stats:
        key = tuple(means.items())
        if len(self._shared) < self.SHARED:
            return self._shared.setdefault(key, means)
        return self._shared.get(key, means)

    def get(self, instance_id: str, perturbation: bytes | None, trial: int) -> Stats:
        return self._by_row.get((instance_id, perturbation, trial), {})


# The files


def find_bytes_to_read(run_path: Path) -> int:
    """Return how many bytes `write_display_files` reads of a run."""
    return sum(path.stat().st_size for path in map(run_path.joinpath, _READ_FILES) if path.exists())


def write_display_files(
    run_path: Path, run_spec: RunSpec, schema: Schema, *, skip_completed: bool, read: BytesRead | None = None
) -> None:
    """Write `instances.json`, `display_predictions.json` and `display_requests.json` of a run.

    `read` is added to while the run is read.
    """
    read = BytesRead() if read is None else read
    state_path, stats_path = map(run_path.joinpath, _READ_FILES)
    if skip_completed and all((run_path / name).exists() for name in DISPLAY_FILES):
        hlog(f"Skipping writing display JSON for run {run_spec.name} because they are all there already.")
        return
    for path, what in ((state_path, "scenario state"), (stats_path, "per instance stats")):
        if not path.exists():
            hlog(
                f"Skipping writing display JSON for run {run_spec.name} because the {what} JSON file does not exist "
                f"at {path}"
            )
            return

    names = _get_metric_names_for_groups(run_spec.groups, schema)
    if run_spec.adapter_spec.method in ADAPT_MULTIPLE_CHOICE_SEPARATE_METHODS:
        names.add("predicted_index")
    stats = _ShownStats(names)
    stats.read(stats_path, read)
    rows = _DisplayRows(run_spec, stats)
    with staged(run_path) as files, ExitStack() as stack:
        outputs = [ArrayWriter(stack.enter_context(files.open(name))) for name in DISPLAY_FILES]
        for row in rows.make(read_array(state_path, "request_states", read)):
            for output, item in zip(outputs, row, strict=True):
                if item is not None:
                    output.add(item)
        for output in outputs:
            output.close()


# The request states that are shown


class _DisplayRows:
    """What HELM shows of each request state."""

    def __init__(self, run_spec: RunSpec, stats: _ShownStats) -> None:
        self._adapter_spec = run_spec.adapter_spec
        self._stats = stats

    def make(self, states: Iterator[JSONObject]) -> Iterator[tuple[Instance | None, JSONObject, JSONObject]]:
        """Yield (instance if new, prediction, request) of those that HELM shows."""
        separate = self._adapter_spec.method in ADAPT_MULTIPLE_CHOICE_SEPARATE_METHODS
        calibrated = self._adapter_spec.method == ADAPT_MULTIPLE_CHOICE_SEPARATE_CALIBRATED
        written: set[tuple[str, bytes | None]] = set()
        for state in states:
            if state.get("result") is None or (calibrated and state.get("request_mode") == "calibration"):
                continue
            instance_id, trial = str(state["instance"]["id"]), int(state["train_trial_index"])
            key, perturbation = _write_perturbation(state["instance"].get("perturbation"))
            stats = self._stats.get(instance_id, key, trial)
            reference_index = state.get("reference_index")
            if separate and "predicted_index" in stats and stats["predicted_index"] != reference_index:
                continue
            about: JSONObject = {"instance_id": instance_id}
            if perturbation is not None:
                about["perturbation"] = perturbation
            about["train_trial_index"] = trial
            is_new = (instance_id, key) not in written
            written.add((instance_id, key))
            yield (
                with_letters(read_as_helm(Instance, state["instance"]), state) if is_new else None,
                {**about, **self._predict(state, reference_index, stats)},
                {**about, "request": read_as_helm(Request, state["request"])},
            )

    def _predict(self, state: JSONObject, reference_index: int | None, stats: Stats) -> JSONObject:
        completion = state["result"]["completions"][0]
        text: str = completion["text"]
        mapped = show_read(state) or self._map(text, state.get("output_mapping"))
        images: list[str] = []
        if completion.get("multimodal_content") is not None:
            result = from_json(orjson.dumps(state["result"]), RequestResult)
            content = result.completions[0].multimodal_content
            if content and content.text:
                text = f"{content.text} {text}"
            images = [
                encode_base64(location)
                for location in gather_generated_image_locations(result)
                if Path(location).exists()
            ]
        shown = {
            "predicted_text": text,
            "truncated_predicted_text": self._truncate(text, state),
            "base64_images": images,
            "mapped_output": mapped,
            "reference_index": reference_index,
            "stats": stats,
            "annotations": state.get("annotations"),
            "thinking_text": (completion.get("thinking") or {}).get("text"),
        }
        return {name: value for name, value in shown.items() if value is not None}

    def _map(self, text: str, mapping: dict[str, str] | None) -> str | None:
        if mapping is None:
            return None
        text = text.strip()
        if self._adapter_spec.output_mapping_pattern:
            with limit_pattern(self._adapter_spec.output_mapping_pattern, text):
                match = re.search(self._adapter_spec.output_mapping_pattern, text)
            text = "" if not match else match.group(1) if match.groups() else match.group(0)
        return mapping.get(text)

    def _truncate(self, text: str, state: JSONObject) -> str | None:
        """Restate `_truncate_predicted_text`: take the question off an echoed prompt."""
        prefix = ""
        if self._adapter_spec.method in ADAPT_MULTIPLE_CHOICE_SEPARATE_METHODS:
            prefix = state["instance"]["input"].get("text", "")
        elif self._adapter_spec.method == ADAPT_LANGUAGE_MODELING:
            tokens = state["result"]["completions"][0]["tokens"]
            prefix = tokens[0]["text"] if tokens else ""
        return text[len(prefix) :] if prefix and text.startswith(prefix) else None


# Rows with options that are ours. HELM's page lists references without letters, and has a "mapped output" only for a
# completion that is nothing but a label. HELM's own runs are shown as HELM shows them.


def show_read(state: JSONObject) -> str | None:
    """Return what a completion was read as: `B. Mercury`, or `unmapped`; None for what we do not read as an option."""
    answer = (state.get("annotations") or {}).get("answer")
    if not isinstance(answer, dict) or "read_as" not in answer:
        return None
    return f"{answer['read_as']}. {answer['option']}" if answer.get("option") else str(answer["read_as"])


def with_letters(instance: Instance, state: JSONObject) -> Instance:
    """Return the instance of a state with labels before its references, if its completion is read as an option."""
    if show_read(state) is None:
        return instance
    labels = row_extra(instance).get("labels") or state.get("output_mapping") or {}
    left = list(labels.items())
    references = []
    for reference in instance.references:
        text = reference.output.text
        found = next((one for one in left if one[1] == text), None)
        if found is not None:
            left.remove(found)
            reference = replace(reference, output=replace(reference.output, text=f"{found[0]}. {text}"))  # noqa: PLW2901
        references.append(reference)
    return replace(instance, references=references)
