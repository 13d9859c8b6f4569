"""Which files belong together: `<model>/samples_<task>_<time>.jsonl` beside `results_<time>.json`.

Versions before 0.4.3 write `<arguments of the model>_<task>.jsonl` beside `results.json` (v0.4.2 lm_eval/__main__.py).
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from helm_ext.errors import DatasetIntegrityError, DatasetNotFoundError, did_you_mean

_SAMPLES = re.compile(r"samples_(?P<task>.+)_(?P<time>[^_]+)\.jsonl(?:\.gz|\.zst)?")
"""The task lies between the first and the last `_` (lm_eval/utils.py, get_file_task_name)."""
_RESULTS = re.compile(r"results(?:_(?P<time>[^_]+))?\.json")
_OLDER_RESULTS = "results.json"
_SHOWN = 10


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


def is_samples_name(name: str) -> bool:
    """Whether a file is called as the harness calls its samples."""
    return _SAMPLES.fullmatch(name) is not None


def is_results_name(name: str) -> bool:
    """Whether a file is called as the harness calls its results."""
    return _RESULTS.fullmatch(name) is not None


def find_samples(path: Path) -> list[SampleFile]:
    """Return the samples that a path names: a file, those beside a results file, those of a folder.

    The folder is that of one model, or one above it. Raises DatasetError.
    """
    if path.is_dir():
        return _of_folder(path)
    results = _RESULTS.fullmatch(path.name)
    if results:
        found = [one for one in _in(path.parent) if one.time == (results["time"] or "")]
        if not found:
            raise DatasetIntegrityError.at(
                path,
                "no samples of this time stand beside it",
                "lm-eval writes them with --log_samples",
                code="samples",
            )
        return found
    if not path.is_file():
        raise DatasetNotFoundError.at(path, "no such file", code="samples")
    older = (one for one in _older(path.parent) if one.path == path)
    return [_to_file(path) or next(older, None) or SampleFile(path, path.name.split(".")[0], "")]


def _of_folder(path: Path) -> list[SampleFile]:
    found = _in(path)
    if found:
        return found
    folders = [folder for folder in sorted(path.iterdir()) if folder.is_dir() and _in(folder)]
    if len(folders) > 1:
        names = ", ".join(folder.name for folder in folders[:_SHOWN])
        raise DatasetIntegrityError.at(
            path, f"samples of {len(folders)} models", f"name one of its folders: {names}", code="samples"
        )
    if not folders:
        raise DatasetIntegrityError.at(
            path, "no samples_*.jsonl in this folder", "lm-eval writes them with --log_samples", code="samples"
        )
    return _in(folders[0])


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
    match = _SAMPLES.fullmatch(path.name)
    return SampleFile(path, match["task"], match["time"]) if match else None


def choose(path: Path, found: Sequence[SampleFile], task: str | None, time: str | None) -> SampleFile:
    """Return the one file of these that is meant. Raises DatasetError that names them where several could be."""
    for what, wanted in (("task", task), ("time", time)):
        names = sorted({str(getattr(one, what)) for one in found})
        found = [one for one in found if wanted in (None, getattr(one, what))]
        message = hint = ""
        if not found:
            message = f"{what}={wanted}: no samples of this {what}"
            hint = did_you_mean(str(wanted), names) or f"there are {_join(names)}"
        elif wanted is None and len(names) > 1:
            message = f"samples of {len(names)} {what}s"
            hint = f"{what}={what.upper() if what == 'time' else 'NAME'} chooses one: {_join(names)}"
        if message:
            raise DatasetIntegrityError.at(path, message, hint, code="samples")
    if len(found) > 1:
        names = [one.path.name for one in found]
        raise DatasetIntegrityError.at(
            path, f"the same samples twice: {_join(names)}", "path= names one", code="samples"
        )
    return found[0]


def find_results(file: SampleFile) -> Path | None:
    """Return the results file that was written with these samples, or None."""
    if file.time:
        path = file.path.parent / f"results_{file.time}.json"
        return path if path.is_file() else None
    return file.path.with_name(_OLDER_RESULTS) if file in _older(file.path.parent) else None


def _join(names: Sequence[str]) -> str:
    more = f", ... ({len(names) - _SHOWN} more)" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
