"""Every rule of a record and of the files, with the exact message (docs/innodata.md)."""

import json

import pytest

from helm_ext.errors import DatasetError, DatasetSchemaError, Location, Problems
from helm_ext.files import split_lines
from helm_ext.formats.innodata.hub import pack
from helm_ext.formats.innodata.hub.records import parse_record

USER = {"role": "user", "content": "Hi"}
BOT = {"role": "assistant", "content": "Hello"}
SYSTEM = {"role": "system", "content": "Be brief."}
DEEP = "objects and lists are nested more than 254 levels deep\n  hint: write what is deeper as a string"
RECORD = {"id": "1", "messages": [USER], "expected": "Hello"}


def problems_of(line):
    """Return the problems of one line as text, without path and line number."""
    found = Problems()
    data = line if isinstance(line, bytes) else json.dumps(line, ensure_ascii=False).encode()
    record = parse_record(data, Location("t.jsonl", 3), found)
    texts = [str(problem) for problem in found.finish()]
    assert (record is None) == bool(texts)
    assert all(text.startswith("t.jsonl:3: ") for text in texts)
    return [text.removeprefix("t.jsonl:3: ") for text in texts]


def codes_of(record):
    found = Problems()
    parse_record(json.dumps(record).encode(), Location("t.jsonl", 3), found)
    assert {(problem.severity, problem.kind) for problem in found.finish()} == {("error", DatasetSchemaError)}
    return [problem.code for problem in found.finish()]


def changed(**changes):
    return {**RECORD, **changes}


def chat(*messages):
    return changed(messages=list(messages))


@pytest.mark.parametrize("record", [
    RECORD, chat(SYSTEM, USER), chat(USER, BOT, USER), chat(SYSTEM, USER, BOT, USER, BOT, USER), changed(expected=""),
    chat({"role": "user", "content": ""}), changed(id=" "), changed(topic="x", n=1, deep={"a": [None, True, 1.5]}),
    changed(expected="line\u2028separator and \u0000"),
])  # fmt: skip
def test_sound_records(record):
    found = Problems()
    parsed = parse_record(json.dumps(record).encode(), Location("t.jsonl", 3), found)
    assert found.finish() == []
    assert parsed is not None
    assert {"id": parsed.id, "messages": parsed.messages, "expected": parsed.expected, **parsed.extra} == record
    assert parsed.line == 3


@pytest.mark.parametrize(("record", "expected"), [
    ([RECORD], [("not-an-object", 'expected a JSON object, got [{"id": "1", "messages": [{"role": "user", "content": "Hi"}], "expected": "Hell…')]),
    ({"messages": [USER], "expected": ""}, [("missing-key", "id: missing")]),
    (changed(id=42), [("id-type", 'id: expected a string, got 42\n  hint: write "42" in quotes')]),
    (changed(id=True), [("id-type", "id: expected a string, got true")]),
    (changed(id=None), [("id-type", "id: expected a string, got null")]),
    (changed(id=""), [("id-empty", "id: must not be empty")]),
    ({"id": "1", "messages": [USER]}, [("missing-key", 'expected: missing\n  hint: write "" if no reply is expected')]),
    ({"id": "1", "messages": [USER], "expcted": "x"}, [("missing-key", 'expected: missing\n  hint: rename "expcted" to "expected"')]),
    ({"id": "1", "message": [USER], "expected": "x"}, [("missing-key", 'messages: missing\n  hint: rename "message" to "messages"')]),
    (changed(expected=None), [("expected-type", 'expected: expected a string, got null\n  hint: write "" if no reply is expected')]),
    (changed(expected=["a"]), [("expected-type", 'expected: expected a string, got ["a"]')]),
    (changed(messages="Hi"), [("messages-type", 'messages: expected a list of messages, got "Hi"')]),
    (changed(messages=[]), [("messages-type", "messages: expected a list of messages, got []")]),
    (chat("Hi"), [("message-type", 'messages[0]: expected an object with role and content, got "Hi"')]),
    (chat({"role": "user"}), [("missing-key", "messages[0].content: missing")]),
    (chat({"content": "Hi"}), [("missing-key", "messages[0].role: missing")]),
    (chat({"role": "user", "content": None}), [("content-type", "messages[0].content: expected a string, got null")]),
    (chat({"role": "user", "content": [{"type": "text"}]}), [("content-type", 'messages[0].content: expected a string, got [{"type": "text"}]')]),
    (chat({"role": "User", "content": "Hi"}), [("role", 'messages[0].role: expected system, user or assistant, got "User"\n  hint: did you mean \'user\'?')]),
    (chat({"role": 1, "content": "Hi"}), [("role", "messages[0].role: expected system, user or assistant, got 1")]),
    (chat({"role": "tool", "content": "Hi"}), [("role", 'messages[0].role: expected system, user or assistant, got "tool"')]),
    (chat({**USER, "name": "x"}), [("message-key", "messages[0].name: unknown key\n  hint: a message has exactly role and content")]),
    (chat({**USER, "contents": "x"}), [("message-key", "messages[0].contents: unknown key\n  hint: did you mean 'content'?")]),
    (chat({**USER, "rolle": "x"}), [("message-key", "messages[0].rolle: unknown key\n  hint: did you mean 'role'?")]),
    (chat(USER, SYSTEM, USER), [
        ("system-not-first", "messages[1].role: system can only be the first message"),
        ("role-order", "messages[2].role: user and assistant must alternate, from user on: expected assistant, got user"),
    ]),
    (chat(BOT, USER), [("role-order", "messages[0].role: user and assistant must alternate, from user on: expected user, got assistant")]),
    (chat(SYSTEM, BOT, USER), [("role-order", "messages[1].role: user and assistant must alternate, from user on: expected user, got assistant")]),
    (chat(USER, USER), [("role-order", "messages[1].role: user and assistant must alternate, from user on: expected assistant, got user")]),
    (chat(USER, BOT, BOT, USER), [("role-order", "messages[2].role: user and assistant must alternate, from user on: expected user, got assistant")]),
    (chat(USER, BOT), [("role-order", "messages[1].role: the conversation must end with user, got assistant\n  hint: the reply belongs in `expected`")]),
    (chat(SYSTEM), [("role-order", "messages[0].role: the conversation must end with user, got system\n  hint: the reply belongs in `expected`")]),
    ({}, [
        ("missing-key", "id: missing"),
        ("missing-key", 'expected: missing\n  hint: write "" if no reply is expected'),
        ("missing-key", "messages: missing"),
    ]),
])  # fmt: skip
def test_broken_rules(record, expected):
    assert problems_of(record) == [message for _, message in expected]
    assert codes_of(record) == [code for code, _ in expected]


def test_all_problems_of_a_record_are_found():
    found = problems_of({"id": 1, "messages": [{"role": "x", "content": 1}, {"role": "user"}], "expected": None})
    assert [text.split(":")[0] for text in found] == [
        "id", "expected", "messages[0].role", "messages[0].content", "messages[1].content",
    ]  # fmt: skip


@pytest.mark.parametrize("message", [
    {"role": "assistant", "content": 1}, {"role": "assistant"}, {"content": ""}, {"role": "x", "content": ""}, "text",
])  # fmt: skip
def test_the_order_of_roles_is_not_judged_while_a_message_is_malformed(message):
    assert len(problems_of(chat(message))) == 1


@pytest.mark.parametrize(("line", "message"), [
    (b'{"id": "1"', "not JSON: the text ends too early (column 11)"),
    (b"\xef\xbb\xbf{}", "starts with a byte order mark (BOM)\n  hint: save as UTF-8 without BOM"),
    (
        b'{"id": "1", "messages": [], "expected": "It\x92s"}',
        'not UTF-8: byte 0x92 at column 44\n  hint: save the file as UTF-8; in cp1252 it reads "cted\\": \\"It’s\\"}"',
    ),
    (b'{"id": -Infinity}', "-Infinity is not JSON\n  hint: write a number or null"),
    (b'{"id": "\\ud800"}', "a string holds half of a surrogate pair, which is no character"),
    (b'{"id": "1", "x": {"y": 1, "y": 2}, "messages": []}', 'the key "y" is given twice in one object'),
    (b"[" * 1000 + b"]" * 1000, DEEP),
])  # fmt: skip
def test_bad_bytes(line, message):
    (found,) = problems_of(line)
    assert found.startswith(message)


LINE = json.dumps(RECORD).encode() + b"\n"


def pack_error(tmp_path, test, train=b""):
    (tmp_path / "test.jsonl").write_bytes(test)
    (tmp_path / "train.jsonl").write_bytes(train)
    with pytest.raises(DatasetError) as caught:
        pack(name="d", test=tmp_path / "test.jsonl", train=tmp_path / "train.jsonl", target=tmp_path)
    assert not (tmp_path / "d.zip").exists()
    return caught.value, str(caught.value).replace(f"{tmp_path}/", "")


def test_blank_lines_at_the_end_and_a_missing_final_newline_are_fine(tmp_path):
    for end in (b"", b"\n", b"\r\n", b"\n\n", b"\n\r\n\n"):
        (tmp_path / "t.jsonl").write_bytes(LINE.strip() + end)
        assert pack(name="d", test=tmp_path / "t.jsonl", target=tmp_path, replace=True).sizes == {"test": 1, "train": 0}


def test_a_line_that_is_too_long(tmp_path, monkeypatch):
    monkeypatch.setattr(split_lines, "__defaults__", (100,))
    _, text = pack_error(tmp_path, b"x" * 200 + b"\n" + b"y" * 20)
    assert text.startswith("test.jsonl:1: the line is longer than ")
    assert "test.jsonl:2: not JSON" in text


def test_problems_beyond_a_thousand_are_counted(tmp_path):
    error, text = pack_error(tmp_path, b"{}\n" * 400)
    assert len(error.problems) == 1001
    assert error.problems[-1].message == "... and 200 more errors like these (missing-key)"
    assert text.startswith("test.jsonl:1: id: missing\n")
