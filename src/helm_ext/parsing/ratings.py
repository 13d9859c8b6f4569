"""A completion that rates options one by one: `{"A": 0.05, "B": 0.85}`, "A: 10%, B: 75%", "A. Incorrect B. Correct"."""

from __future__ import annotations

import re
import unicodedata
from itertools import islice

from helm_ext.parsing.checklists import BAD, GOOD, RIGHT, WRONG
from helm_ext.parsing.decoration import CLOSERS, fold
from helm_ext.parsing.mentions import UNCLEAR, Mentions, Named

_ENDS = r"[^\S\n]{0,2}(?:[,;)\]}|*\"'、。\n]|\.(?:\s|$)|$)"
_RATING = re.compile(
    unicodedata.normalize(
        "NFKC",
        rf"(?<![\w.,])(?P<number>\d{{1,3}}(?:[.,]\d{{1,6}})?|\.\d{{1,6}})(?:\s?(?P<unit>%|/(?:5|10|100)\b)"
        rf"(?={_ENDS}|\s(?:chance|likel|prob|conf|sure|certain|for\b|and\b)|[^\S\n]{{1,2}}\S{{1,3}}\b)|(?={_ENDS}))"
        rf"|(?P<good>[{GOOD}])|(?P<bad>[{BAD}])|(?<!\w)(?:(?P<right>{RIGHT})|(?P<wrong>{WRONG}))",
    )
)
"""A number that nothing is counted by ("0.4", "40%", "4/10"; not "40% of them", "5.3 million"), a mark, a verdict."""

_HINT = re.compile(unicodedata.normalize("NFKC", rf"[{GOOD}{BAD}]|[^\w,]\d|[^\w\s,;] ?(?=[^\W\d_])(?:{RIGHT}|{WRONG})"))
"""What every rating has: cheap to look for."""

_BETWEEN = CLOSERS + " \t.:=(|–—~≈→>-"
"""Between an option and its rating."""

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
        named = before.rstrip(_BETWEEN)
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
    if is_part and (units == {"truth"} or (units == {""} and best > 1)):
        return start, end, UNCLEAR
    named_best = frozenset(label for label, rating in ratings.items() if rating == best > 0)
    return start, end, named_best if len(named_best) == 1 or units & {"truth", "verdict"} else UNCLEAR
