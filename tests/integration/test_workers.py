"""HELM's Slurm and multi-GPU workers load no entry points; they create the scenario, then the adapter.

So recorded deployments, and the wrap around HELM's adapters, must be there as soon as a scenario is imported.
"""

import os
import sys
from pathlib import Path

import pytest
import request_states_files
from processes import command, helm_run, only_run, stat_means
from request_states_files import answered, state

from helm_ext.formats import format_names, get_format

pytestmark = [
    pytest.mark.slow,
    pytest.mark.nightly(
        "src/helm_ext/formats", "src/helm_ext/plugin", "src/helm_ext/adaptation", "src/helm_ext/clients"
    ),
]

STUBS = Path(__file__).parents[1] / "stubs" / "slurm"

WORKER = """
import importlib, sys
from helm.benchmark.adaptation.adapters.adapter_factory import AdapterFactory
from helm.benchmark.model_deployment_registry import get_model_deployment

module, _, name = sys.argv[1].rpartition(".")
getattr(importlib.import_module(module), name)
assert "helm_ext.plugin" not in sys.modules
assert AdapterFactory.get_adapter.wrapped_by_helm_ext
assert get_model_deployment("recorded/m").client_spec.class_name.endswith(".RecordedClient")
"""


@pytest.mark.parametrize("name", format_names())
def test_importing_the_scenario_is_enough(tmp_path, name):
    command(tmp_path, sys.executable, "-c", WORKER, get_format(name).scenario_class)


@pytest.fixture
def dataset(tmp_path):
    """Two rows that were answered, one rightly."""
    states = [answered(state("France?", "Paris"), "Paris"), answered(state("Italy?", "Rome"), "Milan")]
    request_states_files.write(tmp_path / "qa.json", states)
    return tmp_path


def make_slurm(folder: Path) -> dict[str, str]:
    """Put commands of Slurm on the PATH: `sbatch` runs the job at once, as a process of its own."""
    scripts = {
        "sbatch": '#!/bin/sh\nfor last; do :; done\necho "$last" >> jobs.txt\n'
        'if sh -c "$last" > job.log 2>&1; then echo COMPLETED > state; else echo FAILED > state; fi\n'
        "echo Submitted batch job 7\n",
        "scontrol": "#!/bin/sh\necho JobState=$(cat state)\n",
        "scancel": "#!/bin/sh\n",
    }
    (folder / "bin").mkdir()
    for name, text in scripts.items():
        (folder / "bin" / name).write_text(text)
        (folder / "bin" / name).chmod(0o755)
    return {
        "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join([str(STUBS), os.environ.get("PYTHONPATH", "")]),
    }


def test_a_slurm_worker_scores_recorded_completions(dataset):
    options = ("--runner-class-name", "helm.benchmark.slurm_runner.SlurmRunner")
    helm_run(dataset, "adapter_spec:path=qa.json,model=recorded/m", options=options, env=make_slurm(dataset))
    assert "-m helm.benchmark.slurm_runner --slurm-runner-spec-path" in (dataset / "jobs.txt").read_text()
    assert stat_means(only_run(dataset))["exact_match"] == 0.5


def test_a_multi_gpu_worker_without_a_gpu_scores_recorded_completions(dataset):
    options = ("--runner-class-name", "helm.benchmark.multi_gpu_runner.MultiGPURunner")
    env = {"HELM_MAX_CONCURRENT_WORKERS": "1"}
    helm_run(dataset, "adapter_spec:path=qa.json,model=recorded/m", options=options, env=env)
    assert stat_means(only_run(dataset))["exact_match"] == 0.5
