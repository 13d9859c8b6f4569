"""What cells mean: golds, outputs, options, splits."""

import pytest
from table_files import answers, golds, load, refusal, write_csv, write_lines

from helm_ext.formats.table.format import FORMAT

MC = ["question", "A", "B", "C", "answer", "output"]
METALS = ("iron", "tin", "oak")


class TestOutputs:
    @pytest.mark.parametrize(("options", "gold", "output", "expected"), [
        # Golds are positions: so are outputs, if all are counted as the golds are; words stay words.
        (METALS, (0, 2, 1), (1, 2, 0), ["B", "C", "A"]), (METALS, (0, 2), (1, 3), "positions"),
        (METALS, (0, 1), ("A", "tin"), ["A", "tin"]),
        # Golds are labels or texts: numbers that may be positions are refused.
        *((METALS, gold, output, "positions") for gold in ("ABC", METALS) for output in ("012", "123", ("0", "", "-1"))),
        # A number that some option is called leaves the others positions.
        ([("10", "20", "30"), ("1", "2", "3"), ("10", "20", "30")], "012", ("0", "1", ""), ["A", "B", ""]),
        # Among words they are refused where they prevail.
        *((METALS, gold, ("0", "The answer is 1", "2"), "positions") for gold in ("012", "ABC")),
        *((METALS, gold, ("A", "2", "the oak"), ["A", "2", "the oak"]) for gold in ("012", "ABC")),
        # What may be a position or a text is refused.
        (("1", "2", "3"), "02", "12", "positions"),
        # Texts of options, and others that are counted.
        *((("3", "5", "7"), gold, ("3", "41"), ["3", "41"]) for gold in ("AC", "37")),
    ])  # fmt: skip
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

    @pytest.mark.parametrize(("options", "gold", "said", "expected"), [
        ([*METALS], [0, 2], [["0", "1"], ["-1", "2"]], [["A", "B"], ["", "C"]]),
        ([*METALS], [0, 2], [["0", "1"], ["B", "2"]], "positions"),
        (None, [True, False], [["1", "0"], ["no", " 0"]], [["yes", "no"], ["no", "no"]]),
    ])  # fmt: skip
    def test_each_of_several_is_read_as_a_single_one_is(self, tmp_path, options, gold, said, expected):
        shown = {} if options is None else {"options": options}
        rows = [{"question": "?", **shown, "gold": right, "output": texts}
                for right, texts in zip(gold, said, strict=True)]  # fmt: skip
        path = write_lines(tmp_path, *rows)
        if expected == "positions":
            assert refusal(path).code == "positions"
        else:
            assert answers(load(path)) == expected

    def test_lists_in_cells_of_text_are_one_answer_aloud(self, tmp_path):
        said = ['["iron", "tin"]', "['tin']"]
        path = write_csv(tmp_path, ["question", "answer", "output"], *(["?", "iron", text] for text in said))
        evalset = load(path)
        assert answers(evalset) == [[text] for text in said]
        assert "every output looks like a list, and is one answer" in str(evalset.warnings)

    def test_outputs_that_are_all_golds_are_doubted(self, tmp_path):
        path = write_csv(tmp_path, ["question", "answer", "output"], ["?", "iron", "iron "], ["?", "tin", "tin"])
        assert ["equal to its gold" in str(warning) for warning in load(path).warnings].count(True) == 1


class TestGolds:
    @pytest.mark.parametrize("gold", ["A", "A,C", "(A); (B)"])
    def test_letters_without_options_are_doubted(self, tmp_path, gold):
        path = write_csv(tmp_path, ["question", "answer", "output"], ["?", gold, "A."], ["?", "B", "C"])
        assert any("every gold is a letter" in str(warning) for warning in load(path).warnings)

    @pytest.mark.parametrize("names", [("option_a", "option_b"), ("choice1", "choice2"), ("Answer 1", "Answer 2")])
    def test_may_name_the_column_of_the_right_option(self, tmp_path, names):
        header = ["question", *names, "correct_answer", "output"]
        path = write_csv(tmp_path, header, ["?", "iron", "tin", names[1], "B"], ["?", "oak", "elm", names[0], "elm"])
        assert golds(load(path, gold="correct_answer")) == [["tin"], ["oak"]]

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


def test_outputs_that_read_like_errors_are_counted_aloud(tmp_path):
    texts = ["4", "ERROR: rate limit exceeded", "None", "nan", "none of them"]
    path = write_csv(
        tmp_path, ["question", "answer", "output"], *(["?", "4", text] for text in texts), ["?", "none", "None"]
    )
    (said,) = (str(one) for one in load(path).warnings if "missing values" in str(one))
    assert '3 outputs read like errors or missing values, the first in line 3: "ERROR: rate limit exceeded"' in said


def test_outputs_that_are_one_of_several_golds_in_a_cell_are_counted_aloud(tmp_path):
    pairs = [("Amsterdam|The Hague", "the hague"), ("Oslo; Christiania", "Oslo"), ("a;b", "a;b"), ("a;b", "ab")]
    said = str(load(write_csv(tmp_path, ["question", "answer", "output"], *(["?", *pair] for pair in pairs))).warnings)
    assert "2 outputs are a part of their golds between | or ;, and counted as wrong" in said


@pytest.mark.parametrize("last", ['{"text": "y", "tokens": 2}', "y"])
def test_outputs_that_are_all_objects_are_doubted(tmp_path, last):
    path = write_csv(tmp_path, ["question", "answer", "output"], ["?", "x", "{'text': 'x'}"], ["?", "y", last])
    doubted = "every output is an object written as text: output=output.KEY" in str(load(path).warnings)
    assert doubted == (last != "y")
    if doubted:
        assert answers(load(path, output=["output.text"])) == [["x"], ["y"]]


@pytest.mark.parametrize(("header", "cells", "place", "hint"), [
    (MC, [*METALS, "[A, C]", "A"], "answer", 'written ["A", "C"], in the file "[""A"", ""C""]"'),
    (["question", "answer", "output"], ["[x", "x"], "", ""),
    (["question", "options", "answer", "output"], ["[iron, tin]", "A", "A"], "options", "give each option a column"),
    (MC, ["iron", "", "oak", "A", "A"], "", "options that a row has not are its last ones"),
])  # fmt: skip
def test_a_cell_that_cannot_be_read_is_named_with_how_it_is_written(tmp_path, header, cells, place, hint):
    path = write_csv(tmp_path, header, ["?", *cells])
    if not hint:
        assert golds(load(path)) == [["[x"]]
        return
    found = refusal(path)
    assert (found.location.line, found.location.field) == (2, place)
    assert hint in found.hint


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


def test_a_row_that_cannot_be_scored_does_not_decide_how_the_others_are(tmp_path):
    """One question with two options that read the same made answers of all rows short texts, and the main metric another."""
    rows = [["?", *METALS, "A", "(A)"], ["?", "tin", "tin", "oak", "B", "B"], ["?", *METALS, "C", "B"]]
    evalset = load(write_csv(tmp_path, MC, *rows))
    assert evalset.scoring.main_metric == "exact_match"
    assert evalset.counts["unscored"] == 1


def test_what_is_no_table_is_refused(tmp_path):
    path = tmp_path / "x.txt"
    path.write_text("question,answer\n?,iron\n")
    assert refusal(str(path)).code == "unknown-table"
    assert load(str(path), sep="comma").counts["rows"] == 1
