"""What lint sees of a row: the question, its options, what is right, and where the row stands."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, islice
from typing import TYPE_CHECKING

from helm_ext.analysis.lint.texts import make_key, split_parts, split_words
from helm_ext.errors import Location, Path, format_path, show
from helm_ext.evalset import EvalSet, Places, row_extra

if TYPE_CHECKING:
    from helm.benchmark.scenarios.scenario import Instance

    from helm_ext.evalset.rows import StoredRows

CORRECT = "correct"
TRAIN = "train"
KEPT_BYTES = 100_000_000
"""Rows of up to about this many bytes are kept in memory, which saves a fifth of lint's time."""
SAMPLED = 1_000
"""Rows after which a dataset is taken for large where all like these would be twice as large as what is kept."""
ROW_BYTES = 1_500
"""Of a row without its texts."""
BLOCK = 4_000
"""Pairs whose rows are in memory together."""
LONG_ANSWER = 8
"""An answer of this many words or more is a text of its own, which no second author writes in the same words."""


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
    def is_empty(self) -> bool:
        """Whether nothing is asked."""
        return not any(text.strip() for text in self.texts)

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

    def without_texts(self) -> Row:
        """Return what is kept of a row that may be reported: all but what is asked."""
        return replace(self, texts=(), parts=())

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


class Rows:
    """The rows of a dataset, in order, for whoever goes through them, as often as needed.

    Those of a small dataset are kept. Else each turn reads the file, or makes them of the instances: what is kept of a
    row is what each rule keeps.
    """

    def __init__(self, evalset: EvalSet, path: str, *, demonstrations: EvalSet | None = None) -> None:
        """`path`: the file that places name where an EvalSet names none. `demonstrations`: as `lint` has them."""
        before = [] if demonstrations is None else [_Source(demonstrations, path, TRAIN, 0)]
        start = sum(len(source) for source in before)
        self._sources = [*before, _Source(evalset, path, None, start)]
        self.seen = self.turns = 0
        """Rows that were gone through, in all turns, and how many these are."""
        self._kept: dict[int, Row] | None = None
        self._is_large = False

    def __len__(self) -> int:
        """How many there are, those included that are no questions of their own."""
        return sum(len(source) for source in self._sources)

    def __iter__(self) -> Iterator[Row]:
        self.turns += 1
        if self._kept is not None:
            for row in self._kept.values():
                self.seen += 1
                yield row
            return
        kept: dict[int, Row] = {}
        size, total = 0, sum(map(len, self._sources))
        for row in chain.from_iterable(self._sources):
            self.seen += 1
            if not self._is_large:
                kept[row.number] = row
                size += ROW_BYTES + sum(map(len, row.texts)) + sum(map(len, row.parts))
                if size > KEPT_BYTES or (len(kept) == SAMPLED and size * total > 2 * KEPT_BYTES * SAMPLED):
                    self._is_large = True
                    kept = {}
            yield row
        if not self._is_large:
            self._kept = kept

    def take(self, numbers: Iterable[int]) -> dict[int, Row]:
        """Return the rows of these numbers, by number."""
        wanted = sorted(set(numbers))
        if self._kept is not None:
            return {number: self._kept[number] for number in wanted}
        return {row.number: row for source in self._sources for row in source.take(wanted)}

    def take_pairs(self, pairs: Iterable[tuple[int, int]]) -> Iterator[tuple[Row, Row]]:
        """Yield the rows of pairs of numbers, read some at a time."""
        waiting = iter(pairs)
        while block := list(islice(waiting, BLOCK)):
            found = self.take(chain.from_iterable(block))
            yield from ((found[one], found[two]) for one, two in block)


def pick(rows: Iterable[Row], numbers: Iterable[int]) -> Iterator[Row]:
    """Yield those of the rows that have these numbers; both in ascending order."""
    wanted = iter(numbers)
    number = next(wanted, None)
    for row in rows:
        if row.number == number:
            yield row
            number = next(wanted, None)


class _Source:
    """The rows of an EvalSet.

    Left out are rows that are no questions of their own: perturbed copies, inputs without text (pictures, sounds), and
    the second instance of a row that is a demonstration in live runs and evaluated in recorded ones.
    """

    def __init__(self, evalset: EvalSet, path: str, split: str | None, start: int) -> None:
        """`split`: what all rows are of, where the EvalSet does not say it. `start`: the number of the first row."""
        self._instances, self._places = evalset.instances, evalset.places
        self._path, self._split, self._start = path, split, start

    def __len__(self) -> int:
        return len(self._instances)

    def __iter__(self) -> Iterator[Row]:
        seen: set[int] = set()
        for number, instance in enumerate(self._instances):
            texts = _texts(instance)
            if instance.perturbation is not None or not (any(map(str.strip, texts)) or _is_empty(instance)):
                continue
            if self._places is not None and self._is_split_in_two:
                if self._places.positions[number] in seen:
                    continue
                seen.add(self._places.positions[number])
            yield self._to_row(instance, number, texts)

    @cached_property
    def _is_split_in_two(self) -> bool:
        """Whether one position is that of several instances."""
        assert self._places is not None
        last = -1
        for position in self._places.positions:
            if position <= last:
                return True
            last = position
        return False

    def take(self, numbers: Iterable[int]) -> Iterator[Row]:
        """Yield the rows of these numbers, those of other sources aside."""
        places = [number - self._start for number in numbers if 0 <= number - self._start < len(self)]
        some, unread = self._instances, _as_unread(self._instances)
        found = (some[place] for place in places) if unread is None else unread.read(places)
        for place, instance in zip(places, found, strict=True):
            yield self._to_row(instance, place, _texts(instance))

    def _to_row(self, instance: Instance, number: int, texts: tuple[str, ...]) -> Row:
        place = Location(self._path) if self._places is None else _place(self._places, number)
        return _to_row(instance, self._start + number, place, self._split or instance.split or "test", texts)


def _as_unread(instances: Sequence[Instance]) -> StoredRows | None:
    """Return instances that are read when they are looked at; None for those in memory, which need no numpy."""
    if isinstance(instances, list | tuple):
        return None
    from helm_ext.evalset.rows import StoredRows

    return instances if isinstance(instances, StoredRows) else None


def _place(places: Places, number: int) -> Location | Path:
    position = places.positions[number]
    return (places.listed_in, position, "instance") if places.listed_in else Location(places.path, position)


def _texts(instance: Instance) -> tuple[str, ...]:
    messages = instance.input.messages
    if messages:
        return tuple(message["content"] for message in messages if isinstance(message["content"], str))
    return (instance.input.text,)


def _is_empty(instance: Instance) -> bool:
    """Whether nothing is asked, in whatever form."""
    return not (
        instance.input.multimedia_content or any(message["content"] for message in instance.input.messages or ())
    )


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
