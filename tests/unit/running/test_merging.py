"""Rows of finished runs are read as they stand, their ids are made unique, and what is no run is told."""

import json
from pathlib import Path

import pytest
from helm.benchmark.metrics.metric import PerInstanceStats
from helm.benchmark.metrics.metric_name import MetricName
from helm.benchmark.metrics.statistic import Stat
from helm.benchmark.scenarios.scenario import Input, Instance
from helm_states import make_state

from helm_ext.errors import DatasetIntegrityError
from helm_ext.running.merging import MeasuredStats, ShardRow, _find_facts, _Ids, iter_rows
from helm_ext.running.serialise import write_array

NONE = frozenset()


def state(instance_id, trial=0, reference=None):
    return make_state(Instance(Input("?"), [], id=instance_id), reference_index=reference, train_trial_index=trial)


def row(instance_id, trial, **values):
    stats = [Stat(MetricName(name, split="test")).add(value) for name, value in values.items()]
    return PerInstanceStats(instance_id, None, trial, stats)


def write(path, rows):
    with path.open("wb") as file:
        write_array(file, rows)


def said(stats):
    """Return all that Stats hold, told apart as 1 from 1.0 and 0.0 from -0.0."""
    return [repr({**vars(stat), "name": vars(stat.name)}) for stat in stats]


def found(stats, given):
    return said(stats.find([state(given.instance_id, given.train_trial_index)], NONE))


ROWS = (
    row("a", 0, exact=1, f1=0.25, low=-0.0),
    row("b", 0, exact=1.0, f1=float("inf"), low=0.0),
    row("a", 1, exact=0, f1=1 / 3, low=None),
    PerInstanceStats("c", None, 0, []),
    row('d", "x": {\n      },\n      {', 0, exact=2**70, f1=1e-300, low=1),
)


@pytest.mark.parametrize("flat", [False, True])
def test_stats_are_what_was_written_in_any_order(tmp_path, flat):
    write(tmp_path / "s.json", ROWS)
    if flat:
        (tmp_path / "s.json").write_text(json.dumps(json.loads((tmp_path / "s.json").read_bytes())))
    stats = MeasuredStats(tmp_path / "s.json")
    for given in (*ROWS, *reversed(ROWS)):
        assert found(stats, given) == said(given.stats)
    assert stats.find([state("z")], NONE) == []
    first, second = (stats.find([state(name)], NONE) for name in "ab")
    assert first[0].name is second[0].name
    stats.shard_ids = {"a-2": "a"}
    assert [stat.name.name for stat in stats.find([state("a-2")], frozenset({"f1"}))] == ["exact", "low"]
    stats.close()


def write_states(path, ids):
    states = [
        {
            "instance": {"input": {"text": f"of {i}"}, "references": [], "split": "test", "id": i,
                         "extra_data": {"helm_ext": {"cluster": "p"}}},
            "reference_index": index, "train_trial_index": 0, "request": {"prompt": "caf\u00e9", "stop_sequences": [None]},
        }
        for i in ids for index in range(2)
    ]  # fmt: skip
    path.write_text(json.dumps({"adapter_spec": {}, "request_states": states}, indent=2))
    return states


def test_rows_have_their_states_and_a_changed_id_is_kept(tmp_path):
    states = write_states(tmp_path / "s.json", "ab")
    rows = list(iter_rows(tmp_path / "s.json"))
    assert [one.shard_id for one in rows] == ["a", "b"]
    assert [state for one in rows for state in one.states] == states
    rows[1].rename("b-2")
    for one, given in zip(rows[1].states, states[2:], strict=True):
        assert one["instance"].pop("id") == "b-2"
        assert one["instance"]["extra_data"]["helm_ext"].pop("id") == given["instance"].pop("id") == "b"
        assert one == given


class TestIds:
    def choose(self, *shards):
        ids, found = _Ids(), []
        for number, shard in enumerate(shards):
            for part in (shard[:1], shard[1:]):  # two batches
                rows = [ShardRow(one, [{"instance": {"id": one, "input": text}}]) for one, text in part]
                ids.choose(Path(f"run{number}"), rows)
                found += [one.id for one in rows]
            ids.finish(Path(f"run{number}"))
        return found

    def test_shared_ids_get_the_number_of_the_shard(self):
        shards = [[("a", "1"), ("b", "2")], [("a", "3"), ("c", "4")], [("a", "5"), ("c", "6"), ("b", "7")]]
        assert self.choose(*shards) == ["a", "b", "a-2", "c", "a-3", "c-3", "b-3"]

    @pytest.mark.parametrize(
        "shards", [[[("a", "1"), ("a-2", "2")], [("a", "3")]], [[("a", "1")], [("a-2", "2"), ("a", "3")]]]
    )
    def test_a_made_id_that_another_row_has_is_an_error(self, shards):
        with pytest.raises(DatasetIntegrityError, match="run1: ids that earlier shards have get the number"):
            self.choose(*shards)

    def test_one_row_in_two_shards_is_told_with_both(self):
        """Also where its id was changed when it came first."""
        for shards in ([[("a", "1")], [("b", "2")], [("a", "1")]], [[("a", "1")], [("a", "2")], [("a", "2")]]):
            with pytest.raises(DatasetIntegrityError, match=r"run[01] and run2: both have the row 'a'"):
                self.choose(*shards)


def test_what_is_missing_where_no_row_is_scored_was_not_unmeasured():
    assert not _find_facts({"num_left_out", "num_too_long"}).unmeasured
    assert "logprob" in _find_facts({"num_instances", "exact_match", "num_left_out"}).unmeasured
