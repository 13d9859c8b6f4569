"""Result files as providers and vLLM write them, where the samples stand beside the checkout."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from optional_sources import IMPORT_SAMPLES, needs_import_samples

from helm_ext.clients.openai_replies import parse_output, parse_reply

SAMPLES = IMPORT_SAMPLES / "openai_batch"
pytestmark = needs_import_samples


def lines(name: str) -> list[dict]:
    return [json.loads(line) for line in (SAMPLES / name).read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize(
    ("output", "asked", "endpoint"),
    [
        ("chat_output.jsonl", "chat_input.jsonl", "chat"),
        ("vllm_output.jsonl", "vllm_input.jsonl", "chat"),
        ("vllm_old_output.jsonl", "vllm_input.jsonl", "chat"),
        ("completions_output.jsonl", "completions_input.jsonl", "completions"),
    ],
)
def test_every_line_is_an_answer_or_says_why_it_is_none(output, asked, endpoint):
    bodies = {line["custom_id"]: line["body"] for line in lines(asked)}
    kinds = Counter()
    for line in lines(output):
        outcome = parse_output(line)
        body = bodies[outcome.custom_id]
        kinds["failed" if outcome.failure else "answered"] += 1
        if outcome.failure:
            assert line["response"] is None or line["response"]["status_code"] != 200
            continue
        reply = parse_reply(outcome.body, endpoint, number=body.get("n", 1), echo=bool(body.get("echo")))
        said = outcome.body["choices"][0]
        if endpoint == "completions":
            assert [token.text for token in reply.choices[0].tokens] == said["logprobs"]["tokens"]
            assert reply.choices[0].tokens[0].logprob is None
        elif said["message"]["content"]:
            assert said["message"]["content"] in {choice.text for choice in reply.choices}
    assert kinds["answered"] + kinds["failed"] == len(lines(output))
    assert kinds["answered"] == sum(
        "choices" in (line["response"] or {}) or (line["response"] or {}).get("status_code") == 200
        for line in lines(output)
    )


def test_errors_are_failures_with_their_reason():
    found = [parse_output(line).failure for line in lines("chat_errors.jsonl")]
    assert found == ["not run: batch_expired", "status 400: \"Invalid 'messages'\""]


@pytest.mark.parametrize("code", [{"a": 1}, ["x"], 7, None])
def test_a_code_of_another_type_is_explained(code):
    line = {"custom_id": "a", "response": None, "error": {"code": code, "message": "no"}}
    outcome = parse_output(line)
    assert (outcome.failure, outcome.is_not_run) == ('"no"', False)
