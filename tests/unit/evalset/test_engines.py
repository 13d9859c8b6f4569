"""Which task is next, and what becomes of one whose worker is lost."""

from __future__ import annotations

from collections import deque

import pytest

from helm_ext.errors import HelmExtError
from helm_ext.evalset.engines import LONE_TRIES, Jobs, read_number


def parts_of(task):
    return list(task)


def take_all(jobs, *, may_be_lone=True):
    taken = []
    while (job := jobs.take(may_be_lone=may_be_lone)) is not None:
        taken.append(job)
    return taken


def test_tasks_come_in_order_and_are_read_when_needed():
    read = []
    jobs = Jobs(read.append(number) or number for number in range(100))
    assert jobs.ahead(3) == 3
    assert read == [0, 1, 2]
    assert [jobs.take(may_be_lone=False).task for _ in range(5)] == [0, 1, 2, 3, 4]
    assert len(read) == 5
    assert jobs.take(may_be_lone=True, may_be_new=False) is None
    assert [job.task for job in take_all(jobs)] == list(range(5, 100))
    assert jobs.ahead(1) == 0


def test_a_lost_task_is_done_again_alone_before_others():
    jobs = Jobs(["a", "b", "c"])
    first, second = jobs.take(may_be_lone=False), jobs.take(may_be_lone=False)
    assert jobs.lose(first)
    assert jobs.lose(second)
    assert jobs.ahead(9) == 3
    assert jobs.take(may_be_lone=False).task == "c"  # a worker that has something else gets none of the suspects
    assert [job.task for job in take_all(jobs)] == ["a", "b"]
    assert [first.lone, second.lone] == [True, True]


def test_what_cannot_be_split_is_given_up_after_some_tries_alone():
    jobs = Jobs(["a"])
    losses = 0
    job = jobs.take(may_be_lone=True)
    while jobs.lose(job):
        losses += 1
        job = jobs.take(may_be_lone=True)
    assert losses == LONE_TRIES  # once with others, and alone but for the last time


def test_what_can_be_split_is_and_its_parts_have_their_own_tries():
    jobs = Jobs(["abc", "d"], parts_of)
    whole = jobs.take(may_be_lone=True)
    jobs.lose(whole)
    assert jobs.take(may_be_lone=True) is whole
    assert jobs.lose(whole)
    parts = [jobs.take(may_be_lone=True) for _ in range(3)]
    assert [(part.key, part.task, part.lone, part.lone_losses) for part in parts] == [
        ((0, 0), "a", True, 0),
        ((0, 1), "b", True, 0),
        ((0, 2), "c", True, 0),
    ]
    assert jobs.take(may_be_lone=True).key == (1,)
    assert [jobs.lose(parts[1]) for _ in range(LONE_TRIES)] == [*[True] * (LONE_TRIES - 1), False]


def test_results_come_in_order_whatever_is_split():
    jobs = Jobs(["ab", "cd", "e"], parts_of)
    first, second, third = take_all(jobs)
    jobs.finish(third)
    assert not jobs.is_next(third.key)
    jobs.lose(first)
    jobs.lose(jobs.take(may_be_lone=True))
    a, b = take_all(jobs)
    jobs.finish(b)
    assert not jobs.is_next(b.key)
    jobs.finish(a)
    assert jobs.is_next(a.key)
    assert jobs.is_next(b.key)
    assert not jobs.is_next(third.key)  # the second is not done
    jobs.finish(second)
    assert jobs.is_next(second.key)
    assert jobs.is_next(third.key)


def test_what_follows_from_results_comes_before_new_tasks_and_holds_no_result_up():
    following = deque()
    jobs = Jobs(iter(["a", "b", "c"]), parts_of, following)
    first, second = jobs.take(may_be_lone=True), jobs.take(may_be_lone=True)
    following += ["of a", "of a too"]
    assert jobs.ahead(9) == 3
    one, other = (jobs.take(may_be_lone=True, may_be_new=False) for _ in range(2))
    assert [one.task, other.task] == ["of a", "of a too"]
    assert [first.has_result, one.has_result] == [True, False]
    jobs.finish(first)
    jobs.finish(second)
    assert jobs.is_next(second.key)
    third = jobs.take(may_be_lone=True)
    assert third.task == "c"
    assert jobs.take(may_be_lone=True) is None
    following.append("of b")  # when there are no more tasks
    assert jobs.take(may_be_lone=True).task == "of b"


def test_what_follows_is_not_split_and_is_given_up_too():
    following = deque(["of a"])
    jobs = Jobs([], parts_of, following)
    tries = 1
    job = jobs.take(may_be_lone=True)
    while jobs.lose(job):
        tries += 1
        job = jobs.take(may_be_lone=True)
        assert job.task == "of a"
    assert tries == LONE_TRIES + 1


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
