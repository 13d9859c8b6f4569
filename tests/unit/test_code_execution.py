"""Running a model's code: what passes, and that nothing escapes the limits."""

from __future__ import annotations

import os
import sys
import time

import pytest

from helm_ext.errors import DatasetIntegrityError
from helm_ext.scoring.code_execution import make_program, passes


@pytest.mark.parametrize(
    "program",
    ["x = 1", "print('é' * 1000)", "import math\nassert math.sqrt(4) == 2", "def f(): return 1\nassert f() == 1"],
)
def test_passes(program):
    assert passes(program)


@pytest.mark.parametrize(
    "program",
    [
        "assert False",
        "raise SystemExit",
        "import sys; sys.exit(0)",  # leaving early is not passing
        "import os; os._exit(0)",
        "def f(:",
        "x = bytearray(2 << 30)",  # beyond the memory limit
        "open('big', 'wb').write(b'x' * (2 << 20))",  # beyond the file limit
        "input()",
        "\ud800",
    ],
)
def test_does_not_pass(program):
    assert not passes(program)


def test_time_is_limited():
    assert not passes("while True: pass", timeout=0.5)


def test_what_it_started_is_ended(tmp_path):
    marker = tmp_path / "marker"
    child = f"import time; time.sleep(1.5); open({str(marker)!r}, 'w')"
    assert passes(f"import subprocess, sys\nsubprocess.Popen([sys.executable, '-c', {child!r}])\n")
    time.sleep(2)
    assert not marker.exists()


LEAVES = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.setsid()
        with open({path!r} + ".new", "w") as file:
            file.write(str(os.getpid()))
        os.rename({path!r} + ".new", {path!r})
        while True:
            time.sleep(1)
    os._exit(0)
while not os.path.exists({path!r}):
    time.sleep(0.01)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere what leaves the session is not found")
@pytest.mark.parametrize("end", ["", "while True: pass", "import os; os.kill(0, 9)", "raise SystemExit"])
def test_what_left_its_session_is_ended_too(tmp_path, end):
    path = tmp_path / "pid"
    assert passes(LEAVES.format(path=str(path)) + end, timeout=2) == (end == "")
    with pytest.raises(ProcessLookupError):
        os.kill(int(path.read_text()), 0)


def test_it_runs_in_an_empty_folder_that_goes_away(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert passes("import os\nassert os.listdir('.') == []\nopen('left', 'w').write('x')")
    assert os.listdir(tmp_path) == []


def test_the_environment_is_not_handed_over(monkeypatch):
    monkeypatch.setenv("SECRET_TOKEN", "x")
    assert passes("import os\nassert 'SECRET_TOKEN' not in os.environ")


def test_programs():
    row = {"prompt": "def f():\n", "test": "def check(g): assert g() == 1", "entry_point": "f"}
    assert make_program(row, "    return 1") == "def f():\n    return 1\ndef check(g): assert g() == 1\ncheck(f)"
    assert make_program({"text": "t", "test_list": ["a", "b"]}, "c") == "c\na\nb"
    with pytest.raises(DatasetIntegrityError, match="this one has answer"):
        make_program({"answer": 1}, "c")
    with pytest.raises(DatasetIntegrityError, match="no keys"):
        make_program({}, "c")
