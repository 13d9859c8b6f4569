"""Facts about HELM that this package leans on, one assertion each, found by calling HELM directly.

A failure here means that this version of HELM behaves differently: read the change, then the module of ours that the
test's name or docstring points to. A trap that was repaired upstream is as much a reason as a seam that moved.
"""

import dataclasses
import json
from importlib import metadata
from types import SimpleNamespace

import helm_states
import pytest
from helm.benchmark import model_deployment_registry, run
from helm.benchmark import run_spec as helm_run_spec
from helm.benchmark.adaptation.adapter_spec import AdapterSpec
from helm.benchmark.adaptation.adapters.adapter_factory import AdapterFactory
from helm.benchmark.adaptation.adapters.multiple_choice_joint_adapter import MultipleChoiceJointAdapter
from helm.benchmark.metrics.evaluate_reference_metrics import compute_reference_metrics
from helm.benchmark.metrics.metric import compute_worst_case_metrics
from helm.benchmark.metrics.metric_name import MetricName
from helm.benchmark.metrics.statistic import Stat
from helm.benchmark.presentation import summarize
from helm.benchmark.presentation.run_entry import RunEntry
from helm.benchmark.run_expander import RUN_EXPANDERS
from helm.benchmark.run_spec import RunSpec, get_run_spec_function, run_spec_function
from helm.benchmark.runner import downsample_eval_instances
from helm.benchmark.scenarios.scenario import (
    CORRECT_TAG,
    EVAL_SPLITS,
    TRAIN_SPLIT,
    Input,
    Instance,
    Output,
    Reference,
    ScenarioSpec,
    with_instance_ids,
)
from helm.benchmark.window_services.window_service_factory import WindowServiceFactory
from helm.common.codec import to_json
from helm.common.request import GeneratedOutput, Request

SIMPLE = "helm.benchmark.scenarios.simple_scenarios.Simple1Scenario"


def row(options=("Boston", "New York"), correct=1, **fields):
    references = [
        Reference(Output(option), [CORRECT_TAG] if index == correct else []) for index, option in enumerate(options)
    ]
    return Instance(Input("Which?"), references, **{"split": "test", "id": "id0", **fields})


def spec(method="generation", model="test/live", **fields):
    defaults = {"max_train_instances": 0, "num_outputs": 1, "temperature": 0.0}
    return AdapterSpec(method=method, model=model, model_deployment=model, **{**defaults, **fields})


def joint(live_deployment, instance, **fields):
    adapter_spec = spec("multiple_choice_joint", live_deployment, **{"reference_prefix": "\nA. ", **fields})
    (state,) = MultipleChoiceJointAdapter(adapter_spec, None).adapt([instance], parallelism=1)
    return state


def answered(*completions, instance=None, **fields):
    """Return a request state with these completions, given as (text, logprob)."""
    outputs = [GeneratedOutput(text, logprob, []) for text, logprob in completions]
    request = Request(model="test/live", model_deployment="test/live")
    return helm_states.make_state(instance or row(), *outputs, **{"request": request, **fields})


def score(state, name="exact_match", **fields):
    stats = compute_reference_metrics([name], spec(**fields), state, None)
    return next(stat.mean for stat in stats if stat.name.name == name)


def run_spec(name="x:a=1", adapter_spec=None, **fields):
    defaults = {"scenario_spec": ScenarioSpec(SIMPLE, {}), "metric_specs": [], "groups": ["x"]}
    return RunSpec(name=name, adapter_spec=adapter_spec or spec(), **{**defaults, **fields})


@pytest.fixture
def registries(monkeypatch):
    """Registries of HELM's that a test may write to: copies, taken once HELM has found its own entries."""
    helm_run_spec.discover_run_spec_functions()
    model_deployment_registry.discover_model_deployment_generators()
    for module, name in (
        (helm_run_spec, "_REGISTERED_RUN_SPEC_FUNCTIONS"),
        (model_deployment_registry, "_REGISTERED_MODEL_DEPLOYMENT_GENERATORS"),
    ):
        monkeypatch.setattr(module, name, dict(getattr(module, name)))


class TestSeams:
    def test_only_the_entry_point_group_helm_is_loaded_and_errors_are_swallowed(self, monkeypatch):
        def fail():
            raise RuntimeError("no")

        broken = SimpleNamespace(name="broken", value="x", load=fail)
        good = SimpleNamespace(name="good", value="y", load=lambda: "loaded")
        groups = []

        def select(group):
            groups.append(group)
            return [broken, good]

        monkeypatch.setattr(metadata, "entry_points", lambda: SimpleNamespace(select=select))
        assert run.load_entry_point_plugins() == ["loaded"]
        assert groups == ["helm"]

    def test_a_run_spec_name_can_be_registered_once(self, registries):
        run_spec_function("helm_ext_contract")(run_spec)
        with pytest.raises(ValueError, match="already exists"):
            run_spec_function("helm_ext_contract")(run_spec)

    @pytest.mark.parametrize("name", ["adapter_spec", "ultraeval", "innodata"])
    def test_our_run_spec_names_are_ours(self, name):
        function = get_run_spec_function(name)
        assert function is None or function.__module__.startswith("helm_ext.")

    def test_a_prefix_makes_deployments_without_yaml(self, registries):
        prefix = "helmextcontract"

        @model_deployment_registry.model_deployment_generator(prefix)
        def generate(name):
            client = model_deployment_registry.ClientSpec("helm.clients.simple_client.SimpleClient")
            return model_deployment_registry.ModelDeployment(name, client, model_name=name.removeprefix(f"{prefix}/"))

        deployment = model_deployment_registry.get_model_deployment(f"{prefix}/openai/gpt-4-0613")
        assert (deployment.name, deployment.model_name) == (f"{prefix}/openai/gpt-4-0613", "openai/gpt-4-0613")
        assert deployment.tokenizer_name is None

    def test_a_deployment_without_tokenizer_gets_a_window_that_counts_one_token(self, live_deployment):
        window = WindowServiceFactory.get_window_service(live_deployment, None)
        assert window.get_num_tokens("one two three") == 1
        assert window.fits_within_context_window("x" * 1_000_000)

    def test_the_adapter_factory_is_a_static_method_of_spec_and_tokenizer_service(self, live_deployment):
        assert isinstance(AdapterFactory.__dict__["get_adapter"], staticmethod)
        adapter = AdapterFactory.get_adapter(spec(model=live_deployment), None)
        assert adapter.adapter_spec.method == "generation"
        with pytest.raises(ValueError, match="Invalid adaptation method"):
            AdapterFactory.get_adapter(spec("something_new", live_deployment), None)

    def test_a_request_may_be_subclassed_without_a_trace_in_json(self):
        class Mine(Request):
            """As our recorded requests: one attribute that is no field."""

        request = Mine(model="m", model_deployment="m")
        object.__setattr__(request, "recorded_result", object())
        assert json.loads(to_json(dataclasses.replace(answered(), request=request)))["request"] == json.loads(
            to_json(Request(model="m", model_deployment="m"))
        )

    @pytest.mark.parametrize(
        ("main", "flag"), [(run.main, "--runner-class-name"), (summarize.main, "--summarizer-class-name")]
    )
    def test_runner_and_summarizer_are_replaceable(self, monkeypatch, capsys, main, flag):
        monkeypatch.setattr("sys.argv", ["helm", "--help"])
        with pytest.raises(SystemExit):
            main()
        assert flag in capsys.readouterr().out


class TestSampling:
    """Traps 2, 7 and 8; EvalSets carry no `max_eval_instances`, unique ids and three splits."""

    @pytest.mark.parametrize(("in_file", "on_command_line", "wins"), [(7, 3, 7), (None, 3, 3), (7, None, 7)])
    def test_the_specs_max_eval_instances_beats_the_command_line(self, monkeypatch, in_file, on_command_line, wins):
        planned = run_spec(adapter_spec=spec(max_eval_instances=in_file))
        monkeypatch.setattr(run, "construct_run_specs", lambda parsed: [planned])
        (result,) = run.run_entries_to_run_specs(
            [RunEntry("x:model=test/live", priority=1)], max_eval_instances=on_command_line
        )
        assert result.adapter_spec.max_eval_instances == wins

    def test_downsampling_keeps_all_demonstrations_and_a_seeded_choice_of_the_rest(self):
        rows = [row(id=f"t{i}", split=TRAIN_SPLIT) for i in range(3)]
        rows += [row(id=f"v{i}", split="valid") for i in range(4)] + [row(id=f"e{i}") for i in range(4)]
        kept = downsample_eval_instances(rows, 2, EVAL_SPLITS)
        assert [r.id for r in kept[:3]] == ["t0", "t1", "t2"]
        assert len(kept) == 5
        assert kept == downsample_eval_instances(rows, 2, EVAL_SPLITS)
        larger = downsample_eval_instances(rows, 3, EVAL_SPLITS)
        assert {r.id for r in kept} <= {r.id for r in larger}
        assert downsample_eval_instances(rows, 100, EVAL_SPLITS) == rows

    def test_other_splits_vanish(self):
        rows = [row(id=split, split=split) for split in ("dev", "validation", "train", "valid", "test")]
        assert [r.id for r in downsample_eval_instances(rows, 9, EVAL_SPLITS)] == ["train", "valid", "test"]
        assert set(EVAL_SPLITS) == {"valid", "test"}

    def test_one_missing_id_renames_all(self):
        renamed = with_instance_ids([row(id="mine"), row(id=None)])
        assert [r.id for r in renamed] == ["id0", "id1"]

    def test_equal_ids_are_an_assertion_error_when_stats_are_aggregated(self):
        stats = {row(): [Stat(MetricName("m")).add(1)], row(options=("other",)): [Stat(MetricName("m")).add(0)]}
        with pytest.raises(AssertionError, match="got both"):
            compute_worst_case_metrics(stats)


class TestJointMultipleChoice:
    """Traps 3 and 4; `helm_ext.adaptation` puts back what is dropped, the reader refuses what corrupts."""

    def test_stop_sequences_and_the_number_of_completions_are_dropped(self, live_deployment):
        state = joint(live_deployment, row(), stop_sequences=["\n"], num_outputs=5)
        assert state.request.stop_sequences == []
        assert state.request.num_completions == 1
        assert state.request.top_k_per_token == 5

    def test_more_than_26_options_run_past_z(self, live_deployment):
        labels = list(joint(live_deployment, row(options=[f"o{i}" for i in range(28)])).output_mapping)
        assert labels[25:] == ["Z", "[", "\\"]

    def test_the_output_prefix_loses_its_final_space(self, live_deployment):
        assert joint(live_deployment, row(), output_prefix="Answer: ").request.prompt.endswith("Answer:")


class TestCompletions:
    """Traps 5 and 6; `helm_ext.scoring.metrics` keeps the order and reads labels first."""

    def test_the_likeliest_completion_is_scored_not_the_first(self):
        assert score(answered(("Boston", -2.0), ("New York", -1.0))) == 1
        assert score(answered(("New York", -2.0), ("Boston", -1.0))) == 0

    def test_equal_log_probabilities_keep_the_order(self):
        assert score(answered(("New York", -1.0), ("Boston", -1.0))) == 1


class TestRunEntries:
    """Trap 9; `helm_ext.planning.run_specs` puts `007` and `1.10` back together."""

    def test_the_names_of_the_run_expanders(self):
        names = (
            "add_to_stop chatml data_augmentation eval_split follow_format_instructions format_prompt global_prefix "
            "increase_max_tokens increase_temperature instructions max_eval_instances max_train_instances model "
            "model_deployment newline num_output_tokens num_outputs num_prompt_tokens num_train_trials num_trials "
            "output_format_instructions process_output prompt stop temperature tokenizer"
        )
        ours = {"config"}  # helm_ext.planning.expanders, when some test has imported the plugin
        assert sorted(set(RUN_EXPANDERS) - ours) == names.split()
