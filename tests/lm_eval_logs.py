"""The logs of tests/data/lm_eval, which lm-eval wrote (tools/make_lm_eval_logs.py), and changed copies of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

LOGS = Path(__file__).parent / "data" / "lm_eval"
MODEL = LOGS / "acme__scripted"
TIME = "2026-01-02T03-04-05.678901"


def samples(task: str, folder: Path = MODEL) -> Path:
    return folder / f"samples_{task}_{TIME}.jsonl"


def results(folder: Path = MODEL) -> Path:
    return folder / f"results_{TIME}.json"


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


def changed(folder: Path, task: str, change: Callable[[list[dict[str, Any]]], object], *, alone: bool = True) -> Path:
    """A copy of a log whose lines were changed; with the results file unless it stands `alone`."""
    rows = lines(samples(task))
    change(rows)
    if not alone:
        results(folder).write_bytes(results().read_bytes())
    return write(samples(task, folder), rows)
