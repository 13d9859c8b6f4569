"""What the rows of a file are like, added up row by row."""

from __future__ import annotations

import pytest

from helm_ext.errors import Problems
from helm_ext.formats.request_states.header import Settings
from helm_ext.formats.request_states.profile import First, Profile
from helm_ext.formats.request_states.reading import Place
from helm_ext.formats.request_states.rows import Row


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
    return first.count, None if first.place is None else first.place.index


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [([5, 6], [2], (3, 2)), ([2], [5, 6], (3, 2)), ([], [5], (1, 5)), ([5], [], (1, 5)), ([], [], (0, None))],
)
def test_of_two_counts_the_earlier_row_is_the_first(ours, theirs, expected):
    one, other = First(), First()
    for index in ours:
        one.add(row(index).place)
    for index in theirs:
        other.add(row(index).place)
    one.merge(other)
    assert seen(one) == expected


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
    assert profile(row(text=text)).find("options_in_text").count == is_there
    assert profile(row(text=text, labels=None)).find("options_in_text").count == 0
    assert profile(row(text=text), method="multiple_choice_joint").find("options_in_text").count == 0


def stops(found):
    return seen(found.find("with_stop", found.to_score)), found.stops.count, found.stops.decide(None)


def test_golds_with_a_stop_sequence():
    stop = {"stop_sequences": ["\n\n"]}
    rows = [
        row(0, options=("one", "no\n\nmore"), labels=None),  # a wrong option
        row(1, options=("one\n\n",), labels=None),
        row(2, options=("one\n\n", "two\n\n"), correct=(0, 1), labels=None),
        row(3, options=("one\n\nmore",), labels=None, split="train"),
        row(4, options=("one\n\n", "two")),  # read as labels
    ]
    assert stops(profile(*rows, **stop)) == ((2, 1), 3, ("\n\n",))  # the train row is a demonstration
    assert stops(profile(*rows)) == ((0, None), 0, ())
    assert stops(profile(rows[3], **stop)) == ((1, 3), 1, ())  # alone it is evaluated; more follows the stop sequence


@pytest.mark.parametrize(
    ("splits", "eval_splits", "expected"),
    [
        (["train", None, "valid", "other"], [], {"not_run": (1, 1), "failed": (1, 2)}),
        (["train", "train"], [], {"ok": (1, 0), "not_run": (1, 1)}),
        (["train", "train"], ["valid"], {}),  # train rows alone are test rows
        (["test", None, "valid", None], ["test"], {"ok": (1, 0), "not_run": (1, 1), "unscored": (1, 3)}),
    ],
)
def test_what_is_recorded_for_rows_that_are_evaluated(splits, eval_splits, expected):
    rows = [row(index, split=split) for index, split in enumerate(splits)]
    found = profile(*rows, eval_splits=eval_splits)
    for one, status in zip(rows, ("ok", "not_run", "failed", "unscored"), strict=False):
        found.see_status(one, status)
    statuses = {status: seen(found.find_status(status)) for status in ("ok", "not_run", "failed", "unscored")}
    assert {status: at for status, at in statuses.items() if at[0]} == expected
    assert found.is_recorded is bool({"ok", "unscored"} & set(expected))


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
