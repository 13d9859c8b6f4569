"""HELM inside this process: the steps of `helm-run` that `preview` and `score` share with it."""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from helm_ext import catalog
from helm_ext.errors import HelmExtError, RunEntryError
from helm_ext.formats import Format

if TYPE_CHECKING:
    from helm.benchmark.run_spec import RunSpec

__all__ = ["find_file", "make_run_spec", "parse_arguments", "start_helm"]


def start_helm(local_path: Path, *, verbose: bool) -> None:
    """Do what `helm-run` does before it reads run entries: built-in and local configurations, our plugin."""
    from helm.benchmark.config_registry import (
        register_builtin_configs_from_helm_package,
        register_configs_from_directory,
    )
    from helm.common.hierarchical_logger import setup_default_logging

    from helm_ext import plugin  # noqa: F401 - registers the run entries

    if verbose:
        setup_default_logging()
    else:
        # Warnings of HELM's are for people who run helm-run; ours are printed from the EvalSet.
        logging.disable(logging.WARNING)
    with helm_output_to_stderr():
        register_builtin_configs_from_helm_package()
        register_configs_from_directory(str(local_path))


def helm_output_to_stderr() -> contextlib.AbstractContextManager[Any]:
    """Keep what HELM prints out of our output, which may be piped into another program."""
    return contextlib.redirect_stdout(sys.stderr)


def parse_arguments(pairs: list[str]) -> dict[str, Any]:
    """Turn `KEY=VALUE` options into run entry arguments; unlike in a run entry, values may hold commas.

    Raises RunEntryError for one without `=`.
    """
    arguments: dict[str, Any] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals:
            raise RunEntryError(f"--arg {pair}: expected KEY=VALUE")
        arguments[key] = int(value) if value.lstrip("-").isdigit() else value
    return arguments


def find_file(file: Path) -> Path:
    """Take a dataset's name, as in `adapter_spec:dataset=NAME`, for its file."""
    return file if file.exists() else catalog.list_datasets().get(str(file), file)


def make_run_spec(format_: Format, file: Path, model: Mapping[str, str], arguments: Mapping[str, Any]) -> RunSpec:
    """Return the RunSpec that `helm-run` would make of the run entry for this file, or dataset's name.

    Raises HelmExtError, also for what HELM says about unknown models.
    """
    from helm.benchmark.run_spec_factory import construct_run_specs
    from helm.common.object_spec import ObjectSpec

    named = format_.arguments(file) if find_file(file) == file else {"dataset": str(file)}
    entry = ObjectSpec(format_.name, {**named, **arguments, **model})
    try:
        run_specs = construct_run_specs(entry)
    except HelmExtError:
        raise
    except ValueError as error:  # HELM's way to refuse a model or a deployment
        raise RunEntryError(f"{' '.join(model.values())}: {error}") from error
    if len(run_specs) != 1:
        names = ", ".join(run_spec.name for run_spec in run_specs)
        raise RunEntryError(f"{file} holds {len(run_specs)} runs ({names})\n  hint: choose one, --arg task=NAME")
    return run_specs[0]
