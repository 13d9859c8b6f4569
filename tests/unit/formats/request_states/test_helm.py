"""HELM's own `scenario_state.json`: several states of one instance, every method, nothing added or lost."""

import json
from dataclasses import replace

import helm_states
import pytest
from helm.benchmark.adaptation.adapter_spec import AdapterSpec
from helm.benchmark.adaptation.scenario_state import ScenarioState
from helm.benchmark.augmentations.perturbation_description import PerturbationDescription
from helm.benchmark.augmentations.typos_perturbation import TyposPerturbation
from helm.benchmark.scenarios.scenario import CORRECT_TAG, Input, Instance, Output, Reference
from helm.common.general import asdict_without_nones
from helm.common.request import Request
from request_states_files import codes, errors

from helm_ext.evalset import row_extra
from helm_ext.formats.request_states import check, load


def instance(number=0, **more):
    references = [Reference(Output(f"option {n}"), [CORRECT_TAG] if n == number % 2 else []) for n in range(2)]
    return Instance(Input(f"Question {number}?"), references, split="test", id=f"id{number}", **more)


def result(text, logprob=-1.0, success=True):
    output = helm_states.make_output(text, logprob, [(text, logprob)])
    return helm_states.make_result(output, success=success, request_time=0.5)


def helm_state(of, text="A", prompt="P", success=True, **more):
    request = Request(model="a/b", model_deployment="c/b", prompt=prompt)
    given = {"request": request, "result": result(text, success=success), "num_train_instances": 3, **more}
    return helm_states.make_state(of, **given)


def write(tmp_path, states, method="generation", **spec):
    adapter_spec = AdapterSpec(method=method, model="a/b", model_deployment="c/b", **{"max_train_instances": 0, **spec})
    path = tmp_path / "scenario_state.json"
    path.write_text(json.dumps(asdict_without_nones(ScenarioState(adapter_spec, states)), indent=2))
    return path


def recorded(evalset):
    return [row_extra(one)["recorded"] for one in evalset.instances]


def test_instances_come_back_as_they_were(tmp_path):
    given = [
        instance(0, sub_split="easy", extra_data={"x": 1}),
        instance(1, contrast_inputs=[Input("Other?")], contrast_references=[[Reference(Output("y"), [])]]),
    ]
    evalset = load(write(tmp_path, [helm_state(one) for one in given]))
    for made, one in zip(evalset.instances, given, strict=True):
        kept = {key: value for key, value in made.extra_data.items() if key != "helm_ext"}
        assert asdict_without_nones(replace(made, extra_data=kept or None)) == asdict_without_nones(one)
    assert evalset.name == "scenario_state"


def test_the_adapter_spec_comes_back_without_a_model(tmp_path):
    spec = {
        "max_eval_instances": 1,
        "num_outputs": 2,
        "stop_sequences": ["x"],
        "reference_prefix": "(a) ",
        "random": "5",
    }
    evalset = load(write(tmp_path, [helm_state(instance(0)), helm_state(instance(1))], **spec))
    assert evalset.adapter_spec == AdapterSpec(
        method="generation", max_train_instances=0, **{**spec, "max_eval_instances": None}
    )
    # HELM has applied its cap when it made the states.
    assert len(evalset.instances) == 2
    assert all("only" not in row_extra(one) for one in evalset.instances)


def test_what_was_recorded(tmp_path):
    state = helm_state(instance(0), " B", output_mapping={"A": "option 0", "B": "option 1"})
    evalset = load(write(tmp_path, [state], "multiple_choice_joint"))
    (found,) = recorded(evalset)
    (kept,) = found["states"]
    assert kept["result"]["completions"] == [
        {"text": " B", "logprob": -1.0, "tokens": [{"text": " B", "logprob": -1.0}]}
    ]
    assert kept["request"]["prompt"] == "P"
    assert {key: kept[key] for key in kept if key not in ("result", "request")} == {
        "train_trial_index": 0,
        "output_mapping": {"A": "option 0", "B": "option 1"},
        "num_train_instances": 3,
        "prompt_truncated": False,
    }
    assert row_extra(evalset.instances[0])["labels"] == {"A": "option 0", "B": "option 1"}
    assert evalset.scoring.label_reading == "exact"


def test_labels_are_helms_or_none(tmp_path):
    # Generation with wrong references: HELM compares texts; so do we.
    evalset = load(write(tmp_path, [helm_state(instance(0))]))
    assert "labels" not in row_extra(evalset.instances[0])


@pytest.mark.parametrize("method", ["generation", "multiple_choice_joint"])
@pytest.mark.parametrize("tags", [[], ["gold"]])
@pytest.mark.parametrize("found", [result("x"), None])
def test_references_of_which_none_is_right_cannot_be_compared_with(tmp_path, method, tags, found):
    one = Instance(Input("?"), [Reference(Output("x"), tags)], split="valid", id="id0")
    path = write(tmp_path, [helm_state(instance(1), result=found), helm_state(one, result=found)], method)
    (error,) = errors(path)
    assert "request_states[1].instance.references: 1 row has none that is tagged correct, and exact_match" in error
    assert 'hint: write "tags": ["correct"] at what is right, or "references": []' in error


@pytest.mark.parametrize(("references", "found", "more"), [
    ([], result("x"), {}),  # HELM makes no scores of it
    ([Reference(Output("x"), [])], result("", success=False), {}),
    ([Reference(Output("x"), [])], None, {}),
    ([Reference(Output("x"), [])], result("x"), {"extra_data": {"helm_ext": {"left_out": "not_run"}}}),
])  # fmt: skip
def test_what_is_compared_with_nothing_needs_nothing_right(tmp_path, references, found, more):
    one = Instance(Input("?"), references, split="test", id="id1", **more)
    _, made = load(write(tmp_path, [helm_state(instance(0)), helm_state(one, result=found)])).instances
    assert [one.tags for one in made.references] == [[] for _ in references]


@pytest.mark.parametrize(("method", "modes"), [
    ("multiple_choice_separate_original", ["original"]),
    ("multiple_choice_separate_calibrated", ["original", "calibration"]),
])  # fmt: skip
class TestOneRequestPerOption:
    def states(self, modes, trials=1):
        return [
            helm_state(one, f"option {index}", reference_index=index, request_mode=mode, train_trial_index=trial)
            for trial in range(trials)
            for one in (instance(0), instance(1))
            for index in range(2)
            for mode in modes
        ]

    def test_one_instance_with_all_its_states(self, tmp_path, method, modes):
        evalset = load(write(tmp_path, self.states(modes, trials=2), method, num_train_trials=2))
        assert [one.id for one in evalset.instances] == ["id0", "id1"]
        for found in recorded(evalset):
            assert found["status"] == "ok"
            assert [(s["train_trial_index"], s["reference_index"], s["request_mode"]) for s in found["states"]] == [
                (trial, index, mode) for trial in range(2) for index in range(2) for mode in modes
            ]

    @pytest.mark.parametrize("missing", [0, -1])
    def test_a_missing_state_makes_the_row_not_run(self, tmp_path, method, modes, missing):
        states = self.states(modes)
        del states[missing]
        path = write(tmp_path, states, method)
        statuses = [found["status"] for found in recorded(load(path))]
        assert sorted(statuses) == ["not_run", "ok"]
        found, counts = check(path)
        assert (counts["recorded"], counts["not_run"], counts["failed"]) == (1, 1, 0)
        assert [problem.code for problem in found] == ["not-run", "incomplete-recording"]
        needed = len(states) // 2 + (len(states) % 2)
        assert f"; here {needed - 1} of {needed} are recorded" in found[1].message

    @pytest.mark.parametrize(("found", "status"), [(result("", success=False), "failed"), (None, "not_run")])
    def test_a_failed_state_or_one_without_a_result(self, tmp_path, method, modes, found, status):
        states = self.states(modes)
        states[1] = replace(states[1], result=found)
        assert [found["status"] for found in recorded(load(write(tmp_path, states, method)))] == [status, "ok"]

    @pytest.mark.parametrize("again", [{}, {"result": None}])
    def test_a_request_that_was_made_more_often_than_the_others(self, tmp_path, method, modes, again):
        states = self.states(modes)
        path = write(tmp_path, [*states, replace(states[0], **again)], method)
        assert [found["status"] for found in recorded(load(path))] == ["not_run", "ok"]

    def test_all_trials_are_needed(self, tmp_path, method, modes):
        path = write(tmp_path, self.states(modes), method, num_train_trials=2)
        assert check(path)[1]["recorded"] == 0


@pytest.mark.parametrize("num_trials", [1, 2])
def test_several_results_of_one_trial_cannot_be_scored(tmp_path, num_trials):
    states = [
        helm_state(instance(number), text, request=Request(prompt="P", random=random))
        for number, text, random in ((0, "z", None), (1, "x", None), (1, "y", "1"))
    ]
    (error,) = errors(write(tmp_path, states, num_trials=num_trials))
    assert "request_states[1].train_trial_index: 1 row has several results of one training trial" in error
    assert "hint: keep one of them" in error


def test_some_of_the_training_trials(tmp_path):
    states = [helm_state(instance(number), train_trial_index=trial) for number in range(2) for trial in range(2)]
    path = write(tmp_path, states, num_train_trials=3, max_train_instances=5)
    (problem,) = check(path)[0]  # nothing of a live run, for which there are too few rows
    assert (problem.code, problem.severity) == ("incomplete-recording", "warning")
    assert "it needs one request for each of the 3 training trials; here 2 of 3 are recorded" in problem.message
    assert [found["requests"] for found in recorded(load(path))] == [[2, 3]] * 2


def test_states_about_options_under_a_method_without_them(tmp_path):
    states = [helm_state(instance(0), reference_index=0), helm_state(instance(1))]
    assert [found["status"] for found in recorded(load(write(tmp_path, states)))] == ["not_run", "ok"]


@pytest.mark.parametrize("status", ["not_run", "failed", "unscored", "too_long"])
def test_rows_that_a_run_of_ours_left_out_are_left_out_again(tmp_path, status):
    one = instance(0, extra_data={"helm_ext": {"left_out": status}})
    found, _ = recorded(load(write(tmp_path, [helm_state(one), helm_state(instance(1))])))
    assert found == {"status": status, "states": [], "skip": True}


def test_perturbed_instances_keep_the_id_that_groups_them(tmp_path):
    typos = TyposPerturbation.Description(name="typos", robustness=True, prob=0.1)
    other = PerturbationDescription(name="lower", robustness=True)
    given = [instance(0), instance(0, perturbation=typos), instance(0, perturbation=other)]
    evalset = load(write(tmp_path, [helm_state(one) for one in given]))
    assert [one.id for one in evalset.instances] == ["id0"] * 3
    assert [one.perturbation for one in evalset.instances] == [None, typos, other]


def test_the_same_id_for_different_instances_is_made_unique(tmp_path):
    other = replace(instance(0), input=Input("Another?"))
    path = write(
        tmp_path,
        [helm_state(instance(0)), helm_state(other), helm_state(instance(0), train_trial_index=1)],
        num_train_trials=2,
    )
    evalset = load(path)
    assert [one.id for one in evalset.instances] == ["id0", "id0-2"]
    assert [len(found["states"]) for found in recorded(evalset)] == [2, 0]
    assert codes(path) == ["not-run", "ids", "incomplete-recording"]


def test_log_probabilities_that_are_no_json_numbers(tmp_path):
    path = write(tmp_path, [helm_state(instance(0), result=result("x", logprob=float("-inf")))])
    assert "-Infinity" in path.read_text()
    assert errors(path) == []
    (completion,) = recorded(load(path))[0]["states"][0]["result"]["completions"]
    assert completion["text"] == "x"
    assert completion["logprob"] is None
    assert completion["tokens"] == [{"text": "x", "logprob": None}]
    assert "not-finite" in codes(path)


def test_chat(tmp_path):
    messages = [{"role": "user", "content": "Hi"}]
    one = Instance(Input(messages=messages), [Reference(Output("Hello"), [CORRECT_TAG])], split="test", id="id0")
    evalset = load(write(tmp_path, [helm_state(one, request=Request(messages=messages))], "chat"))
    assert evalset.instances[0].input.messages == messages
    assert recorded(evalset)[0]["status"] == "ok"


def test_annotations_and_other_keys_of_states_are_kept(tmp_path):
    evalset = load(
        write(tmp_path, [helm_state(instance(0), annotations={"judge": [{"score": 1}]}, num_conditioning_tokens=4)])
    )
    assert row_extra(evalset.instances[0])["data"]["state"] == {"annotations": {"judge": [{"score": 1}]}}
