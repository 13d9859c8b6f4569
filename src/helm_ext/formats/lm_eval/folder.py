"""Which files belong together: `<model>/samples_<task>_<time>.jsonl` beside `results_<time>.json`.

Versions before 0.4.3 write `<arguments of the model>_<task>.jsonl` beside `results.json` (v0.4.2 lm_eval/__main__.py).
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

from helm_ext.errors import DatasetIntegrityError, DatasetNotFoundError
from helm_ext.formats.imported.format import choose_part

SAMPLES = re.compile(r"samples_(?P<task>.+)_(?P<time>[^_]+)\.jsonl(?:\.gz|\.zst)?")
"""The task lies between the first and the last `_` (lm_eval/utils.py, get_file_task_name)."""
RESULTS = re.compile(r"results(?:_(?P<time>[^_]+))?\.json")
_OLDER_RESULTS = "results.json"
_SHOWN = 10
_LOG_SAMPLES = "lm-eval writes them with --log_samples"


@dataclass(frozen=True)
class SampleFile:
    """One file of samples."""

    path: Path
    task: str
    time: str
    """When the harness wrote it, as its name says; "" for a file that was renamed."""


def has_samples(folder: Path) -> bool:
    """Whether a folder, or one right below it, holds samples."""
    try:
        below = [path for path in folder.iterdir() if path.is_dir()]
        return any(_in(each) for each in (folder, *below))
    except OSError:
        return False


def find_samples(path: Path) -> list[SampleFile]:
    """Return the samples that a path names: a file, those beside a results file, those of a folder.

    The folder is that of one model, or one above it. Raises DatasetError.
    """
    if path.is_dir():
        return _of_folder(path)
    results = RESULTS.fullmatch(path.name)
    if results:
        found = [one for one in _in(path.parent) if one.time == (results["time"] or "")]
        if not found:
            raise DatasetIntegrityError.at(
                path, "no samples of this time stand beside it", _LOG_SAMPLES, code="samples"
            )
        return found
    if not path.is_file():
        raise DatasetNotFoundError.at(path, "no such file", code="samples")
    older = (one for one in _older(path.parent) if one.path == path)
    return [_to_file(path) or next(older, None) or SampleFile(path, path.name.split(".")[0], "")]


def _of_folder(path: Path) -> list[SampleFile]:
    folders = [folder for folder in (path, *sorted(path.iterdir())) if folder.is_dir() and _in(folder)]
    if folders[:1] == [path] or len(folders) == 1:
        return _in(folders[0])
    hint = (
        f"name one of its folders: {', '.join(folder.name for folder in folders[:_SHOWN])}" if folders else _LOG_SAMPLES
    )
    message = f"samples of {len(folders)} models" if folders else "no samples_*.jsonl in this folder"
    raise DatasetIntegrityError.at(path, message, hint, code="samples")


def _in(folder: Path) -> list[SampleFile]:
    files = [_to_file(path) for path in sorted(folder.iterdir()) if path.is_file()]
    return [file for file in files if file is not None] or _older(folder)


def _older(folder: Path) -> list[SampleFile]:
    """Return the samples beside a `results.json`: files whose names end with one of its tasks, the longest."""
    try:
        configs = json.loads((folder / _OLDER_RESULTS).read_bytes())["configs"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return []
    tasks = sorted(configs, key=len, reverse=True) if isinstance(configs, dict) else []
    files = [
        (path, next((task for task in tasks if path.stem.endswith(f"_{task}")), None)) for path in folder.iterdir()
    ]
    return [SampleFile(path, task, "") for path, task in sorted(files) if task and path.suffix == ".jsonl"]


def _to_file(path: Path) -> SampleFile | None:
    match = SAMPLES.fullmatch(path.name)
    return SampleFile(path, match["task"], match["time"]) if match else None


def choose(path: Path, task: str | None, time: str | None) -> SampleFile:
    """Return the file of samples that is meant. Raises DatasetError that names them where several could be."""
    found = find_samples(path)
    task = choose_part(path, sorted({one.task for one in found}), task, "task")
    time = choose_part(path, sorted({one.time for one in found if one.task == task}), time, "time")
    same = [one for one in found if (one.task, one.time) == (task, time)]
    if len(same) > 1:
        names = ", ".join(one.path.name for one in same)
        raise DatasetIntegrityError.at(path, f"the same samples twice: {names}", "path= names one", code="samples")
    return same[0]


def find_results(file: SampleFile) -> Path | None:
    """Return the results file that was written with these samples, or None."""
    if file.time:
        path = file.path.parent / f"results_{file.time}.json"
        return path if path.is_file() else None
    return file.path.with_name(_OLDER_RESULTS) if file in _older(file.path.parent) else None
