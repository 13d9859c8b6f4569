"""Records become HELM's instances: alone, or with replies recorded earlier (JSON Lines of `{id, reply}`).

chat    messages are sent as they are, system included; the model's own template makes the prompt
text    System: You are terse.⏎⏎User: 2+2?⏎⏎Assistant: 4⏎⏎User: 3+3?⏎⏎Assistant:

Their attributes are what reports of a bundle can be grouped by (docs/innodata.md, "Attributes").
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from helm_ext.errors import (
    DatasetIntegrityError,
    DatasetNotFoundError,
    Location,
    Problem,
    Problems,
    count,
    show,
)
from helm_ext.evalset import EXTRA_KEY, STATUSES, Recorded, RowExtra
from helm_ext.files.content import Hashing
from helm_ext.files.store import RowStore
from helm_ext.formats.innodata.hub.records import Message, Record, parse_object, read_rows

if TYPE_CHECKING:
    from helm.benchmark.scenarios.scenario import Instance

_ROLE_TITLES = {"system": "System", "user": "User", "assistant": "Assistant"}


def to_instance(
    own_attributes: Mapping[str, str],
    attributes: Mapping[str, Sequence[str]],
    render: str,
    stored: tuple[Record, Recorded | None],
) -> Instance:
    """Return a record as an instance, with what is recorded of it.

    `attributes`: what reports are grouped by; `own_attributes`: the dataset's.
    """
    from helm.benchmark.scenarios.scenario import CORRECT_TAG, TEST_SPLIT, Input, Instance, Output, Reference

    record, recorded = stored
    extra: RowExtra = {}
    if record.extra:
        extra["data"] = record.extra
    mine = {key: text for key, text in own_attributes.items() if key in attributes and key not in record.extra}
    mine |= short_attributes({key: value for key, value in record.extra.items() if key in attributes})
    if mine:
        extra["attributes"] = {key: mine[key] for key in attributes if key in mine}
    if recorded is not None:
        extra["only"] = "recorded"  # who names replies wants them scored: another model is refused, not asked
        extra["recorded"] = recorded
    if render == "chat":
        shown = Input(messages=[{"role": m["role"], "content": m["content"]} for m in record.messages])
    else:
        shown = Input(text=render_text(record.messages))
    return Instance(
        input=shown,
        references=[Reference(Output(record.expected), tags=[CORRECT_TAG])],
        split=TEST_SPLIT,
        id=record.id,
        extra_data={EXTRA_KEY: extra},
    )


def render_text(messages: Iterable[Message]) -> str:
    """Write a conversation as a text prompt that ends where the assistant's reply begins."""
    turns = [f"{_ROLE_TITLES[message['role']]}: {message['content']}" for message in messages]
    return "\n\n".join([*turns, "Assistant:"])


_MAX_VALUES = 20
_MAX_LENGTH = 40
"""Characters of an attribute's name, and of a value: both stand in the titles of tables and columns."""
_NOT_GROUPED = ("description", "display_name", "license", "source", "url", "author", "citation")
"""Attributes that describe a dataset and do not divide it."""


class AttributeValues:
    """What reports can be grouped by, noted while records are read: each attribute and the values that occur.

    An attribute is a key of `meta.json` or an extra key of records, short itself, whose values are short strings, whole
    numbers or true/false, with at most 20 different ones. A record's own value goes before the dataset's; with null or
    "" a record has none. Nor has it with a value of another kind, unless most records have such values: then the key is
    no attribute.
    """

    def __init__(self) -> None:
        self._records = 0
        self._own = Counter[str]()
        """How many records have the key."""
        self._values: dict[str, Counter[str]] = {}
        self._odd = Counter[str]()
        """How many records have a value of another kind, of which the first is kept."""
        self._first_odd: dict[str, tuple[int, str]] = {}

    def add(self, record: Record) -> None:
        """Note the values of a record."""
        self._records += 1
        for key, value in record.extra.items():
            self._own[key] += 1
            if (text := _as_value(key, value)) is not None:
                self._note(key, text)
            elif not _is_empty(value):
                self._odd[key] += 1
                self._first_odd.setdefault(key, (record.line, show(value)))

    def finish(self, meta_attributes: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
        """Return the attributes by name, the values of each sorted, with those that the dataset has of its own."""
        for key, text in short_attributes(meta_attributes).items():
            if self._own[key] < self._records:  # else every record has a value of its own
                self._note(key, text)
        found = {key: tuple(sorted(values)) for key, values in sorted(self._values.items())}
        return {
            key: values
            for key, values in found.items()
            if len(values) <= _MAX_VALUES and self._odd[key] < self._values[key].total()
        }

    def warn(self, attributes: Iterable[str], path: str) -> Iterator[Problem]:
        """Yield a warning for each of these attributes of which a record of the file has a value of another kind."""
        for key in attributes:
            if number := self._odd[key]:
                line, shown = self._first_odd[key]
                records = count(number, "record is", "records are")
                message = f"{shown} is no value that reports can be grouped by: {records} in no group of {key}"
                hint = f"a text of at most {_MAX_LENGTH} characters, a whole number, true or false; null for none"
                yield Problem.warning(Location(path, line, key), message, hint, code="odd-attribute")

    def _note(self, key: str, text: str) -> None:
        values = self._values.setdefault(key, Counter())
        if text in values or len(values) <= _MAX_VALUES:
            values[text] += 1


def short_attributes(values: Mapping[str, Any]) -> dict[str, str]:
    """Return the attributes that can be shown, as they are shown."""
    return {key: text for key, value in values.items() if (text := _as_value(key, value))}


def _is_empty(value: Any) -> bool:
    return value is None or (isinstance(value, str) and not value.strip())


def _as_value(key: str, value: Any) -> str | None:
    """Return an attribute's value as it is shown, or None for one that is no short scalar, or has no short name."""
    if key in _NOT_GROUPED or not isinstance(value, (str, int)) or not _is_short(key):
        return None
    text = str(value).lower() if isinstance(value, bool) else str(value).strip()
    return text if _is_short(text) else None


def _is_short(text: str) -> bool:
    return 0 < len(text) <= _MAX_LENGTH and text.isprintable()


@dataclass
class Replies:
    """What is known of a file of replies."""

    numbers: array[int]
    """Of each record to be scored: which stored reply is its own, from 1; 0 where there is none."""
    store: RowStore[dict[str, Any]]
    digest: str = ""
    """SHA-256 of the file, lower-case hex."""
    recorded: int = 0
    """How many records have one."""


def read_replies(
    path: Path, ids: Mapping[str, int] | None, count: int, split: str, problems: Problems, *, kept: float | None = None
) -> Replies:
    """Read `{id, reply}` lines; return those of the first `count` records, and note in `problems` what is wrong.

    `ids` are those of all records of `split`, as it is called in messages, each with its place; of None they are not
    compared: where records are damaged nobody knows which there are. `kept`: replies that stay in memory, if there are
    no more; None where the file is only checked.
    """
    store = RowStore(dict[str, Any], kept or 0)
    replies = Replies(array("I", bytes(4 * count)), store)
    lines: dict[str, int] = {}  # of the replies, null or not
    nulls = 0
    for location, value in _read_objects(path, replies, problems):
        record_id, number = _check_reply(value, location, problems), location.line or 0
        if record_id is None:
            continue
        at = location.at("id")
        if record_id in lines:
            message = f"{show(record_id)} occurs already in line {lines[record_id]}"
            problems.add(at, message, code="duplicate-id", kind=DatasetIntegrityError)
            continue
        lines[record_id] = number
        if ids is None:
            continue
        place = ids.get(record_id)
        if place is None:
            message, hint = f"{show(record_id)} is no record of {split}", "replies belong to one split of one dataset"
            problems.add(at, message, hint, code="unknown-id", kind=DatasetIntegrityError)
        elif place < count and value["reply"] is None:
            nulls += 1
        elif place < count:
            replies.recorded += 1
            replies.numbers[place] = replies.recorded
            if kept is not None:
                store.add(value)
    if ids is not None and not replies.recorded and not problems.errors:
        message = f"holds no reply to any of the {count} records of {split}" + (f", {nulls} are null" * (nulls > 0))
        hint = 'one {"id": ..., "reply": ...} a line; null says that a record was not run'
        problems.add(Location(str(path)), message, hint, code="no-replies", kind=DatasetIntegrityError)
    store.finish()
    return replies


def _read_objects(path: Path, replies: Replies, problems: Problems) -> Iterator[tuple[Location, dict[str, Any]]]:
    try:
        with path.open("rb") as file:
            read = Hashing(file)
            for number, line in read_rows(read, str(path), problems):
                location = Location(str(path), number)
                if line is None:
                    continue
                if number == 1 and line.lstrip().startswith(b"["):  # else each of its lines would be a problem
                    message, hint = "a JSON array, expected one object a line", "jq -c '.[]' FILE writes an array so"
                    problems.add(location, message, hint, code="json-array")
                    return
                value = parse_object(line, location, problems)
                if value is not None:
                    yield location, value
            replies.digest = read.hash.hexdigest()
    except OSError as error:
        message = f"replies cannot be read: {error.strerror}"
        problems.add(Location(str(path)), message, code="unreadable", kind=DatasetNotFoundError)


_REPLY_KEYS = ("id", "reply", "request_time", "request_datetime")


def _check_reply(value: Mapping[str, Any], location: Location, problems: Problems) -> str | None:
    before, at = problems.errors, location.at
    unknown, record_id = [key for key in value if key not in _REPLY_KEYS], value.get("id")
    for key in unknown:
        problems.add(at(key), "unknown key", f"known: {', '.join(_REPLY_KEYS)}", code="unknown-key")
    if not isinstance(record_id, str):
        hint = f'write "{record_id}" in quotes' if type(record_id) is int else ""
        said = f"expected a string, got {show(record_id)}" if "id" in value else "missing"
        problems.add(at("id"), said, hint, code="id-type")
    if "reply" not in value:
        texts = [key for key in unknown if isinstance(value[key], str)]
        hint = f'rename {show(texts[0])} to "reply"' if len(texts) == 1 else "write null for a record that was not run"
        problems.add(at("reply"), "missing", hint, code="missing-key")
    elif not isinstance(value["reply"], str) and value["reply"] is not None:
        hint = f'write "{value["reply"]}" in quotes' if type(value["reply"]) in {int, float} else ""
        problems.add(at("reply"), f"expected a string or null, got {show(value['reply'])}", hint, code="reply-type")
    for key in ("request_time", "request_datetime"):
        number = value.get(key)
        if number is not None and (isinstance(number, bool) or not isinstance(number, (int, float)) or number < 0):
            problems.add(at(key), f"expected a number that is not negative, got {show(number)}", code="time")
    return value["id"] if problems.errors == before else None


def to_recorded(value: Mapping[str, Any] | None) -> Recorded:
    """Return a reply as HELM has it; None: the record has none."""
    if value is None:
        return {"status": "not_run", "states": []}
    result: dict[str, Any] = {"success": True, "completions": [{"text": value["reply"]}]}
    for key in ("request_time", "request_datetime"):
        if value.get(key) is not None:
            result[key] = value[key]
    return {"status": "ok", "states": [{"result": result}]}


@dataclass(frozen=True, kw_only=True)
class _RepliedRecords:
    """Reads records together with their replies, if there are any: then a number is a pair, the record's, and its
    reply's from 1; 0: none.
    """

    records: RowStore[Record]
    replies: Replies | None

    def read(self, numbers: Sequence[Any]) -> Iterator[tuple[Record, Recorded | None]]:
        """Yield the records of these numbers with what is recorded of them."""
        if self.replies is None:
            yield from ((record, None) for record in self.records.read(numbers))
            return
        records = self.records.read([record for record, _ in numbers])
        replies = self.replies.store.read([reply - 1 for _, reply in numbers if reply])
        for record, (_, reply) in zip(records, numbers, strict=True):
            yield record, to_recorded(next(replies) if reply else None)


def make_instances(
    records: RowStore[Record],
    replies: Replies | None,
    ids: Sequence[str] | None,
    make: Callable[[tuple[Record, Recorded | None]], Instance],
) -> Sequence[Instance]:
    """Return the instances of records; of many, those that are made when somebody looks at them.

    `ids`: where models may be asked about them: HELM wants to know ids before that.
    """
    import numpy as np
    from helm.benchmark.scenarios.scenario import TEST_SPLIT

    from helm_ext.evalset.rows import RECORDED, StoredRows, find_unrecorded

    number = len(records)
    nothing = np.zeros(number, np.uint8)
    rows = StoredRows(
        store=_RepliedRecords(records=records, replies=replies),
        make=make,
        numbers=np.arange(number),
        splits=(TEST_SPLIT,),
        split=nothing,
        only=nothing,
        ids=ids,
    )
    if replies is not None:
        found = np.frombuffer(replies.numbers, np.uint32)
        (example,) = to_recorded({"reply": ""})["states"]
        rows = replace(
            rows,
            numbers=np.column_stack([np.arange(number, dtype=np.uint32), found]),
            only=np.full(number, RECORDED, np.uint8),
            status=np.where(found > 0, STATUSES.index("ok"), STATUSES.index("not_run")).astype(np.uint8),
            unrecorded=np.where(found > 0, find_unrecorded(example), 0).astype(np.uint8),
        )
    return rows if records.kept is None else list(rows)
