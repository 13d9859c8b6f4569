"""UltraEval's metrics for generated answers, by upstream's names and rules (formats.md, section 2).

Upstream's names are also HELM's, with other rules (`exact_match`, `f1_score`), so every score here is called
`ultraeval_<upstream's name>`; `score_name` translates. All compare the *postprocessed* completion with each accepted
answer, and the best counts, except where upstream looks at all accepted answers at once, or at the row itself: those
have a `row_function`.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from helm_ext.scoring.score import Score

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = ["EXECUTING", "PREFIX", "SCORES", "score_name"]

PREFIX = "ultraeval_"

EXECUTING = frozenset({f"{PREFIX}function_execution"})
"""Scores that run what the model wrote. Refused unless the user allows it."""

BLEU_TOKENIZERS = ("13a", "intl", "zh", "char", "none")
"""sacrebleu's tokenizers that need neither a download nor another package."""


def score_name(upstream: str, arguments: Mapping[str, Any] | None = None) -> str:
    """Return our name for a metric of upstream's config, `{"type": upstream, **arguments}`.

    >>> score_name("exact_match")
    'ultraeval_exact_match'
    >>> score_name("bleu", {"tokenizer": "zh"})
    'ultraeval_bleu_zh'
    """
    tokenizer = (arguments or {}).get("tokenizer", BLEU_TOKENIZERS[0])
    suffix = "" if upstream != "bleu" or tokenizer == BLEU_TOKENIZERS[0] else f"_{tokenizer}"
    return f"{PREFIX}{upstream.lower()}{suffix}"


def exact_match(gold: str, prediction: str) -> float:
    """Return 1.0 if both are equal once every space (U+0020) is removed; an empty prediction is never right."""
    predicted = prediction.replace(" ", "")
    return float(bool(predicted) and predicted == gold.replace(" ", ""))


def prefix_match(gold: str, prediction: str) -> float:
    """Return 1.0 if the prediction begins with the gold answer, both stripped."""
    return float(prediction.strip().startswith(gold.strip()))


def in_match(gold: str, prediction: str) -> float:
    """Return 1.0 if the stripped gold answer occurs in the prediction; an empty gold or prediction never matches."""
    wanted = gold.strip()
    return float(bool(wanted) and wanted in prediction)


def f1_score(gold: str, prediction: str) -> float:
    """Return the F1 of the words (split at white space), with multiplicity and without normalisation."""
    predicted, wanted = prediction.split(), gold.split()
    common = sum((Counter(predicted) & Counter(wanted)).values())
    return 2 * common / (len(predicted) + len(wanted)) if common else 0.0


def qa_match(gold: str, prediction: str) -> float:
    """`qa_match` without the row: the first option label of the first line, for any number of options up to 26."""
    return float(bool(gold) and _first_label(prediction, 26) == gold.strip())


def row_qa_match(row: Mapping[str, Any], golds: Sequence[str], prediction: str) -> float:
    """Return 1.0 if the first option label of the first line is gold, or the answer stands there in full.

    A label is "(A)" or "A", with or without a full stop, for as many letters as the row has options. The full answer
    counts where the prediction begins with it, after a repetition of the question.
    """
    options: Mapping[str, Any] = row.get("target_scores") or {}
    text = prediction.strip()
    label = _first_label(text, len(options))
    if label and label in golds:
        return 1.0
    question = row.get("question")
    if isinstance(question, str) and question.strip():
        text = text.removeprefix(question.strip()).strip()
    answer = next((option.strip() for option, worth in options.items() if worth == 1), "")
    return float(bool(answer) and text.startswith(answer))


def _first_label(prediction: str, count: int) -> str:
    """Return the first word of the first line that is one of "(A)", "(B)", ..., as "(A)"; "" if there is none."""
    labels = {f"({chr(ord('A') + index)})" for index in range(count)}
    for word in prediction.strip().split("\n")[0].split(" "):
        bare = word.removesuffix(".")
        for candidate in (bare, f"({bare})"):
            if candidate in labels:
                return candidate
    return ""


def gaokaobench_match(gold: str, prediction: str) -> float:
    """Return the share of the gold letters that the prediction has at the same place.

    A prediction "X[SEP]Y" holds two readings of one completion: X counts if it has the right length, else Y.
    """
    if "[SEP]" in prediction:
        first, second = prediction.split("[SEP]", maxsplit=1)
        prediction = first if len(first) == len(gold) else second[: len(gold)]
    return sum(a == b for a, b in zip(gold, prediction, strict=False)) / len(gold) if gold else 0.0


def row_gaokaobench_match(row: Mapping[str, Any], golds: Sequence[str], prediction: str) -> float:  # noqa: ARG001
    """A list of golds is one letter for each part of the question, not a list of alternatives."""
    return gaokaobench_match("".join(golds), prediction)


def chrf(gold: str, prediction: str) -> float:
    """Return sacrebleu's chrF, 0 to 100, of one sentence."""
    return _chrf((gold,), prediction)


def row_chrf(row: Mapping[str, Any], golds: Sequence[str], prediction: str) -> float:  # noqa: ARG001
    """ChrF over several references at once, as upstream hands them to sacrebleu."""
    return _chrf(golds, prediction)


def _chrf(golds: Sequence[str], prediction: str) -> float:
    import sacrebleu

    return float(sacrebleu.corpus_chrf([prediction], [[gold] for gold in golds]).score)


def _make_bleu(tokenizer: str) -> Score:
    def bleu(golds: Sequence[str], prediction: str) -> float:
        import sacrebleu

        return float(sacrebleu.corpus_bleu([prediction], [[gold] for gold in golds], tokenize=tokenizer).score)

    return Score(
        name=score_name("bleu", {"tokenizer": tokenizer}),
        function=lambda gold, prediction: bleu((gold,), prediction),
        display_name="BLEU (UltraEval)" if tokenizer == "13a" else f"BLEU (UltraEval, {tokenizer})",
        description=f"sacrebleu's BLEU of one answer, 0 to 100, tokenizer {tokenizer}, all references at once.",
        row_function=lambda _row, golds, prediction: bleu(golds, prediction),
    )


def _refuse_execution(gold: str, prediction: str) -> float:  # noqa: ARG001
    raise ValueError("function_execution needs the row: its prompt, its tests and the name of the function")


def row_function_execution(row: Mapping[str, Any], golds: Sequence[str], prediction: str) -> float:  # noqa: ARG001
    """Return 1.0 if the row's tests pass on the completion. Runs it, in a process of its own, with limits."""
    from helm_ext.scoring import code_execution

    return float(code_execution.passes(code_execution.make_program(row, prediction)))


def _score(
    upstream: str,
    function: Callable[[str, str], float],
    display_name: str,
    description: str,
    row_function: Callable[[Mapping[str, Any], Sequence[str], str], float] | None = None,
    refused: str = "",
) -> Score:
    return Score(
        name=score_name(upstream),
        function=function,
        display_name=f"{display_name} (UltraEval)",
        description=description,
        row_function=row_function,
        refused=refused,
    )


SCORES: tuple[Score, ...] = (
    _score("exact_match", exact_match, "Exact match", "1 if equal to an accepted answer, all spaces removed."),
    _score("prefix_match", prefix_match, "Prefix match", "1 if the answer begins with an accepted one, both stripped."),
    _score("in_match", in_match, "Contained", "1 if an accepted answer occurs in the answer."),
    _score(
        "qa_match",
        qa_match,
        "QA match",
        "1 if the first option label of the first line is right, or the right option's text stands there.",
        row_qa_match,
    ),
    _score("f1_score", f1_score, "F1", "F1 over words split at white space, best over the accepted answers."),
    _score(
        "gaokaobench_match",
        gaokaobench_match,
        "GAOKAO match",
        "Share of the letters that are right, place by place.",
        row_gaokaobench_match,
    ),
    _score("chrf", chrf, "chrF", "sacrebleu's chrF of one answer, 0 to 100, all references at once.", row_chrf),
    _score(
        "function_execution",
        _refuse_execution,
        "Tests passed",
        "1 if the row's tests pass on the code that the model wrote.",
        row_function_execution,
        refused="it runs the code that the model writes, which ultraeval: alone can allow",
    ),
    *(_make_bleu(tokenizer) for tokenizer in BLEU_TOKENIZERS),
)
