"""The one normal form of texts: `normalize` for short answers, `words` for scores that compare word by word.

Both read a text alike, in linear time (docs/adapter_spec.md, "The normal form"; docs/innodata.md, "What a word is"):

- Unicode: compatibility forms but super- and subscripts (10² is not 102), digits of all scripts, case folding;
- what does not matter goes: quotes, sentence punctuation, invisible characters, Markdown's marks, the dollar signs
  around a formula, brackets but those of a formula or an interval;
- what matters stays, as a word of its own: operators, relations, arrows, currencies, set signs, pictures, `/`, and `:`
  between digits. White space around them does not count;
- numbers are read by `helm_ext.scoring.normal_form`.

They differ in three things. Short answers have no English articles; a hyphen or point between letters leaves nothing in
them, as in HELM's form, and separates words; characters of scripts without spaces are words of their own. A short
answer that is one number, with a unit or without, is its value. On ASCII letters, spaces and sentence punctuation the
normal form equals HELM's (`normalize_text` of helm/benchmark/metrics/evaluate_reference_metrics.py).

"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from decimal import Decimal
from functools import lru_cache

from helm_ext.parsing.options import INVISIBLE, OTHER_NAMES, PREFIXES, UNIT_NAMES
from helm_ext.scoring.bounded import remember_short

UNSPACED = (
    "[\u0e00-\u0e7f\u0e80-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Burmese, Khmer
    "\u3005-\u3007\u3040-\u30fa\u30fc-\u30ff\u31f0-\u31ff"  # kana
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"  # Han
)
"""A character of a script that is written without spaces. Hangul has spaces and is not here."""

_ARTICLES = frozenset({"a", "an", "the"})
_JOIN = "\x01"
"""Stands for a hyphen or point between letters, which the two forms take differently."""
_MINUS = "\x02"
"""Stands for a minus that is an operator: neither a sign nor a hyphen nor the dash of a range."""

_PLAIN = re.compile(r"[A-Za-z\s.,;:!?'\"]*|0|[1-9][0-9]*")
_PLAIN_MARKS: dict[str, str | None] = {".": _JOIN, "'": None, '"': None} | dict.fromkeys(",;:!?", " ")
_CASED = str.maketrans(_PLAIN_MARKS)
_LOWER = str.maketrans(_PLAIN_MARKS | {chr(code): chr(code + 32) for code in range(65, 91)})
"""For `_PLAIN`, which most texts are. All is ASCII: other tables take ten times as long."""


@remember_short
def normalize(text: str) -> str:
    """Return the normal form of a short answer; "" for a text of nothing but articles and punctuation."""
    if _PLAIN.fullmatch(text):
        read = text.translate(_LOWER).replace(_JOIN, "")
    else:
        read = _read(text).replace(_JOIN, "")
        value = read_amount(read)
        if value is not None:
            return value
        read = _fold_case(read)
    form = " ".join([word for word in read.split() if word not in _ARTICLES])
    return form if form.isascii() else _SPACE_BESIDE.sub("", form)


_KEPT = bytes(set(range(65, 123)) - set(range(91, 97)) - set(b"ANTHEanthe"))
"""Letters that no article has: none of them is ever lost with one."""
_NOT_KEPT = bytes(set(range(256)) - set(_KEPT))
_HAN = re.compile("[\u4e00-\u9fff]+")
"""Characters that are in no unit and have no other form."""
_LOST_IN_RANGE = 8
"""The letters of units and currencies inside a range ("5 kWh-7"), for each dash."""
_ANY_DASH = re.compile("[-\u2010-\u2015\u2212\ufe31\ufe32\ufe58\ufe63\uff0d]")


def may_have(text: str, form: str) -> bool:
    """Whether `form` may be the normal form of `text`; False only where it cannot, by the letters that there are.

    Letters stay, but for articles and units; a unit's name has more than half of the letters that it is read from. A
    beginning is looked at that would have too many: what a long answer costs does not grow with its length.
    """
    beginning = text[: 8 * len(form) + 256]
    kept = len(beginning.encode("ascii", "ignore").translate(None, _NOT_KEPT))
    dashes = beginning.count("-")
    if not beginning.isascii():
        kept += sum(map(len, _HAN.findall(beginning)))
        dashes = len(_ANY_DASH.findall(beginning))
    if kept <= 2 * len(form) + _LOST_IN_RANGE * (dashes + 1):
        return True
    # A line that begins with three backticks takes a word with it.
    return any(mark in text for mark in _BACKTICKS) and bool(_FENCE.search(text))


def bare_form(text: str) -> str:
    """Return what is compared where the normal form of one of two texts is empty: the words, articles too."""
    return " ".join(words(text))


def read_value(text: str) -> str | None:
    """Return the normal form of a text that is one number, with a unit or without; None for other texts."""
    return read_amount(text if _PLAIN.fullmatch(text) else _read(text).replace(_JOIN, ""))


@remember_short
def words(text: str, *, ignore_case: bool = True, ignore_punctuation: bool = True) -> tuple[str, ...]:
    """Return the words of `text` in order.

    Where punctuation counts, a word is what stands between spaces. A text that consists of punctuation only keeps it
    even when punctuation is ignored: otherwise "?" would equal "".
    """
    read = ""
    if ignore_punctuation and _PLAIN.fullmatch(text):
        read = text.translate(_LOWER if ignore_case else _CASED)
    elif ignore_punctuation:
        read = _fold_case(_read(text)) if ignore_case else _read(text)
    found = separate_characters(read.replace(_JOIN, " ")).split()
    if not found:
        text = separate_characters(_fold_characters(text))
        found = (_fold_case(text) if ignore_case else text).split()
    return tuple(found)


_SPACE_BESIDE = re.compile(f" (?<={UNSPACED} )| (?={UNSPACED})")
_UNSPACED = re.compile(
    f"{UNSPACED}[\u0300-\u036f\u3099\u309a\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ecd]*"
)


def separate_characters(text: str) -> str:
    """Return `text` with a space on both sides of each character of a script that is written without spaces."""
    return text if text.isascii() else _UNSPACED.sub(r" \g<0> ", text)


# ---- Characters that are the same when they are read

_INVISIBLE = f"{INVISIBLE}\x01\x02"
_DASHES = "\u2010-\u2013\u2212"
_BACKTICKS = "`\uff40\u1fef"
_FENCE = re.compile(f"(?:[{_BACKTICKS}][\\\\{_INVISIBLE}]*){{3}}")
_ALIKE = {"\u2044": "/", "\u2215": "/", "÷": "/", "\u2236": ":", "٫": ".", "٬": ",", "٪": "%", "´": "'"}
_ALIKE |= {"×": "*", "\u22c5": "*", "\u2217": "*", "\u223c": "~"}
_SAME = re.compile(f"(?P<gone>[{_INVISIBLE}])|(?P<dash>[{_DASHES}])|[{''.join(_ALIKE)}]|(?P<digit>[^\\D0-9])")
_SUPERSCRIPTS = (
    "\u00aa\u00b2\u00b3\u00b9\u00ba\u02b0-\u02b8\u02e0-\u02e4\u1d2c-\u1d6a\u1d78\u1d9b-\u1dbf"
    "\u10fc\u2070-\u209c\u2120\u2122\u2c7c\u2c7d\u2d6f\u3192-\u319f"
    "\ua69c\ua69d\ua770\ua7f2-\ua7f4\ua7f8\ua7f9\uab5c-\uab5f\uab69\U00010781-\U000107ba\U0001f16a-\U0001f16c"
)
_RAISED = re.compile(f"([{_SUPERSCRIPTS}]+)")
_FRACTION = re.compile("(?<=\\d)(?=[\u00bc-\u00be\u2150-\u215e\u2189])")
"""1½ is one and a half, not eleven halves."""


def _fold_characters(text: str) -> str:
    """Return Unicode's compatibility form (NFKC), super- and subscripts as they are, with one dash and ASCII digits."""
    if text.isascii():
        return text.replace(_JOIN, "").replace(_MINUS, "")
    text = text.replace("´", "'")  # whose compatibility form has a space
    if not unicodedata.is_normalized("NFKC", text):
        pieces = _RAISED.split(_FRACTION.sub(" ", text))
        text = "".join(p if number % 2 else unicodedata.normalize("NFKC", p) for number, p in enumerate(pieces))
    return _SAME.sub(_fold_character, text)


def _fold_character(found: re.Match[str]) -> str:
    kind, character = found.lastgroup, found[0]
    if kind == "digit":
        return str(unicodedata.decimal(character))
    return "" if kind == "gone" else "-" if kind == "dash" else _ALIKE[character]


def _fold_case(text: str) -> str:
    """Which letter a writer of İ or ı means depends on the language; a reader knows."""
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFC", text.replace("İ", "i").replace("ı", "i").casefold())


# ---- What is told by what stands around it. Patterns begin with a character: search leaps from one to the next.

_ESCAPED = re.compile(r"\\([()\[\]{}%$#&_*`])")
_MATH = re.compile(r"(?<![\w$])\$\$?(?=[^\s$])([^$\n]*)(?<=\S)\$\$?(?!\d)")
"""A formula between dollar signs. Pandoc's rule tells it from amounts: no space inside, no digit behind (`$4-$5`)."""
_LINE_MARK = re.compile(r"^```\w*\n|^ {0,3}[>*-] +(?=[^\W\d_])", re.MULTILINE)
_STARS = re.compile(r"(?<![\w)\]*])\*+(?=[^\s*])|(?<=[^\s*])\*+(?![\w(\[*])")
"""Stars at the edge of words; others are operators."""
_SPELLINGS = {"!=": "≠", "<=": "≤", ">=": "≥", "==": "=", "->": "→", "=>": "⇒"}
_SPELLED = re.compile("|".join(_SPELLINGS))
_SPACED_RANGE = re.compile(r" ([-:]) (?<=[\d%] . )(?=\d)")
_OPERATOR_DASH = re.compile(
    r" - (?<![^\W\d_][A-Za-z] - )(?<!['’][A-Za-z] - )(?<=[A-Za-z\d)\]²³] - )(?=[\d(]|[A-Za-z](?![^\W\d_]))"
    r"|-(?<![^\W\d_][A-Za-z]-)(?<!\de-)(?:(?<=[a-z)\]²³]-)(?=[\d(])|(?<=[a-z\d)\]²³]-)(?=\(|[a-z](?![^\W\d_])))"
)
"""Between single letters and numbers: `x - 5`, `a-b`, `2x-(3)`; not `well-known`, `F-16`, `2-3`."""
_SIGN = re.compile(
    r"-(?<![\w)\]}'’\"*_~-]-)(?=[(\\\u221a\u221e\u2211\u220f\u222b]|[A-Za-z\u0370-\u03ff](?![^\W\d_])"
    r"|(?:sin|cos|tan|cot|sec|csc|log|ln|exp|sqrt|pi|inf|infinity)(?![^\W\d_]))"
)
"""In front of a name, a function or a formula: `-x`, `-\\sqrt{2}`, `(-∞, 5)`, not `-Paris`."""
_DASH_AT_END = re.compile(r"-(?<=[A-Za-z\d]-)(?![^\s.,;:!?)\]}])")
_LONGEST_FORMULA = 12
_CHARGED = re.compile(r"(?<![\w-])(?:(?:[A-Z][a-z]?\d*)+|[A-Za-z])\Z")
"""Behind a formula of chemistry or a single letter, as grades and blood groups have it: Cl-, AB-, e-."""
_COMMAND_DASH = re.compile(r"(\\[A-Za-z]+)-")
"""No hyphen: `x \\ge-1`."""
_FORMULA = re.compile(
    r"[\w)\]}][(\[{]|[*/^+=<>¬±√∑∏∫\u2200-\u22ff\x02]|\\[A-Za-z]|-\s?\d|\d,\s?[-+]?[\d.]{1,9}\s?[)\]}]"
    r"|\[[^()\[\]]*\)|\([^()\[\]]*\]"
)
"""What tells brackets of a formula or an interval from those of a sentence."""
_BRACKET = re.compile(r"[()\[\]{}]")
_BRACKETS = str.maketrans(dict.fromkeys("()[]{}", " "))
_WHOLE = re.compile(r"[(\[{]([^()\[\]{}]*)[)\]}][.,;:!?]*")
_ITEMS = re.compile(r",(?<=\d,)(?=\d)(?!\d{3}(?!\d))")


def _read(text: str) -> str:
    """Return a text, in its case, with spaces between its words, and `_JOIN` where it depends."""
    text = _fold_characters(GROUP_MARK.sub("", text.strip()))
    if "\\" in text:
        text = _ESCAPED.sub(r"\1", text)
    if "$" in text:
        text = _MATH.sub(r" \1 ", text)
    if text[:1] in {">", "*", "-", "`"} or "\n" in text:
        text = _LINE_MARK.sub("", text)
    if text.count("*") > 1 or "~~" in text:
        text = _STARS.sub("", text).replace("~~", "")
    if "=" in text or ">" in text:
        text = _SPELLED.sub(lambda found: _SPELLINGS[found[0]], text)
    if "-" in text or ":" in text:
        text = _DASH_AT_END.sub(_read_charge, _SPACED_RANGE.sub(r"\1", text))
        if "\\" in text:
            text = _COMMAND_DASH.sub(r"\1 -", text)
        text = _SIGN.sub(_MINUS, _OPERATOR_DASH.sub(_MINUS, text))
    if _BRACKET.search(text):
        text = _read_brackets(text.strip())
    out: list[str] = []
    end = 0
    for found in find_numbers(text):
        _add(text, end, found.start(), out)
        out.append(read_number(found, _JOIN))
        end = found.end()
    _add(text, end, len(text), out)
    return "".join(out)


def _read_charge(found: re.Match[str]) -> str:
    start = found.start()
    return _MINUS if _CHARGED.search(found.string, max(0, start - _LONGEST_FORMULA), start) else "-"


def _read_brackets(text: str) -> str:
    """Return a text without a sentence's brackets; in others `{1,2}` is `{1, 2}`."""
    if not _FORMULA.search(text):
        return text.translate(_BRACKETS)
    whole = _WHOLE.fullmatch(text)
    return whole[1] if whole and "," not in whole[1] else _ITEMS.sub(", ", text)


_MARK = re.compile(r"[^\w\s]|_")


def _add(text: str, start: int, end: int, out: list[str]) -> None:
    """Add what stands between two numbers."""
    for found in _MARK.finditer(text, start, end):
        at = found.start()
        if start < at:
            out.append(text[start:at])
        start = at + 1
        mark = _MARKS[found[0]]
        out.append(_read_mark(found[0], text[at - 1 : at], text[start : start + 1]) if mark is None else mark)
    if start < end:
        out.append(text[start:end])


class _Marks(dict[str, str | None]):
    """What stands for a mark; None where that depends on its neighbours."""

    def __missing__(self, mark: str) -> str | None:
        kind = unicodedata.category(mark)
        shown = "" if kind in {"Pi", "Pf"} else " " if kind[0] == "P" or kind == "Sk" else f" {mark} "
        self[mark] = shown if kind[0] in "PS" else mark
        return self[mark]


_MARKS = _Marks(dict.fromkeys(".,:'\"-#+_·・^", None) | dict.fromkeys("!?;", " ") | dict.fromkeys("`„‚©®™℠", ""))
_MARKS |= {mark: f" {mark} " for mark in "%‰&*/@\\()[]{}§†‡"} | {"′": "′", "″": "″", "°": "°", _MINUS: " - "}


def _read_mark(mark: str, before: str, after: str) -> str:
    """Return what stands for a mark between two characters ("" at the ends of the text)."""
    within = before.isdigit() and after.isdigit()
    if mark in ".,'\"":
        return mark if within else {".": _JOIN, ",": " "}.get(mark, "")
    if mark == "-":
        return _JOIN if before.isalpha() and after.isalpha() else " - " if before == "^" else " "
    if mark == "#":
        return "#" if before.isalpha() else " "
    if mark == "+":  # of a name: C++, A+
        return "+" if before == "+" or (before.isalpha() and not after.isalnum() and after != "(") else " + "
    if mark == "_":
        return "_" if before.isalnum() and after.isalnum() else ""
    if mark in "·・":  # a product's, or a name's
        return " * " if within else _JOIN
    return f" {mark} " if mark == "^" or within else " "  # between digits: 10:30


# ---- Numbers among words

_DIGITS = r"\d+(?:[.,]\d+)*"
_SYMBOLS = "$€£¥₹₽₩₪₺₫฿₴₦₱₸₾₡¢"
_CODES = "EUR|USD|GBP|CHF|JPY|CNY|INR|RUB|KRW|BRL|PLN|SEK|NOK|DKK|CZK|HUF|Rs|Rp"
_CURRENCY = rf"(?:(?:US|AU|CA|NZ|HK|SG|[ACRS])?\$|[{_SYMBOLS}]|\b(?:{_CODES})\.?)"
_LONG_UNITS = (
    "mm|cm|dm|km|nm|[µμ]m|mg|kg|[µμ]g|ml|cl|dl|hl|ms|ns|min|mins|hr|hrs|sec|secs|am|pm|mi|ft|yd|lb|lbs|oz|mph|"
    "kph|kmh|km/h|m/s|hz|khz|mhz|ghz|kb|mb|gb|tb|pb|kib|mib|gib|tib|bit|kbps|mbps|gbps|kw|kwh|mw|mwh|gw|wh|kv|"
    "mv|ma|mah|pa|hpa|kpa|bar|db|kcal|cal|kj|mol|px|pt|dpi|rpm|ha"
)
_UNITS = (
    # One letter: the case tells metres from millions.
    "[mgtshLlWV]",
    f"(?i:{_LONG_UNITS})[²³]?",
    "m[²³]",
    f"(?i:{_CODES}|kr|zł|ft|kč|lei|tl)",
    "(?i:мм|см|м|км|г|кг|мг|т|л|мл|с|ч|мин|км/ч|руб|грн|коп)\\.?[²³]?",
    f"[{_SYMBOLS}]",
    "°[CFcf]?",
)
_UNIT = rf"(?:{'|'.join(_UNITS)})(?![^\W\d_\u0e00-\u0eff\u3040-\u9fff\uac00-\ud7a3])"
"""What may stand right behind a number without being part of it: a closed list."""
_NUMBER = re.compile(
    rf"(?<![\d.])(?:(?<!\d,)|(?=[-+±]))(?P<sign>[-+±])?(?:(?P<currency>{_CURRENCY})\s?(?P<inner>-)?)?"
    rf"(?P<first>\.?{_DIGITS})"
    rf"(?P<more>(?:(?:%|{_UNIT})?[-\u2014]{_CURRENCY}?{_DIGITS})*)"
    r"(?P<percent>\s*[%‰])?"
)
"""A number with what belongs to it, in a text whose characters are folded."""
_BEFORE_DIGITS = 8
"""The most characters of it before its first digit."""
_NO_LEAD = frozenset({"", *"abcdefghijklmnoqrtuvwxyz,;:!?(=/*"})
"""Before a number these belong to none (`Rs` and `Rp` do)."""
_DIGIT = re.compile(r"\d")
_RANGE_PART = re.compile(rf"[-\u2014]{_CURRENCY}?({_DIGITS})")
_UNIT_HERE = re.compile(_UNIT)
GROUP_MARK = re.compile(r"['’\u00a0\u2009\u202f](?<=\d.)(?<!\d{4}.)(?=\d{3}(?!\d))")
"""Between groups of three digits: Swiss apostrophes, spaces at which no line breaks."""


def find_numbers(text: str) -> Iterator[re.Match[str]]:
    """Yield what `_NUMBER` matches, as its `finditer`, which tries it at each character."""
    digit = _DIGIT.search(text)
    end = 0
    while digit is not None:
        first = digit.start()
        lead = text[max(0, first - 2) : first].rstrip()[-1:]
        found = _NUMBER.search(text, first if lead in _NO_LEAD else max(end, first - _BEFORE_DIGITS))
        if found is None:
            return
        yield found
        end = found.end()
        digit = _DIGIT.search(text, end)


def read_number(found: re.Match[str], join: str) -> str:
    """Return the words of a number with spaces around them; where it is part of a longer word, its text.

    `join` stands for a hyphen between a word and a number.
    """
    text = found.string
    before, after = text[found.start() - 1 : found.start()], text[found.end() : found.end() + 1]
    sign, lead = found["sign"] or found["inner"] or "", " "
    if before in {"e", "E"} and text[found.start() - 2 : found.start() - 1].isdigit():
        return found[0]  # 1e-3
    if found["sign"] and (_is_letter(before) or before in {")", "]", "}"}):  # an operator, or a hyphen
        lead = join if sign == "-" and _is_letter(before) else f" {sign} "
        sign = ""
    elif before == "^" or (_is_letter(before) and not found["currency"]):
        return found[0]
    # Also part of a longer word before a superscript.
    if after == "^" or after.isdigit() or (_is_letter(after) and not _UNIT_HERE.match(text, found.end())):
        return lead + found[0][len(found["sign"] or "") :] if sign == "" else found[0]
    numbers = _read_digits(found["first"])
    ends = [number for part in _RANGE_PART.findall(found["more"]) for number in _read_digits(part)]
    if ends:
        numbers = [*numbers[:-1], "-".join((numbers[-1], *ends))]
    numbers[0] = sign + numbers[0]
    if found["percent"]:
        numbers[-1] += found["percent"].strip()
    return f"{lead}{' '.join(numbers)} {found['currency'] or ''} "


def _read_digits(digits: str) -> list[str]:
    """Return the numbers of a run of digits, points and commas: one, or those of a list ("2,3,5")."""
    parts = digits.split(",")
    whole, _, fraction = parts[-1].partition(".")
    if len(parts) > 1 and _is_group(parts[0]) and all(len(part) == 3 for part in (*parts[1:-1], whole)):
        return ["".join(parts)] if "." not in fraction else [digits]
    if len(parts) == 2 and not fraction:
        groups = parts[0].split(".")
        if len(groups) == 1 or (_is_group(groups[0]) and all(len(group) == 3 for group in groups[1:])):
            return ["".join(groups) + "." + parts[1]]
    return [f"0{part}" if part.startswith(".") else part for part in parts]


def _is_group(digits: str) -> bool:
    """Tell whether groups of three may follow: "0,125" is no thousand, and "2024,125" none."""
    return digits.isdigit() and len(digits) <= 3 and not digits.startswith("0")


def _is_letter(character: str) -> bool:
    """Tell whether a number that this stands beside is part of a word. Hangul and scripts without spaces split off."""
    return character.isalpha() and not "\uac00" <= character <= "\ud7a3" and not re.match(UNSPACED, character)


# ---- One number with its unit

_ALONE = (
    "min:minute mins:minute h:hour hr:hour hrs:hour sec:second secs:second "
    "d:day ha:hectare °C:celsius °F:fahrenheit %:percent $:dollar €:euro °:degree"
)
_OTHER_NAMES = {**OTHER_NAMES, "degreecelsius": "celsius", "degreefahrenheit": "fahrenheit"}
_OTHER_NAMES |= {"degreescelsius": "celsius", "degreesfahrenheit": "fahrenheit"}
_NOT_ALIKE = {f"{short}M": f"{long}molar" for short, long in (("n", "nano"), ("µ", "micro"), ("m", "milli"))}
_NOT_ALIKE |= {"Nm": "newton-metre", "Mb": "megabit", "Gb": "gigabit", "Tb": "terabit"}
"""Symbols that differ in case from others, which are read in any case: 5 µm is not 5 µM, 5 GB not 5 Gb."""


@lru_cache(maxsize=1)
def _units() -> tuple[dict[str, str], dict[str, str]]:
    """Return symbol to name, and what is known in any case to name: names, and symbols that are alike in no case."""
    alone = dict([pair.split(":") for pair in _ALONE.split()])
    symbols = {f"{p}{unit}": long + name for p, (long, _) in PREFIXES.items() for unit, name in UNIT_NAMES.items()}
    symbols |= UNIT_NAMES | alone
    names = {name: name for name in symbols.values()}
    names |= {
        name.replace(new, old): name for old, new in _OTHER_NAMES.items() for name in set(names) if name.endswith(new)
    }
    names |= {f"{name}{plural}": unit for name, unit in names.items() for plural in ("s", "es")}
    folded: dict[str, set[str]] = {}
    for symbol, name in symbols.items():
        folded.setdefault(symbol.casefold(), set()).add(name)
    symbols |= _NOT_ALIKE
    del symbols["pm"]  # in the afternoon
    alike = {symbol: min(units) for symbol, units in folded.items() if len(units) == 1 and len(symbol) > 1}
    return symbols, alike | names


_AMOUNT = re.compile(r"\s*([-+]?)(0|[1-9]\d*|(?=\.))(?:\.(\d+))?(?:[eE]([-+]?\d{1,3}))?(\D*)")


def read_amount(text: str) -> str | None:
    """Return the value of a text that is one number, with its unit's name; None for other texts, and other units.

    The text is in its case. Prefixes are not computed: 5 kJ is not 5000 J. A number that begins with a needless 0 is a
    name (007).
    """
    found = _AMOUNT.fullmatch(text)
    if found is None:
        return None
    unit = _read_unit(" ".join(found[5].split()))
    if unit is None:
        return None
    number = f"{found[2]}.{(found[3] or '').rstrip('0')}".rstrip(".")
    if found[4]:
        shown = f"{Decimal(f'{number}e{found[4]}'):f}"
        number = shown.rstrip("0").rstrip(".") if "." in shown else shown
    number = "-" + number if found[1] == "-" and number.strip("0.") else number
    return f"{number} {unit}" if unit else number


def _read_unit(text: str) -> str | None:
    """Return the names of a unit's factors; None where one is not known."""
    if not text:
        return ""
    factors = []
    symbols, others = _units()
    for factor in re.split(r"\s*/\s*| per ", text.replace("μ", "µ").replace("\u2126", "Ω")):
        bare = factor.rstrip("²³")
        name = symbols.get(bare) or others.get(bare.replace(" ", "").casefold())
        if name is None:
            return None
        factors.append(name + factor[len(bare) :])
    return "/".join(factors)
