"""Rows that were answered several times: what a run writes of it, and what is made of that. Numbers are by hand."""

import json
import math

import inspect_files
import pytest
import request_states_files as files
import run_entries
from run_entries import MODEL, run, value

from helm_ext.analysis.run_scores import read_scores
from helm_ext.analysis.runs import RunFiles
from helm_ext.formats import get_format

METRIC = "normalized_exact_match"
RIGHT = (4, 2, 0, 1)
"""Of four answers to each row."""


def write(folder, right=RIGHT, answers=4):
    rows = []
    for number, count in enumerate(right):
        row = files.state(f"Which metal is number {number}?", "mercury", id=f"r{number}", split="test")
        texts = ["mercury"] * count + ["lead"] * (answers - count)
        row["request"] = {"result": {"success": True, "completions": [{"text": text} for text in texts]}}
        rows.append(row)
    return files.write(folder / "metals.json", rows)


def these_rows(folder, metric=METRIC):
    return value(folder, f"{metric}@these_rows_low"), value(folder, f"{metric}@these_rows_high")


@pytest.mark.long
def test_the_answers_noise_is_written_of_each_row_and_adds_up(tmp_path, monkeypatch):
    """Variances of the rows' means: p (1 - p) / 3. Their sum is 1/12 + 1/16, Satterthwaite's freedom 5.88."""
    from scipy.special import stdtrit

    monkeypatch.chdir(tmp_path)
    write(tmp_path)
    folder = run(tmp_path, "adapter_spec", path="metals.json", completions="mean")
    rows = RunFiles(folder).row_stats
    said = {name: rows.get((f"r{n}", "", 0))[f"{METRIC}@{name}"]["mean"] for n in (1,) for name in ("answers", "noise")}
    assert said == {"answers": 4, "noise": pytest.approx(1 / 12)}
    freedom = (7 / 48) ** 2 / ((1 / 144 + 1 / 256) / 3)
    half = stdtrit(freedom, 0.975) * math.sqrt(7 / 48) / 4
    low, high = these_rows(folder)
    assert (low, high) == (pytest.approx(7 / 16 - half), pytest.approx(7 / 16 + half))
    measured = read_scores(RunFiles(folder)).measure_these()
    assert (measured.low, measured.high) == (pytest.approx(low), pytest.approx(high))
    again = run(tmp_path, "adapter_spec", path=str(folder / "scenario_state.json"), suite="again")
    assert these_rows(again) == (low, high)


@pytest.mark.long
@pytest.mark.parametrize(("right", "answers", "completions"), [
    ((1, 0, 1, 1), 1, "mean"), (RIGHT, 4, "pass_at_4"), (RIGHT, 4, "max"), ((4, 0, 4, 0), 4, "mean"),
])  # fmt: skip
def test_what_the_answers_do_not_tell_is_not_known(tmp_path, monkeypatch, right, answers, completions):
    """One answer each; as many as k; a rule whose noise nobody knows; answers that always agree."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path, right, answers)
    folder = run(tmp_path, "adapter_spec", path="metals.json", completions=completions)
    assert these_rows(folder) == (None, None)
    measured = read_scores(RunFiles(folder)).measure_these()
    assert measured is None if answers == 1 else measured.method == "none"


def test_a_run_of_single_answers_says_nothing_of_repeats(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path, (1, 0, 1, 1), 1)
    folder = run(tmp_path, "adapter_spec", path="metals.json")
    written = (folder / "stats.json").read_text() + (folder / "per_instance_stats.json").read_text()
    assert "@" not in written.replace("@ci_low", "").replace("@ci_high", "")


@pytest.mark.long
def test_epochs_of_a_log_say_it_of_its_own_score(tmp_path, monkeypatch):
    """Two samples in two epochs: right and wrong (variance 1/4), always right. Mean 3/4, a freedom of 1."""
    monkeypatch.chdir(tmp_path)
    samples = [inspect_files.sample(id, epoch, value="I" if (id, epoch) == (1, 2) else "C")
               for id in (1, 2) for epoch in (1, 2)]  # fmt: skip
    head = inspect_files.header(results={"scores": [inspect_files.score("match", accuracy=0.75)]})
    inspect_files.write_json(tmp_path, samples, head)
    folder = run(tmp_path, "inspect", path="log.json")
    assert these_rows(folder, "inspect_match") == (0.0, 1.0)  # 0.75 +/- 12.7 * 0.25, within 0 and 1
    row = RunFiles(folder).row_stats.get(("1", "", 0))
    assert row["inspect_match@noise"]["mean"] == pytest.approx(0.25)
    get_format("inspect").load(path="log.json")
    again = run(tmp_path, "adapter_spec", path=str(folder / "scenario_state.json"), suite="again")
    assert these_rows(again, "inspect_match") == (0.0, 1.0)


def test_trials_are_drawn_as_a_whole(tmp_path, monkeypatch):
    """Two trials of four rows, 3 and 2 right: 5/8 +/- 12.706 / 8, which is more than all that can be."""
    monkeypatch.chdir(tmp_path)
    words = ("amber", "basin", "cedar", "delta")
    rows = [files.state(f"Which word is number {n}?", word, id=f"r{n}", split="test") for n, word in enumerate(words)]
    shots = [files.state(f"Example {n}", "x", id=f"t{n}", split="train") for n in range(4)]
    files.write(tmp_path / "words.json", [*rows, *shots], {"max_train_instances": 1, "num_train_trials": 2})
    run_entries.Saying.answers = {f"number {n}": [word if n < 2 else "x"] for n, word in enumerate(words)}
    folder = run(tmp_path, "adapter_spec", path="words.json", model=MODEL)
    assert these_rows(folder) == (None, None)  # both trials have the mean 1/2
    # The third row right in the first trial alone, by hand
    path = folder / "per_instance_stats.json"
    found = json.loads(path.read_text())
    for one in found:
        for stat in one["stats"]:
            if one["instance_id"] == "r2" and one["train_trial_index"] == 0 and stat["name"]["name"] == METRIC:
                stat.update(sum=1.0, mean=1.0, min=1.0, max=1.0)
    path.write_text(json.dumps(found))
    measured = read_scores(RunFiles(folder)).measure_these()
    assert (measured.method, measured.mean) == ("trials", 0.625)
    assert measured.high == 1.0
    assert measured.low == 0.0
