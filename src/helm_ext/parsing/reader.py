"""Which options a completion means, from what it states where. The rules are in `helm_ext.parsing.labels`."""

from __future__ import annotations

import re

from helm_ext.parsing import phrases
from helm_ext.parsing.checklists import read_checklist
from helm_ext.parsing.mentions import UNCLEAR, Mentions, Named
from helm_ext.parsing.options import Options
from helm_ext.parsing.quantities import spell_as_options
from helm_ext.parsing.ratings import read_ratings
from helm_ext.parsing.sentences import read_sentence
from helm_ext.parsing.spelling import CLOSERS, PUNCTUATION, find_lines, peel
from helm_ext.parsing.statements import Rank, Statement, find_statements, raise_corrections

__all__ = ["read_options"]

_MAX_LETTERS = 32

_SHORT = 40
"""A text with fewer characters besides an option's has room for an answer alone."""


def read_options(options: Options, text: str, *, several: bool, is_cut_off: bool = False) -> Named:
    """Return the labels of the options that a simplified completion means: none, one, or several.

    `several`: more than one option may be right, so that what declares one after the other ("A is correct. C is
    correct.") adds up. `is_cut_off`: the text stops in the middle, so that only what it states or is counts.
    """
    mentions = Mentions(options, spell_as_options(text, options.simplified))
    text = mentions.text
    whole = _read_whole(mentions, text)
    checklist = None if whole and len(whole) == 1 else read_checklist(mentions) or read_ratings(mentions)
    if whole is not None and checklist is None:
        return whole
    lines = find_lines(text)
    statements = find_statements(mentions)
    first, last = _read_end_lines(mentions, lines)
    statements = [*first, *statements, *last]
    if checklist:
        start, end, right = checklist
        statements = [s for s in statements if not start <= max(s.place, lines[0][0]) < end]
        rank = Rank.STATED if right else Rank.DECLARED
        statements = sorted([*statements, Statement(start, end, rank, right)])
    statements = raise_corrections(text, statements)
    firm = [statement for statement in statements if statement.rank is not Rank.SUGGESTED or statement.is_denied]
    named = _weigh(firm, several=several)
    if named is None:
        named = _read_lead(mentions, is_cut_off=is_cut_off)
        # "Wait, not B", but not "Paris is not only ...".
        denied = [statement for statement in firm if statement.is_denied and statement.rank >= Rank.STATED]
        named = UNCLEAR if named and any(named & statement.named for statement in denied) else named
    if named is None and is_cut_off:
        return UNCLEAR
    if named is None and len(firm) < len(statements):
        named = _weigh(statements, several=several)
    if named is None and all(statement.is_denied and statement.named for statement in statements):
        named = read_sentence(mentions)
        named = UNCLEAR if named and any(named & statement.named for statement in statements) else named
    return UNCLEAR if named is None else named


def _read_whole(mentions: Mentions, text: str) -> Named | None:
    """Return the options that the text is nothing but."""
    alone = mentions.options.read_alone(text, margin=32)
    if alone is not None:
        return frozenset({alone})
    return _read_piece(mentions, 0, len(text)) or _read_letters(mentions.options, peel(text))


def _read_piece(mentions: Mentions, start: int, end: int) -> Named | None:
    """Return the options that the text from `start` to `end` is nothing but."""
    read = mentions.read_items(mentions.skip_list_mark(start), end)
    if read is None:
        both = phrases.LEAD.match(mentions.text, start, end)
        read = mentions.read_items(both.end(), end) if both and both[0].strip().lower() == "both" else None
    rest = "" if read is None else mentions.text[read[1].end : end].strip(_DECORATION)
    return read[0] if read and not rest else None


_DECORATION = CLOSERS + PUNCTUATION + " \n"


def _read_letters(options: Options, text: str) -> Named | None:
    """Read "AC" and "A C", different labels of one letter; and "B B", one label again and again, and nothing else."""
    if len(text) > _MAX_LETTERS:
        return None
    letters = text.split() if " " in text or "\n" in text else list(text)
    named = [options.label_set.by_core.get(letter) for letter in letters if len(letter) == 1 and letter.isalpha()]
    labels = frozenset(label for label in named if label is not None)
    is_again = {*named} == labels and len(labels) == 1 and len(named) == len(letters) and " " in text
    return labels if is_again or len(labels) == len(letters) > 1 else None


def _read_end_lines(mentions: Mentions, lines: list[tuple[int, int]]) -> tuple[list[Statement], list[Statement]]:
    """Return what the first and the last line state that are nothing but options, unless they are part of a list."""
    if len(lines) < 2:
        return [], []
    first, last = (_read_line(mentions, *line) for line in (lines[0], lines[-1]))
    second, before_last = (
        _read_line(mentions, *line) or _read_led_line(mentions, *line) for line in (lines[1], lines[-2])
    )
    firsts = [] if first is None or second not in {None, first} else [Statement(-1, lines[0][1], Rank.CONCLUDED, first)]
    if last is None:
        last = _read_led_line(mentions, *lines[-1])
    if last is None:
        return firsts, []
    if before_last not in {None, last}:  # a list of options, or two answers
        return (firsts, []) if len(lines) > 2 else ([Statement(-1, lines[0][1], Rank.CONCLUDED, UNCLEAR)], [])
    return firsts, [Statement(lines[-1][0], lines[-1][1], Rank.STATED, last)]


def _read_line(mentions: Mentions, start: int, end: int) -> Named | None:
    line = mentions.text[start:end]
    alone = mentions.options.read_alone(line)
    if alone is not None:
        return frozenset({alone})
    return _read_piece(mentions, start, end) or _read_letters(mentions.options, peel(line))


def _read_led_line(mentions: Mentions, start: int, end: int) -> Named | None:
    """Read a line of words such as "So" or "Option" and an answer."""
    lead = phrases.LEAD.match(mentions.text, start, end)
    if lead is None or not any(char.isalpha() for char in lead[0]):
        return None
    return _read_piece(mentions, lead.end(), end)


def _weigh(statements: list[Statement], *, several: bool) -> Named | None:
    """Return what the statements say together; UNCLEAR where they disagree, None where they say nothing.

    A statement that follows another one and says something else is right if it weighs more (`Rank`). A denial takes
    back what was said before it.
    """
    current: Statement | None = None
    is_taken_back = False
    for statement in statements:
        if statement.is_denied:
            if current is not None and statement.named & current.named:
                current, is_taken_back = None, True
        elif current is None or statement.named == current.named:
            rank = statement.rank if current is None else max(statement.rank, current.rank)
            current = statement._replace(rank=rank)
        elif statement.rank > current.rank or statement.rank is Rank.CORRECTED:
            current = statement
        elif statement.rank is Rank.SUGGESTED:
            pass
        elif several and statement.rank is Rank.DECLARED is current.rank:
            current = current._replace(named=current.named | statement.named)
        else:
            current = current._replace(named=UNCLEAR)
    if current is None:
        return UNCLEAR if is_taken_back else None
    return current.named


_STEP = re.compile(r"-?[\d.,]+\s?(?P<operator>[-+*/×÷])\s?[\d(][^\n=]*=")
"""A number that is calculated with, not an answer: "32 - 7 = 25"."""


def _read_lead(mentions: Mentions, *, is_cut_off: bool = False) -> Named | None:
    """Return the options that the completion begins with: "B. Paris is ...", "Option B, because", "Yes, it is".

    Of a long text that was cut off, only with a reason behind: it may have been about to go through the options.
    """
    lead = phrases.LEAD.match(mentions.text)
    read = None
    for place in dict.fromkeys((0, mentions.skip_list_mark(0), lead.end() if lead else 0)):
        read = mentions.read_items(place)
        if read is not None:
            break
    if read is None:
        return None
    named, item = read
    if item.is_asked or phrases.OBJECTION.match(mentions.text, item.stem):
        return None
    step = _STEP.match(mentions.text, item.start)
    if item.is_text and step and step.start("operator") >= item.stem:
        return None
    if (
        is_cut_off
        and len(mentions.text) > mentions.options.longest_text + _SHORT
        and not mentions.is_line_end(item.end)
    ):
        return named if phrases.CONTINUATION.match(mentions.text, item.stem) else None
    corrected = phrases.CORRECTION.search(mentions.text, item.end)
    if corrected and _names_other(mentions, corrected.end(), named):  # "False. Actually, it is true."
        return UNCLEAR
    following = mentions.find_label(item.end)
    if following and following.is_done and following.label not in named:  # "A) B) C) D)"
        return UNCLEAR
    return None if _lists_options(mentions, item.end, named) else named


def _names_other(mentions: Mentions, position: int, named: Named) -> bool:
    """Tell whether another option's text stands behind `position`."""
    own = [text for text, label in mentions.options.by_text.items() if label in named]
    return any(
        mentions.names_text(text, own, [(position, len(mentions.text))])
        for text, label in mentions.options.by_text.items()
        if label not in named
    )


def _lists_options(mentions: Mentions, position: int, named: Named) -> bool:
    """Tell whether another option leads a later line, or is listed on the same line: "A. Paris B. London"."""
    options, text = mentions.options, mentions.text
    line = " ".join(mentions.lowered[position:].partition("\n")[0].split())
    for core, label in options.label_set.by_core.items():
        if label and label not in named and options.folded[label]:
            own = options.folded[label]
            if any(f"{core.casefold()}{mark}{own}" in line for mark in (". ", ") ", ": ", ".", ")", " - ")):
                return True
    place = text.find("\n", position)
    while place >= 0:
        lead = phrases.LEAD.match(text, place + 1)
        found = mentions.find_label(lead.end() if lead else place + 1)
        if found and found.is_done and found.label not in named:
            return True
        place = text.find("\n", place + 1)
    return False
