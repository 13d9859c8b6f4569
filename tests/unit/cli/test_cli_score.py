import json
from pathlib import Path

import pytest
from commands import run
from helm.common.object_spec import parse_object_spec
from request_states_files import answered, choice, state, write

from helm_ext import hub
from helm_ext.analysis.run_scores import WrongRow
from helm_ext.cli.common import parse_arguments, with_option
from helm_ext.cli.run_scores import make_wrong_list, show_value
from helm_ext.cli.score import deployment_of
from helm_ext.cli.session import load_arguments, make_run_spec
from helm_ext.errors import DatasetNotFoundError, RunEntryError
from helm_ext.formats import detect, get_format


def test_model_names():
    assert deployment_of("mine") == {"model": "recorded/mine"}
    assert deployment_of("recorded/mine") == {"model": "recorded/mine"}
    assert deployment_of("openai/gpt-4") == {"model": "openai/gpt-4", "model_deployment": "recorded/openai/gpt-4"}


def test_long_model_names_stand_once_in_a_runs_name():
    long = f"organization/{'m' * 60}"
    assert deployment_of(long) == {"model": f"recorded/organization-{'m' * 60}"}
    with pytest.raises(RunEntryError, match="too long a name"):
        deployment_of("m" * 100)


def test_arguments_may_hold_commas():
    assert parse_arguments(["extract=a,b", "seed=-3", "name=x=y"]) == {"extract": "a,b", "seed": -3, "name": "x=y"}
    for pair in ("seed", "=1"):
        with pytest.raises(RunEntryError, match=f"--arg {pair}: expected KEY=VALUE"):
            parse_arguments([pair])
    with pytest.raises(RunEntryError, match="--arg seed=2: seed is given twice"):
        parse_arguments(["seed=1", "seed=2"])


@pytest.mark.parametrize("value", ["0.1", "1e-3", "7", "-7", "007", "1_0", "--3", "1.10", "nan", "abc", "", "true"])
def test_values_are_those_that_helm_run_reads(value):
    expected = parse_object_spec(f"x:key={value}").args
    assert repr(parse_arguments([f"key={value}"])) == repr(expected)


def test_wrong_rows_are_listed(tmp_path):
    """A row that is read as nothing, one that is read as another option, and one right."""
    rows = [("1", "I think (B)."), ("2", "no idea\nat all"), ("3", "A")]
    states = [
        answered(choice(f"Which swims? {name}", ["cod", "cat"], id=name, split="test"), said) for name, said in rows
    ]
    spec = {"max_train_instances": 0, "reference_prefix": "A. ", "max_tokens": 5}
    file = write(tmp_path / "fish.jsonl", states, spec, name="fish")
    arguments = ["score", file, "--model", "m", "-o", tmp_path / "out", "--show"]
    shown = run(*arguments, "wrong").stdout
    assert shown.partition("wrong: 2\n")[2].splitlines()[:10] == [
        "1  0", "  question: Which swims? 1 | A: cod | B: cat", "  gold: cod", "  answer: I think (B).", "  read as: cat",
        "2  0", "  question: Which swims? 2 | A: cod | B: cat", "  gold: cod", "  answer: no idea at all",
        "  read as: nothing",
    ]  # fmt: skip
    shown = run(*arguments, "wrong=1").stdout
    assert "wrong: 2, the first 1; --show wrong=2 shows all\n" in shown
    assert "Which swims? 2" not in shown


def test_rows_in_epochs_have_two_intervals_of_the_score_that_was_said_of_each_answer(tmp_path):
    log = Path(__file__).parents[2] / "data" / "inspect" / "headlines" / "epochs_declared.eval"
    [metrics] = [
        json.loads(line)["metrics"] for line in run("score", log, "--json", "-o", tmp_path).stdout.splitlines()
    ]
    assert [name for name, said in metrics.items() if "these_rows" in said] == ["inspect_includes,max"]
    assert "low" in metrics["inspect_includes,max"]


def test_scores_are_shown_also_where_no_row_can_be_said_to_be_wrong(tmp_path):
    """No row of this log has a value for its main metric."""
    log = Path(__file__).parents[2] / "data" / "inspect" / "headlines" / "judged_unread.eval"
    said = run("score", log, "--show", "wrong", "-o", tmp_path, code=2)
    assert "no row has a stat 'inspect_model_graded_qa'" in said.stderr
    assert "normalized_exact_match" in said.stdout


def test_options_that_are_their_own_labels_are_listed_once():
    row = WrongRow("1", 0, "Which swims?", {"cod": "cod", "B": "cat"}, ["cod"], "cat", "cat")
    assert "question: Which swims? | cod | B: cat" in make_wrong_list([row], 1)


@pytest.mark.parametrize(
    ("value", "shown"), [(20000.0, "20,000"), (12345, "12,345"), (1.0, "1"), (0.83333, "0.8333"), (float("nan"), "nan")]
)
def test_counts_are_shown_with_all_their_digits(value, shown):
    assert show_value(value) == shown


def test_an_expander_that_changes_a_scenario_of_helms_own_is_an_unknown_argument(tmp_path):
    path = write(tmp_path / "f.json", [answered(state(), "mercury")])
    done = run("score", path, "--model", "m", "-o", tmp_path, "--arg", "tokenizer=a/b", code=2)
    assert "adapter_spec: unknown argument 'tokenizer'" in done.stderr


def test_an_unknown_argument_is_told_of_before_the_file_is_read(tmp_path):
    """Else the table would be said to lack what the argument was meant to name."""
    with pytest.raises(RunEntryError, match=r"table: unknown argument 'outputs'\n  hint: did you mean 'output'"):
        load_arguments(get_format("table"), tmp_path / "none.csv", {"outputs": "gpt"})
    arguments = {"output": "gpt", "num_train_trials": 2}  # the second is HELM's
    assert "num_train_trials" not in load_arguments(get_format("table"), tmp_path / "none.csv", arguments)


def test_answers_in_a_wrong_place_are_told_of_where_rows_count_as_not_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    misplaced = {**answered(state("2?"), "4"), "request": {"completions": [{"text": "4"}]}}
    write(tmp_path / "x.jsonl", [answered(state("1?"), "4"), misplaced])
    done = run("score", "x.jsonl", "--model", "a/b", code=1)
    assert "hint: completions is read in request.result" in done.stderr
    assert "error: 1 of 2 rows cannot be scored: 1 not run" in done.stderr


ASKED = {"question": "Which river?", "target_scores": {"Nile": 1, "Po": 0}}
LOG = [
    {"data": ASKED, "ground_truth": truth, "prompt_inputs": ["Q"], "raw_outputs": [output]}
    for truth, output in (("(A)", "Nile it is"), (["AB"], "AX"))
]
"""Right by its option, of the row itself; and one part, which is not there, not two letters of which one is."""
# Keys that the other format has at the same place, and whether a refusal is right.
CHATS = [
    {"id": "1", "messages": [{"role": "user", "content": "?"}], "expected": "Let us talk.", "refusal": True, "split": "dev", "input": "x"},
    {"id": "2", "messages": [{"role": "user", "content": "!"}], "expected": "4", "references": ["x"], "answer_mapping": 1},
]  # fmt: skip
REPLIES = [{"id": name, "reply": "I cannot help with that."} for name in "12"]


@pytest.mark.parametrize(("name", "arguments", "stats"), [
    ("log/instance.jsonl", ["--arg", "metric=qa_match+gaokaobench_match"], {"ultraeval_qa_match": 0.5, "ultraeval_gaokaobench_match": 0}),
    ("chats.zip", ["--arg", "replies=replies", "--arg", "metrics=refusal_match"], {"refusal_match_low": 0.5, "refusal_golds": 0.5}),
])  # fmt: skip
def test_what_scores_read_of_rows_is_converted(tmp_path, monkeypatch, name, arguments, stats):
    monkeypatch.chdir(tmp_path)
    Path("log").mkdir()
    for path, rows in (("log/instance.jsonl", LOG), ("chats", CHATS), ("replies", REPLIES)):
        Path(path).write_text("".join(json.dumps(row) + "\n" for row in rows))
    hub.pack(name="chats", test="chats")
    run("convert", name, "converted.jsonl", "--lossy", *arguments)
    for file, more in ((name, arguments), ("converted.jsonl", [])):
        scored = json.loads(run("score", file, "--model", "a/b", "--json", *more).stdout)
        assert {stat: scored["metrics"][stat]["mean"] for stat in stats} == stats


def test_a_file_that_does_not_exist_is_looked_for_nearby(tmp_path):
    (tmp_path / "my answers.csv").write_text("question,answer\n")
    with pytest.raises(
        DatasetNotFoundError, match="my_answers.csv: no such file\n  hint: did you mean 'my answers.csv'"
    ):
        detect(tmp_path / "my_answers.csv")


def test_a_model_that_helm_does_not_know_is_looked_for_in_the_list(tmp_path):
    (tmp_path / "x.csv").write_text("question,answer\nWhat is liquid?,mercury\n")
    with pytest.raises(RunEntryError, match=r"Unknown model .*local/none\n  hint: helm-ext model list shows"):
        make_run_spec(get_format("table"), tmp_path / "x.csv", {"model": "local/none"}, {})


def test_a_column_that_is_not_there_is_told_of_before_any_run_and_one_error_once(tmp_path):
    table = tmp_path / "t.csv"
    table.write_text("question,gold,alpha,beta\n1+1?,2,2,3\n2+2?,,4,4\n")
    for outputs, said in (
        ("alpha+betta", "did you mean 'beta'?"),
        ("alpha+beta", f"error: {table}: beta: the same error"),
    ):
        done = run("score", table, "--arg", f"output={outputs}", "-o", tmp_path / "out", code=1)
        assert said in done.stderr
        assert done.stderr.count(":3: no gold") == ("same" in said)
        assert not list((tmp_path / "out").rglob("stats.json"))


def test_a_column_with_a_plus_in_its_name_is_one_output(tmp_path):
    """By hand: gpt+rag is right twice, gpt once; so are both by a mapping file."""
    (tmp_path / "t.csv").write_text("question,gold,gpt+rag,gpt\n1+1?,2,2,3\n2+2?,4,4,4\n")
    (tmp_path / "m.table.json").write_text('{"path": "t.csv", "output": ["gpt+rag", "gpt"]}')
    for file, arguments in (("t.csv", ["--arg", "output=gpt%2Brag+gpt"]), ("m.table.json", [])):
        run("validate", tmp_path / file, *arguments)
        lines = run("score", tmp_path / file, *arguments, "--json", "-o", tmp_path / "out").stdout.splitlines()
        found = {one["model"]: one["metrics"]["exact_match"]["mean"] for one in map(json.loads, lines)}
        assert found == {"gpt+rag": 1.0, "gpt": 0.5}


def test_one_model_is_not_said_of_files_that_ask_the_same_without_a_word(tmp_path):
    for name, said in (("gpt", "3"), ("llama", "2"), ("other", "4")):
        question = "2+2?" if name == "other" else "1+1?"
        (tmp_path / f"{name}.csv").write_text(f"question,gold,output\n{question},2,{said}\n")
    said = run("score", tmp_path, "--model", "gpt", "-o", tmp_path / "out").stderr
    assert said.count(" asks what ") == 1
    assert f"{tmp_path}/llama.csv asks what {tmp_path}/gpt.csv asks, and --model gpt" in said


def test_outputs_by_path_are_those_of_several_models(tmp_path):
    """A path names no model. By hand: gpt is right, llama is not; under one name both would be one half."""
    row = {"question": "1+1?", "answer": "2", "outputs": {"gpt": "2", "llama": "3"}}
    (tmp_path / "t.jsonl").write_text(json.dumps(row) + "\n")
    paths = ["outputs.gpt", "outputs.llama"]
    done = run(
        "score", tmp_path / "t.jsonl", "--arg", f"output={'+'.join(paths)}", "--model", "m", "-o", tmp_path, code=2
    )
    assert (
        "holds outputs of 2 models, outputs.gpt, outputs.llama\n  hint: leave --model out, or name one" in done.stderr
    )
    for path, right in zip(paths, (1.0, 0.0), strict=True):
        said = run("score", tmp_path / "t.jsonl", "--arg", f"output={path}", "--model", "m", "--json", "-o", tmp_path)
        assert json.loads(said.stdout)["metrics"]["exact_match"]["mean"] == right


def test_what_is_warned_of_one_models_answers_names_it(tmp_path):
    """By hand: a's answers are the golds, b's hold both."""
    (tmp_path / "t.csv").write_text("question,gold,a,b\nq1?,one,one,It is one.\nq2?,two,two,It is two.\n")
    said = run("score", tmp_path / "t.csv", "--arg", "output=a+b", "-o", tmp_path).stderr
    assert f"warning: a: {tmp_path}/t.csv: every output is equal to its gold" in said
    assert "warning: b: 2 of 2 rows score 0 though the answer holds the gold" in said


@pytest.mark.parametrize(("program", "said"), [
    ("print(1)\n", "X.py: no format that is known reads this file\n  hint: --as FORMAT says which it is; each expects"),
    ("def transform(data, num_sample, r, dataset_name):\n", "X.py: a script, and no rows to run it on\n  hint: ultraeval:d"),
])  # fmt: skip
def test_a_program_is_no_dataset(tmp_path, monkeypatch, program, said):
    monkeypatch.chdir(tmp_path)
    Path("X.py").write_text(program)
    for command in (["score", "X.py", "--model", "m"], ["validate", "X.py"], ["preview", "X.py"]):
        done = run(*command, code=None)
        assert done.code
        assert said in done.stdout + done.stderr


def test_a_limit_of_a_metric_that_is_not_there_names_those_that_are(tmp_path):
    """The nearest first, though the table does not show it."""
    path = write(tmp_path / "x.json", [answered(state(), "mercury")])
    score = ("score", path, "--model", "m", "-o", tmp_path)
    for given, first in (("accuracy", "normalized_exact_match, exact_match, "), ("f1_scor", "f1_score, normalized_")):
        said = run(*score, "--fail-under", f"{given}=0.8", code=1).stderr
        assert f"no row has a value for {given}\n  hint: there are {first}" in said


def test_hints_name_arguments_as_they_are_typed(tmp_path):
    """Behind a command with `--arg`; in a run entry without it, where they are copied from as well."""
    for text, expected in (
        ("x.csv: gold=3 is no column\n  hint: gold=COLUMN, or gold=A+B", "--arg gold=COLUMN, or --arg gold=A+B"),
        ("no rows\n  hint: ultraeval:data=ROWS,transform=X,model=m", "ultraeval:data=ROWS,transform=X,model=m"),
        ("no rows\n  hint: --arg task=NAME, missing=skip", "--arg task=NAME, --arg missing=skip"),
        ("no rows\n  hint: --json prints 'gold=1'", "--json prints 'gold=1'"),
        ("no head\n  hint: question=1,options=2+3,gold=4", "--arg question=1 --arg options=2+3 --arg gold=4"),
    ):
        assert with_option(text) == text.partition("hint: ")[0] + f"hint: {expected}"
    path = tmp_path / "x.csv"
    path.write_text("question,answer,a\n1?,1,\n")
    assert "hint: say which hold them: --arg output=COLUMN" in run("score", path, code=1).stderr
    for command in ("score", "validate"):
        done = run(command, path, "--arg", "output=a", code=1)
        assert "hint: --arg empty=answer where it said nothing, --arg empty=" in done.stderr + done.stdout
