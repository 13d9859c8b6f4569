"""The table of docs/uncertainty.md is what the simulation gives."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT / "tools"))
import coverage_table  # noqa: E402 - tools/ is put on the path above


def numbers_of(count, share):
    (line,) = [
        line
        for line in (ROOT / "docs" / "uncertainty.md").read_text(encoding="utf-8").splitlines()
        if line.startswith(f"| {count:,} (") and f"| {share} |" in line
    ]
    return line.split(" | ")[2:]


def test_every_case_is_there():
    for count in coverage_table.COUNTS:
        for share in coverage_table.SHARES:
            assert len(numbers_of(count, share)) == 4


@pytest.mark.parametrize(("count", "share"), [(30, 0.02), (100, 0.5), (1000, 0.98)])
def test_wilsons_numbers_are_made_again(count, share):
    assert numbers_of(count, share)[0] == f"{coverage_table.cover_wilson(count, share):.1%}".replace("%", " %")


@pytest.mark.slow
@pytest.mark.parametrize("count", [100, 1000])
def test_intervals_hold_where_20_rows_are_right_and_wrong(count):
    covers = (coverage_table.cover_t, coverage_table.cover_clusters, coverage_table.cover_difference)
    for cover, written in zip(covers, numbers_of(count, 0.5)[1:], strict=True):
        found = cover(count, 0.5)
        assert 0.94 <= found <= 0.96
        assert f"{found:.1%}".replace("%", " %") == written.rstrip(" |")
