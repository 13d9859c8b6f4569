"""Recorded runs in several processes, by helm-run: files of few rows that are read and sent as large ones are."""

import json
import os
import random
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import processes
import warm_processes

from helm_ext.analysis.siblings import TIMES_FILE

FILES = ("run_spec.json", "scenario.json", "scenario_state.json", "stats.json", "per_instance_stats.json")
ENTRY = "adapter_spec:path=many.jsonl,model=recorded/m"
WORDS = "amber basin cedar delta ember fjord grove harbor island jasper kernel lagoon".split()  # noqa: SIM905
_SMALL = """
import importlib.abc, importlib.util, sys
SIZES = {'helm_ext.formats.request_states.loading': dict(KEPT_ROWS=20, LEAST_BYTES=1, PART_BYTES=9000),
         'helm_ext.formats.ultraeval.run_log': dict(KEPT_ROWS=20),
         'helm_ext.formats.innodata.loading': dict(UNREAD=20),
         'helm_ext.running.fold': dict(TASK_ROWS=60)}
SHOWN = dict(DELAY_SECONDS=0, SECONDS_BETWEEN_LINES=0.02)
class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name not in SIZES:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        sys.meta_path.insert(0, self)
        execute = spec.loader.exec_module
        def exec_module(module):
            execute(module)
            assert SIZES[name].keys() <= vars(module).keys(), name
            vars(module).update(SIZES[name])
        spec.loader.exec_module = exec_module
        return spec
sys.meta_path.insert(0, Finder())
"""


_HOLD = """
import glob, os, time
if any("spawn_main" in argument for argument in sys.orig_argv):
    from concurrent.futures import process
    send, scored = process._sendback_result, []
    def hold_and_send(*given, **named):
        scored.extend(glob.glob("benchmark_output/runs/*/*/.staged-*/[0-9]*.part")[:1])
        if len(scored) == 3:
            open(f"held-{os.getpid()}", "w").close()
            while not os.path.exists("go"):
                time.sleep(0.01)
        send(*given, **named)
    process._sendback_result = hold_and_send
"""
"""A worker process that has written the rows of three tasks waits for a file, before it says so of the third."""


def make_row(draw: random.Random, number: int, **instance: object) -> dict[str, object]:
    """Return a row with a completion that is right, half right or wrong."""
    text = " ".join(draw.choice(WORDS) for _ in range(6))
    gold = " ".join(text.split()[2:4])
    logprobs = [-draw.random() for _ in range(3)]
    completion = {
        "text": draw.choice([gold, gold.split()[0], "nothing", gold.upper() + "."]),
        "logprob": sum(logprobs),
        "tokens": [{"text": "t", "logprob": logprob} for logprob in logprobs],
    }
    result = {"success": True, "completions": [completion], "request_time": draw.random()}
    return {
        "instance": {
            "id": f"r{number}",
            "input": {"text": text},
            "references": [{"output": {"text": gold}, "tags": ["correct"]}],
            **instance,
        },
        "request": {"result": result},
    }


def write(path: Path, rows: list[dict[str, object]], **spec: object) -> None:
    """Write a file of such rows."""
    header = {
        "adapter_spec": {"method": "generation", "max_train_instances": 0, "max_tokens": 5, **spec},
        "scoring": {"metrics": ["exact_match", "quasi_exact_match", "f1_score"], "main_metric": "f1_score"},
    }
    path.write_text("\n".join(map(json.dumps, [header, *rows])) + "\n")


def write_many(folder: Path, rows: int) -> None:
    """Write what `ENTRY` names."""
    draw = random.Random(1)
    write(folder / "many.jsonl", [make_row(draw, number, split="test") for number in range(rows)])


def few_rows(folder: Path, *, shows_progress: bool = False, holds: bool = False) -> dict[str, str]:
    """Return an environment in which files are large, and tasks full, from few rows on.

    `shows_progress`: all the time, from the beginning. `holds`: workers wait for `let_go`.
    """
    small = folder / "small"
    small.mkdir(exist_ok=True)
    shown = "SIZES['helm_ext.engines.progress'] = SHOWN\n" if shows_progress else ""
    (small / "sitecustomize.py").write_text(_SMALL + shown + _HOLD * holds)
    return {"PYTHONPATH": os.pathsep.join([str(small), os.environ.get("PYTHONPATH", "")])}


def command(suite: str, *options: str) -> list[str]:
    return [
        str(processes.BIN / "helm-run"), "--run-entries", ENTRY, "--suite", suite, "-m", "100000", "--disable-cache",
        "--runner-class-name", "helm_ext.running.StreamingRunner", *options,
    ]  # fmt: skip


def environ(folder: Path, workers: int = 2, **how: bool) -> dict[str, str]:
    """Return the environment of a run in `folder`. PYTHONPATH makes its tasks small. `how`: see `few_rows`."""
    return {**os.environ, **processes.OFFLINE, **few_rows(folder, **how), "HELM_EXT_WORKERS": str(workers)}


def held(folder: Path) -> list[int]:
    """Return the worker processes that wait."""
    return sorted(int(path.name.removeprefix("held-")) for path in folder.glob("held-*"))


def let_go(folder: Path) -> None:
    """Let those that wait go on, and those that come."""
    (folder / "go").touch()


def processes_in(folder: Path) -> list[int]:
    """Return the processes that work in a folder."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                if (entry / "cwd").resolve() == folder.resolve() and is_alive(int(entry.name)):
                    found.append(int(entry.name))
    return found


@contextmanager
def running(
    folder: Path,
    suite: str = "s",
    *options: str,
    workers: int = 2,
    shows_progress: bool = False,
    holds: bool = False,
    before: tuple[str, ...] = (),
    **variables: str,
) -> Iterator[subprocess.Popen[bytes] | warm_processes.Running]:
    """Start a run; its output goes to SUITE.log. It has ended when this does. `before`: a command that starts it."""
    how = {"shows_progress": shows_progress, "holds": holds}
    log, env = folder / f"{suite}.log", {**environ(folder, workers, **how), **variables}
    log.touch()  # who looks may be there before the process
    if before:
        with log.open("ab") as output:
            process = subprocess.Popen(
                [*before, *command(suite, *options)], cwd=folder, env=env, stdout=output, stderr=subprocess.STDOUT
            )
    else:
        process = processes.start(folder, *command(suite, *options), env=env, output=log)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


def run_folder(folder: Path, suite: str = "s") -> Path | None:
    """Return the folder of the only run, None where there is none yet."""
    found = [path for path in (folder / "benchmark_output/runs" / suite).glob("adapter_spec:*") if path.is_dir()]
    return found[0] if found else None


def read_files(folder: Path, suite: str = "s") -> dict[str, bytes]:
    """Return the bytes of all that is in the run's folder: HELM's files, and what should not be there."""
    path = run_folder(folder, suite)
    found = path.rglob("*") if path is not None else ()
    passed_over = (".commit.lock", TIMES_FILE)
    return {one.name: one.read_bytes() for one in sorted(found) if one.is_file() and one.name not in passed_over}


def is_alive(pid: int) -> bool:
    """Whether there is such a process; a dead one that nobody has waited for has no command line."""
    return _command_line(pid) != b""


def _command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
