"""Rows of finished runs: what was asked, what came back, what it was scored as."""

import json

import pytest
from finished_runs import rewrite, run_sums, score
from request_states_files import answered, choice, split_rows, state, write

from helm_ext.analysis import read_run


def by_id(run):
    return {row.instance_id: row for row in run.predictions()}


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    """Free text: right, wrong, empty, failed, not run."""
    folder = tmp_path_factory.mktemp("mixed")
    questions = {"right": "mercury", "wrong": "gallium", "empty": ""}
    rows = [answered(state(f"Which metal is {name}?", id=name, split="test"), text) for name, text in questions.items()]
    rows[0]["request"]["result"] |= {"request_time": 1.5, "request_datetime": 1700000000}
    rows[0]["request"]["result"]["completions"][0] |= {
        "logprob": -0.5,
        "tokens": [{"text": "mercury", "logprob": -0.5}],
    }
    rows[0]["instance"]["extra_data"] = {"level": 3, "topic": "metals"}
    rows.append({**state("Which failed?", id="failed", split="test"), "request": {"result": {"success": False}}})
    rows.append(state("Which was not run?", id="absent", split="test"))
    return score(folder, write(folder / "metals.jsonl", rows), missing="skip", by="topic")


def test_a_row_says_what_its_run_says(mixed):
    row = by_id(mixed)["right"]
    assert (row.split, row.trial, row.input, row.gold) == ("test", 0, "Which metal is right?", ["mercury"])
    assert (row.read.text, row.read.label, row.read.method) == ("mercury", None, "text")
    assert row.completions == [
        {"text": "mercury", "logprob": -0.5, "finish_reason": None, "thinking": None, "reference_index": None,
         "request_mode": None}
    ]  # fmt: skip
    assert (row.request_time, row.request_datetime, row.left_out, row.error) == (1.5, 1700000000, None, None)
    assert row.scores["exact_match"] == 1.0
    assert row.attributes == {"topic": "metals"}
    assert row.data["level"] == 3
    assert by_id(mixed)["wrong"].completions[0]["logprob"] is None  # which nobody measured


def test_rows_that_were_left_out_have_no_completion(mixed):
    rows = by_id(mixed)
    assert {name: row.left_out for name, row in rows.items() if row.left_out} == {
        "failed": "failed", "absent": "not_run",
    }  # fmt: skip
    for name in ("failed", "absent"):
        assert (rows[name].completions, rows[name].read.text, rows[name].scores) == ([], None, {})
    assert [completion["text"] for completion in rows["empty"].completions] == [""]
    assert rows["empty"].scores["exact_match"] == 0.0


METALS = ["iron", "mercury"]
LIKELIHOODS = [{"text": "iron", "logprob": -3.5}, {"text": "mercury", "logprob": -4.0}]
JOINT = {"method": "multiple_choice_joint", "max_train_instances": 0}


@pytest.mark.parametrize(("rows", "arguments", "expected"), [
    (
        [
            answered(choice("Which is liquid?", METALS, 1, id="said", split="test"), "The answer is (B)."),
            answered(choice("Which is yellow?", ["gold", "tin"], 0, id="lost", split="test"), "no idea"),
        ],
        {}, [("mercury", "B", "label"), (None, None, "label")],
    ),
    (
        [answered(row, f"so it is {row['instance']['references'][0]['output']['text']}.") for row in split_rows(2)],
        {"extract": r"is (\d+)"}, [("0", None, "regex"), ("2", None, "regex")],
    ),
    ([{**choice("Which is liquid?", METALS, 1, id="a", split="test"), "likelihoods": LIKELIHOODS}], {}, [("iron", None, "log_likelihood")]),
    ([answered(state("Which two?", "gold; tin", id="a", split="test"), "tin; gold")], {"output_format": "list"}, [("tin; gold", None, "list")]),
], ids=["options", "extracted", "likelihoods", "list"])  # fmt: skip
def test_answers_are_read_as_the_metric_reads_them(tmp_path, rows, arguments, expected):
    spec = JOINT if expected[0][1] else None
    run = score(tmp_path, write(tmp_path / "rows.jsonl", rows, *([spec] if spec else [])), **arguments)
    found = list(run.predictions())
    read = [(row.read.text, row.read.label, row.read.method) for row in found]
    assert [one if one[2] != "log_likelihood" else (one[0], None, one[2]) for one in read] == expected
    assert all(row.likelihoods == rows[0].get("likelihoods", []) for row in found)
    if spec:
        assert found[0].options == {"A": "iron", "B": "mercury"}
        assert [row.scores["unmapped"] for row in found] == [0.0, 1.0]


def test_a_run_of_helms_own_scenario(tmp_path):
    rows = by_id(run_sums(tmp_path))
    assert [row.scores["exact_match"] for row in rows.values()] == [1.0, 0.0, 0.0]
    row = rows["s1"]
    assert (row.sub_split, row.read.text, row.prompt) == ("odd", "2", "Input: What is 1 + 1?\nOutput:")
    assert (row.completions[0]["text"], row.completions[0]["logprob"], row.completions[0]["finish_reason"]) == (
        " 2", -1.0, "stop",
    )  # fmt: skip
    assert row.data["level"] == 1
    assert [reference["correct"] for reference in row.references] == [True, False, False]


def test_requests_about_each_option_are_one_row(tmp_path):
    run = run_sums(tmp_path, method="multiple_choice_separate_original")
    rows = list(run.predictions())
    assert len(rows) == 3
    # "2" is shorter by no word than "0" and "9": the first of equals.
    assert [(row.read.text, row.read.method) for row in rows] == [(g, "log_likelihood") for g in ("2", "3", "4")]
    assert [completion["reference_index"] for completion in rows[0].completions] == [0, 1, 2]
    assert rows[0].request_time == 0.75


def test_trials_and_perturbations_are_rows_of_their_own(tmp_path):
    changed = "helm.benchmark.augmentations.misspelling_perturbation.MisspellingPerturbation"
    run = run_sums(tmp_path, num_train_trials=2, perturbation=changed)
    rows = list(run.predictions())
    expected = [
        (f"s{number}", trial, how) for number in (1, 2, 3) for trial in (0, 1) for how in (None, "misspellings")
    ]
    found = [(row.instance_id, row.trial, row.perturbation and row.perturbation["name"]) for row in rows]
    assert sorted(found, key=str) == sorted(expected, key=str)
    assert all("exact_match" in row.scores for row in rows)


def test_a_request_that_failed_has_an_error_and_no_completion(tmp_path):
    rows = by_id(run_sums(tmp_path, "failing", deployment="fail"))
    assert (rows["s3"].error, rows["s3"].completions, rows["s3"].read.text) == ("refused by the provider", [], None)
    assert rows["s1"].error is None


def test_stats_of_several_metrics_are_joined_and_the_answer_of_somebody_elses_is_not_known(tmp_path):
    run = run_sums(tmp_path, more=("finished_runs.Odd",))
    assert [row.scores["odd_length"] for row in run.predictions()] == [2.0, 2.0, 2.0]
    assert "odd_nan" not in next(run.predictions()).scores
    assert list(run.row_stats.names)[-1] == "odd_length"
    assert {(row.read.text, row.read.method) for row in run.predictions()} == {(None, "unknown")}


@pytest.mark.parametrize("layout", [{}, {"indent": 4}])
def test_files_in_another_layout_say_the_same(tmp_path, layout):
    run = run_sums(tmp_path)
    before = list(run.predictions())
    for name in ("scenario_state.json", "per_instance_stats.json"):
        rewrite(run, name, **layout)
    assert list(read_run(run.folder).predictions()) == before


def test_rows_are_told_apart_where_the_hashes_of_two_are_equal(tmp_path, monkeypatch):
    from helm_ext.analysis import json_arrays

    monkeypatch.setattr(json_arrays, "_hash", lambda key: 7)
    assert [row.scores["exact_match"] for row in run_sums(tmp_path).predictions()] == [1.0, 0.0, 0.0]


def test_the_files_of_a_run_that_is_broken_are_named(tmp_path):
    from helm_ext.errors import DatasetSyntaxError

    run = run_sums(tmp_path)
    path = run.folder / "scenario_state.json"
    path.write_bytes(path.read_bytes()[:-400])
    with pytest.raises(DatasetSyntaxError, match=r"scenario_state.json: .*not complete"):
        list(run.predictions())
    (run.folder / "per_instance_stats.json").write_text(json.dumps([{"stats": []}]))
    with pytest.raises(DatasetSyntaxError, match=r"per_instance_stats.json: .*without 'instance_id'"):
        list(read_run(run.folder).predictions())
