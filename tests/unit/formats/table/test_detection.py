"""A table is known by its structure, and files of other formats are left to them."""

import json

import pytest
from optional_sources import IMPORT_SAMPLES, needs_import_samples

from helm_ext.errors import DatasetError
from helm_ext.formats import detect, files_in
from helm_ext.formats.format import Claim, look
from helm_ext.formats.table.format import FORMAT

ROW = {"question": "What rusts?", "answer": "iron"}


@pytest.mark.parametrize(("name", "text"), [
    ("x.csv", "question,answer\n?,iron\n"), ("x.tsv", "question\tanswer\n?\tiron\n"),
    ("x.jsonl", json.dumps(ROW) + "\n"), ("x.json", json.dumps([ROW])), ("x.json", json.dumps([ROW], indent=2)),
    ("x.json", json.dumps({"data": [ROW]})),
    ("x.json", json.dumps({"version": "1", "data": [ROW]}, indent=2)),
    ("x.json", json.dumps({"0": {"origin_prompt": "?", "prediction": "iron", "gold": "iron"}})),
    ("x.json", json.dumps({"testCases": [{"input": "?", "actualOutput": "iron"}]})),
    # Refused, as a table: by columns (as pandas' to_json writes them), and one row alone.
    ("x.json", json.dumps({"question": {"0": "?"}, "answer": {"0": "iron"}})),
    ("x.json", json.dumps(ROW, indent=2)), ("x.table.json", json.dumps({"path": "x.csv"})),
    ("x.table.json", json.dumps({"path": "x.csv", "adapter_spec": {}, "question": "q"}, indent=1)),
])  # fmt: skip
def test_tables_are_known(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text)
    assert detect(path) is FORMAT


@pytest.mark.parametrize("value", [
    {"adapter_spec": {}, "request_states": []},
    {"id": "1", "messages": [{"role": "user", "content": "?"}], "expected": "iron"},
    {"question": "?", "answer": "iron", "target_scores": {"iron": 1}},
    {"custom_id": "1", "method": "POST", "url": "/v1/completions", "body": {"prompt": "?"}},
    {"doc_id": 0, "doc": {**ROW}, "target": "iron", "arguments": {}, "resps": [], "filtered_resps": []},
    {"schema_version": "0.3.0", "evaluation_id": "x", "input": {"raw": "?"}, "output": {}, "evaluation": {}},
    {"version": 2, "status": "success", "eval": {"task": "t", "model": "m"}, "samples": [{"input": "?", "target": "iron"}]},
    {"task_name": "x", "path": "y", "transform": "z"}, [1, 2], {},
])  # fmt: skip
@pytest.mark.parametrize("indent", [None, 2])
def test_files_of_others_are_not_claimed(tmp_path, value, indent):
    path = tmp_path / "x.json"
    path.write_text(json.dumps(value, indent=indent))
    assert FORMAT.claims(look(path)) is Claim.NO


@needs_import_samples
def test_no_file_of_another_harness_is_claimed():
    found = [path for path in IMPORT_SAMPLES.rglob("*") if FORMAT.claims(look(path)) is not Claim.NO]
    assert found == []


def test_a_folder_is_claimed_only_if_a_dataset_was_saved_there(tmp_path):
    assert FORMAT.claims(look(tmp_path)) is Claim.NO
    (tmp_path / "state.json").write_text("{}")
    assert FORMAT.claims(look(tmp_path)) is Claim.NO
    (tmp_path / "dataset_info.json").write_text("{}")
    assert FORMAT.claims(look(tmp_path)) is Claim.SURE


def test_json_that_is_called_csv_is_no_table(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text(json.dumps({"adapter_spec": {}, "request_states": []}))
    assert FORMAT.claims(look(path)) is Claim.NO


def test_a_missing_file_is_said_to_be_missing(tmp_path):
    with pytest.raises(DatasetError, match="no such file"):
        FORMAT.load(path=str(tmp_path / "x.csv"))


def test_a_program_beside_a_table_is_no_dataset_of_the_folder(tmp_path):
    (tmp_path / "facts.csv").write_text("question,answer,output\nWhat rusts?,iron,iron\n")
    (tmp_path / "plot.py").write_text("print(1)\n")
    assert files_in(tmp_path) == [tmp_path / "facts.csv"]
    (tmp_path / "plot.py").write_text("import random\n\n\ndef transform(data, num_sample, r, dataset_name):\n")
    assert files_in(tmp_path) == [tmp_path / "facts.csv", tmp_path / "plot.py"]
