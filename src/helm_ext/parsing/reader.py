"""Which options a completion means, from what it states where. The rules are in `helm_ext.parsing.labels`."""

from __future__ import annotations

import re

from helm_ext.parsing import phrases
from helm_ext.parsing.checklists import read_checklist
from helm_ext.parsing.decoration import CLOSERS, PUNCTUATION, find_lines, peel
from helm_ext.parsing.mentions import UNCLEAR, Mentions, Named
from helm_ext.parsing.options import Options
from helm_ext.parsing.quantities import spell_as_options
from helm_ext.parsing.ratings import read_ratings
from helm_ext.parsing.sentences import read_sentence
from helm_ext.parsing.statements import Rank, Statement, find_statements, raise_corrections

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
    for number in options.unsigned:
        if re.search(rf"(?<![\d)] )(?<!\b\w )[-–] {re.escape(number)}(?!\w|\.\d)", text):
            return UNCLEAR
    whole = _read_line(mentions, 0, len(text))
    rated = None if whole and len(whole) == 1 else read_checklist(mentions) or read_ratings(mentions)
    if whole is not None and rated is None:
        return whole
    statements = [*_read_end_lines(mentions, find_lines(text)), *find_statements(mentions)]
    if rated:
        start, end, right = rated
        statements = [one for one in statements if not start <= max(one.place, 0) < end]
        statements.append(Statement(start, end, Rank.STATED, right))
    statements = raise_corrections(text, sorted(statements))
    firm = [one for one in statements if one.rank is not Rank.SUGGESTED or one.is_denied]
    named = _weigh(firm, several=several)
    if named is None:  # "Wait, not B", but not "Paris is not only ...".
        denied = [one.named for one in firm if one.is_denied and one.rank >= Rank.STATED]
        named = _unless(denied, _read_lead(mentions, is_cut_off=is_cut_off))
    if named is None and not is_cut_off:
        named = _weigh(statements, several=several)
        if named is None and all(one.is_denied and one.named for one in statements):
            named = _unless([one.named for one in statements], read_sentence(mentions))
    return UNCLEAR if named is None else named


def _unless(denied: list[Named], named: Named | None) -> Named | None:
    return UNCLEAR if named and any(named & one for one in denied) else named


def _read_line(mentions: Mentions, start: int, end: int) -> Named | None:
    """Return the options that the text from `start` to `end` is nothing but."""
    line = mentions.text[start:end]
    alone = mentions.options.read_alone(line)
    if alone is not None:
        return frozenset({alone})
    return _read_piece(mentions, mentions.skip_list_mark(start), end) or _read_letters(mentions.options, peel(line))


def _read_piece(mentions: Mentions, start: int, end: int) -> Named | None:
    """Read options, with "both", "so", "option" and the like in front of them, and nothing else."""
    lead = phrases.LEAD.match(mentions.text, start, end)
    for place in dict.fromkeys((start, lead.end() if lead else start)):
        read = mentions.read_items(place, end)
        if read and read[1].is_asked and place > start:
            return None
        if read and not mentions.text[read[1].end : end].strip(CLOSERS + PUNCTUATION + " \n"):
            return read[0]
    return None


def _read_letters(options: Options, text: str) -> Named | None:
    """Read "AC" and "A C", different labels of one letter; and "B B", one label again and again, and nothing else."""
    if len(text) > _MAX_LETTERS:
        return None
    letters = text.split() if " " in text or "\n" in text else list(text)
    named = [options.label_set.by_core.get(letter) for letter in letters if len(letter) == 1]
    labels = frozenset(label for label in named if label is not None)
    is_again = len(labels) == 1 and " " in text
    is_all = None not in named and len(named) == len(letters) > 1
    return labels if is_all and (is_again or len(labels) == len(letters)) else None


def _read_end_lines(mentions: Mentions, lines: list[tuple[int, int]]) -> list[Statement]:
    """Return what the first and the last line state that are nothing but options, unless they are part of a list."""
    if len(lines) < 2:
        return []
    first, second, before_last, last = (_read_line(mentions, *lines[n]) for n in (0, 1, -2, -1))
    found = []
    if first is not None and second in {None, first}:
        found.append(Statement(0, lines[0][1], Rank.CONCLUDED, first))
    if last is not None and before_last in {None, last}:
        found.append(Statement(*lines[-1], Rank.STATED, last))
    elif last is not None and len(lines) == 2:  # two answers
        found.append(Statement(0, lines[0][1], Rank.CONCLUDED, UNCLEAR))
    return found


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


def _read_lead(mentions: Mentions, *, is_cut_off: bool = False) -> Named | None:
    """Return the options that the completion begins with: "B. Paris is ...", "Option B, because", "Yes, it is".

    Of a long text that was cut off, only with a reason behind: it may have been about to go through the options.
    """
    lead = phrases.LEAD.match(mentions.text)
    places = dict.fromkeys((0, mentions.skip_list_mark(0), lead.end() if lead else 0))
    read = next(filter(None, map(mentions.read_items, places)), None)
    if read is None:
        return None
    named, item = read
    if item.is_asked or phrases.OBJECTION.match(mentions.text, item.stem):
        return None
    is_long = len(mentions.text) > mentions.options.longest_text + _SHORT
    if is_cut_off and is_long and not mentions.is_line_end(item.end):
        return named if phrases.CONTINUATION.match(mentions.text, item.stem) else None
    corrected = phrases.CORRECTION.search(mentions.text, item.end)
    if corrected and _names_other(mentions, corrected.end(), named):  # "False. Actually, it is true."
        return UNCLEAR
    return None if _lists_options(mentions, item.end, named) else named


def _names_other(mentions: Mentions, position: int, named: Named) -> bool:
    """Tell whether another option's text stands behind `position`, or a sentence ends in another label."""
    for head in phrases.PREDICATE.finditer(mentions.text, position):
        read = mentions.read_items(head.end())
        if read and not read[0] <= named and not phrases.NEGATION.search(mentions.text, position, head.end()):
            return True
    own = [text for text, label in mentions.options.by_text.items() if label in named]
    others = [text for text, label in mentions.options.by_text.items() if label not in named]
    return any(mentions.names_text(text, own, [(position, len(mentions.text))]) for text in others)


def _lists_options(mentions: Mentions, position: int, named: Named) -> bool:
    """Tell whether another option leads a later line, or is listed on the same line: "A. Paris B. London"."""
    options, text = mentions.options, mentions.text
    line = " ".join(mentions.lowered[position:].partition("\n")[0].split())
    for core, label in options.label_set.by_folded_core.items():
        own = options.folded[label] if label else ""
        if own and label not in named and any(f"{core}{mark}{own}" in line for mark in _LIST_MARKS):
            return True
    following = mentions.find_label(position)  # "A) B) C) D)"
    leads = (phrases.LEAD.match(text, start) for start, _ in find_lines(text) if start > position)
    others = [following, *(mentions.find_label(lead.end()) for lead in leads if lead)]
    return any(other and other.is_done and other.label not in named for other in others)


_LIST_MARKS = (". ", ") ", ": ", ".", ")", " - ")
