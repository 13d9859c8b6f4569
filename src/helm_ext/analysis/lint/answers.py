"""Prompts of free text that hold their own answer.

Options, passages to read and lists of classes hold answers by design. So there are three rules, from sure to careful:

cue        the answer follows "Answer:" or "the answer is"; in a prompt of worked examples, only at its very end
alone      it is the first or last sentence or line, or a parenthesis
elsewhere  it stands in another sentence than the question, or is long and stands anywhere, and that is rare in this
           dataset: an answer in every tenth prompt is a passage to read
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Collection, Iterator, Sequence

from helm_ext.analysis.lint.hashes import find_frequent
from helm_ext.analysis.lint.rows import Row, Rows
from helm_ext.analysis.lint.texts import fold, make_key, split_sentences, split_words
from helm_ext.errors import KEPT_PROBLEMS, Problems, show

MOST_ALONE = 0.2
"""Of the rows. Where more have the answer on a line of its own, the lines are options."""
MOST_ELSEWHERE = 0.05
"""Of the rows. Where more have the answer in another sentence, the sentences are a passage to read."""
LEAST_LETTERS = 4
"""Shorter answers stand in texts by chance."""
LONG_WORDS = 3
"""An answer of this many words does not stand in its question by chance."""
LONGEST_CUE = 40
"""Characters, with what stands between it and the answer."""
COMMON_GOLD = 0.005
"""Of the rows. A gold that more rows have is a class, and prompts name their classes."""
FEW = 5

_CUE = re.compile(
    r"(?:\b(?:answer|solution|gold|key|hint|antwort|l(?:ö|oe)sung|r[ée]ponse|respuesta|resposta|risposta|ответ)\b"
    r"(?:\s+(?:is|was|should be|ist|lautet|est|es|é|è))?|答案是?|答え?は?|정답은?|(?:^|\n)\s*a(?=\s*:))"
    r"\s*(?P<mark>[:=：]|->|→|(?<=is|st|et|as|be|es)(?=\s)|(?<=[案是えは은]))[\s\"'“(\[*]*"
)
_ENUMERATION = re.compile(r"\s*(?:[,;/|、]|or\b|oder\b|ou\b|o\b|или\b)\s*\S")
_AFTER = re.compile(r"[\"'”)\]*]*(?:[.!。]|\s|$|[)\]])")
_PARENTHESIS = re.compile(r"[(\[]([^()\[\]]{1,200})[)\]]")


class AnswersInPrompts:
    """Finds rows of free text whose prompt holds the answer; keeps hashes of golds, and the numbers of such rows."""

    def __init__(self) -> None:
        self._free = 0
        """Rows of free text."""
        self._golds = array("q")
        self._common: Collection[int] = frozenset()
        self._found = {"cue": array("q"), "alone": array("q"), "elsewhere": array("q")}

    def see(self, row: Row) -> None:
        """Look at a row."""
        if row.golds and not row.options:
            self._free += 1
            self._golds.extend(map(hash, row.gold_keys))

    def settle(self) -> None:
        """Begin to look at the rows a second time."""
        self._common = find_frequent(self._golds, int(max(FEW, COMMON_GOLD * self._free)) + 1)
        self._golds = array("q")

    def see_again(self, row: Row) -> None:
        """Look at a row once more."""
        if row.golds and not row.options:
            kind = _find(row, is_class=any(hash(gold) in self._common for gold in row.gold_keys))
            if kind:
                self._found[kind].append(row.number)

    def report(self, rows: Rows, problems: Problems) -> None:
        """Report the rows, by the rules that do not find too many."""
        found = self._found
        kept = found["cue"]
        kept += found["alone"] if len(found["alone"]) <= max(1, MOST_ALONE * self._free) else array("q")
        kept += found["elsewhere"] if len(found["elsewhere"]) <= MOST_ELSEWHERE * self._free else array("q")
        numbers = sorted(set(kept))
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
        if letters >= LEAST_LETTERS and any(_holds(sentence, words) for sentence in others):
            return "elsewhere"
        if len(words) >= LONG_WORDS and letters >= 2 * LEAST_LETTERS and _holds(text, words):
            return "elsewhere"
    return ""


def _follows_cue(folded: str, gold: str) -> bool:
    starts = (max(0, at - LONGEST_CUE) for at in _find_all(folded, gold))
    if not any(_CUE.search(folded, start, start + 2 * LONGEST_CUE) for start in starts):
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
    wordy = {key for key in keys if sum(character.isalpha() for character in key) >= LEAST_LETTERS and not is_class}
    parts = [sentences[0], sentences[-1], *_PARENTHESIS.findall(text)]
    return any(make_key(part.strip("()[]")) in wordy for part in parts)


def _question_of(sentences: Sequence[str]) -> str:
    """Return the last sentence that asks, or the last."""
    asking = [sentence for sentence in sentences if sentence.rstrip("\"'”) ").endswith(("?", "？"))]
    return (asking or sentences or [""])[-1]


def _holds(text: str, words: Sequence[str]) -> bool:
    """Whether the words stand in the text, one after the other."""
    return f" {' '.join(words)} " in f" {' '.join(split_words(text))} "
