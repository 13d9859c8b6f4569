"""A completion that goes through the options and marks each as right or wrong: "A ❌ B ✅", "C. Berlin (correct)"."""

from __future__ import annotations

import re
import unicodedata

from helm_ext.parsing import phrases
from helm_ext.parsing.decoration import find_lines
from helm_ext.parsing.mentions import UNCLEAR, Mentions, Named

GOOD = "✅✔✓☑🟢⭕○◯"
BAD = "❌✗✘✖❎×🔴☒"
_MARKS = re.compile(f"[{GOOD}{BAD}]")

_BEGIN = re.compile(rf"[\s>*_•#+-]{{0,8}}(?:\[(?P<box>[xX✓✔ ]?)\])?[\s*_{GOOD}{BAD}:-]{{0,8}}")
"""Before the option of a line: a bullet, a box to tick, a mark."""

_SAYS = (
    r"[\s:;,.(\[*_=←<–—-]{0,10}(?:(?:this|that|it|which)\s)?(?:(?:is|are|was|est|es|é|è|ist|sind|это)\s)?(?:(?:the|das"
    r"|la|el|le|il)\s)?"
)
RIGHT = (
    r"(?:correct|right|true|yes|valid|best|answer|richtig\w{0,2}|korrekt|wahr|ja|correct[oae]|verdader[oa]|sí|sim"
    r"|cert[oa]|correto|correta|corrett[oa]|ver[oa]|giust[oa]|vrai|juste|exacte?|oui|верн\w{1,2}|правильн\w{1,2}|да)\b"
    r"|正确|正確|对|對|正解|正しい|맞|정답"
)
WRONG = (
    r"(?:incorrect|wrong|false|no|not|invalid|untrue|eliminated|falsch|nein|nicht|incorrect[oae]|incorret[oa]|fals[oa]"
    r"|errad[oa]|sbagliat[oa]|faux|fausse|non|pas|неверн\w{1,2}|неправильн\w{1,2}|нет|не)\b|错|錯|不正|不对|不對|誤"
    r"|間違|不正解|틀|오답"
)
_IS_RIGHT = re.compile(unicodedata.normalize("NFKC", rf"{_SAYS}(?:{RIGHT})"), re.IGNORECASE)
_IS_WRONG = re.compile(unicodedata.normalize("NFKC", rf"{_SAYS}(?:{WRONG})"), re.IGNORECASE)
_ENDS_RIGHT = re.compile(
    unicodedata.normalize(
        "NFKC", rf"(?:[(\[]|←|<[-=]{{1,3}}|⇐)\s{{0,2}}(?:the\s|this\s)?(?:{RIGHT})[^()\[\]]{{0,20}}[)\]]?\W{{0,4}}$"
    ),
    re.IGNORECASE,
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
        start, end = segment_start if start < 0 else start, segment_end
    if len(verdicts) < min(_MIN_OPTIONS, len(options)):
        return None
    right = frozenset(label for label, verdict in verdicts.items() if verdict)
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
    lead = phrases.LEAD.match(mentions.text, begin.end(), end)
    item = mentions.read_item(begin.end()) or (mentions.read_item(lead.end()) if lead else None)
    if item is None or not item.label or item.end > end:
        return None
    text = re.escape(mentions.options.folded[item.label])
    own = re.compile(rf"[\s*_\"'(]{{0,4}}{text}[)\"'*_]{{0,4}}").match(mentions.lowered, item.end, end)
    behind = own.end() if own else item.end
    whole, rest = mentions.text[start:end], mentions.text[behind:end]
    marks = {mark[0] in GOOD for mark in _MARKS.finditer(whole)}
    if len(marks) == 1:
        return item.label, marks.pop()
    if begin["box"] is not None:
        return item.label, bool(begin["box"].strip())
    if mentions.find_text(behind) is not None:  # "A - No", where No is an option
        return item.label, None
    if _IS_WRONG.match(rest):
        return item.label, False
    if _IS_RIGHT.match(rest) or _ENDS_RIGHT.search(rest[-80:]):
        return item.label, True
    return item.label, False if phrases.NEGATION.search(rest) else None
