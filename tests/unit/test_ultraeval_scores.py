"""UltraEval's metrics: values worked out by hand."""

from __future__ import annotations

import pytest

from helm_ext.scoring.registry import get_scores
from helm_ext.scoring.scores.ultraeval import BLEU_TOKENIZERS, EXECUTING, SCORES, score_name

BY_NAME = {score.name: score for score in SCORES}


def value(name, gold, prediction):
    return BY_NAME[f"ultraeval_{name}"].function(gold, prediction)


def row_value(name, row, golds, prediction):
    return BY_NAME[f"ultraeval_{name}"].row_function(row, golds, prediction)


@pytest.mark.parametrize(
    ("gold", "prediction", "expected"),
    [
        ("42", "42", 1),
        ("4 2", " 42 ", 1),  # every space goes, on both sides
        ("42", "42\n", 0),  # but a newline is no space
        ("42", "43", 0),
        ("Yes", "yes", 0),  # case counts
        ("", "", 0),  # an empty prediction is never right
        ("", "  ", 0),
        ("北京", "北 京", 1),
    ],
)
def test_exact_match(gold, prediction, expected):
    assert value("exact_match", gold, prediction) == expected


@pytest.mark.parametrize(
    ("gold", "prediction", "expected"),
    [("(A)", " (A) because", 1), ("(A) ", "(A)", 1), ("(A)", "So (A)", 0), ("答案", "答案是", 1), ("x", "", 0)],
)
def test_prefix_match(gold, prediction, expected):
    assert value("prefix_match", gold, prediction) == expected


@pytest.mark.parametrize(
    ("gold", "prediction", "expected"),
    [(" Paris ", "It is Paris.", 1), ("Paris", "paris", 0), ("", "anything", 0), ("x", "", 0), ("京", "北京市", 1)],
)
def test_in_match(gold, prediction, expected):
    assert value("in_match", gold, prediction) == expected


@pytest.mark.parametrize(
    ("gold", "prediction", "expected"),
    [
        ("a b c", "a b c", 1),
        # 2 of 3 predicted words are right, 2 of 4 gold words are found: 2*2/(3+4)
        ("a b c d", "b a x", 4 / 7),
        ("a a", "a", 2 / 3),  # with multiplicity
        ("A", "a", 0),  # no normalisation
        ("", "", 0),
        ("x", "", 0),
    ],
)
def test_f1_score(gold, prediction, expected):
    assert value("f1_score", gold, prediction) == pytest.approx(expected)


ROW = {"question": "Which animal barks?", "target_scores": {"The cat": 0, "The dog": 1, "The fish": 0}}


@pytest.mark.parametrize(
    ("prediction", "expected"),
    [
        ("(B)", 1),
        ("B.", 1),
        ("The answer is B", 1),
        ("It is (A), not (B)", 1),  # "(A)," keeps its comma and is no label; "(B)" is the first
        ("(A) or (B)", 0),
        ("I think B", 1),  # I is no label of a row with three options
        ("C\nB", 0),  # first line only
        ("The dog, of course", 1),
        ("Which animal barks? The dog", 1),
        ("A dog", 0),
        ("", 0),
    ],
)
def test_qa_match_with_the_row(prediction, expected):
    assert row_value("qa_match", ROW, ["(B)"], prediction) == expected


def test_qa_match_without_the_row_knows_26_letters():
    assert value("qa_match", "(B)", "I think B") == 0
    assert value("qa_match", "(B)", "the answer: B.") == 1
    assert value("qa_match", "", "nothing") == 0


def test_qa_match_of_a_row_without_options_or_question():
    assert row_value("qa_match", {}, ["(A)"], "(A)") == 0
    assert row_value("qa_match", {"question": ["a", "b"], "target_scores": {"x": 0}}, ["(A)"], "(A)") == 1


@pytest.mark.parametrize(
    ("gold", "prediction", "expected"),
    [
        ("ABCD", "ABDD", 0.75),
        ("ABCD", "AB", 0.5),
        ("AB", "XY[SEP]AB", 0),  # the first reading has the right length
        ("AB", "ABC[SEP]ABCD", 1),  # it has not: the second, cut
        ("", "A", 0),
    ],
)
def test_gaokaobench_match(gold, prediction, expected):
    assert value("gaokaobench_match", gold, prediction) == expected


def test_gaokaobench_match_joins_the_parts():
    assert row_value("gaokaobench_match", {}, ["A", "B", "C"], "ABD") == pytest.approx(2 / 3)


def test_bleu_and_chrf_are_sacrebleus_of_one_sentence_0_to_100():
    import sacrebleu

    gold, prediction = "the cat sat on the mat today", "the cat sat on a mat today"
    assert value("bleu", gold, prediction) == pytest.approx(
        sacrebleu.sentence_bleu(prediction, [gold], smooth_method="exp", use_effective_order=False).score
    )
    assert value("bleu", gold, gold) == pytest.approx(100)
    assert value("chrf", gold, gold) == pytest.approx(100)
    assert value("bleu", gold, "") == 0
    assert value("chrf", gold, "") == 0


def test_bleu_over_all_references_at_once_is_not_the_best_of_each():
    golds = ["the cat sat on the mat", "a dog ran in the park"]
    prediction = "the cat sat in the park"
    together = row_value("bleu", {}, golds, prediction)
    assert together > max(value("bleu", gold, prediction) for gold in golds)
    assert row_value("chrf", {}, golds, golds[1]) == pytest.approx(100)


def test_bleu_of_chinese_needs_the_chinese_tokenizer():
    gold, prediction = "今天天气很好我们去公园", "今天天气很好我们去图书馆"
    assert value("bleu", gold, prediction) == 0  # one word, and another word
    assert value("bleu_zh", gold, prediction) > 50


def test_names():
    assert score_name("exact_match") == "ultraeval_exact_match"
    assert score_name("bleu", {"tokenizer": "13a"}) == "ultraeval_bleu"
    assert score_name("bleu", {"tokenizer": "char"}) == "ultraeval_bleu_char"
    assert set(BY_NAME) <= set(get_scores())
    assert {f"ultraeval_bleu_{name}" for name in BLEU_TOKENIZERS if name != "13a"} <= set(BY_NAME)
    assert EXECUTING <= set(BY_NAME)


def test_every_score_is_defined_for_empty_texts():
    for score in SCORES:
        if score.name not in EXECUTING:
            # Everything begins with nothing: upstream's rule too.
            assert score.function("", "") == (score.name == "ultraeval_prefix_match")
            if score.row_function:
                assert score.row_function({}, [""], "") == 0


HUMANEVAL = {
    "prompt": "def double(n):\n",
    "test": "def check(f):\n    assert f(2) == 4\n    assert f(-1) == -2",
    "entry_point": "double",
}
MBPP = {"text": "Write a function that doubles.", "test_list": ["assert double(2) == 4", "assert double(0) == 0"]}


def test_function_execution_runs_the_tests_of_the_row():
    assert row_value("function_execution", HUMANEVAL, [""], "    return 2 * n\n") == 1
    assert row_value("function_execution", HUMANEVAL, [""], "    return n\n") == 0
    assert row_value("function_execution", MBPP, [""], "def double(n):\n    return n + n") == 1


def test_function_execution_needs_the_row():
    with pytest.raises(ValueError, match="needs the row"):
        value("function_execution", "x", "y")
