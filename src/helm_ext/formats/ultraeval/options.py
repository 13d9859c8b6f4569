"""The arguments of `ultraeval:` run entries and of `load` and `check`; and the types of values, here and in files.

Pydantic checks them: each type says in words what was expected.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationError, ValidatorFunctionWrapHandler, WrapValidator
from pydantic.dataclasses import dataclass
from pydantic_core import PydanticCustomError

from helm_ext.errors import DatasetSchemaError, Location, Problem, RunEntryError, did_you_mean, show


def expecting(what: str) -> WrapValidator:
    """Return what makes a type say "expected WHAT" of any other value."""

    def validate(value: Any, handler: ValidatorFunctionWrapHandler) -> Any:
        try:
            return handler(value)
        except ValidationError:
            raise PydanticCustomError("expected", "expected {what}", {"what": what}) from None

    return WrapValidator(validate)


Method = Literal["gen", "ppl"]

# HELM makes numbers of values that look like some.
_Text = Annotated[str | None, BeforeValidator(lambda value: None if value is None else str(value))]
_File = Annotated[Path | None, BeforeValidator(lambda value: None if value is None else Path(str(value)))]
Natural = Annotated[int, Field(strict=True, ge=0), expecting("a whole number of at least 0")]
Positive = Annotated[int, Field(strict=True, ge=1), expecting("a whole number of at least 1")]


@dataclass(frozen=True, kw_only=True)
class Options:
    """How a task is found, asked and scored; None where the config or the files decide. `format` says what each means.

    Exactly one of `config`, `dataset` and `data` is needed.
    """

    config: _File = None
    task: _Text = None
    data: _File = None
    transform: _File = None
    dataset: _Text = None
    method: Annotated[Literal["gen", "ppl"] | None, expecting("gen or ppl")] = None
    version: _Text = None
    fewshot: Natural | None = None
    seed: Annotated[int | None, Field(strict=True), expecting("a whole number")] = None
    limit: Positive | None = None
    demos: _File = None
    postprocess: _Text = None
    thinking: Annotated[Literal["move", "keep"] | None, expecting("move or keep")] = None
    metric: Any = None
    """A name, several joined by `+`, or a list of them."""
    root: _File = None
    dataset_name: _Text = None
    params: _File = None
    max_tokens: Positive | None = None
    temperature: Annotated[
        float | None, Field(strict=True, ge=0, allow_inf_nan=False), expecting("a number that is not negative")
    ] = None
    allow_code: bool = False
    name: _Text = None


def read_options(arguments: Mapping[str, Any]) -> Options:
    """Return the arguments of `load` and `check`. Raises RunEntryError for one that is unknown, or not of its type."""
    known = list(Options.__annotations__)
    for key in arguments:
        if key not in known:
            hint = did_you_mean(key, known) or f"known: {', '.join(known)}"
            raise RunEntryError(f"ultraeval: unknown argument {key!r}\n  hint: {hint}")
    try:
        return Options(**arguments)
    except ValidationError as error:
        wrong = error.errors(include_url=False)[0]
        raise RunEntryError(f"{wrong['loc'][0]}={wrong['input']}: {wrong['msg']}") from None


_MESSAGES = {
    "missing": "missing",
    "string_type": "expected a string",
    "dict_type": "expected an object",
    "model_type": "expected an object",
    "string_too_short": "must not be empty",
    "too_short": "must not be empty",
}


def to_problems(error: ValidationError, path: Path, prefix: str = "", *, code: str) -> list[Problem]:
    """Return what is wrong in a file; `prefix` is the field in which the value stands."""
    problems = []
    for detail in error.errors(include_url=False):
        message = _MESSAGES.get(detail["type"], detail["msg"])
        if message.startswith("expected"):
            message += f", got {show(detail['input'])}"
        field = ".".join([prefix, *map(str, detail["loc"])]).removeprefix(".")
        problems.append(DatasetSchemaError.problem_at(Location(str(path), field=field), message, code=code))
    return problems
