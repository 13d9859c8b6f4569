"""The arguments of `ultraeval:` run entries and of `load` and `check`, with their types."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from helm_ext.formats.ultraeval.values import File, Natural, Positive, Text, expecting

__all__ = ["Options"]


@dataclass(frozen=True, kw_only=True)
class Options:
    """How a task is found, asked and scored; None where the config or the files decide. `format` says what each means.

    Exactly one of `config`, `dataset` and `data` is needed.
    """

    config: File = None
    task: Text = None
    data: File = None
    transform: File = None
    dataset: Text = None
    method: Annotated[Literal["gen", "ppl"] | None, expecting("gen or ppl")] = None
    version: Text = None
    fewshot: Natural | None = None
    seed: Annotated[int | None, Field(strict=True), expecting("a whole number")] = None
    limit: Positive | None = None
    demos: File = None
    postprocess: Text = None
    thinking: Annotated[Literal["move", "keep"] | None, expecting("move or keep")] = None
    metric: Any = None
    """A name, several joined by `+`, or a list of them."""
    root: File = None
    dataset_name: Text = None
    params: File = None
    max_tokens: Positive | None = None
    temperature: Annotated[
        float | None, Field(strict=True, ge=0, allow_inf_nan=False), expecting("a number that is not negative")
    ] = None
    allow_code: bool = False
    name: Text = None
