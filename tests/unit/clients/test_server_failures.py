"""What servers do wrong: how often each request is sent, how long it takes, what is kept."""

import gzip
import json
import threading
import time
from dataclasses import replace
from email.utils import formatdate

import pytest
from helm.common.cache import Cache, SqliteCacheConfig
from helm.common.request import Request
from openai_server import Odd, answer_chat, answer_completions, serve

from helm_ext.clients import OpenAICompatibleClient
from helm_ext.clients import server as server_module
from helm_ext.clients.server import Fault, ServerError, _retry_after

REQUEST = Request(model="acme/tiny", model_deployment="here/tiny", prompt="Capital of France?", max_tokens=5)
SCORED = replace(REQUEST, max_tokens=0, echo_prompt=True)


def without_hint(failed):
    """What failed, without the sentence about HELM's runner, which is always there."""
    reason, hint, _ = failed.error.partition("\n  hint: HELM's runner stops at the first request without an answer")
    assert hint
    return reason


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(server_module, "FIRST_DELAY", 0.01)


@pytest.fixture
def config(tmp_path):
    return SqliteCacheConfig(str(tmp_path / "cache.sqlite"))


def make(server, config, **args):
    client = OpenAICompatibleClient(config, base_url=f"{server.url}/v1", **args)
    client.server.has_answered = client.server.has_connected = True  # as in the middle of a run
    return client


def first(server, *odd):
    """Answer so to the first requests, and well afterwards."""
    waiting = list(odd)
    server.instead = lambda path, body: waiting.pop(0) if waiting else None


def with_choice(body, **changes):
    """A reply whose choice says something else."""
    reply = answer_chat(body) if "messages" in body else answer_completions(body)
    reply["choices"][0] |= changes
    return 200, reply


def null_values(body):
    values = answer_completions(body)["choices"][0]["logprobs"]
    return with_choice(body, logprobs={**values, "token_logprobs": [None] * len(values["tokens"])})


def saying(body, content):
    reply = answer_chat(body)
    reply["choices"][0]["message"]["content"] = content
    return reply


ODD_BUT_ANSWERED = {
    "byte order mark": lambda body: b"\xef\xbb\xbf" + json.dumps(saying(body, "Paris")).encode(),
    "half a surrogate pair": lambda body: json.dumps(saying(body, "Paris\ud83d")).encode(),
    "packed": lambda body: Odd(
        200, gzip.compress(json.dumps(saying(body, "Paris")).encode()), {"Content-Encoding": "gzip"}
    ),
    "NaN in usage": lambda body: json.dumps(
        {**saying(body, "Paris"), "usage": {"cost": float("nan"), "total_tokens": 9}}
    ).encode(),
}


@pytest.mark.parametrize("kind", ODD_BUT_ANSWERED)
def test_what_no_answer_needs_is_not_in_the_way_of_one(kind, server, config):
    def answer(path, body):
        odd = ODD_BUT_ANSWERED[kind](body)
        return odd if isinstance(odd, Odd) else (200, odd)

    server.instead = answer
    result = make(server, config).make_request(REQUEST)
    assert result.success, result.error
    assert result.completions[0].text.rstrip("\ufffd") == "Paris"
    assert len(server.asked) == 1
    again = make(server, config).make_request(REQUEST)  # out of the cache
    assert (again.completions[0].text, again.cached) == (result.completions[0].text, True)


def nested(body):
    return 200, f'{json.dumps(saying(body, "Paris"))[:-1]}, "more": {"[" * 500}{"]" * 500}}}'.encode()


GARBLED = {
    "malformed JSON": lambda body: (200, b'{"choices": [{"index": 0, "mess'),
    "half a surrogate pair as bytes": lambda body: (
        200,
        json.dumps(saying(body, "Paris")).encode().replace(b"Paris", b"a\xed\xa0\x80b"),
    ),
    "not JSON": lambda body: (200, b"<html>busy</html>"),
    "not a number": lambda body: (200, b'{"choices": NaN}'),
    "a list": lambda body: (200, []),
    "null": lambda body: (200, None),
    "an error with status 200": lambda body: (200, {"error": "busy"}),
    "deeper than the cache can hold": nested,
    "empty choices": lambda body: (200, {**answer_chat(body), "choices": []}),
    "null content": lambda body: with_choice(
        body, message={"role": "assistant", "content": None}, finish_reason="stop"
    ),
    "null log-probabilities": lambda body: with_choice(body, logprobs=None),
    "null for every token": null_values,
}


def make_asking(server, config, kind):
    """A client, and the request to which such a reply is garbled."""
    is_scored = "log" in kind or "token" in kind
    return make(server, config, endpoint="completions" if is_scored else "chat"), SCORED if is_scored else REQUEST


@pytest.mark.parametrize("kind", GARBLED)
def test_a_reply_that_cannot_be_read_is_asked_for_twice_more_and_not_kept(server, config, kind):
    client, request = make_asking(server, config, kind)
    server.instead = lambda path, body: GARBLED[kind](body)
    failed = client.make_request(request)
    assert (failed.success, failed.completions, len(server.asked)) == (False, [], 3)
    assert without_hint(failed).endswith("(sent again 2 times)")
    assert not failed.error_flags.is_retriable  # HELM must not begin all over
    server.instead = lambda path, body: None
    answered = client.make_request(request)
    assert (answered.success, answered.cached, len(server.asked)) == (True, False, 4)


@pytest.mark.parametrize("kind", ["empty choices", "null content", "null log-probabilities", "null for every token"])
def test_a_reply_of_no_use_that_is_in_the_cache_is_asked_for_again_and_replaced(server, config, kind):
    """HELM's clients keep what comes before they look at it."""
    client, request = make_asking(server, config, kind)
    client.make_request(request)
    [(path, body)] = server.asked
    key = client._make_key(body, request)
    client.cache.put_many([(key, GARBLED[kind](body)[1])])
    client.cache.flush()
    again = client.make_request(request)
    assert (again.success, again.cached, len(server.asked)) == (True, False, 2)
    assert client.make_request(request).cached
    kept, _ = Cache(config).get(key, lambda: pytest.fail("stock HELM does not find it"))
    assert kept["choices"] == (answer_chat if "chat" in path else answer_completions)(body)["choices"]


@pytest.mark.parametrize(("odd", "asked"), [
    ([(500, {}), (500, {})], 3), ([Odd(reset=True), Odd(reset=True)], 3),
    ([Odd(200, {"choices": [1, 2, 3]}, cut=5)], 2),
], ids=["errors", "connections that are reset", "a reply that breaks off"])  # fmt: skip
def test_errors_that_pass(server, config, odd, asked):
    first(server, *odd)
    assert make(server, config).make_request(REQUEST).success
    assert len(server.asked) == asked


def saying_why(message, **more):
    return {"error": {"message": message, **more}}


NOT_TRIED_AGAIN = {
    **{
        f"status {status}": ((status, saying_why("the prompt is too long")), f"status {status}: the prompt is too long")
        for status in (400, 413, 422)
    },
    "too late": (Odd(429, saying_why("slow down"), {"Retry-After": "3600"}), "status 429: slow down"),
    "a redirect": (Odd(307, {}, {"Location": "http://elsewhere.invalid/v1"}), "the server sends on to"),
    "a quota": ((429, saying_why("no money", code="insufficient_quota")), "status 429: no money"),
    "a wrong key": ((401, saying_why("Wrong: Bearer sk-hush")), "refuses the key that it was sent (status 401): Wrong"),
}


@pytest.mark.parametrize("kind", NOT_TRIED_AGAIN)
def test_what_is_not_tried_again(server, config, kind):
    odd, said = NOT_TRIED_AGAIN[kind]
    server.instead = lambda path, body: odd
    client = make(server, config, api_key="sk-hush")
    failed = client.make_request(REQUEST)
    assert failed.error.startswith(f"{server.url}/v1/chat/completions: ")
    assert said in failed.error
    assert "hush" not in repr(failed)  # servers repeat what they were sent
    assert (len(server.asked), client.server._resume_at) == (1, 0)  # nor do others wait


@pytest.mark.parametrize(("status", "said", "url", "expected"), [
    (400, "The model `tiny` does not exist.", "/v1", "in the deployment; it knows tiny-1, tiny:latest"),
    (404, "The model `tiny` does not exist.", "/v1", "the server does not know the model 'tiny'"),
    *(
        (status, said, "/v1", f"the server does not know the model 'tiny' (status {status})")
        for status, said in [
            (400, "The model does not exist"), (422, "Invalid model"), (400, "tiny is not a valid model ID"),
            (400, "Model Not Exist"), (422, "Access to model tiny denied"), (400, {"code": "model_not_found", "message": "no"}),
        ]
    ),
    (400, "This model has a tiny context, and max_tokens=9 is invalid", "/v1", "status 400: This model has"),
    (422, "Invalid value: 'tiny'", "/v1", "status 422: Invalid"),
    # Servers answer to more names than they list (Ollama: `tiny` for `tiny:latest`).
    (400, "This model's maximum context length is 8 tokens.", "/v1", "status 400: This model's maximum context"),
    (401, "Unauthorized", "/v1", "refuses requests without a key (status 401): Unauthorized\n  hint: api_key in"),
    (None, "", "/v2", "status 404: no such endpoint: /v2/chat/completions\n  hint: the address or the model is"),
])  # fmt: skip
def test_the_first_request_tells_what_is_wrong_with_the_deployment(server, config, status, said, url, expected):
    server.models = ["tiny-1", "tiny:latest"] if url == "/v1" else ["tiny"]
    server.instead = lambda path, body: (
        status and (status, {"error": said if isinstance(said, dict) else {"message": said}})
    )
    failed = OpenAICompatibleClient(config, base_url=server.url + url).make_request(REQUEST)
    assert expected in failed.error
    assert len(server.asked) <= 1


@pytest.mark.long
@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 529])
def test_errors_that_may_pass_are_tried_five_times_more(server, config, status):
    server.instead = lambda path, body: (status, {"error": {"message": "busy"}})
    failed = make(server, config).make_request(REQUEST)
    assert not failed.success
    assert f"status {status}: busy (sent again 5 times)" in failed.error
    assert len(server.asked) == 6


@pytest.mark.long
def test_the_server_says_when_to_come_again(server, config):
    first(server, Odd(429, {}, {"Retry-After": "1"}))
    started = time.monotonic()
    assert make(server, config).make_request(REQUEST).success
    assert len(server.asked) == 2
    assert time.monotonic() - started >= 1


@pytest.mark.parametrize("odd", [Odd(429, {}, {"Retry-After": "0"}), Odd(500, {})])
def test_no_attempt_begins_after_the_time_for_them(server, config, odd):
    server.instead = lambda path, body: odd
    assert not make(server, config, retry_seconds=1, retries=100).make_request(REQUEST).success
    assert 1 <= len(server.asked) <= 40


def test_what_retry_after_may_be():
    assert _retry_after({"Retry-After": "7"}) == 7
    assert 8 < _retry_after({"Retry-After": formatdate(time.time() + 10, usegmt=True)}) <= 10
    assert _retry_after({"Retry-After": formatdate(0, usegmt=True)}) == 0
    for nonsense in ("soon", "", "nan", "-5", "9" * 400):
        assert _retry_after({"Retry-After": nonsense}) in (None, 0.0, float("inf"))
    assert _retry_after({}) is None


@pytest.mark.long
@pytest.mark.parametrize("odd", [Odd(seconds=30), Odd(body=b"{" + b" " * 1000 + b"}", drip=0.05)])
def test_a_server_that_sends_nothing_or_a_byte_at_a_time_is_given_up_and_not_asked_again(odd, server, config):
    server.instead = lambda path, body: odd
    failed = make(server, config, timeout=0.5).make_request(REQUEST)
    assert "no whole reply within 0.5 s" in failed.error
    assert len(server.asked) == 1


def test_a_server_that_restarts(config):
    with serve() as server:
        client = make(server, config, retries=9)
        assert client.make_request(REQUEST).success
        port = int(server.url.rpartition(":")[2])
    results = []
    asking = threading.Thread(target=lambda: results.append(client.make_request(replace(REQUEST, random="1"))))
    asking.start()
    time.sleep(0.2)  # attempts fail meanwhile
    with serve(server, port):
        asking.join()
    assert results[0].success
    assert len(server.asked) == 2


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/v1", "http://no-such-host.invalid/v1", "http://10.255.255.1:9/v1"])
def test_nobody_there(config, url):
    """In CONNECT_SECONDS, the third; at once, the others."""
    failed = OpenAICompatibleClient(config, base_url=url).make_request(REQUEST)
    assert not failed.success
    assert url in failed.error
    assert "sent again" not in failed.error


def test_pauses_grow_and_differ(config, monkeypatch):
    monkeypatch.setattr(server_module, "FIRST_DELAY", 1.0)
    client = OpenAICompatibleClient(config, base_url="http://x/v1")
    error = ServerError("busy", Fault.PASSING)
    for number, most in ((1, 1.0), (2, 2.0), (3, 4.0), (4, 8.0), (5, 16.0)):
        drawn = {client.server._delay(error, number) for _ in range(50)}
        assert len(drawn) > 40
        assert most / 2 <= min(drawn) <= max(drawn) <= most
    assert client.server._delay(error, 6) is None
    assert client.server._delay(ServerError("no", Fault.OWN), 1) is None


def test_a_connection_that_was_never_made_ends_the_run_and_one_that_breaks_does_not(server, config):
    """A server that has just answered somebody is there, though it takes no more connections for a while."""
    client = OpenAICompatibleClient(config, base_url=f"{server.url}/v1", retries=1)
    server.instead = lambda path, body: (500, {})
    client.make_request(REQUEST)
    assert (client.server.has_connected, client.server.has_answered) == (True, False)
    client.server.url = "http://127.0.0.1:9/v1"
    assert "(sent again 1 times)" in client.make_request(REQUEST).error
