"""What data, file names and servers say never steers the terminal: ESC, C1, DEL, other directions of text."""

import csv
import json
import logging
import os
import re

import pytest
from commands import run
from typer.testing import CliRunner

from helm_ext.cli import app, main
from helm_ext.errors import HelmExtError, printable, say_plainly, show

HOSTILE = "\x1b]0;owned\x07\x9b2J\x7f\u202e\u2066\r\b"
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def make_table(path, name):
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["question", "answer", "output", "subject", f"extra{name}"])
        for i in range(12):
            writer.writerow([f"{i}+{i}?{name}", f"{2 * i}", f"{name}{2 * i if i % 2 else 1}", f"s{i % 2}{name}", name])
    return path


@pytest.mark.long
@pytest.mark.parametrize("command", [
    ["validate", "FILE"], ["preview", "FILE", "--model", "simple/model1"],
    ["score", "FILE", "--arg", "by=subject", "--model", "m", "--show", "wrong=3"],
    ["score", "FILE", "--arg", "question=nosuch", "--model", "m"],
    ["convert", "FILE", "out.jsonl", "--arg", "gold=nosuch"],
], ids=lambda command: " ".join(command[:4]))  # fmt: skip
def test_data_and_names_of_files_do_not_steer_the_terminal(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = make_table(tmp_path / "t\x1b]0;x\x07\u202e.csv", HOSTILE)
    result = CliRunner().invoke(app, [file.name if part == "FILE" else part for part in command])
    said = result.output + str(result.exception or "")
    assert "\\u001b" in said  # the data is shown, and seen to be odd
    assert not OBEYED.findall(said)


def test_json_means_the_same_when_it_is_printable():
    value = {"a\x9b\u202e": "\x1b[2J\x7f"}
    assert json.loads(printable(json.dumps(value, ensure_ascii=False))) == value


def test_errors_and_the_log_say_what_servers_answer_without_obeying_it(caplog):
    assert not OBEYED.search(f"{HelmExtError(HOSTILE)}{show(HOSTILE)}")
    say_plainly()
    with caplog.at_level(logging.WARNING, logger="helm"):
        logging.getLogger("helm").warning("HTTP 500: %s", HOSTILE)
    assert caplog.messages
    assert not OBEYED.search("".join(caplog.messages))


@pytest.mark.parametrize("command", [
    ["score", "LONG.csv"], ["compare", "LONG"], ["requests", "in", "LONG"],
    ["convert", "metals.csv", "LONG.jsonl", "--arg", "output=output"],
])  # fmt: skip
def test_what_the_system_refuses_ends_without_a_traceback(tmp_path, monkeypatch, capsys, command):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["helm-ext", *(word.replace("LONG", "x" * 300) for word in command)])
    make_table(tmp_path / "metals.csv", "")
    with pytest.raises(SystemExit) as ended:
        main()
    said = capsys.readouterr().err
    assert ended.value.code == 1
    assert re.search(r"^error: x{300}\S*: File name too long$", said, re.MULTILINE), said


def test_a_conversion_names_its_file_where_the_disk_is_full(tmp_path, monkeypatch):
    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("helm_ext.files.writing.Part.replace", fail)
    table, target = make_table(tmp_path / "metals.csv", ""), tmp_path / "metals.jsonl"
    done = run("convert", table, target, "--arg", "output=output", code=1)
    assert f"{target}: cannot be written: No space left on device" in done.stderr
    assert not target.exists()


def test_what_is_no_file_is_not_replaced_by_one(tmp_path):
    """A pipe here; of root's, /dev/stdout."""
    table, target = make_table(tmp_path / "metals.csv", ""), tmp_path / "metals.jsonl"
    os.mkfifo(target)
    done = run("convert", table, target, "--arg", "output=output", "--replace", code=1)
    assert "there is something that is no file" in done.stderr
    assert target.is_fifo()
