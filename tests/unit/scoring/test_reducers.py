"""Several completions of a row: expected values are counted by hand, rules are inspect_ai's (_reducer/reducer.py)."""

import helm_states
import pytest
from helm.benchmark.adaptation.adapter_spec import AdapterSpec
from helm.benchmark.scenarios.scenario import Input, Instance
from tests.request_states_files import state, write

from helm_ext.formats import get_format
from helm_ext.scoring.metrics import EvalSetMetric
from helm_ext.scoring.reducers import find_noise, find_reducer


@pytest.mark.parametrize(("name", "scores", "expected"), [
    ("first", [0.0, 1.0], 0), ("mean", [1, 0, 0.5], 0.5), ("median", [0, 0.25, 1], 0.25), ("mode", [0, 1, 1], 1),
    ("mode", [0, 1], 0), ("max", [0.25, 0.75], 0.75), ("at_least_1", [0, 0.9], 0), ("at_least_2", [1, 0, 1], 1),
    ("pass_at_1", [1, 0, 0, 0], 0.25),
    ("pass_at_2", [1, 0, 0, 0], 0.5),  # 1 - C(3, 2) / C(4, 2)
    ("pass_at_2", [1, 1, 1], 1), ("pass_at_3", [1, 1], None),
    ("pass_k_2", [1, 1, 0], 1 / 3),  # C(2, 2) / C(3, 2)
    ("pass_k_2", [1], None),
])  # fmt: skip
def test_reducers(name, scores, expected) -> None:
    reducer = find_reducer(name)
    assert reducer is not None
    assert reducer(scores) == (None if expected is None else pytest.approx(expected))


@pytest.mark.parametrize(("name", "scores"), [("pass_k_2", [1, 1, 0]), ("pass_at_2", [0, 0, 1])])
def test_noise_of_few_completions_is_the_jackknifes(name, scores) -> None:
    """Without one completion, C(m, 2) / C(2, 2) is 0, 0 and 1: 2/3 of 2 (1/3)^2 + (2/3)^2."""
    assert find_noise(name)(scores) == pytest.approx(4 / 9)


@pytest.mark.parametrize("name", ["", "Mean", "at_least", "at_least_0", "pass_at_k", "pass_at_-1", "first_2"])
def test_names_of_none(name) -> None:
    assert find_reducer(name) is None


def read(texts: list[str], **scoring):
    """Return the values of one row of free text whose right answer is "Anda"."""
    metric = EvalSetMetric(metrics=["exact_match", "normalized_exact_match"], **scoring)
    instance = Instance(Input("?"), helm_states.make_references(["Anda"]), split="test", id="1")
    made = helm_states.make_state(instance, *map(helm_states.make_output, texts))
    return metric._get_reader(AdapterSpec(num_outputs=1))(made)


@pytest.mark.parametrize(("completions", "expected"), [("first", 0), ("mean", 2 / 3), ("max", 1), ("at_least_3", 0)])
def test_a_rows_score_is_made_of_those_of_its_completions(completions, expected) -> None:
    reading = read(["Brell", "anda", "Anda."], completions=completions)
    assert reading.more["normalized_exact_match"] == pytest.approx(expected)


def test_helms_scores_are_reduced_alike() -> None:
    reading = read(["Brell", "Anda", "Anda"], completions="mean")
    assert reading.reduce is not None
    assert reading.reduce([0, 1, 1]) == pytest.approx(2 / 3)
    assert read(["Brell", "Anda"]).reduce is None


def test_too_few_completions_have_no_score() -> None:
    assert "normalized_exact_match" not in read(["Anda"], completions="pass_at_2").more


def test_completions_without_an_answer_are_a_share() -> None:
    reading = read(["river: Anda", "no idea", "-", "-"], completions="max", extract="river: (.*)")
    assert (reading.more["unmapped"], reading.more["normalized_exact_match"]) == (0.75, 1)


def write_answered(path, **scoring):
    """Write a file with one row, answered twice: wrong, then right."""
    row = state("Which metal is liquid?", "mercury", split="test")
    row["request"] = {"result": {"success": True, "completions": [{"text": "lead"}, {"text": "mercury"}]}}
    return write(path, [row], scoring=scoring)


def test_a_file_says_how_its_completions_are_scored_and_the_run_entry_wins(tmp_path) -> None:
    path = str(write_answered(tmp_path / "x.json", completions="mean"))
    format_ = get_format("adapter_spec")
    assert format_.load(path=path).scoring.to_args()["completions"] == "mean"
    assert format_.load(path=path, completions="max").scoring.completions == "max"
    plain = str(write_answered(tmp_path / "y.json", strip=True))
    assert "completions" not in format_.load(path=plain).scoring.to_args()


@pytest.mark.parametrize(("scoring", "said"), [
    ({"completions": "maen"}, "scoring.completions: \"maen\" is no way(.|\n)*did you mean 'mean'"),
    ({"completions": "pass_at_0"}, "scoring.completions"),
])  # fmt: skip
def test_another_word_is_refused(tmp_path, scoring, said) -> None:
    with pytest.raises(ValueError, match=said):
        get_format("adapter_spec").load(path=str(write_answered(tmp_path / "x.json", **scoring)))


def test_completions_that_are_one_list_together_are_not_reduced(tmp_path) -> None:
    path = str(write_answered(tmp_path / "x.json", completions="mean"))
    with pytest.raises(ValueError, match="together are its list"):
        get_format("adapter_spec").load(path=path, output_format="list")
