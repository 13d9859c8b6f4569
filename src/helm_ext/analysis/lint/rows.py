"""What lint sees of a row, and what many rows share.

Texts are compared by a key that equal questions have in common, by sentences, and by words. Case, white space and the
punctuation around words make no other question. Numbers, signs between them and brackets do.
"""

from __future__ import annotations

import re
import unicodedata
from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain, islice, pairwise
from typing import TYPE_CHECKING

from helm_ext.errors import Location, Path, format_path, show
from helm_ext.evalset import EvalSet, row_extra

if TYPE_CHECKING:
    from helm.benchmark.scenarios.scenario import Instance

_CORRECT = "correct"
_TRAIN = "train"
KEPT_BYTES = 100_000_000
"""Rows of up to about this many bytes are kept in memory, which saves a fifth of lint's time."""
_SAMPLED = 1_000
"""Rows after which a dataset is taken for large where all like these would be twice as large as what is kept."""
_ROW_BYTES = 1_500
"""Of a row without its texts."""
BLOCK = 4_000
"""Pairs whose rows are in memory together."""
_LONG_ANSWER = 8
"""An answer of this many words or more is a text of its own, which no second author writes in the same words."""
_COMMON = 0.005
"""Of the rows. A gold that more rows have (yes, no, a class) says little about which question it answers."""
_FEW, _FEW_FREE = 3, 5
"""A gold that at most this many rows have is rare, in the smallest dataset too; the second as an answer in a prompt."""
_CONTEXT = 3
"""A sentence that this many rows share is a passage, an example or an instruction, not a part of the question."""
COUNTED = 20_000
"""Up to this many hashes are counted without numpy, whose import takes longer."""

_LOOSE = re.compile(
    r"""[.?!,;:…]+(?=[\s"'”’»)\]]|$)"""  # where a sentence or a part of one ends, not in 3.5, 10:30 or a.b
    r"""|["“”„«»¿¡。？！，、；：「」『』]"""
    r"""|(?<!\w)['‘’]|['‘’](?!\w)"""
)
_SENTENCE_ENDS = (". ", "? ", "! ", "。", "？", "！")
_COLONS = (": ", "：")
_NUMBERED = re.compile(
    r"\s*(?:(?:question|problem|exercise|item|example|q|no)\b\s*[.#]?\s*)?[(\[]?#?\d{1,6}\s*[.):\]]\s+(?=\D)",
    re.IGNORECASE,
)
"""What numbers a question: `12. `, `Q12: `, `Question 12) `."""

_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
"""Scripts without spaces between words: each character counts as a word."""
_SIGNS = "+*/^=<>×÷±√≤≥≠−"
_ASCII_WORD = re.compile(rf"[a-z]+(?:'[a-z]+)*(?![\d_])|\w+(?:[.,:/]\d+)*|(?<![a-z])-|[{_SIGNS}]")
_WORD = re.compile(
    rf"[{_UNSPACED}]"
    rf"|(?:(?![{_UNSPACED}])\w)+(?:['’.,:/](?<![.,:/](?=\D))(?:(?![{_UNSPACED}])\w)+)*"
    rf"|(?<!\w)-|[{_SIGNS}]"
)
_FIGURE = re.compile(rf"\w*\d\w*(?:[.,:/]\d+)*|(?<![^\W\d_])-(?=[\s\d(])|[{_SIGNS}]")


def fold(text: str) -> str:
    """Return the text with letters of one case and one spelling of accents."""
    return text.lower() if text.isascii() else unicodedata.normalize("NFC", text).casefold()


def make_key(text: str) -> str:
    """Return what two texts share that ask the same, but for case, white space and punctuation around words."""
    return " ".join(_LOOSE.sub(" ", fold(text)).split())


def split_sentences(text: str, ends: tuple[str, ...] = _SENTENCE_ENDS) -> list[str]:
    """Return the sentences and lines of a text, without what numbers the question."""
    numbered = _NUMBERED.match(text)
    if numbered:
        text = text[numbered.end() :]
    for end in ends:
        if end in text:
            text = text.replace(end, f"{end}\n")
    return [part for part in map(str.strip, text.split("\n")) if part]


def split_words(text: str) -> list[str]:
    """Return the words, numbers and arithmetic signs of a text, in order; punctuation is left out."""
    folded = fold(text)
    return (_ASCII_WORD if folded.isascii() else _WORD).findall(folded)


@lru_cache(maxsize=4096)
def words_of(part: str) -> tuple[str, ...]:
    """Return the words of a sentence; those of the last ones are kept, which are asked for again and again."""
    return tuple(split_words(part))


def find_figures(text: str) -> tuple[str, ...]:
    """Return the numbers (all words with a digit) and arithmetic signs, in order: questions that differ in them differ.

    "What is 12 + 5?" and "What is 12 - 5?" are not nearly the same question.
    """
    return tuple(_FIGURE.findall(fold(text)))


def contradict(golds: Collection[object], others: Collection[object], *, is_choice: bool) -> bool:
    """Whether two sets of golds say different things about one question.

    Options are right or wrong, all of them. Of answers in free words each is one of many that are right, so that one
    in common is enough.
    """
    if not golds or not others:
        return False
    return golds != others if is_choice else set(golds).isdisjoint(others)


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
    """The sentences of what is asked, those with a colon in two: "Question: Who was he?" ends in a question."""

    @property
    def is_train(self) -> bool:
        """Whether it is shown as a demonstration, or trained on, and not evaluated."""
        return self.split == _TRAIN

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

    def sentences(self) -> list[tuple[str, ...]]:
        """Return the words of each sentence; options are sentences."""
        return [words_of(part) for part in (*self.parts, *sorted(self.options))]

    def without_texts(self) -> Row:
        """Return what is kept of a row that may be reported: all but what is asked."""
        return replace(self, texts=(), parts=())

    def has_long_golds(self) -> bool:
        """Whether an answer is a text of many words."""
        return any(len(gold) > 2 * _LONG_ANSWER and len(split_words(gold)) >= _LONG_ANSWER for gold in self.golds)

    def gold_hash(self) -> int:
        """Return a number for what is right; 0 for a text of its own, which is compared word by word."""
        return 0 if self.has_long_golds() else hash(self.gold_keys)

    def contradicts(self, other: Row) -> bool:
        """Whether the two say different things about one question."""
        return contradict(self.gold_keys, other.gold_keys, is_choice=bool(self.options))


class Rows:
    """The rows of a dataset, in order, for whoever goes through them, as often as needed.

    Those of a small dataset are kept. Else each turn makes them again of the instances, and what is kept of a row is
    what each rule keeps. Left out are rows that are no questions of their own: perturbed copies, inputs without text
    (pictures, sounds), and the second instance of a row that is a demonstration in live runs and evaluated in recorded
    ones.
    """

    def __init__(self, evalset: EvalSet, path: str, demonstrations: EvalSet | None) -> None:
        """`path`: the file that places name where an EvalSet names none. `demonstrations`: as `lint` has them."""
        self._path = path
        self._sources = [evalset] if demonstrations is None else [demonstrations, evalset]
        self._starts = [0] if demonstrations is None else [0, len(demonstrations.instances)]
        self.seen = self.turns = 0
        """Rows that were gone through, in all turns, and how many these are."""
        self._kept: dict[int, Row] | None = None
        self._is_large = False

    def __len__(self) -> int:
        """How many there are, those included that are no questions of their own."""
        return sum(len(source.instances) for source in self._sources)

    def __iter__(self) -> Iterator[Row]:
        self.turns += 1
        kept: dict[int, Row] = {}
        size = 0
        for row in self._make() if self._kept is None else self._kept.values():
            self.seen += 1
            if not self._is_large and self._kept is None:
                kept[row.number] = row
                size += _ROW_BYTES + sum(map(len, row.texts)) + sum(map(len, row.parts))
                if size > KEPT_BYTES or (len(kept) == _SAMPLED and size * len(self) > 2 * KEPT_BYTES * _SAMPLED):
                    self._is_large, kept = True, {}
            yield row
        if not self._is_large and self._kept is None:
            self._kept = kept

    def take(self, numbers: Iterable[int]) -> dict[int, Row]:
        """Return the rows of these numbers, by number."""
        wanted = sorted(set(numbers))
        if self._kept is not None:
            return {number: self._kept[number] for number in wanted}
        found = {}
        for source, start in zip(self._sources, self._starts, strict=True):
            places = [number - start for number in wanted if 0 <= number - start < len(source.instances)]
            read = getattr(source.instances, "read", None)  # stored rows, some at a time; else a list
            instances = read(places) if read else [source.instances[place] for place in places]
            for place, instance in zip(places, instances, strict=True):
                found[start + place] = self._to_row(source, start, place, instance, _texts(instance))
        return found

    def take_pairs(self, pairs: Iterable[tuple[int, int]]) -> Iterator[tuple[Row, Row]]:
        """Yield the rows of pairs of numbers, read some at a time."""
        waiting = iter(pairs)
        while block := list(islice(waiting, BLOCK)):
            found = self.take(chain.from_iterable(block))
            yield from ((found[one], found[two]) for one, two in block)

    def _make(self) -> Iterator[Row]:
        for source, start in zip(self._sources, self._starts, strict=True):
            positions = () if source.places is None else source.places.positions
            doubled = any(two <= one for one, two in pairwise(positions))
            seen: set[int] = set()
            for place, instance in enumerate(source.instances):
                texts = _texts(instance)
                if instance.perturbation is not None or not (any(map(str.strip, texts)) or _is_empty(instance)):
                    continue
                if doubled:
                    if positions[place] in seen:
                        continue
                    seen.add(positions[place])
                yield self._to_row(source, start, place, instance, texts)

    def _to_row(self, source: EvalSet, start: int, place: int, instance: Instance, texts: tuple[str, ...]) -> Row:
        places = source.places
        where: Location | Path = Location(self._path)
        if places is not None:
            position = places.positions[place]
            where = (places.listed_in, position, "instance") if places.listed_in else Location(places.path, position)
        given = [reference.output.text for reference in instance.references]
        right = tuple(at for at, reference in enumerate(instance.references) if _CORRECT in reference.tags)
        is_choice = len(right) < len(given) or "labels" in row_extra(instance)
        golds = tuple(given[at] for at in right)
        return Row(
            start + place,
            str(instance.id),
            where,
            _TRAIN if source is not self._sources[-1] else instance.split or "test",
            texts,
            tuple(given) if is_choice else (),
            right if is_choice else (),
            golds,
            frozenset([make_key(gold) or gold.strip() for gold in golds]),
            tuple([part for text in texts for part in split_sentences(text, (*_SENTENCE_ENDS, *_COLONS))]),
        )


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


class Shared:
    """What comes again in the rows of a dataset: hashes, eight bytes each, of questions, golds and sentences.

    It sees all rows once, and is asked when it has seen them all.
    """

    def __init__(self) -> None:
        self.questions = array("q")
        """Of each row."""
        self.first = 0
        """Rows that ask what none before them asks."""
        self.free = 0
        """Rows of free text, with golds."""
        self._seen: set[int] = set()
        self._golds, self._free_golds, self._sentences = array("q"), array("q"), array("q")

    def see(self, row: Row) -> None:
        """Look at a row."""
        key = hash(row.key())
        self.questions.append(key)
        if row.golds and not row.options:
            self.free += 1
            self._free_golds.extend(map(hash, row.gold_keys))
        if key not in self._seen:
            self._seen.add(key)
            self._golds.append(row.gold_hash())
            self._sentences.extend(set(map(hash, row.parts)))

    def settle(self) -> None:
        """Count, and forget the rows."""
        self.first, self._seen = len(self._seen), set()
        self.repeated = find_frequent(self.questions, 2)
        self.context = find_frequent(self._sentences, _CONTEXT)
        """Hashes of sentences that are no row's own."""
        self.common_golds = find_frequent(self._golds, int(max(_FEW, _COMMON * self.first)) + 1)
        """Of rows that ask what none before them asks: hashes of all golds of a row."""
        self.common_free = find_frequent(self._free_golds, int(max(_FEW_FREE, _COMMON * self.free)) + 1)
        """Hashes of single golds of rows of free text."""
        self._golds = self._free_golds = self._sentences = array("q")


def find_frequent(hashes: array[int], least: int) -> frozenset[int]:
    """Return those that stand there `least` times or more."""
    if len(hashes) <= COUNTED:
        return frozenset(value for value, number in Counter(hashes).items() if number >= least)
    import numpy as np

    values = np.sort(np.frombuffer(hashes, np.int64))
    last = values[least - 1 :]
    return frozenset(np.unique(last[last == values[: len(last)]]).tolist())
