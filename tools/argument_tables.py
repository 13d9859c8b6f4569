"""Write the tables of run entries' arguments into docs/: they are made of what each format declares.

    python tools/argument_tables.py

A page has one between `<!-- arguments of NAME -->` and `<!-- end of arguments -->`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from pathlib import Path

from helm_ext.formats import get_format
from helm_ext.formats.format import Argument

DOCS = Path(__file__).resolve().parents[1] / "docs"

_BLOCK = re.compile(r"(<!-- arguments of (\w+) -->\n).*?(<!-- end of arguments -->)", re.DOTALL)


def to_table(arguments: Iterable[Argument]) -> str:
    """Return the arguments as a Markdown table, for docs/."""
    rows = [
        f"| `{argument.name}` | {_in_cell(argument.kind.title)} | {_in_cell(argument.description)} | "
        f"{_in_cell(argument.default)} |"
        for argument in arguments
        if argument.in_run_entry
    ]
    return "\n".join(["| argument | type | meaning | absent |", "|---|---|---|---|", *rows]) + "\n"


def _in_cell(text: str) -> str:
    return text.replace("|", "\\|")


def with_tables(page: str) -> str:
    """Return a page with each table as the format declares it."""
    return _BLOCK.sub(lambda found: f"{found[1]}\n{to_table(get_format(found[2]).arguments)}\n{found[3]}", page)


def main() -> None:
    """Rewrite the pages that are out of date, and name them."""
    for path in sorted(DOCS.rglob("*.md")):
        page = path.read_text(encoding="utf-8")
        if with_tables(page) != page:
            path.write_text(with_tables(page), encoding="utf-8")
            sys.stdout.write(f"{path.relative_to(DOCS.parent)}\n")


if __name__ == "__main__":
    main()
