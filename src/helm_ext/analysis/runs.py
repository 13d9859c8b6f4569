"""The files of one finished run, and its rows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from helm_ext.analysis.json_arrays import StatsIndex, read_array
from helm_ext.analysis.predictions import Prediction, make_reader, read_predictions
from helm_ext.errors import DatasetSyntaxError, HelmExtError
from helm_ext.evalset import DECODING_NUMBERS

RUN_FILES = ("run_spec.json", "scenario.json", "scenario_state.json", "stats.json", "per_instance_stats.json")
"""A run is finished when all of them are there (helm.benchmark.runner.Runner._is_run_completed)."""

JSONObject = dict[str, Any]

_BROKEN = (ValueError, KeyError, TypeError, AttributeError, IndexError, OSError)
"""What reading raises where a file is not as HELM writes it."""


class RunFiles:
    """A finished run of any HELM scenario. Its rows are read when they are asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def name(self) -> str:
        """The run's name, as HELM gave it: that of its folder."""
        return str(self.run_spec["name"])

    @cached_property
    def suite(self) -> str:
        """The suite: the folder that the run's folder is in."""
        return self.folder.resolve().parent.name

    @cached_property
    def run_spec(self) -> JSONObject:
        """HELM's `run_spec.json`."""
        spec = self._load("run_spec.json")
        kinds = {"name": str, "scenario_spec": dict, "adapter_spec": dict, "metric_specs": list}
        wrong = [key for key, kind in kinds.items() if not isinstance(spec, dict) or type(spec.get(key)) is not kind]
        if wrong:
            raise self._broken("run_spec.json", f"no run spec of HELM's: without {', '.join(wrong)}")
        if not all(isinstance(one, dict) and isinstance(one.get("class_name"), str) for one in spec["metric_specs"]):
            raise self._broken("run_spec.json", "no run spec of HELM's: a metric has no class_name")
        return spec

    @cached_property
    def scenario(self) -> JSONObject:
        """HELM's `scenario.json`."""
        return self._load("scenario.json")

    @cached_property
    def stats(self) -> list[JSONObject]:
        """HELM's `stats.json`: what the rows add up to."""
        return self._load("stats.json")

    def read_means(self, split: str | None) -> dict[str, float]:
        """Return the means of a split's unperturbed rows by name, those of all its sub-splits together."""
        return {
            stat["name"]["name"]: stat["mean"]
            for stat in self.stats
            if stat["name"].get("split") == split
            and not {"perturbation", "sub_split"} & stat["name"].keys()
            and stat.get("mean") is not None
        }

    @cached_property
    def row_stats(self) -> StatsIndex:
        """The stats of each row. The file is read once, for an index of it."""
        with self.blaming("per_instance_stats.json"):
            return StatsIndex(self.folder / "per_instance_stats.json")

    @property
    def adapter_spec(self) -> JSONObject:
        """HELM's AdapterSpec."""
        spec: JSONObject = self.run_spec["adapter_spec"]
        return spec

    @property
    def scenario_arguments(self) -> JSONObject:
        """What HELM makes the scenario of."""
        return self.run_spec["scenario_spec"].get("args") or {}

    @property
    def scenario_name(self) -> str:
        """The scenario's name; that of its class where it has none."""
        return str(self.scenario.get("name") or self.run_spec["scenario_spec"]["class_name"].rpartition(".")[2])

    @property
    def model(self) -> str:
        """The model, as reports name it: a recorded one without `recorded/`."""
        spec = self.adapter_spec
        return str(spec.get("model") or spec.get("model_deployment") or "").removeprefix("recorded/")

    @cached_property
    def metric_arguments(self) -> JSONObject:
        """The arguments of our metric, `helm_ext.scoring.metrics.EvalSetMetric`; {} in a run of HELM's own."""
        ours = [m for m in self.run_spec["metric_specs"] if m["class_name"].startswith("helm_ext.")]
        return dict(next((m["args"] for m in ours if "metrics" in (m.get("args") or {})), {}))

    @property
    def source_scores(self) -> dict[str, JSONObject]:
        """The scores that a source gave, by their names, as `Source.to_args` has them; {} where there is none."""
        return (self.metric_arguments.get("source") or {}).get("scores") or {}

    @property
    def judged(self) -> dict[str, JSONObject]:
        """`EvalSet.judged`: by criterion, who judged the answers."""
        return self.metric_arguments.get("judged") or {}

    @property
    def decoding(self) -> dict[str, float | None]:
        """What the answers were decoded with: `temperature`, `max_tokens`. None: recorded answers do not say it.

        The `adapter_spec` of their run has numbers all the same, for HELM's class must.
        """
        said = {name: self.adapter_spec[name] for name in DECODING_NUMBERS if name in self.adapter_spec}
        is_recorded = str(self.adapter_spec.get("model_deployment", "")).startswith("recorded/")
        return {**said, **(self.metric_arguments.get("recorded_decoding") or {})} if is_recorded else said

    @property
    def is_ours(self) -> bool:
        """Whether the run is of a dataset that helm-ext read."""
        has_our_metric = any(one["class_name"].startswith("helm_ext.") for one in self.run_spec["metric_specs"])
        return has_our_metric and "main_metric" in self.scenario_arguments

    def iter_states(self) -> Iterator[JSONObject]:
        """Yield the request states as HELM wrote them, one in memory at a time. Raises DatasetError."""
        with self.blaming("scenario_state.json"):
            yield from read_array(self.folder / "scenario_state.json", "request_states")

    def predictions(self) -> Iterator[Prediction]:
        """Yield the rows, in the order of `scenario_state.json`. Raises DatasetError for files that are broken."""
        reader = make_reader(self.run_spec)
        stats = self.row_stats
        rows = read_predictions(self.folder / "scenario_state.json", stats, reader, keeps_zero=self.is_ours)
        try:
            with self.blaming("scenario_state.json"):
                yield from rows
        finally:
            stats.close()

    @contextmanager
    def blaming(self, name: str) -> Iterator[None]:
        """Raise DatasetSyntaxError that names this file of the run, where what was read of it is of a wrong shape."""
        try:
            yield
        except HelmExtError:
            raise
        except _BROKEN as error:
            raise self._broken(name, error) from error

    def _load(self, name: str) -> Any:
        try:
            return json.loads((self.folder / name).read_bytes())
        except (ValueError, OSError) as error:
            raise self._broken(name, error) from error

    def _broken(self, name: str, error: Exception | str) -> DatasetSyntaxError:
        path, message = str(self.folder / name), error
        if isinstance(error, OSError):
            message = f"cannot be read: {error.strerror}"
        elif isinstance(error, Exception):
            said = f"without {error}" if isinstance(error, KeyError) else str(error).removeprefix(f"{path}: ")[:80]
            message = f"not as HELM writes it: {said}"
        return DatasetSyntaxError.at(path, str(message), "run it again", code="broken-run")
