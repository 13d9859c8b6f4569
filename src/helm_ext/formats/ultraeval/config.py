"""Upstream's task configs: one JSON object, or a list of them (formats.md, section 2).

Both spellings in use are read: `task_name`, `transform`, `metric`, and the `dataset_name`, `transforms`, `metrics` that
upstream's `make_config.py` writes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from helm_ext.errors import (
    DatasetSchemaError,
    Location,
    Problem,
    did_you_mean,
    raise_for,
    show,
)
from helm_ext.files import parse_json, read_source

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Metric", "TaskConfig", "read_config", "read_json", "schema"]


OrNull = Annotated[str, BeforeValidator(lambda value: "" if value is None else value)]
"""A string; `null` is an empty one."""


class Evaluation(BaseModel):
    """What is computed for each answer; further keys are the metric's own arguments."""

    model_config = ConfigDict(extra="allow", strict=True)

    type: str
    """Upstream's name of the metric: `exact_match`, `log_prob`, ..."""


class Aggregation(BaseModel):
    """How the samples of one row become one number: `mean` or `pass_k`."""

    model_config = ConfigDict(extra="allow", strict=True)

    type: str


class Metric(BaseModel):
    """One metric of a task."""

    model_config = ConfigDict(extra="allow", strict=True)

    evaluation: Evaluation
    aggregation: Aggregation | None = None


class Generate(BaseModel):
    """How the model is asked."""

    model_config = ConfigDict(extra="allow", strict=True)

    method: Literal["generate", "loglikelihood"]
    params: OrNull = ""
    """A file of sampling parameters, relative to the checkout's root; "" for none."""


class TaskConfig(BaseModel):
    """One task of UltraEval. Paths are relative to the checkout's root, the parent of `datasets/`."""

    model_config = ConfigDict(extra="allow", strict=True, populate_by_name=True)

    task_name: str = Field(validation_alias=AliasChoices("task_name", "dataset_name"), min_length=1)
    path: str = Field(min_length=1)
    """The data: JSON Lines."""
    description: OrNull = ""
    """Stands before everything else in the prompt, followed by a blank line."""
    transform: str = Field(validation_alias=AliasChoices("transform", "transforms"), min_length=1)
    """The transform script."""
    fewshot: int = Field(default=0, ge=0)
    generate: Generate
    postprocess: OrNull = ""
    metric: dict[str, Metric] = Field(validation_alias=AliasChoices("metric", "metrics"), min_length=1)


_KNOWN = (
    "task_name", "dataset_name", "path", "description", "transform", "transforms", "fewshot", "generate", "postprocess",
    "metric", "metrics",
)  # fmt: skip

_RUN_LOG_KEYS = {"few-shot", "log_dir", "task_postprocess"}
_RESULT_KEYS = {"overall_result", "instance_result"}


def read_config(path: Path) -> tuple[list[TaskConfig], list[Problem]]:
    """Read a config file: its tasks, and warnings. Raises DatasetError with every problem of every task."""
    content = read_json(path)
    items = content if isinstance(content, list) else [content]
    place = str(path)
    problems = [Problem("the config holds no tasks", Location(place), code="no-tasks", kind=DatasetSchemaError)] * (
        not items
    )
    configs: list[TaskConfig] = []
    for index, item in enumerate(items):
        prefix = f"[{index}]" if isinstance(content, list) else ""
        wrong_shape = _other_shape(item, Location(place, field=prefix))
        if wrong_shape is not None:
            problems.append(wrong_shape)
            continue
        try:
            configs.append(TaskConfig.model_validate(item))
        except ValidationError as error:
            problems.extend(_translate(error, place, prefix))
            continue
        for key in item:
            if key not in _KNOWN:
                hint = did_you_mean(key, _KNOWN)
                field = f"{prefix}.{key}".removeprefix(".")
                problems.append(
                    Problem("unknown key, not used", Location(place, field=field), hint, "warning", "unknown-key")
                )
    names = [config.task_name for config in configs]
    problems.extend(
        Problem(
            f"two tasks are called {name!r}",
            Location(place),
            "upstream keeps only the last of them; give each a name",
            code="duplicate-task",
            kind=DatasetSchemaError,
        )
        for name in sorted({name for name in names if names.count(name) > 1})
        if not _differ_in_method(configs, name)
    )
    raise_for(problems)
    return configs, problems


def _differ_in_method(configs: list[TaskConfig], name: str) -> bool:
    """Whether the tasks of one name are its GEN and its PPL task."""
    methods = [config.generate.method for config in configs if config.task_name == name]
    return len(set(methods)) == len(methods)


def read_json(path: Path) -> Any:
    """Read a JSON file. Raises DatasetError."""
    source = read_source(path)
    return parse_json(source.data, source.path)


def schema() -> dict[str, Any]:
    """Return the JSON Schema of a config file."""
    task = TaskConfig.model_json_schema(by_alias=False, ref_template="#/$defs/{model}")
    definitions = task.pop("$defs", {})
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "UltraEval task config",
        "anyOf": [{"$ref": "#/$defs/TaskConfig"}, {"type": "array", "items": {"$ref": "#/$defs/TaskConfig"}}],
        "$defs": {**definitions, "TaskConfig": task},
    }


def _other_shape(item: Any, place: Location) -> Problem | None:
    """Recognise the other JSON files that UltraEval writes."""
    needed = "an UltraEval task config has task_name, path, transform, generate and metric"
    if not isinstance(item, dict):
        message, hint = f"expected an object or a list of objects, got {show(item)}", needed
    elif item.keys() >= _RESULT_KEYS:
        message, hint = "this is the result of a finished run, not a task config", needed
    elif item.keys() & _RUN_LOG_KEYS:
        message, hint = (
            "this is the log of a finished run, not a task config",
            "give the config that it was started with",
        )
    elif item and not item.keys() & set(_KNOWN) and all(isinstance(value, dict) for value in item.values()):
        message, hint = "this looks like a table of results, not a task config", needed
    else:
        return None
    return Problem(message, place, hint, code="other-shape", kind=DatasetSchemaError)


_EXPECTED = {
    "string_type": "expected a string",
    "int_type": "expected a whole number",
    "greater_than_equal": "expected a number that is not negative",
    "literal_error": 'expected "generate" or "loglikelihood"',
    "dict_type": "expected an object",
    "model_type": "expected an object",
    "model_attributes_type": "expected an object",
    "string_too_short": "must not be empty",
    "too_short": "must not be empty",
}


def _translate(error: ValidationError, path: str, prefix: str) -> list[Problem]:
    problems = []
    for detail in error.errors(include_url=False):
        field = ".".join([prefix, *(str(part) for part in detail["loc"])]).removeprefix(".")
        if detail["type"] == "missing":
            message = "missing"
        else:
            expected = _EXPECTED.get(detail["type"], "not valid")
            message = expected if expected.startswith("must") else f"{expected}, got {show(detail['input'])}"
        problems.append(Problem(message, Location(path, field=field), code="config", kind=DatasetSchemaError))
    return problems
