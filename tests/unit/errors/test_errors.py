import pickle
import time

import pytest

from helm_ext import errors
from helm_ext.errors import (
    DatasetError,
    DatasetIntegrityError,
    DatasetNotFoundError,
    DatasetSchemaError,
    Location,
    Problem,
    Problems,
    TransformError,
    describe_missing,
    did_you_mean,
    raise_for,
    show,
    to_problem,
)


def problem(message="expected a string, got 42", line=118, severity="error", hint='write "42" in quotes', kind=None):
    location = Location("adapter_specs/x.json", line, "request_states[3].instance.id")
    return Problem(message, location, hint, severity, "wrong-type", kind)


def test_a_problem_reads_file_line_field_message_hint():
    assert str(problem()) == (
        "adapter_specs/x.json:118: request_states[3].instance.id: expected a string, got 42\n"
        '  hint: write "42" in quotes'
    )
    assert str(Problem("is empty", Location("x.json"))) == "x.json: is empty"


def test_what_an_exception_says_of_a_file_is_a_problem_of_it():
    said = ValueError("x.json: is empty\n  hint: write a row")
    assert to_problem(said, "x.json", "empty") == Problem("is empty", Location("x.json"), "write a row", code="empty")


@pytest.mark.parametrize(("module", "package"), [("rouge_score.x", "rouge-score"), ("yaml", "PyYAML")])
def test_a_package_that_is_not_installed_is_named_as_pip_names_it(module, package):
    said = f"this needs the package {package}, which is not installed\n  hint: pip install {package}"
    assert describe_missing(ModuleNotFoundError(name=module)) == said


@pytest.mark.parametrize("kind", [DatasetNotFoundError, DatasetSchemaError, TransformError])
def test_an_error_of_one_problem_names_its_place(kind, tmp_path):
    for place in (tmp_path / "x.json", str(tmp_path / "x.json")):
        error = kind.at(place, "wrong", "write it right", 3, code="some-code")
        assert type(error) is kind
        assert str(error) == f"{tmp_path}/x.json:3: wrong\n  hint: write it right"
        assert error.problems == (kind.problem_at(place, "wrong", "write it right", 3, code="some-code"),)
        (found,) = error.problems
        assert (found.kind, found.code, found.severity) == (kind, "some-code", "error")
    assert str(kind.at(Location("x.json", 2, "id"), "missing", code="some-code")) == "x.json:2: id: missing"


def test_values_are_shortened_and_always_printable():
    assert show("x" * 200) == '"' + "x" * 78 + "…"
    assert len(show("x" * 200)) == errors.SHOWN_VALUE_LENGTH
    assert show("甲") == '"甲"'
    assert show("\ud800").encode("utf-8")  # a lone surrogate does not break printing
    assert show({1, 2}) == "{1, 2}"


def test_did_you_mean():
    for word, expected in (("instuctions", "'instructions'?"), ("INSTRUCTIONS", "'instructions'?"), ("zzz", "")):
        assert did_you_mean(word, ["instructions", "max_tokens"]).removeprefix("did you mean ") == expected
    started = time.process_time()  # names of any length and number are compared in bounded time
    assert did_you_mean("a" * 10**6, ["a" * 10**6 + "b"]) == ""
    assert did_you_mean("instuctions", [*(f"{n}-{n}-{n}" for n in range(10**5)), "instructions"])
    assert time.process_time() - started < 5


def test_raise_for_raises_all_problems_with_the_class_of_the_first_error():
    found = [problem(severity="warning"), problem(kind=DatasetIntegrityError), problem("two", kind=DatasetSchemaError)]
    with pytest.raises(DatasetIntegrityError) as caught:
        raise_for(found)
    assert caught.value.problems == tuple(found)
    assert str(caught.value).count("adapter_specs/x.json:118") == 2  # warnings are not part of the text
    raise_for(found[:1])  # warnings pass


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


def add_many(number, **more):
    problems = Problems("x.json")
    for line in range(1, number + 1):
        problems.add(Location("x.json", line), "unknown", "hint", code="role", **more)
    return problems


class TestProblems:
    def test_places_with_and_without_lines(self):
        problems = Problems("x.json")
        problems.add(Location("y.jsonl", 7, "id"), "must not be empty", "write one", code="id-empty")
        problems.add(("rows", 3, "a b"), "must not be empty", code="id-empty")
        problems.add(("rows", 4), "in a file of lines", code="id-empty", line=12)
        problems.add((), "the file as a whole", code="id-empty")
        problems.add(("rows", 5), "occurs already", code="id-empty", also=("rows", 1))
        problems.add(("rows", 6), "is nowhere", code="id-empty")
        problems.warn(("rows", 1), "stands twice", "remove one", code="x-twice", line=7, also=("rows", 5))
        asked = []

        def locate(paths):
            asked.append(list(paths))
            return {("rows", 3, "a b"): 30, ("rows", 5): 50, ("rows", 1): 10}

        assert list(map(str, problems.finish(locate))) == [
            "x.json: the file as a whole",
            "x.json: rows[6]: is nowhere",
            "x.json:12: rows[4]: in a file of lines",
            'x.json:30: rows[3]["a b"]: must not be empty',
            "x.json:50: rows[5]: occurs already (line 10)",
            "y.jsonl:7: id: must not be empty\n  hint: write one",
            "x.json:7: rows[1]: stands twice (line 50)\n  hint: remove one",
        ]
        assert asked == [[("rows", 3, "a b"), ("rows", 5), ("rows", 1), ("rows", 6), ("rows", 5)]]

    def test_lines_are_looked_up_only_if_there_is_something_to_report(self):
        assert Problems("x.json").finish(lambda _: pytest.fail("nothing to look up")) == []
        nowhere = Problems()
        nowhere.add(("rows", 3), "must not be empty", code="x-empty")
        assert [problem.location for problem in nowhere.finish()] == [Location("", None, "rows[3]")]

    def test_errors_come_first_and_warnings_do_not_count_as_errors(self):
        problems = Problems("x.json")
        problems.warn((), "odd", code="odd", line=1)
        for line in (9, 8, None):
            problems.add(Location("x.json", line), "wrong", code="wrong", kind=DatasetIntegrityError)
        found = problems.finish()
        assert [(p.severity, p.location.line) for p in found] == [
            ("error", None), ("error", 8), ("error", 9), ("warning", 1),
        ]  # fmt: skip
        assert (problems.errors, problems.warnings) == (3, 1)
        assert found[0].kind is DatasetIntegrityError

    def test_of_each_code_a_number_is_kept_and_the_rest_counted(self):
        problems = add_many(1200)
        problems.add(Location("x.json", 5000, "id"), "must not be empty", code="id-empty")
        problems.warn(Location("x.json", 1), "odd", code="role")
        found = problems.finish()
        assert [p.code for p in found[-3:]] == ["id-empty", "role", "role"]
        counting = found[-2]
        assert (str(counting), counting.number) == ("x.json: ... and 200 more errors like these (role)", 200)
        assert len(found) == 1000 + 1 + 1 + 1
        assert problems.errors == sum(p.number for p in found if p.severity == "error") == 1201

    def test_problems_found_elsewhere_keep_their_numbers(self):
        second = Problems()
        second.extend(add_many(1100).finish())
        assert (second.errors, sum(p.number for p in second.finish())) == (1100, 1100)
        with pytest.raises(DatasetSchemaError, match=r"\.\.\. and 1080 more; "):
            raise_for(second.finish())

    def test_parts_of_a_file_are_joined(self):
        whole, part = add_many(900), add_many(1100)  # of which 100 are not kept
        whole.merge(part)
        part.warn((), "odd", code="odd")  # what is added to the part later on is added to the whole
        assert (whole.errors, whole.warnings, len(whole.finish())) == (2000, 1, 1000 + 1 + 1)
