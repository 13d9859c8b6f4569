"""The arguments of `ultraeval:` run entries and of `load` and `check`."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal

from helm_ext.errors import RunEntryError, did_you_mean

__all__ = ["Options", "read_options"]

_LEAST = {"fewshot": 0, "limit": 1, "seed": None}
"""The whole numbers among the arguments, and the least that makes sense."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """How a task is found, asked and scored (docs/ultraeval.md); None where the config or the files decide."""

    config: str | Path | None = None
    """A task config of upstream's. Exactly one of `config`, `dataset` and `data` is needed."""
    task: str | None = None
    """Which task of the config or the folder."""
    data: str | Path | None = None
    """A data file, with `transform`; or the log of a finished run."""
    transform: str | Path | None = None
    """A script."""
    dataset: str | None = None
    """A folder `datasets/NAME`, or its path."""
    method: str | None = None
    """`gen` or `ppl`."""
    version: int | str | None = None
    """Of the script."""
    fewshot: int | None = None
    """Demonstrations in each prompt."""
    seed: int | None = None
    """Of the demonstrations."""
    limit: int | None = None
    """The first rows only."""
    demos: str | Path | None = None
    """A file that demonstrations are drawn from."""
    postprocess: str | None = None
    """From a completion to the answer."""
    thinking: Literal["move", "keep"] | None = None
    """Whether what a model thinks is moved out of its completions. PPL has none."""
    metric: Any = None
    """A name, several, or upstream's object."""
    root: str | Path | None = None
    """The UltraEval checkout."""
    dataset_name: str | None = None
    """What scripts are told."""
    params: str | Path | None = None
    """A file of sampling parameters."""
    max_tokens: int | None = None
    temperature: float | None = None
    allow_code: bool = False
    """Whether metrics that run the model's code are permitted."""
    name: str | None = None
    """Of the dataset in reports."""

    def require_sense(self) -> None:
        """Raise RunEntryError for a value that is no whole number, a number that is too small, and a word of none."""
        if self.thinking not in (None, "move", "keep"):
            raise RunEntryError(f"thinking={self.thinking}: expected move or keep")
        for key, least in _LEAST.items():
            value = getattr(self, key)
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int) or (least is not None and value < least):
                bound = "" if least is None else f" of at least {least}"
                raise RunEntryError(f"{key}={value}: expected a whole number{bound}")


def read_options(arguments: dict[str, Any]) -> Options:
    """Return the arguments of `load` and `check`. Raises RunEntryError for one that is not known or no number."""
    known = [field.name for field in fields(Options)]
    for key in arguments:
        if key not in known:
            hint = did_you_mean(key, known) or f"known: {', '.join(known)}"
            raise RunEntryError(f"ultraeval: unknown argument {key!r}\n  hint: {hint}")
    options = Options(**arguments)
    options.require_sense()
    return options
