"""CSV and TSV: every cell is the text that stands in the file."""

from __future__ import annotations

import csv
import gzip

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helm_ext.errors import DatasetError
from helm_ext.formats.table.tables import SPREADSHEET_CELL, DelimitedTable


def read(tmp_path, data, name="x.csv", **options):
    path = tmp_path / name
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    table = DelimitedTable(str(path), **options)
    return table, list(table.read())


def problem(tmp_path, data, name="x.csv", **options):
    with pytest.raises(DatasetError) as caught:
        read(tmp_path, data, name, **options)
    return caught.value.problems[0]


class TestCells:
    def test_are_texts_whatever_they_look_like(self, tmp_path):
        _, rows = read(tmp_path, "a,b,c,d\nNA,null,007,1e3\n,None, x ,TRUE\n")
        assert [tuple(cells.values()) for _, cells, _ in rows] == [
            ("NA", "null", "007", "1e3"),
            ("", "None", " x ", "TRUE"),
        ]

    def test_hold_quoted_delimiters_quotes_and_line_breaks(self, tmp_path):
        _, rows = read(tmp_path, 'a,b\r\n"x, ""y""","one\r\ntwo"\r\nlast,row')
        assert rows == [(2, {"a": 'x, "y"', "b": "one\r\ntwo"}, ""), (4, {"a": "last", "b": "row"}, "")]

    def test_may_be_longer_than_pythons_limit(self, tmp_path):
        before = csv.field_size_limit()
        _, rows = read(tmp_path, f"a,b\n{'x' * 200_000},y\n")
        assert len(rows[0][1]["a"]) == 200_000
        assert csv.field_size_limit() == before

    def test_of_a_spreadsheets_length_are_noted(self, tmp_path):
        table, _ = read(tmp_path, f"a,b\n{'x' * SPREADSHEET_CELL},y\n{'x' * (SPREADSHEET_CELL + 1)},y\n")
        assert table.notes == ["1 row has a cell of 32,767 characters: a spreadsheet may have cut it off there"]

    def test_may_hold_other_line_ends_of_unicode(self, tmp_path):
        _, rows = read(tmp_path, "a,b\nx\u2028y,\x0b\n")
        assert rows[0][1] == {"a": "x\u2028y", "b": "\x0b"}


class TestFile:
    def test_may_begin_with_a_byte_order_mark(self, tmp_path):
        table, _ = read(tmp_path, "\ufeffa,b\n1,2\n")
        assert table.columns == ["a", "b"]

    def test_may_be_compressed(self, tmp_path):
        table, rows = read(tmp_path, gzip.compress(b"a,b\n1,2\n"), "x.csv.gz")
        assert rows[0][1] == {"a": "1", "b": "2"}
        assert len(table.digest) == 64

    def test_may_end_in_blank_lines(self, tmp_path):
        table, rows = read(tmp_path, "a,b\n1,2\n\n\n")
        assert len(rows) == 1

    def test_without_header_numbers_its_columns(self, tmp_path):
        table, rows = read(tmp_path, "x,y\n1,2\n", header="no")
        assert table.columns == ["1", "2"]
        assert [cells["1"] for _, cells, _ in rows] == ["x", "1"]

    def test_may_have_a_first_column_without_name(self, tmp_path):
        table, _ = read(tmp_path, ",a,b\n0,1,2\n")
        assert table.columns == ["(unnamed)", "a", "b"]


class TestDelimiter:
    @pytest.mark.parametrize("character", [",", ";", "\t", "|"])
    def test_is_the_one_that_the_header_has_most_of(self, tmp_path, character):
        _, rows = read(tmp_path, f"a{character}b{character}c\n1{character}2{character}3\n")
        assert rows[0][1] == {"a": "1", "b": "2", "c": "3"}

    def test_inside_quotes_does_not_count(self, tmp_path):
        table, _ = read(tmp_path, '"a; b; c",d\n1,2\n')
        assert table.columns == ["a; b; c", "d"]

    def test_is_refused_where_two_could_be_it(self, tmp_path):
        found = problem(tmp_path, "a,b;c\n1,2;3\n")
        assert (found.code, found.hint) == ("delimiter", "say which: sep=comma or sep=semicolon")

    def test_may_be_said(self, tmp_path):
        table, _ = read(tmp_path, "a,b;c\n1,2;3\n", sep="semicolon")
        assert table.columns == ["a,b", "c"]

    def test_of_a_tsv_is_the_tab(self, tmp_path):
        table, _ = read(tmp_path, "a,b\tc\n1\t2\n", "x.tsv")
        assert table.columns == ["a,b", "c"]


def test_lines_that_end_in_a_delimiter_have_a_column_without_a_name(tmp_path):
    table, rows = read(tmp_path, "a;b;\n1;2;\n")
    assert (table.columns, rows) == (["a", "b", "(unnamed 3)"], [(2, {"a": "1", "b": "2", "(unnamed 3)": ""}, "")])


def test_rows_of_empty_cells_are_left_out_and_counted(tmp_path):
    table, rows = read(tmp_path, "a;b\n1;2\n;\n;\n")
    assert (len(rows), table.notes) == (1, ["2 rows of empty cells left out"])


class TestRefused:
    @pytest.mark.parametrize(
        ("data", "code", "line"),
        [
            ("a,b\n1,2\n1,2,3\n", "ragged-row", 3),
            ('a,b\n"1\n1",2\n1\n', "ragged-row", 4),
            ('a,b\n1,2\n"3,4\n5,6\n', "csv", 3),
            ('a,b\n1,2\n"3"x,4\n', "csv", 3),
            ("a,a\n1,2\n", "header", 1),
            ("a,,b\n1,2,3\n", "header", 1),
            ("sep=;\na;b\n1;2\n", "header", 1),
            ("a,b\r1,2\r", "csv", 1),
            (b"a,b\n1,\xe9\n", "not-utf-8", 2),
            ("a,b\n1,2\n".encode("utf-16"), "not-utf-8", 1),
            ("", "empty-file", None),
            ("\n\n", "no-rows", None),
        ],
    )
    def test_with_the_line_where_the_row_begins(self, tmp_path, data, code, line):
        found = problem(tmp_path, data)
        assert (found.code, found.location.line) == (code, line)

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
