"""Which options a completion means, from what it claims where. The rules are in `helm_ext.parsing.labels`.

Also here: completions that go through the options, and mark each as right or wrong or rate it.
"""

from __future__ import annotations

import re
from itertools import islice

from helm_ext.parsing import words
from helm_ext.parsing.claims import UNCLEAR, Claim, Named, Rank, Reading, raise_corrections
from helm_ext.parsing.marks import Marks
from helm_ext.parsing.options import Options, spell_as_options
from helm_ext.parsing.sentences import read_sentence

_SHORT = 40
"""A text with fewer characters besides an option's has room for an answer alone."""


def read_options(options: Options, text: str, *, several: bool, is_cut_off: bool = False) -> Named:
    """Return the labels of the options that a simplified completion means: none, one, or several.

    `several`: more than one option may be right, so that what declares one after the other ("A is correct. C is
    correct.") adds up. `is_cut_off`: the text stops in the middle, so that only what it claims or is counts.
    """
    text = spell_as_options(text, options.simplified)
    for number in options.unsigned:
        if re.search(rf"(?<![\d)] )(?<!\b\w )[-–] {re.escape(number)}(?!\w|\.\d)", text):
            return UNCLEAR
    reading = Reading(Marks(options, text))
    whole = reading.read_alone(0, len(reading.text))
    rated = None if whole and len(whole) == 1 else read_list(reading, text)
    if whole is not None and rated is None:
        return whole
    claims = sorted([*_read_end_lines(reading), *reading.find_claims()])
    *_, before, (begin, end) = [(0, 0), (0, 0), *reading.sentences]
    if begin and not reading.text.endswith("?") and not any(one.end > begin for one in claims):  # "Edit: I erred. C"
        said = reading.read_alone(begin, end)
        is_joined = any(one.start < begin < one.end for one in reading.groups)  # "After some thought: A; C"
        eliminated = {label for group in reading.get_groups(*before) for label in group.labels}
        goes_on = _GOES_ON.match(reading.text, begin) and words.ELIMINATING.search(reading.text, *before)
        is_next = goes_on and said and len(eliminated | said) < len(options.folded)  # "Rule out A. Then C."
        if said and not is_joined and not is_next and reading.read_alone(*before) is None:  # "A. Rome B. Paris"
            claims.append(Claim(begin, end, Rank.STATED, said))
    if rated:
        start, end, right = rated
        claims = [one for one in claims if not start <= max(one.place, 0) < end]
        claims.append(Claim(start, end, Rank.STATED if right else Rank.DECLARED, right))
    claims = raise_corrections(reading.text, sorted(claims))
    firm = [one for one in claims if one.rank is not Rank.SUGGESTED or one.is_denied]
    named = _weigh(firm, several=several)
    if named is None:  # "Wait, not B", but not "Paris is not only ...".
        denied = [one.named for one in firm if one.is_denied and one.rank >= Rank.STATED]
        named = _unless(denied, _read_lead(reading, is_cut_off=is_cut_off))
    if named is None and not is_cut_off:
        named = _weigh(claims, several=several)
        if named is None and all(one.is_denied and one.named for one in claims):
            named = _unless([one.named for one in claims], read_sentence(reading))
    if named is None:
        counted = _spell_places(text, options)
        if counted == text or reading.groups:
            return UNCLEAR
        return read_options(options, counted, several=several, is_cut_off=is_cut_off)
    rest = [*options.folded.keys() - named]  # "A, B and C are correct", and D is "all of the above"
    is_all = not several and len(named) > 1 and len(rest) == 1 and _ALL.match(options.folded[rest[0]])
    return frozenset(rest) if is_all else named


_GOES_ON = re.compile(r"\W{0,3}(?:then|next|and)\b(?! (?:the )?answer\b)")
"""At the beginning of a sentence behind one that eliminates an option: another one is, unless it is the last left."""

_PLACES = re.compile(
    r"\b(?:(?:option|choice|answer|选项|選択肢)\s?#?(?P<number>\d)\b|(?:the|die|der|la|le|el)\s(?:(?P<first>first"
    r"|erste|premi[eè]re|primera)"
    r"|(?P<second>second|zweite|deuxième|seconde|segunda)|(?P<third>third|dritte|troisième|tercera)"
    r"|(?P<fourth>fourth|vierte|quatrième|cuarta)"
    r"|(?P<fifth>fifth)|(?P<last>last|letzte|dernière|última))(?:\s(?:one|option|answer|statement|möglichkeit"
    r"|antwort|aussage|réponse"
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


def _read_end_lines(reading: Reading) -> list[Claim]:
    """Return what the first and the last line claim that are nothing but options, unless they are part of a list."""
    lines = [found.span() for found in _LINE.finditer(reading.text)]
    if len(lines) < 2:
        return []
    first, second, before_last, last = (reading.read_alone(*lines[n]) for n in (0, 1, -2, -1))
    found = []
    if first is not None and second in {None, first}:
        found.append(Claim(0, lines[0][1], Rank.CONCLUDED, first))
    if last is not None and before_last in {None, last}:
        found.append(Claim(*lines[-1], Rank.STATED, last))
    elif last is not None and len(lines) == 2:  # two answers
        found.append(Claim(0, lines[0][1], Rank.CONCLUDED, UNCLEAR))
    return found


_LINE = re.compile(r"^.*\S.*$", re.MULTILINE)


def _weigh(claims: list[Claim], *, several: bool) -> Named | None:
    """Return what the claims say together; UNCLEAR where they disagree, None where they say nothing.

    A claim that follows another one and says something else is right if it weighs more (`Rank`). A denial takes back
    what was said before it.
    """
    current: Claim | None = None
    is_taken_back = False
    for claim in claims:
        if claim.is_denied:
            if current is not None and claim.named & current.named:
                current, is_taken_back = None, True
        elif current is None or claim.named == current.named:
            rank = claim.rank if current is None else max(claim.rank, current.rank)
            current = claim._replace(rank=rank)
        elif claim.rank > current.rank or claim.rank is Rank.CORRECTED:
            current = claim
        elif claim.rank is Rank.SUGGESTED:
            pass
        elif several and claim.rank is Rank.DECLARED is current.rank:
            current = current._replace(named=current.named | claim.named)
        else:
            current = current._replace(named=UNCLEAR)
    if current is None:
        return UNCLEAR if is_taken_back else None
    return current.named


def _read_lead(reading: Reading, *, is_cut_off: bool = False) -> Named | None:
    """Return the options that the completion begins with: "B. Paris is ...", "Option B, because", "Yes, it is".

    Of a long text that was cut off, only with a reason behind: it may have been about to go through the options.
    """
    text = reading.text
    begin = words.LEAD.match(text).end()  # type: ignore[union-attr]
    group = reading.groups[0] if reading.groups else None
    if group is None or group.start != begin or not group.is_named:
        return None
    if text.startswith("?", group.end) or words.OBJECTION.match(text, group.end):
        return None
    is_long = len(text) > _SHORT + 2
    if is_cut_off and is_long and not words.CONTINUATION.match(text, group.end):
        return None
    corrected = words.CORRECTION.search(text, group.end)
    others = [one for one in reading.groups[1:] if one.named - group.named]
    if corrected and any(one.start >= corrected.end() and not reading.is_denied(one.start) for one in others):
        return UNCLEAR  # "False. Actually, it is true."
    is_list = any(one.is_named and _LISTED.search(text, max(0, one.start - 24), one.start) for one in others)
    return None if is_list else group.named


_LISTED = re.compile(
    rf"{words.SYMBOL}[ .,;:)]{{0,6}}\Z|(?:\n|[.;] )[ >•(\[]{{0,4}}(?:- )?(?:\d{{1,2}}[.):] )?(?:option "
    rf"|statement )?\Z"
)


# ---- Options that are gone through one by one: "A ❌ B ✅", "C. Berlin (correct)", `{"A": 0.05, "B": 0.85}`

_GOOD = "✅✔✓☑🟢⭕○◯"
_BAD = "❌✗✘✖❎×🔴☒"
_MARKS = re.compile(f"[{_GOOD}{_BAD}]|~~")
_LISTED_LINE = words.compile_words(
    rf"(?m)^(?=[^\n]{{0,80}}{words.SYMBOL})[ |>•#+-]{{0,8}}(?:\[(?P<box>[x✓✔ ]?)\])?[ "
    rf"~:{_GOOD}{_BAD}-]{{0,8}}{words.LEAD.pattern}(?P<option>{words.SYMBOL})"
    r"(?P<remark>[^\n]{0,400})[^\n]*"
)
"""A line that begins with an option, behind a bullet, a box to tick, a mark."""
_LISTED_HERE = re.compile(
    rf"(?P<box>(?!))?(?P<option>{words.SYMBOL})(?P<remark>[ .:(|=→>–—-]{{1,4}}(?:[{_GOOD}{_BAD}]|(?:{words.RIGHT}"
    rf"|{words.WRONG})(?= ?[.,;)|\n]|\s?{words.SYMBOL}|\Z)))"
)
"""An option with nothing but a verdict behind it, where the list is one line, or has two."""
_MARKED_HERE = re.compile(rf"(?P<box>(?!))?[{_GOOD}{_BAD}] ?(?P<option>{words.SYMBOL})(?P<remark>)")
"""The same with the mark before it."""
_MARKS_FIRST = re.compile(
    rf"(?m)^[^\n\U000f0000-\U000f4fff]*(?:[{_GOOD}{_BAD}] ?{words.SYMBOL}[^{_GOOD}{_BAD}]*){{2,99}}\Z"
)
"""A list that begins with a mark, and does not end with one."""
_SAYS = (
    r"(?:^[ ?]?|[,;:–—.←|])[ :;,.(=←<→>–—-]{0,10}(?:(?:this|that|it|which) )?(?:(?:is|are|was|est|es|é|è|ist|sind"
    r"|это) )?"
    r"(?:(?:the|das|la|el|le|il) )?"
)
_IS_RIGHT = words.compile_words(
    rf"{_SAYS}{words.RIGHT}|(?:[(\[]|←|<[-=]{{1,3}}|⇐) {{0,2}}(?:the |this )?(?:{words.RIGHT}|one\b"
    rf"|match)[^()\[\]]{{0,20}}\W{{0,5}}$"
)
_TRUTH = re.compile(r"\W*(?:true|false|yes|no)\b")
"""What says whether a statement holds: a verdict on an option only where most of them have one."""
_RATING = re.compile(
    rf"(?P<option>{words.SYMBOL})(?: {{0,2}}[\t.:=(|–—~≈→>)-]{{1,4}} {{0,2}}"
    rf"|\s(?=[\d.,]+\s?[%/]))(?P<number>\d{{1,3}}(?:[.,]\d{{1,6}})?|\.\d{{1,6}})(?:\s?(?P<unit>%|/(?:5|10|100)\b))?"
    r"(?=[^\S\n]{0,2}(?:[,;)\]}|'、。\n]|\.(?:\s|$)|$)|\s(?:chance|likel|prob|conf|sure|certain|for\b|and\b))"
)
"""An option and a number that nothing is counted by ("0.4", "40%", "4/10"; not "40% of them", "5.3 million")."""


def read_list(reading: Reading, text: str) -> tuple[int, int, Named] | None:
    """Return where the options are gone through, and those that are marked as right or rated best; None without a list.

    A list has at least three options, or all of them, each once; two are enough where nothing but a verdict stands
    behind each. The one that is not marked is right where all the others are marked as wrong. UNCLEAR where marks
    stand at all of them and say the same of each, where the largest number stands twice, or where numbers may count
    something.
    """
    options = reading.marks.options.folded
    least = min(_MIN_OPTIONS, len(options))
    lines = [*islice(_LISTED_LINE.finditer(reading.text), _MAX_LISTED)]
    lines = lines if len(lines) >= least else []
    listed_here = _MARKED_HERE if _MARKS_FIRST.search(reading.text) else _LISTED_HERE
    found = lines or [*islice(listed_here.finditer(reading.text), _MAX_LISTED)]
    labels = [reading.marks.get_label(one["option"]) for one in found]
    if len(found) < 2 or None in labels or len({*labels}) < len(labels):
        return _read_ratings(reading)
    verdicts = {label: _read_verdict(reading, one, label) for label, one in zip(labels, found, strict=True) if label}
    start, end = found[0].start(), found[-1].end()
    right = frozenset(label for label, verdict in verdicts.items() if verdict)
    raw = text.split("\n")
    places = [reading.text.count("\n", 0, one.start()) for one in lines]
    bold = [label for label, place in zip(labels, places, strict=False) if label and _BOLD.match(raw[place])]
    if not right and len(bold) == 1 and verdicts[bold[0]] is not False:
        right = frozenset(bold)
    if not right and [*verdicts.values()].count(None) <= 1 and len(verdicts) >= len(options) - 1:
        left = [label for label in options if verdicts.get(label) is None]
        right = frozenset(left) if len(left) == 1 else UNCLEAR
    if len(found) < least and (not right or any(_TRUTH.match(one["remark"]) for one in found)):
        return _read_ratings(reading) if "\n" in reading.text[start:end] else (start, end, UNCLEAR)
    if right and (len(right) < len(verdicts) or len(found) < least):
        return start, end, right
    is_marked = None not in verdicts.values() and (not lines or _MARKS.search(reading.text))
    return (start, end, UNCLEAR) if is_marked else _read_ratings(reading)


_BOLD = re.compile(r"\W{0,8}\*\*")
_MIN_OPTIONS = 3
_MAX_LISTED = 200


def _read_verdict(reading: Reading, listed: re.Match[str], label: str) -> bool | None:
    """Return whether an option of a list is marked as right, as wrong, or not at all."""
    marks = {mark[0] in _GOOD for mark in _MARKS.finditer(listed[0])}
    if len(marks) == 1:
        return marks.pop()
    if listed["box"] is not None:
        return bool(listed["box"].strip())
    behind = _BEHIND.match(listed["remark"])
    if behind and reading.marks.get_label(behind[1]) != label:  # "A - No", where No is an option
        return None
    remark = listed["remark"][behind.end() :] if behind else listed["remark"]
    if _IS_RIGHT.search(remark):
        return True
    return False if words.NEGATION.search(remark) else None


_BEHIND = re.compile(rf"[ .:)–—-]{{0,4}}({words.SYMBOL})")


def _read_ratings(reading: Reading) -> tuple[int, int, Named] | None:
    """Return where the options are rated by numbers, and the one with the largest; None where fewer than two are."""
    found = [*islice(_RATING.finditer(reading.text), _MAX_LISTED)]
    ratings: dict[str | None, float] = {}
    for one in found:
        label, rating = reading.marks.get_label(one["option"]), float(one["number"].replace(",", "."))
        if ratings.setdefault(label, rating) != rating:
            return None
    if len(ratings) < 2 or None in ratings or len({one["unit"] for one in found}) > 1:
        return None
    best = max(ratings.values())
    named = frozenset(label for label, rating in ratings.items() if label is not None and rating == best)
    may_count = len(ratings) < len(reading.marks.labels) and not found[0]["unit"] and best > 1
    return found[0].start(), found[-1].end(), UNCLEAR if may_count or len(named) > 1 else named
