"""Rows of format 1 that were asked by log-probabilities, from file to scores and back."""

import json

import pytest
from request_states_files import choice, errors, write

from helm_ext.errors import RunEntryError
from helm_ext.evalset import row_extra
from helm_ext.formats import request_states
from helm_ext.formats.registry import get_format


def compared(text, likelihoods, correct=0, options=None, **instance):
    """A row whose options have these log-probabilities: `{text: logprob}`."""
    made = [{"text": option, "logprob": logprob} for option, logprob in likelihoods.items()]
    return {**choice(text, options or list(likelihoods), correct, **instance), "likelihoods": made}


ROWS = [
    compared("Which metal is liquid?", {"iron": -3.5, "mercury": -4.0}, correct=1, id="a"),
    compared("Which metal is yellow?", {"gold": -1.0, "tin": -2.0}, id="b"),
]


def test_the_likeliest_option_is_the_completion(tmp_path):
    evalset = request_states.load(write(tmp_path / "f.jsonl", ROWS))
    assert evalset.adapter_spec.method == "generation"
    assert evalset.scoring.metrics == ("acc", "acc_norm", "acc_bytes", "brier_score")
    assert evalset.scoring.main_metric == "acc"
    extras = [row_extra(instance) for instance in evalset.instances]
    assert [e["recorded"]["states"][0]["result"]["completions"] for e in extras] == [[{"text": "A"}], [{"text": "A"}]]
    assert extras[0]["likelihoods"] == [{"text": "iron", "logprob": -3.5}, {"text": "mercury", "logprob": -4.0}]
    assert evalset.counts["recorded"] == 2


def test_mutual_information_is_measured_where_all_rows_have_it(tmp_path):
    rows = json.loads(json.dumps(ROWS))
    for one in rows[0]["likelihoods"]:
        one["alone"] = -1.0
    path = write(tmp_path / "f.jsonl", rows)
    assert "acc_mutual_info" not in request_states.load(path).scoring.metrics
    assert any(
        "acc_mutual_info is not defined for all rows" in one for one in errors(path, metrics=["acc_mutual_info"])
    )
    for one in rows[1]["likelihoods"]:
        one["alone"] = -1.0
    write(path, rows)
    assert "acc_mutual_info" in request_states.load(path).scoring.metrics
    del rows[1]["likelihoods"][0]["alone"]
    assert any("`alone` is given for some options" in one for one in errors(write(path, rows)))


def test_likelihoods_are_written_again(tmp_path):
    evalset = request_states.load(write(tmp_path / "f.jsonl", ROWS))
    get_format("adapter_spec").write(evalset, tmp_path / "g.jsonl")
    again = request_states.load(tmp_path / "g.jsonl")
    assert [row_extra(i) for i in again.instances] == [row_extra(i) for i in evalset.instances]
    assert again.scoring == evalset.scoring


def test_a_mapping_to_texts_tells_options_that_read_the_same_by_their_order(tmp_path):
    """As HELM writes the labels of a finished run: `output_mapping` holds texts."""
    row = compared("Which?", {"tin": -2.0, "zinc": -3.0}, correct=2, options=["zinc", "tin", "tin"])
    row["likelihoods"] = [{"text": text, "logprob": logprob} for text, logprob in zip("ABC", (-3, -2, -1), strict=True)]
    row["output_mapping"] = {"A": "zinc", "B": "tin", "C": "tin"}
    (instance,) = request_states.load(write(tmp_path / "f.jsonl", [row])).instances
    assert row_extra(instance)["recorded"]["states"][0]["result"]["completions"] == [{"text": "C"}]


def test_a_live_run_is_refused(tmp_path):
    from helm.benchmark.adaptation.adapter_spec import AdapterSpec

    from helm_ext.adaptation.wrap import _require_texts

    evalset = request_states.load(write(tmp_path / "f.jsonl", ROWS))
    with pytest.raises(RunEntryError, match="would be asked for texts"):
        _require_texts(evalset.instances, AdapterSpec(model_deployment="openai/gpt-4"))


@pytest.mark.parametrize("damaged", ["iron", {"text": {}, "logprob": -1.0}, {"text": "iron"}])
def test_likelihoods_that_no_run_wrote_are_named(tmp_path, damaged):
    row = choice("Which metal is liquid?", ["iron", "mercury"], 1, extra_data={"helm_ext": {"likelihoods": [damaged]}})
    (error,) = errors(write(tmp_path / "f.jsonl", [{**row, "train_trial_index": 0}]))
    assert error.startswith("2: instance.extra_data.helm_ext: not as a run writes it: ")
