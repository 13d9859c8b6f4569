"""Real helm-run, helm-summarize and helm-server processes, for the integration tests."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import warm_processes

BIN = Path(sys.executable).parent
SECONDS = 600
"""What no command of a test takes."""
STOCK_ENTRIES = [
    "simple1:model=simple/model1",
    "simple_mcqa:model=simple/model1",
    "simple_classification:model=simple/model1",
]
"""HELM's own scenarios, with a model that needs nothing."""
TIMES = {"request_time", "request_datetime", "inference_runtime"}
OFFLINE = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "PYTHONUNBUFFERED": "1"}


def command(
    folder: Path, *arguments: str, check: bool = True, env: dict[str, str] | None = None, fresh: bool = False
) -> subprocess.CompletedProcess[str]:
    """Run one installed command in `folder`; return the finished process with its output as text.

    `fresh`: in an interpreter of its own, which imports all that it needs: seconds. Else in a fork of one that has
    (warm_processes), but for programs that are no installed command, and for a seed of hashes of its own.
    """
    arguments = tuple(map(str, arguments))
    if arguments[0] == "helm-summarize":
        # Its threads once in a while meet a fault of Python 3.11's parser (docs/footguns.md).
        arguments = (*arguments, "--num-threads", "1")
    environment = {**os.environ, **OFFLINE, **(env or {})}
    if fresh or arguments[0] == sys.executable or "PYTHONHASHSEED" in (env or {}):
        done = subprocess.run(
            [str(BIN / arguments[0]), *arguments[1:]],
            cwd=folder, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False,
        )  # fmt: skip
    else:
        with tempfile.TemporaryDirectory() as outputs:
            stdout, stderr = (Path(outputs, name) for name in ("stdout", "stderr"))
            code = warm_processes.Running(folder, *arguments, env=environment, outputs=(stdout, stderr)).wait(SECONDS)
            done = subprocess.CompletedProcess(list(arguments), code, stdout.read_text(), stderr.read_text())
    if check and done.returncode:
        raise AssertionError(
            f"{' '.join(arguments)} exited {done.returncode}\n{done.stdout[-3000:]}\n{done.stderr[-6000:]}"
        )
    return done


def start(
    folder: Path, *arguments: str, env: dict[str, str] | None = None, output: str | Path = os.devnull
) -> warm_processes.Running:
    """Begin one installed command, for what is done to it meanwhile. What it says goes to `output`, behind what is there."""
    environment = {**os.environ, **OFFLINE, **(env or {})}
    return warm_processes.Running(folder, *map(str, arguments), env=environment, outputs=(output, output))


def fork(task: Callable[[], object]) -> int:
    """Run `task` in a child process that never returns to pytest; return its pid."""
    pid = os.fork()
    if pid:
        return pid
    code = 70
    try:
        task()
        code = 0
    finally:
        os._exit(code)


def wait(pid: int) -> int | str:
    """Return "killed", or the exit code."""
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return "killed" if status == -signal.SIGKILL else status


def helm_run(folder: Path, *entries: str, suite: str = "s", options: tuple[str, ...] = (), **kwargs):
    """helm-run the entries with a high `-m` and no cache, unless the options say otherwise."""
    limit = () if "-m" in options or "--max-eval-instances" in options else ("-m", "100000")
    return command(
        folder, "helm-run", "--suite", suite, "--disable-cache", *limit, *options, "--run-entries", *entries, **kwargs
    )


def run_folders(folder: Path, suite: str = "s") -> dict[str, Path]:
    """Return the suite's finished runs by name."""
    runs = folder / "benchmark_output" / "runs" / suite
    return {path.parent.name: path.parent for path in sorted(runs.glob("*/stats.json"))}


def only_run(folder: Path, suite: str = "s") -> Path:
    (path,) = run_folders(folder, suite).values()
    return path


def load(path: Path):
    return json.loads(path.read_text(encoding="utf-8"))


def stat_means(run: Path, split: str = "test") -> dict[str, float]:
    """Return the means of the run's stats of one split, unperturbed, by name."""
    return {
        stat["name"]["name"]: stat["mean"]
        for stat in load(run / "stats.json")
        if stat["name"].get("split") == split and "perturbation" not in stat["name"] and "mean" in stat
    }


def without_times(value, stats=frozenset(TIMES)):
    """Take the measured times out, and stats of these names: they differ from run to run."""
    if isinstance(value, dict):
        return {key: without_times(item, stats) for key, item in value.items() if key not in TIMES}
    if isinstance(value, list):
        return [without_times(item, stats) for item in value if not is_stat_of(item, stats)]
    return value


def is_stat_of(item, names):
    return isinstance(item, dict) and isinstance(item.get("name"), dict) and item["name"].get("name") in names


def read_all(folder):
    """Return every JSON file below `folder`, parsed, by path; those that say when a run was made aside."""
    found = (path for path in sorted(folder.rglob("*.json")) if path.name != "helm_ext.json")
    return {str(path.relative_to(folder)): load(path) for path in found}
