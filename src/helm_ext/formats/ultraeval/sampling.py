"""Sampling parameters of a GEN task: upstream's `models/model_params/*.json` (vLLM's names) in HELM's words."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from helm_ext.errors import DatasetNotFoundError, DatasetSchemaError, Location, Problem, RunEntryError, raise_for, show
from helm_ext.evalset import Decoding
from helm_ext.formats.ultraeval.config import read_json

__all__ = ["Sampling", "read_sampling"]

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


_NUMBERS = ("temperature", "top_p", "frequency_penalty", "presence_penalty")
_COUNTS = ("max_tokens", "sampling_num", "n", "top_k")
_NOT_SENT = ("batch_size", "logprobs", "prompt_logprobs", "skip_special_tokens")
"""Keys that say how upstream's server works, not what is sampled."""


def read_sampling(
    path: Path | None, *, max_tokens: int | None, temperature: float | None
) -> tuple[Sampling, list[Path], list[Problem]]:
    """Return the sampling parameters, the files they came from, and warnings. Arguments win over the file.

    Raises RunEntryError for arguments, DatasetError for the file.
    """
    if max_tokens is not None and (not isinstance(max_tokens, int) or max_tokens < 1):
        raise RunEntryError(f"max_tokens={max_tokens}: expected a whole number of at least 1")
    if temperature is not None and (not isinstance(temperature, int | float) or not 0 <= temperature < float("inf")):
        raise RunEntryError(f"temperature={temperature}: expected a number that is not negative")
    files: list[Path] = []
    values: dict[str, Any] = {}
    warnings: list[Problem] = []
    if path is not None:
        if path.is_file():
            files.append(path)
            values, warnings = _read(path)
        elif max_tokens is None:
            hint = "root=FOLDER names the checkout that has it; or give max_tokens=N in its place"
            raise DatasetNotFoundError.at(path, "generate.params: no such file", hint, code="no-params")
    decoding = Decoding()
    for key in ("top_p", "frequency_penalty", "presence_penalty"):
        if key in values:
            decoding[key] = float(values[key])
    if values.get("top_k", -1) > 0:
        decoding["top_k_per_token"] = values["top_k"]
    stop = values.get("stop") or []
    return (
        Sampling(
            temperature=float(temperature if temperature is not None else values.get("temperature", 0.0)),
            max_tokens=max_tokens if max_tokens is not None else values.get("max_tokens", DEFAULT_MAX_TOKENS),
            stop=(stop,) if isinstance(stop, str) else tuple(stop),
            num_outputs=values.get("sampling_num", values.get("n", 1)),
            decoding=decoding,
        ),
        files,
        warnings,
    )


def _read(path: Path) -> tuple[dict[str, Any], list[Problem]]:
    values = read_json(path)
    problems: list[Problem] = []

    def wrong(key: str, message: str) -> None:
        place = Location(str(path), field=key)
        problems.append(Problem(message, place, code="sampling", kind=DatasetSchemaError))

    if not isinstance(values, dict):
        wrong("", f"expected an object of sampling parameters, got {show(values)}")
        values = {}
    values = {key: value for key, value in values.items() if value is not None}
    for key, value in values.items():
        if key in _NUMBERS and (isinstance(value, bool) or not isinstance(value, int | float)):
            wrong(key, f"expected a number, got {show(value)}")
        elif key in _COUNTS and (
            isinstance(value, bool) or not isinstance(value, int) or (value < 1 and key != "top_k")
        ):
            wrong(key, f"expected a whole number of at least 1, got {show(value)}")
        elif key == "stop" and not (
            isinstance(value, str) or (isinstance(value, list) and all(isinstance(item, str) for item in value))
        ):
            wrong(key, f"expected a string or a list of strings, got {show(value)}")
        elif key not in (*_NUMBERS, *_COUNTS, *_NOT_SENT, "stop") and _is_set(value):
            message = f"HELM's requests have no such parameter; {show(value)} is not sent"
            problems.append(Problem(message, Location(str(path), field=key), "", "warning", "sampling-ignored"))
    raise_for(problems)
    return values, problems


def _is_set(value: Any) -> bool:
    """Whether a parameter asks for something; `use_beam_search: false` and a penalty of 1.0 do not."""
    return value is True or value not in (False, 0, "", [], 1)
