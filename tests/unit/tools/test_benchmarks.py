"""The parts of `benchmarks` that start nothing. What runs in the peers is checked by running them: each reports its
accuracy, which the table compares with the workload's."""

# ruff: noqa: E402 - `benchmarks` is not installed: the repository's root must be on the path first

import ast
import hashlib
import importlib
import json
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT))

from benchmarks import peers, workloads
from benchmarks.__main__ import START_ROWS, Result, make_table
from benchmarks.measuring import Cost
from benchmarks.peer_runs.answers import Answers
from benchmarks.systems import HELM_SYSTEMS, STOCK


@pytest.mark.parametrize(("workload", "digest"), [
    ("W1", "4fa779136b66ad61"), ("W2", "2838733d5d03abc2"), ("W3", "8c7ea77ad40f50f3"),
])  # fmt: skip
def test_workloads_are_the_same_everywhere(workload, digest, tmp_path):
    rows = workloads.make_rows(workload, 20)
    workloads.write_recorded(tmp_path / "rows.jsonl", workload, rows)
    assert hashlib.sha256((tmp_path / "rows.jsonl").read_bytes()).hexdigest()[:16] == digest
    assert workloads.make_rows(workload, 5) == rows[: 5 + workloads.DEMONSTRATIONS]


@pytest.mark.parametrize("workload", ["W1", "W2"])
def test_peers_get_the_prompts_and_answers_of_the_recorded_file(workload, tmp_path):
    rows = workloads.make_rows(workload, 12)
    workloads.write_recorded(tmp_path / "recorded.jsonl", workload, rows)
    peers.write_workload(tmp_path / "peers", workload, rows)
    recorded = [json.loads(line) for line in (tmp_path / "recorded.jsonl").read_text().splitlines()[1:]]
    items = [json.loads(line) for line in (tmp_path / "peers" / "prompts.jsonl").read_text().splitlines()]
    answers = Answers(tmp_path / "peers" / "answers.json")
    right = 0
    for state, item in zip(recorded, items, strict=True):
        prompt = item["messages"][0]["content"]
        assert prompt == state["request"]["prompt"]
        assert answers(prompt) == state["request"]["result"]["completions"][0]["text"].strip()
        right += answers(prompt) == item["expected"]
    assert workloads.known_accuracy(rows) == right / 12
    with pytest.raises(KeyError):
        answers("something else")


def result(system, start, full, **fields):
    return Result(system, 1000 + START_ROWS, [Cost(start, 1, 100, 1)], [Cost(full, 1, 100, 1)], **fields)


def test_the_table_compares_like_with_like_first_and_names_what_is_missing_or_wrong():
    [lm_eval, likeliest, inspect, redlite] = peers.make_peers().values()
    table, notes = make_table(
        "W1",
        [
            result(STOCK, 3.0, 13.0, accuracy=0.5),
            result(HELM_SYSTEMS["stock HELM, our runner"], 3.0, 5.5, accuracy=0.5),
            result(HELM_SYSTEMS["recorded"], 3.0, 5.0, accuracy=0.5),
            result(HELM_SYSTEMS["recorded, our runner"], 3.0, 3.25, accuracy=0.5),
            result(lm_eval, 5.0, 6.0, accuracy=0.25),
            Result(likeliest, 1010, unavailable="not installed: no network"),
        ],
        known_accuracy=0.5,
    )
    rows = {line[:30].strip(): line[30:].split() for line in table[2:] if line.startswith(" ")}
    # seconds per 1,000 rows, kB a row, how many times less than the first that does the same work, than stock HELM
    assert rows["stock HELM"][6:] == ["10.000", "0.0", "1.0", "1.0"]
    assert rows["stock HELM, our runner"][6:] == ["2.500", "0.0", "4.0", "4.0"]
    assert rows["recorded"][6:] == ["2.000", "0.0", "1.0", "5.0"]
    assert rows["recorded, our runner"][6:] == ["0.250", "0.0", "8.0", "40.0"]
    assert rows["lm-eval"][6:] == ["1.000", "0.0", "10.0"]
    assert [line for line in table[2:] if not line.startswith(" ")] == [
        "a client is asked: prompts built, tokens counted",
        "the recorded file is read: no prompts built, no tokens counted",
        "other harnesses: exact match alone",
    ]
    assert " ".join(rows["lm-eval, log-likelihood"]) == "not installed: no network"
    assert [note for note in notes if "NOT THE SAME WORK" in note] == [
        "lm-eval: NOT THE SAME WORK, its accuracy is 0.25"
    ]
    assert likeliest.can_run("W1")
    assert not likeliest.can_run("W2")
    assert inspect.can_run("W2")
    assert redlite.can_run("W2")


@pytest.mark.parametrize("folder", ["benchmarks", "tools"])
def test_what_is_imported_of_this_package_is_there(folder):
    """Also where functions import it: nobody runs them all after a change."""
    for path in sorted((ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("helm_ext"):
                module = importlib.import_module(node.module)
                missing = [name.name for name in node.names if not hasattr(module, name.name)]
                assert [name for name in missing if find_spec(f"{node.module}.{name}") is None] == [], path
