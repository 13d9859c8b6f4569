"""The scores that HELM computes itself, by its names (helm/benchmark/metrics/evaluate_reference_metrics.py).

The names stand here because importing HELM's module costs seconds; a contract test holds them against HELM's own table.
"""

from __future__ import annotations

import contextlib
import io
import math

from helm_ext.errors import HelmExtError
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
_TEST_CASES = ("pass", "code_eval_acc")
"""Their references are more than text."""

_WORD_TOKENIZED = ("bleu_1", "bleu_4")
"""They call `nltk.tokenize.word_tokenize`, which needs data that no package brings."""


def _require_word_tokenizer() -> None:
    """Raise HelmExtError where NLTK's data are not there and cannot be downloaded, as HELM would on the first score."""
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
            prepare=_require_word_tokenizer if name in _WORD_TOKENIZED else None,
        )
        for name, description in _DESCRIPTIONS.items()
    ),
    *(
        Score(name=name, description="Share of programs that pass.", refused="it needs test cases")
        for name in _TEST_CASES
    ),
)
"""What `helm_ext.scoring.registry` offers from this module. Reports take HELM's own words for them."""
