"""What a client can do beyond HELM's `make_request`, and what it can say beyond HELM's RequestResult.

`helm_ext.running.executor` asks for these two by their methods, so that a client of any package may have them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from helm.common.request import ErrorFlags, Request, RequestResult

if TYPE_CHECKING:
    from helm.benchmark.adaptation.request_state import RequestState

NOTES_KEY = "helm_ext"
"""Where a result's notes stand in `RequestState.annotations`."""


@runtime_checkable
class ListClient(Protocol):
    """A client that takes the requests of a row (of one instance and training trial) together.

    It is called from as many threads as `--num-threads` says; one that can do one thing at a time holds a lock. It
    makes its own attempts: no row is asked twice. An exception, or a result without success, is a failure of the row.
    """

    def make_requests(self, requests: Sequence[Request]) -> list[RequestResult]:
        """Return the results in the order of the requests. Raises DeploymentError where no other row can succeed."""


@runtime_checkable
class AsyncClient(Protocol):
    """A client that waits for many answers at once, on the event loop of `helm_ext.clients.server`."""

    def find_kept(self, requests: Sequence[Request]) -> list[RequestResult | None]:
        """Return the answers that are in the cache, None where there is none. Called before the others are sent."""

    async def send(self, request: Request, retrying: Callable[[int], None]) -> RequestResult:
        """Return the answer to a request that `find_kept` did not find, after the client's own attempts.

        `retrying` is called with 1 when the request begins to wait for another attempt, and with -1 when it no longer
        does. Raises DeploymentError where no other request can succeed either.
        """


# A client may also have `check_requests(requests: Sequence[Request]) -> None`. It is called with all requests of a run
# before the first is sent, and raises HelmExtError, once, for whatever of them it cannot send.


class NotedResult(RequestResult):
    """HELM's RequestResult with what the answer says of itself, in attributes that HELM's files do not hold.

    The runner puts the notes into `RequestState.annotations["helm_ext"]`: JSON, such as `usage` (OpenAI's names:
    `prompt_tokens`, `completion_tokens`), `seed`, `device`.
    """

    notes: Mapping[str, Any] = MappingProxyType({})
    is_refused: bool = False
    """Of a failure: the server is there and refuses this one request (too long a prompt). Others need not fail."""


def notes_of(result: RequestResult | None) -> Mapping[str, Any]:
    """Return a result's notes; {} where it has none."""
    return getattr(result, "notes", {})


def is_refused(result: RequestResult) -> bool:
    """Whether a failure says nothing about other requests (`NotedResult.is_refused`)."""
    return getattr(result, "is_refused", False)


def annotate_with_notes(states: Sequence[RequestState]) -> None:
    """Put the results' notes into the states' annotations, in place: before a run is written, after it is measured.

    HELM's annotators put their annotations in place of all others, and metrics such as its SafetyScoreMetric refuse
    states with more than one.
    """
    for state in states:
        if notes := notes_of(state.result):
            vars(state)["annotations"] = {**(state.annotations or {}), NOTES_KEY: dict(notes)}


def fail(message: str) -> NotedResult:
    """Return a failure that does not pass: HELM need not ask again, for the client has made its attempts."""
    flags = ErrorFlags(is_retriable=False, is_fatal=True)
    return NotedResult(success=False, cached=False, error=message, completions=[], embedding=[], error_flags=flags)


class OptionRequest(Request):
    """HELM's Request that knows which option of its row its prompt ends with. `option` is no dataclass field."""

    option: str

    @classmethod
    def of(cls, request: Request, option: str) -> OptionRequest:
        """Return the same request with its option."""
        made = cls()
        made.__dict__.update(request.__dict__, option=option)
        return made


def option_of(request: Request) -> str | None:
    """Return the text of the option that a prompt ends with; None where nobody has said it."""
    return getattr(request, "option", None)
