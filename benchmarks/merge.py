"""What `helm-ext merge` takes: CPU and memory, beside the runs of the shards that it joins.

    python -m benchmarks.merge                               # 10 shards of 20,000 rows of W1
    python -m benchmarks.merge --shards 4 --rows 10000

CPU is user+sys of one process, the start included; "more a row" is what a row costs beyond a merge of two shards of 10
rows, in microseconds. The stats are compared with those of one run of all rows.
"""

from __future__ import annotations

import argparse
import filecmp
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks import fold
from benchmarks.measuring import ROOT


def run_shards(folder: Path, whole: Path, shards: int, rows: int) -> tuple[list[Path], float]:
    """Cut a file into shards and run each; return the folders of the runs, and CPU seconds of all."""
    header, *lines = whole.read_bytes().splitlines(keepends=True)
    made, cpu = [], 0.0
    for number in range(shards):
        shard = folder / f"{rows}-shard-{number}.jsonl"
        shard.write_bytes(header + b"".join(lines[number * rows : (number + 1) * rows]))
        cost, run = fold.run(shard, 1)
        made.append(run)
        cpu += cost.user + cost.sys
    return made, cpu


def merge(runs: list[Path], output: Path) -> tuple[float, float, Path]:
    """Merge; return CPU seconds, the peak in MB, and the folder of the run."""
    shutil.rmtree(output, ignore_errors=True)
    command = [
        str(Path(sys.executable).with_name("helm-ext")), "merge", *map(str, runs), "--into", "s", "-o", str(output)
    ]  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}/src:{ROOT}"}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    peak = 0.0  # polled: what the kernel says at the end has this process in it, which holds the file
    while True:
        peak = max(peak, fold.peak_of(process.pid))
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            break
        time.sleep(0.2)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}")
    (made,) = output.glob("runs/s/*/stats.json")
    return usage.ru_utime + usage.ru_stime, peak, made.parent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shards", type=int, default=10)
    parser.add_argument("--rows", type=int, default=20_000, help="Of each shard.")
    parser.add_argument("--folder", type=Path, help="Where files of some GB are written. Default: a temporary folder.")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        few = folder / "few.jsonl"
        fold.write(few, 20)
        start, *_ = merge(run_shards(folder, few, 2, 10)[0], folder / "few")
        total = options.shards * options.rows
        whole = folder / "whole.jsonl"
        fold.write(whole, total)
        runs, cpu_runs = run_shards(folder, whole, options.shards, options.rows)
        cost, expected = fold.run(whole, 1)
        print(f"(the start of a merge: {start:.1f} s)")
        print("| what | CPU s | more a row, µs | peak MB | same stats |")
        print("|---|---|---|---|---|")
        print(f"| helm-run, {options.shards} shards of {options.rows:,} rows | {cpu_runs:.1f} | | | |")
        print(f"| helm-run, one file of {total:,} rows | {cost.user + cost.sys:.1f} | | {cost.driver_mb:.0f} | |")
        cpu, peak, made = merge(runs, folder / "merged")
        same = filecmp.cmp(expected / "stats.json", made / "stats.json", shallow=False)
        more = (cpu - start) / total * 1e6
        print(f"| helm-ext merge | {cpu:.1f} | {more:.0f} | {peak:.0f} | {'yes' if same else 'NO'} |")


if __name__ == "__main__":
    main()
