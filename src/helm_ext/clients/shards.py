"""Requests as files of OpenAI's Batch API: JSON Lines, each file small enough for a batch.

https://platform.openai.com/docs/api-reference/batch: at most 50,000 requests and 200 MB a file, one model each. The
same lines are read by `vllm run-batch`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import orjson

from helm_ext.clients.manifest import (
    PlannedRun,
    Sent,
    Shard,
    Target,
    make_custom_id,
    make_key,
    make_run_digest,
    to_target,
)
from helm_ext.clients.openai_requests import PATHS, Dialect, UnsendableError, to_body
from helm_ext.errors import HelmExtError, count

if TYPE_CHECKING:
    from helm.benchmark.adaptation.request_state import RequestState
    from helm.benchmark.run_spec import RunSpec

    from helm_ext.files.staged import StagedFiles

MAX_REQUESTS = 50_000
MAX_BYTES = 200_000_000

_SHOWN = 3


class ShardWriter:
    """Writes lines to files `requests-ROUND-NUMBER.jsonl`, a further one where a line would be too many."""

    def __init__(self, files: StagedFiles, *, round_: int = 1, per_shard: int = MAX_REQUESTS) -> None:
        self.shards: list[Shard] = []
        self._files = files
        self._round = round_
        self._per_shard = per_shard
        self._open = ExitStack()
        self._file: IO[bytes] | None = None

    def write(self, line: bytes) -> str:
        """Write a line, which ends with a line end. Returns the file's name. Raises HelmExtError for too long a one."""
        if len(line) > MAX_BYTES:
            raise HelmExtError(f"a request of {len(line):,} bytes: a file of requests has at most {MAX_BYTES:,}")
        shard = self.shards[-1] if self.shards else None
        if shard is None or shard.requests >= self._per_shard or shard.bytes + len(line) > MAX_BYTES:
            self.close()
            shard = Shard(file=f"requests-{self._round}-{len(self.shards) + 1:04}.jsonl", requests=0, bytes=0)
            self.shards.append(shard)
            self._file = self._open.enter_context(self._files.open(shard.file))
        assert self._file is not None
        self._file.write(line)
        shard.requests += 1
        shard.bytes += len(line)
        return shard.file

    def close(self) -> None:
        """Close the file that is being written."""
        self._open.close()


@dataclass
class RequestWriter:
    """Turns request states into requests, each distinct one once."""

    shards: ShardWriter
    dialect: Dialect
    only: frozenset[str] | None = None
    """The ids of the requests that are written; None for all."""
    runs: list[PlannedRun] = field(default_factory=list)
    requests: list[Sent] = field(default_factory=list)
    refused: dict[str, list[str]] = field(default_factory=dict)
    """What cannot be sent, and the rows that ask for it."""

    def __post_init__(self) -> None:
        self._by_key: dict[str, Sent] = {}
        self._ids: set[str] = set()
        self._numbers: Counter[str] = Counter()

    def write_run(self, run_spec: RunSpec, states: Sequence[RequestState]) -> list[RequestState]:
        """Write the requests of a run; returns the states whose requests are written, not those that share one."""
        run = PlannedRun(name=run_spec.name, digest=make_run_digest(run_spec, states), states=len(states), left_out=0)
        written = []
        for state in states:
            if getattr(state.request, "result", None) is not None:  # the adapter left the row out (adaptation/wrap.py)
                run.left_out += 1
                continue
            target = to_target(state, len(self.runs))
            try:
                if self._add(to_body(state.request, self.dialect), state, target, run.digest):
                    written.append(state)
            except UnsendableError as error:
                self.refused.setdefault(str(error), []).append(f"{run_spec.name}, row {target.instance}")
            except UnicodeEncodeError:
                message = "half of a surrogate pair stands in the text, which no file can hold"
                self.refused.setdefault(message, []).append(f"{run_spec.name}, row {target.instance}")
        self.runs.append(run)
        return written

    def _add(self, body: dict[str, Any], state: RequestState, target: Target, run_digest: str) -> bool:
        """Write a request unless an equal one is written; returns whether it was."""
        key = make_key(body, state.request.random)
        if key in self._by_key:
            self._by_key[key].targets.append(target)
            return False
        custom_id = self._name(run_digest, target)
        sent = Sent(
            custom_id=custom_id,
            key=key,
            shard="",
            targets=[target],
            choices=state.request.num_completions,
            echo=bool(state.request.echo_prompt),
        )
        self._by_key[key] = sent
        self.requests.append(sent)
        if self.only is not None and custom_id not in self.only:
            return False
        line = {"custom_id": custom_id, "method": "POST", "url": f"/v1{PATHS[self.dialect.endpoint]}", "body": body}
        sent.shard = self.shards.write(orjson.dumps(line) + b"\n")
        return True

    def _name(self, run_digest: str, target: Target) -> str:
        """Return an id that no other request has."""
        custom_id = plain = make_custom_id(run_digest, target, 0)
        while custom_id in self._ids:
            self._numbers[plain] += 1
            custom_id = make_custom_id(run_digest, target, self._numbers[plain])
        self._ids.add(custom_id)
        return custom_id

    def require_sendable(self) -> None:
        """Raise UnsendableError with all that cannot be sent."""
        if not self.refused:
            return
        parts = []
        for message, rows in self.refused.items():
            more = f", ... ({len(rows) - _SHOWN} more)" if len(rows) > _SHOWN else ""
            what, _, hint = message.partition("\n")
            parts.append(f"{what} ({count(len(rows), 'request')}: {'; '.join(rows[:_SHOWN])}{more})\n{hint}".rstrip())
        raise UnsendableError("\n".join(["cannot be sent: " + part for part in parts]))


def next_round(folder: Path) -> int:
    """Return the number of the next files that are written here."""
    found = (re.fullmatch(r"requests-(\d+)-\d+\.jsonl", path.name) for path in folder.glob("requests-*.jsonl"))
    return max((int(match[1]) for match in found if match), default=0) + 1
