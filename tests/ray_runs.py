"""Runs of `counted_model.py` on Ray, by helm-run processes, and what is done to them meanwhile."""

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import processes
import warm_processes

from helm_ext.analysis.siblings import TIMES_FILE

PLUGIN = Path(__file__).with_name("counted_model.py")
FILES = ["per_instance_stats.json", "run_spec.json", "scenario.json", "scenario_state.json", "stats.json"]
RUN = "counted:model=counted_model"


def environ(folder: Path, **settings: object) -> dict[str, str]:
    """Return the environment of a run whose model logs its calls in `folder`."""
    given = {"COUNTED_LOG": folder / "calls.log", "HELM_EXT_RAY_ACTORS": 2, "HELM_EXT_RAY_BATCH": 8, **settings}
    if "RAY_ADDRESS" in given:  # a cluster is older than these
        given.setdefault("HELM_EXT_RAY_ENV", ",".join(name for name in given if name.startswith("COUNTED_")))
    kept = {name: value for name, value in os.environ.items() if name != "RAY_ADDRESS"}
    return {**kept, **processes.OFFLINE, **{name: str(value) for name, value in given.items()}}


def command(suite: str, runner: str = "RayRunner") -> list[str]:
    return [
        "helm-run", "--run-entries", "counted:model=counted/model", "--suite", suite,
        "-m", "100000", "--disable-cache", "--plugins", str(PLUGIN),
        "--runner-class-name", f"helm_ext.running.{runner}",
    ]  # fmt: skip


def run(folder: Path, suite: str = "s", *, runner: str = "RayRunner", check: bool = True, **settings: object) -> str:
    """Run to the end. Returns what was printed."""
    folder.mkdir(exist_ok=True)
    output = folder / f"{suite}.output"
    output.unlink(missing_ok=True)
    code = processes.start(folder, *command(suite, runner), env=environ(folder, **settings), output=output).wait()
    said = output.read_text()
    assert (code == 0) == check, said[-6000:]
    return said


@contextmanager
def running(folder: Path, suite: str = "s", **settings: object) -> Iterator[warm_processes.Running]:
    """Start a run; its output goes to output.log. It has ended when this does."""
    folder.mkdir(exist_ok=True)
    process = processes.start(folder, *command(suite), env=environ(folder, **settings), output=folder / "output.log")
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


def wait_until(condition: Callable[[], bool], process: warm_processes.Running, pause: float = 0.05) -> None:
    """Wait for something that a run does. Fails if the run ends without."""
    while not condition():
        assert process.poll() is None, "the run has ended"
        time.sleep(pause)


def _read_log(folder: Path) -> list[tuple[str, str]]:
    """Return the calls: who asked, and what."""
    path = folder / "calls.log"
    lines = path.read_text().splitlines() if path.exists() else []
    return [(pid, prompt) for pid, _, prompt in (line.partition(" ") for line in lines)]


def calls(folder: Path) -> Counter[str]:
    """Return how often each prompt was asked."""
    return Counter(prompt for _, prompt in _read_log(folder))


def actors_of(folder: Path, beginning: str = "") -> set[int]:
    """Return the processes that asked what begins so."""
    return {int(pid) for pid, prompt in _read_log(folder) if prompt.startswith(beginning)}


def run_folder(folder: Path, suite: str = "s") -> Path:
    return folder / "benchmark_output" / "runs" / suite / RUN


def read_files(folder: Path, suite: str = "s") -> dict[str, bytes]:
    """Return the bytes of HELM's files of the run; there may be no others."""
    found = {path.name: path.read_bytes() for path in run_folder(folder, suite).iterdir()}
    found.pop(".commit.lock", None)
    found.pop(TIMES_FILE, None)
    return dict(sorted(found.items()))


def children(pid: int, name: str) -> list[int]:
    """Return the descendants of a process whose command line begins with, or is a path that ends in, `name`."""
    by_parent: dict[int, list[int]] = {}
    titles: dict[int, str] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError, IndexError, ValueError):
                status = (entry / "stat").read_text().rpartition(")")[2].split()
                by_parent.setdefault(int(status[1]), []).append(int(entry.name))
                titles[int(entry.name)] = (entry / "cmdline").read_bytes().split(b"\0")[0].decode()
    found, waiting = [], [pid]
    while waiting:
        for child in by_parent.get(waiting.pop(), []):
            waiting.append(child)
            if titles[child].startswith(name) or titles[child].endswith(f"/{name}"):
                found.append(child)
    return found
