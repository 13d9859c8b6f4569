"""The words of a text, for scores that compare an expected text with a reply word by word. Pure, linear in the text.

The grammar, in the order in which it is tried (docs/innodata.md, "What a word is"):

- *number*: a sign that nothing stands before, digits of any script, a decimal mark; `%`; or a range of two or more
  numbers with dashes between them. A currency in front moves behind it, a unit or a currency behind it is left standing
  as a word of its own.
- *character*: in scripts that write no spaces (Han, kana, Thai, Lao, Khmer, Burmese) each is a word.
- *symbol*: relations (`=`), arrows and pictures are words of their own.
- *letters*: what else stands between spaces and punctuation, digits included (`7th`, `5x`, `B12`, `v1.4`, `C#`, `C++`).
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

__all__ = ["APOSTROPHES", "find", "separate_characters", "words"]

APOSTROPHES = "'’‘ʼ＇`´"

# ---- What is the same when it is read

_INVISIBLE = "\u00ad\u200b\u2060\ufeff\u200e\u200f\u061c\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
"""Soft hyphen, zero-width space, word joiner, BOM, marks of direction. The joiners U+200C and U+200D stay."""
_SAME = str.maketrans(
    dict.fromkeys(_INVISIBLE)
    | {chr(0xFEE0 + code): chr(code) for code in range(33, 127)}  # full width
    | {"٫": ".", "٬": ",", "٪": "%", "￥": "¥", "￡": "£", "￦": "₩"}
)
_DIGIT = re.compile(r"[^\D0-9]")
"""A digit of another script."""
_HALF_WIDTH = re.compile("[\uff61-\uff9f]+")
_DOTLESS = str.maketrans({"İ": "i", "ı": "i"})
"""Which of the two a writer means depends on the language; a reader knows."""


def _make_plain(text: str, *, ignore_case: bool) -> str:
    text = unicodedata.normalize("NFC", text.translate(_SAME))
    text = _HALF_WIDTH.sub(lambda found: unicodedata.normalize("NFKC", found[0]), text)
    text = _DIGIT.sub(lambda found: str(unicodedata.decimal(found[0])), text)
    return text.translate(_DOTLESS) if ignore_case else text


# ---- Numbers

_DASH = "[-\u2010-\u2013\u2212\ufe63]"
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
    "℃|℉",
)
_UNIT = rf"(?:{'|'.join(_UNITS)})(?![^\W\d_\u0e00-\u0eff\u3040-\u9fff\uac00-\ud7a3])"
"""What may stand right behind a number without being part of it: a closed list."""
_PERCENT = r"\s*[%‰]"
_NUMBER = re.compile(
    rf"(?<![\d.])(?<!\d,)(?P<sign>{_DASH}|[+±])?(?:(?P<currency>{_CURRENCY})\s?(?P<inner>{_DASH})?)?"
    rf"(?P<first>\.?{_DIGITS})"
    rf"(?P<more>(?:(?:%|{_UNIT})?{_DASH}{_CURRENCY}?{_DIGITS})*)"
    rf"(?P<percent>{_PERCENT})?"
)
_RANGE_PART = re.compile(rf"{_DASH}{_CURRENCY}?({_DIGITS})")
_UNIT_HERE = re.compile(_UNIT)
_GROUP_MARK = re.compile(r"(?<=\d)(?<!\d{4})['’\u00a0\u2009\u202f](?=\d{3}(?!\d))")
"""Between groups of three digits: Swiss apostrophes, spaces at which no line breaks."""


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
    return character.isalpha() and not "\uac00" <= character <= "\ud7a3" and not _UNSPACED.match(character)


def _read_number(found: re.Match[str]) -> str | None:
    """Return the words of a number, joined by spaces; None where it is part of a longer word."""
    text = found.string
    before, after = text[found.start() - 1 : found.start()], text[found.end() : found.end() + 1]
    if after.isdigit() or (after and _is_letter(after) and not _UNIT_HERE.match(text, found.end())):
        return None  # also before a superscript
    sign = found["sign"] or found["inner"] or ""
    if sign and sign not in "+±":
        sign = "-"
    if before and (_is_letter(before) or before in ")]^"):
        if sign != "-" and before not in ")]":
            return None
        sign = ""  # a hyphen, or an operator
    numbers = _read_digits(found["first"])
    ends = [number for part in _RANGE_PART.findall(found["more"]) for number in _read_digits(part)]
    if ends:
        numbers = [*numbers[:-1], "-".join((numbers[-1], *ends))]
    numbers[0] = sign + numbers[0]
    if found["percent"]:
        numbers[-1] += found["percent"].strip()
    currency = (found["currency"] or "").strip()
    return f" {' '.join(numbers)} {currency} "


# ---- Everything else

_UNSPACED = re.compile(
    "["
    "\u0e00-\u0e7f\u0e80-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Burmese, Khmer
    "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff"  # kana
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Han
    "]"
    "[\u0300-\u036f\u3099\u309a\ufe00-\ufe0f\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ecd]*"
)
"""A character of a script that is written without spaces, with its marks. Hangul has spaces and is not here."""
_ALONE = re.compile(
    "[=<>|~×÷\u223c-\u226f]+"  # relations and operators: "x=5" says 5, and is "x = 5"
    "|(?<=\\d)[+*^](?=\\d)"
    "|[\u00a9\u00ae\u2122\u2190-\u21ff\u2300-\u23ff\u2500-\u27bf\u2900-\u297f\u2b00-\u2bff"  # arrows, pictures
    "\U0001f000-\U0001faff][\ufe0e\ufe0f]?"
)
"""Symbols that are words of their own, with or without spaces around them."""
_MATH = re.compile(r"(?<![\w$])\$\$?(?=[^\s$])([^$\n]*)(?<=\S)\$\$?(?!\d)")
"""A formula between dollar signs. Pandoc's rule tells it from amounts: no space inside, no digit behind (`$4-$5`)."""


def separate_characters(text: str) -> str:
    """Return `text` with a space on both sides of each character of a script that is written without spaces."""
    return _UNSPACED.sub(r" \g<0> ", text)


def _split(text: str) -> tuple[str, ...]:
    return tuple(_ALONE.sub(r" \g<0> ", separate_characters(text)).split())


def _without_punctuation(text: str) -> str:
    """Replace punctuation by spaces, except where it is part of a number or a word.

    In words stay: what stands between digits (`v1.4`), and `#` after a letter (`C#`). An apostrophe between letters
    goes without leaving a space (`don't` = `don’t` = `dont`). Symbols such as `+` and `$` are no punctuation.
    """
    text = _GROUP_MARK.sub("", _ALONE.sub(r" \g<0> ", _MATH.sub(r" \1 ", text)))
    out: list[str] = []
    end = 0
    for found in _NUMBER.finditer(text):
        number = _read_number(found)
        if number is not None:
            _add_letters(text, end, found.start(), out)
            out.append(number)
            end = found.end()
    _add_letters(text, end, len(text), out)
    return "".join(out)


def _add_letters(text: str, start: int, end: int, out: list[str]) -> None:
    for index in range(start, end):
        character = text[index]
        if not (unicodedata.category(character).startswith("P") or character in "`´"):
            out.append(character)
            continue
        before = text[index - 1] if index else " "
        after = text[index + 1] if index + 1 < len(text) else " "
        if (before.isdigit() and after.isdigit() and start < index < end - 1) or (
            character == "#" and before.isalpha()
        ):
            out.append(character)
        elif not (character in APOSTROPHES and before.isalpha() and after.isalpha()):
            out.append(" ")


@lru_cache(maxsize=4096)
def words(text: str, *, ignore_case: bool = True, ignore_punctuation: bool = True) -> tuple[str, ...]:
    """Return the words of `text` in order.

    Where punctuation counts, a word is what stands between spaces. A text that consists of punctuation only keeps it
    even when punctuation is ignored: otherwise "?" would equal "".
    """
    text = _make_plain(text, ignore_case=ignore_case)
    found = _split(_without_punctuation(text)) if ignore_punctuation else ()
    found = found or _split(text)
    if ignore_case:
        found = tuple(unicodedata.normalize("NFC", word.casefold()) for word in found)
    return found


# ---- Korean

_AFTER_CONSONANT = (
    "은 이 을 과 으로 으로서 으로써 이나 이랑 이라고 이란 이며 이고 이라는 이에요 이야 이었다 이었습니다 아 이여"
)
_AFTER_VOWEL = "는 가 를 와 로 로서 로써 나 랑 라고 란 며 고 라는 예요 야 였다 였습니다 다 지만 죠 지 여"
_AFTER_BOTH = (
    "의 에 에서 에게 에게서 께 께서 한테 한테서 도 만 까지 부터 "
    "보다 처럼 마다 조차 밖에 하고 입니다 이다 입니다만 이지만 인데 이죠 이지"
)
"""What may follow a Korean noun without a space: particles and forms of the copula. A closed list."""
_TOPICS = ("은", "는", "도", "만", "이", "의")
"""What may follow another particle ("까지는")."""
_WRONG_AFTER_CONSONANT = frozenset(_AFTER_VOWEL.split())
_WRONG_AFTER_VOWEL = frozenset(_AFTER_CONSONANT.split())
_PARTICLES = _WRONG_AFTER_CONSONANT | _WRONG_AFTER_VOWEL | frozenset(_AFTER_BOTH.split())
_ENDINGS = _PARTICLES | {
    first + topic for first in _PARTICLES for topic in _TOPICS if len(first) > 1 or first in "에로만"
}  # fmt: skip


def _may_follow(ending: str, word: str) -> bool:
    """Tell whether `ending` is a Korean particle that may follow the last sound of `word`."""
    if ending not in _ENDINGS:
        return False
    last = ord(word[-1]) - 0xAC00
    if not 0 <= last < 28 * 399:  # no syllable: how the word sounds is not known
        return True
    final = last % 28
    if final == 8 and ending.startswith("로"):
        return True
    return ending not in (_WRONG_AFTER_CONSONANT if final else _WRONG_AFTER_VOWEL)


def find(wanted: tuple[str, ...], said: tuple[str, ...], *, at_start: bool) -> bool:
    """Tell whether `wanted` (not empty) stands in `said`, or at its start; a Korean particle may follow it."""
    needle, text = "\n".join(("", *wanted)), "\n".join(("", *said, ""))
    place = text.find(needle)
    while place != -1 and not (at_start and place):
        end = place + len(needle)
        ending = text[end : text.index("\n", end)]
        if not ending or _may_follow(ending, wanted[-1]):
            return True
        place = text.find(needle, end)
    return False
