"""tools/console_blocks.py: what it reads from a page, and which differences it notices."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tools"))
from console_blocks import Command, read_page, run_page


def page(*lines):
    return read_page("\n".join(["Text.", "", "```console", *lines, "```", ""]))


def test_files_and_commands_in_the_order_of_the_page():
    text = '```json title="a.json"\n{}\n```\n\n```console\n$ echo 1 \\\n  2\n1 2\n$ true\n```\n\n```sh\nnot run\n```\n'
    assert read_page(text).steps == (("a.json", "{}\n"), Command("echo 1 \\\n  2", "1 2\n"), Command("true", ""))


def test_a_block_begins_with_a_command():
    with pytest.raises(ValueError, match="begins with \"\\$ \", not with 'hello'"):
        page("hello")


@pytest.mark.parametrize("lines", [
    ["$ echo 0.5 rows", "0.5 rows"], ["$ echo took 3.2 s", "took ... s"], ["$ seq 5", "1", "...", "5"],
    ["$ seq 2", "...", "1", "2", "..."],
    ["$ cd /", "$ pwd", "/"],  # one shell for the whole page
    ["$ false", "$ echo $?", "1"], ["$ echo to both >&2", "to both"],
])  # fmt: skip
def test_what_is_true(lines, tmp_path):
    assert run_page(page(*lines), tmp_path) == []


@pytest.mark.parametrize(("lines", "says"), [
    (["$ echo 0.5 rows", "0.6 rows"], "-0.6 rows\n+0.5 rows"), (["$ seq 3", "1", "3"], " 1\n+2\n 3"),
    (["$ seq 2", "1"], "+2"), (["$ true", "hello"], "-hello"), (["$ ls nothing", "..."], "$ ls nothing\nexit code 2"),
    (["$ exit 3", "$ true"], "the shell ended early"),
])  # fmt: skip
def test_what_is_not(lines, says, tmp_path):
    (difference,) = run_page(page(*lines), tmp_path)
    assert says in difference


def test_files_are_written_as_they_stand(tmp_path):
    text = '```json title="deep/a.json"\n{"$HOME": "`x`\\n"}\n```\n\n```console\n$ cat deep/a.json\n{"$HOME": "`x`\\n"}\n```\n'
    assert run_page(read_page(text), tmp_path) == []
