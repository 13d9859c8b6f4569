"""A StreamingRunner whose models are asked, and whose recordings are scored, by Ray actors, here or on a cluster.

    helm-run --runner-class-name helm_ext.running.RayRunner ...

Same arguments, same files; `--num-threads` is for each actor. What helm-run has no argument for is in the environment
(docs/how-to/many_rows.md). Only this module and those that it imports need Ray.

`helm-run` reads prod_env/*.yaml, credentials, plugins and flags into HELM's registries before it makes a runner. So the
registries are sent to the actors as they are, whatever filled them (`HelmContext`). Plugins, and folders of this
machine, are used where they are there, too; without its folder an actor has no cache, and reads nothing.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import hashlib
import io
import itertools
import json
import math
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dacite
from helm.benchmark import model_deployment_registry, model_metadata_registry, tokenizer_config_registry
from helm.benchmark.executor import ExecutionSpec
from helm.benchmark.model_deployment_registry import get_model_deployment
from helm.benchmark.scenarios.scenario import Input, Instance
from helm.common.hierarchical_logger import hwarn
from helm.common.request import RequestResult

from helm_ext.adaptation.rows import bare_state
from helm_ext.clients.client import NotedResult, notes_of
from helm_ext.engines.engine import LONE_TRIES, end_workers
from helm_ext.engines.progress import PROGRESS_ENV
from helm_ext.engines.ray_engine import RayEngine, RaySettings
from helm_ext.errors import DeploymentError, HelmExtError, read_number, show
from helm_ext.files.writing import sync_folder
from helm_ext.running.executor import LiveExecutor
from helm_ext.running.runner import StreamingRunner
from helm_ext.running.serialise import dumps

if TYPE_CHECKING:
    from collections.abc import Sequence

    from helm.benchmark.adaptation.request_state import RequestState
    from helm.benchmark.executor import Executor
    from helm.benchmark.run_spec import RunSpec
    from helm.common.request import Request

    from helm_ext.running.asking import Asking


BATCH_ENV = "HELM_EXT_RAY_BATCH"
WAVES = 4
"""Requests in a batch for each that an actor has in flight: a slow one holds the next batch up, not the actor."""

BATCHES_AT_ONCE = 2
"""Batches that an actor with several threads works on, each with its share of the threads: when one comes to its end,
the other goes on."""


@dataclass(frozen=True)
class Batch:
    """Requests of whole rows, by their places in the run."""

    rows: list[list[tuple[int, Request]]]

    def __str__(self) -> str:
        places = self.places
        return f"requests {places[0] + 1:,} to {places[-1] + 1:,}"

    @property
    def number(self) -> int:
        """How many rows they are of."""
        return len(self.rows)

    @property
    def places(self) -> list[int]:
        """The places of the requests."""
        return [place for row in self.rows for place, _ in row]

    def split(self) -> list[Batch]:
        """Return a batch for each row: clients may be asked for a row at once."""
        return [Batch([row]) for row in self.rows]


@dataclass(frozen=True)
class Answer:
    """What an actor says of a request: a result, or why there is none."""

    place: int
    result: RequestResult | None
    failure: str = ""


class LiveWorker:
    """Asks, in an actor, for a batch of answers."""

    def __init__(self, context: HelmContext, threads: int) -> None:
        os.environ[PROGRESS_ENV] = "off"  # the driver shows it
        with contextlib.redirect_stdout(io.StringIO()):  # HELM prints where it looks for credentials
            self.executor = LiveExecutor(replace(context.enter(), parallelism=threads))

    def __call__(self, batch: Batch) -> list[Answer]:
        """Return an answer for each request."""
        rows = ((row, Instance(Input(), [])) for row in batch.rows)  # states of one row have one instance
        states = [bare_state(request, instance) for row, instance in rows for _, request in row]
        asked = self.executor.ask(states)
        return [
            Answer(place, state.result, asked.failures.get(number, ""))
            for number, (place, state) in enumerate(zip(batch.places, asked.states, strict=True))
        ]


class RayExecutor(LiveExecutor):
    """A LiveExecutor whose answers come from actors. `close` lets them go.

    `folder`: where answers are kept until the run is complete; None keeps none.
    """

    engine: RayEngine
    batch_size: int
    folder: Path | None

    @classmethod
    def in_place_of(cls, executor: Executor) -> RayExecutor:
        """Return one with the specification and the context of another. Raises HelmExtError for wrong settings."""
        made = super().in_place_of(executor)
        assert isinstance(made, RayExecutor)
        at_once = min(BATCHES_AT_ONCE, made.execution_spec.parallelism)
        made.engine = RayEngine(RaySettings.from_environ(), concurrency=at_once)
        made.batch_size = int(read_number(BATCH_ENV, 0, least=1))
        made.folder = None
        return made

    def close(self) -> None:
        """Let the actors go."""
        self.engine.disconnect()

    def _check(self, states: Sequence[RequestState], live: dict[str, list[int]]) -> None:
        """Do nothing: a client would be made here. Those of the actors look at their batches."""

    def _ask_deployment(self, deployment: str, places: list[int], asking: Asking) -> None:
        requests = {place: asking.states[place].request for place in places}
        kept = KeptAnswers(self.folder) if self.folder is not None else None
        digests: dict[int, str] = {}
        if kept is not None:
            spec = get_model_deployment(deployment)
            digests = {place: digest_of(request, spec) for place, request in requests.items()}
            for place, result in kept.read(digests).items():
                asking.answered(place, result)
                del requests[place]
            if len(requests) < len(places):
                last = datetime.fromtimestamp(kept.path.stat().st_mtime).astimezone().isoformat(" ", "seconds")
                hwarn(
                    f"{len(places) - len(requests)} of {len(places)} answers were kept by an earlier start of this "
                    f"run, the last at {last}; to have them asked for again, remove {kept.path}"
                )
        if not requests:
            return
        context = HelmContext.of_this_process(self.execution_spec, deployment if self.engine.settings.gpus else "")
        threads = math.ceil(self.execution_spec.parallelism / self.engine.concurrency)
        rows = [[(place, requests[place]) for place in row if place in requests] for row in asking.rows]
        batches = _to_batches([row for row in rows if row], self._choose_size(len(requests)))
        tasks = itertools.takewhile(lambda _: not asking.is_stopped, batches)
        make_worker = functools.partial(LiveWorker, context, threads)
        try:
            for answers in self.engine.map(make_worker, tasks, split=Batch.split, in_order=False, give_up=_give_up):
                if kept is not None:
                    kept.append(
                        (one.place, digests[one.place], one.result) for one in answers if one.result is not None
                    )
                for one in answers:
                    if one.result is None:
                        asking.failed(one.place, one.failure)
                    else:
                        asking.answered(one.place, one.result)
        except DeploymentError as error:
            asking.stop(error)

    def _choose_size(self, requests: int) -> int:
        """Return how many requests a batch has: enough for each actor to have two."""
        share = math.ceil(requests / (2 * self.engine.count_workers()))
        return self.batch_size or max(1, min(WAVES * self.execution_spec.parallelism, share))


def _give_up(batch: Batch, why: str) -> list[Answer]:
    """Return what is said of a row that ends each process."""
    said = f"each of {LONE_TRIES} processes that asked for it alone died: {why}"
    return [Answer(place, None, said) for place in batch.places]


def _to_batches(rows: list[list[tuple[int, Request]]], size: int) -> Iterator[Batch]:
    """Put rows together until they have `size` requests."""
    batch: list[list[tuple[int, Request]]] = []
    number = 0
    for row in rows:
        batch.append(row)
        number += len(row)
        if number >= size:
            yield Batch(batch)
            batch, number = [], 0
    if batch:
        yield Batch(batch)


class RayRunner(StreamingRunner):
    """See the module's docstring."""

    executor_class = RayExecutor
    executor: RayExecutor
    shares_disk = False
    """Rows of recorded runs are sent to the actors, and the parts of the run's files come back."""
    _engine: RayEngine | None = None

    def run_all(self, run_specs: list[RunSpec]) -> None:
        """Run all, and let the actors go."""
        try:
            super().run_all(run_specs)
        finally:
            if self._engine is not None:
                self._engine.disconnect()
            self.executor.close()

    def make_engine(self) -> RayEngine:
        """Return the actors that score the rows of recorded runs."""
        end_workers()  # they have read
        if self._engine is None:
            self._engine = RayEngine()
        return self._engine

    def run_one(self, run_spec: RunSpec) -> None:
        """Run as StreamingRunner does. Answers that were kept are removed when all files are there."""
        self.executor.folder = None
        super().run_one(run_spec)
        if self.executor.folder is not None:
            KeptAnswers(self.executor.folder).remove()

    def _execute(self, run_spec: RunSpec, states: list[RequestState]) -> list[RequestState]:
        if not (self.dry_run or self.skip_instances):
            self.executor.folder = Path(self._get_run_path(run_spec))
        return super()._execute(run_spec, states)


KEPT_NAME = ".answers.jsonl"

_UNCHECKED = dacite.Config(check_types=False)
"""HELM's own clients put an int where a float is declared, and it is written as it was."""


def digest_of(request: Request, deployment: Any) -> str:
    """Return what tells requests apart, and who answers them."""
    return hashlib.sha256(dumps(request) + b"\0" + dumps(deployment)).hexdigest()[:32]


class KeptAnswers:
    """Answers of a run that is not complete yet, in a file of its folder: a second start does not ask for them again.

    Lines are appended as answers come, and are durable before anybody counts on them. A line holds one answer, the
    place of its request in the run and the request's digest: an answer is taken for the same request at the same
    place, or not at all. This is no cache: an answer serves one run, which asks once for each, and is gone when
    that is complete. So `--disable-cache` does not keep a start from what an earlier one of the same run has paid
    for. Two runs may append to one file. A line that a killed process, or a full disk, left half is not read.
    """

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
            with self.path.open("ab") as file:
                file.write(data + b"\n")
                file.flush()
                os.fsync(file.fileno())
            if is_new:
                sync_folder(self.path.parent)
        except OSError as error:
            raise HelmExtError(
                f"{self.path}: answers cannot be kept: {error}\n  hint: make room; those that are kept are not "
                "asked for again"
            ) from error

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


SENT_ENV = "HELM_EXT_RAY_ENV"
"""The environment variable that names others, by commas, which actors get: keys that no file of HELM holds."""

CREDENTIALS_ENV = "HELM_CREDENTIALS"
CREDENTIALS_FILE = "credentials.conf"
"""HELM's names, helm/common/general.py."""

_REGISTRIES: tuple[tuple[list[Any], dict[str, Any]], ...] = (
    (model_metadata_registry.ALL_MODELS_METADATA, model_metadata_registry.MODEL_NAME_TO_MODEL_METADATA),
    (model_deployment_registry.ALL_MODEL_DEPLOYMENTS, model_deployment_registry.DEPLOYMENT_NAME_TO_MODEL_DEPLOYMENT),
    (tokenizer_config_registry.ALL_TOKENIZER_CONFIGS, tokenizer_config_registry.TOKENIZER_NAME_TO_CONFIG),
)
"""HELM's models, deployments and tokenizers: in their order, and by name."""


def find_plugins(argv: Sequence[str]) -> list[str]:
    """Return the plugins of a helm-run command line, which a runner is not told; paths are absolute."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--plugins", nargs="+", default=[])  # as in helm/benchmark/run.py
    named = parser.parse_known_args(list(argv))[0].plugins
    return [str(Path(name).absolute()) if Path(name).exists() else name for name in named]


@dataclass(frozen=True)
class HelmContext:
    """The context of a helm-run, to be entered in another process. Nothing of it is ever printed."""

    execution_spec: ExecutionSpec = field(repr=False)
    credentials: str = field(repr=False)
    environ: dict[str, str] = field(repr=False)
    plugins: list[str] = field(repr=False)
    registered: list[list[Any]] = field(repr=False)
    """What is in `_REGISTRIES`."""
    deployment: str = ""
    """The only model that the process asks, so that it has a GPU for itself; empty where models share a process."""

    @classmethod
    def of_this_process(cls, execution_spec: ExecutionSpec, deployment: str = "") -> HelmContext:
        """Gather it. Raises HelmExtError for variables that cannot be sent."""
        spec = execution_spec
        if spec.local_path:
            spec = replace(spec, local_path=str(Path(spec.local_path).absolute()))
        if (cache := spec.sqlite_cache_backend_config) is not None:
            spec = replace(spec, sqlite_cache_backend_config=replace(cache, path=str(Path(cache.path).absolute())))
        named = [name.strip() for name in os.environ.get(SENT_ENV, "").split(",") if name.strip()]
        for name in named:
            if name not in os.environ:
                raise HelmExtError(f"{SENT_ENV} names {show(name)}, which is not set here")
        return cls(
            execution_spec=spec,
            credentials=_read_credentials(spec.local_path),
            environ={name: os.environ[name] for name in named},
            plugins=find_plugins(sys.argv[1:]),
            registered=[list(registered) for registered, _ in _REGISTRIES],
            deployment=deployment,
        )

    def enter(self) -> ExecutionSpec:
        """Make it this process's. Returns the specification of an Executor here. Raises HelmExtError for plugins."""
        from helm.benchmark.run import import_user_plugins, load_entry_point_plugins

        if absent := [name for name in self.plugins if Path(name).is_absolute() and not Path(name).exists()]:
            raise HelmExtError(f"--plugins {absent[0]}: not on this Ray node\n  hint: a folder that all nodes have")
        os.environ.update(self.environ)
        # An empty text would make HELM look for a file, which here may be somebody else's.
        os.environ[CREDENTIALS_ENV] = self.credentials or "\n"
        self._fill_registries()  # plugins may look something up
        with contextlib.redirect_stdout(io.StringIO()):
            load_entry_point_plugins()
            import_user_plugins(self.plugins)
        self._fill_registries()  # what they have registered is in here once already
        spec = self.execution_spec
        if spec.local_path and not Path(spec.local_path).is_dir():
            spec = replace(
                spec, local_path=tempfile.mkdtemp(prefix="helm_ext-prod_env-"), sqlite_cache_backend_config=None
            )
        return spec

    def _fill_registries(self) -> None:
        """Let HELM know the models, deployments and tokenizers of the sender, and no others."""
        for (registered, by_name), sent in zip(_REGISTRIES, self.registered, strict=True):
            registered[:] = sent
            by_name.clear()
            by_name.update((one.name, one) for one in sent)


def _read_credentials(local_path: str | None) -> str:
    """Return the text of HELM's credentials, read as `helm.common.general.get_credentials` does."""
    given = os.environ.get(CREDENTIALS_ENV, "")
    path = Path(local_path or "") / CREDENTIALS_FILE
    return given if given or not path.is_file() else path.read_text(encoding="utf-8")
