"""Run expanders: one run for each task of a file (`ultraeval:config=FILE,model=...`), and demonstrations drawn anew.

A run spec function returns one RunSpec; HELM makes several of it with run expanders. It finds them by the name of an
argument in the dict `RUN_EXPANDERS`, takes them off the arguments, and hands them the RunSpec made without them:

    ultraeval:config=FILE,fewshot=2,model=m
      the run spec function (fewshot=2)   -> a RunSpec that only keeps the arguments      (make_pending)
      TaskRunExpander(FILE).expand        -> the run spec function (config=FILE, task=..., fewshot=2), for each task
      ModelRunExpander(m).expand          -> each of them with the model

What stands before it in the run entry (`temperature=1.0,config=FILE`) would change the pending RunSpec, and no task's:
that is refused.

A task of several that cannot be run (its data is missing, it would execute code) becomes a run that fails, after the
others: HELM goes on after failed runs, names them at the end, and ends with 1.

No run spec function of HELM's has a parameter of the names that formats give (`Format.several_tasks_in`; asserted in
tests/contract); another plugin's that has one gets an error that says so, instead of losing its argument.

`max_train_instances=N` HELM takes off every run entry, too, and sets the number in the finished RunSpec
(`helm.benchmark.run_expander.MaxTrainInstancesRunExpander`). By then the file was read: as many rows as the file says
were drawn, and are not evaluated. So for formats that draw demonstrations from the rows they would evaluate the dataset
is read once more, with the number as an argument that the scenario keeps; then the draw, the run's name and what is
sent agree. Other run entries are HELM's alone.

This module is imported by every helm-run: it imports nothing heavy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from functools import partial
from typing import Any

from helm.benchmark.adaptation.adapter_spec import AdapterSpec
from helm.benchmark.run_expander import RUN_EXPANDERS, MaxTrainInstancesRunExpander, RunExpander
from helm.benchmark.run_spec import RunSpec
from helm.benchmark.scenarios.scenario import Instance, Scenario, ScenarioSpec
from helm.common.hierarchical_logger import hwarn
from helm.common.object_spec import get_class_by_name

from helm_ext.errors import HelmExtError, RunEntryError
from helm_ext.formats.format import Format
from helm_ext.formats.registry import all_formats, get_format
from helm_ext.planning import OF_ONE_FILE, RUN_ARGUMENTS

MakeRunSpec = Callable[[str, Mapping[str, Any]], RunSpec]
"""Makes the RunSpec of one task: `run_specs.get_run_spec`, which imports what is heavy."""

_DRAWN = MaxTrainInstancesRunExpander.name
"""The argument: `max_train_instances`."""

SHOWN_TASKS = 10
"""Of those that cannot be run, where none can."""


class PendingTaskScenario(Scenario):
    """Stands in a RunSpec whose file was not read yet, or cannot be. If it is run, it reports what is missing."""

    name = "pending"
    description = "A file of several tasks, not yet read"
    tags: list[str] = []  # noqa: RUF012 - HELM's Scenario declares it so

    def __init__(self, entry: str, blocked: str = "", **arguments: Any) -> None:
        super().__init__()
        self.entry = entry
        self.blocked = blocked
        """Why a task among several cannot be run."""
        self.arguments = arguments

    def get_instances(self, output_path: str) -> list[Instance]:  # noqa: ARG002 - HELM's signature
        """Raise RunEntryError: the entry names no dataset, or the task cannot be run."""
        if self.blocked:
            raise RunEntryError(self.blocked)
        get_format(self.entry).require_source({})
        return []


_CLASS_NAME = f"{PendingTaskScenario.__module__}.{PendingTaskScenario.__qualname__}"


def make_pending(entry: str, arguments: Mapping[str, Any]) -> RunSpec:
    """Return the RunSpec of a run entry without a dataset, to be expanded by the argument that names one."""
    scenario_spec = ScenarioSpec(class_name=_CLASS_NAME, args={"entry": entry, **arguments})
    pending = RunSpec(name=entry, scenario_spec=scenario_spec, adapter_spec=AdapterSpec(), metric_specs=[], groups=[])
    vars(pending)["is_untouched"] = True  # no field: copies that other expanders make are without it
    return pending


def find_pending(entry: str, arguments: Mapping[str, Any]) -> RunSpec | None:
    """Return what `make_pending` does, where HELM took off the argument that names the file; None where it did not.

    Raises RunEntryError for arguments.
    """
    format_ = get_format(entry)
    is_named = not format_.parse(arguments).keys().isdisjoint(format_.sources)
    return None if is_named or not format_.several_tasks_in else make_pending(entry, arguments)


def _make_blocked(entry: str, arguments: Mapping[str, Any], reason: str) -> RunSpec:
    """Return the RunSpec of a task that cannot be run; it fails for this reason."""
    from helm_ext.planning.names import fit_name

    return replace(make_pending(entry, {"blocked": reason, **arguments}), name=fit_name(entry, arguments, ""))


class TaskRunExpander(RunExpander):
    """`ARGUMENT=FILE`: one run for each task of the file, of those that the other arguments choose."""

    def __init__(self, make: MakeRunSpec, argument: str, value: Any) -> None:
        self.name = argument
        self.value = value
        self._make = make

    def expand(self, run_spec: RunSpec) -> list[RunSpec]:
        """Return one RunSpec a task. Raises RunEntryError, DatasetError."""
        if run_spec.scenario_spec.class_name != _CLASS_NAME:
            examples = ", ".join(f"{f.name}:{self.name}=FILE" for f in all_formats() if f.several_tasks_in == self.name)
            raise RunEntryError(
                f"{self.name}={self.value}: this argument is helm-ext's ({examples}), and {run_spec.name!r} is "
                f"another run entry\n  hint: remove {self.name}=, or disable the helm_ext plugin for this run"
            )
        arguments = dict(run_spec.scenario_spec.args)
        entry = arguments.pop("entry")
        if "is_untouched" not in vars(run_spec):
            raise RunEntryError(
                f"{self.name}={self.value} stands behind an argument that changes the runs it makes: {run_spec.name}\n"
                f"  hint: {entry}:{self.name}={self.value},... first, then model= and others"
            )
        return self._make_runs(entry, {self.name: self.value, **arguments})

    def _make_runs(self, entry: str, given: dict[str, Any]) -> list[RunSpec]:
        """Return the run of each task; those that cannot be run come last. Raises what the only task raises."""
        format_ = get_format(entry)
        tasks = format_.tasks(given | format_.parse({self.name: self.value}))
        if len(tasks) == 1:
            return [self._make(entry, given | tasks[0])]
        made: list[RunSpec] = []
        blocked: list[RunSpec] = []
        reasons: dict[str, str] = {}
        for chosen in tasks:
            task = ", ".join(chosen.values())
            try:
                made.append(self._make(entry, given | chosen))
            except (HelmExtError, OSError) as error:
                blocked.append(_make_blocked(entry, given | chosen, f"task {task} cannot be run: {error}"))
                reasons[task] = str(error)
        if not made:
            shown = [f"{task}: {reason}" for task, reason in list(reasons.items())[:SHOWN_TASKS]]
            more = [f"... and {len(reasons) - SHOWN_TASKS} more"] if len(reasons) > SHOWN_TASKS else []
            none = f"{self.name}={self.value}: none of its {len(reasons)} tasks can be run"
            raise RunEntryError("\n".join([none, *shown, *more]))
        for task, reason in reasons.items():
            hwarn(f"task {task} cannot be run, and will be named at the end: {reason}")
        return [*made, *blocked]


class DemonstrationsRunExpander(MaxTrainInstancesRunExpander):
    """HELM's run expander, whose number also decides how many rows are drawn."""

    name = _DRAWN

    def expand(self, run_spec: RunSpec) -> list[RunSpec]:
        """Return a RunSpec for each number. Raises DatasetError where too few rows are left to evaluate."""
        expanded: list[RunSpec] = super().expand(run_spec)
        format_ = _drawing_format(run_spec)
        if format_ is None or not all(isinstance(value, int) for value in self.values):
            return expanded
        return _draw_again(format_, run_spec, expanded)


def _drawing_format(run_spec: RunSpec) -> Format | None:
    """Return the format of a RunSpec if it draws demonstrations."""
    for format_ in all_formats():
        if format_.scenario_class == run_spec.scenario_spec.class_name:
            return format_ if any(argument.name == _DRAWN for argument in format_.arguments) else None
    return None


def _draw_again(format_: Format, before: RunSpec, expanded: list[RunSpec]) -> list[RunSpec]:
    """Return RunSpecs whose scenarios draw as many rows as each of `expanded` shows."""
    from helm_ext.formats import planned
    from helm_ext.formats.format import MISSING
    from helm_ext.planning.run_specs import make_run_spec

    known = {argument.name for argument in format_.arguments}
    # In full also where they are too long for a scenario (`names`).
    full = next(
        (metric.args for metric in before.metric_specs if metric.class_name == RUN_ARGUMENTS), before.scenario_spec.args
    )
    arguments = {name: value for name, value in full.items() if name in known}
    scenario = get_class_by_name(format_.scenario_class)(**before.scenario_spec.args)

    def load(more: dict[str, int]) -> Any:
        given = {name: value for name, value in (arguments | more).items() if name != MISSING.name}
        return format_.load(**given)

    first = planned.withdraw(scenario.key()) or load({})
    made = []
    for spec in expanded:
        number = spec.adapter_spec.max_train_instances
        if number == first.adapter_spec.max_train_instances:
            planned.keep(scenario.key(), first)
            made.append(spec)
            continue
        evalset = load({_DRAWN: number})
        drawn = make_run_spec(format_, format_.plan(arguments | {_DRAWN: number}, evalset), evalset)
        # What expanders before this one changed stays; the rest is as the file makes it with this number.
        changed = {
            field.name: value
            for field in fields(AdapterSpec)
            if (value := getattr(spec.adapter_spec, field.name)) != getattr(first.adapter_spec, field.name)
        }
        made.append(
            replace(
                spec,
                scenario_spec=drawn.scenario_spec,
                adapter_spec=replace(drawn.adapter_spec, **changed),
                metric_specs=[
                    *(metric for metric in spec.metric_specs if metric.class_name not in OF_ONE_FILE),
                    *(metric for metric in drawn.metric_specs if metric.class_name in OF_ONE_FILE),
                ],
                groups=[drawn.groups[0] if group == scenario.name else group for group in spec.groups],
            )
        )
    return made


def install(make: MakeRunSpec) -> None:
    """Register an expander for each argument that may name a file of several tasks, and for demonstrations, once.

    HELM's own stays where another package has replaced it already.
    """
    for format_ in all_formats():
        if format_.several_tasks_in:
            RUN_EXPANDERS.setdefault(format_.several_tasks_in, partial(TaskRunExpander, make, format_.several_tasks_in))
    if RUN_EXPANDERS.get(_DRAWN) is MaxTrainInstancesRunExpander:
        RUN_EXPANDERS[_DRAWN] = DemonstrationsRunExpander
