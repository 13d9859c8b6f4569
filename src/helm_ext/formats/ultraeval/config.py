"""What describes a task (docs/ultraeval.md): arguments, upstream's task configs, its files of sampling parameters.

A config is one JSON object, or a list of them. Both spellings in use are read: `task_name`, `transform`, `metric`, and
the `dataset_name`, `transforms`, `metrics` that upstream's `make_config.py` writes. Sampling parameters are upstream's
`models/model_params/*.json` (vLLM's names), in HELM's words.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from helm_ext.errors import (
    DatasetNotFoundError,
    DatasetSchemaError,
    Location,
    Problem,
    RunEntryError,
    did_you_mean,
    format_path,
    raise_for,
    show,
)
from helm_ext.evalset import Decoding
from helm_ext.files import read_json
from helm_ext.formats.request_states.checking import Finding, conform

Method = Literal["gen", "ppl"]
Natural = Annotated[int, msgspec.Meta(ge=0)]
Positive = Annotated[int, msgspec.Meta(ge=1)]
_Name = Annotated[str, msgspec.Meta(min_length=1)]


@dataclass(frozen=True, kw_only=True)
class Options:
    """How a task is found, asked and scored; None where the config or the files decide. `format` says what each means.

    Exactly one of `config`, `dataset` and `data` is needed.
    """

    config: Path | None = None
    task: str | None = None
    data: Path | None = None
    transform: Path | None = None
    dataset: str | None = None
    method: Method | None = None
    version: str | None = None
    fewshot: int | None = None
    seed: int | None = None
    limit: int | None = None
    demos: Path | None = None
    postprocess: str | None = None
    thinking: Literal["move", "keep"] | None = None
    metric: Any = None
    """A name, several joined by `+`, or a list of them."""
    root: Path | None = None
    dataset_name: str | None = None
    params: Path | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    allow_code: bool = False
    name: str | None = None


_PATHS = ("config", "data", "transform", "demos", "root", "params")
_TEXTS = ("task", "dataset", "version", "postprocess", "dataset_name", "name")
"""HELM makes numbers of values that look like some."""
_SHAPES = {
    "method": Method,
    "fewshot": Natural,
    "seed": int,
    "limit": Positive,
    "thinking": Literal["move", "keep"],
    "max_tokens": Positive,
    "temperature": Annotated[float, msgspec.Meta(ge=0)],
}


def read_options(arguments: Mapping[str, Any]) -> Options:
    """Return the arguments of `load` and `check`. Raises RunEntryError for one that is unknown, or not of its type."""
    known = [one.name for one in fields(Options)]
    made = {key: value for key, value in arguments.items() if value is not None}
    for key, value in made.items():
        if key not in known:
            hint = did_you_mean(key, known) or f"known: {', '.join(known)}"
            raise RunEntryError(f"ultraeval: unknown argument {key!r}\n  hint: {hint}")
        if key in _PATHS:
            made[key] = Path(str(value))
        elif key in _TEXTS:
            made[key] = str(value)
        elif key in _SHAPES:
            made[key], found = conform(value, _SHAPES[key])
            if found:
                raise RunEntryError(f"{key}={value}: {found[0].message}")
    return Options(**made)


def _to_problems(found: Sequence[Finding], path: Path, prefix: tuple[int, ...], code: str) -> Iterator[Problem]:
    """Yield what is wrong in a file; `prefix`: where in it the value stands."""
    for one in found:
        place = Location(str(path), field=format_path((*prefix, *one.path)))
        yield DatasetSchemaError.problem_at(place, one.message, one.hint, code=code)


class Evaluation(msgspec.Struct):
    """What is computed for each answer; further keys are the metric's own arguments."""

    type: str
    """Upstream's name of the metric: `exact_match`, `log_prob`, ..."""


class Aggregation(msgspec.Struct):
    """How the samples of one row become one number: `mean` or `pass_k`."""

    type: str


class MetricConfig(msgspec.Struct):
    """One metric of a task."""

    evaluation: Evaluation
    aggregation: Aggregation | None = None


class Generate(msgspec.Struct):
    """How the model is asked."""

    method: Literal["generate", "loglikelihood"]
    params: str | None = None
    """A file of sampling parameters, relative to the checkout's root."""


class TaskConfig(msgspec.Struct):
    """One task of UltraEval. Paths are relative to the checkout's root, the parent of `datasets/`."""

    task_name: _Name
    path: _Name
    """The data: JSON Lines."""
    transform: _Name
    """The transform script."""
    generate: Generate
    metric: dict[str, MetricConfig]
    description: str | None = None
    """Stands before everything else in the prompt, followed by a blank line."""
    fewshot: Natural = 0
    postprocess: str | None = None


@dataclass(frozen=True)
class Metric:
    """One metric of a task."""

    type: str
    arguments: Mapping[str, Any]
    aggregation: str


def to_metrics(value: Mapping[str, Any]) -> dict[str, Metric]:
    """Return the metrics of a config, which have the shape of `MetricConfig`."""
    return {
        name: Metric(
            one["evaluation"]["type"],
            {key: value for key, value in one["evaluation"].items() if key != "type"},
            (one.get("aggregation") or {}).get("type", "mean"),
        )
        for name, one in value.items()
    }


@dataclass(frozen=True)
class Config:
    """One task of a config."""

    task_name: str
    path: str
    transform: str
    kind: Method
    """The method in the words of run entries."""
    params: str
    """"" for none."""
    metric: Mapping[str, Metric]
    description: str
    fewshot: int
    postprocess: str


_ALIASES = {"dataset_name": "task_name", "transforms": "transform", "metrics": "metric"}
_KNOWN = (*TaskConfig.__struct_fields__, *_ALIASES)
_OF_RUNS = {"few-shot", "log_dir", "task_postprocess", "overall_result", "instance_result"}
"""Keys of the other JSON files that UltraEval writes: logs and results."""


def read_config(path: Path) -> tuple[list[Config], list[Problem]]:
    """Read a config file: its tasks, and warnings. Raises DatasetError with every problem of every task."""
    content = read_json(path)
    problems: list[Problem] = []
    configs: list[Config] = []
    for index, item in enumerate(content if isinstance(content, list) else [content]):
        prefix = (index,) if isinstance(content, list) else ()
        place = Location(str(path), field=format_path(prefix))
        if not isinstance(item, dict):
            message = f"expected an object or a list of objects, got {show(item)}"
            hint = "an UltraEval task config has task_name, path, transform, generate and metric"
            problems.append(DatasetSchemaError.problem_at(place, message, hint, code="other-shape"))
        elif item.keys() & _OF_RUNS:
            message = "this is the log or the result of a finished run, not a task config"
            hint = "give the config that it was started with"
            problems.append(DatasetSchemaError.problem_at(place, message, hint, code="other-shape"))
        else:
            given = {_ALIASES[key]: value for key, value in item.items() if key in _ALIASES}
            made, found = conform(given | {key: item[key] for key in item if key not in _ALIASES}, TaskConfig)
            if made.get("metric") == {}:
                found.append(Finding(("metric",), "must not be empty", "", "config"))
            if not found:
                configs.append(_to_config(made))
            problems += _to_problems(found, path, prefix, "config")
            for key in (key for key in item if key not in _KNOWN):
                place, hint = Location(str(path), field=format_path((*prefix, key))), did_you_mean(key, _KNOWN)
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


def _to_config(made: Mapping[str, Any]) -> Config:
    return Config(
        task_name=made["task_name"],
        path=made["path"],
        transform=made["transform"],
        kind="gen" if made["generate"]["method"] == "generate" else "ppl",
        params=made["generate"].get("params") or "",
        metric=to_metrics(made["metric"]),
        description=made.get("description") or "",
        fewshot=made.get("fewshot", 0),
        postprocess=made.get("postprocess") or "",
    )


def schema() -> dict[str, Any]:
    """Return the JSON Schema of a config file."""
    _, definitions = msgspec.json.schema_components([TaskConfig], ref_template="#/$defs/{name}")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "UltraEval task config",
        "anyOf": [{"$ref": "#/$defs/TaskConfig"}, {"type": "array", "items": {"$ref": "#/$defs/TaskConfig"}}],
        "$defs": definitions,
    }


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


class _Parameters(msgspec.Struct):
    """A parameter file. Any other key that is set is not sent, which is said."""

    temperature: float | None = None
    top_p: float | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    max_tokens: Positive | None = None
    sampling_num: Positive | None = None
    n: Positive | None = None
    top_k: int | None = None
    stop: str | list[str] | None = None
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
        if key not in _Parameters.__struct_fields__ and _is_set(value)
    ]
    made, found = conform(content, _Parameters)
    if found:
        raise_for([*_to_problems(found, path, (), "sampling"), *warnings])
    return msgspec.convert(made, _Parameters), warnings


def _is_set(value: Any) -> bool:
    """Whether a parameter asks for something; `use_beam_search: false` and a penalty of 1.0 do not."""
    return value is True or value not in (None, False, 0, "", [], 1)
