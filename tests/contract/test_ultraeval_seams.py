"""Facts about HELM that UltraEval task sets lean on."""

import importlib
import inspect

from helm.benchmark import run_spec, run_spec_factory
from helm.benchmark.adaptation.adapter_spec import AdapterSpec
from helm.benchmark.adaptation.adapters.multiple_choice_separate_adapter import MultipleChoiceSeparateAdapter
from helm.benchmark.presentation import run_display
from helm.benchmark.run_expander import RUN_EXPANDER_SUBCLASSES

from helm_ext.adaptation.wrap import NO_PROMPT_LOGPROBS


def test_no_run_spec_function_of_helms_has_a_parameter_config():
    """We register a run expander of that name, and HELM takes such arguments off every run entry."""
    run_spec.discover_run_spec_functions()
    functions = {
        name: function
        for name, function in run_spec._REGISTERED_RUN_SPEC_FUNCTIONS.items()
        if function.__module__.startswith("helm.")
    }
    assert len(functions) > 300
    assert [name for name, f in functions.items() if "config" in inspect.signature(f).parameters] == []
    assert "config" not in {expander.name for expander in RUN_EXPANDER_SUBCLASSES}


def test_helm_takes_expanders_off_the_arguments_in_their_order():
    source = inspect.getsource(run_spec_factory.construct_run_specs)
    assert "expanders = [RUN_EXPANDERS[key](value) for key, value in args.items() if key in RUN_EXPANDERS]" in source
    assert "run_specs: List[RunSpec] = [run_spec_function(**args)]" in source
    assert "for child_run_spec in expander.expand(parent_run_spec)" in source


def test_the_separate_adapter_asks_for_the_prompt_alone():
    source = inspect.getsource(MultipleChoiceSeparateAdapter.construct_request_state)
    for line in ("max_tokens=0,", "echo_prompt=True,", "num_completions=1,", "temperature=0,"):
        assert line in source


def test_predictions_show_the_predicted_index():
    source = inspect.getsource(run_display)
    assert 'trial_stats["predicted_index"] != request_state.reference_index' in source


def test_the_clients_exist():
    for path in NO_PROMPT_LOGPROBS:
        module, _, name = path.rpartition(".")
        if importlib.util.find_spec(module) is None:
            raise AssertionError(f"{module} is gone")
        source = importlib.util.find_spec(module).loader.get_source(module)
        assert f"class {name}(" in source, path


def test_the_hugging_face_client_puts_a_zero_before_the_prompts_first_token():
    module = importlib.util.find_spec("helm.clients.huggingface_client")
    source = module.loader.get_source(module.name)
    assert "prompt_tokens_logprobs.append(0.0)" in source
    assert 'raw_request["max_new_tokens"] == 0' in source


def test_the_adapter_spec_still_defaults_to_prefixes():
    """Why every one of them is set to "" for UltraEval."""
    assert AdapterSpec().input_prefix == "Input: "
    assert AdapterSpec().max_train_instances == 5
