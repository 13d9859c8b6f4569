"""Which column is what: by the one name that fits, or as the user says."""

from __future__ import annotations

import pytest
from table_files import answers, golds, labels, load, refusal, write_csv, write_lines
from typer.testing import CliRunner

from helm_ext.cli import app
from helm_ext.errors import DatasetError
from helm_ext.formats.table.format import FORMAT


@pytest.mark.parametrize("question", ["question", "Prompt", "INPUT", "query", "problem", "instruction"])
@pytest.mark.parametrize("gold", ["answer", "answerKey", "Label", "target", "gold", "answers", "expected", "reference"])
def test_names_are_known_in_any_case(tmp_path, question, gold):
    path = write_csv(tmp_path, [question, gold, "Response"], ["Metal?", "iron", "zinc"])
    evalset = load(path)
    assert (golds(evalset), answers(evalset)) == ([["iron"]], [["zinc"]])


@pytest.mark.parametrize(
    ("columns", "names"),
    [
        (["A", "B", "C"], "ABC"),
        (["b", "a", "c"], "ABC"),
        (["option_a", "option_b"], "AB"),
        (["Option A", "Option B"], "AB"),
        (["choice1", "choice2"], "AB"),
        (["ending0", "ending1", "ending2"], "ABC"),
        (["answerA", "answerB"], "AB"),
    ],
)
def test_columns_of_options_are_found(tmp_path, columns, names):
    texts = {name: f"metal {name}" for name in columns}
    path = write_csv(
        tmp_path, ["question", *columns, "gold", "output"], ["?", *texts.values(), f"metal {columns[0]}", "x"]
    )
    assert labels(load(path)) == [dict(zip(names, (texts[name] for name in sorted(columns)), strict=True))]


def test_columns_that_look_like_options_are_not_taken_where_one_is_missing(tmp_path):
    path = write_csv(tmp_path, ["question", "option_a", "option_c", "gold"], ["?", "iron", "tin", "iron"])
    assert refusal(path).code == "options-gap"


def test_an_option_that_a_row_lacks_at_the_end_is_none(tmp_path):
    path = write_csv(
        tmp_path, ["question", "A", "B", "C", "answer"], ["?", "iron", "tin", "", "A"], ["?", "x", "y", "z", "C"]
    )
    assert [len(row) for row in labels(load(path))] == [2, 3]
    gap = write_csv(tmp_path, ["question", "A", "B", "C", "answer"], ["?", "iron", "", "tin", "A"])
    assert refusal(gap).location.line == 2


class TestGuess:
    @pytest.mark.parametrize(
        ("header", "code", "hint"),
        [
            (["question", "prompt", "answer"], "ambiguous-column", "say which: question=question or question=prompt"),
            (["question", "answer", "label"], "ambiguous-column", "say which: gold=answer or gold=label"),
            (
                ["question", "answer", "output", "response"],
                "ambiguous-column",
                "say which: output=output or output=response",
            ),
            (
                ["question", "gold", "choices", "A", "B"],
                "ambiguous-column",
                "say which: options=choices or options=A+B",
            ),
            (["item", "answer"], "no-question", None),
            (["question", "right"], "no-gold", None),
        ],
    )
    def test_needs_exactly_one_candidate(self, tmp_path, header, code, hint):
        found = refusal(write_csv(tmp_path, header, ["x"] * len(header)))
        assert found.code == code
        assert hint is None or found.hint == hint

    def test_names_the_columns_where_none_fits(self, tmp_path):
        found = refusal(write_csv(tmp_path, ["item", "answer"], ["x", "y"]))
        assert "columns: item, answer" in found.hint
        assert "header=no" in found.hint

    def test_never_takes_what_is_left_over_for_outputs(self, tmp_path):
        path = write_csv(tmp_path, ["question", "answer", "gpt"], ["?", "iron", "tin"])
        evalset = load(path)
        assert evalset.counts["recorded"] == 0
        said = (
            "runs      live: a model is asked, for no column is called output or the like, and output=COLUMN names none"
        )
        assert FORMAT.describe({"path": path})[-1] == said

    def test_one_column_is_one_thing(self, tmp_path):
        path = write_csv(tmp_path, ["question", "answer"], ["?", "iron"])
        assert refusal(path, output=["answer"]).code == "no-gold"
        assert refusal(path, output=["answer"], gold="answer").code == "column-twice"

    def test_leaves_out_what_is_named_for_something_else(self, tmp_path):
        header = ["question", "label", "answer"]
        evalset = load(write_csv(tmp_path, header, ["?", "iron", "tin"]), output=["answer"])
        assert (golds(evalset), answers(evalset)) == ([["iron"]], [["tin"]])

    def test_a_gold_called_output_is_no_output(self, tmp_path):
        path = write_csv(tmp_path, ["instruction", "output"], ["?", "iron"])
        assert load(path, gold="output").counts["recorded"] == 0


class TestSaid:
    def test_columns_are_taken_as_given(self, tmp_path):
        path = write_csv(tmp_path, ["frage", "x", "y", "antwort", "gpt"], ["?", "iron", "tin", "y", "tin"])
        evalset = load(
            path,
            question="frage",
            options=["x", "y"],
            gold="antwort",
            output=["gpt"],
            gold_kind="label",
            index_base=None,
        )
        assert (labels(evalset), golds(evalset), answers(evalset)) == (
            [{"X": "iron", "Y": "tin"}],
            [["tin"]],
            [["tin"]],
        )

    def test_a_column_that_is_not_there_is_refused_with_the_nearest(self, tmp_path):
        found = refusal(write_csv(tmp_path, ["frage", "answer"], ["?", "iron"]), question="farge")
        assert (found.code, found.hint) == ("unknown-column", "did you mean 'frage'?")

    def test_so_is_one_to_group_by(self, tmp_path):
        found = refusal(write_csv(tmp_path, ["question", "answer", "topic"], ["?", "iron", "ore"]), by=["topc"])
        assert (found.code, found.hint) == ("unknown-column", "did you mean 'topic'?")

    def test_paths_lead_into_cells(self, tmp_path):
        row = {"doc": {"q": "Metal?", "golds": ["iron"]}, "replies": [{"text": "tin"}], "meta": "{'topic': 'metals'}"}
        path = write_lines(tmp_path, row, row)
        evalset = load(path, question="doc.q", gold="doc.golds", output=["replies.0.text"], by=["meta.topic"])
        assert (golds(evalset), answers(evalset)[0]) == ([["iron"], ["iron"]], ["tin"])
        assert evalset.attributes == {"meta.topic": ("metals",)}

    def test_several_outputs_are_one_run_each_named_by_their_columns(self, tmp_path):
        path = write_csv(tmp_path, ["question", "answer", "gpt", "llama"], ["?", "iron", "iron", "tin"])
        tasks = FORMAT.tasks({"path": path, "output": ["gpt", "llama"]})
        assert tasks == [{"output": "gpt"}, {"output": "llama"}]
        assert [FORMAT.name_model({"path": path, **task, "output": [task["output"]]}) for task in tasks] == [
            "gpt",
            "llama",
        ]
        one, other = load(path, output=["gpt"]), load(path, output=["llama"])
        assert (answers(one), answers(other)) == ([["iron"]], [["tin"]])
        assert one.question_digest == other.question_digest

    def test_a_column_called_output_names_no_model(self, tmp_path):
        path = write_csv(tmp_path, ["question", "answer", "output"], ["?", "iron", "iron"])
        assert FORMAT.name_model({"path": path}) == ""
        assert FORMAT.name_model({"path": path, "output": ["output"]}) == ""


class TestWithoutHeader:
    ROWS = (["Metal?", "iron", "oak", "silk", "salt", "A"], ["Cloth, then?", "iron", "oak", "silk", "salt", "C"])

    def test_is_refused(self, tmp_path):
        found = refusal(write_csv(tmp_path, None, *self.ROWS))
        assert (found.code, "header=no" in found.hint) == ("no-question", True)

    def test_is_read_where_it_is_said(self, tmp_path):
        evalset = load(write_csv(tmp_path, None, *self.ROWS), header="no")
        assert golds(evalset) == [["iron"], ["silk"]]

    def test_of_another_shape_needs_numbers(self, tmp_path):
        path = write_csv(tmp_path, None, ["Metal?", "iron", "tin"])
        assert refusal(path, header="no").code == "no-header"
        lines = write_lines(tmp_path, {"question": "x"}, {"question": "y", "answer": "B"})
        assert refusal(lines, header="no").code == "no-header"
        evalset = load(path, header="no", question="1", gold="2", output=["3"])
        assert (golds(evalset), answers(evalset)) == ([["iron"]], [["tin"]])


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


class TestColumnsOfOptions:
    def test_are_none_where_one_of_them_holds_outputs(self, tmp_path):
        header = ["question", "answer", "answer1", "answer2", "answer3"]
        path = write_csv(tmp_path, header, ["?", "iron", "iron", "tin", "lead"])
        assert labels(load(path, output=["answer3"])) == [None]

    @pytest.mark.parametrize("role", ["question", "gold", "output", "id", "by"])
    def test_stay_where_a_column_beyond_a_gap_is_named_for_something_else(self, tmp_path, role):
        """A column called `m` is no fifth option after A to D, and takes nothing away from them."""
        columns = {"question": "question", "gold": "answer", "output": "output"}
        names = [name for key, name in columns.items() if key != role]
        path = write_csv(tmp_path, [*names, "A", "B", "C", "D", "m"], [*"B" * len(names), *"wxyz", "B"])
        said = {role: ["m"] if role in ("output", "by") else "m"}
        assert labels(load(path, **said)) == [dict(zip("ABCD", "wxyz", strict=True))]

    def test_with_an_unrelated_letter_can_be_named_without_it(self, tmp_path):
        path = write_csv(tmp_path, ["question", "answer", *"ABCN"], ["?", "B", *"wxyz"])
        found = refusal(path)
        assert (found.code, found.hint) == (
            "options-gap", "name them: options=A+B+C, or options=A+B+C+N"
        )  # fmt: skip

    def test_may_not_be_more_than_there_are_letters(self, tmp_path):
        header = ["question", "answer", *(f"option{n}" for n in range(1, 28))]
        assert refusal(write_csv(tmp_path, header, ["?", "1", *range(27)])).code == "options"


class TestModel:
    def test_is_the_name_of_its_column_also_with_a_point(self, tmp_path):
        path = write_csv(tmp_path, ["question", "answer", "gpt-4.1", "gpt"], ["?", "iron", "tin", "zinc"])
        assert FORMAT.name_model({"path": path, "output": ["gpt-4.1"]}) == "gpt-4.1"
        assert FORMAT.name_model({"path": path, "output": ["gpt.text"]}) == ""

    @pytest.mark.parametrize(
        ("output", "hint"),
        [
            ("gpt-4.1, llama", "several are joined by +: output=gpt-4.1+llama"),
            ("gpt-4.2", "did you mean 'gpt-4.1'?"),
            ("mistral,x", "columns: question, answer, gpt-4.1, llama"),
        ],
    )
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
        with pytest.raises(DatasetError, match="the column model names 2 models"):
            FORMAT.name_model({"path": several})
