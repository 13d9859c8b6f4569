"""Records of an Innodata dataset: one JSON object a line, a conversation and the expected reply (docs/innodata.md).

{"id": "1", "messages": [{"role": "user", "content": "2+2?"}], "expected": "4"}
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO, TypedDict

from helm_ext.errors import DatasetError, Location, Problems, did_you_mean, near_words, show
from helm_ext.files import iter_rows, parse_json, split_lines
from helm_ext.files.content import Line
from helm_ext.files.limits import READ_BYTES

REQUIRED_KEYS = ("id", "expected", "messages")
ROLES = ("system", "user", "assistant")


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


def read_rows(file: BinaryIO, path: str, problems: Problems, hashes: Any) -> Iterator[Line]:
    """Return the lines but for the blank ones at the end of the file; a blank one before is a problem.

    A line that is too long is a problem too, and yielded as None. `hashes` (of hashlib) is fed the bytes of the file.
    """

    def read_chunk() -> bytes:
        chunk = file.read(READ_BYTES)
        hashes.update(chunk)
        return chunk

    return iter_rows(split_lines(read_chunk), path, problems, blank="error")


def parse_object(data: bytes, location: Location, problems: Problems) -> dict[str, Any] | None:
    """Parse one strict JSON object (`files.parse_json`); None when there is none, and a problem then says why."""
    try:
        value = parse_json(data, location.path, location.line or 1)
    except DatasetError as error:
        problems.extend(error.problems)
        return None
    if not isinstance(value, dict):
        problems.add(location, f"expected a JSON object, got {show(value)}", code="not-an-object")
        return None
    return value


def parse_record(data: bytes, location: Location, problems: Problems) -> Record | None:
    """Parse one line and check every rule of a record; None when one is broken, each noted in `problems`."""
    value = parse_object(data, location, problems)
    if value is None:
        return None
    before = problems.errors

    def add(field: str, message: str, code: str, hint: str = "") -> None:
        problems.add(Location(location.path, location.line, field), message, hint, code=code)

    record_id, expected = value.get("id"), value.get("expected")
    no_reply = 'write "" if no reply is expected'
    for key in REQUIRED_KEYS:
        if key not in value:
            add(key, "missing", "missing-key", suggest_rename(key, value) or (no_reply if key == "expected" else ""))
    if "id" in value and not isinstance(record_id, str):
        hint = f'write "{record_id}" in quotes' if type(record_id) in {int, float} else ""
        add("id", f"expected a string, got {show(record_id)}", "id-type", hint)
    elif record_id == "":
        add("id", "must not be empty", "id-empty")
    if "expected" in value and not isinstance(expected, str):
        hint = no_reply if expected is None else ""
        add("expected", f"expected a string, got {show(expected)}", "expected-type", hint)
    if "messages" in value and not _is_sound(value["messages"]):
        _check_conversation(value["messages"], add)
    if problems.errors > before:
        return None
    extra = {key: item for key, item in value.items() if key not in REQUIRED_KEYS}
    return Record(value["id"], value["messages"], value["expected"], extra, location.line or 0)


def suggest_rename(wanted: str, value: Mapping[str, Any], known: Collection[str] = REQUIRED_KEYS) -> str:
    """Return a hint to the key of `value` that was meant to be `wanted`, "" where none is near. `known` are others."""
    near = near_words(wanted, (key for key in value if key not in known))
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


_Add = Callable[..., None]
"""Takes field, message, code and hint."""


def _check_conversation(messages: Any, add: _Add) -> None:
    """Check the seed's rules: system first only, user and assistant alternate, user first and last."""
    if not isinstance(messages, list):
        add("messages", f"expected a list, got {show(messages)}", "messages-type")
        return
    if not messages:
        add("messages", "must not be empty", "messages-empty")
        return
    sound = [_check_message(message, f"messages[{index}]", add) for index, message in enumerate(messages)]
    if not all(sound):
        return  # the order of roles means nothing while a role is unknown
    wanted, has_begun = "user", False
    for index, message in enumerate(messages):
        role, field = message["role"], f"messages[{index}].role"
        if role == "system":
            if index:
                add(field, "system can only be the first message", "system-not-first")
            continue
        if role != wanted and has_begun:
            add(field, f"user and assistant must alternate: expected {wanted}, got {role}", "role-order")
        elif role != wanted:
            add(field, "the conversation must start with user, got assistant", "role-order")
        wanted, has_begun = "user" if role == "assistant" else "assistant", True
    last = messages[-1]["role"]
    if not any(message["role"] == "user" for message in messages):
        add("messages", "at least one message must be from user", "no-user")
    elif last != "user":
        message = f"the conversation must end with user, got {last}"
        add(f"messages[{len(messages) - 1}].role", message, "role-order", "the reply belongs in `expected`")


def _check_message(message: Any, field: str, add: _Add) -> bool:
    """Note what is wrong with a message, and return whether nothing is."""
    if not isinstance(message, dict):
        add(field, f"expected an object with role and content, got {show(message)}", "message-type")
        return False
    problems: list[tuple[str, str, str, str]] = []
    for key in message:
        if key not in ("role", "content"):
            hint = did_you_mean(key, ("role", "content")) or "a message has exactly role and content"
            problems.append((f"{field}.{key}", "unknown key", "message-key", hint))
    for key in ("role", "content"):
        value, place = message.get(key), f"{field}.{key}"
        if key not in message:
            problems.append((place, "missing", "missing-key", ""))
        elif key == "role" and value not in ROLES:
            hint = did_you_mean(value, ROLES) if isinstance(value, str) else ""
            problems.append((place, f"expected system, user or assistant, got {show(value)}", "role", hint))
        elif not isinstance(value, str):
            problems.append((place, f"expected a string, got {show(value)}", "content-type", ""))
    for problem in problems:
        add(*problem)
    return not problems
