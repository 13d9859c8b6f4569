"""What a run's page of helm-server costs a browser.

    python -m benchmarks.server --rows 1000 10000 100000

Makes a recorded run of W1, summarizes it, and opens its page in headless Chromium (Debian's `chromium`): wall seconds
until its scripts have run, the largest sum of resident memory of Chromium's processes, megabytes that the page loads.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from time import perf_counter

from tests import browser

from benchmarks import stock, workloads
from benchmarks.measuring import ROOT, measure
from benchmarks.systems import HELM_SYSTEMS, Job

LOADED = ("instances.json", "display_predictions.json", "display_requests.json")


def make_run(job: Job) -> Path:
    """Evaluate and summarize; return the run's folder."""
    workloads.write_recorded(job.recorded_path, job.workload, workloads.make_rows(job.workload, job.rows))
    job.run()
    command = [
        str(Path(sys.executable).with_name("helm-summarize")),
        *("--suite", "bench", "--auto-generate-schema", "--num-threads", "1"),
        *("--summarizer-class-name", "helm_ext.running.StreamingSummarizer"),
        *("--output-path", "benchmark_output"),
    ]
    (job.output / "benchmark_output").mkdir()
    (job.output / "runs").rename(job.output / "benchmark_output" / "runs")
    environment = {"PYTHONPATH": str(ROOT)}
    measure(command, job.output, environment, job.output.with_suffix(".summarize.log"))
    [run] = (job.output / "benchmark_output/runs/bench").glob("adapter_spec*")
    return run


class MemoryWatch(threading.Thread):
    """Looks again and again at the memory of the processes that have `word` in their command line."""

    def __init__(self, word: str) -> None:
        super().__init__(daemon=True)
        self.word = word.encode()
        self.peak_mb = 0.0
        self.done = threading.Event()

    def run(self) -> None:
        while not self.done.wait(0.1):
            self.peak_mb = max(self.peak_mb, sum(map(self._resident_mb, Path("/proc").glob("[0-9]*"))))

    def _resident_mb(self, process: Path) -> float:
        try:
            if self.word not in (process / "cmdline").read_bytes():
                return 0
            return int((process / "statm").read_text().split()[1]) * 4096 / 1e6
        except OSError:  # it has just ended
            return 0


def open_page(address: str, profile: Path, expected: str) -> str:
    """Return a line of the table: seconds, memory, and whether the page shows `expected`."""
    watch = MemoryWatch(str(profile))
    watch.start()
    started = perf_counter()
    try:
        shown = "yes" if expected in browser.page_text(address, profile) else "no"
    except subprocess.TimeoutExpired:
        shown = "not in 3 min"
    except subprocess.CalledProcessError as error:
        shown = f"crashed ({error.returncode})"
    seconds = perf_counter() - started
    watch.done.set()
    watch.join()
    return f"{seconds:9.1f}{watch.peak_mb:9.0f}  {shown}"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.server", description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[1000, 10000])
    arguments = parser.parse_args()
    print(f"{'rows':>9}{'loads MB':>10}{'wall s':>9}{'peak MB':>9}  shows predictions")
    for rows in arguments.rows:
        with tempfile.TemporaryDirectory(prefix="helm-ext-benchmark-") as name:
            folder = Path(name)
            stock.write_prod_env(folder / "prod_env")
            job = Job(HELM_SYSTEMS["recorded, our runner"], "W1", rows, folder)
            run = make_run(job)
            loaded = sum((run / file).stat().st_size for file in LOADED) / 1e6
            with browser.helm_server(job.output, "bench") as address:
                page = open_page(f"{address}/#/runs/{run.name}", folder / "profile", "[#")
            print(f"{rows:9,}{loaded:10.1f}{page}", flush=True)


if __name__ == "__main__":
    main()
