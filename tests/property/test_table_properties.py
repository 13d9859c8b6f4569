"""Whatever a table holds, it is read or refused with a place and a reason; rows in are rows counted."""

import csv
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from helm_ext.errors import HelmExtError
from helm_ext.formats.table.format import FORMAT

NAMES = [
    "question", "prompt", "choices", "A", "B", "option_a", "option_b", "answer", "label", "output", "response", "id", "split",
    "context", "passage", "ctx", "endings", "mc1_targets", "best_answer", "correct_answers", "answers", "doc", "model_response",
    "metric", "origin_prompt", "prediction", "gold", "input", "actualOutput", "metricsData", "x.y",
]  # fmt: skip
VALUES = st.sampled_from([
    None, "", 0, 1, -1, 2, 1.5, 1e300, 10**30, True, False, [], {}, "A", "B", "x", " ", "1", "a\nb", ["a", "b"], ["a"], [1, 0], [None],
    {"text": ["a", "b"], "label": ["A", "B"]}, {"text": ["a"]}, {"choices": ["a", "b"], "labels": [1, 0]}, "['a', 'b']",
    "['a' 'b']", "[1, 2", "[0, 1]", "#### 3", [[1]], {"role": "user"}, [{"role": "user", "content": "x"}], "train", "val",
    {"answer_start": [0], "text": ["q"]}, {"query": "q", "choices": ["a", "b"], "gold_index": 1}, {"logprobs": [1, 2]},
])  # fmt: skip


@st.composite
def tables(draw):
    names = ["question", "answer", *draw(st.lists(st.sampled_from(NAMES), max_size=4, unique=True))]
    usual = {name: draw(VALUES) for name in names} | {"question": "q?"}
    rows = []
    for _ in range(draw(st.integers(1, 4))):
        odd = draw(st.dictionaries(st.sampled_from(names), VALUES, max_size=1))
        rows.append({**usual, **odd})
    return rows


ARGUMENTS = st.fixed_dictionaries({}, optional={
    "gold_kind": st.sampled_from(["label", "index", "text", "list", "flags"]),
    "index_base": st.sampled_from([0, 1]),
    "empty": st.sampled_from(["answer", "not_run"]),
    "by": st.sampled_from([["question"], ["answer"], ["x"]]),
})  # fmt: skip


def outcome(path, arguments):
    """Return what came of a table: its counts, or None where it was refused in the way of this package."""
    try:
        counts = FORMAT.load(path=str(path), **arguments).counts
        FORMAT.describe({"path": str(path), **arguments})
    except HelmExtError:
        return None
    return counts


def require_all_counted(counts, rows):
    if counts is not None and counts["recorded"]:
        assert counts["read"] == len(rows)
        assert counts["recorded"] + counts["not_run"] + counts["failed"] + counts.get("unscored", 0) == len(rows)


@pytest.mark.long
@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(tables(), ARGUMENTS)
def test_json_is_read_or_refused(tmp_path_factory, rows, arguments):
    path = tmp_path_factory.mktemp("table") / "x.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    require_all_counted(outcome(path, arguments), rows)


@pytest.mark.long
@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    tables(),
    ARGUMENTS,
    st.none() | st.tuples(st.integers(0, 200), st.sampled_from([b'"', b",", b"\r", b"\x00", b"\xff", b""])),
)
def test_csv_is_read_or_refused(tmp_path_factory, rows, arguments, change):
    path = tmp_path_factory.mktemp("table") / "x.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(list(rows[0]))
        writer.writerows([row.values() for row in rows])
    if change is not None:
        data = path.read_bytes()
        at, put = change
        path.write_bytes(data[:at] + put + data[at + 1 :])
    counts = outcome(path, arguments)
    if change is None:
        require_all_counted(counts, rows)
