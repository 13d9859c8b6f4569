"""Logs that inspect_ai wrote are read as its own reader reads them.

tests/data/inspect holds logs of invented tasks, made by `tests/inspect_oracle.py make`, and `expected.jsonl`, what
inspect_ai 0.3.285 reads of them (`tests/inspect_oracle.py read`). Where a Python has inspect_ai, the logs are made anew: `INSPECT_PYTHON=... pytest`.
"""

import json
import subprocess
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from optional_sources import INSPECT_PYTHON, needs_inspect_ai

from helm_ext.formats import get_format
from helm_ext.formats.imported.row import Opened, Row

TESTS = Path(__file__).resolve().parents[3]
DATA = TESTS / "data" / "inspect"
EXPECTED = {one["file"]: one for one in map(json.loads, (DATA / "expected.jsonl").read_text("utf-8").splitlines())}
ORACLE = TESTS / "inspect_oracle.py"

PLACEHOLDERS = {"[image]\n": "", "\n[image]": "", "[image]": ""}


@pytest.mark.parametrize("name", EXPECTED)
def test_a_stored_log_is_read_as_inspect_ai_reads_it(name: str) -> None:
    require_same(DATA / name, EXPECTED[name])


@needs_inspect_ai
@pytest.mark.slow
def test_new_logs_are_read_as_inspect_ai_reads_them(tmp_path: Path) -> None:
    subprocess.run([INSPECT_PYTHON, "-W", "ignore", str(ORACLE), "make", str(tmp_path)], check=True)
    logs = sorted(path for path in tmp_path.iterdir() if path.is_file())
    assert len(logs) > 20
    for log in logs:
        require_same(log, read_by_inspect_ai(log))


def read_by_inspect_ai(log: Path) -> dict[str, Any]:
    command = [INSPECT_PYTHON, "-W", "ignore", str(ORACLE), "read", str(log)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def require_same(log: Path, expected: dict[str, Any]) -> None:
    """Compare every row of a log with what inspect_ai reads of its samples, and every score with its reductions."""
    opened, rows = read(log)
    assert (opened.source.task, opened.source.model) == (expected["task"], expected["model"])
    assert opened.source.settings["status"] == expected["status"]
    samples = sorted(expected["samples"], key=lambda one: (str(one["id"]), one["epoch"]))
    by_id = {key: list(group) for key, group in groupby(samples, key=lambda one: one["id"])}
    assert sorted((row.id for row in rows), key=str) == sorted(by_id, key=str)
    for row in rows:
        require_same_row(row, by_id[row.id])
    require_same_scores(opened, rows, expected)


def require_same_row(row: Row, epochs: list[dict[str, Any]]) -> None:
    first = epochs[0]
    answered = [one for one in epochs if not one["error"]]
    assert without_media(row.question) == first["input"]
    assert bool(row.failed) is not bool(answered)
    assert len(row.answers or ()) == len(answered)
    texts = [answer.text for answer in row.answers or ()]
    if first["choices"] is None:
        targets = [first["target"]] if isinstance(first["target"], str) else first["target"]
        assert list(row.gold) == [target for target in targets if target]
        assert texts == [one["text"] for one in answered]
        return
    assert row.options is not None
    assert sorted(row.options.values()) == sorted(first["choices"])
    right = {first["choices"]["ABCDEF".index(letter)] for letter in first["target"]}
    assert {row.options[label] for label in row.gold} == right
    if list(row.options.values()) == first["choices"] and texts != [one["said"] for one in answered]:
        # Shown in another order each time: the answers are in the labels of the dataset's order, as inspect_ai has it.
        for text, one in zip(texts, answered, strict=True):
            assert text == one["completion"] or "ANSWER" not in one["completion"]
    else:
        assert texts == [one["said"] for one in answered]


def require_same_scores(opened: Opened, rows: list[Row], expected: dict[str, Any]) -> None:
    """Compare the source's scores of rows with the reductions of the log, and their means with its results."""
    by_id = {str(row.id): row.source_scores for row in rows}
    reducers = list(dict.fromkeys(one["reducer"] for one in expected["reductions"]))
    for one in expected["reductions"]:
        suffix = "" if one["reducer"] == reducers[0] else f",{one['reducer']}"
        for sample_id, value in one["values"]:
            if isinstance(value, dict):
                for key, part in value.items():
                    require_score(by_id[str(sample_id)], f"{key}{suffix}", part)
            elif value is not None:
                require_score(by_id[str(sample_id)], f"{one['scorer']}{suffix}", value)
    for result in expected["results"]:
        suffix = "" if result["reducer"] in (None, reducers[0]) else f",{result['reducer']}"
        name = f"{result['name']}{suffix}"
        reported = result["metrics"].get("accuracy", result["metrics"].get("mean"))
        numbers = [score for row in rows if (score := row.source_scores.get(name)) is not None]
        if numbers:
            assert opened.source.scores[name].mean == reported
            assert sum(numbers) / len(numbers) == pytest.approx(reported, abs=1e-9)


def require_score(scores: Any, name: str, value: float) -> None:
    if value != value:
        assert scores.get(name) is None
    else:
        assert scores[name] == pytest.approx(value, abs=1e-12)


def without_media(question: Any) -> Any:
    if isinstance(question, str):
        return question
    turns = []
    for turn in question:
        text = turn["content"]
        for word, nothing in PLACEHOLDERS.items():
            text = text.replace(word, nothing)
        turns.append([turn["role"], text])
    return turns


def read(log: Path) -> tuple[Opened, list[Row]]:
    opened = get_format("inspect").open(path=str(log))
    return opened, list(opened.rows())
