"""A line of a samples file: what it must have, what it asked and what came back, and what the harness's scores are.

| asked | requests of a line | what came back for each |
|---|---|---|
| `generate_until` | one: prompt, parameters | a text, or several (`repeats`) |
| `multiple_choice` | one an option: prompt, option (and without it, `acc_mutual_info`) | log-probability, is greedy |
| `loglikelihood` | one: prompt, text | log-probability, is greedy |
| `loglikelihood_rolling` | one: text | a log-probability: nothing that could be right or wrong |

lm_eval/api/task.py, construct_requests. All that came back is written as texts, numbers too.

What `target` means. The harness writes it as a text, whatever it was (lm_eval/loggers/evaluation_tracker.py).

Of a multiple-choice task it was a position from 0, an option's text, or a list of positions (lm_eval/api/task.py,
process_results). There false and true are the positions 0 and 1, as they are for Python: also where the options read
"True" and "False". Metrics that log the gold itself (`f1`, `mcc`, `brier_score`, `likelihood`) tell which; else both
ways are tried on every line, and must lead to the `acc` that was logged.

Where a task lets the model write and has `doc_to_choice`, it is a position too: the harness compares the answer with
`doc_to_choice(doc)[doc_to_target(doc)]` (lm_eval/api/task.py, process_results). What the choices are stands in the
task's config, in the results file; without it, a position is told from an answer by what was counted as right.
"""

from __future__ import annotations

import math
import os.path
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

import msgspec

from helm_ext import files
from helm_ext.errors import DatasetError, Problems, show
from helm_ext.formats.imported.json_log import StructLines
from helm_ext.formats.imported.row import Message, RowError
from helm_ext.formats.request_states.rows import find_value

Kind = Literal["generate_until", "multiple_choice", "loglikelihood", "loglikelihood_rolling"]

_MUTUAL_INFORMATION = "acc_mutual_info"
_LEAST = -1e100
"""Stands for a log-probability of minus infinity: JSON has none, and numbers beyond are refused."""
_TRUTHS = {"False": 0, "True": 1}
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


def open_samples(path: Path, filters: Sequence[str], problems: Problems) -> StructLines[_Line]:
    """Return the samples of a file, those of older versions in the shape of newer ones.

    `filters`: the task's, for lines that do not name theirs; empty: not known. Before 0.4.7 lines are written filter by
    filter, and do not name it: the first of a question is that of the first filter. The metrics are what stands behind
    the other keys. Before 0.4.3 `arguments` are lists, and numbers are no texts (lm_eval/evaluator.py of v0.4.0 on).
    """
    seen: Counter[int | str] = Counter()

    def complete(value: Any) -> Any:
        is_older = type(value) is dict and "filter" not in value and value.keys() >= _KEYS - _ADDED
        if not is_older or not isinstance(doc_id := value["doc_id"], int | str):
            return value
        place = seen[doc_id]
        seen[doc_id] += 1
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

    return StructLines(path, _Line, "sample of lm-eval", problems, is_lenient=True, complete=complete)


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
        greedy = [bool(_TRUTHS[found[0][1]]) for found in resps]
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
        if value in _TRUTHS:
            return float(_TRUTHS[value])
        return float(value) if _NUMBER.fullmatch(value) else math.nan
    return None if value is None else math.nan


def is_invalid(filtered: Any) -> bool:
    """Whether a filter found nothing (lm_eval/filters/extraction.py)."""
    return filtered == "[invalid]" or (isinstance(filtered, list) and set(map(str, filtered)) == {"[invalid]"})


Reading = Literal["logged", "index", "text"]
"""How the target of a multiple-choice line is read."""

Sample = Mapping[str, Any]

_INDEX = re.compile(r"-?\d{1,9}", re.ASCII)
_LOGGED = ("f1", "mcc", "brier_score", "likelihood")
"""Metrics whose value is a pair that begins with the gold."""
_KEY = re.compile(r"\{\{-?\s*(?:doc\.)?([A-Za-z_][\w.]*)\s*-?\}\}")
"""A Jinja template that names a key and does nothing else."""
_HINT = "gold=doc.KEY names where the right text stands"


def _by_logged(sample: Sample, options: Sequence[str]) -> list[int] | None:  # noqa: ARG001
    for name in _LOGGED:
        value = sample.get(name) if name in sample["metrics"] else None
        if isinstance(value, list) and len(value) == 2:
            golds = value[0] if isinstance(value[0], list) else [value[0]]
            if all(isinstance(gold, int) for gold in golds):  # true and false too
                return list(map(int, golds))
    return None


def _by_index(sample: Sample, options: Sequence[str]) -> list[int] | None:  # noqa: ARG001
    target: str = sample["target"]
    if target[:1] == "[" and target[-1:] == "]":
        positions = [to_position(part.strip()) for part in target[1:-1].split(",")] if target != "[]" else []
    else:
        positions = [to_position(target)]
    return None if None in positions else cast("list[int]", positions)


def _by_text(sample: Sample, options: Sequence[str]) -> list[int] | None:
    return [options.index(sample["target"])] if sample["target"] in options else None


_READINGS: Mapping[Reading, Callable[[Sample, Sequence[str]], list[int] | None]] = {
    "logged": _by_logged,
    "index": _by_index,
    "text": _by_text,
}
"""From a sample and the texts of its options to the positions that are right; None for what cannot be read so."""


def to_position(text: str) -> int | None:
    """Return the position that a logged target is; None for any other text."""
    if text in _TRUTHS:
        return _TRUTHS[text]
    return int(text) if _INDEX.fullmatch(text) else None


class Targets:
    """Sees the targets of all multiple-choice lines, and decides how they are read."""

    def __init__(self) -> None:
        self._wrong: dict[Reading, RowError] = {}
        """By reading, the first line that cannot be read so, or whose `acc` another gold has."""
        self._has_gold: set[Reading] = set()
        """Readings by which a line names one of its options."""
        self._differs: RowError | None = None
        """The first line that is read differently as position and as text."""

    def see(self, sample: Sample, options: Sequence[str], winner: int, line: int) -> dict[Reading, list[int]]:
        """Take one more line, and return what its target is by each reading; `winner`: of its likeliest option."""
        acc = to_score(sample["acc"]) if "acc" in sample["metrics"] else None
        target = show(sample["target"])
        read: dict[Reading, list[int]] = {}
        for name, reading in _READINGS.items():
            wrong = f"target {target} names no option of its row"
            if (golds := reading(sample, options)) is not None:
                read[name] = golds
                if any(0 <= gold < len(options) for gold in golds):
                    self._has_gold.add(name)
                if acc is None or float(winner in golds) == acc:
                    continue
                wrong = (
                    f"target is not what the harness compared with: the likeliest option is number {winner}, "
                    f"{show(options[winner])}; target is {target}, and acc {acc:g}"
                )
            hint = "gold=doc.KEY names where the right option stands"
            self._wrong.setdefault(name, RowError(wrong, hint, line=line))
        if self._differs is None and len(read) > 1 and read.get("index") != read.get("text"):
            message = f"target {target} is a position, counted from 0, or the text of an option"
            self._differs = RowError(message, "gold_kind=index or gold_kind=text says which", line=line)
        return read

    def decide(self) -> Reading:
        """Return how all targets are read. Raises RowError: of the reading that held longest, where none is right."""
        right = [name for name in _READINGS if name not in self._wrong]
        if not right:
            raise max(self._wrong.values(), key=lambda wrong: wrong.line or 0)
        if not self._has_gold.intersection(right):
            hint = "these are the hidden answers of a test split: use a split whose answers are public"
            raise RowError("no gold: no target names an option of its row, so nothing can be scored", hint)
        if len(right) > 1 and right[0] != "logged" and self._differs is not None:
            raise self._differs
        return right[0]


def read_texts_of_target(sample: Sample) -> Sequence[str] | None:
    """Return the accepted texts of a generated answer; None where the task has no target for the row.

    A target that looks like a list is one only if it stands in `doc`. Raises RowError where that cannot be told.
    """
    target: str = sample["target"]
    first = target[:1]
    if first not in ("[", "{", "(") and target != "None":
        return (target,)
    values = [value for value in _walk(sample["doc"]) if str(value) == target]
    others = [value for value in values if not isinstance(value, str)]
    if values and not others:
        return (target,)
    if target == "None":
        return None
    listed = others[0] if others and len(others) == len(values) else None
    if isinstance(listed, list) and all(isinstance(one, str | int) for one in listed):
        return tuple(dict.fromkeys(map(str, listed))) or None
    if first == "[" or others:
        message = f"target {show(target)} could be a list of answers or a text: doc does not tell"
        raise RowError(message, "gold=doc.KEY names where the answers stand")
    return (target,)


def _walk(value: Any, depth: int = 0) -> Iterator[Any]:
    """Yield all values inside a document, itself included."""
    yield value
    if depth < 20 and isinstance(value, dict | list):
        for child in value.values() if isinstance(value, dict) else value:
            yield from _walk(child, depth + 1)


def read_choice(sample: Sample, doc_to_choice: Any) -> tuple[str, ...]:
    """Return the text that the harness compared with; () for a negative position, a hidden answer.

    `doc_to_choice`: as the results file has it. Raises RowError where the choices are not known, or there is no such
    one.
    """
    doc, target, choices = sample["doc"], sample["target"], doc_to_choice
    if isinstance(choices, dict):
        choices = list(choices.values())
    elif isinstance(choices, str):
        match = _KEY.fullmatch(choices.strip())
        is_key = isinstance(doc, dict) and choices in doc
        choices = find_value(doc, match[1]) if match is not None else doc[choices] if is_key else None
    if not (isinstance(choices, list) and choices and all(isinstance(one, str) for one in choices)):
        raise RowError(
            f"target {show(target)} is the position of a choice, and doc_to_choice of the task is code or a template "
            f"whose choices are not logged: {show(doc_to_choice)}",
            _HINT,
        )
    position = to_position(target)
    if position is None or position >= len(choices):
        raise RowError(f"target {show(target)} is no position of the task's {len(choices)} choices", _HINT)
    return (choices[position],) if position >= 0 else ()


def require_compared(sample: Sample) -> None:
    """Raise RowError where the logged `exact_match` shows that a `target` that could be a position was no gold.

    An answer that is the target cannot be wrong, and one that was right has the target in it, whatever case, marks or
    parts the task ignores.
    """
    target, logged = sample["target"], sample.get("exact_match")
    found = sample["filtered_resps"][0] if sample["filtered_resps"] else None
    is_scored = "exact_match" in sample["metrics"] and logged in (0, 1)
    if not is_scored or not isinstance(found, str) or to_position(target) is None:
        return
    is_in = target.lower() in found.lower().replace(",", "")
    if (logged == 0 and found == target) or (logged == 1 and not is_in):
        raise RowError(
            f"target {show(target)} is not what the harness compared with: the answer {show(found)} has exact_match "
            f"{logged:g}; it may be the position of a choice (doc_to_choice), which the results file would name",
            f"results=FILE names the results file; {_HINT}",
        )
