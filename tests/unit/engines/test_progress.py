"""How a run says how far it is. What is drawn on a terminal is read from a real one (a pseudo-terminal)."""

import io
import re
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest
from terminal import run_on_terminal, screen

from helm_ext.engines import progress as progress_module
from helm_ext.engines.progress import (
    Counts,
    Measured,
    Progress,
    describe,
    format_rate,
    format_time,
)
from helm_ext.errors import RunEntryError


@pytest.fixture(autouse=True)
def _at_once(monkeypatch):
    monkeypatch.setattr(progress_module, "DELAY_SECONDS", 0)


def lines_of(program: str) -> list[str]:
    stream = io.StringIO()
    with Progress(4, stream=stream) as progress:
        exec(program, {"progress": progress})
    return stream.getvalue().splitlines()


def test_a_first_and_a_last_line():
    first, last = lines_of("for _ in range(4): progress.done()")
    assert first == "0 of 4 rows"
    assert re.fullmatch(r"4 of 4 rows, [\d,.]+/s, in 1 s", last)


def test_the_last_line_is_there_when_a_run_fails():
    stream = io.StringIO()

    def fail():
        with Progress(4, stream=stream) as progress:
            progress.done()
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert stream.getvalue().splitlines()[-1].startswith("1 of 4 rows, ")


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
        assert five.wait(60)
    lines = stream.getvalue().splitlines()
    assert all(line.startswith("1 of 4 rows") for line in lines[2:5])


def test_the_rate_is_that_of_late(monkeypatch):
    """1,000 rows in the first second and none since: not a fast run."""
    now = [100.0]
    monkeypatch.setattr(progress_module.time, "monotonic", lambda: now[0])
    monkeypatch.setenv("HELM_EXT_PROGRESS", "off")
    progress = Progress(5000, stream=io.StringIO())
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


def test_a_mode_that_is_none_is_an_error(monkeypatch):
    monkeypatch.setenv("HELM_EXT_PROGRESS", "palin")
    with pytest.raises(RunEntryError, match="HELM_EXT_PROGRESS=.palin.: no such way") as caught:
        Progress(1)
    assert "plain" in str(caught.value)


def test_a_reader_that_went_away_does_not_end_a_run():
    stream = io.StringIO()
    with Progress(2, stream=stream) as progress:
        stream.close()
        progress.done(rows=2)
    assert progress.counts().rows == 2


@pytest.mark.parametrize(("seconds", "text"), [
    (0.2, "1 s"), (59.0, "59 s"), (59.5, "1:00 min"), (185, "3:05 min"), (3599.5, "1:00 h"), (360_000, "100:00 h"),
])  # fmt: skip
def test_times(seconds, text):
    assert format_time(seconds) == text


@pytest.mark.parametrize(("rate", "text"), [(1234.5, "1,234"), (12.34, "12.3"), (0.0712, "0.071"), (0.0, "0")])
def test_rates(rate, text):
    assert format_rate(rate) == text


def on_a_terminal(program: str, **env: str) -> str:
    source = str(Path(progress_module.__file__).parents[2])
    return run_on_terminal([sys.executable, "-c", textwrap.dedent(program)], {"PYTHONPATH": source, **env})


BESIDE_THE_LOG = """
    from helm.common.hierarchical_logger import hlog, setup_default_logging
    from helm_ext.engines import progress
    from helm_ext.engines.progress import Progress
    progress.DELAY_SECONDS = 0
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


def test_one_that_is_open_in_another_says_nothing():
    stream = io.StringIO()
    with Progress(4, stream=io.StringIO()), Progress(4, stream=stream) as inner:
        inner.done(4)
    assert stream.getvalue() == ""
    assert inner.counts().rows == 4
    assert len(lines_of("progress.done(4)")) == 2  # and the next one is shown


def test_what_is_measured_is_asked_for_when_it_is_drawn():
    stream = io.StringIO()
    found = iter([Measured(0, None), Measured(90, 100)])
    with Progress(None, "lines", title="reading", stream=stream, measure=lambda: next(found)):
        pass
    first, last = stream.getvalue().splitlines()
    assert first == "reading: 1 s"
    assert re.fullmatch(r"reading: 90 of 100 lines, [\d,.]+/s, in 1 s", last)


def test_totals_that_are_not_known_or_foreseen():
    assert describe(Counts(12_345, 1.0), None, "rows", 250.4) == "12,345 rows, 250/s"
    assert describe(Counts(50, 1.0), 200, "lines", 50.0, is_about=True) == "50 of about 200 lines, 50.0/s, 3 s left"
    assert describe(Counts(199, 2.0), 200, "lines", None, is_about=True) == "199 lines, 99.5/s"


def test_lines_may_be_asked_for_on_a_terminal():
    shown = screen(on_a_terminal(BESIDE_THE_LOG, HELM_EXT_PROGRESS="plain"))
    assert "0 of 40 rows" in shown
    assert not any("%|" in line for line in shown)


def test_importing_it_imports_no_bar():
    program = "import sys, helm_ext.engines.progress; sys.exit('tqdm' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_where_nothing_can_be_counted_the_time_is_said():
    stream = io.StringIO()
    with Progress(None, title="reading pack.zip", stream=stream, measure=lambda: Measured(0, None)):
        pass
    assert stream.getvalue().splitlines() == ["reading pack.zip: 1 s", "reading pack.zip: in 1 s"]
