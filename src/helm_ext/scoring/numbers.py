"""Numbers in texts (docs/innodata.md, "What a word is"), and texts that are one number with its unit."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from functools import lru_cache

from helm_ext.parsing.quantities import OTHER_NAMES, PREFIXES, UNIT_NAMES

UNSPACED = (
    "[\u0e00-\u0e7f\u0e80-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Burmese, Khmer
    "\u3005-\u3007\u3040-\u30fa\u30fc-\u30ff\u31f0-\u31ff"  # kana
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"  # Han
)
"""A character of a script that is written without spaces. Hangul has spaces and is not here."""

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
