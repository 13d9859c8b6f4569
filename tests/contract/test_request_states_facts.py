"""What `adapter_spec` reading leans on in HELM."""

import json
from dataclasses import MISSING, fields

import pytest
from helm.benchmark.adaptation import adapter_spec
from helm.benchmark.adaptation.adapter_spec import AdapterSpec
from helm.benchmark.adaptation.scenario_state import ScenarioState
from helm.benchmark.augmentations.perturbation_description import PerturbationDescription
from helm.benchmark.scenarios import scenario
from helm.common import codec, request

from helm_ext.formats.request_states import rows, shapes
from helm_ext.formats.request_states.header import SPLITS
from helm_ext.formats.request_states.plan import TEXTS


def test_prefixes_and_suffixes():
    texts = {field.name for field in fields(AdapterSpec) if field.name.endswith(("fix", "instructions"))}
    assert texts == set(TEXTS)


def test_defaults_of_numbers_that_absent_keys_fall_back_to():
    spec = AdapterSpec()
    assert (spec.max_train_instances, spec.max_tokens, spec.stop_sequences) == (5, 100, [])


def test_every_field_of_adapter_spec_is_a_key_of_ours():
    names = {field.name for field in fields(AdapterSpec)}
    assert names <= set(shapes.AdapterSpecShape.__annotations__)
    ours = set(shapes.AdapterSpecShape.__annotations__) - names
    assert ours == {
        "instance_prefixw", "output_format", "ouput_format", "decoding_parameters", "answer_mapping", "output_mapping",
    }  # fmt: skip


def test_every_method_is_known():
    named = {
        value for name, value in vars(adapter_spec).items() if name.startswith("ADAPT_") and isinstance(value, str)
    }
    assert named == {
        *shapes.METHODS, "language_modeling", "ranking_binary", "ehr_instruction", "generation_multimodal",
        "multiple_choice_joint_multimodal",
    }  # fmt: skip


def test_top_level_keys_of_scenario_state():
    names = {field.name for field in fields(ScenarioState)}
    assert names <= set(shapes.FileShape.__annotations__)


def test_fields_of_rows():
    for helms, ours in (
        (scenario.Instance, shapes.InstanceShape),
        (scenario.Reference, shapes.ReferenceShape),
        (request.Request, shapes.RequestShape),
        (request.RequestResult, shapes.ResultShape),
        (request.GeneratedOutput, shapes.CompletionShape),
        (request.Token, shapes.TokenShape),
    ):
        assert {field.name for field in fields(helms)} <= set(ours.__annotations__)
    assert {field.name for field in fields(scenario.Input)} - set(shapes.InputShape.__annotations__) == {
        "multimedia_content"
    }


def test_fields_are_positional_as_the_builder_gives_them():
    assert [field.name for field in fields(scenario.Instance)][:5] == [
        "input",
        "references",
        "split",
        "sub_split",
        "id",
    ]
    assert fields(scenario.Output)[0].name == "text"
    assert all(field.default is not MISSING for field in fields(scenario.Instance)[2:])


def test_splits_and_the_tag():
    assert set(SPLITS.values()) == set(scenario.ALL_SPLITS)
    assert scenario.CORRECT_TAG == rows.CORRECT


@pytest.mark.parametrize("given", [
    {"name": "mild_mix", "robustness": True, "fairness": False, "computed_on": "perturbed", "seed": None},
    {"name": "identity", "computed_on": "original", "zzz": 1}, {"name": 5, "seed": "7", "robustness": 1},
    {"name": "typos", "prob": 0.1}, {"name": "x", "seed": "y"}, {"name": [1]}, {"robustness": True}, ["x"], "x",
])  # fmt: skip
def test_perturbations_are_those_of_helms_codec(given):
    assert set(codec.PERTURBATION_NAME_TO_DESCRIPTION) == rows._OF_ITS_OWN_CLASS
    text = json.dumps(given).encode()
    try:
        wanted = codec.from_json(text, PerturbationDescription)
    except Exception:  # noqa: BLE001 - HELM's codec says nothing of what it raises
        with pytest.raises(ValueError, match="HELM knows no such perturbation"):
            rows.read_perturbation(text)
    else:
        found = rows.read_perturbation(text)
        assert (type(found), found) == (type(wanted), wanted)
