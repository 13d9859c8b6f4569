"""Which stats are scores, and what is known of them."""

import math
from types import SimpleNamespace

import pytest

from helm_ext.analysis.comparing import PairResult
from helm_ext.analysis.run_scores import RunScores, ScoredRow, describe_scores, find_scores
from helm_ext.scoring.registry import find_bounds
from helm_ext.scoring.statistics.paired import compare_rows

NO_METRICS = {"metric_specs": []}


@pytest.mark.parametrize(("names", "scores"), [
    ("num_references inference_runtime finish_reason_stop exact_match logprob unmapped odd", "exact_match odd"),
    # What a score is made of is none, unless there is nothing else.
    ("refusal_match_low refusal_match_high refusal_golds", "refusal_match_low"),
    ("num_bytes list_found list_expected", "list_found list_expected"),
])  # fmt: skip
def test_which_stats_are_scores(names, scores):
    assert find_scores(names.split()) == scores.split()


@pytest.mark.parametrize(("name", "lower", "lowest", "highest"), [
    ("exact_match", False, 0.0, 1.0), ("exact_match@5", False, 0.0, 1.0),
    ("absolute_value_difference", True, 0.0, math.inf), ("ultraeval_bleu", False, 0.0, 100.0),
    ("list_f1", False, 0.0, 1.0),
    ("chr_f_plus_plus", False, -math.inf, math.inf),  # only in a schema of HELM's
    ("of_nobody", None, -math.inf, math.inf),
])  # fmt: skip
def test_what_is_known_of_a_score(name, lower, lowest, highest):
    facts = describe_scores(NO_METRICS, [name])[name]
    assert (facts.lower_is_better, *find_bounds(name)) == (lower, lowest, highest)


def test_the_runs_own_metric_is_asked_first():
    source = {"tool": "some_tool", "scores": {"loss": {"stat": "some_tool_loss", "mean": 0.5, "lower_is_better": True}}}
    arguments = {"metrics": ["exact_match"], "source": source}
    spec = {"metric_specs": [{"class_name": "helm_ext.scoring.metrics.EvalSetMetric", "args": arguments}]}
    facts = describe_scores(spec, ["some_tool_loss", "exact_match"])
    assert facts["some_tool_loss"].lower_is_better is True
    assert facts["exact_match"].lower_is_better is False


def test_a_metric_that_cannot_be_made_here_says_nothing():
    spec = {"metric_specs": [{"class_name": "no.such.Metric", "args": {}}]}
    assert describe_scores(spec, ["exact_match"])["exact_match"].lower_is_better is False


@pytest.mark.parametrize(("metric", "a", "b", "detectable", "shown"), [
    # 2.8016 standard errors, 1 / sqrt(3) of three rows: 1.62, which no two shares differ by
    ("exact_match", [1, 0, 0], [0, 1, 0], None, "so few rows cannot show any difference reliably"),
    ("of_nobody", [1, 0, 0], [0, 1, 0], 1.6175, "a difference of 1.62 is found in 8 of 10"),
    ("exact_match", [1, 0, 0] * 20, [0, 1, 0] * 20, 0.2978, "a difference of 0.298 is found in 8 of 10"),
    ("exact_match", [1, 0], [1, 0], None, "cannot be estimated: they all differ by the same"),
    ("exact_match", [1], [0], None, "cannot be estimated: there is only one"),
])  # fmt: skip
def test_what_difference_rows_can_show_is_one_that_scores_can_have(metric, a, b, detectable, shown):
    said = {"scenario_arguments": {}, "metric_arguments": {}, "run_spec": NO_METRICS}
    scores = RunScores(SimpleNamespace(model="m", scenario_name="d", is_ours=True, **said), metric)
    pairs = [
        (str(n), ScoredRow(one, b"", {}), ScoredRow(other, b"", {}))
        for n, (one, other) in enumerate(zip(a, b, strict=True))
    ]
    pair = PairResult(scores, scores, "", pairs, 0, compare_rows(a, b))
    assert pair.shown.detectable == (None if detectable is None else pytest.approx(detectable, abs=1e-4))
    assert shown in pair.describe_detectable()
