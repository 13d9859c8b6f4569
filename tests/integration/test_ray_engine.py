"""Tasks on Ray actors of this machine."""

from __future__ import annotations

import functools
import subprocess
import sys
from collections import Counter, deque
from pathlib import Path

import pytest
import ray_workers

from helm_ext.errors import DatasetError, HelmExtError
from helm_ext.evalset.engines import LONE_TRIES, BatchLostError
from helm_ext.running import ray_engine
from helm_ext.running.ray_engine import RayEngine, RaySettings

pytest.importorskip("ray")
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True)
def one_ray():
    """One Ray for all tests of this module; engines join it."""
    import ray

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", f"{Path(ray_workers.__file__).parent}:{Path(ray_engine.__file__).parents[2]}")
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        ray.init(address="local", num_cpus=2, include_dashboard=False, object_store_memory=100_000_000)
        yield
        ray.shutdown()


@pytest.fixture
def engine():
    made = RayEngine(RaySettings(actors=2))
    yield made
    made.close()


def notes(folder):
    return [line.split() for line in (folder / "notes").read_text().splitlines()]


def squarer(folder, **options):
    return functools.partial(ray_workers.make_squarer, str(folder), **options)


def collect(results, into):
    """Take what comes before an exception."""
    for result in results:
        into.append(result)


def test_results_come_in_order_from_workers_that_are_made_once(tmp_path, engine):
    numbers = range(60)
    assert list(engine.map(squarer(tmp_path, seconds=0.01), numbers)) == [number**2 for number in numbers]
    # For the same worker the actors are there; for another one they are made anew.
    assert list(engine.map(squarer(tmp_path, seconds=0.01), range(9))) == [number**2 for number in range(9)]
    assert [line[0] for line in notes(tmp_path)].count("made") == 2
    assert list(engine.map(squarer(tmp_path), range(9))) == [number**2 for number in range(9)]
    assert [line[0] for line in notes(tmp_path)].count("made") in (3, 4)  # the second may come too late
    assert list(engine.map(squarer(tmp_path), [])) == []


def test_one_task_asks_for_one_actor(tmp_path, engine):
    assert list(engine.map(squarer(tmp_path), [3])) == [9]
    assert [line[0] for line in notes(tmp_path)].count("made") == 1


def test_what_follows_from_results_is_done_to_the_last(tmp_path, engine):
    following, results = deque(), []
    for result in engine.map(squarer(tmp_path, deadly=100), range(12), following=following):
        results.append(result)
        following.append(101 + result)
        if result == 0:
            following.append(102)  # twice, beside 1
    assert results == [number**2 for number in range(12)]
    done = Counter(line[1] for line in notes(tmp_path) if line[0] == "done")
    assert done == Counter(map(str, [*range(12), *(101 + number**2 for number in range(12)), 102]))


def test_tasks_are_read_as_far_as_results_are_taken(tmp_path, engine):
    read = []
    results = engine.map(squarer(tmp_path), (read.append(number) or number for number in range(1_000)))
    assert [next(results) for _ in range(3)] == [0, 1, 4]
    assert len(read) < 60
    results.close()
    assert list(engine.map(squarer(tmp_path), range(3))) == [0, 1, 4]


def test_threads_of_an_actor(tmp_path):
    engine = RayEngine(RaySettings(actors=1), concurrency=3)
    try:
        assert list(engine.map(squarer(tmp_path, seconds=0.05), range(12))) == [number**2 for number in range(12)]
    finally:
        engine.close()
    open_now, most = set(), 0
    for line in notes(tmp_path):
        if line[0] == "begun":
            open_now.add(line[1])
            most = max(most, len(open_now))
        elif line[0] == "done":
            open_now.remove(line[1])
    assert most == 3


def test_what_a_task_raises_is_raised_after_what_was_begun(tmp_path, engine):
    got = []
    with pytest.raises(KeyError) as raised:
        collect(engine.map(squarer(tmp_path, seconds=0.02, raising=30), range(1_000)), got)
    assert got == [number**2 for number in range(30)]
    assert "in square" in str(raised.value.__cause__)  # where it was raised
    begun = {line[1] for line in notes(tmp_path) if line[0] == "begun"}
    done = {line[1] for line in notes(tmp_path) if line[0] == "done"}
    assert begun - done == {"30"}
    assert len(begun) < 50


def test_a_task_that_ends_its_process_is_tried_so_often_and_the_others_once_or_twice(tmp_path, engine):
    with pytest.raises(BatchLostError, match="ends each process that does it"):
        list(engine.map(squarer(tmp_path, seconds=0.02, deadly=7), range(20)))
    begun = Counter(line[1] for line in notes(tmp_path) if line[0] == "begun")
    assert begun.pop("7") == 1 + LONE_TRIES
    assert max(begun.values()) <= 2


def test_an_actor_without_memory_is_a_lost_one(tmp_path, engine):
    tasks = functools.partial(ray_workers.make_hungry, str(tmp_path), tries=1)
    assert list(engine.map(tasks, range(12))) == [number**2 for number in range(12)]
    assert Counter(line[1] for line in notes(tmp_path) if line[0] == "begun")["7"] == 2


def test_a_task_is_split_to_find_what_ends_processes(engine):
    tasks = [list(range(start, start + 4)) for start in range(0, 20, 4)]
    got = []
    make_worker = functools.partial(ray_workers.make_lister, 9)
    with pytest.raises(BatchLostError):
        collect(engine.map(make_worker, tasks, split=lambda task: [[one] for one in task]), got)
    # Parts come where the whole would have come, up to the one that is given up.
    assert got == [[0, 1, 2, 3], [4, 5, 6, 7], [8]]


def test_a_worker_that_cannot_be_made(engine):
    with pytest.raises(DatasetError, match="no worker today"):
        list(engine.map(ray_workers.make_nothing, range(3)))


def test_a_worker_that_dies_while_it_is_made(engine):
    with pytest.raises(HelmExtError, match="were lost before they could do anything"):
        list(engine.map(ray_workers.make_dead, range(3)))


def test_results_that_cannot_be_sent(engine):
    with pytest.raises(Exception, match="pickle"):
        list(engine.map(ray_workers.make_lambda_result, range(3)))


def test_other_versions(engine, monkeypatch):
    monkeypatch.setattr(ray_engine, "versions", lambda: {"python": "2.7"})
    with pytest.raises(HelmExtError, match="a Ray node has other versions than the driver"):
        list(engine.map(functools.partial(ray_workers.make_lister, 9), [[1]]))


def test_more_than_any_node_has():
    engine = RayEngine(RaySettings(actors=1, gpus=64))
    with pytest.raises(HelmExtError, match=r"no node of the Ray cluster has 1 CPUs and 64 GPUs for an actor"):
        list(engine.map(functools.partial(ray_workers.make_lister, 9), [[1]]))


def test_settings(monkeypatch):
    assert RaySettings.from_environ() == RaySettings(0, 1.0, 0.0, "local")
    for name, value in (("ACTORS", "8"), ("CPUS", "0.25"), ("GPUS", "0.5")):
        monkeypatch.setenv(f"HELM_EXT_RAY_{name}", value)
    monkeypatch.setenv("RAY_ADDRESS", "10.0.0.1:6379")
    assert RaySettings.from_environ() == RaySettings(8, 0.25, 0.5, "10.0.0.1:6379")
    monkeypatch.setenv("HELM_EXT_RAY_ACTORS", "0")
    with pytest.raises(HelmExtError, match="HELM_EXT_RAY_ACTORS"):
        RaySettings.from_environ()


def test_ray_is_imported_by_nothing_else():
    code = """
import sys
import helm_ext.plugin, helm_ext.running
from helm_ext.running import StreamingRunner
assert "ray" not in sys.modules
from helm_ext.running import RayRunner
assert "ray" not in sys.modules  # it is imported when there is something to do
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_without_ray(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(HelmExtError, match=r"pip install 'helm-ext\[ray\]'"):
        list(RayEngine(RaySettings()).map(functools.partial(ray_workers.make_lister, 9), [[1]]))


@pytest.mark.parametrize("address", ["127.0.0.1:1", "nonsense", "127.0.0.1:99999"])
def test_a_cluster_that_is_not_there(address):
    code = f"""
from helm_ext.errors import HelmExtError
from helm_ext.running.ray_engine import RayEngine, RaySettings
try:
    list(RayEngine(RaySettings(address={address!r})).map(dict, [1]))
except HelmExtError as error:
    assert str(error).startswith("RAY_ADDRESS={address}: no Ray there, or none that can be joined: "), error
else:
    raise AssertionError
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
