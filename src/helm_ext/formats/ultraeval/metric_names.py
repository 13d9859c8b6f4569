"""Upstream's metric names in ours, per method (formats.md, section 2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from helm_ext.errors import Location, Problem, RunEntryError, did_you_mean
from helm_ext.scoring.likelihood_rules import MAIN_STATS
from helm_ext.scoring.scores.ultraeval import BLEU_TOKENIZERS, SCORES, score_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from helm_ext.formats.ultraeval.config import Metric

__all__ = ["parse_metric_argument", "read_metrics"]

DEFAULT = "exact_match"
PPL_NORM = "general_torch_ppl_norm"
"""Upstream's postprocess name that makes `log_prob` the normalised rule."""

_PPL_TYPES = {"log_prob": "ppl", "ppl": "ppl", "ppl_norm": "ppl_norm", "log_prob_mc2": "mc2", "mc2": "mc2"}
_PPL_POSTPROCESS = ("", "none", "general_torch", "general_torch_ppl", PPL_NORM)

HELM_NAMES = (
    "quasi_exact_match", "quasi_leave_articles_exact_match", "prefix_exact_match", "quasi_prefix_exact_match",
    "final_number_exact_match", "exact_set_match", "iou_set_match", "f1_set_match", "math_equiv",
    "math_equiv_chain_of_thought", "rouge_1", "rouge_2", "rouge_l", "bleu_1", "bleu_4", "chinese_bleu_1",
    "chinese_rouge_1", "chinese_rouge_2", "wer_score", "cer_score",
)  # fmt: skip
"""HELM's metrics that may be asked for beside upstream's (`evaluate_reference_metrics.metric_fn_mapping`)."""

_NOT_HERE = {
    "rouge": "HELM has rouge_1, rouge_2, rouge_l, and chinese_rouge_1, chinese_rouge_2 for Chinese",
    "gpt4_eval": "a model as judge is not part of this format",
}


def parse_metric_argument(
    value: Any, method: Literal["gen", "ppl"], postprocess: str
) -> tuple[tuple[str, ...], list[Problem]]:
    """Return our names for `metric=a+b` (or a sequence of names); the first is the main one. Raises RunEntryError."""
    names = (
        [str(name) for name in value]
        if isinstance(value, Sequence) and not isinstance(value, str)
        else str(value).split("+")
    )
    if method == "ppl":
        return (_ppl_rule(names, postprocess),), []
    return tuple(dict.fromkeys(_gen_name(name, {}) for name in names)), []


def read_metrics(
    metrics: Mapping[str, Metric] | None, method: Literal["gen", "ppl"], postprocess: str, place: str
) -> tuple[tuple[str, ...], list[Problem]]:
    """Return our names for a config's metrics; `accuracy` is the main one where there is one. Raises RunEntryError."""
    if not metrics:
        return ((_ppl_rule(["log_prob"], postprocess),) if method == "ppl" else (score_name(DEFAULT),)), []
    if method == "ppl":
        return (_ppl_rule([metric.evaluation.type for metric in metrics.values()], postprocess),), []
    ordered = sorted(metrics.items(), key=lambda item: item[0] != "accuracy")
    names = tuple(
        dict.fromkeys(_gen_name(metric.evaluation.type, metric.evaluation.model_extra or {}) for _, metric in ordered)
    )
    return names, [warning for name, metric in ordered for warning in _aggregation_warnings(place, name, metric)]


def _aggregation_warnings(place: str, name: str, metric: Metric) -> list[Problem]:
    if metric.aggregation is None or metric.aggregation.type in ("mean", "pass_k"):
        return []
    known = did_you_mean(metric.aggregation.type, ("mean", "pass_k"))
    message = f"unknown aggregation {metric.aggregation.type!r}; the mean over the rows is reported"
    location = Location(place, field=f"metric.{name}.aggregation.type")
    return [Problem(message, location, known, "warning", "aggregation")]


def _ppl_rule(names: Sequence[str], postprocess: str) -> str:
    for name in names:
        if name.lower() not in _PPL_TYPES:
            gen = any(score.name == score_name(name.lower()) for score in SCORES)
            hint = "it scores generated answers: method=gen" if gen else did_you_mean(name, _PPL_TYPES)
            raise RunEntryError(
                f"metric={name}: no metric of PPL tasks\n  hint: {hint or 'known: ' + ', '.join(_PPL_TYPES)}"
            )
    if postprocess not in _PPL_POSTPROCESS:
        hint = did_you_mean(postprocess, _PPL_POSTPROCESS) or f"known: {', '.join(filter(None, _PPL_POSTPROCESS))}"
        raise RunEntryError(f"postprocess={postprocess}: no postprocessing of PPL tasks\n  hint: {hint}")
    rule = _PPL_TYPES[names[0].lower()]
    return MAIN_STATS["ppl_norm" if rule == "ppl" and postprocess == PPL_NORM else rule]


def _gen_name(name: str, arguments: dict[str, Any]) -> str:
    lowered = name.lower().removeprefix("ultraeval_")
    known = {score.name for score in SCORES}
    if lowered == "bleu" and arguments.get("tokenizer", BLEU_TOKENIZERS[0]) not in BLEU_TOKENIZERS:
        tokenizer = arguments["tokenizer"]
        raise RunEntryError(
            f"metric bleu: tokenizer {tokenizer!r} is not available\n  hint: one of {', '.join(BLEU_TOKENIZERS)}"
        )
    ours = score_name(lowered, arguments)
    if ours in known:
        return ours
    if lowered in HELM_NAMES:
        return lowered
    if lowered in _NOT_HERE:
        raise RunEntryError(f"metric={name}: not available\n  hint: {_NOT_HERE[lowered]}")
    if lowered in _PPL_TYPES:
        raise RunEntryError(f"metric={name}: it compares log-probabilities of options\n  hint: method=ppl")
    choices = [score.removeprefix("ultraeval_") for score in sorted(known)] + list(HELM_NAMES)
    hint = did_you_mean(name, choices) or f"known: {', '.join(choices)}"
    raise RunEntryError(f"metric={name}: unknown metric\n  hint: {hint}")
