"""What log-probabilities of options cost: HELM's client, lm-evaluation-harness' `hf` and the client of helm-ext.

python -m benchmarks.likelihoods                         # tiny and 124M, HELM's client and ours
python -m benchmarks.likelihoods --lm-eval .bench/lm     # and lm-eval, in this environment, made if it is missing

CPU seconds are user+sys of one process with one thread of torch, for 1,000 requests, without what it takes to load the
model. The same strings for all, on random weights. "differs" is the largest relative difference of an
option's sum from HELM's, "flips" are rows in which another option is the likeliest. Ways are interleaved, and the
cheapest of `--repeat` runs counts.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.likelihood_run import LARGEST, OPTIONS
from benchmarks.measuring import ROOT, measure

ROWS = {"tiny": 600, "124M": 12}
LM_EVAL = "lm-eval[hf]==0.4.13"
ENVIRONMENT = {
    "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1",
    "CUDA_VISIBLE_DEVICES": "",
    "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]),
}  # fmt: skip


HEADER = f"{'':34}{'CPU s/1,000':>12}{'HELM /':>8}{'peak MB':>9}{'differs':>10}{'flips':>7}"


@dataclass
class Way:
    """One way to ask, and its runs of START_ROWS and of all rows."""

    name: str
    command: list[str]
    output: str
    more: tuple[str, ...] = ()
    cpu: list[float] = field(default_factory=list)
    """Seconds of all rows but the first."""
    peak_mb: list[float] = field(default_factory=list)
    sums: list[list[float]] = field(default_factory=list)

    def run(self, folder: Path, rows: int) -> None:
        cost = measure([*self.command, str(folder), str(rows), *self.more], folder, ENVIRONMENT, folder / "log.txt")
        found = json.loads((folder / self.output).read_text())
        self.cpu.append(found["cpu"])
        self.peak_mb.append(cost.peak_mb)
        self.sums = found["sums"]

    def per_thousand(self, rows: int) -> float:
        """Return CPU seconds for 1,000 requests."""
        return min(self.cpu) / ((rows - 1) * OPTIONS) * 1000


def make_ways(python: Path | None) -> list[Way]:
    """Return the ways; `python`: that of an environment with lm-eval."""
    run = [sys.executable, "-m", "benchmarks.likelihood_run"]
    ways = [
        Way("HELM's HuggingFaceClient", [*run, "helm"], "helm.json"),
        Way("SharedPrefixHuggingFaceClient", [*run, "all"], "all.json"),
    ]
    if python:
        script = str(ROOT / "benchmarks/peer_runs/lm_eval_likelihoods.py")
        ways += [
            Way(f"lm-eval hf, batch {size}", [str(python), script], f"lm_eval_{size}.json", (str(size),))
            for size in (1, 16)
        ]
    return ways


def compare(found: list[list[float]], helm: list[list[float]]) -> tuple[float, int]:
    """Return the largest relative difference of a sum, and the number of rows with another likeliest option."""
    pairs = [(one, other) for row, by in zip(found, helm, strict=True) for one, other in zip(row, by, strict=True)]
    flips = sum(row.index(max(row)) != by.index(max(by)) for row, by in zip(found, helm, strict=True))
    return max(abs(one - other) / abs(other) for one, other in pairs), flips


def run(size: str, rows: int, repeat: int, python: Path | None) -> list[str]:
    """Return the lines of a table."""
    with tempfile.TemporaryDirectory(prefix="helm-ext-likelihoods-") as name:
        folder = Path(name)
        make = [sys.executable, "-m", "benchmarks.likelihood_run", "make", size, name]
        measure(make, folder, ENVIRONMENT, folder / "log.txt")
        ways = make_ways(python)
        for _ in range(repeat):
            for way in ways:
                way.run(folder, rows)
    lines = [f"{size}, {rows * OPTIONS} requests", HEADER]
    helm = ways[0]
    for way in ways:
        differs, flips = compare(way.sums, helm.sums)
        cost = way.per_thousand(rows)
        lines.append(
            f"{way.name:34}{cost:12.2f}{helm.per_thousand(rows) / cost:8.2f}{max(way.peak_mb):9.0f}"
            f"{differs:10.1e}{flips:7}"
        )
    return lines


def install_lm_eval(folder: Path) -> Path:
    """Return the interpreter of an environment with lm-eval, which is made if it is missing."""
    python = folder.absolute() / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", LM_EVAL], check=True)
    return python


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.likelihoods", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--sizes", nargs="+", choices=list(ROWS), default=list(ROWS))
    parser.add_argument("--rows", type=int, help=f"of each size, at most {LARGEST}")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--lm-eval", type=Path, metavar="FOLDER", help="a virtual environment")
    arguments = parser.parse_args()
    python = install_lm_eval(arguments.lm_eval) if arguments.lm_eval else None
    for size in arguments.sizes:
        print(*run(size, arguments.rows or ROWS[size], arguments.repeat, python), "", sep="\n", flush=True)


if __name__ == "__main__":
    main()
