"""The logs of tests/data/lm_eval, which lm-eval wrote (tools/make_lm_eval_logs.py), and changed copies of them."""

import ast
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


def downgrade(folder: Path, task: str, *, before_0_4_3: bool) -> Path:
    """A log as versions before 0.4.7 write it, or those before 0.4.3: filter by filter, and none is named.

    lm_eval/evaluator.py and lm_eval/loggers/evaluation_tracker.py of v0.4.5, lm_eval/__main__.py of v0.4.2.
    """
    rows = lines(samples(task))
    filters = list(dict.fromkeys(row["filter"] for row in rows))
    rows.sort(key=lambda row: filters.index(row["filter"]))
    for row in rows:
        del row["filter"], row["metrics"]
    if not before_0_4_3:
        results(folder).write_bytes(results().read_bytes())
        return write(samples(task, folder), rows)
    for row in rows:
        del row["doc_hash"], row["prompt_hash"], row["target_hash"]
        row["arguments"] = [list(one.values()) for one in row["arguments"].values()]
        if row["target"].isdecimal() or row["target"].startswith("["):
            row["target"] = ast.literal_eval(row["target"])
        if len(row["arguments"]) > 1:
            row["resps"] = [[[float(one[0][0]), one[0][1] == "True"]] for one in row["resps"]]
    (folder / "results.json").write_bytes(results().read_bytes())
    path = folder / f"pretrained__small_{task}.jsonl"
    path.write_text(json.dumps(rows, indent=2, ensure_ascii=False), encoding="utf-8")
    return path
