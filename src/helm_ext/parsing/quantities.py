"""Numbers with units as values: "48J", "48 joules" and "0.048 kJ" are one quantity; "5 mW" and "5 MW" are two."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import TypeAlias

Quantity: TypeAlias = "tuple[Fraction, tuple[tuple[str, int], ...]]"
"""A value in base units, and those with their powers: 36 km/h is (10, (("m", 1), ("s", -1)))."""

PREFIXES = {
    "P": ("peta", 15), "T": ("tera", 12), "G": ("giga", 9), "M": ("mega", 6), "k": ("kilo", 3), "h": ("hecto", 2),
    "d": ("deci", -1), "c": ("centi", -2), "m": ("milli", -3), "µ": ("micro", -6), "n": ("nano", -9),
    "p": ("pico", -12),
}  # fmt: skip
"""By symbol: name, and power of ten."""
UNIT_NAMES = {
    "m": "metre", "g": "gram", "s": "second", "A": "ampere", "K": "kelvin", "mol": "mole", "cd": "candela",
    "Hz": "hertz", "N": "newton", "Pa": "pascal", "J": "joule", "W": "watt", "C": "coulomb", "V": "volt", "F": "farad",
    "Ω": "ohm", "S": "siemens", "Wb": "weber", "T": "tesla", "H": "henry", "lm": "lumen", "lx": "lux",
    "Bq": "becquerel", "Gy": "gray", "Sv": "sievert", "kat": "katal", "L": "litre", "l": "litre", "t": "tonne",
    "eV": "electronvolt", "bar": "bar", "cal": "calorie", "B": "byte", "bit": "bit", "Wh": "watt-hour",
}  # fmt: skip
"""Units that take prefixes, by symbol."""
OTHER_NAMES = {"meter": "metre", "liter": "litre", "amp": "ampere"}

_UNITS: dict[str, tuple[Fraction, str]] = {}
"""By symbol and by name: how much of which unit."""
for _unit, _name in UNIT_NAMES.items():
    _names = {_name, *(other for other, name in OTHER_NAMES.items() if name == _name)}
    for _prefix, (_long, _power) in {"": ("", 0), **PREFIXES}.items():
        _value = Fraction(10) ** _power, "L" if _unit == "l" else _unit
        for _short in ("u", "μ") if _prefix == "µ" else (_prefix,):  # texts are in their compatibility form
            _UNITS[_short + _unit] = _value
        _UNITS |= {f"{_long}{name}{plural}": _value for name in _names for plural in ("", "s")}
for _size, _unit, _spellings in (
    (60, "s", "min mins minute minutes"),
    (3600, "s", "h hr hrs hour hours"),
    (1, "°C", "°C degC Celsius"),
    (1, "°F", "°F degF Fahrenheit"),
    (1, "°", "° deg degree degrees"),
    (1, "%", "% percent"),
):
    _UNITS |= {spelling: (Fraction(_size), _unit) for spelling in _spellings.split()}

_NUMBER = (
    r"(?<![\w.,^])(?P<number>-?\d{1,15}(?:,\d{3}){0,5}(?:[.,]\d{1,15})?)(?:\s?[×x*]\s?10\^(?P<power>[-+]?\d{1,2}))?"
)
_DIGIT = re.compile(r"\d")
_ATOM = r"[A-Za-zμΩ°%]{1,16}(?:\^?-?\d)?"
_QUANTITY = re.compile(
    rf"{_NUMBER}(?:\s{{0,2}}(?:degrees?\s)?(?P<unit>{_ATOM}(?:(?:\s?(?:/|·|\*)\s?|\sper\s){_ATOM}){{0,3}}))?(?![\w^]|[.,]\d)"
)


def _read(match: re.Match[str] | None) -> Quantity | None:
    """Return what `_QUANTITY` has found as a value, None where its unit is none; a number without one has no units."""
    if match is None:
        return None
    number = match["number"]
    thousands = re.fullmatch(r"-?\d{1,3}(?:,\d{3})+(?:\.\d+)?", number)
    value = Fraction(number.replace(",", "" if thousands else ".")) * Fraction(10) ** int(match["power"] or 0)
    powers: dict[str, int] = {}
    sign = 1
    for part in re.split(r"\s?([/·*])\s?|\s(per)\s", match["unit"] or ""):
        if part in {"/", "per"}:
            sign = -1
        elif part and part not in "·*":
            name, power = re.fullmatch(r"(\D+?)\^?(-?\d)?", part).groups()  # type: ignore[union-attr]
            if name not in _UNITS:
                return None
            size, unit = _UNITS[name]
            exponent = sign * int(power or 1)
            value *= size**exponent
            powers[unit] = powers.get(unit, 0) + exponent
    return value, tuple(sorted(powers.items()))


def spell_as_options(text: str, texts: Mapping[str, str]) -> str:
    """Return the text with quantities spelled as the only option of that value is: "4800 J" as "4.8 kJ".

    `texts`: the options' texts, simplified, by label. Both are in Unicode's compatibility form.
    """
    spelled: dict[Quantity, str | None] = {}
    for option in texts.values() if _DIGIT.search(text) else ():
        quantity = _read(_QUANTITY.fullmatch(option.strip()))
        if quantity is not None:
            spelled[quantity] = None if quantity in spelled else option.strip()
    if not spelled:
        return text
    return _QUANTITY.sub(lambda match: spelled.get(_read(match) or _NONE) or match[0], text)


_NONE: Quantity = (Fraction(0), (("", 0),))
"""No option's value."""
