"""What the rows of a file are like, added up row by row."""

from __future__ import annotations

import pytest

from helm_ext.errors import Problems
from helm_ext.evalset import EXTRA_KEY
from helm_ext.formats.request_states.header import Settings
from helm_ext.formats.request_states.profile import Profile
from helm_ext.formats.request_states.reading import Place
from helm_ext.formats.request_states.rows import Row
from helm_ext.formats.request_states.tally import First


def settings(method=None, **given):
    return Settings(given, method, None, None, {}, None, 0, 1, 1, 0.0, None, (), None)


def row(index=0, text="Which?", options=("zormun", "kolpus"), correct=(0,), split=None, **given):
    """A row whose options have the labels A, B, ... if `labels` is not given otherwise."""
    references = [
        {"output": {"text": option}, "tags": ["correct"] if position in correct else []}
        for position, option in enumerate(options)
    ]
    instance = {"input": {} if text is None else {"text": text}, "references": references, **given.pop("instance", {})}
    labels = given.pop("labels", {"ABCDE"[position]: position for position in range(len(options))})
    place = Place(Problems("file"), index, None, ())
    fields = dict.fromkeys(Row.__struct_fields__[: Row.__struct_fields__.index("place")])
    fields |= {"is_choice": len(options) > 1, "labels": labels, "labels_from": "prefix", "instance": instance}
    return Row(**{**fields, "place": place, "split": split, "found": [("not_run", None)], **given})


def profile(*rows, method=None, **given):
    found = Profile(settings(method, **given))
    for one in rows:
        found.see(one)
    return found


def seen(first):
    """How often, and at which place first."""
    return first.count, None if first.row is None else first.row.place.index


def test_the_first_of_its_kind_is_kept_and_all_are_counted():
    first = First()
    assert seen(first) == (0, None)
    first.add(row(4))
    first.add(row(7))
    assert seen(first) == (2, 4)


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [([5, 6], [2], (3, 2)), ([2], [5, 6], (3, 2)), ([], [5], (1, 5)), ([5], [], (1, 5)), ([], [], (0, None))],
)
def test_of_two_counts_the_earlier_row_is_the_first(ours, theirs, expected):
    one, other = First(), First()
    for index in ours:
        one.add(row(index))
    for index in theirs:
        other.add(row(index))
    one.merge(other)
    assert seen(one) == expected


def test_rows_and_splits():
    found = profile(row(0, split="train"), row(1, split="test"), row(2), row(3, split="valid"), row(4, split="train"))
    assert found.rows == 5
    assert found.splits == {"train": 2, "test": 1, None: 1, "valid": 1}


def test_choices_and_rows_with_fewer_than_two_options():
    found = profile(row(0, options=("zormun",), labels=None), row(1), row(2))
    assert seen(found.choice) == (2, 1)
    assert seen(found.few_options) == (1, 0)


def test_prefixes_that_a_text_has_already():
    found = profile(
        row(0, text="Which?"),
        row(1, text="\n Question: which? Answer: \n"),
        row(2, text="Which question: Answer: A"),
        row(3, text=None),
        input_prefix=" Question: ",
        output_prefix="\nAnswer: ",
    )
    assert seen(found.starts_doubled) == (1, 1)
    assert seen(found.ends_doubled) == (1, 1)
    assert seen(found.chat_only) == (1, 3)
    bare = profile(row(0), input_prefix="", output_prefix=None)
    assert (bare.starts_doubled.count, bare.ends_doubled.count) == (0, 0)


def test_labels_of_rows():
    shared = {"A": 0, "B": 1}
    found = profile(
        row(0, labels=shared), row(1, labels=shared), row(2, labels={"x": 0, "y": 1}), row(3, labels=shared)
    )
    assert {labels: one.place.index for labels, one in found.label_sets.items()} == {("A", "B"): 0, ("x", "y"): 2}
    assert seen(found.unlabelled_option) == (0, None)
    # Two labels of one option leave the other without one.
    assert seen(profile(row(0), row(1, labels={"A": 0, "B": 0}, labels_from="row")).unlabelled_option) == (1, 1)
    assert seen(profile(row(0, labels=None)).unlabelled_option) == (0, None)


@pytest.mark.parametrize(
    ("text", "is_there"),
    [
        ("Which? A. zormun B. kolpus", True),
        ("Which? (A) zormun (B) kolpus", True),
        ("Which? A) - zormun\nB) - kolpus", True),  # four characters between a label and its option
        ("Which? A. --- zormun\nB. --- kolpus", False),  # too far from it, and the line holds more
        ("Which?\n- zormun\n* kolpus", True),
        ("Which?\nzormun\nkolpus", True),
        ("Which? zormun\nkolpus", False),
        ("Which? A. zormun", False),
        ("Which? A. zormun B. the kolpus", False),
        ("Which? A. zormun or kolpus", False),
        ("Which? B. zormun A. kolpus", False),
        ("Is zormun more than kolpus? A. zormun B. kolpus", True),  # the second time it stands behind its label
        ("Which?", False),
    ],
)
def test_options_that_stand_in_the_text(text, is_there):
    assert profile(row(text=text)).options_in_text.count == is_there
    assert profile(row(text=text, labels=None)).options_in_text.count == 0
    assert profile(row(text=text), method="multiple_choice_joint").options_in_text.count == 0


def test_a_label_of_another_case_is_not_the_options():
    assert profile(row(text="Which? a. zormun b. kolpus")).options_in_text.count == 0


def test_a_label_five_characters_before_an_option_is_not_its_label():
    assert profile(row(text="Which? A) -- zormun B) -- kolpus")).options_in_text.count == 0


def test_golds_with_a_stop_sequence():
    stop = {"stop_sequences": ["\n\n"]}
    rows = [
        row(0, options=("one", "no\n\nmore"), labels=None),  # a wrong option
        row(1, options=("one\n\n",), labels=None),
        row(2, options=("one\n\n", "two\n\n"), correct=(0, 1), labels=None),
        row(3, options=("one\n\nmore",), labels=None, split="train"),
        row(4, options=("one\n\n", "two")),  # read as labels
    ]
    found = profile(*rows, **stop)
    assert (seen(found.with_stop), found.stops.count) == ((2, 1), 3)
    assert found.stops.decide(None) == ("\n\n",)
    found.settle()  # the train row is a demonstration
    assert (seen(found.with_stop), found.stops.count) == ((2, 1), 3)
    assert profile(*rows).with_stop.count == 0


def test_train_rows_alone_are_evaluated():
    found = profile(row(3, options=("one\n\nmore",), labels=None, split="train"), stop_sequences=["\n\n"])
    found.see_status(row(3, split="train"), "ok")
    assert (found.with_stop.count, found.statuses["ok"].count, found.is_recorded) == (0, 0, False)
    found.settle()
    assert (seen(found.with_stop), found.stops.count) == ((1, 3), 1)
    assert (seen(found.statuses["ok"]), found.is_recorded) == ((1, 3), True)
    assert found.stops.decide(None) == ()  # more follows the stop sequence


def test_train_rows_are_not_evaluated_where_test_rows_are_not():
    found = profile(row(0, split="train"), eval_splits=["valid"])
    found.see_status(row(0, split="train"), "ok")
    found.settle()
    assert not found.is_recorded


def test_what_is_recorded_for_rows_that_are_evaluated():
    found = profile(row(0, split="train"), row(1), row(2, split="valid"))
    for one, status in (
        (row(0, split="train"), "ok"),
        (row(1), "not_run"),
        (row(2, split="valid"), "failed"),
        (row(3, split="other"), "unscored"),
    ):
        found.see_status(one, status)
    found.settle()
    assert {status: seen(first) for status, first in found.statuses.items()} == {
        "ok": (0, None),
        "not_run": (1, 1),
        "failed": (1, 2),
        "unscored": (0, None),
        "too_long": (0, None),
    }
    assert not found.is_recorded
    found.see_status(row(4), "unscored")
    assert found.is_recorded


def test_rows_that_were_recorded_by_log_probabilities():
    one, other = {"text": "zormun", "logprob": -1.0}, {"text": "kolpus", "logprob": -2.0}
    found = profile(
        row(0),
        row(1, likelihoods=[one, other]),
        row(2, likelihoods=[{**one, "alone": 0.0}, {**other, "alone": -1.0}]),
        row(3, likelihoods=[one, other], correct=(0, 1)),
        row(4, options=("zormun",), likelihoods=[one]),
        row(5, correct=(0, 1)),
    )
    assert seen(found.likelihoods) == (4, 1)
    assert seen(found.alone) == (1, 2)
    assert seen(found.several_right) == (1, 3)
    assert seen(found.single) == (1, 4)


def test_the_output_of_a_run_of_helm_and_of_ours():
    ours = {"extra_data": {EXTRA_KEY: {}}}
    stock = profile(row(0, is_helm=True), row(1, is_helm=True))
    assert (seen(stock.helm), seen(stock.ours), stock.is_helm_output) == ((2, 0), (0, None), True)
    both = profile(row(0, is_helm=True), row(1, is_helm=True, instance=ours))
    assert (seen(both.helm), seen(both.ours), both.is_helm_output) == ((2, 0), (1, 1), False)
    assert not profile(row(0, is_helm=True), row(1)).is_helm_output
    assert profile(row(0, instance=ours)).ours.count == 0


def test_thoughts_of_demonstrations():
    thought = {"chain_of_thought": "since it is old"}
    alone = profile(row(0), row(1, instance=thought), row(2, instance={"chain_of_thought": ""}))
    assert seen(alone.thoughts) == (1, 1)
    apart = profile(row(0), row(1, instance=thought), row(2, split="train", instance=thought))
    assert seen(apart.thoughts) == (1, 2)


@pytest.mark.parametrize(
    ("splits", "is_differentiated", "selected"),
    [
        ([], False, 0),
        (["train", "train"], False, 2),
        (["train", None], True, 1),
        (["train", "test", "test"], True, 2),
        ([None, "test", "valid", "valid"], False, 4),
        (["train", "other"], True, 0),
    ],
)
def test_demonstrations_are_told_apart_where_other_rows_are_there(splits, is_differentiated, selected):
    found = profile(*(row(index, split=split) for index, split in enumerate(splits)))
    assert found.is_differentiated is is_differentiated
    assert found.selected == selected


def test_rows_of_one_split():
    rows = [row(0), row(1, split="valid"), row(2, split="valid")]
    assert profile(*rows, eval_splits=["valid"]).selected == 2
    assert profile(*rows, eval_splits=["test"]).selected == 1
