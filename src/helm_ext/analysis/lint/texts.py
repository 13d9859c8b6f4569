"""Texts that are odd by themselves: right answers that give themselves away, and what is marred.

An answer stands in the prompt, or the right option in one place too often. Options, passages to read and lists of
classes hold answers by design. So there are three rules, from sure to careful:

cue        the answer follows "Answer:" or "the answer is"; in a prompt of worked examples, only at its very end
end        it is the last sentence or line, after the question
elsewhere  it stands in another sentence than the question, or is long and stands anywhere, and that is rare in this
           dataset: an answer in every tenth prompt is a passage to read

Marred: empty, wrongly decoded, truncated, padded, unfinished, marked up. What much of a dataset has is its style, not a
slip: questions about HTML hold tags, and a cloze ends in "...". So a fault that more than `_MOST` of the rows have is
not reported; only what is empty always is, as an error.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from helm_ext.analysis.lint.rows import Row, Shared, fold, make_key, split_sentences, split_words
from helm_ext.errors import Location, Problems, count, show

_MOST_BY_RULE = {"cue": 1.0, "end": 0.2, "elsewhere": 0.05}
"""Of the rows. Where more end in the answer, what ends them are options; where more have it in another sentence, the
sentences are a passage to read."""
_LEAST_LETTERS = 4
"""Shorter answers stand in texts by chance."""
_LONG_WORDS = 3
"""An answer of this many words does not stand in its question by chance."""
_LONGEST_CUE = 40
"""Characters, with what stands between it and the answer."""
_LEAST_GAIN = 0.05
"""What always answering one position must win over guessing: five points in a hundred."""
_DEVIATIONS = 4
"""By so many standard deviations of drawn positions the most frequent one must stand out."""
_LETTERS = "ABCDEFGHIJ"

_CUE = re.compile(
    r"(?:\b(?:answer|solution|gold|key|hint|antwort|l(?:ö|oe)sung|r[ée]ponse|respuesta|resposta|risposta|ответ)\b"
    r"(?:\s+(?:is|was|should be|ist|lautet|est|es|é|è))?|答案是?|答え?は?|정답은?|(?:^|\n)\s*a(?=\s*:))"
    r"\s*(?P<mark>[:=：]|->|→|(?<=is|st|et|as|be|es)(?=\s)|(?<=[案是えは은]))[\s\"'“(\[*]*"
)
_ENUMERATION = re.compile(r"\s*(?:[,;/|、]|or\b|oder\b|ou\b|o\b|или\b)\s*\S")
_AFTER = re.compile(r"[\"'”)\]*]*(?:[.!。]|\s|$|[)\]])")


def report_answers(rows: Sequence[Row], shared: Shared, problems: Problems) -> None:
    """Report rows of free text whose prompt holds the answer, by the rules that do not find too many."""
    found: dict[str, list[Row]] = {rule: [] for rule in _MOST_BY_RULE}
    for row in rows:
        if row.golds and not row.options:
            rule = _find_answer(row, is_class=not shared.common_free.isdisjoint(row.gold_keys))
            if rule:
                found[rule].append(row)
    for rule, some in found.items():
        for row in some if len(some) <= max(rule == "end", _MOST_BY_RULE[rule] * shared.free) else ():
            problems.warn(
                row.place,
                f"id {show(row.id)}: the prompt holds the answer, {show(row.golds[0])}",
                "take it out of the prompt; a model that repeats what it reads is right",
                code="answer-in-prompt",
            )


def _find_answer(row: Row, *, is_class: bool) -> str:
    """Return by which rule the last message of a row holds its answer; "" if by none."""
    text = row.texts[-1]
    folded = fold(text)
    golds = [gold for gold in map(fold, row.golds) if gold.strip() and gold.strip() in folded]
    if any(_follows_cue(folded, gold.strip()) for gold in golds):
        return "cue"
    if not golds:
        return ""
    sentences = split_sentences(text)
    asking = [place for place, sentence in enumerate(sentences) if sentence.rstrip("\"'”) ").endswith(("?", "？"))]
    question = asking[-1] if asking else len(sentences) - 1
    if question == len(sentences) - 2 and make_key(sentences[-1].strip("()[]")) in map(make_key, golds):
        return "end"
    others = [sentence for place, sentence in enumerate(sentences) if place != question]
    for gold in golds if not is_class else ():
        words, letters = split_words(gold), sum(character.isalpha() for character in gold)
        if letters >= _LEAST_LETTERS and any(_holds(sentence, words) for sentence in others):
            return "elsewhere"
        if len(words) >= _LONG_WORDS and letters >= 2 * _LEAST_LETTERS and _holds(text, words):
            return "elsewhere"
    return ""


def _follows_cue(folded: str, gold: str) -> bool:
    starts = (max(0, at - _LONGEST_CUE) for at in _find_all(folded, gold))
    if not any(_CUE.search(folded, start, start + 2 * _LONGEST_CUE) for start in starts):
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


def _holds(text: str, words: Sequence[str]) -> bool:
    """Whether the words stand in the text, one after the other."""
    return f" {' '.join(words)} " in f" {' '.join(split_words(text))} "


def report_positions(rows: Iterable[Row], problems: Problems, path: str) -> None:
    """Report, once, that the right options do not stand everywhere. Train rows are not scored, and not counted.

    Where all golds of a dataset are letters, the options stand in the questions: the letters are the positions.
    """
    positions: Counter[tuple[int, int]] = Counter()
    """Rows by (position of the right option, number of options)."""
    letters: Counter[str] = Counter()
    """Rows by gold; "" for one that is no letter."""
    for row in rows:
        if row.is_train:
            continue
        if len(row.right) == 1 and len(row.options) > 1:
            positions[row.right[0], len(row.options)] += 1
        gold = row.golds[0].strip(" ().:").upper() if len(row.golds) == 1 else ""
        letters[gold if len(gold) == 1 and gold in _LETTERS else ""] += 1
    if not positions and "" not in letters:
        widest = max(map(_LETTERS.index, letters), default=0) + 1
        positions = Counter({(_LETTERS.index(gold), widest): number for gold, number in letters.items() if widest > 1})
    if not positions:
        return
    total, widest = positions.total(), max(options for _, options in positions)
    right = [sum(number for (at, _), number in positions.items() if at == place) for place in range(widest)]
    most = right.index(max(right))
    expected = sum(number / options for (_, options), number in positions.items() if options > most)
    more = right[most] - expected
    if more < _LEAST_GAIN * total or more < _DEVIATIONS * math.sqrt(expected * (1 - expected / total)):
        return
    shares = ", ".join(f"{_name(at)} {number / total:.1%}" for at, number in enumerate(right))
    guessing = sum(number / options for (_, options), number in positions.items()) / total
    best = (
        f"always {_name(most)}, the most frequent, {right[most] / total:.1%}" if most else "which is the most frequent"
    )
    problems.warn(
        Location(path),
        f"the right option of {count(total, 'row')} stands at {shares}: always answering {_name(0)} scores "
        f"{right[0] / total:.1%}, {best}; guessing scores {guessing:.1%}",
        "shuffle the options, or compare models with the score of the most frequent position",
        code="gold-position",
    )


def _name(position: int) -> str:
    return _LETTERS[position] if position < len(_LETTERS) else f"option {position + 1}"


_MOST = 0.2
"""Of the rows."""
_FEW = 3
"""Rows of a small dataset that are reported whatever their share is."""
_MOST_OPEN = 0.05
"""Of the questions. Where more end without a mark, a question without one is not truncated."""
_LEAST_WORDS = 4
"""A question of fewer words needs no mark at its end."""

_HIGH = re.compile("[\u0080-\u00ff\u0152\u0153\u0160\u0161\u0178\u017d\u017e\u0192\u02c6\u02dc\u2013-\u2022\u2026\u2030"
                   "\u2039\u203a\u20ac\u2122]{2,}")  # fmt: skip
"""Runs of characters that windows-1252 has beyond ASCII."""
_PLACEHOLDER = re.compile(
    r"\b(?:TODO|TBD|FIXME)\b|(?i:\blorem ipsum\b|[\[<{](?:insert|your|placeholder|todo|fill in)\b[^\]>}\n]{0,60}[\]>}])"
    r"|\{\{\s*\w+\s*\}\}"
)
_WHOLE_PLACEHOLDER = re.compile(
    r"N/A|n/a|(?i:none given|placeholder|todo|tbd|xxx+|asdf\w*|test test|\.{3,}|\?{2,}|-{2,})"
)
_MARKUP = re.compile(
    r"(?i:</?(?:p|br|div|span|b|i|u|a|li|ul|ol|td|th|tr|table|strong|em|su[bp]|img|font|h[1-6]|script|style)"
    r"(?:\s[^<>]{0,200})?/?>)"
    r"|&(?:amp|lt|gt|quot|apos|nbsp|ndash|mdash|rsquo|lsquo|#\d{2,5}|#x[0-9a-fA-F]{2,5});"
)
_ENDS = ".?!:;)]}\"'”’»>_=…*`。？！：；）」』|؟।"
_DANGLING = re.compile(r"(?:(?<!\.)\.\.\.|…|[,\-–—(/&])\s*\Z")


def report_marred(rows: Sequence[Row], problems: Problems) -> None:
    """Report the rows whose texts are marred: what is empty, and what few rows have."""
    found: dict[str, list[tuple[Row, str]]] = {code: [] for code in _HINTS}
    asking, open_ended = 0, []
    """Questions of some length; and those of them that end without a mark."""
    for row in rows:
        if row.is_empty:
            hint = "write the question; without one, the answer is a guess"
            problems.add(row.place, f"id {show(row.id)}: the question is empty", hint, code="empty-question")
            continue
        empty = next((at for at, option in enumerate(row.options, 1) if not option.strip()), None)
        if empty is not None:
            message = f"id {show(row.id)}: option {empty} is empty"
            problems.add(row.place, message, "write it, or take it out", code="empty-option")
        for code, said in _find_faults(row):
            found[code].append((row, said))
        asked = row.texts[-1].rstrip()
        if asked.count(" ") >= _LEAST_WORDS - 1:
            asking += 1
            if asked[-1] not in _ENDS and asked.isascii() and not _DANGLING.search(asked):
                open_ended.append((row, _END.format(show(asked[-20:]))))
    if len(open_ended) <= _MOST_OPEN * asking:
        found["truncated"] += open_ended
    for code, some in found.items():
        for row, said in some if len(some) <= max(_FEW, _MOST * len(rows)) else ():
            problems.warn(row.place, f"id {show(row.id)}: {said}", _HINTS[code], code=code)


_HINTS = {
    "mojibake": "UTF-8 was read as windows-1252: read the source again as UTF-8",
    "truncated": "give the whole text; the end of a question is what it asks",
    "padded-gold": "take the white space off, or have all golds with it",
    "placeholder": "write what belongs there, or take the row out",
    "markup": "give the text without tags and entities, or all rows with them",
}
_END = "the question looks truncated: it ends in {}"


def _find_faults(row: Row) -> Iterator[tuple[str, str]]:
    """Yield the code of each fault that a row's texts have by themselves, once, and in words where."""
    asked = row.texts[-1].rstrip()
    if _DANGLING.search(asked):
        yield "truncated", _END.format(show(asked[-20:]))
    padded = next((gold for gold in row.golds if gold != gold.strip()), None)
    if padded is not None:
        yield "padded-gold", f"the gold begins or ends with white space, {show(padded)}"
    texts = [("the question", text) for text in row.texts] + [("an option", text) for text in row.options]
    texts += [("the gold", text) for text in row.golds if not row.options]
    for code, what, search in (
        ("mojibake", "was decoded wrongly", find_mojibake),
        ("placeholder", "holds a placeholder", _find_placeholder),
        ("markup", "holds HTML", _find_markup),
    ):
        for name, text in texts:
            if found := search(text):
                yield code, f"{name} {what}, {show(found)}"
                break


def find_mojibake(text: str) -> str:
    """Return the first characters that are UTF-8 read as windows-1252 or Latin-1, or the sign of lost ones; else ""."""
    if "\ufffd" in text:
        return "\ufffd"
    for run in _HIGH.findall(text):
        for encoding in ("cp1252", "latin-1"):
            try:
                run.encode(encoding).decode("utf-8")
            except UnicodeError:
                continue
            return str(run)
    return ""


def _find_placeholder(text: str) -> str:
    match = _PLACEHOLDER.search(text) or _WHOLE_PLACEHOLDER.fullmatch(text.strip())
    return match[0] if match else ""


def _find_markup(text: str) -> str:
    match = _MARKUP.search(text) if "<" in text or "&" in text else None
    return match[0] if match else ""
