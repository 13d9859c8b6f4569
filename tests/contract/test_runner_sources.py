"""HELM's functions that this package restates are still the ones that were restated.

A failure here asks for reading HELM's change and carrying it over; then the new digest is written down.
"""

import ast
import hashlib
import inspect
import textwrap

import pytest
from helm.benchmark.executor import Executor
from helm.benchmark.metrics import (
    basic_metrics,
    efficiency_metrics,
    evaluate_reference_metrics,
    metric,
    reference_metric,
)
from helm.benchmark.metrics.statistic import Stat
from helm.benchmark.presentation import run_display, summarize
from helm.benchmark.runner import Runner
from helm.clients.auto_client import AutoClient
from helm.common import general, key_value_store

from helm_ext.scoring.registry import get_scores

RESTATED = {
    Runner.run_one: "627a074917e8e860",
    Runner.run_all: "67f5fa526ecd1306",
    Executor: "294ea34c428e511c",
    AutoClient._get_client: "e5fb3966e9aae457",
    key_value_store.request_to_key: "a8777cafb41edd59",
    key_value_store.SqliteKeyValueStore.get: "7189100be8b5b365",
    key_value_store.SqliteKeyValueStore.put: "042b603173a8665c",
    basic_metrics.compute_request_state_metrics: "b54f21835b91b83b",
    basic_metrics._compute_finish_reason_metrics: "89595830bdad7164",
    basic_metrics._compute_truncation_metrics: "8d2e1330c0f5d93f",
    basic_metrics._has_non_zero_valued_logprobs: "713d01a98aea6d6c",
    basic_metrics.compute_language_modeling_metrics: "5bc0dada32c40d25",
    basic_metrics.BasicGenerationMetric.evaluate_generation: "ce90b5d04c068053",
    basic_metrics.BasicReferenceMetric.evaluate_references: "c19310460d2f98c4",
    efficiency_metrics.EfficiencyMetric.compute_efficiency_metrics: "ba21942e7c606449",
    evaluate_reference_metrics.compute_reference_metrics: "33dcea433b5a3240",
    evaluate_reference_metrics.normalize_text: "dae2ed09feda1d01",
    evaluate_reference_metrics.exact_match: "7742164089001f3a",
    evaluate_reference_metrics.prefix_exact_match: "42edd6636f1231f7",
    basic_metrics.InstancesPerSplitMetric.evaluate: "2df7e176a62d1202",
    basic_metrics.InstancesPerSplitMetric.get_metadata: "9b56fb55b604f861",
    basic_metrics.compute_perplexity_metrics: "790e549c508d28e6",
    evaluate_reference_metrics.quasi_exact_match: "1ffab3d80623bd80",
    evaluate_reference_metrics.quasi_prefix_exact_match: "4c86bb96d646817f",
    evaluate_reference_metrics.f1_score: "22e6679389c7c4de",
    metric.Metric.evaluate: "efe49b1b7ea48ec7",
    metric.Processor.process: "94cd79c969a0e8dc",
    metric.compute_worst_case_metrics: "44f64b85af0e7223",
    reference_metric.ReferenceMetric.evaluate: "5880b66734d7ee3d",
    Stat.add: "1f54e7e60fb90378",
    Stat.merge: "7fc48b220246e7e1",
    general.asdict_without_nones: "5a3f701bb0b87df3",
    run_display.write_run_display_json: "a267156e6ac2b868",
    run_display._truncate_predicted_text: "2ebc0c9a9c7202ef",
    summarize.Summarizer.write_run_display_json: "4f956d83bb0b002d",
}


def digest(function):
    return hashlib.sha256(textwrap.dedent(inspect.getsource(function)).encode()).hexdigest()[:16]


@pytest.mark.parametrize("function", RESTATED, ids=lambda function: function.__qualname__)
def test_helms_source_is_the_one_that_was_restated(function):
    assert digest(function) == RESTATED[function], f"{function.__module__}.{function.__qualname__} has changed in HELM"


def test_names_of_scores_are_helms():
    tree = ast.parse(textwrap.dedent(inspect.getsource(evaluate_reference_metrics.compute_reference_metrics)))
    tables = [
        {key.value for key in node.value.keys}
        for node in ast.walk(tree)
        if isinstance(node, ast.AnnAssign) and getattr(node.target, "id", "") == "metric_fn_mapping"
    ]
    assert tables == [{score.name for score in get_scores().values() if score.kind == "helm"}]
