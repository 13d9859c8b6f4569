import gzip
import hashlib
import json
import os

import pytest
import zstandard

from helm_ext import files as sources
from helm_ext.errors import DatasetError, DatasetNotFoundError, DatasetSchemaError, DatasetSyntaxError, Problems
from helm_ext.files import opening
from helm_ext.files.limits import format_size


def text_of(error):
    return str(error.value)


def write(path, data):
    path.write_bytes(data)
    return path


@pytest.mark.parametrize(
    ("compress", "suffix", "name"),
    [(lambda data: data, ".json", None), (gzip.compress, ".gz", "gzip"), (zstandard.compress, ".zst", "zstd")],
)
class TestReading:
    def test_whole_file_and_the_digest_of_what_is_on_disk(self, tmp_path, compress, suffix, name):
        data = b'{"a": 1}\n' * 30_000
        path = write(tmp_path / f"x{suffix}", compress(data))
        source = sources.read_source(path)
        assert (source.data, source.compression, source.path) == (data, name, str(path))
        assert source.digest == hashlib.sha256(path.read_bytes()).hexdigest()

    def test_magic_decides_not_only_the_suffix(self, tmp_path, compress, suffix, name):
        source = sources.read_source(write(tmp_path / "data.json", compress(b"[1]")))
        assert (source.data, source.compression) == (b"[1]", name)

    def test_lines_are_streamed_with_the_same_digest(self, tmp_path, compress, suffix, name):
        lines = [b"x" * (number % 7) + str(number).encode() for number in range(50_000)]
        path = write(tmp_path / f"x{suffix}", compress(b"\n".join(lines)))
        with sources.LineSource(path) as source:
            assert [line for _, line in source] == lines
            assert source.digest == hashlib.sha256(path.read_bytes()).hexdigest()
            assert source.compression == name
            assert source.bytes_read == path.stat().st_size

    def test_digest_before_the_end_reads_the_rest(self, tmp_path, compress, suffix, name):
        path = write(tmp_path / f"x{suffix}", compress(b"1\n" * 200_000))
        with sources.LineSource(path) as source:
            assert next(iter(source)) == (1, b"1")
            assert source.digest == hashlib.sha256(path.read_bytes()).hexdigest()


def test_several_compressed_members_are_one_file(tmp_path):
    for compress in (gzip.compress, zstandard.compress):
        path = write(tmp_path / "x", compress(b"ab\n") + compress(b"c") + compress(b"d"))
        assert sources.read_source(path).data == b"ab\ncd"


def test_lines_end_at_newline_only_and_a_carriage_return_before_it_goes(tmp_path):
    path = write(tmp_path / "x.jsonl", "a\u2028b\r\n\r\nc\rd\n\x0be".encode())
    with sources.LineSource(path) as source:
        assert list(source) == [(1, "a\u2028b".encode()), (2, b""), (3, b"c\rd"), (4, b"\x0be")]


def test_no_line_after_the_last_newline(tmp_path):
    with sources.LineSource(write(tmp_path / "x", b"a\n")) as source:
        assert list(source) == [(1, b"a")]


def test_missing_file_names_its_neighbours(tmp_path):
    write(tmp_path / "capitals.json", b"{}")
    with pytest.raises(DatasetNotFoundError) as error:
        sources.read_source(tmp_path / "capitols.json")
    assert text_of(error) == f"{tmp_path}/capitols.json: no such file\n  hint: did you mean 'capitals.json'?"
    assert isinstance(error.value, FileNotFoundError)


def test_missing_folder(tmp_path):
    with pytest.raises(DatasetNotFoundError) as error:
        sources.read_source(tmp_path / "no" / "x.json")
    assert text_of(error).endswith(f"no such file\n  hint: there is no folder '{tmp_path}/no'")


def test_a_file_where_a_folder_should_be(tmp_path):
    write(tmp_path / "x", b"1")
    with pytest.raises(DatasetNotFoundError, match="no such file"):
        sources.read_source(tmp_path / "x" / "y")


def test_a_folder(tmp_path):
    with pytest.raises(DatasetNotFoundError) as error:
        sources.read_source(tmp_path)
    assert text_of(error) == f"{tmp_path}: this is a folder, not a file\n  hint: name the file inside it"


def test_zero_bytes(tmp_path):
    with pytest.raises(DatasetSyntaxError) as error:
        sources.read_source(write(tmp_path / "x", b""))
    assert text_of(error) == f"{tmp_path}/x: the file is empty (0 bytes)"


def test_a_pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(DatasetNotFoundError, match="no regular file"):
        sources.read_source(tmp_path / "pipe")


def test_permission_denied(tmp_path, monkeypatch):
    path = write(tmp_path / "x", b"1")

    def refuse(*_args, **_kwargs):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(opening.Path, "open", refuse)
    with pytest.raises(DatasetError) as error:
        sources.read_source(path)
    assert text_of(error) == f"{path}: the file cannot be read: Permission denied"


def test_a_path_with_a_null_character():
    with pytest.raises(DatasetError, match="cannot be read: .*embedded null"):
        sources.read_source("a\0b")


def test_a_disk_error_while_reading(tmp_path, monkeypatch):
    path = write(tmp_path / "x", b"1")
    monkeypatch.setattr(
        opening.Hashing, "read_chunk", lambda *_: (_ for _ in ()).throw(OSError(5, "Input/output error"))
    )
    with pytest.raises(DatasetError, match="cannot be read: Input/output error"):
        sources.read_source(path)


@pytest.mark.parametrize(("compress", "name"), [(gzip.compress, "gzip"), (zstandard.compress, "zstd")])
class TestBrokenCompression:
    def test_truncated(self, tmp_path, compress, name):
        whole = compress(os.urandom(5_000))
        path = write(tmp_path / "x", whole[:-900])
        with pytest.raises(DatasetSyntaxError) as error:
            sources.read_source(path)
        assert text_of(error) == (
            f"{path}: the compressed data is truncated\n  hint: the file was not copied or written completely"
        )

    def test_garbage(self, tmp_path, compress, name):
        whole = bytearray(compress(os.urandom(5_000)))
        path = write(tmp_path / "x", bytes(whole[:12]) + b"\xff" * 4_000)
        with pytest.raises(DatasetSyntaxError, match=f"no valid {name} file|truncated"):
            sources.read_source(path)

    def test_trailing_garbage(self, tmp_path, compress, name):
        path = write(tmp_path / "x", compress(b"1") + b"the rest, which is text")
        with pytest.raises(DatasetSyntaxError, match=f"no valid {name} file"):
            sources.read_source(path)

    def test_suffix_says_compressed_and_it_is_not(self, tmp_path, compress, name):
        path = write(tmp_path / ("x.gz" if name == "gzip" else "x.zst"), b'{"a": 1}')
        with pytest.raises(DatasetSyntaxError, match=f"no valid {name} file"):
            sources.read_source(path)

    def test_bomb(self, tmp_path, monkeypatch, compress, name):
        path = write(tmp_path / "x", compress(b"\0" * 3_000_000))
        monkeypatch.setattr(opening, "RATIO_FREE_BYTES", 1_000_000)
        with pytest.raises(DatasetSyntaxError, match=rf"{name} data of \d+ bytes expands to more than"):
            opening_read(path, max_ratio=100)

    def test_high_ratio_of_a_small_file_is_fine(self, tmp_path, compress, name):
        path = write(tmp_path / "x", compress(b"\0" * 3_000_000))
        assert len(sources.read_source(path, max_ratio=100).data) == 3_000_000


def test_blank_lines_that_are_next_to_nothing_when_compressed_end_soon(tmp_path, monkeypatch):
    """Four thousand frames of 256 MB would be a day's work."""
    monkeypatch.setattr(opening.Reader.__init__, "__kwdefaults__", {"max_ratio": 100, "ratio_free_bytes": 1 << 20})
    path = write(tmp_path / "x.jsonl.zst", zstandard.compress((b" " * 255 + b"\n") * (1 << 12)) * 64)
    with (
        pytest.raises(DatasetSyntaxError, match=r"zstd data of \d+ bytes expands to more than"),
        sources.LineSource(path) as source,
    ):
        for _ in source:
            pass
    assert source._reader.size <= 1 << 22


def opening_read(path, max_ratio):
    reader = opening.Reader(path, max_ratio=max_ratio, ratio_free_bytes=opening.RATIO_FREE_BYTES)
    try:
        while reader.read_chunk():
            pass
    finally:
        reader.close()


def test_document_limit(tmp_path):
    path = write(tmp_path / "x", gzip.compress(b" " * 4_000))
    with pytest.raises(DatasetSyntaxError) as error:
        sources.read_source(path, max_bytes=2 << 10)
    assert text_of(error) == (
        f"{path}: the file is larger than 2 KiB, the limit for a file that is one JSON document\n"
        "  hint: write it as JSON Lines: one record per line"
    )


@pytest.mark.parametrize("data", [b"1\n" + b"x" * 300_000, b"1\n" + b"x" * 300_000 + b"\n2\n"])
def test_line_limit_without_holding_the_line(tmp_path, data):
    path = write(tmp_path / "x", data)
    with sources.LineSource(path, max_line_bytes=1 << 17) as source, pytest.raises(DatasetSyntaxError) as error:
        list(source)
    assert text_of(error) == (
        f"{path}:2: the line is longer than 128 KiB, the limit\n  hint: JSON Lines has one record per line"
    )


def test_a_line_of_terabytes_is_refused_after_the_limit(tmp_path):
    # A sparse file: five gigabytes of one line, none of them on disk.
    path = tmp_path / "huge.jsonl"
    with path.open("wb") as file:
        file.truncate(5 << 30)
    with sources.LineSource(path, max_line_bytes=1 << 20) as source, pytest.raises(DatasetSyntaxError):
        list(source)
    assert source.bytes_read <= (1 << 20) + 2 * (1 << 16)


def test_a_line_that_ends_just_past_the_limit(tmp_path):
    with sources.LineSource(write(tmp_path / "x", b"12345\n"), max_line_bytes=4) as source:
        with pytest.raises(DatasetSyntaxError, match="longer than 4 bytes"):
            list(source)


def test_sizes_are_written_for_people():
    assert [format_size(size) for size in (5, 1 << 10, 3 << 19, 1 << 30)] == ["5 bytes", "1 KiB", "1.5 MiB", "1 GiB"]


class TestStrictJson:
    def parse(self, text, **options):
        data = text if isinstance(text, bytes) else text.encode()
        return sources.parse_json(data, "f.json", **options)

    def fail(self, text, **options):
        with pytest.raises(DatasetError) as error:
            self.parse(text, **options)
        return text_of(error)

    def test_values(self):
        assert self.parse('{"a": [1, 2.5, null, true, "\\u00e9\\ud83d\\ude00"]}') == {"a": [1, 2.5, None, True, "é😀"]}

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ('{"a": 1,\n "b" 2}', "f.json:2: not JSON: a colon is expected here (column 6)"),
            ('{"a": 1\n "b": 2}', "f.json:2: not JSON: a comma is expected here (column 2)"),
            ("[1,\n\n x]", "f.json:3: not JSON: a value is expected here (column 2)"),
            ("{a: 1}", "f.json:1: not JSON: a key in double quotes is expected here (column 2)"),
            ('{"a": "b', "f.json:1: not JSON: this string has no end (column 7)"),
            ('{"a": 1', "f.json:1: not JSON: the text ends too early (column 8)"),
            ('"a" "b"', "f.json:1: not JSON: there is more after the end of the JSON value (column 5)"),
            (
                '{"a": 1}\n{"a": 2}',
                (
                    "f.json:2: not JSON: there is more after the end of the JSON value (column 1)\n"
                    "  hint: one record per line is JSON Lines: name the file .jsonl"
                ),
            ),
            (
                '"a\nb"',
                (
                    "f.json:1: not JSON: a line break or control character stands inside a string (column 3)\n"
                    "  hint: write \\n for a line break inside a string"
                ),
            ),
            ('"\\q"', "f.json:1: not JSON: invalid \\escape (column 2)"),
        ],
    )
    def test_syntax_errors_have_line_and_column(self, text, expected):
        assert self.fail(text) == expected

    def test_the_line_counts_on_from_where_the_text_stands(self):
        assert self.fail("[\nx", line=7).startswith("f.json:8: not JSON")

    def test_not_utf8(self):
        assert self.fail(b'{"a":\n "caf\xc3\xa9 \xe9"}') == (
            'f.json:2: not UTF-8: byte 0xe9 at column 8\n  hint: save the file as UTF-8; in cp1252 it reads " \\"café é\\"}"'
        )

    @pytest.mark.parametrize(
        "text",
        ['{"b": 1, "c": {"a": 1,\n "b": 2,\n "a": 3}}', '{"\\u0022": 1, "c": {"a": "\\u0022\\u0022",\n\n"a": 3}}'],
    )
    def test_a_key_given_twice(self, text):
        with pytest.raises(DatasetSchemaError) as error:
            self.parse(text)
        assert text_of(error) == 'f.json:3: the key "a" is given twice in one object\n  hint: remove one of the two'

    def test_the_same_key_in_several_objects_is_fine(self):
        assert self.parse('[{"a": "\\u0022"}, {"a": {"a": "\\""}}]') == [{"a": '"'}, {"a": {"a": '"'}}]

    @pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity"])
    def test_nan_is_refused_unless_asked_for(self, word):
        text = f'{{"a": "{word}",\n"b": {word}}}'
        assert self.fail(text) == f"f.json:2: {word} is not JSON\n  hint: write a number or null"
        assert str(self.parse(text, allow_nan=True)["b"]) == str(float(word))

    @pytest.mark.parametrize(
        "text",
        [
            '["x",\n"\\ud83d"]',
            '["\\ud83d\\ude00",\n"\\ude00"]',
            '["",\n"\\ud83d\\n"]',
            '["\\\\ud83d",\n"\\ud83d\\ud83d"]',
        ],
    )
    def test_half_a_surrogate_pair(self, text):
        assert self.fail(text) == (
            "f.json:2: a string holds half of a surrogate pair, which is no character\n"
            "  hint: write the character itself, or both halves"
        )

    def test_escaped_pairs_and_nan_together(self):
        assert self.parse('["\\ud83d\\ude00", NaN, "\\\\ud83d"]', allow_nan=True)[0] == "😀"

    def test_nested_too_deeply(self):
        said = "objects and lists are nested more than 254 levels deep\n  hint: write what is deeper as a string"
        assert self.fail("[" * 200_000 + "]" * 200_000) == f"f.json:1: {said}"
        assert self.fail('{"a": "{",\n"b": ' + "[" * 600 + "]" * 600 + "}") == f"f.json:2: {said}"
        assert self.fail('{"a":' * 255 + "1" + "}" * 255) == f"f.json:1: {said}"
        assert sources.parse_json(b"[" * 254 + b"]" * 254, "f.json")

    def test_a_number_beyond_the_range_of_a_float(self):
        assert self.fail('{"a": 1e400}').startswith("f.json:1: not usable JSON: a number is too large")
        assert self.fail("-1" + "0" * 400 + ".5").startswith("f.json:1: not usable JSON: a number is too large")
        assert sources.parse_json(b'["1e400", 1e-400, 1e300]', "f.json") == ["1e400", 0.0, 1e300]
        assert sources.parse_json(b"1e400", "f.json", allow_nan=True) == float("inf")

    def test_integers_are_exact(self):
        numbers = [0, 2**63, 2**64 - 1, 2**64, -(2**63), -(2**63) - 1, 12345678901234567890123]
        assert self.parse(json.dumps(numbers)) == numbers
        assert all(type(number) is int for number in self.parse(json.dumps(numbers)))

    def test_a_number_of_thousands_of_digits(self):
        assert (
            self.fail('{"\\u0022": ' + "1" * 5_000 + "}") == "f.json:1: not usable JSON: a number has too many digits"
        )

    def test_canonical_form(self):
        assert sources.canonical_json({"b": 1, "a": "é"}) == '{"a":"é","b":1}'.encode()
        assert json.loads(sources.canonical_json({"b": 1 << 70, "a": 1})) == {"a": 1, "b": 1 << 70}
        assert sources.is_faithful(b"1", 1 << 70) is False

    @pytest.mark.parametrize(
        ("data", "value", "expected"),
        [
            (b'{"a": null}', {"a": None}, True),
            (b'{"a": "null", "b": 1.5}', {"a": "null", "b": 1.5}, True),
            (b'{"a": NaN, "b": null}', {"a": float("nan"), "b": None}, False),
            (b'{"a": 1e999}', {"a": float("inf")}, False),
            (b'{"a": 1, "a": 2}', {"a": 2}, False),
            (rb'{"a": "x\"y\n", "b": 1}', {"a": 'x"y\n', "b": 1}, True),
            (rb'{"a": "\null", "b": NaN}', {"a": "\null", "b": float("nan")}, False),
            (rb'{"b": 1, "a": "\u0022\u0022", "b": 2}', {"a": '""', "b": 2}, False),
        ],
    )
    def test_what_a_quick_parser_loses(self, data, value, expected):
        assert sources.is_faithful(data, value) is expected


class TestRelaxedJson:
    def parse(self, text, **options):
        return sources.parse_relaxed_json(text.encode(), "f.json", **options)

    def test_comments_and_trailing_commas(self):
        text = '{ // comment, with "quotes\n "a": [1, 2, /* } */ ], "b": "// no, comment,]", /* x\n*/\n}\n// end'
        assert self.parse(text) == {"a": [1, 2], "b": "// no, comment,]"}

    @pytest.mark.parametrize("text", ["// x\n{a: 1}", "// x\n{'a': 1}"])
    def test_the_rest_of_json5_is_refused(self, text):
        with pytest.raises(DatasetError, match=r"f.json:2: not JSON: a key in double quotes is expected here"):
            self.parse(text)

    def test_a_character_of_two_halves_is_whole_and_half_of_one_is_an_error(self):
        assert self.parse('{"a": "\\ud83d\\ude00",}') == {"a": "\U0001f600"}
        with pytest.raises(DatasetError) as error:
            self.parse('{"a": 1,\n "b": "x\\ud800",}')
        assert text_of(error).startswith("f.json:2: a string holds half of a surrogate pair")

    def test_errors_keep_their_position(self):
        with pytest.raises(DatasetError) as error:
            self.parse('{ // a comment\n "a": 1, /* another\n */ "b": }')
        assert text_of(error) == "f.json:3: not JSON: a value is expected here (column 10)"

    def test_doubled_keys_are_errors_here_too(self):
        with pytest.raises(DatasetError, match=r'f.json:2: the key "a" is given twice'):
            self.parse('{"a": 1, // x\n"a": 2}')

    def test_many_comments_after_a_comma_take_linear_time(self):
        assert self.parse('{"a": 1, ' + "/* x */ " * 3_000 + '"b": 2}') == {"a": 1, "b": 2}


class TestJsonLines:
    def lines(self, *lines, **options):
        problems = []
        numbered = [(number, line.encode()) for number, line in enumerate(lines, start=1)]
        values = list(sources.iter_json_lines(numbered, "f.jsonl", problems, **options))
        return values, [str(problem) for problem in problems]

    def test_values_have_line_numbers(self):
        assert self.lines("1", '{"a": 2}') == ([(1, 1), (2, {"a": 2})], [])

    def test_bad_lines_are_reported_and_the_others_read(self):
        assert self.lines("1", "{", "3", "x") == (
            [(1, 1), (3, 3)],
            [
                "f.jsonl:2: not JSON: the text ends too early (column 2)",
                "f.jsonl:4: not JSON: a value is expected here (column 1)",
            ],
        )

    def test_blank_lines(self):
        assert self.lines("1", " ", "2", "", "") == ([(1, 1), (3, 2)], [])
        assert self.lines("1", " ", "2", "", "", blank="error") == (
            [(1, 1), (3, 2)],
            ["f.jsonl:2: blank line\n  hint: remove it"],
        )

    def test_a_line_beyond_the_limit_is_reported_and_the_others_read(self):
        problems = Problems()
        lines = [(1, b"1"), (2, None), (3, b"3")]
        assert list(sources.iter_json_lines(lines, "f.jsonl", problems)) == [(1, 1), (3, 3)]
        assert list(map(str, problems.finish())) == [
            "f.jsonl:2: the line is longer than 256 MiB, the limit\n  hint: JSON Lines has one record per line"
        ]

    def test_nan(self):
        assert self.lines("NaN")[1] == ["f.jsonl:1: NaN is not JSON\n  hint: write a number or null"]
        assert self.lines("Infinity", allow_nan=True) == ([(1, float("inf"))], [])


class TestPlaces:
    def test_values_and_keys(self):
        text = '{\n "a": {"b": [10,\n 20, {"c":\n 1}]},\n "d": 2\n}'
        wanted = {(): 1, ("a",): 2, ("a", "b", 0): 2, ("a", "b", 1): 3, ("a", "b", 2, "c"): 3, ("d",): 5}
        assert sources.locate(text, wanted) == wanted

    def test_what_is_not_there_gets_its_nearest_ancestor(self):
        text = '{\n "a": {\n  "b": [\n 1]}}'
        assert sources.locate(text, [("a", "x", 3), ("a", "b", 9), ("z",)]) == {
            ("a", "x", 3): 2,
            ("a", "b", 9): 3,
            ("z",): 1,
        }

    def test_text_with_comments(self):
        text = '{ // {\n "a": "it\\"s, [", /* \n\n ] */ "b\\u0061": [1, // ,\n 2,],\n "c": 3}'
        assert sources.locate(text, [("a",), ("ba", 1), ("c",)]) == {("a",): 2, ("ba", 1): 5, ("c",): 6}

    def test_strings_with_line_breaks_in_them_and_broken_escapes(self):
        assert sources.locate('{"\\q": 1,\n"a": 1}', [("\\q",), ("a",)]) == {("\\q",): 1, ("a",): 2}

    def test_nothing_asked_nothing_read(self):
        assert sources.locate("{", []) == {}

    def test_empty_and_unbalanced_text(self):
        assert sources.locate("", [("a",)]) == {("a",): 1}
        assert sources.locate("]}, :{", [("a",)]) == {("a",): 1}
