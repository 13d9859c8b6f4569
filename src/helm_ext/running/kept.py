"""Answers of a live run that is not complete yet, in a file of its folder: a second start does not ask for them again.

Lines are appended as answers come, and are durable before anybody counts on them. A line holds one answer, the place of
its request in the run and the request's digest: an answer is taken for the same request at the same place, or not at
all. This is no cache: an answer serves one run, which asks once for each, and is gone when that is complete. So
`--disable-cache` does not keep a start from what an earlier one of the same run has paid for. Two runs may append to
one file. A line that a killed process, or a full disk, left half is not read.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dacite
from helm.common.hierarchical_logger import hwarn
from helm.common.request import RequestResult

from helm_ext.clients.asking import NotedResult, notes_of
from helm_ext.errors import HelmExtError
from helm_ext.files.writing import sync_folder
from helm_ext.running.serialise import dumps

if TYPE_CHECKING:
    from helm.common.request import Request

KEPT_NAME = ".answers.jsonl"

_UNCHECKED = dacite.Config(check_types=False)
"""HELM's own clients put an int where a float is declared, and it is written as it was."""


def digest_of(request: Request, deployment: Any) -> str:
    """Return what tells requests apart, and who answers them."""
    return hashlib.sha256(dumps(request) + b"\0" + dumps(deployment)).hexdigest()[:32]


class KeptAnswers:
    """The file of kept answers of a run's folder."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / KEPT_NAME

    def read(self, digests: Mapping[int, str]) -> dict[int, RequestResult]:
        """Return the answers to requests with these digests, by place. Raises HelmExtError."""
        found: dict[int, RequestResult] = {}
        spoilt = 0
        try:
            with self.path.open("rb") as file:
                for line in file:
                    if not line.strip():
                        continue
                    try:
                        kept = json.loads(line)
                        if digests.get(kept["place"]) == kept["digest"]:
                            found[kept["place"]] = _to_result(kept)
                    except (ValueError, TypeError, KeyError, RecursionError, dacite.DaciteError):
                        spoilt += 1
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise HelmExtError(f"{self.path}: the answers of an earlier start cannot be read: {error}") from error
        if spoilt:
            hwarn(f"{self.path}: {spoilt} lines hold no whole answer and are asked for again")
        return found

    def append(self, answers: Iterable[tuple[int, str, RequestResult]]) -> None:
        """Add answers: place, digest, result. They are durable on return. Raises HelmExtError."""
        # Every write begins a line of its own, whatever a killed process left at the end.
        data = b"".join(
            b'\n{"place":%d,"digest":"%s","result":%s,"notes":%s}'
            % (place, digest.encode(), _one_line(result), _one_line(dict(notes_of(result))))
            for place, digest, result in answers
        )
        if not data:
            return
        try:
            is_new = not self.path.exists()
            with self.path.open("ab", buffering=0) as file:
                view = memoryview(data + b"\n")
                while view:
                    view = view[file.write(view) :]
                os.fsync(file.fileno())
            if is_new:
                sync_folder(self.path.parent)
        except OSError as error:
            raise HelmExtError(
                f"{self.path}: answers cannot be kept: {error}\n  hint: make room; those that are kept are not "
                "asked for again"
            ) from error

    def last_kept(self) -> str:
        """Return when the last answer was kept: local time, to the second."""
        return datetime.fromtimestamp(self.path.stat().st_mtime).astimezone().isoformat(" ", "seconds")

    def remove(self) -> None:
        """Remove the file, if it is there."""
        self.path.unlink(missing_ok=True)


def _one_line(value: Any) -> bytes:
    return dumps(value).replace(b"\n", b"")  # JSON has none in strings


def _to_result(kept: dict[str, Any]) -> RequestResult:
    if not kept["notes"]:
        return dacite.from_dict(RequestResult, kept["result"], _UNCHECKED)
    result = dacite.from_dict(NotedResult, kept["result"], _UNCHECKED)
    result.notes = kept["notes"]
    return result
