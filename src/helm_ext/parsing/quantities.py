"""Numbers with units as values: "48J", "48 joules" and "0.048 kJ" are one quantity; "5 mW" and "5 MW" are two."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import TypeAlias

__all__ = ["spell_as_options"]

Quantity: TypeAlias = "tuple[Fraction, tuple[tuple[str, int], ...]]"
"""A value in base units, and those with their powers: 36 km/h is (10, (("m", 1), ("s", -1)))."""

_PREFIXES = {"": 0, "T": 12, "G": 9, "M": 6, "k": 3, "c": -2, "d": -1, "m": -3, "u": -6, "μ": -6, "n": -9, "p": -12}
_PREFIX_NAMES = {"": "", "tera": "T", "giga": "G", "mega": "M", "kilo": "k", "centi": "c", "deci": "d", "milli": "m"}
_PREFIX_NAMES |= {"micro": "μ", "nano": "n", "pico": "p"}
_NAMES = {"meter": "m", "metre": "m", "gram": "g", "second": "s", "ampere": "A", "amp": "A", "kelvin": "K"}
_NAMES |= {"mole": "mol", "hertz": "Hz", "newton": "N", "pascal": "Pa", "joule": "J", "watt": "W", "coulomb": "C"}
_NAMES |= {"volt": "V", "farad": "F", "ohm": "Ω", "tesla": "T", "henry": "H", "liter": "L", "litre": "L"}
_NAMES |= {"electronvolt": "eV", "calorie": "cal", "byte": "B"}
_UNITS: dict[str, tuple[Fraction, str]] = {
    prefix + unit: (Fraction(10) ** power, "L" if unit == "l" else unit)
    for prefix, power in _PREFIXES.items()
    for unit in {*_NAMES.values(), "l"}
}
for _prefix, _short in _PREFIX_NAMES.items():
    for _name, _unit in _NAMES.items():
        _UNITS[_prefix + _name] = _UNITS[_prefix + _name + "s"] = _UNITS[_short + _unit]
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
    for option in texts.values():
        quantity = _read(_QUANTITY.fullmatch(option.strip()))
        if quantity is not None:
            spelled[quantity] = None if quantity in spelled else option.strip()
    if not spelled:
        return text
    return _QUANTITY.sub(lambda match: spelled.get(_read(match) or _NONE) or match[0], text)


_NONE: Quantity = (Fraction(0), (("", 0),))
"""No option's value."""
