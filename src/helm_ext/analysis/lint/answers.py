"""Right answers that give themselves away: they stand in the prompt, or the right option in one place too often.

Options, passages to read and lists of classes hold answers by design. So there are three rules, from sure to careful:

cue        the answer follows "Answer:" or "the answer is"; in a prompt of worked examples, only at its very end
alone      it is the first or last sentence or line, or a parenthesis
elsewhere  it stands in another sentence than the question, or is long and stands anywhere, and that is rare in this
           dataset: an answer in every tenth prompt is a passage to read
"""

from __future__ import annotations

import math
import re
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence

from helm_ext.analysis.lint.rows import Row, Rows, Shared, fold, make_key, split_sentences, split_words
from helm_ext.errors import KEPT_PROBLEMS, Location, Problems, count, show

_MOST_ALONE = 0.2
"""Of the rows. Where more have the answer on a line of its own, the lines are options."""
_MOST_ELSEWHERE = 0.05
"""Of the rows. Where more have the answer in another sentence, the sentences are a passage to read."""
_LEAST_LETTERS = 4
"""Shorter answers stand in texts by chance."""
_LONG_WORDS = 3
"""An answer of this many words does not stand in its question by chance."""
_LONGEST_CUE = 40
"""Characters, with what stands between it and the answer."""
_LEAST_GAIN = 0.05
"""What always answering one position must win over guessing: five points in a hundred."""
_CHANCE = 0.001
"""How seldom so uneven a dataset may come about where positions are drawn."""
_LETTERS = "ABCDEFGHIJ"

_CUE = re.compile(
    r"(?:\b(?:answer|solution|gold|key|hint|antwort|l(?:ö|oe)sung|r[ée]ponse|respuesta|resposta|risposta|ответ)\b"
    r"(?:\s+(?:is|was|should be|ist|lautet|est|es|é|è))?|答案是?|答え?は?|정답은?|(?:^|\n)\s*a(?=\s*:))"
    r"\s*(?P<mark>[:=：]|->|→|(?<=is|st|et|as|be|es)(?=\s)|(?<=[案是えは은]))[\s\"'“(\[*]*"
)
_ENUMERATION = re.compile(r"\s*(?:[,;/|、]|or\b|oder\b|ou\b|o\b|или\b)\s*\S")
_AFTER = re.compile(r"[\"'”)\]*]*(?:[.!。]|\s|$|[)\]])")
_PARENTHESIS = re.compile(r"[(\[]([^()\[\]]{1,200})[)\]]")


class AnswersInPrompts:
    """Finds rows of free text whose prompt holds the answer, and keeps their numbers."""

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self._found = {"cue": array("q"), "alone": array("q"), "elsewhere": array("q")}

    def see(self, row: Row) -> None:
        """Look at a row."""
        if row.golds and not row.options:
            kind = _find(row, is_class=any(hash(gold) in self._shared.common_free for gold in row.gold_keys))
            if kind:
                self._found[kind].append(row.number)

    def report(self, rows: Rows, problems: Problems) -> None:
        """Report the rows, by the rules that do not find too many."""
        free = self._shared.free
        most = {"cue": free, "alone": max(1, _MOST_ALONE * free), "elsewhere": _MOST_ELSEWHERE * free}
        numbers = sorted(number for kind, found in self._found.items() if len(found) <= most[kind] for number in found)
        for row in rows.take(numbers[:KEPT_PROBLEMS]).values():
            problems.warn(
                row.place,
                f"id {show(row.id)}: the prompt holds the answer, {show(row.golds[0])}",
                "take it out of the prompt; a model that repeats what it reads is right",
                code="answer-in-prompt",
            )
        problems.count_more("answer-in-prompt", len(numbers) - KEPT_PROBLEMS)


def _find(row: Row, *, is_class: bool) -> str:
    """Return by which rule the last message of a row holds its answer; "" if by none."""
    text = row.texts[-1]
    folded = fold(text)
    golds = [gold for gold in map(fold, row.golds) if gold.strip() and gold.strip() in folded]
    for gold in golds:
        if _follows_cue(folded, gold.strip()):
            return "cue"
    if not golds:
        return ""
    sentences = split_sentences(text)
    if len(sentences) > 1 and _stands_alone(text, sentences, {make_key(gold) for gold in golds}, is_class=is_class):
        return "alone"
    if is_class:
        return ""
    question = _question_of(sentences)
    others = [sentence for sentence in sentences if sentence is not question]
    for gold in golds:
        words = split_words(gold)
        letters = sum(character.isalpha() for character in gold)
        if letters >= _LEAST_LETTERS and any(_holds(sentence, words) for sentence in others):
            return "elsewhere"
        if len(words) >= _LONG_WORDS and letters >= 2 * _LEAST_LETTERS and _holds(text, words):
            return "elsewhere"
    return ""


def _follows_cue(folded: str, gold: str) -> bool:
    starts = (max(0, at - _LONGEST_CUE) for at in _find_all(folded, gold))
    if not any(_CUE.search(folded, start, start + 2 * _LONGEST_CUE) for start in starts):
        return False  # told quickly
    cues = list(_CUE.finditer(folded))
    if not cues:
        return False
    cue = cues[-1]
    end = cue.end() + len(gold)
    rest = folded[end:]
    if not folded.startswith(gold, cue.end()) or _ENUMERATION.match(rest) or not _AFTER.match(rest):
        return False
    return len(cues) == 1 or not rest.strip(" \n.!\"'”)]*")


def _find_all(text: str, part: str) -> Iterator[int]:
    at = text.find(part)
    while at >= 0:
        yield at
        at = text.find(part, at + 1)


def _stands_alone(text: str, sentences: Sequence[str], keys: set[str], *, is_class: bool) -> bool:
    """Whether the answer stands alone; a number or a class only where it ends the prompt, after the question."""
    last = make_key(sentences[-1].strip("()[]"))
    if last in keys and sentences[-2].rstrip().endswith(("?", "？")):
        return True
    wordy = {key for key in keys if sum(character.isalpha() for character in key) >= _LEAST_LETTERS and not is_class}
    parts = [sentences[0], sentences[-1], *_PARENTHESIS.findall(text)]
    return any(make_key(part.strip("()[]")) in wordy for part in parts)


def _question_of(sentences: Sequence[str]) -> str:
    """Return the last sentence that asks, or the last."""
    asking = [sentence for sentence in sentences if sentence.rstrip("\"'”) ").endswith(("?", "？"))]
    return (asking or sentences or [""])[-1]


def _holds(text: str, words: Sequence[str]) -> bool:
    """Whether the words stand in the text, one after the other."""
    return f" {' '.join(words)} " in f" {' '.join(split_words(text))} "


class Positions:
    """Counts where the right options stand. Train rows are not scored, and not counted."""

    def __init__(self) -> None:
        self._chosen: Counter[tuple[int, int]] = Counter()
        """Rows by (position of the right option, number of options)."""
        self._letters: Counter[str] = Counter()
        """Rows by gold; "" for one that is no letter."""

    def see(self, row: Row) -> None:
        """Look at a row."""
        if row.is_train:
            return
        if len(row.right) == 1 and len(row.options) > 1:
            self._chosen[row.right[0], len(row.options)] += 1
        gold = row.golds[0].strip(" ().:").upper() if len(row.golds) == 1 else ""
        self._letters[gold if len(gold) == 1 and gold in _LETTERS else ""] += 1

    def report(self, problems: Problems, path: str) -> None:
        """Report, once, that the right options do not stand everywhere.

        Where all golds of a dataset are letters, the options stand in the questions: the letters are the positions.
        """
        positions = self._chosen
        if not positions and "" not in self._letters:
            places = {_LETTERS.index(gold): rows for gold, rows in self._letters.items()}
            widest = max(places, default=0) + 1
            positions = Counter({(place, widest): rows for place, rows in places.items() if widest > 1})
        if not positions:
            return
        total = positions.total()
        right: Counter[int] = Counter()
        for (position, _), rows in positions.items():
            right[position] += rows
        most, number = min(right.items(), key=lambda item: (-item[1], item[0]))
        widest = max(options for _, options in positions)
        expected = sum(rows / options for (_, options), rows in positions.items() if options > most)
        if (number - expected) / total < _LEAST_GAIN or widest * _bound(number, expected, total) > _CHANCE:
            return
        shares = ", ".join(f"{_name(at)} {right[at] / total:.1%}" for at in range(widest))
        guessing = sum(rows / options for (_, options), rows in positions.items()) / total
        best = (
            f"always {_name(most)}, the most frequent, {number / total:.1%}" if most else "which is the most frequent"
        )
        problems.warn(
            Location(path),
            f"the right option of {count(total, 'row')} stands at {shares}: always answering {_name(0)} scores "
            f"{right[0] / total:.1%}, {best}; guessing scores {guessing:.1%}",
            "shuffle the options, or compare models with the score of the most frequent position",
            code="gold-position",
        )


def _name(position: int) -> str:
    return _LETTERS[position] if position < len(_LETTERS) else f"option {position + 1}"


def _bound(number: int, expected: float, total: int) -> float:
    """Return an upper bound of the chance of `number` or more hits in `total` draws of which `expected` hit.

    Chernoff's bound, which holds for draws of different chances too (Hoeffding 1963, theorem 1).
    """
    seen, drawn = number / total, expected / total
    if seen <= drawn:
        return 1.0
    exponent = seen * math.log(seen / drawn)
    if seen < 1:
        exponent += (1 - seen) * math.log((1 - seen) / (1 - drawn))
    return math.exp(-total * exponent)
