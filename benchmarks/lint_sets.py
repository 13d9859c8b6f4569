"""Invented datasets of eleven kinds, clean ones and ones with planted faults, for counting what lint finds and misses.

Everything follows from a seed. A clean set holds no two rows that a reader would call one question; what makes it hard
is said at its kind. A planted row is a changed copy of a row, or a row whose prompt was given its answer.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

__all__ = ["FAULTS", "KINDS", "Fault", "Question", "make_clean", "plant", "write"]

_ONSETS = [
    "b",
    "br",
    "c",
    "cl",
    "d",
    "dr",
    "f",
    "g",
    "gr",
    "h",
    "k",
    "l",
    "m",
    "n",
    "p",
    "pr",
    "r",
    "s",
    "st",
    "t",
    "v",
    "z",
]
_VOWELS = ["a", "e", "i", "o", "u", "ai", "ea", "ou"]
_ENDS = ["", "n", "r", "l", "s", "t", "m", "nd", "rk", "st"]
_NAMES = [
    "Anna",
    "Ben",
    "Clara",
    "David",
    "Ella",
    "Finn",
    "Greta",
    "Hugo",
    "Ida",
    "Jonas",
    "Karla",
    "Leo",
    "Mia",
    "Nils",
]
_THINGS = ["apples", "books", "coins", "pencils", "stamps", "marbles", "cards", "shells", "tickets", "cups"]
_COMMON = (  # noqa: SIM905 - words read better than a list of strings
    "the of and a to in is was that for it with as his on be at by had not are but from or have an they which one you "
    "were all her she there would their we him been has when who will no more if out so said what up its about into "
    "than them can only other new some could time these two may then do first any my now such like our over man me "
    "even most made after also did many before must through years where much your way well down should because each"
).split()


@dataclass(frozen=True)
class Question:
    """One row. `messages` are earlier turns of a conversation that `text` ends."""

    text: str
    gold: str
    options: tuple[str, ...] = ()
    messages: tuple[tuple[str, str], ...] = ()
    split: str = "test"


@dataclass
class Fault:
    """A row that was planted: its number, that of the row it was made of (its own if it was changed), and the codes."""

    kind: str
    number: int
    origin: int
    codes: frozenset[str] = field(default_factory=frozenset)


class _Maker:
    """Words and sentences of one dataset."""

    def __init__(self, seed: str) -> None:
        self.random = random.Random(seed)
        self._seen: set[str] = set()
        self.vocabulary = [self._syllables(self.random.randint(1, 3)) for _ in range(6_000)]

    def _syllables(self, number: int) -> str:
        pick = self.random.choice
        return "".join(pick(_ONSETS) + pick(_VOWELS) + pick(_ENDS) for _ in range(number))

    def name(self) -> str:
        """A name that no other thing has."""
        while True:
            name = self._syllables(self.random.choice((2, 3, 3))).capitalize()
            if name not in self._seen:
                self._seen.add(name)
                return name

    def word(self) -> str:
        """A word: half are common ones, the others as rare as in texts (Zipf)."""
        if self.random.random() < 0.5:
            return self.random.choice(_COMMON)
        return self.vocabulary[min(int(self.random.paretovariate(0.6)) - 1, len(self.vocabulary) - 1)]

    def sentence(self, low: int = 6, high: int = 16, end: str = ".") -> str:
        return " ".join(self.word() for _ in range(self.random.randint(low, high))).capitalize() + end


def _arithmetic(make: _Maker) -> Iterator[Question]:
    """Differ in a digit or a sign; many have one answer."""
    for _ in iter(int, 1):
        a, b, sign = make.random.randint(1, 999), make.random.randint(1, 999), make.random.choice("+-*")
        yield Question(f"What is {a} {sign} {b}?", str({"+": a + b, "-": a - b, "*": a * b}[sign]))


def _capitals(make: _Maker) -> Iterator[Question]:
    """One name differs, or one word; half of the capitals are the largest city, 3 % have the country's name."""
    for _ in iter(int, 1):
        country, capital = make.name(), make.name()
        largest = capital if make.random.random() < 0.5 else make.name()
        seat = country if make.random.random() < 0.03 else capital
        for text, gold in (
            (f"What is the capital of {country}?", seat),
            (f"What is the largest city of {country}?", largest),
            (f"What is the currency of {country}?", make.name().lower()),
            (f"Who is the president of {country}?", f"{make.random.choice(_NAMES)} {make.name()}"),
        ):
            yield Question(text, gold)


def _authors(make: _Maker) -> Iterator[Question]:
    """The title differs; one author has up to six."""
    for _ in iter(int, 1):
        author = f"{make.random.choice(_NAMES)} {make.name()}"
        for _ in range(make.random.choice((1, 1, 2, 3, 6))):
            yield Question(f"Who is the author of the novel {make.name()}?", author)


def _word_problems(make: _Maker) -> Iterator[Question]:
    """A few stories with other names, things and numbers; in 2,000 rows some have the same numbers."""
    for _ in iter(int, 1):
        one, two = make.random.sample(_NAMES, 2)
        a, b, c, thing = (
            make.random.randint(20, 99),
            make.random.randint(2, 9),
            make.random.randint(2, 9),
            make.random.choice(_THINGS),
        )
        yield make.random.choice(
            (
                Question(
                    f"{one} has {a} {thing}. {two} gives {one} {b} more every day. "
                    f"How many {thing} does {one} have after {c} days?",
                    str(a + b * c),
                ),
                Question(
                    f"{one} buys {a} {thing} and loses {b} of them. Then {two} brings {c} {thing}. "
                    f"How many {thing} are there now?",
                    str(a - b + c),
                ),
                Question(
                    f"There are {a} {thing} in a box. {one} takes {b} and {two} takes {c}. "
                    f"How many {thing} are left in the box?",
                    str(a - b - c),
                ),
            )
        )


def _reading(make: _Maker) -> Iterator[Question]:
    """Five questions about each passage, whose answers stand in it; two of them may have one answer."""
    for _ in iter(int, 1):
        facts = [
            (make.name(), make.random.choice(_NAMES) + " " + make.name(), str(make.random.randint(1500, 2020)))
            for _ in range(3)
        ]
        sentences = [make.sentence() for _ in range(5)]
        sentences += [f"The {thing} bridge was designed by {who} in {year}." for thing, who, year in facts]
        make.random.shuffle(sentences)
        passage = " ".join(sentences)
        (a, who, year), (b, other, _), (c, third, last) = facts
        for question, gold in (
            (f"Who designed the {a} bridge?", who),
            (f"In which year was the {a} bridge designed?", year),
            (f"Which bridge did {other} design?", b),
            (f"Name the person behind the bridge of {c}.", third),
            (f"The bridge that {third} designed dates from which year?", last),
        ):
            yield Question(f"{passage}\n\nQuestion: {question}\nAnswer:", gold)


def _trivia(make: _Maker) -> Iterator[Question]:
    """Questions of all shapes and lengths."""
    starts = [
        "What",
        "Which",
        "Who",
        "When did",
        "Where is",
        "Why does",
        "How do",
        "Name the",
        "In which",
        "Tell me what",
    ]
    for _ in iter(int, 1):
        yield Question(f"{make.random.choice(starts)} {make.sentence(5, 18, '?').lower()}", make.name())


def _choice(make: _Maker) -> Iterator[Question]:
    """Four options; a third of the questions are of one template, and their options differ."""
    for _ in iter(int, 1):
        options = [make.name() for _ in range(4)]
        text = (
            f"Which of the following is a {make.random.choice(make.vocabulary[:300])}?"
            if make.random.random() < 0.33
            else make.sentence(6, 20, "?")
        )
        yield Question(text, make.random.choice(options), tuple(options))


def _yes_no(make: _Maker) -> Iterator[Question]:
    """Two answers to all; a quarter of one template."""
    for _ in iter(int, 1):
        if make.random.random() < 0.25:
            text = (
                f"Is {make.name()} in {make.random.choice(['Europe', 'Asia', 'Africa', 'America'])}? Answer yes or no."
            )
        else:
            text = f"Is {make.sentence(6, 14, '?').lower()} Answer yes or no."
        yield Question(text, make.random.choice(("yes", "no")))


def _classes(make: _Maker) -> Iterator[Question]:
    """Reviews; the instruction names the classes."""
    for _ in iter(int, 1):
        review = " ".join(make.sentence() for _ in range(make.random.randint(1, 4)))
        yield Question(
            f"Is this review positive, negative or neutral?\n{review}\nAnswer:",
            make.random.choice(("positive", "negative", "neutral")),
        )


def _chat(make: _Maker) -> Iterator[Question]:
    """Conversations, also one and its continuation; half of the answers are long texts."""
    system = ("system", "You are a helpful assistant. Answer briefly and politely.")
    for _ in iter(int, 1):
        first, answer = make.sentence(6, 16, "?"), " ".join(make.sentence() for _ in range(2))
        yield Question(first, answer, messages=(system,))
        if make.random.random() < 0.4:
            again = Question(
                make.sentence(6, 12, "?"), make.name(), messages=(system, ("user", first), ("assistant", answer))
            )
            yield again


def _shots(make: _Maker) -> Iterator[Question]:
    """Whole prompts: the same three worked examples before each question."""
    shown = "\n\n".join(f"Question: {make.sentence(6, 12, '?')}\nAnswer: {make.name()}" for _ in range(3))
    for _ in iter(int, 1):
        yield Question(f"{shown}\n\nQuestion: {make.sentence(6, 14, '?')}\nAnswer:", make.name())


KINDS: dict[str, Callable[[_Maker], Iterator[Question]]] = {
    "arithmetic": _arithmetic,
    "capitals": _capitals,
    "authors": _authors,
    "word problems": _word_problems,
    "reading": _reading,
    "trivia": _trivia,
    "multiple choice": _choice,
    "yes or no": _yes_no,
    "classes": _classes,
    "chat": _chat,
    "worked examples": _shots,
}


def make_clean(kind: str, rows: int, seed: int = 0) -> list[Question]:
    """Return a clean set: no two rows ask the same. A tenth are train rows."""
    make = _Maker(f"{kind}/{seed}")
    made: dict[object, Question] = {}
    for question in KINDS[kind](make):
        made.setdefault((question.messages, question.text, frozenset(question.options)), question)
        if len(made) == rows:
            break
    return [replace(q, split="train" if make.random.random() < 0.1 else "test") for q in made.values()]


# Faults


def _with_question(question: Question, change: Callable[[list[str]], list[str]]) -> Question:
    """Return the row with other words in its last sentence that asks."""
    head, mark, tail = question.text.rpartition("\nAnswer:")
    body, end = (head, mark + tail) if mark else (question.text, "")
    start = max(body.rfind("\n"), body[:-1].rfind(". "), body[:-1].rfind("? ")) + 1
    words = change(body[start:].split())
    lead = " " if body[start : start + 1] == " " else ""
    return replace(question, text=f"{body[:start]}{lead}{' '.join(words)}{end}")


def _typo(rng: random.Random, words: list[str]) -> list[str]:
    long = [at for at, word in enumerate(words) if len(word) > 5 and word[:-1].isalpha()]
    if not long:
        return [*words, "please"]
    at = rng.choice(long)
    word, place = words[at], rng.randint(1, len(words[at]) - 3)
    return [*words[:at], word[:place] + word[place + 1] + word[place] + word[place + 2 :], *words[at + 1 :]]


def _added(rng: random.Random, words: list[str]) -> list[str]:
    return rng.choice((["Please", "answer:"], ["Quick", "question:"], ["So,"], ["Now", "tell", "me:"])) + words


def _may_go(word: str) -> bool:
    return word.lower() in _COMMON and word.lower() not in _KEPT


def _dropped(rng: random.Random, words: list[str]) -> list[str]:
    common = [at for at, word in enumerate(words[:-1]) if at and _may_go(word)]
    if not common:
        return ["Well,", *words]
    at = rng.choice(common)
    return words[:at] + words[at + 1 :]


def _replaced(rng: random.Random, words: list[str]) -> list[str]:
    common = [at for at, word in enumerate(words[:-1]) if _may_go(word)]
    if not common or len(words) < 7:
        return ["Please,", *words]
    at = rng.choice(common)
    return [*words[:at], "actually", *words[at + 1 :]]


def _marked(rng: random.Random, words: list[str]) -> list[str]:  # noqa: ARG001
    return [words[0].upper(), *(word.strip(".?!,") for word in words[1:])]


_KEPT = {"not", "no", "more", "most", "first", "before", "after", "two", "one", "out", "up", "less"}
"""Words that make another question where they are lost."""

_CHANGES = {
    "a typo": _typo,
    "words added": _added,
    "a word dropped": _dropped,
    "a word replaced": _replaced,
    "case and punctuation": _marked,
}

_LEAKED = (
    lambda q: f"{q.text} (Answer: {q.gold})",
    lambda q: f"{q.text} The answer is {q.gold}.",
    lambda q: f"{q.text} {q.gold}",
    lambda q: f"{q.text}\nAnswer: {q.gold}",
    lambda q: f"Hint: {q.gold}. {q.text}",
)

_SAME = frozenset({"duplicate", "near-duplicate"})
_LEAK = frozenset({"leak"})
FAULTS = (
    "exact duplicate",
    *(f"near: {name}" for name in _CHANGES),
    *("leak, exact", "leak, near", "another gold", "answer in prompt"),
)
_NO_ANSWERS = {"multiple choice", "classes", "yes or no", "reading", "chat", "worked examples"}
"""Kinds whose prompts end in "Answer:", hold their answers by design, or have options: nothing is planted there."""


def plant(kind: str, clean: list[Question], each: int, seed: int = 0) -> tuple[list[Question], list[Fault]]:
    """Return the rows with `each` rows of every fault planted, and what was planted."""
    rng = random.Random(f"{kind}/{seed}/faults")
    rows = list(clean)
    faults: list[Fault] = []
    tests = [number for number, row in enumerate(clean) if row.split == "test"]
    origins = iter(rng.sample(tests, min(len(tests), each * len(FAULTS))))
    for fault in FAULTS:
        if fault == "answer in prompt" and kind in _NO_ANSWERS:
            continue
        for _ in range(each):
            origin = next(origins)
            row = clean[origin]
            changed, codes = _make(fault, row, clean, rng)
            if fault == "answer in prompt":
                rows[origin] = changed
                faults.append(Fault(fault, origin, origin, codes))
            else:
                rows.append(changed)
                faults.append(Fault(fault, len(rows) - 1, origin, codes))
    return rows, faults


def _make(fault: str, row: Question, clean: list[Question], rng: random.Random) -> tuple[Question, frozenset[str]]:
    if fault.startswith("near: "):
        change = _CHANGES[fault.removeprefix("near: ")]
        return _with_question(row, lambda words: change(rng, words)), _SAME
    if fault == "leak, near":
        change = rng.choice(list(_CHANGES.values()))
        return replace(_with_question(row, lambda words: change(rng, words)), split="train"), _LEAK
    if fault == "leak, exact":
        return replace(row, split="train"), _LEAK
    if fault == "another gold":
        others = row.options or [one.gold for one in rng.sample(clean, 50)]
        return replace(row, gold=rng.choice([gold for gold in others if gold != row.gold])), frozenset(
            {"different-golds"}
        )
    if fault == "answer in prompt":
        return replace(row, text=rng.choice(_LEAKED)(row)), frozenset({"answer-in-prompt"})
    return row, _SAME


def write(path: Path, rows: list[Question]) -> None:
    """Write the rows as an `adapter_spec` file, JSON Lines: row N is on line N + 2 and has the id `N`."""
    is_chat = any(row.messages for row in rows)
    spec = {
        "method": "chat" if is_chat else "multiple_choice_joint" if rows[0].options else "generation",
        "max_train_instances": 0,
    }
    with path.open("w", encoding="utf-8") as file:
        file.write(json.dumps({"adapter_spec": spec}) + "\n")
        for number, row in enumerate(rows):
            golds = row.options or (row.gold,)
            shown: dict[str, object] = {"text": row.text}
            if is_chat:
                turns = (*row.messages, ("user", row.text))
                shown = {"messages": [{"role": role, "content": content} for role, content in turns]}
            references = [{"output": {"text": text}, "tags": ["correct"] if text == row.gold else []} for text in golds]
            instance = {"id": str(number), "input": shown, "references": references, "split": row.split}
            file.write(json.dumps({"instance": instance}) + "\n")
