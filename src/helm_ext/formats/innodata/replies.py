"""Replies recorded earlier, scored instead of asking a model: JSON Lines of `{id, reply}`; and instances with them."""

from __future__ import annotations

import hashlib
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from helm_ext.errors import (
    DatasetIntegrityError,
    DatasetNotFoundError,
    Location,
    Problems,
    show,
)
from helm_ext.evalset import Recorded
from helm_ext.files.store import RowStore
from helm_ext.formats.innodata.hub.records import Record, parse_object, read_rows

if TYPE_CHECKING:
    from helm.benchmark.scenarios.scenario import Instance


def hash_id(record_id: str) -> bytes:
    """Return 16 bytes, of which nobody can find two ids that share them: equal ones are taken for equal ids."""
    return hashlib.blake2b(record_id.encode(), digest_size=16).digest()


class RecordIds:
    """Which record has an id. All are added before the first is looked for."""

    def __init__(self) -> None:
        self._hashes = bytearray()
        self._firsts = array("Q")
        """The first halves of the hashes, sorted; beside them the second halves, and the places."""
        self._seconds = array("Q")
        self._places = array("I")

    def __len__(self) -> int:
        return len(self._hashes) // 16 + len(self._places)

    def add(self, record_id: str) -> None:
        """Add the id of the next record."""
        self._hashes += hash_id(record_id)

    def find(self, hashed: bytes) -> int | None:
        """Return the place of the record with an id of this hash, from 0; None where there is none."""
        if self._hashes:
            self._sort()
        first, second = int.from_bytes(hashed[:8], "little"), int.from_bytes(hashed[8:], "little")
        at = bisect_left(self._firsts, first)
        while at < len(self._firsts) and self._firsts[at] == first:
            if self._seconds[at] == second:
                return self._places[at]
            at += 1
        return None

    def _sort(self) -> None:
        import numpy as np

        halves = np.frombuffer(bytes(self._hashes), "<u8").astype(np.uint64).reshape(-1, 2)
        order = np.argsort(halves[:, 0], kind="stable")
        self._firsts = array("Q", halves[order, 0].tobytes())
        self._seconds = array("Q", halves[order, 1].tobytes())
        self._places = array("I", order.astype(np.uint32).tobytes())
        self._hashes = bytearray()


@dataclass
class Replies:
    """What is known of a file of replies."""

    numbers: array[int]
    """Of each record to be scored: which stored reply is its own, from 1; 0 where there is none."""
    store: RowStore[Mapping[str, Any]]
    digest: str = ""
    """SHA-256 of the file, lower-case hex."""
    recorded: int = 0
    """How many records have one."""


def _pack(reply: Mapping[str, Any]) -> tuple[Mapping[str, Any]]:
    return (reply,)


def read_replies(
    path: Path, ids: RecordIds | None, count: int, split: str, problems: Problems, *, kept: float | None = None
) -> Replies:
    """Read `{id, reply}` lines; return those of the first `count` records, and note in `problems` what is wrong.

    `ids` are those of all records of `split`, as it is called in messages; of None they are not compared: where records
    are damaged nobody knows which there are. `kept`: replies that stay in memory, if there are no more; None where the
    file is only checked.
    """
    store: RowStore[Mapping[str, Any]] = RowStore(_pack, itemgetter(0), kept or 0)
    known = ids if ids is not None else RecordIds()
    replies = Replies(array("I", bytes(4 * count)), store)
    seen = array("I", bytes(4 * len(known)))  # the line of each record's reply, null or not
    others: dict[bytes, int] = {}  # and of ids that no record has
    for location, value in _read_objects(path, replies, problems):
        record_id, number = _check_reply(value, location, problems), location.line or 0
        if record_id is None:
            continue
        hashed = hash_id(record_id)
        place = known.find(hashed)
        before = others.get(hashed) if place is None else seen[place]
        at = Location(location.path, number, "id")
        if before:
            message = f"{show(record_id)} occurs already in line {before}"
            problems.add(at, message, code="duplicate-id", kind=DatasetIntegrityError)
        elif place is not None:
            seen[place] = number
            if place < count and value["reply"] is not None:
                replies.recorded += 1
                replies.numbers[place] = replies.recorded
                if kept is not None:
                    store.add(value)
        else:
            others[hashed] = number
            if ids is not None:
                message, hint = (
                    f"{show(record_id)} is no record of {split}",
                    "replies belong to one split of one dataset",
                )
                problems.add(at, message, hint, code="unknown-id", kind=DatasetIntegrityError)
    if ids is not None and not replies.recorded and not problems.errors:
        nulls = sum(map(bool, seen[:count]))
        message = f"holds no reply to any of the {count} records of {split}" + (f", {nulls} are null" * (nulls > 0))
        hint = 'one {"id": ..., "reply": ...} a line; null says that a record was not run'
        problems.add(Location(str(path)), message, hint, code="no-replies", kind=DatasetIntegrityError)
    store.finish()
    return replies


def _read_objects(path: Path, replies: Replies, problems: Problems) -> Iterator[tuple[Location, dict[str, Any]]]:
    try:
        with path.open("rb") as file:
            hashes = hashlib.sha256()
            for number, line in read_rows(file, str(path), problems, hashes):
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
            replies.digest = hashes.hexdigest()
    except OSError as error:
        message = f"replies cannot be read: {error.strerror}"
        problems.add(Location(str(path)), message, code="unreadable", kind=DatasetNotFoundError)


_REPLY_KEYS = ("id", "reply", "request_time", "request_datetime")


def _check_reply(value: Mapping[str, Any], location: Location, problems: Problems) -> str | None:
    before = problems.errors

    def add(field: str, message: str, code: str, hint: str = "") -> None:
        problems.add(Location(location.path, location.line, field), message, hint, code=code)

    for key in value:
        if key not in _REPLY_KEYS:
            add(key, "unknown key", "unknown-key", f"known: {', '.join(_REPLY_KEYS)}")
    if not isinstance(value.get("id"), str):
        add("id", f"expected a string, got {show(value.get('id'))}" if "id" in value else "missing", "id-type")
    if "reply" not in value:
        add("reply", "missing", "missing-key", "write null for a record that was not run")
    elif not isinstance(value["reply"], str) and value["reply"] is not None:
        add("reply", f"expected a string or null, got {show(value['reply'])}", "reply-type")
    for key in ("request_time", "request_datetime"):
        number = value.get(key)
        if number is not None and (isinstance(number, bool) or not isinstance(number, (int, float)) or number < 0):
            add(key, f"expected a number that is not negative, got {show(number)}", "time")
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
    """Reads records together with their replies. A number is a pair: the record's, and its reply's from 1; 0: none."""

    records: RowStore[Record]
    replies: RowStore[Mapping[str, Any]]

    def read(self, numbers: Sequence[Sequence[int]]) -> Iterator[tuple[Record, Mapping[str, Any] | None]]:
        """Yield the records of these numbers with their replies."""
        replies = self.replies.read([reply - 1 for _, reply in numbers if reply])
        records = self.records.read([record for record, _ in numbers])
        for record, (_, reply) in zip(records, numbers, strict=True):
            yield record, next(replies) if reply else None


def make_instances(
    records: RowStore[Record],
    replies: Replies | None,
    ids: Sequence[str] | None,
    make: Callable[[Record, Recorded | None], Instance],
) -> Sequence[Instance]:
    """Return the instances of records; of many, those that are made when somebody looks at them.

    `ids`: where models may be asked about them: HELM wants to know ids before that.
    """
    import numpy as np
    from helm.benchmark.scenarios.scenario import TEST_SPLIT

    from helm_ext.evalset.rows import RECORDED, STATUSES, StoredRows, find_lacks

    nothing = np.zeros(len(records), np.uint8)
    rows = StoredRows(
        store=records,
        make=partial(_make, make),
        numbers=np.arange(len(records)),
        splits=(TEST_SPLIT,),
        split=nothing,
        only=nothing,
        ids=ids,
    )
    if replies is not None:
        numbers = np.frombuffer(replies.numbers, np.uint32)
        (example,) = to_recorded({"reply": ""})["states"]
        rows = replace(
            rows,
            store=_RepliedRecords(records=records, replies=replies.store),
            numbers=np.column_stack([np.arange(len(records), dtype=np.uint32), numbers]),
            make=partial(_make_replied, make),
            only=np.full(len(records), RECORDED, np.uint8),
            status=np.where(numbers > 0, STATUSES.index("ok"), STATUSES.index("not_run")).astype(np.uint8),
            lacks=np.where(numbers > 0, find_lacks(example), 0).astype(np.uint8),
        )
    return rows if records.kept is None else list(rows)


def _make(make: Callable[[Record, Recorded | None], Instance], record: Record) -> Instance:
    return make(record, None)


def _make_replied(
    make: Callable[[Record, Recorded | None], Instance], stored: tuple[Record, Mapping[str, Any] | None]
) -> Instance:
    record, reply = stored
    return make(record, to_recorded(reply))
