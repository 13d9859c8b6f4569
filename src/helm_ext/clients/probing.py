"""What a server knows of what runs may ask for: one request of each kind, written as the client writes them.

What a server refuses, it says. What it ignores shows in its answers only: a text that goes on after a stop sequence,
one answer where two were asked for, other words for the same seed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Any

from helm_ext.clients.openai_replies import Reply, ReplyError, parse_reply, to_result
from helm_ext.clients.openai_requests import ENDPOINTS, OMITTABLE, PATHS, Dialect, Endpoint, to_body
from helm_ext.clients.server import Fault, Server, ServerError
from helm_ext.errors import DeploymentError, show

if TYPE_CHECKING:
    from helm.common.request import Request

PROMPT = "Write the numbers from one to twelve in words, with commas between them."
MAX_TOKENS = 24


class Outcome(Enum):
    """What came of asking."""

    WORKS = "works"
    REFUSED = "refused"
    IGNORED = "ignored"
    UNCLEAR = "not clear"
    ABSENT = "not there"


@dataclass(frozen=True)
class Finding:
    """One thing that was tried. `said`: what the server answered, or what follows for the deployment."""

    what: str
    outcome: Outcome
    said: str = ""


async def probe(server: Server, dialect: Dialect) -> list[Finding]:
    """Return what was found. The first is about the deployment's own endpoint.

    Raises DeploymentError where nothing can be asked: nobody at the address, a wrong key, a model that is not there.
    """
    asking = _Asking(server, dialect)
    findings = [await asking.try_endpoint(dialect.endpoint)]
    if findings[0].outcome is Outcome.WORKS:
        findings += asking.refused
        for what, look in (
            ("usage", asking.look_at_usage), (asking.dialect.limit_field, asking.look_at_limit),
            ("stop", asking.look_at_stop), ("n", asking.look_at_n), ("seed", asking.look_at_seed),
            ("top_k", asking.look_at_top_k),
        ):  # fmt: skip
            findings.append(await _try(what, look))
    [other] = [endpoint for endpoint in ENDPOINTS if endpoint != dialect.endpoint]
    findings.append(await asking.try_endpoint(other))
    if findings[0].outcome is not Outcome.WORKS and findings[-1].outcome is not Outcome.WORKS:
        raise DeploymentError(findings[0].said)
    return [*findings, *[await asking.try_scoring(*way) for way in _SCORING]]


_SCORING: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("echo", {}, ""),
    ("echo, 1 token", {"extra_token": True}, " (--extra-token)"),
    ("prompt_logprobs", {"prompt_logprobs": True}, " (--prompt-logprobs)"),
)
"""Ways to ask for the log-probabilities of a prompt: name, what the dialect says, the option of `model add`."""


async def _try(what: str, look: Callable[[], Awaitable[tuple[Outcome, str]]]) -> Finding:
    """Return what a look came to, or that the server refused what was asked."""
    try:
        return Finding(what, *await look())
    except ServerError as error:
        return Finding(what, Outcome.REFUSED, _first_line(error))
    except ReplyError as error:
        return Finding(what, Outcome.UNCLEAR, str(error))


class _Asking:
    """The requests, each sent once, and what the first of them was answered."""

    base: Reply
    """Of the deployment's own endpoint; the looks compare with it."""

    def __init__(self, server: Server, dialect: Dialect) -> None:
        self.server = Server(server.url, server.api_key, timeout=server.timeout, retries=0, retry_seconds=0)
        self.dialect = replace(dialect, extra_token=False, prompt_logprobs=False, seed=None)
        self.refused: list[Finding] = []

    async def try_endpoint(self, endpoint: Endpoint) -> Finding:
        """Ask for an answer, without parameters that are refused."""
        is_own = endpoint == self.dialect.endpoint
        dialect = replace(
            self.dialect, endpoint=endpoint, max_tokens_field=self.dialect.max_tokens_field if is_own else None
        )
        what = f"/v1{PATHS[endpoint]}"
        try:
            reply = await self._ask(dialect)
        except ServerError as error:
            if error.status == 404:
                return Finding(what, Outcome.ABSENT, str(error) if is_own else _first_line(error))
            if is_own and error.fault is Fault.ALL:
                raise DeploymentError(str(error)) from error
            found = await self._find_refused(dialect) if is_own and error.fault is Fault.OWN else None
            if found is None:
                return Finding(what, Outcome.REFUSED, _first_line(error))
            reply = found
        except ReplyError as error:
            return Finding(what, Outcome.REFUSED, f"the reply is of no use: {error}")
        if is_own:
            self.base = reply
        return Finding(what, Outcome.WORKS, f"answered: {show(reply.choices[0].text.strip())}")

    async def _find_refused(self, dialect: Dialect) -> Reply | None:
        """Ask without any of the parameters that may be omitted, then with one after the other."""
        try:
            reply = await self._ask(replace(dialect, omit=OMITTABLE))
        except (ServerError, ReplyError):
            return None
        omit = list(dialect.omit)
        for name in OMITTABLE:
            if name in omit:
                continue
            try:
                await self._ask(replace(dialect, omit=tuple(other for other in OMITTABLE if other != name)))
            except (ServerError, ReplyError) as error:
                self.refused.append(Finding(name, Outcome.REFUSED, f"{_first_line(error)} (--omit {name})"))
                omit.append(name)
        self.dialect = replace(self.dialect, omit=tuple(omit))
        return reply

    async def look_at_usage(self) -> tuple[Outcome, str]:
        """Whether the server counts tokens."""
        if self.base.usage:
            return Outcome.WORKS, "tokens are counted by the server"
        return Outcome.ABSENT, "tokens and cost are not known"

    async def look_at_limit(self) -> tuple[Outcome, str]:
        """Whether one token is all that comes where one is asked for."""
        found = await self._ask(max_tokens=1)
        [choice] = found.choices
        counted = found.usage.get("completion_tokens")
        if counted == 1 or len(choice.text) < len(self._text) or (choice.finish_reason == "length" and not self._text):
            return Outcome.WORKS, ""
        if choice.text == self._text and isinstance(counted, int) and counted > 1:
            return Outcome.IGNORED, f"{counted} tokens came where 1 was asked for"
        return Outcome.UNCLEAR, f"answered: {show(choice.text)}"

    async def look_at_stop(self) -> tuple[Outcome, str]:
        """Whether a text ends before some letters out of its middle."""
        stop = _choose_stop(self._text)
        if stop is None:
            return Outcome.UNCLEAR, f"no letters to stop at in {show(self._text)}"
        found = await self._ask(stop_sequences=[stop])
        if stop not in found.choices[0].text.removesuffix(stop):
            return Outcome.WORKS, ""
        return Outcome.IGNORED, "the client cuts the texts; all of each is paid for"

    async def look_at_n(self) -> tuple[Outcome, str]:
        """Whether two answers come where two are asked for."""
        if "n" in self.dialect.omit:
            return Outcome.REFUSED, "num_outputs above 1 cannot be asked for"
        try:
            await self._ask(num_completions=2, temperature=1.0)
        except ReplyError:  # another number of choices
            return Outcome.IGNORED, "runs with num_outputs above 1 fail"
        return Outcome.WORKS, ""

    async def look_at_seed(self) -> tuple[Outcome, str]:
        """Whether equal seeds make equal texts, and others do not."""
        if "temperature" in self.dialect.omit:
            return Outcome.UNCLEAR, "without temperature it does not show"
        replies = [await self._ask(replace(self.dialect, seed=seed), temperature=1.0) for seed in (1, 1, 2)]
        first, same, other = (reply.choices[0].text for reply in replies)
        if first != same:
            return Outcome.IGNORED, "the same seed made two texts"
        return (Outcome.UNCLEAR, "two seeds made the same text") if first == other else (Outcome.WORKS, "")

    async def look_at_top_k(self) -> tuple[Outcome, str]:
        """Whether the likeliest of one token is what comes at temperature 0."""
        if "temperature" in self.dialect.omit:
            return Outcome.UNCLEAR, "without temperature it does not show"
        replies = [await self._ask(more={"top_k": 1}, temperature=1.5) for _ in range(2)]
        if all(reply.choices[0].text == self._text for reply in replies):
            return Outcome.WORKS, "--top-k sends it"
        return Outcome.IGNORED, "with top_k 1, another text than at temperature 0"

    async def try_scoring(self, way: str, dialect_of_way: dict[str, Any], option: str) -> Finding:
        """Ask for the log-probabilities of a prompt."""
        what = f"log-probabilities: {way}"
        dialect = replace(self.dialect, endpoint="completions", max_tokens_field=None, **dialect_of_way)
        request = replace(_make_request(), max_tokens=0, echo_prompt=True)
        try:
            reply = await self._ask(dialect, max_tokens=0, echo_prompt=True)
            [completion] = to_result(reply, request, dialect).completions
        except ServerError as error:
            return Finding(what, Outcome.ABSENT if error.status == 404 else Outcome.REFUSED, _first_line(error))
        except ReplyError as error:
            return Finding(what, Outcome.IGNORED, str(error))
        if completion.text != PROMPT or not any(token.logprob for token in completion.tokens):
            return Finding(what, Outcome.UNCLEAR, f"of {show(completion.text)}")
        return Finding(what, Outcome.WORKS, f"{len(completion.tokens)} tokens{option}")

    @property
    def _text(self) -> str:
        return self.base.choices[0].text

    async def _ask(self, dialect: Dialect | None = None, *, more: Mapping[str, Any] = {}, **changes: Any) -> Reply:
        """Ask once; `more` goes into the body beside what the client would send. Raises ServerError, ReplyError."""
        dialect, request = dialect or self.dialect, replace(_make_request(), **changes)
        body = {**to_body(request, dialect), **more}
        reply = await self.server.ask(PATHS[dialect.endpoint], body, lambda found: found)
        return parse_reply(reply, dialect.endpoint, number=request.num_completions, echo=bool(request.echo_prompt))


def _make_request() -> Request:
    from helm.common.request import Request

    return Request(model="x/x", model_deployment="x/x", prompt=PROMPT, temperature=0.0, max_tokens=MAX_TOKENS)


def _choose_stop(text: str) -> str | None:
    """Return some letters of a text, of its second half if there are. Others may lie across the borders of tokens."""
    places = [*range(len(text) // 2, len(text) - 2), *range(1, len(text) // 2)]
    found = (text[place : place + 2] for place in places)
    return next((letters for letters in found if letters.isascii() and letters.isalnum()), None)


def _first_line(error: Exception) -> str:
    """Return what an error says, without hints and without the address, which is the same for all."""
    line = str(error).splitlines()[0]
    return line.split(": ", 1)[1] if line.startswith("http") and ": " in line else line
