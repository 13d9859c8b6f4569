import inspect
import pickle
import time

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
    Problems,
    TransformError,
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


@pytest.mark.parametrize("kind", [DatasetNotFoundError, DatasetSchemaError, TransformError])
def test_an_error_of_one_problem_names_its_place(kind, tmp_path):
    for place in (tmp_path / "x.json", str(tmp_path / "x.json")):
        error = kind.at(place, "wrong", "write it right", 3, code="some-code")
        assert type(error) is kind
        assert str(error) == f"{tmp_path}/x.json:3: wrong\n  hint: write it right"
        assert error.problems == (kind.problem_at(place, "wrong", "write it right", 3, code="some-code"),)
        assert (error.problems[0].kind, error.problems[0].code, error.problems[0].severity) == (
            kind,
            "some-code",
            "error",
        )
    assert str(kind.at(Location("x.json", 2, "id"), "missing", code="some-code")) == "x.json:2: id: missing"


def test_every_exception_is_in_the_tree_of_the_docstring():
    classes = [c for _, c in inspect.getmembers(errors, inspect.isclass) if issubclass(c, HelmExtError)]
    for exception in classes:
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


class TestProblems:
    def test_places_with_and_without_lines(self):
        problems = Problems("x.json")
        problems.add(Location("y.jsonl", 7, "id"), "must not be empty", "write one", code="id-empty")
        problems.add(("rows", 3, "a b"), "must not be empty", code="id-empty")
        problems.add(("rows", 4), "in a file of lines", code="id-empty", line=12)
        problems.add((), "the file as a whole", code="id-empty")
        problems.add(("rows", 5), "occurs already", code="id-empty", also=("rows", 1))
        asked = []

        def locate(paths):
            asked.append(list(paths))
            return {("rows", 3, "a b"): 30, ("rows", 5): 50, ("rows", 1): 10}

        assert list(map(str, problems.finish(locate))) == [
            "x.json: the file as a whole",
            "x.json:12: rows[4]: in a file of lines",
            'x.json:30: rows[3]["a b"]: must not be empty',
            "x.json:50: rows[5]: occurs already (line 10)",
            "y.jsonl:7: id: must not be empty\n  hint: write one",
        ]
        assert asked == [[("rows", 3, "a b"), ("rows", 5), ("rows", 1)]]

    def test_lines_are_looked_up_only_if_there_is_something_to_report(self):
        assert Problems("x.json").finish(lambda _: pytest.fail("nothing to look up")) == []

    def test_errors_come_first_and_warnings_do_not_count_as_errors(self):
        problems = Problems("x.json")
        problems.warn((), "odd", code="odd", line=1)
        problems.add((), "wrong", code="wrong", line=9, kind=DatasetIntegrityError)
        found = problems.finish()
        assert [(p.severity, p.message, p.location.line) for p in found] == [
            ("error", "wrong", 9),
            ("warning", "odd", 1),
        ]
        assert (problems.errors, problems.warnings) == (1, 1)
        assert found[0].kind is DatasetIntegrityError

    def test_of_each_code_a_number_is_kept_and_the_rest_counted(self):
        problems = Problems()
        for line in range(1, 1201):
            problems.add(Location("x.jsonl", line, "role"), "unknown", code="role")
        problems.add(Location("x.jsonl", 5000, "id"), "must not be empty", code="id-empty")
        problems.warn(Location("x.jsonl", 1), "odd", code="role")
        found = problems.finish()
        assert len(found) == 1000 + 1 + 1 + 1
        assert [p.code for p in found[-3:]] == ["id-empty", "role", "role"]
        counting = found[-2]
        assert (str(counting), counting.number) == ("x.jsonl: ... and 200 more errors like these (role)", 200)
        assert problems.errors == sum(p.number for p in found if p.severity == "error") == 1201

    def test_what_is_wrong_with_a_file_as_a_whole_comes_before_its_lines(self):
        problems = Problems()
        for line in (2, 1, None):
            problems.add(Location("x", line), "wrong", code="wrong")
        assert [problem.location.line for problem in problems.finish()] == [None, 1, 2]

    def test_problems_found_elsewhere_keep_their_numbers(self):
        first = Problems()
        for line in range(1100):
            first.add(Location("x", line), "unknown", code="role")
        second = Problems()
        second.extend(first.finish())
        assert second.errors == 1100
        assert sum(p.number for p in second.finish()) == 1100


def test_an_exception_counts_the_problems_that_it_does_not_list():
    problems = Problems()
    for line in range(1100):
        problems.add(Location("x", line), "unknown", code="role")
    with pytest.raises(DatasetSchemaError, match=r"\.\.\. and 1080 more; "):
        raise_for(problems.finish())


def test_names_of_any_length_and_number_are_compared_in_bounded_time():
    started = time.process_time()
    assert did_you_mean("a" * 10**6, ["a" * 10**6 + "b"]) == ""
    assert did_you_mean("instuctions", [*(f"{n}-{n}-{n}" for n in range(10**5)), "instructions"])
    assert time.process_time() - started < 5


def test_problems_of_no_file_have_no_path():
    problems = errors.Problems()
    problems.add(("rows", 3), "must not be empty", code="x-empty")
    (found,) = problems.finish()
    assert (found.location.path, found.location.line) == ("", None)


def test_a_warning_keeps_its_hint_and_its_second_place():
    problems = errors.Problems("x.json")
    problems.warn(("rows", 1), "stands twice", "remove one", code="x-twice", line=7, also=("rows", 0))
    (found,) = problems.finish(lambda paths: {path: 5 for path in paths})
    assert (found.hint, found.location.line, found.message) == ("remove one", 7, "stands twice (line 5)")
    assert problems.warnings == 1


def test_what_was_not_kept_is_counted_without_hint_and_line():
    problems = errors.Problems("x.json")
    for number in range(1002):
        problems.add(("rows", number), "is empty", "fill it", code="x-empty", line=number + 1)
    *_, last = problems.finish()
    assert last.message == "... and 2 more errors like these (x-empty)"
    assert (last.hint, last.number, last.location) == ("", 2, errors.Location("x.json"))


def test_a_place_that_has_no_line_is_left_without():
    problems = errors.Problems("x.json")
    problems.add(("rows", 1), "is empty", code="x-empty")
    problems.add(("rows", 2), "is empty", code="x-empty")
    problems.add(errors.Location("y.json", 3), "is empty", code="x-empty")
    found = problems.finish(lambda _paths: {("rows", 2): 9})
    assert [(p.location.path, p.location.line) for p in found] == [("x.json", None), ("x.json", 9), ("y.json", 3)]
