"""Which verdicts and labels a corrected score is made of, and which it refuses."""

import math

import numpy as np
import pytest
from msgspec.structs import replace

from helm_ext.judging.judgement import HowDrawn, Judgement, Scale
from helm_ext.scoring.corrected_scores import JudgedRows, compare_judged, see
from helm_ext.scoring.statistics.corrected import Refused, correct_by_verdict
from helm_ext.scoring.statistics.intervals import clustered_interval

FIVE = Scale(min=1, max=5)


def verdict(value, by="gpt", **more):
    return Judgement(by=by, kind="model", criterion="correct", value=value, **more)


def label(value, design="random", by="ann", stratum="", p=None, draw="", **more):
    drawn = None if design is None else HowDrawn(design, stratum, p, draw)
    return Judgement(by=by, kind="human", criterion="correct", value=value, drawn=drawn, **more)


def make(cells, design="random", chances=None):
    """Rows of (verdict, rows, right labels, wrong labels); `chances` by verdict."""
    found = []
    for value, rows, right, wrong in cells:
        p = (chances or {}).get(value)
        labels = [label(1.0, design, p=p)] * right + [label(0.0, design, p=p)] * wrong + [None] * (rows - right - wrong)
        found += [see([verdict(value), *([one] if one else [])]) for one in labels]
    return found


CELLS = ((1.0, 900, 47, 3), (0.0, 100, 10, 40))
TRUE = 0.9 * 0.94 + 0.1 * 0.2


@pytest.mark.parametrize(("design", "chances"), [
    ("by_verdict", {1.0: 50 / 900, 0.0: 0.5}), ("by_verdict", None), ("ours", {1.0: 0.06, 0.0: 0.5}),
])  # fmt: skip
def test_labels_of_each_verdict_are_weighted_by_its_rows(design, chances):
    found = JudgedRows(make(CELLS, design, chances))
    assert found.raw.mean == 0.9
    assert found.corrected.interval.mean == pytest.approx(TRUE)
    assert (found.labels, found.undesigned, found.raters) == (100, 0, None)
    # 94 % of the passed rows and 80 % of the failed ones agree.
    expected = 0.9 * 0.94 + 0.1 * 0.8 if design == "by_verdict" else None
    if expected is not None:
        assert found.agreement.observed == pytest.approx(expected)
    bias = JudgedRows(make(CELLS, design, chances)).bias.interval
    assert bias.mean == pytest.approx(0.9 - TRUE)


@pytest.mark.parametrize(("rows", "reason"), [
    (make(CELLS, None), "100 labels do not say how their rows were drawn"),
    (make(((1.0, 50, 0, 0),)), "no labels"),
    (make(CELLS, "picked"), "labels drawn by picked do not say with which chance"),
    (make(((1.0, 50, 9, 1), (0.0, 50, 1, 8))), "19 labels; at least 20 are needed"),
    (make(((1.0, 50, 30, 1), (0.0, 50, 1, 1))), "2 of the 50 rows with the verdict 0 have a label; at least 3 are needed"),
    (
        # Of a jury whose second judge has seen few rows: verdicts are not pooled.
        make(((1.0, 100, 46, 0), (0.0, 60, 0, 1))) + [see([verdict(1.0), verdict(1.0, "b"), label(1.0)])] * 10,
        "1 of the 60 rows with the verdict 0 have a label; at least 3 are needed",
    ),
    (
        [see([verdict(v, scale=FIVE), label(v, "by_verdict", stratum=f"{v:g}", p=1, scale=FIVE)]) for v in (1, 2)]
        * 20
        + [see([verdict(5, scale=FIVE)])],
        "no row with the verdict 5 has a label",
    ),
    ([see([verdict(1.0), label(5.0, scale=FIVE)])] * 30, "labels and verdicts are not all on one scale"),
    (
        [see([verdict(3.0, scale=FIVE), label(value, "by_label", scale=FIVE)]) for value in (1.0, 5.0) * 20],
        "labels balanced on the human verdict correct one judge's right and wrong alone",
    ),
], ids=["undesigned", "none", "unknown-chance", "few", "few-of-a-verdict", "half-a-jury", "grade-without-a-label", "scales", "balanced-grades"])  # fmt: skip
def test_what_cannot_be_corrected_is_refused_and_says_why(rows, reason):
    found = JudgedRows(rows)
    assert found.corrected == Refused(reason)
    assert 0 <= found.raw.mean <= 5


def test_labels_balanced_on_the_human_verdict_go_to_rogan_and_gladen():
    rows = make(((1.0, 700, 45, 10), (0.0, 300, 5, 40)), "by_label")
    found = JudgedRows(rows)
    assert found.corrected.interval.method == "Rogan-Gladen"
    assert found.corrected.interval.mean == pytest.approx((0.7 + 0.8 - 1) / (0.9 + 0.8 - 1))
    assert found.agreement is None  # of other rows than the run's


def test_votes_of_a_jury_are_cells_and_a_judge_without_a_verdict_is_no_vote():
    three = [verdict(1.0, "a"), verdict(1.0, "b"), verdict(None, "c", status="unparsed")]
    assert (see(three).verdict, see(three).cell) == (1.0, "2 of 3")
    assert see([verdict(1.0, "a"), verdict(None, "b", status="failed")]) is None
    jury = [[verdict(v, by) for v, by in zip(votes, "abc", strict=True)] for votes in ((1, 1, 1), (1, 1, 0), (0, 0, 0))]
    rows = [
        see([*jury[k], label(y)]) for k, y in [(0, 1.0)] * 20 + [(0, 0.0)] * 2 + [(1, 1.0), (1, 0.0)] + [(2, 0.0)] * 9
    ]
    rows += [see(jury[k]) for k in [0] * 60 + [1] * 10 + [2] * 30]
    found = JudgedRows(rows).corrected
    assert {cell.verdict: (cell.rows, cell.labels) for cell in found.cells} == {
        "passed by most": (94, 24),
        "0 of 3": (39, 9),
    }


def test_several_raters_are_a_mean_and_one_who_is_stricter_makes_it_less_sure():
    def rows(second):
        values = [(1.0, 1.0)] * 40 + [(0.0, 0.0)] * 20
        return [
            see([verdict(a), label(a), label(b if number % 4 else second(b), by="bob")])
            for number, (a, b) in enumerate(values)
        ] + [see([verdict(1.0)])] * 40

    alike, stricter = JudgedRows(rows(lambda b: b)), JudgedRows(rows(lambda b: 0.0))
    assert alike.raters.mean == 1
    assert stricter.raters.mean < 0.9
    assert stricter.corrected.interval.half_width > alike.corrected.interval.half_width
    assert stricter.corrected.interval.mean < alike.corrected.interval.mean


def test_grades_are_corrected_within_their_scale():
    generator = np.random.default_rng(1)
    truth = generator.integers(1, 6, 300)
    grades = np.clip(truth + 1, 1, 5)
    rows = [
        see([verdict(float(g), scale=FIVE), *([label(float(t), scale=FIVE)] if n < 100 else [])])
        for n, (g, t) in enumerate(zip(grades, truth, strict=True))
    ]
    found = JudgedRows(rows)
    assert found.corrected.interval.method == "PPI++"
    assert found.corrected.interval.low <= truth.mean() <= found.corrected.interval.high
    assert found.raw.low > truth.mean()
    assert JudgedRows(rows).bias.interval.mean == pytest.approx(
        found.raw.mean - found.corrected.interval.mean, abs=0.03
    )


def test_clusters_are_labelled_and_counted():
    rows = make(((1.0, 60, 30, 3), (0.0, 40, 3, 14)))
    groups = [f"g{number // 2}" for number in range(100)]
    assert JudgedRows(rows, groups).corrected.interval.clusters == len(
        {group for group, row in zip(groups, rows, strict=True) if row.labels}
    )
    raw, expected = JudgedRows(rows, groups).raw, clustered_interval([1.0] * 60 + [0.0] * 40, groups)
    assert (raw.clusters, raw.low, raw.high) == (50, pytest.approx(expected.low), pytest.approx(expected.high))
    few = [f"g{number // 10}" for number in range(100)]
    assert "6 labelled clusters" in JudgedRows(rows, few).corrected.reason


def test_two_models_are_compared_by_rows_with_both_answers_labelled():
    def rows(pairs):
        made = [
            (see([verdict(va), label(ya)]), see([verdict(vb), label(yb)]))
            for va, vb, ya, yb, n in pairs for _ in range(n)
        ]  # fmt: skip
        plain = [
            (see([verdict(va)]), see([verdict(vb)]))
            for va, vb, n in ((1.0, 1.0, 400), (1.0, 0.0, 50), (0.0, 1.0, 90))
            for _ in range(n)
        ]
        return zip(*made, *plain, strict=True)

    labelled = [(1.0, 1.0, 1.0, 1.0, 30), (1.0, 1.0, 1.0, 0.0, 2), (1.0, 0.0, 1.0, 0.0, 10), (0.0, 1.0, 0.0, 1.0, 6),
                (0.0, 1.0, 0.0, 0.0, 6)]  # fmt: skip
    a, b = rows(labelled)
    found = compare_judged(a, b)
    cells = [f"{x.cell} and {y.cell}" for x, y in zip(a, b, strict=True)]
    gold = [y.labels[0].value - x.labels[0].value if x.labels else math.nan for x, y in zip(a, b, strict=True)]
    assert found.interval == correct_by_verdict(cells, gold, is_difference=True).interval
    total = len(a)
    assert found.interval.mean == pytest.approx((432 * -2 / 32 + 60 * -1 + 102 * 0.5) / total)
    alone = [row if number % 2 else row._replace(labels=()) for number, row in enumerate(a)]
    others = [row._replace(labels=()) if number % 2 else row for number, row in enumerate(b)]
    assert compare_judged(alone, others) == Refused("no row has a label of both answers")
    other = [
        row._replace(labels=tuple(replace(one, drawn=HowDrawn("pairs", p=0.5)) for one in row.labels)) for row in b
    ]
    assert compare_judged(a, other) == Refused("the labels of both answers were drawn in different ways")
    # Both drawn by each one's own verdict: the pair has the product of both chances, one for each pair of verdicts.
    apart = [
        row._replace(labels=tuple(replace(one, drawn=HowDrawn("by_verdict", row.cell)) for one in row.labels))
        for row in b
    ]
    assert compare_judged(a, apart).interval == found.interval
    assert math.isnan(gold[-1])


def test_of_labels_drawn_in_several_ways_the_latest_count():
    early = make(CELLS, "by_verdict", {1.0: 50 / 900, 0.0: 0.5})
    late = make(((1.0, 900, 30, 0), (0.0, 100, 0, 30)), "pairs", {1.0: 30 / 900, 0.0: 0.3})
    dated = [[row._replace(labels=tuple(replace(one, at=at) for one in row.labels)) for row in rows]
             for rows, at in ((early, "2026-01"), (late, "2026-02"))]  # fmt: skip
    both = [one._replace(labels=one.labels + other.labels) for one, other in zip(*dated, strict=True)]
    found = JudgedRows(both)
    assert (found.labels, found.set_aside, found.corrected.interval.mean) == (60, 40, pytest.approx(0.9))
    undated = [one._replace(labels=one.labels + other.labels) for one, other in zip(early, late, strict=True)]
    assert "drawn in several ways, by_verdict, pairs" in JudgedRows(undated).corrected.reason
    # Two draws by the same verdicts are one.
    more = make(CELLS, "by_verdict", {1.0: 0.1, 0.0: 0.6})
    assert JudgedRows(early + more).corrected.interval.mean == pytest.approx(TRUE)


def test_a_row_of_two_draws_had_the_chance_to_be_in_either():
    """Stratum a: 20 rows, all labelled and right; b: 180, a tenth drawn twice over, 19 % of them, and wrong."""

    def draws(values, stratum, p):
        return [see([verdict(1.0), label(y, "pairs", stratum=stratum, p=p, draw=draw)]) for y, draw in values]

    rows = draws([(1.0, "2")] * 20, "a", 1.0) + draws([(0.0, "1")] * 17 + [(0.0, "2")] * 17, "b", 0.1)
    rows += [see([verdict(1.0)])] * 146
    found = JudgedRows(rows).corrected
    assert found.interval.mean == pytest.approx(20 / (20 + 34 / 0.19))


def test_the_interval_of_grades_ends_where_their_scale_ends():
    """Student's t of five 1 and a 0.5 would end at 1.13."""
    found = JudgedRows([see([verdict(value, scale=(0.0, 0.5, 1.0))]) for value in (1, 1, 1, 1, 1, 0.5)])
    assert (found.raw.low, found.raw.high) == (pytest.approx(0.7025, abs=1e-4), 1.0)
