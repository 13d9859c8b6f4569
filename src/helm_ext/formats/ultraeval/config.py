"""What describes a task (docs/ultraeval.md): arguments, upstream's task configs, its files of sampling parameters.

Pydantic checks them; each type says in words what was expected. A config is one JSON object, or a list of them. Both
spellings in use are read: `task_name`, `transform`, `metric`, and the `dataset_name`, `transforms`, `metrics` that
upstream's `make_config.py` writes. Sampling parameters are upstream's `models/model_params/*.json` (vLLM's names), in
HELM's words.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)
from pydantic.dataclasses import dataclass
from pydantic_core import PydanticCustomError

from helm_ext.errors import (
    DatasetNotFoundError,
    DatasetSchemaError,
    Location,
    Problem,
    RunEntryError,
    did_you_mean,
    raise_for,
    show,
)
from helm_ext.evalset import Decoding
from helm_ext.files import read_json


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


def to_problems(error: ValidationError, path: Path, prefix: str = "", *, hint: str = "", code: str) -> list[Problem]:
    """Return what is wrong in a file; `prefix` is the field in which the value stands."""
    problems = []
    for detail in error.errors(include_url=False):
        message = _MESSAGES.get(detail["type"], detail["msg"])
        if message.startswith("expected"):
            message += f", got {show(detail['input'])}"
        field = ".".join([prefix, *map(str, detail["loc"])]).removeprefix(".")
        problems.append(DatasetSchemaError.problem_at(Location(str(path), field=field), message, hint, code=code))
    return problems


OrNull = Annotated[str, BeforeValidator(lambda value: "" if value is None else value)]
"""A string; `null` is an empty one."""


class _Checked(BaseModel):
    model_config = ConfigDict(extra="allow", strict=True)


class Evaluation(_Checked):
    """What is computed for each answer; further keys are the metric's own arguments."""

    type: str
    """Upstream's name of the metric: `exact_match`, `log_prob`, ..."""


class Aggregation(_Checked):
    """How the samples of one row become one number: `mean` or `pass_k`."""

    type: str


class Metric(_Checked):
    """One metric of a task."""

    evaluation: Evaluation
    aggregation: Aggregation | None = None


class Generate(_Checked):
    """How the model is asked."""

    method: Annotated[Literal["generate", "loglikelihood"], expecting('"generate" or "loglikelihood"')]
    params: OrNull = ""
    """A file of sampling parameters, relative to the checkout's root; "" for none."""


class TaskConfig(_Checked):
    """One task of UltraEval. Paths are relative to the checkout's root, the parent of `datasets/`."""

    model_config = ConfigDict(populate_by_name=True)

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
    def kind(self) -> Method:
        """The method in the words of run entries."""
        return "gen" if self.generate.method == "generate" else "ppl"


class RunConfig(_Checked):
    """What the `config.json` of a finished run says of how it was scored."""

    metrics: Annotated[dict[str, Metric], BeforeValidator(lambda value: value or {})] = Field(
        {}, validation_alias=AliasChoices("metric", "metrics")
    )
    task_name: Annotated[str, BeforeValidator(lambda value: str(value or ""))] = Field(
        "", validation_alias=AliasChoices("task_name", "dataset_name")
    )
    task_postprocess: OrNull = ""
    model_postprocess: OrNull = ""
    """Upstream's `--postprocess`, of which PPL has two: the sum or the mean."""

    def postprocess(self, method: Method) -> str:
        """Return what made answers of the outputs. For PPL the task's, if any, replaces the model's, as upstream."""
        return self.task_postprocess or (self.model_postprocess if method == "ppl" else "")


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
                problems.append(Problem.warning(place, "unknown key, not used", hint, code="unknown-key"))
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


DEFAULT_MAX_TOKENS = 100
"""Upstream's recommendation for tasks without parameters of their own; its temperature for those is 0.3, ours is 0."""


@dataclasses.dataclass(frozen=True)
class Sampling:
    """How answers are generated."""

    temperature: float = 0.0
    max_tokens: int = DEFAULT_MAX_TOKENS
    stop: tuple[str, ...] = ()
    num_outputs: int = 1
    decoding: Decoding = field(default_factory=Decoding)


_Number = Annotated[float | None, expecting("a number")]


class _Parameters(_Checked):
    """A parameter file. Any other key that is set is not sent, which is said."""

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
        Problem.warning(
            Location(str(path), field=key),
            f"HELM's requests have no such parameter; {show(value)} is not sent",
            code="sampling-ignored",
        )
        for key, value in content.items()
        # `use_beam_search: false` and a penalty of 1.0 ask for nothing.
        if key not in _Parameters.model_fields and (value is True or value not in (None, False, 0, "", [], 1))
    ]
    try:
        return _Parameters.model_validate(content), warnings
    except ValidationError as error:
        problems = to_problems(error, path, code="sampling")
        raise_for([*problems, *warnings])
        raise
