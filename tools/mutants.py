"""Do the tests notice when the code is wrong? mutmut changes one thing at a time and runs the tests of that function.

    make mutants                                               # all of what pyproject.toml names under [tool.mutmut]
    make mutants MUTANTS="helm_ext.scoring.likelihood_rules*"  # one module

Prints, for each module, how many of the changes the tests noticed, and each change that they did not. A change after
which the program does the same is no fault of the tests: it stands in tests/mutants.md, with the reason. Exit code 1 if
less than 92 % were noticed, or if one that was not is not listed.

mutmut works in the folder `mutants` and keeps its results there: a second run tries only functions that changed.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter, defaultdict
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
EQUIVALENT = ROOT / "tests" / "mutants.md"
MUTMUT = str(Path(sys.executable).with_name("mutmut"))
ENOUGH = 0.92
"""The share of changes that tests must notice."""
NOTICED = {"killed", "timeout", "segfault", "suspicious", "caught by type check"}
"""mutmut's words for a change that made a test fail, hang or crash."""

Change = tuple[str, str, str]
"""A function, the lines that are taken out of it, and those that are put there."""


def read_equivalent(text: str) -> set[Change]:
    """Return the changes of a page: a heading with the function's name, then list items "- `old` → `new`: reason"."""
    found = set()
    function = ""
    for line in text.splitlines():
        if heading := re.fullmatch(r"## `(.+)`", line):
            function = heading[1]
        elif item := re.fullmatch(r"- `` (.*?) `` → `` (.*?) ``: .+", line):
            found.add((function, item[1], item[2]))
    return found


def read_results(text: str) -> dict[str, str]:
    """Return what became of each mutant, by its name, from what `mutmut results --all true` prints."""
    return dict(re.findall(r"^ +(\S+__mutmut_\d+): (.+)$", text, re.MULTILINE))


def function_of(mutant: str) -> str:
    """Return the function that a mutant is of, as Python names it: `helm_ext.a.x_f__mutmut_1` is of `helm_ext.a.f`."""
    module, _, function = mutant.rpartition("__mutmut_")[0].rpartition(".")
    return f"{module}.{function.removeprefix('x_').removeprefix('xǁ').replace('ǁ', '.')}"


def to_change(mutant: str, diff: str) -> Change:
    """Return what a mutant's diff takes out and puts in, each on one line."""
    lines = [line for line in diff.splitlines() if not line.startswith(("---", "+++"))]
    out, put = (" ".join(line[1:].strip() for line in lines if line.startswith(sign)) for sign in "-+")
    return function_of(mutant), out, put


def run(*arguments: str) -> str:
    done = subprocess.run([MUTMUT, *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout


def main() -> None:
    """Run mutmut, then report."""
    patterns = sys.argv[1:] or ["*"]
    # The mutants must be imported, not the sources beside them.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    workers = str(len(os.sched_getaffinity(0)))
    done = subprocess.run([MUTMUT, "run", "--max-children", workers, *patterns], cwd=ROOT, env=environment, check=False)
    if done.returncode:
        raise SystemExit("mutmut stopped: the tests must pass before anything is changed")
    tried = {
        mutant: outcome
        for mutant, outcome in read_results(run("results", "--all", "true")).items()
        if outcome != "not checked" and any(fnmatch(mutant, pattern) for pattern in patterns)
    }
    if not tried:
        raise SystemExit("no function has such a name")
    equivalent = read_equivalent(EQUIVALENT.read_text(encoding="utf-8"))
    modules: dict[str, Counter[str]] = defaultdict(Counter)
    unnoticed = []
    for mutant, outcome in sorted(tried.items()):
        kind = "noticed"
        if outcome not in NOTICED:
            change = to_change(mutant, run("show", mutant))
            kind = "equivalent" if change in equivalent else "not noticed"
            if kind == "not noticed":
                unnoticed.append((mutant, outcome, change))
        modules[mutant.rpartition(".")[0].partition(".xǁ")[0]][kind] += 1
    for mutant, outcome, (_, out, put) in unnoticed:
        print(f"{mutant}: {outcome}\n  - {out}\n  + {put}")
    total: Counter[str] = sum(modules.values(), Counter())
    for name, counts in [*sorted(modules.items()), ("all", total)]:
        share = counts["noticed"] / counts.total()
        print(f"{name:48}{counts.total():6} mutants, {share:6.1%} noticed, {counts['equivalent']:4} equivalent")
    raise SystemExit(bool(unnoticed) or total["noticed"] / total.total() < ENOUGH)


if __name__ == "__main__":
    main()
