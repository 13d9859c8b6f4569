"""Live and recorded runs of one file take as many rows as `--max-eval-instances` asks for, by HELM's own sampling."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from helm.benchmark.adaptation.adapters.adapter_factory import AdapterFactory
from helm.benchmark.runner import downsample_eval_instances
from helm.benchmark.scenarios.scenario import EVAL_SPLITS, Input, Instance
from request_states_files import answered, split_rows, write

from helm_ext import plugin  # noqa: F401 - registers recorded deployments
from helm_ext.adaptation.rows import in_file_order, order_for_sampling, sample_places
from helm_ext.evalset import EXTRA_KEY, row_extra
from helm_ext.evalset.rows import StoredRows
from helm_ext.formats import request_states
from helm_ext.formats.request_states.scenario import AdapterSpecScenario


def make(split, only, number):
    extra = {EXTRA_KEY: {"only": only} if only else {}}
    return Instance(Input("x"), [], split=split, id=f"{split}-{only}-{number}", extra_data=extra)


def is_live(instance):
    return row_extra(instance).get("only") != "recorded"


@pytest.mark.parametrize(("live", "others"), [(0, 5), (1, 1), (1, 40), (7, 3), (10, 190), (30, 0)])
@pytest.mark.parametrize("train", [0, 4])
def test_helm_takes_rows_of_live_runs_first(live, others, train):
    instances = [make("test" if number % 2 else "valid", None, number) for number in range(live)]
    instances += [make("test", "recorded", number) for number in range(others)]
    instances[2:2] = [make("train", "live", number) for number in range(train)]
    ordered = order_for_sampling(instances, EVAL_SPLITS)
    assert sorted(one.id for one in ordered) == sorted(one.id for one in instances)
    assert others or ordered == instances
    for kind in (is_live, lambda one: not is_live(one)):
        assert [one.id for one in filter(kind, ordered) if one.split != "train"] == [
            one.id for one in filter(kind, instances) if one.split != "train"
        ]
    # Undone, the rows to evaluate are as in the file.
    assert [one.id for one in in_file_order(ordered) if one.split != "train"] == [
        one.id for one in instances if one.split != "train"
    ]
    for limit in range(1, live + others + 1):
        chosen = [one for one in downsample_eval_instances(ordered, limit, EVAL_SPLITS) if one.split != "train"]
        assert len(chosen) == limit
        assert sum(map(is_live, chosen)) == min(limit, live)


@pytest.mark.parametrize(("live", "others"), [(0, 5), (1, 40), (7, 3), (10, 190), (30, 0)])
@pytest.mark.parametrize("splits", [EVAL_SPLITS, ["test"]])
def test_places_are_sampled_as_instances(live, others, splits):
    instances = [make("test" if number % 2 else "valid", None, number) for number in range(live)]
    instances += [make("test", "recorded", number) for number in range(others)]
    instances[2:2] = [make("train", "live", number) for number in range(4)]
    names, only = ("train", "valid", "test"), (None, "live", "recorded")
    rows = StoredRows(
        store=None,
        make=None,
        numbers=np.arange(len(instances)),
        splits=names,
        split=np.array([names.index(one.split) for one in instances], np.uint8),
        only=np.array([only.index(row_extra(one).get("only")) for one in instances], np.uint8),
    )
    for limit in (*range(1, live + others + 2), None):
        chosen = order_for_sampling(instances, splits)
        if limit is not None:
            chosen = downsample_eval_instances(chosen, limit, splits)
        else:
            chosen = [one for one in chosen if one.split == "train"] + [one for one in chosen if one.split in splits]
        places = sample_places(rows, splits, limit)
        assert [instances[place].id for place in places] == [one.id for one in chosen]


def evaluated(path, deployment, limit):
    """The ids of the rows that a run evaluates, by the steps of HELM's runner."""
    evalset = request_states.load(path)
    scenario = AdapterSpecScenario(path=str(path), digest=evalset.short_digest, main_metric="exact_match")
    instances = scenario.get_instances("")
    spec = replace(evalset.adapter_spec, model=deployment, model_deployment=deployment, max_eval_instances=limit)
    if limit is not None:
        instances = downsample_eval_instances(instances, limit, spec.eval_splits or EVAL_SPLITS)
    return [state.instance.id for state in AdapterFactory.get_adapter(spec, None).adapt(instances, 1)]


@pytest.mark.parametrize(("rows", "spec", "live", "recorded"), [
    # Not differentiated, a cap of 10 and 5 demonstrations: `-m 10` used to leave none.
    (200, {"max_eval_instances": 10}, {1: 1, 7: 7, 10: 10, 50: 10, None: 10}, {1: 1, 7: 7, 50: 50, None: 200}),
    # Without a cap demonstrations alone are kept out.
    (30, {"max_train_instances": 12}, {1: 1, 5: 5, 18: 18, 25: 18}, {1: 1, 5: 5, 18: 18, 25: 25}),
    # Splits that the file evaluates: every second row is of `dev`.
    (40, {"max_train_instances": 5, "eval_splits": ["dev"], "max_eval_instances": 8}, {3: 3, 30: 8, None: 8}, {3: 3, 30: 20, None: 20}),
])  # fmt: skip
def test_so_many_rows_of_a_file_are_evaluated(tmp_path, live_deployment, rows, spec, live, recorded):
    made = [answered(row, "4") for row in split_rows(rows)]
    if "eval_splits" in spec:
        for row, split in zip(made, itertools.cycle(["test", "dev"]), strict=False):
            row["instance"]["split"] = split
    path = write(tmp_path / "x.json", made, spec)
    ids = {
        (deployment, limit): set(evaluated(path, deployment, limit))
        for deployment, limits in ((live_deployment, live), ("recorded/x", recorded))
        for limit in limits
    }
    assert {limit: len(ids[live_deployment, limit]) for limit in live} == live
    assert {limit: len(ids["recorded/x", limit]) for limit in recorded} == recorded
    if 7 in live:  # both are about the same rows
        assert ids[live_deployment, 7] == ids["recorded/x", 7]
    if "eval_splits" in spec:
        assert set().union(*ids.values()) <= {f"n{number}" for number in range(1, 40, 2)}
