"""What cells mean: golds, outputs, options, splits."""

from __future__ import annotations

import pytest
from table_files import answers, golds, labels, load, refusal, write_csv, write_lines

from helm_ext.formats.table.format import FORMAT

MC = ["question", "A", "B", "C", "answer", "output"]
METALS = ("iron", "tin", "oak")


class TestOutputs:
    def test_an_empty_cell_of_csv_is_refused_unless_it_is_said_what_it_is(self, tmp_path):
        path = write_csv(tmp_path, ["question", "answer", "output"], ["?", "iron", "iron"], ["?", "tin", ""])
        found = refusal(path)
        assert (found.location.line, found.hint.partition(" ")[0]) == (3, "empty=answer")
        assert answers(load(path, empty="answer")) == [["iron"], [""]]
        assert answers(load(path, empty="not_run")) == [["iron"], "not_run"]

    def test_in_json_null_is_not_run_and_an_empty_text_is_an_answer(self, tmp_path):
        rows = [{"question": "?", "answer": "iron", "output": output} for output in ("tin", None, "")]
        path = write_lines(tmp_path, *rows, {"question": "?", "answer": "iron"})
        evalset = load(path)
        assert answers(evalset) == [["tin"], "not_run", [""], "not_run"]
        assert (evalset.counts["recorded"], evalset.counts["not_run"], evalset.counts["read"]) == (2, 2, 4)

    def test_a_list_is_several_answers(self, tmp_path):
        path = write_lines(tmp_path, {"question": "?", "answer": "iron", "output": ["iron", "tin"]})
        assert answers(load(path)) == [["iron", "tin"]]

    @pytest.mark.parametrize("output", [{"text": "iron"}, [1.5, 2.5], ["iron", None]])
    def test_what_is_no_text_is_refused(self, tmp_path, output):
        path = write_lines(tmp_path, {"question": "?", "answer": "iron", "output": output})
        assert refusal(path).location.line == 1

    @pytest.mark.parametrize(
        ("output", "read"),
        [(True, "true"), ("False.", "False."), (1, "yes"), (0.0, "no"), ("Yes, it is.", "Yes, it is.")],
    )
    def test_to_a_gold_that_is_true_or_false_may_be_numbers(self, tmp_path, output, read):
        path = write_lines(tmp_path, {"question": "?", "answer": True, "output": output})
        assert answers(load(path)) == [[read]]

    @pytest.mark.parametrize(
        ("options", "gold", "output", "expected"),
        [
            # Golds are positions: so are outputs, if all are counted as the golds are; words stay words.
            (METALS, (0, 2, 1), (1, 2, 0), ["B", "C", "A"]),
            (METALS, (0, 2), (1, 3), "positions"),
            (METALS, (0, 1), ("A", "tin"), ["A", "tin"]),
            # Golds are labels or texts: numbers that may be positions are refused.
            *(
                (METALS, gold, output, "positions")
                for gold in ("ABC", METALS)
                for output in ("012", "123", ("0", "", "-1"))
            ),
            # A number that some option is called leaves the others positions.
            ([("10", "20", "30"), ("1", "2", "3"), ("10", "20", "30")], "012", ("0", "1", ""), ["A", "B", ""]),
            # Among words they are refused where they prevail.
            *((METALS, gold, ("0", "The answer is 1", "2"), "positions") for gold in ("012", "ABC")),
            *((METALS, gold, ("A", "2", "the oak"), ["A", "2", "the oak"]) for gold in ("012", "ABC")),
            # What may be a position or a text is refused.
            (("1", "2", "3"), "02", "12", "positions"),
            # Texts of options, and others that are counted.
            *((("3", "5", "7"), gold, ("3", "41"), ["3", "41"]) for gold in ("AC", "37")),
        ],
    )
    def test_numbers_are_positions_or_texts(self, tmp_path, options, gold, output, expected):
        each = options if isinstance(options, list) else [options] * len(gold)
        rows = [["?", *texts, *pair] for texts, *pair in zip(each, gold, output, strict=True)]
        path = write_csv(tmp_path, MC, *rows)
        if expected == "positions":
            assert refusal(path, empty="answer").code == "positions"
            return
        evalset = load(path, empty="answer")
        assert answers(evalset) == [[text] for text in expected]
        said = "1 output is a number that names no option" in str(evalset.warnings)
        assert said == ("41" in output or output == ("A", "2", "the oak"))

    def test_outputs_that_are_all_golds_are_doubted(self, tmp_path):
        path = write_csv(tmp_path, ["question", "answer", "output"], ["?", "iron", "iron "], ["?", "tin", "tin"])
        assert ["equal to its gold" in str(warning) for warning in load(path).warnings].count(True) == 1

    def test_a_column_without_any_is_refused(self, tmp_path):
        path = write_lines(tmp_path, {"question": "?", "answer": "iron", "output": None})
        assert refusal(path).code == "no-outputs"


class TestGolds:
    def test_are_decided_over_the_whole_column(self, tmp_path):
        texts = ["iron", "tin", "oak"]
        path = write_csv(tmp_path, MC, *(["?", *texts, gold, "A"] for gold in ("1", "2", "3")))
        assert golds(load(path)) == [["iron"], ["tin"], ["oak"]]
        doubtful = write_csv(tmp_path, MC, *(["?", *texts, gold, "A"] for gold in ("1", "2")))
        found = refusal(doubtful)
        assert (found.code, found.location.field) == ("gold-ambiguous", "answer")
        assert golds(load(doubtful, index_base=0)) == [["tin"], ["oak"]]

    def test_that_are_hidden_are_refused(self, tmp_path):
        path = write_csv(tmp_path, MC, ["?", "iron", "tin", "oak", "A", "A"], ["?", "iron", "tin", "oak", "", "A"])
        assert (refusal(path).code, refusal(path).location.line) == ("gold-hidden", 3)

    @pytest.mark.parametrize("cell", ['["iron", "Fe"]', "['iron', 'Fe']"])
    def test_may_be_a_list_in_a_cell(self, tmp_path, cell):
        path = write_csv(tmp_path, ["question", "answer", "output"], ["?", cell, "Fe"])
        assert golds(load(path)) == [["iron", "Fe"]]

    def test_are_texts_where_only_some_look_like_lists(self, tmp_path):
        path = write_csv(tmp_path, ["question", "answer", "output"], ["Range?", "[0, 1]", "0"], ["?", "iron", "iron"])
        assert golds(load(path)) == [["[0, 1]"], ["iron"]]

    def test_lists_of_numbers_are_refused_unless_it_is_said_what_they_are(self, tmp_path):
        path = write_csv(tmp_path, ["question", "answer", "output"], ["Range?", "[0, 1]", "0"])
        assert refusal(path).code == "list"
        assert golds(load(path, gold_kind="text")) == [["[0, 1]"]]
        assert golds(load(path, gold_kind="list")) == [["0", "1"]]

    @pytest.mark.parametrize("cell", ["['iron' 'Fe']", "['iron'\n 'Fe']", "[iron, Fe]", "['iron', 'Fe'"])
    def test_a_list_as_numpy_prints_it_is_refused(self, tmp_path, cell):
        path = write_csv(tmp_path, ["question", "choices", "answer"], ["?", cell, "iron"])
        assert refusal(path).location.line == 2

    def test_an_object_in_a_cell_is_refused(self, tmp_path):
        path = write_csv(tmp_path, ["question", "answer", "output"], ["?", "{'value': 'iron'}", "iron"])
        assert refusal(path).code == "cell"
        assert golds(load(path, gold_kind="text")) == [["{'value': 'iron'}"]]

    @pytest.mark.parametrize("gold", ["A", "A,C", "(A); (B)"])
    def test_letters_without_options_are_doubted(self, tmp_path, gold):
        path = write_csv(tmp_path, ["question", "answer", "output"], ["?", gold, "A."], ["?", "B", "C"])
        assert any("every gold is a letter" in str(warning) for warning in load(path).warnings)

    @pytest.mark.parametrize("gold", ['["A", "C"]', "['iron', 'oak']", "[1, 0, 1]"])
    def test_several_options_are_all_the_answer_or_any_of_them(self, tmp_path, gold):
        """Where outputs name several too, the table is refused, unless it is said."""
        other = "[0, 1, 0]" if "0" in gold else '["B"]' if "A" in gold else "['tin']"
        rows = [["?", *METALS, gold, "<think>A and B?</think>C"], ["?", *METALS, other, "B, C"]]
        (warning,) = load(write_csv(tmp_path, MC, *rows)).warnings[-1:]
        assert "1 row has several right options: any of them counts; multi_label=true" in str(warning)
        path = write_csv(tmp_path, MC, ["?", *METALS, gold, "A, C"], *rows)
        found = refusal(path)
        assert (found.code, found.location.line) == ("several-right", 2)
        assert found.hint.startswith("multi_label=true")
        mapping = tmp_path / "metals.table.json"
        mapping.write_text('{"path": "metals.csv", "adapter_spec": {"multi_label": true}}')
        for asked, multi_label in (
            ({"path": path, "multi_label": True}, True), ({"path": path, "multi_label": False}, False),
            ({"path": mapping}, True), ({"path": mapping, "multi_label": False}, False),
        ):  # fmt: skip
            evalset = FORMAT.load(**asked)
            assert evalset.adapter_spec.multi_label is multi_label
            assert golds(evalset) == [["iron", "oak"], ["iron", "oak"], ["tin"]]
            assert "several right" not in str(evalset.warnings)

    @pytest.mark.parametrize("words", [("TRUE", "FALSE"), ("True", "False"), ("true", "false")])
    def test_true_and_false_are_words_in_csv(self, tmp_path, words):
        rows = [["?", gold, output] for gold, output in zip(words, ["Yes.", "False, it is not."], strict=True)]
        evalset = load(write_csv(tmp_path, ["question", "answer", "output"], *rows))
        assert (golds(evalset), labels(evalset)[0]) == ([["yes"], ["no"]], {"false": "no", "true": "yes"})

    def test_true_among_other_texts_is_a_text(self, tmp_path):
        path = write_csv(tmp_path, ["question", "answer", "output"], ["?", "True", "x"], ["?", "iron", "x"])
        assert golds(load(path)) == [["True"], ["iron"]]


class TestOptions:
    def test_may_end_in_nulls(self, tmp_path):
        row = {"question": "?", "choices": ["iron", "tin", None], "answer": "B", "output": "tin"}
        assert labels(load(write_lines(tmp_path, row))) == [{"A": "iron", "B": "tin"}]

    @pytest.mark.parametrize(
        ("choices", "expected"),
        [
            (["iron", "tin"], {"A": "iron", "B": "tin"}),
            ({"text": ["iron", "tin"], "label": ["1", "2"]}, {"1": "iron", "2": "tin"}),
            ({"label": ["1", "2"], "text": ["iron", "tin"]}, {"1": "iron", "2": "tin"}),
            ([{"label": "A", "text": "iron"}, {"label": "B", "text": "tin"}], {"A": "iron", "B": "tin"}),
            ({"A": "iron", "B": "tin"}, {"A": "iron", "B": "tin"}),
            ("['iron', 'tin']", {"A": "iron", "B": "tin"}),
        ],
    )
    def test_stand_in_one_column_in_many_shapes(self, tmp_path, choices, expected):
        path = write_lines(tmp_path, {"question": "?", "choices": choices, "answer": "tin", "output": "tin"})
        assert (labels(load(path)), golds(load(path))) == ([expected], [["tin"]])

    @pytest.mark.parametrize(
        "choices",
        [
            None,
            [],
            ["iron"],
            "iron|tin",
            {"text": ["iron", "tin"], "label": ["A"]},
            {"text": ["a", "b"], "label": ["A", "A"]},
            ["iron", ["tin"]],
            7,
        ],
    )
    def test_of_another_shape_are_refused(self, tmp_path, choices):
        good = {"question": "?", "choices": ["iron", "tin"], "answer": "tin", "output": "tin"}
        path = write_lines(tmp_path, good, {**good, "choices": choices})
        assert refusal(path).location.line == 2


class TestQuestions:
    def test_follow_their_passage(self, tmp_path):
        path = write_csv(
            tmp_path, ["passage", "question", "answer", "output"], ["Iron rusts.", "What rusts?", "iron", "iron"]
        )
        assert load(path).instances[0].input.text == "Iron rusts.\nWhat rusts?"

    def test_may_be_conversations(self, tmp_path):
        turns = [{"role": "user", "content": "Metal?"}]
        path = write_lines(tmp_path, {"question": turns, "answer": "iron", "output": "iron"})
        evalset = load(path)
        assert (evalset.adapter_spec.method, evalset.instances[0].input.messages) == ("chat", turns)

    @pytest.mark.parametrize("question", [None, "", {"a": 1}, [1]])
    def test_a_row_without_one_is_refused_with_its_line(self, tmp_path, question):
        good = {"question": "?", "answer": "iron", "output": "tin"}
        assert refusal(write_lines(tmp_path, good, {**good, "question": question})).location.line == 2

    def test_all_bad_rows_are_listed(self, tmp_path):
        from helm_ext.formats.table.format import FORMAT

        bad = {"question": None, "answer": "iron", "output": "tin"}
        problems, _ = FORMAT.check(path=write_lines(tmp_path, {**bad, "question": "?"}, bad, bad))
        assert [problem.location.line for problem in problems] == [2, 3]


class TestSplits:
    ROWS = [{"question": f"{n}?", "answer": "iron", "split": split} for n, split in enumerate(["train", "val", "test"])]

    def test_a_column_of_them_is_known(self, tmp_path):
        evalset = load(write_lines(tmp_path, *self.ROWS))
        assert [instance.split for instance in evalset.instances] == ["train", "valid", "test"]
        assert evalset.adapter_spec.max_train_instances == 5

    def test_some_are_read_alone(self, tmp_path):
        evalset = load(write_lines(tmp_path, *self.ROWS), splits=["val"])
        assert [instance.input.text for instance in evalset.instances] == ["1?"]

    def test_a_column_of_other_words_is_none_unless_it_is_named(self, tmp_path):
        path = write_lines(tmp_path, *({**row, "split": "indomain"} for row in self.ROWS))
        assert {instance.split for instance in load(path).instances} == {"test"}
        assert refusal(path, split="split").code == "split"

    @pytest.mark.parametrize("typo", ["tset", "", "indomain"])
    def test_are_refused_where_only_some_rows_name_one(self, tmp_path, typo):
        """One typo made test rows of all train rows."""
        found = refusal(write_lines(tmp_path, *self.ROWS, {**self.ROWS[0], "split": typo}))
        assert (found.code, found.location.line, found.message) == (
            "split", 4, f'the split "{typo}" is neither train, validation nor test'
        )  # fmt: skip


def test_ids_are_kept_and_their_absence_is_no_error(tmp_path):
    path = write_csv(tmp_path, ["qid", "question", "answer", "output"], ["007", "?", "iron", "tin"])
    assert load(path).instances[0].id == "007"


def test_outputs_that_read_like_errors_are_counted_aloud(tmp_path):
    texts = ["4", "ERROR: rate limit exceeded", "None", "nan", "none of them"]
    path = write_csv(
        tmp_path, ["question", "answer", "output"], *(["?", "4", text] for text in texts), ["?", "none", "None"]
    )
    (said,) = (str(one) for one in load(path).warnings if "missing values" in str(one))
    assert '3 outputs read like errors or missing values, the first in line 3: "ERROR: rate limit exceeded"' in said


def test_all_that_is_wrong_is_found_at_once(tmp_path):
    """A row, the golds, the splits: each was the only error of one round."""
    path = write_csv(
        tmp_path, ["question", "answer", "split"], ["?", "iron", "train"], ["", "tin", "test"], ["?", "", "test"],
        ["", "zinc", "tset"],
    )  # fmt: skip
    problems, _ = FORMAT.check(path=path)
    assert [(each.code, each.location.line) for each in problems] == [
        ("cell", 3), ("gold-hidden", 4), ("cell", 5), ("split", 5),
    ]  # fmt: skip
    (hidden,) = (each for each in problems if each.code == "gold-hidden")
    assert hidden.hint.startswith("write the gold, or remove the row")


def test_live_rows_that_could_not_be_scored_are_refused_before_a_model_is_asked(tmp_path):
    """Without a right reference HELM fails only after all requests were paid for."""
    path = write_csv(
        tmp_path, ["question", "A", "B", "C", "answer"], ["Shoe?", "boot", "hat", "boot", "A"],
        ["Hat?", "boot", "hat", "boot", "B"], ["Foot?", "boot", "boot", "hat", "B"],
    )  # fmt: skip
    problems, _ = FORMAT.check(path=path)
    said = "the row has no score: two options read the same, and one of them is right"
    assert [(each.location.line, each.message) for each in problems if each.severity == "error"] == [
        (2, said),
        (4, said),
    ]
    assert not [each for each in problems if each.code == "not-run"]
    assert refusal(path).code == "unscored"


def test_live_rows_have_one_sequence_of_labels(tmp_path):
    rows = [
        {"question": "?", "choices": {"text": ["iron", "tin"], "label": names}, "answer": names[1]}
        for names in ("12", "AB")
    ]
    rows = [{**row, "choices": {**row["choices"], "label": list(row["choices"]["label"])}} for row in rows]
    evalset = load(write_lines(tmp_path, *rows))
    assert (evalset.adapter_spec.method, golds(evalset)) == ("multiple_choice_joint", [["tin"], ["tin"]])


def test_a_table_without_rows_is_refused(tmp_path):
    assert refusal(write_csv(tmp_path, ["question", "answer"])).code == "no-rows"


def test_what_is_no_table_is_refused(tmp_path):
    path = tmp_path / "x.txt"
    path.write_text("question,answer\n?,iron\n")
    assert refusal(str(path)).code == "unknown-table"
    assert load(str(path), sep="comma").counts["rows"] == 1
