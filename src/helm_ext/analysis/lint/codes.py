"""The codes of what lint finds."""

from __future__ import annotations

from helm_ext.errors import Code

__all__ = ["LintCode"]


class LintCode(Code):
    """What is odd about a row, or about all of them."""

    DIFFERENT_GOLDS = "different-golds"
    """A question that stands in the data twice, with answers that contradict one another."""
    DUPLICATE = "duplicate"
    NEAR_DUPLICATE = "near-duplicate"
    LEAK = "leak"
    """A question of the train split that is evaluated too, word for word or nearly."""
    GOLD_POSITION = "gold-position"
    """One position of the options holds the right one far too often."""
    ANSWER_IN_PROMPT = "answer-in-prompt"
    EMPTY_QUESTION = "empty-question"
    EMPTY_OPTION = "empty-option"
    MOJIBAKE = "mojibake"
    """A text that was decoded with another encoding than it was written in."""
    TRUNCATED = "truncated"
    PADDED_GOLD = "padded-gold"
    PLACEHOLDER = "placeholder"
    MARKUP = "markup"
