"""`helm-ext compare` of folders of runs, in this process; tests/integration/test_compare.py has the rest."""

import json
import re
import shlex

import finished_runs
import request_states_files as files
from commands import run
from optional_sources import IMPORT_SAMPLES, needs_import_samples


@needs_import_samples
def test_a_perplexity_of_all_rows_is_left_out_and_named(tmp_path):
    for model in ("org/one", "org/two"):
        for task in ("imp_arc", "imp_ppl"):
            finished_runs.score(tmp_path, IMPORT_SAMPLES / "lm_eval", model, task=task)
    done = run("compare", tmp_path / "out")
    assert done.stderr.count("not compared: ") == 2
    assert "lm_eval_acc" in done.stdout
    done = run("export", tmp_path / "out", "--table", "scores", "--to", "csv", "--out", tmp_path / "s.csv")
    assert (tmp_path / "s.csv").read_text().count("lm_eval_word_perplexity,true") == 2, done
    run("report", tmp_path / "out", "-o", tmp_path / "r.html")
    assert (tmp_path / "r.html").read_text().count('<td class="whole">no interval</td><td>6</td><td>0</td>') == 2
    # what cannot be compared does not pass
    run("compare", tmp_path / "out", "--baseline", "org/one", "--fail-if-worse", "0.02", code=2)


def test_a_run_that_is_refused_leaves_no_folder(tmp_path):
    """An empty one would count as a run that is not finished, and keep the others from being merged."""
    states = [
        {
            "instance": {"id": f"r{n}", "input": {"text": f"{n}?"}, "references": [{"output": {"text": "iron"}, "tags": ["correct"]}]},
            "request": {"result": {"success": True, "completions": [{"text": "iron"}]}} if n else {},
        }
        for n in range(3)
    ]  # fmt: skip
    path = tmp_path / "rows.json"
    path.write_text(json.dumps({"adapter_spec": {"max_train_instances": 0}, "request_states": states}))
    run("score", path, "--model", "m", "-o", tmp_path / "out", code=1)
    assert not [*(tmp_path / "out").glob("runs/*/adapter_spec*")]


def test_files_of_the_same_rows(tmp_path):
    """They are of one dataset where all else is the same too, as shards that were merged and one run of all rows are."""
    rows = [
        files.answered(files.state(f"{n}?", "yes", id=f"r{n}", split="test"), "yes" if n % 2 else "no")
        for n in range(8)
    ]
    for name, some in (("one", rows[:4]), ("two", rows[4:]), ("all", rows), ("asked", rows)):
        spec = {"max_train_instances": 0, "instructions": "Say no." if name == "asked" else ""}
        path = files.write(tmp_path / f"{name}.json", some, spec, name="x")
        suite = "shards" if name in ("one", "two") else name
        run("score", path, "--model", suite, "--suite", suite, "-o", tmp_path)
    run("merge", tmp_path / "runs" / "shards", "--into", "merged", "-o", tmp_path)
    merged, whole, asked = (tmp_path / "runs" / suite for suite in ("merged", "all", "asked"))
    assert "\nall (8) " in run("compare", whole, merged).stdout
    assert "the runs differ in their instructions" in run("compare", whole, asked, code=1).stderr


def test_a_table_and_what_it_was_converted_to(tmp_path):
    """They are of one dataset: what is said of where rows come from is no way of scoring them."""
    table = tmp_path / "t.csv"
    table.write_text(
        "id,question,answer,a,b\n" + "".join(f"r{n},{n}?,yes,yes,{'yes' if n % 2 else 'no'}\n" for n in range(8))
    )
    run("convert", table, tmp_path / "b.jsonl", "--arg", "output=b")
    run("score", table, "--arg", "output=a", "-o", tmp_path)
    run("score", tmp_path / "b.jsonl", "--model", "b", "-o", tmp_path)
    assert "\nall (8) " in run("compare", tmp_path / "runs").stdout


def test_a_table_scored_twice_is_one_dataset_where_rows_have_no_answer(tmp_path):
    table, runs = tmp_path / "quiz.csv", tmp_path / "runs" / "m"
    rows = (f"r{n},{n}?,yes,{'easy' if n % 2 else 'hard'},yes,{'' if n < 8 else 'no'},yes\n" for n in range(40))
    table.write_text("id,question,answer,topic,a,b,c\n" + "".join(rows))

    def score(*arguments):
        run("score", table, *(part for one in arguments for part in ("--arg", one)), "--suite", "m", "-o", tmp_path)

    score("output=a")
    score("output=b", "empty=not_run", "by=topic")
    done = run("compare", runs, "--rows", "0")
    assert "\nall (32) " in done.stdout
    assert "8 rows were not compared" in done.stdout
    # A margin beyond what scores can differ by would never fail.
    said = run("compare", runs, "--fail-if-worse", "2", code=2).stderr
    assert "goes from 0 to 1" in said
    assert "hint: 0.02 is 2 %" in said

    score("output=c", "by=topic")
    run("report", runs, "-o", tmp_path / "r.html")
    assert "; 32 of 40 rows compared" in (tmp_path / "r.html").read_text()
    said = run("plan", "0.05", "--from", runs, code=2).stderr
    assert "got 3 pairs: " in said
    assert "a and b on quiz" in said
    assert "rows tell" in run(*shlex.split(said.partition("hint: name two runs: helm-ext ")[2])).stdout


def test_an_interval_and_a_p_that_disagree_say_so_and_end_where_scores_do(tmp_path):
    """Differences of -1, three times, and -1/3, twice: t is -0.733 ± 0.453; 2 of 32 ways of signs are as uneven."""
    table, runs = tmp_path / "few.csv", tmp_path / "runs" / "score"
    rows = (f"r{n},{n}?,yes,yes,{'yes sir' if n < 2 else 'no'}\n" for n in range(5))
    table.write_text("id,question,answer,a,b\n" + "".join(rows))
    for model in "ab":
        run("score", table, "--arg", f"output={model}", "--arg", "main_metric=f1_score", "-o", tmp_path)
    done = run("compare", runs)
    assert re.search(r"-1 to -0\.28\d* +0/5 +0\.062", done.stdout)
    said = "the interval (Student's t) and p (random signs of the rows) are two methods, which disagree here: p decides"
    assert said in " ".join(done.stdout.split())
    run("report", runs, "-o", tmp_path / "r.html")
    assert "which disagree here" in (tmp_path / "r.html").read_text()
    # How many rows it takes is by the whole interval, ± 0.453 at 5 rows: 5 * (0.453 / 0.7 * 2.8016 / 1.96)^2 = 4.3
    assert run("plan", "0.7", "--from", runs).stdout.startswith("5 rows tell")
