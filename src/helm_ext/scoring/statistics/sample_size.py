"""How many rows it takes to tell two models apart.

Both models answer the same rows, and each row is right or wrong. Only rows that one of them gets right count
(discordant rows), so the answer depends on their share: two models that mostly agree need fewer rows for the same
difference than two that guess on their own. Formula: Connor (1987) for McNemar's test, with Yates' correction, because
`paired.mcnemar` is exact.
"""

from __future__ import annotations

import math


def rows_needed(difference: float, discordant: float, *, power: float = 0.8, level: float = 0.95) -> int:
    """Return the rows at which a true `difference` of two shares is told with this power, at this level, two-sided.

    `discordant` is the share of rows that exactly one model gets right; it is at least the difference.
    Raises ValueError for shares that cannot be.
    """
    from scipy.special import ndtri

    d = abs(difference)
    if not 0 < d <= discordant <= 1 or not 0 < power < 1 or not 0 < level < 1:
        raise ValueError(
            f"difference {difference}, discordant {discordant}, power {power}, level {level}: expected "
            "0 < |difference| <= discordant <= 1, and power and level between 0 and 1"
        )
    alpha, beta = float(ndtri((1 + level) / 2)), float(ndtri(power))
    root = alpha * math.sqrt(discordant) + beta * math.sqrt(discordant - d * d)
    # The exact test asks for one row more than the normal distribution: n d - 1 >= root sqrt(n), Yates' correction.
    return math.ceil(((root + math.sqrt(root**2 + 4 * d)) / (2 * d)) ** 2)


def discordant_share(base_rate: float, difference: float) -> float:
    """Return the share of discordant rows of two models that err independently: the worst case but for spite.

    The first gets `base_rate` of the rows right, the second `base_rate + difference`. Raises ValueError.
    """
    other = base_rate + difference
    if not 0 <= base_rate <= 1 or not 0 <= other <= 1:
        raise ValueError(f"base rate {base_rate} and difference {difference}: both models' shares must lie in 0 to 1")
    return base_rate * (1 - other) + other * (1 - base_rate)
