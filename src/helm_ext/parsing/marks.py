"""A completion with its options spelled as symbols: where options are named, whatever their labels and texts are.

"The answer is (B) Paris." becomes "the answer is ▮.", where ▮ is one private-use character that stands for an option.
What reads such a text (`claims`, `reader`) knows neither labels nor texts: its patterns are about words alone.
Whether "A" is the label A or a word is told from what follows, by the same rule for every label.
"""

from __future__ import annotations

import re

from helm_ext.parsing import words
from helm_ext.parsing.options import (
    BRACKETS,
    CLOSERS,
    MARKER,
    NOTHING,
    OPENERS,
    PUNCTUATION,
    SPACELESS,
    Options,
    lower,
    peel,
)
from helm_ext.parsing.words import LABEL, SYMBOL, TEXT

NAMED_LABEL, NAMED_TEXT, UNCLEAR, ABOUT_LABEL, LOOSE_TEXT = range(0xF0000, 0xF5000, 0x1000)
"""First characters of the kinds of symbols: a label that is named; an option's text that ends there; a label with
another option's text; a label of which a clause says something ("B is"); a text that a clause goes on behind."""

_MAX_OPTIONS = 0x1000
_MAX_MENTIONS = 400
"""Of one text, at most so many places are symbols, those at the end of a longer one."""

_NUMBER_GOES_ON = re.compile(r"[%^]|[.,:/–-]?\d|-\w")
_NUMBER_BEFORE = re.compile(r"(?:[-–+^/.]|[-–+][$€£¥]|\d[,:])\Z")
_LETTERS = re.compile(
    rf"(?:(?:^|\b(?:(?i:answers?|ans|choices?|options?|choose|select|pick|both)|sind|son|sont|sono)(?: is| are)? ?:?"
    rf"|[:{MARKER}选選为是は])[^\w\n]{{0,6}})((?:[^\W\d_] ){{1,31}}[^\W\d_]|[A-ZΑ-ΩА-Я]{{2,10}}"
    r"|\d{1,2}(?:(?:[ ,+]|,? and )\d{1,2}){1,31}|\d{2,10})"
    r"(?=[^\w\n\U000f0000-\U000f4fff]{0,6}$|です| (?:are|sind|son|sont) )",
    re.MULTILINE,
)
"""Letters or numbers and nothing else on a line or behind an introduction: "AC", "A C", "1,3"."""
_PARTED = re.compile(r",? and |[ ,+]")
_OPERATION = re.compile(rf"\s?[-+*/×÷]\s?(?:[(\d]|{SYMBOL})")
_ENDS = re.compile(
    rf" ?(?:\Z|\n|[|\u2600-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff]|[{PUNCTUATION}]{{1,3}}(?![^\W_{SPACELESS}]))|<"
)
_OPEN, _CLOSE = f"[{re.escape(OPENERS)}]", f"[{re.escape(CLOSERS)}]"
_CLOSES = re.compile(rf"(?:\.(?=[)\]]))?{_CLOSE}{{0,12}}")
_JOINED = re.compile(rf"{words.CONNECTIVE}{_OPEN}{{0,6}}", re.IGNORECASE)
_WORD = re.compile(r"\w+")
_ARTICLE = r"\b(?:the|an?|l[aeo]s?|el|il|i|gli|de[rnm]?|die|das|het|os?) "
_ARTICLES = re.compile(rf"{_ARTICLE}(?={TEXT})")
_OWN_TEXT = re.compile(
    rf"({LABEL})(\s?[.:)=|]{{0,2}}\s{{0,2}}(?:[–—-] {{0,2}})?|[、,–—-]\s?|[的の]|\s?\()({TEXT}|(?<!\w ){LABEL})"
    rf"(?=(\)?[.;!]{{0,2}}(?: ?(?:\n|\Z)|(?<=[.;!]) ))?)\)?"
)
"""A label with a text behind it, and whether its sentence ends there: "B. Paris", "B Paris", "B (Paris)"."""
_OWN_LABEL = re.compile(
    rf"({TEXT})( {{0,2}}\(?(?:(?:[,→–—-]{{1,2}}"
    rf"|[=-]>) {{0,3}})?(?:(?:which|that) is )?(?:(?:i\.e\.|also),? )?\(?(?:(?:option|answer|choice|letter) )?)"
    rf"({LABEL})\)?"
)
"""A text with a label behind it: "Paris (B)", "Paris, option B"."""
_CONCLUDES = re.compile(r"i\.e\.|also")
"""Between a text and its label: what introduces the label, where a sentence ends in it: "It is Paris, i.e. B."."""
_NAME = re.compile(r" [A-Z][a-z]")
_OWN_BEHIND = re.compile(rf"[\s.:)=|–—的の-]{{0,4}}[('\"*]{{0,3}}({_ARTICLE})?({TEXT})", re.IGNORECASE)
_WRITTEN_TOGETHER = re.compile(rf"[^\W_{SPACELESS}]")
_MARKUP = re.compile('[*`"“”„«»]')
_UNDERSCORE = re.compile(r"_+")


class Marks:
    """One completion, in lower case and without accents and markup, in which options are symbols."""

    def __init__(self, options: Options, text: str) -> None:
        self.options = options
        self.source = text if text.isascii() else re.sub(SYMBOL, NOTHING, text)
        self.labels = [*options.folded][:_MAX_OPTIONS]
        self._numbers = {label: number for number, label in enumerate(self.labels)}
        text = self.source.replace(MARKER + "{", MARKER)
        lowered = lower(text)
        texts = self._find_texts(lowered)
        text, lowered = _replace(text, texts), _replace(lowered, texts)
        labels = self._find_labels(text, lowered)
        text, spelled = _replace(text, labels), _replace(lowered, labels)
        if texts:
            lowered = spelled
            spelled = re.sub(TEXT, lambda found: self._tell_text(text, lowered, found), lowered)
        if texts or labels:
            spelled = _OWN_LABEL.sub(self._join, _OWN_TEXT.sub(self._join, _ARTICLES.sub("", spelled)))
        spelled = _MARKUP.sub("", spelled)
        self.text = _UNDERSCORE.sub(" ", spelled) if "_" in spelled else spelled

    def get_label(self, symbol: str) -> str | None:
        """Return the label of the option that a symbol stands for, None for one that is unclear."""
        return None if ord(symbol) == UNCLEAR else self.labels[ord(symbol) % _MAX_OPTIONS]

    def _make_symbol(self, kind: int, label: str | None) -> str:
        number = self._numbers.get(label) if label is not None else None
        return chr(UNCLEAR if number is None else kind + number)

    def _find_texts(self, text: str) -> dict[int, tuple[int, str]]:
        """Return where options' texts begin and end, the longest first, with their symbols."""
        found: dict[int, tuple[int, str]] = {}
        covered = bytearray(len(text))
        for option in self.options.texts:
            start = text.find(option)
            while start >= 0 and len(found) < _MAX_MENTIONS:
                end = start + len(option)
                if not covered[start] and not covered[end - 1] and _stands_alone(text, start, end):
                    found[start] = end, self._make_symbol(LOOSE_TEXT, self.options.by_text[option])
                    covered[start:end] = b"\1" * len(option)
                start = text.find(option, end)
        return found

    def _find_labels(self, text: str, lowered: str) -> dict[int, tuple[int, str]]:
        """Return where labels begin and end, with their symbols, from the last to the first: "A and C" names two."""
        label_set = self.options.label_set
        found: dict[int, tuple[int, str]] = {}
        for run in _LETTERS.finditer(text):
            letters = _PARTED.split(run[1])
            is_parted = len(letters) > 1
            labels = [label_set.by_core.get(letter) or "" for letter in (letters if is_parted else run[1])]
            is_again = len({*labels}) == 1 and is_parted
            if "" not in labels and (
                is_again or (len({*labels}) == len(labels) and (is_parted or labels == sorted(labels)))
            ):
                found[run.start(1)] = run.end(1), ",".join(self._make_symbol(NAMED_LABEL, one) for one in labels)
        for match in reversed([*label_set.pattern.finditer(text)][-_MAX_MENTIONS:]):
            label = label_set.find(match[0])
            is_exact = match[0] in label_set.by_core
            kind = label is not None and self._tell_label(lowered, *match.span(), label, found, is_exact=is_exact)
            if kind:
                found[match.start()] = match.end(), self._make_symbol(kind, label)
        return found

    def _tell_label(
        self, text: str, start: int, end: int, label: str, found: dict[int, tuple[int, str]], *, is_exact: bool
    ) -> int:
        """Return the kind of symbol that a label is there, 0 where it is a word or a part of one."""
        if not _stands_alone(text, start, end, is_label=True):
            return 0
        if _is_suffixed(text, end):
            return NAMED_LABEL
        place = _skip_closers(text, end)
        if words.ABOUT.match(text, place):
            return ABOUT_LABEL
        if _ends(text, place):
            return 0 if words.APPOSITION.match(text, place) else NAMED_LABEL
        if words.VERDICT.match(text, place):
            return ABOUT_LABEL
        if any(char in BRACKETS for char in text[end:place]) and not text[place : place + 1].isalnum():
            return NAMED_LABEL
        own = _OWN_BEHIND.match(text, place)
        is_spelled = is_exact and own is not None and _ends(text, own.end())  # "A Paris" is no article
        has_label = own and own[1] and self.options.label_set.find(own[1].strip())
        if own and not has_label and (is_spelled or self._are_same(label, self.get_label(own[2]))):
            return NAMED_LABEL
        joined = _JOINED.match(text, place)
        if joined is None:
            return 0
        between = [*_WORD.finditer(joined[0])]  # "y" and "maybe" may be labels
        is_text = re.match(TEXT, text[joined.end() : joined.end() + 1]) and not any(
            self.options.label_set.find(word[0]) for word in between
        )
        begins = (
            joined.end(),
            *(joined.start() + word.start() for word in between if joined[0][: word.start()].strip()),
        )
        return NAMED_LABEL if is_text or any(at in found for at in begins) else 0

    def _tell_text(self, source: str, text: str, found: re.Match[str]) -> str:
        """Return the symbol for an option's text: another one where what follows shows that it ended."""
        place = found.end()
        label = self.get_label(found[0])
        is_number = label is not None and self.options.folded[label][-1:].isdigit()
        if is_number and _OPERATION.match(text, place):
            return found[0]
        place = _skip_closers(text, place)
        joined = _JOINED.match(text, place)
        is_joined = text[found.start() - 1 : found.start()] == MARKER or (
            joined is not None and re.match(SYMBOL, text[joined.end() : joined.end() + 1])
        )
        if label is not None and self.options.simplified[label][:1].isupper() and _NAME.match(source, place):
            return self.options.folded[label]  # "Paris Hilton"
        if is_joined or _ends(text, place) or (is_number and words.UNIT.match(text, place)):
            return self._make_symbol(NAMED_TEXT, label)
        return found[0]

    def _are_same(self, one: str | None, other: str | None) -> bool:
        """Tell whether two options have the same text."""
        return one is not None and other is not None and self.options.folded[one] == self.options.folded[other]

    def _join(self, match: re.Match[str]) -> str:
        """Return one symbol for a label and a text that stand together."""
        first, between, second = match.group(1, 2, 3)
        label, other = self.get_label(first), self.get_label(second)
        is_label_first = re.match(LABEL, first) is not None
        if is_label_first and re.match(LABEL, second):  # "C. B", where B is the text of C
            if match[4] is None:
                return match[0]
            other = self.options.by_text.get(lower(peel(other or "")), other)
        if self._are_same(label, other):
            if ord(second) >= LOOSE_TEXT:
                return match[0]
            symbol = self._make_symbol(NAMED_TEXT, label if is_label_first else other)
            before = match.string[max(0, match.start() - 60) : match.start()]
            is_said = words.PREDICATE.search(before) and not words.NEGATION.search(before)
            concludes = _CONCLUDES.search(between) and words.ENDED.match(match.string, match.end())
            return between + symbol if is_said and concludes else symbol
        goes_on = "\n" in between or between.strip() in {",", "、", ", also"} or (is_label_first and match[4] is None)
        return match[0] if goes_on else chr(UNCLEAR)


def _stands_alone(text: str, start: int, end: int, *, is_label: bool = False) -> bool:
    """Tell whether what stands there is no part of a longer word or number."""
    before, after = text[max(0, start - 2) : start], text[end : end + 1]
    if _WRITTEN_TOGETHER.match(before[-1:]) or _WRITTEN_TOGETHER.match(after):
        return False
    is_digit_first, is_digit_last = text[start] in "0123456789.$€£¥", text[end - 1].isdigit()
    goes_on = is_digit_last and _NUMBER_GOES_ON.match(text, end) and not (is_label and after == "/")
    return not goes_on and not (
        is_digit_first and _NUMBER_BEFORE.search(before) and not (is_label and before[-1] == "/")
    )


def _skip_closers(text: str, place: int) -> int:
    return _CLOSES.match(text, place).end()  # type: ignore[union-attr]


def _ends(text: str, place: int) -> bool:
    """Tell whether what stands there shows that the option before it is named, and nothing goes on with it."""
    return bool(_is_suffixed(text, place) or _ENDS.match(text, place) or words.CONTINUATION.match(text, place))


def _is_suffixed(text: str, place: int) -> bool:
    suffix = words.SUFFIX.match(text, place)
    return suffix is not None and suffix.end() > place and not text[suffix.end() : suffix.end() + 1].isalnum()


def _replace(text: str, found: dict[int, tuple[int, str]]) -> str:
    """Return the text with the symbols in their places, without what brackets and quotes stand around them."""
    pieces: list[str] = []
    place = 0
    for start, (end, symbol) in sorted(found.items()):
        before = text[place:start].rstrip(OPENERS)
        is_word = place + len(before) < start and before[-1:].isalnum()  # `answer("B")`
        pieces += before, " " if is_word else "", symbol
        place = _skip_closers(text, end)
    return "".join([*pieces, text[place:]])
