"""A line of a samples file: what it must have, what it asked and what came back, and what the harness's scores are.

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
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from helm_ext import files
from helm_ext.errors import DatasetError, Problems, show
from helm_ext.formats.imported.row import Message
from helm_ext.formats.imported.structs import RowError, StructLines

Kind = Literal["generate_until", "multiple_choice", "loglikelihood", "loglikelihood_rolling"]

_MUTUAL_INFORMATION = "acc_mutual_info"
_LEAST = -1e100
"""Stands for a log-probability of minus infinity: JSON has none, and numbers beyond are refused."""
_WORDS = {"True": 1.0, "False": 0.0}
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_LARGEST = 1 << 53


class _Line(msgspec.Struct):
    doc_id: str | int
    doc: Any
    target: str
    arguments: dict[str, Any]
    resps: list[Any]
    filtered_resps: list[Any]
    filter: str
    metrics: list[str]
    doc_hash: str
    prompt_hash: str
    target_hash: str


_KEYS = frozenset(_Line.__struct_fields__)
_ADDED = frozenset({"filter", "metrics", "doc_hash", "prompt_hash", "target_hash"})
"""Of these, what lines of older versions do not have: the hashes before 0.4.3, filter and metrics before 0.4.7."""


def open_samples(path: Path, filters: Sequence[str], problems: Problems) -> StructLines:
    """Return the samples of a file. `filters`: the task's, for lines that do not name theirs; empty: not known."""
    complete = _Older(filters).complete
    return StructLines(path, _Line, "sample of lm-eval", problems, is_lenient=True, complete=complete)


class _Older:
    """Brings samples of older versions into the shape of newer ones (lm_eval/evaluator.py of v0.4.0 to v0.4.6).

    Lines are written filter by filter, and do not name it: the first of a question is that of the first filter. The
    metrics are what stands behind the other keys. Before 0.4.3 `arguments` are lists, and numbers are no texts.
    """

    def __init__(self, filters: Sequence[str]) -> None:
        self._filters = filters
        self._seen: Counter[int | str] = Counter()
        """By question: its lines."""

    def complete(self, value: Any) -> Any:
        """Return a sample with all keys; anything else as it is."""
        if type(value) is not dict or "filter" in value or not value.keys() >= _KEYS - _ADDED:
            return value
        doc_id = value["doc_id"]
        if not isinstance(doc_id, int | str):
            return value
        place = self._seen[doc_id]
        self._seen[doc_id] += 1
        filters = self._filters
        completed = {
            "doc_hash": files.canonical_json(value["doc"]).decode(),
            "prompt_hash": "",
            "target_hash": "",
            **value,
            "filter": filters[place % len(filters)] if filters else f"filter {place + 1}",
            "metrics": [key for key in value if key not in _KEYS],
            "target": str(value["target"]),
        }
        if isinstance(value["arguments"], list):
            completed["arguments"] = _to_named(value["arguments"])
            completed |= {key: _to_texts(value[key]) for key in ("resps", "filtered_resps")}
        return completed


def _to_named(arguments: Sequence[Any]) -> Any:
    """Return the arguments of requests as newer versions write them: `gen_args_0.arg_0`."""
    if not all(isinstance(one, list) for one in arguments):
        return arguments
    return {
        f"gen_args_{number}": {f"arg_{place}": value for place, value in enumerate(one)}
        for number, one in enumerate(arguments)
    }


def _to_texts(value: Any) -> Any:
    """Return answers as newer versions write them, numbers as texts (lm_eval/utils.py, sanitize_list)."""
    return [_to_texts(one) for one in value] if isinstance(value, list) else str(value)


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
    """Return what a sample asked. Raises RowError."""
    arguments, resps = sample["arguments"], sample["resps"]
    try:
        requests = [arguments[f"gen_args_{number}"] for number in range(len(arguments))]
        prompts = [request["arg_0"] for request in requests]
    except (KeyError, TypeError):
        raise RowError(f"arguments: expected gen_args_0.arg_0 and so on, got {show(arguments)}") from None
    if not requests:
        raise RowError("arguments: nothing was asked")
    if len(resps) != len(requests):
        raise RowError(f"{len(requests)} requests, and {len(resps)} answers in resps")
    asked = [request.get("arg_1") for request in requests]
    if max(map(len, requests)) > 2 and any("arg_2" in request for request in requests):
        raise RowError("the question has images or sound (arg_2), which this package does not score")
    if len(requests) == 1 and not isinstance(asked[0], str):
        if asked[0] is None:
            return Asked("loglikelihood_rolling", _read_question(prompts[0]))
        return Asked("generate_until", _read_question(prompts[0]))
    if {*map(type, asked), *map(type, prompts)} != {str}:
        raise RowError("options and their prompts must be texts", "log-probabilities of conversations are not read")
    return _read_likelihoods(sample, prompts, asked)


def _read_likelihoods(sample: Mapping[str, Any], prompts: Sequence[str], asked: Sequence[str]) -> Asked:
    logprobs, greedy = _read_answers(sample["resps"])
    if len(asked) == 1:
        return Asked("loglikelihood", prompts[0], asked, logprobs, greedy)
    alone: Sequence[float] = ()
    half = len(asked) // 2
    if _MUTUAL_INFORMATION in sample["metrics"]:
        if len(asked) % 2 or any(prompts[half:]):
            raise RowError(f"{_MUTUAL_INFORMATION} needs each option twice, the second time without a prompt")
        alone, logprobs, greedy = logprobs[half:], logprobs[:half], greedy[:half]
        prompts, asked = prompts[:half], asked[:half]
    if prompts.count(prompts[0]) == len(prompts):
        return Asked("multiple_choice", prompts[0], asked, logprobs, greedy, alone)
    if asked.count(asked[0]) != len(asked):
        raise RowError("both the prompts and the options differ within the row", "such tasks are not read")
    shared = os.path.commonprefix(prompts)  # noqa: RUF071 - of texts
    shared = shared[: len(shared) - len(shared.split()[-1])] if shared and not shared[-1].isspace() else shared
    options = [f"{prompt[len(shared) :]}{asked[0]}" for prompt in prompts]
    return Asked("multiple_choice", shared, options, logprobs, greedy, alone, has_contexts=True)


def _read_answers(resps: Sequence[Any]) -> tuple[list[float], list[bool]]:
    """Return log-probability and whether it is greedy for each request: of the first of its repeats."""
    try:
        logprobs = [float(found[0][0]) for found in resps]
        greedy = [_WORDS[found[0][1]] == 1 for found in resps]
        if math.inf in logprobs:
            raise ValueError  # noqa: TRY301 - told as the others
    except (TypeError, ValueError, OverflowError, IndexError, KeyError):
        shown = show(resps)
        raise RowError(f"resps: expected a log-probability and True or False for each, got {shown}") from None
    if -math.inf in logprobs:
        logprobs = [max(logprob, _LEAST) for logprob in logprobs]
    return logprobs, greedy


def read_texts(found: Any) -> list[str]:
    """Return the texts of a request's answers: one, or as many as it was repeated. Raises RowError."""
    texts = [found] if isinstance(found, str) else found
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise RowError(f"expected the texts of an answer, got {show(found)}")
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
        raise RowError(f"arg_0: expected a text, or the messages of a chat as JSON, got {show(prompt)}") from None


def _read_content(content: Any) -> str:
    if isinstance(content, list) and all(part.get("type") == "text" for part in content):
        content = "".join(part["text"] for part in content)
    if not isinstance(content, str):
        raise TypeError
    return content


def to_score(value: Any) -> float | None:
    """Return the number of a metric's value; None where the harness made none; NaN for what is no number.

    numpy's numbers and truth values are written as texts ("0.5", "True"): lm_eval/utils.py, handle_non_serializable.
    """
    if isinstance(value, float):
        return None if math.isnan(value) else (value if math.isfinite(value) else math.nan)
    if isinstance(value, int):  # bool too
        return float(value) if abs(value) <= _LARGEST else math.nan
    if isinstance(value, str):
        if value in _WORDS:
            return _WORDS[value]
        return float(value) if _NUMBER.fullmatch(value) else math.nan
    return None if value is None else math.nan


def is_invalid(filtered: Any) -> bool:
    """Whether a filter found nothing (lm_eval/filters/extraction.py)."""
    return filtered == "[invalid]" or (isinstance(filtered, list) and set(map(str, filtered)) == {"[invalid]"})
