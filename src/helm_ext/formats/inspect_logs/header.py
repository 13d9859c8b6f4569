"""What a log says about itself, beside its samples: task, model, settings, status, scores over all samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from helm_ext.errors import DatasetError, DatasetIntegrityError, DatasetSchemaError, Problems, show
from helm_ext.evalset import Source
from helm_ext.formats.inspect_logs.headline import Headline, find_headline

HEADER_KEYS = frozenset({"version", "status", "eval", "plan", "results", "stats", "error", "invalidated"})
"""The top-level keys of a log that are read; the samples aside."""

FINISHED = "success"
_STATUSES = ("started", FINISHED, "cancelled", "error")
_VERSIONS = (1, 2, 3)

_CHOICE = "multiple_choice"
_REDUCER = "epochs_reducer"


@dataclass(frozen=True)
class Header:
    """The header of a log, its types checked as far as they are used."""

    path: str
    status: str
    spec: Mapping[str, Any]
    """`eval`."""
    plan: Mapping[str, Any]
    results: Mapping[str, Any]

    @property
    def task(self) -> str:
        """The task's name."""
        return str(self.spec["task"])

    @property
    def model(self) -> str:
        """The model, as inspect_ai names it: `openai/gpt-4o`."""
        return str(self.spec["model"])

    @property
    def config(self) -> Mapping[str, Any]:
        """`eval.config`."""
        return _mapping(self.spec.get("config"))

    @property
    def epochs(self) -> int:
        """How often each sample was to be asked."""
        epochs = self.config.get("epochs")
        return epochs if isinstance(epochs, int) and epochs > 0 else 1

    @property
    def planned(self) -> int:
        """How many samples the dataset has, in all epochs; 0 where the log does not say."""
        samples = _mapping(self.spec.get("dataset")).get("samples")
        return samples * self.epochs if isinstance(samples, int) else 0

    @property
    def reducers(self) -> list[str] | None:
        """How scores of epochs become one; None: by their mean, []: they do not."""
        given = self.config.get(_REDUCER)
        return [given] if isinstance(given, str) else None if given is None else [str(name) for name in given]

    @property
    def scores(self) -> Sequence[Mapping[str, Any]]:
        """The scores over all samples. Logs of 2024 have one, in another place."""
        if "scores" in self.results:
            return [_mapping(score) for score in self.results["scores"] or ()]
        scorer = _mapping(self.results.get("scorer"))
        return [{**scorer, "metrics": self.results.get("metrics") or scorer.get("metrics")}] if scorer else []

    @property
    def headline(self) -> Headline | None:
        """The metric that the log is headed by; None where it reports none."""
        return find_headline(self.scores, self.results.get("headline"), self.spec.get("headline_metric"))

    @property
    def is_finished(self) -> bool:
        """Whether the run ended well."""
        return self.status == FINISHED

    @property
    def choice_settings(self) -> Mapping[str, Any] | None:
        """What the solver for multiple choice was told; None where the plan has no such solver."""
        for step in self.plan.get("steps") or ():
            if _mapping(step).get("solver") in (_CHOICE, f"inspect_ai/{_CHOICE}"):
                return _mapping(step.get("params"))
        return None

    @property
    def reads_letters(self) -> bool:
        """Whether targets of multiple choice are letters, as the solver and the scorer for it have it."""
        names = {str(_mapping(scorer).get("name")) for scorer in self.spec.get("scorers") or ()}
        names |= {str(score.get("scorer") or score.get("name")) for score in self.scores}
        return self.choice_settings is not None or bool(names & {"choice", "inspect_ai/choice"})

    def to_source(self, tool: str) -> Source:
        """Return where the rows come from, without what is known only when they were read."""
        packages = _mapping(self.spec.get("packages"))
        settings = {
            "task_version": self.spec.get("task_version"),
            "task_args": self.spec.get("task_args"),
            "dataset": _mapping(self.spec.get("dataset")).get("name"),
            "created": self.spec.get("created"),
            "solvers": [_mapping(step).get("solver") for step in self.plan.get("steps") or ()],
            "generate": {**_mapping(self.plan.get("config")), **_mapping(self.spec.get("model_generate_config"))},
            "epochs": self.config.get("epochs"),
            "epochs_reducer": self.config.get("epochs_reducer"),
            "limit": self.config.get("limit"),
            "status": self.status,
        }
        return Source(
            tool=tool,
            version=str(packages.get("inspect_ai") or ""),
            model=self.model,
            task=self.task,
            settings={key: value for key, value in settings.items() if value not in (None, "", {}, [])},
        )


def to_header(values: Mapping[str, Any], path: str) -> Header:
    """Return the header of a log's top-level values.

    Raises DatasetSchemaError for what is no log of inspect_ai, or one of a version that is not known.
    """
    problems = Problems(path)
    spec = _mapping(values.get("eval"))
    for key in ("task", "model"):
        if not isinstance(spec.get(key), str) or not spec[key]:
            hint = "a log of inspect_ai has eval.task, eval.model, and plan or status"
            problems.add(("eval", key), f"expected a name, got {show(spec.get(key))}", hint, code="schema")
    if not ({"plan", "status"} & values.keys()):
        problems.add((), "there is neither `plan` nor `status`", code="schema")
    version = values.get("version")
    if version is not None and (isinstance(version, bool) or version not in _VERSIONS):
        message = f"logs of version {show(version)} are not known, only 1, 2 and 3"
        hint = "inspect log convert FILE --to json --output-dir FOLDER, with the inspect_ai that wrote it"
        problems.add(("version",), message, hint, code="version")
    status = values.get("status", "started" if "results" not in values else FINISHED)
    if status not in _STATUSES:
        problems.add(("status",), f"expected one of {', '.join(_STATUSES)}, got {show(status)}", code="schema")
    for key in ("plan", "results"):
        if not isinstance(values.get(key), Mapping | None):
            problems.add((key,), f"expected an object, got {show(values[key])}", code="schema")
    for *where, key in (("plan", "steps"), ("results", "scores"), ("eval", "scorers"), ("eval", "config", _REDUCER)):
        holder: Any = values
        for name in where:
            holder = _mapping(_mapping(holder).get(name))
        given = holder.get(key)
        if not (isinstance(given, list | None) or (key == _REDUCER and isinstance(given, str))):
            problems.add((*where, key), f"expected a list, got {show(given)}", code="schema")
    found = problems.finish()
    if found:
        raise DatasetSchemaError(found)
    return Header(path, str(status), spec, _mapping(values.get("plan")), _mapping(values.get("results")))


def no_samples(path: str) -> DatasetError:
    """Return the error for a log that holds no samples."""
    hint = "the eval was run without samples in its log (--no-log-samples), or ended before the first one"
    return DatasetIntegrityError.at(path, "there are no samples", hint, code="no-rows")


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
