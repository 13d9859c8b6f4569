"""Requests as files of OpenAI's Batch API, and `manifest.json` beside them, which says what each is the request of.

https://platform.openai.com/docs/api-reference/batch: JSON Lines, at most 50,000 requests and 200 MB a file, one model
each. The same lines are read by `vllm run-batch`.

A run is known by a digest of its specification and of every request state that HELM makes of it: results are taken for
a run with the same digest only. A request is known by a key of its body; equal requests are sent once, and its result
is that of all request states that it stands for (`Target`).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from importlib.metadata import version
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import msgspec
import orjson
from helm.common.general import asdict_without_nones

from helm_ext.clients.openai_requests import PATHS, Dialect, Endpoint, UnsendableError, to_body
from helm_ext.errors import DatasetSchemaError, HelmExtError, Location, Problem, count
from helm_ext.files import canonical_json, read_source
from helm_ext.judging.rubrics import Rubric

if TYPE_CHECKING:
    from helm.benchmark.adaptation.request_state import RequestState
    from helm.benchmark.run_spec import RunSpec

    from helm_ext.files.writing import StagedFiles

MANIFEST = "manifest.json"
FORMAT = "helm-ext requests 1"

MAX_REQUESTS = 50_000
MAX_BYTES = 200_000_000

_SAFE = re.compile(r"[A-Za-z0-9_.-]+")
_MAX_ID = 64
_DIGEST = 12
_SHOWN = 3


class Judging(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Answers of a run that a judge is asked about."""

    run: str
    """The run's folder."""
    against: str | None = None
    """That of the run whose answers are compared with these."""
    swap: bool = False
    """Whether each pair is asked about in both orders."""
    rubric: Rubric


class Plan(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What the runs were planned from, so that they can be planned again."""

    run_entries: list[str]
    model: str
    endpoint: Endpoint
    sent_as: str = ""
    omit: list[str] = []
    send_top_k: bool = False
    seed: int | None = None
    extra_token: bool = False
    max_eval_instances: int | None = None
    num_train_trials: int | None = None
    judging: Judging | None = None
    """For the requests of `helm-ext judge out`, which belong to no run entry."""

    def to_dialect(self) -> Dialect:
        """Return how the requests are written."""
        return Dialect(
            model=self.sent_as, endpoint=self.endpoint, omit=tuple(self.omit), send_top_k=self.send_top_k,
            seed=self.seed, extra_token=self.extra_token,
        )  # fmt: skip


class PlannedRun(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A run whose requests were written."""

    name: str
    digest: str
    """SHA-256, see `make_run_digest`."""
    states: int
    """How many request states it has."""
    left_out: int
    """Those among them that are sent to no model: a row that does not fit the context window."""


class Shard(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A file of requests."""

    file: str
    requests: int
    bytes: int


class Target(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A request state: what a request is the request of."""

    run: Annotated[int, msgspec.Meta(ge=0)]
    """Index into the manifest's runs."""
    instance: str
    trial: int
    reference: int | None
    mode: str | None = None
    perturbation: str | None = None


class Sent(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A request that was written."""

    custom_id: str
    key: str
    """Of the body, see `make_key`."""
    shard: str
    targets: list[Target]
    choices: Annotated[int, msgspec.Meta(ge=1)] = 1
    """How many completions are asked for."""
    echo: bool = False
    """Whether log-probabilities of the prompt are asked for."""


class Manifest(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """All of it."""

    format: str
    helm_ext: str
    """The version of this package that wrote it."""
    plan: Plan
    runs: list[PlannedRun]
    shards: list[Shard]
    requests: list[Sent]


def make_run_digest(run_spec: RunSpec, states: Sequence[RequestState]) -> str:
    """Return the SHA-256 of a run: its specification, and each request state, which has no result yet."""
    digest = hashlib.sha256(json.dumps(asdict_without_nones(run_spec), sort_keys=True).encode())
    for state in states:
        try:
            digest.update(orjson.dumps(state, option=orjson.OPT_NON_STR_KEYS))
        except TypeError:  # a huge integer, half a character
            digest.update(json.dumps(asdict_without_nones(state)).encode())
    return digest.hexdigest()


def make_key(body: dict[str, Any], random: str | None) -> str:
    """Return what is equal for requests that may share one result.

    Requests with equal bodies and another `Request.random` are to be answered anew, as in HELM's cache.
    """
    return hashlib.sha256(canonical_json([body, random])).hexdigest()[:32]


def make_custom_id(run_digest: str, target: Target, number: int) -> str:
    """Return the id of a request: `DIGEST-INSTANCE-TRIAL-REFERENCE`, with a hash for what an id cannot hold.

    At most 64 characters of `[A-Za-z0-9_.-]`, which every service takes. `number`: how many requests of this target
    there are already (windows of a long text, for example).
    """
    rest = [str(target.trial), "none" if target.reference is None else str(target.reference)]
    rest += [part for part in (target.mode, target.perturbation, str(number) if number else None) if part]
    made = "-".join([run_digest[:_DIGEST], target.instance, *rest])
    if len(made) <= _MAX_ID and _SAFE.fullmatch(made):
        return made
    hashed = hashlib.sha256(canonical_json([target.instance, rest])).hexdigest()
    return f"{run_digest[:_DIGEST]}-{hashed[:32]}"


class RequestWriter:
    """Writes request states as requests, each distinct one once, to files `requests-ROUND-NUMBER.jsonl`.

    `only`: the ids of the requests that are written; None for all. A further file begins where a line would be too
    many for the one before.
    """

    def __init__(
        self,
        files: StagedFiles,
        dialect: Dialect,
        *,
        only: frozenset[str] | None = None,
        round_: int = 1,
        per_shard: int = MAX_REQUESTS,
    ) -> None:
        self.runs: list[PlannedRun] = []
        self.shards: list[Shard] = []
        self.requests: list[Sent] = []
        self.only = only
        self._files, self._dialect, self._round, self._per_shard = files, dialect, round_, per_shard
        self._open = ExitStack()
        self._file: IO[bytes] | None = None
        self._by_key: dict[str, Sent] = {}
        self._ids: set[str] = set()
        self._numbers: Counter[str] = Counter()
        self._refused: dict[str, list[str]] = {}
        """What cannot be sent, and the rows that ask for it."""

    def write_run(self, run_spec: RunSpec, states: Sequence[RequestState]) -> list[RequestState]:
        """Write the requests of a run; returns the states whose requests are written, not those that share one."""
        run = PlannedRun(name=run_spec.name, digest=make_run_digest(run_spec, states), states=len(states), left_out=0)
        written = []
        for state in states:
            if getattr(state.request, "result", None) is not None:  # the adapter left the row out (adaptation/wrap.py)
                run.left_out += 1
                continue
            try:
                if self._add(state, run.digest):
                    written.append(state)
                continue
            except UnsendableError as error:
                reason = str(error)
            except UnicodeEncodeError:
                reason = "half of a surrogate pair stands in the text, which no file can hold"
            self._refused.setdefault(reason, []).append(f"{run_spec.name}, row {state.instance.id}")
        self.runs.append(run)
        return written

    def _add(self, state: RequestState, run_digest: str) -> bool:
        """Write the request of a state unless an equal one is written; returns whether it was."""
        body = to_body(state.request, self._dialect)
        key, perturbation = make_key(body, state.request.random), state.instance.perturbation
        target = Target(
            run=len(self.runs),
            instance=str(state.instance.id),
            trial=state.train_trial_index,
            reference=state.reference_index,
            mode=state.request_mode if state.request_mode != "original" else None,
            perturbation=perturbation.name if perturbation is not None else None,
        )
        if key in self._by_key:
            self._by_key[key].targets.append(target)
            return False
        custom_id = plain = make_custom_id(run_digest, target, 0)
        while custom_id in self._ids:
            self._numbers[plain] += 1
            custom_id = make_custom_id(run_digest, target, self._numbers[plain])
        self._ids.add(custom_id)
        choices, echo = state.request.num_completions, bool(state.request.echo_prompt)
        sent = Sent(custom_id=custom_id, key=key, shard="", targets=[target], choices=choices, echo=echo)
        self._by_key[key] = sent
        self.requests.append(sent)
        if self.only is not None and custom_id not in self.only:
            return False
        line = {"custom_id": custom_id, "method": "POST", "url": f"/v1{PATHS[self._dialect.endpoint]}", "body": body}
        sent.shard = self._write(orjson.dumps(line) + b"\n")
        return True

    def _write(self, line: bytes) -> str:
        """Write a line. Returns the file's name. Raises HelmExtError for one that is too long."""
        if len(line) > MAX_BYTES:
            raise HelmExtError(f"a request of {len(line):,} bytes: a file of requests has at most {MAX_BYTES:,}")
        shard = self.shards[-1] if self.shards else None
        if shard is None or shard.requests >= self._per_shard or shard.bytes + len(line) > MAX_BYTES:
            self._open.close()
            shard = Shard(file=f"requests-{self._round}-{len(self.shards) + 1:04}.jsonl", requests=0, bytes=0)
            self.shards.append(shard)
            self._file = self._open.enter_context(self._files.open(shard.file))
        assert self._file is not None
        self._file.write(line)
        shard.requests += 1
        shard.bytes += len(line)
        return shard.file

    def close(self) -> None:
        """Close the last file. Raises UnsendableError with all that cannot be sent."""
        self._open.close()
        parts = []
        for message, rows in self._refused.items():
            more = f", ... ({len(rows) - _SHOWN} more)" if len(rows) > _SHOWN else ""
            what, _, hint = message.partition("\n")
            parts.append(f"{what} ({count(len(rows), 'request')}: {'; '.join(rows[:_SHOWN])}{more})\n{hint}".rstrip())
        if parts:
            raise UnsendableError("\n".join("cannot be sent: " + part for part in parts))

    def write_manifest(self, plan: Plan) -> Manifest:
        """Write what was planned and written as JSON."""
        manifest = Manifest(
            format=FORMAT, helm_ext=version("helm-ext"), plan=plan, runs=self.runs, shards=self.shards,
            requests=self.requests,
        )  # fmt: skip
        with self._files.open(MANIFEST) as file:
            write_manifest(file, manifest)
        return manifest


def next_round(folder: Path) -> int:
    """Return the number of the next files that are written here."""
    found = (re.fullmatch(r"requests-(\d+)-\d+\.jsonl", path.name) for path in folder.glob("requests-*.jsonl"))
    return max((int(match[1]) for match in found if match), default=0) + 1


def write_manifest(file: IO[bytes], manifest: Manifest) -> None:
    """Write a manifest as JSON that people can read."""
    file.write(msgspec.json.format(msgspec.json.encode(manifest), indent=1) + b"\n")


def read_manifest(path: Path) -> Manifest:
    """Read a manifest. Raises DatasetError."""
    source = read_source(path)
    hint = "`helm-ext requests out` of this version of helm-ext writes one"
    try:
        manifest = msgspec.json.decode(source.data, type=Manifest)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise DatasetSchemaError([Problem(f"no manifest of requests: {error}", Location(source.path), hint)]) from error
    if manifest.format != FORMAT:
        message = f"expected {FORMAT!r}, got {manifest.format!r}"
        raise DatasetSchemaError([Problem(message, Location(source.path, field="format"), hint)])
    for place, sent in enumerate(manifest.requests):
        for target in sent.targets:
            if target.run >= len(manifest.runs):
                field, message = f"requests[{place}].targets", f"there is no run {target.run}, of {len(manifest.runs)}"
                raise DatasetSchemaError([Problem(message, Location(source.path, field=field), hint)])
    return manifest
