"""The table of formats: what every format says, and which file is whose."""

import gzip
import json
import zipfile

import pytest
import zstandard

from helm_ext import formats
from helm_ext.errors import DatasetError, DatasetNotFoundError, RunEntryError
from helm_ext.evalset import EvalSet
from helm_ext.formats import Claim, all_formats, detect, files_in, get_format
from helm_ext.formats.format import parse_arguments
from helm_ext.formats.scenario import EvalSetScenario

NAMES = ["adapter_spec", "ultraeval", "innodata"]


@pytest.mark.parametrize(("name", "content", "expected"), [
    ("a.json", '{"adapter_spec": {}, "request_states": []}', "adapter_spec"),
    ("a.json", '{"adapter_spec": {"instructions": "\\"transform\\""}}', "adapter_spec"),
    ("a.json", "{ not json", "adapter_spec"),
    ("a.dat", '// a comment\n{"adapter_spec": {}}', "adapter_spec"),
    ("a.json", "", "adapter_spec"),
    ("task.json", '[{"task_name": "x", "transform": "t.py"}]', "ultraeval"),
    ("task.json", '{"transforms": "t.py"}', "ultraeval"),
    ("rows.jsonl", '{"question": "?", "target_scores": {"a": 1}}', "ultraeval"),
    ("instance.jsonl", '{"data": {}, "ground_truth": "a", "prompt_inputs": "?", "raw_outputs": ["a"]}', "ultraeval"),
    # Keys of another place or in a text are no keys of the file.
    ("a.json", '{"adapter_spec": {"transform": 1}, "request_states": []}', "adapter_spec"),
    ("a.json", '{"request_states": [{"target_scores": {}}]}', "adapter_spec"),
    ("rows.jsonl", '{"question": "What is \\"adapter_spec\\": {}?", "target_scores": {"a": 1}}', "ultraeval"),
    ("rows.jsonl", '{"a": 1}\n{"target_scores": {"a": 1}}', "table"),
    ("transform_gen_v0.py", "def transform(): ...", "ultraeval"),
    ("a.zip", "no zip at all", "innodata"),
])  # fmt: skip
def test_the_format_is_told_from_the_file(tmp_path, name, content, expected):
    (tmp_path / name).write_text(content)
    assert detect(tmp_path / name).name == expected


@pytest.mark.parametrize("compress", [gzip.compress, zstandard.compress])
def test_compressed_files_are_looked_into(tmp_path, compress):
    (tmp_path / "rows.dat").write_bytes(compress(b'{"question": "?", "target_scores": {"a": 1}}'))
    assert detect(tmp_path / "rows.dat").name == "ultraeval"
    (tmp_path / "x.json.gz").write_bytes(compress(b"{")[:-3])  # broken: its own error says so
    assert detect(tmp_path / "x.json.gz").name == "adapter_spec"


def test_folders_bundles_and_what_is_missing(tmp_path):
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "transform_gen_v0.py").write_text("")
    assert detect(tmp_path / "set").name == "ultraeval"
    with zipfile.ZipFile(tmp_path / "bundle.dat", "w") as archive:
        archive.writestr("meta.json", "{}")
    assert detect(tmp_path / "bundle.dat").name == "innodata"
    assert detect(tmp_path / "missing.zip").name == "innodata"
    for name in ("missing.json", "no-such-dataset"):
        with pytest.raises(DatasetError, match="no such file"):
            detect(tmp_path / name)


def test_a_file_of_no_format_is_refused_with_what_each_expects(tmp_path):
    (tmp_path / "notes.txt").write_text("Buy milk.")
    with pytest.raises(DatasetError) as caught:
        detect(tmp_path / "notes.txt")
    for format_ in all_formats():
        assert f"\n    {format_.name}: {format_.expects}" in str(caught.value)


def test_a_file_that_two_formats_claim_is_refused_with_both_names(tmp_path):
    (tmp_path / "a.json").write_text('{"adapter_spec": {}, "transform": "t.py"}')
    with pytest.raises(DatasetError, match="a.json: could be of adapter_spec and ultraeval\n  hint: --as FORMAT"):
        detect(tmp_path / "a.json")


def test_many_quotes_and_no_end_are_looked_at_quickly(tmp_path):
    (tmp_path / "a.json").write_text('{"' + '\\"' * 30_000)
    assert detect(tmp_path / "a.json").name == "adapter_spec"


def test_the_dataset_files_of_a_folder(tmp_path):
    (tmp_path / "a.json").write_text("{}")
    (tmp_path / "b.zip").write_text("")
    (tmp_path / "README.md").write_text("# Data")
    assert [path.name for path in files_in(tmp_path)] == ["a.json", "b.zip"]
    (tmp_path / "transform.py").write_text("")
    assert files_in(tmp_path) == [tmp_path]  # a dataset itself
    (tmp_path / "empty").mkdir()
    assert files_in(tmp_path / "empty") == [tmp_path / "empty"]


@pytest.mark.parametrize("name", NAMES)
def test_what_every_format_says(name):
    from helm.common.object_spec import get_class_by_name

    format_ = get_format(name)
    assert format_.name == name
    assert set(format_.sources) <= set(format_.argument_names())
    assert format_.usage.startswith(f"{name}:")
    assert all(argument.description for argument in format_.arguments)
    assert len({argument.name for argument in format_.arguments}) == len(format_.arguments)
    scenario = get_class_by_name(format_.scenario_class)
    assert issubclass(scenario, EvalSetScenario)
    assert scenario.format is format_
    assert bool(format_.writes) == bool(format_.written_as)
    if name != "innodata":  # a ZIP
        assert format_.json_schema()["$schema"].startswith("https://json-schema.org/")


def test_an_unknown_format():
    with pytest.raises(RunEntryError, match="no format named 'ultraevil'\n  hint: did you mean 'ultraeval'?"):
        get_format("ultraevil")


@pytest.mark.parametrize("name", NAMES)
def test_exactly_one_source_is_needed(name):
    format_ = get_format(name)
    with pytest.raises(RunEntryError, match=f"{name}: exactly one of .* is needed, none is given\n  hint: {name}:"):
        format_.require_source({})
    first, second = format_.sources[:2]
    with pytest.raises(RunEntryError, match=f"{first} and {second} are given"):
        format_.require_source({first: 1, second: 2})


def test_arguments_get_their_types():
    known = get_format("innodata").arguments
    assert parse_arguments("innodata", known, {"limit": 3, "metrics": "a+b", "lower": "yes", "version": 1.5}) == {
        "limit": 3,
        "metrics": ["a", "b"],
        "lower": True,
        "version": 1.5,
    }


def test_the_doors_for_python(tmp_path):
    state = {"instance": {"input": {"text": "?"}, "references": [{"output": {"text": "!"}, "tags": ["correct"]}]}}
    content = {"adapter_spec": {"max_train_instances": 0}, "request_states": [state]}
    (tmp_path / "a.json").write_text(json.dumps(content))
    evalset = formats.load(tmp_path / "a.json", lower=True)
    assert isinstance(evalset, EvalSet)
    assert evalset.scoring.lower
    problems, counts = formats.check(tmp_path / "a.json")
    assert counts["rows"] == 1
    assert {problem.severity for problem in problems} == {"warning"}
    with pytest.raises(DatasetNotFoundError):
        formats.load(tmp_path / "b.json")


def test_claims_are_in_order():
    assert Claim.NO < Claim.MAYBE < Claim.LIKELY < Claim.SURE
