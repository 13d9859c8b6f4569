"""The client against a real server on this machine: what is asked, what comes back, what is kept in the cache."""

import asyncio
from dataclasses import replace

import pytest
from helm.common.cache import BlackHoleCacheConfig, SqliteCacheConfig
from helm.common.request import Request
from openai_server import answer_chat, answer_completions, score, serve

from helm_ext.clients import OpenAICompatibleClient, openai_compatible
from helm_ext.clients.openai_requests import UnsendableError
from helm_ext.clients.server import run
from helm_ext.errors import RunEntryError

REQUEST = Request(model="acme/tiny", model_deployment="here/tiny", prompt="Capital of France?", max_tokens=5)


@pytest.fixture
def client(server):
    return OpenAICompatibleClient(BlackHoleCacheConfig(), base_url=f"{server.url}/v1")


def test_the_models_name_and_what_is_sent_are_the_deployments(server):
    client = OpenAICompatibleClient(
        BlackHoleCacheConfig(), base_url=f"{server.url}/v1/", endpoint="completions", openai_model_name="org/Tiny-1B",
        omit=["top_p"], seed=3, send_top_k=True, extra_body={"min_p": 0.1}, max_tokens_field="max_completion_tokens",
    )  # fmt: skip
    assert client.make_request(replace(REQUEST, top_k_per_token=9)).success
    [(path, body)] = server.asked
    assert path == "/v1/completions"
    assert (body["model"], body["seed"], body["top_k"], body["min_p"]) == ("org/Tiny-1B", 3, 9, 0.1)
    assert body["max_completion_tokens"] == 5
    assert body.keys().isdisjoint({"top_p", "max_tokens"})


def test_the_key_goes_into_the_header_and_nowhere_else(server, tmp_path, monkeypatch):
    monkeypatch.setenv("OUR_KEY", "secret too")
    for number, args in enumerate(({"api_key": "secret"}, {}, {"api_key_env": "OUR_KEY"})):
        config = SqliteCacheConfig(str(tmp_path / f"{number}.sqlite"))
        result = OpenAICompatibleClient(config, base_url=f"{server.url}/v1", **args).make_request(REQUEST)
        assert result.success
        assert "secret" not in repr(result)
        assert b"secret" not in (tmp_path / f"{number}.sqlite").read_bytes()
    assert server.keys == ["Bearer secret", None, "Bearer secret too"]
    assert "secret" not in str(server.asked)


def test_what_a_server_answers_is_not_taken_for_what_another_one_does(server, tmp_path):
    """llama.cpp serves any model under any name; HELM's own clients would hand back the first server's answer."""
    config = SqliteCacheConfig(str(tmp_path / "cache.sqlite"))
    with serve() as other:
        for one in (server, other):
            assert not OpenAICompatibleClient(config, base_url=f"{one.url}/v1").make_request(REQUEST).cached
        assert len(other.asked) == 1


def test_notes_say_what_the_server_counted_and_the_seed(server):
    usage = {
        "prompt_tokens": 9, "completion_tokens": 5, "completion_tokens_details": {"reasoning_tokens": 3, "x": "y"},
        "cost": "much", "is_free": True, "total_tokens": 1 << 70, "cached": -1,
    }  # fmt: skip
    server.instead = lambda path, body: (200, {**answer_chat(body), "usage": usage})
    client = OpenAICompatibleClient(BlackHoleCacheConfig(), base_url=f"{server.url}/v1", seed=7)
    assert client.make_request(REQUEST).notes == {
        "usage": {"prompt_tokens": 9, "completion_tokens": 5, "completion_tokens_details": {"reasoning_tokens": 3}},
        "reasoning_tokens": 3,
        "answered_by": "tiny-2026-01-01",
        "seed": 7,
    }


def test_a_server_that_does_not_heed_the_limit_of_tokens_is_told_of_once(server, client, monkeypatch):
    said = []
    monkeypatch.setattr(openai_compatible, "hwarn", said.append)
    server.instead = lambda path, body: (200, {**answer_chat(body), "usage": {"completion_tokens": 500}})
    for number in range(3):
        assert client.make_request(replace(REQUEST, random=str(number))).success
    assert len(said) == 1
    assert "500 tokens came where 5 were asked for at most: the server does not heed max_completion_tokens" in said[0]


def test_what_the_deployment_leaves_out_is_told_of_once(server, monkeypatch):
    said = []
    monkeypatch.setattr(openai_compatible, "hwarn", said.append)
    client = OpenAICompatibleClient(BlackHoleCacheConfig(), base_url=f"{server.url}/v1", omit="temperature")
    client.check_requests([REQUEST, replace(REQUEST, temperature=0.0)])
    [warning] = said
    assert "temperature: not sent, as the deployment says" in warning


def test_an_answer_is_kept_in_helms_cache(server, tmp_path):
    config = SqliteCacheConfig(str(tmp_path / "cache.sqlite"))
    first, second, other = (
        OpenAICompatibleClient(config, base_url=f"{server.url}/v1").make_request(request)
        for request in (REQUEST, REQUEST, replace(REQUEST, random="1"))
    )
    assert [first.cached, second.cached, other.cached] == [False, True, False]
    assert first.completions == second.completions
    assert first.notes == second.notes != {}
    assert first.request_datetime == second.request_datetime
    assert len(server.asked) == 2


def test_what_cannot_be_sent_is_told_of_once_before_anything_is_sent(client):
    odd = [replace(REQUEST, top_k_per_token=9), replace(REQUEST, top_k_per_token=9), replace(REQUEST, embedding=True)]
    with pytest.raises(UnsendableError) as caught:
        client.check_requests([REQUEST, *odd])
    said = str(caught.value)
    assert said.startswith("here/tiny: 3 of 4 requests cannot be sent\n  2 requests: top_k=9 at temperature 1:")
    assert "1 requests: embedding" in said
    client.check_requests([REQUEST])


@pytest.mark.parametrize("args", [{}, {"extra_token": True}, {"prompt_logprobs": True}])
def test_the_prompts_log_probabilities_of_vllm(server, args):
    """vLLM says them twice where `echo` is asked for, the second time with those of likelier tokens beside them."""
    server.is_vllm = True
    client = OpenAICompatibleClient(BlackHoleCacheConfig(), base_url=f"{server.url}/v1", endpoint="completions", **args)
    prompt = "one two three four five six"
    result = client.make_request(replace(REQUEST, prompt=prompt, max_tokens=0, echo_prompt=True))
    assert result.success, result.error
    [completion] = result.completions
    tokens = ["one", " two", " three", " four", " five", " six"]
    assert [token.text for token in completion.tokens] == tokens
    assert [token.logprob for token in completion.tokens] == [0.0, *score(tokens)[1:]]
    [(_, body)] = server.asked
    replied = answer_completions(body, is_vllm=True)["choices"][0]
    assert ({len(entry) for entry in replied["prompt_logprobs"][1:]} == {1, 2}) == (not args.get("prompt_logprobs"))


@pytest.mark.parametrize("keeps", [True, False])
def test_equal_requests_are_sent_once_where_there_is_a_cache(server, tmp_path, keeps):
    """Sampled answers differ: a second run, which finds one of them, must not differ from the first."""
    server.generates, server.seconds = True, 0.05
    config = SqliteCacheConfig(str(tmp_path / "a.sqlite")) if keeps else BlackHoleCacheConfig()
    client = OpenAICompatibleClient(config, base_url=f"{server.url}/v1")
    sampled = replace(REQUEST, temperature=1.0)

    async def ask(*requests):
        return await asyncio.gather(*(client.send(request, lambda _: None) for request in requests))

    first = run(ask(sampled, sampled, replace(sampled, random="1"), sampled))
    first += run(ask(sampled))
    assert len(server.asked) == (2 if keeps else 5)
    if keeps:
        texts = [result.completions[0].text for result in first]
        assert texts == [texts[0], texts[0], texts[2], texts[0], texts[0]]
        assert [result.cached for result in first] == [False, True, False, True, True]
        assert client.make_request(sampled).completions[0].text == texts[0]


def test_an_equal_request_is_sent_when_the_first_one_failed(server, tmp_path):
    server.seconds = 0.05
    server.instead = lambda path, body: (400, {"error": {"message": "too long"}}) if len(server.asked) == 1 else None
    client = OpenAICompatibleClient(SqliteCacheConfig(str(tmp_path / "a.sqlite")), base_url=f"{server.url}/v1")

    async def ask():
        return await asyncio.gather(*(client.send(REQUEST, lambda _: None) for _ in range(3)))

    assert [result.success for result in run(ask())] == [False, True, True]
    assert len(server.asked) == 2


@pytest.mark.parametrize(("args", "said"), [
    ({"base_url": None}, "expected the server's address"),
    ({"base_url": "file:///etc/passwd"}, "expected the server's address"),
    ({"base_url": "http://:8000/v1"}, "expected the server's address"),
    ({"base_url": "localhost:8000/v1"}, "expected the server's address"),
    ({"base_url": "http://localhost:99999/v1"}, "no address: Port out of range"),
    ({"base_url": "http://[::1/v1"}, "no address"),
    ({"base_url": "http://localhost/v1?api-version=1"}, "without \\?, # or a space"),
    ({"base_url": "http://localhost/v1/ "}, "without \\?, # or a space"),
    ({"base_url": "http://localhost/v1/chat/completions/"}, "base_url: http://localhost/v1$"),
    ({"base_url": "http://localhost/v1/completions"}, "base_url: http://localhost/v1$"),
    ({"base_url": "http://me:hush@x/v1"}, "password"),
    ({"endpoint": "responses"}, "endpoint=responses: expected chat or completions"),
    ({"timeout": 0}, "too small"),
    ({"retry_second": 1}, "unknown argument 'retry_second'\n  hint: did you mean 'retry_seconds'"),
    ({"api_key_env": "NO_KEY"}, "api_key_env=NO_KEY: no such environment variable"),
    *(({"extra_body": {name: 1}}, f"extra_body: {name}") for name in ("temperature", "model", "stop", "seed", "top_k", "stream")),
])  # fmt: skip
def test_arguments_that_make_no_sense(args, said):
    with pytest.raises(RunEntryError, match=said) as caught:
        OpenAICompatibleClient(BlackHoleCacheConfig(), **{"base_url": "http://x/v1", **args})
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize("key", ["sk-hush\n", " sk-hush", "sk-\0hush", "sk\r\nX-Other: 1"])
def test_keys_that_no_header_can_hold(monkeypatch, key):
    given = [({"api_key": key}, "HELM's credentials")]
    if "\0" not in key:
        monkeypatch.setenv("MY_KEY", key)
        given.append(({"api_key_env": "MY_KEY"}, "api_key_env=MY_KEY"))
    for args, where in given:
        with pytest.raises(RunEntryError, match=f"{where}: a line break") as caught:
            OpenAICompatibleClient(BlackHoleCacheConfig(), base_url="http://localhost/v1", **args)
        assert "hush" not in str(caught.value)
