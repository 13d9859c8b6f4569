import pytest

from helm_ext.errors import DatasetNotFoundError, RunEntryError
from helm_ext.formats.request_states import catalog


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


def test_names_that_helm_reads_as_numbers_survive(folder):
    for name in ("007", "1.10", "nan", "1e3"):
        (folder / f"{name}.json").write_text("{}")
    assert catalog.find_dataset(7).name == "007.json"
    assert catalog.find_dataset(1.1).name == "1.10.json"
    assert catalog.find_dataset(float("nan")).name == "nan.json"
    assert catalog.find_dataset(1000.0).name == "1e3.json"


def test_a_number_that_could_be_two_files_is_refused(folder):
    (folder / "007.json").write_text("{}")
    (folder / "7.json").write_text("{}")
    with pytest.raises(RunEntryError) as caught:
        catalog.find_dataset(7)
    assert str(caught.value) == (
        "dataset=7 could be any of 007, 7, because HELM reads such names as numbers\n"
        "  hint: write the file's whole name, for example dataset=007.json"
    )
    assert catalog.find_dataset("007.json").name == "007.json"


def test_an_unknown_name_gets_a_suggestion(folder):
    with pytest.raises(DatasetNotFoundError) as caught:
        catalog.find_dataset("short_answer")
    assert "no dataset named 'short_answer' (searched: adapter_specs, " in str(caught.value)
    assert "hint: did you mean 'short_answer_qa'?" in str(caught.value)


def test_an_unknown_name_that_is_a_file_is_told_to_use_path(folder, tmp_path):
    (tmp_path / "zzzz.json").write_text("{}")
    with pytest.raises(DatasetNotFoundError, match=r"hint: for a file, write path=\./zzzz\.json"):
        catalog.find_dataset("./zzzz.json")


def test_an_unknown_number(folder):
    with pytest.raises(DatasetNotFoundError, match="no dataset named '12'"):
        catalog.find_dataset(12)


def test_folders_and_other_files_are_no_datasets(folder):
    (folder / "sub.json").mkdir()
    (folder / "README.md").write_text("")
    assert "sub" not in catalog.list_datasets()
    assert "README" not in catalog.list_datasets()
