"""Running a model's code: what passes, and that nothing escapes the limits."""

import os
import time

import pytest

from helm_ext.errors import DatasetIntegrityError
from helm_ext.scoring.scores.ultraeval import make_program, passes


@pytest.mark.parametrize("program", [
    "x = 1", "print('é' * 1000)", "import math\nassert math.sqrt(4) == 2", "def f(): return 1\nassert f() == 1",
])  # fmt: skip
def test_passes(program):
    assert passes(program)


@pytest.mark.parametrize("program", [
    "assert False", "raise SystemExit",
    "import sys; sys.exit(0)",  # leaving early is not passing
    "import os; os._exit(0)", "def f(:",
    "x = bytearray(2 << 30)",  # beyond the memory limit
    "open('big', 'wb').write(b'x' * (2 << 20))",  # beyond the file limit
    "input()", "\ud800",
])  # fmt: skip
def test_does_not_pass(program):
    assert not passes(program)


def test_time_is_limited():
    assert not passes("while True: pass", timeout=0.5)


@pytest.mark.long
def test_what_it_started_is_ended(tmp_path):
    marker = tmp_path / "marker"
    child = f"import time; time.sleep(1.5); open({str(marker)!r}, 'w')"
    assert passes(f"import subprocess, sys\nsubprocess.Popen([sys.executable, '-c', {child!r}])\n")
    time.sleep(2)
    assert not marker.exists()


def test_it_runs_in_an_empty_folder_that_goes_away(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert passes("import os\nassert os.listdir('.') == []\nopen('left', 'w').write('x')")
    assert os.listdir(tmp_path) == []


def test_the_environment_is_not_handed_over(monkeypatch):
    monkeypatch.setenv("SECRET_TOKEN", "x")
    assert passes("import os\nassert 'SECRET_TOKEN' not in os.environ")


def test_rows_of_another_kind():
    with pytest.raises(DatasetIntegrityError, match="this one has answer"):
        make_program({"answer": 1}, "c")
    with pytest.raises(DatasetIntegrityError, match="no keys"):
        make_program({}, "c")


def test_the_name_of_the_module_is_upstreams():
    """Upstream executes in empty globals: `__name__` is found among the builtins."""
    assert passes('assert __name__ == "builtins"')
    assert passes('if __name__ == "__main__":\n    raise SystemExit("demonstration code runs")')
    assert passes('class Made:\n    pass\nassert Made.__module__ == "builtins"')


MBPP_ROW = {"text": "Double it.", "test_list": ["assert double(2) == 4", "assert double(0) == 0"]}
HUMANEVAL_ROW = {"prompt": "def double(n):\n", "test": "def check(f):\n    assert f(2) == 4", "entry_point": "double"}


def test_the_programs_are_put_together_as_upstream():
    """Literal values: what upstream's `check_correctness` executes for these rows."""
    assert make_program(HUMANEVAL_ROW, "    return 2 * n") == (
        "def double(n):\n    return 2 * n\ndef check(f):\n    assert f(2) == 4\ncheck(double)"
    )
    mbpp = (
        '"""Double it.\nassert double(2) == 4\nassert double(0) == 0"""\n'
        "def double(n): return 2 * n\nassert double(2) == 4\nassert double(0) == 0"
    )
    assert make_program(MBPP_ROW, "def double(n): return 2 * n") == mbpp
    full = {"code": "", "task_id": 1, "test_setup_code": "", "challenge_test_list": []}
    # A row with the keys of both is one of MBPP if it has all of them.
    assert make_program({**MBPP_ROW, **full, **HUMANEVAL_ROW}, "def double(n): return 2 * n") == mbpp
    assert make_program({**MBPP_ROW, **HUMANEVAL_ROW}, "    return n").endswith("check(double)")
