"""A Runner for any HELM run that writes HELM's files as a stream.

    helm-run --runner-class-name helm_ext.running.StreamingRunner ...

The steps are those of `helm.benchmark.runner.Runner.run_one`, which is one function and cannot be extended in parts; it
is restated below and tests/contract/test_runner_sources.py fails when HELM changes it. What differs:

- the files are encoded element by element (`helm_ext.running.serialise`), aside, and put in place
  together (`helm_ext.files.writing`);
- HELM's basic metrics are computed in one pass (`helm_ext.scoring.basic.metrics`), with the same values;
- a prompt's tokens are counted once, not again for the metrics;
- no threads where nothing waits, which saves 10 % of a recorded run in `_annotate`, and 16 % where recorded results are
  handed back without HELM's executor (`recorded.hand_back`);
- objects that live until the end are kept from the garbage collector (`helm_ext.evalset.garbage`).

The files are held equal to those of HELM's runner by tests/unit/running/test_runner.py, test_files_are_helms.
"""

from __future__ import annotations

import json
import sys
import threading
import traceback
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dacite
from helm.benchmark import runner as helm_runner
from helm.benchmark.adaptation.adapters.adapter_factory import AdapterFactory
from helm.benchmark.adaptation.scenario_state import ScenarioState
from helm.benchmark.data_preprocessor import DataPreprocessor
from helm.benchmark.executor import Executor
from helm.benchmark.metrics.dry_run_metrics import DryRunMetric
from helm.benchmark.metrics.metric import MetricInterface, create_metric
from helm.benchmark.metrics.metric_service import MetricService
from helm.benchmark.model_deployment_registry import get_model_deployment
from helm.benchmark.runner import Runner, RunnerError, downsample_eval_instances
from helm.benchmark.scenarios.scenario import (
    EVAL_SPLITS,
    Instance,
    Scenario,
    create_scenario,
    get_scenario_cache_path,
    with_instance_ids,
)
from helm.common.cache import cache_stats
from helm.common.general import ensure_directory_exists
from helm.common.hierarchical_logger import hlog, htrack_block
from tqdm import tqdm

from helm_ext.adaptation import recorded
from helm_ext.clients.client import annotate_with_notes
from helm_ext.engines.engine import Engine, ThisProcess, end_workers, find_engine
from helm_ext.engines.progress import Progress
from helm_ext.errors import HelmExtError
from helm_ext.evalset import garbage
from helm_ext.evalset.rows import StoredRows, make_all
from helm_ext.files.writing import staged
from helm_ext.formats.scenario import EvalSetScenario
from helm_ext.running.asking import skips_failed
from helm_ext.running.executor import LiveExecutor
from helm_ext.running.fold import (
    BATCH_ROWS,
    TASK_ROWS,
    PartResult,
    RecordedWorker,
    RowsTask,
    RunFiles,
    WholeMetric,
    annotate,
    begin,
    can_wait,
    choose_places,
    find_facts,
    fold,
    iter_tasks,
    make_metric,
    split_states,
    sum_up,
)
from helm_ext.running.serialise import write_array
from helm_ext.scoring.basic.metrics import FastGenerationMetric, FastReferenceMetric
from helm_ext.scoring.folding import FoldingMetric, JoinedMetric

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from helm.benchmark.adaptation.request_state import RequestState
    from helm.benchmark.run_spec import RunSpec
    from helm.benchmark.window_services.window_service import WindowService

    from helm_ext.evalset import EvalSet

MANY_ROWS = 100_000
"""So many are added up in the memory that workers had; after fewer, these stay for the next run."""

TokenCounts = dict[tuple[int, int], int]
"""Numbers of tokens by hash and length of the text: the prompts themselves need not be kept."""


class RunsFailedError(HelmExtError, RunnerError):
    """Some of the runs failed; the others are complete. Its first line is that of HELM's RunnerError."""

    def __init__(self, reasons: Sequence[tuple[str, Exception]]) -> None:
        """`reasons`: names of the runs that failed, and why."""
        names = ", ".join(f'"{name}"' for name, _ in reasons)
        lines = [f"Failed runs: [{names}]"]
        for name, error in reasons:
            said = error if isinstance(error, HelmExtError) else f"{type(error).__name__}: {error}"
            lines.append(f"{name}: {said}{'' if said is error else ' (the traceback is above)'}")
        super().__init__("\n".join(lines))


class CountingMetricService(MetricService):
    """HELM's MetricService that also knows the token counts of the prompts that were fitted to the window."""

    def __init__(self, context: Any, token_counts: TokenCounts) -> None:
        super().__init__(context)
        self.token_counts = token_counts


class StreamingRunner(Runner):
    """HELM's Runner: same arguments, same files, less time and memory. See the module's docstring."""

    executor: Executor
    shares_disk = True
    """Whether workers of `make_engine` read and write the files that this process does."""

    executor_class: type[LiveExecutor] = LiveExecutor

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        find_engine()  # for a number of workers that is none
        self.executor = self.executor_class.in_place_of(self.executor)

    def run_all(self, run_specs: list[RunSpec]) -> None:
        """Restate `Runner.run_all`. What a user can cause is said without the code that found it.

        Raises RunEntryError before, where a limit could not be kept; RunsFailedError; with `exit_on_error` what a run
        raises.
        """
        asking = [] if self.dry_run or self.skip_instances or self.cache_instances_only else run_specs
        if asking and self.executor.spending is not None:
            skips = self._is_run_completed if self.skip_completed_runs else lambda _: False
            self.executor.spending.require_keepable(s for s in asking if not skips(self._get_run_path(s)))
        reasons: list[tuple[str, Exception]] = []
        for run_spec in tqdm(run_specs, disable=None):
            try:
                with htrack_block(f"Running {run_spec.name}"):
                    self.run_one(run_spec)
            except Exception as error:
                if self.exit_on_error:
                    raise
                said = str(error) if isinstance(error, HelmExtError) else traceback.format_exc()
                hlog(f"Error when running {run_spec.name}:\n{said}")
                reasons.append((run_spec.name, error))
        if reasons:
            raise RunsFailedError(reasons)

    def run_one(self, run_spec: RunSpec) -> None:
        """Restate `Runner.run_one`."""
        helm_runner._CURRENT_RUN_SPEC_NAME = run_spec.name  # noqa: SLF001 - annotators and metrics ask for it
        run_path: str = self._get_run_path(run_spec)
        if self.skip_completed_runs and self._is_run_completed(run_path):
            hlog(f"Skipping run {run_spec.name} because run is completed and all output files exist.")
            return
        ensure_directory_exists(run_path)
        try:
            self._run(run_spec)
        except BaseException:
            with suppress(OSError):  # it stays where something came into it
                Path(run_path).rmdir()
            raise
        cache_stats.print_status()

    def _run(self, run_spec: RunSpec) -> None:
        with garbage.relaxed():
            scenario = create_scenario(run_spec.scenario_spec)
            if self.cache_instances_only:
                self._get_instances(run_spec, scenario)
                return
            evalset = self._open_evalset(scenario)
            if evalset is None or not self._fold_unread(run_spec, scenario, evalset):
                end_workers()  # a model may take hours
                # No name for all instances: those that are not chosen are freed.
                instances = self._select_instances(run_spec, self._get_instances(run_spec, scenario, evalset))
                token_counts: TokenCounts = {}
                states = self._execute(run_spec, self._adapt(run_spec, instances, token_counts))
                del instances, evalset
                self._fold(run_spec, scenario, states, token_counts)

    def make_request_states(self, run_spec: RunSpec) -> list[RequestState]:
        """Return what `run_one` would execute, and write nothing but what a scenario downloads."""
        instances = self._get_instances(run_spec, create_scenario(run_spec.scenario_spec))
        return self._adapt(run_spec, self._select_instances(run_spec, instances), {})

    def _open_evalset(self, scenario: Scenario) -> EvalSet | None:
        """Return the dataset of a scenario of ours; None where HELM's own way to the instances is asked for."""
        if not isinstance(scenario, EvalSetScenario) or self.skip_instances or self.cache_instances:
            return None
        with htrack_block("scenario.get_instances"):
            return scenario.open(get_scenario_cache_path(self.output_path, scenario.name))

    def _get_instances(self, run_spec: RunSpec, scenario: Scenario, evalset: EvalSet | None = None) -> list[Instance]:
        if evalset is not None:
            assert isinstance(scenario, EvalSetScenario)
            return scenario.to_instances(evalset)
        args = ",".join(f"{key}={value}" for key, value in sorted(run_spec.scenario_spec.args.items()))
        folder = Path(self.instances_path) / (f"{scenario.name}:{args}" if args else scenario.name)
        path = folder / "input_instances.json"
        instances: list[Instance]
        if self.skip_instances:
            instances = []
        elif self.cache_instances and path.exists():
            instances = [dacite.from_dict(Instance, instance) for instance in json.loads(path.read_bytes())]
        else:
            scenario_output_path = get_scenario_cache_path(self.output_path, scenario.name)
            with htrack_block("scenario.get_instances"):
                instances = scenario.get_instances(scenario_output_path)
        if self.cache_instances and not path.exists():
            ensure_directory_exists(str(folder))
            make_all(instances)
            with staged(folder) as files, files.open("input_instances.json") as output:
                write_array(output, instances)
        return instances

    def _select_instances(self, run_spec: RunSpec, instances: list[Instance]) -> list[Instance]:
        if any(instance.id is None for instance in instances):
            instances = with_instance_ids(instances)
        max_eval_instances = run_spec.adapter_spec.max_eval_instances
        eval_splits = run_spec.adapter_spec.eval_splits or EVAL_SPLITS
        if max_eval_instances is not None:
            instances = downsample_eval_instances(instances, max_eval_instances, eval_splits)
        make_all(instances)
        return DataPreprocessor(run_spec.data_augmenter_spec).preprocess(
            instances, self.executor.execution_spec.parallelism
        )

    def _adapt(self, run_spec: RunSpec, instances: list[Instance], token_counts: TokenCounts) -> list[RequestState]:
        adapter_spec = run_spec.adapter_spec
        parallelism = self.executor.execution_spec.parallelism
        adapter = AdapterFactory.get_adapter(adapter_spec, self.tokenizer_service)
        remember_token_counts(adapter.window_service, token_counts)
        waits_for_nothing = get_model_deployment(adapter_spec.model_deployment).tokenizer_name is None
        return adapter.adapt(instances, 1 if waits_for_nothing else parallelism)

    def _execute(self, run_spec: RunSpec, states: list[RequestState]) -> list[RequestState]:
        """Execute, annotate."""
        if self.dry_run or not recorded.hand_back(states):
            if isinstance(self.executor, LiveExecutor):
                self.executor.skips_failed = skips_failed(run_spec)
            states = self.executor.execute(self._make_state(run_spec, states)).request_states
        # HELM's annotators ask models; ours compute.
        if not all(spec.class_name.startswith("helm_ext.") for spec in run_spec.annotators or ()):
            return self.annotator_executor.execute(self._make_state(run_spec, states)).request_states
        if not self.dry_run:
            annotate([self.annotator_executor.factory.get_annotator(one) for one in run_spec.annotators or ()], states)
        return states

    def _make_state(self, run_spec: RunSpec, states: list[RequestState]) -> ScenarioState:
        return ScenarioState(run_spec.adapter_spec, states, run_spec.annotators)

    def _fold(
        self, run_spec: RunSpec, scenario: Scenario, states: list[RequestState], token_counts: TokenCounts
    ) -> None:
        """Measure the states batch by batch, and write the run."""
        metric = JoinedMetric(self._make_metrics(run_spec))
        facts = metric.find_facts(self._make_state(run_spec, states))
        measure = begin(run_spec, metric, CountingMetricService(self.executor.context, token_counts), facts)
        total = metric.make_total(run_spec.adapter_spec, facts)
        is_foreign = any(isinstance(one, WholeMetric) for one in metric.metrics)
        batches = [states] if is_foreign or facts.has_perturbations else split_states(states)
        kept = nullcontext() if is_foreign else garbage.paused()  # others' metrics may leave cycles
        with kept, self._open_files(run_spec, scenario) as files, htrack_block(f"{len(metric.metrics)} metrics"):

            def score(batch: list[RequestState]) -> PartResult:
                measured, rows = measure(batch), len(batch)
                if files is not None:
                    annotate_with_notes(batch)
                    files.write(batch, measured.segments)
                return PartResult(rows, [measured.summary])

            fold(ThisProcess(), lambda: score, batches, total, files)
            stats = sum_up(total)
            if files is not None:
                files.finish(stats)

    def _fold_unread(self, run_spec: RunSpec, scenario: EvalSetScenario, evalset: EvalSet) -> bool:
        """Score the recordings of a dataset some at a time, and write the run. False: all rows are wanted at once."""
        rows = evalset.instances
        if self.dry_run or not isinstance(rows, StoredRows):
            return False
        if not can_wait(rows, run_spec, leaves_out=scenario.leaves_out):
            return False
        places = choose_places(rows, run_spec.adapter_spec)
        facts = find_facts(rows, places)
        total = make_metric(run_spec).make_total(run_spec.adapter_spec, facts)
        engine = ThisProcess() if rows.is_kept else self.make_engine()
        here = isinstance(engine, ThisProcess)
        size = BATCH_ROWS if here else TASK_ROWS
        with (
            garbage.paused(),
            self._open_files(run_spec, scenario) as files,
            Progress(len(places), title="scoring") as progress,
        ):
            assert files is not None  # HELM's own way to the instances is asked for else
            target = files if here else files.folder if self.shares_disk else None
            stored = rows.without_columns() if self.shares_disk else None
            make_worker = partial(RecordedWorker, run_spec, facts, stored, target)
            tasks = iter_tasks(rows, places, size, files.name_parts if self.shares_disk else None)
            fold(engine, make_worker, tasks, total, files, split=RowsTask.split, progress=progress)
            progress.step = "adding up"
            if len(places) >= MANY_ROWS:
                end_workers()
            files.finish(sum_up(total))
        return True

    def make_engine(self) -> Engine:
        """Return where the rows of a recorded run are scored."""
        return find_engine()

    def _make_metrics(self, run_spec: RunSpec) -> list[FoldingMetric]:
        """Return the run's metrics, those that want all rows at once wrapped."""
        made = [DryRunMetric()] if self.dry_run else [faster(create_metric(spec)) for spec in run_spec.metric_specs]
        whole = partial(
            WholeMetric,
            eval_cache_path=self.eval_cache_path,
            parallelism=self.executor.execution_spec.parallelism,
        )
        return [metric if isinstance(metric, FoldingMetric) else whole(metric) for metric in made]

    @contextmanager
    def _open_files(self, run_spec: RunSpec, scenario: Scenario) -> Iterator[RunFiles | None]:
        """Open the run's files, all or none of which appear; None where nothing is written."""
        if self.skip_instances:
            hlog("skip_instances was True. Skipping writing results out.")
            yield None
            return
        path = Path(self._get_run_path(run_spec))
        with staged(path) as staged_files, RunFiles(staged_files, run_spec, scenario) as files:
            yield files


def faster(metric: MetricInterface) -> MetricInterface:
    """Return a metric with the same results. Subclasses may differ in anything, so only HELM's own are replaced."""
    basic = sys.modules.get("helm.benchmark.metrics.basic_metrics")  # where a metric is of it, it is loaded
    if basic is not None and type(metric) is basic.BasicGenerationMetric:
        return FastGenerationMetric(metric.names)
    if basic is not None and type(metric) is basic.BasicReferenceMetric:
        return FastReferenceMetric()
    return metric


def remember_token_counts(window: WindowService, counts: TokenCounts) -> None:
    """Note in `counts` the tokens of each text that was found to fit, so that the metrics need not count again.

    Plain equivalent: nothing, and an empty `counts`. Saves 40 % of a run that builds prompts (1,500 rows of W1, HELM's
    simple tokenizer). Held equal by tests/unit/running/test_runner.py, test_files_are_helms and
    test_prompts_are_counted_once.
    """
    last = threading.local()
    count_tokens, fits = window.get_num_tokens, window.fits_within_context_window

    def get_num_tokens(text: str) -> int:
        count = count_tokens(text)
        last.seen = (text, count)
        return count

    def fits_within_context_window(text: str, expected_completion_token_length: int = 0) -> bool:
        last.seen = None
        if not fits(text, expected_completion_token_length):
            return False
        if last.seen is not None and last.seen[0] is text:
            counts[hash(text), len(text)] = last.seen[1]
        return True

    window.get_num_tokens = get_num_tokens
    window.fits_within_context_window = fits_within_context_window
