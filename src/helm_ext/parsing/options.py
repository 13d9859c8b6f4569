"""The options of one question: their labels and texts, simplified, and what is nothing but one of them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from helm_ext.parsing.decoration import LabelSet, fold, index, peelings, simplify

_BARE = re.compile(r"^(?:(?:the|an?)\s|[$€£¥](?=\d))")
"""What may be left out at the beginning of a text: "Nile" for "the Nile", "20" for "$20"."""


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
            if (bare := _BARE.sub("", text)) not in {"", text}:
                self.by_text.setdefault(bare, named)
        self.texts = tuple(sorted(self.by_text, key=len, reverse=True))
        self.endings = (*self.texts, *label_set.by_folded_core)
        """What an option that is named ends in, in lower case."""
        known = (*self.by_text, *label_set.by_folded_core)
        self.unsigned = [text[1:] for text in self.texts if text.startswith("-") and text[1:] in known]
        """Numbers of which the negative is an option too: "- 3" may be either."""
        self.longest_text = max(map(len, self.by_text), default=0)

    def read_alone(self, text: str, *, margin: int = 40) -> str | None:
        """Return the label that the text is, or is the text of, by its least stripped spelling that is either.

        A label goes before a text that is spelled alike.
        """
        is_label_long = len(text) <= self.label_set.longest + margin
        is_text_long = len(text) <= 2 * self.longest_text + 64
        if not text or not (is_label_long or is_text_long):
            return None
        for spelling in peelings(text):
            key = fold(spelling)
            label = self.label_set.find(spelling) if is_label_long else None
            if label is None and is_text_long and key not in self.label_set.by_folded_core:
                label = self.by_text.get(key)  # "B." is the label B, even where another option's text is B
            if label is not None:
                return label
        return None

    def find_text(self, part: str) -> str | None:
        """Return the option's text that `part` is nothing but."""
        if len(part) <= 2 * self.longest_text + 64:
            for spelling in peelings(part):
                if (key := fold(spelling)) in self.by_text:
                    return key
                if spelling[:1] in "-–+" and spelling[1:2].isdigit():
                    break
        return None
