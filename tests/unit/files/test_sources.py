import gzip
import hashlib
import json
import os

import msgspec
import pytest
import zstandard

from helm_ext import files as sources
from helm_ext.errors import DatasetError, DatasetNotFoundError, DatasetSyntaxError, Problems
from helm_ext.files import content
from helm_ext.formats.request_states.checking import read_known


def text_of(error):
    return str(error.value)


def write(path, data):
    path.write_bytes(data)
    return path


@pytest.mark.parametrize(
    ("compress", "suffix"), [(lambda data: data, ".json"), (gzip.compress, ".gz"), (zstandard.compress, ".zst")]
)
class TestReading:
    def test_whole_file_and_the_digest_of_what_is_on_disk(self, tmp_path, compress, suffix):
        data = b'{"a": 1}\n' * 30_000
        for name in (f"x{suffix}", "data.json", "data.json.gz"):  # the bytes decide, and no suffix
            path = write(tmp_path / name, compress(data))
            source = sources.read_source(path)
            assert (source.data, source.path) == (data, str(path))
            assert source.digest == hashlib.sha256(path.read_bytes()).hexdigest()

    def test_lines_are_streamed_with_the_same_digest(self, tmp_path, compress, suffix):
        lines = [b"x" * (number % 7) + str(number).encode() for number in range(50_000)]
        path = write(tmp_path / f"x{suffix}", compress(b"\n".join(lines)))
        with sources.LineSource(path) as source:
            assert [line for _, line in source] == lines
            assert source.digest == hashlib.sha256(path.read_bytes()).hexdigest()
            assert source.bytes_read == path.stat().st_size

    def test_digest_before_the_end_reads_the_rest(self, tmp_path, compress, suffix):
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
    with sources.LineSource(write(path, b"a\n")) as source:  # there is no line after the last newline
        assert list(source) == [(1, b"a")]


def no_such_file(folder):
    write(folder / "capitals.json", b"{}")
    return folder / "capitols.json"


def link_to_nowhere(folder):
    (folder / "link").symlink_to("gone")
    return folder / "link"


def pipe(folder):
    os.mkfifo(folder / "pipe")
    return folder / "pipe"


CANNOT_BE_READ = {
    "no file": (no_such_file, "{path}: no such file\n  hint: did you mean 'capitals.json'?"),
    "no folder": (
        lambda folder: folder / "no" / "x.json",
        "{path}: no such file\n  hint: there is no folder '{path.parent}'",
    ),
    "no folder but a file": (lambda folder: write(folder / "x", b"1") / "y", "{path}: no such file"),
    "a folder": (lambda folder: folder, "{path}: this is a folder, not a file\n  hint: name the file inside it"),
    "0 bytes": (lambda folder: write(folder / "x", b""), "{path}: the file is empty (0 bytes)"),
    "a link to nowhere": (
        link_to_nowhere,
        "{path}: no such file\n  hint: it is a link to gone, which leads to no file",
    ),
    "a pipe": (pipe, "{path}: this is no regular file"),
    "a null character": (lambda _: "a\0b", "a\\u0000b: the file cannot be read: "),
}


@pytest.mark.parametrize("kind", CANNOT_BE_READ)
def test_what_cannot_be_read(tmp_path, kind):
    make, said = CANNOT_BE_READ[kind]
    path = make(tmp_path)
    with pytest.raises(DatasetError) as error:
        sources.read_source(path)
    assert text_of(error).startswith(said.format(path=path))
    assert isinstance(error.value, DatasetSyntaxError if kind == "0 bytes" else DatasetNotFoundError)


@pytest.mark.parametrize(("what", "name"), [(content.Path, "open"), (content.Hashing, "read_chunk")])
def test_an_error_of_the_disk(tmp_path, monkeypatch, what, name):
    path = write(tmp_path / "x", b"1")

    def refuse(*_args, **_kwargs):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(what, name, refuse)
    with pytest.raises(DatasetError) as error:
        sources.read_source(path)
    assert text_of(error) == f"{path}: the file cannot be read: Input/output error"


@pytest.mark.parametrize(("compress", "name"), [(gzip.compress, "gzip"), (zstandard.compress, "zstd")])
class TestBrokenCompression:
    @pytest.mark.parametrize(("break_", "said"), [
        (lambda whole: whole[:-900], "the compressed data is truncated\n  hint: the file was not copied"),
        (lambda whole: whole[:12] + b"\xff" * 4_000, "no valid {name} file|truncated"),
        (lambda whole: whole + b"the rest, which is text", "no valid {name} file"),
    ], ids=["truncated", "garbage", "garbage behind it"])  # fmt: skip
    def test_is_said(self, tmp_path, compress, name, break_, said):
        path = write(tmp_path / "x", break_(compress(os.urandom(5_000))))
        with pytest.raises(DatasetSyntaxError, match=said.format(name=name)):
            sources.read_source(path)

    def test_bomb(self, tmp_path, monkeypatch, compress, name):
        path = write(tmp_path / "x", compress(b"\0" * 3_000_000))
        monkeypatch.setattr(content, "RATIO_FREE_BYTES", 1_000_000)
        monkeypatch.setattr(content, "MAX_RATIO", 100)
        with pytest.raises(DatasetSyntaxError, match=rf"{name} data of \d+ bytes expands to more than"):
            sources.read_source(path)

    def test_high_ratio_of_a_small_file_is_fine(self, tmp_path, monkeypatch, compress, name):
        monkeypatch.setattr(content, "MAX_RATIO", 100)
        path = write(tmp_path / "x", compress(b"\0" * 3_000_000))
        assert len(sources.read_source(path).data) == 3_000_000


def test_blank_lines_that_are_next_to_nothing_when_compressed_end_soon(tmp_path, monkeypatch):
    """Four thousand frames of 256 MB would be a day's work."""
    monkeypatch.setattr(content, "RATIO_FREE_BYTES", 1 << 20)
    monkeypatch.setattr(content, "MAX_RATIO", 100)
    path = write(tmp_path / "x.jsonl.zst", zstandard.compress((b" " * 255 + b"\n") * (1 << 12)) * 64)
    with (
        pytest.raises(DatasetSyntaxError, match=r"zstd data of \d+ bytes expands to more than"),
        sources.LineSource(path) as source,
    ):
        for _ in source:
            pass
    assert source.decompressed <= 1 << 22


def test_document_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(content, "MAX_DOCUMENT_BYTES", 2 << 10)
    path = write(tmp_path / "x", gzip.compress(b" " * 4_000))
    with pytest.raises(DatasetSyntaxError) as error:
        sources.read_source(path)
    assert text_of(error) == (
        f"{path}: the file is larger than 2 KiB, the limit for a file that is one JSON document\n"
        "  hint: write it as JSON Lines: one record per line"
    )


@pytest.mark.parametrize(("data", "limit", "said"), [
    (b"1\n" + b"x" * 300_000, 1 << 17, "128 KiB"), (b"1\n" + b"x" * 300_000 + b"\n2\n", 1 << 17, "128 KiB"),
    (b"1\n12345\n", 4, "4 bytes"), (b"1\n" + b"x" * (3 << 19) + b"xx", 3 << 19, "1.5 MiB"),
])  # fmt: skip
def test_line_limit(tmp_path, data, limit, said):
    path = write(tmp_path / "x", data)
    with sources.LineSource(path, max_line_bytes=limit) as source, pytest.raises(DatasetSyntaxError) as error:
        list(source)
    assert text_of(error) == (
        f"{path}:2: the line is longer than {said}, the limit\n  hint: JSON Lines has one record per line"
    )


TWICE = 'the key "a" is given twice in one object\n  hint: remove one of the two'
HALF = (
    "a string holds half of a surrogate pair, which is no character\n  hint: write the character itself, or both halves"
)
DEEP = "objects and lists are nested more than 254 levels deep\n  hint: write what is deeper as a string"
LARGE = "not usable JSON: a number is too large\n  hint: write a number or null"


class TestStrictJson:
    def parse(self, text, **options):
        data = text if isinstance(text, bytes) else text.encode()
        return sources.parse_json(data, "f.json", **options)

    def fail(self, text, **options):
        with pytest.raises(DatasetError) as error:
            self.parse(text, **options)
        return text_of(error)

    @pytest.mark.parametrize(("text", "expected"), [
        ('{"a": 1,\n "b" 2}', "2: not JSON: a colon is expected here (column 6)"),
        ('{"a": 1\n "b": 2}', "2: not JSON: a comma is expected here (column 2)"),
        ("[1,\n\n x]", "3: not JSON: a value is expected here (column 2)"),
        ("{a: 1}", "1: not JSON: a key in double quotes is expected here (column 2)"),
        ('{"a": "b', "1: not JSON: this string has no end (column 7)"),
        ('{"a": 1', "1: not JSON: the text ends too early (column 8)"),
        ('"a" "b"', "1: not JSON: there is more after the end of the JSON value (column 5)"),
        (
            '{"a": 1}\n{"a": 2}',
            (
                "2: not JSON: there is more after the end of the JSON value (column 1)\n"
                "  hint: one record per line, without commas between them, is JSON Lines: name the file .jsonl"
            ),
        ),
        (
            '"a\nb"',
            (
                "1: not JSON: a line break or control character stands inside a string (column 3)\n"
                "  hint: write \\n for a line break inside a string"
            ),
        ),
        ('"\\q"', "1: not JSON: invalid \\escape (column 2)"),
        (b'{"a":\n "caf\xc3\xa9 \xe9"}', '2: not UTF-8: byte 0xe9 at column 8\n  hint: save the file as UTF-8; in cp1252 it reads " \\"café é\\"}"'),
        ('{"b": 1, "c": {"a": 1,\n "b": 2,\n "a": 3}}', f"3: {TWICE}"),
        ('{"\\u0022": 1, "c": {"a": "\\u0022\\u0022",\n\n"a": 3}}', f"3: {TWICE}"),
        ('["x",\n"\\ud83d"]', f"2: {HALF}"), ('["\\ud83d\\ude00",\n"\\ude00"]', f"2: {HALF}"),
        ('["",\n"\\ud83d\\n"]', f"2: {HALF}"), ('["\\\\ud83d",\n"\\ud83d\\ud83d"]', f"2: {HALF}"),
        ("[" * 200_000 + "]" * 200_000, f"1: {DEEP}"),
        ('{"a": "{",\n"b": ' + "[" * 600 + "]" * 600 + "}", f"2: {DEEP}"),
        ('{"a":' * 255 + "1" + "}" * 255, f"1: {DEEP}"), ('{"a": 1e400}', f"1: {LARGE}"),
        ("-1" + "0" * 400 + ".5", f"1: {LARGE}"),
        ('{"\\u0022": ' + "1" * 5_000 + "}", "1: not usable JSON: a number has too many digits"),
    ])  # fmt: skip
    def test_errors_have_their_place(self, text, expected):
        assert self.fail(text) == f"f.json:{expected}"
        line, _, said = expected.partition(":")
        assert self.fail(text, line=7) == f"f.json:{int(line) + 6}:{said}"  # it counts on from where the text stands

    @pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity"])
    def test_nan_is_refused_unless_asked_for(self, word):
        text = f'{{"a": "{word}",\n"b": {word}}}'
        assert self.fail(text) == f"f.json:2: {word} is not JSON\n  hint: write a number or null"
        assert str(self.parse(text, allow_nan=True)["b"]) == str(float(word))

    def test_what_is_at_the_limits(self):
        assert self.parse('["\\ud83d\\ude00", NaN, "\\\\ud83d"]', allow_nan=True)[0] == "😀"
        assert self.parse("[" * 254 + "]" * 254)
        assert self.parse('["1e400", 1e-400, 1e300]') == ["1e400", 0.0, 1e300]
        assert self.parse("1e400", allow_nan=True) == float("inf")

    def test_integers_are_exact(self):
        numbers = [0, 2**63, 2**64 - 1, 2**64, -(2**63), -(2**63) - 1, 12345678901234567890123]
        assert self.parse(json.dumps(numbers)) == numbers
        assert all(type(number) is int for number in self.parse(json.dumps(numbers)))

    def test_canonical_form(self):
        assert sources.canonical_json({"b": 1, "a": "é"}) == '{"a":"é","b":1}'.encode()
        assert json.loads(sources.canonical_json({"b": 1 << 70, "a": 1})) == {"a": 1, "b": 1 << 70}
        assert sources.is_faithful(b"1", 1 << 70) is False

    @pytest.mark.parametrize("number", ["NaN", "1e999", "-1e400", "1" + "0" * 309 + ".0"])
    def test_a_quick_parser_refuses_what_is_not_finite(self, number):
        """`is_faithful` does not look for it."""
        with pytest.raises(msgspec.DecodeError):
            msgspec.json.decode(f'{{"a": {number}}}')
        assert read_known(f'{{"instance": {{"input": {{}}}}, "request": {{"temperature": {number}}}}}'.encode()) is None


class TestRelaxedJson:
    def parse(self, text, **options):
        return sources.parse_relaxed_json(text.encode(), "f.json", **options)

    def test_comments_and_trailing_commas(self):
        text = '{ // comment, with "quotes\n "a": [1, 2, /* } */ ], "b": "// no, comment,]", /* x\n*/\n}\n// end'
        assert self.parse(text) == {"a": [1, 2], "b": "// no, comment,]"}

    @pytest.mark.parametrize(("text", "said"), [
        ("// x\n{a: 1}", "2: not JSON: a key in double quotes is expected here"),
        ("// x\n{'a': 1}", "2: not JSON: a key in double quotes is expected here"),
        ('{"a": 1,\n "b": "x\\ud800",}', "2: a string holds half of a surrogate pair"),
        ('{ // a comment\n "a": 1, /* another\n */ "b": }', "3: not JSON: a value is expected here (column 10)"),
        ('{"a": 1, // x\n"a": 2}', '2: the key "a" is given twice'),
    ])  # fmt: skip
    def test_errors_keep_their_position(self, text, said):
        with pytest.raises(DatasetError) as error:
            self.parse(text)
        assert text_of(error).startswith(f"f.json:{said}")

    def test_many_comments_after_a_comma_take_linear_time(self):
        assert self.parse('{"a": 1, ' + "/* x */ " * 3_000 + '"b": 2}') == {"a": 1, "b": 2}


class TestJsonLines:
    def lines(self, *lines, **options):
        problems = []
        numbered = [(number, line.encode()) for number, line in enumerate(lines, start=1)]
        values = list(sources.iter_json_lines(numbered, "f.jsonl", problems, **options))
        return values, [str(problem) for problem in problems]

    def test_bad_lines_are_reported_and_the_others_read(self):
        assert self.lines("Infinity", allow_nan=True) == ([(1, float("inf"))], [])
        assert self.lines("1", "{", "3", "x", "NaN") == (
            [(1, 1), (3, 3)],
            [
                "f.jsonl:2: not JSON: the text ends too early (column 2)",
                "f.jsonl:4: not JSON: a value is expected here (column 1)",
                "f.jsonl:5: NaN is not JSON\n  hint: write a number or null",
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


class TestPlaces:
    def test_values_and_keys(self):
        text = '{\n "a": {"b": [10,\n 20, {"c":\n 1}]},\n "d": 2\n}'
        wanted = {(): 1, ("a",): 2, ("a", "b", 0): 2, ("a", "b", 1): 3, ("a", "b", 2, "c"): 3, ("d",): 5}
        assert sources.locate(text, wanted) == wanted

    @pytest.mark.parametrize(("text", "lines"), [
        ('{\n "a": {\n  "b": [\n 1]}}', {("a", "x", 3): 2, ("a", "b", 9): 3, ("z",): 1}),  # the nearest ancestor
        ('{ // {\n "a": "it\\"s, [", /* \n\n ] */ "b\\u0061": [1, // ,\n 2,],\n "c": 3}', {("a",): 2, ("ba", 1): 5, ("c",): 6}),
        ('{"\\q": 1,\n"a": 1}', {("\\q",): 1, ("a",): 2}), ("{", {}), ("", {("a",): 1}), ("]}, :{", {("a",): 1}),
    ])  # fmt: skip
    def test_odd_texts(self, text, lines):
        assert sources.locate(text, lines) == lines
