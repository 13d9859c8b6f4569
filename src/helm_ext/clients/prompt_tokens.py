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
            with_offsets = option is not None and tokenizer.is_fast
            found = tokenizer(prompt, return_token_type_ids=False, return_offsets_mapping=with_offsets)
            ids = list(found["input_ids"])
            start = -1 if option is None else prompt.rfind(option)
            if not with_offsets or start < 0:
                return EncodedPrompt(ids, 1)
            # HELM's metric of options reads so many tokens from the end, and all of them for 0.
            read_by_helm = len(tokenizer.tokenize(f" {option}")) or len(ids)
        # A space before the option may be the option's, and a token may lie on both sides of the border.
        beyond = (place for place, (_, end) in enumerate(found["offset_mapping"]) if end > max(0, start - 1))
        first = min(next(beyond, len(ids)), len(ids) - read_by_helm)
        return EncodedPrompt(ids, max(1, first))

    def decode(self, sequences: Sequence[list[int]]) -> list[tuple[str, list[str]]]:
        """Return the text of each sequence, and the text of each of its tokens."""
        with self.wrapped_tokenizer as tokenizer:
            for token in {token for sequence in sequences for token in sequence} - self._texts.keys():
                self._texts[token] = tokenizer.decode(token)
            texts = tokenizer.batch_decode(sequences)
        return [(text, [self._texts[token] for token in ids]) for text, ids in zip(texts, sequences, strict=True)]
