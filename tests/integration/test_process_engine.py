"""Tasks in processes of this machine, some of which die."""

from __future__ import annotations

import functools
import multiprocessing
import os
import signal
import time
from collections import Counter, deque

import pytest
import ray_workers

from helm_ext.errors import DatasetError, HelmExtError
from helm_ext.evalset.engines import FAILED_STARTS, LONE_TRIES, BatchLostError
from helm_ext.evalset.process_engine import ProcessEngine

pytestmark = pytest.mark.slow


def squarer(folder, **options):
    return functools.partial(ray_workers.make_squarer, str(folder), **options)


def notes(folder):
    return [line.split() for line in (folder / "notes").read_text().splitlines()]


def test_results_come_in_order_from_workers_that_are_made_once(tmp_path):
    engine = ProcessEngine(2)
    assert list(engine.map(squarer(tmp_path, seconds=0.005), range(60))) == [number**2 for number in range(60)]
    assert [line[0] for line in notes(tmp_path)].count("made") == 2
    assert list(engine.map(squarer(tmp_path), [])) == []


def test_no_more_workers_are_started_than_there_is_work_for(tmp_path):
    assert list(ProcessEngine(4).map(squarer(tmp_path), range(1))) == [0]
    assert [line[0] for line in notes(tmp_path)].count("made") == 1


def test_what_follows_from_results_is_done_to_the_last(tmp_path):
    following, results = deque(), []
    for result in ProcessEngine(2).map(squarer(tmp_path, deadly=100), range(12), following=following):
        results.append(result)
        following.append(101 + result)
        if result == 0:
            following.append(102)  # twice, beside 1
    assert results == [number**2 for number in range(12)]
    done = Counter(line[1] for line in notes(tmp_path) if line[0] == "done")
    assert done == Counter(map(str, [*range(12), *(101 + number**2 for number in range(12)), 102]))


def test_tasks_are_read_as_far_as_results_are_taken(tmp_path):
    read = []
    results = ProcessEngine(2).map(squarer(tmp_path), (read.append(number) or number for number in range(1_000)))
    assert [next(results) for _ in range(3)] == [0, 1, 4]
    assert len(read) < 60
    results.close()


def test_what_a_task_raises_is_raised(tmp_path):
    with pytest.raises(KeyError):
        list(ProcessEngine(2).map(squarer(tmp_path, raising=3), range(10)))


def test_a_worker_that_cannot_be_made_says_why():
    with pytest.raises(DatasetError, match="no worker today"):
        list(ProcessEngine(2).map(ray_workers.make_nothing, range(4)))


def test_workers_that_are_lost_while_they_start_are_replaced_and_no_task_is_blamed(tmp_path):
    """More often than a task may take workers down: as many as may fail in a row, less one."""
    deaths = 2 * FAILED_STARTS - 1
    make_worker = functools.partial(ray_workers.make_squarer_late, str(tmp_path), deaths=deaths)
    assert list(ProcessEngine(2).map(make_worker, range(6))) == [number**2 for number in range(6)]
    assert set(Counter(line[1] for line in notes(tmp_path) if line[0] == "begun").values()) == {1}
    assert deaths < [line[0] for line in notes(tmp_path)].count("started") <= deaths + 2


def test_workers_that_cannot_start_are_said_to(tmp_path):
    make_worker = functools.partial(ray_workers.make_squarer_late, str(tmp_path), deaths=99)
    with pytest.raises(HelmExtError, match="workers cannot start: [67] processes, one after another") as caught:
        list(ProcessEngine(2).map(make_worker, range(6)))
    assert not isinstance(caught.value, BatchLostError)
    assert FAILED_STARTS * 2 <= [line[0] for line in notes(tmp_path)].count("started") <= FAILED_STARTS * 2 + 1


def test_where_no_thread_can_be_started_nothing_hangs(tmp_path, monkeypatch):
    """As under `ulimit -v`: the process is there then, and nobody would wait for it."""

    def fail(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr("concurrent.futures.process._ExecutorManagerThread.start", fail)
    with pytest.raises(HelmExtError, match="workers cannot start"):
        list(ProcessEngine(2).map(squarer(tmp_path), range(6)))
    assert multiprocessing.active_children() == []


def test_a_task_that_ends_its_worker_is_tried_a_few_times_and_named(tmp_path):
    got = []
    with pytest.raises(BatchLostError, match="7: this batch ends each process"):
        got.extend(ProcessEngine(2).map(squarer(tmp_path, deadly=7), range(12)))
    begun = Counter(line[1] for line in notes(tmp_path) if line[0] == "begun")
    assert begun["7"] == LONE_TRIES + 1
    assert max(count for number, count in begun.items() if number != "7") <= 2


def test_of_a_task_that_is_split_only_the_part_that_ends_its_worker_is_given_up():
    tasks = [list(range(start, start + 4)) for start in range(0, 20, 4)]
    done = []

    def take_all():
        for part in ProcessEngine(2).map(
            functools.partial(ray_workers.make_lister, 9), tasks, split=lambda task: [[one] for one in task]
        ):
            done.extend(part)

    with pytest.raises(BatchLostError, match=r"\[9\]"):
        take_all()
    assert done == list(range(len(done)))
    assert len(done) <= 9


def test_workers_that_die_while_they_wait_for_work_are_replaced(tmp_path):
    results = ProcessEngine(2).map(squarer(tmp_path), range(40))
    assert next(results) == 0
    seen = []
    while (now := Counter(line[0] for line in notes(tmp_path))) not in seen:  # until nobody works, for a while
        seen = [now] if now["made"] == 2 and now["begun"] == now["done"] else []
        time.sleep(0.5)
    done = now["done"]
    assert 0 < done < 20
    for line in notes(tmp_path):
        if line[0] == "made":
            os.kill(int(line[1]), signal.SIGKILL)
    time.sleep(0.5)  # so that it is known to be dead before the next task is given out
    assert list(results) == [number**2 for number in range(1, 40)]
    assert set(Counter(line[1] for line in notes(tmp_path) if line[0] == "begun").values()) == {1}


@pytest.mark.parametrize("tries", [1, LONE_TRIES + 1])
def test_a_worker_without_memory_is_a_lost_one(tmp_path, tries):
    results = ProcessEngine(2).map(functools.partial(ray_workers.make_hungry, str(tmp_path), tries=tries), range(12))
    if tries == 1:
        assert list(results) == [number**2 for number in range(12)]
    else:
        with pytest.raises(BatchLostError, match="7: this batch ends each process"):
            list(results)
    begun = Counter(line[1] for line in notes(tmp_path) if line[0] == "begun")
    assert begun["7"] == max(tries, 2)
