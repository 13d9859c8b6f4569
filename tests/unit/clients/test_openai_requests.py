"""HELM's Request as the body of an HTTP request: everything that it says is sent, or it is an error."""

from dataclasses import fields, replace

import pytest
from helm.common.image_generation_parameters import ImageGenerationParameters
from helm.common.media_object import MediaObject, MultimediaObject
from helm.common.request import Request
from helm.common.response_format import ResponseFormat

from helm_ext.clients.openai_requests import Dialect, UnsendableError, to_body
from helm_ext.errors import RunEntryError

CHAT = Dialect(model="tiny", endpoint="chat")
COMPLETIONS = Dialect(model="tiny", endpoint="completions")
REQUEST = Request(
    model="acme/m", model_deployment="acme/d", prompt="Q: 1+1?\nA:", temperature=0.5, num_completions=3, max_tokens=7,
    stop_sequences=["\n", "Q:"], top_p=0.9, presence_penalty=0.1, frequency_penalty=0.2,
)  # fmt: skip
SAMPLING = {"temperature": 0.5, "top_p": 0.9, "n": 3, "presence_penalty": 0.1, "frequency_penalty": 0.2}
SCORED = Request(prompt="Q: 1+1?\nA: 2", max_tokens=0, temperature=0, echo_prompt=True)


MESSAGES = [{"role": "system", "content": "Be short."}, {"role": "user", "content": "Hello"}]
ASKED = {"model": "tiny", "prompt": "Q: 1+1?\nA:", "max_tokens": 7, "stop": ["\n", "Q:"], **SAMPLING}
CHATTED = {
    "model": "tiny", "messages": [{"role": "user", "content": "Q: 1+1?\nA:"}], "max_completion_tokens": 7,
    "stop": ["\n", "Q:"], **SAMPLING,
}  # fmt: skip
WITHOUT_STOP = {key: value for key, value in CHATTED.items() if key != "stop"}
SCORING = {"model": "tiny", "prompt": "Q: 1+1?\nA: 2", "temperature": 0}
ECHO = {"echo": True, "logprobs": 1}


@pytest.mark.parametrize(("request_", "dialect", "expected"), [
    (REQUEST, CHAT, CHATTED), (REQUEST, COMPLETIONS, ASKED),
    (replace(REQUEST, prompt="", messages=MESSAGES), CHAT, {**CHATTED, "messages": MESSAGES}),
    (replace(REQUEST, stop_sequences=[]), CHAT, WITHOUT_STOP),
    (replace(REQUEST, echo_prompt=True), COMPLETIONS, {**ASKED, **ECHO}),
    (REQUEST, replace(COMPLETIONS, extra_body={"min_p": 0.1}), {**ASKED, "min_p": 0.1}),
    (SCORED, COMPLETIONS, {**SCORING, **ECHO, "max_tokens": 0}),
    (SCORED, replace(COMPLETIONS, extra_body={"min_p": 0.1}), {**SCORING, **ECHO, "max_tokens": 0, "min_p": 0.1}),
    (SCORED, replace(COMPLETIONS, extra_token=True), {**SCORING, **ECHO, "max_tokens": 1}),
    # vLLM's CompletionRequest: 0 for the prompt's own tokens alone; max_tokens is 1 at least.
    (SCORED, replace(COMPLETIONS, prompt_logprobs=True), {**SCORING, "max_tokens": 1, "prompt_logprobs": 0}),
])  # fmt: skip
def test_a_request_becomes_a_body(request_, dialect, expected):
    assert to_body(request_, dialect) == expected


def test_top_k_is_sent_where_it_says_something_and_the_server_knows_it():
    """HELM's default of 1 would make every run greedy; at temperature 0 any number says the same."""
    knows = replace(CHAT, send_top_k=True)
    for temperature, top_k in ((0, 1), (0.5, 1), (0, 5)):
        request = replace(REQUEST, temperature=temperature, top_k_per_token=top_k)
        assert "top_k" not in to_body(request, knows)
        assert "top_k" not in to_body(request, CHAT)
    request = replace(REQUEST, top_k_per_token=40)
    assert to_body(request, knows)["top_k"] == 40
    with pytest.raises(UnsendableError, match="top_k=40"):
        to_body(request, CHAT)


def test_a_seed_differs_where_helm_asks_for_another_answer():
    dialect = replace(CHAT, seed=7)
    assert "seed" not in to_body(REQUEST, CHAT)
    assert to_body(REQUEST, dialect)["seed"] == 7
    seeds = [to_body(replace(REQUEST, random=random), dialect)["seed"] for random in ("0", "1", "0")]
    assert seeds[0] == seeds[2] != seeds[1]
    assert all(0 <= seed < 2**31 for seed in seeds)


def test_what_is_omitted_is_not_sent():
    body = to_body(replace(REQUEST, num_completions=1), replace(CHAT, omit=("temperature", "top_p", "n")))
    fields = "model messages max_completion_tokens presence_penalty frequency_penalty stop"
    assert body.keys() == {*fields.split()}
    with pytest.raises(UnsendableError, match="num_completions=3"):
        to_body(REQUEST, replace(CHAT, omit=("n",)))
    with pytest.raises(RunEntryError, match="omit=stop"):
        replace(CHAT, omit=("stop",))
    with pytest.raises(RunEntryError, match="did you mean 'temperature'"):
        replace(CHAT, omit=("temprature",))


@pytest.mark.parametrize(("changes", "dialect", "message"), [
    ({"stop_sequences": list("abcde")}, CHAT, "stop_sequences: 5 of them, and OpenAI's API takes 4"),
    ({"echo_prompt": True}, CHAT, "echo_prompt: .*\n  hint: the endpoint completions"),
    ({"messages": [{"role": "user", "content": "x"}], "prompt": ""}, COMPLETIONS, "messages: .*\n  hint: the endp"),
    ({"messages": [{"role": "user", "content": "x"}]}, CHAT, "messages and a prompt"),
    ({"prompt": ""}, CHAT, "the prompt is empty"), ({"prompt": ""}, COMPLETIONS, "the prompt is empty"),
    ({"max_tokens": 0}, CHAT, "max_tokens=0"),
    ({"echo_prompt": True, "max_tokens": 0}, COMPLETIONS, "num_completions=3: a prompt is scored once"),
    ({"embedding": True}, CHAT, "embedding: "),
    ({"response_format": ResponseFormat(json_schema={"type": "object"})}, CHAT, "response_format: "),
    ({"image_generation_parameters": ImageGenerationParameters()}, CHAT, "image_generation_parameters: "),
    ({"multimodal_prompt": MultimediaObject([MediaObject("text/plain", text="x")])}, CHAT, "multimodal_prompt: "),
])  # fmt: skip
def test_what_cannot_be_said_is_an_error(changes, dialect, message):
    with pytest.raises(UnsendableError, match=message):
        to_body(replace(REQUEST, **changes), dialect)


def test_every_field_of_helms_request_is_thought_of():
    """A field that HELM adds must not be dropped silently."""
    assert {field.name for field in fields(Request)} == {
        "model_deployment", "model", "embedding", "prompt", "temperature", "num_completions", "top_k_per_token",
        "max_tokens", "stop_sequences", "echo_prompt", "top_p", "presence_penalty", "frequency_penalty", "random",
        "messages", "multimodal_prompt", "image_generation_parameters", "response_format",
    }  # fmt: skip


def test_the_limit_of_tokens_may_have_its_other_name():
    request = replace(REQUEST, max_tokens=7)
    for endpoint in ("chat", "completions"):
        for field in ("max_tokens", "max_completion_tokens"):
            body = to_body(request, Dialect(model="tiny", endpoint=endpoint, max_tokens_field=field))
            assert [body[name] for name in ("max_tokens", "max_completion_tokens") if name in body] == [7]
            assert field in body
    for args in ({"endpoint": "chat"}, {"endpoint": "completions", "extra_token": True}):
        with pytest.raises(RunEntryError, match="prompt_logprobs: for the endpoint completions"):
            Dialect(model="tiny", prompt_logprobs=True, **args)
    with pytest.raises(RunEntryError, match="max_tokens_field=limit: max_tokens or max_completion_tokens"):
        Dialect(model="tiny", endpoint="chat", max_tokens_field="limit")


@pytest.mark.parametrize("random", ["42", "0", "9" * 18, "trial", "-1", "٣", "9" * 5000, "1.5", ""])
def test_the_seed_of_a_file_is_sent_as_it_is_and_what_is_no_number_is_made_one(random):
    request = replace(REQUEST, random=random)
    seed = to_body(request, CHAT)["seed"]
    assert seed == to_body(request, CHAT)["seed"]
    assert seed == int(random) if random in ("42", "0", "9" * 18) else 0 <= seed < 2**31
    assert "seed" not in to_body(request, replace(CHAT, omit=("seed",)))
