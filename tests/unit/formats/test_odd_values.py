"""A value of any kind at any place of any file is read or refused; it never raises what is not for users."""

import copy
import json
from pathlib import Path

import every_eval_ever_records
import inspect_files
import lm_eval_logs
import openai_batches
import pytest
import request_states_files

from helm_ext import formats
from helm_ext.errors import HelmExtError

ODD = ({}, [], None, 1e300, "", True, {"a": {}}, [[]])
DATA = Path(__file__).parents[2] / "data"


def places(value, path=(), depth=5):
    """Yield the path of each value inside, of lists those of the first item."""
    inside = value.items() if isinstance(value, dict) else list(enumerate(value))[:1] if isinstance(value, list) else ()
    for key, item in inside:
        yield (*path, key)
        if depth:
            yield from places(item, (*path, key), depth - 1)


def changed(value, path, odd):
    made = copy.deepcopy(value)
    inside = made
    for key in path[:-1]:
        inside = inside[key]
    inside[path[-1]] = odd
    return made


def load_arguments(path, arguments):
    return {"path": str(path), **arguments}


def write_batch(folder, rows):
    made = openai_batches.write_batch(folder, rows[:1], rows[1:], {"a": "4"})
    return made.pop("path"), {**made, "output": [str(folder / "out.jsonl")]}


CASES = {
    "lm_eval": (
        lm_eval_logs.lines(next((DATA / "lm_eval").rglob("samples_*.jsonl")))[:2],
        lambda folder, rows: (openai_batches.write(folder / "samples_x_2025-01-01T00-00-00.jsonl", rows), {}),
    ),
    "inspect": (
        [inspect_files.header(), [inspect_files.sample()]],
        lambda folder, rows: (inspect_files.write_json(folder, rows[1], rows[0]), {}),
    ),
    "every_eval_ever": (
        [every_eval_ever_records.sample()],
        lambda folder, rows: (every_eval_ever_records.write(folder, rows), {}),
    ),
    "openai_batch": ([openai_batches.request("a", "2+2?"), openai_batches.result("a", "4")], write_batch),
    "adapter_spec": (
        [
            {"adapter_spec": {"max_train_instances": 0, "stop_sequences": ["\n"]}, "scoring": {"strip": True}},
            request_states_files.answered(request_states_files.choice("q", ["a", "b"]), "A"),
        ],
        lambda folder, rows: (openai_batches.write(folder / "x.jsonl", rows), {}),
    ),
    "table": (
        [{"question": "q", "answer": "A", "choices": ["x", "y"], "output": "A", "subject": "s"}] * 2,
        lambda folder, rows: (openai_batches.write(folder / "t.jsonl", rows), {}),
    ),
}


@pytest.mark.long
@pytest.mark.parametrize("kind", CASES)
def test_odd_values_are_read_or_refused(kind, tmp_path):
    value, write = CASES[kind]
    value = json.loads(json.dumps(value, default=str))
    formats.get_format(kind).load(**load_arguments(*write(tmp_path, value)))
    tried = refused = 0
    for place in places(value):
        for number, odd in enumerate(ODD):
            folder = tmp_path / f"{tried}-{number}"
            folder.mkdir()
            try:
                path, arguments = write(folder, changed(value, place, odd))
            except (TypeError, AttributeError, KeyError):  # the test's own writer
                continue
            tried += 1
            try:
                formats.get_format(kind).load(**load_arguments(path, arguments))
            except HelmExtError:
                refused += 1
            except Exception as error:
                pytest.fail(f"{place}: {odd!r}: {type(error).__name__}: {error}")
    assert tried > refused > 0
