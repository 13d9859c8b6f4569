"""Where a completion names options: labels and texts in their place, and whether what follows lets them be named there.

Whether "A" is the label A or a word is told from what follows alone, by the same rule for every label: the end, a
punctuation mark, a bracket, the label's own text, or prose that may follow an answer (`phrases.CONTINUATION`).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple, TypeAlias

from helm_ext.parsing import phrases
from helm_ext.parsing.options import (
    BRACKETS,
    CLOSERS,
    DASHES,
    OPENERS,
    PUNCTUATION,
    Options,
    is_sign,
    is_unspaced,
    lower,
    peel,
)

Named: TypeAlias = "frozenset[str]"
"""The labels of the options that are named together."""

UNCLEAR: Named = frozenset()
"""Options are named, but not which: "A or B", or a label with another option's text."""

_MAX_DECORATION = 24
"""At most this many characters of decoration are taken off in front of an option's text."""

_MAX_ITEMS = 64
"""At most this many options are named together."""

_MAX_LETTERS = 32

_LOOK_AHEAD = 160
"""Characters behind an option that tell whether it is named."""

_SENTENCE = re.compile(r"[.!?;](?:\s|$)|[。!?]")
_LINE_BREAK = re.compile(r"[^\S\n]{0,8}\n")
_OPERATION = re.compile(r"\s?[-+*/×÷]\s?[\d(][^\n=]*=")
"""Behind a number that is calculated with, not an answer: "32 - 7 = 25"."""
_WORD = re.compile(r"\w+")
_LIST_MARK = re.compile(r"[^\S\n]{0,8}(?:[-•*>#]{1,6}\s|\(?\d{1,2}[.):](?=\s))[^\S\n]{0,8}")
_ARTICLE = re.compile(
    r"[\s\"'(*_:]{0,8}(?P<word>the|an?|l[aeo]s?|el|il|i|gli|de[rnm]|die|das|het|os?)[^\S\n]", re.IGNORECASE
)
_LABEL_BEHIND = re.compile(
    r"[^\S\n\"'*_]{0,3}(?:(?=\()|[,–—-]{1,2}[^\S\n]{0,3}|(?:which|that)\sis\s){0,2}(?:i\.e\.,?\s)?"
    r"(?:\(?(?:option|answer|choice|letter)[^\S\n])?",
    re.IGNORECASE,
)


class Item(NamedTuple):
    """An option that is named at a place."""

    label: str
    start: int
    stem: int
    """Behind the label and its closing brackets, before punctuation; behind the text."""
    end: int
    """Behind all that belongs to it: punctuation, the label's own text."""
    is_done: bool
    """Whether brackets, punctuation or its own text show that it is named, whatever follows."""
    is_asked: bool = False
    """Whether a question mark follows."""
    is_clear: bool = True
    """Whether what belongs to it agrees: "B. London" is unclear where London is another option."""
    is_text: bool = False


class Mentions:
    """One completion, simplified, together with the options it may name."""

    def __init__(self, options: Options, text: str) -> None:
        self.options = options
        self.text = text
        self.lowered = lower(text)

    @cached_property
    def sentences(self) -> list[tuple[int, int]]:
        """Where the sentences begin and end that hold more than white space."""
        ends = [0, *(match.end() for match in phrases.SENTENCE_END.finditer(self.lowered)), len(self.text)]
        return [(begin, end) for begin, end in pairwise(ends) if self.text[begin:end].strip()]

    def read_letters(self, text: str) -> Named | None:
        """Read "AC" and "A C", different labels of one letter, and "B B", one label again, and nothing else."""
        if len(text) > _MAX_LETTERS:
            return None
        letters = text.split() if " " in text or "\n" in text else list(text)
        named = [self.options.label_set.by_core.get(letter) for letter in letters if len(letter) == 1]
        labels = frozenset(label for label in named if label is not None)
        is_again = len(labels) == 1 and " " in text
        is_all = None not in named and len(named) == len(letters) > 1
        return labels if is_all and (is_again or len(labels) == len(letters)) else None

    def read_items(self, position: int, stop: int = -1) -> tuple[Named, Item] | None:
        """Return the options that are named at `position`, with the last of them; None where none is.

        One option, or several with commas, "and", line breaks between them. UNCLEAR for "A or B", for label and text
        that contradict each other, for a label of no option among them. An option that ends at `stop` is named.
        """
        item = self.read_item(position, stop)
        if item is None:
            return None
        named, is_clear = {item.label}, item.is_clear
        for _ in range(_MAX_ITEMS):
            more = self._read_more(item, stop)
            if more is None:
                if not self._is_named(item, stop):
                    return None
                return (frozenset(named) if is_clear and not self._contradicts(item) else UNCLEAR), item
            following, is_either = more
            if following is None:
                return UNCLEAR, item
            is_clear = is_clear and following.is_clear and not (is_either and following.label not in named)
            named.add(following.label)
            item = following
        return UNCLEAR, item

    def _read_more(self, item: Item, stop: int) -> tuple[Item | None, bool] | None:
        """Return the option behind a connective, and whether the two are alternatives; None where none follows.

        The option is None where a label of no option follows.
        """
        for place in dict.fromkeys((*self._separator_places(item), item.end)):
            connective = phrases.CONNECTIVE.match(self.lowered, place)
            if not connective or not any(connective.groups()):
                continue
            letter = None if connective["mark"] else connective["one_of"] or connective["all_of"]
            if letter and (place != item.stem or self.options.label_set.find(letter)):
                continue
            for begin in _begins(connective):
                following = self.read_item(begin, stop)
                if following and (self._is_named(following, stop) or self._goes_on(following.stem)):
                    before = phrases.CONNECTIVE.match(self.lowered, place, begin)
                    is_either = (before is not None and before["either"]) or connective["one_of"]
                    return following, bool(is_either)
                if connective["mark"] == "、" and (
                    self.options.label_set.find(self.text[begin : begin + 1]) or (following and not following.is_text)
                ):
                    return None, False  # nothing but a list has this comma
                if following is None and phrases.STRANGER.match(self.lowered, begin):
                    return None, False
        line_end = _LINE_BREAK.match(self.text, item.end)
        following = self.read_item(self.skip_list_mark(line_end.end()), stop) if line_end else None
        return (following, False) if following and self.is_line_end(following.end) else None

    def _separator_places(self, item: Item) -> tuple[int, ...]:
        """Return where a connective may stand: behind the option, and behind a point ("A., B.")."""
        return (item.stem, item.stem + 1) if self.text.startswith(".", item.stem) else (item.stem,)

    def _is_named(self, item: Item, stop: int) -> bool:
        """Tell whether what follows shows that the option is named: not in "A good question"."""
        if stop in {item.stem, item.end}:
            return True
        if item.is_text:
            return self._ends_text(item.end)
        if item.is_done:
            return phrases.APPOSITION.match(self.lowered, item.stem) is None
        return self._may_end(item.end)

    def _may_end(self, position: int) -> bool:
        """Tell whether an option may end at `position`: at a line's end, before a symbol or prose that may follow."""
        rest = self.lowered[position : position + _LOOK_AHEAD]
        first = rest.lstrip(" ")[:1]
        is_symbol = bool(first) and unicodedata.category(first) in {"So", "Co"}
        return not first or first == "\n" or is_symbol or phrases.CONTINUATION.match(rest) is not None

    def find_items(self, begin: int, end: int) -> Iterator[Item]:
        """Yield the options that are named between `begin` and `end`, or of which a clause says something."""
        for word in _WORD.finditer(self.text, begin, end):
            item = self.read_item(word.start())
            is_about = item and phrases.OBJECTION.match(self.lowered, item.stem)
            if item and (item.is_text or self._is_named(item, end) or self._goes_on(item.stem) or is_about):
                yield item

    def is_denied(self, item: Item) -> bool:
        """Tell whether a word before the option denies it alone: "not B"."""
        return phrases.DENIED.search(self.lowered, max(0, item.start - 60), item.start) is not None

    def read_item(self, position: int, stop: int = -1) -> Item | None:
        """Return the option that is named at `position`: the longer of a label and a text."""
        by_text = self.find_text(position, stop)
        found = self.find_label(position, stop)
        # "E. coli" is more than E, "A and C" more than A, and B is as much as the text "B".
        if found is None or (by_text is not None and by_text.stem - by_text.start > found.stem - found.start):
            return by_text
        own = self._find_own_text(found, stop)
        return found._replace(stem=own.stem, end=own.end, is_done=True, is_clear=own.is_clear) if own else found

    def _find_own_text(self, found: Item, stop: int = -1) -> Item | None:
        """Return the text of the label's option that stands behind the label."""
        if not self.options.folded[found.label] or found.end >= len(self.text):
            return None
        place = found.end + (self.text[found.end] in "の的")
        item = self.find_text(place, stop, is_own=True)
        return item if item is not None and item.label == found.label else None

    def _contradicts(self, item: Item) -> bool:
        """Tell whether the line goes on with nothing but another option, for a sentence or to its end."""
        options, label = self.options, item.label
        line = self.text[item.end : item.end + 2 * options.longest_text + _LOOK_AHEAD].partition("\n")[0].strip()
        while line[:1] and line[0] in DASHES and not is_sign(line):
            line = line[1:].lstrip()
        sentence = _SENTENCE.split(line, maxsplit=1)[0]
        for part in {line, sentence} - {""}:
            text = options.find_text(part)
            other = options.by_text[text] or "" if text else options.label_set.find(peel(part))
            if other is not None and options.folded.get(other) != options.folded[label]:
                return True
        return False

    def find_label(self, position: int, stop: int = -1) -> Item | None:
        """Return the label at `position`, where a word may begin; None if a word or a number goes on behind it."""
        text = self.text
        match = self.options.label_set.pattern.match(text, position)
        label = self.options.label_set.find(match["label"]) if match else None
        if match is None or label is None:
            return None
        start, end = match.span("label")
        after = text[match.end() : match.end() + 1]
        is_bracketed = any(char in BRACKETS for char in match["close"] + match["close2"])
        is_quoted = bool(match["open"].strip(" \t\n:") and match["close"])
        found = Item(
            label,
            start,
            stem=match.end("close"),
            end=match.end(),
            is_done=bool(match["mark"]) or is_bracketed or is_quoted,
            is_asked="?" in match["mark"],
        )
        if stop in {found.stem, found.end}:
            return found
        suffix = phrases.SUFFIX.match(self.lowered, end)
        if suffix and suffix.end() > end and not text[suffix.end() : suffix.end() + 1].isalnum():
            return found._replace(stem=suffix.end(), end=suffix.end(), is_done=True)
        if match.end() > end:  # closing brackets or punctuation stand behind it
            goes_on = after.isalnum() and not is_bracketed and not is_quoted and not is_unspaced(after)
            is_list = goes_on and any(self._goes_on(place) for place in self._separator_places(found))
            if goes_on and not is_list and self._find_own_text(found) is None:
                return None
            return found
        if after.isalnum() and not is_unspaced(after):  # "as" in "Das" goes on with a word, not with a reason
            return None
        if not after or after.isspace() or after == "<" or phrases.CONTINUATION.match(self.lowered, end):
            return found
        is_joined = after in "/|&+~([{-–—" or is_unspaced(after)
        return found if is_joined and (self._goes_on(found.stem) or self._find_own_text(found)) else None

    def find_text(self, position: int, stop: int = -1, *, is_own: bool = False) -> Item | None:
        """Return the option whose text stands at `position` and ends there, the longest of the least stripped spelling.

        `is_own`: its label stands before it, and need not be looked for behind it.
        """
        article = None if is_own else _ARTICLE.match(self.text, position)
        item = self._find_text_at(position, stop)
        if item is None and article and article["word"] not in self.options.label_set.by_core:
            item = self._find_text_at(article.end(), stop)
        return item if item is None or is_own else self._with_label(item)

    def _find_text_at(self, position: int, stop: int) -> Item | None:
        place = _skip_space(self.text, position)
        for _ in range(_MAX_DECORATION):
            is_text = self.lowered.startswith(self.options.texts, place)
            for option in self.options.texts if is_text else ():
                end = place + len(option)
                closed = _skip(self.text, end, CLOSERS) if self.lowered.startswith(option, place) else -1
                if closed >= 0 and (stop in {end, closed} or self._ends_text(end) or self._goes_on(end)):
                    return self._make_text_item(option, place, closed)
            char = self.text[place : place + 1]
            if not char or char not in OPENERS + DASHES + ":" or is_sign(self.text, place):
                return None
            place = _skip_space(self.text, place + 1)
        return None

    def _make_text_item(self, option: str, place: int, closed: int) -> Item:
        options = self.options
        label = options.by_text[option]
        return Item(
            label or "",
            place,
            stem=closed,
            end=closed,
            is_done=True,
            is_asked=self.text.startswith("?", closed),
            is_clear=label is not None,
            is_text=True,
        )

    def _with_label(self, item: Item) -> Item:
        """Return a text together with its label behind it: "Paris (B)", "Paris, which is option B"."""
        between = _LABEL_BEHIND.match(self.text, item.end)
        if between is None or between.end() == item.end:
            return item
        found = self.find_label(between.end())
        same = found is not None and self.options.folded[found.label] == self.options.folded.get(item.label)
        if found is None or (not same and between[0].strip() == ","):  # "Paris, A" is a list
            return item
        # Named twice, so what follows need not show it; what follows a label is no unit of a number.
        return item._replace(stem=found.stem, end=found.end, is_clear=item.is_clear and same, is_text=False)

    def _ends_text(self, position: int) -> bool:
        """Tell whether what stands behind an option's text shows that the text ended there."""
        place = _skip(self.text, position, CLOSERS)
        char = self.text[place : place + 1]
        if self.text[position - 1].isdigit() and _OPERATION.match(self.text, position):
            return False
        if "}" in self.text[position - 1 : position + 1]:  # \\boxed{9} is
            return True
        if char and char in PUNCTUATION:
            following = self.text[place + 1 : place + 2]
            return not following.isalnum() or is_unspaced(following)
        is_counted = self.text[position - 1 : position].isdigit() and phrases.UNIT.match(self.lowered, position)
        suffix = phrases.SUFFIX.match(self.lowered, place)
        if suffix and suffix.end() > place:  # 大阪です
            return self._ends_text(suffix.end())
        return bool(is_counted) or self._may_end(place)

    def _goes_on(self, position: int) -> bool:
        """Tell whether a connective and another option may follow."""
        place = _skip(self.text, position, CLOSERS)
        connective = phrases.CONNECTIVE.match(self.lowered, place)
        if connective is None or not any(connective.groups()):
            return False
        letter = connective["one_of"] or connective["all_of"]  # "a", "i", "o" are words for "and", "or", or labels
        if letter and self.options.label_set.find(letter):
            return False
        return any(map(self._may_begin_item, _begins(connective)))

    def _may_begin_item(self, position: int) -> bool:
        """Tell whether a label or the beginning of a text stands at `position`."""
        match = self.options.label_set.pattern.match(self.text, position)
        after = self.text[match.end("label") : match.end("label") + 1] if match else ""
        if match and (not after.isalnum() or is_unspaced(after)):
            return True
        place = _skip_space(self.text, position)
        return self.lowered.startswith(self.options.texts, place)

    def names_text(
        self, option: str, longer: Iterable[str], spans: Collection[tuple[int, int]], *, or_denies: bool = False
    ) -> bool:
        """Tell whether an option's text stands as words of its own in `spans`: not in a longer one, or in "not ..."."""
        lowered = self.lowered
        if all(lowered.find(option, *span) < 0 for span in spans):
            return False
        covers = [(text, at) for text in longer for at in range(len(text)) if text.startswith(option, at)]
        for begin, end in spans:
            place = lowered.find(option, begin, end)
            while place >= 0:
                before, after = lowered[max(0, place - 60) : place], lowered[place + len(option) :][:1]
                is_word = not any(char.isalnum() and not is_unspaced(char) for char in (before[-1:], after))
                is_word = is_word and (or_denies or phrases.DENIED.search(before) is None)
                if is_word and not any(at <= place and lowered.startswith(text, place - at) for text, at in covers):
                    return True
                place = lowered.find(option, place + 1, end)
        return False

    def is_line_end(self, position: int) -> bool:
        """Tell whether nothing but decoration follows on the line."""
        return not self.text[position : position + _LOOK_AHEAD].partition("\n")[0].strip(CLOSERS + PUNCTUATION + " ")

    def skip_list_mark(self, position: int) -> int:
        """Return the place behind a list's dash or number, unless the number is itself an option."""
        mark = _LIST_MARK.match(self.text, position)
        return mark.end() if mark and self.find_label(position) is None else position


def _begins(connective: re.Match[str]) -> Iterable[int]:
    """Return where another option may begin: behind a comma or "and", what looks like "maybe" or "y" may be one."""
    words = [word.start() for word in _WORD.finditer(connective[0])]
    inside = [connective.start() + start for start in (words if connective["mark"] else words[1:])]
    return dict.fromkeys((connective.end("mark" if connective["mark"] else 0), *inside, connective.end()))


def _skip(text: str, position: int, chars: str) -> int:
    while position < len(text) and text[position] in chars:
        position += 1
    return position


def _skip_space(text: str, position: int) -> int:
    while position < len(text) and text[position].isspace():
        position += 1
    return position
