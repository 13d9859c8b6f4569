"""A RunSpec whose dataset is not known yet, because HELM took the argument that names it off the run entry.

A run spec function returns one RunSpec; HELM makes several of it with run expanders. It finds them by the name of an
argument in the dict `RUN_EXPANDERS`, takes them off the arguments, and hands them the RunSpec made without them:

    ultraeval:config=FILE,fewshot=2,model=m
      the run spec function (fewshot=2)   -> a RunSpec that only keeps the arguments      (make_pending)
      TaskRunExpander(FILE).expand        -> the run spec function (config=FILE, task=..., fewshot=2), for each task
      ModelRunExpander(m).expand          -> each of them with the model

Expanders may also come first (`temperature=1.0,config=FILE`) and then change the pending RunSpec, whose fields
therefore hold values that no task has (`UNSET_*`): what was set is known also where it is HELM's default.

A task of several that cannot be run (its data is missing, it would execute code) becomes a run that fails, after the
others: HELM goes on after failed runs, names them at the end, and ends with 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from helm.benchmark.adaptation.adapter_spec import AdapterSpec
from helm.benchmark.run_spec import RunSpec
from helm.benchmark.scenarios.scenario import Instance, Scenario, ScenarioSpec

from helm_ext.errors import RunEntryError
from helm_ext.formats.registry import get_format

UNSET_TEXT = "<as the task says>"
UNSET_NUMBER = -(2**40)
_UNSET_BY_TYPE: dict[type, Any] = {str: UNSET_TEXT, int: UNSET_NUMBER, float: float(UNSET_NUMBER)}


class PendingTaskScenario(Scenario):
    """Stands in a RunSpec whose file was not read yet. If it is run, it reports what the run entry lacks."""

    name = "pending"
    description = "A file of several tasks, not yet read"
    tags: list[str] = []  # noqa: RUF012 - HELM's Scenario declares it so

    def __init__(self, **arguments: Any) -> None:
        super().__init__()
        self.entry = arguments.pop("entry")
        self.arguments = arguments

    def get_instances(self, output_path: str) -> list[Instance]:  # noqa: ARG002 - HELM's signature
        """Raise RunEntryError: the entry names no dataset."""
        get_format(self.entry).require_source({})
        return []


class BlockedTaskScenario(Scenario):
    """Stands in the RunSpec of a task that cannot be run, among others that can. If it is run, it reports why."""

    name = "blocked"
    description = "A task that cannot be run"
    tags: list[str] = []  # noqa: RUF012 - HELM's Scenario declares it so

    def __init__(self, task: str, reason: str) -> None:
        super().__init__()
        self.task = task
        self.reason = reason

    def get_instances(self, output_path: str) -> list[Instance]:  # noqa: ARG002 - HELM's signature
        """Raise RunEntryError with the reason."""
        raise RunEntryError(f"task {self.task} cannot be run: {self.reason}")


_CLASS_NAME = f"{PendingTaskScenario.__module__}.{PendingTaskScenario.__qualname__}"


def make_pending(entry: str, arguments: Mapping[str, Any]) -> RunSpec:
    """Return the RunSpec of a run entry without a dataset, to be expanded by the argument that names one."""
    return RunSpec(
        name=entry,
        scenario_spec=ScenarioSpec(class_name=_CLASS_NAME, args={"entry": entry, **arguments}),
        adapter_spec=_unset_adapter_spec(),
        metric_specs=[],
        groups=[],
    )


def make_blocked(entry: str, arguments: Mapping[str, Any], task: str, reason: str) -> RunSpec:
    """Return the RunSpec of a task that cannot be run; it fails for this reason."""
    from helm_ext.planning.names import fit_name

    path = f"{BlockedTaskScenario.__module__}.{BlockedTaskScenario.__qualname__}"
    return replace(
        make_pending(entry, {}),
        name=fit_name(entry, arguments, ""),
        scenario_spec=ScenarioSpec(class_name=path, args={"task": task, "reason": reason}),
    )


def is_pending(run_spec: RunSpec) -> bool:
    """Whether `make_pending` made it."""
    return bool(run_spec.scenario_spec.class_name == _CLASS_NAME)


def _unset_adapter_spec() -> AdapterSpec:
    """Return an AdapterSpec of values that no task has. Expanders branch on `method`, so that stays HELM's."""
    return AdapterSpec(
        **{
            field.name: _UNSET_BY_TYPE[type(value)]
            for field in fields(AdapterSpec)
            if field.name not in ("method", "model", "model_deployment")
            and type(value := getattr(AdapterSpec(), field.name)) in _UNSET_BY_TYPE
        },
        stop_sequences=[UNSET_TEXT],
    )
