"""`-m` takes rows of recorded files away, as in HELM; it is said wherever the score is."""

import json
import logging
from dataclasses import replace
from pathlib import Path

import pytest
import request_states_files
from helm.benchmark.run_spec_factory import construct_run_specs
from helm.benchmark.runner import Runner
from helm.common.object_spec import parse_object_spec

import helm_ext.running
from helm_ext import plugin  # noqa: F401 - registers the run entries
from helm_ext.analysis import read_run
from helm_ext.analysis.report.gathering import gather
from helm_ext.cli import score
from helm_ext.cli.run_scores import FileFacts, ScoredRun
from helm_ext.cli.session import Settings
from helm_ext.running import StreamingRunner, StreamingSummarizer
from helm_ext.scoring.completeness import CappedRowsMetric

ROWS = 12


@pytest.fixture
def file(tmp_path):
    """Twelve recorded rows in a file that itself says three."""
    states = [
        request_states_files.answered(request_states_files.state(f"{at}?", str(at)), str(at)) for at in range(ROWS)
    ]
    return request_states_files.write(tmp_path / "numbers.json", states, {"max_eval_instances": 3, "max_tokens": 5})


def run(tmp_path, file, most, model="m", runner=StreamingRunner):
    (run_spec,) = construct_run_specs(parse_object_spec(f"adapter_spec:path={file},model=recorded/{model}"))
    if most is not None:  # as helm-run does
        run_spec = replace(run_spec, adapter_spec=replace(run_spec.adapter_spec, max_eval_instances=most))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(helm_ext.running, "StreamingRunner", runner, raising=False)
        return run_spec, score.run(run_spec, Settings(tmp_path / "out", tmp_path, "s"))


def stats_of(folder: Path):
    return {stat["name"]["name"]: stat.get("mean") for stat in json.loads((folder / "stats.json").read_bytes())
            if stat["name"].get("split") == "test"}  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("runner", [StreamingRunner, Runner])
@pytest.mark.parametrize(("most", "evaluated"), [(None, 12), (1_000_000, 12), (12, 12), (5, 5)])
def test_a_cap_is_counted_where_it_bites(tmp_path, file, caplog, runner, most, evaluated):
    with caplog.at_level(logging.INFO):
        run_spec, folder = run(tmp_path, file, most, runner=runner)
    stats = stats_of(folder)
    assert stats["num_instances"] == evaluated
    said = f"{evaluated} of 12 rows: -m {most}"
    if evaluated == ROWS:
        assert "num_capped" not in stats
        assert said not in caplog.text
    else:
        assert stats["num_capped"] == ROWS - evaluated
        assert [said.name for said in CappedRowsMetric({}).get_metadata()] == ["num_capped"]
        assert said in caplog.text
        assert "capped" not in run_spec.name


@pytest.mark.long
def test_a_cap_stands_in_the_titles_of_score_report_and_leaderboard(tmp_path, file):
    _, folder = run(tmp_path, file, 5)
    scored = ScoredRun(folder, FileFacts("numbers", (), {}))
    assert scored.make_table().title.endswith("(5 of 12 rows)")
    assert scored.to_json()["counts"]["capped"] == 7
    (dataset,), _ = gather([read_run(folder)])
    assert dataset.title.endswith("(5 of 12 rows)")
    title, rows = titles_and_rows(tmp_path)
    assert title.endswith("(5 of 12 rows)")
    assert rows == ["recorded/m"]
    _, whole = run(tmp_path, file, None, model="whole")
    (dataset,), _ = gather([read_run(folder), read_run(whole)])
    assert sorted(run.scores.model for run in dataset.runs) == ["m (5 of 12 rows)", "whole"]
    title, rows = titles_and_rows(tmp_path)
    assert "5 of 12" not in title
    assert rows == ["recorded/m (5 of 12 rows)", "recorded/whole"]


@pytest.mark.long
def test_answers_around_the_gold_are_warned_of_by_score_and_not_behind_a_models_name(tmp_path):
    """Three of twelve rows say "It is 3." where 3 is right."""
    said = [f"It is {at}." if at in (3, 5, 7) else str(at) for at in range(ROWS)]
    states = [
        request_states_files.answered(request_states_files.state(f"{at}?", str(at)), said[at]) for at in range(12)
    ]
    file = request_states_files.write(tmp_path / "numbers.json", states, {"max_tokens": 5})
    _, folder = run(tmp_path, file, None)
    scored = ScoredRun(folder, FileFacts("numbers", (), {}))
    assert scored.to_json()["counts"]["wrong_with_gold"] == 3
    what = "3 of 12 rows score 0 though the answer holds the gold"
    said = f"warning: m: {what}, by normalized_exact_match: extract="
    assert [one for one in scored.list_warnings() if one.startswith(said)]
    assert gather([read_run(folder)])[0][0].runs[0].gold_inside == 3
    assert titles_and_rows(tmp_path)[1] == ["recorded/m"]


def titles_and_rows(tmp_path):
    """Return the title of the dataset, and the names in the first column of its table."""
    summarizer = StreamingSummarizer(
        release=None, suites=None, suite="s", schema_path=None, output_path=str(tmp_path / "out"), verbose=False,
        num_threads=1, allow_unknown_models=True,
    )  # fmt: skip
    summarizer.run_pipeline(skip_completed=False)
    folder = tmp_path / "out" / "runs" / "s"
    schema = json.loads((folder / "schema.json").read_bytes())
    (name,) = [one["name"] for one in schema["run_groups"] if one["name"].startswith("numbers")]
    (title,) = [one["display_name"] for one in schema["run_groups"] if one["name"] == name]
    tables = json.loads((folder / "groups" / f"{name}.json").read_bytes())
    return title, [row[0]["value"] for row in tables[0]["rows"]]
