"""Values of files and arguments, checked by pydantic: each type says in words what was expected."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import BeforeValidator, Field, ValidationError, ValidatorFunctionWrapHandler, WrapValidator
from pydantic_core import PydanticCustomError

from helm_ext.errors import DatasetSchemaError, Location, Problem, RunEntryError, did_you_mean, show

__all__ = ["File", "Natural", "Positive", "Text", "expecting", "read_options", "to_problems"]

Options = TypeVar("Options")


def expecting(what: str) -> WrapValidator:
    """Return what makes a type say "expected WHAT" of any other value."""

    def validate(value: Any, handler: ValidatorFunctionWrapHandler) -> Any:
        try:
            return handler(value)
        except ValidationError:
            raise PydanticCustomError("expected", "expected {what}", {"what": what}) from None

    return WrapValidator(validate)


# HELM makes numbers of values that look like some.
Text = Annotated[str | None, BeforeValidator(lambda value: None if value is None else str(value))]
File = Annotated[Path | None, BeforeValidator(lambda value: None if value is None else Path(str(value)))]
Natural = Annotated[int, Field(strict=True, ge=0), expecting("a whole number of at least 0")]
Positive = Annotated[int, Field(strict=True, ge=1), expecting("a whole number of at least 1")]


def read_options(options: type[Options], entry: str, arguments: Mapping[str, Any]) -> Options:
    """Return the arguments of a format's `load` and `check` as its dataclass of pydantic's.

    Raises RunEntryError for one that is unknown, or not of its type.
    """
    known = [field.name for field in fields(options)]  # type: ignore[arg-type]
    for key in arguments:
        if key not in known:
            hint = did_you_mean(key, known) or f"known: {', '.join(known)}"
            raise RunEntryError(f"{entry}: unknown argument {key!r}\n  hint: {hint}")
    try:
        return options(**arguments)
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
