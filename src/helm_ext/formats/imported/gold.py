"""What one gold means, once it is known how the golds of its column are read (`gold_column` decides that).

A gold is read as a label, a text, a position or a list of flags (`GoldKind.element`). Without options it is an accepted
text, or a list of them.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from helm_ext.errors import show

Options = Mapping[str, str]
"""Label to text, in the order of the options."""

Kind = Literal["label", "index", "text", "list", "flags"]

Element = Literal["label", "index", "text", "flags"]
"""What is read one by one: a list holds some of these."""

NO_YES: Options = {"false": "no", "true": "yes"}
"""The options of a column of true and false that has none. An answer may name them by either word."""

_WHOLE = re.compile(r"\s*(-?(?:0|[1-9][0-9]*))(?:\.0+)?\s*", re.ASCII)
"""A whole number as a cell has it; pandas writes 1.0 where another cell of the column is empty. "007" is not one."""


MOST_OPTIONS = 26
"""That have letters."""


def to_options(texts: Sequence[str]) -> dict[str, str]:
    """Return options that have no labels of their own as A, B, C, ... Raises ValueError for more than there may be."""
    if len(texts) > MOST_OPTIONS:
        raise ValueError(f"{len(texts)} options, and there are letters for {MOST_OPTIONS}")
    return {chr(ord("A") + index): text for index, text in enumerate(texts)}


@dataclass(frozen=True, slots=True)
class GoldKind:
    """How a column of golds is read."""

    kind: Kind
    """`list` without options: texts. With options, what the elements are stands in `element`."""
    element: Element
    base: int = 0
    """Of positions: that of the first option."""
    options: Options | None = None
    """The options that the column itself brings along (`NO_YES`). The rows have them."""
    reason: str = ""
    """Why it is read so, in words: "every gold is one of the labels of its row"."""
    hidden: int = 0
    """Rows without a gold, where the column was decided with `allow_hidden`."""

    def read(self, value: Any, options: Options | None = None) -> tuple[str, ...]:
        """Return what is right: labels where the row has options, else accepted texts. () where there is no gold.

        Raises ValueError for a value that is not of this kind; none of the column it was decided on is such.
        """
        if self.options is not None:
            options = self.options
        if is_hidden(value, options):
            return ()
        found = read_texts(value) if options is None else read_labels(self.element, self.base, value, options)
        if found is None:
            raise ValueError(f"{show(value)} cannot be read as {self.element}")
        return found


def is_hidden(value: Any, options: Options | None) -> bool:
    """Whether there is no gold: null, nothing, or -1 where no option is called so."""
    if isinstance(value, str):
        value = value.strip()
        if not value:
            return True
    elif value is None or value == [] or (isinstance(value, float) and value != value):  # noqa: PLR0124 - NaN
        return True
    if options is None or value not in (-1, "-1", "-1.0"):
        return False
    return "-1" not in options and all(text.strip() != "-1" for text in options.values())


def is_text(value: Any) -> bool:
    """Whether a gold, or each one of a list, is a text."""
    return isinstance(value, str) or (isinstance(value, (list, tuple)) and all(isinstance(one, str) for one in value))


def read_labels(element: Element, base: int, value: Any, options: Options) -> tuple[str, ...] | None:
    """Return the labels that a gold names when it is read in this way, or None where it cannot be."""
    if element == "flags":
        return _by_flags(value, options)
    if isinstance(value, (list, tuple)):
        found: list[str] = []
        for each in value:
            labels = _READ[element](each, options, base)
            if not labels or not set(found).isdisjoint(labels):
                return None
            found.extend(labels)
        return tuple(found) or None
    return _READ[element](value, options, base) or None


def _by_label(value: Any, options: Options, _: int) -> tuple[str, ...]:
    text = value if type(value) is str else _text(value)
    if text is None:
        return ()
    text = text.strip()
    if text in options:
        return (text,)
    for folded in dict.fromkeys((text.casefold(), _bare(text).casefold())):
        found = tuple(label for label in options if label.strip().casefold() == folded)
        if found:
            return found if len(found) == 1 else ()
    return ()


def _bare(text: str) -> str:
    """Return a label without what is written around it: "(A)", "A)", "[A]", "A."."""
    for before, after in (("(", ")"), ("[", "]"), ("", ")"), ("", ".")):
        if text.startswith(before) and text.endswith(after):
            return text[len(before) : -len(after)].strip()
    return text


def _by_text(value: Any, options: Options, _: int) -> tuple[str, ...]:
    """Return the labels of all options that have this text."""
    if isinstance(value, bool):
        words = ("true", "yes") if value else ("false", "no")
        return tuple(label for label, text in options.items() if text.strip().casefold() in words)
    wanted = _text(value)
    if wanted is None:
        return ()
    wanted = wanted.strip()
    return tuple(label for label, text in options.items() if text.strip() == wanted)


def _by_index(value: Any, options: Options, base: int) -> tuple[str, ...]:
    if type(value) is not int:
        text = _text(value)
        match = None if text is None else _WHOLE.fullmatch(text)
        if match is None:
            return ()
        value = int(match[1])
    at = value - base
    return tuple(itertools.islice(options, at, at + 1)) if 0 <= at < len(options) else ()


_READ = {"label": _by_label, "text": _by_text, "index": _by_index}


def _by_flags(value: Any, options: Options) -> tuple[str, ...] | None:
    if not isinstance(value, (list, tuple)) or len(value) != len(options):
        return None
    if any(flag not in (0, 1, "0", "1") for flag in value):
        return None
    return tuple(label for label, flag in zip(options, value, strict=True) if flag in (1, "1")) or None


def read_texts(value: Any) -> tuple[str, ...] | None:
    """Return the accepted texts of a gold without options, or None where it holds what is no text."""
    if type(value) is str:
        return (value,)
    if isinstance(value, (list, tuple)):
        texts = [_text(each) for each in value]
        return None if None in texts else tuple(dict.fromkeys(cast("list[str]", texts)))
    text = _text(value)
    return None if text is None else (text,)


def _text(value: Any) -> str | None:
    """Return a single value as text: 72 and 72.0 are "72". None for what has parts, and for nothing."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else repr(value)
    return str(value) if isinstance(value, int) else None
