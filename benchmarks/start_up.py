"""What a start costs: helm-ext's commands in units of HELM's own import, and helm-run with our plugin and our runner.

    python -m benchmarks.start_up --repeat 20

CPU seconds of processes that take turns, the least of each, compiled modules and files in the cache.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

from benchmarks import stock, workloads
from benchmarks.measuring import measure
from benchmarks.systems import OUR_RUNNER, STOCK, Job

SCORED_ROWS = 120
UNIT = "python -c 'import helm.benchmark.run'"
_COMPILED = {"PYTHONDONTWRITEBYTECODE": ""}
"""Where it is set, modules of this folder would be compiled at each start, and installed ones not."""
_IMPORT = """
import time
from helm.benchmark import run
started = time.process_time()
import helm_ext.plugin
print((time.process_time() - started) * 1000)
"""


def hide_plugin(folder: Path) -> Path:
    """Return a folder that, early on the path, keeps HELM from finding helm-ext, which stays installed.

    HELM loads the entry points of the group `helm`, and of two distributions of one name only the first on the path
    counts: this one has no entry points.
    """
    metadata = folder / "helm_ext-0.dist-info" / "METADATA"
    metadata.parent.mkdir(parents=True)
    metadata.write_text("Metadata-Version: 2.1\nName: helm-ext\nVersion: 0\n")
    return folder


def print_start_up(folder: Path, rows: int, repeat: int) -> None:
    """Print what starts cost."""
    _print_commands(folder, repeat)
    _print_helm_run(folder, rows, repeat)


def _print_commands(folder: Path, repeat: int) -> None:
    """Print the CPU of helm-ext's commands for a file of SCORED_ROWS recorded answers, in units of HELM's import."""
    write_answers(folder / "texts.json", log_probabilities=False)
    write_answers(folder / "logprobs.json", log_probabilities=True)
    program = str(Path(sys.executable).with_name("helm-ext"))
    commands = {
        UNIT: [sys.executable, "-c", "import helm.benchmark.run"],
        "helm-ext score": [program, "score", "texts.json", "--model", "m"],
        "helm-ext score, log-probabilities": [program, "score", "logprobs.json", "--model", "m"],
        "helm-ext validate": [program, "validate", "texts.json"],
        "helm-ext preview": [program, "preview", "texts.json"],
        "helm-ext --help": [program, "--help"],
    }
    cpu: dict[str, list[float]] = defaultdict(list)
    for turn in range(repeat + 1):
        for name, command in commands.items():
            cost = measure(command, folder, _COMPILED, folder / "start.log")
            if turn:  # the first fills the caches
                cpu[name].append(cost.cpu)
    for name, seconds in cpu.items():
        print(f"{name:40}{min(seconds):6.2f} CPU s{min(seconds) / min(cpu[UNIT]):7.2f} (least of {repeat})")


def write_answers(path: Path, *, log_probabilities: bool) -> None:
    """Write SCORED_ROWS questions with recorded answers, every other of which is right."""
    states = []
    for number in range(SCORED_ROWS):
        completion: dict[str, object] = {"text": str(number + number % 2)}
        if log_probabilities:
            logprob = -(number + 1) / 50
            completion |= {"logprob": logprob, "tokens": [{"text": completion["text"], "logprob": logprob}]}
        gold = {"output": {"text": str(number + 1)}, "tags": ["correct"]}
        instance = {"input": {"text": f"{number} + 1?"}, "references": [gold]}
        states.append({"instance": instance, "request": {"result": {"success": True, "completions": [completion]}}})
    spec = {"method": "generation", "max_train_instances": 0}
    path.write_text(json.dumps({"adapter_spec": spec, "request_states": states}))


def _print_helm_run(folder: Path, rows: int, repeat: int) -> None:
    """Print what the plugin's import costs, and CPU seconds of a stock HELM run, with HELM's runner and with ours."""
    command = [sys.executable, "-c", _IMPORT]
    times = [float(subprocess.run(command, check=True, capture_output=True, text=True).stdout) for _ in range(repeat)]
    print(f"import helm_ext.plugin adds {min(times):.1f} ms to what helm-run has loaded (least of {repeat})")
    (folder / "nothing hidden").mkdir()
    hidden, found = hide_plugin(folder / "hidden"), folder / "nothing hidden"
    own = "HELM alone"
    systems = {
        own: (STOCK, hidden),
        "with the plugin": (STOCK, found),
        "with the plugin and our runner": (replace(STOCK, runner=OUR_RUNNER), found),
    }
    cpu: dict[str, list[float]] = {name: [] for name in systems}
    job = Job(STOCK, "W1", rows, folder)
    for _ in range(repeat):
        for number, (name, (system, path)) in enumerate(systems.items()):
            output = folder / f"start-{number}-{len(cpu[name])}"
            output.mkdir()
            environment = system.environment(job) | _COMPILED
            environment["PYTHONPATH"] = f"{path}:{environment['PYTHONPATH']}"
            cost = measure(system.command(job), output, environment, output.with_suffix(".log"))
            cpu[name].append(cost.cpu)
    for name, seconds in cpu.items():
        least, median = (f"{choose(seconds) / choose(cpu[own]):.3f}" for choose in (min, statistics.median))
        print(f"helm-run, stock, {rows} rows, {name}: {min(seconds):.2f} CPU s, {least} of HELM's (median {median})")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.start_up", description=__doc__)
    parser.add_argument("--repeat", type=int, default=20)
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="helm-ext-start-") as name:
        folder = Path(name)
        stock.write_prod_env(folder / "prod_env")
        rows = 10
        workloads.write_plain(Job(STOCK, "W1", rows, folder).plain_path, workloads.make_rows("W1", rows))
        print_start_up(folder, rows, given.repeat)


if __name__ == "__main__":
    main()
