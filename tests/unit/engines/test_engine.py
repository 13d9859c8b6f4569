"""What becomes of tasks whose workers are lost: the one rule of all engines, with workers that are lost on cue."""

import random
from collections import Counter

import pytest

from helm_ext.engines.engine import (
    FAILED_STARTS,
    LONE_TRIES,
    BatchLostError,
    LostError,
    ThisProcess,
    Workers,
)
from helm_ext.errors import HelmExtError, read_number


class Script(Workers):
    """Workers that do nothing by themselves: `_wait` lets one call happen, the first one of a worker that is drawn.

    `deadly(task)`: whether a task ends its worker. `bad_starts`: so many workers are lost before they are ready.
    """

    start_hint = "none"

    def __init__(self, most=2, deadly=lambda _: False, bad_starts=0):
        super().__init__()
        self.most = most
        self.deadly = deadly
        self.bad_starts = bad_starts
        self.begun = Counter()
        self.beside = []  # what a worker had at once
        self.alive = {}
        self.ended = 0
        self.draw = random.Random(7)

    def count_workers(self):
        return self.most

    def _start(self, packed):
        number = len(self.alive)
        self.alive[number] = True
        return number, (number, None)

    def _submit(self, handle, task):
        if not self.alive[handle]:
            raise LostError("gone")
        return handle, task

    def _wait(self, calls):
        started = [call for call in calls if call[1] is None]
        drawn = started[0][0] if started else self.draw.choice(calls)[0]
        mine = [call for call in calls if call[0] == drawn]
        call = mine[0]
        if call[1] is None:
            self.alive[call[0]] = self.bad_starts == 0
            self.bad_starts -= not self.alive[call[0]]
        else:
            self.begun[str(call[1])] += 1
            self.beside.append({str(task) for _, task in mine})
            self.alive[call[0]] = not self.deadly(call[1])
        return [call] if self.alive[call[0]] else mine

    def _take(self, call):
        if not self.alive[call[0]]:
            raise LostError("killed")
        if call[1] == "raises":
            raise KeyError(call[1])
        return None if call[1] is None else f"of {call[1]}"

    def _end(self, handle):
        self.ended += 1


def test_results_come_in_order_or_as_they_are_there():
    tasks = list("abcdefgh")
    assert list(Script().map(dict, tasks)) == [f"of {task}" for task in tasks]
    came = list(Script().map(dict, tasks, in_order=False))
    assert sorted(came) == [f"of {task}" for task in tasks] != came


def test_tasks_are_read_when_they_are_needed_and_workers_started():
    read, engine = [], Script(most=50)
    results = engine.map(dict, (read.append(number) or number for number in range(3)))
    assert next(results) == "of 0"
    assert len(engine.alive) == 3
    read, engine = [], Script()
    results = engine.map(dict, (read.append(number) or number for number in range(1000)))
    assert next(results) == "of 0"
    assert len(read) < 40
    results.close()
    assert engine.ended == 2


def test_a_lost_task_is_done_again_by_a_worker_that_does_nothing_else():
    lost = []
    engine = Script(deadly=lambda task: task in "be" and task not in lost and not lost.append(task))
    assert list(engine.map(dict, list("abcdefgh"))) == [f"of {task}" for task in "abcdefgh"]
    assert sorted(lost) == ["b", "e"]
    assert {task: engine.begun[task] for task in "be"} == {"b": 2, "e": 2}
    assert max(engine.begun[task] for task in "acdfgh") == 1  # they were waiting with the lost worker, or elsewhere
    for task in "be":
        assert [beside for beside in engine.beside if task in beside][-1] == {task}
    assert len(engine.alive) == 4  # two took the place of those that were lost


def test_what_cannot_be_split_is_given_up_after_some_tries_alone():
    engine = Script(deadly=lambda task: task == "c")
    came = []
    with pytest.raises(BatchLostError, match="^c: this batch ends each process that does it: killed$"):
        came.extend(engine.map(dict, list("abcdef")))
    assert LONE_TRIES <= engine.begun["c"] <= LONE_TRIES + 1  # with others, perhaps, and alone
    assert engine.ended == len(engine.alive)  # none is left behind
    engine = Script(deadly=lambda task: task == "c")
    found = engine.map(dict, list("abcd"), give_up=lambda task, why: f"{task} {why}")
    assert list(found) == ["of a", "of b", "c killed", "of d"]


def test_what_can_be_split_is_and_its_parts_come_in_its_place():
    engine = Script(deadly=lambda task: "f" in task)
    found = engine.map(dict, ["ab", "cd", "efg", "hi"], split=list, give_up=lambda task, _: f"not {task}")
    assert list(found) == ["of ab", "of cd", "of e", "not f", "of g", "of hi"]
    assert engine.begun["efg"] <= 2
    assert engine.begun["f"] == LONE_TRIES


def test_what_a_task_raises_comes_last_and_nothing_is_begun_after_it():
    engine, came = Script(), []
    with pytest.raises(KeyError):
        came.extend(engine.map(dict, ["a", "b", "raises", *"defghijklmnop"], in_order=False))
    assert {"of a", "of b"} <= set(came)
    assert sum(engine.begun.values()) == len(came) + 1 < 8


def test_a_worker_that_is_lost_while_it_starts_says_nothing_of_tasks():
    engine = Script(bad_starts=2 * FAILED_STARTS - 1)
    assert list(engine.map(dict, list("abc"))) == ["of a", "of b", "of c"]
    assert set(engine.begun.values()) == {1}
    engine = Script(bad_starts=99)
    with pytest.raises(
        HelmExtError, match="workers cannot start: [67] processes, one after another, .*: killed"
    ) as said:
        list(engine.map(dict, list("abc")))
    assert not isinstance(said.value, BatchLostError)
    engine.bad_starts = 0  # the next call begins anew
    assert list(engine.map(dict, list("abc"))) == ["of a", "of b", "of c"]


def test_a_worker_that_dies_while_it_waits_for_work_is_replaced_and_no_task_is_blamed():
    engine = Script(most=1)
    results = engine.map(dict, iter("abcdef"))
    next(results)
    engine.alive[0] = False
    assert list(results) == [f"of {task}" for task in "bcdef"]


def test_this_process_does_one_task_after_the_other():
    made = []
    engine = ThisProcess()
    results = engine.map(lambda: made.append(1) or str, range(3))
    assert next(results) == "0"
    assert list(results) == ["1", "2"]
    assert made == [1]


def test_numbers_of_the_environment(monkeypatch):
    assert read_number("HELM_EXT_TEST_NUMBER", 3, least=1) == 3
    monkeypatch.setenv("HELM_EXT_TEST_NUMBER", " 12 ")
    assert read_number("HELM_EXT_TEST_NUMBER", 3, least=1) == 12
    monkeypatch.setenv("HELM_EXT_TEST_NUMBER", "0.25")
    assert read_number("HELM_EXT_TEST_NUMBER", 3, least=0, whole=False) == 0.25
    for wrong in ("0.25", "0", "-1", "two", "nan", "1e9", "10000000"):
        monkeypatch.setenv("HELM_EXT_TEST_NUMBER", wrong)
        with pytest.raises(HelmExtError, match=r"HELM_EXT_TEST_NUMBER=.*expected a whole number from 1"):
            read_number("HELM_EXT_TEST_NUMBER", 3, least=1)
    for wrong in ("nan", "inf", "-0.5"):
        monkeypatch.setenv("HELM_EXT_TEST_NUMBER", wrong)
        with pytest.raises(HelmExtError, match="expected a number from 0"):
            read_number("HELM_EXT_TEST_NUMBER", 3, least=0, whole=False)
