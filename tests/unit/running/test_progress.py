"""How a run says how far it is. What is drawn on a terminal is read from a real one (a pseudo-terminal)."""

from __future__ import annotations

import io
import os
import pty
import re
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

from helm_ext.clients.estimate import Prices
from helm_ext.errors import RunEntryError
from helm_ext.running import progress as progress_module
from helm_ext.running.progress import (
    Budget,
    Counts,
    LimitReached,
    Progress,
    describe,
    describe_workers,
    format_rate,
    format_time,
)

PRICES = Prices(prompt=2.0, completion=10.0, cached=0.5)


def lines_of(program: str) -> list[str]:
    stream = io.StringIO()
    with Progress(4, stream=stream) as progress:
        exec(program, {"progress": progress})
    return stream.getvalue().splitlines()


def test_the_first_and_the_last_line_are_always_there():
    first, last = lines_of("for _ in range(4): progress.done()")
    assert first == "0 of 4 rows"
    assert re.fullmatch(r"4 of 4 rows, [\d,.]+/s, in 1 s", last)


def test_the_last_line_is_there_when_a_run_fails():
    stream = io.StringIO()

    def fail():
        with Progress(4, stream=stream) as progress:
            progress.done(failed=1)
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert stream.getvalue().splitlines()[-1].startswith("1 of 4 rows, 1 failed, ")


def test_lines_come_while_nothing_moves(monkeypatch):
    """A run that waits for a model says so: the thread writes, not the counting."""
    monkeypatch.setattr(progress_module, "SECONDS_BETWEEN_LINES", 0.02)
    five = threading.Event()

    class Stream(io.StringIO):
        def write(self, text: str) -> int:
            number = super().write(text)
            if self.getvalue().count("\n") == 5:
                five.set()
            return number

    stream = Stream()
    with Progress(4, stream=stream) as progress:
        progress.done()
        progress.retrying(+1)
        assert five.wait(60)
    lines = stream.getvalue().splitlines()
    assert all(line.startswith("1 of 4 rows, 1 retrying") for line in lines[2:5])


def test_what_is_left_is_foreseen_from_rows_that_were_asked():
    # 900 of the 1,000 came from the cache at once; 10 rows a second are asked for. 3,000 are left.
    counts = Counts(rows=1000, cached=900, tokens_in=100_000, tokens_out=10_000, cost=0.3, seconds=10.0)
    assert describe(counts, 4000, "rows", 10.0, PRICES) == (
        "1,000 of 4,000 rows, 900 cached, 10.0/s, 5:00 min left, 100,000 tokens in, 10,000 out, cost 0.3 of about 9.30"
    )


def test_at_the_end_the_rate_is_that_of_the_whole_run():
    counts = Counts(rows=1000, cached=900, failed=2, seconds=50.0)
    assert describe(counts, 1000, "rows", None) == "1,000 of 1,000 rows, 900 cached, 2 failed, 2.0/s"


def test_without_a_total_rows_are_counted():
    assert describe(Counts(rows=12_345, seconds=1.0), None, "rows", 250.4) == "12,345 rows, 250/s"


def test_the_rate_is_that_of_late(monkeypatch):
    """1,000 rows in the first second and none since: not a fast run."""
    now = [100.0]
    monkeypatch.setattr(progress_module.time, "monotonic", lambda: now[0])
    progress = Progress(5000, stream=io.StringIO(), mode="off")
    with progress:
        now[0] += 1
        progress.done(rows=1000)
        assert progress._rate(progress.counts()) == 1000
        for _ in range(14):
            now[0] += 10
            rate = progress._rate(progress.counts())
        assert rate == 0
        now[0] += 10
        progress.done(rows=70)
        assert progress._rate(progress.counts()) == pytest.approx(1, abs=0.2)  # 70 rows in the last minute


def test_cost_is_counted_with_the_price_of_kept_tokens():
    progress = Progress(10, stream=io.StringIO(), prices=PRICES)
    progress.done(tokens_in=1_000_000, tokens_cached=400_000, tokens_out=100_000)
    # 0.6 million at 2, 0.4 at 0.5, 0.1 at 10
    assert progress.counts().cost == pytest.approx(1.2 + 0.2 + 1.0)


def test_without_a_price_of_their_own_kept_tokens_cost_what_others_cost():
    assert Prices(2.0, 10.0).cost(1_000_000, 0, 400_000) == 2.0


@pytest.mark.parametrize(
    ("budget", "said"),
    [
        (Budget(cost=0.004), "0.005 spent, and the limit is 0.004"),
        (Budget(tokens=1500), "2,000 tokens in and out, and the limit is 1,500"),
    ],
)
def test_a_spent_budget_stops(budget, said):
    progress = Progress(10, stream=io.StringIO(), prices=Prices(1.0, 4.0), budget=budget)
    progress.done(tokens_in=500, tokens_out=500)
    with pytest.raises(LimitReached, match=said):
        progress.done(tokens_in=500, tokens_out=500)
    # the next run of the process has nothing left
    with pytest.raises(LimitReached):
        Progress(10, stream=io.StringIO(), prices=Prices(1.0, 4.0), budget=budget).done(tokens_in=1)


def test_a_budget_that_is_spent_by_the_last_row_stops_nothing():
    progress = Progress(1, stream=io.StringIO(), budget=Budget(tokens=5))
    progress.done(tokens_in=500)
    assert progress.counts().rows == 1


def test_rows_from_the_cache_spend_nothing():
    progress = Progress(10, stream=io.StringIO(), prices=PRICES, budget=Budget(cost=0.0, tokens=0))
    progress.done(rows=5, cached=5)
    counts = progress.counts()
    assert (counts.rows, counts.cached, counts.cost) == (5, 5, 0)


def test_threads_lose_no_count():
    progress = Progress(None, stream=io.StringIO(), budget=Budget())
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:

        def count() -> None:
            for _ in range(5000):
                progress.done(rows=1, cached=1, tokens_in=2, tokens_out=3, worker="w")
                progress.retrying(+1)
                progress.retrying(-1)

        threads = [threading.Thread(target=count) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    counts = progress.counts()
    assert (counts.rows, counts.cached, counts.tokens_in, counts.tokens_out, counts.retrying) == (
        40_000, 40_000, 80_000, 120_000, 0,
    )  # fmt: skip
    assert progress.budget.spent_tokens == 200_000


def test_workers_are_shown_on_demand(monkeypatch):
    monkeypatch.setenv("HELM_EXT_PROGRESS", "workers")
    stream = io.StringIO()
    with Progress(300, stream=stream, title="scoring") as progress:
        progress.done(rows=100, worker="worker 2")
        progress.done(rows=200, worker="worker 1")
    first, *workers, last = stream.getvalue().splitlines()
    assert first == "scoring: 0 of 300 rows"
    assert [line.split(",")[0] for line in workers] == ["  worker 1: 200 rows", "  worker 2: 100 rows"]
    assert last.startswith("scoring: 300 of 300 rows")


def test_many_workers_are_shown_together():
    lines = list(describe_workers({f"w{number:03}": 10 for number in range(120)}, 5.0, "rows"))
    assert len(lines) == 21
    assert lines[0] == "  w000: 10 rows, 2.0/s"
    assert lines[-1] == "  100 others: 1,000 rows, 200/s"


def test_off_writes_nothing(monkeypatch):
    monkeypatch.setenv("HELM_EXT_PROGRESS", "off")
    assert lines_of("progress.done(rows=4)") == []


def test_a_mode_that_is_none_is_an_error(monkeypatch):
    monkeypatch.setenv("HELM_EXT_PROGRESS", "palin")
    with pytest.raises(RunEntryError, match="HELM_EXT_PROGRESS=palin") as caught:
        Progress(1)
    assert "plain" in str(caught.value)


def test_a_reader_that_went_away_does_not_end_a_run():
    stream = io.StringIO()
    with Progress(2, stream=stream) as progress:
        stream.close()
        progress.done(rows=2)
    assert progress.counts().rows == 2


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.2, "1 s"), (59.0, "59 s"), (59.5, "1:00 min"), (185, "3:05 min"), (3599.5, "1:00 h"), (360_000, "100:00 h")],
)
def test_times(seconds, text):
    assert format_time(seconds) == text


@pytest.mark.parametrize(("rate", "text"), [(1234.5, "1,234"), (12.34, "12.3"), (0.0712, "0.071"), (0.0, "0")])
def test_rates(rate, text):
    assert format_rate(rate) == text


def on_a_terminal(program: str, **env: str) -> str:
    """Run a program whose three streams are a terminal of 140 columns; return what it wrote there."""
    import fcntl
    import struct
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 140, 0, 0))
    source = str(Path(progress_module.__file__).parents[2])
    environment = {**os.environ, "PYTHONPATH": source, "TERM": "xterm", **env}
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)], stdin=theirs, stdout=theirs, stderr=theirs, env=environment
    )
    os.close(theirs)
    written = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # the last who held the other end is gone
            break
        if not part:
            break
        written += part
    os.close(ours)
    assert process.wait(60) == 0, written.decode()
    return written.decode()


def screen(written: str) -> list[str]:
    """Return the lines that stand on the terminal: what comes after a carriage return is written over the line."""
    lines = []
    for line in written.replace("\r\n", "\n").replace("\x1b[A", "").split("\n"):
        shown = ""
        for part in line.split("\r"):
            shown = part + shown[len(part) :]
        lines.append(re.sub(r"\x1b\[[0-9;]*m", "", shown).rstrip())
    return lines


BESIDE_THE_LOG = """
    from helm.common.hierarchical_logger import hlog, setup_default_logging
    from helm_ext.running.progress import Progress
    setup_default_logging()
    with Progress(40) as progress:
        for row in range(40):
            if row % 10 == 0:
                hlog(f"row {row} is asked")
            progress.done()
    hlog("written")
"""


def test_a_terminal_shows_a_bar_and_the_log_above_it():
    shown = screen(on_a_terminal(BESIDE_THE_LOG))
    logged = [line for line in shown if "INFO" in line]
    assert [line.split("INFO")[1].strip() for line in logged] == [
        *(f"row {row} is asked" for row in (0, 10, 20, 30)), "written",
    ]  # fmt: skip
    bars = [line for line in shown if "rows" in line]
    assert len(bars) == 1, shown
    assert re.fullmatch(r"100%\|█{20}\| 40 of 40 rows, [\d,.]+/s, in \d s", bars[0])
    assert shown.index(bars[0]) == shown.index(logged[-1]) - 1


def test_lines_may_be_asked_for_on_a_terminal():
    shown = screen(on_a_terminal(BESIDE_THE_LOG, HELM_EXT_PROGRESS="plain"))
    assert "0 of 40 rows" in shown
    assert not any("%|" in line for line in shown)


def test_importing_it_imports_no_bar():
    program = "import sys, helm_ext.running.progress; sys.exit('tqdm' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
