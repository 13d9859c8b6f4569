"""The scores of a log: values, epochs, names. Expected values are inspect_ai's (scorer/_metric.py, _reducer/reducer.py)."""

import math

import pytest
from tests.inspect_files import score

from helm_ext.formats.inspect_logs.scores import Scores, to_number

NAN = math.nan


@pytest.mark.parametrize(("value", "number"), [
    ("C", 1), ("P", 0.5), ("I", 0), ("N", 0), ("yes", 1), ("True", 1), ("no", 0), ("false", 0), ("0.25", 0.25),
    (True, 1), (False, 0), (3, 3), (0.7, 0.7), ("c", None), ("maybe", None), ("nan", None), ("inf", None),
    ([1, 0], None), (None, None),
])  # fmt: skip
def test_values_as_numbers(value, number) -> None:
    assert to_number(value) == number


@pytest.mark.parametrize(("reducer", "values", "number"), [
    (None, ["C", "I", "P"], 0.5), ("mean", ["C", NAN, "I"], 0.5), ("median", ["C", "I", "I"], 0),
    ("mode", ["C", "I", "N"], 1),  # the first of equally frequent ones; I and N are two values
    ("mode", ["I", "C", "C"], 1), ("max", ["I", 0.2], 0.2), ("at_least_2", ["C", "C", "I"], 1),
    ("at_least_2", ["C", "P", "I"], 0), ("pass_at_2", ["C", "I", "I"], 2 / 3),
    ("pass_at_2", ["C"], None),  # too few
    ("pass_k_2", ["C", "C", "I"], 1 / 3), ("mean", [NAN, NAN], None),
])  # fmt: skip
def test_epochs_become_one_number(reducer, values, number) -> None:
    scores = Scores(None if reducer is None else [reducer], [score("match")])
    found = scores.of_row([{"match": value} for value in values])["match"]
    assert found == (number if number is None else pytest.approx(number))


def test_each_key_of_an_object_is_a_score() -> None:
    scores = Scores(None, [score("depth", "sized", mean=0.5), score("width", "sized", mean=1.0)])
    assert scores.of_row([{"sized": {"depth": 0.5, "width": True}}]) == {"depth": 0.5, "width": 1.0}
    scores.finish([], is_whole=True)
    assert {name: one.mean for name, one in scores.reported.items()} == {"depth": 0.5, "width": 1.0}


def test_an_object_that_was_not_scored_in_one_epoch_leaves_no_score_of_another_name() -> None:
    scores = Scores(None, [])
    assert scores.of_row([{"sized": {"depth": 1}}, {"sized": NAN}]) == {"depth": 1.0}
    assert scores.of_row([{"sized": NAN}]) == {}


def test_scores_of_one_name_are_told_apart() -> None:
    scores = Scores(["mean", "max"], [score("depth", "a"), score("depth", "b")])
    row = scores.of_row([{"a": {"depth": 1}, "b": {"depth": 0}}, {"a": {"depth": 0}, "b": {"depth": 0}}])
    plain = {name: value for name, value in row.items() if "@" not in name}
    assert plain == {"depth": 0.5, "depth,max": 1, "depth,b": 0, "depth,max,b": 0}


def test_each_scorer_has_the_reducers_that_the_log_reports_for_it() -> None:
    """As in a log of inspect_ai 0.3.285 that was scored again, `epochs_reducer=["mean", "max"]`, action="append"."""
    reported = [score("match", None, "mode"), score("includes", None, "mean"), score("includes", None, "max")]
    scores = Scores(["mean", "max"], reported)
    row = scores.of_row([{"match": value, "includes": value} for value in "CCI"])
    plain = {name: value for name, value in row.items() if "@" not in name}
    assert plain == {"match": 1.0, "includes": pytest.approx(2 / 3), "includes,max": 1.0}


def test_what_is_no_number_is_named_and_left_out_but_a_word_counts_0_where_the_log_has_a_mean_of_it() -> None:
    scores = Scores(None, [score("listed", mean=0.0), score("kind", frequency=1.0), score("match", accuracy=0.0)])
    assert scores.of_row([{"listed": [1, 0], "kind": "sandbagging", "match": "unknown word"}]) == {"match": 0.0}
    assert scores.left_out.keys() == {"listed", "kind"}


HALF = [["P", "P", "I"], ["C", "I", "I"], ["I"], ["P"], ["C"], ["P", "C", "N"]]


@pytest.mark.parametrize(("reducer", "rows", "reported", "left"), [
    # inspect_ai 0.3.285, epochs reduced by at_least(2, value=0.5), which the log calls at_least_2: 2 of 6 rows
    ("at_least_2", HALF, {"mean": 2 / 6}, False), ("at_least_2", HALF, {"mean": 0.0}, True),
    ("mean", [["A"], ["B"]], {"mean": 0.5}, False),  # mean_score(value_to_float(correct="A", incorrect="B"))
    ("mean", [["A"], ["B"]], {"mean": 0.0}, True),
    ("mean", [["C"], ["I"]], {"accuracy": 0.25}, True),  # of a log that was edited
    ("mean", [["C"], ["unsure"], ["N"]], {"frequency": 0.3}, False),
    ("mean", [[1.0], [math.inf]], {"mean": math.inf}, False), ("mean", [[1.0], [None]], {"std": 0.0}, True),
])  # fmt: skip
def test_rows_have_the_numbers_of_the_log_or_none(reducer, rows, reported, left) -> None:
    scores = Scores([reducer], [score("verdict", None, reducer, **reported)])
    made = [scores.of_row([{"verdict": value} for value in values]) for values in rows]
    ((metric, value),) = reported.items()
    (names,) = scores.finish(made, is_whole=True)
    assert (any(made), "verdict" in scores.reported) == (left, left)
    if not left and math.isfinite(value):
        assert (scores.reported[names[metric]].mean, names[metric]) == (value, f"verdict/{metric}")


def test_an_object_that_is_unscored_as_a_whole_is_so_by_each_key_that_the_log_reports() -> None:
    scores = Scores(None, [score("depth", "sized", mean=1.0), score("width", "sized", mean=1.0)])
    assert scores.of_row([{"sized": NAN}]) == {"depth": None, "width": None}
    assert scores.of_row([{"sized": NAN}, {"sized": {"depth": 1, "width": NAN}}]) == {"depth": 1.0, "width": None}


def test_only_a_plain_mean_is_one_to_compare_with() -> None:
    custom = score("match", accuracy=0.4)
    custom["metrics"]["accuracy"]["params"] = {"to_float": "mine"}
    scores = Scores(None, [custom, score("other", std=0.1), score("third", accuracy=NAN)])
    scores.of_row([{"match": "C", "other": 1, "third": 1}])
    assert {name: one.mean for name, one in scores.reported.items()} == {"match": None, "other": None, "third": None}


def test_a_reducer_of_the_tasks_own_gives_no_scores() -> None:
    scores = Scores(["mine"], [score("match", accuracy=1.0)])
    assert (scores.of_row([{"match": "C"}]), scores.unknown) == ({}, ["mine"])


def test_a_whole_number_that_no_float_holds_is_no_score() -> None:
    scores = Scores(None, [score("match", accuracy=10**400)])
    assert (to_number(10**400), scores.of_row([{"match": 10**400}])) == (None, {})
    assert scores.left_out.keys() == {"match"}
