"""How far something is that takes long: reading, scoring, merging.

    with Progress(len(rows), title="scoring") as progress:
        for batch in batches:
            ...
            progress.done(len(batch))

On a terminal it is a bar, else a line every 10 s, also while nothing moves: a thread of its own draws both, from what
`done` counts batch by batch, or from what `measure` finds when it looks, which costs the rows nothing. What takes less
than DELAY_SECONDS says nothing. `HELM_EXT_PROGRESS` chooses: `off` or `plain` (lines, also on a terminal).

Runs that ask models say more, and what they cost: `helm_ext.running.spending`.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TextIO

from typing_extensions import Self

from helm_ext.errors import RunEntryError, did_you_mean, show

PROGRESS_ENV = "HELM_EXT_PROGRESS"
MODES = ("auto", "off", "plain")

DELAY_SECONDS = 2.0
SECONDS_BETWEEN_LINES = 10.0
SECONDS_BETWEEN_FRAMES = 0.25
WINDOW_SECONDS = 60.0
"""The rate is that of the last minute: what became slower, or stands still, is not hidden by its past."""


class Measured(NamedTuple):
    """How far something is, as it was found by looking."""

    rows: int
    total: int | None
    """How many there will be; None: not known."""
    is_about: bool = False
    """Whether that is an estimate."""


@dataclass
class Counts:
    """What was counted until a moment."""

    rows: int = 0
    """Those that are finished, cached and failed ones included."""
    seconds: float = 0.0
    cached: int = 0
    failed: int = 0
    retrying: int = 0
    """Requests, not rows."""
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float | None = None
    """None where no prices are known."""

    @property
    def worked(self) -> int:
        """Rows that were not in the cache: on these the time and the money went."""
        return self.rows - self.cached


class Progress:
    """Rows as they finish: a context manager. Its methods may be called by any thread.

    Where one is open in another, it says nothing: two bars would write over each other.
    """

    delay: float | None = None
    """Seconds in which nothing is said; None: DELAY_SECONDS."""
    step = ""
    """What is done when all rows are; may be set at any time."""
    _open = threading.Semaphore()

    def __init__(
        self,
        total: int | None,
        unit: str = "rows",
        *,
        title: str = "",
        stream: TextIO | None = None,
        measure: Callable[[], Measured] | None = None,
    ) -> None:
        """Take how many there will be (None: not known) and what they are called.

        `title`: what comes before the numbers. `stream`: default standard error. `measure`: is asked how far it is when
        that is drawn, by another thread; then `done` is not called. Raises RunEntryError for a HELM_EXT_PROGRESS that
        is none.
        """
        self.total = total
        self.unit = unit
        self.title = title
        self.mode = read_mode()
        self._stream = sys.stderr if stream is None else stream
        self._measure = measure
        self._is_about = False
        self._counts = Counts()
        self._lock = threading.Lock()
        self._start = time.monotonic()
        self._samples: deque[tuple[float, int]] = deque()
        self._is_over = threading.Event()
        self._thread: threading.Thread | None = None
        self._has_drawn = False
        self._bar: Any = None
        self._around = contextlib.ExitStack()

    def done(self, rows: int = 1) -> None:
        """Count rows that are finished."""
        with self._lock:
            self._counts.rows += rows

    def counts(self) -> Counts:
        """Return what was counted until now."""
        measured = None if self._measure is None else self._measure()
        with self._lock:
            if measured is not None:
                self._counts.rows, self.total, self._is_about = measured
            return replace(self._counts, seconds=time.monotonic() - self._start)

    def __enter__(self) -> Self:
        self._start = time.monotonic()
        self._samples.append((0.0, 0))
        if self.mode == "off" or self._stream is None:  # no standard error: a process without a console
            return self
        if not Progress._open.acquire(blocking=False):
            return self
        self._around.callback(Progress._open.release)
        delay = DELAY_SECONDS if self.delay is None else self.delay
        if not delay:
            self._begin()
        self._thread = threading.Thread(target=self._watch, args=(delay,), name="progress", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        if self._thread is not None:
            self._thread.join()
            if self._has_drawn:
                self._draw(is_last=True)
        self._around.close()

    def _begin(self) -> None:
        """Open the bar, and draw for the first time."""
        self._has_drawn = True
        if self.mode != "plain" and _is_terminal(self._stream):
            self._bar = self._around.enter_context(_open_bar(self._stream))
        self._draw()

    def _watch(self, delay: float) -> None:
        """Draw until the end."""
        if delay:
            if self._is_over.wait(delay):
                return
            self._begin()
        between = SECONDS_BETWEEN_LINES if self._bar is None else SECONDS_BETWEEN_FRAMES
        while not self._is_over.wait(between):
            self._draw()

    def _draw(self, *, is_last: bool = False) -> None:
        counts = self.counts()
        rate = None if is_last else self._rate(counts)
        text = describe(counts, self.total, self.unit, rate, is_about=self._is_about)
        time_text = f"in {format_time(counts.seconds)}" if is_last else self.step
        if self._measure is not None and not counts.rows and not self.total:  # nothing is known but the time
            text, time_text = "", time_text or format_time(counts.seconds)
        text = ", ".join(filter(None, (text, time_text)))
        if self.title:
            text = f"{self.title}: {text}"
        with contextlib.suppress(OSError, ValueError):  # nobody reads it any more: the run goes on
            if self._bar is None:
                self._stream.write(f"{text}\n")
                self._stream.flush()
            else:
                self._bar.show(text, counts.rows, self.total)

    def _rate(self, counts: Counts) -> float:
        """Return the rows worked on in a second, of late. Called by one thread at a time."""
        samples = self._samples
        while len(samples) > 1 and counts.seconds - samples[1][0] > WINDOW_SECONDS:
            samples.popleft()
        seconds, worked = samples[0]
        samples.append((counts.seconds, counts.worked))
        passed = counts.seconds - seconds
        return (counts.worked - worked) / passed if passed > 0 else 0.0


def describe(counts: Counts, total: int | None, unit: str, rate: float | None, *, is_about: bool = False) -> str:
    """Return one line about what was counted. `rate`: rows worked on in a second of late; None at the end.

    `is_about`: whether the total is an estimate. What is left is foreseen from rows that were worked on: those that
    came from the cache took neither time nor money.
    """
    of_all = "" if total is None or (is_about and rate is None) else f" of {'about ' * is_about}{total:,}"
    parts = [f"{counts.rows:,}{of_all} {unit}"]
    noted = {"cached": counts.cached, "retrying": counts.retrying, "failed": counts.failed}
    parts += [f"{number:,} {what}" for what, number in noted.items() if number]
    left = max(0, (total or 0) - counts.rows)
    if rate is None:
        if counts.worked and counts.seconds > 0:
            parts.append(f"{format_rate(counts.worked / counts.seconds)}/s")
    elif rate > 0:
        parts.append(f"{format_rate(rate)}/s")
        if left:
            parts.append(f"{format_time(left / rate)} left")
    if counts.tokens_in or counts.tokens_out:
        parts.append(f"{counts.tokens_in:,} tokens in, {counts.tokens_out:,} out")
    if counts.cost is not None:
        parts.append(f"cost {format_cost(counts.cost)}")
        if left and counts.worked and rate is not None:
            parts[-1] += f" of about {format_cost(counts.cost * (counts.worked + left) / counts.worked)}"
    return ", ".join(parts)


def format_cost(cost: float) -> str:
    """Write an amount of money: two places from 1 on, else two digits."""
    return f"{cost:,.2f}" if cost >= 1 else f"{cost:.2g}"


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


def read_mode() -> str:
    """Return how HELM_EXT_PROGRESS wants progress to be shown. Raises RunEntryError for a way that is none."""
    mode = os.environ.get(PROGRESS_ENV) or "auto"
    if mode not in MODES:
        hint = did_you_mean(mode, MODES) or f"one of {', '.join(MODES)}"
        raise RunEntryError(f"{PROGRESS_ENV}={show(mode)}: no such way to show progress\n  hint: {hint}")
    return mode


def _is_terminal(stream: TextIO) -> bool:
    try:
        return stream.isatty()
    except (AttributeError, ValueError):  # a stream of somebody's, or one that is closed
        return False


@contextlib.contextmanager
def _open_bar(stream: TextIO) -> Iterator[Any]:
    """Yield a bar of tqdm that is drawn when it is told so. HELM's log goes above it, line by line."""
    from tqdm import tqdm
    from tqdm.contrib.logging import logging_redirect_tqdm

    class Bar(tqdm):  # type: ignore[type-arg,unused-ignore]
        monitor_interval = 0  # a thread that would draw too

        def show(self, text: str, rows: int, total: int | None) -> None:
            """Draw."""
            # What was foreseen of a file may be too little.
            self.n, self.total, self.desc = rows, None if total is None else max(total, rows), text
            self.bar_format = "{percentage:3.0f}%|{bar:20}| {desc}" if total else "{desc}"
            width = self.format_dict["ncols"]
            if not total and width:  # tqdm cuts lines with a bar alone, and longer ones would move all others
                self.desc = text[: width - 1]
            self.refresh()

    helm = logging.getLogger("helm")
    to_console = any(
        isinstance(handler, logging.StreamHandler) and handler.stream in (sys.stdout, sys.stderr)
        for handler in helm.handlers
    )
    with (
        logging_redirect_tqdm([helm], tqdm_class=Bar) if to_console else contextlib.nullcontext(),
        Bar(file=stream, bar_format="{desc}", dynamic_ncols=True, mininterval=0, leave=True) as bar,
    ):
        yield bar
