import inspect
import pickle

import pytest

from helm_ext import errors
from helm_ext.errors import (
    DatasetError,
    DatasetIntegrityError,
    DatasetNotFoundError,
    DatasetSchemaError,
    HelmExtError,
    Location,
    Problem,
    did_you_mean,
    raise_for,
    show,
)


def problem(message="expected a string, got 42", line=118, severity="error", hint='write "42" in quotes', kind=None):
    location = Location("adapter_specs/x.json", line, "request_states[3].instance.id")
    return Problem(message, location, hint, severity, "wrong-type", kind)


def test_a_problem_reads_file_line_field_message_hint():
    assert str(problem()) == (
        "adapter_specs/x.json:118: request_states[3].instance.id: expected a string, got 42\n"
        '  hint: write "42" in quotes'
    )


def test_a_problem_without_line_field_and_hint():
    assert str(Problem("is empty", Location("x.json"))) == "x.json: is empty"


def test_every_exception_is_public_and_in_the_tree_of_the_docstring():
    classes = [c for _, c in inspect.getmembers(errors, inspect.isclass) if issubclass(c, HelmExtError)]
    for exception in classes:
        assert exception.__name__ in errors.__all__
        assert exception.__name__ in errors.__doc__


def test_values_are_shortened_and_always_printable():
    assert show("x" * 200) == '"' + "x" * 78 + "…"
    assert len(show("x" * 200)) == errors.SHOWN_VALUE_LENGTH
    assert show("甲") == '"甲"'
    assert show("\ud800").encode("utf-8")  # a lone surrogate does not break printing
    assert show({1, 2}) == "{1, 2}"


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("instuctions", "did you mean 'instructions'?"),
        ("INSTRUCTIONS", "did you mean 'instructions'?"),
        ("zzz", ""),
    ],
)
def test_did_you_mean(word, expected):
    assert did_you_mean(word, ["instructions", "max_tokens"]) == expected


def test_raise_for_raises_all_problems_with_the_class_of_the_first_error():
    found = [
        problem(severity="warning"),
        problem(kind=DatasetIntegrityError),
        problem("second", kind=DatasetSchemaError),
    ]
    with pytest.raises(DatasetIntegrityError) as caught:
        raise_for(found)
    assert caught.value.problems == tuple(found)
    assert str(caught.value).count("adapter_specs/x.json:118") == 2  # warnings are not part of the text


def test_raise_for_lets_warnings_pass():
    raise_for([problem(severity="warning")])


def test_many_problems_are_counted_in_the_text_and_kept_in_problems():
    error = DatasetError([problem(f"number {i}") for i in range(25)])
    assert len(error.problems) == 25
    assert str(error).endswith("... and 5 more; `helm-ext validate FILE --format json` lists them")
    assert "number 19" in str(error)
    assert "number 20" not in str(error)


def test_dataset_errors_survive_pickling():
    # HELM's multi-GPU workers send exceptions between processes.
    error = pickle.loads(pickle.dumps(DatasetNotFoundError([problem()])))
    assert isinstance(error, FileNotFoundError)
    assert error.problems == (problem(),)
    assert str(pickle.loads(pickle.dumps(DatasetError("plain text")))) == "plain text"
