"""Replies recorded earlier, scored instead of asking a model: JSON Lines of `{id, reply}`."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from helm_ext.errors import (
    DatasetError,
    DatasetIntegrityError,
    DatasetNotFoundError,
    Location,
    Problem,
    Problems,
    raise_for,
    show,
)
from helm_ext.evalset import Recorded
from helm_ext.files.finding import Identity, LineFile, LineIndex
from helm_ext.formats.innodata.record_ids import RecordIds, hash_id
from helm_ext.hub.records import parse_object, read_rows

__all__ = ["Replies", "check_replies", "read_replies", "to_recorded"]


@dataclass
class Replies:
    """What is known of a file of replies: of each record to be scored, which line has its reply."""

    lines: array[int]
    """By the record's place, from 1; 0 where there is no reply."""
    kept: dict[int, Recorded] | None
    """The replies by the record's place; None where they are read again (`file`, `index`)."""
    index: LineIndex
    file: LineFile | None = None
    """None where there is no reading it."""
    recorded: int = 0
    """How many records have one."""

    def get(self, place: int) -> Recorded:
        """Return what was kept of a record."""
        assert self.kept is not None
        return self.kept.get(place) or to_recorded(None)


def read_replies(
    path: Path, ids: RecordIds, count: int, split: str, bundle_digest: str, *, keeps: bool
) -> tuple[Replies, str]:
    """Read `{id, reply}` lines; return those of the first `count` records, and a digest of both files.

    `ids` are those of all records of `split`, as it is called in messages. `keeps`: whether replies stay in memory.
    Raises DatasetError with all problems, also where no record has a reply.
    """
    problems = Problems()
    replies = _collect(path, ids, count, split, problems, keeps=keeps)
    raise_for(problems.finish())
    digest = hashlib.sha256(f"{bundle_digest}\n{replies.index.hexdigest()}\n".encode()).hexdigest()
    return replies, digest


def check_replies(path: Path, ids: RecordIds | None, count: int, split: str) -> tuple[list[Problem], int]:
    """Return all problems of a file of replies, and how many of the first `count` records have one.

    Ids of None are not compared: where records are damaged nobody knows which there are.
    """
    problems = Problems()
    try:
        replies = _collect(path, ids, count, split, problems, keeps=False)
    except DatasetError as error:
        return list(error.problems), 0
    return problems.finish(), replies.recorded


def _collect(path: Path, ids: RecordIds | None, count: int, split: str, problems: Problems, *, keeps: bool) -> Replies:
    known = ids if ids is not None else RecordIds()
    replies = Replies(array("I", bytes(4 * count)), {} if keeps else None, LineIndex())
    seen = array("I", bytes(4 * len(known)))  # the line of each record's reply, null or not
    others: dict[bytes, int] = {}  # and of ids that no record has
    for location, line, value in _read_objects(path, replies, problems):
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
                replies.lines[place] = number
                replies.recorded += 1
                if replies.kept is not None:
                    replies.kept[place] = to_recorded(value)
                else:
                    replies.index.note(number, line)
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
    return replies


def _read_objects(path: Path, replies: Replies, problems: Problems) -> Iterator[tuple[Location, bytes, dict[str, Any]]]:
    try:
        with path.open("rb") as file:
            replies.file = LineFile(str(path), Identity.of(file.fileno()))
            for number, line in read_rows(file, str(path), problems, replies.index):
                location = Location(str(path), number)
                if line is None:
                    continue
                if number == 1 and line.lstrip().startswith(b"["):
                    # Else every line of a long array would be a problem of its own.
                    message = "a JSON array, expected one object a line"
                    problems.add(
                        location, message, "JSON Lines: jq -c '.[]' FILE writes an array so", code="json-array"
                    )
                    return
                value = parse_object(line, location, problems)
                if value is not None:
                    yield location, line, value
    except OSError as error:
        message = f"replies cannot be read: {error.strerror}"
        raise DatasetNotFoundError.at(path, message, code="unreadable") from error


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
        if number is not None and (isinstance(number, bool) or not isinstance(number, (int, float))):
            add(key, f"expected a number, got {show(number)}", "time-type")
        elif number is not None and number < 0:
            add(key, f"must not be negative, got {show(number)}", "time-negative")
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
