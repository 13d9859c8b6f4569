"""Corrected judge scores against second implementations: scipy, statsmodels, truescore, and formulas written out."""

import math

import numpy as np
import pytest
from scipy.stats import beta
from statsmodels.stats.proportion import proportion_confint

from helm_ext.scoring.statistics.corrected import (
    Corrected,
    Refused,
    correct_balanced,
    correct_by_verdict,
    correct_graded,
    find_p,
    labels_needed,
    share_limits,
    share_of,
)
from helm_ext.scoring.statistics.intervals import clustered_interval, mean_interval, t_interval

Z = 1.959963984540054


def draw(generator, rows=600, labels=120, right=0.7, sensitivity=0.9, specificity=0.7):
    """Verdicts, truths and labels (NaN where not drawn) of rows labelled at random."""
    truth = (generator.random(rows) < right).astype(float)
    verdict = np.where(generator.random(rows) < np.where(truth == 1, sensitivity, 1 - specificity), 1, 0)
    gold = np.full(rows, math.nan)
    chosen = generator.choice(rows, labels, replace=False)
    gold[chosen] = truth[chosen]
    return verdict, truth, gold


def hull(right, count, tail=0.025):
    """The limits of a share, by other libraries' Wilson and Jeffreys."""
    if right == 0:
        return 0.0, 1 - (2 * tail) ** (1 / count)
    if right == count:
        return (2 * tail) ** (1 / count), 1.0
    low, high = proportion_confint(right, count, alpha=2 * tail, method="wilson")
    return (
        max(0, min(low, beta.ppf(tail, right + 0.5, count - right + 0.5))),
        min(1, max(high, beta.ppf(1 - tail, right + 0.5, count - right + 0.5))),
    )


def test_post_stratified_is_the_formula_written_out_and_the_efficient_influence_estimate():
    generator = np.random.default_rng(1)
    for _ in range(200):
        verdict, _, gold = draw(
            generator, int(generator.integers(200, 900)), 120, *generator.uniform([0.3, 0.6, 0.5], [0.9, 0.98, 0.95])
        )
        found = correct_by_verdict(verdict.tolist(), gold)
        mean, below, above, between, plug = 0.0, 0.0, 0.0, 0.0, np.zeros(len(gold))
        parts = []
        for value in (0, 1):
            labels = gold[(verdict == value) & ~np.isnan(gold)]
            share, p = (verdict == value).mean(), labels.mean()
            low, high = hull(labels.sum(), len(labels))
            mean, below, above = mean + share * p, below + (share * (p - low)) ** 2, above + (share * (high - p)) ** 2
            parts.append((share, p))
            plug[verdict == value] = p
        between = Z**2 * sum(share * (p - mean) ** 2 for share, p in parts) / len(gold)
        expected = mean, mean - math.sqrt(below + between), mean + math.sqrt(above + between)
        assert (found.interval.mean, found.interval.low, found.interval.high) == pytest.approx(expected, abs=1e-9)
        labelled = ~np.isnan(gold)
        influence = plug.mean() + (gold[labelled] - plug[labelled]).mean()
        assert found.interval.mean == pytest.approx(influence, abs=1e-9)


def test_random_labels_give_the_point_of_ppi():
    """To 1e-9 with the slope of the labels; truescore's own slope, of all rows, is another one by chance."""
    import truescore

    generator, away = np.random.default_rng(2), []
    for _ in range(200):
        verdict, _, gold = draw(generator, 1000, 300)
        chosen = np.flatnonzero(~np.isnan(gold))
        x, y = verdict[chosen].astype(float), gold[chosen]
        slope = np.cov(x, y)[0, 1] / x.var(ddof=1) / (1 + 300 / 700)
        ours = correct_by_verdict(verdict.tolist(), gold).interval
        assert ours.mean == pytest.approx(truescore.ppi_estimate(verdict, y, chosen, lambda_=slope).point, abs=1e-9)
        theirs, graded = truescore.ppi_estimate(verdict, y, chosen), correct_graded(verdict, gold).interval
        away.append([(one.mean - theirs.point) / theirs.standard_error for one in (ours, graded)])
        assert graded.half_width == pytest.approx(Z * theirs.standard_error, rel=0.06)
    assert (np.abs(away) < 0.2).mean() > 0.98
    assert np.abs(away).max() < 0.35


def test_rogan_and_gladen_is_that_of_truescore_and_the_adjusted_interval_of_lee():
    import truescore

    generator = np.random.default_rng(3)
    for _ in range(200):
        verdict, truth, gold = draw(generator, 1000, 0, right=generator.uniform(0.2, 0.9))
        chosen = np.concatenate([generator.choice(np.flatnonzero(truth == k), 40, replace=False) for k in (0, 1)])
        gold[chosen] = truth[chosen]
        found = correct_balanced(verdict, gold)
        theirs = truescore.rogan_gladen_estimate(verdict, gold[chosen], chosen)
        assert found.interval.mean == pytest.approx(theirs.point, abs=1e-9)
        q1, q0 = (verdict[chosen][:40] == 0).mean(), (verdict[chosen][40:] == 1).mean()
        q0, q1, p = (40 * q1 + 1) / 42, (40 * q0 + 1) / 42, (verdict.sum() + Z**2 / 2) / (1000 + Z**2)
        theta = (p + q0 - 1) / (q0 + q1 - 1)
        moved = 2 * Z**2 * (theta * q1 * (1 - q1) / 42 - (1 - theta) * q0 * (1 - q0) / 42)
        error = math.sqrt(
            p * (1 - p) / (1000 + Z**2) + (1 - theta) ** 2 * q0 * (1 - q0) / 42 + theta**2 * q1 * (1 - q1) / 42
        ) / (q0 + q1 - 1)
        assert found.interval.low == pytest.approx(max(0, theta + moved - Z * error), abs=1e-9)
        assert found.interval.high == pytest.approx(min(1, theta + moved + Z * error), abs=1e-9)


def test_what_is_labelled_completely_is_the_mean_of_the_labels():
    generator = np.random.default_rng(4)
    grades = generator.normal(size=80)
    gold = grades + generator.normal(size=80)
    graded, plain = correct_graded(grades, gold).interval, t_interval(gold)
    assert graded.mean == pytest.approx(plain.mean, abs=0.01 * plain.half_width)  # but for the slopes of the fifths
    assert graded.half_width == pytest.approx(plain.half_width, rel=0.02)
    groups = np.repeat(np.arange(50), 4)
    gold = np.repeat(generator.normal(size=50), 4) + generator.normal(size=200)
    clustered = correct_graded(np.zeros(200), gold, clusters=groups.tolist()).interval
    assert clustered.half_width == pytest.approx(clustered_interval(gold, groups).half_width, rel=0.05)
    assert clustered.clusters == 50
    truth = (gold > 0).astype(float)
    binary = correct_by_verdict([0] * 200, truth, clusters=groups.tolist()).interval
    assert binary.half_width == pytest.approx(clustered_interval(truth, groups).half_width, rel=0.1)


def test_labels_of_failed_and_passed_rows_do_not_shift_the_mean():
    # 1,000 rows, 900 passed: 50 labels of each verdict, 40 of the failed wrong, 3 of the passed.
    verdict = [1] * 900 + [0] * 100
    gold = np.full(1000, math.nan)
    gold[:50], gold[900:950] = [1] * 47 + [0] * 3, [0] * 40 + [1] * 10
    found = correct_by_verdict(verdict, gold, chances=np.where(np.array(verdict) == 1, 50 / 900, 0.5))
    assert found.interval.mean == pytest.approx(0.9 * 0.94 + 0.1 * 0.2)
    assert found.labels == 100
    assert [(cell.verdict, cell.rows, cell.labels) for cell in found.cells] == [(1, 900, 50), (0, 100, 50)]


def test_unequal_chances_within_a_verdict_are_weighted():
    # Two strata of one verdict, drawn at 0.5 and 0.05; the verdict's own share is that of all rows, by hand.
    verdict = [1] * 400 + [0] * 100
    gold, chances = np.full(500, math.nan), np.full(500, 0.05)
    gold[:50], chances[:100] = [0] * 25 + [1] * 25, 0.5  # half of 100 rows are wrong
    gold[100:115], gold[400:410], chances[400:] = 1.0, 0.0, 0.1
    found = correct_by_verdict(verdict, gold, chances=chances)
    assert found.interval.mean == pytest.approx(0.8 * (25 / 0.5 + 15 / 0.05) / (50 / 0.5 + 15 / 0.05))
    plain = correct_by_verdict(verdict, gold)
    assert found.interval.half_width > plain.interval.half_width


def test_difference_is_made_of_the_limits_of_agresti_and_min():
    verdicts = [(1, 1)] * 500 + [(1, 0)] * 60 + [(0, 1)] * 40
    gold = np.full(600, math.nan)
    gold[:30], gold[500:530], gold[560:590] = 0.0, [-1] * 20 + [0] * 10, [1] * 12 + [-1] * 3 + [0] * 15
    found = correct_by_verdict(verdicts, gold, is_difference=True).interval
    shares, means = np.array([500, 60, 40]) / 600, np.array([0, -20 / 30, 9 / 30])
    ends = []
    for more, less in ((0, 0), (0, 20), (12, 3)):
        p, q = (more + 0.5) / 32, (less + 0.5) / 32
        half = Z * math.sqrt((p + q - (p - q) ** 2) / 32)
        ends.append((p - q - half, p - q + half))
    ends = np.array(ends)
    mean = shares @ means
    mixed = Z**2 * shares @ (means - mean) ** 2 / 600
    assert found.mean == pytest.approx(mean)
    assert found.low == pytest.approx(mean - math.sqrt(((shares * (means - ends[:, 0])) ** 2).sum() + mixed))
    assert found.high == pytest.approx(mean + math.sqrt(((shares * (means - ends[:, 1])) ** 2).sum() + mixed))
    p = find_p(lambda level: correct_by_verdict(verdicts, gold, is_difference=True, level=level))
    at = correct_by_verdict(verdicts, gold, is_difference=True, level=1 - p).interval
    assert min(abs(at.low), abs(at.high)) < 1e-6


def label(*cells):
    """Verdicts and gold of (verdict, rows, right labels, wrong labels)."""
    verdicts, gold = [], []
    for verdict, rows, right, wrong in cells:
        verdicts += [verdict] * rows
        gold += [1.0] * right + [0.0] * wrong + [math.nan] * (rows - right - wrong)
    return verdicts, gold


@pytest.mark.parametrize(("cells", "says"), [
    ([(1, 90, 15, 1), (0, 10, 1, 2)], "19 labels; at least 20"),
    ([(1, 90, 30, 0), (0, 10, 0, 0)], "0 of the 10 rows with the verdict 0 have a label; at least 3"),
    ([(1, 90, 30, 0), (0, 10, 1, 1)], "2 of the 10 rows with the verdict 0"),
])  # fmt: skip
def test_too_few_labels_are_refused_and_what_is_missing_is_said(cells, says):
    assert says in correct_by_verdict(*label(*cells)).reason


def test_verdicts_of_a_jury_are_pooled_within_a_side_alone():
    verdicts, gold = label((3, 60, 20, 1), (2, 9, 1, 0), (1, 9, 1, 3), (0, 30, 0, 8))
    sides = ["passed" if votes >= 2 else "failed" for votes in verdicts]
    assert isinstance(correct_by_verdict(verdicts, gold), Refused)
    found = correct_by_verdict(verdicts, gold, sides=sides)
    assert {cell.verdict: (cell.rows, cell.labels) for cell in found.cells} == {
        "passed": (69, 22),
        1: (9, 4),
        0: (30, 8),
    }
    verdicts, gold = label((3, 60, 20, 1), (2, 9, 0, 0), (0, 30, 0, 8))
    sides = ["passed" if votes >= 2 else "failed" for votes in verdicts]
    assert isinstance(correct_by_verdict(verdicts, gold, sides=sides), Corrected)  # drawn at random
    assert "none of the 9 rows" in correct_by_verdict(verdicts, gold, sides=sides, chances=[0.3] * 99).reason


def test_a_rare_verdict_that_is_labelled_completely_is_known():
    assert isinstance(correct_by_verdict(*label((1, 90, 30, 1), (0, 2, 0, 2))), Corrected)


@pytest.mark.parametrize(("gold", "judge"), [([0.5] * 30, [1] * 30), ([1.0] * 30, [0.5] * 30)])
def test_balanced_labels_correct_no_grades(gold, judge):
    assert "no grades" in correct_balanced(judge, gold).reason


def test_a_judge_that_tells_nothing_is_not_divided_by():
    verdicts, gold = label((1, 50, 20, 20), (0, 50, 20, 20))
    assert "hardly tell them apart" in correct_balanced(verdicts, gold).reason


def test_limits_of_shares_are_those_of_other_libraries():
    for count in (3, 10, 30, 200):
        for right in range(count + 1):
            ours = share_limits(np.array([right / count]), np.array([float(count)]), Z)
            assert [float(one[0]) for one in ours] == pytest.approx(hull(right, count), abs=1e-9)


def labelled(cells, clusters_of=1):
    """Rows of verdicts (rows, labels, share that is right), each `clusters_of` times as one cluster."""
    verdicts, gold = [], []
    for verdict, (rows, labels, share) in enumerate(cells):
        right = round(share * labels)
        verdicts += [verdict] * rows
        gold += [1.0] * right + [0.0] * (labels - right) + [math.nan] * (rows - labels)
    clusters = np.repeat(np.arange(len(gold)), clusters_of).tolist() if clusters_of > 1 else None
    return correct_by_verdict(
        np.repeat(verdicts, clusters_of).tolist(), np.repeat(gold, clusters_of), clusters=clusters
    )


@pytest.mark.parametrize("clusters_of", [1, 10])
@pytest.mark.parametrize("cells", [
    [(1000, 50, 0.2), (5000, 50, 0.94)], [(200, 30, 0.1), (800, 30, 0.9)], [(500, 40, 0.5), (1500, 40, 0.95)],
])  # fmt: skip
def test_labels_needed_are_the_fewest_that_reach_the_width(cells, clusters_of):
    """The interval with so many labels more is tried out. Ten copies of each row tell no more than one."""
    more = labels_needed(labelled(cells, clusters_of))

    def half(scale):
        added = [round(scale * more[verdict] / clusters_of) for verdict in (0, 1)]
        grown = [(rows, labels + add, share) for (rows, labels, share), add in zip(cells, added, strict=True)]
        return labelled(grown, clusters_of).interval.half_width

    assert half(1) <= 0.0305
    assert half(0.8 if clusters_of == 1 else 0.5) > 0.03 or half(1) > 0.027  # of clusters, few labels say little
    done = labelled([(rows, rows - 1, share) for rows, _, share in cells], clusters_of)
    assert done.interval.half_width <= 0.03
    assert not any(labels_needed(done).values())
    assert labels_needed(labelled([(200, 40, 0.2), (200, 40, 0.8)], clusters_of)) is None


def test_a_share_of_copies_is_as_sure_as_one_of_them():
    """Of 40 rows in ten copies each Wilson's limits are those of 40 rows, but for t of 39."""
    values = np.array([1.0] * 30 + [0.0] * 10)
    plain = share_of(values, np.ones(40), np.arange(40))
    copies = share_of(np.repeat(values, 10), np.ones(400), np.repeat(np.arange(40), 10))
    assert copies.half_width == pytest.approx(plain.half_width * 2.0227 / Z, rel=0.02)
    assert share_of(np.repeat(values, 10), np.ones(400), np.arange(400)).half_width < 0.4 * copies.half_width
    every = share_of(np.ones(400), np.ones(400), np.repeat(np.arange(40), 10))
    assert every.low == pytest.approx(40 / (40 + Z**2))  # Wilson's limit of 40 rows that are all right


def test_a_share_of_labels_has_the_interval_of_a_score():
    """3 of 3 is one number in `score` and in `judge check`; rows of weights 3 and 1 tell as much as 16 / 10 alike."""
    found, scored = share_of(np.ones(3), np.ones(3), np.arange(3)), mean_interval([1, 1, 1])
    assert (found.low, found.high) == pytest.approx((scored.low, scored.high)) == (3 / (3 + Z**2), 1)
    assert share_of(np.ones(2), np.array([3.0, 1.0]), np.arange(2)).low == pytest.approx(1.6 / (1.6 + Z**2))
    agreed = labelled([(1000, 100, 1.0), (200, 30, 1.0)])
    assert agreed.interval.mean == 1  # to the last bit: a gate may ask for 1
    assert labelled([(1000, 100, 1.0), (200, 30, 1.0)], 10).interval.low == pytest.approx(agreed.interval.low, abs=2e-3)
