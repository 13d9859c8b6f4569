"""`helm-ext score` in a pipeline: several files, thresholds, one JSON object a run, exit codes."""

import json

import pytest
import request_states_files
from commands import run
from request_states_files import answered, state


def write(path, wrong):
    states = [answered(state(f"{n}?", "yes", id=n), "no" if n < wrong else "yes") for n in range(10)]
    request_states_files.write(path, states)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    outputs = tmp_path / "outputs"
    outputs.mkdir()
    write(outputs / "one.json", 1)
    write(outputs / "two.json", 5)
    (outputs / "notes.txt").write_text("no dataset")
    return tmp_path


def score(*arguments, code=0):
    return run("score", *arguments, code=code)


def test_a_folder_is_scored_file_by_file(folder):
    done = score("outputs", "--model", "m", "--json")
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [one["metrics"]["normalized_exact_match"]["mean"] for one in found] == [0.9, 0.5]
    assert [one["counts"]["scored"] for one in found] == [10, 10]
    low, high = (found[0]["metrics"]["normalized_exact_match"][end] for end in ("low", "high"))
    assert low == pytest.approx(0.5958, abs=1e-4)  # Wilson's of 9 of 10
    assert high == pytest.approx(0.9821, abs=1e-4)


@pytest.mark.parametrize(("threshold", "code"), [
    ("main=0.5", 0), ("main=0.6", 1), ("f1_score=0.5", 0), ("exact_match=0.91", 1), ("exact_mtch=0", 1),
    # Wilson's of 5 of 10: 0.2366 to 0.7634; 9 of 10 is above both
    ("main@ci_low=0.23", 0), ("main@ci_low=0.24", 1), ("main@ci_high=0.76", 0), ("main@ci_high=0.77", 1),
    ("main@ci_lo=0.2", 1),
])  # fmt: skip
def test_a_run_below_its_threshold_fails(folder, threshold, code):
    done = score("outputs", "--model", "m", "--fail-under", threshold, code=code)
    assert ("below: " in done.stderr) == (code == 1)


def test_one_wrong_file_does_not_keep_others_from_being_scored(folder):
    (folder / "outputs" / "broken.json").write_text('{"adapter_spec": {}, "request_states": [}')
    done = score("outputs", "--model", "m", "--json", code=1)
    assert len(done.stdout.splitlines()) == 2
    assert "broken.json:1" in done.stderr


def test_warnings_can_be_errors(folder):
    score("outputs/one.json", "--model", "m", "--warnings-as-errors")
    content = json.loads((folder / "outputs" / "one.json").read_text())
    content["request_states"][1]["instance"]["id"] = 0
    (folder / "outputs" / "same.json").write_text(json.dumps(content))
    done = score("outputs/same.json", "--model", "m", "--warnings-as-errors", code=1)
    assert "1 row has no id, or that of an earlier row" in done.stderr


def test_means_count_the_rows_that_they_are_of(folder):
    """Of two splits the leaderboard shows `test`: 10 of 20 rows, 5 of each level; a cap leaves fewer."""
    write(folder / "splits.json", 5)
    state = json.loads((folder / "splits.json").read_text())
    rows = state["request_states"]
    for n, row in enumerate(rows):
        row["instance"] |= {"split": "valid" if n < 4 else "test", "level": "ab"[n % 2]}
    (folder / "splits.json").write_text(json.dumps(state))
    found = json.loads(score("splits.json", "--model", "m", "--json", "--arg", "by=level").stdout)
    main = found["metrics"]["normalized_exact_match"]
    rows = [found["counts"][name] for name in ("read", "scored", "other_splits")]
    assert (rows, main["count"], main["mean"]) == ([10, 6, 4], 6, pytest.approx(5 / 6))
    assert found["metrics"]["normalized_exact_match@level=a"]["count"] == 3
    capped = score("outputs/one.json", "--model", "m", "--json", "--arg", "max_eval_instances=4")
    assert json.loads(capped.stdout)["metrics"]["normalized_exact_match"]["count"] == 4


def test_a_run_is_one_line_whatever_a_name_holds(folder):
    state = json.loads((folder / "outputs/one.json").read_text())
    (folder / "named.json").write_text(json.dumps({**state, "name": "a\u2028b\u0085c"}))
    done = score("named.json", "--model", "m", "--json")
    (line,) = done.stdout.splitlines()
    assert json.loads(line)["dataset"] == "a\u2028b\u0085c"


def test_a_least_value_says_nothing_where_lower_is_better(folder):
    write(folder / "numbers.json", 0)
    text = (folder / "numbers.json").read_text().replace("yes", "7")
    (folder / "numbers.json").write_text(text)
    metric = ("--arg", "main_metric=absolute_value_difference")
    done = score("numbers.json", "--model", "m", *metric, "--fail-under", "main=0", code=1)
    assert "a lower absolute_value_difference is better" in done.stderr


def test_what_helm_cannot_load_stops_one_file_only(folder):
    """A package of HELM's that is not there, or a file that is not on the network."""
    done = score("outputs", "--model", "m", "--arg", "data_augmentation=canonical", "--json", code=1)
    assert done.stdout == ""
    assert done.stderr.count("cannot be run") == 2


def test_a_run_that_is_refused_takes_no_room_from_the_next(folder, monkeypatch):
    """Of the datasets that wait for their runs, only the first may be large."""
    monkeypatch.setattr("helm_ext.formats.planned.MAX_WAITING", 5)
    done = score("outputs/one.json", "outputs/one.json", "outputs/two.json", "--model", "m", "--json", code=1)
    assert "two runs would have one name" in done.stderr
    assert len(done.stdout.splitlines()) == 2
