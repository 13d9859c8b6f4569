"""The scores that HELM computes itself, by its names: what they are, and their functions.

The functions that are asked for most restate those of helm/benchmark/metrics/evaluate_reference_metrics.py, ten times
faster; tests/contract/test_runner_sources.py fails when HELM changes them. HELM's module itself is imported only for
the other names: it takes one and a half seconds of CPU, for NLTK, scikit-learn, scipy.stats and datasets
(tests/integration/test_imports.py). A contract test holds the names against HELM's own table.

Plain equivalent: the functions of the same names there. Held equal by tests/unit/scoring/test_basic_metrics.py,
test_normal_form and test_quasi_matches.
"""

from __future__ import annotations

import contextlib
import io
import math
import re
import string
from collections.abc import Callable
from typing import Any

from helm_ext.errors import HelmExtError
from helm_ext.scoring.bounded import remember_short
from helm_ext.scoring.score import Score

_CHINESE = "; HELM needs its extra `cleva`"
_SPEECH = "; HELM gives an empty prediction 0, and needs its extra `audiolm`"
_ERRORS = frozenset(
    {"absolute_value_difference", "wer_score", "mer_score", "cer_score"}
    | {"chinese_wer_score", "chinese_mer_score", "chinese_cer_score"}
)
"""Lower is better, without an upper bound."""

_DESCRIPTIONS = {
    "exact_match": "The prediction is a correct reference, white space around both aside.",
    "quasi_exact_match": "As exact_match, after ASCII punctuation, English articles and case are dropped.",
    "quasi_leave_articles_exact_match": "As quasi_exact_match, but articles stay.",
    "prefix_exact_match": "The prediction begins with a correct reference.",
    "quasi_prefix_exact_match": "As prefix_exact_match, after ASCII punctuation, articles and case are dropped.",
    "exact_match_indicator": "The last word of the prediction is that of a correct reference.",
    "final_number_exact_match": "The last number in the prediction is that of a correct reference.",
    "exact_set_match": "The sets named after `is`, elements joined by `and`, are equal.",
    "iou_set_match": "Intersection over union of such sets.",
    "f1_set_match": "F1 of such sets.",
    "math_equiv": "The two formulas are equal once they are written alike (MATH).",
    "math_equiv_chain_of_thought": "As math_equiv, on the last boxed formula.",
    "f1_score": "F1 over the sets of words, punctuation, articles and case dropped.",
    "rouge_1": "ROUGE-1: F1 over words.",
    "rouge_2": "ROUGE-2: F1 over pairs of words.",
    "rouge_l": "ROUGE-L: F1 over the longest common subsequence of words.",
    "bleu_1": "BLEU over single words; NLTK's data are downloaded.",
    "bleu_4": "BLEU over sequences of four words; NLTK's data are downloaded.",
    "cider": "CIDEr: words weighed by how rare they are.",
    "chinese_bleu_1": f"BLEU over single Chinese characters{_CHINESE}.",
    "chinese_rouge_1": f"ROUGE-1 over Chinese words{_CHINESE}.",
    "chinese_rouge_2": f"ROUGE-2 over Chinese words{_CHINESE}.",
    "cleva_math_result_match": "The last number or fraction of the prediction is the reference.",
    "absolute_value_difference": "The distance of two whole numbers; other text counts as 0.",
    "wer_score": f"Word error rate{_SPEECH}.",
    "mer_score": f"Match error rate{_SPEECH}.",
    "wip_score": f"Word information preserved{_SPEECH}.",
    "cer_score": f"Character error rate{_SPEECH}.",
    "chinese_wer_score": f"Word error rate of Chinese{_SPEECH}.",
    "chinese_mer_score": f"Match error rate of Chinese{_SPEECH}.",
    "chinese_wip_score": f"Word information preserved, of Chinese{_SPEECH}.",
    "chinese_cer_score": f"Character error rate of Chinese{_SPEECH}.",
}


def _require_word_tokenizer() -> None:
    """Raise HelmExtError where NLTK's data are not there, which no package brings, and cannot be downloaded."""
    from nltk.tokenize import word_tokenize

    with contextlib.suppress(LookupError):
        word_tokenize("a")
        return
    from helm.benchmark.metrics.nltk_helper import install_nltk_resources

    with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
        install_nltk_resources()
    try:
        word_tokenize("a")
    except LookupError:
        raise HelmExtError(
            "bleu_1 and bleu_4 need NLTK's data punkt_tab, which are not here and cannot be downloaded\n"
            "  hint: `python -m nltk.downloader punkt_tab` where there is a network, and NLTK_DATA=FOLDER names where "
            "they lie; rouge_l needs no data"
        ) from None


SCORES: tuple[Score, ...] = (
    *(
        Score(
            name=name,
            description=description,
            lower_is_better=name in _ERRORS,
            bounds=(0.0, math.inf) if name in _ERRORS | {"cider"} else (0.0, 1.0),
            prepare=_require_word_tokenizer if name in ("bleu_1", "bleu_4") else None,
        )
        for name, description in _DESCRIPTIONS.items()
    ),
    *(
        Score(name=name, description="Share of programs that pass.", refused="it needs test cases")
        for name in ("pass", "code_eval_acc")  # their references are more than text
    ),
)
"""What `helm_ext.scoring.registry` offers from this module. Reports take HELM's own words for them."""


# ---- Their functions

_PUNCTUATION = re.compile(f"[{re.escape(string.punctuation)}]+")
_MARKS = string.punctuation.encode()
_ARTICLES = frozenset({"a", "an", "the"})
_ARTICLE = re.compile(r"[at](?:(?<=\ba)n?|(?<=\bt)he)\b")
"""HELM's \\b(a|an|the)\\b. It begins with letters, so that search leaps from one to the next."""
_KNOWN = string.printable.encode() + b"\x1c\x1d\x1e\x1f"
"""ASCII that is of a word, punctuation or white space: with other characters an article may stand between no spaces."""
_LOWER = bytes(ord(chr(code).lower()) if code in _KNOWN else 0 for code in range(256))
"""Small letters; 0 for bytes that are not known."""


@remember_short
def _find_words(text: str) -> list[str]:
    """Return the words of HELM's normal form."""
    if text.isascii() and b"\0" not in (data := text.encode().translate(_LOWER, _MARKS)):
        return [word for word in data.decode().split() if word not in _ARTICLES]
    return _ARTICLE.sub(" ", _PUNCTUATION.sub("", text.lower())).split()


def normalize_text(text: str) -> str:
    """Return HELM's normal form (`evaluate_reference_metrics.normalize_text`), ten times faster."""
    return " ".join(_find_words(text))


def _exact_match(gold: str, prediction: str | None) -> float:
    return int(bool(prediction) and gold.strip() == (prediction or "").strip())


def _prefix_exact_match(gold: str, prediction: str | None) -> float:
    return int(bool(prediction) and (prediction or "").strip().startswith(gold.strip()))


def _quasi_exact_match(gold: str, prediction: str | None) -> float:
    if not prediction or gold == prediction:
        return int(bool(prediction))
    return int(_find_words(gold) == _find_words(prediction))


def _quasi_prefix_exact_match(gold: str, prediction: str | None) -> float:
    return int(bool(prediction) and normalize_text(prediction or "").startswith(normalize_text(gold)))


def _f1_score(gold: str, prediction: str) -> float:
    wanted, said = set(_find_words(gold)), set(_find_words(prediction))
    if not wanted or not said:
        return 0.0
    common = len(wanted & said)
    if not common:
        return 0
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
_ROUGE = {
    "rouge_1": ("get_rouge_function", "rouge1"),
    "rouge_2": ("get_rouge_function", "rouge2"),
    "rouge_l": ("get_rouge_function", "rougeL"),
    "chinese_rouge_1": ("get_chinese_rouge_function", "rouge1"),
    "chinese_rouge_2": ("get_chinese_rouge_function", "rouge2"),
}
SCORE_NAMES = frozenset(score.name for score in SCORES)
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
