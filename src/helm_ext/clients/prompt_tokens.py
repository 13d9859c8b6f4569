"""The tokens of prompts as HELM's HuggingFaceClient has them, and where the option in a prompt begins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["EncodedPrompt", "PromptTokens"]


@dataclass(frozen=True)
class EncodedPrompt:
    """A prompt as the model gets it."""

    ids: list[int]
    """With the tokens that the tokenizer puts around each text."""
    first_of_option: int
    """The first token whose value a score of the option may read; 1 if all may be read, or where it is not known."""


class PromptTokens:
    """A tokenizer of transformers, behind HELM's lock. Texts of single tokens are kept: they are asked for often."""

    def __init__(self, wrapped_tokenizer: Any) -> None:
        self.wrapped_tokenizer = wrapped_tokenizer
        self._texts: dict[int, str] = {}

    def encode(self, prompt: str, option: str | None = None) -> EncodedPrompt:
        """Return the tokens of a prompt. `option`: the text that ends it, of which the beginning is looked for."""
        with self.wrapped_tokenizer as tokenizer:
            found = tokenizer(prompt, return_token_type_ids=False)
            ids = found["input_ids"]
            start = -1 if option is None else prompt.rfind(option)
            if start < 0 or not found.is_fast:
                return EncodedPrompt(ids, 1)
            # HELM's metric of options reads so many tokens from the end, and all of them for 0.
            read_by_helm = len(tokenizer(f" {option}", add_special_tokens=False)["input_ids"]) or len(ids)
        # A space before the option may be the option's, and a token may lie on both sides of the border.
        places = (found.char_to_token(at) for at in range(max(0, start - 1), len(prompt)))
        beyond = next((place for place in places if place is not None), len(ids))
        return EncodedPrompt(ids, max(1, min(beyond, len(ids) - read_by_helm)))

    def decode(self, sequences: Sequence[list[int]]) -> list[tuple[str, list[str]]]:
        """Return the text of each sequence, and the text of each of its tokens."""
        with self.wrapped_tokenizer as tokenizer:
            for token in {token for sequence in sequences for token in sequence} - self._texts.keys():
                self._texts[token] = tokenizer.decode(token)
            texts = tokenizer.batch_decode(sequences)
        return [(text, [self._texts[token] for token in ids]) for text, ids in zip(texts, sequences, strict=True)]
