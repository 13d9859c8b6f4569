"""Texts that are odd by themselves: empty, wrongly decoded, truncated, padded, unfinished, marked up.

What much of a dataset has is its style, not a slip: questions about HTML hold tags, and a cloze ends in "...". So a
fault that more than `MOST` of the rows have is not reported; only what is empty always is, as an error.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable

from helm_ext.analysis.lint.rows import Row, Rows
from helm_ext.errors import KEPT_PROBLEMS, Problems, show

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

_HINTS = {
    "mojibake": "UTF-8 was read as windows-1252: read the source again as UTF-8",
    "truncated": "give the whole text; the end of a question is what it asks",
    "padded-gold": "take the white space off, or have all golds with it",
    "placeholder": "write what belongs there, or take the row out",
    "markup": "give the text without tags and entities, or all rows with them",
}

_WHAT = {
    "mojibake": "was decoded wrongly",
    "placeholder": "holds a placeholder",
    "markup": "holds HTML",
}


class MarredRows:
    """Finds rows whose texts are marred; keeps the numbers of such rows."""

    def __init__(self) -> None:
        self._rows = 0
        self._asking = 0
        """Questions of some length."""
        self._open = array("q")
        """Of these, the ones that end without a mark."""
        self._found = {code: array("q") for code in ("empty-question", "empty-option", *_HINTS)}

    def see(self, row: Row) -> None:
        """Look at a row."""
        self._rows += 1
        if row.is_empty:
            self._found["empty-question"].append(row.number)
            return
        if any(not option.strip() for option in row.options):
            self._found["empty-option"].append(row.number)
        for code in _HINTS:
            if _find(code, row):
                self._found[code].append(row.number)
        asked = row.texts[-1].rstrip()
        if asked.count(" ") >= _LEAST_WORDS - 1:
            self._asking += 1
            if asked[-1] not in _ENDS and asked.isascii():
                self._open.append(row.number)

    def report(self, rows: Rows, problems: Problems) -> None:
        """Report the rows: what is empty, and what few rows have."""
        if len(self._open) <= _MOST_OPEN * self._asking:
            truncated = self._found["truncated"]
            truncated.extend(set(self._open) - set(truncated))
        for code, numbers in self._found.items():
            is_error = code not in _HINTS
            if is_error or len(numbers) <= max(_FEW, _MOST * self._rows):
                for row in rows.take(sorted(numbers)[:KEPT_PROBLEMS]).values():
                    _report(code, row, problems)
                if not is_error:
                    problems.count_more(code, len(numbers) - KEPT_PROBLEMS)


def _report(code: str, row: Row, problems: Problems) -> None:
    named = f"id {show(row.id)}: "
    if code == "empty-question":
        hint = "write the question; without one, the answer is a guess"
        problems.add(row.place, f"{named}the question is empty", hint, code=code)
    elif code == "empty-option":
        at = next(at for at, option in enumerate(row.options) if not option.strip())
        problems.add(row.place, f"{named}option {at + 1} is empty", "write it, or take it out", code=code)
    else:
        problems.warn(row.place, f"{named}{_find(code, row) or _end(row)}", _HINTS[code], code=code)


def _find(code: str, row: Row) -> str:
    """Return in words where a row has a fault; "" where it has it not."""
    if code == "truncated":
        return _end(row) if _DANGLING.search(row.texts[-1]) else ""
    if code == "padded-gold":
        padded = next((gold for gold in row.golds if gold != gold.strip()), None)
        return "" if padded is None else f"the gold begins or ends with white space, {show(padded)}"
    for name, texts in (("question", row.texts), ("option", row.options), ("gold", () if row.options else row.golds)):
        found = _search(code, texts, whole=name != "question")
        if found:
            return f"{'an' if name == 'option' else 'the'} {name} {_WHAT[code]}, {show(found)}"
    return ""


def _search(code: str, texts: Iterable[str], *, whole: bool) -> str:
    for text in texts:
        if code == "mojibake":
            found = "" if text.isascii() else find_mojibake(text)
        elif code == "placeholder":
            match = _PLACEHOLDER.search(text) or (_WHOLE_PLACEHOLDER.fullmatch(text.strip()) if whole else None)
            found = match[0] if match else ""
        else:
            match = _MARKUP.search(text) if "<" in text or "&" in text else None
            found = match[0] if match else ""
        if found:
            return found
    return ""


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


def _end(row: Row) -> str:
    return f"the question looks truncated: it ends in {show(row.texts[-1].rstrip()[-20:])}"
