"""Corrected scores where people look: score, its JSON, check, compare, report; raw and corrected side by side."""

import csv
import json
import math
import re
from pathlib import Path

import finished_runs
import pytest
import request_states_files as files
from typer.testing import CliRunner

import helm_ext
from helm_ext.analysis import find_runs, read_suite
from helm_ext.analysis.run_scores import read_scores
from helm_ext.cli import app
from helm_ext.running import StreamingSummarizer

pytestmark = pytest.mark.long

PASSED, FAILED = (1.0, 90, 27, 3), (0.0, 30, 4, 16)
"""Verdict, rows, labels that are right, labels that are wrong."""
TRUE = 0.75 * 0.9 + 0.25 * 0.2


def make_rows(*cells, design="by_verdict", subjects=("law", "art")):
    states = []
    for value, rows, right, wrong in cells:
        for number in range(rows):
            place = len(states)
            state = files.answered(files.state(f"Question {place}?", "mercury", id=f"r{place}"), "mercury")
            said = [{"by": "gpt", "kind": "model", "criterion": "correct", "value": value, "reply": "GRADE"}]
            if number < right + wrong:
                drawn = {"design": design, "stratum": f"{value:g}", "p": (right + wrong) / rows}
                label = {"by": "ann", "kind": "human", "criterion": "correct", "value": float(number < right)}
                said.append({**label, "drawn": drawn} if design else label)
            state["instance"]["sub_split"] = None
            states.append({**state, "judgements": said, "subject": subjects[place % len(subjects)]})
    return states


def score(tmp_path: Path, states: list, name: str = "judged", model: str = "org/model", **more: str):
    return finished_runs.score(tmp_path, files.write(tmp_path / f"{name}.json", states, name="same"), model, **more)


def stats_of(run) -> dict[str, float]:
    return {s["name"]["name"]: s["mean"] for s in run.stats if s["name"].get("split") == "test" and "mean" in s}


def run(*arguments, code=0):
    done = CliRunner().invoke(app, [*map(str, arguments)])
    assert done.exit_code == code, (done.output, done.exception)
    return done


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A run with corrected scores, of which they are no main metric, and one of which they are."""
    folder = tmp_path_factory.mktemp("corrected")
    path = files.write(folder / "judged.json", make_rows(PASSED, FAILED))
    for name, more in (("plain", ()), ("main", ("--arg", "main_metric=judge_correct"))):
        done = run("score", path, "--model", "org/m", "-o", folder / name, *more)
        (folder / f"{name}.txt").write_text(done.output)
    return folder


def test_corrected_and_raw_stand_side_by_side(folder, tmp_path):
    (made,) = find_runs([folder / "plain"])[0]
    stats = stats_of(made)
    assert stats["judge_correct"] == 0.75
    assert stats["judge_correct_corrected"] == pytest.approx(TRUE)
    assert stats["judge_correct_corrected@ci_low"] < TRUE < stats["judge_correct_corrected@ci_high"] < 0.84
    assert stats["judge_correct_labels"] == 50
    lines = [line for line in (folder / "plain.txt").read_text().splitlines() if "judge_correct" in line]
    assert [line.split()[1] for line in lines[:3]] == [
        "judge_correct_corrected", "judge_correct", "judge_correct_labels",
    ]  # fmt: skip
    assert "judge_correct (raw)" in lines[1]
    shown = run("score", folder / "judged.json", "--model", "org/m", "-o", tmp_path, "--json")
    metrics = json.loads(shown.stdout.splitlines()[0])["metrics"]
    assert metrics["judge_correct_corrected"]["mean"] == pytest.approx(TRUE)
    assert metrics["judge_correct_corrected"].keys() == metrics["judge_correct"].keys()


def test_labels_of_no_recorded_design_correct_nothing_and_the_score_says_so(tmp_path):
    path = files.write(tmp_path / "judged.json", make_rows(PASSED, FAILED, design=None))
    done = run("score", path, "--model", "org/m", "-o", tmp_path / "out")
    assert "judge_correct is the judge's own number" in done.stderr
    assert "50 labels do not say how their rows were drawn" in done.stderr
    (made,) = find_runs([tmp_path / "out"])[0]
    assert "judge_correct_corrected" not in stats_of(made)
    assert stats_of(made)["judge_correct_undesigned"] == 50


def test_check_begins_with_the_answer(folder):
    head, first, second, *_ = run("judge", "check", folder / "plain").stdout.splitlines()
    assert head == "correct, judged by gpt"
    assert first.startswith("This judge ")
    assert "corrected by 50 labels: 72.5%" in second
    wrong = run("judge", "check", folder / "plain", "--criterion", "corect", code=1)
    assert "did you mean 'correct'?" in str(wrong.exception)


def test_slices_are_corrected_by_the_same_rule_or_not_at_all(tmp_path):
    rows = make_rows((1.0, 180, 54, 6), (0.0, 60, 8, 32))
    stats = stats_of(score(tmp_path, rows, by="subject"))
    assert 0.6 < stats["judge_correct_corrected@subject=law"] < 0.85
    assert "judge_correct_corrected@subject=law@ci_low" in stats
    # Where the corrected score is the main one, its slices come first, in the table and in the report.
    path = files.write(tmp_path / "main.json", rows, name="same")
    done = run(
        "score", path, "--arg", "by=subject", "--arg", "main_metric=judge_correct", "--model", "m", "-o", tmp_path / "m"
    )
    assert re.findall(r"judge_\S*(?: \(\w+\))?", done.output)[:6] == [
        "judge_correct_corrected (main)", "judge_correct_corrected@subject=art", "judge_correct_corrected@subject=law",
        "judge_correct (raw)", "judge_correct@subject=art (raw)", "judge_correct@subject=law (raw)",
    ]  # fmt: skip
    run("report", tmp_path / "m", "-o", tmp_path / "m.html")
    page = (tmp_path / "m.html").read_text()
    assert "judge_correct_corrected by subject" in page
    assert f"<td>{stats['judge_correct_corrected@subject=law']:.3f}<br>" in page
    assert "120 rows; raw 0.750<" in page  # every fourth row of both subjects was failed
    few = make_rows((1.0, 60, 16, 2), (0.0, 30, 1, 5))
    stats = stats_of(score(tmp_path, few, "few", by="subject"))
    assert "judge_correct_corrected" in stats
    assert "judge_correct_corrected@subject=law" not in stats


def test_compare_corrects_the_difference_or_says_what_is_missing(tmp_path):
    # b is judged as good as a, and is worse on 6 of 30 labelled rows that the judge passes.
    a = score(tmp_path, make_rows((1.0, 90, 30, 0), (0.0, 30, 0, 20)), "a", "org/a")
    b = score(tmp_path, make_rows((1.0, 90, 24, 6), (0.0, 30, 0, 20)), "b", "org/b")
    plain = score(tmp_path, make_rows((1.0, 90, 0, 0), (0.0, 30, 0, 0)), "c", "org/c")

    def compare(*runs):
        given = ["compare", *(one.folder for one in runs), "--metric", "judge_correct", "--allow-different"]
        done, as_json = (run(*given, *more) for more in ((), ("--json",)))
        return " ".join(done.stdout.split()), json.loads(as_json.stdout.splitlines()[0])

    said, found = compare(a, b)
    by_labels = pytest.approx(-0.75 * 6 / 30)
    assert (found["metric"], found["difference"], found["test"]) == ("judge_correct_corrected", by_labels, "corrected")
    assert found["low"] < found["difference"] < found["high"] < 0
    assert found["p"] == found["p_holm"] == found["corrected"]["p"] < 0.05
    assert (found["raw"]["mean_b"], found["raw"]["difference"], found["raw"]["p"]) == (0.75, 0, 1)
    assert (found["mean_b"], found["greater"]) == (None, None)
    # Half of the interval is 1.96 standard errors; 80 % of comparisons take 0.842 more.
    assert found["detectable"] == pytest.approx((found["high"] - found["low"]) / 2 * (1.96 + 0.8416) / 1.96, rel=1e-4)
    assert found["verdict"] == "a"
    first, second = re.findall(
        r"all \(120\), corrected by 50 labels +(\S+) .* raw: the judge's own +0.75 +0.75 +(\S+)", said
    )[0]
    assert (first, second) == ("-0.15", "+0")
    told = f"with these rows and labels, a difference of {found['detectable']:.3g} is found in 8 of 10 comparisons"
    assert told in said
    assert found["raw"]["detectable"] is None  # which are all equal
    assert "org/a is better by the judge's verdicts, corrected by people's labels" in said
    said, found = compare(a, plain)
    assert found["corrected"] == {"refused": "no row has a label of both answers"}
    assert (found["metric"], found["difference"], "raw" in found) == ("judge_correct", 0, False)
    assert "all (120), raw: not corrected" in said
    assert "which are not corrected: no row has a label of both answers" in said


def test_a_plan_of_corrected_scores_is_by_how_much_their_interval_must_narrow(tmp_path):
    for model, labels in (("a", (30, 0)), ("b", (24, 6))):
        score(tmp_path, make_rows((1.0, 90, *labels), (0.0, 30, 0, 20)), model, model, main_metric="judge_correct")
    found = json.loads(run("compare", tmp_path / "out", "--json", "--allow-different").stdout.splitlines()[0])
    # The labels grow with the rows. 1.959964 and 0.841621 standard errors: the interval has the first.
    half = (found["high"] - found["low"]) / 2 * (1 + 0.841621 / 1.959964)
    planned = run("plan", "0.1", "--from", tmp_path / "out").stdout
    assert planned.startswith(f"{math.ceil(120 * (half / 0.1) ** 2)} rows tell a difference of 0.1")
    assert "with 50 labels, of more rows as many in proportion" in planned


@pytest.mark.parametrize(("labels", "options", "says", "code"), [
    (30, ["--fail-if-worse", "0.02"], "fail: org/b is worse than org/a", 1),
    (30, ["--fail-if-worse", "0.3"], "pass: org/b is not worse than org/a", 0),
    (30, ["--fail-if-worse", "0.1"], "cannot tell whether org/b is worse", 0),
    (0, ["--fail-if-worse", "0", "--point-estimate"], "not corrected: no row has a label of both answers", 0),
])  # fmt: skip
def test_a_gate_judges_by_the_corrected_difference(tmp_path, labels, options, says, code):
    a = score(tmp_path, make_rows((1.0, 90, labels, 0), (0.0, 30, 0, labels * 2 // 3)), "a", "org/a")
    worse = labels // 5
    b = score(tmp_path, make_rows((1.0, 90, labels - worse, worse), (0.0, 30, 0, labels * 2 // 3)), "b", "org/b")
    given = ("--metric", "judge_correct", "--allow-different", *options)
    assert says in run("compare", a.folder, b.folder, *given, code=code).stderr


def test_a_series_shows_corrected_means_beside_corrected_gains(tmp_path):
    def score_labelled(suite, *rows):
        path = files.write(tmp_path / "x.json", make_rows(*rows), name="same")
        run("score", path, "--model", "org/m", "-o", tmp_path / "out", "--suite", suite)

    score_labelled("1", (1.0, 90, 30, 0), (0.0, 30, 0, 20))
    score_labelled("2", (1.0, 90, 24, 6), (0.0, 30, 0, 20))
    given = ["compare", tmp_path / "out", "--over", "suite", "--metric", "judge_correct_corrected"]
    first, second = map(json.loads, run(*given, "--json").stdout.splitlines())
    assert (first["metric"], first["mean"]) == ("judge_correct_corrected", pytest.approx(0.75))
    assert second["mean"] == pytest.approx(0.75 - 0.15)
    assert second["gate"]["gain"] == pytest.approx(-0.15)
    assert second["first_worse"]
    score_labelled("3", (1.0, 90, 0, 0), (0.0, 30, 0, 0))  # then all means are the judge's own
    said = run(*given).stdout
    assert re.search(r"2 .* 0.75 .* -0.15 corrected .*\n3 .* 0.75 .* \+0 raw ", said)


def test_the_least_value_is_asked_of_the_corrected_score(tmp_path, monkeypatch):
    def fail(_):
        raise AssertionError("HELM's metrics are imported, and ask the network for data")

    monkeypatch.setattr("helm_ext.analysis.run_scores._ask_metrics", fail)
    path = files.write(tmp_path / "judged.json", make_rows(PASSED, FAILED))
    given = ["score", path, "--model", "org/m", "-o", tmp_path / "out", "--arg", "main_metric=judge_correct"]
    done = run(*given, "--fail-under", "main=0.74", code=1)
    assert "judge_correct_corrected is 0.725, less than 0.74" in done.stderr
    assert "judge_correct_corrected (main)" in done.stdout
    assert "judge_correct (raw)" in done.stdout
    told = json.loads(run(*given, "--json").stdout)
    assert told["metrics"][told["main_metric"]]["mean"] == pytest.approx(0.725)
    files.write(path, make_rows(PASSED, FAILED, design=None))
    for least, code, says in (("0.74", 0, "not below 0.74"), ("0.76", 1, "less than 0.76")):
        done = run(*given, "--fail-under", f"main={least}", code=code)
        assert f"judge_correct, the judge's own number, uncorrected, is 0.75, {says}" in done.stderr


def test_a_record_of_a_judged_run_is_headed_by_the_corrected_score_again(folder, tmp_path):
    run("export", folder / "main", "--to", "every_eval_ever", "--out", tmp_path / "record")
    record = next((tmp_path / "record").rglob("*.json"))
    told = json.loads(run("score", record, "-o", tmp_path / "again", "--json").stdout)
    assert told["main_metric"] == "judge_correct_corrected"
    assert told["metrics"][told["main_metric"]]["mean"] == pytest.approx(TRUE)


def test_the_report_has_both_and_begins_with_the_main_one(folder, tmp_path):
    pages = {}
    for name in ("plain", "main"):
        run("report", folder / name, "-o", tmp_path / "report.html")
        pages[name] = (tmp_path / "report.html").read_text(encoding="utf-8")
    both = r"<td>judge_correct</td><td class=\"whole\">(.*?)</td><td>50</td><td class=\"whole\">(.*?)</td>"
    row = re.search(both, pages["plain"])
    assert row[1].startswith("0.725")
    assert row[2].startswith("0.75")
    assert "Main metric: <code>normalized_exact_match" in pages["plain"]
    assert "Main metric: <code>judge_correct_corrected<" in pages["main"]
    assert re.search(r'<th scope="row">org/m</th><td>0\.725</td>', pages["main"])


def test_the_leaderboard_is_headed_by_the_corrected_score(folder):
    """With both ends of its interval; the judge's own stands in the table of judges, under its own name."""
    StreamingSummarizer(
        release=None, suites=None, suite="score", schema_path=None, output_path=str(folder / "main"), verbose=False,
        num_threads=1, allow_unknown_models=True,
    ).run_pipeline(skip_completed=False)  # fmt: skip
    [name] = [path.stem for path in (folder / "main/runs/score/groups").glob("judged*.json")]
    [table] = json.loads((folder / f"main/runs/score/groups/{name}.json").read_bytes())
    row = dict(
        zip([cell["value"] for cell in table["header"]], [cell["value"] for cell in table["rows"][0]], strict=True)
    )
    title = "Judge, corrected: correct"
    assert list(row)[1:4] == [title, f"{title} from", f"{title} to"]
    assert row[title] == pytest.approx(TRUE)
    assert row["Judge, raw: correct"] == 0.75


def test_exported_scores_have_both(folder, tmp_path):
    run("export", folder / "plain", "--to", "csv", "--table", "scores", "--out", tmp_path / "scores.csv")
    lines = list(csv.DictReader((tmp_path / "scores.csv").open()))
    (corrected,) = [line for line in lines if line["metric"] == "judge_correct_corrected"]
    assert float(corrected["mean"]) == pytest.approx(TRUE)
    assert (corrected["interval"], corrected["rows"]) == ("corrected", "120")
    assert [line["mean"] for line in lines if line["metric"] == "judge_correct"] == ["0.75"]
    # Who asks for the main number gets the corrected one, in each form.
    run("export", folder / "main", "--to", "csv", "--table", "scores", "--out", tmp_path / "main.csv")
    (main,) = [line for line in csv.DictReader((tmp_path / "main.csv").open()) if line["main"] == "true"]
    assert (main["metric"], main["mean"]) == ("judge_correct_corrected", corrected["mean"])
    (line,) = helm_ext.read_suite(folder / "main").scores().to_dict("records")
    assert (line["metric"], line["raw"], line["rows"]) == ("judge_correct_corrected", 0.75, 120)
    assert [line[end] for end in ("mean", "low", "high")] == [float(corrected[end]) for end in ("mean", "low", "high")]
    wide = helm_ext.read_suite(folder / "main").scores(level=0.99).to_dict("records")[0]
    assert wide["low"] < line["low"] < line["high"] < wide["high"]
    run("export", folder / "main", "--to", "every_eval_ever", "--out", tmp_path / "records")
    [path] = (tmp_path / "records").rglob("*[!s].json")
    details = json.loads(path.read_text())["evaluation_results"][0]["score_details"]["details"]
    assert (float(details["corrected"]), details["labels"]) == (line["mean"], "50")


def test_rows_without_a_verdict_are_counted_once(tmp_path):
    states = make_rows(PASSED, FAILED)
    states[119]["judgements"] = [{"by": "gpt", "kind": "model", "criterion": "correct", "status": "unparsed"}]
    path = files.write(tmp_path / "judged.json", states)
    done = run("score", path, "--model", "org/m", "-o", tmp_path / "out")
    assert "judge_correct_unparsed" in done.stdout
    assert "judge_correct_unscored" not in done.stdout
    del states[118]["judgements"]
    files.write(path, states)
    done = run("score", path, "--model", "org/m", "-o", tmp_path / "out")
    assert re.search("judge_correct_unscored +│ +2 ", done.stdout)


def test_clusters_that_are_asked_for_count_in_the_report_and_over_time_too(tmp_path):
    """It was the interval of the run's own stats, which know of no `--cluster`."""
    rows = make_rows(PASSED, FAILED, subjects=[f"s{number}" for number in range(40)])
    made = score(tmp_path, rows, main_metric="judge_correct")
    own, clustered = (read_scores(made, None, key).measure_corrected() for key in (None, "subject"))
    assert own.low == pytest.approx(stats_of(made)["judge_correct_corrected@ci_low"])
    assert (own.clusters, clustered.clusters) == (None, 30)  # of 40 groups, those that have labels
    assert f"{own.low:.3f}" != f"{clustered.low:.3f}"
    run("report", made.folder, "--cluster", "subject", "-o", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert f'<td class="whole">{clustered.low:.3f} to {clustered.high:.3f} (30 clusters)</td>' in page


def test_labels_of_the_first_answer_correct_no_mean_of_several(tmp_path):
    made = score(tmp_path, make_rows(PASSED, FAILED), main_metric="judge_correct", completions="mean")
    assert "judge_correct_corrected" not in stats_of(made)
    assert read_scores(made).measure_corrected() is None
    assert read_suite(made.folder).scores()["metric"].tolist() == ["judge_correct"]
