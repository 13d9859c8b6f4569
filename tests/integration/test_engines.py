"""Tasks in real processes and in Ray's actors, some of which die: each fault once for each engine.

The rule itself, with workers that are lost on cue: tests/unit/engines/test_engine.py.
"""

import functools
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import engine_workers
import pytest

from helm_ext.engines import ray_engine
from helm_ext.engines.engine import FAILED_STARTS, LONE_TRIES, BatchLostError, ProcessEngine
from helm_ext.engines.ray_engine import RayEngine, RaySettings
from helm_ext.errors import DatasetError, HelmExtError

pytestmark = [pytest.mark.slow, pytest.mark.nightly("src/helm_ext/engines", "tests/engine_workers.py")]

LISTER = functools.partial(engine_workers.make_lister, 9)


def squarer(folder, **options):
    return functools.partial(engine_workers.make_squarer, str(folder), **options)


def notes(folder):
    return [line.split() for line in (folder / "notes").read_text().splitlines()]


def begun(folder):
    return Counter(line[1] for line in notes(folder) if line[0] == "begun")


@pytest.fixture(scope="module")
def one_ray():
    """One Ray for all tests of this module; engines join it."""
    ray = pytest.importorskip("ray")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", f"{Path(engine_workers.__file__).parent}:{Path(ray_engine.__file__).parents[2]}")
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        ray.init(address="local", num_cpus=2, include_dashboard=False, object_store_memory=100_000_000)
        yield
        ray.shutdown()


@pytest.fixture
def on_ray(one_ray):
    made = RayEngine(RaySettings(actors=2))
    yield made
    made.disconnect()


@pytest.fixture(params=["processes", "ray"])
def engine(request):
    """Two workers."""
    made = ProcessEngine(2) if request.param == "processes" else request.getfixturevalue("on_ray")
    yield made
    made.close()


def test_results_come_in_order_from_workers_that_are_made_once(tmp_path, engine):
    results = engine.map(squarer(tmp_path, seconds=0.005), range(60))
    assert list(results) == [number**2 for number in range(60)]
    assert [line[0] for line in notes(tmp_path)].count("made") == 2
    assert list(engine.map(squarer(tmp_path), [])) == []


def test_a_worker_that_cannot_be_made_and_a_task_that_raises_say_why(tmp_path, engine):
    with pytest.raises(DatasetError, match="no worker today"):
        list(engine.map(engine_workers.make_nothing, range(4)))
    got = []
    with pytest.raises(KeyError) as raised:
        got.extend(engine.map(squarer(tmp_path, seconds=0.02, raising=30), range(1_000)))
    assert "in square" in str(raised.value.__cause__)  # where it was raised
    done = {line[1] for line in notes(tmp_path) if line[0] == "done"}
    assert begun(tmp_path).keys() - done == {"30"}
    assert len(begun(tmp_path)) < 60


def test_of_a_task_that_is_split_only_the_part_that_kills_its_worker_is_given_up(engine):
    tasks = [list(range(start, start + 4)) for start in range(0, 20, 4)]
    got = []

    def take():
        for result in engine.map(LISTER, tasks, split=lambda task: [[one] for one in task]):
            got.append(result)  # noqa: PERF402 - what comes before the exception

    with pytest.raises(BatchLostError, match=r"^\[9\]: this batch ends each process that does it"):
        take()
    # Parts come where the whole would have come.
    assert got == [[0, 1, 2, 3], [4, 5, 6, 7], [8]][: len(got)]


@pytest.mark.parametrize("tries", [1, LONE_TRIES + 1])
def test_a_worker_without_memory_is_a_lost_one(tmp_path, engine, tries):
    results = engine.map(functools.partial(engine_workers.make_hungry, str(tmp_path), tries=tries), range(12))
    if tries == 1:
        assert list(results) == [number**2 for number in range(12)]
    else:
        with pytest.raises(BatchLostError, match="7: this batch ends each process"):
            list(results)
    assert begun(tmp_path)["7"] == max(tries, 2)


def test_workers_that_are_killed_while_they_start_are_replaced_and_no_task_is_blamed(tmp_path, engine):
    """More often than a task may take workers down: as many as may fail in a row, less one."""
    deaths = 2 * FAILED_STARTS - 1
    make_worker = functools.partial(engine_workers.make_squarer_late, str(tmp_path), deaths=deaths)
    assert list(engine.map(make_worker, range(6))) == [number**2 for number in range(6)]
    assert set(begun(tmp_path).values()) == {1}
    with pytest.raises(HelmExtError, match="workers cannot start: [67] processes, one after another") as caught:
        list(engine.map(engine_workers.make_dead, range(6)))
    assert not isinstance(caught.value, BatchLostError)


def test_workers_that_are_killed_while_they_wait_for_work_are_replaced(tmp_path, engine):
    results = engine.map(squarer(tmp_path), range(40))
    assert next(results) == 0
    seen = []
    while (now := Counter(line[0] for line in notes(tmp_path))) not in seen:  # until nobody works, for a while
        seen = [now] if now["made"] == 2 and now["begun"] == now["done"] else []
        time.sleep(0.5)
    assert 0 < now["done"] < 30
    for line in notes(tmp_path):
        if line[0] == "made":
            os.kill(int(line[1]), signal.SIGKILL)
    time.sleep(0.5)  # so that it is known to be dead before the next task is given out
    assert list(results) == [number**2 for number in range(1, 40)]
    assert max(begun(tmp_path).values()) <= 2


def test_where_no_thread_can_be_started_nothing_hangs(tmp_path, monkeypatch):
    """As under `ulimit -v`: the process is there then, and nobody would wait for it."""

    def fail(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr("concurrent.futures.process._ExecutorManagerThread.start", fail)
    with pytest.raises(HelmExtError, match="workers cannot start: .*: can't start new thread\n"):
        list(ProcessEngine(2).map(squarer(tmp_path), range(6)))
    assert multiprocessing.active_children() == []


def test_processes_are_kept_for_other_work_and_those_killed_between_are_replaced(tmp_path):
    engine = ProcessEngine(2)
    for seconds in (0.02, 0.03):
        results = engine.map(squarer(tmp_path, seconds=seconds), range(20))
        assert list(results) == [number**2 for number in range(20)]
    made = [line[1] for line in notes(tmp_path) if line[0] == "made"]
    assert len(made) == 4
    assert sorted(made[:2]) == sorted(made[2:])
    os.kill(int(made[0]), signal.SIGKILL)
    assert list(engine.map(LISTER, [[1], [2], [3]])) == [[1], [2], [3]]
    engine.close()
    assert multiprocessing.active_children() == []


def test_actors_are_kept_for_the_same_worker(tmp_path, on_ray):
    for _ in range(2):
        assert list(on_ray.map(squarer(tmp_path, seconds=0.01), range(20))) == [number**2 for number in range(20)]
    assert [line[0] for line in notes(tmp_path)].count("made") == 2
    assert list(on_ray.map(squarer(tmp_path), [3])) == [9]  # another one
    assert [line[0] for line in notes(tmp_path)].count("made") == 3


def test_threads_of_an_actor(tmp_path, one_ray):
    engine = RayEngine(RaySettings(actors=1), concurrency=3)
    try:
        make_worker = functools.partial(engine_workers.make_meeting, str(tmp_path), 3)
        assert list(engine.map(make_worker, range(12))) == [*range(12)]
    finally:
        engine.disconnect()
    open_now, most = set(), 0
    for line in notes(tmp_path):
        if line[0] == "begun":
            open_now.add(line[1])
            most = max(most, len(open_now))
        elif line[0] == "done":
            open_now.remove(line[1])
    assert most == 3


def test_results_that_cannot_be_sent(on_ray):
    with pytest.raises(Exception, match="pickle"):
        list(on_ray.map(engine_workers.make_lambda_result, range(3)))


def test_other_versions(on_ray, monkeypatch):
    monkeypatch.setattr(ray_engine, "_versions", lambda: {"python": "2.7"})
    with pytest.raises(HelmExtError, match="a Ray node has other versions than the driver"):
        list(on_ray.map(LISTER, [[1]]))


def test_more_than_any_node_has(one_ray):
    engine = RayEngine(RaySettings(actors=1, gpus=64))
    with pytest.raises(HelmExtError, match=r"no node of the Ray cluster has 1 CPUs and 64 GPUs for an actor"):
        list(engine.map(LISTER, [[1]]))


def test_settings_of_ray(monkeypatch):
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
    subprocess.run([sys.executable, "-c", code], check=True)


def test_without_ray(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(HelmExtError, match=r"pip install 'helm-ext\[ray\]'"):
        list(RayEngine(RaySettings()).map(LISTER, [[1]]))


@pytest.mark.parametrize("address", ["127.0.0.1:1", "nonsense", "127.0.0.1:99999"])
def test_a_cluster_that_is_not_there(address):
    pytest.importorskip("ray")
    code = f"""
from helm_ext.errors import HelmExtError
from helm_ext.engines.ray_engine import RayEngine
from helm_ext.engines.ray_engine import RaySettings
try:
    list(RayEngine(RaySettings(address={address!r})).map(dict, [1]))
except HelmExtError as error:
    assert str(error).startswith("RAY_ADDRESS={address}: no Ray there, or none that can be joined: "), error
else:
    raise AssertionError
"""
    subprocess.run([sys.executable, "-c", code], check=True)
