"""What each worker of an engine does, for whoever looks: kept by the engine, task by task, and read by `progress`."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

MAX_WORKERS = 20
"""So many workers are named; the others are shown together."""


@dataclass(eq=False)
class WorkerState:
    """A worker: one process, or those that took its place. Written by the engine's thread, read by any other.

    It is read without a lock: what belongs together is one tuple.
    """

    name: str
    rows: int = 0
    """Of the tasks that it has done (`number` of a task; none where a task has none)."""
    begun: float = field(default_factory=time.monotonic)
    doing: tuple[object, float] | None = None
    """The task, and since when; None: nothing."""
    idle_since: float = field(default_factory=time.monotonic)
    lost: tuple[int, float] | None = None
    """How often it was lost, and when last."""

    def begin(self, task: object) -> None:
        """Note what it does now; None: nothing. Does nothing where that has not changed."""
        doing = self.doing
        if task is (None if doing is None else doing[0]):
            return
        now = time.monotonic()
        if task is None:
            self.idle_since = now
        self.doing = None if task is None else (task, now)

    def finish(self, task: object) -> None:
        """Count the rows of a task that it has done."""
        self.rows += getattr(task, "number", 0)

    def restart(self) -> None:
        """Note that it was lost, and another process takes its place."""
        now = time.monotonic()
        self.lost = (1 if self.lost is None else self.lost[0] + 1), now
        self.doing, self.idle_since = None, now

    def describe(self, unit: str) -> str:
        """Return in words what it did, how fast, and what it does now, since when."""
        now, doing, lost = time.monotonic(), self.doing, self.lost
        text = f"{self.name}: {_describe_rows(self.rows, now - self.begun, unit)}"
        if doing is None:
            text += f", waiting for {format_time(now - self.idle_since)}"
        else:
            text += f", {doing[0]} for {format_time(now - doing[1])}"
        if lost is not None:
            times = "once" if lost[0] == 1 else f"{lost[0]} times"
            text += f"; lost and started again {times}, {format_time(now - lost[1])} ago"
        return text


def take_state(states: list[WorkerState], taken: Sequence[WorkerState], name: str) -> WorkerState:
    """Return the state of a worker that was lost, or a new one, added to the states. `taken`: those of the others."""
    for state in states:
        if state not in taken:
            return state
    states.append(WorkerState(f"{name} {len(states) + 1}"))
    return states[-1]


def describe_workers(workers: Sequence[WorkerState], unit: str) -> Iterator[str]:
    """Yield a line for each worker, and one for all that are too many."""
    shown, others = workers[:MAX_WORKERS], workers[MAX_WORKERS:]
    for worker in shown:
        yield f"  {worker.describe(unit)}"
    if others:
        seconds = time.monotonic() - min(worker.begun for worker in others)
        text = f"  {len(others)} others: {_describe_rows(sum(worker.rows for worker in others), seconds, unit)}"
        busy, lost = sum(worker.doing is not None for worker in others), sum(bool(worker.lost) for worker in others)
        yield f"{text}, {busy} at work" + (f"; {lost} lost and started again" if lost else "")


def _describe_rows(rows: int, seconds: float, unit: str) -> str:
    return f"{rows:,} {unit}, {format_rate(rows / seconds if seconds > 0 else 0.0)}/s"


def format_rate(rate: float) -> str:
    """Write a number per second: whole from 100 on, else two digits at least."""
    return f"{rate:,.0f}" if rate >= 100 else f"{rate:.1f}" if rate >= 1 else f"{rate:.2g}"


def format_time(seconds: float) -> str:
    """Write a time as `12 s`, `3:05 min` or `1:02 h`."""
    whole = -int(-seconds // 1)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes}:{rest:02d} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours:,}:{minutes:02d} h"
