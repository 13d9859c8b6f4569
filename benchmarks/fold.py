"""What recorded runs of many rows take, in one process and with workers: CPU, memory, time.

    python -m benchmarks.fold                                   # 10,000 and 100,000 rows of W1, 1 and 2 processes
    python -m benchmarks.fold --rows 1000000 --workers 1 2

CPU is that of helm-run and its workers, the start included, user and sys apart: sys is mostly the kernel's writing.
"More a row" is what a row costs beyond a run of 10, in microseconds, all of it and user alone. "helm-run CPU" is that
of the one process that joins the parts, to the last fifth of a second. Memory: the largest moment of helm-run, and of
the largest of its workers. The bytes of HELM's files are compared with those of one process.
"""

from __future__ import annotations

import argparse
import contextlib
import filecmp
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from benchmarks import workloads
from benchmarks.measuring import ROOT

FILES = ("run_spec.json", "scenario_state.json", "stats.json", "per_instance_stats.json")
FEW = 10
CHUNK = 100_000
"""Rows that are made at a time: the generator holds them all."""


def write(path: Path, count: int) -> None:
    """Write a recorded file of W1; rows beyond the first CHUNK are these again, under other ids."""
    rows = workloads.make_rows("W1", min(count, CHUNK))
    workloads.write_recorded(path, "W1", rows)
    lines = path.read_bytes().splitlines(keepends=True)[1:]
    with path.open("ab") as file:
        for turn in range(1, -(-count // CHUNK)):
            for line in lines[: count - turn * CHUNK]:
                file.write(line.replace(b'"id": "id', b'"id": "id%d-' % turn, 1))


def peak_of(pid: int) -> float:
    """Return the largest memory of a process up to now, in MB; 0 if it is gone."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM")), 0.0)


def cpu_of(pid: int) -> float:
    """Return the CPU seconds of a process alone, up to now; 0 if it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def children_of(pid: int) -> list[int]:
    """Return the processes that any thread of a process has started."""
    found = []
    for thread in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):  # the thread, or the process, has ended
            found += [int(child) for child in thread.read_text().split()]
    return found


class Cost(NamedTuple):
    """What a run took: seconds of CPU and of the clock, MB."""

    user: float
    sys: float
    driver: float
    wall: float
    driver_mb: float
    worker_mb: float


def run(data: Path, workers: int) -> tuple[Cost, Path]:
    """Run; return what it took, and the folder of the run."""
    folder = data.parent / f"{data.stem}-{workers}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    command = [
        str(Path(sys.executable).with_name("helm-run")), "--suite", "s", "--max-eval-instances", "100000000",
        "--run-entries", f"adapter_spec:path={data},model=recorded/bench", "--disable-cache",
        "--runner-class-name", "helm_ext.running.StreamingRunner",
    ]  # fmt: skip
    environment = {**os.environ, "HELM_EXT_WORKERS": str(workers), "PYTHONPATH": f"{ROOT}/src:{ROOT}"}
    started = time.perf_counter()
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log)
        peaks, driver = [0.0, 0.0], 0.0
        while True:
            peaks = [max(peaks[0], peak_of(process.pid)), max(peaks[1], *map(peak_of, children_of(process.pid)), 0.0)]
            driver = max(driver, cpu_of(process.pid))
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                break
            time.sleep(0.2)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError((folder / "log").read_text()[-2000:])
    (made,) = folder.glob("benchmark_output/runs/s/adapter_spec*")
    return Cost(usage.ru_utime, usage.ru_stime, driver, time.perf_counter() - started, *peaks), made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--folder", type=Path, help="Where files of some GB are written. Default: a temporary folder.")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        few = Path(folder) / f"{FEW}.jsonl"
        write(few, FEW)
        start = run(few, 1)[0]
        print(
            "| rows | processes | CPU s, user + sys | more a row, µs | user alone | helm-run CPU s | wall s "
            "| helm-run MB | worker MB | same bytes |"
        )
        print("|---" * 10 + "|")
        for count in options.rows:
            data = Path(folder) / f"{count}.jsonl"
            write(data, count)
            first: Path | None = None
            for workers in options.workers:
                cost, made = run(data, workers)
                same = "" if first is None else "yes" if is_same(first, made) else "NO"
                first = first or made
                more = (cost.user - start.user) / count * 1e6
                print(
                    f"| {count:,} | {workers} | {cost.user:.1f} + {cost.sys:.1f} "
                    f"| {more + (cost.sys - start.sys) / count * 1e6:.0f} | {more:.0f} | {cost.driver:.1f} "
                    f"| {cost.wall:.0f} | {cost.driver_mb:.0f} | {f'{cost.worker_mb:.0f}' if cost.worker_mb else ''} "
                    f"| {same} |",
                    flush=True,
                )
            for made in [*Path(folder).glob(f"{count}*")]:
                shutil.rmtree(made) if made.is_dir() else made.unlink()


def is_same(one: Path, other: Path) -> bool:
    return all(filecmp.cmp(one / name, other / name, shallow=False) for name in FILES)


if __name__ == "__main__":
    main()
