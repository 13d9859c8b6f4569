r"""Run the commands that a page of the documentation shows, and compare what they print with what the page says.

    python tools/console_blocks.py docs/tutorials/score_outputs.md
    python tools/console_blocks.py docs/tutorials/live_model.md --given my-model

A page is read from top to bottom, in one shell and one empty folder:

- a block with a title (```json title="capitals.json") is written to that file;
- of a ```console block, lines that begin with "$ " are commands (a "\" at the end continues them on the next line),
  and the lines below a command are what it prints to both of its outputs. "..." on a line of its own stands for any
  lines, within a line for any text;
- a command must succeed, unless the next one is `echo $?`;
- blocks of other kinds are for reading.

`--given` copies a folder that the page takes for granted.
"""

from __future__ import annotations

import argparse
import difflib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

WIDTH = 100
"""Columns of the terminal that the commands believe to write to."""

_BLOCK = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)
_MARK = "-- end of a command, exit code "
_SHOWS_EXIT_CODE = "echo $?"


@dataclass
class Command:
    """A command as it stands on a page, and the lines that the page shows below it."""

    text: str
    shown: str
    must_succeed: bool = True


@dataclass(frozen=True)
class Page:
    """What of a page can be run: files (name, text) and commands, in the order in which they stand there."""

    steps: tuple[tuple[str, str] | Command, ...]

    @property
    def commands(self) -> list[Command]:
        return [step for step in self.steps if isinstance(step, Command)]


def read_page(text: str) -> Page:
    """Return the files and commands of a page. Raises ValueError for a console block that begins without a command."""
    steps: list[tuple[str, str] | Command] = []
    for language, title, body in _BLOCK.findall(text):
        if title:
            steps.append((title, body))
        elif language == "console":
            steps.extend(_read_commands(body))
    page = Page(tuple(steps))
    for command, following in zip(page.commands, page.commands[1:], strict=False):
        command.must_succeed = following.text != _SHOWS_EXIT_CODE
    return page


def _read_commands(body: str) -> list[Command]:
    commands: list[Command] = []
    continues = False
    for line in body.splitlines():
        if line.startswith("$ "):
            commands.append(Command(line[2:], ""))
        elif not commands:
            raise ValueError(f'a console block begins with "$ ", not with {line!r}')
        elif continues:
            commands[-1].text += f"\n{line}"
        else:
            commands[-1].shown += f"{line}\n"
        continues = (line.startswith("$ ") or continues) and line.endswith("\\")
    return commands


def run_page(page: Page, folder: Path, environment: Mapping[str, str] | None = None) -> list[str]:
    """Run a page in `folder`. Returns what differs, one text a command; [] if the page is true."""
    script = ["exec 2>&1"]
    for step in page.steps:
        if isinstance(step, Command):
            script += [step.text, f"__code=$?; printf '\\n{_MARK}%s\\n' $__code; (exit $__code)"]
        else:
            name, text = step
            path = folder / name
            script.append(f"mkdir -p '{path.parent}'; cat > '{path}' <<'__END__'\n{text}__END__")
    done = subprocess.run(
        ["bash", "-c", "\n".join(script)],
        cwd=folder,
        env={**os.environ, **(environment or {}), **_environment(folder)},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    parts = re.split(rf"\n{_MARK}(\d+)\n", done.stdout)
    if len(parts) != 2 * len(page.commands) + 1:
        return [f"the shell ended early:\n{done.stdout[-3000:]}"]
    differences = []
    for command, printed, code in zip(page.commands, parts[::2], parts[1::2], strict=False):
        if command.must_succeed and code != "0":
            differences.append(f"$ {command.text}\nexit code {code}:\n{printed[-3000:]}")
        elif not _matches(command.shown, printed):
            differences.append(f"$ {command.text}\n{_compare(command.shown, printed)}")
    return differences


def _environment(folder: Path) -> dict[str, str]:
    """Return what makes commands print the same everywhere, and keeps them from the network and from the user's hub."""
    return {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "COLUMNS": str(WIDTH),
        "NO_COLOR": "1",
        "TERM": "dumb",
        "XDG_DATA_HOME": str(folder / ".data"),
        "HF_HUB_OFFLINE": "1",
        "HF_DATASETS_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
        "CUDA_VISIBLE_DEVICES": "",
    }


def _matches(shown: str, printed: str) -> bool:
    pattern = "".join(
        "(?:.*\n)*?" if line == "..." else ".*?".join(map(re.escape, line.split("..."))) + "\n"
        for line in _clean(shown)
    )
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in _clean(printed))) is not None


def _clean(text: str) -> list[str]:
    """Return the lines without white space at their ends, and without empty lines at the text's."""
    return [line.rstrip() for line in text.strip("\n").splitlines()]


def _compare(shown: str, printed: str) -> str:
    return "\n".join(
        difflib.unified_diff(_clean(shown), _clean(printed), "the page", "the command", lineterm="", n=100)
    )


def main() -> None:
    """Run the pages that are named on the command line; exit code 1 if one of them is not true."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="+", type=Path)
    parser.add_argument("--given", nargs="*", type=Path, default=[], metavar="FOLDER")
    arguments = parser.parse_args()
    wrong = False
    for path in arguments.pages:
        with tempfile.TemporaryDirectory() as folder:
            for given in arguments.given:
                shutil.copytree(given, Path(folder) / given.name)
            differences = run_page(read_page(path.read_text(encoding="utf-8")), Path(folder))
        wrong = wrong or bool(differences)
        print(f"{path}: {'DIFFERS' if differences else 'as it says'}", *differences, sep="\n")
    raise SystemExit(wrong)


if __name__ == "__main__":
    main()
