"""The main metric of a log is what the log itself is headed by: as inspect_ai says, to 1e-9.

`tests/data/inspect/headlines` holds logs that inspect_ai 0.3.285 made with scorers of every kind, and what its own
`headline_metric` says of each (`tests/inspect_headlines.py`).
"""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from commands import run
from finished_runs import score as score_file
from tests.inspect_files import header, sample, score, write_json

from helm_ext.formats import get_format
from helm_ext.formats.inspect_logs.log import find_headline

DATA = Path(__file__).resolve().parents[3] / "data" / "inspect" / "headlines"
EXPECTED = [json.loads(line) for line in (DATA / "expected.jsonl").read_text("utf-8").splitlines()]
NO_MEANS = {
    "grouped": "match/far", "grouped_by_groups": "match/all", "own_no_mean": "includes/half_way", "spread": "spread/std",
    "perplexity": "likely/perplexity_per_token",
}  # fmt: skip
"""Logs that are headed by no mean of their rows, to the score's name here."""


@pytest.mark.long
@pytest.mark.parametrize("said", EXPECTED, ids=lambda said: said["file"])
def test_the_main_metric_is_the_headline(said: dict[str, Any], tmp_path: Path) -> None:
    run = score_file(tmp_path, DATA / said["file"])
    main = json.loads((run.folder / "run_spec.json").read_bytes())["scenario_spec"]["args"]["main_metric"]
    task = said["file"].removesuffix(".eval")
    assert main.startswith(f"inspect_{NO_MEANS.get(task, said['score'])}")
    stats = {one["name"]["name"]: one for one in json.loads((run.folder / "stats.json").read_bytes())}
    assert (main in stats) != math.isnan(said["value"])
    if main in stats:
        assert stats[main]["mean"] == pytest.approx(said["value"], abs=1e-9)
        assert (f"{main}@ci_low" in stats) == (task not in NO_MEANS)
        low, high = (stats.get(f"{main}@ci_{end}", stats[main])["mean"] for end in ("low", "high"))
        assert 0 <= low <= high <= 1 or task in ("perplexity", "objects_declared")
    assert (stats[f"{main}_unscored"]["mean"] if said["unscored"] else 0) == said["unscored"]
    assert f"{main}_unscored" in stats or not said["unscored"]
    if task != "judged_alone":  # no sample there has a target
        assert f"{main}_differs" in stats or task in NO_MEANS or task == "judged_unread"
        assert {"exact_match", "normalized_exact_match"} & stats.keys()


FIRST, SECOND = score("match", accuracy=0.5, stderr=0.1), score("depth", "sized", "max", mean=0.7, std=0.2)
TWICE = score("match", None, "max", accuracy=0.9)


@pytest.mark.parametrize(("declared", "expected"), [
    (None, (0, "accuracy")), ({}, (0, "accuracy")), ({"metric": "std"}, (1, "std")),
    ({"metric": "mean", "scorer": None}, (1, "mean")), ({"reducer": "max"}, (1, "mean")),
    ({"reducer": "max", "scorer": "match"}, (2, "accuracy")), ({"scorer": "sized", "score": "depth"}, (1, "mean")),
    ({"scorer": "sized", "score": "width", "metric": "std"}, (0, "accuracy")),  # abandoned whole
    ({"scorer": "match", "metric": "std"}, (0, "accuracy")), ({"metric": {"name": "std"}}, (0, "accuracy")),
])  # fmt: skip
def test_a_declaration_narrows_field_by_field_or_is_abandoned(declared: Any, expected: tuple[int, str]) -> None:
    """By hand, from `resolve_headline_metric` of inspect_ai."""
    scores = [FIRST, SECOND, TWICE]
    for given in ((declared, None), (None, declared)):
        assert find_headline(scores, *given)[:2] == expected


def test_what_was_resolved_when_the_log_was_scored_goes_before_what_the_task_declared() -> None:
    assert find_headline([FIRST, SECOND], {"metric": "stderr"}, {"metric": "std"})[:2] == (0, "stderr")


@pytest.mark.parametrize("scores", [[], [{"name": "match", "metrics": {}}], [{"name": "match"}]])
def test_a_log_that_reports_nothing_has_no_headline(scores: list[Any]) -> None:
    assert find_headline(scores, None, None) is None


def load(folder: Path, results: dict[str, Any], values: str = "CICC", **arguments: Any) -> Any:
    samples = [sample(number, value=value) for number, value in enumerate(values, 1)]
    return get_format("inspect").load(path=str(write_json(folder, samples, {**header(), **results})), **arguments)


def test_without_results_the_first_score_of_the_samples_is_the_main_metric(tmp_path: Path) -> None:
    evalset = load(tmp_path, {"results": {"scores": []}})
    assert evalset.scoring.main_metric == "inspect_match"
    assert evalset.source.scores["match"].mean is None


def test_an_accuracy_that_is_not_the_mean_of_the_rows_is_shown_as_it_is_reported(tmp_path: Path) -> None:
    evalset = load(tmp_path, {"results": {"scores": [score("match", accuracy=0.25)]}})
    found = evalset.source.scores["match/accuracy"]
    assert (evalset.scoring.main_metric, found.mean) == ("inspect_match/accuracy", 0.25)
    assert found.no_mean == "the mean of the rows' scores is 0.75"
    said = run("score", tmp_path / "log.json", "-o", tmp_path).stderr
    assert "warning: " in said
    assert "the accuracy of match is 0.25 in the log, and the mean of the rows' scores is 0.75" in said
    # Of a log that holds a part of its samples, the part's mean is the score.
    part = {"results": {"completed_samples": 9, "scores": [score("match", accuracy=0.25)]}}
    assert load(tmp_path, part).scoring.main_metric == "inspect_match"


def test_a_metric_that_is_not_known_is_a_mean_if_it_comes_to_it_and_rows_differ(tmp_path: Path) -> None:
    def main(values: str, **metrics: float) -> str:
        return load(tmp_path, {"results": {"scores": [score("match", **metrics)]}}, values).scoring.main_metric

    assert main("CICC", solved=0.75) == "inspect_match"
    assert main("CICC", solved=0.7) == "inspect_match/solved"
    assert main("CCCC", solved=1.0) == "inspect_match/solved"  # as a maximum would
    assert main("IIII", stderr=0.0) == main("CICC", stderr=0.75) == "inspect_match/stderr"


def test_any_score_of_the_log_may_be_named_and_which_are_less_the_better(tmp_path: Path) -> None:
    results = {"results": {"scores": [score("match", accuracy=0.75, stderr=0.25, perplexity_per_token=3.5)]}}
    mains = {given: load(tmp_path, results, main_metric=given).scoring.main_metric
             for given in ("match/stderr", "inspect_match/stderr", "match", "exact_match")}  # fmt: skip
    assert list(mains.values()) == ["inspect_match/stderr", "inspect_match/stderr", "inspect_match", "exact_match"]
    found = load(tmp_path, results).source.scores
    assert found["match/stderr"].lower_is_better is None
    assert found["match/perplexity_per_token"].lower_is_better is True


def test_where_the_headline_is_no_mean_of_rows_these_are_compared_by_our_reading_and_it_is_said(tmp_path: Path) -> None:
    from helm_ext.analysis.run_scores import read_scores

    scores = read_scores(score_file(tmp_path, DATA / "spread.eval"))
    assert scores.metric == "normalized_exact_match"
    (note,) = scores.notes
    assert (
        "inspect_spread/std is 0.5164 as the file reports it (inspect_ai makes it of all rows at once, by std)" in note
    )
    judged = read_scores(score_file(tmp_path, DATA / "judged.eval"))
    assert (judged.metric, judged.notes, judged.left_out) == ("inspect_model_graded_qa", [], 2)


def test_a_record_of_every_eval_ever_that_lacks_the_headline_says_so(tmp_path: Path) -> None:
    from helm_ext.analysis.export.every_eval_ever import write_every_eval_ever

    run, judged = (score_file(tmp_path / name, DATA / f"{name}.eval") for name in ("spread", "judged"))
    (written,) = write_every_eval_ever([run], tmp_path / "out")
    assert any("inspect_spread/std, is no score of rows and not in the record" in note for note in written.notes)
    (written,) = write_every_eval_ever([judged], tmp_path / "out")
    assert not any("main metric" in note for note in written.notes)
