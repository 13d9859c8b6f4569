"""What lint sees of a row, and what many rows share.

Texts are compared by a key that equal questions have in common, by sentences, and by words. Case, white space and the
punctuation around words make no other question. Numbers, signs between them and brackets do.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, TypeVar

from helm_ext.errors import Location, Path, format_path, show
from helm_ext.evalset import EvalSet, row_extra

if TYPE_CHECKING:
    from helm.benchmark.scenarios.scenario import Instance

T = TypeVar("T")

_CORRECT = "correct"
_TRAIN = "train"
_LONG_ANSWER = 8
"""An answer of this many words or more is a text of its own, which no second author writes in the same words."""
_COMMON = 0.005
"""Of the rows. A gold that more rows have (yes, no, a class) says little about which question it answers."""
_FEW, _FEW_FREE = 3, 5
"""A gold that at most this many rows have is rare, in the smallest dataset too; the second as an answer in a prompt."""
_CONTEXT = 3
"""A sentence that this many rows share is a passage, an example or an instruction, not a part of the question."""

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


@dataclass(slots=True, eq=False)
class Row:
    """One question."""

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

    def has_long_golds(self) -> bool:
        """Whether an answer is a text of many words."""
        return any(len(gold) > 2 * _LONG_ANSWER and len(split_words(gold)) >= _LONG_ANSWER for gold in self.golds)

    def gold_hash(self) -> int:
        """Return a number for what is right; 0 for a text of its own, which is compared word by word."""
        return 0 if self.has_long_golds() else hash(self.gold_keys)

    def contradicts(self, other: Row) -> bool:
        """Whether the two say different things about one question.

        Options are right or wrong, all of them. Of answers in free words each is one of many that are right, so that
        one in common is enough.
        """
        if not self.gold_keys or not other.gold_keys:
            return False
        return self.gold_keys != other.gold_keys if self.options else self.gold_keys.isdisjoint(other.gold_keys)


def read_rows(evalset: EvalSet, path: str, demonstrations: EvalSet | None) -> list[Row]:
    """Return the rows of a dataset, in order.

    Left out are rows that are no questions of their own: perturbed copies, inputs without text (pictures, sounds), and
    the second instance of a row that is a demonstration in live runs and evaluated in recorded ones. `path`: the file
    that places name where an EvalSet names none. `demonstrations`: as `lint` has them.
    """
    rows = []
    for source in filter(None, (demonstrations, evalset)):
        places = source.places
        seen: set[int] = set()
        for number, instance in enumerate(source.instances):
            texts = _texts(instance)
            if instance.perturbation is not None or not (any(map(str.strip, texts)) or _is_empty(instance)):
                continue
            where: Location | Path = Location(path)
            if places is not None:
                position = places.positions[number]
                if position in seen:
                    continue
                seen.add(position)
                where = (
                    (places.listed_in, position, "instance") if places.listed_in else Location(places.path, position)
                )
            rows.append(_to_row(instance, texts, where, is_train=source is demonstrations))
    return rows


def _to_row(instance: Instance, texts: tuple[str, ...], where: Location | Path, *, is_train: bool) -> Row:
    given = [reference.output.text for reference in instance.references]
    right = tuple(at for at, reference in enumerate(instance.references) if _CORRECT in reference.tags)
    is_choice = len(right) < len(given) or "labels" in row_extra(instance)
    golds = tuple(given[at] for at in right)
    return Row(
        id=str(instance.id),
        place=where,
        split=_TRAIN if is_train else instance.split or "test",
        texts=texts,
        options=tuple(given) if is_choice else (),
        right=right if is_choice else (),
        golds=golds,
        gold_keys=frozenset([make_key(gold) or gold.strip() for gold in golds]),
        parts=tuple([part for text in texts for part in split_sentences(text, (*_SENTENCE_ENDS, *_COLONS))]),
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
    """What comes again in the rows of a dataset: questions, golds and sentences."""

    def __init__(self, rows: Sequence[Row]) -> None:
        by_question: dict[int, list[Row]] = {}
        for row in rows:
            by_question.setdefault(hash(row.key()), []).append(row)
        self.groups = {group[0]: group for group in by_question.values()}
        """Rows that ask the same, by the first of them."""
        free = [row for row in rows if row.golds and not row.options]
        self.free = len(free)
        """Rows of free text, with golds."""
        self.context = _find_frequent((part for row in self.groups for part in {*row.parts}), _CONTEXT)
        """Sentences that are no row's own."""
        most, most_free = (int(max(few, _COMMON * len(of))) + 1 for few, of in ((_FEW, self.groups), (_FEW_FREE, free)))
        self.common_golds = _find_frequent((row.gold_hash() for row in self.groups), most)
        """Of rows that ask what none before them asks: hashes of all golds of a row."""
        self.common_free = _find_frequent((gold for row in free for gold in row.gold_keys), most_free)
        """Single golds of rows of free text."""


def _find_frequent(values: Iterable[T], least: int) -> frozenset[T]:
    """Return those that stand there `least` times or more."""
    return frozenset(value for value, number in Counter(values).items() if number >= least)
