"""The main metric by attribute, and its interval, which holds nothing that the score cannot be."""

import math
from dataclasses import replace

import pytest
from helm.benchmark.adaptation.adapter_spec import AdapterSpec
from helm.benchmark.adaptation.scenario_state import ScenarioState
from helm.benchmark.augmentations.perturbation_description import PerturbationDescription
from helm.benchmark.metrics.metric import MetricMetadata, PerInstanceStats
from helm.benchmark.metrics.metric_name import MetricName
from helm.benchmark.metrics.statistic import Stat
from helm.benchmark.scenarios.scenario import Input, Instance
from helm.common.request import Request
from helm_states import make_state

from helm_ext.evalset import EXTRA_KEY, Source, SourceScore
from helm_ext.scoring.breakdown import (
    IntervalTotal,
    describe_breakdown,
    measure_intervals,
    to_interval_stats,
    without_sub_splits,
)
from helm_ext.scoring.registry import find_bounds
from helm_ext.scoring.statistics.intervals import t_interval


def row(id, value, trial=0):
    other = Stat(MetricName("other", split="test")).add(9)
    return PerInstanceStats(id, None, trial, [Stat(MetricName("main", split="test")).add(value), other])


def instance(id, **attributes):
    return Instance(Input(""), [], split="test", id=id, extra_data={EXTRA_KEY: {"attributes": attributes}})


def break_down(*batches):
    total = IntervalTotal(["main"])
    for rows, instances in batches:
        total.add(measure_intervals(["main"], rows, instances))
    return total.break_down()


def means(rows, instances):
    return {(s.name.name, s.name.split): s.mean for s in break_down((rows, instances))}


def test_batches_add_up():
    of_batch = [(row(str(i), i / 7), instance(str(i), severity="low" if i % 3 else "high")) for i in range(20)]
    apart = break_down(*[([made], [of]) for made, of in of_batch])
    assert apart == break_down(([made for made, _ in of_batch], [of for _, of in of_batch]))
    assert {stat.name.name: stat.mean for stat in apart}["main@severity=high"] == sum(
        i / 7 for i in range(0, 20, 3)
    ) / 7


def test_the_mean_over_the_rows_of_each_value():
    rows = [row("a", 1), row("b", 0), row("c", 0.5), row("d", 1)]
    instances = [
        instance("a", severity="high"),
        instance("b", severity="high"),
        instance("c", severity="low"),
        instance("d"),
    ]
    assert means(rows, instances) == {("main@severity=high", "test"): 0.5, ("main@severity=low", "test"): 0.5}


def test_trials_are_averaged_after_their_rows_as_in_helm():
    perturbed = replace(row("b", 9), perturbation=PerturbationDescription("typos"))  # is no row of its own
    rows = [row("a", 1, 0), row("b", 0, 0), row("a", 0, 1), perturbed]
    instances = [instance("a", severity="high"), instance("b", severity="high")]
    # Trial 0: 1/2; trial 1: 0. The mean of trials is 1/4, the mean of rows would be 1/3.
    assert means(rows, instances) == {("main@severity=high", "test"): pytest.approx(0.25)}


def state(instance, text="x"):
    return make_state(instance, request=Request(prompt=text))


def test_stats_are_made_of_instances_without_sub_split():
    one, other = replace(instance("a"), sub_split="x"), instance("b")
    spec = AdapterSpec()
    states = [state(one, "1"), state(one, "2"), state(other, "3")]
    plain = without_sub_splits(ScenarioState(spec, states))
    assert plain.adapter_spec is spec
    assert [i.sub_split for i in plain.instances] == [None, None]
    assert [s.request.prompt for s in plain.request_states] == ["1", "2", "3"]
    assert plain.request_states[0].instance is plain.request_states[1].instance
    assert one.sub_split == "x"
    without = ScenarioState(spec, [state(other)])
    assert without_sub_splits(without) is without


def test_an_instance_of_another_format_has_no_attributes():
    plain = Instance(Input(""), [], split="test", id="a")
    assert means([row("a", 1)], [plain]) == {}
    made = break_down(([row("a", 1)], [replace(plain, sub_split="x")]))
    assert [stat.name.name for stat in made] == ["main@sub_split=x"]


def test_texts_of_a_table_and_a_group_that_can_be_a_file_name():
    described = {"main": MetricMetadata("main", display_name="Main", lower_is_better=True)}
    assert describe_breakdown(described, "main", {"severity": ("low",)})[0].display_name == "Main, severity low"
    assert describe_breakdown(described, "main", {"severity": ("low",)})[0].lower_is_better is True
    (made,) = describe_breakdown({"main": MetricMetadata("main")}, "main", {"kind of / row": ("a b",)})
    assert made == MetricMetadata(
        name="main@kind of / row=a b",
        display_name="main, kind of / row a b",
        short_display_name="kind of / row=a b (main)",
        description="main over the rows whose kind of / row is a b.",
        lower_is_better=None,
        group="by_kind_of_row",
    )


# Intervals


@pytest.mark.parametrize(("stat", "bounds"), [
    ("f1_score", (0, 1)), ("f1_score@subject=law", (0, 1)), ("exact_match@5", (0, 1)), ("wer_score", (0, math.inf)),
    ("ultraeval_bleu", (0, 100)), ("brier_score", (0, 2)), ("inspect_fluency", (-math.inf, math.inf)),
])  # fmt: skip
def test_bounds_are_known_by_name(stat, bounds):
    assert find_bounds(stat) == bounds


@pytest.mark.parametrize(("stat", "bounds"), [
    ("inspect_fluency", (1, 5)), ("inspect_fluency@subject=law", (1, 5)), ("inspect_fluency2", (-math.inf, math.inf)),
    ("inspect_style", (-math.inf, math.inf)), ("judge_tone", (0, 10)), ("judge_tone[lab/a]", (0, 10)),
    ("judge_tones", (-math.inf, math.inf)), ("judge_grade@subject=law", (1, 3)), ("exact_match", (0, 1)),
])  # fmt: skip
def test_a_run_says_the_bounds_of_its_sources_and_judges_scores(stat, bounds):
    scores = {"fluency": SourceScore(3.5, bounds=(1, 5)), "style": SourceScore(2.0)}
    judged = {"tone": {"scale": {"min": 0, "max": 10}}, "grade": {"scale": [3, 2, 1]}}
    assert find_bounds(stat, {"source": Source(tool="inspect", scores=scores).to_args(), "judged": judged}) == bounds


def test_ends_stay_within_the_bounds():
    """Two rows, 0.5 and 0.9: Student's t goes from -1.84 to 3.24."""
    low, high = (stat.mean for stat in to_interval_stats(MetricName("f1_score"), [0.5, 0.9], None))
    assert (low, high) == (0, 1)
    low, high = (stat.mean for stat in to_interval_stats(MetricName("judge"), [0.5, 0.9], None))
    assert low == pytest.approx(0.7 - 12.7062 * 0.2, abs=1e-3)


def test_rows_of_a_cluster_may_be_in_several_batches():
    """Of clusters of one size the interval is Student's t of their means: 24 rows, four of each."""
    values = [n * n % 7 / 7 for n in range(24)]
    rows = [row(str(n), value) for n, value in enumerate(values)]
    instances = [
        replace(instance(one.instance_id), extra_data={EXTRA_KEY: {"cluster": n // 4}}) for n, one in enumerate(rows)
    ]
    total = IntervalTotal(["main"])
    for start in range(0, 24, 5):
        total.add(measure_intervals(["main"], rows[start : start + 5], instances[start : start + 5]))
    expected = t_interval([sum(values[n : n + 4]) / 4 for n in range(0, 24, 4)])
    assert [stat.mean for stat in total.to_stats()] == pytest.approx([expected.low, expected.high])


@pytest.mark.parametrize("alone", [range(8), range(16, 24), range(8, 16), ()], ids=str)
def test_batches_without_a_cluster_and_of_one_trial_add_up(alone):
    """Whatever a batch keeps of its rows, the whole is that of one batch of all."""
    rows, instances = [], []
    for n in range(24):
        data = {"attributes": {"half": str(n % 2)}, **({} if n in alone else {"cluster": n // 4})}
        instances.append(replace(instance(str(n)), extra_data={EXTRA_KEY: data}))
        rows.append([row(str(n), n * n % 7 / 7), *([] if n in alone else [row(str(n), n % 2, trial=1)])])
    whole, parts = IntervalTotal(["main"]), IntervalTotal(["main"])
    for total, size in ((whole, 24), (parts, 4)):
        for start in range(0, 24, size):
            some = [one for found in rows[start : start + size] for one in found]
            total.add(measure_intervals(["main"], some, instances[start : start + size]))
    assert [stat.mean for stat in parts.to_stats()] == [stat.mean for stat in whole.to_stats()]
    assert [vars(stat) for stat in parts.break_down()] == [vars(stat) for stat in whole.break_down()]


def test_nothing_is_known_of_another_packages_score(monkeypatch):
    """A grade from 0 to 10: an interval that ends at 1 would not hold its own mean."""
    from helm_ext.scoring import registry
    from helm_ext.scoring.score import Score

    grade = Score("grade", lambda gold, prediction: 7.0)
    tables = registry._tables()
    monkeypatch.setattr(registry, "_tables", lambda: tuple({**table, "grade": grade} for table in tables))
    assert "grade" in registry.get_scores()
    low, high = (stat.mean for stat in to_interval_stats(MetricName("grade"), [6.0, 8.0, 7.5], None))
    assert low < 7 < high


def test_one_row_has_no_interval():
    assert not list(to_interval_stats(MetricName("f1_score"), [0.5], None))


@pytest.mark.parametrize("values", [[1.0, math.inf], [math.nan], [0.3, 0.3]])
def test_where_the_rows_do_not_tell_there_is_none(values):
    assert list(to_interval_stats(MetricName("perplexity", split="test"), values, None)) == []
