"""Records of an Innodata dataset: one JSON object a line, a conversation and the expected reply (formats.md, 3).

{"id": "1", "messages": [{"role": "user", "content": "2+2?"}], "expected": "4"}
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO, TypedDict

import orjson

from helm_ext.errors import DatasetSchemaError, DatasetSyntaxError, Location, Problem, did_you_mean, show

__all__ = [
    "MAX_LINE_BYTES",
    "Message",
    "ProblemList",
    "Record",
    "parse_record",
    "read_json_object",
    "read_lines",
    "read_rows",
]

MAX_LINE_BYTES = 64 << 20
"""A longer line is refused: no conversation is that long, and reading must need bounded memory."""

MAX_DEPTH = 100
"""Objects and lists within each other in one line, itself included."""

MAX_PROBLEMS = 1000
"""This many problems of a file are kept; the rest is counted."""

REQUIRED_KEYS = ("id", "messages", "expected")
ROLES = ("system", "user", "assistant")
_CHUNK = 1 << 20
_NOT_A_NUMBER = re.compile(r"-?(NaN|Infinity)")


class Message(TypedDict):
    """One message of a conversation."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class Record:
    """One record that keeps all the rules."""

    id: str
    messages: list[Message]
    expected: str
    extra: dict[str, Any]
    """The keys beyond the three, as they stand in the file."""
    line: int


class ProblemList:
    """Problems as they are found: the first thousand, and how many more there were."""

    def __init__(self) -> None:
        self.kept: list[Problem] = []
        self.left_out = 0
        self.has_errors = False

    def add(
        self,
        message: str,
        location: Location,
        *,
        code: str,
        hint: str = "",
        kind: type[DatasetSchemaError | DatasetSyntaxError | Any] = DatasetSchemaError,
        severity: Any = "error",
    ) -> None:
        """Note one problem."""
        self.has_errors = self.has_errors or severity == "error"
        if len(self.kept) < MAX_PROBLEMS:
            self.kept.append(Problem(message, location, hint=hint, severity=severity, code=code, kind=kind))
        else:
            self.left_out += 1

    def all(self, path: str) -> list[Problem]:
        """Return the problems in the order of the file, and a last one that counts those left out."""
        problems = sorted(self.kept, key=lambda problem: (problem.location.path, problem.location.line or 0))
        if self.left_out:
            message = f"{self.left_out} more problems are not listed"
            problems.append(
                Problem(message, Location(path), code="more-problems", number=self.left_out, kind=DatasetSchemaError)
            )
        return problems


def read_lines(file: BinaryIO, hashes: Any = None) -> Iterator[tuple[int, bytes | None]]:
    """Yield (number, line) for each line, split at line feeds only, without its line end (LF or CRLF).

    `hashes` (a hashlib object) is fed the bytes as they are. A line longer than MAX_LINE_BYTES is yielded as None.
    """
    number = 0
    rest: list[bytes] = []
    size = 0
    while chunk := file.read(_CHUNK):
        if hashes is not None:
            hashes.update(chunk)
        first, *others = chunk.split(b"\n")
        size += len(first)
        if size <= MAX_LINE_BYTES:
            rest.append(first)
        for other in others:
            number += 1
            yield number, _line(rest, size)
            rest, size = [other], len(other)
    if size:
        yield number + 1, _line(rest, size)


def read_rows(file: BinaryIO, path: str, problems: ProblemList, hashes: Any) -> Iterator[tuple[Location, bytes | None]]:
    """Yield every line but the blank ones at the end of the file; a blank one before is a problem.

    A line longer than MAX_LINE_BYTES is a problem too, and yielded as None. `hashes` is fed the bytes of the file.
    """
    blank = 0
    for number, line in read_lines(file, hashes):
        if line is not None and not line.strip():
            blank = blank or number
            continue
        for empty in range(blank or number, number):
            problems.add("blank line", Location(path, empty), code="blank-line", hint="remove it",
                         kind=DatasetSyntaxError)  # fmt: skip
        blank = 0
        location = Location(path, number)
        if line is None:
            message = f"longer than {MAX_LINE_BYTES} bytes"
            problems.add(message, location, code="line-too-long", kind=DatasetSyntaxError)
        yield location, line


def _line(parts: list[bytes], size: int) -> bytes | None:
    if size > MAX_LINE_BYTES:
        return None
    line = b"".join(parts)
    return line.removesuffix(b"\r")


class _DuplicateKeyError(ValueError):
    pass


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise _DuplicateKeyError(key)
            seen.add(key)
    return found


def read_json_object(data: bytes, location: Location, problems: ProblemList) -> dict[str, Any] | None:
    """Parse one strict JSON object; None when there is none, and a problem then says why.

    Strict: UTF-8 without BOM, no NaN, no lone surrogates, no key twice, integers of any size exact, and not so deep
    that Python, which reads and writes by recursion, could fail on it later.
    """
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        _explain(data, error, location, problems)
        return None
    if data.count(b"[") + data.count(b"{") > MAX_DEPTH and _is_deep(value):
        problems.add(f"nested more than {MAX_DEPTH} levels deep", location, code="too-deep", kind=DatasetSyntaxError)
        return None
    if not isinstance(value, dict):
        problems.add(f"expected a JSON object, got {show(value)}", location, code="not-an-object")
        return None
    if _may_be_inexact(data, value):
        try:
            value = _DECODER.decode(data.decode())
        except _DuplicateKeyError as error:
            problems.add(f"the key {show(str(error))} occurs twice", location, code="duplicate-key")
            return None
    return value


def _is_deep(value: Any) -> bool:
    level = [value]
    for _ in range(MAX_DEPTH):
        containers = [item for item in level if isinstance(item, (dict, list))]
        if not containers:
            return False
        level = [item for found in containers for item in (found.values() if isinstance(found, dict) else found)]
    return any(isinstance(item, (dict, list)) for item in level)


_DECODER = json.JSONDecoder(object_pairs_hook=_unique)


_ESCAPED_KEY = re.compile(rb'\\.[^"\\]*"\s*:', re.DOTALL)
"""A key with an escape in it. What follows the last escape has no backslash, so the search is linear."""


def _may_be_inexact(data: bytes, value: Mapping[str, Any]) -> bool:
    """Whether orjson may have hidden something: it takes the last of two equal keys and rounds integers over 64 bits.

    For a plain record it is enough to count how often each key's name is there; all else takes the slower parser.
    A key can also be spelled with escapes, which few need: those lines take it too.
    """
    if _ESCAPED_KEY.search(data):
        return True
    messages = value.get("messages")
    if not isinstance(messages, list) or any(data.count(key) != len(messages) for key in (b'"role"', b'"content"')):
        return True
    for key, item in value.items():
        if data.count(b'"%b"' % key.encode()) != 1 or not (item is messages or isinstance(item, (str, int))):
            return True
    return False


def _explain(data: bytes, error: orjson.JSONDecodeError, location: Location, problems: ProblemList) -> None:
    """Say why bytes are no JSON in words that help; the usual causes first."""

    def add(message: str, code: str, hint: str = "") -> None:
        problems.add(message, location, code=code, hint=hint, kind=DatasetSyntaxError)

    if data.startswith((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")):
        add("starts with a byte order mark (BOM)", "bom", "save as UTF-8 without BOM")
        return
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as bad:
        message = f"not UTF-8: byte 0x{data[bad.start]:02x} at byte {bad.start + 1} of the line"
        try:
            near = data[max(0, bad.start - 10) : bad.start + 11].decode("cp1252")
        except UnicodeDecodeError:
            add(message, "not-utf-8", "save the file as UTF-8")
        else:
            add(message, "not-utf-8", f"in cp1252 it reads {show(near)}; convert the file to UTF-8")
        return
    if match := _NOT_A_NUMBER.match(text, error.pos - 1 if text[: error.pos].endswith("-") else error.pos):
        add(f"{match.group()} is not JSON", "nan", "write null, or leave the key out")
    elif "surrogate" in error.msg:
        column = error.pos + 1
        add(f"a lone surrogate (half of a character) near column {column}", "lone-surrogate", "write the character")
    else:
        add(f"not JSON: {error.msg} (column {error.pos + 1})", "not-json")


def parse_record(data: bytes, location: Location, problems: ProblemList) -> Record | None:
    """Parse one line and check every rule of a record; None when one is broken, each noted in `problems`."""
    value = read_json_object(data, location, problems)
    if value is None:
        return None
    before = len(problems.kept) + problems.left_out

    def add(field: str, message: str, code: str, hint: str = "") -> None:
        problems.add(message, Location(location.path, location.line, field), code=code, hint=hint)

    record_id = value.get("id")
    if "id" not in value:
        add("id", "missing", "missing-key", _misspelt("id", value))
    elif not isinstance(record_id, str):
        hint = f'write "{record_id}" in quotes' if type(record_id) in {int, float} else ""
        add("id", f"expected a string, got {show(record_id)}", "id-type", hint)
    elif not record_id:
        add("id", "must not be empty", "id-empty")
    if "expected" not in value:
        add("expected", "missing", "missing-key", _misspelt("expected", value) or 'write "" if no reply is expected')
    elif not isinstance(value["expected"], str):
        hint = 'write "" if no reply is expected' if value["expected"] is None else ""
        add("expected", f"expected a string, got {show(value['expected'])}", "expected-type", hint)
    if "messages" not in value:
        add("messages", "missing", "missing-key", _misspelt("messages", value))
    elif not _is_sound(value["messages"]):
        _check_conversation(value["messages"], add)
    if len(problems.kept) + problems.left_out > before:
        return None
    extra = {key: item for key, item in value.items() if key not in REQUIRED_KEYS}
    return Record(value["id"], value["messages"], value["expected"], extra, location.line or 0)


def _misspelt(wanted: str, value: Mapping[str, Any]) -> str:
    near = [key for key in value if key not in REQUIRED_KEYS and did_you_mean(key, [wanted])]
    return f"rename {show(near[0])} to {show(wanted)}" if near else ""


def _is_sound(messages: Any) -> bool:
    """Whether a conversation keeps all rules, told quickly; `_check_conversation` says which rule is broken."""
    wanted = "user"
    for index, message in enumerate(messages if isinstance(messages, list) else ()):
        if type(message) is not dict or len(message) != 2 or type(message.get("content")) is not str:
            return False
        if message.get("role") == wanted:
            wanted = "assistant" if wanted == "user" else "user"
        elif index or message.get("role") != "system":
            return False
    return wanted == "assistant"


def _check_conversation(messages: Any, add: Any) -> None:
    """Check the seed's rules: system first only, user and assistant alternate, user first and last."""
    if not isinstance(messages, list):
        add("messages", f"expected a list, got {show(messages)}", "messages-type")
        return
    if not messages:
        add("messages", "must not be empty", "messages-empty")
        return
    well_formed = True
    for index, message in enumerate(messages):
        well_formed &= _check_message(message, f"messages[{index}]", add)
    if not well_formed:
        return  # the order of roles means nothing while a role is unknown
    wanted = "user"
    for index, message in enumerate(messages):
        role, field = message["role"], f"messages[{index}].role"
        if role == "system":
            if index:
                add(field, "system can only be the first message", "system-not-first")
            continue
        if role != wanted:
            if wanted == "user" and not any(m["role"] != "system" for m in messages[:index]):
                add(field, "the conversation must start with user, got assistant", "role-order")
            else:
                add(field, f"user and assistant must alternate: expected {wanted}, got {role}", "role-order")
        wanted = "user" if role == "assistant" else "assistant"
    if not any(message["role"] == "user" for message in messages):
        add("messages", "at least one message must be from user", "no-user")
    elif messages[-1]["role"] != "user":
        field = f"messages[{len(messages) - 1}].role"
        add(field, f"the conversation must end with user, got {messages[-1]['role']}", "role-order",
            "the reply belongs in `expected`")  # fmt: skip


def _check_message(message: Any, field: str, add: Any) -> bool:
    if not isinstance(message, dict):
        add(field, f"expected an object with role and content, got {show(message)}", "message-type")
        return False
    fine = True
    for key in message:
        if key not in ("role", "content"):
            hint = did_you_mean(key, ("role", "content")) or "a message has exactly role and content"
            add(f"{field}.{key}", "unknown key", "message-key", hint)
            fine = False
    role = message.get("role")
    if "role" not in message:
        add(f"{field}.role", "missing", "missing-key")
        fine = False
    elif not isinstance(role, str) or role not in ROLES:
        hint = did_you_mean(role, ROLES) if isinstance(role, str) else ""
        add(f"{field}.role", f"expected system, user or assistant, got {show(role)}", "role", hint)
        fine = False
    if "content" not in message:
        add(f"{field}.content", "missing", "missing-key")
        fine = False
    elif not isinstance(message["content"], str):
        add(f"{field}.content", f"expected a string, got {show(message['content'])}", "content-type")
        fine = False
    return fine
