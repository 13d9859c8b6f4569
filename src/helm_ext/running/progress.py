"""How far a run is, what it costs, and when to stop.

    with Progress(len(rows), prices=prices, budget=budget) as progress:
        for row in rows:
            ...
            progress.done(tokens_in=120, tokens_out=9)

On a terminal it is a bar, else a line every 10 s, also while nothing moves: a thread of its own draws both from what
`done` and `retrying` count, which cost a lock and some additions (0.3 µs). `HELM_EXT_PROGRESS` chooses: `off`, `plain`
(lines, also on a terminal), `workers` (besides, how fast each worker is).
"""

from __future__ import annotations

import contextlib
import logging
import math
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, TextIO

from typing_extensions import Self

from helm_ext.clients.estimate import Prices, format_cost
from helm_ext.errors import HelmExtError, RunEntryError, did_you_mean

__all__ = ["PROGRESS_ENV", "Budget", "Counts", "LimitReached", "Progress", "describe", "describe_workers"]

PROGRESS_ENV = "HELM_EXT_PROGRESS"
MODES = ("auto", "off", "plain", "workers")

SECONDS_BETWEEN_LINES = 10.0
SECONDS_BETWEEN_FRAMES = 0.25
WINDOW_SECONDS = 60.0
"""The rate is that of the last minute: a model that became slower, or stands still, is not hidden by its past."""

MAX_WORKERS = 20
"""So many workers are named; the others are shown together."""


class LimitReached(HelmExtError):  # noqa: N818 - no fault: what the user asked for
    """A limit that the user set (money, tokens) is met. What was answered is in the cache."""


@dataclass
class Budget:
    """What may be spent. One for all runs of a process, which spend from it together.

    Its numbers are changed by `Progress` alone, under its lock: one run at a time.
    """

    cost: float | None = None
    """In the currency of the prices."""
    tokens: int | None = None
    """In and out."""
    spent_cost: float = 0.0
    spent_tokens: int = 0

    @property
    def is_limited(self) -> bool:
        """Whether there is a limit, so that tokens must be counted."""
        return self.cost is not None or self.tokens is not None

    def spend(self, cost: float, tokens: int) -> None:
        """Count what was spent."""
        self.spent_cost += cost
        self.spent_tokens += tokens

    def require_left(self) -> None:
        """Raise LimitReached where nothing is left."""
        if self.cost is not None and self.spent_cost >= self.cost:
            raise LimitReached(f"stopped: {self.spent_cost:.4g} spent, and the limit is {self.cost:g} ({_HINT})")
        if self.tokens is not None and self.spent_tokens >= self.tokens:
            raise LimitReached(
                f"stopped: {self.spent_tokens:,} tokens in and out, and the limit is {self.tokens:,} ({_HINT})"
            )


_HINT = "what was answered is in the cache, unless that is disabled"


@dataclass
class Counts:
    """What was counted until a moment."""

    rows: int = 0
    """Finished, with the two of the next lines."""
    cached: int = 0
    failed: int = 0
    retrying: int = 0
    """Requests, not rows."""
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float = 0.0
    seconds: float = 0.0

    @property
    def asked(self) -> int:
        """Rows that were not in the cache: on these the time and the money went."""
        return self.rows - self.cached


class Progress:
    """Rows as they finish: a context manager. Its methods may be called by any thread."""

    def __init__(
        self,
        total: int | None,
        unit: str = "rows",
        *,
        title: str = "",
        stream: TextIO | None = None,
        prices: Prices | None = None,
        budget: Budget | None = None,
        mode: str | None = None,
    ) -> None:
        """Take how many there will be (None: not known) and what they are called.

        `title`: what comes before the numbers. `stream`: default standard error. `prices`: with them, the cost is shown
        and counted. `budget`: where `done` raises LimitReached. `mode`: one of MODES; default HELM_EXT_PROGRESS.
        Raises RunEntryError for a mode that is none.
        """
        self.total = total
        self.unit = unit
        self.title = title
        self.prices = prices
        self.budget = budget
        self.mode = _read_mode() if mode is None else mode
        self._stream = sys.stderr if stream is None else stream
        self._counts = Counts()
        self._workers: dict[str, int] = {}
        self._lock = threading.Lock()
        self._start = time.monotonic()
        self._samples: deque[tuple[float, int]] = deque()
        self._is_over = threading.Event()
        self._thread: threading.Thread | None = None
        self._bar: Any = None
        self._around = contextlib.ExitStack()

    def done(
        self,
        rows: int = 1,
        cached: int = 0,
        failed: int = 0,
        tokens_in: int = 0,
        tokens_out: int = 0,
        tokens_cached: int = 0,
        worker: str | None = None,
    ) -> None:
        """Count rows that are finished, those of them that came from the cache or failed, and tokens asked for now.

        `tokens_cached`: those of `tokens_in` that the provider had kept, and counts at a price of their own. `worker`:
        who did it. Raises LimitReached where the budget is spent and rows are left.
        """
        with self._lock:
            counts = self._counts
            counts.rows += rows
            counts.cached += cached
            counts.failed += failed
            if worker is not None:
                self._workers[worker] = self._workers.get(worker, 0) + rows
            if not tokens_in and not tokens_out:
                return
            counts.tokens_in += tokens_in
            counts.tokens_out += tokens_out
            cost = 0.0
            if self.prices is not None:
                cost = self.prices.cost(tokens_in, tokens_out, tokens_cached)
                counts.cost += cost
            if self.budget is not None:
                self.budget.spend(cost, tokens_in + tokens_out)
                if counts.rows != self.total:
                    self.budget.require_left()

    def retrying(self, change: int) -> None:
        """Count requests that wait for another attempt: +1 when one begins to, -1 when it ends."""
        with self._lock:
            self._counts.retrying += change

    def counts(self) -> Counts:
        """Return what was counted until now."""
        with self._lock:
            return replace(self._counts, seconds=time.monotonic() - self._start)

    def __enter__(self) -> Self:
        self._start = time.monotonic()
        self._samples.append((0.0, 0))
        if self.mode == "off" or self._stream is None:  # no standard error: a process without a console
            return self
        if self.mode != "plain" and _is_terminal(self._stream):
            self._bar = self._around.enter_context(_open_bar(self.total, self._stream))
        self._draw()
        self._thread = threading.Thread(target=self._watch, name="progress", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        if self._thread is None:
            return
        self._thread.join()
        self._draw(is_last=True)
        self._around.close()

    def _watch(self) -> None:
        """Draw until the end."""
        between = SECONDS_BETWEEN_LINES if self._bar is None else SECONDS_BETWEEN_FRAMES
        workers_at = time.monotonic() + SECONDS_BETWEEN_LINES
        while not self._is_over.wait(between):
            shows_workers = time.monotonic() >= workers_at
            if shows_workers:
                workers_at += SECONDS_BETWEEN_LINES
            self._draw(shows_workers=shows_workers or self._bar is None)

    def _draw(self, *, is_last: bool = False, shows_workers: bool = False) -> None:
        counts = self.counts()
        text = describe(counts, self.total, self.unit, None if is_last else self._rate(counts), self.prices)
        if is_last:
            text = f"{text}, in {format_time(counts.seconds)}"
        if self.title:
            text = f"{self.title}: {text}"
        with contextlib.suppress(OSError, ValueError):  # nobody reads it any more: the run goes on
            if self.mode == "workers" and (is_last or shows_workers):
                with self._lock:
                    workers = dict(self._workers)
                for line in describe_workers(workers, counts.seconds, self.unit):
                    self._write_line(line)
            if self._bar is None:
                self._write_line(text)
            else:
                self._bar.n = counts.rows
                self._bar.desc = text
                self._bar.refresh()

    def _write_line(self, line: str) -> None:
        if self._bar is not None:
            self._bar.write(line, file=self._stream)
            return
        self._stream.write(f"{line}\n")
        self._stream.flush()

    def _rate(self, counts: Counts) -> float:
        """Return the rows asked for in a second, of late. Called by one thread at a time."""
        samples = self._samples
        while len(samples) > 1 and counts.seconds - samples[1][0] > WINDOW_SECONDS:
            samples.popleft()
        seconds, asked = samples[0]
        samples.append((counts.seconds, counts.asked))
        passed = counts.seconds - seconds
        return (counts.asked - asked) / passed if passed > 0 else 0.0


def describe(counts: Counts, total: int | None, unit: str, rate: float | None, prices: Prices | None = None) -> str:
    """Return one line about what was counted. `rate`: rows asked for in a second of late; None at the end of a run.

    What is left is foreseen from rows that were asked for: those that came from the cache took neither time nor money.
    """
    parts = [f"{counts.rows:,} {unit}" if total is None else f"{counts.rows:,} of {total:,} {unit}"]
    parts += [
        f"{number:,} {what}"
        for number, what in ((counts.cached, "cached"), (counts.retrying, "retrying"), (counts.failed, "failed"))
        if number
    ]
    left = None if total is None else max(0, total - counts.rows)
    if rate is None:
        average = counts.asked / counts.seconds if counts.seconds > 0 else 0.0
        if counts.asked:
            parts.append(f"{format_rate(average)}/s")
    elif rate > 0:
        parts.append(f"{format_rate(rate)}/s")
        if left:
            parts.append(f"{format_time(left / rate)} left")
    if counts.tokens_in or counts.tokens_out:
        parts.append(f"{counts.tokens_in:,} tokens in, {counts.tokens_out:,} out")
    if prices is not None:
        spent = f"cost {format_cost(counts.cost)}"
        if left and counts.asked and rate is not None:
            expected = counts.cost * (counts.asked + left) / counts.asked
            spent = f"{spent} of about {format_cost(expected)}"
        parts.append(spent)
    return ", ".join(parts)


def describe_workers(workers: dict[str, int], seconds: float, unit: str) -> Iterator[str]:
    """Yield a line for each worker: what it did, and how fast."""
    shown = sorted(workers.items())
    if len(shown) > MAX_WORKERS:
        others = shown[MAX_WORKERS:]
        shown = [*shown[:MAX_WORKERS], (f"{len(others)} others", sum(rows for _, rows in others))]
    for name, rows in shown:
        yield f"  {name}: {rows:,} {unit}, {format_rate(rows / seconds if seconds > 0 else 0.0)}/s"


def format_rate(rate: float) -> str:
    """Write a number per second: whole from 100 on, else two digits at least."""
    return f"{rate:,.0f}" if rate >= 100 else f"{rate:.1f}" if rate >= 1 else f"{rate:.2g}"


def format_time(seconds: float) -> str:
    """Write a time as `12 s`, `3:05 min` or `1:02 h`."""
    whole = math.ceil(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes}:{rest:02d} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours:,}:{minutes:02d} h"


def _read_mode() -> str:
    mode = os.environ.get(PROGRESS_ENV) or "auto"
    if mode not in MODES:
        hint = did_you_mean(mode, MODES) or f"one of {', '.join(MODES)}"
        raise RunEntryError(f"{PROGRESS_ENV}={mode}: no such way to show progress\n  hint: {hint}")
    return mode


def _is_terminal(stream: TextIO) -> bool:
    try:
        return stream.isatty()
    except (AttributeError, ValueError):  # a stream of somebody's, or one that is closed
        return False


@contextlib.contextmanager
def _open_bar(total: int | None, stream: TextIO) -> Iterator[Any]:
    """Yield a bar of tqdm that is drawn when it is told so. HELM's log goes above it, line by line."""
    from tqdm import tqdm
    from tqdm.contrib.logging import logging_redirect_tqdm

    class Bar(tqdm):  # type: ignore[type-arg,unused-ignore]
        monitor_interval = 0  # a thread that would draw too

    helm = logging.getLogger("helm")
    to_console = any(
        isinstance(handler, logging.StreamHandler) and handler.stream in (sys.stdout, sys.stderr)
        for handler in helm.handlers
    )
    shape = "{desc}" if total is None else "{percentage:3.0f}%|{bar:20}| {desc}"
    with (
        logging_redirect_tqdm([helm]) if to_console else contextlib.nullcontext(),
        Bar(total=total, file=stream, bar_format=shape, dynamic_ncols=True, mininterval=0, leave=True) as bar,
    ):
        yield bar
