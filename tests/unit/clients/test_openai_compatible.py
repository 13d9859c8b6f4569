"""The client against a real server on this machine: what is asked, what comes back, what is kept in the cache."""

from __future__ import annotations

from dataclasses import replace

import pytest
from helm.common.cache import BlackHoleCacheConfig, SqliteCacheConfig
from helm.common.request import Request
from openai_server import answer_chat, serve

from helm_ext.clients import OpenAICompatibleClient
from helm_ext.errors import RunEntryError

REQUEST = Request(model="acme/tiny", model_deployment="here/tiny", prompt="Capital of France?", max_tokens=5)


@pytest.fixture
def server():
    with serve() as running:
        yield running


@pytest.fixture
def client(server):
    return OpenAICompatibleClient(BlackHoleCacheConfig(), base_url=f"{server.url}/v1")


def test_an_answer_with_what_the_server_counted(server, client):
    result = client.make_request(REQUEST)
    assert result.success
    assert not result.cached
    assert result.request_time > 0
    assert result.usage["prompt_tokens"] == 3
    [(path, body)] = server.asked
    expected = answer_chat(body)["choices"][0]
    assert result.completions[0].text == expected["message"]["content"]
    assert result.completions[0].finish_reason == {"reason": expected["finish_reason"]}
    assert path == "/v1/chat/completions"
    assert body["model"] == "tiny"


def test_the_models_name_and_what_is_sent_are_the_deployments(server):
    client = OpenAICompatibleClient(
        BlackHoleCacheConfig(), base_url=f"{server.url}/v1/", endpoint="completions", openai_model_name="org/Tiny-1B",
        omit=["top_p"], seed=3, send_top_k=True,
    )  # fmt: skip
    assert client.make_request(replace(REQUEST, top_k_per_token=9)).success
    [(path, body)] = server.asked
    assert path == "/v1/completions"
    assert (body["model"], body["seed"], body["top_k"]) == ("org/Tiny-1B", 3, 9)
    assert "top_p" not in body


def test_the_key_goes_into_the_header_and_nowhere_else(server):
    for key in ("secret", None):
        client = OpenAICompatibleClient(BlackHoleCacheConfig(), base_url=f"{server.url}/v1", api_key=key)
        assert "secret" not in repr(client.make_request(REQUEST))
    assert server.keys == ["Bearer secret", None]
    assert "secret" not in str(server.asked)


def test_an_answer_is_kept_in_helms_cache(server, tmp_path):
    config = SqliteCacheConfig(str(tmp_path / "cache.sqlite"))
    first, second, other = (
        OpenAICompatibleClient(config, base_url=f"{server.url}/v1").make_request(request)
        for request in (REQUEST, REQUEST, replace(REQUEST, random="1"))
    )
    assert [first.cached, second.cached, other.cached] == [False, True, False]
    assert first.completions == second.completions
    assert first.usage == second.usage
    assert first.request_datetime == second.request_datetime
    assert len(server.asked) == 2


@pytest.mark.parametrize(
    "reply",
    [{"choices": []}, {"choices": [{"index": 0, "message": {"content": 7}}]}, b"not JSON", [], {"error": "busy"}, None],
)
def test_a_reply_of_no_use_is_a_failure_and_not_kept(server, tmp_path, reply):
    client = OpenAICompatibleClient(SqliteCacheConfig(str(tmp_path / "cache.sqlite")), base_url=f"{server.url}/v1")
    server.instead = lambda path, body: (200, reply)
    failed = client.make_request(REQUEST)
    assert not failed.success
    assert failed.completions == []
    assert failed.error_flags.is_retriable
    server.instead = lambda path, body: None
    answered = client.make_request(REQUEST)
    assert answered.success
    assert not answered.cached


@pytest.mark.parametrize(
    ("status", "is_passing"),
    [(400, False), (401, False), (404, False), (422, False), (408, True), (429, True), (500, True), (503, True)],
)
def test_helm_repeats_what_may_pass_and_nothing_else(server, client, status, is_passing):
    server.instead = lambda path, body: (status, {"error": {"message": "the model said no", "code": None}})
    result = client.make_request(REQUEST)
    assert not result.success
    assert result.error == f"{server.url}/v1/chat/completions: status {status}: the model said no"
    assert result.error_flags.is_retriable is is_passing
    assert result.error_flags.is_fatal


def test_a_server_that_is_not_there(server):
    client = OpenAICompatibleClient(BlackHoleCacheConfig(), base_url="http://127.0.0.1:9/v1")
    result = client.make_request(REQUEST)
    assert "no answer: " in result.error
    assert result.error_flags.is_retriable


def test_what_cannot_be_sent_is_not_sent_and_not_repeated(server, client):
    result = client.make_request(replace(REQUEST, echo_prompt=True, max_tokens=0))
    assert not result.success
    assert not result.error_flags.is_retriable
    assert "echo_prompt" in result.error
    assert server.asked == []


@pytest.mark.parametrize("url", [None, "", "localhost:8000/v1", "file:///etc/passwd"])
def test_an_address_is_needed(url):
    with pytest.raises(RunEntryError, match="base_url="):
        OpenAICompatibleClient(BlackHoleCacheConfig(), base_url=url)


def test_one_name_to_omit_may_be_given_as_a_text():
    client = OpenAICompatibleClient(BlackHoleCacheConfig(), base_url="http://x/v1", omit="top_p")
    assert client.dialect.omit == ("top_p",)


def test_an_endpoint_that_there_is_not():
    with pytest.raises(RunEntryError, match="endpoint=responses: expected chat or completions"):
        OpenAICompatibleClient(BlackHoleCacheConfig(), base_url="http://x/v1", endpoint="responses")
