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
from helm_ext.planning.merged import _find_facts
from helm_ext.running.merging import MeasuredStats, _Ids, rename
from helm_ext.running.serialise import write_array

NONE = frozenset()


def row(instance_id, trial, **values):
    stats = [Stat(MetricName(name, split="test")).add(value) for name, value in values.items()]
    return PerInstanceStats(instance_id, None, trial, stats)


def said(stats):
    """Return all that Stats hold, told apart as 1 from 1.0 and 0.0 from -0.0."""
    return [repr({**vars(stat), "name": vars(stat.name)}) for stat in stats]


ROWS = (
    row("a", 0, exact=1, f1=0.25, low=-0.0),
    row("b", 0, exact=1.0, f1=float("inf"), low=0.0),
    row("a", 1, exact=0, f1=1 / 3, low=None),
    PerInstanceStats("c", None, 0, []),
    row('d", "x": {\n      },\n      {', 0, exact=2**70, f1=1e-300, low=1),
    row("a", 0, of_another_metric=1),
)


@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize("order", [(0, 1, 2, 3, 4, 5), (4, 3, 2, 1, 0, 5)])
def test_stats_are_what_was_written_in_any_order(tmp_path, flat, order):
    path = tmp_path / "s.json"
    with path.open("wb") as file:
        write_array(file, ROWS)
    if flat:
        path.write_text(json.dumps(json.loads(path.read_bytes())))
    stats, left_out = MeasuredStats(path), MeasuredStats(path)
    for given in map(ROWS.__getitem__, order):
        state = make_state(Instance(Input("?"), [], id=given.instance_id), train_trial_index=given.train_trial_index)
        found = stats.find([state], NONE)
        assert said(found) == said(given.stats)
        assert [stat.name.name for stat in left_out.find([state], frozenset({"f1"}))] == [
            stat.name.name for stat in given.stats if stat.name.name != "f1"
        ]
    assert stats.find([state], NONE) == []
    stats.close()
    left_out.close()


def test_a_changed_id_is_kept():
    instance = {"input": {"text": "of b"}, "id": "b", "extra_data": {"helm_ext": {"cluster": "p"}}}
    other = {"input": {"text": "of a"}, "id": "a"}
    for one in (instance, other):
        rename(one, {"a": "a", "b": "b-2"})
    assert instance == {"input": {"text": "of b"}, "id": "b-2", "extra_data": {"helm_ext": {"cluster": "p", "id": "b"}}}
    assert other == {"input": {"text": "of a"}, "id": "a"}


class TestIds:
    def choose(self, *shards):
        ids, found = _Ids(), []
        for number, shard in enumerate(shards):
            for part in (shard[:1], shard[1:]):  # two batches
                found += ids.choose(Path(f"run{number}"), [{"id": one, "input": text} for one, text in part]).values()
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
