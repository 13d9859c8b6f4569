"""Replies recorded earlier, scored instead of asking a model: JSON Lines of `{id, reply}`."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from helm_ext.errors import (
    DatasetError,
    DatasetIntegrityError,
    DatasetNotFoundError,
    DatasetSchemaError,
    Location,
    Problem,
    raise_for,
    show,
)
from helm_ext.evalset import Recorded
from helm_ext.hub.records import ProblemList, read_json_object, read_rows

__all__ = ["check_replies", "read_replies"]


def read_replies(
    path: Path, ids: Sequence[str], count: int, split: str, bundle_digest: str
) -> tuple[dict[str, Recorded], str]:
    """Read `{id, reply}` lines; return those of the first `count` ids, and a digest of both files.

    `ids` are those of all records of `split`, as it is called in messages. Raises DatasetError with all problems, also
    where no record has a reply.
    """
    problems = ProblemList()
    hashes = hashlib.sha256()
    replies = _collect(path, ids, count, split, problems, hashes)
    raise_for(problems.all(str(path)))
    digest = hashlib.sha256(f"{bundle_digest}\n{hashes.hexdigest()}\n".encode()).hexdigest()
    return replies, digest


def check_replies(path: Path, ids: Sequence[str] | None, count: int, split: str) -> tuple[list[Problem], int]:
    """Return all problems of a file of replies, and how many of the first `count` ids have one.

    Ids of None are not compared: where records are damaged nobody knows which there are.
    """
    problems = ProblemList()
    try:
        replies = _collect(path, ids, count, split, problems, hashlib.sha256())
    except DatasetError as error:
        message = error.message.removeprefix(f"{path}: ")
        return [Problem(message, Location(str(path)), code="unreadable", kind=type(error))], 0
    return problems.all(str(path)), len(replies)


def _collect(
    path: Path, ids: Sequence[str] | None, count: int, split: str, problems: ProblemList, hashes: Any
) -> dict[str, Recorded]:
    known, wanted = set(ids or ()), set((ids or ())[:count])
    replies: dict[str, Recorded] = {}
    lines: dict[str, int] = {}
    for location, value in _read_objects(path, hashes, problems):
        record_id = _check_reply(value, location, problems)
        if record_id is None:
            continue
        if record_id in lines:
            problems.add(f"{show(record_id)} occurs already in line {lines[record_id]}",
                         Location(location.path, location.line, "id"), code="duplicate-id",
                         kind=DatasetIntegrityError)  # fmt: skip
            continue
        lines[record_id] = location.line or 0
        if record_id in wanted:
            if value["reply"] is not None:
                replies[record_id] = _to_recorded(value)
        elif ids is not None and record_id not in known:
            problems.add(f"{show(record_id)} is no record of {split}",
                         Location(location.path, location.line, "id"), code="unknown-id",
                         kind=DatasetIntegrityError, hint="replies belong to one split of one dataset")  # fmt: skip
    if ids is not None and not replies and not problems.has_errors:
        nulls = len(wanted & lines.keys())
        problems.add(f"holds no reply to any of the {count} records of {split}" + (f", {nulls} are null" * (nulls > 0)),
                     Location(str(path)), code="no-replies", kind=DatasetIntegrityError,
                     hint='one {"id": ..., "reply": ...} a line; null says that a record was not run')  # fmt: skip
    return replies


def _read_objects(path: Path, hashes: Any, problems: ProblemList) -> Iterator[tuple[Location, dict[str, Any]]]:
    try:
        with path.open("rb") as file:
            for location, line in read_rows(file, str(path), problems, hashes):
                if location.line == 1 and line is not None and line.lstrip().startswith(b"["):
                    # Else every line of a long array would be a problem of its own.
                    problems.add("a JSON array, expected one object a line", location, code="json-array",
                                 kind=DatasetSchemaError,
                                 hint="JSON Lines: jq -c '.[]' FILE writes an array so")  # fmt: skip
                    return
                value = None if line is None else read_json_object(line, location, problems)
                if value is not None:
                    yield location, value
    except OSError as error:
        raise DatasetNotFoundError(f"{path}: replies cannot be read: {error.strerror}") from error


_REPLY_KEYS = ("id", "reply", "request_time", "request_datetime")


def _check_reply(value: Mapping[str, Any], location: Location, problems: ProblemList) -> str | None:
    before = len(problems.kept) + problems.left_out

    def add(field: str, message: str, code: str, hint: str = "") -> None:
        problems.add(message, Location(location.path, location.line, field), code=code, hint=hint,
                     kind=DatasetSchemaError)  # fmt: skip

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
    return value["id"] if len(problems.kept) + problems.left_out == before else None


def _to_recorded(value: Mapping[str, Any]) -> Recorded:
    result: dict[str, Any] = {"success": True, "completions": [{"text": value["reply"]}]}
    for key in ("request_time", "request_datetime"):
        if value.get(key) is not None:
            result[key] = value[key]
    return {"status": "ok", "states": [{"result": result}]}
