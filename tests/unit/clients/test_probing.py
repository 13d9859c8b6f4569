"""What a server refuses or ignores is found out by asking a real one that refuses or ignores it."""

import pytest
from openai_server import serve

from helm_ext.clients.openai_requests import Dialect
from helm_ext.clients.probing import Outcome, probe
from helm_ext.clients.server import Server, run
from helm_ext.errors import DeploymentError


@pytest.fixture
def server():
    with serve() as running:
        running.generates = True
        running.models = ["tiny"]
        yield running


def ask(server, endpoint="chat", key=None, model="tiny", path="/v1", url=None):
    asked = Server(f"{url or server.url}{path}", key, timeout=30)
    findings = run(probe(asked, Dialect(model, endpoint)))
    return {finding.what: finding for finding in findings}


def outcomes(findings):
    return {what: finding.outcome for what, finding in findings.items()}


def scoring(findings):
    return [found.outcome for what, found in findings.items() if what.startswith("log-probabilities")]


@pytest.mark.parametrize("endpoint", ["chat", "completions"])
def test_a_server_that_knows_everything(server, endpoint):
    server.is_vllm = True
    found = ask(server, endpoint)
    assert set(outcomes(found).values()) == {Outcome.WORKS}
    assert len(found) == 11
    assert len(server.asked) <= 20


@pytest.mark.parametrize("name", ["stop", "n", "seed", "top_k", "max_tokens"])
def test_what_is_ignored(server, name):
    server.ignores = {name}
    found = outcomes(ask(server, "completions"))
    assert found[name] is Outcome.IGNORED
    assert [what for what, outcome in found.items() if outcome is Outcome.IGNORED and what[0] != "l"] == [name]


@pytest.mark.parametrize("name", ["seed", "top_k", "stop"])
def test_what_is_refused(server, name):
    server.refuses = {name}
    found = ask(server)[name]
    assert (found.outcome, f"Unrecognized request argument supplied: {name}" in found.said) == (Outcome.REFUSED, True)


def test_parameters_without_which_it_answers_are_named(server):
    """As OpenAI's reasoning models do."""
    server.refuses = {"temperature", "presence_penalty"}
    found = ask(server)
    assert found["/v1/chat/completions"].outcome is Outcome.WORKS
    for name in ("temperature", "presence_penalty"):
        assert found[name].outcome is Outcome.REFUSED
        assert f"--omit {name}" in found[name].said
    assert found["seed"].outcome is Outcome.UNCLEAR


@pytest.mark.parametrize("there", ["chat/completions", "completions"])
def test_a_server_with_one_endpoint(server, there):
    server.endpoints = {there}
    found = ask(server, "chat")
    for name in ("chat/completions", "completions"):
        assert found[f"/v1/{name}"].outcome is (Outcome.WORKS if name == there else Outcome.ABSENT)
    assert (scoring(found) == [Outcome.ABSENT] * 3) == (there == "chat/completions")


def test_log_probabilities_by_one_way_only(server):
    # as llama.cpp's and OpenAI's servers of today: no echo
    server.ignores = {"echo", "logprobs"}
    assert Outcome.WORKS not in scoring(ask(server, "completions"))
    server.ignores = {"prompt_logprobs"}
    found = ask(server, "completions")
    assert [found[f"log-probabilities: {way}"].outcome for way in ("echo", "echo, 1 token", "prompt_logprobs")] == [
        Outcome.WORKS, Outcome.WORKS, Outcome.IGNORED,
    ]  # fmt: skip


def test_a_server_that_does_not_count(server):
    def answer(path, body):
        return 200, {**server.speak(body), "usage": None}

    server.instead = answer
    assert ask(server)["usage"].outcome is Outcome.ABSENT


def test_a_wrong_key_is_told_of_at_once(server):
    server.key = "right"
    with pytest.raises(DeploymentError, match="refuses the key that it was sent") as caught:
        ask(server, key="sk-hush-hush")
    assert "hush-hush" not in str(caught.value)
    assert len(server.asked) == 1
    with pytest.raises(DeploymentError, match="refuses requests without a key"):
        ask(server)
    assert ask(server, key="right")["/v1/chat/completions"].outcome is Outcome.WORKS


@pytest.mark.parametrize(("wrong", "said"), [
    ({"model": "large"}, "does not know the model 'large'(.|\n)*it knows tiny"),
    ({"path": "/v2"}, "the address or the model is wrong"),
    ({"url": "http://127.0.0.1:9"}, "nobody answers at http://127.0.0.1:9/v1/chat/completions"),
])  # fmt: skip
def test_a_wrong_model_or_address_is_told_of(server, wrong, said):
    with pytest.raises(DeploymentError, match=said):
        ask(server, **wrong)
    assert len(server.asked) <= 2
