"""HELM's scores of a pair (gold, prediction), by name; those that are asked for most, ten times faster.

The functions restate those of helm/benchmark/metrics/evaluate_reference_metrics.py;
tests/contract/test_runner_sources.py fails when HELM changes them.

HELM's module itself is imported only for the other names: it takes one and a half seconds of CPU, for NLTK,
scikit-learn, scipy.stats and datasets (tests/integration/test_imports.py).

Plain equivalent: the functions of the same names there. Held equal by tests/unit/scoring/test_basic_metrics.py,
test_normal_form and test_quasi_matches.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable
from typing import Any

from helm_ext.scoring.texts import remember_short

_PUNCTUATION = re.compile(f"[{re.escape(string.punctuation)}]+")
_MARKS = string.punctuation.encode()
_LOWER = bytes.maketrans(string.ascii_uppercase.encode(), string.ascii_lowercase.encode())
_ARTICLES = frozenset({"a", "an", "the"})
_ARTICLE = re.compile(r"[at](?:(?<=\ba)n?|(?<=\bt)he)\b")
"""HELM's \\b(a|an|the)\\b. It begins with letters, so that search leaps from one to the next."""
_KNOWN = string.printable.encode() + b"\x1c\x1d\x1e\x1f"
"""ASCII that is of a word, punctuation or white space: with other characters an article may stand between no spaces."""


@remember_short
def _find_words(text: str) -> list[str]:
    if text.isascii() and not (data := text.encode()).translate(None, _KNOWN):
        return [word for word in data.translate(_LOWER, _MARKS).decode().split() if word not in _ARTICLES]
    return _ARTICLE.sub(" ", _PUNCTUATION.sub("", text.lower())).split()


def normalize_text(text: str) -> str:
    """Return HELM's normal form (`evaluate_reference_metrics.normalize_text`), ten times faster."""
    return " ".join(_find_words(text))


def _exact_match(gold: str, prediction: str | None) -> float:
    return int(bool(prediction) and gold.strip() == (prediction or "").strip())


def _prefix_exact_match(gold: str, prediction: str | None) -> float:
    return int(bool(prediction) and (prediction or "").strip().startswith(gold.strip()))


def _quasi_exact_match(gold: str, prediction: str | None) -> float:
    return int(bool(prediction) and _find_words(gold) == _find_words(prediction or ""))


def _quasi_prefix_exact_match(gold: str, prediction: str | None) -> float:
    return int(bool(prediction) and normalize_text(prediction or "").startswith(normalize_text(gold)))


def _f1_score(gold: str, prediction: str) -> float:
    right, found = _find_words(gold), _find_words(prediction)
    if not right or not found:
        return 0.0
    wanted = set(right)
    if wanted.isdisjoint(found):
        return 0
    said = set(found)
    common = len(wanted & said)
    # nltk.metrics.scores.f_measure, to the last bit and to the type.
    return 1.0 / (0.5 / (common / len(said)) + (1 - 0.5) / (common / len(wanted)))


_FASTER: dict[str, Callable[[str, str], float]] = {
    "exact_match": _exact_match,
    "prefix_exact_match": _prefix_exact_match,
    "quasi_exact_match": _quasi_exact_match,
    "quasi_prefix_exact_match": _quasi_prefix_exact_match,
    "f1_score": _f1_score,
}

_RENAMED = {
    "math_equiv": "is_equiv",
    "math_equiv_chain_of_thought": "is_equiv_chain_of_thought",
    "pass": "code_eval",
    "code_eval_acc": "code_eval",
}
_SAME_NAME = (  # noqa: SIM905 - a table of names reads better as words
    "quasi_leave_articles_exact_match exact_match_indicator final_number_exact_match "
    "exact_set_match iou_set_match f1_set_match cider bleu_1 bleu_4 chinese_bleu_1 cleva_math_result_match "
    "absolute_value_difference wer_score mer_score wip_score cer_score chinese_wer_score chinese_mer_score "
    "chinese_wip_score chinese_cer_score"
).split()
_ROUGE = {
    "rouge_1": ("get_rouge_function", "rouge1"),
    "rouge_2": ("get_rouge_function", "rouge2"),
    "rouge_l": ("get_rouge_function", "rougeL"),
    "chinese_rouge_1": ("get_chinese_rouge_function", "rouge1"),
    "chinese_rouge_2": ("get_chinese_rouge_function", "rouge2"),
}
SCORE_NAMES = frozenset([*_FASTER, *_RENAMED, *_SAME_NAME, *_ROUGE])
"""The metric names that BasicGenerationMetric knows."""


def get_score(name: str) -> Callable[[Any, Any], float]:
    """Return the function of a metric name. Raises NameError, as HELM does, for a name that it does not know."""
    if name in _FASTER:
        return _FASTER[name]
    if name not in SCORE_NAMES:
        raise NameError(f"{name} is not in the list of metric functions.")
    from helm.benchmark.metrics import evaluate_reference_metrics

    if name in _ROUGE:
        maker, kind = _ROUGE[name]
        return getattr(evaluate_reference_metrics, maker)(kind)
    return getattr(evaluate_reference_metrics, _RENAMED.get(name, name))
