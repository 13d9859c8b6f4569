"""The tables of arguments in docs/ are what the formats declare."""

import re
import sys
from pathlib import Path

import pytest

from helm_ext.formats import format_names, get_format
from helm_ext.formats.format import TEXT, Argument

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT / "tools"))

import argument_tables  # noqa: E402

PAGES = {path: path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs").rglob("*.md"))}


@pytest.mark.parametrize("name", format_names())
def test_every_format_has_its_table_in_one_page(name):
    (page,) = [page for page in PAGES.values() if f"<!-- arguments of {name} -->" in page]
    table = page.split(f"<!-- arguments of {name} -->")[1].split("<!-- end of arguments -->")[0]
    assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) == get_format(name).argument_names()


def test_the_tables_are_up_to_date():
    stale = [path.name for path, page in PAGES.items() if argument_tables.with_tables(page) != page]
    assert stale == [], "python tools/argument_tables.py"


def test_a_table():
    arguments = [Argument("a", TEXT, "x|y", "none"), Argument("b", TEXT, "z", in_run_entry=False)]
    assert argument_tables.to_table(arguments).splitlines() == [
        "| argument | type | meaning | absent |",
        "|---|---|---|---|",
        r"| `a` | text | x\|y | none |",
    ]
