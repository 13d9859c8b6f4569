"""Scores of lists, against values worked out by hand and against every permutation."""

import itertools
import json
import random
import time
from collections import Counter
from pathlib import Path

import pytest
from helm.benchmark.scenarios.scenario import CORRECT_TAG, Input, Instance, Output, Reference

from helm_ext.evalset import Scoring
from helm_ext.parsing import read_list
from helm_ext.scoring.answers import Answer, AnswerReader, Question
from helm_ext.scoring.scores import lists
from helm_ext.scoring.scores.lists import exact_match, list_f1, set_exact_match


@pytest.mark.parametrize(("gold", "pred", "exact", "as_set"), [
    ([], [], 1, 1), (["a"], [], 0, 0), ([], ["a"], 0, 0), (["a", "b"], ["a", "b"], 1, 1),
    (["a", "b"], ["b", "a"], 0, 1), (["a", "a", "b"], ["a", "b", "a"], 0, 1), (["a", "a", "b"], ["a", "b", "b"], 0, 0),
    (["a"], ["a", "a"], 0, 0), ([" a "], ["a"], 1, 1),
    (["a"], ["A"], 0, 1),  # in their normal form
    (["a"], ["a."], 0, 1),
    (["a\x1fb c"], ["a b\x1fc"], 0, 0),  # parts of tuples
    (["2 + 3"], ["2 - 3"], 0, 0), (["A"], ["the"], 0, 0), ([""], [""], 1, 1), ([""], [], 0, 0),
])  # fmt: skip
def test_exact(gold, pred, exact, as_set):
    assert exact_match(gold, pred) == exact
    assert set_exact_match(gold, pred) == as_set


JUDGED = [json.loads(line) for line in (Path(__file__).parents[2] / "data/lists_judged.jsonl").open(encoding="utf-8")]
"""Lists that were judged before anything was run: set 1 before there were rules, set 2 before these were tried."""
NOT_READ = {"1: Nile\n2: Amazon"}


@pytest.mark.parametrize("row", JUDGED, ids=[f"{row['gold']} as {row['answer']}" for row in JUDGED])
def test_lists_written_in_any_form(row):
    question = Question(
        Instance(Input(""), [Reference(Output(row["gold"]), [CORRECT_TAG])]),
        None,
        AnswerReader(Scoring(output_format="list")),
    )
    (gold,) = question.gold_lists
    found = set_exact_match(gold, question.to_list_of_any_form([Answer(row["answer"])]))
    assert found == (0 if row["answer"] in NOT_READ else row["equal"])


def test_the_strict_score_splits_at_the_separator_alone():
    assert [lists.list_strict(["a", "b"], pred) for pred in (["b", "a"], ["b", "A"], ["a, b"])] == [1, 0, 0]
    assert {score.name for score in lists.SCORES if score.reads_any_list} == {"set_exact_match", "list_f1"}


@pytest.mark.parametrize(("text", "segments"), [
    ("J. Smith\nA. Jones", ["J. Smith", "A. Jones"]),  # initials are no numbering
    ("A. Smith", ["A. Smith"]), ("1.5\n2.5", ["1.5", "2.5"]), ("-5\n3", ["-5", "3"]),
    ("1,000, 2,000", ["1,000", "2,000"]), ("[", ["["]), ('{"a": 1}', ['{"a": 1}']), ("", []),
    (";".join("ab"), ["a", "b"]),
])  # fmt: skip
def test_what_separates_segments(text, segments):
    assert read_list(text) == segments


@pytest.mark.parametrize("piece", [" ", "[", "- ", "1. ", '"', "'", ", ", " and", "a\n", "**", "“"])
def test_hostile_lists_cost_little(piece):
    started = time.process_time()
    read_list(piece * (100_000 // len(piece)) + "x")
    assert time.process_time() - started < 2


@pytest.mark.parametrize(("gold", "pred", "expected"), [
    ("the garden", "garden", 2 * 1 / 3), ("a b c", "b c d", 2 * 2 / 6),
    ("a a b", "a b b", 2 * 2 / 6),  # bags, not sets
    ("a", "b", 0), ("new york", "york new", 1), ("北京", "南京", 2 * 1 / 4), ("(the) “garden”!", "The Garden", 1),
    ("GPT模型", "gpt 模型", 1), ("3.5 m", "-3.5 m", 2 * 1 / 4), ("Straße 1", "STRASSE 1", 1), ("", "", 1), ("", "a", 0),
    ("...", "...", 1), ("...", "", 0),
])  # fmt: skip
def test_segment_f1(gold, pred, expected):
    assert list_f1([gold], [pred]) == pytest.approx(expected)
    assert list_f1([pred], [gold]) == pytest.approx(expected)


@pytest.mark.parametrize(("gold", "pred", "expected"), [
    ([], [], 1), (["a"], [], 0), ([], ["a"], 0), (["a", "b"], ["b", "a"], 1),
    (["a", "b"], ["a"], 2 / 3),  # precision 1, recall 1/2
    (["a"], ["a", "b", "c"], 1 / 2),  # precision 1/3, recall 1
    (["a"], ["a", "a"], 2 / 3),  # a gold segment is matched once
    (["a", "a"], ["a", "a"], 1), (["the garden", "office"], ["garden"], 2 * (2 / 3) / 3),
    # The first gold fits both; only the second prediction fits the second gold.
    (["p q", "p"], ["p", "p q"], 1),
    # Crossed: 2/3 + 2/3 beats the identical pair's 1 + 0.
    (["p q", "p"], ["p q", "q"], 2 * (4 / 3) / 4), (["a"], ["A."], 1), (["a"], ["x", "y"], 0), ([""], ["", "a"], 2 / 3),
    (["北京", "上海"], ["上海", "南京"], 2 * (1 + 1 / 2) / 4),
])  # fmt: skip
def test_list_f1(gold, pred, expected):
    assert list_f1(gold, pred) == pytest.approx(expected)
    assert list_f1(pred, gold) == pytest.approx(expected)


def by_every_permutation(gold, pred):
    """F1 by trying every one-to-one matching; shares no code with the module."""

    def credit(a, b):
        a, b = a.split(), b.split()
        common = sum((Counter(a) & Counter(b)).values())
        if not a or not b:
            return float(a == b)
        precision, recall = common / len(b), common / len(a)
        return 2 * precision * recall / (precision + recall) if common else 0.0

    if not gold or not pred:
        return float(gold == pred)
    short, long = sorted((gold, pred), key=len)
    best = max(sum(map(credit, short, order)) for order in itertools.permutations(long, len(short)))
    precision, recall = best / len(pred), best / len(gold)
    return 2 * precision * recall / (precision + recall) if best else 0.0


def test_list_f1_is_the_best_of_all_matchings():
    generator = random.Random(7)
    segments = ["", "p", "q", "r", "p q", "p p", "q r", "p q r", "r r q"]
    for _ in range(400):
        gold = generator.choices(segments, k=generator.randrange(6))
        pred = generator.choices(segments, k=generator.randrange(6))
        assert list_f1(gold, pred) == pytest.approx(by_every_permutation(gold, pred)), (gold, pred)


def test_two_hundred_segments_are_matched_exactly():
    # Segment i of the prediction shares one of two tokens with gold i and none with any other.
    gold = [f"a{i} b{i}" for i in range(200)]
    pred = [f"b{i} c{i}" for i in reversed(range(200))]
    assert list_f1(gold, pred) == pytest.approx(0.5)


def test_above_the_cap_near_misses_earn_nothing():
    gold = [f"g{i} x" for i in range(10)]
    pred = [*(f"p{i} x" for i in range(lists.MAX_PAIRS // 10)), "X, g3", "g3 y"]
    assert list_f1(gold, pred) == pytest.approx(2 * 1 / (len(gold) + len(pred)))
    # The same without the crowd: one pair is equal, nine share one token of two.
    assert list_f1(gold, pred[-12:]) == pytest.approx(2 * (1 + 9 / 2) / 22)


@pytest.mark.parametrize(("gold", "pred", "f1"), [
    ([], [], 1), (["a"], [], 0), ([], ["a"], 0), (["a", "b"], ["b", "a"], 1),
    (["a", "a"], ["a"], 2 / 3),  # each gold segment is found by one
    (["a"], ["a", "a", "a"], 2 / 4), ([" a"], ["a "], 1), (["a"], ["A"], 0),
])  # fmt: skip
def test_segments_found(gold, pred, f1):
    assert lists.list_exact_f1(gold, pred) == pytest.approx(f1)


def test_precision_recall_and_f1_of_all_rows():
    (micro,) = (score for score in lists.SCORES if score.summarize)
    counted = {"list_found": 1, "list_predicted": 3, "list_expected": 2}
    assert micro.list_function(["a", "b"], ["a", "a", "c"]) == counted
    made = micro.summarize({"list_found": 3, "list_predicted": 4, "list_expected": 6})
    assert made == {"list_micro_f1": 0.6, "list_micro_precision": 0.75, "list_micro_recall": 0.5}
    made = micro.summarize({"list_found": 0, "list_predicted": 0, "list_expected": 0})
    assert made == {"list_micro_f1": 1, "list_micro_precision": 0, "list_micro_recall": 0}
    assert list(made) == [info.name for info in micro.over_all]
    # Counts are no score: no table of accuracy shows them, and none of them can be the main metric.
    assert [(info.group, info.can_be_main) for info in micro.several] == [("general_information", False)] * 3
