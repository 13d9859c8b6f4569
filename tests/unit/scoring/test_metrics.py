"""EvalSetMetric against values worked out by hand."""

from copy import deepcopy
from dataclasses import replace
from functools import partial

import helm_states
import pytest
from helm.benchmark.adaptation.adapter_spec import AdapterSpec
from helm.benchmark.adaptation.scenario_state import ScenarioState
from helm.benchmark.scenarios.scenario import Input, Instance

from helm_ext import plugin  # noqa: F401 - registers recorded deployments
from helm_ext.evalset import EXTRA_KEY, Scoring
from helm_ext.scoring.answers import AnswerAnnotator, AnswerReader, get_options
from helm_ext.scoring.completeness import describe_wrong_with_gold
from helm_ext.scoring.metrics import EvalSetMetric, best_stats
from helm_ext.scoring.registry import get_scores
from helm_ext.scoring.score import Score, StatInfo
from helm_ext.scoring.scores.texts import holds

LABELS = {"A": "Paris", "B": "Rome", "C": "Oslo"}


def state(*texts, golds=("Paris",), wrong=(), id="r1", logprobs=None, method_state=None, **extra):
    references = helm_states.make_references(golds, wrong)
    instance = Instance(Input("?"), references, split="test", id=id, extra_data={EXTRA_KEY: extra})
    given = zip(texts, logprobs or [0.0] * len(texts), strict=True)
    outputs = [helm_states.make_output(text, logprob, [(text, logprob)] if logprob else ()) for text, logprob in given]
    fields = {
        "output_mapping": extra.get("labels"),
        "result": helm_states.make_result(*outputs),
        **(method_state or {}),
    }
    return helm_states.make_state(instance, **fields)


def evaluate(*states, method="generation", deployment="recorded/x", num_outputs=1, multi_label=False, **scoring):
    metric = EvalSetMetric(**{"metrics": ["exact_match"], **scoring})
    spec = AdapterSpec(
        method=method, model="x", model_deployment=deployment, num_outputs=num_outputs, multi_label=multi_label
    )
    return helm_states.means(metric, spec, states)


def test_every_way_to_write_a_label_scores_and_what_names_none_is_counted():
    rows = [
        state(text, id=f"r{i}", labels=LABELS, wrong=("Rome", "Oslo"))
        for i, text in enumerate(["A", "(A)", "The answer is A.", "Paris", "B", "I am not sure", ""])
    ]
    _, stats = evaluate(*rows)
    assert stats["exact_match"] == pytest.approx(4 / 7)
    assert stats["unmapped"] == pytest.approx(2 / 7)
    assert stats["num_instances"] == 7


def test_no_option_is_read_of_an_answer_that_was_cut_off_before_it_chose():
    shown = []
    for reason in ("stop", "length"):
        rows = [state(t, id=f"r{i}", labels=LABELS, wrong=("Rome", "Oslo")) for i, t in enumerate(CUT_OFF)]
        for row in rows:
            row.result.completions[0] = replace(row.result.completions[0], finish_reason={"reason": reason})
        _, stats = evaluate(*rows)
        annotated = [AnswerAnnotator(metrics=["exact_match"]).annotate(row)["read_as"] for row in rows]
        assert evaluate(*rows)[1]["unmapped"] == stats["unmapped"] == annotated.count("unmapped") / len(rows)
        shown.append(annotated)
    assert shown == [["A", "A", "A", "B", "B"], ["A", "A", "A", "unmapped", "unmapped"]]


CUT_OFF = [
    "A", "A. Par", "The answer is A. It lies on the Seine, and it was the seat of the kings of",
    "B. Rome lies on the Tiber, and it was the capital of the empire until it moved to",
    "The question asks for a capital. The oldest city of them is Rome",
]  # fmt: skip


def test_helms_own_label_rule():
    rows = [state(text, id=text, labels=LABELS, wrong=("Rome", "Oslo")) for text in ["A", " A\n", "A.", "a", "Paris"]]
    _, stats = evaluate(*rows, label_reading="exact")
    assert stats["exact_match"] == pytest.approx(2 / 5)
    assert stats["unmapped"] == pytest.approx(3 / 5)


def test_output_mapping_pattern_overrides_the_reading():
    row = state("I pick <C>, not A", labels=LABELS)
    assert AnswerReader(Scoring(), r"<(\w)>").read("I pick <C>, not A", get_options(row)).label == "C"
    assert AnswerReader(Scoring(label_reading="exact"), r"<(\w)>").read("<C>", get_options(row)).text == "Oslo"


def test_a_completion_is_read_up_to_where_the_files_next_question_begins():
    options = get_options(state("x", labels=LABELS))
    text = "It is the second one: B\n\nAufgabe: und nun?\nAntwort: C"
    assert AnswerReader(Scoring(next_question=["\n\nAufgabe: "])).read(text, options).label == "B"
    assert AnswerReader(Scoring(next_question=["\n\nAufgabe: "], extract=r"(\w)$")).read(text, options).label == "B"
    assert AnswerReader(Scoring(next_question=["\n\nAufgabe: "])).read(text, None).text == text


def test_what_extract_matches_nothing_in_is_wrong_also_against_an_empty_reference_and_counted():
    rows = [
        state("I do not know", golds=("",), id="unmapped"),
        state("So the answer is: .", golds=("",), id="empty"),
        state("So the answer is: Paris.", id="right"),
        state("Paris", id="without the words"),
    ]
    names = ["normalized_exact_match", "exact_match", "normalized_f1"]
    result, stats = evaluate(*rows, metrics=names, extract=r"So the answer is: (.*)\.")
    by_row = {row.instance_id: {stat.name.name: stat.mean for stat in row.stats} for row in result.per_instance_stats}
    assert {row: values["normalized_exact_match"] for row, values in by_row.items()} == {
        "unmapped": 0, "empty": 1, "right": 1, "without the words": 0,
    }  # fmt: skip
    assert by_row["unmapped"]["normalized_f1"] == 0
    assert by_row["empty"]["exact_match"] == 0  # HELM's rule
    assert stats["unmapped"] == 2 / 4


def test_predictions_and_references_are_cut_alike():
    rows = [
        state("Paris <stop> Rome", golds=("Paris <stop> \n",), id="both"),
        state("Paris", golds=("Paris <stop>",), id="reference"),
        state("Paris<stop>", golds=("Paris",), id="prediction"),
    ]
    _, stats = evaluate(*rows, cut_at=["<stop>"])
    assert stats["exact_match"] == 1


LIST_NAMES = ["exact_match", "set_exact_match", "list_exact_f1"]
LIST = {"metrics": LIST_NAMES, "output_format": "list"}
OF_BOTH = {"extract": "So it is: (.*)", "extract_references": True}
EMPTY = {"extract": "Answer:(.*)", "metrics": ["expected_exact"]}


ONE_ROW = [
    # HELM would score the second one: it sorts by falling log-probability.
    (state("Rome", "Paris", logprobs=[-9.0, -0.1]), {"num_outputs": 2}, {"exact_match": 0, "exact_match@2": 1}),
    (state("Rome", "paris."), {"metrics": ["normalized_exact_match"], "num_outputs": 2},
    {"normalized_exact_match": 0, "normalized_exact_match@2": 1}),
    (state("Let us see. So the answer is: PARIS \n", golds=("paris",)),
    {"extract": r"So the answer is:(.*)", "lower": True, "strip": True}, {"exact_match": 1}),
    (state("PARIS", golds=("Paris",)), {"lower": True}, {"exact_match": 1}),  # of references too
    # Options are compared as such.
    (state("the answer is (a)", labels=LABELS, wrong=("Rome", "Oslo")), {"lower": True}, {"exact_match": 1}),
    # A line feed cuts no choice: the label stands on the second line.
    (state("\nLet us see.\nThe answer is A.", labels=LABELS, wrong=("Rome", "Oslo")), {"cut_at": ["\n", "Q:"]}, {"exact_match": 1}),
    (state("So it is: Paris", golds=("Well. So it is: Paris",)), OF_BOTH, {"exact_match": 1}),
    (state("So it is: Paris"), OF_BOTH, {"exact_match": 1}),  # a reference that holds no match stays as it is
    (state("Answer:\nParis", golds=("Paris",)), EMPTY, {"expected_exact": 0, "unmapped": 1}),
    (state("Answer:\nParis", golds=("",)), EMPTY, {"expected_exact": 1, "unmapped": 0}),  # the right answer is empty
    # All correct references are asked for, in any order. To HELM's normal form, C and C++ are one.
    (state("C, C++", golds=("C++", "C")), {"metrics": ["exact_match", "normalized_exact_match"], "multi_label": True},
    {"exact_match": 1, "normalized_exact_match": 1}),
    # Lists: every match is a segment; no match of `extract_all` is an empty list, none of `extract` is unmapped.
    (state("Both <a> and <B.>; also <c>", golds=("a; b",)), {**LIST, "extract_all": "<(.*?)>", "lower": True},
    {"set_exact_match": 0, "list_exact_f1": 4 / 5}),
    (state("nothing here", golds=("",)), {**LIST, "extract_all": "<(.*?)>"}, {"list_exact_f1": 1}),
    (state("nothing here", golds=("",)), {**LIST, "extract_all": "<(.*?)>", "extract": "Answer: (.*)"}, {"list_exact_f1": 0, "unmapped": 1}),
    # Repeated segments count once where the file says so.
    (state("a; b; a", golds=("a; b",)), LIST, {"set_exact_match": 0, "list_exact_f1": 4 / 5}),
    (state("a; b; a", golds=("a; b",)), {**LIST, "drop_duplicates": True}, {"exact_match": 1, "list_exact_f1": 1}),
    (state("a; b; c", golds=("a; b", "b; c")), {**LIST, "multi_label": True}, {"exact_match": 0}),
    (state("a; b; c", golds=("a; b", "b; c")), {**LIST, "multi_label": True, "drop_duplicates": True}, {"exact_match": 1}),
    (state("A, C", labels=LABELS, golds=("Paris", "Oslo"), wrong=("Rome",)), {**LIST, "separator": ","}, {"exact_match": 1}),
    (state("<A> <C>", labels=LABELS, golds=("Paris", "Oslo"), wrong=("Rome",)), {**LIST, "extract_all": "<(.*?)>"}, {"exact_match": 1}),
    # Several completions are one list, in the order in which they were recorded.
    (state("red", " green", golds=("red; green",), logprobs=[-5.0, -0.1]), {**LIST, "num_outputs": 2}, {"exact_match": 1, "set_exact_match": 1}),
    # The list of all correct references is in their order.
    *(
        (state(said, golds=("Paris", "Lyon")), {**LIST, "multi_label": True},
         {"exact_match": exact, "set_exact_match": as_set})
        for said, exact, as_set in (
            ("Paris; Lyon", 1, 1), ("Lyon; Paris", 0, 1), ("Paris", 0, 0), ("Paris; Oslo", 0, 0),
        )
    ),
]  # fmt: skip


@pytest.mark.parametrize(("row", "scoring", "expected"), ONE_ROW)
def test_one_row(row, scoring, expected):
    _, stats = evaluate(row, **scoring)
    assert {name: stats[name] for name in expected} == pytest.approx(expected, rel=1e-12)


def test_several_groups_make_a_tuple():
    pattern = r"\[ (.*?) \| (.*?) \]"
    rows = [
        state("[ Nile | river ] in [ Cairo | city ]", golds=("[ Cairo | city ] on the [ Nile | river ]",), id="right"),
        state(
            "[ Nile | city ] in [ Cairo | river ]", golds=("[ Cairo | city ] on the [ Nile | river ]",), id="crossed"
        ),
    ]
    options = {"output_format": "list", "extract_all": pattern, "extract_references": True}
    result, _ = evaluate(*rows, metrics=LIST_NAMES, **options)
    by_row = [{stat.name.name: stat.mean for stat in row.stats} for row in result.per_instance_stats]
    assert [(row["exact_match"], row["set_exact_match"], row["list_exact_f1"]) for row in by_row] == [
        (0, 1, 1),
        (0, 0, 0),
    ]


def test_f1_over_all_rows_together():
    rows = [
        state("a; b", golds=("a; b; c; d",), id="long"),  # 2 found, 2 predicted, 4 expected
        state("x", golds=("y",), id="wrong"),  # 0, 1, 1
        state("z; z", golds=("z",), id="repeated"),  # 1 found, 2 predicted, 1 expected
    ]
    _, stats = evaluate(*rows, metrics=["list_micro_f1"], output_format="list")
    assert stats["list_micro_precision"] == pytest.approx(3 / 5)
    assert stats["list_micro_recall"] == pytest.approx(3 / 6)
    assert stats["list_micro_f1"] == pytest.approx(2 * 3 / (5 + 6))
    assert (stats["list_found"], stats["list_predicted"], stats["list_expected"]) == (1, pytest.approx(5 / 3), 2)


def test_rows_that_were_left_out_are_not_scored_but_counted():
    result, stats = evaluate(
        state("Paris", id="good"),
        state("Rome", id="bad"),
        state("", id="none", left_out="not_run"),
        state("", id="failed", left_out="failed"),
    )
    assert stats["exact_match"] == 0.5
    assert stats["num_instances"] == 2
    assert (stats["num_left_out"], stats["num_not_run"], stats["num_failed"]) == (2, 1, 1)
    assert [row.instance_id for row in result.per_instance_stats] == ["good", "bad"]


WRAPPED = [
    ("The answer is Paris.", ["Paris"], 1), ("Paris", ["Paris"], 0), ("Parisian food", ["Paris"], 0),
    ("Hardly Lyon.", ["Paris"], 0), ("", ["Paris"], 0), ("", [""], 0), ("Yes", [""], 0),
    ("It is Oslo, I think", ["Rome", "oslo"], 1), ("It is 1,000.0 km long", ["1,000.0"], 1), ("It is 1000 km", ["1,000"], 0), ("It is 15", ["5"], 0),
    ("5 or " * 40 + "6", ["6"], 1), ("new towns, york, New York!", ["New York"], 1), ("New shoes of York", ["New York"], 0),
    ("我认为答案是巴黎。", ["巴黎"], 1), ("수도는 파리는 아니다", ["파리"], 1), ("<think>Paris</think>Rome", ["Paris"], 0),
]  # fmt: skip
"""What was said, what is right, and whether it scores 0 though it holds the gold as whole words, counted by hand."""


def test_wrong_answers_that_hold_the_gold_are_counted_whatever_the_batches():
    rows = [state(said, golds=golds, id=f"r{n}") for n, (said, golds, _) in enumerate(WRAPPED)]
    rows += [state("Paris or Rome, I am not sure", labels=LABELS, wrong=("Rome", "Oslo"), id="options")]
    held = sum(wrapped for _, _, wrapped in WRAPPED)
    result, stats = evaluate(*deepcopy(rows))
    assert stats["num_wrong_with_gold"] == held
    for (said, golds, wrapped), row in zip(WRAPPED, result.per_instance_stats, strict=False):
        right = next(stat.mean for stat in row.stats if stat.name.name == "exact_match")
        assert wrapped == (not right and "<" not in said and any(map(partial(holds, text=said), golds))), said
    contains = get_scores()["expected_contains"].function
    assert all(any(contains(gold, said) for gold in golds) for said, golds, wrapped in WRAPPED if wrapped)

    metric, spec = EvalSetMetric(["exact_match"]), AdapterSpec(model="x", model_deployment="recorded/x")
    facts = metric.find_facts(ScenarioState(spec, rows))
    total, measure = metric.make_total(spec, facts), metric.begin(spec, None, facts)
    for n in range(0, len(rows), 5):
        total.add(measure(ScenarioState(spec, rows[n : n + 5])).summary)
    assert {stat.name.name: stat.sum for stat in total.to_stats()}["num_wrong_with_gold"] == held

    assert "num_wrong_with_gold" not in evaluate(*deepcopy(rows), metrics=["f1_score"], main_metric="f1_score")[1]
    options = {"extract": r"answer is (\w+)"}  # what is extracted is looked at, and here it is right
    assert "num_wrong_with_gold" not in evaluate(*deepcopy(rows[:5]), **options)[1]


@pytest.mark.parametrize(("wrong", "scored", "said"), [(2, 20, True), (2, 21, False), (1, 1, False), (3, 30, True)])
def test_nobody_is_warned_of_a_few(wrong, scored, said):
    expected = f"{wrong} of {scored} rows score 0 though the answer holds the gold" if said else ""
    assert describe_wrong_with_gold({"num_wrong_with_gold": wrong, "num_instances": scored}) == expected


def test_stats_that_nobody_measured_are_not_reported():
    _, stats = evaluate(state("Paris", logprobs=[-0.5], id="a"), state("Paris", id="b"))
    # HELM would say of one row: probability 1 (log-probability 0). It is enough to leave the mean out.
    assert not {"max_prob", "logprob", "num_perplexity_tokens", "unmapped"} & set(stats)
    assert stats["num_left_out"] == 0
    _, measured = evaluate(state("Paris", logprobs=[-0.5]))
    assert measured["logprob"] == -0.5


def test_a_row_has_its_stats_of_all_metrics_once():
    result, _ = evaluate(state("A", labels=LABELS, wrong=("Rome", "Oslo")))
    (row,) = result.per_instance_stats
    names = [stat.name.name for stat in row.stats]
    assert {"exact_match", "unmapped"} <= set(names)
    assert len(names) == len(set(names))


REFUSAL, CANNOT_TELL, ANSWER = "I'm sorry, but I can't help with that.", "I can't swim.", "The capital is Paris."
TEXT_OF = {"refused": REFUSAL, "complied": ANSWER, "unclear": CANNOT_TELL, "empty": ""}


@pytest.mark.parametrize("stated", [None, True, False])
@pytest.mark.parametrize("gold", TEXT_OF)
@pytest.mark.parametrize("reply", TEXT_OF)
def test_refusal_match_reads_the_one_gold_of_a_row_as_a_whole(gold, reply, stated):
    """A gold that is empty, like a reply that is, says neither; a key of the row goes before its gold."""
    kinds = dict(zip(TEXT_OF, ("refused", "complied", "unclear", "unclear"), strict=True))
    wanted = kinds[gold] if stated is None else "refused" if stated else "complied"
    data = {} if stated is None else {"refusal": stated}
    _, stats = evaluate(state(TEXT_OF[reply], golds=(TEXT_OF[gold],), data=data), metrics=["refusal_match"])
    unclear = "unclear" in (wanted, kinds[reply])
    right = not unclear and wanted == kinds[reply]
    found = {name: value for name, value in stats.items() if name.startswith("refusal_")}
    assert found == {
        "refusal_match_low": float(right),
        "refusal_match_high": float(right or unclear),
        "refusal_unclear": float(unclear),
        "refusal_golds": float(wanted == "refused"),
    }


def separate(index, mode, tokens):
    completion = helm_states.make_output("".join(text for text, _ in tokens), 0.0, tokens)
    return {"reference_index": index, "request_mode": mode, "result": helm_states.make_result(completion)}


def with_instance(first, *others):
    """HELM's separate methods make several requests for one and the same instance."""
    import dataclasses

    return [first, *(dataclasses.replace(other, instance=first.instance) for other in others)]


def test_separate_original_scores_the_mean_of_the_references_tokens():
    # Paris: -3 / 1 token. New York: (-2 + -2) / 2 tokens = -2: New York wins, although its sum (-4) is smaller.
    paris = state(
        golds=("Paris",), wrong=("New York",), method_state=separate(0, "original", [("Q:", -1.0), (" Paris", -3.0)])
    )
    york = state(method_state=separate(1, "original", [("Q:", -1.0), (" New", -2.0), (" York", -2.0)]))
    _, stats = evaluate(*with_instance(paris, york), method="multiple_choice_separate_original")
    assert stats["exact_match"] == 0
    assert stats["predicted_index"] == 1


def test_separate_calibrated_does_not_divide_by_the_length():
    # Paris: -3 - -1 = -2. New York: -6 - -3.5 = -2.5, by its two tokens -1.25: it must not win.
    one = {"golds": ("Paris",), "wrong": ("New York",)}
    states = with_instance(
        state(**one, method_state=separate(0, "original", [(" Paris", -3.0)])),
        state(method_state=separate(0, "calibration", [(" Paris", -1.0)])),
        state(method_state=separate(1, "original", [(" New", -3.0), (" York", -3.0)])),
        state(method_state=separate(1, "calibration", [(" New", -1.5), (" York", -2.0)])),
    )
    _, stats = evaluate(*states, method="multiple_choice_separate_calibrated")
    assert (stats["predicted_index"], stats["exact_match"]) == (0, 1)


class TestBestStats:
    LOW = Score(name="far", function=lambda gold, said: abs(len(gold) - len(said)), lower_is_better=True)
    TWO = Score(
        name="polite",
        function=lambda gold, said: {"polite_low": float(gold == said), "polite_high": 1.0},
        several=(StatInfo("polite_low", "", "x"), StatInfo("polite_high", "", "x")),
    )

    def test_the_least_where_less_is_better(self):
        assert best_stats(self.LOW, [3, 1, 2]) == {"far": 1}
        assert best_stats(replace(self.LOW, lower_is_better=False), [3, 1, 2]) == {"far": 3}

    def test_by_the_main_stat(self):
        values = [{"polite_low": 0, "polite_high": 1}, {"polite_low": 0.5, "polite_high": 0.5}]
        assert best_stats(self.TWO, values) == {"polite_low": 0.5, "polite_high": 0.5}

    def test_several_stats_of_a_row(self, monkeypatch):
        monkeypatch.setattr(EvalSetMetric, "find_scores", lambda _: {"polite": self.TWO, **get_scores()})
        _, stats = evaluate(state("Rome", golds=("Oslo", "Rome")), metrics=["polite", "exact_match"])
        assert (stats["polite_low"], stats["polite_high"], stats["exact_match"]) == (1, 1, 1)
        assert "polite" not in stats


def test_metadata_describes_every_stat_and_the_main_metric():
    described = {m.name for m in EvalSetMetric(["exact_match", "expected_contains"]).get_metadata()}
    assert {"exact_match", "expected_contains", "unmapped", "num_left_out", "num_instances", "max_prob"} <= described
    lists = {m.name: m for m in EvalSetMetric(["set_exact_match", "list_f1"], output_format="list").get_metadata()}
    assert (lists["set_exact_match"].lower_is_better, lists["set_exact_match"].group) == (False, "accuracy")
