"""HELM's Slurm and multi-GPU workers load no entry points; they create the scenario, then the adapter."""

import sys

import pytest
from processes import command

pytestmark = pytest.mark.slow

WORKER = """
from helm.benchmark.adaptation.adapters.adapter_factory import AdapterFactory
from helm.benchmark.scenarios.scenario import ScenarioSpec, create_scenario

create_scenario(ScenarioSpec("helm_ext.formats.scenarios.AdapterSpecScenario",
                             {"dataset": "x", "digest": "0" * 12, "main_metric": "exact_match"}))
assert AdapterFactory.get_adapter.wrapped_by_helm_ext
"""


def test_creating_the_scenario_is_enough(tmp_path):
    command(tmp_path, sys.executable, "-c", WORKER)
