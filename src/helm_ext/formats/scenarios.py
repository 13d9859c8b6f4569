"""HELM Scenario classes, one a format. Their class paths are written into `run_spec.json`: they are public API.

    file ──format's load()──▶ EvalSet ──▶ get_instances() ──▶ HELM

The arguments of a scenario name the dataset, the digest it was planned with, and the options that decide which
instances there are. In the process that planned the run, `get_instances` hands out what was read then; elsewhere it
loads the file again and refuses other bytes than those planned.
`helm-summarize` builds scenarios only to call `get_metadata`, long after the run and elsewhere: neither it nor the
constructor touches a file.
"""

from __future__ import annotations

import hashlib
import re
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

from helm.benchmark.scenarios.scenario import EVAL_SPLITS, Instance, Scenario, ScenarioMetadata

from helm_ext import adaptation
from helm_ext.adaptation.row_order import order_for_sampling
from helm_ext.errors import DatasetChangedError
from helm_ext.evalset import EXTRA_KEY, EvalSet, garbage, row_extra
from helm_ext.evalset.copying import copy_with
from helm_ext.formats import long_arguments, planned

__all__ = ["AdapterSpecScenario", "InnodataScenario", "UltraEvalScenario", "group_name"]

# HELM's Slurm and multi-GPU workers load no entry points, but they create the scenario before the adapter.
adaptation.install()

DIGEST_LENGTH = 12
GROUP_LENGTH = 40
"""Bytes of a dataset's name in its group's name."""


def group_name(dataset: str, digest: str, variant: str = "") -> str:
    """Return the group under which HELM reports a dataset: its name, and six digits for its questions and arguments.

    HELM averages all runs of a model and a group in one cell. The digits keep apart two versions of a dataset
    (`digest`: of the questions, not of what models answered), and two ways of running it (`variant`: other
    demonstrations, another extraction, ...).
    `helm-summarize` hides every run of a group with "babi" in its name unless the run's name has "task=all"
    (`Summarizer.create_group_table`), so the name is written as its authors do.
    """
    safe = re.sub(r"[^\w.-]+", "_", dataset).replace("babi", "bAbI")
    # HELM repeats the group in file names; a character that is cut at the end is dropped.
    name = safe.encode()[:GROUP_LENGTH].decode(errors="ignore")
    return f"{name}-{hashlib.sha256(f'{digest} {variant}'.encode()).hexdigest()[:6] if variant else digest[:6]}"


_NAMES_FILES = frozenset(
    {
        "config", "data", "dataset", "demos", "hub", "main_split", "name", "path", "replies", "root", "task",
        "transform", "version",
    }
)  # fmt: skip
"""Arguments that say which files are read: the digest speaks for them."""


class EvalSetScenario(Scenario):
    """What the three formats share: load, compare the digest, hand the instances to HELM."""

    tags: list[str] = []  # noqa: RUF012 - HELM's Scenario declares it so
    description = "A dataset read by helm-ext"
    format_title = ""
    always_there = frozenset({"digest", "main_metric", "main_split", "missing", "questions"})
    """Arguments of bounded length that are this class's own business, not the format's."""

    def __init__(
        self,
        *,
        digest: str,
        main_metric: str,
        questions: str | None = None,
        display_name: str | None = None,
        arguments: str | None = None,
        variant: str | None = None,
        **given: Any,
    ) -> None:
        super().__init__()
        self.digest = digest
        self.questions = questions or digest
        """`EvalSet.question_digest`: which runs are comparable."""
        self.main_metric = main_metric
        self.reference = arguments
        """Where the arguments are too long for HELM's file names: the reference to them (`long_arguments`)."""
        self.arguments = given
        self.display_name = display_name or self.title()
        chosen = {key: value for key, value in given.items() if key not in _NAMES_FILES}
        own = ", ".join(f"{key}={_show(value)}" for key, value in sorted(chosen.items()))
        self.variant = own if variant is None else variant
        """What of the arguments makes another column."""
        self.name = group_name(self.title(), self.questions, self.variant)

    def title(self) -> str:
        """Return the dataset's name, or what of it fits where the arguments are too long."""
        return self.dataset_name() if self.reference is None else str(self.arguments["name"])

    @abstractmethod
    def dataset_name(self) -> str:
        """Return the dataset's name, known from the arguments alone."""

    @abstractmethod
    def load(self) -> EvalSet:
        """Read the dataset; raises DatasetError."""

    def get_instances(self, output_path: str) -> list[Instance]:
        """Return the instances. Raises DatasetChangedError if the bytes are not those that the run was planned with."""
        evalset = planned.take(self.key())
        if evalset is None:
            if self.reference is not None:
                own = {key: value for key, value in self.arguments.items() if key in self.always_there}
                self.arguments = {**own, **long_arguments.find(self.reference, output_path)}
            evalset = self.load()
        require_same_digest(evalset, self.digest)
        garbage.relax()
        self.description = evalset.description or evalset.display_name or self.description
        self.tags = list(evalset.tags)
        instances = order_for_sampling(evalset.instances, evalset.adapter_spec.eval_splits or EVAL_SPLITS)
        return [skip_missing(i) for i in instances] if self.arguments.get("missing") == "skip" else instances

    def key(self) -> dict[str, Any]:
        """Return what tells one dataset from another, for `planned`: the digest and how it is loaded."""
        known = {"arguments": self.reference} if self.reference is not None else self._load_arguments()
        return {"format": type(self).__name__, "digest": self.digest, **known}

    def get_metadata(self) -> ScenarioMetadata:
        """Describe the dataset for `helm-summarize --auto-generate-schema`."""
        title = f"{self.display_name} ({', '.join(filter(None, [self.questions[:6], self.variant]))})"
        return ScenarioMetadata(
            name=self.name,
            display_name=title,
            short_display_name=title,
            description=f"{self.display_name}: {self.format_title} `{self.title()}`, "
            f"SHA-256 {self.questions}…, main metric {self.main_metric}.",
            main_metric=self.main_metric,
            main_split=self.main_split(),
        )

    def _load_arguments(self) -> dict[str, Any]:
        """Return the arguments of the format's `load`: those that are not this class's own business."""
        return {key: value for key, value in self.arguments.items() if key not in ("missing", "main_split")}

    def main_split(self) -> str:
        """Return the split that the leaderboard shows."""
        return str(self.arguments.get("main_split", "test"))


def _show(value: Any) -> str:
    """Return an argument as it is written in a run entry."""
    return "+".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


def require_same_digest(evalset: EvalSet, planned: str) -> None:
    """Raise DatasetChangedError unless the EvalSet's digest begins with the planned one."""
    if not evalset.digest.startswith(planned):
        raise DatasetChangedError(
            f"{evalset.name}: the data changed since the run was planned: SHA-256 {evalset.short_digest}, "
            f"planned with {planned}\n  hint: start helm-run again; the run's name carries the new digest"
        )


def skip_missing(instance: Instance) -> Instance:
    """Mark a row without a usable recording, so that a recorded run leaves it out and counts it (`missing=skip`)."""
    extra = row_extra(instance)
    found = extra.get("recorded")
    if found is None or found["status"] == "ok":
        return instance
    skipped = {**extra, "recorded": {**found, "skip": True}}
    return copy_with(instance, extra_data={**(instance.extra_data or {}), EXTRA_KEY: skipped})


class AdapterSpecScenario(EvalSetScenario):
    """A JSON file with `adapter_spec` and `request_states` (formats.md, section 1).

        <instructions>
        <instance_prefix><input_prefix>text<input_suffix><output_prefix>answer<output_suffix>    train
        <instance_prefix><input_prefix>text<input_suffix><output_prefix>                         test

    Arguments: `dataset` (a name) or `path` (a file), and those of `helm_ext.formats.request_states.load`.
    """

    format_title = "adapter_spec file"

    def dataset_name(self) -> str:
        return str(self.arguments.get("name") or self.default_name(self.arguments))

    @staticmethod
    def default_name(arguments: Mapping[str, Any]) -> str:
        """Return the name of a dataset that has none of its own: the file's."""
        from pathlib import Path

        from helm_ext.formats import catalog

        if arguments.get("dataset") is not None:
            return str(arguments["dataset"])
        path = Path(arguments["path"])
        return catalog.dataset_name(path) or path.stem

    def load(self) -> EvalSet:
        from helm_ext.formats import catalog, request_states

        options = {key: value for key, value in self._load_arguments().items() if key not in ("dataset", "path")}
        path = self.arguments.get("path") or catalog.find_dataset(self.arguments["dataset"])
        return request_states.load(path, **options)


class UltraEvalScenario(EvalSetScenario):
    """An UltraEval task (formats.md, section 2). Arguments: those of `helm_ext.formats.ultraeval.load`."""

    format_title = "UltraEval task"

    def dataset_name(self) -> str:
        return str(self.arguments["name"])

    def load(self) -> EvalSet:
        from helm_ext.formats import ultraeval

        return ultraeval.load(**self._load_arguments())


class InnodataScenario(EvalSetScenario):
    """A bundle of the Innodata Dataset Hub (formats.md, section 3).

    Arguments: those of `helm_ext.formats.innodata.load`, with `version` resolved to a number.
    """

    format_title = "Innodata dataset"

    def dataset_name(self) -> str:
        from pathlib import Path

        name = self.arguments.get("dataset") or Path(self.arguments["path"]).stem
        version = self.arguments.get("version")
        return f"{name} v{version}" if version is not None else str(name)

    def load(self) -> EvalSet:
        from helm_ext.formats import innodata

        return innodata.load(**self._load_arguments())
