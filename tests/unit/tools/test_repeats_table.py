"""The table of repeated answers in docs/uncertainty.md is what the simulation gives, and holds what it shall."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT / "tools"))
import repeats_table  # noqa: E402 - tools/ is put on the path above

CASES = repeats_table.CASES


def numbers_of(case):
    start = f"| `{case.reducer}` | {case.rows} x {case.answers} | {case.spread:.2f} |"
    page = (ROOT / "docs" / "uncertainty.md").read_text(encoding="utf-8")
    (line,) = [line for line in page.splitlines() if line.startswith(start)]
    return [float(number.removesuffix(" %")) for number in line.strip("| ").split(" | ")[3:]]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_each_interval_covers_its_own_target_and_the_first_not_the_seconds(case):
    these, like_these, mistaken = numbers_of(case)
    assert 94 <= like_these <= 96
    k = int(case.reducer.rpartition("_")[2]) if "_" in case.reducer else 1
    assert (94 <= these <= 96) if case.answers >= 2 * k else these >= 96
    if case.spread >= 0.3:
        assert mistaken < 85


@pytest.mark.long
def test_the_table_is_made_again():
    """A tenth of the runs: within 4 standard errors of what the page says."""
    case = CASES[4]
    for found, written in zip(repeats_table.simulate(case, 1000), numbers_of(case), strict=True):
        share = written / 100
        assert abs(found - share) <= 4 * (share * (1 - share) / 1000) ** 0.5
