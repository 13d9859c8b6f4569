"""`judge check` of judges whose faults are known."""

import re
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest

from helm_ext.analysis.judge_check import JURY, check_judges, describe, to_json
from helm_ext.errors import DatasetIntegrityError
from helm_ext.judging.judgement import HowDrawn, Judgement


def row(number, judgements, *, answer="yes"):
    return SimpleNamespace(
        instance_id=f"id{number}", perturbation=None, split="test", cluster=None, answers=[answer], said=judgements,
        list_said=lambda criterion: [one for one in judgements if one.criterion == criterion],
    )  # fmt: skip


def verdict(value, by="gpt", **more):
    return Judgement(by=by, kind="model", criterion="correct", value=value, rubric_sha256="d" * 64, **more)


def label(value, by="ann", design="random", scale=(0.0, 1.0), **chance):
    drawn = HowDrawn(design, **chance)
    return Judgement(by=by, kind="human", criterion="correct", value=value, scale=scale, drawn=drawn)


def check(*models):
    runs = [SimpleNamespace(model=name, predictions=lambda rows=rows: rows) for name, rows in models]
    return check_judges(runs)


def judged(seed, kind_to_wrong, rows=600, labels=150, right=0.6):
    """Rows of which the judge passes all right ones and so many of the wrong ones, longer ones always."""
    generator = np.random.default_rng(seed)
    truth = (generator.random(rows) < right).astype(float)
    passed = np.where((truth == 1) | (generator.random(rows) < kind_to_wrong), 1.0, 0.0)
    return [
        row(n, [verdict(float(v)), *([label(float(t))] if n < labels else [])], answer="word " * (20 if v > t else 5))
        for n, (v, t) in enumerate(zip(passed, truth, strict=True))
    ]


def test_a_judge_that_is_kind_to_one_model_and_to_long_answers():
    (one,) = check(("org/fair", judged(1, 0.0)), ("org/friend", judged(2, 0.6)))
    fair, friend = one.models.values()
    assert (fair.sides[0].mean, fair.sides[1].mean) == pytest.approx((1, 1))
    assert friend.sides[1].low < 0.4 < friend.sides[1].high
    assert fair.bias.interval.low <= 0 <= fair.bias.interval.high
    assert friend.bias.interval.low < 0.24 < friend.bias.interval.high
    assert one.length is None or one.length.low > 0
    said = describe(one)
    assert said[0].startswith("This judge")
    assert "too kind" in said[0]
    assert any(line.startswith("It favours org/friend") for line in said)
    assert to_json(one)["models"][1]["overrated"]["low"] > 0
    assert to_json(one)["refused"] is None
    favours = to_json(one)["favours"]
    assert (favours["most"], favours["least"]) == ("org/friend", "org/fair")
    assert f"by {favours['mean']:.3f} more than org/fair (95 %: {favours['low']:+.3f} to" in " ".join(said)
    # Of four models that are chosen for it, limits of all six pairs at once: z of 1 - 0.05/12.
    two = next(line for line in said if line.startswith("It favours"))
    many = describe(check(*((f"org/m{n}", judged(n, wrong)) for n, wrong in enumerate([0.0, 0.1, 0.3, 0.6])))[0])
    four = next(line for line in many if "favours" in line)
    assert "(95 %, corrected for 6 pairs: " in four
    ends = [[float(x) for x in re.search(r": ([+-][.\d]+) to ([+-][.\d]+)\)", text).groups()] for text in (two, four)]
    assert (ends[1][1] - ends[1][0]) / (ends[0][1] - ends[0][0]) == pytest.approx(2.638 / 1.960, rel=0.1)


def test_shares_of_labels_by_verdict_stay_shares():
    """4 of 100 failed answers are labelled, of which 1 is wrong, and 20 of 400 passed ones, of which 1 is."""
    cells = [(0.0, 100, [0.0, 1.0, 1.0, 1.0]), (1.0, 400, [0.0, *[1.0] * 19])]
    rows = []
    for value, number, people in cells:
        chance = {"design": "by_verdict", "stratum": f"{value:g}", "p": len(people) / number}
        said = [[label(one, **chance)] for one in people] + [[]] * (number - len(people))
        rows += [row(f"{value}-{place}", [verdict(value), *labels]) for place, labels in enumerate(said)]
    (one,) = check(("org/m", rows))
    wrong = 100 / 4 + 400 / 20
    assert one.whole.sides[1].mean == pytest.approx(25 / wrong)
    assert 0 <= one.whole.sides[1].low < 0.2
    assert one.whole.sides[1].high <= 1
    # Nothing is known of a verdict without any label.
    (one,) = check(("org/m", [row for row in rows if row.said[0].value or len(row.said) == 1]))
    assert one.whole.sides == (None, None)


def test_a_perfect_judge_needs_few_labels():
    (one,) = check(("org/a", judged(3, 0.0, rows=2000, labels=1000)))
    assert describe(one)[0].startswith("This judge agrees well with people. No sign that it is kinder or harsher")
    assert one.whole.agreement.kappa.mean == 1
    assert to_json(one)["labels_needed"] == {"1": 0, "0": 0}


def test_without_labels_nobody_knows_and_the_sheet_is_offered():
    (one,) = check(("org/a", judged(4, 0.2, labels=0)))
    first, second = describe(one)[:2]
    assert first == "Nobody knows how good this judge is: no labels."
    assert "helm-ext judge sheet" in second
    (few,) = check(("org/a", judged(4, 0.2, labels=19)))  # of which is known what follows: kappa, and the rest
    assert describe(few)[0] == "Its score cannot be corrected: 19 labels; at least 20 are needed."


def test_of_several_judges_the_jury_comes_first_and_what_does_not_count_is_said():
    rows = [
        row(
            n,
            [verdict(1.0, "a"), verdict(1.0 if n % 2 else None, "b", status="ok" if n % 2 else "unparsed"), label(1.0)],
        )
        for n in range(60)
    ]
    jury, a, b = check(("org/m", rows))
    assert (jury.judge, a.judge, b.judge) == (JURY, "a", "b")
    assert (jury.whole.raw.count, a.whole.raw.count) == (30, 60)  # one of two is no majority
    assert jury.statuses == b.statuses == {"unparsed": 30}
    assert describe(b)[-2] == "Judgements not counted: 30 unparsed."


def test_swapped_pairs_of_a_judge_that_always_says_the_first():
    rows = [
        row(n, [verdict(1.0, order="given", other="x"), verdict(0.0, order="swapped", other="x")]) for n in range(50)
    ]
    (one,) = check(("org/m", rows))
    assert (one.swapped.consistency.mean, one.swapped.win_rate.low, one.swapped.win_rate.high) == (0, 0, 1)
    assert any("keeps its verdict in 0.0%" in line for line in describe(one))


def test_a_jury_keeps_its_verdict_where_the_majority_of_each_order_is_one():
    """`a` always says the first, `b` always the run's own: 1 and 1 in the given order, 0 and 1 (a tie) swapped."""
    pairs = [("given", 1.0, 1.0), ("swapped", 0.0, 1.0)]
    said = [verdict(v, by, order=o, other="x") for o, *both in pairs for by, v in zip("ab", both, strict=True)]
    jury, a, b = check(("org/m", [row(n, said) for n in range(50)]))
    found = [(one.swapped.consistency.mean, one.swapped.win_rate.mean) for one in (jury, a, b)]
    assert found == [(0, 0.75), (0, 0.5), (1, 1)]
    assert "helm-ext judge sheet" not in " ".join(describe(jury))  # which has no place for two answers


def test_what_was_not_judged_is_an_error():
    with pytest.raises(DatasetIntegrityError, match="no row has a verdict"):
        check(("org/m", [row(1, [label(1.0)])]))


def test_agreement_on_grades_names_its_alpha_and_is_not_rounded_up_to_1():
    """Krippendorff's ordinal alpha by hand: of 200 pairs one differs, by ranks that are next to each other."""
    grades = [(n % 5 + 1, n % 5 + 1) for n in range(199)] + [(5, 4)]
    of = {"scale": (1.0, 2.0, 3.0, 4.0, 5.0)}
    (one,) = check(("org/a", [row(n, [verdict(j, **of), label(p, **of)]) for n, (j, p) in enumerate(grades)]))
    times = Counter(value for pair in grades for value in pair)
    ranks = {value: sum(times[low] for low in times if low < value) + times[value] / 2 for value in times}
    apart = {(a, b): (ranks[a] - ranks[b]) ** 2 for a in times for b in times}
    expected = sum(times[a] * times[b] * apart[a, b] for a, b in apart) / (400 * 399)
    assert one.whole.agreement.alpha.mean == pytest.approx(1 - 2 * apart[5, 4] / 400 / expected)
    assert "ordinal alpha 0.999" in " ".join(describe(one))
    assert to_json(one)["alpha_scale"] == "ordinal"
