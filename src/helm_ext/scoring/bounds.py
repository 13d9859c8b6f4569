"""Between which numbers a score lies, by its name."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from helm_ext.scoring.registry import our_stats
from helm_ext.scoring.stat_names import JUDGED, judge_stat

_FROM_ZERO = frozenset(
    {"absolute_value_difference", "cider"}
    | {f"{prefix}{kind}_score" for prefix in ("", "chinese_") for kind in ("wer", "mer", "cer")}
)
"""Not below 0, and without an upper bound."""
_PERCENT = ("ultraeval_bleu", "ultraeval_chrf", "ultraeval_rouge")
"""From 0 to 100."""
_TO_TWO = frozenset({"brier_score"})
"""From 0 to 2."""


def find_bounds(stat: str, arguments: Mapping[str, Any] | None = None) -> tuple[float, float]:
    """Return the least and the greatest value of a stat: of HELM's or ours, of a judge's, or as the source has it.

    `arguments`: those of the run's metric, with `source` (`Source.to_args()`) and `judged` (`EvalSet.judged`). Of any
    other stat, minus and plus infinity.
    """
    source, judged = ((arguments or {}).get(name) for name in ("source", "judged"))
    for criterion, told in (judged or {}).items():
        if stat.startswith(judge_stat(criterion)) and stat[len(judge_stat(criterion)) :][:1] in ("", "[", "@"):
            scale = told["scale"]
            ends = (scale["min"], scale["max"]) if isinstance(scale, Mapping) else scale
            return min(ends), max(ends)
    for score in source["scores"].values() if source else ():
        if stat == score["stat"] or stat.startswith(f"{score['stat']}@"):  # `inspect_match@subject=law`
            lowest, highest = score.get("bounds") or (-math.inf, math.inf)
            return lowest, highest
    name = stat.partition("@")[0]  # `exact_match@5`: the best of five; `exact_match@subject=law`
    if name.endswith(JUDGED):  # a share of right rows
        return 0.0, 1.0
    known = our_stats().get(name)
    if known is None:
        return -math.inf, math.inf
    if name in _FROM_ZERO or not known.can_be_main:  # such a stat counts what others are made of
        return 0.0, math.inf
    if name in _TO_TWO:
        return 0.0, 2.0
    return (0.0, 100.0) if name.startswith(_PERCENT) else (0.0, 1.0)
