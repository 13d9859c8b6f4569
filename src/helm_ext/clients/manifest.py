"""What the requests of some runs are: `manifest.json`, beside the files that hold them.

A run is known by a digest of its specification and of every request state that HELM makes of it: results are taken for
a run with the same digest only. A request is known by a key of its body; equal requests are sent once, and its result
is that of all request states that it stands for (`Target`).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import msgspec
import orjson
from helm.common.general import asdict_without_nones

from helm_ext.clients.openai_requests import Dialect, Endpoint
from helm_ext.errors import DatasetSchemaError, Location, Problem, show
from helm_ext.files import canonical_json, read_source
from helm_ext.judging.rubrics import Rubric

if TYPE_CHECKING:
    from helm.benchmark.adaptation.request_state import RequestState
    from helm.benchmark.run_spec import RunSpec

MANIFEST = "manifest.json"
FORMAT = "helm-ext requests 1"

_SAFE = re.compile(r"[A-Za-z0-9_.-]+")
_MAX_ID = 64
_DIGEST = 12


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
    sent_as: str
    omit: list[str]
    send_top_k: bool
    seed: int | None
    extra_token: bool
    max_eval_instances: int | None
    num_train_trials: int | None
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

    run: int
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
    choices: int = 1
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
        digest.update(_encode(state))
    return digest.hexdigest()


def _encode(state: RequestState) -> bytes:
    """Return JSON of a request state. What orjson refuses (huge integers, half characters) is written as HELM does.

    Plain equivalent: the last line alone, which takes 2.4 times as long (5,000 states of 100 words).
    """
    try:
        return orjson.dumps(state, option=orjson.OPT_NON_STR_KEYS)
    except TypeError:
        return json.dumps(asdict_without_nones(state)).encode()


def make_key(body: dict[str, Any], random: str | None) -> str:
    """Return what is equal for requests that may share one result.

    Requests with equal bodies and another `Request.random` are to be answered anew, as in HELM's cache.
    """
    return hashlib.sha256(canonical_json([body, random])).hexdigest()[:32]


def to_target(state: RequestState, run: int) -> Target:
    """Return what says which request state of a run this is."""
    perturbation = state.instance.perturbation
    return Target(
        run=run,
        instance=str(state.instance.id),
        trial=state.train_trial_index,
        reference=state.reference_index,
        mode=state.request_mode if state.request_mode != "original" else None,
        perturbation=perturbation.name if perturbation is not None else None,
    )


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


def make_manifest(plan: Plan, runs: list[PlannedRun], shards: list[Shard], requests: list[Sent]) -> Manifest:
    """Return the manifest of what was written now."""
    return Manifest(format=FORMAT, helm_ext=version("helm-ext"), plan=plan, runs=runs, shards=shards, requests=requests)


def write_manifest(file: IO[bytes], manifest: Manifest) -> None:
    """Write it as JSON, each request on a line of its own."""
    head = {name: value for name, value in msgspec.to_builtins(manifest).items() if name != "requests"}
    file.write(json.dumps(head, indent=1, ensure_ascii=False).removesuffix("\n}").encode() + b',\n "requests": [')
    for number, sent in enumerate(manifest.requests):
        file.write((b",\n  " if number else b"\n  ") + msgspec.json.encode(sent))
    file.write(b"\n ]\n}\n")


def read_manifest(path: Path) -> Manifest:
    """Read a manifest. Raises DatasetError."""
    source = read_source(path)
    try:
        manifest = msgspec.json.decode(source.data, type=Manifest)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise DatasetSchemaError(
            [Problem(f"no manifest of requests: {error}", Location(source.path), "`helm-ext requests out` writes one")]
        ) from error
    if manifest.format != FORMAT:
        hint = "read it with the version of helm-ext that wrote it"
        raise DatasetSchemaError(
            [Problem(f"expected {FORMAT!r}, got {manifest.format!r}", Location(source.path, field="format"), hint)]
        )
    if against := _find_contradiction(manifest):
        field, message = against
        hint = "it is not as it was written: write the requests again"
        raise DatasetSchemaError([Problem(message, Location(source.path, field=field), hint)])
    return manifest


def _find_contradiction(manifest: Manifest) -> tuple[str, str] | None:
    """Return the field and a message where parts of a manifest do not fit each other."""
    if not manifest.runs:
        return "runs", "none"
    for name in ("custom_id", "key"):
        seen: set[str] = set()
        for place, sent in enumerate(manifest.requests):
            if (value := getattr(sent, name)) in seen:
                return f"requests[{place}].{name}", f"{show(value)} stands there twice"
            seen.add(value)
    for place, sent in enumerate(manifest.requests):
        if sent.choices < 1:
            return f"requests[{place}].choices", f"expected 1 or more, got {sent.choices}"
        for target in sent.targets:
            if not 0 <= target.run < len(manifest.runs):
                return f"requests[{place}].targets", f"there is no run {target.run}, of {len(manifest.runs)}"
    return None
