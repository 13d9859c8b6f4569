"""Sampling parameters of a GEN task: upstream's `models/model_params/*.json` (vLLM's names) in HELM's words."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, ValidationError

from helm_ext.errors import DatasetNotFoundError, DatasetSchemaError, Location, Problem, raise_for, show
from helm_ext.evalset import Decoding
from helm_ext.files import read_json
from helm_ext.formats.ultraeval.options import Positive, expecting, to_problems

DEFAULT_MAX_TOKENS = 100
"""Upstream's recommendation for tasks without parameters of their own; its temperature for those is 0.3, ours is 0."""


@dataclass(frozen=True)
class Sampling:
    """How answers are generated."""

    temperature: float = 0.0
    max_tokens: int = DEFAULT_MAX_TOKENS
    stop: tuple[str, ...] = ()
    num_outputs: int = 1
    decoding: Decoding = field(default_factory=Decoding)


_Number = Annotated[float | None, expecting("a number")]


class _Parameters(BaseModel):
    """A parameter file. Any other key that is set is not sent, which is said."""

    model_config = ConfigDict(extra="allow", strict=True)

    temperature: _Number = None
    top_p: _Number = None
    frequency_penalty: _Number = None
    presence_penalty: _Number = None
    max_tokens: Positive | None = None
    sampling_num: Positive | None = None
    n: Positive | None = None
    top_k: Annotated[int | None, expecting("a whole number")] = None
    stop: Annotated[str | list[str] | None, expecting("a string or a list of strings")] = None
    # How upstream's server works, not what is sampled:
    batch_size: Any = None
    logprobs: Any = None
    prompt_logprobs: Any = None
    skip_special_tokens: Any = None


def read_sampling(
    path: Path | None, *, max_tokens: int | None, temperature: float | None
) -> tuple[Sampling, list[Path], list[Problem]]:
    """Return the sampling parameters, the files they came from, and warnings. Arguments win over the file.

    Raises DatasetError for the file.
    """
    values, warnings, files = _Parameters(), list[Problem](), list[Path]()
    if path is not None and path.is_file():
        files.append(path)
        values, warnings = _read(path)
    elif path is not None and max_tokens is None:
        hint = "root=FOLDER names the checkout that has it; or give max_tokens=N in its place"
        raise DatasetNotFoundError.at(path, "generate.params: no such file", hint, code="no-params")
    decoding = Decoding()
    for key in ("top_p", "frequency_penalty", "presence_penalty"):
        if (value := getattr(values, key)) is not None:
            decoding[key] = value
    if values.top_k is not None and values.top_k > 0:
        decoding["top_k_per_token"] = values.top_k
    stop = values.stop or []
    sampling = Sampling(
        temperature=float(temperature if temperature is not None else values.temperature or 0.0),
        max_tokens=max_tokens or values.max_tokens or DEFAULT_MAX_TOKENS,
        stop=(stop,) if isinstance(stop, str) else tuple(stop),
        num_outputs=values.sampling_num or values.n or 1,
        decoding=decoding,
    )
    return sampling, files, warnings


def _read(path: Path) -> tuple[_Parameters, list[Problem]]:
    content = read_json(path)
    if not isinstance(content, dict):
        message = f"expected an object of sampling parameters, got {show(content)}"
        raise DatasetSchemaError.at(path, message, code="sampling")
    warnings = [
        Problem(
            f"HELM's requests have no such parameter; {show(value)} is not sent",
            Location(str(path), field=key),
            severity="warning",
            code="sampling-ignored",
        )
        for key, value in content.items()
        if key not in _Parameters.model_fields and _is_set(value)
    ]
    try:
        return _Parameters.model_validate(content), warnings
    except ValidationError as error:
        problems = to_problems(error, path, code="sampling")
        raise_for([*problems, *warnings])
        raise


def _is_set(value: Any) -> bool:
    """Whether a parameter asks for something; `use_beam_search: false` and a penalty of 1.0 do not."""
    return value is True or value not in (None, False, 0, "", [], 1)
