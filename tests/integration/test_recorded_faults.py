"""Recorded runs in several processes in which something dies: complete and equal, or an error and nothing left behind.

`tools/faults.py` does the same at many more moments.
"""

import os
import shutil
import signal
import time

import pytest
import recorded_runs
from ray_runs import children, wait_until
from recorded_runs import held, let_go, processes_in, read_files, running

pytestmark = [
    pytest.mark.slow,
    pytest.mark.nightly(
        "src/helm_ext/running", "src/helm_ext/engines", "src/helm_ext/files/writing", "tests/recorded_runs.py"
    ),
]

ROWS = 6_000


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The rows, and a run in one process."""
    folder = tmp_path_factory.mktemp("recorded")
    recorded_runs.write_many(folder, ROWS)
    with running(folder, workers=1) as process:
        assert process.wait() == 0, (folder / "s.log").read_text()[-3000:]
    return folder


@pytest.fixture
def folder(made, tmp_path):
    shutil.copy(made / "many.jsonl", tmp_path)
    return tmp_path


def said(folder):
    return (folder / "s.log").read_text()


def both_are_held(folder):
    return len(held(folder)) == 2


def wait_for_end(folder):
    """Return when no process is left; pytest's timeout says that workers outlive helm-run."""
    while processes_in(folder):
        time.sleep(0.05)


def test_a_worker_that_is_killed_loses_no_row_and_changes_no_byte(made, folder):
    with running(folder, holds=True) as process:
        wait_until(lambda: both_are_held(folder), process)
        os.kill(held(folder)[0], signal.SIGKILL)
        let_go(folder)
        assert process.wait() == 0, said(folder)[-3000:]
    assert said(folder).count("a worker process was lost") == 1
    assert read_files(folder) == read_files(made)


@pytest.mark.parametrize("moment", ["first process", "scoring"])
def test_ctrl_c_leaves_no_process_and_no_file(folder, moment):
    """A terminal interrupts them all, workers also while they import."""

    def has_come():
        return both_are_held(folder) if moment == "scoring" else bool(children(process.pid, ""))

    with running(folder, before=("setsid",), holds=True) as process:
        wait_until(has_come, process)
        os.killpg(process.pid, signal.SIGINT)
        let_go(folder)
        assert process.wait() != 0
        wait_for_end(folder)
    assert read_files(folder) == {}


def test_helm_run_is_killed_and_started_again(made, folder):
    """What it left is not taken for complete, its workers end, and the next start leaves nothing but the files."""
    with running(folder, holds=True) as process:
        wait_until(lambda: both_are_held(folder), process)
        process.kill()
        process.wait()
    wait_for_end(folder)
    left = read_files(folder)
    assert left.keys() & set(recorded_runs.FILES) == set()
    assert any(name.endswith(".part") for name in left)
    with running(folder, "s", "--skip-completed-runs") as process:
        assert process.wait() == 0, said(folder)[-3000:]
    assert read_files(folder) == read_files(made)
    assert not any(path.is_dir() for path in recorded_runs.run_folder(folder).iterdir())


@pytest.mark.parametrize(("kilobytes", "message"), [
    (150, "the rows of a large file cannot be kept here: File too large\n  hint: they need about as much room"),
    (4_000, "the files cannot be written: File too large\n  hint: make room and start again"),
])  # fmt: skip
def test_a_full_disk_is_one_error_and_nothing_is_left(folder, kilobytes, message):
    """Of files that may have so many kilobytes: what a worker has read of the rows is more, or the file of all is."""
    limited = ("bash", "-c", f'ulimit -f {kilobytes}; exec "$@"', "bash")
    with running(folder, before=limited) as process:
        assert process.wait() == 1
    wait_for_end(folder)
    assert message in said(folder)
    # Not what a line of code raised, in this process or in a worker.
    assert "OSError" not in said(folder)
    assert "During handling" not in said(folder)
    assert not any(path.is_file() for path in (folder / "benchmark_output" / "runs").rglob("*.json"))
    assert not list((folder / "benchmark_output").rglob(".staged-*"))
