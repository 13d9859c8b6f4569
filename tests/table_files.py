"""Small tables for tests."""

import csv
import json
import pathlib

import pytest

from helm_ext.errors import DatasetError
from helm_ext.evalset import row_extra
from helm_ext.formats.table.format import FORMAT


def write_csv(folder, header, *rows, name="metals.csv"):
    path = pathlib.Path(folder) / name
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows] if header is not None else rows)
    return str(path)


def write_lines(folder, *rows, name="metals.jsonl"):
    path = pathlib.Path(folder) / name
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def load(path, **arguments):
    return FORMAT.load(path=path, **arguments)


def refusal(path, **arguments):
    """Return the first problem of a table that is refused; `load` and `check` must agree."""
    with pytest.raises(DatasetError) as caught:
        load(path, **arguments)
    problems, _ = FORMAT.check(path=path, **arguments)
    assert problems[0] == caught.value.problems[0]
    return caught.value.problems[0]


def golds(evalset):
    """Return the right texts of each row."""
    return [[r.output.text for r in i.references if r.is_correct] for i in evalset.instances]


def labels(evalset):
    return [row_extra(instance).get("labels") for instance in evalset.instances]


def answers(evalset):
    """Return what is recorded for each row: its completions' texts, or why there is none."""
    found = []
    for instance in evalset.instances:
        recorded = row_extra(instance)["recorded"]
        texts = [c["text"] for state in recorded["states"] for c in state["result"]["completions"]]
        found.append(texts if recorded["status"] == "ok" else recorded["status"])
    return found
