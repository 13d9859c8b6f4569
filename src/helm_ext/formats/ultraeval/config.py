"""Upstream's task configs: one JSON object, or a list of them (docs/ultraeval.md).

Both spellings in use are read: `task_name`, `transform`, `metric`, and the `dataset_name`, `transforms`, `metrics` that
upstream's `make_config.py` writes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from helm_ext.errors import DatasetSchemaError, Location, Problem, did_you_mean, raise_for, show
from helm_ext.files import read_json
from helm_ext.formats.ultraeval.options import Natural, expecting, to_problems

if TYPE_CHECKING:
    from pathlib import Path

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

    method: Annotated[Literal["generate", "loglikelihood"], expecting('"generate" or "loglikelihood"')]
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
    fewshot: Natural = 0
    generate: Generate
    postprocess: OrNull = ""
    metric: dict[str, Metric] = Field(validation_alias=AliasChoices("metric", "metrics"), min_length=1)

    @property
    def kind(self) -> Literal["gen", "ppl"]:
        """The method in the words of run entries."""
        return "gen" if self.generate.method == "generate" else "ppl"


_KNOWN = (*TaskConfig.model_fields, "dataset_name", "transforms", "metrics")
_OF_RUNS = {"few-shot", "log_dir", "task_postprocess", "overall_result", "instance_result"}
"""Keys of the other JSON files that UltraEval writes: logs and results."""


def read_config(path: Path) -> tuple[list[TaskConfig], list[Problem]]:
    """Read a config file: its tasks, and warnings. Raises DatasetError with every problem of every task."""
    content = read_json(path)
    problems: list[Problem] = []
    configs: list[TaskConfig] = []
    for index, item in enumerate(content if isinstance(content, list) else [content]):
        prefix = f"[{index}]" if isinstance(content, list) else ""
        place = Location(str(path), field=prefix)
        if not isinstance(item, dict):
            message = f"expected an object or a list of objects, got {show(item)}"
            hint = "an UltraEval task config has task_name, path, transform, generate and metric"
            problems.append(DatasetSchemaError.problem_at(place, message, hint, code="other-shape"))
        elif item.keys() & _OF_RUNS:
            message = "this is the log or the result of a finished run, not a task config"
            hint = "give the config that it was started with"
            problems.append(DatasetSchemaError.problem_at(place, message, hint, code="other-shape"))
        else:
            try:
                configs.append(TaskConfig.model_validate(item))
            except ValidationError as error:
                problems += to_problems(error, path, prefix, code="config")
            for key in (key for key in item if key not in _KNOWN):
                place = Location(str(path), field=f"{prefix}.{key}".removeprefix("."))
                hint = did_you_mean(key, _KNOWN)
                problems.append(Problem("unknown key, not used", place, hint, "warning", "unknown-key"))
    if content == []:
        problems.append(DatasetSchemaError.problem_at(path, "the config holds no tasks", code="no-tasks"))
    known = [(config.task_name, config.kind) for config in configs]  # a GEN and a PPL task may have one name
    for name in sorted({name for name, kind in known if known.count((name, kind)) > 1}):
        hint = "upstream keeps only the last of them; give each a name"
        problems.append(
            DatasetSchemaError.problem_at(path, f"two tasks are called {name!r}", hint, code="duplicate-task")
        )
    raise_for(problems)
    return configs, problems


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
