"""Runs that tables average, and runs of a file that has changed since: said where people look."""

import json

import lm_eval_logs
import pytest
from table_files import write_csv, write_lines
from typer.testing import CliRunner

from helm_ext.analysis import find_runs
from helm_ext.analysis.report.gathering import gather
from helm_ext.analysis.siblings import TIMES_FILE, find_siblings, read_sibling
from helm_ext.cli import app
from helm_ext.errors import HelmExtError
from helm_ext.running import StreamingSummarizer


def command(*arguments):
    done = CliRunner().invoke(app, [*map(str, arguments)])
    if done.exception is not None and not isinstance(done.exception, SystemExit | HelmExtError):
        raise done.exception
    return done


def score(tmp_path, *arguments):
    return command("score", *arguments, "-o", tmp_path / "out")


@pytest.fixture
def table(tmp_path):
    return write_csv(tmp_path, ("question", "gold", "alpha", "beta"), ("1+1?", "2", "2", "3"), ("2+2?", "4", "4", "5"))


def names_of_rows(tmp_path):
    """Return the first column of each dataset's table on a leaderboard."""
    summarizer = StreamingSummarizer(
        release=None, suites=None, suite="score", schema_path=None, output_path=tmp_path / "out", verbose=False,
        num_threads=1, allow_unknown_models=True,
    )  # fmt: skip
    summarizer.run_pipeline(skip_completed=False)
    tables = sorted((tmp_path / "out" / "runs" / "score" / "groups").glob("metals-*.json"))
    return [row[0]["value"] for path in tables for row in json.loads(path.read_bytes())[0]["rows"]]


@pytest.mark.long
def test_outputs_of_several_models_are_not_one_run(tmp_path, table):
    """In columns, and in rows of one column."""
    done = score(tmp_path, table, "--arg", "output=alpha+beta", "--model", "foo")
    assert str(done.exception) == (
        f"--model foo: {table} holds outputs of 2 models, alpha, beta\n"
        "  hint: leave --model out, or name one: --arg output=alpha"
    )
    assert not (tmp_path / "out").exists()
    rows = [{"question": f"{at}+1?", "gold": str(at + 1), "output": "2", "model": name}
            for at in range(2) for name in ("alpha", "beta")]  # fmt: skip
    file = write_lines(tmp_path, *rows)
    done = score(tmp_path, file, "--model", "m")
    assert "the column model names several models" in str(done.exception)
    same = write_lines(tmp_path, *({**row, "model": "alpha"} for row in rows), name="same.jsonl")
    for arguments in ((table, "--arg", "output=alpha"), (file, "--arg", "by=model"), (same,)):
        assert score(tmp_path, *arguments, "--model", "m").exit_code == 0


@pytest.mark.long
def test_tasks_that_name_no_model_or_cannot_be_read_are_no_other_model(tmp_path):
    """Two tasks without a results file, which would name the model, and one that is broken."""
    for task in ("lx_sums", "lx_lists"):
        rows = lm_eval_logs.lines(lm_eval_logs.samples(task))
        lm_eval_logs.write(lm_eval_logs.samples(task, tmp_path), rows)
    lm_eval_logs.samples("broken", tmp_path).write_text("{}\n")
    done = score(tmp_path, tmp_path, "--as", "lm_eval", "--model", "m")
    assert done.exit_code == 1
    assert done.output.count("written to ") == 2
    assert "error: " in done.output


@pytest.mark.long
def test_a_mean_of_two_runs_is_said(tmp_path, table):
    first = score(tmp_path, table, "--arg", "output=alpha", "--model", "foo")
    assert "the mean of" not in first.output
    second = score(tmp_path, table, "--arg", "output=beta", "--model", "foo")
    assert "warning: foo on metals-" in second.output.replace("recorded/", "")
    assert "HELM's tables show one number for 2 runs, their mean: " in second.output
    assert names_of_rows(tmp_path) == ["recorded/foo (mean of 2 runs)"]
    assert "stale" not in second.output


@pytest.mark.long
@pytest.mark.parametrize("corrected", ["output", "question"])
def test_the_run_of_a_file_that_was_corrected_is_stale(tmp_path, table, corrected):
    """Where the question was corrected too, the runs are of two datasets, and are not averaged."""
    score(tmp_path, table, "--arg", "output=alpha")
    question = "1+1=?" if corrected == "question" else "1+1?"
    write_csv(tmp_path, ("question", "gold", "alpha", "beta"), (question, "2", "9", "3"), ("2+2?", "4", "4", "5"))
    done = score(tmp_path, table, "--arg", "output=alpha")
    runs, _ = find_runs([tmp_path / "out"])
    assert len(runs) == 2
    old, new = sorted(runs, key=lambda run: (run.folder / TIMES_FILE).read_text())
    said = f"stale: {old.name} was finished "
    assert f"warning: {said}" in done.output
    assert f"{new.name} was finished" in done.output
    assert ("one number for 2 runs" in done.output) == (corrected == "output")
    assert ("1 of them stale" in done.output) == (corrected == "output")
    assert "a model's name of its own" not in done.output  # deleting the stale run is enough, as the other hint says
    assert ("without what is stale, they show " in done.output) == (corrected == "output")
    compared = command("compare", tmp_path / "out")
    assert f"note: {said}" in compared.output
    assert "one number" not in compared.output  # it makes no such table
    datasets, notes = gather(runs)
    assert any(note.startswith(said) for note in notes)
    models = sorted(run.scores.model for dataset in datasets for run in dataset.runs)
    assert models[0] == "alpha"
    assert models[1].startswith("alpha (stale: 20")
    expected = ["recorded/alpha (mean of 2 runs, 1 stale)"]
    if corrected == "question":
        expected = ["recorded/alpha", "recorded/alpha (stale)"]
    assert sorted(names_of_rows(tmp_path)) == expected


@pytest.mark.long
def test_comparisons_of_stale_runs_come_last_and_are_no_more_datasets_and_models(tmp_path, table):
    """The first file gets the larger digest's place by chance: both orders are tried."""
    for first, then in (("1+1?", "1+1=?"), ("1 + 1?", "1+1 ?")):
        out = tmp_path / first
        for question in (first, then):
            write_csv(
                tmp_path, ("question", "gold", "alpha", "beta"), (question, "2", "2", "3"), ("2+2?", "4", "4", "5")
            )
            assert command("score", table, "--arg", "output=alpha+beta", "-o", out).exit_code == 0
        output = command("compare", out).stdout
        headings = [line for line in output.splitlines() if line.startswith("metals-")]
        assert [line.endswith(" (stale: the file has changed since)") for line in headings] == [False, True]
        lines = command("compare", out, "--json").stdout.splitlines()
        assert [json.loads(line)["stale"] for line in lines] == [False, True]
        page = out / "report.html"
        command("report", out, "--out", page)
        assert "<p>1 dataset, 2 models, stale runs not counted. " in page.read_text()


@pytest.mark.long
def test_runs_of_one_table_with_other_attributes_stand_side_by_side(tmp_path):
    header, rows = (
        ("question", "gold", "alpha", "beta", "kind"),
        (("1+1?", "2", "2", "3", "a"), ("2+2?", "4", "4", "5", "b")),
    )
    table = write_csv(tmp_path, header, *rows)
    for output, more in (("alpha", ()), ("beta", ("--arg", "by=kind"))):
        assert score(tmp_path, table, "--arg", f"output={output}", *more).exit_code == 0
    datasets, _ = gather(find_runs([tmp_path / "out"])[0])
    assert [[run.scores.model for run in one.runs] for one in datasets] == [["alpha", "beta"]]
    assert [(pair.rows, pair.slice) for pair in datasets[0].pairs] == [(2, "")]


@pytest.mark.long
def test_the_model_that_every_row_of_a_run_names_is_the_model(tmp_path, table):
    """HELM's own file, what is converted from it, and the same with one row of another model or of none."""
    score(tmp_path, table, "--arg", "output=alpha", "--model", "org/alpha")
    (run,) = find_runs([tmp_path / "out"])[0]
    state, lines = run.folder / "scenario_state.json", tmp_path / "alpha.jsonl"
    assert command("convert", state, lines).exit_code == 0
    for file in (state, lines):
        done = command("score", file, "-o", tmp_path / f"out-{file.suffix}")
        assert "org/alpha on " in done.output
        assert done.exit_code == 0
    header, row, last = map(json.loads, lines.read_text().splitlines())
    for request in ({**last["request"], "model_deployment": "recorded/org/beta"}, {"prompt": ""}):
        write_lines(tmp_path, header, row, {**last, "request": request}, name="mixed.jsonl")
        done = command("score", tmp_path / "mixed.jsonl", "-o", tmp_path / "mixed")
        assert "the file does not say whose completions it holds" in str(done.exception)


@pytest.mark.long
def test_what_counts_is_the_time_that_a_run_says(tmp_path, table):
    """The files' own times change when they are copied. A run that says none is neither old nor new."""
    score(tmp_path, table, "--arg", "output=alpha")
    write_csv(tmp_path, ("question", "gold", "alpha"), ("1+1?", "2", "9"), ("2+2?", "4", "4"))
    score(tmp_path, table, "--arg", "output=alpha")
    folders = [run.folder for run in find_runs([tmp_path / "out"])[0]]
    for folder, finished in zip(folders, ("2031-01-01", "2030-01-01"), strict=True):
        (folder / TIMES_FILE).write_text(json.dumps({"finished": finished}))
    assert list(find_siblings(map(read_sibling, folders)).find_stale()) == [folders[1]]
    (folders[0] / TIMES_FILE).unlink()
    siblings = find_siblings(map(read_sibling, folders))
    assert siblings.find_stale() == {}
    assert "not all of them say when they were made" in siblings.describe()[0]


def test_runs_of_other_scenarios_are_left_alone(tmp_path):
    spec = {"scenario_spec": {"class_name": "helm.Scenario"}, "adapter_spec": {}, "name": "x", "groups": ["x"]}
    assert read_sibling(tmp_path) is None
    (tmp_path / "run_spec.json").write_text(json.dumps(spec))
    assert read_sibling(tmp_path) is None
    assert find_siblings([None]) == find_siblings([])


@pytest.mark.long
def test_a_rule_for_rows_without_an_answer_makes_no_other_file(tmp_path, table):
    """Wherever it stands in the run entry."""
    score(tmp_path, table, "--arg", "output=alpha")
    (run,) = find_runs([tmp_path / "out"])[0]
    plain = read_sibling(run.folder).identity
    file = run.folder / "run_spec.json"
    spec = json.loads(file.read_text())
    kind, _, rest = spec["name"].partition(":")
    first, _, others = rest.partition(",")
    for name in (
        f"{kind}:empty=not_run,{rest}",
        f"{kind}:{first},missing=skip,{others}",
        f"{spec['name']},missing=skip",
    ):
        file.write_text(json.dumps({**spec, "name": name}))
        assert read_sibling(run.folder).identity == plain
