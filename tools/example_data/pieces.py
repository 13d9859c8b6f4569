"""What all examples share: questions, an imaginary model's answers, and what each answer is worth.

The model's answers are dealt from a plan (so many right, so many wrong, ...). Each way of answering says itself which
value every stat gives it, so the expected scores are counted here and never computed by the code that is tested.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from random import Random
from typing import Any

FIRST = "first-model"
SECOND = "second-model"
"""The imaginary models. Both are asked the same questions."""


@dataclass(frozen=True)
class Question:
    """One row before it is written down."""

    text: str
    answer: str
    options: tuple[str, ...] = ()
    """Options of a multiple-choice question in the order in which they are shown; `answer` is one of them."""
    items: tuple[str, ...] = ()
    """Segments of a list answer."""
    reasoning: str = ""
    unit: str = ""
    """What the number in `answer` counts."""


@dataclass(frozen=True)
class Said:
    """What the imaginary model said to one question."""

    texts: tuple[str, ...]
    """One text a completion."""
    stats: Mapping[str, Fraction]
    """What the row is worth, by stat."""


Way = Callable[[Question, Random], Said]
"""A way of answering."""

Plan = Sequence[tuple[int, Way]]
"""How often a model answers in which way."""


@dataclass
class Example:
    """A file, ready to be written."""

    file_name: str
    header: dict[str, Any]
    """Top-level keys but `request_states`."""
    states: list[dict[str, Any]]
    stats: dict[str, Fraction] = field(default_factory=dict)
    """The mean of each stat over the recorded rows; {} where nothing is recorded."""
    scored: int = 0
    """Number of rows that carry a completion."""
    main_metric: str = ""
    model: str = FIRST
    """Who answered."""


def rng_of(model: str, name: str, drawn: Random) -> Random:
    """Return the generator of a model's answers: for the first model, the one that drew the dataset's questions."""
    return drawn if model == FIRST else Random(f"{name} {model}")


def draw(templates: Sequence[Callable[[Random], Question]], count: int, rng: Random) -> list[Question]:
    """Return `count` questions with different texts, the templates taking turns, in random order."""
    found: dict[str, Question] = {}
    turn = 0
    while len(found) < count:
        question = templates[turn % len(templates)](rng)
        found.setdefault(question.text, question)
        turn += 1
    questions = list(found.values())
    rng.shuffle(questions)
    return questions


def deal(plan: Plan, questions: Sequence[Question], rng: Random) -> list[Said]:
    """Answer each question in one of the planned ways. The plan's counts must add up to the number of questions."""
    ways = [way for count, way in plan for _ in range(count)]
    if len(ways) != len(questions):
        raise ValueError(f"the plan is for {len(ways)} questions, and there are {len(questions)}")
    rng.shuffle(ways)
    return [way(question, rng) for way, question in zip(ways, questions, strict=True)]


def expected_stats(said: Sequence[Said]) -> dict[str, Fraction]:
    """Return the mean of every stat."""
    return {name: sum((one.stats[name] for one in said), Fraction(0)) / len(said) for name in said[0].stats}


def references(question: Question) -> list[dict[str, Any]]:
    """Return the references of a row: its options, or its one answer."""
    return [
        {"output": {"text": text}, "tags": ["correct"] if text == question.answer else []}
        for text in question.options or (question.answer,)
    ]


class Api:
    """The imaginary service that the completions were recorded from: it takes its time and knows its probabilities."""

    def __init__(self, rng: Random, started: int, *, gives_logprobs: bool) -> None:
        self.rng = rng
        self.clock = float(started)
        """Seconds since 1970."""
        self.gives_logprobs = gives_logprobs

    def record(self, texts: Sequence[str]) -> dict[str, Any]:
        """Return `request` of a state: the result that holds these completions."""
        seconds = round(0.18 + 0.021 * sum(map(len, texts)) ** 0.8 + self.rng.expovariate(4.0), 6)
        self.clock += seconds
        result = {
            "success": True,
            "completions": [self._completion(text) for text in texts],
            "cached": self.rng.random() < 0.08,
            "request_time": seconds,
            "request_datetime": int(self.clock),
        }
        return {"result": result}

    def _completion(self, text: str) -> dict[str, Any]:
        if not self.gives_logprobs:
            return {"text": text}
        tokens = [
            {"text": token, "logprob": -round(self.rng.expovariate(1.8), 5)}
            for token in re.findall(r" ?\w{1,5}|\W", text)
        ]
        return {"text": text, "logprob": round(sum(token["logprob"] for token in tokens), 5), "tokens": tokens}
