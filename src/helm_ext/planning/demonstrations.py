"""`max_train_instances=N` in a run entry, for formats that draw demonstrations from the rows they would evaluate.

HELM takes this argument off every run entry and sets the number in the finished RunSpec
(`helm.benchmark.run_expander.MaxTrainInstancesRunExpander`). By then the file was read: as many rows as the file says
were drawn, and are not evaluated. So for such formats the dataset is read once more, with the number as an argument
that the scenario keeps; then the draw, the run's name and what is sent agree. Other run entries are HELM's alone.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from helm.benchmark.adaptation.adapter_spec import AdapterSpec
from helm.benchmark.metrics.metric import MetricSpec
from helm.benchmark.run_expander import RUN_EXPANDERS, MaxTrainInstancesRunExpander
from helm.benchmark.run_spec import RunSpec
from helm.common.object_spec import get_class_by_name

from helm_ext.formats.format import Format
from helm_ext.formats.registry import all_formats
from helm_ext.planning import OF_ONE_FILE, RUN_ARGUMENTS

_ARGUMENT = MaxTrainInstancesRunExpander.name


class DemonstrationsRunExpander(MaxTrainInstancesRunExpander):
    """HELM's run expander, whose number also decides how many rows are drawn."""

    name = _ARGUMENT

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
            return format_ if any(argument.name == _ARGUMENT for argument in format_.arguments) else None
    return None


def _draw_again(format_: Format, before: RunSpec, expanded: list[RunSpec]) -> list[RunSpec]:
    """Return RunSpecs whose scenarios draw as many rows as each of `expanded` shows."""
    from helm_ext.formats import planned
    from helm_ext.formats.arguments import MISSING
    from helm_ext.planning.run_specs import make_run_spec

    known = {argument.name for argument in format_.arguments}
    # In full also where they are too long for a scenario (`names`).
    full = next((metric.args for metric in before.metric_specs if _is_full(metric)), before.scenario_spec.args)
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
        evalset = load({_ARGUMENT: number})
        drawn = make_run_spec(format_, format_.plan(arguments | {_ARGUMENT: number}, evalset), evalset)
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


def _is_full(metric: MetricSpec) -> bool:
    """Whether a metric only holds a run's arguments in full (`RunArguments`)."""
    return bool(metric.class_name == RUN_ARGUMENTS)


def install() -> None:
    """Replace HELM's run expander, unless another package has replaced it already."""
    if RUN_EXPANDERS.get(_ARGUMENT) is MaxTrainInstancesRunExpander:
        RUN_EXPANDERS[_ARGUMENT] = DemonstrationsRunExpander
