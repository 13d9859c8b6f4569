"""Count what `helm-ext validate --lint` finds and misses, and what it takes.

python -m benchmarks.lint                    # recall by fault and kind, false alarms in clean sets
python -m benchmarks.lint --rows 100000      # CPU seconds and memory of the command on one file of each kind
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from pathlib import Path

from benchmarks import lint_sets
from benchmarks.measuring import measure

CLEAN_ROWS = 2_000
PLANTED = 20
"""Of every fault in each kind."""


def count_kind(
    kind: str, folder: Path, *, rows: int = CLEAN_ROWS, each: int = PLANTED, seed: int = 0
) -> tuple[list[str], Counter[str], Counter[str]]:
    """Return the alarms in a clean set; and of a planted one how many rows of each fault there are, and are found."""
    clean = lint_sets.make_clean(kind, rows, seed)
    alarms = [f"{code} {numbers}" for code, numbers in _lint(clean, folder)]
    planted, faults = lint_sets.plant(kind, clean, each, seed)
    found = {(code, number) for code, numbers in _lint(planted, folder) for number in numbers}
    there = Counter(fault.kind for fault in faults)
    seen = Counter(
        fault.kind
        for fault in faults
        if any((code, number) in found for code in fault.codes for number in (fault.number, fault.origin))
    )
    return alarms, there, seen


def _lint(rows: list[lint_sets.Question], folder: Path) -> list[tuple[str, list[int]]]:
    from helm_ext import formats
    from helm_ext.analysis.lint import lint

    path = folder / "rows.jsonl"
    lint_sets.write(path, rows)
    problems = lint(formats.load(path), str(path))
    return [(str(problem.code), [(problem.location.line or 0) - 2]) for problem in problems]


def print_counts(seed: int, rows: int = CLEAN_ROWS) -> None:
    """Print recall by fault and kind, and the false alarms."""
    there, seen = Counter[str](), Counter[str]()
    print(f"{'kind':18}{'clean rows':>11}{'false alarms':>14}{'a 1,000':>9}{'planted':>9}{'found':>7}{'recall':>8}")
    with tempfile.TemporaryDirectory() as folder:
        for kind in lint_sets.KINDS:
            alarms, planted, found = count_kind(kind, Path(folder), rows=rows, seed=seed)
            there += planted
            seen += found
            total, hits = planted.total(), found.total()
            alarmed = f"{len(alarms):>14}{1000 * len(alarms) / rows:>9.2f}"
            print(f"{kind:18}{rows:>11,}{alarmed}{total:>9}{hits:>7}{hits / total:>8.1%}")
    print(f"\n{'fault':28}{'planted':>9}{'found':>7}{'recall':>8}")
    for fault in lint_sets.FAULTS:
        print(f"{fault:28}{there[fault]:>9}{seen[fault]:>7}{seen[fault] / there[fault]:>8.1%}")
    print(f"{'all':28}{there.total():>9}{seen.total():>7}{seen.total() / there.total():>8.1%}")


def print_costs(rows: int) -> None:
    """Print what the whole command takes, and the same without lint, on a clean file of each kind."""
    print(f"{'kind':18}{'MB':>6}{'check s':>9}{'with lint s':>13}{'lint s':>8}{'peak MB':>9}")
    for kind in lint_sets.KINDS:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            lint_sets.write(folder / "rows.jsonl", lint_sets.make_clean(kind, rows))
            command = [sys.executable, "-c", "from helm_ext.cli import main; main()", "validate", "rows.jsonl"]
            plain = measure([*command, "--no-lint"], folder, {}, folder / "log")
            lint = measure([*command, "--lint"], folder, {}, folder / "log")
            size = (folder / "rows.jsonl").stat().st_size / 1e6
            seconds = f"{plain.cpu:>9.1f}{lint.cpu:>13.1f}{lint.cpu - plain.cpu:>8.1f}"
            print(f"{kind:18}{size:>6.0f}{seconds}{lint.peak_mb:>9.0f}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, help="measure the command on so many rows instead")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if options.rows:
        print_costs(options.rows)
    else:
        print_counts(options.seed)
