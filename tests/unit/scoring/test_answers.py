"""What is right where options were offered, and where all of the correct references are asked for. Worked by hand."""

import itertools
import math
from dataclasses import replace

import helm_states
import pytest
from helm.benchmark.adaptation.adapter_spec import AdapterSpec
from helm.benchmark.adaptation.scenario_state import ScenarioState
from helm.benchmark.scenarios.scenario import Input, Instance

from helm_ext import plugin  # noqa: F401 - registers recorded deployments
from helm_ext.evalset import EXTRA_KEY, Scoring
from helm_ext.scoring.answers import Answer, AnswerAnnotator, AnswerReader, keep_answers, take_answers
from helm_ext.scoring.metrics import EvalSetMetric

MATCHES = (
    "exact_match", "quasi_exact_match", "quasi_leave_articles_exact_match", "prefix_exact_match",
    "quasi_prefix_exact_match", "f1_score", "rouge_1", "rouge_l", "exact_match_indicator", "final_number_exact_match",
)  # fmt: skip
LISTS = ("exact_match", "set_exact_match", "list_f1")


def row(*texts, correct=(), wrong=(), options=None, logprobs=None, id="r1"):
    """A row; `options` are the texts in the order of the labels A, B, C, ..., None for free text."""
    labels = options and dict(zip("ABCDEFG", options, strict=False))
    extra = {"labels": labels} if labels else {}
    given = zip(texts, logprobs or [-1.0] * len(texts), strict=True)
    references = helm_states.make_references(correct, wrong)
    instance = Instance(Input("?"), references, split="test", id=id, extra_data={EXTRA_KEY: extra})
    result = helm_states.make_result(*(helm_states.make_output(*one, [one]) for one in given))
    return helm_states.make_state(instance, output_mapping=labels, result=result)


def score(*rows, metrics=MATCHES, multi_label=False, num_outputs=1, **scoring):
    spec = AdapterSpec("generation", model="x", model_deployment="recorded/x", multi_label=multi_label, num_outputs=num_outputs)  # fmt: skip
    return helm_states.means(EvalSetMetric(metrics=list(metrics), **scoring), spec, rows)[1]


def all_of(stats):
    return {round(stats[name], 9) for name in MATCHES}


# Options are compared as such.


@pytest.mark.parametrize(("right", "other"), [
    ("5", "-5"), ("1.5", "15"), ("The cat", "A cat"), ("New York", "New York City"), ("New York City", "New York"),
    ("a", "A"), ("x = 2", "y = 2"), ("?", "!"),
])  # fmt: skip
def test_a_choice_is_right_or_wrong_in_every_metric(right, other):
    options = {"correct": [right], "wrong": [other], "options": [right, other]}
    assert all_of(score(row("A", **options))) == {1}
    assert all_of(score(row("B", **options))) == {0}


@pytest.mark.parametrize(("correct", "wrong", "options"), [
    (["x", "y"], ["z"], ["x", "y", "z"]),  # any of several correct ones is right
    (["x"], ["y"], ["x", "x ", "y"]),  # the same text twice is one option
    (["Paris"], ["Paris ", "Rome"], ["Paris", "Paris ", "Rome"]),  # white space tells none apart
])  # fmt: skip
def test_two_of_three_options_are_right(correct, wrong, options):
    rows = [row(text, correct=correct, wrong=wrong, options=options, id=text) for text in "ABC"]
    assert all_of(score(*rows)) == {round(2 / 3, 9)}


YORK = {"correct": ["New York"], "wrong": ["New York City"], "options": ["New York", "New York City"]}
XYZ = {"correct": ["x", "y"], "wrong": ["z"], "options": ["x", "y", "z"]}
BOTH, PLACES = {"correct": ["Paris", "Lyon"]}, {"correct": ["Paris, France", "Rome"]}
NEVER = dict.fromkeys(MATCHES, 0)
ONE_ROW = [
    (row("I do not know", correct=["5"], wrong=["6"], options=["5", "6"]), {}, {**NEVER, "unmapped": 1}),
    (row("B", "A", correct=["x"], wrong=["y"], options=["x", "y"], logprobs=[-9.0, -1.0]), {"num_outputs": 2},
     {**NEVER, "quasi_prefix_exact_match@2": 1}),
    # Our own scores compare options as such, too; what is not about texts stays.
    (row("A", **YORK), {"metrics": ["expected_contains"]}, {"expected_contains": 1}),
    (row("B", **YORK), {"metrics": ["expected_contains"]}, {"expected_contains": 0}),
    (row("A", **XYZ), {"multi_label": True}, {"num_references": 3, "logprob": -1}),
    # The first completion is scored but in HELM's own runs.
    (row("Rome", "Oslo", correct=["Oslo"], logprobs=[-3.0, -1.0]), {}, {"exact_match": 0}),
    (row("Rome", "Oslo", correct=["Oslo"], logprobs=[-3.0, -1.0]), {"label_reading": "exact"}, {"exact_match": 1}),
    # Any of several references is right, with `multi_label` all of them.
    (row("Paris", **BOTH), {}, {"exact_match": 1}),
    (row("Paris, Lyon", **BOTH), {}, {"exact_match": 0}),
    (row("Paris", **BOTH), {"multi_label": True, "metrics": ["expected_exact"]}, {"expected_exact": 0}),
    (row("Lyon, Paris", **BOTH), {"multi_label": True, "metrics": ["expected_exact"]}, {"expected_exact": 1}),
    # Where a reference holds a comma, the order is that of the references.
    (row("Paris, France, Rome", **PLACES), {"multi_label": True}, {"exact_match": 1}),
    (row("Rome, Paris, France", **PLACES), {"multi_label": True}, {"exact_match": 0}),
]  # fmt: skip


@pytest.mark.parametrize(("one", "scoring", "expected"), ONE_ROW)
def test_one_row(one, scoring, expected):
    stats = score(one, **scoring)
    assert {name: stats[name] for name in expected} == expected


def test_trials_of_one_row_stay_one_row():
    first = row("A", correct=["x"], wrong=["y"], options=["x", "y"])
    again = replace(first, train_trial_index=1, result=row("B").result)
    spec = AdapterSpec("generation", model="x", model_deployment="recorded/x", num_train_trials=2)
    result = EvalSetMetric(metrics=["exact_match"]).evaluate(ScenarioState(spec, [first, again]), None, "", 1)
    (mean,) = (s.mean for s in result.aggregated_stats if (s.name.name, s.name.perturbation) == ("exact_match", None))
    assert mean == 0.5
    values = {r.train_trial_index: s.mean for r in result.per_instance_stats for s in r.stats if s.name.name == "exact_match"}  # fmt: skip
    assert values == {0: 1, 1: 0}


# HELM's own runs keep HELM's values.


def test_helms_own_runs_are_scored_by_the_texts_as_helm_does():
    names = ["exact_match", "quasi_exact_match", "prefix_exact_match", "quasi_prefix_exact_match", "f1_score"]
    rows = [
        row("B", correct=["5"], wrong=["-5"], options=["5", "-5"], id="sign"),
        row("B", correct=["New York"], wrong=["New York City"], options=["New York", "New York City"], id="prefix"),
        row("A", correct=["x", "y"], wrong=["z"], options=["x", "y", "z"], id="right"),
        row("Rome", "Oslo", correct=["Oslo", "Bern"], id="order", logprobs=[-3.0, -1.0]),
    ]
    stats = score(*rows, metrics=names, label_reading="exact", multi_label=True)
    # Quasi: "-5" is "5". Prefix: "New York City" begins with "New York". Order: HELM takes Oslo, the likelier one.
    # F1 of "new york city" and "new york": precision 2/3, recall 1, so 4/5.
    expected = {
        "exact_match": 2 / 4,
        "quasi_exact_match": 3 / 4,
        "prefix_exact_match": 3 / 4,
        "quasi_prefix_exact_match": 1,
        "f1_score": (1 + 4 / 5 + 1 + 1) / 4,
    }
    assert {name: stats[name] for name in names} == pytest.approx(expected)
    assert stats["max_prob"] == pytest.approx(math.exp(-1))
    assert stats["unmapped"] == 0


# All correct references are asked for.


@pytest.mark.parametrize(("completion", "exact", "quasi", "f1"), [
    ("Paris, Lyon", 1, 1, 1), ("Lyon, Paris", 1, 1, 1), ("Lyon,Paris", 1, 1, 1), ("lyon, paris.", 0, 1, 1),
    ("Paris", 0, 0, 2 / 3), ("Paris, Paris", 0, 0, 2 / 3), ("Paris, Lyon, Nice", 0, 0, 4 / 5), ("", 0, 0, 0),
])  # fmt: skip
def test_free_text_must_name_all_of_them(completion, exact, quasi, f1):
    stats = score(row(completion, correct=["Paris", "Lyon"]), multi_label=True)
    assert (stats["exact_match"], stats["quasi_exact_match"]) == (exact, quasi)
    assert stats["f1_score"] == pytest.approx(f1)


@pytest.mark.parametrize(("completion", "value"), [
    ("A, C", 1), ("C and A", 1), ("AC", 1), ("The answers are A and C.", 1), ("x, z", 1), ("A", 0), ("C", 0),
    ("A, B, C", 0), ("A, B", 0), ("no idea", 0),
])  # fmt: skip
def test_the_set_of_labels_must_be_the_correct_ones(completion, value):
    one = row(completion, correct=["x", "z"], wrong=["y"], options=["x", "y", "z"])
    stats = score(one, multi_label=True)
    assert all_of(stats) == {value}
    assert stats["unmapped"] == (completion == "no idea")


# Lists.


def lists(*texts, metrics=LISTS, multi_label=False, num_outputs=1, **fields):
    return score(row(*texts, **fields), metrics=metrics, output_format="list", multi_label=multi_label, num_outputs=num_outputs)  # fmt: skip


OPTIONS = {
    "correct": ["New York", "Rome"],
    "wrong": ["New York City"],
    "options": ["New York", "New York City", "Rome"],
}


@pytest.mark.parametrize(("completion", "exact", "as_set", "f1"), [
    ("A; C", 1, 1, 1), ("(A); Rome", 1, 1, 1), ("C; A", 0, 1, 1), ("A", 0, 0, 2 / 3), ("A; B", 0, 0, 1 / 2),
    ("A; nonsense", 0, 0, 1 / 2), ("A; B; C", 0, 0, 4 / 5), ("nonsense", 0, 0, 0), ("", 0, 0, 0),
])  # fmt: skip
def test_each_segment_is_read_as_an_option(completion, exact, as_set, f1):
    stats = lists(completion, **OPTIONS)
    assert (stats["exact_match"], stats["set_exact_match"]) == (exact, as_set)
    assert stats["list_f1"] == pytest.approx(f1)
    assert stats["unmapped"] == (completion in {"", "nonsense"})


COLOURS = {"correct": ["red; blue"], "wrong": ["red; green"], "options": ["red; blue", "red; green"]}


@pytest.mark.parametrize(("texts", "fields", "expected"), [
    (["A", "The answer is C."], {**OPTIONS, "num_outputs": 2}, {"exact_match": 1, "unmapped": 0}),
    (["nonsense", "The answer is C."], {**OPTIONS, "num_outputs": 2}, {"exact_match": 0, "unmapped": 0}),
    # HELM's metrics of a list of options compare the sets.
    (["C; A"], {**OPTIONS, "metrics": ["quasi_exact_match"]}, {"quasi_exact_match": 1}),
    (["A; B"], {**OPTIONS, "metrics": ["prefix_exact_match"]}, {"prefix_exact_match": 0}),
    (["x"], {**OPTIONS, "metrics": ["prefix_exact_match"]}, {"prefix_exact_match": 0}),
    # An option's text may hold semicolons.
    *(([text], COLOURS, {"exact_match": right}) for text, right in (("red; blue", 1), ("A", 1), ("red; green", 0), ("B", 0))),
    # With `multi_label` a list may be written with commas, and is that of all references.
    (["A, C"], {**OPTIONS, "multi_label": True}, {"exact_match": 1}),
    (["A, C"], OPTIONS, {"unmapped": 1}),
    (["Paris; Lyon"], {**BOTH, "multi_label": True}, {"exact_match": 1}),
    (["Paris"], {**BOTH, "multi_label": True}, {"list_f1": pytest.approx(2 / 3)}),
    (["Paris"], BOTH, {"exact_match": 1}),
    (["paris;Lyon"], {**BOTH, "multi_label": True, "metrics": ["quasi_exact_match"]}, {"quasi_exact_match": 1}),
])  # fmt: skip
def test_one_list(texts, fields, expected):
    stats = lists(*texts, **fields)
    assert {name: stats[name] for name in expected} == expected


# Log-probabilities that are no numbers.


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_log_probabilities_that_are_no_numbers_are_not_measured(value):
    one = row("x", correct=["x"], logprobs=[value], id="a")
    for label_reading in ("forgiving", "exact"):
        stats = score(one, row("x", correct=["x"], id="b"), label_reading=label_reading)
        assert stats["exact_match"] == 1
        assert not {"logprob", "max_prob", "perplexity"} & set(stats)


# What helm-server shows.


def test_the_annotation_names_every_label_that_was_read():
    annotator = AnswerAnnotator(metrics=["exact_match"], multi_label=True)
    one = row("A and C", correct=["x", "z"], wrong=["y"], options=["x", "y", "z"])
    assert annotator.annotate(one) == {"read_as": "A, C", "option": "x, z"}
    assert AnswerAnnotator(metrics=["exact_match"]).annotate(one) == {"read_as": "unmapped"}
    listed = AnswerAnnotator(metrics=["exact_match"], output_format="list")
    assert listed.annotate(row("A", "C", options=["x", "y", "z"])) == {"read_as": "A, C", "option": "x, z"}
    patterned = AnswerAnnotator(metrics=["exact_match"], output_mapping_pattern=r"so (\w)")
    assert patterned.annotate(row("A, so C", options=["x", "y", "z"])) == {"read_as": "C", "option": "z"}
    assert listed.annotate(row("A; no; C", options=["x", "y", "z"])) == {"read_as": "A, C", "option": "x, z"}


# What the annotator has read, the metric need not read again.

TEXTS = ["B", "The answer is (A).", "I think B. zinc", "both A and C", "", "no idea", "A\n\nQuestion: which?\nB"]


@pytest.mark.parametrize("scoring", [{}, {"output_format": "list"}, {"completions": "mean"}])
def test_scores_are_equal_whether_or_not_an_annotator_has_read_the_answers(scoring):
    def stats(*, annotates):
        rows = [
            row(*texts, correct=["iron"], wrong=["zinc", "tin"], options=["iron", "zinc", "tin"], id=f"r{n}")
            for n, texts in enumerate([*zip(TEXTS, strict=True), *itertools.pairwise(TEXTS)])
        ]
        annotator = AnswerAnnotator(metrics=["exact_match"], **scoring)
        if annotates:
            assert all(annotator.annotate(one) for one in rows)
        return score(*rows, metrics=("exact_match",), **scoring)

    assert stats(annotates=True) == stats(annotates=False)


def test_an_answer_is_read_once(monkeypatch):
    read = []
    real = AnswerReader.read
    monkeypatch.setattr(AnswerReader, "read", lambda *given, **said: read.append(given[1]) or real(*given, **said))
    one = row("The answer is (A).", correct=["iron"], wrong=["zinc"], options=["iron", "zinc"])
    AnswerAnnotator(metrics=["exact_match"]).annotate(one)
    score(one, metrics=("exact_match",))
    assert read == ["The answer is (A)."]


def test_what_another_reader_has_read_is_read_again():
    one = row("A and B", correct=["iron"], wrong=["zinc"], options=["iron", "zinc"])
    reader = AnswerReader(Scoring())
    for settings in ({"multi_label": True}, {"pattern": "(B)"}):
        other = AnswerReader(Scoring(), **settings)
        keep_answers(one, other, None, {("A and B", False): Answer("iron", ("A",))})
        assert take_answers(one, reader, None) == {}
    keep_answers(one, AnswerReader(Scoring()), None, {("x", False): Answer("x")})
    assert take_answers(one, reader, None) == {("x", False): Answer("x")}
    assert take_answers(one, reader, None) == {}
