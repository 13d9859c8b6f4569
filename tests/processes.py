"""Real helm-run, helm-summarize and helm-server processes, for the integration tests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

BIN = Path(sys.executable).parent
STOCK_ENTRIES = [
    "simple1:model=simple/model1",
    "simple_mcqa:model=simple/model1",
    "simple_classification:model=simple/model1",
]
"""HELM's own scenarios, with a model that needs nothing."""
TIMES = {"request_time", "request_datetime", "inference_runtime"}
OFFLINE = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "PYTHONUNBUFFERED": "1"}


def command(folder: Path, *arguments: str, check: bool = True, env: dict[str, str] | None = None):
    """Run one installed command in `folder`; return the finished process with its output as text."""
    if arguments[0] == "helm-summarize":
        # Its threads once in a while meet a fault of Python 3.11's parser (docs/footguns.md).
        arguments = (*arguments, "--num-threads", "1")
    done = subprocess.run(
        [str(BIN / arguments[0]), *arguments[1:]],
        cwd=folder,
        env={**os.environ, **OFFLINE, **(env or {})},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    if check and done.returncode:
        raise AssertionError(
            f"{' '.join(arguments)} exited {done.returncode}\n{done.stdout[-3000:]}\n{done.stderr[-6000:]}"
        )
    return done


def helm_run(
    folder: Path, *entries: str, suite: str = "s", options: tuple[str, ...] = (), start=command, **kwargs
):  # fmt: skip
    """helm-run the entries with a high `-m` and no cache, unless the options say otherwise."""
    limit = () if "-m" in options or "--max-eval-instances" in options else ("-m", "100000")
    return start(
        folder, "helm-run", "--suite", suite, "--disable-cache", *limit, *options, "--run-entries", *entries, **kwargs
    )


def run_folders(folder: Path, suite: str = "s") -> dict[str, Path]:
    """Return the suite's finished runs by name."""
    runs = folder / "benchmark_output" / "runs" / suite
    return {path.parent.name: path.parent for path in sorted(runs.glob("*/stats.json"))}


def only_run(folder: Path, suite: str = "s") -> Path:
    (path,) = run_folders(folder, suite).values()
    return path


def load(path: Path):
    return json.loads(path.read_text(encoding="utf-8"))


def stat_means(run: Path, split: str = "test") -> dict[str, float]:
    """Return the means of the run's stats of one split, unperturbed, by name."""
    return {
        stat["name"]["name"]: stat["mean"]
        for stat in load(run / "stats.json")
        if stat["name"].get("split") == split and "perturbation" not in stat["name"] and "mean" in stat
    }


def without_times(value):
    """Take the measured times out: they differ from run to run."""
    if isinstance(value, dict):
        return {key: without_times(item) for key, item in value.items() if key not in TIMES}
    if isinstance(value, list):
        kept = [item for item in value if not (isinstance(item, dict) and is_time_stat(item))]
        return [without_times(item) for item in kept]
    return value


def is_time_stat(item):
    return isinstance(item.get("name"), dict) and item["name"].get("name") in TIMES


def read_all(folder):
    """Return every JSON file below `folder`, parsed, by path; those that say when a run was made aside."""
    found = (path for path in sorted(folder.rglob("*.json")) if path.name != "helm_ext.json")
    return {str(path.relative_to(folder)): load(path) for path in found}
