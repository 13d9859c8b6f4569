"""UltraEval's metrics: values worked out by hand."""

import json
from functools import partial

import pytest

from helm_ext.errors import DatasetError, RunEntryError
from helm_ext.formats import request_states
from helm_ext.scoring.registry import get_scores
from helm_ext.scoring.scores.ultraeval import BLEU_TOKENIZERS, EXECUTING, SCORES, make_rouge, score_name

BY_NAME = {score.name: score for score in SCORES}


def value(name, gold, prediction):
    score = BY_NAME[f"ultraeval_{name}"]
    return score.row_function({}, gold, prediction) if score.row_function else score.function(gold, prediction)


def row_value(name, row, golds, prediction):
    """`golds` as the row has them: a text, or a list of texts."""
    return BY_NAME[f"ultraeval_{name}"].row_function(row, golds, prediction)


CASES = {
    "exact_match": [
        ("42", "42", 1),
        ("4 2", " 42 ", 1),  # every space goes, on both sides
        ("42", "42\n", 0),  # but a newline is no space
        ("42", "43", 0),
        ("Yes", "yes", 0),  # case counts
        ("", "", 0),  # an empty prediction is never right
        ("", "  ", 0), ("北京", "北 京", 1), ("\n", "\n", 0), ("x\t", "x\t", 1),
    ],
    "prefix_match": [
        ("(A)", " (A) because", 1), ("(A) ", "(A)", 1), ("(A)", "So (A)", 0), ("答案", "答案是", 1), ("x", "", 0),
    ],
    "in_match": [
        ("paris", "Paris", 1),  # the prediction is lower-cased ...
        ("Paris", "Paris", 0),  # ... and the gold is not
        ("paris", " paris\n", 1), (" paris", "paris", 0),
        ("paris", "it is paris", 0),  # equal, not contained
        ("", "", 1), ("", "anything", 0), ("x", "", 0), ("(a)", "(A)", 1), ("straße", "STRASSE", 0),
        ("i̇", "İ", 1),  # as Python lowers
        ("京", "北京市", 0),
    ],
    "f1_score": [
        ("a b c", "a b c", 1),
        # 2 of 3 predicted words are right, 2 of 4 gold words are found: 2*2/(3+4)
        ("a b c d", "b a x", 4 / 7),
        ("a a", "a", 2 / 3),  # with multiplicity
        ("A", "a", 0),  # no normalisation
        ("", "", 0), ("x", "", 0),
    ],
    "gaokaobench_match": [
        ("ABCD", "ABDD", 0.75), ("ABCD", "AB", 0.5),
        ("AB", "XY[SEP]AB", 0),  # the first reading has the right length
        ("AB", "ABC[SEP]ABCD", 1),  # it has not: the second, cut
        ("AB", "ABC[SEP]XBCD", 0.5),
        ("AB", "[SEP]B", 0),  # the second is short
        ("AB", "AB", 1),  # without the mark there is one reading, of any length
        ("AB", "ABXY", 1), ("", "A", 0),
        ("AB", "X[SEP]AB[SEP]C", 1),  # what follows the first mark is the second reading, whatever it holds
        ("AB[SEP]", "X[SEP]AB[SEP]C", 1),
    ],
}  # fmt: skip
"""By the metric: what is right, what was said, and the score."""


@pytest.mark.parametrize(("name", "case"), [(name, case) for name, cases in CASES.items() for case in cases])
def test_a_text(name, case):
    gold, prediction, expected = case
    assert value(name, gold, prediction) == pytest.approx(expected, rel=1e-12)


ROW = {"question": "Which animal barks?", "target_scores": {"The cat": 0, "The dog": 1, "The fish": 0}}


@pytest.mark.parametrize(("prediction", "expected"), [
    ("(B)", 1), ("B.", 1), ("The answer is B", 1),
    ("It is (A), not (B)", 1),  # "(A)," keeps its comma and is no label; "(B)" is the first
    ("(A) or (B)", 0),
    ("I think B", 1),  # I is no label of a row with three options
    ("C\nB", 0),  # first line only
    ("I think\nit is (B) here", 0), ("it is (B) here\nno (A)", 1), ("The dog, of course", 1),
    ("Which animal barks? The dog", 1), ("A dog", 0), ("", 0),
])  # fmt: skip
def test_qa_match_with_the_row(prediction, expected):
    assert row_value("qa_match", ROW, "(B)", prediction) == expected


def test_qa_match_of_a_row_without_options_or_question():
    assert row_value("qa_match", {}, "(A)", "(A)") == 0
    assert row_value("qa_match", {"question": ["a", "b"], "target_scores": {"x": 0}}, "(A)", "(A)") == 1


def test_qa_match_as_upstream_at_its_edges():
    assert row_value("qa_match", ROW, ["(B)"], "(B)") == 0  # a label is equal to no list
    assert row_value("qa_match", ROW, "", "nothing") == 1  # no label is the label ""
    assert row_value("qa_match", {"question": "?", "target_scores": {"": 1, "x": 0}}, "(A)", "hm") == 1


def test_gaokaobench_match_joins_the_parts():
    assert row_value("gaokaobench_match", {}, ["A", "B", "C"], "ABD") == pytest.approx(2 / 3)
    assert row_value("gaokaobench_match", {}, "ABC", "ABD") == pytest.approx(2 / 3)
    assert row_value("gaokaobench_match", {}, ["AB"], "AB") == 0  # one part, which is no single letter
    assert row_value("gaokaobench_match", {}, ["A", "B"], "ABC[SEP]ABCD") == 1


def test_bleu_of_chinese_needs_the_chinese_tokenizer():
    gold, prediction = "今天天气很好我们去公园", "今天天气很好我们去图书馆"
    assert value("bleu", gold, prediction) == 0  # one word, and another word
    assert value("bleu_zh", gold, prediction) > 50
    assert [value(f"bleu_{name}", "the cat sat on it", "the cat sat on it") for name in BLEU_TOKENIZERS[1:]] == [
        pytest.approx(100)
    ] * 4


def test_names():
    assert score_name("exact_match") == "ultraeval_exact_match"
    assert score_name("bleu", {"tokenizer": "13a"}) == "ultraeval_bleu"
    assert score_name("bleu", {"tokenizer": "char"}) == "ultraeval_bleu_char"
    assert set(BY_NAME) <= set(get_scores())
    assert {f"ultraeval_bleu_{name}" for name in BLEU_TOKENIZERS if name != "13a"} <= set(BY_NAME)
    assert {score.name for score in SCORES if score.refused} == EXECUTING
    assert make_rouge(tokenizer="char").name == "ultraeval_rouge_char"
    assert BY_NAME["ultraeval_bleu_char"].display_name == "BLEU (UltraEval, char)"


def test_every_score_is_defined_for_empty_texts():
    for score in SCORES:
        if score.name not in EXECUTING:
            # Everything begins with nothing: upstream's rule too.
            equal = {"ultraeval_prefix_match", "ultraeval_in_match"}
            if score.function:
                assert score.function("", "") == (score.name in equal)
            else:
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


# Upstream's own results for these inputs (run with rouge-chinese 1.0.3 and sacrebleu 2.6.0).

GOLD, ANSWER = "the cat sat on the mat. it slept", "the cat lay on a mat"


@pytest.mark.parametrize(("arguments", "name", "expected"), [
    ({}, "ultraeval_rouge", 57.14285665306124), ({"n_gram": "2"}, "ultraeval_rouge_2", 15.38461491124262),
    ({"n_gram": "L"}, "ultraeval_rouge_l", 53.33333285333334),
    ({"index": "precision"}, "ultraeval_rouge_p", 66.66666666666666),
    ({"index": "recall"}, "ultraeval_rouge_r", 50.0), ({"n_gram": 2, "index": "r"}, "ultraeval_rouge_r_2", 12.5),
    ({"n_gram": "Longest"}, "ultraeval_rouge_l", 53.33333285333334),  # the first letter counts
    ({"n_gram": "10"}, "ultraeval_rouge", 57.14285665306124),
])  # fmt: skip
def test_rouge(arguments, name, expected):
    score = make_rouge(**arguments)
    assert score.name == name
    assert score.row_function({}, GOLD, ANSWER) == pytest.approx(expected, abs=1e-9)
    assert score.row_function({}, [ANSWER, GOLD], ANSWER) == pytest.approx(100)
    assert score.row_function({}, [GOLD, ANSWER], ANSWER) == pytest.approx(expected)  # the first answer only


@pytest.mark.parametrize(("tokenizer", "n_gram", "expected"), [
    ("zh", "1", 85.7142852244898), ("zh", "l", 81.81818133471074), ("char", "l", 81.81818133471074), ("13a", "1", 0),
    ("13a", "l", 0),
])  # fmt: skip
def test_rouge_of_chinese(tokenizer, n_gram, expected):
    gold, answer = "今天天气很好。我们去公园！", "天气很好。我去公园"
    assert make_rouge(tokenizer, n_gram=n_gram).row_function({}, gold, answer) == pytest.approx(expected, abs=1e-9)


def test_rouge_at_its_edges():
    rouge = partial(make_rouge().row_function, {})
    assert rouge("x", "") == rouge("", "x") == rouge("", "") == 0
    assert rouge("a a a b", "a b b") == pytest.approx(100)  # n-grams count once
    assert make_rouge(n_gram="l").row_function({}, "a a a b", "a b b") == pytest.approx(57.14285665306124)
    assert rouge("好。不好", "好。") == pytest.approx(200 / 3)  # the stop ends a word


@pytest.mark.parametrize(("arguments", "message"), [
    ({"tokenizer": "flores200"}, "metric rouge: tokenizer 'flores200' is not available\n  hint: one of 13a, intl"),
    ({"index": "x"}, "metric rouge: index 'x' is not available\n  hint: one of f, p, r"),
    ({"n_gram": "3"}, "metric rouge: n_gram '3' is not available\n  hint: one of 1, 2, l"),
    ({"n_gram": ""}, "metric rouge: n_gram '' is not available"),
])  # fmt: skip
def test_rouge_that_there_is_not(arguments, message):
    with pytest.raises(RunEntryError) as caught:
        make_rouge(**arguments)
    assert message in str(caught.value)


def test_bleu_and_chrf_are_upstreams():
    assert value("bleu", GOLD, ANSWER) == row_value("bleu", {}, [GOLD], ANSWER) == pytest.approx(11.708995388048026)
    assert value("bleu", GOLD, "") == value("chrf", GOLD, "") == 0
    assert row_value("chrf", {}, [GOLD, ANSWER], ANSWER) == pytest.approx(100)  # the best of all references
    assert value("chrf", GOLD, ANSWER) == row_value("chrf", {}, [GOLD], ANSWER) == pytest.approx(24.636032513637073)


# What executes code is had through `ultraeval:` alone, where it is allowed.


@pytest.mark.parametrize("name", sorted(EXECUTING))
def test_no_file_can_ask_for_metrics_that_execute_code(tmp_path, name):
    answer = {"output": {"text": "x"}, "tags": ["correct"]}
    state = {"instance": {"id": "a", "split": "test", "input": {"text": "?"}, "references": [answer]}}
    plain = {"adapter_spec": {"max_train_instances": 0}, "request_states": [state]}
    message = "cannot be measured here: it runs the code that the model writes"
    path = tmp_path / "x.json"
    for key in ("metrics", "main_metric"):
        asked = {"metrics": [name]} if key == "metrics" else {"metrics": ["exact_match", name], "main_metric": name}
        path.write_text(json.dumps({**plain, "scoring": asked}))
        with pytest.raises(DatasetError, match=message):
            request_states.load(path)
    path.write_text(json.dumps(plain))
    with pytest.raises((DatasetError, RunEntryError), match=message):
        request_states.load(path, metrics=[name])
