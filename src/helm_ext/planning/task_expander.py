"""One run for each task of a file: `ultraeval:config=FILE,model=...`, for every format that has such files.

How HELM's run expanders work, and what they are handed: `helm_ext.planning.pending`.

No run spec function of HELM's has a parameter of the names that formats give (`Format.several_tasks_in`; asserted in
tests/contract); another plugin's that has one gets an error that says so, instead of losing its argument. This module
is imported by every helm-run: it imports nothing heavy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from functools import partial
from typing import Any

from helm.benchmark.adaptation.adapter_spec import AdapterSpec
from helm.benchmark.run_expander import RUN_EXPANDERS, RunExpander
from helm.benchmark.run_spec import RunSpec
from helm.common.hierarchical_logger import hwarn

from helm_ext.errors import HelmExtError, RunEntryError
from helm_ext.formats.registry import all_formats, get_format
from helm_ext.planning.pending import UNSET_TEXT, is_pending, make_blocked, make_pending


class TaskRunExpander(RunExpander):
    """`ARGUMENT=FILE`: one run for each task of the file, of those that the other arguments choose."""

    def __init__(self, argument: str, value: Any, make: Callable[..., RunSpec] | None = None) -> None:
        self.name = argument
        self.value = value
        self._make = make
        """Makes the RunSpec of one task; by default ours."""

    def expand(self, run_spec: RunSpec) -> list[RunSpec]:
        """Return one RunSpec a task. Raises RunEntryError, DatasetError."""
        if not is_pending(run_spec):
            examples = ", ".join(f"{f.name}:{self.name}=FILE" for f in all_formats() if f.several_tasks_in == self.name)
            raise RunEntryError(
                f"{self.name}={self.value}: this argument is helm-ext's ({examples}), and {run_spec.name!r} is "
                f"another run entry\n  hint: remove {self.name}=, or disable the helm_ext plugin for this run"
            )
        arguments = dict(run_spec.scenario_spec.args)
        entry = arguments.pop("entry")
        base = make_pending(entry, arguments)
        made = self._make_runs(entry, {self.name: self.value, **arguments})
        return [_merge(task, run_spec, base) for task in made]

    def _make_runs(self, entry: str, given: dict[str, Any]) -> list[RunSpec]:
        """Return the run of each task; those that cannot be run come last. Raises what the only task raises."""
        make = self._make or _make_run_spec
        format_ = get_format(entry)
        tasks = format_.tasks(given | format_.parse({self.name: self.value}))
        if len(tasks) == 1:
            return [make(entry, given | tasks[0])]
        made: list[RunSpec] = []
        blocked: list[RunSpec] = []
        reasons: dict[str, str] = {}
        for chosen in tasks:
            task = ", ".join(chosen.values())
            try:
                made.append(make(entry, given | chosen))
            except (HelmExtError, OSError) as error:
                blocked.append(make_blocked(entry, given | chosen, task, str(error)))
                reasons[task] = str(error)
        if not made:
            raise RunEntryError(_none_can_run(f"{self.name}={self.value}", reasons))
        for task, reason in reasons.items():
            hwarn(f"task {task} cannot be run, and will be named at the end: {reason}")
        return [*made, *blocked]


SHOWN_TASKS = 10
"""Of those that cannot be run, where none can."""


def _none_can_run(asked: str, reasons: Mapping[str, str]) -> str:
    shown = [f"{task}: {reason}" for task, reason in list(reasons.items())[:SHOWN_TASKS]]
    more = [f"... and {len(reasons) - SHOWN_TASKS} more"] if len(reasons) > SHOWN_TASKS else []
    return "\n".join([f"{asked}: none of its {len(reasons)} tasks can be run", *shown, *more])


def _make_run_spec(entry: str, arguments: dict[str, Any]) -> RunSpec:
    from helm_ext.planning.run_specs import get_run_spec

    return get_run_spec(entry, arguments)


def _set_over(ours: Any, unset: Any, changed: Any) -> Any:
    """Return the task's value `ours` after what expanders made of `unset` was `changed`."""
    if isinstance(unset, str) and unset and isinstance(changed, str):
        return changed.replace(unset, ours)
    if isinstance(unset, list) and unset and isinstance(changed, list):
        return [item for value in changed for item in (ours if value == UNSET_TEXT else [value])]
    if type(unset) in (int, float) and isinstance(changed, int | float) and changed < unset / 2:
        return round(ours + (changed - unset), 6)  # increased or decreased by so much
    return changed


def _merge(child: RunSpec, parent: RunSpec, base: RunSpec) -> RunSpec:
    """Give a task's RunSpec what expanders before ours changed in the pending one (`model=m,config=FILE`)."""
    changed: dict[str, Any] = {}
    for field in fields(AdapterSpec):
        value, unset = getattr(parent.adapter_spec, field.name), getattr(base.adapter_spec, field.name)
        if value != unset:
            changed[field.name] = _set_over(getattr(child.adapter_spec, field.name), unset, value)
    suffix = parent.name.removeprefix(base.name).lstrip(":,")
    augmented = parent.data_augmenter_spec != base.data_augmenter_spec
    return replace(
        child,
        name=f"{child.name},{suffix}" if suffix else child.name,
        adapter_spec=replace(child.adapter_spec, **changed),
        metric_specs=[*child.metric_specs, *parent.metric_specs],
        groups=[*child.groups, *parent.groups],
        data_augmenter_spec=parent.data_augmenter_spec if augmented else child.data_augmenter_spec,
        annotators=[*(child.annotators or []), *parent.annotators] if parent.annotators else child.annotators,
    )


def install() -> None:
    """Register an expander for each argument that may name a file of several tasks, once."""
    for format_ in all_formats():
        if format_.several_tasks_in:
            RUN_EXPANDERS.setdefault(format_.several_tasks_in, partial(TaskRunExpander, format_.several_tasks_in))
