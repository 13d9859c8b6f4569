"""HELM's Executor for live models: requests by row or many at once, and rows that fail do not take the others along.

How a client is asked:

- one that waits for many answers at once (`clients.client.AsyncClient`; ours): `--num-threads` requests in flight, from
  one event loop;
- one that takes a row's requests together (`ListClient`): by the row, from `--num-threads` threads;
- any other, and HELM's remote service: as HELM's Executor does, by the request, from `--num-threads` threads.

A run goes on when a row fails. At the end, the failed rows are left out and counted (`missing=skip`), or the run stops
and names them; the other answers are in the cache by then. It stops early where going on is of no use: the client says
so (DeploymentError), or nothing but failures came for a while.

What a client notes of an answer stays with the result (`clients.client.NotedResult`), and the runner writes it into
`RequestState.annotations` when the metrics are done: some of HELM's refuse annotations that they do not know.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from helm.benchmark.adaptation.scenario_state import ScenarioState
from helm.benchmark.executor import Executor, ExecutorError
from helm.benchmark.model_deployment_registry import get_model_deployment
from helm.benchmark.window_services.tokenizer_service import TokenizerService
from helm.benchmark.window_services.window_service_factory import WindowServiceFactory
from helm.common.hierarchical_logger import hlog, htrack_block, hwarn
from helm.common.local_context import LocalContext
from helm.common.request import RequestResult

from helm_ext.clients.client import AsyncClient, ListClient, RequestCache
from helm_ext.errors import DeploymentError, count
from helm_ext.evalset import row_extra
from helm_ext.running.asking import Asking, settle
from helm_ext.running.spending import LiveProgress, Spending

if TYPE_CHECKING:
    from helm.benchmark.adaptation.request_state import RequestState
    from helm.common.request import Request

FEWEST_FAILURES = 10
"""So many rows at least fail one after another, and none between them is answered, before a run is given up."""

MOST_REFUSED, MOST_REFUSED_AND_SKIPPED = 20, 1_000
"""So many rows are refused, and none is answered, before a run is given up: the second where refused rows are left out.

A run that leaves out no rows comes to nothing anyway. One that does may begin with many that are too long.
"""

_LOOKED_UP = 500
"""Requests that are looked up in a cache together."""


class LiveExecutor(Executor):
    """HELM's Executor, with its constructor and its results. See the module's docstring."""

    has_answered = False
    """Whether the model answered a request of an earlier part."""
    skips_failed = False
    """Whether rows that fail are left out (`asking.skips_failed`)."""
    spending: Spending | None = None
    """Prices and limits; nothing is foreseen and nothing limited without."""
    make_progress: Callable[..., LiveProgress] = LiveProgress

    @classmethod
    def in_place_of(cls, executor: Executor) -> LiveExecutor:
        """Return one with the specification and the context of another, which need not be made twice.

        With the user's prices and limits. Raises RunEntryError for those that make no sense.
        """
        made = cls.__new__(cls)
        made.execution_spec, made.context = executor.execution_spec, executor.context
        made.spending = Spending.read(Path(executor.execution_spec.local_path))
        return made

    def execute(self, scenario_state: ScenarioState) -> ScenarioState:
        """Return the state with results, in the order in which it was given.

        Raises RowsFailedError for rows that fail and are not left out, DeploymentError where the model cannot be asked,
        LimitReached, and HelmExtError for requests that cannot be sent.
        """
        if self.execution_spec.dry_run:
            hlog("Skipped execution.")
            return scenario_state
        asked = self.ask(scenario_state.request_states)
        states = settle(asked, skips_failed=self.skips_failed)
        hlog(f"Processed {len(states)} requests")
        return ScenarioState(
            adapter_spec=scenario_state.adapter_spec,
            request_states=states,
            annotator_specs=scenario_state.annotator_specs,
        )

    def ask(self, states: Sequence[RequestState]) -> Asking:
        """Return the states with their results, and why some have none. `settle` decides what becomes of those."""
        rows = _to_rows(states)
        live: dict[str, list[int]] = {}
        for place, state in enumerate(states):
            if getattr(state.request, "result", None) is None:  # else recorded, or left out
                live.setdefault(state.request.model_deployment, []).append(place)
        self._check(states, live)
        with (
            htrack_block(f"Asking for {len(states)} answers, {self.execution_spec.parallelism} at a time"),
            self._open_progress(len(rows), live) as progress,
        ):
            refused = MOST_REFUSED_AND_SKIPPED if self.skips_failed else MOST_REFUSED
            asking = Asking(
                states, rows, progress, max(FEWEST_FAILURES, self.execution_spec.parallelism),
                most_refused=None if self.has_answered else refused,
            )  # fmt: skip
            for place, state in enumerate(states):
                if (result := getattr(state.request, "result", None)) is not None:
                    asking.answered(place, result)
            try:
                for deployment, places in live.items():
                    self._ask_deployment(deployment, places, asking)
            finally:
                RequestCache.flush_all()
                self.has_answered = self.has_answered or asking.has_answered
        if asking.stopped_by is not None:
            raise asking.stopped_by
        return asking

    def _get_client(self, deployment: str) -> Any:
        """Return the client of a deployment; None where HELM's service asks."""
        return self.context.client._get_client(deployment) if isinstance(self.context, LocalContext) else None  # noqa: SLF001

    def _check(self, states: Sequence[RequestState], live: dict[str, list[int]]) -> None:
        """Let clients look at all requests before the first is sent."""
        for deployment, places in live.items():
            client = self._get_client(deployment)
            check = getattr(client, "check_requests", None)
            if check is not None:
                check([states[place].request for place in places])
            for name, value in getattr(client, "taken_as_unset", {}).items():
                _warn_of_unsent(deployment, name, value, [states[place] for place in places])

    def _open_progress(self, rows: int, live: dict[str, list[int]]) -> LiveProgress:
        if self.spending is None:
            return self.make_progress(rows)
        prices, budget = self.spending.prices_of(live), self.spending.budget
        return self.make_progress(rows, prices=prices, budget=budget)

    def _announce(self, deployment: str, places: list[int], states: Sequence[RequestState]) -> None:
        """Log what a server is about to be asked for. Raises LimitReached, and RunEntryError for vain limits."""
        if self.spending is None or not places:
            return
        client = self._get_client(deployment)
        self.spending.require_kept(deployment, client)
        if not isinstance(client, AsyncClient) and deployment not in self.spending.prices:
            return  # a model of this machine's: its tokens cost nothing but time
        count_tokens = None
        if get_model_deployment(deployment).tokenizer_name is not None:
            window = WindowServiceFactory.get_window_service(deployment, TokenizerService(self.context))
            count_tokens = window.get_num_tokens
        self.spending.announce(deployment, (states[place].request for place in places), count_tokens)

    def _ask_deployment(self, deployment: str, places: list[int], asking: Asking) -> None:
        client = self._get_client(deployment)
        if isinstance(client, AsyncClient):
            places = _without_kept(client, places, asking)
            self._announce(deployment, places, asking.states)
            from helm_ext.clients import server  # asyncio takes time that recorded runs can spare

            server.run(_ask_at_once(client, places, asking, self.execution_spec.parallelism))
            return
        self._announce(deployment, places, asking.states)
        units: Iterable[list[int]] = [[place] for place in places]
        make: Callable[[list[Request]], list[RequestResult]] = self._make_one
        if isinstance(client, ListClient):
            chosen = frozenset(places)
            units = [[place for place in row if place in chosen] for row in asking.rows]
            make = client.make_requests
        units = [unit for unit in units if unit]

        def ask_unit(unit: list[int]) -> None:
            if asking.is_stopped:
                return
            try:
                results = make([asking.states[place].request for place in unit])
                if len(results) != len(unit):
                    raise ExecutorError(f"{len(results)} results of {len(unit)} requests")  # noqa: TRY301
            except DeploymentError as error:
                asking.stop(error)
            except Exception as error:  # noqa: BLE001 - a client may raise anything, and the other rows go on
                for place in unit:
                    asking.failed(place, str(error) or type(error).__name__)
            else:
                for place, result in zip(unit, results, strict=True):
                    asking.take(place, result)

        if self.execution_spec.parallelism == 1:
            for unit in units:
                ask_unit(unit)
            return
        with ThreadPoolExecutor(max_workers=self.execution_spec.parallelism) as pool:
            try:
                list(pool.map(ask_unit, units))
            except BaseException:  # Ctrl-C: those that wait are not asked
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    def _make_one(self, requests: list[Request]) -> list[RequestResult]:
        return [self.context.make_request(request) for request in requests]


async def _ask_at_once(client: AsyncClient, places: list[int], asking: Asking, in_flight: int) -> None:
    """Ask for the answers to the requests at these places in their order, so many at a time, from one event loop."""
    import asyncio

    waiting = iter(places)

    async def work() -> None:
        for place in waiting:
            if asking.is_stopped:
                return
            try:
                result = await client.send(asking.states[place].request, asking.progress.retrying)
            except DeploymentError as error:
                asking.stop(error)
            except Exception as error:  # noqa: BLE001 - as for other clients
                asking.failed(place, str(error) or type(error).__name__)
            else:
                asking.take(place, result)

    workers = [asyncio.ensure_future(work()) for _ in range(min(in_flight, len(places)))]
    try:
        while workers:
            done, pending = await asyncio.wait(workers, return_when=asyncio.FIRST_COMPLETED)
            for worker in done:
                worker.result()
            workers = list(pending)
            if isinstance(asking.stopped_by, DeploymentError):
                break  # the others wait for what does not come
    finally:
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)


def _without_kept(client: AsyncClient, places: list[int], asking: Asking) -> list[int]:
    """Take the answers that are in the client's cache; return the places of the others."""
    others = []
    for start in range(0, len(places), _LOOKED_UP):
        part = places[start : start + _LOOKED_UP]
        for place, kept in zip(part, client.find_kept([asking.states[p].request for p in part]), strict=True):
            if kept is None:
                others.append(place)
            else:
                asking.take(place, kept)
    return others


def _warn_of_unsent(deployment: str, name: str, value: Any, states: Sequence[RequestState]) -> None:
    """Warn of rows whose file sets the value that a request has where nobody sets one, and which is not sent."""
    said = 0
    for state in states:
        decoding = row_extra(state.instance).get("decoding", {})
        said += decoding.get(name) == value and state.request.temperature != 0
    if said:
        hwarn(
            f"{deployment}: {name}={value}, which the file sets for {count(said, 'request')}, is not sent: it is what "
            "HELM's requests say where nobody sets one\n"
            "  hint: temperature: 0 says the same as top_k: 1"
        )


def _to_rows(states: Sequence[RequestState]) -> list[list[int]]:
    """Return the places of the states of each instance and training trial, in the order in which they come."""
    rows: dict[tuple[int, int], list[int]] = {}
    for place, state in enumerate(states):
        rows.setdefault((state.train_trial_index, id(state.instance)), []).append(place)
    return list(rows.values())
