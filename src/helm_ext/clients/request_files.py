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
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from importlib.metadata import version
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import msgspec
import orjson
from helm.common.general import asdict_without_nones

from helm_ext.clients.openai_requests import PATHS, Dialect, Endpoint, UnsendableError, to_body
from helm_ext.errors import DatasetSchemaError, HelmExtError, Location, count
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

_ID = re.compile(r"[A-Za-z0-9_.-]{1,64}")
"""What every service takes."""

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
        omit = tuple(self.omit)
        return Dialect(self.sent_as, self.endpoint, omit, self.send_top_k, self.seed, self.extra_token)


class PlannedRun(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A run whose requests were written."""

    name: str
    digest: str
    """SHA-256, see `make_run_digest`."""
    states: int
    """How many request states it has."""
    left_out: int
    """Those among them that are sent to no model: a row that does not fit the context window."""


class Target(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A request state: what a request is the request of."""

    run: Annotated[int, msgspec.Meta(ge=0)]
    """Index into the manifest's runs."""
    instance: str
    trial: int
    reference: int | None
    mode: str | None = None
    perturbation: str | None = None


class Sent(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A request that was written."""

    custom_id: str
    key: str
    """Of the body, see `make_key`."""
    targets: list[Target]
    choices: Annotated[int, msgspec.Meta(ge=1)] = 1
    """How many completions are asked for."""
    echo: bool = False
    """Whether log-probabilities of the prompt are asked for."""


class Manifest(msgspec.Struct, kw_only=True):
    """All of it."""

    format: str
    helm_ext: str
    """The version of this package that wrote it."""
    plan: Plan
    runs: list[PlannedRun]
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


class RequestWriter:
    """Writes request states as requests, each distinct one once, to files `requests-ROUND-NUMBER.jsonl`.

    `only`: the ids of the requests that are written, by their keys; None for all. A further file begins where a line
    would be too many for the one before.
    """

    def __init__(
        self,
        files: StagedFiles,
        dialect: Dialect,
        *,
        only: Mapping[str, str] | None = None,
        round_: int = 1,
        per_shard: int = MAX_REQUESTS,
    ) -> None:
        self.runs: list[PlannedRun] = []
        self.written: dict[str, int] = {}
        """How many requests each file has."""
        self.shared = 0
        """Request states that have the result of an equal one."""
        self._files, self._dialect, self._only, self._round, self._per_shard = files, dialect, only, round_, per_shard
        self._open = ExitStack()
        self._file: IO[bytes] | None = None
        self._by_key: dict[str, Sent] = {}
        self._ids: set[str] = set()
        self._refused: dict[str, list[str]] = {}
        """What cannot be sent, and the rows that ask for it."""

    def write_run(self, run_spec: RunSpec, states: Sequence[RequestState]) -> list[RequestState]:
        """Write the requests of a run; returns the states whose requests are written, not those that share one."""
        run = PlannedRun(name=run_spec.name, digest=make_run_digest(run_spec, states), states=len(states), left_out=0)
        written = []
        for state in states:
            if not is_asked(state):
                run.left_out += 1
                continue
            try:
                if self._add(state, run.digest[:12]):
                    written.append(state)
                continue
            except UnsendableError as error:
                reason = str(error)
            except UnicodeEncodeError:
                reason = "half of a surrogate pair stands in the text, which no file can hold"
            self._refused.setdefault(reason, []).append(f"{run_spec.name}, row {state.instance.id}")
        self.runs.append(run)
        return written

    def _add(self, state: RequestState, prefix: str) -> bool:
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
            self.shared += self._only is None
            return False
        reference = "none" if target.reference is None else target.reference
        parts = [prefix, target.instance, target.trial, reference, target.mode, target.perturbation]
        custom_id = "-".join(str(part) for part in parts if part is not None)
        if custom_id in self._ids or not target.instance or not _ID.fullmatch(custom_id):
            custom_id = f"{prefix}-{key}"  # windows of a long text, for example
        if self._only is not None:
            custom_id = self._only.get(key, custom_id)
        self._ids.add(custom_id)
        choices, echo = state.request.num_completions, bool(state.request.echo_prompt)
        self._by_key[key] = Sent(custom_id=custom_id, key=key, targets=[target], choices=choices, echo=echo)
        if self._only is not None and key not in self._only:
            return False
        line = {"custom_id": custom_id, "method": "POST", "url": f"/v1{PATHS[self._dialect.endpoint]}", "body": body}
        self._write(orjson.dumps(line) + b"\n")
        return True

    def _write(self, line: bytes) -> None:
        """Write a line. Raises HelmExtError for one that is too long."""
        if len(line) > MAX_BYTES:
            raise HelmExtError(f"a request of {len(line):,} bytes: a file of requests has at most {MAX_BYTES:,}")
        name = next(reversed(self.written), "")
        if self._file is None or self.written[name] >= self._per_shard or self._file.tell() + len(line) > MAX_BYTES:
            self._open.close()
            name = f"requests-{self._round}-{len(self.written) + 1:04}.jsonl"
            self._file = self._open.enter_context(self._files.open(name))
        self._file.write(line)
        self.written[name] = self.written.get(name, 0) + 1

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
        """Write what was planned and written as JSON that people can read."""
        requests = list(self._by_key.values())
        made = Manifest(format=FORMAT, helm_ext=version("helm-ext"), plan=plan, runs=self.runs, requests=requests)
        with self._files.open(MANIFEST) as file:
            file.write(msgspec.json.format(msgspec.json.encode(made), indent=1) + b"\n")
        return made


def is_asked(state: RequestState) -> bool:
    """Whether a request is written for the state: the adapter leaves out rows that do not fit the context window."""
    return getattr(state.request, "result", None) is None


def next_round(folder: Path) -> int:
    """Return the number of the next files that are written here."""
    found = (re.fullmatch(r"requests-(\d+)-\d+\.jsonl", path.name) for path in folder.glob("requests-*.jsonl"))
    return max((int(match[1]) for match in found if match), default=0) + 1


def read_manifest(path: Path) -> Manifest:
    """Read a manifest. Raises DatasetError."""
    source = read_source(path)
    place, hint = Location(source.path), "`helm-ext requests out` of this version of helm-ext writes one"
    try:
        manifest = msgspec.json.decode(source.data, type=Manifest)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise DatasetSchemaError.at(place, f"no manifest of requests: {error}", hint, code="manifest") from error
    if manifest.format != FORMAT:
        message = f"expected {FORMAT!r}, got {manifest.format!r}"
        raise DatasetSchemaError.at(place.at("format"), message, hint, code="manifest")
    for number, sent in enumerate(manifest.requests):
        for target in sent.targets:
            if target.run >= len(manifest.runs):
                field, message = f"requests[{number}].targets", f"there is no run {target.run}, of {len(manifest.runs)}"
                raise DatasetSchemaError.at(place.at(field), message, hint, code="manifest")
    return manifest
