"""The table of docs/uncertainty.md is what the simulation gives."""

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
    assert numbers_of(count, share)[0] == coverage_table.show(coverage_table.cover_wilson(count, share))


@pytest.mark.slow
@pytest.mark.nightly("tools/coverage_table.py", "docs/uncertainty.md", "src/helm_ext/scoring/statistics")
@pytest.mark.parametrize("count", [100, 1000])
def test_intervals_hold_where_20_rows_are_right_and_wrong(count):
    covers = (coverage_table.cover_t, coverage_table.cover_clusters, coverage_table.cover_difference)
    for cover, written in zip(covers, numbers_of(count, 0.5)[1:], strict=True):
        found = cover(count, 0.5)
        assert 0.94 <= found <= 0.96
        assert coverage_table.show(found) == written.rstrip(" |")


def gate_lines():
    page = (ROOT / "docs" / "uncertainty.md").read_text(encoding="utf-8")
    block = page.split("<!-- gate -->")[1].split("<!-- end of gate -->")[0]
    for line in block.strip().splitlines()[2:]:
        rows, differing, true, *shares = [cell.strip(" %").replace(",", "") for cell in line.strip("|").split("|")]
        yield int(rows), float(differing) / 100, float(true), [float(one) / 100 for one in shares]


def test_gates_are_right_as_often_as_they_say():
    """At a true difference of -margin 4 to 6 % are wrong, of an unchanged model at most 5 %, power is as counted."""
    lines = list(gate_lines())
    assert len(lines) == len(coverage_table.GATES) * len(coverage_table.TRUE)
    for _, _, true, (worse, worse_counted, not_worse, not_worse_counted, _) in lines:
        assert abs(worse - worse_counted) < 0.02
        assert abs(not_worse - not_worse_counted) < 0.02
        if true == -coverage_table.MARGIN:
            assert 0.04 <= worse <= 0.06
            assert 0.04 <= not_worse <= 0.06
        elif true == 0:
            assert worse <= 0.05


@pytest.mark.parametrize("true", [-0.02, 0.0])
@pytest.mark.long
def test_the_gates_numbers_are_made_again(true):
    (written,) = [shares for rows, differing, at, shares in gate_lines() if (rows, differing, at) == (200, 0.3, true)]
    worse, not_worse, by_mean = coverage_table.judge_alike(200, 0.3, true)
    assert [worse, not_worse, by_mean] == pytest.approx([written[0], written[2], written[4]], abs=0.0005)
    assert list(coverage_table.count_outcomes(200, 0.3, true)) == pytest.approx([written[1], written[3]], abs=0.0005)


@pytest.mark.long
def test_clusters_hold_from_40_on():
    page = (ROOT / "docs" / "uncertainty.md").read_text(encoding="utf-8")
    block = page.split("<!-- clusters -->")[1].split("<!-- end of clusters -->")[0]
    for line in block.strip().splitlines()[2:]:
        number, *shares = [cell.strip(" %") for cell in line.strip("|").split("|")]
        if int(number) >= 40:
            assert all(float(share) >= 92 for share in shares)
    assert f"{coverage_table.cover_rare(40, 0.02):.1%}".replace("%", " %") in block


@pytest.mark.long
def test_gates_of_graded_rows_and_of_groups():
    page = (ROOT / "docs" / "uncertainty.md").read_text(encoding="utf-8")
    block = page.split("<!-- other-gates -->")[1].split("<!-- end of other-gates -->")[0]
    lines = {cells[0]: cells[1:] for line in block.splitlines() if (cells := line.strip("| ").split(" | "))[1:]}
    for name, shares in lines.items():
        if "graded" in name or "30 % differ" in name:
            assert all(4 <= float(share.rstrip(" %")) <= 6 for share in shares[:2])
    made = coverage_table.judge_others(coverage_table.draw_groups(10, 20, 0.1, -0.02))
    assert [coverage_table.show(share) for share in made] == lines["10 groups of 20, 10 % differ"][:2]
