"""preview and score in this process, on three formats."""

import shutil
from pathlib import Path

import pytest
from commands import run

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
BABI = "adapter_specs/babi_style.json"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    shutil.copytree(ROOT / "adapter_specs", tmp_path / "adapter_specs")
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def pack():
    run("hub", "pack", "--name", "front-desk", "--test", "examples/innodata/test.jsonl")
    return "front-desk.zip"


def test_version():
    assert run("--version").stdout.startswith("helm-ext ")


def test_preview_shows_what_is_sent(folder):
    """Options, labels and the expected answer; of PPL the strings that are scored; of a chat its messages."""
    for arguments, lines in (
        (["adapter_specs/labels_stems.json"], ["method: multiple_choice_joint", "\n甲", "expected: ", "demonstrations: 5"]),
        (["examples/ultraeval/datasets/workshop", "--arg", "method=ppl"],
         [", option 0 (original))", ", option 1 (original))"]),
        ([pack()], ["[system] ", "[user] "]),
        ([BABI, "--arg", "temperature=0.1"], ["temperature=0.1,"]),
        (["short_answer_qa"], ["adapter_spec:dataset=short_answer_qa,"]),
    ):  # fmt: skip
        shown = run("preview", *arguments, "-n", "1").stdout
        assert [line for line in lines if line not in shown] == []


def test_score_of_replies_breaks_the_main_metric_down(folder):
    shown = run("score", pack(), "--model", "org/one", "--arg", "replies=examples/innodata/replies.jsonl").stdout
    assert "expected_contains (main)" in shown
    assert "expected_contains@severity=high" in shown


def test_a_dataset_by_its_name(folder):
    assert "runs/score/adapter_spec:dataset=short_answer_qa," in run("score", "short_answer_qa", "--model", "m").stdout
    run("convert", "short_answer_qa", "copy.jsonl", "--lossy")
    assert (folder / "copy.jsonl").is_file()


def test_score_all_shows_every_stat(folder):
    assert "num_references" in run("score", BABI, "--model", "m", "--all").stdout


@pytest.mark.parametrize(("arguments", "code", "message"), [
    (["preview", BABI, "--model", "no/such"], 2, "error: no/such: "),
    (["preview", BABI, "--arg", "instructions=Hello"], 2, "helm-ext/preview instructions=Hello: Unknown value\n"),
    (["preview", BABI, "--arg", "stop=x"], 2, "error: helm-ext/preview stop=x: Unknown value: x\n"),
    (["preview", BABI, "--arg", "temperature=abc"], 2, "error: temperature=abc: expected a number\n"),
    (["preview", BABI, "--arg", "model=foo"], 2, "--arg model=foo: the model is no such argument\n  hint: --model"),
    (["preview", BABI, "--arg", "path=b.json"], 2, "error: --arg path=b.json: the dataset is named already, "),
    (["score", BABI, "--model", "m", "--arg", "model=foo"], 2, "--arg model=foo: the model is no such argument\n"),
    (["score", BABI, "--model", "m", "--arg", "model_deployment=foo"], 2, "recorded completions are scored\n"),
    (["score", BABI, "--model", "m", "-o", BABI], 1, f"--output-path {BABI}: cannot be made"),
    *((["score", BABI, "--model", "m", "--arg", f"num_train_trials={value}"], 2,
       f"num_train_trials={value}: expected a whole number from 1 on") for value in (-1, 1.5)),
    *((["score", "x.json", "--model", "m", "--fail-under", given], 2,
       f"--fail-under {given}: expected METRIC=NUMBER") for given in ("main", "=1", "main=much")),
    *((["score", "x.json", "--model", "m", "--show", given], 2, f"--show {given}: expected wrong, or wrong=N")
      for given in ("right", "wrong=", "wrong=0", "wrong=-1", "wrong=x", "wrongs", "wrong=²")),
    (["score", "x.json", "--model", ""], 2, "--model: expected a name"),
    (["score", "x.json", "--model", "m", "--suite", " "], 2, "--suite: expected a name"),
    (["score", "x.json", "--model", "m", "--suite", "s" * 300], 2,
     "--suite: a folder's name has 255 bytes at most, and this one 300"),
    (["preview", "babi_style.json"], 2, f"no such file\n  hint: dataset=babi_style reads {BABI}"),
])  # fmt: skip
def test_what_cannot_be_is_a_message(folder, arguments, code, message):
    assert message in run(*arguments, code=code).stderr
