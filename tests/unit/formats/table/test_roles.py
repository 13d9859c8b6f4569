"""Which column is what: by the one name that fits, or as the user says."""

import pytest
from table_files import load, refusal, write_csv
from typer.testing import CliRunner

from helm_ext.cli import app
from helm_ext.errors import DatasetError
from helm_ext.formats.table.format import FORMAT


class TestGuess:
    def test_never_takes_what_is_left_over_for_outputs(self, tmp_path):
        path = write_csv(tmp_path, ["question", "answer", "gpt"], ["?", "iron", "tin"])
        evalset = load(path)
        assert evalset.counts["recorded"] == 0
        said = (
            "runs      live: a model is asked, for no column is called output or the like, and output=COLUMN names none"
        )
        assert FORMAT.describe({"path": path})[-1] == said


class TestSaid:
    def test_a_column_called_output_names_no_model(self, tmp_path):
        path = write_csv(tmp_path, ["question", "answer", "output"], ["?", "iron", "iron"])
        assert FORMAT.name_model({"path": path}) == ""
        assert FORMAT.name_model({"path": path, "output": ["output"]}) == ""


def test_what_was_inferred_is_said_with_reasons(tmp_path):
    path = write_csv(tmp_path, ["Question", "A", "B", "Answer", "gpt"], ["?", "iron", "tin", "B", "tin"])
    assert FORMAT.describe({"path": path, "output": ["gpt"]}) == [
        f"{path}: 1 row, columns Question, A, B, Answer, gpt",
        "question  Question (the only column with a name for it)",
        "options   A+B (a column for each option)",
        "gold      Answer (the only column with a name for it)",
        "output    gpt (as given)",
        "golds     every gold is the label of an option",
        "runs      recorded: an output of every row",
    ]


class TestModel:
    def test_is_the_name_of_its_column_also_with_a_point(self, tmp_path):
        path = write_csv(tmp_path, ["question", "answer", "gpt-4.1", "gpt"], ["?", "iron", "tin", "zinc"])
        assert FORMAT.name_model({"path": path, "output": ["gpt-4.1"]}) == "gpt-4.1"
        assert FORMAT.name_model({"path": path, "output": ["gpt.text"]}) == ""

    @pytest.mark.parametrize(("output", "hint"), [
        ("gpt-4.2", "did you mean 'gpt-4.1'?"),
        ("mistral,x", "columns: question, answer, gpt-4.1, llama; several are joined by +: output=A+B"),
    ])  # fmt: skip
    def test_is_not_asked_for_where_the_column_does_not_exist(self, tmp_path, output, hint):
        path = write_csv(tmp_path, ["question", "answer", "gpt-4.1", "llama"], ["?", "iron", "tin", "zinc"])
        with pytest.raises(DatasetError) as error:
            FORMAT.name_model({"path": path, "output": [output]})
        assert str(error.value).endswith(f"output={output}: there is no such column\n  hint: {hint}")

    def test_is_not_asked_for_where_no_column_holds_outputs(self, tmp_path):
        path = write_csv(tmp_path, ["question", "answer", "gpt-4.1"], ["?", "iron", "tin"])
        with pytest.raises(DatasetError, match="output=COLUMN"):
            FORMAT.name_model({"path": path})

    def test_does_not_hide_that_no_column_holds_outputs(self, tmp_path):
        path = write_csv(tmp_path, ["question", "answer", "gpt"], ["?", "iron", "tin"])
        with pytest.raises(DatasetError, match="output=COLUMN(.|\n)*columns: question, answer, gpt"):
            CliRunner().invoke(app, ["score", path, "--model", "x", "-o", str(tmp_path)], catch_exceptions=False)

    def test_of_an_unknown_main_metric_is_told_those_that_are_measured(self, tmp_path):
        path = write_csv(tmp_path, ["question", "answer", "output"], ["?", "iron", "tin"])
        with pytest.raises(DatasetError, match="hint: .*measured: .*f1_score"):
            load(path, main_metric="exact_mach")

    def test_is_the_one_that_a_column_of_models_names(self, tmp_path):
        header = ["question", "answer", "model", "output"]
        one = write_csv(tmp_path, header, ["?", "iron", "zormun", "tin"], ["?", "tin", "zormun", "tin"])
        assert FORMAT.name_model({"path": one}) == "zormun"
        several = write_csv(tmp_path, header, ["?", "iron", "zormun", "tin"], ["?", "tin", "gpt", "tin"])
        with pytest.raises(DatasetError, match="the column model names several models"):
            FORMAT.name_model({"path": several})


@pytest.mark.parametrize(("header", "hint"), [
    (["question", "reply", "rating"], "output=COLUMN and scores=COLUMN"),
    (["question", "city, state", "x"], 'columns: question, "city, state", x'),
    (["question^answer"], "columns: question^answer; sep= where cells are parted otherwise"),
])  # fmt: skip
def test_the_hint_lets_the_user_mend_it(tmp_path, header, hint):
    assert hint in refusal(write_csv(tmp_path, header, ["1"] * len(header))).hint


def test_a_column_that_an_argument_takes_is_said_to_be_taken(tmp_path):
    path = write_csv(tmp_path, ["question", "answer", "output"], ["?", "x", "x"])
    assert refusal(path, gold="question").message == (
        "gold=question takes that column, and no other is called question, prompt, input, query, problem, "
        "instruction: which is the question?"
    )
