"""What servers do wrong: how often each request is sent, how long it takes, what is kept."""

from __future__ import annotations

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
def server():
    with serve() as running:
        yield running


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


def no_choices(body):
    return 200, {**answer_chat(body), "choices": []}


def null_content(body):
    reply = answer_chat(body)
    reply["choices"][0] = {"index": 0, "message": {"role": "assistant", "content": None}, "finish_reason": "stop"}
    return 200, reply


def null_logprobs(body):
    reply = answer_completions(body)
    reply["choices"][0]["logprobs"] = None
    return 200, reply


def null_values(body):
    reply = answer_completions(body)
    values = reply["choices"][0]["logprobs"]
    values["token_logprobs"] = [None] * len(values["tokens"])
    return 200, reply


def saying(body, content):
    reply = answer_chat(body)
    reply["choices"][0]["message"]["content"] = content
    return reply


ODD_BUT_ANSWERED = {
    "byte order mark": lambda body: b"\xef\xbb\xbf" + json.dumps(saying(body, "Paris")).encode(),
    "half a surrogate pair": lambda body: json.dumps(saying(body, "Paris\ud83d")).encode(),
    "NaN in usage": lambda body: json.dumps(
        {**saying(body, "Paris"), "usage": {"cost": float("nan"), "total_tokens": 9}}
    ).encode(),
}


@pytest.mark.parametrize("kind", ODD_BUT_ANSWERED)
def test_what_no_answer_needs_is_not_in_the_way_of_one(kind, server, config):
    server.instead = lambda path, body: (200, ODD_BUT_ANSWERED[kind](body))
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
    "not JSON": lambda body: (200, b"<html>busy</html>"),
    "not a number": lambda body: (200, b'{"choices": NaN}'),
    "a list": lambda body: (200, []),
    "null": lambda body: (200, None),
    "an error with status 200": lambda body: (200, {"error": "busy"}),
    "deeper than the cache can hold": nested,
    "empty choices": no_choices,
    "null content": null_content,
    "null log-probabilities": null_logprobs,
    "null for every token": null_values,
}


@pytest.mark.parametrize("kind", GARBLED)
def test_a_reply_that_cannot_be_read_is_asked_for_twice_more_and_not_kept(server, config, kind):
    client = make(server, config, endpoint="completions" if "log" in kind or "token" in kind else "chat")
    request = SCORED if client.dialect.endpoint == "completions" else REQUEST
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
    client = make(server, config, endpoint="completions" if "log" in kind or "token" in kind else "chat")
    request = SCORED if client.dialect.endpoint == "completions" else REQUEST
    client.make_request(request)
    [(path, body)] = server.asked
    key = client._make_key(body, request)
    client.cache.put_many([(key, GARBLED[kind](body)[1])])
    client.cache.flush()
    again = client.make_request(request)
    assert (again.success, again.cached, len(server.asked)) == (True, False, 2)
    assert client.make_request(request).cached
    kept, _ = Cache(config).get(key, lambda: pytest.fail("stock HELM does not find it"))
    assert kept["choices"] == again_choices(server, path, body)


def again_choices(server, path, body):
    return (answer_chat if "chat" in path else answer_completions)(body)["choices"]


@pytest.mark.long
@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 529])
def test_errors_that_may_pass_are_tried_five_times_more(server, config, status):
    server.instead = lambda path, body: (status, {"error": {"message": "busy"}})
    failed = make(server, config).make_request(REQUEST)
    assert not failed.success
    assert f"status {status}: busy (sent again 5 times)" in failed.error
    assert len(server.asked) == 6


def test_errors_that_pass(server, config):
    first(server, (500, {}), (500, {}))
    assert make(server, config).make_request(REQUEST).success
    assert len(server.asked) == 3


@pytest.mark.parametrize("status", [400, 413, 422])
def test_errors_of_one_request_are_not_tried_again(server, config, status):
    server.instead = lambda path, body: (status, {"error": {"message": "the prompt is too long"}})
    failed = make(server, config).make_request(REQUEST)
    assert without_hint(failed) == f"{server.url}/v1/chat/completions: status {status}: the prompt is too long"
    assert len(server.asked) == 1


@pytest.mark.long
def test_the_server_says_when_to_come_again(server, config):
    first(server, Odd(429, {}, {"Retry-After": "1"}))
    started = time.monotonic()
    assert make(server, config).make_request(REQUEST).success
    assert len(server.asked) == 2
    assert time.monotonic() - started >= 1


def test_a_server_that_says_too_late_is_not_waited_for(server, config):
    server.instead = lambda path, body: Odd(429, {"error": {"message": "slow down"}}, {"Retry-After": "3600"})
    client = make(server, config)
    failed = client.make_request(REQUEST)
    assert "slow down" in failed.error
    assert len(server.asked) == 1
    assert client.server._resume_at == 0  # nor do others wait


def test_time_ends_the_attempts_where_the_server_always_says_when(server, config):
    server.instead = lambda path, body: Odd(429, {}, {"Retry-After": "0"})
    assert not make(server, config, retry_seconds=1).make_request(REQUEST).success
    assert 1 <= len(server.asked) <= 40


def test_what_retry_after_may_be():
    assert _retry_after({"Retry-After": "7"}) == 7
    assert _retry_after({"retry-after-ms": "250", "Retry-After": "7"}) == 0.25
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


def test_a_connection_that_is_reset(server, config):
    first(server, Odd(reset=True), Odd(reset=True))
    assert make(server, config).make_request(REQUEST).success
    assert len(server.asked) == 3


def test_a_reply_that_breaks_off(server, config):
    first(server, Odd(200, {"choices": [1, 2, 3]}, cut=5))
    assert make(server, config).make_request(REQUEST).success
    assert len(server.asked) == 2


def test_a_text_that_ends_at_the_limit_of_tokens_is_an_answer_that_says_so(server, config):
    def cut(path, body):
        reply = answer_chat(body)
        reply["choices"][0] |= {"finish_reason": "length", "message": {"content": "Par"}}
        return 200, reply

    server.instead = cut
    [completion] = make(server, config).make_request(replace(REQUEST, stop_sequences=["\n"])).completions
    assert (completion.text, completion.finish_reason) == ("Par", {"reason": "length"})
    assert len(server.asked) == 1


@pytest.mark.parametrize("more", [{"reasoning_content": "Hm."}, {"refusal": "No."}])
def test_null_content_with_a_reason_is_an_answer(server, config, more):
    def think(path, body):
        reply = answer_chat(body)
        reply["choices"][0] |= {"finish_reason": "stop", "message": {"content": None, **more}}
        return 200, reply

    server.instead = think
    assert make(server, config).make_request(REQUEST).success


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


def test_a_key_that_the_server_repeats_is_not_in_the_message(server, config):
    server.instead = lambda path, body: (401, {"error": {"message": f"Incorrect API key provided: {server.keys[-1]}"}})
    failed = make(server, config, api_key="sk-hush").make_request(REQUEST)
    assert (
        "the server refuses the key that it was sent (status 401): Incorrect API key provided: Bearer ***"
        in failed.error
    )
    assert "hush" not in repr(failed)


def test_a_wrong_key(server, config):
    server.instead = lambda path, body: (401, {"detail": "Unauthorized"})
    failed = make(server, config).make_request(REQUEST)
    assert "the server refuses requests without a key" in failed.error
    assert "api_key in credentials.conf" in failed.error
    assert len(server.asked) == 1


@pytest.mark.parametrize("status", [400, 404])
def test_a_wrong_model(server, config, status):
    server.models = ["tiny-1", "tiny-2"]
    server.instead = lambda path, body: (status, {"error": {"message": "The model `tiny` does not exist."}})
    client = make(server, config)
    client.server.has_answered = False
    failed = client.make_request(REQUEST)
    assert "the server does not know the model 'tiny'" in failed.error
    assert "openai_model_name in the deployment; it knows tiny-1, tiny-2" in failed.error
    assert len(server.asked) == 1


def test_too_long_a_prompt_is_not_another_name_of_the_model(server, config):
    """Servers answer to more names than they list (Ollama: `tiny` for `tiny:latest`)."""
    server.models = ["tiny:latest"]
    server.instead = lambda path, body: (
        400,
        {"error": {"message": "This model's maximum context length is 8 tokens."}},
    )
    client = make(server, config)
    client.server.has_answered = False
    failed = client.make_request(REQUEST)
    assert failed.is_refused
    assert "does not know" not in failed.error


def test_a_wrong_path(server, config):
    server.models = ["tiny"]
    client = OpenAICompatibleClient(config, base_url=f"{server.url}/v2")
    failed = client.make_request(REQUEST)
    assert "status 404: no such endpoint: /v2/chat/completions" in failed.error
    assert "hint: the address or the model is wrong: base_url" in failed.error


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/v1", "http://no-such-host.invalid/v1", "http://10.255.255.1:9/v1"])
def test_nobody_there(config, url):
    """In CONNECT_SECONDS, the third; at once, the others."""
    failed = OpenAICompatibleClient(config, base_url=url).make_request(REQUEST)
    assert not failed.success
    assert url in failed.error
    assert "sent again" not in failed.error


def test_a_server_that_sends_on_is_not_followed(server, config):
    server.instead = lambda path, body: Odd(307, {}, {"Location": "http://elsewhere.invalid/v1"})
    failed = make(server, config, api_key="sk-hush").make_request(REQUEST)
    assert "the server sends on to" in failed.error
    assert len(server.asked) == 1


def test_a_quota_that_is_used_up_is_not_waited_for(server, config):
    server.instead = lambda path, body: (429, {"error": {"message": "no money", "code": "insufficient_quota"}})
    assert "no money" in make(server, config).make_request(REQUEST).error
    assert len(server.asked) == 1


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


def test_no_attempt_begins_after_the_time_for_them(server, config, monkeypatch):
    """With the pauses that users have, of which a few are enough to show it."""
    monkeypatch.setattr(server_module, "FIRST_DELAY", 0.4)
    server.instead = lambda path, body: (500, {})
    assert not make(server, config, retry_seconds=0.5, retries=100).make_request(REQUEST).success
    assert len(server.asked) in (2, 3)


def test_a_connection_that_was_never_made_ends_the_run_and_one_that_breaks_does_not(server, config):
    """A server that has just answered somebody is there, though it takes no more connections for a while."""
    client = OpenAICompatibleClient(config, base_url=f"{server.url}/v1", retries=1)
    server.instead = lambda path, body: (500, {})
    client.make_request(REQUEST)
    assert (client.server.has_connected, client.server.has_answered) == (True, False)
    client.server.url = "http://127.0.0.1:9/v1"
    assert "(sent again 1 times)" in client.make_request(REQUEST).error


def test_a_reply_that_is_packed_small_and_is_huge_is_not_read_to_its_end(server, config, monkeypatch):
    monkeypatch.setattr(server_module, "MAX_REPLY_BYTES", 100_000)
    bomb = gzip.compress(b" " * 50_000_000)
    assert len(bomb) < 100_000
    server.instead = lambda path, body: Odd(200, bomb, {"Content-Encoding": "gzip"})
    failed = make(server, config, retries=0).make_request(REQUEST)
    assert "a reply of more than 100000 bytes" in failed.error


def test_a_reply_that_is_packed(server, config):
    server.instead = lambda path, body: Odd(
        200, gzip.compress(json.dumps(answer_chat(body)).encode()), {"Content-Encoding": "gzip"}
    )
    assert make(server, config).make_request(REQUEST).success
