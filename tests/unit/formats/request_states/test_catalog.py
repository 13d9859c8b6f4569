import pytest

from helm_ext.errors import DatasetNotFoundError
from helm_ext.formats.request_states import format as catalog


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HELM_EXT_PATH", raising=False)
    specs = tmp_path / "adapter_specs"
    specs.mkdir()
    return specs


def test_the_working_directory_beats_the_environment_beats_the_examples(folder, tmp_path, monkeypatch):
    other = tmp_path / "other"
    other.mkdir()
    monkeypatch.setenv("HELM_EXT_PATH", str(other))
    (other / "qa.json").write_text("{}")
    assert catalog.find_dataset("qa") == other / "qa.json"
    (folder / "qa.json").write_text("{}")
    assert catalog.find_dataset("qa").resolve() == folder / "qa.json"
    assert catalog.find_dataset("short_answer_qa").name == "short_answer_qa.json"


@pytest.mark.parametrize("name", ["a.json", "a.jsonl", "a.json.gz", "a.jsonl.zst", "a.json5"])
def test_every_form_of_a_file_is_found_by_its_stem(folder, name):
    (folder / name).write_text("{}")
    assert catalog.find_dataset("a").name == name


def test_an_unknown_name_gets_a_suggestion(folder):
    with pytest.raises(DatasetNotFoundError) as caught:
        catalog.find_dataset("short_answer")
    assert "no dataset named 'short_answer' (searched: adapter_specs, " in str(caught.value)
    assert "hint: did you mean 'short_answer_qa'?" in str(caught.value)


def test_an_unknown_name_that_is_a_file_is_told_to_use_path(folder, tmp_path):
    (tmp_path / "zzzz.json").write_text("{}")
    with pytest.raises(DatasetNotFoundError, match=r"hint: for a file, write path=\./zzzz\.json"):
        catalog.find_dataset("./zzzz.json")


def test_folders_and_other_files_are_no_datasets(folder):
    (folder / "sub.json").mkdir()
    (folder / "README.md").write_text("")
    assert "sub" not in catalog.list_datasets()
    assert "README" not in catalog.list_datasets()
