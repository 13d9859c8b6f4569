"""The steps of `helm-run` that `preview` and `score` take in this process."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from helm_ext.errors import HelmExtError, RunEntryError
from helm_ext.formats import Format, all_formats, detect, format_names, get_format
from helm_ext.formats.arguments import as_helm_reads

if TYPE_CHECKING:
    from helm.benchmark.run_spec import RunSpec

    from helm_ext.running import StreamingRunner


@dataclass(frozen=True)
class Settings:
    """What helm-run is told: where things are, and how a model is asked."""

    output_path: Path
    local_path: Path
    suite: str = "default"
    plugins: Sequence[str] = ()
    verbose: bool = False
    num_threads: int = 1
    """Requests at a time, of a live model."""
    disable_cache: bool = True
    """Whether the answers of a live model are kept nowhere; files of answers need no cache."""


def start_helm(*, verbose: bool = False) -> None:
    """Do what `helm-run` does before it reads run entries, but for its models: our plugin, and the log."""
    from helm.common.hierarchical_logger import setup_default_logging

    from helm_ext import plugin  # noqa: F401 - registers the run entries

    if verbose:
        setup_default_logging()
    else:
        # Warnings of HELM's are for people who run helm-run; ours are printed from the EvalSet.
        logging.disable(logging.WARNING)


def register_models(local_path: Path) -> None:
    """Register HELM's models and the user's, as `helm-run` does."""
    from helm.benchmark import config_registry

    with without_output(), _fast_yaml():
        config_registry.register_builtin_configs_from_helm_package()
        config_registry.register_configs_from_directory(str(local_path))


def is_described(model: str, local_path: Path) -> bool:
    """Whether HELM's files of models name this one, or the user has such files.

    HELM looks a model's tags up by its name, also where it is not asked. To read all its models for a name that is not
    among them is a quarter of what `score` takes to start.
    """
    from helm.benchmark import config_registry

    files = (config_registry.MODEL_METADATA_FILE, config_registry.MODEL_DEPLOYMENTS_FILE)
    if any((local_path / file).is_file() for file in files):
        return True
    folder = resources.files(config_registry.CONFIG_PACKAGE)
    return any(model.encode() in (folder / file).read_bytes() for file in files)


@contextlib.contextmanager
def _fast_yaml() -> Iterator[None]:
    """Let HELM read its 600 kB of YAML with libyaml, where there is one: a tenth of the time, and the same values."""
    import yaml

    plain = yaml.safe_load
    if hasattr(yaml, "CSafeLoader"):
        yaml.safe_load = lambda stream: yaml.load(stream, Loader=yaml.CSafeLoader)
    try:
        yield
    finally:
        yaml.safe_load = plain


@contextlib.contextmanager
def without_output() -> Iterator[None]:
    """Drop what HELM prints where that is about itself: the folders it looks into, downloads that it could not make."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        yield


def helm_output_to_stderr() -> contextlib.AbstractContextManager[Any]:
    """Keep what HELM prints out of our output, which may be piped into another program."""
    return contextlib.redirect_stdout(sys.stderr)


def make_runner(settings: Settings) -> StreamingRunner:
    """Return helm-run's runner, of ours. Raises HelmExtError for a folder that cannot be made."""
    from helm.benchmark.executor import ExecutionSpec
    from helm.common.authentication import Authentication
    from helm.common.cache_backend_config import SqliteCacheBackendConfig

    from helm_ext.running import StreamingRunner

    set_output_path(settings.output_path)
    cache = None
    if not settings.disable_cache:
        (folder := settings.local_path / "cache").mkdir(parents=True, exist_ok=True)  # as helm-run does
        cache = SqliteCacheBackendConfig(str(folder))
    spec = ExecutionSpec(
        auth=Authentication(""), url=None, local_path=str(settings.local_path), parallelism=settings.num_threads,
        sqlite_cache_backend_config=cache,
    )  # fmt: skip
    with without_output():
        return StreamingRunner(
            execution_spec=spec, output_path=str(settings.output_path), suite=settings.suite, skip_instances=False,
            cache_instances=False, cache_instances_only=False, skip_completed_runs=False, exit_on_error=True,
        )  # fmt: skip


def set_output_path(path: Path) -> None:
    """Make HELM's output folder and tell HELM, whose run spec functions ask for it. Raises HelmExtError."""
    from helm.benchmark.runner import set_benchmark_output_path

    set_benchmark_output_path(str(path))
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise HelmExtError(f"--output-path {path}: cannot be made: {error.strerror}") from error


def parse_arguments(pairs: list[str]) -> dict[str, Any]:
    """Turn `KEY=VALUE` options into run entry arguments; unlike in a run entry, values may hold commas.

    Raises RunEntryError for one without `=`, and for a key that is given twice.
    """
    arguments: dict[str, Any] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise RunEntryError(f"--arg {pair}: expected KEY=VALUE")
        if key in arguments:
            raise RunEntryError(f"--arg {pair}: {key} is given twice")
        arguments[key] = as_helm_reads(value)
    return arguments


def require_unnamed(named: Mapping[str, Any], arguments: Mapping[str, Any]) -> None:
    """Raise RunEntryError for an argument that would name the file, which the command was given already."""
    for name, value in arguments.items():
        if name in named or {name, *named} <= {"dataset", "path"}:
            given = next(iter(named.values()))
            raise RunEntryError(f"--arg {name}={value}: the dataset is named already, {given}")


def require_suite(option: str, name: str) -> None:
    """Raise RunEntryError for a suite that cannot be a folder."""
    from helm_ext.planning.names import MAX_FILE_NAME

    if not name.strip():
        raise RunEntryError(f"{option}: expected a name, got {name!r}")
    longest = max(len(os.fsencode(part)) for part in name.split("/"))
    if longest > MAX_FILE_NAME:
        raise RunEntryError(f"{option}: a folder's name has {MAX_FILE_NAME} bytes at most, and this one {longest}")


def read_format_name(name: str) -> str:
    """Return the name of a format. Raises typer.BadParameter for the name of none."""
    if name not in format_names():
        raise typer.BadParameter(f"{name!r} is not one of {', '.join(map(repr, format_names()))}.")
    return name


FormatOption = Annotated[
    str | None,
    typer.Option(
        "--as", parser=read_format_name, metavar=f"[{'|'.join(format_names())}]", help="Read the file as this format."
    ),
]
"""Which format it is, where the file does not say so."""


def describe_arguments() -> str:
    """Return the arguments of all formats, as `--help` shows them."""
    parts = []
    for format_ in all_formats():
        width = max(len(name) for name in format_.argument_names())
        lines = [
            textwrap.fill(
                f"{argument.name:{width}}  {argument.description} ({argument.kind.title})",
                width=78,
                initial_indent="  ",
                subsequent_indent=" " * (width + 4),
                break_on_hyphens=False,
            )
            for argument in format_.arguments
            if argument.in_run_entry
        ]
        # After \b click leaves lines as they are.
        parts.append("\n".join(["\b", f"--arg of {format_.name} ({format_.title}):", *lines]))
    return "\n\n".join(parts).replace("`", "")


def choose_format(kind: str | None, file: Path) -> Format:
    """Return the format that `--as` names, else the file's. Raises DatasetError where it cannot be told."""
    return get_format(kind) if kind else detect(find_file(file))


def find_file(file: Path) -> Path:
    """Return the file: `file` itself where it exists, else that of the dataset of this name, as in `dataset=NAME`."""
    if file.exists():
        return file
    found = (format_.find(str(file)) for format_ in all_formats())
    return next((path for path in found if path is not None), file)


def find_tasks(format_: Format, file: Path, arguments: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return the arguments that choose each task of a file: [{}] where it holds one, or one is chosen already.

    Raises HelmExtError for arguments, and for files whose tasks cannot be listed.
    """
    if find_file(file) != file:
        return [{}]
    return format_.tasks(load_arguments(format_, file, arguments))


def describe_file(format_: Format, file: Path, arguments: Mapping[str, Any]) -> list[str]:
    """Return what a format infers from a file, and why; [] for a dataset that is named. Raises HelmExtError."""
    return [] if find_file(file) != file else format_.describe(load_arguments(format_, file, arguments))


def load_arguments(format_: Format, file: Path, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the format's own arguments for a file, with their types: those that HELM takes off itself are left out.

    Raises RunEntryError for an unknown one, before a file that is read without it says that something is missing.
    """
    from helm.benchmark.run_expander import RUN_EXPANDERS

    names = format_.argument_names()
    own = {name: value for name, value in arguments.items() if name in names or name not in RUN_EXPANDERS}
    require_known(format_, own)
    return {**format_.name_file(file), **format_.parse(own)}


def require_known(format_: Format, arguments: Mapping[str, Any]) -> None:
    """Raise RunEntryError for an argument that other formats have and this one has not: the file may be of those."""
    known = {argument.name for argument in format_.arguments}
    for name in arguments:
        owners = [] if name in known else [other.name for other in all_formats() if name in other.argument_names()]
        if owners:
            said = f"{format_.name}: unknown argument {name!r}: it is one of {' and '.join(owners)}"
            raise RunEntryError(f"{said}\n  hint: --as {owners[0]} reads the file so")


def make_run_spec(format_: Format, file: Path, model: Mapping[str, str], arguments: Mapping[str, Any]) -> RunSpec:
    """Return the RunSpec that `helm-run` would make of the run entry for this file, or dataset's name.

    Raises HelmExtError, also for what HELM says about unknown models and about arguments of its own.
    """
    from helm.benchmark.run_expander import RUN_EXPANDERS
    from helm.benchmark.run_spec_factory import construct_run_specs
    from helm.common.object_spec import ObjectSpec

    named = format_.name_file(file) if find_file(file) == file else {"dataset": str(file)}
    require_unnamed(named, arguments)
    for name in ("model", *model):
        if name in arguments:
            raise RunEntryError(f"--arg {name}={arguments[name]}: the model is no such argument\n  hint: --model NAME")
    entry = ObjectSpec(format_.name, {**named, **arguments, **model})
    # What HELM takes off the arguments and applies to the run that we make: its refusals are about these.
    helms = [*model.values(), *(f"{name}={value}" for name, value in arguments.items() if name in RUN_EXPANDERS)]
    try:
        with only_registered_entries():
            run_specs = construct_run_specs(entry)
    except (HelmExtError, ModuleNotFoundError):
        raise
    except Exception as error:
        # ValueError is HELM's way to refuse a model or a deployment, Exception itself that of its run expanders.
        kind = "" if type(error) in (ValueError, Exception) else f"{type(error).__name__}: "
        said = str(error).replace(": {self.value}", "")  # HELM forgot the f of an f-string
        hint = "\n  hint: helm-ext model list shows your own models" if said.startswith("Unknown model") else ""
        raise RunEntryError(f"{' '.join(helms)}: {kind}{said}{hint}") from error
    for run_spec in run_specs:
        _require_numbers(run_spec)
    if len(run_specs) != 1:
        names = ", ".join(run_spec.name for run_spec in run_specs)
        raise RunEntryError(f"{file} holds {len(run_specs)} runs ({names})\n  hint: choose one, --arg task=NAME")
    return run_specs[0]


@contextlib.contextmanager
def only_registered_entries() -> Iterator[None]:
    """Keep HELM from importing all its run entries to look for one of ours, which is registered.

    That takes half a second of CPU, and modules that may not be installed or working here, such as torch.
    """
    from helm.benchmark import run_spec

    discover = run_spec.discover_run_spec_functions
    run_spec.discover_run_spec_functions = lambda: None
    try:
        yield
    finally:
        run_spec.discover_run_spec_functions = discover


_NUMBERS = ("temperature", "max_train_instances", "max_eval_instances", "num_outputs", "num_trials", "num_train_trials")
_LOWEST = {"max_eval_instances": 1, "num_outputs": 1, "num_trials": 1, "num_train_trials": 1}
"""The whole numbers among them that HELM counts with: others end in a traceback of its runner."""


def _require_numbers(run_spec: RunSpec) -> None:
    """Raise RunEntryError for words where HELM's own arguments are numbers: it passes them on to the model."""
    for name in _NUMBERS:
        value = getattr(run_spec.adapter_spec, name)
        if isinstance(value, str):
            raise RunEntryError(f"{name}={value}: expected a number")
        lowest = _LOWEST.get(name)
        is_absent = value is None and name == "max_eval_instances"
        if lowest is not None and not is_absent and (type(value) is not int or value < lowest):
            raise RunEntryError(f"{name}={value}: expected a whole number from {lowest} on")


def shorten(text: str) -> str:
    """Return a question or an answer on one line, and no more of it than a list of rows has place for."""
    shown = " ".join(text.split())
    return shown if len(shown) <= _SHOWN else f"{shown[: _SHOWN - 1]}…"


_SHOWN = 300
