"""Reads one completion as a label, by rules 5 to 9 of `helm_ext.parsing.labels`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple, TypeAlias

from helm_ext.parsing import phrases
from helm_ext.parsing.spelling import (
    BRACKETS,
    CLOSERS,
    DASHES,
    OPENERS,
    PUNCTUATION,
    LabelSet,
    fold,
    index,
    is_pair,
    is_sign,
    peel,
    peelings,
    simplify,
)

__all__ = ["Reader"]

_MAX_DECORATION = 24
"""At most this many characters of decoration are taken off in front of an option's text inside a line."""

_MAX_STATEMENTS = 200
"""At most this many statements are read, from the end."""

# Words of one letter: as a label inside prose they need punctuation.
_SHORT_WORDS = frozenset("aioeyuàéèавикосуя")


class _Found(NamedTuple):
    """A label in its place in the text."""

    label: str
    start: int
    stem: int
    """Behind the label and its closing brackets, before punctuation."""
    end: int
    """Behind the label, its closing brackets and punctuation."""
    mark: str
    """The punctuation."""
    set_off: bool
    """In brackets, quotes or markup, or followed by punctuation or by a word that is written together with labels."""
    short_word: bool
    """In prose the label may be a word: a, I, и."""


class _Ambiguous:
    """The type of AMBIGUOUS: more than one option is named, or label and text contradict each other."""


_AMBIGUOUS = _Ambiguous()
_Reading: TypeAlias = "str | _Ambiguous | None"


class Reader:
    """Reads one completion, already simplified."""

    def __init__(self, label_set: LabelSet, labels: Mapping[str, str], text: str) -> None:
        self.label_set = label_set
        self.text = text
        self.folded = {label: fold(simplify(option)) for label, option in labels.items()}
        first_of_text: dict[str, str] = {}
        for label, option in labels.items():
            first_of_text.setdefault(option.strip(), label)
        # The same text twice is no ambiguity.
        self.by_text = index(
            (self.folded[label], first_of_text[option.strip()])
            for label, option in labels.items()
            if self.folded[label]
        )
        self.texts = sorted(self.by_text, key=len, reverse=True)
        self.longest_text = max(map(len, self.by_text), default=0)

    def read(self) -> str | None:
        """Apply rules 5 to 9 of this module's docstring."""
        whole = self.read_alone(self.text, margin=32)
        if whole is not None:
            return whole
        lines = [line for line in self.text.split("\n") if line.strip()]
        if not lines:  # nothing but invisible characters
            return None
        first = self.read_line(lines[0])
        if first is None:
            pair = self.read_pair(lines[0])
            first = None if pair is None or self._begins_list(pair) else pair
        stated = self._read_statements()
        if stated is not None:
            return stated if isinstance(stated, str) and first in {None, stated} else None
        last = self.read_line(lines[-1], lead=True)
        if first is not None or last is not None:
            return (first or last) if first is None or last is None or first == last else None
        return self._read_lead()

    # Rules 5, 6 and 8: nothing but a label or a text.

    def read_alone(self, text: str, *, margin: int = 40) -> str | None:
        """Return the label that the text is, or is the text of, by its least stripped spelling that is either.

        None also where what was stripped makes it the text of another option.
        """
        is_label_long = len(text) <= self.label_set.longest + margin
        is_text_long = len(text) <= 2 * self.longest_text + 64
        if not text or not (is_label_long or is_text_long):
            return None
        for spelling, front, back in peelings(text):
            label = self.label_set.find(spelling) if is_label_long else None
            key = fold(spelling)
            if label is None and is_text_long:
                label = self.by_text.get(key)
            if label is not None:
                others = self._spelled_with(key, front, back)
                return label if all(self.by_text[other] == label for other in others) else None
        return None

    def _spelled_with(self, text: str, front: str, back: str = "") -> list[str]:
        """Return the other options' texts, folded, that `text` is together with decoration next to it."""
        if not front and not back:
            return []
        fronts = [front[i:].casefold() for i in range(len(front) + 1)]
        backs = [back[:i] for i in range(len(back) + 1)]
        spellings = {fold(before + text + behind) for before in fronts[-9:] for behind in backs[:9]}
        return [spelling for spelling in spellings - {text} if spelling in self.by_text]

    def read_line(self, line: str, *, lead: bool = False) -> str | None:
        """Return the label or text that the line consists of; `lead`: behind words such as "So" or "Option"."""
        label = self.read_alone(line)
        if label is None and lead and len(line) <= self.label_set.longest + 40:
            words = phrases.LEAD.match(line)
            is_worded = words is not None and any(char.isalpha() for char in words[0])
            return self.label_set.find(peel(line[words.end() :])) if words and is_worded else None
        return label

    def read_pair(self, line: str) -> str | None:
        """Return the label of a line that is a label and its text."""
        found = self._find(0, line)
        return found.label if found and self.folded[found.label] in self._texts_alone(line[found.end :]) else None

    def _begins_list(self, label: str) -> bool:
        """Tell whether a first line with that label and its text begins a list of the options."""
        return label == next(iter(self.folded)) and self._lists_on_lines(label)

    # Rule 7: statements.

    def _read_statements(self) -> _Reading:
        """Return what the last readable statement says."""
        text = self.text
        lowered = text.lower()
        if len(lowered) != len(text):  # İ is two characters in lower case; positions must stay
            lowered = "".join(char.lower() if len(char.lower()) == 1 else char for char in text)
        readers: list[tuple[int, Callable[[int], _Reading]]] = []
        for anchor in phrases.ANCHOR.finditer(lowered):
            introduction = phrases.INTRODUCTION.match(lowered, anchor.start())
            if introduction and not self.is_void(anchor.start()):
                readers.append((introduction.end(), self._read_introduced))
        for verdict in phrases.find_verdicts(lowered):
            window = max(0, verdict.start() - self.label_set.longest - 60)
            match = self.label_set.clause_end.search(text, window, verdict.start())
            if match and not self._is_void_before(match.start("label")):
                readers.append((match.start("label"), self._read_declared))
        denied: set[str] = set()
        for place, read in sorted(readers, key=lambda reader: reader[0], reverse=True)[:_MAX_STATEMENTS]:
            reading = read(place)
            if reading is not None:
                return _AMBIGUOUS if reading in denied else reading
            denial = phrases.DENIAL.match(text, place)
            found = self._find(self._skip_filler(denial.end())) if denial else None
            if found:
                denied.add(found.label)
        return None

    def is_void(self, start: int) -> bool:
        """Tell whether what stands before an introduction takes its meaning away, or makes it part of a word."""
        before = self.text[max(0, start - 80) : start]
        if phrases.CHOOSE.match(self.text, start):
            return phrases.SUBJECT.search(before) is None
        inside_word = before[-1:].isalnum() and not _is_unspaced(before[-1:]) and self.text[start].isalpha()
        return (inside_word and not _is_unspaced(self.text[start])) or self._is_void_before(start)

    def _is_void_before(self, start: int) -> bool:
        return phrases.VOID.search(self.text[max(0, start - 80) : start].rstrip(OPENERS)) is not None

    def _skip_filler(self, position: int) -> int:
        match = phrases.FILLER.match(self.text, position)
        return match.end() if match else position

    def _read_declared(self, place: int) -> _Reading:
        found = self.label_set.pattern.match(self.text, place)
        return self.label_set.find(found["label"]) if found else None

    def _read_introduced(self, place: int) -> _Reading:
        """Read what an introduction that ends at `place` introduces: a label or an option's text."""
        if self.text[place - 1] == phrases.MARKER and self.text[place : place + 1] == "{":
            place += 1  # the brace of \\boxed{}
        after_filler = self._skip_filler(place)
        by_text, length = max((self._read_text_at(p) for p in {place, after_filler}), key=lambda reading: reading[1])
        found = self._find(after_filler) or self._find(place)  # "Likely" is filler, or a label
        # The longer reading: "E. coli" is more than E, "A and C" more than A, and B is as much as the text "B".
        if found is None or (by_text is not None and length > found.stem - found.start):
            return by_text
        return self._read_found(found)

    def _read_text_at(self, position: int) -> tuple[_Reading, int]:
        """Return the option whose text stands at `position` and ends there (the longest), and the text's length."""
        front = self._dash_before(position)  # "answer - 5"
        for level in self._texts_at(self.text, position):
            for text, rest, peeled in level:
                if self._names_other(rest, 0, text):
                    return _AMBIGUOUS, len(text)
                if self._ends_text(rest):
                    # "- 3" where -3 is an option too, "$5$" where 5 and $5 are.
                    others = self._spelled_with(text, front + peeled)
                    inner = fold(text[1:]) if text[0] in OPENERS and is_pair(text[0], rest[:1]) else text
                    is_clear = not others and (inner == text or inner not in self.by_text)
                    return self.by_text[text] if is_clear else _AMBIGUOUS, len(text)
        return None, 0

    def _dash_before(self, position: int) -> str:
        before = self.text[max(0, position - 4) : position].rstrip()[-1:]
        return before if before and before in DASHES else ""

    def _texts_at(self, whole: str, position: int) -> Iterator[list[tuple[str, str, str]]]:
        """Yield the options' texts that begin at `position`: those of the least stripped spelling first, longest first.

        Each with what follows it on the line, and what was stripped. A sign is not stripped.
        """
        line = whole[position : position + 2 * self.longest_text + 80].strip(" \n\t").partition("\n")[0]
        peeled = ""
        for _ in range(_MAX_DECORATION):
            folded = " ".join(line.casefold().split())
            yield [(text, folded[len(text) :], peeled) for text in self.texts if folded.startswith(text)]
            if not line or line[0] not in OPENERS + DASHES + ":" or is_sign(line):
                return
            peeled += line[0]
            line = line[1:].lstrip()

    def _texts_alone(self, part: str) -> list[str]:
        """Return the options' texts, folded, that `part` is nothing but; several where decoration tells them apart."""
        if len(part) <= 2 * self.longest_text + 64:
            for spelling, front, back in peelings(part):
                key = fold(spelling)
                if key in self.by_text:
                    return [key, *self._spelled_with(key, front, back)]
                if is_sign(spelling):
                    break
        return []

    def _ends_text(self, rest: str) -> bool:
        """Tell whether what stands behind an option's text shows that the text ended there."""
        bare = rest.lstrip(CLOSERS)
        if not bare or phrases.CONTINUATION.match(bare):
            return True
        return bare[0] in PUNCTUATION and not bare[1:2].isalnum()

    def _names_other(self, text: str, position: int, but: str) -> bool:
        """Tell whether "or ...", "and ...", ", ..." with another label or text than `but` stands at `position`."""
        separator = phrases.ALTERNATIVE.match(text, position)
        if not separator or not (separator["mark"] or separator["word"]):
            return False
        rest = text[separator.end() : separator.end() + self.longest_text + 80].casefold()
        if any(rest.startswith(t) and t != but and self._ends_text(rest[len(t) :]) for t in self.by_text):
            return True
        found = self._find(separator.end(), text)
        if found is None or found.label == but:
            return False
        # "B and C are", "B, C"; but not "B, a city", "B and a city".
        return found.set_off or _at_line_end(text, found.end) or (bool(separator["word"]) and not found.short_word)

    # A label in its place.

    def _find(self, position: int, text: str | None = None) -> _Found | None:
        """Return the label at `position`, where a word may begin; None if a word or a number goes on behind it."""
        text = self.text if text is None else text
        match = self.label_set.pattern.match(text, position)
        label = self.label_set.find(match["label"]) if match else None
        if match is None or label is None:
            return None
        start, end = match.span("label")
        after = text[match.end() : match.end() + 1]
        found = _Found(
            label=label,
            start=start,
            stem=match.end("close"),
            end=match.end(),
            mark=match["mark"],
            set_off=bool(match["mark"])
            or any(char in BRACKETS for char in match["close"])
            or bool(match["open"].strip(" \t\n:") and match["close"]),
            short_word=match["label"].casefold() in _SHORT_WORDS,
        )
        if match.end() > end:  # closing brackets or punctuation stand behind it
            bracketed = any(char in BRACKETS for char in match["close"] + match["close2"])
            if not after.isalnum() or bracketed or _is_unspaced(after) or self._is_own_text(found, text):
                return found
            return None
        if not after or after.isspace() or after in "<—" or (after in "([{" and self._is_own_text(found, text)):
            return found
        suffix = phrases.SUFFIX.match(text, end)
        if suffix and suffix.end() > end and not text[suffix.end() : suffix.end() + 1].isalnum():
            return found._replace(stem=suffix.end(), end=suffix.end(), set_off=True)
        if _is_unspaced(after) and self._is_own_text(found, text):
            return found
        return None

    def _is_own_text(self, found: _Found, text: str) -> bool:
        """Tell whether the text of the label's option stands behind the label."""
        own = self.folded[found.label]
        if not own or found.end == len(text):
            return False
        for level in self._texts_at(text, found.end):
            ended = [option for option, rest, _ in level if self._ends_text(rest)]
            if ended:
                return own in ended
        return False

    def _read_found(self, found: _Found, *, leading: bool = False) -> _Reading:
        """Decide what a label in its place says, from what follows on the line."""
        text = self.text
        line = text[found.end :].partition("\n")[0]
        own = self._is_own_text(found, text)
        if own:
            reading, length = self._read_text_at(found.end)
            return _AMBIGUOUS if reading is _AMBIGUOUS and length == len(self.folded[found.label]) else found.label
        # "A. or B", "A./B.", but not "A. Or so I think".
        more = self._names_other(text, found.stem, found.label) or (
            (line.lstrip()[:1].islower() or line[:1] in {"/", "|", "&", "+"})
            and self._names_other(text, found.end, found.label)
        )
        if more or self._contradicts(line, found.label):
            return _AMBIGUOUS
        if "?" in found.mark:
            return None
        if not line.strip():
            return found.label
        if leading and (
            phrases.OBJECTION.match(line)
            or (found.mark.startswith(",") and found.short_word)
            or self._lists(line, found)
        ):
            return None
        if found.set_off:
            return found.label
        continuation = phrases.CONTINUATION.match(line)
        # "A rather good ...", "I believe": a short word needs a dash or a bracket.
        if continuation and not (found.short_word and continuation[0][-1].isalpha()):
            return found.label
        return None

    def _contradicts(self, line: str, label: str) -> bool:
        """Tell whether the line, or its first sentence, is nothing but another label or option's text."""
        line = line.strip()
        while line[:1] and line[0] in DASHES and not is_sign(line):
            line = line[1:].lstrip()
        sentence = re.split(r"[.!?;](?:\s|$)|[。!?]", line, maxsplit=1)[0]
        for part in {line, sentence} - {""}:
            texts = self._texts_alone(part)
            if texts and self.folded[label] not in texts:
                return True
            if not texts and len(part) <= self.label_set.longest + 16:
                other = self.label_set.find(peel(part))
                if other is not None and self.folded[other] != self.folded[label]:
                    return True
        return False

    # Rule 9: a label at the start.

    def _read_lead(self) -> str | None:
        lead = phrases.LEAD.match(self.text)
        for position in (0, lead.end() if lead else 0):
            found = self._find(position)
            if found and not self._spelled_with(found.label.casefold(), self._dash_before(position)):
                reading = self._read_found(found, leading=True)
                return reading if isinstance(reading, str) and not self._lists_on_lines(reading) else None
        return None

    def _lists(self, line: str, found: _Found) -> bool:
        """Tell whether another option is listed on the same line: "A. Paris B. London"."""
        folded = " ".join(line.casefold().split())
        return any(
            f"{core.casefold()}{mark}{self.folded[label]}" in folded
            for core, label in self.label_set.by_core.items()
            if label and label != found.label and self.folded[label]
            for mark in (". ", ") ", ": ", ".", ")", " - ")
        )

    def _lists_on_lines(self, label: str) -> bool:
        """Tell whether another label leads a later line."""
        position = self.text.find("\n")
        while position >= 0:
            lead = phrases.LEAD.match(self.text, position + 1)
            found = self._find(lead.end() if lead else position + 1)
            if found and found.set_off and found.label != label:
                return True
            position = self.text.find("\n", position + 1)
        return False


def _is_unspaced(char: str) -> bool:
    """Tell whether the character belongs to a script that puts no spaces between words (or glues its particles)."""
    return "\u1100" <= char <= "\u11ff" or "\u3040" <= char <= "\u9fff" or "\uac00" <= char <= "\ud7af"


def _at_line_end(text: str, position: int) -> bool:
    return not text[position : text.find("\n", position) if "\n" in text[position:] else None].strip()
