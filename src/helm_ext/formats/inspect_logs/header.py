"""What a log says about itself, beside its samples: task, model, settings, status, scores over all samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, cast

import msgspec

from helm_ext.errors import DatasetSchemaError, Location, show
from helm_ext.evalset import Source
from helm_ext.formats.imported.structs import to_struct

JSONObject = dict[str, Any]

Status = Literal["started", "success", "cancelled", "error"]
FINISHED = "success"
_VERSIONS = (1, 2, 3)
_CHOICE = ("multiple_choice", "inspect_ai/multiple_choice")
_SELECTORS = (("reducer", "reducer"), ("scorer", "scorer"), ("score", "name"))
"""Fields of a declared headline, and what each selects a score by."""


class Scorer(msgspec.Struct):
    """A scorer of the task, and what it was told."""

    name: str = ""
    options: JSONObject | None = None


class _Config(msgspec.Struct):
    epochs: Any = None
    epochs_reducer: str | list[str] | None = None
    limit: Any = None


class _Dataset(msgspec.Struct):
    name: Any = None
    samples: Any = None


class _Spec(msgspec.Struct):
    task: str
    model: str
    task_version: Any = None
    task_args: Any = None
    created: Any = None
    dataset: _Dataset | None = None
    config: _Config | None = None
    packages: JSONObject | None = None
    scorers: list[Scorer] | None = None
    headline_metric: Any = None
    model_generate_config: JSONObject | None = None
    model_roles: JSONObject | None = None


class _Step(msgspec.Struct):
    solver: Any = None
    params: JSONObject | None = None


class _Plan(msgspec.Struct):
    steps: list[_Step] | None = None
    config: JSONObject | None = None


class _Results(msgspec.Struct):
    scores: list[JSONObject] | None = None
    scorer: JSONObject | None = None
    metrics: Any = None
    headline: Any = None
    completed_samples: Any = None


class _Log(msgspec.Struct):
    eval: _Spec
    version: Any = None
    status: Status = cast("Status", "")
    plan: _Plan | None = None
    results: _Results | None = None


HEADER_KEYS = frozenset(_Log.__struct_fields__)
"""The top-level keys of a log that are read; the samples aside."""


class Headline(NamedTuple):
    """One metric of one score."""

    score: int
    """Position in `results.scores`."""
    metric: str
    """Key of its `metrics`."""
    reason: str
    """Why this one, in words."""


class Header:
    """The header of a log."""

    def __init__(self, log: _Log) -> None:
        self.spec = log.eval
        self.task, self.model = self.spec.task, self.spec.model
        """The model as inspect_ai names it: `openai/gpt-4o`."""
        self.config = self.spec.config or _Config()
        self.plan = log.plan or _Plan()
        self.results = results = log.results or _Results()
        self.status = log.status or ("started" if log.results is None else FINISHED)
        self.is_finished = self.status == FINISHED
        self.scorers = self.spec.scorers or []
        self.version = (self.spec.packages or {}).get("inspect_ai")
        self.scores: Sequence[JSONObject] = results.scores or []
        """The scores over all samples. Logs of 2024 have one, in another place."""
        if results.scores is None and results.scorer:
            self.scores = [{**results.scorer, "metrics": results.metrics or results.scorer.get("metrics")}]
        self.steps = self.plan.steps or []
        self.choice_settings = next((step.params or {} for step in self.steps if step.solver in _CHOICE), None)
        """What the solver for multiple choice was told; None where the plan has no such solver."""
        names = {
            *(scorer.name for scorer in self.scorers),
            *(str(s.get("scorer") or s.get("name")) for s in self.scores),
        }
        self.reads_letters = self.choice_settings is not None or bool(names & {"choice", "inspect_ai/choice"})
        """Whether targets of multiple choice are letters, as the solver and the scorer for it have it."""

    @property
    def planned(self) -> int:
        """How many samples the dataset has, in all epochs; 0 where the log does not say."""
        samples, epochs = self.spec.dataset and self.spec.dataset.samples, self.config.epochs
        return samples * (epochs if isinstance(epochs, int) and epochs > 0 else 1) if isinstance(samples, int) else 0

    @property
    def reducers(self) -> list[str] | None:
        """How scores of epochs become one; None: by their mean, []: they do not."""
        given = self.config.epochs_reducer
        return [given] if isinstance(given, str) else given

    @property
    def headline(self) -> Headline | None:
        """The metric that the log is headed by; None where it reports none."""
        return find_headline(self.scores, self.results.headline, self.spec.headline_metric)

    def to_source(self, tool: str) -> Source:
        """Return where the rows come from, without what is known only when they were read."""
        spec, config = self.spec, self.config
        settings = {
            "task_version": spec.task_version,
            "task_args": spec.task_args,
            "dataset": spec.dataset and spec.dataset.name,
            "created": spec.created,
            "solvers": [step.solver for step in self.steps],
            "generate": {**(self.plan.config or {}), **(spec.model_generate_config or {})},
            "epochs": config.epochs,
            "epochs_reducer": config.epochs_reducer,
            "limit": config.limit,
            "status": self.status,
        }
        return Source(
            tool=tool,
            version=str(self.version or ""),
            model=self.model,
            task=self.task,
            settings={key: value for key, value in settings.items() if value not in (None, "", {}, [])},
        )


def to_header(values: Mapping[str, Any], path: str) -> Header:
    """Return the header of a log's top-level values.

    Raises DatasetSchemaError for what is no log of inspect_ai, or one of a version that is not known.
    """
    log = to_struct(values, _Log, "log of inspect_ai", path)
    if not (log.eval.task and log.eval.model):
        raise DatasetSchemaError.at(path, "eval.task and eval.model must be names", code="schema")
    if not {"plan", "status"} & values.keys():
        raise DatasetSchemaError.at(path, "there is neither `plan` nor `status`", code="schema")
    if log.version is not None and (isinstance(log.version, bool) or log.version not in _VERSIONS):
        message = f"logs of version {show(log.version)} are not known, only 1, 2 and 3"
        hint = "inspect log convert FILE --to json --output-dir FOLDER, with the inspect_ai that wrote it"
        raise DatasetSchemaError.at(Location(path, field="version"), message, hint, code="version")
    return Header(log)


def find_headline(scores: Sequence[Mapping[str, Any]], headline: Any, declared: Any) -> Headline | None:
    """Return what a log is headed by, None where it reports nothing.

    The rule is inspect_ai's (`log/_headline.py`): `results.headline` (`headline`), which is written when a log is
    scored, else what the task declared, `eval.headline_metric` (`declared`). Each field that is set narrows the scores,
    in the order reducer, scorer, score; then the metric is the named one, of the first score that has it. A declaration
    that names nothing is abandoned whole. Without one, or where it was abandoned: the first metric of the first score.
    """
    if not scores:
        return None
    said = declared if headline is None else headline
    reason = "the task's headline_metric" if headline is None else "the log's headline"
    why = "the first metric of the log's first score"
    if isinstance(said, Mapping):
        places = [
            place
            for place, score in enumerate(scores)
            if all(said.get(field) in (None, score.get(selects)) for field, selects in _SELECTORS)
        ]
        metric = said.get("metric")
        if metric is None:
            places = places[:1]
        for place in places:
            there = _metrics(scores[place])
            if there and (metric is None or metric in there):
                return Headline(place, next(iter(there)) if metric is None else metric, reason)
        why += f", as {reason} names none that is there"
    first = next(iter(_metrics(scores[0])), None)
    return None if first is None else Headline(0, first, why)


def _metrics(score: Mapping[str, Any]) -> Mapping[str, Any]:
    metrics = score.get("metrics")
    return metrics if isinstance(metrics, Mapping) else {}
