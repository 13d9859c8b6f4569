import zipfile

import pytest

from helm_ext.formats import FORMATS, detect


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.json", '{"adapter_spec": {}, "request_states": []}', "adapter_spec"),
        ("a.json", '{"adapter_spec": {"instructions": "\\"transform\\""}}', "adapter_spec"),
        ("a.json", "{ not json", "adapter_spec"),
        ("task.json", '[{"task_name": "x", "transform": "t.py"}]', "ultraeval"),
        ("task.json", '{"transforms": "t.py"}', "ultraeval"),
        ("rows.jsonl", '{"question": "?", "target_scores": {"a": 1}}', "ultraeval"),
        (
            "instance.jsonl",
            '{"data": {}, "ground_truth": "a", "prompt_inputs": "?", "raw_outputs": ["a"]}',
            "ultraeval",
        ),
        ("transform_gen_v0.py", "def transform(): ...", "ultraeval"),
        ("a.zip", "no zip at all", "innodata"),
    ],
)
def test_the_format_is_told_from_the_file(tmp_path, name, content, expected):
    (tmp_path / name).write_text(content)
    assert detect(tmp_path / name).name == expected


def test_folders_bundles_and_what_is_missing(tmp_path):
    assert detect(tmp_path).name == "ultraeval"
    with zipfile.ZipFile(tmp_path / "bundle.dat", "w") as archive:
        archive.writestr("meta.json", "{}")
    assert detect(tmp_path / "bundle.dat").name == "innodata"
    assert detect(tmp_path / "missing.json").name == "adapter_spec"


def test_every_format_has_the_same_doors():
    for format_ in FORMATS.values():
        assert callable(format_.module.load)
        assert callable(format_.module.check)
        assert isinstance(format_.module.json_schema(), dict)


def test_how_a_run_entry_names_the_file(tmp_path):
    ultraeval = FORMATS["ultraeval"]
    assert FORMATS["adapter_spec"].arguments("x.json") == {"path": "x.json"}
    assert FORMATS["innodata"].arguments("x.zip") == {"path": "x.zip"}
    assert ultraeval.arguments(tmp_path) == {"dataset": str(tmp_path)}
    assert ultraeval.arguments("t.py") == {"transform": "t.py"}
    assert ultraeval.arguments("d.jsonl") == {"data": "d.jsonl"}
    assert ultraeval.arguments("c.json") == {"config": "c.json"}
