"""Run the workloads through each system and print what an evaluation costs around the model.

    python -m benchmarks                          # stock HELM and helm-ext, 2,000 rows
    python -m benchmarks --peers                  # and lm-evaluation-harness, inspect-ai and redlite
    python -m benchmarks --rows 10000 --summarize # and helm-summarize afterwards

CPU seconds are user+sys of the whole process and its children; "start" is a run of 10 rows, and what 1,000 further rows
take is the difference. Systems that do the same work stand together. "same work" is how many times less a system takes
than the first of them, "stock HELM" how many times less than stock HELM, which builds prompts, counts tokens and writes
more stats than a recorded run. Runs are interleaved, because other work on the machine disturbs absolute numbers: trust
ratios, and the first one. Each peer gets a virtual environment of its own, made
when it is missing.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks import limits, peers, start_up, stock, workloads
from benchmarks.measuring import ROOT, Cost, measure
from benchmarks.systems import HELM_SYSTEMS, STOCK, Job, System

START_ROWS = 10


@dataclass
class Result:
    """A system's runs of a workload: of START_ROWS rows and of all, or why there are none."""

    system: System
    rows: int
    start: list[Cost] = field(default_factory=list)
    full: list[Cost] = field(default_factory=list)
    accuracy: float = 0.0
    stats_per_row: float | None = None
    unavailable: str = ""

    @property
    def cheapest(self) -> tuple[Cost, Cost]:
        return min(self.start, key=lambda cost: cost.cpu), min(self.full, key=lambda cost: cost.cpu)

    @property
    def marginal(self) -> float:
        """Return CPU seconds per 1,000 further rows."""
        start, full = self.cheapest
        return (full.cpu - start.cpu) / (self.rows - START_ROWS) * 1000

    @property
    def kb_per_row(self) -> float:
        start, full = self.cheapest
        return (full.peak_mb - start.peak_mb) * 1024 / (self.rows - START_ROWS)


HEADER = (
    f"{'':30}{'start s':>9}{'CPU s':>9}{'wall s':>9}{'peak MB':>9}{'written MB':>12}{'accuracy':>10}"
    f"{'s/1,000 rows':>14}{'kB/row':>8}{'stats/row':>11}{'same work':>11}{'stock HELM':>12}"
)
WIDTH_BEFORE_MARGINAL = HEADER.index("accuracy") + len("accuracy")


def make_table(workload: str, results: list[Result], known_accuracy: float) -> tuple[list[str], list[str]]:
    """Return the lines of one workload's table, and what there is to say about its systems."""
    lines = [f"{workload}, {results[0].rows:,} rows, {known_accuracy:.4f} of the answers are right", HEADER]
    notes = []
    stock = next((one.marginal for one in results if one.system == STOCK and not one.unavailable), None)
    for work, group in itertools.groupby(results, lambda result: result.system.work):
        lines.append(work)
        first = None
        for result in group:
            name = result.system.name
            if result.unavailable:
                lines.append(f"  {name:28}{result.unavailable}")
                continue
            if first is None and name in HELM_SYSTEMS:  # other harnesses do not do the same work
                first = result.marginal
            lines.append(f"  {name:28}{_numbers(result, first, stock)}")
            if result.system.note:
                notes.append(f"{name}: {result.system.note}")
            if abs(result.accuracy - known_accuracy) > 1e-6:
                notes.append(f"{name}: NOT THE SAME WORK, its accuracy is {result.accuracy}")
    return lines, notes


def _numbers(result: Result, first: float | None, stock: float | None) -> str:
    start, full = result.cheapest
    stats = "" if result.stats_per_row is None else f"{result.stats_per_row:.1f}"
    same_work, to_stock = (
        f"{one / result.marginal:.1f}" if one and result.marginal > 0 else "" for one in (first, stock)
    )
    return (
        f"{start.cpu:9.1f}{full.cpu:9.1f}{full.wall:9.1f}{full.peak_mb:9.0f}{full.written_mb:12.1f}"
        f"{result.accuracy:10.4f}{result.marginal:14.3f}{result.kb_per_row:8.1f}{stats:>11}{same_work:>11}{to_stock:>12}"
    ).rstrip()


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = [*HELM_SYSTEMS, *peers.make_peers()]
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--workloads", nargs="+", choices=list(workloads.METRICS), default=list(workloads.METRICS))
    parser.add_argument("--systems", nargs="+", choices=names, metavar="NAME", help=f"of: {'; '.join(names)}")
    parser.add_argument("--peers", action="store_true", help="all systems, those that are not HELM too")
    parser.add_argument("--venvs", type=Path, default=peers.DEFAULT_VENVS, help="where the peers are installed")
    parser.add_argument("--repeat", type=int, default=1, help="times that each system runs; the cheapest run counts")
    parser.add_argument(
        "--start-up", type=int, default=3, help="times that helm-run starts with and without the plugin"
    )
    parser.add_argument("--summarize", action="store_true", help="helm-summarize, stock and streaming, as well")
    arguments = parser.parse_args()
    if arguments.rows <= START_ROWS:
        parser.error(f"--rows must be more than {START_ROWS}")
    available = {**HELM_SYSTEMS, **peers.make_peers(arguments.venvs)}
    chosen = arguments.systems or (list(available) if arguments.peers else list(HELM_SYSTEMS))
    systems = [available[name] for name in chosen]
    unavailable = install_peers(systems)
    with tempfile.TemporaryDirectory(prefix="helm-ext-benchmark-") as name:
        folder = Path(name)
        stock.write_prod_env(folder / "prod_env")
        for workload in workloads.METRICS:
            for count in (START_ROWS, arguments.rows):
                write_workload(Job(STOCK, workload, count, folder))
        if arguments.start_up:
            start_up.print_start_up(folder, START_ROWS, arguments.start_up)
        for workload in arguments.workloads:
            results = [
                Result(system, arguments.rows, unavailable=unavailable.get(system.name, ""))
                for system in systems
                if system.can_run(workload)
            ]
            if not results:
                print(f"\n{workload}: recorded rows only, which none of these systems takes")
                continue
            measure_interleaved(results, workload, folder, arguments.repeat)
            known = workloads.known_accuracy(workloads.make_rows(workload, arguments.rows))
            table, notes = make_table(workload, results, known)
            print("", *table, sep="\n")
            limits.print_limits(Job(STOCK, workload, arguments.rows, folder).recorded_path, WIDTH_BEFORE_MARGINAL)
            helm = [system for system in systems if system.name in HELM_SYSTEMS and system.can_run(workload)]
            if arguments.summarize and helm:
                summarize(Job(helm[0], workload, arguments.rows, folder).output)
            print(*notes, sep="\n", flush=True)


def install_peers(systems: list[System]) -> dict[str, str]:
    """Return the names of the systems that cannot be installed, and why."""
    unavailable = {}
    for system in systems:
        if isinstance(system, peers.Peer):
            try:
                peers.install(system.package, system.venvs)
            except peers.UnavailableError as error:
                unavailable[system.name] = str(error)
    return unavailable


def write_workload(job: Job) -> None:
    rows = workloads.make_rows(job.workload, job.rows)
    workloads.write_recorded(job.recorded_path, job.workload, rows)
    workloads.write_plain(job.plain_path, rows)
    if job.workload not in workloads.RECORDED_ONLY:
        peers.write_workload(job.peers_folder, job.workload, rows)


def measure_interleaved(results: list[Result], workload: str, folder: Path, repeat: int) -> None:
    """Run every system `repeat` times, taking turns. A peer that fails is left out; HELM must not fail."""
    for _ in range(repeat):
        for result in results:
            if result.unavailable:
                continue
            start = Job(result.system, workload, START_ROWS, folder)
            full = Job(result.system, workload, result.rows, folder)
            try:
                result.start.append(start.run())
                result.full.append(full.run())
                result.accuracy = result.system.accuracy(full.output)
                result.stats_per_row = result.system.stats_per_row(full.output)
            except RuntimeError as error:
                if result.system.name in HELM_SYSTEMS:
                    raise
                result.unavailable = f"failed: {peers.last_line(str(error))}"


def summarize(output: Path) -> None:
    """Print what `helm-summarize` costs afterwards, with HELM's summarizer and with ours."""
    for name in ("helm.benchmark.presentation.summarize.Summarizer", "helm_ext.running.StreamingSummarizer"):
        command = [
            str(Path(sys.executable).with_name("helm-summarize")),
            *("--suite", "bench", "--output-path", ".", "--auto-generate-schema", "--summarizer-class-name", name),
        ]
        cost = measure(command, output, {"PYTHONPATH": str(ROOT)}, output.with_suffix(".summarize.log"))
        print(
            f"{name.rsplit('.', 1)[1]:30}{'':9}{cost.cpu:9.1f}{cost.wall:9.1f}{cost.peak_mb:9.0f}"
            f"{cost.written_mb:12.1f}"
        )


if __name__ == "__main__":
    main()
