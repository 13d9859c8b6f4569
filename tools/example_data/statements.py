"""`yes_no_questions.jsonl`: JSON Lines, without completions: only a live run can score it."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from example_data.choices import DAYS, WORDS, clock
from example_data.pieces import Example, Question, draw, references

PLACES = ("library", "swimming pool", "museum", "post office", "bakery", "tool shop", "town archive")
VESSELS = ("kettle", "jug", "bucket", "barrel", "mug", "bowl", "flask")


def _ask(text: str, *, holds: bool) -> Question:
    return Question(text, "Yes" if holds else "No")


def opening(rng: Random) -> Question:
    """Is it open then?"""
    opens, closes, now = rng.randrange(480, 660, 30), rng.randrange(960, 1200, 30), rng.randrange(400, 1300, 5)
    place = rng.choice(PLACES)
    text = f"The {place} opens at {clock(opens)} and closes at {clock(closes)}. Is it open at {clock(now + 1)}?"
    return _ask(text, holds=opens <= now + 1 < closes)


def divides(rng: Random) -> Question:
    """Is it divisible?"""
    number, divisor = rng.randint(20, 400), rng.randint(3, 9)
    return _ask(f"Can {number} be divided by {divisor} without a remainder?", holds=number % divisor == 0)


def letters(rng: Random) -> Question:
    """Does the word have the letter?"""
    word, letter = rng.choice(WORDS), rng.choice("aeilnrst")
    return _ask(f'Does the word "{word}" contain the letter "{letter}"?', holds=letter in word)


def product(rng: Random) -> Question:
    """Which is more?"""
    a, b, c = rng.randint(3, 19), rng.randint(3, 19), rng.randint(20, 260)
    return _ask(f"Is {a} times {b} more than {c}?", holds=a * b > c)


def heavier(rng: Random) -> Question:
    """Follow the order."""
    order = rng.sample(VESSELS, 4)
    one, other = rng.sample(range(4), 2)
    told = [f"the {order[index]} is heavier than the {order[index + 1]}" for index in range(3)]
    text = f"{told[0].capitalize()}, {told[1]}, and {told[2]}. Is the {order[one]} heavier than the {order[other]}?"
    return _ask(text, holds=one < other)


def weekend(rng: Random) -> Question:
    """Is it the weekend then?"""
    today, days = rng.randrange(7), rng.randint(2, 30)
    text = f"Today is {DAYS[today]}. Does the day {days} days from now fall on a Saturday or Sunday?"
    return _ask(text, holds=(today + days) % 7 >= 5)


TEMPLATES: list[Callable[[Random], Question]] = [opening, divides, letters, product, heavier, weekend]


def build() -> Example:
    """Make `yes_no_questions.jsonl`: 60 rows with the answer Yes and 60 with No, without a split."""
    rng = Random("yes_no_questions")
    drawn = draw(TEMPLATES, 400, rng)
    questions = [q for answer in ("Yes", "No") for q in [d for d in drawn if d.answer == answer][:60]]
    rng.shuffle(questions)
    states = [
        {
            "instance": {
                "input": {"text": question.text},
                "references": references(question),
                "id": f"yes-no-{number:03d}",
            }
        }
        for number, question in enumerate(questions, start=1)
    ]
    header = {
        "display_name": "Yes or no",
        "description": "Opening hours, arithmetic and spelling; half of the answers are yes.",
        "adapter_spec": {
            "instructions": "Answer each question with Yes or No.",
            "input_prefix": "Question: ",
            "input_suffix": "\n",
            "output_prefix": "Answer: ",
            "output_suffix": "\n",
            "instance_prefix": "\n",
            "max_train_instances": 5,
            "max_eval_instances": 100,
            "max_tokens": 2,
            "stop_sequences": ["\n"],
            "decoding_parameters": {"temperature": 0},
        },
    }
    return Example("yes_no_questions.jsonl", header, states)
