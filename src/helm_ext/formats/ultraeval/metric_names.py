"""Which metrics a task is scored with: upstream's names in ours, per method.

Upstream looks a metric's `type` up in its table, in lower case, and makes it with the further keys of `evaluation`
(upstream's tasks/eval_task.py, `construct_metrics`). A name that is neither upstream's nor HELM's may be one that the
user's checkout registers: `checkout_metrics` finds it there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Literal

from helm_ext.errors import DatasetSchemaError, Location, Problem, RunEntryError, did_you_mean
from helm_ext.scoring.registry import get_scores
from helm_ext.scoring.scores.likelihoods import MAIN_STATS
from helm_ext.scoring.scores.ultraeval import BLEU_TOKENIZERS, PREFIX, SCORES, make_rouge, score_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from helm_ext.formats.ultraeval.config import Metric

DEFAULT = "exact_match"
PPL_NORM = "general_torch_ppl_norm"
"""Upstream's postprocess name that makes `log_prob` the normalised rule."""

_PPL_TYPES = {"log_prob": "ppl", "ppl": "ppl", "ppl_norm": "ppl_norm", "log_prob_mc2": "mc2", "mc2": "mc2"}
_PPL_POSTPROCESS = ("", "none", "general_torch", "general_torch_ppl", PPL_NORM)

MAX_STAT = 64
"""Bytes in the name of a stat that is made of a config's arguments."""

HELM_NAMES = tuple(name for name, score in get_scores().items() if score.kind == "helm" and not score.refused)
"""HELM's metrics that may be asked for beside upstream's (`evaluate_reference_metrics.metric_fn_mapping`)."""


@dataclass(frozen=True)
class MetricChoice:
    """The metrics of a task."""

    names: tuple[str, ...]
    """Names of stats, the main one first. For PPL the main stat of one of `likelihoods.RULES`."""
    definitions: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Stat to upstream's `evaluation` (`type` and arguments), for what the registry of scores does not hold as such:
    `rouge` with arguments, and all metrics of the checkout's own."""
    warnings: tuple[Problem, ...] = ()

    @property
    def from_checkout(self) -> Mapping[str, Mapping[str, Any]]:
        """The definitions of metrics that only the user's checkout can make."""
        return {stat: made for stat, made in self.definitions.items() if made["type"] != "rouge"}

    @property
    def need_row(self) -> bool:
        """Whether a metric reads the row itself."""
        scores = get_scores()
        return bool(self.definitions) or any(name in scores and scores[name].kind == "row" for name in self.names)


def parse_metric_argument(value: Any, method: Literal["gen", "ppl"], postprocess: str) -> MetricChoice:
    """Return the metrics of `metric=a+b` (or a sequence of names); the first is the main one. Raises RunEntryError."""
    names = (
        [str(name) for name in value]
        if isinstance(value, Sequence) and not isinstance(value, str)
        else str(value).split("+")
    )
    if method == "ppl":
        return MetricChoice((_ppl_rule(names, postprocess),))
    return _choose((name, {}) for name in names)


def read_metrics(
    metrics: Mapping[str, Metric] | None, method: Literal["gen", "ppl"], postprocess: str, place: str
) -> MetricChoice:
    """Return a config's metrics; `accuracy` is the main one where there is one. Raises RunEntryError, DatasetError."""
    if not metrics:
        return MetricChoice((_ppl_rule(["log_prob"], postprocess) if method == "ppl" else score_name(DEFAULT),))
    for name, metric in metrics.items():
        _require_aggregation(place, name, metric)
    if method == "ppl":
        return MetricChoice((_ppl_rule([metric.evaluation.type for metric in metrics.values()], postprocess),))
    ordered = sorted(metrics.items(), key=lambda item: item[0] != "accuracy")
    return _choose((metric.evaluation.type, metric.evaluation.model_extra or {}) for _, metric in ordered)


def known_metrics() -> list[str]:
    """Return the names that `metric=` takes for GEN without a checkout."""
    return [*sorted(score.name.removeprefix(PREFIX) for score in SCORES), *HELM_NAMES]


def _require_aggregation(place: str, name: str, metric: Metric) -> None:
    if metric.aggregation is None or metric.aggregation.type.lower() in ("mean", "pass_k"):
        return
    hint = did_you_mean(metric.aggregation.type, ("mean", "pass_k")) or "upstream has mean and pass_k"
    location = Location(place, field=f"metric.{name}.aggregation.type")
    message = f"unknown aggregation {metric.aggregation.type!r}"
    raise DatasetSchemaError.at(location, message, hint, code="aggregation")


def _ppl_rule(names: Sequence[str], postprocess: str) -> str:
    for name in names:
        if name.lower() not in _PPL_TYPES:
            gen = any(score.name == score_name(name) for score in SCORES)
            hint = "it scores generated answers: method=gen" if gen else did_you_mean(name, _PPL_TYPES)
            raise RunEntryError(
                f"metric={name}: no metric of PPL tasks\n  hint: {hint or 'known: ' + ', '.join(_PPL_TYPES)}"
            )
    if postprocess not in _PPL_POSTPROCESS:
        hint = did_you_mean(postprocess, _PPL_POSTPROCESS) or f"known: {', '.join(filter(None, _PPL_POSTPROCESS))}"
        raise RunEntryError(f"postprocess={postprocess}: no postprocessing of PPL tasks\n  hint: {hint}")
    rule = _PPL_TYPES[names[0].lower()]
    return MAIN_STATS["ppl_norm" if rule == "ppl" and postprocess == PPL_NORM else rule]


def _choose(asked: Iterable[tuple[str, Mapping[str, Any]]]) -> MetricChoice:
    names: dict[str, None] = {}
    definitions: dict[str, Mapping[str, Any]] = {}
    for name, arguments in asked:
        stat, definition = _gen_metric(name, arguments)
        names[stat] = None
        if definition is not None:
            definitions[stat] = definition
    return MetricChoice(tuple(names), definitions)


def _gen_metric(name: str, arguments: Mapping[str, Any]) -> tuple[str, Mapping[str, Any] | None]:
    """Return the stat of a metric, and its definition where the registry of scores does not hold it as such."""
    lowered = name.lower().removeprefix(PREFIX)
    if lowered == "bleu" and arguments.get("tokenizer", BLEU_TOKENIZERS[0]) not in BLEU_TOKENIZERS:
        tokenizer = arguments["tokenizer"]
        raise RunEntryError(
            f"metric bleu: tokenizer {tokenizer!r} is not available\n  hint: one of {', '.join(BLEU_TOKENIZERS)}"
        )
    if lowered == "rouge":
        known = {key: value for key, value in arguments.items() if key in ("tokenizer", "index", "n_gram")}
        stat = make_rouge(**known).name
        return stat, {"type": lowered, **known} if stat != score_name(lowered) else None
    stat = score_name(lowered, arguments)
    if any(score.name == stat for score in SCORES):
        return stat, None
    if lowered in HELM_NAMES:
        return lowered, None
    if lowered in _PPL_TYPES:
        raise RunEntryError(f"metric={name}: it compares log-probabilities of options\n  hint: method=ppl")
    full = stat + "".join(f"_{key}={value}" for key, value in sorted(arguments.items()))
    if len(full.encode(errors="replace")) > MAX_STAT:  # HELM makes file names of stats
        full = f"{full[: MAX_STAT // 4]}_{sha256(full.encode(errors='replace')).hexdigest()[:8]}"
    return full, {"type": lowered, **arguments}
