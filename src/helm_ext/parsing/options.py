"""How labels and options' texts are spelled, and what may be around them: Unicode forms, brackets, markup, case.

`Options` holds those of one question, simplified, and says what is nothing but one of them. Numbers with units are
values: "48J", "48 joules" and "0.048 kJ" are one quantity, "5 mW" and "5 MW" are two.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

MARKER = "\ue000"
"""Stands for `\\boxed{` and `<answer>` once markup has been simplified (a private-use character)."""

NOTHING = "\ue001"
"""Stands for what is no option (a private-use character): no label, no text, no phrase."""

INVISIBLE = (
    "\u00ad\u061c\u200b\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2060\u2066\u2067\u2068\u2069\ufe0e\ufe0f\ufeff"
)
"""Soft hyphen, zero-width space, marks and isolates of direction, word joiner, variation of emoji, byte order mark."""
_UNSEEN = re.compile(f"[{INVISIBLE}\u0640\u20e3]")
"""These, tatweel, and the keycap of emoji."""

TICKS = "✅✔✓☑👉➡▶🔹"
OPENERS = "([{<«“„「『【《〈\"'`*_$\\" + TICKS
CLOSERS = ")]}>»”“「」』】》〉\"'`*_$\\" + TICKS
BRACKETS = ")]}»”“」』】》〉"
PUNCTUATION = ".,:;!?。、…،؛؟"
FINAL = PUNCTUATION + " "
_OPEN = rf"[\s:{re.escape(OPENERS)}]{{0,16}}"
_CLOSE = rf"[{re.escape(CLOSERS)}]{{0,8}}"
BULLET = re.compile(r"[-•*>#]{1,6}\s+")

_LATEX_BOX = re.compile(r"\\(?:boxed|fbox)\s{0,3}\{")
_STYLES = r"\\(?:text|textbf|textit|mathrm|mathbf|mathit)\s{0,3}\{"
_LATEX_STYLED = re.compile(_STYLES + r"([^{}]{0,200})\}")
_LATEX_STYLE = re.compile(_STYLES + r"|\\[()\[\]]")
_LATEX_FRACTION = re.compile(r"\\[dt]?frac(?:\s?\{([\w.]{1,40})\}\s?\{([\w.]{1,40})\}|(\d)(\d))")
_BRACED = re.compile(r"([\^_])\{(\w|-?\d{1,4})\}(?!\d)")
_WORDS_FOR_MINUS = re.compile(
    r"((?:\A|[\n:(=*$\"]|\b(?:is|are|be|equals|to|say|answer))\s?)\b(?:minus|negative)\s(?=\.?\d)", re.IGNORECASE
)
"""Of a number, not between two: "10 minus 5"."""
_ANSWER_TAG = re.compile(r"<(?:(?:final_)?answer|final|choice|option|label|ans)>", re.IGNORECASE)
_END_TAG = re.compile(r"</(?:(?:final_)?answer|final|choice|option|label|ans)>|<br\s{0,2}/?>", re.IGNORECASE)
_STYLE_TAG = re.compile(r"<(b|i|u|em|strong|code|p|span|div)>([^<>]{0,200})</\1>", re.IGNORECASE)


# A fence that names the language of a code block.
_FENCE = re.compile(r"^```[A-Za-z+#0-9]{2,12} ?\n", re.MULTILINE)

# The minus sign, and the dash that some write for it. Behind a word or a number it is a dash: 3–5.
_MINUS = re.compile(r"−|(?<![\w)%])–(?=[$€£¥]?\.?\d)")


# Digits, signs and n: 2⁵ is written 2^5, as plain text writes it; it is not 25.
_RAISED = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ]+")


def _canonical(text: str) -> str:
    """Return the text in Unicode's compatibility form, without invisible characters, with one minus and apostrophe."""
    if text.isascii():
        return text
    text = _UNSEEN.sub("", text).replace("‘", "'").replace("’", "'")
    text = unicodedata.normalize("NFKC", _RAISED.sub(r"^\g<0>", text))
    return _MINUS.sub("-", text) if "−" in text or "–" in text else text


_BLANKS = re.compile(r"[^\S\n](?:(?<! )|[^\S\n])[^\S\n]*")  # begins with one set: half the time
_FRENCH_SPACE = re.compile(r" (?<=\w )(?=[:;](?: |$))", re.MULTILINE)
"""Before a colon, in French."""


def simplify(text: str) -> str:
    """Return the canonical text with LaTeX and HTML reduced to brackets and MARKERs, and one space inside a line."""
    text = _FRENCH_SPACE.sub("", _BLANKS.sub(" ", _canonical(text)))
    if "```" in text:
        text = _FENCE.sub("```\n", text)
    text = text.replace("$$", "\n")  # a formula on a line of its own
    if "inus " in text or "egative " in text:
        text = _WORDS_FOR_MINUS.sub(r"\1-", text)
    if "\\" in text:
        text = _LATEX_FRACTION.sub(lambda m: f"{m[1] or m[3]}/{m[2] or m[4]}", text)
        text = _LATEX_STYLED.sub(r"\1", _LATEX_BOX.sub(MARKER + "{", text))
        text = _LATEX_STYLE.sub(lambda m: "{" if m[0].endswith("{") else "", text)
    if "^{" in text or "_{" in text:
        text = _BRACED.sub(r"\1\2", text)
    if "<" in text:
        text = _STYLE_TAG.sub(r"*\2*", _END_TAG.sub("\n", _ANSWER_TAG.sub(MARKER, text)))
    return text


def peel(text: str) -> str:
    """Return the text without the decoration around a label or an option's text."""
    text = text.strip().lstrip(MARKER)
    bullet = BULLET.match(text)
    if bullet:
        text = text[bullet.end() :]
    return text.lstrip(OPENERS + ": \n\t").rstrip(CLOSERS + PUNCTUATION + " \n\t")


SPACELESS = "\u1100-\u11ff\u3040-\u9fff\uac00-\ud7af"
"""Characters of scripts that put no spaces between words, or glue their particles to them, for a pattern."""


_END_TOKENS = re.compile(
    r"(?:\s{0,3}(?:<[|｜][^<>|｜\s]{1,40}[|｜]>|</?s>|<(?:eos|bos|pad|eot|eod|end_of_turn|endoftext|end_of_utterance)>|"
    r"\[(?:EOS|SEP|PAD)\])){1,64}\s*\Z",
    re.IGNORECASE,
)


def strip_end_tokens(text: str, options: Iterable[str]) -> str:
    """Return the text without the special tokens at its end that some models write: `B</s>`, `B<|im_end|>`.

    They stay where one of them is part of an option's text.
    """
    found = _END_TOKENS.search(text[-400:]) if text.endswith((">", "]")) else None
    if found is None or any(token in option for option in options for token in found[0].split()):
        return text
    return text.removesuffix(found[0]).rstrip()


ACCENTS = {code: plain[0] for code in range(0xC0, 0x250) if len(plain := unicodedata.normalize("NFD", chr(code))) > 1}
"""Latin letters with accents to those without."""


def lower(text: str) -> str:
    """Return the text in lower case and without accents, every character in its place: İ is i."""
    if text.isascii():
        return text.lower()
    if _ACCENTED.search(text):
        text = text.translate(ACCENTS)
    folded = text.casefold()
    return folded if len(folded) == len(text) else "".join(c.casefold() if len(c.casefold()) == 1 else c for c in text)


_ACCENTED = re.compile("[\u00c0-\u024f]")


def fold(text: str) -> str:
    """Return an option's text so that case, white space and final punctuation do not count."""
    return " ".join(lower(text).split()).rstrip(FINAL)


def index(pairs: Iterable[tuple[str, str]]) -> dict[str, str | None]:
    """Return key to label, and None for a key that several labels share."""
    labels: dict[str, str | None] = {}
    for key, label in pairs:
        labels[key] = label if labels.get(key, label) == label else None
    return labels


@dataclass(frozen=True)
class LabelSet:
    """What can be prepared for a sequence of labels, whatever the options' texts are."""

    by_core: dict[str, str | None]
    by_folded_core: dict[str, str | None]
    longest: int
    pattern: re.Pattern[str]
    """A label, as a word of its own."""
    plain: re.Pattern[str]
    """A completion that is nothing but the usual statement of a label: groups named, label."""

    def find(self, spelling: str) -> str | None:
        """Return the label of that spelling, else the only one that differs from it in case."""
        if spelling in self.by_core:
            return self.by_core[spelling]
        return self.by_folded_core.get(spelling.casefold())


@lru_cache(maxsize=512)
def get_label_set(labels: tuple[str, ...]) -> LabelSet:
    cores = [(peel(_canonical(label)) or label.strip(), label) for label in labels if label.strip()]
    by_core = index(cores)
    # The longest first: 10 before 1.
    spellings = "|".join(re.escape(core) for core in sorted(by_core, key=len, reverse=True)) or "(?!)"
    return LabelSet(
        by_core=by_core,
        by_folded_core=index((core.casefold(), label) for core, label in cores),
        longest=max(map(len, labels), default=0),
        pattern=re.compile(rf"(?<![^\W_{SPACELESS}])(?:{spellings})(?![^\W_{SPACELESS}])", re.IGNORECASE),
        plain=re.compile(
            r"(?:(?:so|thus|therefore),? )?(?:the )?(?:(?:correct|right|best|final) )?(?:answer|option|choice)"
            rf"(?: is:?|:) ?(?P<named>(?:option )?[(\"*]{{0,3}}(?P<label>{spellings})[)\"*]{{0,3}}\.?)",
            re.IGNORECASE,
        ),
    )


_OPERATOR = re.compile(r"(?<=[\w)}]) ?([-+=<>]|(?<=\d),(?= ?[-\d])) ?(?=[-\w({\\])")
_BARE = re.compile(r"^(?:(?:the|an?)\s(?!only\b)|[$€£¥](?=\d)|\$(?=.*\$$))|(?<=\S)\$$")
"""What may be left out at the beginning of a text: "Nile" for "the Nile", "20" for "$20", "2x" for "$2x$"."""


def _respell(text: str) -> Iterator[str]:
    """Yield other spellings of an option's text, in lower case: without article, sign or accents, formulas' spaces."""
    bare = _BARE.sub("", text)
    if bare != text:
        yield bare
    if _OPERATOR.search(bare):
        yield from (_OPERATOR.sub(operator, bare) for operator in (r"\1", r" \1 "))


class Options:
    """Label to text, for one question."""

    def __init__(self, label_set: LabelSet, labels: Mapping[str, str]) -> None:
        self.label_set = label_set
        self.simplified = {label: simplify(option) for label, option in labels.items()}
        self.folded = {label: fold(option) for label, option in self.simplified.items()}
        """Label to text, where case, white space and final punctuation do not count."""
        first_of_text: dict[str, str] = {}
        for label, option in labels.items():
            first_of_text.setdefault(option.strip(), label)
        # The same text twice is no ambiguity: it names the first.
        firsts = {label: first_of_text[option.strip()] for label, option in labels.items()}
        self.by_text = index((text, firsts[label]) for label, text in self.folded.items() if text)
        for text, named in [*self.by_text.items()]:
            for spelling in filter(None, _respell(text)):
                self.by_text.setdefault(spelling, named)
        texts = sorted(self.by_text.keys() - label_set.by_folded_core.keys(), key=lambda text: (-len(text), text))
        self.texts = tuple(texts)
        """The longest first; one that is spelled like a label is read as that."""
        known = (*self.by_text, *label_set.by_folded_core)
        self.unsigned = [text[1:] for text in self.texts if text.startswith("-") and text[1:] in known]
        """Numbers of which the negative is an option too: "- 3" may be either."""


# ---- Numbers with units

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


@lru_cache(maxsize=1)
def _list_units() -> Mapping[str, tuple[Fraction, str]]:
    """Return, by symbol and by name, how much of which unit."""
    units: dict[str, tuple[Fraction, str]] = {}
    for unit, name in UNIT_NAMES.items():
        names = {name, *(other for other, known in OTHER_NAMES.items() if known == name)}
        for prefix, (long, power) in {"": ("", 0), **PREFIXES}.items():
            value = Fraction(10) ** power, "L" if unit == "l" else unit
            for short in ("u", "μ") if prefix == "µ" else (prefix,):  # texts are in their compatibility form
                units[short + unit] = value
            units |= {f"{long}{name}{plural}": value for name in names for plural in ("", "s")}
    for size, unit, spellings in (
        (60, "s", "min mins minute minutes"),
        (3600, "s", "h hr hrs hour hours"),
        (1, "°C", "°C degC Celsius"),
        (1, "°F", "°F degF Fahrenheit"),
        (1, "°", "° deg degree degrees"),
        (1, "%", "% percent"),
        (1, "€", "€ EUR euro euros Euro Euros"),
        (1, "$", "$ USD dollar dollars"),
        (1, "£", "£ GBP"),
        (1, "¥", "¥ JPY yen"),
    ):
        units |= {spelling: (Fraction(size), unit) for spelling in spellings.split()}
    return units


_NUMBER = (
    r"(?<![\w.,^$€£¥])(?:(?P<currency>[$€£¥])\s?)?(?P<number>-?\d{1,15}(?:,\d{3}){0,5}(?:[.,]\d{1,15}|/[1-9]\d{0,3})?)"
    r"(?:\s?[×x*]\s?10\^(?P<power>[-+]?\d{1,2}))?"
)
_DIGIT = re.compile(r"\d")
_ATOM = r"(?:[A-Za-zμΩ°%]{1,16}(?:\^?-?\d)?|[$€£¥])"
_QUANTITY = re.compile(
    rf"{_NUMBER}(?(currency)|(?:\s{{0,2}}(?:degrees?\s)?(?P<unit>{_ATOM}(?:(?:\s?(?:/|·|\*)\s?|\sper\s){_ATOM}){{0,3}}))?)(?![\w^]|[.,]\d)"
)


def _read_quantity(match: re.Match[str] | None) -> Quantity | None:
    """Return what `_QUANTITY` has found as a value, None where its unit is none; a number without one has no units."""
    if match is None:
        return None
    number = match["number"]
    thousands = re.fullmatch(r"-?\d{1,3}(?:,\d{3})+(?:\.\d+)?", number)
    value = Fraction(number.replace(",", "" if thousands else ".")) * Fraction(10) ** int(match["power"] or 0)
    powers = {match["currency"]: 1} if match["currency"] else {}
    units, sign = _list_units(), 1
    for part in re.split(r"\s?([/·*])\s?|\s(per)\s", match["unit"] or ""):
        if part in {"/", "per"}:
            sign = -1
        elif part and part not in "·*":
            name, power = re.fullmatch(r"(\D+?)\^?(-?\d)?", part).groups()  # type: ignore[union-attr]
            if name not in units:
                return None
            size, unit = units[name]
            exponent = sign * int(power or 1)
            value *= size**exponent
            powers[unit] = powers.get(unit, 0) + exponent
    return value, tuple(sorted(powers.items()))


def spell_as_options(text: str, texts: Mapping[str, str]) -> str:
    """Return the text with quantities spelled as the only option of that value is: "4800 J" as "4.8 kJ".

    A sum in another currency than the options' is none of theirs: "$20" is not "€20". `texts`: the options' texts,
    simplified, by label. Both are in Unicode's compatibility form.
    """
    spelled: dict[Quantity, str | None] = {}
    for option in texts.values() if _DIGIT.search(text) else ():
        quantity = _read_quantity(_QUANTITY.fullmatch(option.strip()))
        if quantity is not None:
            spelled[quantity] = None if quantity in spelled else option.strip()
    if not spelled:
        return text
    currencies = {unit for _, units in spelled for unit, _ in units} & {*"$€£¥"}

    def spell(match: re.Match[str]) -> str:
        quantity = _read_quantity(match) or _NO_QUANTITY
        unit = quantity[1][0][0] if quantity[1] else ""
        is_formula = match["currency"] == "$" == text[match.end() : match.end() + 1]
        is_foreign = currencies and unit in {*"$€£¥"} - currencies and not is_formula
        return NOTHING if is_foreign else spelled.get(quantity) or match[0]

    return _QUANTITY.sub(spell, text)


_NO_QUANTITY: Quantity = (Fraction(0), (("", 0),))
"""No option's value."""
