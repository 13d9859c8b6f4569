"""Live runs on Ray in which something is killed at random moments: what is lost, what is done twice.

    python tools/ray_faults.py                              # everything, with the numbers of docs/scaling.md
    python tools/ray_faults.py --actor 50 --raylet 0 --driver 0 --node 0

Each line of the table is one kind of fault. "Lost" and "twice" are rows of the output that are missing or repeated,
"asked again" requests that a model answered more than once, "equal" whether HELM's five files have the bytes of a run
without Ray and without a fault. A killed driver is started again; "kept rows asked again" are those whose answers had
been kept by then.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

import ray_runs  # noqa: E402 - the tests' own
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
    """Kill Ray's own process of this machine, and with it the actors, as its children die with it."""
    with running(folder, **{**SETTINGS, "COUNTED_SECONDS": 0.4}) as process:
        wait_until(lambda: calls(folder).total() > 0, process)
        time.sleep(moments.uniform(0, 12))
        for pid in [*children(process.pid, "raylet"), *children(process.pid, "ray::RayActor")]:
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
    folder.mkdir()
    os.environ.update({name: str(value) for name, value in SETTINGS.items()}, COUNTED_LOG=str(folder / "calls.log"))
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


FAULTS: dict[str, tuple[str, int, Callable[[Path, random.Random, Tally, int], None]]] = {
    "actor": ("an actor killed (SIGKILL)", 50, kill_actors),
    "raylet": ("Ray's raylet and its actors killed", 10, kill_raylet),
    "driver": ("helm-run killed, started again", 10, kill_driver),
    "node": ("a node removed", 5, remove_node),
}


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, (what, number, _) in FAULTS.items():
        parser.add_argument(f"--{name}", type=int, default=number, help=f"moments: {what}")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    moments = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as name:
        plain = Path(name) / "plain"
        ray_runs.run(plain, runner="StreamingRunner", COUNTED_ROWS=ROWS)
        expected = read_files(plain)
        print("| fault | moments | runs | lost | twice | asked again | kept rows asked again | equal |")
        print("|---|---|---|---|---|---|---|---|", flush=True)
        for fault, (what, _, make) in FAULTS.items():
            tally, wanted = Tally(), getattr(options, fault)
            while tally.moments < wanted:
                folder = Path(name) / f"{fault}{tally.runs}"
                make(folder, moments, tally, wanted)
                tally.take(folder, expected)
            if wanted:
                tally.show(what)


if __name__ == "__main__":
    main()
