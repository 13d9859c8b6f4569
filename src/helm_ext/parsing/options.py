"""The options of one question: their labels and texts, simplified, and what is nothing but one of them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from helm_ext.parsing.spelling import FINAL, LabelSet, fold, index, lower, peelings, simplify, squeeze

__all__ = ["Options"]


_BARE = re.compile(r"^(?:(?:the|an?)\s|[$€£¥](?=\d))")
"""What may be left out at the beginning of a text: "Nile" for "the Nile", "20" for "$20"."""


class Options:
    """Label to text, for one question."""

    def __init__(self, label_set: LabelSet, labels: Mapping[str, str]) -> None:
        self.label_set = label_set
        self.simplified = {label: simplify(option) for label, option in labels.items()}
        whole = {label: " ".join(lower(option).split()) for label, option in self.simplified.items()}
        self.folded = {label: text.rstrip(FINAL) for label, text in whole.items()}
        """Label to text, where case, white space and final punctuation do not count."""
        first_of_text: dict[str, str] = {}
        for label, option in labels.items():
            first_of_text.setdefault(option.strip(), label)
        # The same text twice is no ambiguity: it names the first.
        firsts = {label: first_of_text[option.strip()] for label, option in labels.items()}
        self.by_text = index((text, firsts[label]) for label, text in self.folded.items() if text)
        self.by_whole_text = index((text, firsts[label]) for label, text in whole.items() if text)
        """The same with the final punctuation."""
        for text, named in [*self.by_text.items()]:
            if (bare := _BARE.sub("", text)) not in {"", text}:
                self.by_text.setdefault(bare, named)
        self.texts = tuple(sorted(self.by_text, key=len, reverse=True))
        self.endings = (*self.texts, *label_set.by_folded_core)
        """What an option that is named ends in, in lower case."""
        self.longest_text = max(map(len, self.by_text), default=0)

    def read_alone(self, text: str, *, margin: int = 40) -> str | None:
        """Return the label that the text is, or is the text of, by its least stripped spelling that is either.

        A label goes before a text that is spelled alike. None also where what was stripped makes it the text of another
        option.
        """
        is_label_long = len(text) <= self.label_set.longest + margin
        is_text_long = len(text) <= 2 * self.longest_text + 64
        if not text or not (is_label_long or is_text_long):
            return None
        label = None
        for spelling, front, back in peelings(text):
            key = fold(spelling)
            label = self.label_set.find(spelling) if is_label_long else None
            if label is None and is_text_long:
                label = self.by_whole_text.get(squeeze(lower(spelling)))
            if label is None and is_text_long and key not in self.label_set.by_folded_core:
                label = self.by_text.get(key)  # "B." is the label B, even where another option's text is B
            if label is not None:
                others = self.find_longer(key, front, back)
                return label if all(self.by_text[other] == label for other in others) else None
        return None

    def find_longer(self, text: str, front: str, back: str = "") -> list[str]:
        """Return the other options' texts that `text` is together with what was stripped next to it: "$5" for 5."""
        if not front and not back:
            return []
        fronts = [lower(front[i:]) for i in range(len(front) + 1)]
        backs = [back[:i] for i in range(len(back) + 1)]
        spellings = {fold(before + text + behind) for before in fronts[-9:] for behind in backs[:9]}
        return [spelling for spelling in spellings - {text} if spelling in self.by_text]

    def find_texts(self, part: str) -> list[str]:
        """Return the options' texts that `part` is nothing but; several where decoration tells them apart."""
        if len(part) <= 2 * self.longest_text + 64:
            for spelling, front, back in peelings(part):
                key = fold(spelling)
                if key in self.by_text:
                    return [key, *self.find_longer(key, front, back)]
                if spelling[:1] in "-–+" and spelling[1:2].isdigit():
                    break
        return []
