"""The base of HELM Scenario classes, one a format. Class paths are written into `run_spec.json`: they are public API.

    file ──format's load()──▶ EvalSet ──▶ get_instances() ──▶ HELM

The arguments of a scenario name the dataset, the digest it was planned with, and the options that decide which
instances there are. In the process that planned the run, `get_instances` hands out what was read then; elsewhere it
loads the file again and refuses other bytes than those planned.
`helm-summarize` builds scenarios only to call `get_metadata`, long after the run and elsewhere: neither it nor the
constructor touches a file.

HELM's Slurm and multi-GPU workers load no plugins, but they create the scenario before the adapter: importing this
module does what the plugin does for them.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from helm.benchmark.scenarios.scenario import EVAL_SPLITS, Instance, Scenario, ScenarioMetadata

from helm_ext import adaptation
from helm_ext.adaptation.rows import make_run_scoring, order_for_sampling, share_scoring
from helm_ext.errors import DatasetChangedError
from helm_ext.evalset import EXTRA_KEY, EvalSet, garbage, row_extra
from helm_ext.evalset.rows import StoredRows
from helm_ext.formats import planned
from helm_ext.formats.format import Format

adaptation.install()

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


def tell_apart(described: Iterable[ScenarioMetadata]) -> list[ScenarioMetadata]:
    """Return the groups of a suite, those of one title with the digits of their names (`group_name`) behind it.

    One dataset does not know which others stand beside it, so its own title has none.
    """
    groups = list(described)
    often = Counter(group.display_name for group in groups)
    titles = [f"{group.display_name} ({group.name.rpartition('-')[2]})" for group in groups]
    return [
        replace(group, display_name=title, short_display_name=title) if often[group.display_name] > 1 else group
        for group, title in zip(groups, titles, strict=True)
    ]


_SAME_COLUMN = frozenset({"main_split", "missing", "name"})
"""Arguments that make no other column: what planning adds, and `missing`. What is left out stands beside the score."""


class EvalSetScenario(Scenario):
    """What all formats share: load, compare the digest, hand the instances to HELM. A subclass names its format."""

    tags: list[str] = []  # noqa: RUF012 - HELM's Scenario declares it so
    description = "A dataset read by helm-ext"
    format: ClassVar[Format]
    skips_missing: ClassVar[bool] = False
    """Whether rows without a usable recording are left out and counted where the run entry does not say `missing=`."""
    always_there = frozenset({"digest", "live_rows", "main_metric", "main_split", "missing", "questions"})
    """Arguments of bounded length that are this class's own business, not the format's."""

    def __init__(
        self,
        *,
        digest: str,
        main_metric: str,
        questions: str | None = None,
        display_name: str | None = None,
        live_rows: str | None = None,
        arguments: str | None = None,
        variant: str | None = None,
        **given: Any,
    ) -> None:
        super().__init__()
        self.digest = digest
        self.questions = questions or digest
        """`EvalSet.question_digest`: which runs are comparable."""
        self.main_metric = main_metric
        self.live_rows = live_rows
        """`8 of 10`, where a live run scores fewer rows than a recorded one (`EvalSet.scored_rows`)."""
        self.reference = arguments
        """Where the arguments are too long for HELM's file names: the reference to them (`planned`)."""
        self.arguments = given
        self.display_name = display_name or self.title()
        # The digest covers the arguments that name the data; every other one makes another way of running them.
        names_data = _SAME_COLUMN | {argument.name for argument in self.format.arguments if argument.names_data}
        chosen = {key: value for key, value in given.items() if key not in names_data}
        own = ", ".join(f"{key}={_show(value)}" for key, value in sorted(chosen.items()))
        self.variant = own if variant is None else variant
        """What of the arguments makes another column."""
        self.name = group_name(self.title(), self.questions, self.variant)
        self.definition_path = type(self).__module__
        """HELM's would be a link into its own repository, with this machine's path in it."""

    def title(self) -> str:
        """Return the dataset's name, or what of it fits where the arguments are too long."""
        return self.dataset_name() if self.reference is None else str(self.arguments["name"])

    def dataset_name(self) -> str:
        """Return the dataset's name, known from the arguments alone."""
        return str(self.arguments.get("name") or self.default_name(self.arguments))

    @classmethod
    def default_name(cls, arguments: Mapping[str, Any]) -> str:
        """Return the name of a dataset that has none of its own: the one that was asked for, else the file's."""
        named = arguments.get("dataset")
        return str(named) if named is not None else Path(arguments["path"]).stem

    def load(self) -> EvalSet:
        """Read the dataset; raises DatasetError."""
        return self.format.load(**self._load_arguments())

    def open(self, output_path: str) -> EvalSet:
        """Return the dataset that the run was planned with. Raises DatasetChangedError if the bytes are others."""
        evalset = planned.take(self.key())
        if evalset is None:
            if self.reference is not None:
                own = {key: value for key, value in self.arguments.items() if key in self.always_there}
                self.arguments = {**own, **planned.find_arguments(self.reference, output_path)}
            evalset = self.load()
        if not evalset.digest.startswith(self.digest):
            raise DatasetChangedError(
                f"{evalset.name}: the data changed since the run was planned: SHA-256 {evalset.short_digest}, "
                f"planned with {self.digest}\n  hint: start helm-run again; the run's name carries the new digest"
            )
        garbage.relax()
        self.description = evalset.description or evalset.display_name or self.description
        self.tags = list(evalset.tags)
        return evalset

    def get_instances(self, output_path: str) -> list[Instance]:
        """Return the instances. Raises DatasetChangedError if the bytes are not those that the run was planned with."""
        return self.to_instances(self.open(output_path))

    def to_instances(self, evalset: EvalSet) -> list[Instance]:
        """Return the instances of a dataset in the order in which HELM samples them."""
        scoring = make_run_scoring(self.format.metric_spec(evalset), self.main_metric)
        if isinstance(evalset.instances, StoredRows) and evalset.instances.can_wait:
            return evalset.instances.hand_out(partial(share_scoring, scoring=scoring))
        instances = order_for_sampling(list(evalset.instances), evalset.adapter_spec.eval_splits or EVAL_SPLITS)
        for instance in instances:
            share_scoring(instance, scoring)
        return [skip_missing(i) for i in instances] if self.leaves_out else instances

    @property
    def leaves_out(self) -> bool:
        """Whether rows without a usable recording are left out and counted."""
        return bool(self.arguments.get("missing", "skip" if self.skips_missing else "error") == "skip")

    def key(self) -> dict[str, Any]:
        """Return what tells one dataset from another, for `planned`: the digest and how it is loaded."""
        known = {"arguments": self.reference} if self.reference is not None else self._load_arguments()
        return {"format": type(self).__name__, "digest": self.digest, **known}

    def get_metadata(self) -> ScenarioMetadata:
        """Describe the dataset for `helm-summarize --auto-generate-schema`."""
        title = f"{self.display_name} ({self.variant})" if self.variant else self.display_name
        fewer = f" A live run scores {self.live_rows} rows." if self.live_rows else ""
        return ScenarioMetadata(
            name=self.name,
            display_name=title,
            short_display_name=title,
            description=f"{self.display_name}: {self.format.dataset_title} `{self.title()}`, main metric "
            f"{self.main_metric}. Digest of the questions: {self.questions}; each run's name has that of its "
            f"data.{fewer}",
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


class ImportedScenario(EvalSetScenario):
    """A run of a file that another tool wrote: rows without a usable answer are excluded and counted by default."""

    skips_missing = True

    def _load_arguments(self) -> dict[str, Any]:
        """Return the arguments of `load`; the name is for reports alone."""
        return {key: value for key, value in super()._load_arguments().items() if key != "name"}

    @classmethod
    def default_name(cls, arguments: Mapping[str, Any]) -> str:
        """Return the dataset's name: planning knows it, and gives it as `name`."""
        return str(arguments.get("name") or super().default_name(arguments))


def skip_missing(instance: Instance) -> Instance:
    """Mark a row without a usable recording, so that a recorded run leaves it out and counts it (`missing=skip`)."""
    extra = row_extra(instance)
    found = extra.get("recorded")
    if found is None or found["status"] == "ok":
        return instance
    skipped = {**extra, "recorded": {**found, "skip": True}}
    return replace(instance, extra_data={**(instance.extra_data or {}), EXTRA_KEY: skipped})
