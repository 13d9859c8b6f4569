"""Runs in which something is killed, or runs out, at random moments: what is lost, what is done twice.

    python tools/faults.py                              # everything, with the numbers of docs/scaling.md: hours
    python tools/faults.py actor=50 worker=50           # some kinds of faults, at so many moments

The first table is of live runs on Ray, the second of recorded runs in two processes, of small tasks; each line is one
kind of fault. A third is of live runs that ask a server without Ray, a fourth of commands that make files of finished
runs. What has been counted so far is printed after each run. "Lost" and "twice" are rows of the output that are missing
or repeated, "equal" says whether HELM's five files have the bytes of a run without Ray, or in one process, and without
a fault.

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
import re
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, TextIO

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

import openai_server  # noqa: E402 - the tests' own
import processes  # noqa: E402
import ray_runs  # noqa: E402
import recorded_runs  # noqa: E402
import served_runs  # noqa: E402
import warm_processes  # noqa: E402
from ray_runs import calls, children, read_files, run_folder, running, wait_until  # noqa: E402

ROWS = 400
SETTINGS = {"COUNTED_ROWS": ROWS, "COUNTED_SECONDS": 0.1}
KILLS_A_RUN = 5
DRIVER_KILLS = 4
ROW_SECONDS = 0.014
"""What a row takes in a run: 0.1 s in one of eight threads, and what the machine adds."""
END_SECONDS = 1.5
"""From the last answer to the last file."""


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

    def show(self, name: str, file: TextIO = sys.stdout) -> None:
        """Print the line of the table; to another file, on the way to it."""
        print(
            f"| {name} | {self.moments} | {self.runs} | {self.lost} | {self.twice} | {self.again} of "
            f"{self.runs * ROWS:,} | {self.kept_again} | {'yes' if self.equal else 'NO'} |",
            flush=True,
            file=file,
        )


def workers_of(pid: int) -> list[int]:
    """Return the processes that a run has started for its rows."""
    with suppress(OSError):
        started = map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
        return [one for one in started if b"spawn_main" in Path(f"/proc/{one}/cmdline").read_bytes()]
    return []


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


def kill_driver(folder: Path, moments: random.Random, tally: Tally, wanted: int) -> None:
    """Kill helm-run and start it again, some times, until it is complete.

    What is left to ask gets less from start to start, so the moments do: from the first answer to the last file.
    """
    for _ in range(min(DRIVER_KILLS, wanted - tally.moments)):
        kept, before = kept_prompts(folder), calls(folder)
        missing, known = ROWS - len(kept), before.total()
        with running(folder, **SETTINGS) as process:
            with suppress(AssertionError):  # where nothing is left to ask, it ends
                wait_until(lambda known=known: calls(folder).total() > known, process)
            time.sleep(moments.uniform(0, missing * ROW_SECONDS + END_SECONDS))
            if process.poll() is None:
                process.kill()
                tally.moments += 1
        time.sleep(2)  # its actors go, too
        tally.kept_again += count_known(calls(folder) - before, kept)
        if (run_folder(folder) / "stats.json").exists():
            return
    kept, before = kept_prompts(folder), calls(folder)
    ray_runs.run(folder, **SETTINGS)
    tally.kept_again += count_known(calls(folder) - before, kept)


def kept_prompts(folder: Path) -> set[str]:
    """Return the prompts whose answers an earlier start has kept."""
    path = run_folder(folder) / ".answers.jsonl"
    lines = path.read_bytes().split(b"\n") if path.exists() else []
    return {f"question {json.loads(line)['place']}" for line in lines if line.endswith(b"}}")}


def count_known(asked: Counter[str], kept: set[str]) -> int:
    return sum(number for prompt, number in asked.items() if prompt in kept)


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
ACTOR_SECONDS = 3
"""From one killed actor to the next, at most."""
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

    def show(self, name: str, file: TextIO = sys.stdout) -> None:
        """Print the line of the table; to another file, on the way to it."""
        counts = (self.moments, self.runs, self.noticed, self.lost, self.twice, self.half, self.left, self.orphans)
        print(f"| {name} | {' | '.join(map(str, counts))} | {'yes' if self.equal else 'NO'} |", flush=True, file=file)


@dataclass
class Plain:
    """A run without a fault, in one process."""

    files: dict[str, bytes]
    seconds: float
    """What one in two processes takes, from the command to its end."""
    first_worker: float
    """Seconds until the first worker is there."""
    warm_seconds: float
    """What it takes without HELM's imports."""


def count_said(folder: Path, text: str) -> int:
    return (folder / "s.log").read_text().count(text)


def require_end(
    process: ray_runs.subprocess.Popen[bytes] | warm_processes.Running, folder: Path, code: int = 0
) -> None:
    """Wait for the end of a run. Raises RuntimeError if it is another one."""
    if process.wait(timeout=280) != code:
        raise RuntimeError((folder / "s.log").read_text()[-3000:])


def kill_workers(folder: Path, moments: random.Random, tally: RecordedTally, plain: Plain) -> None:
    """Kill workers from their first moments to the end of the run, those that are only starting, too."""
    with recorded_runs.running(folder) as process:
        wait_until(lambda: bool(workers_of(process.pid)), process)
        for _ in range(RECORDED_KILLS):
            time.sleep(moments.uniform(0, (plain.seconds - plain.first_worker) / 2))
            if found := workers_of(process.pid):
                os.kill(moments.choice(found), signal.SIGKILL)
                tally.moments += 1
        require_end(process, folder)
    tally.noticed += count_said(folder, "a worker process was lost")
    tally.take(folder, plain.files)


def kill_helm_run(folder: Path, moments: random.Random, tally: RecordedTally, plain: Plain) -> None:
    """Kill helm-run, from its first moment to its end, and start it again, and again: complete runs are passed over.

    Its process has HELM's imports already: they are most of a start, and nothing of ours happens in them. Its workers
    are like any.
    """
    for _ in range(RECORDED_KILLS):
        process = begin_recorded(folder)
        time.sleep(moments.uniform(0, plain.warm_seconds))
        started = [pid for pid in children(process.pid, "") if recorded_runs.is_alive(pid)]
        if process.poll() is None:
            tally.noticed += bool(workers_of(process.pid))
            process.kill()
            tally.moments += 1
            process.wait()
        tally.wait_for_end(started)
        tally.take_failed(folder, plain.files, was_killed=True)
    require_end(begin_recorded(folder), folder)
    tally.take(folder, plain.files)


def begin_recorded(folder: Path) -> warm_processes.Running:
    command = recorded_runs.command("s", "--skip-completed-runs")
    return begin(folder, *command, env=recorded_runs.environ(folder))


def begin(folder: Path, *command: str, env: Mapping[str, str] = MappingProxyType({})) -> warm_processes.Running:
    """Start a command in a process that has HELM's imports. Its output goes to s.log."""
    script = Path(command[0]).name
    every = {**os.environ, **processes.OFFLINE, **env}
    return warm_processes.Running(folder, script, *command[1:], env=every, outputs=(folder / "s.log",) * 2)


def kill_scoring_actors(folder: Path, moments: random.Random, tally: RecordedTally, plain: Plain) -> None:
    """Kill the actors of a RayRunner that scores recorded rows, those that are only starting, too."""
    on_ray = ("--runner-class-name", "helm_ext.running.RayRunner")
    with recorded_runs.running(folder, "s", *on_ray, workers=1, HELM_EXT_RAY_ACTORS="2") as process:
        wait_until(lambda: bool(children(process.pid, "ray::RayActor")), process)
        for _ in range(RECORDED_KILLS):
            time.sleep(moments.uniform(0, ACTOR_SECONDS))
            if found := children(process.pid, "ray::RayActor"):
                os.kill(moments.choice(found), signal.SIGKILL)
                tally.moments += 1
        started = children(process.pid, "")
        require_end(process, folder)
    tally.wait_for_end(started)
    tally.noticed += count_said(folder, "a Ray actor was lost")
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
            wait_until(lambda: bool(workers_of(process.pid)), process)
            for _ in range(RECORDED_KILLS):
                time.sleep(moments.uniform(0, (plain.seconds - plain.first_worker) / 2))
                if found := workers_of(process.pid):
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
    "scorer": ("RayRunner: an actor killed (SIGKILL)", 20, kill_scoring_actors),
    "disk": ("the disk is full", 20, fill_disk),
    "memory": ("a worker has no more memory", 20, take_memory),
}


SERVED_ROWS = 600
SERVED_THREADS = 16
SERVED_SECONDS = 0.03


@dataclass
class ServedTally:
    """What came of runs that ask a server, without Ray."""

    moments: int = 0
    asking: int = 0
    again: int = 0
    most_again: int = 0
    lost: int = 0
    twice: int = 0
    half: int = 0
    equal: bool = True

    def show(self, name: str, file: TextIO = sys.stdout) -> None:
        """Print the line of the table; to another file, on the way to it."""
        counts = (self.moments, self.asking, f"{self.again} of {self.moments * SERVED_ROWS:,}", self.most_again)
        counts = (*counts, self.lost, self.twice, self.half, "yes" if self.equal else "NO")
        print(f"| {name} | {' | '.join(map(str, counts))} |", flush=True, file=file)


def begin_served(folder: Path) -> warm_processes.Running:
    threads = ("-n", str(SERVED_THREADS))
    asked = ("--suite", "s", "-m", "100000", *threads, "--run-entries", served_runs.ENTRY)
    return begin(folder, "helm-run", *served_runs.RUNNER, *asked, "--skip-completed-runs")


def read_served(folder: Path) -> dict[str, Any] | None:
    """Return the files of a run that HELM takes for complete, without times and whether a reply was kept."""
    found = processes.run_folders(folder)
    if not found or not all((next(iter(found.values())) / name).exists() for name in recorded_runs.FILES):
        return None
    files = processes.read_all(next(iter(found.values())))
    for state in files["scenario_state.json"]["request_states"]:
        del state["result"]["cached"]
    return processes.without_times(files)  # type: ignore[no-any-return]


def run_served(wanted: dict[str, int], moments: random.Random, folder: Path) -> None:
    """Print the table of live runs without Ray: helm-run is killed once in each, and started again."""
    tally = ServedTally()
    with openai_server.serve() as server:
        server.seconds = SERVED_SECONDS

        def asked() -> Counter[str]:
            return Counter(json.dumps(body["messages"]) for _, body in list(server.asked))

        made = folder / "plain"
        made.mkdir()
        served_runs.make_folder(made, server, SERVED_ROWS)
        require_end(begin(made, "helm-run", "--help"), made)
        begun = time.monotonic()
        require_end(begin_served(made), made)
        seconds = time.monotonic() - begun
        expected = read_served(made)
        print(f"plain: {seconds:.1f} s without imports", file=sys.stderr)
        print("| fault | moments | while it asks | asked again | most at once | lost | twice | half | equal |")
        print("|---|---|---|---|---|---|---|---|---|", flush=True)
        try:
            while tally.moments < wanted["served"]:
                made = folder / str(tally.moments)
                made.mkdir(exist_ok=True)
                served_runs.make_folder(made, server, SERVED_ROWS)
                server.asked.clear()
                process = begin_served(made)
                time.sleep(moments.uniform(0, seconds))
                if process.poll() is None:
                    process.kill()
                    process.wait()
                    tally.moments += 1
                    time.sleep(0.5)  # the server still takes note of what was on its way
                    tally.asking += 0 < len(server.asked) < SERVED_ROWS
                    tally.half += read_served(made) not in (None, expected)
                    require_end(begin_served(made), made)
                    again = asked().total() - len(asked())
                    tally.again += again
                    tally.most_again = max(tally.most_again, again)
                    files = read_served(made)
                    rows = files["scenario_state.json"]["request_states"] if files else []
                    ids = [state["instance"]["id"] for state in rows]
                    tally.lost += SERVED_ROWS - len(set(ids))
                    tally.twice += len(ids) - len(set(ids))
                    tally.equal = tally.equal and files == expected
                shutil.rmtree(made)
                tally.show("so far", sys.stderr)
        finally:
            tally.show("helm-run killed, started again")


SHARD_ROWS = 1_500
MERGE = ("helm-ext", "merge", "benchmark_output/runs/shards", "--into", "big")
SUMMARIZE = (
    "helm-summarize", "--suite", "shards", "--auto-generate-schema", "--num-threads", "1",
    "--skip-completed-run-display-json", "--summarizer-class-name", "helm_ext.running.StreamingSummarizer",
)  # fmt: skip
DISPLAYED = ("instances.json", "display_predictions.json", "display_requests.json")


@dataclass
class WrittenTally:
    """What came of commands that write the files of runs out of those of others."""

    moments: int = 0
    writing: int = 0
    half: int = 0
    left: int = 0
    equal: bool = True

    def show(self, name: str, file: TextIO = sys.stdout) -> None:
        """Print the line of the table; to another file, on the way to it."""
        counts = (self.moments, self.writing, self.half, self.left)
        print(f"| {name} | {' | '.join(map(str, counts))} | {'yes' if self.equal else 'NO'} |", flush=True, file=file)


def read_written(folder: Path) -> dict[str, bytes]:
    """Return the files of all runs by path; those that hold a time, without it."""
    root = folder / "benchmark_output/runs"
    found = {str(path.relative_to(root)): path for path in root.rglob("*") if path.is_file()}
    files = {name: path.read_bytes() for name, path in found.items() if not name.endswith("lock")}
    return {name: re.sub(rb'"(date|finished)": *"[^"]*"', b"", data) for name, data in sorted(files.items())}


def find_sets(files: Mapping[str, bytes], names: tuple[str, ...]) -> Iterator[dict[str, bytes]]:
    """Yield the files of each run that has all of these: what is taken for complete."""
    for folder in {name.rpartition("/")[0] for name in files}:
        found = {f"{folder}/{name}": files[f"{folder}/{name}"] for name in names if f"{folder}/{name}" in files}
        if len(found) == len(names):
            yield found


def run_written(wanted: dict[str, int], moments: random.Random, folder: Path) -> None:
    """Print the table of `helm-ext merge` and helm-summarize, killed and started again."""
    draw = random.Random(2)
    base = folder / "base"
    base.mkdir()
    names = [f"shard-{number}.jsonl" for number in range(3)]
    for number, name in enumerate(names):
        ids = range(number * SHARD_ROWS, (number + 1) * SHARD_ROWS)
        recorded_runs.write(base / name, [recorded_runs.make_row(draw, one, split="test") for one in ids])
    entries = [f"adapter_spec:path={name},model=recorded/m" for name in names]
    options = ("--suite", "shards", "-m", "100000", "--disable-cache", *served_runs.RUNNER)
    require_end(begin(base, "helm-run", *options, "--run-entries", *entries), base)
    print("| fault | moments | while it writes | half | left | equal |")
    print("|---|---|---|---|---|---|", flush=True)
    for fault, (what, _, command, complete) in WRITTEN.items():
        if not wanted.get(fault):
            continue
        plain = folder / f"plain-{fault}"
        shutil.copytree(base, plain)
        begun = time.monotonic()
        require_end(begin(plain, *command), plain)
        seconds = time.monotonic() - begun
        expected, before = read_written(plain), read_written(base)
        print(f"plain: {seconds:.1f} s without imports", file=sys.stderr)
        tally = WrittenTally()
        try:
            while tally.moments < wanted[fault]:
                made = folder / f"{fault}{tally.moments}"
                shutil.copytree(base, made)
                process = begin(made, *command)
                time.sleep(moments.uniform(0, seconds))
                if process.poll() is None:
                    process.kill()
                    process.wait()
                    tally.moments += 1
                    found = read_written(made)
                    tally.writing += found != before
                    for files in find_sets(found, complete):
                        tally.half += any(expected[name] != data for name, data in files.items())
                    require_end(begin(made, *command), made)
                    after = read_written(made)
                    tally.left += len(after.keys() - expected.keys())
                    tally.equal = tally.equal and {name: after.get(name) for name in expected} == expected
                shutil.rmtree(made)
                tally.show("so far", sys.stderr)
        finally:
            tally.show(what)


WRITTEN: dict[str, tuple[str, int, tuple[str, ...], tuple[str, ...]]] = {
    "merge": ("helm-ext merge killed, started again", 20, MERGE, recorded_runs.FILES),
    "summarize": ("helm-summarize killed, started again", 20, SUMMARIZE, DISPLAYED),
}
SERVED = {"served": ("helm-run killed, started again", 50)}


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
                tally.show("so far", sys.stderr)
        finally:  # also what was counted before an interruption
            if tally.runs:
                tally.show(what)


def run_recorded(wanted: dict[str, int], moments: random.Random, folder: Path) -> None:
    """Print the table of recorded runs."""
    recorded_runs.write_many(folder, RECORDED_ROWS)
    begun = time.monotonic()
    with recorded_runs.running(folder) as process:
        wait_until(lambda: bool(workers_of(process.pid)), process)
        first_worker = time.monotonic() - begun
        require_end(process, folder)
    seconds = time.monotonic() - begun
    with recorded_runs.running(folder, workers=1) as process:
        require_end(process, folder)
    files = recorded_runs.read_files(folder)
    shutil.rmtree(folder / "benchmark_output")
    require_end(begin(folder, "helm-run", "--help"), folder)  # the first one makes the process that is forked
    begun = time.monotonic()
    require_end(begin_recorded(folder), folder)
    plain = Plain(files, seconds, first_worker, time.monotonic() - begun)
    times = f"{plain.seconds:.1f} s, without imports {plain.warm_seconds:.1f} s"
    print(f"plain: {times}, the first worker after {plain.first_worker:.1f} s", file=sys.stderr)
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
                tally.show("so far", sys.stderr)
        finally:
            if tally.runs:
                tally.show(what)


TABLES: tuple[tuple[Callable[[dict[str, int], random.Random, Path], None], Mapping[str, Any]], ...] = (
    (run_live, LIVE),
    (run_recorded, RECORDED),
    (run_served, SERVED),
    (run_written, WRITTEN),
)


def main() -> None:
    """Run what the command line asks for."""
    numbers = {name: line[1] for _, faults in TABLES for name, line in faults.items()}
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
        for run, faults in TABLES:
            if given.keys() & faults.keys():
                (folder := Path(name) / run.__name__).mkdir()
                run(given, moments, folder)


if __name__ == "__main__":
    main()
