"""Which options a completion means, from what it states where. The rules are in `helm_ext.parsing.labels`.

Also here: completions that go through the options, and mark each as right or wrong or rate it.
"""

from __future__ import annotations

import re
from itertools import islice

from helm_ext.parsing import phrases
from helm_ext.parsing.mentions import UNCLEAR, Mentions, Named
from helm_ext.parsing.options import CLOSERS, PUNCTUATION, Options, find_lines, fold, peel, spell_as_options
from helm_ext.parsing.sentences import read_sentence
from helm_ext.parsing.statements import Rank, Statement, find_statements, raise_corrections

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
    *_, before, (begin, end) = [(0, 0), (0, 0), *mentions.sentences]
    if begin and not text.endswith("?") and not any(one.end > begin for one in statements):  # "Edit: I erred. C"
        said = _read_line(mentions, begin, end)
        is_listed = options.label_set.find(peel((text[slice(*before)].split() or [""])[-1]))  # "A. Rome B. Paris"
        if said and not is_listed and _read_line(mentions, *before) is None:
            statements.append(Statement(begin, end, Rank.STATED, said))
    if rated:
        start, end, right = rated
        statements = [one for one in statements if not start <= max(one.place, 0) < end]
        statements.append(Statement(start, end, Rank.STATED, right))
    statements = raise_corrections(mentions.lowered, sorted(statements))
    firm = [one for one in statements if one.rank is not Rank.SUGGESTED or one.is_denied]
    named = _weigh(firm, several=several)
    if named is None:  # "Wait, not B", but not "Paris is not only ...".
        denied = [one.named for one in firm if one.is_denied and one.rank >= Rank.STATED]
        named = _unless(denied, _read_lead(mentions, is_cut_off=is_cut_off))
    if named is None and not is_cut_off:
        named = _weigh(statements, several=several)
        if named is None and all(one.is_denied and one.named for one in statements):
            named = _unless([one.named for one in statements], read_sentence(mentions))
    if named is None:
        counted = _spell_places(text, options)
        if counted == text or any(mentions.find_items(0, len(text))):
            return UNCLEAR
        return read_options(options, counted, several=several, is_cut_off=is_cut_off)
    rest = [*options.folded.keys() - named]  # "A, B and C are correct", and D is "all of the above"
    is_all = not several and len(named) > 1 and len(rest) == 1 and _ALL.match(options.folded[rest[0]])
    return frozenset(rest) if is_all else named


_PLACES = re.compile(
    r"\b(?:(?:option|choice|answer|选项|選択肢)\s?#?(?P<number>\d)\b|(?:the|die|der|la|le|el)\s(?:(?P<first>first|erste|premi[eè]re|primera)"
    r"|(?P<second>second|zweite|deuxième|seconde|segunda)|(?P<third>third|dritte|troisième|tercera)|(?P<fourth>fourth|vierte|quatrième|cuarta)"
    r"|(?P<fifth>fifth)|(?P<last>last|letzte|dernière|última))(?:\s(?:one|option|answer|statement|möglichkeit|antwort|aussage|réponse"
    r"|proposition|opción|respuesta|alternativa)\b|\sof\s(?:these|them|those)\b|(?=[.:,])))",
    re.IGNORECASE,
)


def _spell_places(text: str, options: Options) -> str:
    """Return the text with "option B" for "the second option" and "option 2"."""
    orders = [*_PLACES.groupindex][1:]
    are_numbers = any(map(str.isdigit, options.folded))
    labels = [*options.folded]

    def spell(match: re.Match[str]) -> str:
        if match["number"] and (are_numbers or match["number"] in options.by_text):
            return match[0]
        place = int(match["number"]) - 1 if match["number"] else orders.index(match.lastgroup or "")
        place = len(labels) - 1 if match.lastgroup == "last" else place
        return f"option {labels[place]}" if 0 <= place < len(labels) else match[0]

    return _PLACES.sub(spell, text)


_ALL = re.compile(
    r"(?:both|all)\s(?:(?:of\s)?(?:the\s)?(?:above|these|them)|(?:are\s)?correct)|以上[都皆全]|todas\sl|alle\b|tout"
)


def _unless(denied: list[Named], named: Named | None) -> Named | None:
    return UNCLEAR if named and any(named & one for one in denied) else named


def _read_line(mentions: Mentions, start: int, end: int) -> Named | None:
    """Return the options that the text from `start` to `end` is nothing but."""
    line = mentions.text[start:end]
    alone = mentions.options.read_alone(line)
    if alone is not None:
        return frozenset({alone})
    return _read_piece(mentions, mentions.skip_list_mark(start), end) or mentions.read_letters(peel(line))


def _read_piece(mentions: Mentions, start: int, end: int) -> Named | None:
    """Read options, with "both", "so", "option" and the like in front of them, and nothing else."""
    lead = phrases.LEAD.match(mentions.lowered, start, end)
    for place in dict.fromkeys((start, lead.end() if lead else start)):
        read = mentions.read_items(place, end)
        if read and read[1].is_asked and place > start:
            return None
        if read and not mentions.text[read[1].end : end].strip(CLOSERS + PUNCTUATION + " \n"):
            return read[0]
    return None


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
    lead = phrases.LEAD.match(mentions.lowered)
    places = dict.fromkeys((0, mentions.skip_list_mark(0), lead.end() if lead else 0))
    read = next(filter(None, map(mentions.read_items, places)), None)
    if read is None:
        return None
    named, item = read
    if item.is_asked or phrases.OBJECTION.match(mentions.lowered, item.stem):
        return None
    is_long = len(mentions.text) > mentions.options.longest_text + _SHORT
    if is_cut_off and is_long and not phrases.CONTINUATION.match(mentions.lowered, item.stem):
        return named if mentions.is_line_end(item.end) else None
    corrected = phrases.CORRECTION.search(mentions.lowered, item.end)
    others = mentions.find_items(corrected.end(), len(mentions.text)) if corrected else ()
    if any(one.label not in named and not mentions.is_denied(one) for one in others):  # "False. Actually, it is true."
        return UNCLEAR
    return None if _lists_options(mentions, item.end, named) else named


def _lists_options(mentions: Mentions, position: int, named: Named) -> bool:
    """Tell whether another option leads a later line, or is listed on the same line: "A. Paris B. London"."""
    text = mentions.text
    own = mentions.options.folded
    line = mentions.find_items(position, position + len(text[position:].partition("\n")[0]))
    if any(own[one.label] and one.stem - one.start > len(own[one.label]) for one in line if one.label not in named):
        return True
    following = mentions.find_label(position)  # "A) B) C) D)"
    starts = (mentions.skip_list_mark(start) for start, _ in find_lines(text) if start > position)
    leads = (phrases.LEAD.match(mentions.lowered, start) for start in starts)
    others = [following, *(mentions.read_item(lead.end()) for lead in leads if lead)]
    return any(other and other.is_done and other.label not in named for other in others)


# ---- Options that are marked as right or wrong one by one: "A ❌ B ✅", "C. Berlin (correct)"

_GOOD = "✅✔✓☑🟢⭕○◯"
_BAD = "❌✗✘✖❎×🔴☒"
_MARKS = re.compile(f"[{_GOOD}{_BAD}]|~~")

_BEGIN = re.compile(rf"[\s>*_•#+-]{{0,8}}(?:\[(?P<box>[xX✓✔ ]?)\])?[\s*_~{_GOOD}{_BAD}:-]{{0,8}}")
"""Before the option of a line: a bullet, a box to tick, a mark."""

_BOLD = re.compile(r"\W{0,8}\*\*")
_SAYS = (
    r"[\s:;,.(\[*_=←<–—-]{0,10}(?:(?:this|that|it|which)\s)?(?:(?:is|are|was|est|es|é|è|ist|sind|это)\s)?(?:(?:the|das"
    r"|la|el|le|il)\s)?"
)
_IS_RIGHT = phrases.compile_words(rf"(?:^|[,;:–—.←]){_SAYS}{phrases.RIGHT}")
_ENDS_RIGHT = phrases.compile_words(
    rf"(?:[(\[]|←|<[-=]{{1,3}}|⇐)\s{{0,2}}(?:the\s|this\s)?(?:{phrases.RIGHT}|one\b)[^()\[\]]{{0,20}}\W{{0,5}}$"
)

_MIN_OPTIONS = 3
_LONGEST_REMARK = 400
"""At most this many characters of a line are looked at."""


def read_checklist(mentions: Mentions) -> tuple[int, int, Named] | None:
    """Return where a list of the options begins and ends, and those that it marks as right; None where it marks none.

    The list names at least three options, or all of them, each once. The one that is not marked is right where all the
    others are marked as wrong. UNCLEAR where marks stand at all of them, and say the same of each.
    """
    verdicts: dict[str, bool | None] = {}
    bold: set[str] = set()
    start = end = -1
    options = mentions.options.folded
    lines = find_lines(mentions.text)
    for segment_start, segment_end in lines if len(lines) >= min(_MIN_OPTIONS, len(options)) else ():
        read = _read_segment(mentions, segment_start, segment_end)
        if read is None:
            continue
        label, verdict = read
        if label in verdicts:
            return None
        verdicts[label] = verdict
        bold |= {label} if _BOLD.match(mentions.text, segment_start) else set()
        start, end = segment_start if start < 0 else start, segment_end
    if len(verdicts) < min(_MIN_OPTIONS, len(options)):
        return None
    right = frozenset(label for label, verdict in verdicts.items() if verdict)
    if len(bold) == 1 and not any(verdicts.values()):
        right = frozenset(bold)
    if not right and len(verdicts) == len(options):
        right = frozenset(label for label, verdict in verdicts.items() if verdict is None)
        right = right if len(right) == 1 else frozenset()
    if right and len(right) < len(verdicts):
        return start, end, right
    return (start, end, UNCLEAR) if None not in verdicts.values() and _MARKS.search(mentions.text) else None


def _read_segment(mentions: Mentions, start: int, end: int) -> tuple[str, bool | None] | None:
    """Return the option that the segment begins with, and whether it is marked as right, as wrong, or not at all."""
    end = min(end, start + _LONGEST_REMARK)
    begin = _BEGIN.match(mentions.text, start, end)
    if begin is None:
        return None
    lead = phrases.LEAD.match(mentions.lowered, begin.end(), end)
    item = mentions.read_item(begin.end()) or (mentions.read_item(lead.end()) if lead else None)
    if item is None or not item.label or item.end > end:
        return None
    text = re.escape(mentions.options.folded[item.label])
    own = re.compile(rf"[\s*_\"'(]{{0,4}}{text}[)\"'*_]{{0,4}}").match(mentions.lowered, item.end, end)
    behind = own.end() if own else item.end
    whole, rest = mentions.lowered[start:end], mentions.lowered[behind:end]
    marks = {mark[0] in _GOOD for mark in _MARKS.finditer(whole)}
    if len(marks) == 1:
        return item.label, marks.pop()
    if begin["box"] is not None:
        return item.label, bool(begin["box"].strip())
    if mentions.find_text(behind) is not None:  # "A - No", where No is an option
        return item.label, None
    if _IS_RIGHT.search(rest) or _ENDS_RIGHT.search(rest[-80:]):
        return item.label, True
    return item.label, False if phrases.NEGATION.search(rest) else None


# ---- Options that are rated one by one: `{"A": 0.05, "B": 0.85}`, "A: 10%, B: 75%", "A. Incorrect B. Correct"

_ENDS = r"[^\S\n]{0,2}(?:[,;)\]}|*\"'、。\n]|\.(?:\s|$)|$)"
_RATING = phrases.compile_words(
    rf"(?<![\w.,])(?P<number>\d{{1,3}}(?:[.,]\d{{1,6}})?|\.\d{{1,6}})(?:\s?(?P<unit>%|/(?:5|10|100)\b)"
    rf"(?={_ENDS}|\s(?:chance|likel|prob|conf|sure|certain|for\b|and\b)|[^\S\n]{{1,2}}\S{{1,3}}\b)|(?={_ENDS}))"
    rf"|(?P<good>[{_GOOD}])|(?P<bad>[{_BAD}])|(?<!\w)(?:(?P<right>{phrases.RIGHT})|(?P<wrong>{phrases.WRONG}))"
)
"""A number that nothing is counted by ("0.4", "40%", "4/10"; not "40% of them", "5.3 million"), a mark, a verdict."""

_BETWEEN = CLOSERS + "\t.:=(|–—~≈→>-"
"""Between an option and its rating, beside spaces."""

_HINT = phrases.compile_words(
    rf"\W(?!(?<= )[^\W\d_])(?:(?<=[{_GOOD}{_BAD}])|(?:(?<=[{re.escape(_BETWEEN)}])|(?<=[{re.escape(_BETWEEN)}] ))\.?\d"
    rf"|(?<!,)[\d.,]{{1,10}}\s?[%/]|(?<![\s,;]) ?(?=[^\W\d_])(?:{phrases.RIGHT}|{phrases.WRONG}))"
)
"""What every rating has: cheap to look for, as it begins with one set of characters."""

_TRUTH = re.compile(r"(?!corr|incorr|right|wrong|richtig)[^\W_]")
"""Words that say whether a statement holds, such as "true": verdicts only where all options have one."""

_MAX_RATINGS = 200


def read_ratings(mentions: Mentions) -> tuple[int, int, Named] | None:
    """Return where the ratings begin and end, and the option that is rated best: those that are called right.

    UNCLEAR where the largest number stands twice, or numbers may count something (of some of the options). None where
    the text gives no ratings: fewer than two options have one, one has two, options are numbers themselves.
    """
    options, lowered = mentions.options, mentions.lowered
    if len([*islice(_HINT.finditer(lowered), 2)]) < 2:
        return None
    ratings: dict[str, float] = {}
    units: set[str] = set()
    start = end = -1
    for match in islice(_RATING.finditer(lowered), _MAX_RATINGS):
        before = lowered[max(0, match.start() - options.longest_text - 40) : match.start()]
        named = before.rstrip(_BETWEEN + " ")
        needs_no_sign = match["unit"] or match["good"] or match["bad"]
        if before == named or not (needs_no_sign or before[len(named) :].strip()):
            continue
        ending = max((e for e in options.endings if named.endswith(e)), key=len, default="")
        if not ending or named[: -len(ending)][-1:].isalnum():
            continue
        label = options.label_set.by_folded_core.get(ending) or options.by_text.get(ending)
        rating = (
            float(match["number"].replace(",", "."))
            if match["number"]
            else float(bool(match["good"] or match["right"]))
        )
        if label is None or fold(match[0]) in options.by_text or ratings.get(label, rating) != rating:
            return None
        ratings[label] = rating
        units.add(match["unit"] or "" if match["number"] else "truth" if _TRUTH.match(match[0]) else "verdict")
        start, end = match.start() - len(before) + len(named) - len(ending) if start < 0 else start, match.end()
    if len(ratings) < 2 or len(units) != 1:
        return None
    best = max(ratings.values())
    is_part = len(ratings) < len(options.folded)
    if best == 0 and len(ratings) == len(options.folded) - 1:  # all others are wrong
        return start, end, frozenset(options.folded.keys() - ratings)
    if is_part and (units == {"truth"} or (units == {""} and best > 1)):
        return start, end, UNCLEAR
    named_best = frozenset(label for label, rating in ratings.items() if rating == best > 0)
    return start, end, named_best if len(named_best) == 1 or units & {"truth", "verdict"} else UNCLEAR
