"""Which stats of a run are scores: not those that describe it (tokens, times, counts), nor what others are made of."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from helm_ext.scoring.registry import find_bounds
from helm_ext.scoring.stat_names import BESIDE, CORRECTED, list_judge_stats

_DESCRIPTIVE = frozenset(
    {
        "batch_size",
        "max_prob",
        "predicted_index",
        "prompt_truncated",
        "training_co2_cost",
        "training_energy_cost",
        "unmapped",
        # Of the completion's own likelihood, whether it is right or wrong
        "bits_per_byte",
        "logprob",
        "logprob_per_byte",
        "perplexity",
    }
)
_DESCRIPTIVE_PREFIXES = ("finish_reason_", "inference_", "num_")
"""Names of HELM's (helm/benchmark/metrics/basic_metrics.py, efficiency_metrics.py), and our `num_left_out`."""


@dataclass(frozen=True)
class ScoreFacts:
    """What is known of a score by its name."""

    display_name: str
    description: str = ""
    lower_is_better: bool | None = None
    """None: nobody says."""
    lowest: float = -math.inf
    highest: float = math.inf


def find_scores(names: Iterable[str]) -> list[str]:
    """Return those of a run's stats that are scores of its rows.

    Where a run has none but those that others are made of (`list_micro_f1` counts over all rows), these are returned.
    """
    parts = _parts()
    found = [name for name in names if not _is_descriptive(name)]
    return [name for name in found if name not in parts] or found


def _is_descriptive(name: str) -> bool:
    return name in _DESCRIPTIVE or name.startswith(_DESCRIPTIVE_PREFIXES) or name.endswith(BESIDE)


def describe_scores(run_spec: dict[str, Any], names: Iterable[str]) -> dict[str, ScoreFacts]:
    """Return what is known of each of these scores: from the run's metrics, our registry, HELM's own schemas.

    Bounds are known of HELM's scores and ours by their names; of any other they are infinite.
    """
    said = _ask_metrics(run_spec["metric_specs"])
    known = _registered()
    facts = {}
    for name in names:
        base, _, _ = name.partition("@")  # `exact_match@5`: the best of five
        own = known.get(base, ScoreFacts(name))
        from_metric = said.get(name) or said.get(base) or {}
        lower = from_metric.get("lower_is_better")
        if lower is None:
            lower = own.lower_is_better if base in known else _from_schemas().get(base)
        facts[name] = replace(
            own,
            display_name=from_metric.get("display_name") or own.display_name,
            description=from_metric.get("description") or own.description,
            lower_is_better=lower,
        )
    return facts


def is_lower_better(run_spec: dict[str, Any], name: str) -> bool:
    """Whether a lower value of this score is better; False where nobody says.

    As `describe_scores` has it, but a run's metrics, which take seconds to import and may ask the network for data, are
    asked for other scores than ours and judges' alone.
    """
    base, metrics = name.partition("@")[0], run_spec["metric_specs"]
    judged: dict[str, Any] = next((m["args"]["judged"] for m in metrics if (m.get("args") or {}).get("judged")), {})
    if base.removesuffix(CORRECTED) in list_judge_stats(judged):
        return False
    own = _registered().get(base)
    if own is not None and own.lower_is_better is not None:
        return own.lower_is_better
    return bool(describe_scores(run_spec, [name])[name].lower_is_better)


def _ask_metrics(metric_specs: Iterable[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return what the run's metrics say of their stats, as for `helm-summarize --auto-generate-schema`."""
    from helm.benchmark.metrics.metric import MetricSpec, create_metric

    said: dict[str, dict[str, Any]] = {}
    for spec in metric_specs:
        try:
            described = create_metric(MetricSpec(spec["class_name"], spec.get("args") or {})).get_metadata()
        except Exception:  # noqa: BLE001, S112 - most of HELM's metrics say nothing, and some cannot be made here
            continue
        said.update((metadata.name, vars(metadata)) for metadata in described)
    return said


@cache
def _from_schemas() -> dict[str, bool]:
    """Return whether lower is better, by the names of stats in the schemas that HELM ships."""
    from helm.benchmark.presentation.schema import get_default_schema_path, read_schema

    found: dict[str, bool] = {}
    for path in sorted(Path(get_default_schema_path()).parent.glob("schema_*.yaml")):
        for metric in read_schema(str(path)).metrics:
            if metric.lower_is_better is not None:
                found.setdefault(metric.name, bool(metric.lower_is_better))
    return found


@cache
def _registered() -> dict[str, ScoreFacts]:
    """Return what our registry of scores says of each stat."""
    from helm_ext.scoring.registry import get_scores

    stats = (
        s for kind in ("list", "string") for score in get_scores(kind).values() for s in (*score.stats, *score.over_all)
    )
    return {
        stat.name: ScoreFacts(stat.display_name, stat.description, stat.lower_is_better, *find_bounds(stat.name))
        for stat in stats
    }


@cache
def _parts() -> frozenset[str]:
    """Return the stats that no report ranks models by."""
    from helm_ext.scoring.registry import get_scores

    every = (score for output_format in ("string", "list") for score in get_scores(output_format).values())
    return frozenset(stat.name for score in every for stat in score.several if not stat.can_be_main)
