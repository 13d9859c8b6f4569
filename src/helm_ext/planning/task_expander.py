"""One run for each task of an UltraEval config: `ultraeval:config=FILE,model=...` (formats.md, section 2).

A run spec function returns one RunSpec; HELM makes several of it with run expanders. It finds them by the name of an
argument in the dict `RUN_EXPANDERS`, takes them off the arguments, and hands them the RunSpec made without them:

    ultraeval:config=FILE,fewshot=2,model=m
      get_ultraeval_run_spec(fewshot=2)      -> a RunSpec that only keeps the arguments      (make_pending)
      TaskConfigRunExpander(FILE).expand     -> get_ultraeval_run_spec(config=FILE, task=..., fewshot=2), for each task
      ModelRunExpander(m).expand             -> each of them with the model

Expanders may also come first (`temperature=1.0,config=FILE`) and then change the pending RunSpec, whose fields
therefore hold values that no task has (`_UNSET_*`): what was set is known also where it is HELM's default, and what was
made of the old value (`stop_sequences + [x]`, `max_tokens + 5`) is made of the task's instead.

A task of several that cannot be run (its data is missing, it would execute code) becomes a run that fails, after the
others: HELM goes on after failed runs, names them at the end, and ends with 1.

No run spec function of HELM's has a parameter `config` (asserted in tests/contract); another plugin's that has one
gets an error that says so, instead of losing its argument. This module is imported by every helm-run: it imports
nothing heavy.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from helm.benchmark.adaptation.adapter_spec import AdapterSpec
from helm.benchmark.run_expander import RUN_EXPANDERS, RunExpander
from helm.benchmark.run_spec import RunSpec
from helm.benchmark.scenarios.scenario import Instance, Scenario, ScenarioSpec
from helm.common.hierarchical_logger import hwarn

from helm_ext.errors import HelmExtError, RunEntryError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["BlockedTaskScenario", "PendingTaskScenario", "TaskConfigRunExpander", "install", "make_pending"]

ENTRY = "ultraeval"
_SOURCES = ("dataset", "data", "config")

_UNSET_TEXT = "<as the task says>"
_UNSET_NUMBER = -(2**40)
_UNSET_BY_TYPE: dict[type, Any] = {str: _UNSET_TEXT, int: _UNSET_NUMBER, float: float(_UNSET_NUMBER)}

_NOTHING_NAMED = (
    "ultraeval: exactly one of config, dataset, data is needed, none of them is given\n"
    "  hint: ultraeval:config=FILE,model=... or ultraeval:dataset=NAME,method=gen,model=... "
    "or ultraeval:data=FILE,transform=SCRIPT,model=..."
)


class PendingTaskScenario(Scenario):
    """Stands in a RunSpec whose config was not read yet. Run as it is, it says what the run entry lacks."""

    name = ENTRY
    description = "An UltraEval config, not yet read"
    tags: list[str] = []  # noqa: RUF012 - HELM's Scenario declares it so

    def __init__(self, **arguments: Any) -> None:
        super().__init__()
        self.arguments = arguments

    def get_instances(self, output_path: str) -> list[Instance]:  # noqa: ARG002 - HELM's signature
        """Raise RunEntryError: the entry names neither config nor dataset nor data."""
        raise RunEntryError(_NOTHING_NAMED)


class BlockedTaskScenario(Scenario):
    """Stands in the RunSpec of a task that cannot be run, among others that can. Run, it says why."""

    name = ENTRY
    description = "An UltraEval task that cannot be run"
    tags: list[str] = []  # noqa: RUF012 - HELM's Scenario declares it so

    def __init__(self, task: str, reason: str) -> None:
        super().__init__()
        self.task = task
        self.reason = reason

    def get_instances(self, output_path: str) -> list[Instance]:  # noqa: ARG002 - HELM's signature
        """Raise RunEntryError with the reason."""
        raise RunEntryError(f"task {self.task} cannot be run: {self.reason}")


def make_pending(arguments: Mapping[str, Any]) -> RunSpec:
    """Return the RunSpec of `ultraeval:` arguments without a source, to be expanded by `config=FILE`."""
    return RunSpec(
        name=ENTRY,
        scenario_spec=ScenarioSpec(
            class_name=f"{PendingTaskScenario.__module__}.{PendingTaskScenario.__qualname__}", args=dict(arguments)
        ),
        adapter_spec=_unset_adapter_spec(),
        metric_specs=[],
        groups=[],
    )


class TaskConfigRunExpander(RunExpander):
    """`config=FILE`: one run for each task of the file (all of one method where `method=` is given)."""

    name = "config"

    def __init__(self, value: Any, make: Callable[..., RunSpec] | None = None) -> None:
        self.value = value
        self._make = make
        """Makes the RunSpec of one task; by default ours."""

    def expand(self, run_spec: RunSpec) -> list[RunSpec]:
        """Return one RunSpec a task. Raises RunEntryError, DatasetError."""
        if run_spec.scenario_spec.class_name != make_pending({}).scenario_spec.class_name:
            raise RunEntryError(
                f"config={self.value}: this argument is helm-ext's (ultraeval:config=FILE), and {run_spec.name!r} is "
                "another run entry\n  hint: remove config=, or disable the helm_ext plugin for this run"
            )
        arguments = run_spec.scenario_spec.args
        base = make_pending(arguments)
        return [_merge(made, run_spec, base) for made in self._make_runs(arguments)]

    def _make_runs(self, arguments: Mapping[str, Any]) -> list[RunSpec]:
        """Return the run of each task; those that cannot be run come last. Raises what the only task raises."""
        make = self._make or _make_run_spec
        tasks = self._tasks(arguments)
        if len(tasks) == 1:
            return [make(**{"config": self.value, **arguments, **tasks[0]})]
        made: list[RunSpec] = []
        reasons: dict[str, str] = {}
        for chosen in tasks:
            asked = {"config": self.value, **arguments, **chosen}
            try:
                made.append(make(**asked))
            except (HelmExtError, OSError) as error:
                reasons[chosen["task"]] = str(error)
        if not made:
            raise RunEntryError(_none_can_run(self.value, reasons))
        for task, reason in reasons.items():
            hwarn(f"task {task} cannot be run, and will be named at the end: {reason}")
        return [
            *made,
            *(_make_blocked({"config": self.value, **arguments}, task, why) for task, why in reasons.items()),
        ]

    def _tasks(self, arguments: Mapping[str, Any]) -> list[dict[str, str]]:
        """Return what chooses each task; nothing where the file holds one, or where the entry chooses."""
        from helm_ext.formats import ultraeval
        from helm_ext.formats.run_entries import parse_arguments

        if "task" in arguments:
            return [{}]
        names = ultraeval.tasks(
            parse_arguments("ultraeval", {"config": self.value})["config"], method=arguments.get("method")
        )
        return [{"task": name} for name in names] if len(names) > 1 else [{}]


SHOWN_TASKS = 10
"""Of those that cannot be run, where none can."""


def _none_can_run(config: Any, reasons: Mapping[str, str]) -> str:
    shown = [f"{task}: {reason}" for task, reason in list(reasons.items())[:SHOWN_TASKS]]
    more = [f"... and {len(reasons) - SHOWN_TASKS} more"] if len(reasons) > SHOWN_TASKS else []
    return "\n".join([f"config={config}: none of its {len(reasons)} tasks can be run", *shown, *more])


def _make_blocked(arguments: Mapping[str, Any], task: str, reason: str) -> RunSpec:
    from helm_ext.planning.names import fit_name

    path = f"{BlockedTaskScenario.__module__}.{BlockedTaskScenario.__qualname__}"
    return replace(
        make_pending({}),
        name=fit_name(ENTRY, {**arguments, "task": task}, ""),
        scenario_spec=ScenarioSpec(class_name=path, args={"task": task, "reason": reason}),
    )


def _unset_adapter_spec() -> AdapterSpec:
    """Return an AdapterSpec of values that no task has. Expanders branch on `method`, so that stays HELM's."""
    return AdapterSpec(
        **{
            field.name: _UNSET_BY_TYPE[type(value)]
            for field in fields(AdapterSpec)
            if field.name not in ("method", "model", "model_deployment")
            and type(value := getattr(AdapterSpec(), field.name)) in _UNSET_BY_TYPE
        },
        stop_sequences=[_UNSET_TEXT],
    )


def _set_over(ours: Any, unset: Any, changed: Any) -> Any:
    """Return the task's value `ours` after what expanders made of `unset` was `changed`."""
    if isinstance(unset, str) and unset and isinstance(changed, str):
        return changed.replace(unset, ours)
    if isinstance(unset, list) and unset and isinstance(changed, list):
        return [item for value in changed for item in (ours if value == _UNSET_TEXT else [value])]
    if type(unset) in (int, float) and isinstance(changed, int | float) and changed < unset / 2:
        return round(ours + (changed - unset), 6)  # increased or decreased by so much
    return changed


def _make_run_spec(**arguments: Any) -> RunSpec:
    from helm_ext.planning import run_specs

    return run_specs.get_ultraeval_run_spec(**arguments)


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
    """Register the expander, once."""
    RUN_EXPANDERS.setdefault(TaskConfigRunExpander.name, TaskConfigRunExpander)
