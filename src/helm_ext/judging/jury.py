"""One value of what several judges said of one answer.

| scale         | the jury's value                                                                                     |
|---------------|------------------------------------------------------------------------------------------------------|
| wrong, right  | that of more than half of the judges; 0.5 where as many say the one as the other                     |
| any other     | the mean of the judges' values                                                                       |

A judge without a verdict does not make the jury smaller: a mean needs all judges, a majority as many as decide it
whatever the others would have said. A judge that was asked in both orders says the mean of both.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from helm_ext.judging.judgement import REPLACED, Judgement


def judge_values(judgements: Iterable[Judgement]) -> dict[str, float | None]:
    """Return what each model said of an answer, by its name: None for one without a verdict.

    `judgements`: those of one criterion and completion.
    """
    found: dict[str, list[float | None]] = {}
    for one in judgements:
        if one.kind == "model" and one.status != REPLACED:
            found.setdefault(one.by, []).append(one.value)
    return {by: _mean(values) for by, values in found.items()}


def jury_value(values: Sequence[float | None], *, is_binary: bool) -> float | None:
    """Return the jury's value, given those of its judges; None where it has none."""
    if not values:
        return None
    if not is_binary:
        return _mean(values)
    half = len(values) / 2
    for verdict in (1.0, 0.0):
        if sum(value == verdict for value in values) > half:
            return verdict
    return None if None in values else 0.5


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if len(known) == len(values) else None
