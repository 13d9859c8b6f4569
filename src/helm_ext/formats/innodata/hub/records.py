"""Records of an Innodata dataset, and what `meta.json` says of them (docs/innodata.md).

{"id": "1", "messages": [{"role": "user", "content": "2+2?"}], "expected": "4"}     a line of test.jsonl or train.jsonl
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypedDict

from helm_ext.errors import DatasetError, Location, Problems, did_you_mean, near_words, show
from helm_ext.files import iter_rows, parse_json, split_lines
from helm_ext.files.content import Hashing, Line

RECORD_KEYS = ("id", "expected", "messages")
ROLES = ("system", "user", "assistant")
_MESSAGE_KEYS = frozenset({"role", "content"})


class Message(TypedDict):
    """One message of a conversation."""

    role: str
    content: str


class Record(NamedTuple):
    """One record that keeps all the rules."""

    id: str
    messages: list[Message]
    expected: str
    extra: dict[str, Any]
    """The keys beyond the three, as they stand in the file."""
    line: int


def read_rows(file: Hashing, path: str, problems: Problems) -> Iterator[Line]:
    """Return the lines but for the blank ones at the end of the file; a blank one before is a problem.

    A line that is too long is a problem too, and yielded as None.
    """
    return iter_rows(split_lines(file.read_chunk), path, problems, blank="error")


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
    before, at = problems.errors, location.at
    record_id, expected = value.get("id"), value.get("expected")
    no_reply = 'write "" if no reply is expected'
    for key in RECORD_KEYS:
        if key not in value:
            hint = suggest_rename(key, value) or (no_reply if key == "expected" else "")
            problems.add(at(key), "missing", hint, code="missing-key")
    if "id" in value and not isinstance(record_id, str):
        hint = f'write "{record_id}" in quotes' if type(record_id) in {int, float} else ""
        problems.add(at("id"), f"expected a string, got {show(record_id)}", hint, code="id-type")
    elif record_id == "":
        problems.add(at("id"), "must not be empty", code="id-empty")
    if "expected" in value and not isinstance(expected, str):
        hint = no_reply if expected is None else ""
        problems.add(at("expected"), f"expected a string, got {show(expected)}", hint, code="expected-type")
    if "messages" in value:
        _check_conversation(value["messages"], location, problems)
    if problems.errors > before:
        return None
    extra = {key: item for key, item in value.items() if key not in RECORD_KEYS}
    return Record(value["id"], value["messages"], value["expected"], extra, location.line or 0)


def suggest_rename(wanted: str, value: Mapping[str, Any], known: Collection[str] = RECORD_KEYS) -> str:
    """Return a hint to the key of `value` that was meant to be `wanted`, "" where none is near. `known` are others."""
    near = near_words(wanted, (key for key in value if key not in known))
    return f"rename {show(near[0])} to {show(wanted)}" if near else ""


def _check_conversation(messages: Any, location: Location, problems: Problems) -> None:
    """Check the seed's rules: system first only, user and assistant alternate, user first and last."""
    if not isinstance(messages, list) or not messages:
        message = f"expected a list of messages, got {show(messages)}"
        problems.add(location.at("messages"), message, code="messages-type")
        return
    wanted, are_known = "user", True
    for index, message in enumerate(messages):
        if type(message) is not dict or message.keys() != _MESSAGE_KEYS or type(message["content"]) is not str:
            are_known = False  # the order of roles means nothing then
            _note_message(message, location.at(f"messages[{index}]"), problems)
            continue
        role = message["role"]
        if role not in ROLES:
            are_known = False
            _note_message(message, location.at(f"messages[{index}]"), problems)
        elif role == "system":
            if index:
                place, said = location.at(f"messages[{index}].role"), "system can only be the first message"
                problems.add(place, said, code="system-not-first")
        else:
            if role != wanted and are_known:
                said = f"user and assistant must alternate, from user on: expected {wanted}, got {role}"
                problems.add(location.at(f"messages[{index}].role"), said, code="role-order")
            wanted = "user" if role == "assistant" else "assistant"
    if are_known and (last := messages[-1]["role"]) != "user":
        said, hint = f"the conversation must end with user, got {last}", "the reply belongs in `expected`"
        problems.add(location.at(f"messages[{len(messages) - 1}].role"), said, hint, code="role-order")


def _note_message(message: Any, location: Location, problems: Problems) -> None:
    """Say what is wrong with a message that is malformed."""
    if not isinstance(message, dict):
        said = f"expected an object with role and content, got {show(message)}"
        problems.add(location, said, code="message-type")
        return
    for key in message:
        if key not in _MESSAGE_KEYS:
            hint = did_you_mean(key, ("role", "content")) or "a message has exactly role and content"
            problems.add(location.at(f"{location.field}.{key}"), "unknown key", hint, code="message-key")
    for key in ("role", "content"):
        value, place = message.get(key), location.at(f"{location.field}.{key}")
        if key not in message:
            problems.add(place, "missing", code="missing-key")
        elif key == "role" and value not in ROLES:
            hint = did_you_mean(value, ROLES) if isinstance(value, str) else ""
            problems.add(place, f"expected system, user or assistant, got {show(value)}", hint, code="role")
        elif not isinstance(value, str):
            problems.add(place, f"expected a string, got {show(value)}", code="content-type")


Split = Literal["test", "train"]
SPLITS: tuple[Split, ...] = ("test", "train")

META_NAME = "meta.json"
META_KEYS = ("name", "test_size", "train_size", "test_digest", "train_digest")

_NAME = re.compile(r"[a-z0-9]+([._-][a-z0-9]+)*")
_MAX_NAME = 128
NAME_RULE = "lower-case letters and digits, parts joined by single . _ or -, at most 128 characters"

_DIGEST = re.compile(r"(?:sha256:)?([0-9a-f]{64})", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Meta:
    """The content of `meta.json`."""

    name: str
    sizes: dict[Split, int]
    """Records in each split."""
    digests: dict[Split, str]
    """SHA-256 of each member's bytes, 64 lower-case hex digits."""
    attributes: dict[str, Any]
    """All other keys (severity, task, ...), any JSON value, in the order of the file."""


def is_valid_name(name: str) -> bool:
    """Whether a dataset may be called so."""
    return len(name) <= _MAX_NAME and _NAME.fullmatch(name) is not None


def parse_meta(data: bytes, path: str, problems: Problems) -> Meta | None:
    """Parse `meta.json`; None when a rule is broken, each noted in `problems`."""
    value = parse_object(data, Location(path), problems)
    if value is None:
        return None
    errors, at = problems.errors, Location(path).at
    for key in META_KEYS:
        if key not in value:
            problems.add(at(key), "missing", suggest_rename(key, value, META_KEYS), code="missing-key")
    name = value.get("name")
    if "name" in value and not (isinstance(name, str) and is_valid_name(name)):
        problems.add(at("name"), f"not a dataset name: {show(name)}", NAME_RULE, code="name")
    for key in ("test_size", "train_size"):
        size = value.get(key)
        if key in value and (type(size) is not int or size < 0):
            problems.add(at(key), f"expected a number of records, got {show(size)}", code="size-type")
    for key in ("test_digest", "train_digest"):
        digest = value.get(key)
        if key in value and not (isinstance(digest, str) and _DIGEST.fullmatch(digest)):
            problems.add(at(key), f"expected a SHA-256 of 64 hex digits, got {show(digest)}", code="digest-type")
    if problems.errors > errors:
        return None
    return Meta(
        name=value["name"],
        sizes={"test": value["test_size"], "train": value["train_size"]},
        digests={"test": value["test_digest"][-64:].lower(), "train": value["train_digest"][-64:].lower()},
        attributes={key: item for key, item in value.items() if key not in META_KEYS},
    )
