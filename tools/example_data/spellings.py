"""How a model names one of several options, or fails to."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from random import Random

from example_data.pieces import Question, Said, Way


def chooses(spelling: str, labels: Sequence[str], *, right: bool) -> Way:
    """Choose the right option or a wrong one, and spell it: `{label}`, `{lower}` and `{text}` are filled in."""

    def way(question: Question, rng: Random) -> Said:
        matching = [index for index, text in enumerate(question.options) if (text == question.answer) == right]
        index = rng.choice(matching)
        said = spelling.format(label=labels[index], lower=labels[index].lower(), text=question.options[index])
        return Said((said,), _stats(right=right, unmapped=False))

    return way


def names_nothing(said: str) -> Way:
    """Say something that is none of the options."""
    return lambda _question, _rng: Said((said,), _stats(right=False, unmapped=True))


def _stats(*, right: bool, unmapped: bool) -> dict[str, Fraction]:
    value = Fraction(int(right))
    return {"exact_match": value, "quasi_exact_match": value, "unmapped": Fraction(int(unmapped))}


def put_options(rng: Random, text: str, answer: str, wrong: Sequence[str]) -> Question:
    """Return a question with the answer and three different wrong options, shuffled."""
    others = list(dict.fromkeys(option for option in wrong if option != answer))
    options = [answer, *rng.sample(others, 3)]
    rng.shuffle(options)
    return Question(text, answer, tuple(options))
