"""`helm-ext validate` with lint: when it runs, and how it stands beside what the formats' own checks say."""

import json
from importlib import import_module

import pytest
from commands import run
from lint_rows import row, write

from helm_ext.formats.innodata.hub import pack

TWICE = [row("Who wrote Emma?", "Jane Austen"), row("Who wrote Emma?", "Jane Austen")]


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "rows.jsonl", TWICE)
    return "rows.jsonl"


def reports(*arguments):
    return json.loads(run("validate", *arguments, "--format", "json").stdout)


def codes(*arguments):
    return [problem["code"] for problem in reports(*arguments)[0]["problems"]]


def test_small_files_are_linted_without_being_asked(file):
    assert "duplicate" in codes(file)
    assert reports(file)[0]["linted"] is True


def test_and_not_where_that_is_not_wanted(file):
    assert "duplicate" not in codes(file, "--no-lint")
    assert reports(file, "--no-lint")[0]["linted"] is False


def test_large_files_only_when_asked(file, monkeypatch):
    monkeypatch.setattr(import_module("helm_ext.cli.validate"), "LINTED_ROWS", 1)
    assert "duplicate" not in codes(file)
    assert "duplicate" in codes(file, "--lint")
    said = run("validate", file).stdout
    assert "rows.jsonl: its rows were not compared with one another; --lint looks for duplicates and leaks" in said


def test_a_file_with_errors_is_not_linted(file, tmp_path):
    (tmp_path / file).write_text((tmp_path / file).read_text() + "{}\n")
    result = run("validate", file, "--lint", "--format", "json", code=1)
    (report,) = json.loads(result.stdout)
    assert report["linted"] is False
    assert "not-linted" in [problem["code"] for problem in report["problems"]]


def test_lint_needs_what_scripts_make_of_rows(file):
    assert "--lint" in run("validate", file, "--lint", "--no-exec", code=2).stderr


def test_leaks_are_found(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "rows.jsonl", [row("Who wrote Emma?", "Jane Austen", split="train"), TWICE[0]])
    assert "leak" in codes("rows.jsonl")


def test_the_train_split_of_a_bundle_is_compared_too(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    record = {"id": "1", "messages": [{"role": "user", "content": "Who wrote Emma?"}], "expected": "Jane Austen"}
    other = {"id": "2", "messages": [{"role": "user", "content": "Who wrote Dracula?"}], "expected": "Bram Stoker"}
    (tmp_path / "train.jsonl").write_text("".join(json.dumps(one) + "\n" for one in (other, record)))
    (tmp_path / "test.jsonl").write_text(json.dumps({**record, "id": "3"}) + "\n")
    pack(name="books", target=tmp_path, test=tmp_path / "test.jsonl", train=tmp_path / "train.jsonl")
    (leak,) = [problem for problem in reports("books.zip")[0]["problems"] if problem["code"] == "leak"]
    assert (leak["path"], leak["line"]) == ("books.zip/test.jsonl", 1)
    assert 'books.zip/train.jsonl:2 (id "1"), a row of the train split' in leak["message"]


def test_rows_of_an_ultraeval_task_are_named_by_their_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "transform_gen_v0.py").write_text(
        "def transform(data, num_sample, r, dataset_name):\n"
        "    return {'input': data['question'], 'output': data['answer'], 'processed_output': data['answer']}\n"
    )
    line = json.dumps({"question": "Who wrote Emma?", "answer": "Jane Austen"})
    (tmp_path / "rows.jsonl").write_text(f"{line}\n{line}\n")
    arguments = ("--as", "ultraeval", "--arg", "transform=transform_gen_v0.py", "--arg", "dataset_name=a_b_gen")
    (found,) = [
        problem for problem in reports("rows.jsonl", *arguments)[0]["problems"] if problem["code"] == "duplicate"
    ]
    assert (found["path"], found["line"]) == ("rows.jsonl", 2)
