"""preview and score in this process, on three formats."""

import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from helm_ext.cli import app, main

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    shutil.copytree(ROOT / "adapter_specs", tmp_path / "adapter_specs")
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments):
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == 0, (result.output, result.exception)
    return result.stdout


def test_version():
    assert run("--version").startswith("helm-ext ")


def test_preview_shows_the_options_the_labels_and_the_expected_answer(folder):
    shown = run("preview", "adapter_specs/labels_stems.json", "-n", "1")
    assert "method: multiple_choice_joint" in shown
    assert "\n甲" in shown
    assert "expected: " in shown
    assert "demonstrations: 5" in shown


def test_preview_of_a_ppl_task_shows_the_strings_that_are_scored(folder):
    shown = run("preview", "examples/ultraeval/datasets/workshop", "-n", "1", "--arg", "method=ppl")
    assert ", option 0 (original))" in shown
    assert ", option 1 (original))" in shown


def test_preview_of_a_chat_shows_its_messages(folder):
    bundle = pack(folder)
    shown = run("preview", bundle, "-n", "1")
    assert "[system] " in shown
    assert "[user] " in shown


def test_score_of_replies_breaks_the_main_metric_down(folder):
    shown = run("score", pack(folder), "--model", "org/one", "--arg", "replies=examples/innodata/replies.jsonl")
    assert "expected_contains (main)" in shown
    assert "expected_contains@severity=high" in shown


def test_a_dataset_by_its_name(folder):
    assert "adapter_spec:dataset=short_answer_qa," in run("preview", "short_answer_qa", "-n", "1")
    assert "runs/score/adapter_spec:dataset=short_answer_qa," in run("score", "short_answer_qa", "--model", "m")
    run("convert", "short_answer_qa", "copy.jsonl", "--lossy")
    assert (folder / "copy.jsonl").is_file()


def test_score_all_shows_every_stat(folder):
    shown = run("score", "adapter_specs/babi_style.json", "--model", "m", "--all")
    assert "num_references" in shown


def test_an_unknown_model_is_a_message(folder, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["helm-ext", "preview", "adapter_specs/babi_style.json", "--model", "no/such"])
    with pytest.raises(SystemExit) as caught:
        main()
    assert caught.value.code == 2
    assert "error: no/such: " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "argument", "message"),
    [
        ("preview", "instructions=Hello", "error: helm-ext/preview instructions=Hello: Unknown value\n"),
        ("preview", "stop=x", "error: helm-ext/preview stop=x: Unknown value: x\n"),
        ("preview", "temperature=abc", "error: temperature=abc: expected a number\n"),
        ("preview", "model=foo", "error: --arg model=foo: the model is no such argument\n  hint: --model NAME\n"),
        ("preview", "path=b.json", "error: --arg path=b.json: the dataset is named already, "),
        ("score", "model=foo", "error: --arg model=foo: the model is no such argument\n  hint: --model NAME\n"),
        ("score", "model_deployment=foo", "error: --arg model_deployment=foo: recorded completions are scored\n"),
    ],
)
def test_arguments_that_are_helms_own(folder, monkeypatch, capsys, command, argument, message):
    model = ["--model", "m"] if command == "score" else []
    file = "adapter_specs/babi_style.json"
    monkeypatch.setattr("sys.argv", ["helm-ext", command, file, *model, "--arg", argument])
    with pytest.raises(SystemExit) as caught:
        main()
    assert caught.value.code == 2
    assert message in capsys.readouterr().err


def test_a_temperature_is_a_number_as_in_helm_run(folder):
    shown = run("preview", "adapter_specs/babi_style.json", "-n", "1", "--arg", "temperature=0.1")
    assert "temperature=0.1," in shown


def test_a_file_name_where_a_dataset_has_it(folder, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["helm-ext", "preview", "babi_style.json"])
    with pytest.raises(SystemExit):
        main()
    expected = "error: babi_style.json: no such file\n  hint: dataset=babi_style reads adapter_specs/babi_style.json"
    assert expected in capsys.readouterr().err


def test_an_output_folder_that_is_a_file_is_a_message(folder, monkeypatch, capsys):
    (folder / "taken").write_text("")
    command = ["helm-ext", "score", "adapter_specs/babi_style.json", "--model", "m", "-o", "taken"]
    monkeypatch.setattr("sys.argv", command)
    with pytest.raises(SystemExit) as caught:
        main()
    assert caught.value.code == 1
    assert "--output-path taken: cannot be made" in capsys.readouterr().err


def pack(folder):
    run("hub", "pack", "--name", "front-desk", "--test", "examples/innodata/test.jsonl", "--out", str(folder))
    return "front-desk.zip"
