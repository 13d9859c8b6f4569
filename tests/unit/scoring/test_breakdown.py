from dataclasses import replace

import pytest
from helm.benchmark.adaptation.adapter_spec import AdapterSpec
from helm.benchmark.adaptation.scenario_state import ScenarioState
from helm.benchmark.metrics.metric import MetricMetadata, PerInstanceStats
from helm.benchmark.metrics.metric_name import MetricName
from helm.benchmark.metrics.statistic import Stat
from helm.benchmark.scenarios.scenario import Input, Instance
from helm.common.request import Request
from helm_states import make_state

from helm_ext.evalset import EXTRA_KEY
from helm_ext.scoring.breakdown import IntervalTotal, describe_breakdown, measure_intervals, without_sub_splits

ATTRIBUTES = {"severity": ("high", "low")}


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
    rows = [row("a", 1, 0), row("b", 0, 0), row("a", 0, 1)]
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
