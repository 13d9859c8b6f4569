"""What a server knows of what runs may ask for: one request of each kind, written as the client writes them.

What a server refuses, it says. What it ignores shows in its answers only: a text that goes on after a stop sequence,
one answer where two were asked for, other words for the same seed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Any

from helm_ext.clients.openai_replies import Reply, ReplyError, parse_reply, to_result
from helm_ext.clients.openai_requests import ENDPOINTS, OMITTABLE, PATHS, Dialect, Endpoint, to_body
from helm_ext.clients.server import Fault, Server, ServerError
from helm_ext.errors import DeploymentError, show

if TYPE_CHECKING:
    from helm.common.request import Request

__all__ = ["Finding", "Outcome", "probe"]

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
        findings += [*asking.refused, asking.look_at_usage()]
        for look in (asking.look_at_limit, asking.look_at_stop, asking.look_at_n, asking.look_at_seed):
            findings.append(await look())
        findings.append(await asking.look_at_top_k())
    others = [endpoint for endpoint in ENDPOINTS if endpoint != dialect.endpoint]
    findings += [await asking.try_endpoint(endpoint) for endpoint in others]
    if findings[0].outcome is not Outcome.WORKS and findings[-1].outcome is not Outcome.WORKS:
        raise DeploymentError(findings[0].said)
    for way in ("echo", "extra_token", "prompt_logprobs"):
        findings.append(await asking.try_scoring(way))
    return findings


class _Asking:
    """The requests, and what the first of them was answered."""

    def __init__(self, server: Server, dialect: Dialect) -> None:
        self.server = server
        self.dialect = replace(dialect, extra_token=False, prompt_logprobs=False, seed=None)
        self.refused: list[Finding] = []
        self.base: Reply | None = None

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
            if error.fault is Fault.ALL and error.status != 404:
                if is_own:
                    raise DeploymentError(str(error)) from error
                return Finding(what, Outcome.REFUSED, _first_line(error))
            if error.status == 404:
                return Finding(what, Outcome.ABSENT, str(error) if is_own else _first_line(error))
            if error.fault is not Fault.OWN or not is_own:
                return Finding(what, Outcome.REFUSED, _first_line(error))
            found = await self._find_refused(dialect)
            if found is None:
                return Finding(what, Outcome.REFUSED, _first_line(error))
            reply = found
        except ReplyError as error:
            return Finding(what, Outcome.REFUSED, f"the reply is of no use: {error}")
        if is_own:
            self.base = reply
        return Finding(what, Outcome.WORKS, f"answered: {show(reply.choices[0].text.strip())}")

    async def _find_refused(self, dialect: Dialect) -> Reply | None:
        """Ask without any of the parameters that may be left out, then with one after the other."""
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

    def look_at_usage(self) -> Finding:
        """Whether the server counts tokens."""
        if self._base.usage:
            return Finding("usage", Outcome.WORKS, "tokens are counted by the server")
        return Finding("usage", Outcome.ABSENT, "tokens and cost are not known")

    async def look_at_limit(self) -> Finding:
        """Whether one token is all that comes where one is asked for."""
        field = self.dialect.limit_field
        found = await self._try(field, lambda dialect: self._ask(dialect, max_tokens=1))
        if isinstance(found, Finding):
            return found
        [choice] = found.choices
        counted = found.usage.get("completion_tokens")
        if counted == 1 or len(choice.text) < len(self._text) or (choice.finish_reason == "length" and not self._text):
            return Finding(field, Outcome.WORKS)
        if choice.text == self._text and isinstance(counted, int) and counted > 1:
            return Finding(field, Outcome.IGNORED, f"{counted} tokens came where 1 was asked for")
        return Finding(field, Outcome.UNCLEAR, f"answered: {show(choice.text)}")

    async def look_at_stop(self) -> Finding:
        """Whether a text ends before some letters out of its middle."""
        stop = _choose_stop(self._text)
        if stop is None:
            return Finding("stop", Outcome.UNCLEAR, f"no letters to stop at in {show(self._text)}")
        found = await self._try("stop", lambda dialect: self._ask(dialect, stop_sequences=[stop]))
        if isinstance(found, Finding):
            return found
        answer = found.choices[0].text
        if stop not in answer.removesuffix(stop):
            return Finding("stop", Outcome.WORKS)
        return Finding("stop", Outcome.IGNORED, "the client cuts the texts; all of each is paid for")

    async def look_at_n(self) -> Finding:
        """Whether two answers come where two are asked for."""
        if "n" in self.dialect.omit:
            return Finding("n", Outcome.REFUSED, "num_outputs above 1 cannot be asked for")
        found = await self._try("n", lambda dialect: self._ask(dialect, num_completions=2, temperature=1.0))
        if isinstance(found, Finding):
            if found.outcome is Outcome.UNCLEAR:  # another number of choices
                return Finding("n", Outcome.IGNORED, "runs with num_outputs above 1 fail")
            return found
        return Finding("n", Outcome.WORKS)

    async def look_at_seed(self) -> Finding:
        """Whether equal seeds make equal texts, and others do not."""
        if "temperature" in self.dialect.omit:
            return Finding("seed", Outcome.UNCLEAR, "without temperature it does not show")
        texts = []
        for seed in (1, 1, 2):
            found = await self._try("seed", partial(self._ask_with_seed, seed))
            if isinstance(found, Finding):
                return found
            texts.append(found.choices[0].text)
        if texts[0] != texts[1]:
            return Finding("seed", Outcome.IGNORED, "the same seed made two texts")
        if texts[0] == texts[2]:
            return Finding("seed", Outcome.UNCLEAR, "two seeds made the same text")
        return Finding("seed", Outcome.WORKS)

    async def _ask_with_seed(self, seed: int, dialect: Dialect) -> Reply:
        return await self._ask(replace(dialect, seed=seed), temperature=1.0)

    async def look_at_top_k(self) -> Finding:
        """Whether the likeliest of one token is what comes at temperature 0."""
        if "temperature" in self.dialect.omit:
            return Finding("top_k", Outcome.UNCLEAR, "without temperature it does not show")
        texts = []
        for _ in range(2):
            found = await self._try("top_k", lambda dialect: self._ask(dialect, {"top_k": 1}, temperature=1.5))
            if isinstance(found, Finding):
                return found
            texts.append(found.choices[0].text)
        if texts == [self._text] * 2:
            return Finding("top_k", Outcome.WORKS, "--top-k sends it")
        return Finding("top_k", Outcome.IGNORED, "with top_k 1, another text than at temperature 0")

    async def try_scoring(self, way: str) -> Finding:
        """Ask for the log-probabilities of a prompt."""
        what = {
            "echo": "log-probabilities: echo",
            "extra_token": "log-probabilities: echo, 1 token",
            "prompt_logprobs": "log-probabilities: prompt_logprobs",
        }[way]
        option = {"echo": "", "extra_token": " (--extra-token)", "prompt_logprobs": " (--prompt-logprobs)"}[way]
        dialect = replace(
            self.dialect,
            endpoint="completions",
            max_tokens_field=None,
            extra_token=way == "extra_token",
            prompt_logprobs=way == "prompt_logprobs",
        )
        request = replace(_make_request(), max_tokens=0, echo_prompt=True)
        try:
            body = await self.server.ask_once(PATHS["completions"], to_body(request, dialect))
        except ServerError as error:
            outcome = Outcome.ABSENT if error.status == 404 else Outcome.REFUSED
            return Finding(what, outcome, _first_line(error))
        try:
            reply = parse_reply(body, "completions", echo=True)
            [completion] = to_result(reply, request, extra_token=dialect.extra_token).completions
        except ReplyError as error:
            return Finding(what, Outcome.IGNORED, str(error))
        if completion.text != PROMPT or not any(token.logprob for token in completion.tokens):
            return Finding(what, Outcome.UNCLEAR, f"of {show(completion.text)}")
        return Finding(what, Outcome.WORKS, f"{len(completion.tokens)} tokens{option}")

    @property
    def _base(self) -> Reply:
        assert self.base is not None
        return self.base

    @property
    def _text(self) -> str:
        return self._base.choices[0].text

    async def _try(self, what: str, ask: Callable[[Dialect], Any]) -> Reply | Finding:
        """Return the reply, or that it was refused."""
        try:
            reply: Reply = await ask(self.dialect)
        except ServerError as error:
            return Finding(what, Outcome.REFUSED, _first_line(error))
        except ReplyError as error:
            return Finding(what, Outcome.UNCLEAR, str(error))
        return reply

    async def _ask(self, dialect: Dialect, more: dict[str, Any] | None = None, **changes: Any) -> Reply:
        """Ask once. Raises ServerError, ReplyError."""
        request = replace(_make_request(), **changes)
        body = {**to_body(request, dialect), **(more or {})}
        reply = await self.server.ask_once(PATHS[dialect.endpoint], body)
        return parse_reply(reply, dialect.endpoint, number=request.num_completions)


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
