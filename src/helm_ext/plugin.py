"""Entry point of group `helm`: registers what `helm-run` finds by name.

`helm-run` imports this module for every user of the environment, and turns an exception here into one warning and an
"Unknown run spec name" later. So: nothing heavy is imported, nothing can fail, the work is imported when asked for.
"""

from __future__ import annotations

from typing import Any

from helm.benchmark.model_deployment_registry import ModelDeployment, model_deployment_generator
from helm.benchmark.run_spec import RunSpec, run_spec_function

from helm_ext import adaptation
from helm_ext.planning import task_expander

adaptation.install()
task_expander.install()


@run_spec_function("adapter_spec")
def get_adapter_spec_run_spec(**arguments: Any) -> RunSpec:
    """`adapter_spec:dataset=NAME` or `adapter_spec:path=FILE`; see `helm_ext.planning.run_specs`."""
    from helm_ext.planning import run_specs

    return run_specs.get_adapter_spec_run_spec(**arguments)


@run_spec_function("ultraeval")
def get_ultraeval_run_spec(**arguments: Any) -> RunSpec:
    """`ultraeval:config=FILE`, `ultraeval:dataset=NAME` or `ultraeval:data=FILE,transform=SCRIPT`."""
    from helm_ext.planning import run_specs

    return run_specs.get_ultraeval_run_spec(**arguments)


@run_spec_function("innodata")
def get_innodata_run_spec(**arguments: Any) -> RunSpec:
    """`innodata:dataset=NAME` or `innodata:path=FILE.zip`; see `helm_ext.planning.run_specs`."""
    from helm_ext.planning import run_specs

    return run_specs.get_innodata_run_spec(**arguments)


@model_deployment_generator("recorded")
def get_recorded_model_deployment(name: str) -> ModelDeployment:
    """`recorded/NAME`, for any name."""
    from helm_ext.adaptation import recorded

    return recorded.get_recorded_model_deployment(name)
