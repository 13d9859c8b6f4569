"""Records of an Innodata dataset, and what `meta.json` says of them (docs/innodata.md).

{"id": "1", "messages": [{"role": "user", "content": "2+2?"}], "expected": "4"}     a line of test.jsonl or train.jsonl
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple, TypedDict

import msgspec

from helm_ext.errors import DatasetError, Location, Problems, format_path, show
from helm_ext.files import iter_rows, parse_json, split_lines
from helm_ext.files.content import Hashing, Line

Text = Annotated[str, msgspec.Meta(min_length=1)]


class Message(TypedDict):
    """One message of a conversation."""

    role: str
    content: str


class _MessageShape(msgspec.Struct, forbid_unknown_fields=True):
    role: Literal["system", "user", "assistant"]
    content: str


class _RecordShape(msgspec.Struct):
    id: Text
    expected: str
    """What is replied; "" where nothing is."""
    messages: Annotated[list[_MessageShape], msgspec.Meta(min_length=1)]


RECORD_KEYS = _RecordShape.__struct_fields__


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


def has_shape(value: dict[str, Any], shape: type[msgspec.Struct], location: Location, problems: Problems) -> bool:
    """Tell whether an object has the keys and types of a struct; what is wrong is noted in `problems`."""
    try:
        msgspec.convert(value, shape)
    except (msgspec.ValidationError, OverflowError) as error:
        from helm_ext.formats.request_states.checking import conform

        _, findings = conform(value, shape)
        for found in findings:
            is_lacking = found.code == "missing-key" and len(found.path) == 1
            hint = found.hint or (f"there are: {', '.join(value)}" if is_lacking and value else "")
            problems.add(location.at(format_path(found.path)), found.message, hint, code=found.code)
        if not findings:
            said, _, place = str(error).partition(" - at `$")
            problems.add(location.at(place.strip(".`")), said, code="shape")
        return False
    return True


def parse_record(data: bytes, location: Location, problems: Problems) -> Record | None:
    """Parse one line and check every rule of a record; None when one is broken, each noted in `problems`."""
    value = parse_object(data, location, problems)
    if value is None or not has_shape(value, _RecordShape, location, problems):
        return None
    before = problems.errors
    _check_order(value["messages"], location, problems)
    if problems.errors > before:
        return None
    extra = {key: item for key, item in value.items() if key not in RECORD_KEYS}
    return Record(value["id"], value["messages"], value["expected"], extra, location.line or 0)


def _check_order(messages: list[Message], location: Location, problems: Problems) -> None:
    """Check the seed's rules: system first only, user and assistant alternate, user first and last."""

    def add(index: int, message: str, hint: str = "", *, code: str = "role-order") -> None:
        problems.add(location.at(f"messages[{index}].role"), message, hint, code=code)

    wanted = "user"
    for index, message in enumerate(messages):
        role = message["role"]
        if role == "system":
            if index:
                add(index, "system can only be the first message", code="system-not-first")
            continue
        if role != wanted:
            add(index, f"user and assistant must alternate, from user on: expected {wanted}, got {role}")
        wanted = "user" if role == "assistant" else "assistant"
    if (last := messages[-1]["role"]) != "user":
        hint = "the reply belongs in `expected`"
        add(len(messages) - 1, f"the conversation must end with user, got {last}", hint)


Split = Literal["test", "train"]
SPLITS: tuple[Split, ...] = ("test", "train")

META_NAME = "meta.json"
_NAME = re.compile(r"[a-z0-9]+([._-][a-z0-9]+)*")
_MAX_NAME = 128
NAME_RULE = "lower-case letters and digits, parts joined by single . _ or -, at most 128 characters"

_Size = Annotated[int, msgspec.Meta(ge=0)]
_DIGEST = re.compile(r"(?:sha256:)?[0-9a-f]{64}", re.IGNORECASE)


class _MetaShape(msgspec.Struct):
    name: str
    test_size: _Size
    train_size: _Size
    test_digest: str
    train_digest: str


META_KEYS = _MetaShape.__struct_fields__


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
    if value is None or not has_shape(value, _MetaShape, Location(path), problems):
        return None
    before, at = problems.errors, Location(path).at
    if not is_valid_name(value["name"]):
        problems.add(at("name"), f"not a dataset name: {show(value['name'])}", NAME_RULE, code="name")
    for key in ("test_digest", "train_digest"):
        if not _DIGEST.fullmatch(value[key]):
            problems.add(at(key), f"expected a SHA-256 of 64 hex digits, got {show(value[key])}", code="digest-type")
    if problems.errors > before:
        return None
    return Meta(
        name=value["name"],
        sizes={"test": value["test_size"], "train": value["train_size"]},
        digests={"test": value["test_digest"][-64:].lower(), "train": value["train_digest"][-64:].lower()},
        attributes={key: item for key, item in value.items() if key not in META_KEYS},
    )
