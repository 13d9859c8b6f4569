"""The body of a reply as HELM's RequestResult."""

import json
from dataclasses import asdict, replace

import pytest
from helm.common.request import Request, Thinking, Token

from helm_ext.clients.openai_replies import ReplyError, parse_reply, to_result
from helm_ext.clients.openai_requests import Dialect


def chat(*choices, **more):
    return {"choices": list(choices), "model": "tiny-2026", "created": 1_700_000_000, **more}


def message(content="Paris", index=0, reason="stop", logprobs=None, **more):
    spoken = {"role": "assistant", "content": content, **more}
    return {"index": index, "message": spoken, "logprobs": logprobs, "finish_reason": reason}


def text(content=" Paris", index=0, reason="stop", logprobs=None):
    return {"index": index, "text": content, "logprobs": logprobs, "finish_reason": reason}


def logprobs(tokens, values, offsets=None):
    return {"tokens": tokens, "token_logprobs": values, "text_offset": offsets, "top_logprobs": None}


REQUEST = Request(prompt="Capital?", max_tokens=5)
SCORED = Request(prompt="1 2 3", max_tokens=0, echo_prompt=True)


def read(body, endpoint="chat", request=REQUEST, *, extra_token=False):
    parsed = parse_reply(body, endpoint, number=request.num_completions, echo=request.echo_prompt)
    return to_result(parsed, request, Dialect("tiny", endpoint, extra_token=extra_token))


def test_a_chat_reply():
    result = read(chat(message(), usage={"prompt_tokens": 9, "completion_tokens": 2}))
    assert result.notes["usage"] == {"prompt_tokens": 9, "completion_tokens": 2}
    assert [(one.text, one.finish_reason, one.tokens) for one in result.completions] == [
        ("Paris", {"reason": "stop"}, [])
    ]
    assert (result.success, result.request_time, result.request_datetime, result.cached) == (True, None, None, False)
    assert "usage" not in json.dumps(asdict(result))  # HELM's files hold HELM's fields


def test_choices_are_in_the_order_of_their_index():
    body = chat(message("c", 2), message("a", 0), message("b", 1))
    result = read(body, request=replace(REQUEST, num_completions=3))
    assert [completion.text for completion in result.completions] == ["a", "b", "c"]


@pytest.mark.parametrize("reason", ["stop", "length", "content_filter", "tool_calls", None])
def test_the_reason_of_the_end_is_kept(reason):
    for body, endpoint in ((chat(message(reason=reason)), "chat"), (chat(text(reason=reason)), "completions")):
        assert read(body, endpoint).completions[0].finish_reason == (reason and {"reason": reason})


PARTS = [{"type": "text", "text": "Pa"}, {"type": "text", "text": "ris"}]


@pytest.mark.parametrize(("content", "more", "said", "thinking"), [
    (None, {"refusal": "I will not."}, "I will not.", None), ("", {"reason": "length", "refusal": None}, "", None),
    (PARTS, {}, "Paris", None),
    ("Paris", {"reasoning_content": "Let me see."}, "Paris", Thinking("Let me see.")),
    ("Paris", {"reasoning": "Let me see."}, "Paris", Thinking("Let me see.")),
    (None, {"reason": "length"}, "", None),  # null is an empty answer where something says why
    (None, {"reason": "tool_calls"}, "", None), (None, {"reason": "content_filter"}, "", None),
])  # fmt: skip
def test_what_a_message_says(content, more, said, thinking):
    body = chat(message(content, **more))
    [completion] = read(body).completions
    assert (completion.text, completion.thinking) == (said, thinking)
    assert parse_reply(body, "chat").choices[0].is_refusal == bool(more.get("refusal"))


def test_tokens_of_a_chat_reply():
    content = [{"token": "Pa", "logprob": -0.25}, {"token": "ris", "logprob": -0.5}]
    completion = read(chat(message(logprobs={"content": content}))).completions[0]
    assert completion.tokens == [Token("Pa", -0.25), Token("ris", -0.5)]
    assert completion.logprob == -0.75


def test_a_text_ends_before_the_first_stop_sequence():
    """Not every server stops there; HELM's clients lose the reason then."""
    request = replace(REQUEST, stop_sequences=["\n\n", "Q:"])
    tokens = logprobs([" Paris", "\n", "Q:", " next"], [-1, -2, -3, -4])
    body = chat(text(" Paris\nQ: next\n\n", reason="length", logprobs=tokens))
    [completion] = read(body, "completions", request).completions
    assert completion.text == " Paris\n"
    assert completion.finish_reason == {"reason": "stop"}
    assert [token.text for token in completion.tokens] == [" Paris", "\n"]
    assert completion.logprob == -3


def own(*entries, content="!"):
    """A reply to a request with vLLM's prompt_logprobs (CompletionResponseChoice.prompt_logprobs)."""
    found = [entry if entry is None else {str(place): entry} for place, entry in enumerate(entries)]
    return chat({**text(content, reason="length"), "prompt_logprobs": found})


def entry(token, logprob):
    return {"logprob": logprob, "rank": 3, "decoded_token": token}


THREE = logprobs(["1", " 2", " 3"], [None, -0.5, -1.5], [0, 1, 3])
FOUR = logprobs(["1", " 2", " 3", " 4"], [None, -0.5, -1.5, -9], [0, 1, 3, 5])
FIVE = logprobs(["<s>", "1", " 2", " 3", "</s>"], [None, 0.0, -0.5, -1.5, -9], [0, 3, 4, 6, 8])
BOTH = {"7": entry(" 2", -0.5), "8": entry(" x", -0.1)}
SCORES = {
    "the prompt alone": (text("1 2 3", reason="length", logprobs=THREE), False, ["1", " 2", " 3"]),
    "a token that was asked for": (text("1 2 3 4", logprobs=FOUR), True, ["1", " 2", " 3"]),
    "the end of the text, which servers list and do not write": (
        text("1 2 3", logprobs=FIVE), True, ["<s>", "1", " 2", " 3"],
    ),
    # vLLM generates one for `max_tokens: 0`, counts it and drops it.
    "usage counts a token that nobody asked for": (text("1 2 3", logprobs=THREE), False, ["1", " 2", " 3"]),
    "vLLM's prompt_logprobs": (own(None, entry(" 2", -0.5), entry(" 3", -1.5))["choices"][0], False, ["1", " 2", " 3"]),
    "vLLM's, with a token before the prompt": (
        own(None, entry("1", 0.0), entry(" 2", -0.5), entry(" 3", -1.5))["choices"][0], False, ["", "1", " 2", " 3"],
    ),
    # With the likeliest token beside the prompt's own, and nothing that says which is which.
    "vLLM's beside echo": (
        {**text("1 2 3", logprobs=THREE), "prompt_logprobs": [None, BOTH, BOTH]}, False, ["1", " 2", " 3"],
    ),
    "rounded up": (text("1 2 3", logprobs=logprobs(["1", " 2", " 3"], [1e-7, -0.5, -1.5])), False, ["1", " 2", " 3"]),
}  # fmt: skip


@pytest.mark.parametrize("kind", SCORES)
def test_a_prompt_is_scored(kind):
    choice, extra_token, tokens = SCORES[kind]
    body = chat(choice, usage={"completion_tokens": 1})
    [completion] = read(body, "completions", SCORED, extra_token=extra_token).completions
    assert [token.text for token in completion.tokens] == tokens
    assert [token.logprob for token in completion.tokens][-2:] == [-0.5, -1.5]
    assert (completion.text, completion.logprob) == ("1 2 3", pytest.approx(-2))


@pytest.mark.parametrize(("body", "endpoint", "request_", "said"), [
    ([], "chat", REQUEST, "choices: expected a list, got null"),
    ({"choices": "x"}, "chat", REQUEST, "choices: expected a list"),
    (chat(), "chat", REQUEST, "0 choices, and 1 were asked for"),
    (chat(message(), message(index=1)), "chat", REQUEST, "2 choices, and 1 were asked for"),
    (chat(message(), message()), "chat", replace(REQUEST, num_completions=2), r"indices \[0, 0\]"),
    (chat(None), "chat", REQUEST, "1 choices, and 1"),
    (chat({"index": 0, "finish_reason": "stop"}), "chat", REQUEST, "message: expected an object, got null"),
    (chat(message(42)), "chat", REQUEST, "content: expected a string, got 42"),
    (chat(message(reason=3)), "chat", REQUEST, "finish_reason: expected a string"),
    (chat(text(None)), "completions", REQUEST, "text: expected a string, got null"),
    (chat(text("1 2 3")), "completions", SCORED, "no log-probabilities of the prompt"),
    (chat(text("1", logprobs=logprobs([], []))), "completions", SCORED, "no log-probabilities of the prompt"),
    (chat(text("1", logprobs=logprobs(["1", "2"], [None]))), "completions", SCORED, "2 tokens and 1 log-prob"),
    (chat(text("1", logprobs=logprobs(["1", "2"], [None] * 2))), "completions", SCORED, "token 2: expected a num"),
    (chat(text("1", logprobs=logprobs(["1", 2], [None, -1]))), "completions", SCORED, "expected strings"),
    (chat(message(None)), "chat", REQUEST, "content is null, and nothing says why"),
    (chat(message(None, reason=None)), "chat", REQUEST, "content is null, and nothing says why"),
    *(
        (chat(message(logprobs={"content": content})), "chat", REQUEST, "logprob|log-prob")
        for content in (5, "abc", {"a": 1}, [{"token": "a", "logprob": 10**400}])
    ),
    (chat(text("1 2 3 4", logprobs=FOUR)), "completions", SCORED, "where none was asked for\n  hint: extra_token"),
])  # fmt: skip
def test_a_reply_that_answers_nothing_is_an_error(body, endpoint, request_, said):
    with pytest.raises(ReplyError, match=said):
        read(body, endpoint, request_)


@pytest.mark.parametrize("counted", [-1, 9])
def test_more_tokens_than_there_are_cannot_be_cut_off(counted):
    body = chat(text("1 2 3 4", logprobs=FOUR), usage={"completion_tokens": counted})
    with pytest.raises(ReplyError, match="completion_tokens"):
        read(body, "completions", SCORED, extra_token=True)


@pytest.mark.parametrize("value", [0.7, 1, 1e400, -1e400, float("nan")])
def test_what_is_no_log_probability_is_an_error(value):
    """A probability, as some servers give, would be summed like any other number."""
    for endpoint, body in (
        ("chat", chat(message(logprobs={"content": [{"token": "a", "logprob": value}]}))),
        ("completions", chat(text("1 2", logprobs=logprobs(["1", " 2"], [None, value])))),
    ):
        with pytest.raises(ReplyError, match="log-probability of token .: .* is no such number"):
            parse_reply(body, endpoint)


@pytest.mark.parametrize("extra_token", [True, False])
def test_an_answer_in_place_of_the_prompt_is_an_error(extra_token):
    """From a server that does not know `echo`: its own words would be compared in place of the options."""
    tokens = logprobs([" 4", " 5", " 6"], [-0.5, -1.5, -9], [0, 2, 4])
    body = chat(text(" 4 5 6", logprobs=tokens), usage={"completion_tokens": 1})
    with pytest.raises(ReplyError, match="a text came back without it"):
        read(body, "completions", SCORED, extra_token=extra_token)


@pytest.mark.parametrize(
    ("came", "first"), [("<s> 1 2 3", -0.1), ("1  2 3", -0.1), ("\uff11 2 3", -0.1), ("<unk> 2 3", None)]
)
def test_a_prompt_that_the_tokenizer_changed_is_scored(came, first):
    body = chat(text(came, logprobs=logprobs(["1", " 2", " 3"], [first, -0.5, -1.5])))
    assert len(read(body, "completions", SCORED).completions[0].tokens) == 3


@pytest.mark.parametrize(("found", "said"), [
    ([None, None], "token 2: expected one entry, got null"),
    ([None, {"1": entry("a", -1), "2": entry("b", -2)}], "token 2: expected one entry"),
    ([None, {"1": {"logprob": None, "decoded_token": "a"}}], "token 2: expected a number, got null"),
    ([None, {"1": {"logprob": -1}}], "token 2: decoded_token: expected a string"),
    ([None, {"1": 7}], "token 2: decoded_token"), ({}, "expected a list"), ([], "no log-probabilities of the prompt"),
    (None, "no log-probabilities of the prompt"),
])  # fmt: skip
def test_prompt_logprobs_that_are_none(found, said):
    with pytest.raises(ReplyError, match=said):
        read(chat({**text("!"), "prompt_logprobs": found}), "completions", SCORED)
