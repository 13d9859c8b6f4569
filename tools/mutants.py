"""Do the tests notice when the code is wrong? mutmut changes one thing at a time and runs the tests of that module.

    make mutants                                                # every module below, one after the other (hours)
    make mutants MUTANTS="scoring/scores/likelihoods"           # some of them, by the path under src/helm_ext
    make mutants MUTANTS="--sample 80 scoring/* files/archive"    # so many changes of each module, drawn at random
    make mutants MUTANTS="--sample 80 --seed 1 files/archive"     # others

Prints, for each module, how many of the changes the tests noticed, and each change that they did not. A change after
which the program does the same is no fault of the tests: it stands in tests/mutants.md, with the reason. Exit code 1 if
less than 92 % of those that do make a difference were noticed, or if one that was not is not listed.

mutmut works in the folder `mutants`, which is made afresh for each room: only the modules that are tried are changed,
and only the tests named here run for each, so that a change costs a second and not the whole suite. Every room has a
process of its own, since its tests import it; the tests of a change import helm_ext anew, so that what runs on import
is changed too, and nothing stands in a cache. mutmut changes no decorated function (an lru_cache, say), only what it
calls.

Which test runs which function is found once for each set of tests: eight modules have those of parsing. A test that
fails without a change ends that, so mutmut's own look at it is left out.

A change that makes an endless loop is noticed by the processor time that the tests then take, so a busy machine is not
taken for one; how many changes were noticed so is printed.
"""

from __future__ import annotations

import argparse
import importlib
import itertools
import os
import random
import re
import shutil
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
EQUIVALENT = ROOT / "tests" / "mutants.md"
ENOUGH = 0.92
"""The share of changes that tests must notice."""
HANGING = {-24, -9, 24, 36, 152}
"""Exit codes of changes that were noticed because their tests took too long. mutmut calls 255 a timeout too: there the
tests could not be imported."""
PATIENCE = 10
"""How much longer by the clock than by the processor the tests of a change may take, before they count as hanging."""
NOTICED = {"killed", "timeout", "segfault", "suspicious", "caught by type check"}
"""mutmut's words for a change that made a test fail, hang or crash."""

PARSING = ["unit/parsing/test_*.py", "property/test_parsing_*.py"]
STATES = ["unit/formats/request_states/test_*.py", "property/test_request_states_properties.py"]
TESTS = {
    "adaptation/rows": ["unit/adaptation/test_*.py"],
    "errors": ["unit/errors/test_errors.py"],
    "formats/request_states/instances": STATES,
    "formats/request_states/labels": STATES,
    "formats/request_states/plan": STATES,
    "formats/request_states/profile": STATES,
    "formats/ultraeval/config": ["unit/formats/ultraeval/test_sampling.py", "unit/formats/ultraeval/test_ultraeval.py"],
    "files/archive": [
        "unit/formats/innodata/hub/test_bundle_parts.py",
        "unit/formats/innodata/hub/test_innodata_bundle.py",
        "unit/formats/inspect_logs/test_archive.py",
    ],
    "formats/innodata/hub/bundle": [
        "unit/formats/innodata/hub/test_bundle_parts.py",
        "unit/formats/innodata/hub/test_hub.py",
        "unit/formats/innodata/hub/test_innodata_bundle.py",
        "unit/formats/innodata/test_innodata_recorded.py",
        "unit/formats/innodata/test_innodata_unread.py",
    ],
    "formats/innodata/hub/packing": [
        "unit/formats/innodata/hub/test_bundle_parts.py",
        "unit/formats/innodata/hub/test_innodata_bundle.py",
    ],
    "formats/innodata/hub/records": [
        "unit/formats/innodata/hub/test_bundle_parts.py",
        "unit/formats/innodata/hub/test_innodata_records.py",
        "unit/formats/innodata/hub/test_innodata_bundle.py",
    ],
    "formats/innodata/hub/storage": [
        "unit/formats/innodata/hub/test_operations.py",
        "unit/formats/innodata/hub/test_hub*.py",
    ],
    "formats/innodata/hub/versioning": [
        "unit/formats/innodata/hub/test_entries.py",
        "unit/formats/innodata/hub/test_operations.py",
        "unit/formats/innodata/hub/test_hub.py",
    ],
    "parsing/claims": PARSING,
    "parsing/labels": PARSING,
    "parsing/marks": PARSING,
    "parsing/options": PARSING,
    "parsing/reader": PARSING,
    "parsing/segments": [*PARSING, "unit/scoring/test_lists.py"],
    "parsing/sentences": PARSING,
    "parsing/words": PARSING,
    "parsing/texts": [*PARSING, "unit/scoring/test_stops.py"],
    "scoring/answers": [
        "unit/scoring/test_answers.py",
        "unit/scoring/test_metrics.py",
        "unit/scoring/test_thinking.py",
    ],
    "scoring/breakdown": [
        "unit/scoring/test_breakdown.py",
        "unit/scoring/test_metrics.py",
        "unit/formats/imported/test_pipeline.py",
    ],
    "scoring/completeness": [
        "unit/scoring/test_completeness.py",
        "unit/scoring/test_metrics.py",
        "unit/running/test_caps.py",
    ],
    "scoring/folding": [
        "unit/scoring/test_basic_metrics.py",
        "unit/scoring/test_likelihood.py",
        "unit/scoring/test_metrics.py",
        "unit/scoring/test_source_scores.py",
    ],
    "scoring/likelihood": ["unit/scoring/test_likelihood.py"],
    "scoring/metrics": [
        "unit/scoring/test_metrics.py",
        "unit/scoring/test_answers.py",
        "unit/scoring/test_breakdown.py",
        "unit/scoring/test_source_scores.py",
    ],
    "scoring/normal_form": [
        "unit/scoring/test_normal_form.py",
        "unit/scoring/test_chat_scores.py",
        "property/test_normal_form_properties.py",
    ],
    "scoring/reducers": ["unit/scoring/test_reducers.py", "unit/scoring/statistics/test_intervals.py"],
    "scoring/registry": [
        "unit/scoring/test_score_registry.py",
        "unit/scoring/test_breakdown.py",
        "unit/scoring/test_kola.py",
    ],
    "scoring/score": [
        "unit/cli/test_judge_unclear.py",
        "unit/judging/test_judged_runs.py",
        "unit/scoring/test_score_registry.py",
    ],
    "scoring/scores/helm": ["unit/scoring/test_score_registry.py", "unit/scoring/test_basic_metrics.py"],
    "scoring/scores/kola": ["unit/scoring/test_kola.py"],
    "scoring/scores/likelihoods": [
        "unit/scoring/test_likelihood.py",
        "unit/scoring/test_completeness.py",
        "unit/scoring/test_metrics.py",
    ],
    "scoring/scores/lists": ["unit/scoring/test_lists.py", "unit/scoring/test_score_registry.py"],
    "scoring/scores/refusal": ["unit/scoring/test_refusals.py"],
    "scoring/scores/texts": [
        "unit/scoring/test_normal_form.py",
        "unit/scoring/test_chat_scores.py",
    ],
    "scoring/scores/ultraeval": ["unit/scoring/test_ultraeval_scores.py"],
    "scoring/source_scores": ["unit/scoring/test_source_scores.py"],
    "scoring/judgements": [
        "unit/judging/test_judged_runs.py",
        "unit/judging/test_corrected_runs.py",
        "unit/cli/test_judge_unclear.py",
    ],
    "scoring/corrected_scores": ["unit/scoring/test_corrected_scores.py"],
    "scoring/bounded": ["unit/scoring/test_pattern_limit.py"],
}
"""The modules that decide scores, samples and stored data, by their path under src/helm_ext, and their tests."""

PRELOAD = [
    "_hypothesis_pytestplugin",
    "hypothesis",
    "pytest",
    "pytest_timeout",
    "orjson",
    "msgspec",
    "helm.benchmark.runner",
    "helm.benchmark.metrics.basic_metrics",
]
"""What tests import besides helm_ext: it is imported once for all of them, since it takes seconds."""

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


def function_of(mutant: str) -> str:
    """Return the function that a mutant is of, as Python names it: `helm_ext.a.x_f__mutmut_1` is of `helm_ext.a.f`."""
    module, _, function = mutant.rpartition("__mutmut_")[0].rpartition(".")
    return f"{module}.{function.removeprefix('x_').removeprefix('xǁ').replace('ǁ', '.')}"


def to_change(mutant: str, diff: str) -> Change:
    """Return what a mutant's diff takes out and puts in, each on one line."""
    lines = [line for line in diff.splitlines() if not line.startswith(("---", "+++"))]
    out, put = (" ".join(line[1:].strip() for line in lines if line.startswith(sign)) for sign in "-+")
    return function_of(mutant), out, put


def choose_modules(patterns: list[str]) -> list[str]:
    """Return the modules of `TESTS` with a name that one of the patterns fits; each pattern must fit one."""
    for pattern in patterns:
        if not any(fnmatch(module, pattern) for module in TESTS):
            raise SystemExit(f"no module of TESTS in tools/mutants.py has the name {pattern!r}")
    return [module for module in TESTS if any(fnmatch(module, pattern) for pattern in patterns)]


def room_of(module: str) -> str:
    return module.partition("/")[0]


def find_tests(module: str) -> list[str]:
    """Return the test files of a module, as paths from the repository's root; a pattern must fit a file."""
    found = []
    for pattern in TESTS[module]:
        paths = sorted((ROOT / "tests").glob(pattern))
        if not paths:
            raise SystemExit(f"{module}: no test has the name tests/{pattern}")
        found += [str(path.relative_to(ROOT)) for path in paths]
    return found


def choose_tests(module: str, hits: dict[str, set[str]], tests: list[str]) -> dict[str, set[str]]:
    """Return which of a module's tests run each of its functions.

    A function that the first test ran gets all of them: mutmut counts what ran on import as run by that one.
    """
    name = f"helm_ext.{module.replace('/', '.')}"
    return {
        function: set(tests) if tests[0] in own else own
        for function, own in hits.items()
        if function.rpartition(".")[0] == name
    }


def try_modules(modules: list[str], sample: int | None, seed: int) -> bool:
    """Try the changes of some modules, or a sample of each, and print what came of it; return whether that is enough.

    Runs mutmut in this process, which must not have imported helm_ext: the changed modules are to be imported.
    """
    import mutmut.__main__ as tool
    from mutmut.configuration import config
    from mutmut.mutation import trampoline
    from mutmut.state import state
    from mutmut.workers import isolation, timeout

    for name in PRELOAD:
        importlib.import_module(name)
    sources = {module: Path("src", "helm_ext", f"{module}.py") for module in modules}
    config().only_mutate = list(map(str, sources.values()))
    config().pytest_add_cli_args_test_selection = sorted({path for module in modules for path in find_tests(module)})
    shutil.rmtree("mutants", ignore_errors=True)
    workers = len(os.sched_getaffinity(0))
    Path("mutants").mkdir()
    with tool.CatchOutput(spinner_title="Naming mutants"):
        tool.create_mutants(workers)
    drawn: dict[str, list[str]] = {}
    numbers: dict[str, int] = {}
    named = tool.collect_source_file_mutation_data(mutant_names=())[0]
    for module, source in sources.items():
        every = [name for data, name, _ in named if Path(data.path) == source]
        few = sample is not None and sample < len(every)
        drawn[module] = random.Random(seed).sample(every, sample) if few and sample is not None else every
        numbers[module] = len(every)

    def collect_by_tests(runner: object, **_: object) -> None:
        """Find what the tests of each module run. Tests that several modules have in common run once."""
        found: dict[str, set[str]] = {}
        durations: dict[str, float] = {}
        by_tests: dict[tuple[str, ...], list[str]] = {}
        for module in modules:
            by_tests.setdefault(tuple(find_tests(module)), []).append(module)
        for paths, theirs in by_tests.items():
            state().tests_by_mangled_function_name.clear()
            state().duration_by_test.clear()
            tool.run_stats_collection(runner, tests=paths)
            durations |= state().duration_by_test
            for module in theirs:
                hits, tests = state().tests_by_mangled_function_name, list(state().duration_by_test)
                found |= choose_tests(module, hits, tests)
        state().tests_by_mangled_function_name.update(found)
        state().duration_by_test.update(durations)

    def make_runner(workers: int) -> object:
        runner = isolation.get_mutant_runner(workers)
        runner.run_clean_tests = lambda **_: 0  # they have just run
        return runner

    def get_mutant_under_test() -> str:
        """Return what mutmut's own function looks up in the environment, at each call of each function."""
        named = trampoline._mutant_under_test  # noqa: SLF001
        return os.environ.get("MUTANT_UNDER_TEST", "") if named is None else named

    trampoline.get_mutant_under_test = get_mutant_under_test
    tool.collect_or_load_stats = collect_by_tests
    tool.get_mutant_runner = make_runner
    isolation.register_timeout = lambda pid, timeout_s: timeout.register_timeout(pid, timeout_s * PATIENCE)
    tool.run.callback([name for names in drawn.values() for name in names], max_children=workers)
    print()
    return sum([report(module, drawn[module], numbers[module]) for module in modules]) == len(modules)


def report(module: str, drawn: list[str], number: int) -> bool:
    """Print what came of the changes of a module that were tried, of so many; return whether that is enough."""
    import mutmut.__main__ as tool
    from mutmut.mutation.diff_apply import get_diff_for_mutant
    from mutmut.stats import status_by_exit_code

    equivalent = read_equivalent(EQUIVALENT.read_text(encoding="utf-8"))
    noticed, hanging, same, missed = 0, 0, 0, 0
    for data, mutant, code in tool.collect_source_file_mutation_data(mutant_names=drawn)[0]:
        outcome = status_by_exit_code[code]
        if outcome in NOTICED:
            noticed += 1
            hanging += code in HANGING
            continue
        change = to_change(mutant, get_diff_for_mutant(mutant, path=data.path))
        if change in equivalent:
            same += 1
            continue
        missed += 1
        print(f"{mutant}: {outcome}\n  - {change[1]}\n  + {change[2]}")
    share = noticed / max(noticed + missed, 1)
    print(
        f"{module}: {len(drawn)} of {number} mutants tried, {noticed} noticed ({hanging} by their time),",
        f"{same} equivalent, {missed} not noticed; {share:.1%} of those that differ",
        flush=True,
    )
    return not missed and share >= ENOUGH


def main() -> None:
    """Try the modules of each room in a process of its own; exit code 1 if one of them was not enough."""
    arguments = argparse.ArgumentParser(description="Do the tests notice when the code is wrong?")
    arguments.add_argument("modules", nargs="*", default=["*"], help='of src/helm_ext: "scoring/reducers", "*/hub/*"')
    arguments.add_argument("--sample", type=int, help="how many changes of each module to try, drawn at random")
    arguments.add_argument("--seed", type=int, default=0, help="of that draw")
    arguments.add_argument("--here", action="store_true", help="try the modules named in this process")
    given = arguments.parse_args()
    os.chdir(ROOT)
    if given.here:
        raise SystemExit(not try_modules(given.modules, given.sample, given.seed))
    # The mutants must be imported, not the sources beside them.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    # Looking for plugins takes longer than most tests; pyproject.toml names those that are needed.
    environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    options = [] if given.sample is None else ["--sample", str(given.sample), "--seed", str(given.seed)]
    good = True
    chosen = sorted(choose_modules(given.modules), key=room_of)
    for _, modules in itertools.groupby(chosen, key=room_of):
        command = [sys.executable, __file__, "--here", *options, *modules]
        good &= subprocess.run(command, env=environment, check=False).returncode == 0
    raise SystemExit(not good)


if __name__ == "__main__":
    main()
