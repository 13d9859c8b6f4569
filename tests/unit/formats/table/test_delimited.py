"""CSV and TSV: every cell is the text that stands in the file."""

import csv
import gzip

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helm_ext.errors import DatasetError
from helm_ext.formats.imported.tables import SPREADSHEET_CELL, DelimitedTable


def read(tmp_path, data, name="x.csv", **options):
    path = tmp_path / name
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    table = DelimitedTable(str(path), **options)
    return table, list(table.read())


def problem(tmp_path, data, name="x.csv", **options):
    with pytest.raises(DatasetError) as caught:
        read(tmp_path, data, name, **options)
    return caught.value.problems[0]


@pytest.mark.parametrize(("data", "options", "columns", "rows"), [
    # Cells are texts, whatever they look like.
    ("a,b,c,d\nNA,null,007,1e3\n,None, x ,TRUE\n", {}, "abcd", [(2, "NA", "null", "007", "1e3"), (3, "", "None", " x ", "TRUE")]),
    # They hold delimiters, quotes and line breaks in quotes, and other line ends of Unicode.
    ('a,b\r\n"x, ""y""","one\r\ntwo"\r\nlast,row', {}, "ab", [(2, 'x, "y"', "one\ntwo"), (4, "last", "row")]),
    ("a,b\nx\u2028y,\x0b\n", {}, "ab", [(2, "x\u2028y", "\x0b")]),
    (f"a,b\n{'x' * 200_000},y\n", {}, "ab", [(2, "x" * 200_000, "y")]),
    # A byte order mark, compression, blank lines at the end.
    ("\ufeffa,b\n1,2\n", {}, "ab", [(2, "1", "2")]),
    (gzip.compress(b"a,b\n1,2\n", mtime=0), {"name": "x.csv.gz"}, "ab", [(2, "1", "2")]),
    ("a,b\n1,2\n\n\n", {}, "ab", [(2, "1", "2")]),
    # Columns without a name: numbers, an index as pandas writes it, a delimiter at the end of every line.
    ("x,y\n1,2\n", {"header": "no"}, "12", [(1, "x", "y"), (2, "1", "2")]),
    (",a,b\n0,1,2\n", {}, ["(unnamed)", "a", "b"], [(2, "0", "1", "2")]),
    ("a;b;\n1;2;\n", {}, ["a", "b", "(unnamed 3)"], [(2, "1", "2", "")]),
    # The delimiter is the one that the header has most of, what is quoted aside; or the one that is said.
    *((f"a{c}b{c}c\n1{c}2{c}3\n", {}, "abc", [(2, "1", "2", "3")]) for c in ",;\t|"),
    ('"a; b; c",d\n1,2\n', {}, ["a; b; c", "d"], [(2, "1", "2")]),
    ("a,b;c\n1,2;3\n", {"sep": "semicolon"}, ["a,b", "c"], [(2, "1,2", "3")]),
    ("a,b\tc\n1\t2\n", {"name": "x.tsv"}, ["a,b", "c"], [(2, "1", "2")]),
])  # fmt: skip
def test_what_is_read(tmp_path, data, options, columns, rows):
    before = csv.field_size_limit()
    table, found = read(tmp_path, data, **options)
    assert table.columns == list(columns)
    assert [(line, *cells.values()) for line, cells, _ in found] == rows
    assert len(table.digest) == 64
    assert csv.field_size_limit() == before


@pytest.mark.parametrize(("data", "note"), [
    (
        f"a,b\n{'x' * SPREADSHEET_CELL},y\n{'x' * (SPREADSHEET_CELL + 1)},y\n",
        "1 row has a cell of 32,767 characters: a spreadsheet may have cut it off there",
    ),
    ("a;b\n1;2\n;\n;\n", "2 rows of empty cells left out"),
    # Three rows of a file that quotes nothing: a word that begins with a quote, and one that ends with one.
    ('a\tb\tc\n1\t2\t3\n1\t"2\t3\n1\t2"\t3\n',
     "line 3: a cell holds tabs and line breaks: are these rows, and the double quotes around them no quotes?"),
])  # fmt: skip
def test_what_is_odd_is_noted(tmp_path, data, note):
    table, _ = read(tmp_path, data)
    assert table.notes == [note]


def test_a_delimiter_that_could_be_two_is_refused(tmp_path):
    found = problem(tmp_path, "a,b;c\n1,2;3\n")
    assert (found.code, found.hint) == ("delimiter", "say which: sep=comma or sep=semicolon")


class TestRefused:
    @pytest.mark.parametrize(("data", "code", "line"), [
        ("a,b\n1,2\n1,2,3\n", "ragged-row", 3), ('a,b\n"1\n1",2\n1\n', "ragged-row", 4),
        ('a,b\n1,2\n"3,4\n5,6\n', "csv", 3), ('a,b\n1,2\n"3"x,4\n', "csv", 3), ("a,a\n1,2\n", "header", 1),
        ("a,,b\n1,2,3\n", "header", 1), ("sep=;\na;b\n1;2\n", "header", 1), ("a,b\r1,2\r", "csv", 1),
        (b"a,b\n1,\xe9\n", "not-utf-8", 2), ("a,b\n1,2\n".encode("utf-16"), "not-utf-8", 1), ("", "empty-file", None),
        ("\n\n", "no-rows", None),
    ])  # fmt: skip
    def test_with_the_line_where_the_row_begins(self, tmp_path, data, code, line):
        found = problem(tmp_path, data)
        assert (found.code, found.location.line) == (code, line)

    def test_names_a_line_for_spreadsheets(self, tmp_path):
        assert problem(tmp_path, "sep=;\na;b\n1;2\n").hint == "remove it"

    def test_shows_little_of_the_row(self, tmp_path):
        assert len(problem(tmp_path, f"a,b\n{'x' * 5_000}\n").message) < 200


CELLS = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=8)


@settings(deadline=None)
@given(st.lists(st.tuples(CELLS, CELLS, CELLS), min_size=1, max_size=6), st.sampled_from([",", ";", "\t", "|"]))
def test_what_pythons_writer_writes_is_read(tmp_path_factory, written, character):
    path = tmp_path_factory.mktemp("csv") / "x.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter=character, quoting=csv.QUOTE_ALL)
        writer.writerows([("a", "b", "c"), *written])
    table = DelimitedTable(str(path), sep=character)
    assert [tuple(cells.values()) for _, cells, _ in table.read()] == [row for row in written if any(row)]
