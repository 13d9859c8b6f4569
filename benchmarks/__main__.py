"""Run the workloads through each system and print what an evaluation costs around the model.

    python -m benchmarks                          # stock HELM and helm-ext, 2,000 rows
    python -m benchmarks --rows 10000 --summarize # and helm-summarize afterwards

CPU seconds are user+sys of the whole process and its children; "start" is a run of 10 rows, "marginal" the difference
per 1,000 rows. Runs are interleaved, because other work on the machine disturbs absolute numbers: trust ratios.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks import limits, stock, workloads

HELM_RUNNER = "helm.benchmark.runner.Runner"
OUR_RUNNER = "helm_ext.runner.StreamingRunner"
START_ROWS = 10


@dataclass(frozen=True)
class Cost:
    """What one process took."""

    cpu: float
    wall: float
    peak_mb: float
    written_mb: float


def measure(command: list[str], folder: Path, environment: dict[str, str], log: Path) -> Cost:
    """Run a command to its end. Raises RuntimeError, with the end of its log, when it fails."""
    before = size_mb(folder)
    started = time.perf_counter()
    with log.open("w") as output:
        process = subprocess.Popen(
            command, cwd=folder, env={**os.environ, **environment}, stdout=output, stderr=subprocess.STDOUT
        )
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    wall = time.perf_counter() - started
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)}\n{log.read_text()[-2000:]}")
    return Cost(usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss / 1024, size_mb(folder) - before)


def size_mb(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6


@dataclass(frozen=True)
class Job:
    """A system's run of a workload's rows."""

    system: str
    workload: str
    rows: int
    folder: Path

    @property
    def recorded_path(self) -> Path:
        return self.folder / f"{self.workload}-{self.rows}.jsonl"

    @property
    def plain_path(self) -> Path:
        return self.folder / f"{self.workload}-{self.rows}.plain.jsonl"

    @property
    def output(self) -> Path:
        return self.folder / f"{self.system}-{self.workload}-{self.rows}"

    def command(self) -> list[str]:
        """Return the command line. HELM's are run with this interpreter's `helm-run`."""
        recorded, runner = SYSTEMS[self.system]
        entry = (
            f"adapter_spec:path={self.recorded_path},model=recorded/bench"
            if recorded
            else f"workload:workload={self.workload},model=bench/model"
        )
        return [
            str(Path(sys.executable).with_name("helm-run")),
            *([] if recorded else ["--plugins", "benchmarks.stock"]),
            *("--run-entries", entry, "--suite", "bench", "--max-eval-instances", str(self.rows)),
            *("--disable-cache", "--local-path", str(self.folder / "prod_env"), "--output-path", "."),
            *("--runner-class-name", runner, "--num-threads", "4"),
        ]

    def run(self) -> Cost:
        self.output.mkdir()
        environment = {
            stock.ROWS_VARIABLE: str(self.plain_path),
            "PYTHONPATH": str(Path(__file__).parent.parent),
            "HF_HUB_OFFLINE": "1",
        }
        return measure(self.command(), self.output, environment, self.output.with_suffix(".log"))


SYSTEMS = {
    "stock HELM": (False, HELM_RUNNER),
    "stock HELM, our runner": (False, OUR_RUNNER),
    "recorded": (True, HELM_RUNNER),
    "recorded, our runner": (True, OUR_RUNNER),
}
"""Whether completions are recorded in the file, and the runner."""


def report(workload: str, rows: int, costs: dict[str, tuple[Cost, Cost]]) -> None:
    """Print one workload's table. `costs`: system -> (of START_ROWS rows, of all rows)."""
    print(f"\n{workload}, {rows:,} rows")
    print(
        f"{'':24}{'start s':>9}{'CPU s':>9}{'wall s':>9}{'peak MB':>9}{'written MB':>12}"
        f"{'s/1,000 rows':>14}{'kB/row':>8}{'ratio':>8}"
    )
    marginals = {
        system: (all_rows.cpu - few.cpu) / (rows - START_ROWS) * 1000 for system, (few, all_rows) in costs.items()
    }
    baseline = marginals.get("stock HELM")
    for system, (few, all_rows) in costs.items():
        memory = (all_rows.peak_mb - few.peak_mb) * 1024 / (rows - START_ROWS)
        ratio = f"{baseline / marginals[system]:8.1f}" if baseline and marginals[system] > 0 else f"{'':8}"
        print(
            f"{system:24}{few.cpu:9.1f}{all_rows.cpu:9.1f}{all_rows.wall:9.1f}{all_rows.peak_mb:9.0f}"
            f"{all_rows.written_mb:12.1f}{marginals[system]:14.3f}{memory:8.1f}{ratio}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--workloads", nargs="+", choices=list(workloads.METRICS), default=list(workloads.METRICS))
    parser.add_argument("--systems", nargs="+", choices=list(SYSTEMS), default=list(SYSTEMS))
    parser.add_argument("--repeat", type=int, default=1, help="times that each system runs; the cheapest run counts")
    parser.add_argument("--summarize", action="store_true", help="helm-summarize, stock and streaming, as well")
    arguments = parser.parse_args()
    systems = arguments.systems
    limits.print_start_up()
    with tempfile.TemporaryDirectory(prefix="helm-ext-benchmark-") as name:
        folder = Path(name)
        stock.write_prod_env(folder / "prod_env")
        for workload in arguments.workloads:
            for count in (START_ROWS, arguments.rows):
                rows = workloads.make_rows(workload, count)
                workloads.write_recorded(folder / f"{workload}-{count}.jsonl", workload, rows)
                workloads.write_plain(folder / f"{workload}-{count}.plain.jsonl", rows)
            costs = measure_interleaved(systems, workload, arguments.rows, folder, arguments.repeat)
            report(workload, arguments.rows, costs)
            limits.print_limits(folder / f"{workload}-{arguments.rows}.jsonl")
            if arguments.summarize:
                summarize(Job(systems[0], workload, arguments.rows, folder).output)


def measure_interleaved(
    systems: list[str], workload: str, rows: int, folder: Path, repeat: int
) -> dict[str, tuple[Cost, Cost]]:
    """Run every system `repeat` times, taking turns, and keep the cheapest run of each."""
    costs: dict[tuple[str, int], list[Cost]] = {}
    for repetition in range(repeat):
        for system in systems:
            for count in (START_ROWS, rows):
                job = Job(system, workload, count, folder)
                if repetition:
                    shutil.rmtree(job.output)
                costs.setdefault((system, count), []).append(job.run())
    cheapest = {key: min(several, key=lambda cost: cost.cpu) for key, several in costs.items()}
    return {system: (cheapest[system, START_ROWS], cheapest[system, rows]) for system in systems}


def summarize(output: Path) -> None:
    """Print what `helm-summarize` costs afterwards, with HELM's summarizer and with ours."""
    for name in ("helm.benchmark.presentation.summarize.Summarizer", "helm_ext.summarizer.StreamingSummarizer"):
        command = [
            str(Path(sys.executable).with_name("helm-summarize")),
            *("--suite", "bench", "--output-path", ".", "--auto-generate-schema", "--summarizer-class-name", name),
        ]
        environment = {"PYTHONPATH": str(Path(__file__).parent.parent)}
        cost = measure(command, output, environment, output.with_suffix(".summarize.log"))
        print(f"{name.rsplit('.', 1)[1]:24}{'':9}{cost.cpu:9.1f}{cost.wall:9.1f}{cost.peak_mb:9.0f}")


if __name__ == "__main__":
    main()
