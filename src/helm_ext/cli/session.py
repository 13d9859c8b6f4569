"""The steps of `helm-run` that commands take in this process."""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from helm_ext.cli.common import helm_output_to_stderr, status, without_output, writing
from helm_ext.errors import HelmExtError, RunEntryError
from helm_ext.formats import Format, all_formats, detect, get_format

if TYPE_CHECKING:
    from helm.benchmark.run_spec import RunSpec

    from helm_ext.running import StreamingRunner

CLIENT = "helm_ext.clients.OpenAICompatibleClient"
NAME_ARGUMENT = "openai_model_name"
"""The argument of this client, and of HELM's, that is the model's name for the server."""


@dataclasses.dataclass(frozen=True)
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


# Starting HELM


def start_helm(*, verbose: bool = False) -> None:
    """Do what `helm-run` does before it reads run entries, but for its models: our plugin, and the log."""
    from helm.common.hierarchical_logger import setup_default_logging

    import helm_ext.plugin  # noqa: F401 - registers the run entries

    if verbose:
        setup_default_logging()
    else:
        # Warnings of HELM's are for people who run helm-run; ours are printed from the EvalSet.
        logging.disable(logging.WARNING)


@contextlib.contextmanager
def starting(doing: str, local_path: Path | None = None, *, verbose: bool = False) -> Iterator[None]:
    """Start HELM, with its models and those of `local_path` where that is given, and go on with what is being done.

    What HELM prints meanwhile stays out of our output.
    """
    with status(doing), helm_output_to_stderr():
        start_helm(verbose=verbose)
        if local_path is not None:
            register_models(local_path)
        yield


@contextlib.contextmanager
def started(settings: Settings) -> Iterator[StreamingRunner]:
    """Start HELM as helm-run does, with its models, and keep what it prints out of our output; yields a runner.

    Raises RunEntryError for a plugin that cannot be imported, HelmExtError for a folder that cannot be made.
    """
    with starting("planning", settings.local_path, verbose=settings.verbose):
        from helm.benchmark.run import import_user_plugins, load_entry_point_plugins

        load_entry_point_plugins()
        for plugin in settings.plugins:
            try:
                import_user_plugins([plugin])
            except Exception as error:
                raise RunEntryError(f"--plugins {plugin}: {type(error).__name__}: {error}") from error
        yield make_runner(settings)


def register_models(local_path: Path) -> None:
    """Register HELM's models and the user's, as `helm-run` does. Raises HelmExtError for files that HELM cannot read.

    HELM reads its 600 kB of YAML with libyaml meanwhile, where there is one: a tenth of the time, and the same values.
    """
    import yaml
    from helm.benchmark import config_registry

    plain = yaml.safe_load
    if hasattr(yaml, "CSafeLoader"):
        yaml.safe_load = lambda stream: yaml.load(stream, Loader=yaml.CSafeLoader)
    try:
        with without_output():
            config_registry.register_builtin_configs_from_helm_package()
            config_registry.register_configs_from_directory(str(local_path))
    except Exception as error:
        inner: BaseException = error
        while found := getattr(inner, "exceptions", ()):  # of HELM's reader: what is wrong stands innermost
            inner = found[0]
        where = "" if inner is error else f"{str(error).split(' (')[0]}: "
        said = f"{where}{type(inner).__name__}: {inner}"
        raise HelmExtError(f"{local_path}: HELM cannot read the models that are described there: {said}") from error
    finally:
        yaml.safe_load = plain


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


def make_runner(settings: Settings) -> StreamingRunner:
    """Return helm-run's runner, of ours. Raises HelmExtError for a folder that cannot be made."""
    from helm.benchmark.executor import ExecutionSpec
    from helm.common.authentication import Authentication
    from helm.common.cache_backend_config import SqliteCacheBackendConfig

    from helm_ext.running.runner import StreamingRunner

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
    with writing(f"--output-path {path}", "cannot be made: "):
        path.mkdir(parents=True, exist_ok=True)


def require_suite(name: str, option: str = "--suite") -> None:
    """Raise RunEntryError for a suite that cannot be a folder."""
    from helm_ext.planning.names import MAX_FILE_NAME

    if not name.strip():
        raise RunEntryError(f"{option}: expected a name, got {name!r}")
    longest = max(len(os.fsencode(part)) for part in name.split("/"))
    if longest > MAX_FILE_NAME:
        raise RunEntryError(f"{option}: a folder's name has {MAX_FILE_NAME} bytes at most, and this one {longest}")


# A file and its arguments


def find_file(file: Path) -> Path:
    """Return the file: `file` itself where it exists, else that of the dataset of this name, as in `dataset=NAME`."""
    if file.exists():
        return file
    found = (format_.find(str(file)) for format_ in all_formats())
    return next((path for path in found if path is not None), file)


def choose_format(kind: str | None, file: Path) -> Format:
    """Return the format that `--as` names, else the file's. Raises DatasetError where it cannot be told."""
    return get_format(kind) if kind else detect(find_file(file))


def require_unnamed(named: Mapping[str, Any], arguments: Mapping[str, Any]) -> None:
    """Raise RunEntryError for an argument that would name the file, which the command was given already."""
    for name, value in arguments.items():
        if name in named or {name, *named} <= {"dataset", "path"}:
            given = next(iter(named.values()))
            raise RunEntryError(f"--arg {name}={value}: the dataset is named already, {given}")


def require_known(format_: Format, arguments: Mapping[str, Any]) -> None:
    """Raise RunEntryError for an argument that other formats have and this one has not: the file may be of those."""
    known = {argument.name for argument in format_.arguments}
    for name in arguments:
        owners = [] if name in known else [other.name for other in all_formats() if name in other.argument_names()]
        if owners:
            said = f"{format_.name}: unknown argument {name!r}: it is one of {' and '.join(owners)}"
            raise RunEntryError(f"{said}\n  hint: --as {owners[0]} reads the file so")


def load_arguments(format_: Format, file: Path, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the format's own arguments for a file, with their types: those that HELM takes off itself are left out.

    Raises RunEntryError for an unknown one, before a file that is read without it says that something is missing.
    """
    from helm.benchmark.run_expander import RUN_EXPANDERS

    names = format_.argument_names()
    own = {name: value for name, value in arguments.items() if name in names or name not in RUN_EXPANDERS}
    require_known(format_, own)
    return {**format_.name_file(file), **format_.parse(own)}


# Planning


def make_run_spec(format_: Format, file: Path, model: Mapping[str, str], arguments: Mapping[str, Any]) -> RunSpec:
    """Return the RunSpec that `helm-run` would make of the run entry for this file, or dataset's name.

    Raises HelmExtError, also for what HELM says about unknown models and about arguments of its own.
    """
    from helm.benchmark.run_expander import RUN_EXPANDERS
    from helm.benchmark.run_spec_factory import construct_run_specs
    from helm.common.object_spec import ObjectSpec

    named = format_.name_file(file) if find_file(file) == file else {"dataset": str(file)}
    require_unnamed(named, arguments)
    format_.require_source({**named, **arguments})
    for name in ("model", *model):
        if name in arguments:
            raise RunEntryError(f"--arg {name}={arguments[name]}: the model is no such argument\n  hint: --model NAME")
    # What HELM takes off the arguments and applies to the run that we make: its refusals are about these.
    helms = [*model.values(), *(f"{name}={value}" for name, value in arguments.items() if name in RUN_EXPANDERS)]
    with only_registered_entries(), blaming(" ".join(helms)):
        run_specs = construct_run_specs(ObjectSpec(format_.name, {**named, **arguments, **model}))
    for run_spec in run_specs:
        _require_numbers(run_spec)
    if len(run_specs) != 1:
        names = ", ".join(run_spec.name for run_spec in run_specs)
        raise RunEntryError(f"{file} holds {len(run_specs)} runs ({names})\n  hint: choose one, --arg task=NAME")
    return run_specs[0]


@contextlib.contextmanager
def blaming(what: str, kind: type[HelmExtError] = RunEntryError, hint: str = "") -> Iterator[None]:
    """Raise an error about `what`, a run entry for example, for whatever HELM, or a package behind it, raises."""
    try:
        yield
    except HelmExtError:
        raise
    except Exception as error:
        if isinstance(error, ModuleNotFoundError) and kind is RunEntryError:
            raise  # which package an entry needs is said without it
        # ValueError is HELM's way to refuse a model or a deployment, Exception itself that of its run expanders.
        name = "" if type(error) in (ValueError, Exception) else f"{type(error).__name__}: "
        said = str(error).replace(": {self.value}", "")  # HELM forgot the f of an f-string
        if said.startswith("Unknown model"):
            hint = "helm-ext model list shows your own models"
        raise kind(f"{what}: {name}{said}" + (f"\n  hint: {hint}" if hint else "")) from error


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


def find_deployment(model: str, option: str = "--model", *, is_asked: bool = False) -> str:
    """Return the deployment of a model. One is made for a model that HELM does not know, unless it `is_asked` here.

    Raises RunEntryError.
    """
    from helm.benchmark.model_deployment_registry import (
        ClientSpec,
        ModelDeployment,
        get_default_model_deployment_for_model,
        register_model_deployment,
    )

    known = get_default_model_deployment_for_model(model)
    if known is not None:
        return known
    if model.count("/") != 1 or not all(model.split("/")):
        raise RunEntryError(f"{option} {model}: expected ORGANIZATION/NAME, or a model that HELM knows")
    if is_asked:
        hint = f"helm-ext model add {model} --url ADDRESS; helm-ext model list shows your own"
        raise RunEntryError(f"{option} {model}: there is no such model\n  hint: {hint}")
    register_model_deployment(ModelDeployment(model, ClientSpec(CLIENT, {NAME_ARGUMENT: model})))
    return model


def stand_in(name: str) -> str:
    """Put our client in place of a deployment's; returns the name by which the server knows the model.

    What the client's class says of it (chat, log-probabilities of the prompt) is then said of ours, which writes the
    requests. The name is the one that the deployment's own client would send.
    """
    from helm.benchmark.model_deployment_registry import ClientSpec, get_model_deployment, register_model_deployment

    from helm_ext.adaptation import recorded

    if recorded.is_recorded(name):
        raise RunEntryError(f"{name}: a recorded model answers nothing\n  hint: --model with the name of a live one")
    deployment = get_model_deployment(name)
    args = deployment.client_spec.args or {}
    sent_as = args.get(NAME_ARGUMENT) or args.get("vllm_model_name") or str(deployment.model_name).split("/", 1)[1]
    client_spec = ClientSpec(CLIENT, {NAME_ARGUMENT: sent_as})
    register_model_deployment(dataclasses.replace(deployment, client_spec=client_spec))
    return str(sent_as)


_NUMBERS = ("temperature", "max_train_instances", "max_eval_instances", "num_outputs", "num_trials", "num_train_trials")
_COUNTED = ("max_eval_instances", "num_outputs", "num_trials", "num_train_trials")
"""The whole numbers among them that HELM counts with: others end in a traceback of its runner."""


def _require_numbers(run_spec: RunSpec) -> None:
    """Raise RunEntryError for words where HELM's own arguments are numbers: it passes them on to the model."""
    for name in _NUMBERS:
        value = getattr(run_spec.adapter_spec, name)
        if isinstance(value, str):
            raise RunEntryError(f"{name}={value}: expected a number")
        is_absent = value is None and name == "max_eval_instances"
        if name in _COUNTED and not is_absent and (type(value) is not int or value < 1):
            raise RunEntryError(f"{name}={value}: expected a whole number from 1 on")
