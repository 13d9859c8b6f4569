"""Finished runs are compared row by row: counts by hand, p-values known, what differs refused or counted."""

import json
import math
import re
from pathlib import Path

import pytest
import request_states_files
from commands import run
from request_states_files import answered, state

import helm_ext
from helm_ext.analysis.comparing import show_p


def write(path, right, rows=60, question="{n} + 1?"):
    """Write a file whose row n is answered rightly where `right(n)`."""
    asked = [
        state(
            question.format(n=n), str(n + 1), id=f"r{n}",
            subject=["math", "law"][n % 2], passage=f"p{n // 6}", half=n // 30,
        )
        for n in range(rows)
    ]  # fmt: skip
    states = [answered(row, str(n + 1) if right(n) else "no") for n, row in enumerate(asked)]
    request_states_files.write(path, states, name="sums")


def one(n):
    return not 12 <= n < 16


def two(n):
    return n >= 12


def score(folder, model, right, *more, edit=None, **written):
    """Write a file of a model's answers, and score it; `edit` changes what is in the file."""
    path = folder / f"{model}.json"
    write(path, right, **written)
    if edit:
        path.write_text(json.dumps(edit(json.loads(path.read_text()))))
    return run("score", path, "--model", model, "-o", folder / "out", *more)


@pytest.fixture(scope="module")
def suite(tmp_path_factory):
    """Two models: 12 rows that only `one` gets right, 4 that only `two` does, 44 that both do."""
    folder = tmp_path_factory.mktemp("compare")
    for right in (one, two):
        score(folder, right.__name__, right, "--arg", "by=subject")
    return folder


def lines(done):
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_rows_are_paired_and_counted(suite):
    whole, law, math = lines(run("compare", suite / "out", "--json"))
    assert (whole["model_a"], whole["model_b"], whole["rows"]) == ("one", "two", 60)
    assert (whole["greater"], whole["less"]) == (4, 12)
    assert whole["difference"] == pytest.approx(-8 / 60)
    assert whole["p"] == 2 * (1 + 16 + 120 + 560 + 1820) / 2**16  # up to 4 of 16 tosses of a coin, either way
    assert whole["p_holm"] == whole["p"]  # the only comparison of all rows: slices are another family
    assert whole["verdict"] == "undecided"
    assert (law["slice"], math["slice"], law["rows"]) == ("subject=law", "subject=math", 30)
    assert [one["family"] for one in (whole, law, math)] == [1, 2, 2]
    assert law["p_holm"] == pytest.approx(min(1, 2 * law["p"]))
    assert (law["greater"], law["less"]) == (2, 6)


def test_flipped_rows_are_shown_with_both_answers(suite):
    done = run("compare", suite / "out", "--baseline", "two", "--rows", "1")
    assert "0 + 1?" in done.stdout
    assert "two: no" in done.stdout
    assert "15 more rows that differ" in done.stdout
    (flip,) = lines(run("compare", suite / "out", "--json", "--rows", "1"))[0]["flipped"]
    assert flip == {
        "instance_id": "r0", "score_a": 1.0, "score_b": 0.0, "question": "0 + 1?", "gold": ["1"],
        "answer_a": "1", "answer_b": "no",
    }  # fmt: skip


def test_clusters_make_it_less_sure(suite):
    plain, clustered = (
        lines(run("compare", suite / "out", "--json", *more))[0] for more in ((), ("--cluster", "passage"))
    )
    assert clustered["clusters"] == 10
    assert clustered["test"] == "sign flips"
    # Three passages of ten differ, by 6 and 6 for one model and 4 for the other: 4 of 8 ways are as uneven.
    assert clustered["p"] == 0.5
    assert clustered["high"] - clustered["low"] > plain["high"] - plain["low"]


def test_clusters_of_the_run_itself_are_respected_everywhere(tmp_path):
    """What `cluster=` says holds for the run's stats, and for what is made of them later."""

    for right in (one, two):
        scored = json.loads(score(tmp_path, right.__name__, right, "--arg", "cluster=passage", "--json").stdout)
    (whole,) = lines(run("compare", tmp_path / "out", "--json"))
    assert (whole["clusters"], whole["p"]) == (10, 0.5)
    last = helm_ext.read_suite(tmp_path / "out").scores().to_dict("records")[-1]
    of_run = scored["metrics"]["normalized_exact_match"]
    assert (last["low"], last["high"]) == (of_run["low"], of_run["high"])
    run("report", tmp_path / "out", "-o", tmp_path / "r.html")
    assert f"{of_run['low']:.3f} to {of_run['high']:.3f} (10 clusters)" in (tmp_path / "r.html").read_text()


@pytest.mark.parametrize(("arguments", "code", "said"), [
    # 4 and 12 of 60: z = -8 / sqrt(16) = -2 at no difference, p = 0.023.
    (("0",), 1, "fail: two is worse than one on sums-*, for certain: -0.1333, one-sided 95 % limits -0.24"),
    (("0.1",), 0, "cannot tell whether two is worse than one on sums-* by more than 0.1: -0.1333, one-sided 95"),
    (("0.1", "--fail-if-unsure"), 3, "cannot tell"),
    (("0.3", "--fail-if-unsure"), 0, "pass: two is not worse than one on sums-* by more than 0.3: "),
    (("0", "--baseline", "two", "--fail-if-unsure"), 0, "pass: one is not worse than two on sums-*: +0.1333"),
    (("0.1", "--point-estimate"), 1, "fail: the mean of two is worse than that of one on sums-* by more than 0.1: -0.1"),
    (("0.14", "--point-estimate"), 0, "pass"),
])  # fmt: skip
def test_ci_fails_where_a_model_is_worse_for_certain(suite, arguments, code, said):
    done = run("compare", suite / "out", "--fail-if-worse", *arguments, code=code)
    assert said in re.sub("sums-[0-9a-f]+", "sums-*", done.stderr)
    assert ("McNemar's exact p may differ" in done.stderr) == ("--point-estimate" not in arguments)
    # Two-sided p is 0.077: the one statement about both models is the gate's, where it made a test.
    assert ("do not tell which is better" in done.stdout) == ("--point-estimate" in arguments)


def test_a_gate_says_p_and_how_many_rows_would_tell(suite):
    done = run("compare", suite / "out", "--fail-if-worse", "0", "--no-slices", "--json", code=1)
    (whole,) = lines(done)
    gate = whole["gate"]
    assert gate["p_worse"] == pytest.approx(0.0227501, abs=1e-6)  # of the normal distribution, below -2
    assert (gate["outcome"], gate["rule"], gate["margin"]) == ("fail", "limits", 0)
    assert ", one-sided p 0.023\n" in done.stderr
    far = run("compare", suite / "out", "--fail-if-worse", "0.1").stderr
    # Worse by 2/15 as it looks, 1/30 from the margin; the variance of a row is 16/60 - 64/3600, with 59 of 60 as divisor.
    rows = (1.644854 + 0.841621) ** 2 * (16 / 60 - 64 / 3600) * 60 / 59 * 30**2
    assert f"if it is 0.133 worse, as observed, {math.ceil(rows):,} rows settle it in 8 of 10 cases" in far


@pytest.mark.parametrize(("arguments", "code", "said"), [
    ("compare out --fail-if-unsure", 2, "--fail-if-unsure: by how much may a model be worse?"),
    ("compare out --point-estimate", 2, "--point-estimate: by how much"),
    ("compare out --fail-if-worse 0.1 --fail-if-unsure --point-estimate", 2, "--point-estimate and --fail-if-unsure: leave out one of the two"),
    ("compare out --no-slices --slices subject", 2, "leave out one of the two"),
    ("compare out --slices subjct", 2, "--slices subjct: no row has that attribute\n  hint: did you mean 'subject'"),
    ("compare one.json", 1, "one.json: a file, and no folder of runs\n  hint: helm-ext score"),
    ("compare out --metric exact_mach", 2, "did you mean 'exact_match'"),
    ("compare out --cluster page", 2, "--cluster page: no row of"),
    ("plan 0.1", 2, "one of --base-rate, --discordant and --from is needed"),
    ("plan 0.1 --base-rate 0.5 --discordant 0.2", 2, "one of --base-rate, --discordant and --from is needed"),
    ("plan 0.3 --discordant 0.2", 2, "error: "),
    ("plan --from out out", 2, "Invalid value for 'DIFFERENCE'"),
])  # fmt: skip
def test_what_makes_no_sense_is_refused(suite, monkeypatch, arguments, code, said):
    monkeypatch.chdir(suite)
    assert said in run(*arguments.split(), code=code).stderr


def test_a_dataset_that_was_not_compared_is_no_pass(suite, tmp_path):
    """The second file was scored for the baseline alone."""
    score(tmp_path, "one", lambda n: True, rows=30)
    arguments = ("compare", suite / "out", tmp_path / "out", *"--baseline one --fail-if-worse 0.3 --rows 0".split())
    run(*arguments)
    unsure = run(*arguments, "--fail-if-unsure", code=3)
    assert re.search("cannot tell whether two is worse than one on sums-[0-9a-f]+: not compared", unsure.stderr)


def test_three_models_are_three_chances_so_p_is_corrected(tmp_path):
    """4 and 12 of 60, twice: p is 0.023 by itself and 0.0455 of two; a third that is as bad makes 0.068."""
    folders = {}
    for model in ("base", "a", "b", "c"):
        score(tmp_path, model, one if model == "base" else two)
        folders[model] = next((tmp_path / "out/runs/score").glob(f"*recorded_{model}"))
    gate = ("--baseline", "base", "--fail-if-worse", "0", "--rows", "0")
    run("compare", *(folders[name] for name in ("base", "a", "b")), *gate, code=1)
    done = run("compare", *folders.values(), *gate)
    assert "one-sided p 0.023, 0.068 corrected; if both are" not in done.stderr  # it looks worse: rows are said
    assert done.stderr.count("one-sided p 0.023, 0.068 corrected; ") == 3


def test_one_edited_question_is_named_and_the_others_are_compared(tmp_path):
    """60 rows, of which the second model was asked another r7."""
    score(tmp_path, "one", one)
    score(tmp_path, "two", two, edit=lambda file: json.loads(json.dumps(file).replace('"7 + 1?"', '"7 plus 1?"')))
    said = run("compare", tmp_path / "out", code=1).stderr
    assert re.search(r"1 of 60 rows asks a different question, for example r7: .*\n  hint", said)
    (whole,) = lines(run("compare", tmp_path / "out", "--allow-different", "--json"))
    assert (whole["rows"], whole["unpaired"], whole["greater"], whole["less"]) == (59, 1, 4, 11)


def test_compare_and_report_show_the_same_p(tmp_path):
    """Three models and slices: 3 comparisons of all rows are corrected together, raw and corrected p stand side by side.
    Those of slices are of the attributes that are chosen."""
    for model, right in {"one": one, "two": two, "three": lambda n: n % 7}.items():
        score(tmp_path, model, right, "--arg", "by=subject+passage+half")
    run("report", tmp_path / "out", "-o", tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text()
    whole = [line for line in lines(run("compare", tmp_path / "out", "--json")) if not line["slice"]]
    assert [line["family"] for line in whole] == [3, 3, 3]
    assert min(line["p_holm"] for line in whole) == pytest.approx(3 * min(line["p"] for line in whole))
    for line in whole:
        p = f"p {show_p(line['p'])}, p (Holm) {show_p(line['p_holm'])}"
        shown = f"{p}; {line['greater'] + line['less']} rows differ"
        assert page.count(shown) >= 2  # a line and a column each
    chosen = lines(run("compare", tmp_path / "out", *"--slices subject --slices half --json".split()))
    assert [line["slice"] for line in chosen] == 3 * [None, "half=0", "half=1", "subject=law", "subject=math"]
    assert {line["family"] for line in chosen if line["slice"]} == {12}


def test_one_table_in_two_orders_needs_ids(tmp_path):
    for name, numbers in (("up", range(9)), ("down", range(8, -1, -1))):
        rows = [f"{n} + 1?,{n + 1},{n + n % 2}\n" for n in numbers]
        (tmp_path / f"{name}.csv").write_text("".join(["question,answer,output\n", *rows]))
        run("score", tmp_path / f"{name}.csv", "--model", name, "-o", tmp_path / "out")
    said = run("compare", tmp_path / "out", code=1).stderr
    assert "different questions in 8 rows" in said  # all but the one in the middle
    assert "both ask the same under other ids, as rows without ids are numbered: id=COLUMN" in said


def test_of_one_file_under_two_rules_for_empty_cells_the_newer_run_is_compared(tmp_path):
    """The hint of an empty cell is followed: the model without one has a run already."""
    table, out = tmp_path / "t.csv", ("-o", tmp_path / "out")
    table.write_text("question,answer,alpha,beta\n1+1?,2,2,3\n2+2?,4,4,\n3+3?,6,7,6\n")
    said = run("score", table, "--arg", "output=alpha+beta", *out, code=1).stderr
    assert "hint: --arg empty=answer where it said nothing, --arg empty=not_run where it was not asked" in said
    again = run("score", table, "--arg", "output=alpha+beta", "--arg", "empty=answer", *out)
    assert "the same file was scored with another rule for rows without an answer" in again.stderr
    done = run("compare", tmp_path / "out", "--json")
    [found] = lines(done)
    assert (found["rows"], found["greater"], found["less"], found["stale"]) == (3, 1, 2, False)
    assert "empty=answer" in found["run_a"]
    assert "not compared, the newer run is" in done.stderr
    old = next(path for path in (tmp_path / "out/runs/score").glob("*alpha*") if "empty" not in path.name)
    new = next(path for path in (tmp_path / "out/runs/score").glob("*beta*"))
    assert lines(run("compare", old, new, "--json"))[0]["rows"] == 3  # the older alone is what is meant


def test_two_runs_of_one_model_are_refused(suite, tmp_path):
    run("score", suite / "one.json", "--model", "one", "-o", tmp_path / "out")
    for more in ((), ("--by-suite",)):  # both suites are called score
        said = run("compare", suite / "out", tmp_path / "out", *more, code=1).stderr
        assert "two runs of one are of one dataset" in said


def test_one_model_in_two_suites_is_compared_where_that_is_asked_for(suite, tmp_path):
    output = ("-o", tmp_path / "out", "--arg", "by=subject")
    run("score", suite / "two.json", "--model", "one", "--suite", "later", *output)
    both = (suite / "out/runs/score", tmp_path / "out")
    assert "--by-suite" in run("compare", *both, code=1).stderr
    found = [one for one in lines(run("compare", *both, "--by-suite", "--json")) if not one["slice"]]
    [pair] = [one for one in found if {one["model_a"], one["model_b"]} == {"one (score)", "one (later)"}]
    assert {pair["greater"], pair["less"]} == {4, 12}
    models = {one[side] for one in found for side in ("model_a", "model_b")}
    assert models == {"one (score)", "one (later)", "two"}
    chosen = lines(run("compare", *both, "--by-suite", "--baseline", "one (later)", "--json"))
    assert {one["model_a"] for one in chosen} == {"one (later)"}


def test_a_p_that_does_not_hold_among_all_comparisons_is_said(tmp_path):
    """11 rows against 2: p is 0.022 by itself (2 * 92/8192), and three times as much among three comparisons."""
    for model in ("one", "two", "three"):
        right = (lambda n: not 11 <= n < 13) if model == "one" else (lambda n: n >= 11)
        score(tmp_path, model, right, "--arg", "by=subject")
    found = lines(run("compare", tmp_path / "out", "--json"))
    [whole] = [line for line in found if (line["slice"], line["model_a"], line["model_b"]) == (None, "one", "two")]
    assert whole["p"] == pytest.approx(2 * 92 / 8192)
    text = " ".join(run("compare", tmp_path / "out").stdout.split())
    assert "do not tell which is better (p is 0.022 alone, 0.067 corrected for the 3 comparisons of all rows" in text


def test_how_many_rows_are_needed(suite):
    assert "rows that exactly one model gets right: 26.7%" in run("plan", "0.1", "--from", suite / "out").stdout
    both = sorted((suite / "out" / "runs" / "score").glob("*:*"))[:2]
    assert run("plan", "0.1", "--from", *both).stdout == run("plan", "0.1", "--from", suite / "out").stdout
    assert run("plan", "0.03", "--base-rate", "0.776").stdout.startswith("2,952 rows")


def test_rows_of_the_split_that_leaderboards_show_are_compared(tmp_path):
    def split(file):
        for n, row in enumerate(file["request_states"]):
            row["instance"]["split"] = "valid" if n < 30 else "test"
        return file

    for model in ("one", "two"):
        score(tmp_path, model, lambda n: n >= 30, edit=split)
    done = run("compare", tmp_path / "out", "--json")
    (whole,) = lines(done)
    assert (whole["rows"], whole["mean_a"], whole["difference"]) == (30, 1.0, 0.0)
    assert whole["detectable"] is None  # no row differs
    assert "30 rows of other splits than test left out" in done.stderr


def test_a_score_of_all_rows_together_is_not_compared(tmp_path):
    def as_list(file):
        spec = {**file["adapter_spec"], "output_format": "list"}
        return {**file, "adapter_spec": spec, "scoring": {"metrics": ["list_micro_f1"]}}

    score(tmp_path, "one", lambda n: n > 9, edit=as_list)
    assert "list_micro_f1 is a score of all rows together" in run("compare", tmp_path / "out", code=2).stderr
    (line,) = helm_ext.read_suite(tmp_path / "out").scores().to_dict("records")
    assert (line["metric"], line["low"], line["method"]) == ("list_micro_f1", None, "none")
    assert (line["mean"], line["rows"], line["left_out"]) == (pytest.approx(50 / 60), 60, 0)
    score(tmp_path, "two", lambda n: n > 19, edit=as_list)
    run("report", tmp_path / "out", "-o", tmp_path / "r.html")
    text = (tmp_path / "r.html").read_text()
    assert "list_micro_f1 is a score of all rows together: no interval" in text
    assert re.findall(r"<td>(0\.\d+)</td><td class=\"whole\">no interval</td>.*?<td>60</td><td>0</td>", text) == [
        "0.833", "0.667",
    ]  # fmt: skip
    run("export", tmp_path / "out", "--table", "scores", "--to", "jsonl", "--out", tmp_path / "s.jsonl")
    exported = map(json.loads, (tmp_path / "s.jsonl").read_text().splitlines())
    means = [(one["metric"], one["mean"], one["interval"]) for one in exported if one["main"]]
    assert means == [("list_micro_f1", pytest.approx(right / 60), "none") for right in (50, 40)]


def test_all_commands_show_a_log_s_own_number_first(tmp_path):
    """A perplexity, beside which rows have a score of ours: comparisons, which need one, say both."""
    (log,) = (Path(__file__).parents[1] / "data" / "lm_eval" / "acme__scripted").glob("samples_lx_ending_*.jsonl")
    for model in ("one", "two"):
        done = run("score", log, "--model", model, "-o", tmp_path / "out", "--json")
        said = json.loads(done.stdout)
    shown = [(said["main_metric"], said["metrics"][said["main_metric"]]["mean"])]
    table = run("score", log, "--model", "two", "-o", tmp_path / "out").stdout
    assert re.search(r"lm_eval_perplexity \(main\) +│ +12\.82 ", table)
    run("export", tmp_path / "out", "--table", "scores", "--to", "jsonl", "--out", tmp_path / "s.jsonl")
    exported = map(json.loads, (tmp_path / "s.jsonl").read_text().splitlines())
    shown += [(one["metric"], one["mean"]) for one in exported if one["main"]]
    shown += [(one["metric"], one["mean"]) for one in helm_ext.read_suite(tmp_path / "out").scores().to_dict("records")]
    assert shown == [("lm_eval_perplexity", pytest.approx(12.823436697))] * 5
    done = run("report", tmp_path / "out", "-o", tmp_path / "r.html")
    assert "no interval, slices or comparisons; --metric acc has them" in done.stderr
    text = (tmp_path / "r.html").read_text()
    assert "Main metric: <code>lm_eval_perplexity</code>, lower is better" in text
    assert len(re.findall(r"<td>12\.823</td><td class=\"whole\">no interval</td>", text)) == 2
    done = run("compare", tmp_path / "out", "--json")
    assert "lm_eval_perplexity is 12.82 as the file reports it" in done.stderr
    assert "rows are compared by acc" in done.stderr
    assert [one["metric"] for one in lines(done)] == ["acc"]
    run("report", tmp_path / "out", "--metric", "acc", "-o", tmp_path / "acc.html")
    assert "Comparison, row by row" in (tmp_path / "acc.html").read_text()


def test_a_plan_of_graded_rows_is_by_how_much_the_interval_must_narrow(tmp_path):
    for model, said in (("one", "1 1"), ("two", "2 1")):
        score(
            tmp_path, model, lambda n: n > 9, "--arg", "main_metric=f1_score",
            edit=lambda file, said=said: json.loads(json.dumps(file).replace('"text": "no"', f'"text": "{said}"')),
        )  # fmt: skip
    [found] = lines(run("compare", tmp_path / "out", "--json"))
    assert (found["test"], found["rows"]) == ("sign flips", 60)
    # 95 % twice-sided and 80 % power: 1.959964 and 0.841621 standard errors, of which the interval has the first
    narrow = 0.05 * 1.959964 / (1.959964 + 0.841621)
    rows = math.ceil(60 * ((found["high"] - found["low"]) / 2 / narrow) ** 2)
    said = run("plan", 0.05, "--from", tmp_path / "out").stdout
    assert said.startswith(f"{rows:,} rows tell a difference of 0.05 in 80% of comparisons")
    assert f"by f1_score: {found['low']:+.3g} to {found['high']:+.3g} (95 %), as measured on 60 rows of sums" in said


def test_a_suite_in_a_notebook(suite):

    found = helm_ext.read_suite(suite / "out")
    lines = found.scores().to_dict("records")
    assert [(line["model"], line["rows"], line["left_out"]) for line in lines] == [("one", 60, 0), ("two", 60, 0)]
    assert lines[0]["mean"] == pytest.approx(56 / 60)
    assert lines[0]["low"] == pytest.approx(0.8407, abs=1e-4)  # Wilson's of 56 of 60
    whole = found.compare(baseline="two").iloc[0]
    assert (whole["model_a"], whole["greater"], whole["less"]) == ("two", 12, 4)
    assert len(found.to_pandas()) == 120


def test_the_page_for_notebooks_is_true(suite, tmp_path, monkeypatch):
    """The lines of docs/reference/python.md about a suite run as they stand, and have the columns that they name."""
    from pathlib import Path

    page = (Path(__file__).parents[2] / "docs/reference/python.md").read_text(encoding="utf-8")
    block = page.split("A suite, with the intervals")[1].split("```python\n")[1].split("```")[0]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "benchmark_output").mkdir()
    (tmp_path / "benchmark_output/runs").symlink_to(suite / "out/runs")
    code = block.replace("my-suite", "score").replace("my-model", "one")
    names: dict = {}
    exec("import helm_ext\n" + code.splitlines()[0], names)
    for line in code.splitlines()[1:]:
        call, _, said = line.partition("  # ")
        found = eval(call, names)
        assert len(found) > 0
        assert {name.strip() for name in said.partition(": ")[2].split(",")} <= set(found.columns)
