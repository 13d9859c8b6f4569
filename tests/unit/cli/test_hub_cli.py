"""`helm-ext hub`, as it is typed."""

import json

import commands
import pytest


@pytest.fixture(autouse=True)
def _hub(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HELM_EXT_HUB", "hub")


def run(*arguments, code=0):
    return commands.run("hub", *arguments, code=code)


def write(path, *answers):
    message = [{"role": "user", "content": "2+2?"}]
    rows = [{"id": str(i), "messages": message, "expected": answer} for i, answer in enumerate(answers)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_the_way_of_a_dataset(tmp_path):
    write(tmp_path / "t.jsonl", "4", "four")
    (tmp_path / "attributes.json").write_text('{"level": 2, "severity": "low"}')
    pack = ("pack", "--test", "t.jsonl", "--name", "sums", "--attr", "severity=high")
    packed = run(*pack, "--attributes", "attributes.json")
    assert packed.stdout.startswith("sums.zip: 2 test, 0 train; SHA-256 ")
    digest = packed.stdout.split()[-1]
    assert "no hub at hub\n  hint: the first upload makes it" in run("list", code=1).stderr
    (tmp_path / "hub").mkdir()
    assert run("list").stdout == "no datasets in the hub at hub\n"
    assert run("upload", "sums.zip").stdout == f"sums: version 1, SHA-256 {digest}\n"
    again = run("upload", "sums.zip", code=1)
    assert again.stderr.startswith("error: sums: this ZIP is version 1 already")
    write(tmp_path / "t.jsonl", "4", "vier", "quatre")
    run(*pack, "--replace")
    mixed = run("upload", "none.zip", "sums.zip", code=1)
    assert mixed.stderr == "error: none.zip: no such file\n"
    assert mixed.stdout.startswith("sums: version 2, SHA-256 ")
    (row,) = [line.split() for line in run("list").stdout.splitlines() if line.startswith("sums")]
    assert row[:4] == ["sums", "2", "3", "0"]
    assert row[-1] == "severity=high"
    shown = run("show", "sums").stdout
    assert digest[:12] in shown
    assert "level=2, severity=high" in shown
    assert run("verify").stdout == "1 dataset verified, 0 problems\n"
    assert run("verify", "sums").stdout == "1 dataset verified, 0 problems\n"
    (tmp_path / "out").mkdir()
    frozen = run("download", "sums", "--version", 1, "--out", "out")
    assert frozen.stderr == "warning: sums is frozen to version 1; version 2 is the newest\n"
    assert frozen.stdout == f"out/sums.zip: version 1, SHA-256 {digest}\n"
    assert run("download", "sums", "--out", "out", "--replace").stdout.startswith("out/sums.zip: version 2")


def test_json(tmp_path):
    for answers in (["4"], [str(i) for i in range(30)]):
        write(tmp_path / "t.jsonl", *answers)
        run("pack", "--test", "t.jsonl", "--name", "sums", "--replace")
        run("upload", "sums.zip")
    (newest,) = json.loads(run("list", "--json").stdout)
    assert (newest["name"], newest["number"], newest["test_size"]) == ("sums", 2, 30)
    assert "claim" not in newest
    assert [version["number"] for version in json.loads(run("show", "sums", "--json").stdout)] == [1, 2]


def test_a_warning_of_equal_content(tmp_path):
    write(tmp_path / "t.jsonl", "4")
    for severity in ("high", "low"):
        run("pack", "--test", "t.jsonl", "--name", "sums", "--attr", f"severity={severity}", "--replace")
        done = run("upload", "sums.zip")
    said = "the records are those of version 1; only the ZIP or the attributes differ"
    assert done.stderr == f"warning: sums.zip: {said}\n"


@pytest.mark.parametrize(("arguments", "message"), [
    (["--attr", "severity"], "--attr severity: expected KEY=VALUE"),
    (["--attr", "=x"], "--attr =x: expected KEY=VALUE"),
    (["--attr", "a=1", "--attr", "a=2"], "--attr a=2: a is given twice"),
    (["--attributes", "none.json"], "none.json: cannot be read: No such file"),
    (["--attributes", "bad.json"], "bad.json:1: not JSON"),
    (["--attributes", "twice.json"], 'twice.json:1: the key "a" is given twice'),
    (["--attributes", "bom.json"], "bom.json:1: starts with a byte order mark"),
    (["--attributes", "list.json"], "list.json: expected a JSON object, got []"),
])  # fmt: skip
def test_attributes_that_make_no_sense(tmp_path, arguments, message):
    write(tmp_path / "t.jsonl", "4")
    (tmp_path / "bad.json").write_text("{")
    (tmp_path / "list.json").write_text("[]")
    (tmp_path / "twice.json").write_text('{"a": 1, "a": 2}')
    (tmp_path / "bom.json").write_text('\ufeff{"a": 1}')
    assert message in run("pack", "--test", "t.jsonl", "--name", "sums", *arguments, code=None).stderr
    assert not (tmp_path / "sums.zip").exists()


def test_a_hub_that_is_not_there():
    """A slip in the name, or a disk that is not mounted: not a sound hub without datasets."""
    for command in ("list", "verify"):
        said = run(command, "--hub", "slip", code=1).stderr
        assert said.startswith("error: no hub at slip\n  hint: the first upload makes it; --hub and")
        assert "the hub's place is empty" in run(command, "--hub", "", code=1).stderr
    said = run("show", "sums", "--hub", "slip", code=1).stderr
    assert "hint: there is no hub; the first upload makes it" in said


def test_names_with_brackets_are_shown_as_they_are():
    """Rich takes [b] for markup."""
    assert run("upload", "[/b].zip", code=1).stderr.startswith("error: [/b].zip: no such file\n")


def test_what_a_terminal_would_obey_is_escaped(tmp_path):
    for number in (1, 2):
        record = {"id": f"\x1b[31m{number}", "messages": [{"role": "user", "content": ""}], "expected": "é"}
        (tmp_path / "t.jsonl").write_text(json.dumps(record) + "\n")
        attribute = f"a\x1b]0;b{number}=x\ny\u202eé"
        run("pack", "--test", "t.jsonl", "--name", "odd", "--attr", attribute, "--replace")
        run("upload", "odd.zip")
    for command in (["list"], ["show", "odd"]):
        assert "a\\u001b]0;b2=x\\ny\\u202eé" in run(*command).stdout
