"""What a line asked, and what came back: `arguments` and `resps` of a sample.

| asked | requests of a line | what came back for each |
|---|---|---|
| `generate_until` | one: prompt, parameters | a text, or several (`repeats`) |
| `multiple_choice` | one an option: prompt, option (and without it, `acc_mutual_info`) | log-probability, is greedy |
| `loglikelihood` | one: prompt, text | log-probability, is greedy |
| `loglikelihood_rolling` | one: text | a log-probability: nothing that could be right or wrong |

lm_eval/api/task.py, construct_requests. All that came back is written as texts, numbers too.
"""

from __future__ import annotations

import math
import os.path
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from helm_ext import files
from helm_ext.errors import DatasetError, show
from helm_ext.formats.imported.row import Message

Kind = Literal["generate_until", "multiple_choice", "loglikelihood", "loglikelihood_rolling"]

_MUTUAL_INFORMATION = "acc_mutual_info"
_LEAST = -1e100
"""Stands for a log-probability of minus infinity: JSON has none, and numbers beyond are refused."""


_GREEDY = {"True": True, "False": False}


class RequestError(Exception):
    """A line asks what cannot be scored, or says less than it must. The text is for the user, the hint apart."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class Asked(NamedTuple):
    """What a line asked, and what came back where that are log-probabilities."""

    kind: Kind
    question: str | list[Message]
    options: Sequence[str] = ()
    """What was scored after the question, the delimiter included; of several contexts what tells them apart."""
    logprobs: Sequence[float] = ()
    greedy: Sequence[bool] = ()
    alone: Sequence[float] = ()
    """Log-probabilities of the options without the question."""
    has_contexts: bool = False
    """Whether the options are contexts, and what was scored after them is the same for all."""


def read_asked(sample: Mapping[str, Any]) -> Asked:
    """Return what a sample asked. Raises RequestError."""
    arguments, resps = sample["arguments"], sample["resps"]
    try:
        requests = [arguments[name] for name in _names(len(arguments))]
        prompts = [request["arg_0"] for request in requests]
    except (KeyError, TypeError):
        raise RequestError(f"arguments: expected gen_args_0.arg_0 and so on, got {show(arguments)}") from None
    if not requests:
        raise RequestError("arguments: nothing was asked")
    if len(resps) != len(requests):
        raise RequestError(f"{len(requests)} requests, and {len(resps)} answers in resps")
    asked = [request.get("arg_1") for request in requests]
    if max(map(len, requests)) > 2 and any("arg_2" in request for request in requests):
        raise RequestError("the question has images or sound (arg_2), which this package does not score")
    if len(requests) == 1 and not isinstance(asked[0], str):
        if asked[0] is None:
            return Asked("loglikelihood_rolling", _read_question(prompts[0]))
        return Asked("generate_until", _read_question(prompts[0]))
    if {*map(type, asked), *map(type, prompts)} != {str}:
        raise RequestError("options and their prompts must be texts", "log-probabilities of conversations are not read")
    return _read_likelihoods(sample, prompts, asked)


@lru_cache(maxsize=1024)
def _names(count: int) -> list[str]:
    return [f"gen_args_{number}" for number in range(count)]


def _read_likelihoods(sample: Mapping[str, Any], prompts: Sequence[str], asked: Sequence[str]) -> Asked:
    logprobs, greedy = _read_answers(sample["resps"])
    if len(asked) == 1:
        return Asked("loglikelihood", prompts[0], asked, logprobs, greedy)
    alone: Sequence[float] = ()
    half = len(asked) // 2
    if _MUTUAL_INFORMATION in sample["metrics"]:
        if len(asked) % 2 or any(prompts[half:]):
            raise RequestError(f"{_MUTUAL_INFORMATION} needs each option twice, the second time without a prompt")
        alone, logprobs, greedy = logprobs[half:], logprobs[:half], greedy[:half]
        prompts, asked = prompts[:half], asked[:half]
    if prompts.count(prompts[0]) == len(prompts):
        return Asked("multiple_choice", prompts[0], asked, logprobs, greedy, alone)
    if asked.count(asked[0]) != len(asked):
        raise RequestError("both the prompts and the options differ within the row", "such tasks are not read")
    shared = os.path.commonprefix(prompts)  # noqa: RUF071 - of texts
    shared = shared[: len(shared) - len(shared.split()[-1])] if shared and not shared[-1].isspace() else shared
    options = [f"{prompt[len(shared) :]}{asked[0]}" for prompt in prompts]
    return Asked("multiple_choice", shared, options, logprobs, greedy, alone, has_contexts=True)


def _read_answers(resps: Sequence[Any]) -> tuple[list[float], list[bool]]:
    """Return log-probability and whether it is greedy for each request: of the first of its repeats."""
    try:
        logprobs = [float(found[0][0]) for found in resps]
        greedy = [_GREEDY[found[0][1]] for found in resps]
        if math.inf in logprobs:
            raise ValueError  # noqa: TRY301 - told as the others
    except (TypeError, ValueError, OverflowError, IndexError, KeyError):
        shown = show(resps)
        raise RequestError(f"resps: expected a log-probability and True or False for each, got {shown}") from None
    if -math.inf in logprobs:
        logprobs = [max(logprob, _LEAST) for logprob in logprobs]
    return logprobs, greedy


def read_texts(found: Any) -> list[str]:
    """Return the texts of a request's answers: one, or as many as it was repeated. Raises RequestError."""
    texts = [found] if isinstance(found, str) else found
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise RequestError(f"expected the texts of an answer, got {show(found)}")
    return texts


def _read_question(prompt: Any) -> str | list[Message]:
    """Return a prompt: a text, or the messages that a chat API was sent (lm_eval/models/api_models.py, JsonChatStr)."""
    if isinstance(prompt, str):
        return prompt
    try:
        (text,) = prompt
        messages = files.parse_json(text.encode(), "")
        return [{"role": one["role"], "content": _read_content(one["content"])} for one in messages]
    except (TypeError, ValueError, KeyError, AttributeError, DatasetError):
        raise RequestError(f"arg_0: expected a text, or the messages of a chat as JSON, got {show(prompt)}") from None


def _read_content(content: Any) -> str:
    if isinstance(content, list) and all(part.get("type") == "text" for part in content):
        content = "".join(part["text"] for part in content)
    if not isinstance(content, str):
        raise TypeError
    return content
