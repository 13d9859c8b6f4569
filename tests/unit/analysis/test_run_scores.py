"""Which stats are scores, and what is known of them."""

from __future__ import annotations

import math

import pytest

from helm_ext.analysis.run_scores import describe_scores, find_scores

NO_METRICS = {"metric_specs": []}


def test_stats_that_describe_a_run_are_no_scores():
    names = ["num_references", "inference_runtime", "finish_reason_stop", "exact_match", "logprob", "unmapped", "odd"]
    assert find_scores(names) == ["exact_match", "odd"]


def test_what_a_score_is_made_of_is_none_unless_there_is_nothing_else():
    assert find_scores(["refusal_match_low", "refusal_match_high", "refusal_golds"]) == ["refusal_match_low"]
    assert find_scores(["num_bytes", "list_found", "list_expected"]) == ["list_found", "list_expected"]


@pytest.mark.parametrize(
    ("name", "lower", "lowest", "highest"),
    [
        ("exact_match", False, 0.0, 1.0),
        ("exact_match@5", False, 0.0, 1.0),
        ("absolute_value_difference", True, 0.0, math.inf),
        ("ultraeval_bleu", False, 0.0, 100.0),
        ("list_f1", False, 0.0, 1.0),
        ("chr_f_plus_plus", False, -math.inf, math.inf),  # only in a schema of HELM's
        ("of_nobody", None, -math.inf, math.inf),
    ],
)
def test_what_is_known_of_a_score(name, lower, lowest, highest):
    facts = describe_scores(NO_METRICS, [name])[name]
    assert (facts.lower_is_better, facts.lowest, facts.highest) == (lower, lowest, highest)


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
