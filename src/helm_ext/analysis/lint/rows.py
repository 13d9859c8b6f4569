"""What lint sees of a row: the question, its options, what is right, and where the row stands."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from helm_ext.analysis.lint.texts import make_key, split_parts, split_words
from helm_ext.errors import Location, Path, format_path, show
from helm_ext.evalset import EvalSet, Places, row_extra

if TYPE_CHECKING:
    from helm.benchmark.scenarios.scenario import Instance

__all__ = ["Row", "to_rows"]

CORRECT = "correct"
TRAIN = "train"
LONG_ANSWER = 8
"""From so many words on an answer is a text of its own, which no second author writes in the same words."""


@dataclass(slots=True, eq=False)
class Row:
    """One question."""

    number: int
    """Among all rows that are looked at."""
    id: str
    place: Location | Path
    """A path is one in a document, whose line is looked up where it is needed."""
    split: str
    texts: tuple[str, ...]
    """What is asked: one text, or the messages of a conversation."""
    options: tuple[str, ...]
    """Of multiple choice, in order; () for free text."""
    right: tuple[int, ...]
    """Positions of the right options."""
    golds: tuple[str, ...]
    """The texts of what is right."""
    gold_keys: frozenset[str]
    """The same, as they are compared."""
    parts: tuple[str, ...]
    """The sentences of what is asked."""

    @property
    def is_train(self) -> bool:
        """Whether it is shown as a demonstration, or trained on, and not evaluated."""
        return self.split == TRAIN

    @property
    def path(self) -> Path:
        """Where it stands in a document; () in a file of lines."""
        return self.place if isinstance(self.place, tuple) else ()

    def title(self, seen_from: Row) -> str:
        """Return how a message about another row names this one."""
        named = f"id {show(self.id)}"
        if isinstance(self.place, tuple):
            return f"{format_path(self.place)} ({named})"
        if self.place.line is None:
            return f"the row with {named}"
        other = seen_from.place
        is_here = isinstance(other, Location) and other.path == self.place.path
        where = f"line {self.place.line}" if is_here else f"{self.place.path}:{self.place.line}"
        return f"{where} ({named})"

    def key(self) -> tuple[object, ...]:
        """Return what rows share that ask the same: the question, and the same options in whatever order."""
        return (*map(make_key, self.texts), self.option_keys())

    def option_keys(self) -> frozenset[str]:
        """Return the options in no order, as they are compared."""
        return frozenset([make_key(option) or option for option in self.options])

    def has_long_golds(self) -> bool:
        """Whether an answer is a text of many words."""
        return any(len(gold) > 2 * LONG_ANSWER and len(split_words(gold)) >= LONG_ANSWER for gold in self.golds)

    def contradicts(self, other: Row) -> bool:
        """Whether the two say different things about one question.

        Options are right or wrong, all of them. Of answers in free words each is one of many that are right, so that
        one in common is enough.
        """
        if not self.golds or not other.golds:
            return False
        if self.options:
            return self.gold_keys != other.gold_keys
        return self.gold_keys.isdisjoint(other.gold_keys)


def to_rows(evalset: EvalSet, path: str, *, split: str | None = None, start: int = 0) -> Iterator[Row]:
    """Yield the rows of a dataset; `split` is what all of them are of, where the EvalSet does not say it.

    `path` is the file that places name where the EvalSet names none. Left out are rows that are no questions of their
    own: perturbed copies, inputs without text (pictures, sounds), and the second instance of a row that is a
    demonstration in live runs and evaluated in recorded ones. `start` is the number of the first row.
    """
    places = evalset.places
    seen: set[int] = set()
    for number, instance in enumerate(evalset.instances):
        texts = _texts(instance)
        if instance.perturbation is not None or not any(text.strip() for text in texts):
            continue
        if places is not None:
            if places.positions[number] in seen:
                continue
            seen.add(places.positions[number])
        place = Location(path) if places is None else _place(places, number)
        yield _to_row(instance, start + number, place, split or instance.split or "test", texts)


def _place(places: Places, number: int) -> Location | Path:
    position = places.positions[number]
    return (places.listed_in, position, "instance") if places.listed_in else Location(places.path, position)


def _texts(instance: Instance) -> tuple[str, ...]:
    messages = instance.input.messages
    if messages:
        return tuple(message["content"] for message in messages if isinstance(message["content"], str))
    return (instance.input.text,)


def _to_row(instance: Instance, number: int, place: Location | Path, split: str, texts: tuple[str, ...]) -> Row:
    given = [reference.output.text for reference in instance.references]
    right = tuple(at for at, reference in enumerate(instance.references) if CORRECT in reference.tags)
    is_choice = len(right) < len(given) or "labels" in row_extra(instance)
    golds = tuple(given[at] for at in right)
    return Row(
        number,
        str(instance.id),
        place,
        split,
        texts,
        tuple(given) if is_choice else (),
        right if is_choice else (),
        golds,
        frozenset([make_key(gold) or gold.strip() for gold in golds]),
        tuple([part for text in texts for part in split_parts(text)]),
    )
