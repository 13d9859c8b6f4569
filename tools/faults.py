"""Runs in which something is killed, or runs out, at random moments: what is lost, what is done twice.

    python tools/faults.py                              # everything, with the numbers of docs/scaling.md: hours
    python tools/faults.py actor=50 worker=50           # some kinds of faults, at so many moments

The first table is of live runs on Ray, the second of recorded runs in two processes, of small tasks; each line is one
kind of fault. "Lost" and "twice" are rows of the output that are missing or repeated, "equal" says whether HELM's five
files have the bytes of a run without Ray, or in one process, and without a fault.

Live: "asked again" are requests that a model answered more than once. A killed driver is started again; "kept rows
asked again" are those whose answers had been kept by then.

Recorded: "noticed" are the moments of which the run says something: a worker was lost, the disk is full; of a killed
helm-run, those at which it had workers. "Half" are
runs with files that HELM takes for complete and that are not; "left" are files that nobody needs, found after the run,
or after the start that follows a killed one; "orphans" are processes that outlive helm-run by ten seconds. Disks of
limited size need Linux with user namespaces, limits of memory control groups (version 1) and root.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

import ray_runs  # noqa: E402 - the tests' own
import recorded_runs  # noqa: E402
from ray_runs import calls, children, read_files, run_folder, running, wait_until  # noqa: E402

ROWS = 400
SETTINGS = {"COUNTED_ROWS": ROWS, "COUNTED_SECONDS": 0.1}
KILLS_A_RUN = 5


@dataclass
class Tally:
    """What came of all runs with one kind of fault."""

    moments: int = 0
    runs: int = 0
    lost: int = 0
    twice: int = 0
    again: int = 0
    kept_again: int = 0
    equal: bool = True

    def take(self, folder: Path, expected: dict[str, bytes]) -> None:
        """Look at a run that has ended."""
        files = read_files(folder)
        ids = [state["instance"]["id"] for state in json.loads(files["scenario_state.json"])["request_states"]]
        self.runs += 1
        self.lost += ROWS - len(set(ids))
        self.twice += len(ids) - len(set(ids))
        self.again += calls(folder).total() - ROWS
        self.equal = self.equal and files == expected

    def show(self, name: str) -> None:
        """Print the line of the table."""
        print(
            f"| {name} | {self.moments} | {self.runs} | {self.lost} | {self.twice} | {self.again} of "
            f"{self.runs * ROWS:,} | {self.kept_again} | {'yes' if self.equal else 'NO'} |",
            flush=True,
        )


def end_well(process: ray_runs.subprocess.Popen[bytes], folder: Path) -> None:
    """Wait for the end of a run. Raises RuntimeError if it failed."""
    if process.wait(timeout=280):
        raise RuntimeError((folder / "output.log").read_text()[-3000:])


def kill_actors(folder: Path, moments: random.Random, tally: Tally, wanted: int) -> None:
    """Kill actors of one run, whatever they are doing."""
    with running(folder, **SETTINGS) as process:
        wait_until(lambda: bool(children(process.pid, "ray::RayActor")), process)
        for _ in range(min(KILLS_A_RUN, wanted - tally.moments)):
            time.sleep(moments.uniform(0, 1.5))
            if found := children(process.pid, "ray::RayActor"):
                os.kill(moments.choice(found), signal.SIGKILL)
                tally.moments += 1
        end_well(process, folder)


def kill_raylet(folder: Path, moments: random.Random, tally: Tally, _: int) -> None:
    """Kill Ray's own process of this machine, and with it the actors, as its children die with it.

    Every other run is one in which Ray notices it within seconds, and not within ten or twenty: what is noticed first,
    the node or its actors, is another thing then.
    """
    often = {"RAY_health_check_period_ms": 300, "RAY_health_check_timeout_ms": 3_000} if tally.runs % 2 else {}
    with running(folder, **{**SETTINGS, "COUNTED_SECONDS": 0.15, **often}) as process:
        wait_until(lambda: calls(folder).total() > 0, process)
        time.sleep(moments.uniform(0, 7))
        if not (found := children(process.pid, "raylet")):
            return
        for pid in [*found, *children(process.pid, "ray::RayActor")]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        tally.moments += 1
        end_well(process, folder)


def kill_driver(folder: Path, moments: random.Random, tally: Tally, _: int) -> None:
    """Kill helm-run, and start it again."""
    with running(folder, **SETTINGS) as process:
        wait_until(lambda: calls(folder).total() > 0, process)
        time.sleep(moments.uniform(0, 5))
        process.kill()
        process.wait()
    tally.moments += 1
    time.sleep(2)  # its actors go, too
    path = run_folder(folder) / ".answers.jsonl"
    lines = path.read_bytes().split(b"\n") if path.exists() else []
    kept = {f"question {json.loads(line)['place']}" for line in lines if line.endswith(b"}}")}
    before = calls(folder)
    if not (run_folder(folder) / "stats.json").exists():
        ray_runs.run(folder, **SETTINGS)
    tally.kept_again += sum(number for prompt, number in (calls(folder) - before).items() if prompt in kept)


def remove_node(folder: Path, moments: random.Random, tally: Tally, _: int) -> None:
    """Take one of two nodes away."""
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    try:
        nodes = [cluster.add_node(num_cpus=1) for _ in range(2)]
        with running(folder, RAY_ADDRESS=cluster.address, **SETTINGS) as process:
            wait_until(lambda: calls(folder).total() > 0, process)
            time.sleep(moments.uniform(0, 3))
            cluster.remove_node(moments.choice(nodes), allow_graceful=False)
            tally.moments += 1
            end_well(process, folder)
    finally:
        cluster.shutdown()


LIVE: dict[str, tuple[str, int, Callable[[Path, random.Random, Tally, int], None]]] = {
    "actor": ("an actor killed (SIGKILL)", 50, kill_actors),
    "raylet": ("Ray's raylet and its actors killed", 50, kill_raylet),
    "driver": ("helm-run killed, started again", 10, kill_driver),
    "node": ("a node removed", 5, remove_node),
}

RECORDED_ROWS = 6_000
RECORDED_KILLS = 5
ENDING_SECONDS = 10
PAGE = 4096


@dataclass
class RecordedTally:
    """What came of all recorded runs with one kind of fault."""

    moments: int = 0
    runs: int = 0
    noticed: int = 0
    lost: int = 0
    twice: int = 0
    half: int = 0
    left: int = 0
    orphans: int = 0
    equal: bool = True

    def take(self, folder: Path, expected: dict[str, bytes]) -> None:
        """Look at the files of a run that must be complete."""
        files = recorded_runs.read_files(folder)
        rows = json.loads(files.get("scenario_state.json", b'{"request_states": []}'))["request_states"]
        ids = [state["instance"]["id"] for state in rows]
        self.runs += 1
        self.lost += RECORDED_ROWS - len(set(ids))
        self.twice += len(ids) - len(set(ids))
        self.left += len(files.keys() - expected.keys())
        self.equal = self.equal and {name: files.get(name) for name in expected} == expected

    def take_failed(self, folder: Path, expected: dict[str, bytes], *, was_killed: bool) -> None:
        """Look at the files of a run that has ended in between."""
        files = recorded_runs.read_files(folder)
        whole = {name: files[name] for name in expected if name in files}
        self.half += len(whole) == len(expected) and whole != expected
        self.left += 0 if was_killed else len(files)

    def wait_for_end(self, pids: list[int]) -> None:
        """Count those that are still there after a while, and end them."""
        deadline = time.monotonic() + ENDING_SECONDS
        while any(map(recorded_runs.is_alive, pids)) and time.monotonic() < deadline:
            time.sleep(0.1)
        for pid in filter(recorded_runs.is_alive, pids):
            self.orphans += 1
            os.kill(pid, signal.SIGKILL)

    def show(self, name: str) -> None:
        """Print the line of the table."""
        counts = (self.moments, self.runs, self.noticed, self.lost, self.twice, self.half, self.left, self.orphans)
        print(f"| {name} | {' | '.join(map(str, counts))} | {'yes' if self.equal else 'NO'} |", flush=True)


@dataclass
class Plain:
    """A run without a fault, in one process."""

    files: dict[str, bytes]
    seconds: float
    """What one in two processes takes, from the command to its end."""
    first_worker: float
    """Seconds until the first worker is there."""


def count_said(folder: Path, text: str) -> int:
    return (folder / "s.log").read_text().count(text)


def require_end(process: ray_runs.subprocess.Popen[bytes], folder: Path, code: int = 0) -> None:
    """Wait for the end of a run. Raises RuntimeError if it is another one."""
    if process.wait(timeout=280) != code:
        raise RuntimeError((folder / "s.log").read_text()[-3000:])


def kill_workers(folder: Path, moments: random.Random, tally: RecordedTally, plain: Plain) -> None:
    """Kill workers from their first moments to the end of the run, those that are only starting, too."""
    with recorded_runs.running(folder) as process:
        wait_until(lambda: bool(recorded_runs.workers_of(process.pid)), process)
        for _ in range(RECORDED_KILLS):
            time.sleep(moments.uniform(0, (plain.seconds - plain.first_worker) / 2))
            if found := recorded_runs.workers_of(process.pid):
                os.kill(moments.choice(found), signal.SIGKILL)
                tally.moments += 1
        require_end(process, folder)
    tally.noticed += count_said(folder, "a worker process was lost")
    tally.take(folder, plain.files)


def kill_helm_run(folder: Path, moments: random.Random, tally: RecordedTally, plain: Plain) -> None:
    """Kill helm-run, from its first moment to its end, and start it again, and again: complete runs are passed over."""
    for _ in range(RECORDED_KILLS):
        with recorded_runs.running(folder, "s", "--skip-completed-runs") as process:
            time.sleep(moments.uniform(0, plain.seconds))
            started = [pid for pid in children(process.pid, "") if recorded_runs.is_alive(pid)]
            if process.poll() is None:
                tally.noticed += bool(recorded_runs.workers_of(process.pid))
                process.kill()
                tally.moments += 1
                process.wait()
        tally.wait_for_end(started)
        tally.take_failed(folder, plain.files, was_killed=True)
    with recorded_runs.running(folder, "s", "--skip-completed-runs") as process:
        require_end(process, folder)
    tally.take(folder, plain.files)


def fill_disk(folder: Path, moments: random.Random, tally: RecordedTally, plain: Plain) -> None:
    """Run on a disk that has less room than the files take."""
    room = int(moments.uniform(0.02, 1) * sum(map(len, plain.files.values())))
    mounted = folder / "benchmark_output"
    mounted.mkdir()
    script = (
        f'mount -t tmpfs -o size={room} tmpfs benchmark_output; "$@"; code=$?; '
        f"cp -r benchmark_output/. {folder / 'found'}; exit $code"
    )
    with recorded_runs.running(folder, before=("unshare", "-rm", "sh", "-c", script, "sh")) as process:
        started: set[int] = set()
        while process.poll() is None:
            started.update(pid for pid in children(process.pid, ""))
            time.sleep(0.05)
        require_end(process, folder, 1)
    tally.moments += 1
    tally.runs += 1
    said = (folder / "s.log").read_text()
    # In one line, and not as what a worker's line of code raised.
    clear = "the files cannot be written: No space left on device" in said and "OSError" not in said
    tally.noticed += clear
    tally.wait_for_end(list(started))
    mounted.rmdir()
    (folder / "found").rename(mounted)
    tally.take_failed(folder, plain.files, was_killed=False)


def take_memory(folder: Path, moments: random.Random, tally: RecordedTally, plain: Plain) -> None:
    """Let the system end a worker that takes more memory than it has: 4 MB more from some moment on."""
    group = Path(f"/sys/fs/cgroup/memory/helm-ext-faults-{os.getpid()}")
    group.mkdir()
    try:
        (group / "memory.limit_in_bytes").write_text(str(1000 * PAGE))
        with recorded_runs.running(folder) as process:
            wait_until(lambda: bool(recorded_runs.workers_of(process.pid)), process)
            for _ in range(RECORDED_KILLS):
                time.sleep(moments.uniform(0, (plain.seconds - plain.first_worker) / 2))
                if found := recorded_runs.workers_of(process.pid):
                    (group / "cgroup.procs").write_text(str(moments.choice(found)))
                    tally.moments += 1
            require_end(process, folder)
    finally:
        time.sleep(0.5)  # until what was in it has gone
        group.rmdir()
    tally.noticed += count_said(folder, "a worker process was lost")
    tally.take(folder, plain.files)


RECORDED: dict[str, tuple[str, int, Callable[[Path, random.Random, RecordedTally, Plain], None]]] = {
    "worker": ("a worker killed (SIGKILL)", 50, kill_workers),
    "start": ("helm-run killed, started again", 50, kill_helm_run),
    "disk": ("the disk is full", 20, fill_disk),
    "memory": ("a worker has no more memory", 20, take_memory),
}


def run_live(wanted: dict[str, int], moments: random.Random, folder: Path) -> None:
    """Print the table of live runs."""
    plain = folder / "plain"
    ray_runs.run(plain, runner="StreamingRunner", COUNTED_ROWS=ROWS)
    expected = read_files(plain)
    print("| fault | moments | runs | lost | twice | asked again | kept rows asked again | equal |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    for fault, (what, _, make) in LIVE.items():
        tally = Tally()
        try:
            while tally.moments < wanted.get(fault, 0):
                made = folder / f"{fault}{tally.runs}"
                make(made, moments, tally, wanted[fault])
                tally.take(made, expected)
                shutil.rmtree(made)
        finally:  # also what was counted before an interruption
            if tally.runs:
                tally.show(what)


def run_recorded(wanted: dict[str, int], moments: random.Random, folder: Path) -> None:
    """Print the table of recorded runs."""
    recorded_runs.write_many(folder, RECORDED_ROWS)
    begun = time.monotonic()
    with recorded_runs.running(folder) as process:
        wait_until(lambda: bool(recorded_runs.workers_of(process.pid)), process)
        first_worker = time.monotonic() - begun
        require_end(process, folder)
    seconds = time.monotonic() - begun
    with recorded_runs.running(folder, workers=1) as process:
        require_end(process, folder)
    plain = Plain(recorded_runs.read_files(folder), seconds, first_worker)
    print(f"plain: {plain.seconds:.1f} s, the first worker after {plain.first_worker:.1f} s", file=sys.stderr)
    print("| fault | moments | runs | noticed | lost | twice | half | left | orphans | equal |")
    print("|---|---|---|---|---|---|---|---|---|---|", flush=True)
    for fault, (what, _, make) in RECORDED.items():
        tally = RecordedTally()
        try:
            while tally.moments < wanted.get(fault, 0):
                made = folder / f"{fault}{tally.runs}"
                made.mkdir()
                shutil.copy(folder / "many.jsonl", made)
                make(made, moments, tally, plain)
                shutil.rmtree(made)
                print(".", end="", file=sys.stderr, flush=True)
        finally:
            if tally.runs:
                tally.show(what)


def main() -> None:
    """Run what the command line asks for."""
    numbers = {name: number for faults in (LIVE, RECORDED) for name, (_, number, _) in faults.items()}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = ", ".join(f"{name}={number}" for name, number in numbers.items())
    parser.add_argument("faults", nargs="*", metavar="FAULT=MOMENTS", help=f"default: {names}")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    given = {name: int(number) for name, _, number in (fault.partition("=") for fault in options.faults)} or numbers
    if unknown := given.keys() - numbers.keys():
        parser.error(f"unknown: {', '.join(unknown)}; there are {', '.join(numbers)}")
    moments = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as name:
        for run, faults in ((run_live, LIVE), (run_recorded, RECORDED)):
            if given.keys() & faults.keys():
                (folder := Path(name) / run.__name__).mkdir()
                run(given, moments, folder)


if __name__ == "__main__":
    main()
