"""A source's scores are means over all rows that have them, and say on how many of ours they differ."""

import pytest
from helm.benchmark.metrics.metric import PerInstanceStats
from helm.benchmark.metrics.metric_name import MetricName
from helm.benchmark.metrics.statistic import Stat
from helm.benchmark.scenarios.scenario import Input, Instance

from helm_ext.evalset import EXTRA_KEY, Source, SourceScore
from helm_ext.scoring.source_scores import SourceMeasure, SourceTotal, find_left_out

SOURCE = Source(tool="inspect", scores={"match": SourceScore(0.5), "acc": SourceScore()}).to_args()
TEST, VALID = "test", "valid"
NAMES = {(name, split): MetricName(name, split) for name in ("ours", "inspect_match", "inspect_acc", "acc", "other")
         for split in (TEST, VALID)}  # fmt: skip


def row(split: str = TEST, **values: float) -> PerInstanceStats:
    """Return a row's stats, of which a context has one name each, as in a run."""
    stats = [Stat(NAMES[name, split]).add(value) for name, value in values.items()]
    return PerInstanceStats("1", None, 0, stats)


def summed(*batches, **options) -> dict[str, tuple[float, int]]:
    measure = SourceMeasure(SOURCE, "ours", **options)
    total = SourceTotal(measure)
    for rows in batches:
        total.add(measure.measure(rows))
    return {f"{stat.name.name}@{stat.name.split}": (stat.mean, stat.count) for stat in total.to_stats()}


def test_means_and_differences() -> None:
    rows = [row(ours=1.0, inspect_match=1.0), row(ours=0.0, inspect_match=1.0), row(ours=0.5, inspect_match=0.5)]
    found = summed(rows)
    assert found["inspect_match@test"] == (pytest.approx(2.5 / 3), 3)
    assert found["inspect_match_differs@test"] == (pytest.approx(1 / 3), 3)
    assert "ours@test" not in found
    assert summed(rows[:1], rows[1:]) == found
    assert "inspect_acc@test" not in found


def test_rows_that_only_one_of_both_scored_are_not_compared() -> None:
    found = summed([row(ours=1.0), row(inspect_match=0.0), row(inspect_match=1.0, ours=1.0)])
    assert found["inspect_match@test"] == (0.5, 2)
    assert found["inspect_match_differs@test"] == (0.0, 1)


def test_splits_are_apart() -> None:
    found = summed([row(ours=1.0, inspect_match=1.0), row(VALID, ours=1.0, inspect_match=0.0)])
    assert (found["inspect_match@test"], found["inspect_match@valid"]) == ((1.0, 1), (0.0, 1))
    assert found["inspect_match_differs@valid"] == (1.0, 1)


def test_beside_a_headline_scores_are_compared_with_our_metric_of_the_same_name_alone() -> None:
    rows = [row(ours=1.0, acc=0.0, inspect_match=0.0, inspect_acc=0.0)]
    source = {**SOURCE, "main": "inspect_match"}
    for measured, expected in ((["acc", "ours"], 0.0), (["ours"], None)):
        measure = SourceMeasure(source, "ours", measured=measured)
        total = SourceTotal(measure)
        total.add(measure.measure(rows))
        found = {stat.name.name: stat.mean for stat in total.to_stats()}
        assert found["inspect_match_differs"] == 1.0
        assert found["inspect_acc"] == 0.0
        assert found.get("inspect_acc_differs") == expected


def test_a_score_on_another_scale_than_ours_is_not_compared() -> None:
    """A judge's 1 to 5 never equals right or wrong; what is computed by one rule is compared whatever it is."""
    rows = [row(ours=1.0, acc=4.0, inspect_match=1.0, inspect_acc=4.0), row(VALID, ours=1.0, acc=0.5, inspect_acc=1.0)]
    assert {name for name in summed(rows[:1], rows[1:]) if "differs" in name} == {"inspect_match_differs@test"}
    assert summed(rows, same=["acc"])["inspect_acc_differs@test"] == (0.0, 1)


def test_rows_left_out_of_our_scores_keep_their_sources() -> None:
    def instance(**extra) -> Instance:
        return Instance(Input("?"), [], split=TEST, id="7", extra_data={EXTRA_KEY: extra})

    scores = {"inspect_match": 0.25}
    found = find_left_out(
        [instance(left_out="failed", source_scores=scores), instance(left_out="failed"), instance(source_scores=scores)]
    )
    assert [(one.instance_id, one.train_trial_index, [(s.name, s.mean) for s in one.stats]) for one in found] == [
        ("7", 0, [(NAMES["inspect_match", TEST], 0.25)])
    ]


def test_rows_that_the_source_could_not_score_are_counted() -> None:
    unread = Instance(
        Input("?"), [], split=TEST, id="7", extra_data={EXTRA_KEY: {"source_unscored": ["inspect_match"]}}
    )
    measure = SourceMeasure(SOURCE, "ours")
    total = SourceTotal(measure)
    for rows, instances in (([row(ours=1.0, inspect_match=1.0)], [unread]), ([], [unread])):
        total.add(measure.measure(rows, instances))
    found = {stat.name: (stat.sum, stat.count) for stat in total.to_stats()}
    assert found[MetricName("inspect_match_unscored", split=TEST)] == (2, 1)
    assert found[MetricName("inspect_match", split=TEST)] == (1.0, 1)


def test_what_is_no_mean_of_rows_is_said_as_the_source_reports_it() -> None:
    scores = {"f1": SourceScore(0.625, no_mean="made of all rows"), "ter": SourceScore(None, no_mean="likewise")}
    measure = SourceMeasure(Source(tool="lm_eval", scores=scores).to_args(), "ours")
    stats = SourceTotal(measure).to_stats([TEST])
    assert [(stat.name, stat.mean) for stat in stats] == [(MetricName("lm_eval_f1", split=TEST), 0.625)]
