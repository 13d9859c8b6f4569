"""`chain_of_thought.json`: word problems; the five train rows carry a worked solution."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from random import Random
from typing import Any

from example_data.pieces import (
    FIRST,
    SECOND,
    Api,
    Example,
    Plan,
    Question,
    Said,
    deal,
    draw,
    expected_stats,
    references,
    rng_of,
)

NAMES = ("Anneke", "Bjarne", "Catalina", "Dimitri", "Elif", "Farid", "Greta", "Hiroshi", "Imani", "Jovan")
FRUIT = ("pears", "plums", "quinces", "apricots", "lemons", "figs")
PLANTS = ("lettuces", "tulips", "leeks", "dahlias", "cabbages")
CONCLUSION = "So the answer is: "


def crates(rng: Random) -> Question:
    """Multiply, add."""
    a, b, c, fruit = rng.randint(3, 12), rng.randint(8, 30), rng.randint(2, 19), rng.choice(FRUIT)
    text = (
        f"{rng.choice(NAMES)} packs {a} crates with {b} {fruit} each and has {c} {fruit} left over. "
        f"How many {fruit} are there altogether?"
    )
    why = (
        f"The {a} crates hold {a} x {b} = {a * b} {fruit}. "
        f"With the {c} left over that makes {a * b} + {c} = {a * b + c}."
    )
    return Question(text, str(a * b + c), reasoning=why, unit=fruit)


def bus(rng: Random) -> Question:
    """Subtract, add, twice."""
    start = rng.randint(18, 40)
    off, on, off2, on2 = rng.randint(3, 12), rng.randint(2, 15), rng.randint(2, 6), rng.randint(1, 9)
    text = (
        f"A bus leaves the depot with {start} passengers. At the first stop {off} get off and {on} get on; "
        f"at the second {off2} get off and {on2} get on. How many passengers are on the bus now?"
    )
    middle = start - off + on
    why = (
        f"After the first stop there are {start} - {off} + {on} = {middle} passengers. "
        f"After the second there are {middle} - {off2} + {on2} = {middle - off2 + on2}."
    )
    return Question(text, str(middle - off2 + on2), reasoning=why, unit="passengers")


def savings(rng: Random) -> Question:
    """Multiply, subtract."""
    week, weeks, name = rng.randint(4, 18), rng.randint(5, 16), rng.choice(NAMES)
    spent = rng.randint(5, week * weeks - 5)
    text = (
        f"{name} saves {week} euros a week for {weeks} weeks and then buys a tent pole for {spent} euros. "
        f"How many euros are left?"
    )
    total = week * weeks
    why = (
        f"In {weeks} weeks {name} saves {weeks} x {week} = {total} euros. "
        f"After the purchase {total} - {spent} = {total - spent} are left."
    )
    return Question(text, str(total - spent), reasoning=why, unit="euros")


def beds(rng: Random) -> Question:
    """Multiply, multiply, subtract."""
    beds_, rows, each, plants = rng.randint(2, 6), rng.randint(3, 8), rng.randint(5, 12), rng.choice(PLANTS)
    lost = rng.randint(4, 20)
    text = (
        f"A garden has {beds_} beds with {rows} rows of {each} {plants}. Snails eat {lost} of the {plants}. "
        f"How many {plants} remain?"
    )
    one, total = rows * each, beds_ * rows * each
    why = (
        f"One bed holds {rows} x {each} = {one} {plants}, and {beds_} beds hold {beds_} x {one} = {total}. "
        f"Without those eaten there are {total} - {lost} = {total - lost}."
    )
    return Question(text, str(total - lost), reasoning=why, unit=plants)


def book(rng: Random) -> Question:
    """Double, add up."""
    first, rest, name = rng.randint(12, 60), rng.randint(15, 90), rng.choice(NAMES)
    text = (
        f"On Monday {name} reads {first} pages of a novel, on Tuesday twice as many, and {rest} pages are "
        f"still unread. How many pages does the novel have?"
    )
    why = (
        f"On Tuesday it is 2 x {first} = {2 * first} pages. "
        f"Together with the rest that makes {first} + {2 * first} + {rest} = {3 * first + rest}."
    )
    return Question(text, str(3 * first + rest), reasoning=why, unit="pages")


def shares(rng: Random) -> Question:
    """Subtract, divide."""
    children, each, kept = rng.randint(3, 9), rng.randint(4, 15), rng.randint(2, 11)
    total = children * each + kept
    text = (
        f"A tin holds {total} biscuits. {rng.choice(NAMES)} keeps {kept} for the neighbours and shares the others "
        f"equally among {children} children. How many biscuits does each child get?"
    )
    why = (
        f"After keeping {kept} there are {total} - {kept} = {total - kept} biscuits. "
        f"Each child gets {total - kept} / {children} = {each}."
    )
    return Question(text, str(each), reasoning=why, unit="biscuits")


TEMPLATES: list[Callable[[Random], Question]] = [crates, bus, savings, beds, book, shares]


def _said(text: str, *, right: bool) -> Said:
    value = Fraction(int(right))
    return Said((f" {text}",), {"exact_match": value, "quasi_exact_match": value})


def right(question: Question, _rng: Random) -> Said:
    """Reason and conclude."""
    return _said(f"{question.reasoning} {CONCLUSION}{question.answer}.", right=True)


def right_unit(question: Question, _rng: Random) -> Said:
    """Say what is counted, too; only the number is extracted."""
    return _said(f"{question.reasoning} {CONCLUSION}{question.answer} {question.unit}.", right=True)


def right_at_last(question: Question, rng: Random) -> Said:
    """Correct oneself; the last conclusion counts."""
    slip = int(question.answer) + rng.randint(1, 9)
    return _said(
        f"{CONCLUSION}{slip}. Wait, step by step: {question.reasoning} {CONCLUSION}{question.answer}.", right=True
    )


def slips(question: Question, rng: Random) -> Said:
    """Make a mistake in the last step."""
    result = int(question.answer) + rng.choice([-10, -2, -1, 1, 2, 10])
    steps = question.reasoning.rpartition(" = ")[0]
    return _said(f"{steps} = {result}. {CONCLUSION}{result}.", right=False)


def wrong_at_last(question: Question, rng: Random) -> Said:
    """Be right first."""
    slip = int(question.answer) + rng.randint(1, 9)
    return _said(f"{question.reasoning} {CONCLUSION}{question.answer}. No, one more: {CONCLUSION}{slip}.", right=False)


def breaks_off(question: Question, _rng: Random) -> Said:
    """Run out of tokens before the conclusion, with the right number in sight."""
    return _said(question.reasoning, right=False)


FIRST_PLAN: Plan = [
    (70, right), (6, right_unit), (5, right_at_last), (12, slips), (3, wrong_at_last), (4, breaks_off),
]  # fmt: skip
"""81 right, 19 wrong."""

SECOND_PLAN: Plan = [(84, right), (2, right_unit), (10, slips), (4, breaks_off)]
"""86 right, 14 wrong."""

PLANS = {FIRST: FIRST_PLAN, SECOND: SECOND_PLAN}


def build(model: str = FIRST) -> Example:
    """Make `chain_of_thought.json`: 5 train and 100 test rows."""
    rng = Random("chain_of_thought")
    questions = draw(TEMPLATES, 105, rng)
    # One worked example of each of five kinds.
    train = [
        next(q for q in questions if q.text.endswith(end)) for end in ("altogether?", "now?", "left?", "have?", "get?")
    ]
    test = [question for question in questions if question not in train]
    rng = rng_of(model, "chain_of_thought", rng)
    said = deal(PLANS[model], test, rng)
    api = Api(rng, 1_742_378_400, gives_logprobs=False)
    states: list[dict[str, Any]] = [
        {
            "instance": {
                "input": {"text": question.text},
                "references": references(question),
                "chain_of_thought": question.reasoning,
                "split": "train",
                "id": f"worked-{number}",
            }
        }
        for number, question in enumerate(train, start=1)
    ]
    states += [
        {
            "instance": {
                "input": {"text": question.text},
                "references": references(question),
                "split": "test",
                "id": f"problem-{number:03d}",
            },
            "request": api.record(one.texts),
        }
        for number, (question, one) in enumerate(zip(test, said, strict=True), start=1)
    ]
    header = {
        "display_name": "Word problems, step by step",
        "description": "Word problems of two or three steps; the train rows carry worked solutions.",
        "adapter_spec": {
            "instructions": "Solve each problem step by step, then state the answer.",
            "input_prefix": "Q: ",
            "input_suffix": "\n",
            "output_prefix": "A: ",
            "chain_of_thought_prefix": "",
            "chain_of_thought_suffix": f" {CONCLUSION}",
            "output_suffix": ".\n",
            "instance_prefix": "\n",
            "max_train_instances": 5,
            "max_eval_instances": 1000,
            "max_tokens": 128,
            "stop_sequences": ["\n"],
            "decoding_parameters": {"temperature": 0},
        },
        "scoring": {
            "metrics": ["exact_match", "quasi_exact_match"],
            "main_metric": "exact_match",
            "extract": f"{CONCLUSION}(-?\\d+)",
        },
    }
    return Example("chain_of_thought.json", header, states, expected_stats(said), len(said), "exact_match", model)
