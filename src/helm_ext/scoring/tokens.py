"""The tokenizer that a user names (`scoring.score_tokenizer`), for scores that count tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

from helm_ext.errors import RunEntryError, show


@lru_cache(maxsize=2)
def load_tokenizer(name: str) -> Callable[[str], Sequence[int]]:
    """Return what gives the ids of a text's tokens, with those that the tokenizer adds by itself (GPT-2's adds none).

    `name` is a folder, or the name of a tokenizer in Hugging Face's cache on this machine. Nothing is downloaded and no
    code of the folder is run, because the name may come with the data. Raises RunEntryError where there is none.
    """
    from transformers import AutoTokenizer  # slow, and few need it

    try:
        tokenizer = AutoTokenizer.from_pretrained(name, local_files_only=True, trust_remote_code=False)
    except Exception as error:  # whatever a folder holds: transformers raises many kinds
        why = " ".join(str(error).split())[:200]
        raise RunEntryError(
            f"score_tokenizer={show(name)} cannot be loaded: {type(error).__name__}: {why}\n"
            "  hint: a folder with tokenizer.json, or a name that `hf download NAME` has put into this machine's cache"
        ) from error
    return lambda text: tokenizer(text)["input_ids"]
