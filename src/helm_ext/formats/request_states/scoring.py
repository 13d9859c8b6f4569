"""The `scoring` key, the arguments that override it, and what is measured when neither says."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from helm_ext.errors import did_you_mean, show
from helm_ext.evalset import Scoring
from helm_ext.formats.request_states.report import Report
from helm_ext.formats.request_states.wording import Path

__all__ = ["HELM_METRICS", "LIST_METRICS", "UNUSABLE_METRICS", "check_scoring", "make_scoring"]

HELM_METRICS = frozenset(
    {
        "absolute_value_difference",
        "bleu_1",
        "bleu_4",
        "cer_score",
        "chinese_bleu_1",
        "chinese_cer_score",
        "chinese_mer_score",
        "chinese_rouge_1",
        "chinese_rouge_2",
        "chinese_wer_score",
        "chinese_wip_score",
        "cider",
        "cleva_math_result_match",
        "code_eval_acc",
        "exact_match",
        "exact_match_indicator",
        "exact_set_match",
        "f1_score",
        "f1_set_match",
        "final_number_exact_match",
        "iou_set_match",
        "math_equiv",
        "math_equiv_chain_of_thought",
        "mer_score",
        "pass",
        "prefix_exact_match",
        "quasi_exact_match",
        "quasi_leave_articles_exact_match",
        "quasi_prefix_exact_match",
        "rouge_1",
        "rouge_2",
        "rouge_l",
        "wer_score",
        "wip_score",
    }
)
"""The names in HELM's `compute_reference_metrics`. Importing it costs seconds; a contract test keeps this list true."""

UNUSABLE_METRICS = {
    "pass": "it needs test cases",
    "code_eval_acc": "it needs test cases",
    "ultraeval_function_execution": "it runs the code that the model writes, which ultraeval: alone can allow",
}
"""Metrics for references that are more than text, or that must not be had by naming them."""

LIST_METRICS = ("exact_match", "set_exact_match", "list_f1")
"""For `output_format: "list"`."""

_EXAMPLES = (
    "for example exact_match (accuracy), quasi_exact_match, f1_score, rouge_l; leave the key out for the defaults"
)

_GENERATION = ("exact_match", "quasi_exact_match", "prefix_exact_match", "quasi_prefix_exact_match", "f1_score")


def default_metrics(method: str, output_format: str, *, all_choice: bool) -> tuple[tuple[str, ...], str]:
    """Return the metrics and the main metric for a kind of file.

    Short answers: quasi-exact match, as most of HELM's question answering. Options: exact match of the option chosen.
    """
    if method.startswith("multiple_choice_separate"):
        return ("exact_match",), "exact_match"
    if output_format == "list":
        return LIST_METRICS, "set_exact_match"
    if all_choice or method.startswith("multiple_choice"):
        return ("exact_match", "quasi_exact_match"), "exact_match"
    return _GENERATION, "quasi_exact_match"


def make_scoring(
    given: Mapping[str, Any],
    overrides: Mapping[str, Any],
    report: Report,
    *,
    method: str,
    output_format: Literal["string", "list"],
    all_choice: bool,
    is_helm: bool,
    num_outputs: int,
) -> Scoring:
    """Return how the file is scored. `overrides` (arguments, None where not given) win over `given` (the file)."""
    chosen = {
        **{k: v for k, v in given.items() if v is not None},
        **{k: v for k, v in overrides.items() if v is not None},
    }

    def path(key: str) -> tuple[str, ...]:
        return (key,) if overrides.get(key) is not None else ("scoring", key)

    metrics, main = default_metrics(method, output_format, all_choice=all_choice)
    if "metrics" in chosen:
        metrics = tuple(dict.fromkeys(chosen["metrics"]))
        _check_metrics(metrics, output_format, path("metrics"), report)
        if main not in metrics and metrics:
            main = metrics[0]
    if "main_metric" in chosen:
        main = chosen["main_metric"]
        if main not in metrics and "metrics" not in chosen and _is_known(main, output_format):
            metrics = (*metrics, main)
        produced = [*metrics, *(f"{name}@{num_outputs}" for name in metrics if num_outputs > 1)]
        if main not in produced:
            report.add(
                path("main_metric"),
                f"{show(main)} is none of the metrics that are measured",
                did_you_mean(main, [*produced, *_known_names(output_format)]) or f"measured: {', '.join(produced)}",
                code="main-metric",
            )
    if "extract" in chosen:
        check_regex(chosen["extract"], path("extract"), report)
    return Scoring(
        metrics=metrics,
        main_metric=main,
        output_format=output_format,
        extract=chosen.get("extract"),
        strip=chosen.get("strip", False),
        lower=chosen.get("lower", False),
        label_reading="exact" if is_helm else "forgiving",
    )


def check_scoring(given: Mapping[str, Any], overrides: Mapping[str, Any], output_format: str, report: Report) -> None:
    """Report what is wrong with scoring whatever the rows are: for a file whose `adapter_spec` is wrong."""
    for chosen, inside in ((overrides, ()), (given, ("scoring",))):
        if chosen.get("metrics") is not None and (inside == () or overrides.get("metrics") is None):
            _check_metrics(chosen["metrics"], output_format, (*inside, "metrics"), report)
        if chosen.get("extract") is not None and (inside == () or overrides.get("extract") is None):
            check_regex(chosen["extract"], (*inside, "extract"), report)


def check_regex(pattern: str, path: Path, report: Report) -> None:
    """Report a regular expression that is none."""
    try:
        re.compile(pattern)
    except re.error as error:
        report.add(path, f"{show(pattern)} is no regular expression: {error}", code="regex")


def _known_names(output_format: str) -> list[str]:
    from helm_ext.scoring.scores import get_scores

    ours = LIST_METRICS if output_format == "list" else ()
    return sorted({*HELM_METRICS, *ours, *get_scores()})


def _is_known(name: str, output_format: str) -> bool:
    # Our own scores are looked up last: some of them load tokenizers.
    return (
        name in HELM_METRICS
        or (output_format == "list" and name in LIST_METRICS)
        or name in _known_names(output_format)
    )


def _metric_hint(name: str, known: Sequence[str]) -> str:
    longer = [one for one in known if len(name) > 1 and one.startswith(f"{name.lower()}_")]
    return did_you_mean(name, known) or (f"did you mean {longer[0]!r}?" if longer else _EXAMPLES)


def _check_metrics(metrics: Sequence[str], output_format: str, path: tuple[str, ...], report: Report) -> None:
    if not metrics:
        report.add(path, "the list of metrics is empty", "leave the key out for the defaults", code="metrics")
    for name in metrics:
        if name in UNUSABLE_METRICS:
            report.add(path, f"{show(name)} cannot be measured here: {UNUSABLE_METRICS[name]}", code="metrics")
        elif not _is_known(name, output_format):
            hint = _metric_hint(name, _known_names(output_format))
            if name in LIST_METRICS:
                hint = f'{name} is for "output_format": "list"'
            report.add(path, f"unknown metric {show(name)}", hint, code="metrics")
