"""Scores of lists (`output_format: list`, docs/adapter_spec.md): equal in order, equal as multisets, F1 by matching.

`set_exact_match`, the main one, and `list_f1` read a predicted list whatever way it is written (`parsing.read_list`),
the others split it at the separator. `set_exact_match` compares segments in their normal form (`scoring.normal_form`).
Segments are compared as they are after stripping by `exact_match` and `list_strict`: case and punctuation count. So do
they for the scores that count how many segments are found, a gold one by one equal predicted one (`list_exact_f1`,
`list_micro_f1`).

`list_f1` gives part of the credit for near misses:

- tokens are words as `scoring.normal_form` reads them; a segment of nothing but punctuation keeps it, "" has none;
- credit of a pair: F1 of the two bags of tokens; two segments without any token earn 1, one without 0;
- matching: one-to-one with the largest total credit. Exact, with one limit: above MAX_PAIRS pairs (a degenerate
  prediction of 10⁵ segments), only segments with equal tokens are matched, so near misses earn nothing there.

Identical segments are *not* paired off first: that can lose credit. For gold `p q; p` and prediction `p q; q` pairing
the identical ones earns 1 + 0, the crossed matching 2/3 + 2/3.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial

from helm_ext.scoring.score import Score, StatInfo, describe_count

MAX_PAIRS = 250_000
"""The most pairs of segments that are matched exactly: 500 segments against 500, about a third of a second."""

_Bag = tuple[str, ...]
"""A bag of tokens: sorted, so that equal bags are equal."""


def exact_match(gold: Sequence[str], pred: Sequence[str]) -> float:
    """Return 1.0 if the lists are equal, in order."""
    return float(_strip(gold) == _strip(pred))


def set_exact_match(gold: Sequence[str], pred: Sequence[str]) -> float:
    """Return 1.0 if the lists are equal as multisets: the same segments in normal form, each as often, in any order."""
    return float(len(gold) == len(pred) and Counter(map(_to_form, gold)) == Counter(map(_to_form, pred)))


def list_strict(gold: Sequence[str], pred: Sequence[str]) -> float:
    """Return 1.0 if the lists are equal as multisets of segments as they are written."""
    return float(len(gold) == len(pred) and Counter(_strip(gold)) == Counter(_strip(pred)))


def list_f1(gold: Sequence[str], pred: Sequence[str]) -> float:
    """Return the F1 of the optimal one-to-one matching of segments.

    With S the total credit: precision S / len(pred), recall S / len(gold), so F1 = 2 S / (len(gold) + len(pred)).
    Two empty lists score 1, one empty list 0.
    """
    if not gold or not pred:
        return float(not gold and not pred)
    if list(gold) == list(pred):
        return 1.0
    from helm_ext.scoring.normal_form import words  # its patterns take 10 ms to compile: not for names alone

    gold_bags = Counter(tuple(sorted(words(segment))) for segment in gold)
    pred_bags = Counter(tuple(sorted(words(segment))) for segment in pred)
    if gold_bags == pred_bags:
        return 1.0
    return 2 * _total_credit(gold_bags, pred_bags, len(gold), len(pred)) / (len(gold) + len(pred))


def count_found(gold: Sequence[str], pred: Sequence[str]) -> int:
    """Return how many predicted segments are gold ones, each gold segment used once."""
    return sum((Counter(_strip(gold)) & Counter(_strip(pred))).values())


def list_exact_f1(gold: Sequence[str], pred: Sequence[str]) -> float:
    """Return the F1 of the segments that are found. Two empty lists score 1."""
    total = len(gold) + len(pred)
    return 2 * count_found(gold, pred) / total if total else 1.0


def count_segments(gold: Sequence[str], pred: Sequence[str]) -> dict[str, float]:
    """Return how many segments are found, predicted and expected."""
    return {"list_found": count_found(gold, pred), "list_predicted": len(pred), "list_expected": len(gold)}


def _summarize(means: Mapping[str, float]) -> dict[str, float]:
    """Return F1, precision and recall over all rows, of the means of the counts."""
    found, predicted, expected = means["list_found"], means["list_predicted"], means["list_expected"]
    return {
        "list_micro_f1": 2 * found / (predicted + expected) if predicted + expected else 1.0,
        "list_micro_precision": found / predicted if predicted else 0.0,
        "list_micro_recall": found / expected if expected else 0.0,
    }


def _to_form(segment: str) -> tuple[str, ...]:
    """Return the normal forms of a segment's parts (`extract_all` with several groups makes tuples)."""
    from helm_ext.scoring.normal_form import bare_form, normalize

    return tuple([normalize(part) or bare_form(part) for part in segment.split("\x1f")])


def _strip(segments: Sequence[str]) -> list[str]:
    return [segment.strip() for segment in segments]


def _pair_f1(a: dict[str, int], size_a: int, b: dict[str, int], size_b: int) -> float:
    """Return twice the overlap by the sum of the sizes: the F1 of two bags of tokens (token to count)."""
    if size_a + size_b == 0:
        return 1.0
    few, many = (a, b) if size_a < size_b else (b, a)
    overlap = sum([min(count, many[token]) for token, count in few.items() if token in many])
    return 2 * overlap / (size_a + size_b)


def _total_credit(gold: Counter[_Bag], pred: Counter[_Bag], n_gold: int, n_pred: int) -> float:
    """Return the largest total credit of a one-to-one matching of two multisets of bags."""
    # Copies beyond the other list's length can never be matched.
    rows = [min(count, n_pred) for count in gold.values()]
    columns = [min(count, n_gold) for count in pred.values()]
    if sum(rows) * sum(columns) > MAX_PAIRS:
        return float(sum((gold & pred).values()))
    counted_gold = [(Counter(bag), len(bag)) for bag in gold]
    counted_pred = [(Counter(bag), len(bag)) for bag in pred]
    credit = [[_pair_f1(a, size_a, b, size_b) for b, size_b in counted_pred] for a, size_a in counted_gold]
    if n_gold == 1 or n_pred == 1:
        return max(max(row) for row in credit)

    # Imported here: most rows are decided before, and scipy.optimize takes a moment to load.
    import numpy as np
    from scipy.optimize import linear_sum_assignment

    matrix = np.repeat(np.repeat(np.array(credit), rows, axis=0), columns, axis=1)
    matched = linear_sum_assignment(matrix, maximize=True)
    return float(matrix[matched].sum())


_count = partial(describe_count, lower_is_better=False, can_be_main=False)

SCORES: tuple[Score, ...] = (
    *(
        Score(
            name, list_function=function, display_name=title, short_display_name=short, description=description,
            reads_any_list=name in ("set_exact_match", "list_f1"),
        )
        for name, function, title, short, description in (
            ("exact_match", exact_match, "Exact match", "EM",
             "Fraction of rows whose list of segments equals the gold list, in order."),
            ("set_exact_match", set_exact_match, "Set exact match", "Set EM",
             "Fraction of rows whose segments are the gold segments, in any order and way of writing lists."),
            ("list_strict", list_strict, "List (strict)", None,
             "Fraction of rows whose segments are the gold segments as they are written, in any order."),
            ("list_f1", list_f1, "List F1", None,
             "F1 over an optimal one-to-one matching of segments; a pair counts by its token F1."),
            ("list_exact_f1", list_exact_f1, "List F1 (exact)", None,
             "F1 of the segments that are found, in any order; the mean over rows."),
        )
    ),
    Score(
        name="list_micro_f1",
        list_function=count_segments,
        several=(
            _count("list_found", "# segments found", "Segments found, mean over rows."),
            _count("list_predicted", "# segments predicted", "Segments predicted, mean over rows."),
            _count("list_expected", "# segments expected", "Segments of the reference, mean over rows."),
        ),
        over_all=(
            StatInfo("list_micro_f1", "List F1 (micro)", "F1 of segments, all rows together."),
            StatInfo("list_micro_precision", "List precision (micro)", "Precision of segments, all rows together."),
            StatInfo("list_micro_recall", "List recall (micro)", "Recall of segments, all rows together."),
        ),
        summarize=_summarize,
    ),
)  # fmt: skip
"""What `helm_ext.scoring.registry` offers from this module. `exact_match` stands in the place of HELM's for lists."""
