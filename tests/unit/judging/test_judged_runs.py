"""Judgements on the rows of a file: read, bound, scored, kept, and counted where they are no score."""

import json
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import finished_runs
import inspect_files
import pytest
import request_states_files as files
from helm.benchmark.executor import ExecutionSpec
from helm.benchmark.run_spec_factory import construct_run_specs
from helm.benchmark.runner import Runner
from helm.common.authentication import Authentication
from helm.common.object_spec import parse_object_spec
from typer.testing import CliRunner

from helm_ext import plugin  # noqa: F401 - registers the run entries
from helm_ext.analysis import find_runs
from helm_ext.analysis.runs import RunFiles
from helm_ext.cli import app

GPT, CLAUDE = "openai/gpt", "claude"


def judged(by: str, value: float | None, status: str = "ok", **more: Any) -> dict[str, Any]:
    given = {"by": by, "kind": "model", "criterion": "correct", "value": value, "status": status, **more}
    return {key: one for key, one in given.items() if one is not None}


def rows() -> list[dict[str, Any]]:
    """Six answers of two judges: the jury says right, wrong, nothing, right (both say so), a tie, nothing."""
    said = [
        [judged(GPT, 1.0, reply="GRADE: C"), judged(CLAUDE, 1.0)],
        [judged(GPT, 0.0), judged(CLAUDE, 0.0), judged("Ann", 1.0, kind="human")],
        [judged(GPT, 1.0), judged(CLAUDE, None, "unparsed", reply="Hm.")],
        [judged(GPT, None, "refused"), judged(GPT, 1.0), judged(CLAUDE, 1.0)],
        [judged(GPT, 1.0), judged(CLAUDE, 0.0)],
        [judged(GPT, None, "failed"), judged(CLAUDE, 1.0, judged_sha256="0" * 64)],
    ]
    states = []
    for number, judgements in enumerate(said):
        state = files.answered(
            files.state(f"Question {number}?", "mercury", id=f"r{number}"), f"<think>x</think> {number}"
        )
        states.append({**state, "judgements": judgements})
    return states


def stats_of(run: RunFiles) -> dict[str, float]:
    named = {stat["name"]["name"]: stat for stat in run.stats if stat["name"].get("split") == "test"}
    return {name: stat["mean"] for name, stat in named.items() if name.startswith("judge_")}


EXPECTED = {
    "judge_correct": 2.5 / 4,
    f"judge_correct[{GPT}]": 4 / 5,
    f"judge_correct[{CLAUDE}]": 2 / 4,
    "judge_correct_unscored": 2,
    f"judge_correct[{GPT}]_failed": 1,
    f"judge_correct[{CLAUDE}]_unparsed": 1,
    f"judge_correct[{CLAUDE}]_stale": 1,
    "judge_correct_undesigned": 1,
}
"""Counted by hand: gpt's refusal was followed by a verdict; Ann does not say how her row was drawn."""


def without_ends(stats: dict[str, float]) -> dict[str, float]:
    return {name: value for name, value in stats.items() if "@" not in name}


def test_a_run_says_what_judges_said_and_is_scored_again_alike(tmp_path: Path) -> None:
    path = files.write(tmp_path / "judged.json", rows())
    run = finished_runs.score(tmp_path, path)
    assert without_ends(stats_of(run)) == pytest.approx(EXPECTED)
    assert {f"judge_correct@ci_{end}" for end in ("low", "high")} < stats_of(run).keys()
    again = finished_runs.score(tmp_path / "again", run.folder / "scenario_state.json")
    assert stats_of(again) == stats_of(run)
    found = [
        (row.instance_id, {one.by: one.value for one in row.list_said("correct") if one.status == "ok"})
        for row in run.predictions()
    ]
    assert found[1] == ("r1", {GPT: 0.0, CLAUDE: 0.0, "Ann": 1.0})
    assert found[5] == ("r5", {})


def test_the_object_for_programs_counts_the_rows_with_a_verdict(tmp_path: Path) -> None:
    path = files.write(tmp_path / "judged.json", rows())
    done = CliRunner().invoke(app, ["score", str(path), "--model", "m", "-o", str(tmp_path / "out"), "--json"])
    (said,) = [json.loads(line) for line in done.output.splitlines() if line.startswith("{")]
    counts = {
        name: said["metrics"][name]["count"] for name in ("judge_correct", f"judge_correct[{GPT}]", "exact_match")
    }
    assert counts == {"judge_correct": 4, f"judge_correct[{GPT}]": 5, "exact_match": 6}
    assert said["metrics"]["judge_correct_unscored"]["mean"] == 2


def score_large(folder: Path) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("helm_ext.formats.request_states.loading.KEPT_ROWS", 2)
        finished_runs.score(folder, files.write(folder / "judged.jsonl", rows()))


def run_with_helms_runner(folder: Path) -> None:
    path = files.write(folder / "judged.json", rows())
    (spec,) = construct_run_specs(parse_object_spec(f"adapter_spec:path={path},model=recorded/m"))
    Runner(
        execution_spec=ExecutionSpec(auth=Authentication(""), url=None, local_path=str(folder), parallelism=1),
        output_path=str(folder / "out"), suite="s", skip_instances=False, cache_instances=False,
        cache_instances_only=False, skip_completed_runs=False, exit_on_error=True,
    ).run_one(spec)  # fmt: skip


def merge_shards(folder: Path) -> None:
    for shard, part in (("a", rows()[:2]), ("b", rows()[2:])):
        finished_runs.score(folder / "shards", files.write(folder / f"{shard}.json", part, name="shard"))
    runs = [str(run.folder) for run in find_runs([folder / "shards"])[0]]
    done = CliRunner().invoke(app, ["merge", *runs, "--name", "whole", "-o", str(folder / "out"), "--into", "s"])
    assert done.exit_code == 0, (done.output, str(done.exception))


def score_without_gold(folder: Path) -> None:
    states = rows()
    for state in states:
        state["instance"]["references"] = []
    scoring = {"metrics": [], "main_metric": "judge_correct"}
    finished_runs.score(folder, files.write(folder / "judged.json", states, scoring=scoring))


@pytest.mark.parametrize("make", [score_large, run_with_helms_runner, merge_shards, score_without_gold])
def test_every_way_to_a_run_says_the_same(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path)
    (run,) = find_runs([tmp_path / "out"])[0]
    assert without_ends(stats_of(run)) == pytest.approx(EXPECTED)
    assert [len(row.judgements) for row in run.predictions()] == [2, 3, 2, 3, 2, 2]


def test_a_converted_file_keeps_them_and_a_run_without_any_knows_nothing_of_them(tmp_path: Path) -> None:
    path = files.write(tmp_path / "judged.json", rows())
    run = finished_runs.score(tmp_path, path)
    done = CliRunner().invoke(app, ["convert", str(path), str(tmp_path / "converted.jsonl")])
    assert done.exit_code == 0, (done.output, str(done.exception))
    assert stats_of(finished_runs.score(tmp_path / "again", tmp_path / "converted.jsonl")) == stats_of(run)
    states = rows()
    for state in states:
        del state["judgements"]
    plain = finished_runs.score(tmp_path / "plain", files.write(tmp_path / "plain.json", states))
    assert not [
        file
        for file in plain.folder.iterdir()
        if any(word in file.read_bytes() for word in (b"judge_", b'judged"', b'judgements"'))
    ]


def test_one_judged_run_in_four_formats_says_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As an inspect log, format 1, CSV, JSON Lines, Every Eval Ever and an edited one: to the last bit, without a net."""

    def refuse(*_: Any) -> None:
        raise AssertionError("the network was asked")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    said = [("C", "Right. GRADE: C"), ("I", "GRADE: I"), ("C", "GRADE: C"), (float("nan"), "Hm."), ("I", "GRADE: I")]
    samples = [inspect_judged(number, *one) for number, one in enumerate(said)]
    head = inspect_files.with_eval(scorers=[{"name": "model_graded_qa", "options": {"model": "judge"}}])
    log = finished_runs.score(tmp_path / "log", inspect_files.write_json(tmp_path, samples, head))
    expected = {name: value for name, value in stats_of(log).items() if name.startswith("judge_")}
    assert without_ends(expected) == {
        "judge_model_graded_qa": 0.5, "judge_model_graded_qa_unparsed": 1, "judge_model_graded_qa_unscored": 1,
    }  # fmt: skip
    assert stats_of(finished_runs.score(tmp_path / "own", log.folder / "scenario_state.json")) == expected
    for to, name in (("csv", "rows.csv"), ("jsonl", "rows.jsonl"), ("every_eval_ever", "records")):
        out = tmp_path / name
        done = CliRunner().invoke(app, ["export", str(log.folder), "--to", to, "--out", str(out)])
        assert done.exit_code == 0, (done.output, str(done.exception))
        columns = {"question": "input", "gold": "gold", "output": "completion", "judgements": "judgements"}
        again = finished_runs.score(
            tmp_path / f"{name}.again", out if out.is_file() else next(out.rglob("*-*.json")),
            **(columns if out.is_file() else {}),
        )  # fmt: skip
        assert stats_of(again) == expected, to
        assert [one.reply for row in again.predictions() for one in row.said if one.status == "ok"] == [
            reply for value, reply in said if value in ("C", "I")
        ]  # fmt: skip


def test_a_verdict_on_an_answer_that_is_not_there_is_counted_after_an_export_too(tmp_path: Path) -> None:
    failed = {**files.state("?", "x", id="f"), "request": {"result": {"success": False, "error": "no route"}}}
    states = [*rows()[:2], {**failed, "judgements": [judged(GPT, 1.0)]}]
    run = finished_runs.score(tmp_path, files.write(tmp_path / "f.json", states), missing="skip")
    out = tmp_path / "records"
    assert (
        CliRunner().invoke(app, ["export", str(run.folder), "--to", "every_eval_ever", "--out", str(out)]).exit_code
        == 0
    )
    again = finished_runs.score(tmp_path / "again", next(out.rglob("*-*.json")), missing="skip")
    assert [stats_of(one)[f"judge_correct[{GPT}]_stale"] for one in (run, again)] == [1, 1]


def test_a_record_names_the_judges_as_its_schema_demands(tmp_path: Path) -> None:
    """eval.schema.json of every_eval_ever 0.3.0: `llm_scoring` needs `judges`, each with a whole `model_info`."""
    run = finished_runs.score(tmp_path, files.write(tmp_path / "judged.json", rows()))
    done = CliRunner().invoke(
        app, ["export", str(run.folder), "--to", "every_eval_ever", "--out", str(tmp_path / "eee")]
    )
    assert done.exit_code == 0, (done.output, str(done.exception))
    record = json.loads(next((tmp_path / "eee").rglob("*-*.json")).read_bytes())
    configs = {one["metric_config"]["metric_id"]: one["metric_config"] for one in record["evaluation_results"]}
    scoring = configs["judge_correct"]["llm_scoring"]
    assert scoring.keys() == {"judges", "input_prompt", "aggregation_method"}
    assert [judge["model_info"] for judge in scoring["judges"]] == [
        {"name": by, "id": by, "additional_details": {"deployment_type": "unknown", "model_availability": "unknown"}}
        for by in (CLAUDE, GPT)
    ]
    assert [judge["model_info"]["id"] for judge in configs[f"judge_correct[{GPT}]"]["llm_scoring"]["judges"]] == [GPT]
    assert "llm_scoring" not in configs["exact_match"]


def inspect_judged(number: int, value: Any, reply: str) -> dict[str, Any]:
    explanation = reply if "GRADE" in reply else f"Grade not found in model output: {reply}"
    score = {"value": value, "answer": "Anda", "explanation": explanation, "history": []}
    return {**inspect_files.sample(number), "scores": {"model_graded_qa": score}}


def test_what_was_changed_in_a_run_is_stale(tmp_path: Path) -> None:
    run = finished_runs.score(tmp_path, files.write(tmp_path / "judged.json", rows()))
    written = json.loads((run.folder / "scenario_state.json").read_bytes())
    states = {state["instance"]["id"]: state for state in written["request_states"]}
    states["r0"]["result"]["completions"][0]["text"] += "!"
    states["r1"]["instance"]["extra_data"]["helm_ext"]["judgements"][0]["reply"] = "GRADE: I"
    states["r4"]["instance"]["input"]["text"] += " "
    path = tmp_path / "edited.json"
    path.write_text(json.dumps(written))
    stats = stats_of(finished_runs.score(tmp_path / "again", path))
    assert (stats[f"judge_correct[{GPT}]_stale"], stats[f"judge_correct[{CLAUDE}]_stale"]) == (3, 3)


@pytest.mark.parametrize(("change", "message"), [
    ({"criterium": 1}, "request_states[1].judgements[0].criterium: unknown key\n  hint: did you mean 'criterion'?"),
    ({"value": None}, "request_states[1].judgements[0].value: null with status ok"),
    ({"scale": [0, 0.5, 1]}, 'request_states[1].judgements[0].scale: [0.0, 0.5, 1.0], where "correct" was judged on [0.0, 1.0]'),
])  # fmt: skip
def test_a_wrong_judgement_is_an_error_with_its_place(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    states = rows()
    states[1]["judgements"][0] |= change
    found = files.errors(files.write(tmp_path / "judged.json", states))
    assert len(found) == 1
    assert message in found[0]


def test_rows_that_cannot_be_scored_here_are_judged_all_the_same(tmp_path: Path) -> None:
    """As a log's own score is: the row has no gold, and a judge's verdict."""
    samples = [inspect_judged(number, "C" if number else "I", "GRADE: C") for number in range(4)]
    samples[0]["scores"]["model_graded_qa"]["explanation"] = "GRADE: I"
    samples[0]["target"] = ""
    run = finished_runs.score(tmp_path, inspect_files.write_json(tmp_path, samples, inspect_files.with_eval()))
    stats = {stat["name"]["name"]: stat for stat in run.stats}
    assert (stats["num_unscored"]["mean"], stats["exact_match"]["count"]) == (1, 1)
    assert (stats["judge_model_graded_qa"]["mean"], stats["judge_model_graded_qa"]["count"]) == (3 / 4, 4)
    assert stats["inspect_model_graded_qa"]["mean"] == 3 / 4
    assert "judge_model_graded_qa_unscored" not in stats
    again = finished_runs.score(tmp_path / "again", run.folder / "scenario_state.json")
    assert stats_of(again) == stats_of(run)
