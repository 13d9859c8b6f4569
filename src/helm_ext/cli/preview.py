"""`helm-ext preview`: the prompts that HELM will send."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from helm_ext.cli.options import PROD_ENV, Arguments, AsFormat, LocalPath, parse_arguments
from helm_ext.cli.output import echo, helm_output_to_stderr, status, without_output
from helm_ext.cli.session import (
    choose_format,
    find_file,
    load_arguments,
    make_run_spec,
    register_models,
    start_helm,
)
from helm_ext.errors import HelmExtError

if TYPE_CHECKING:
    from helm.benchmark.adaptation.adapters.adapter import Adapter
    from helm.benchmark.adaptation.request_state import RequestState
    from helm.benchmark.run_spec import RunSpec
    from helm.common.local_context import LocalContext

PREVIEW_DEPLOYMENT = "helm-ext/preview"
"""Stands for a model whose window fits everything and that rewrites nothing."""


def preview(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE|NAME", help="A dataset file of any format, or a dataset's name."),
    ],
    count: Annotated[int, typer.Option("-n", min=1, help="How many rows.")] = 2,
    model: Annotated[
        str, typer.Option(help="Fit to this model's context window and apply HELM's rewriting for it.")
    ] = PREVIEW_DEPLOYMENT,
    arg: Arguments = None,
    kind: AsFormat = None,
    local_path: LocalPath = PROD_ENV,
) -> None:
    """Show exactly what HELM will send for the first rows: prompt or messages, decoding parameters, expected answer.

    First, what was inferred from the file, and why.
    """
    with status("starting HELM"), helm_output_to_stderr():
        start_helm()
        arguments = parse_arguments(arg)
        if model != PREVIEW_DEPLOYMENT or "model_deployment" in arguments:
            register_models(local_path)
        _register_preview_deployment()
        format_ = choose_format(kind, file)
        is_named = find_file(file) != file
        said = [] if is_named else format_.describe(load_arguments(format_, file, arguments))
        run_spec = make_run_spec(format_, file, {"model": model}, arguments)
        states = adapt(run_spec, count)
    for line in (*said, run_spec.name, f"method: {run_spec.adapter_spec.method}", *map(render, states)):
        echo(line)


def adapt(run_spec: RunSpec, count: int) -> list[RequestState]:
    """Return the request states of the first `count` rows, made by HELM's own adapter as `helm-run` makes them.

    Raises HelmExtError when the model's tokenizer cannot be loaded.
    """
    from helm.benchmark.adaptation.adapters.adapter_factory import AdapterFactory
    from helm.benchmark.scenarios.scenario import TRAIN_SPLIT, create_scenario
    from helm.benchmark.window_services.tokenizer_service import TokenizerService

    instances = create_scenario(run_spec.scenario_spec).get_instances("")
    train = [instance for instance in instances if instance.split == TRAIN_SPLIT]
    rows = [instance for instance in instances if instance.split != TRAIN_SPLIT]
    live = [row for row in rows if (row.extra_data or {}).get("helm_ext", {}).get("only") != "recorded"]
    wanted = (live or rows)[:count]  # without any, the adapter says why there is nothing to ask
    with tempfile.TemporaryDirectory() as folder:
        deployment = run_spec.adapter_spec.model_deployment
        context = None if deployment == PREVIEW_DEPLOYMENT else _make_context(folder)
        adapter = AdapterFactory.get_adapter(run_spec.adapter_spec, TokenizerService(context))
        try:
            return adapter.adapt(train + wanted, parallelism=1)
        except HelmExtError:
            raise
        except Exception as error:
            # Tokenizers are loaded from many libraries, each with its own exceptions; HELM's adapters raise others.
            if _has_tokenizer(adapter):
                raise HelmExtError(f"HELM cannot make the prompts: {type(error).__name__}: {error}") from error
            raise HelmExtError(
                f"{deployment}: its tokenizer cannot be used here: {error}\n"
                "  hint: leave out --model to see the prompt before it is fitted to a window"
            ) from error


def _make_context(folder: str) -> LocalContext:
    """Return what tokenizers are loaded by; HELM's clients come with it."""
    from helm.common.local_context import LocalContext

    with without_output():
        return LocalContext(folder)


def _has_tokenizer(adapter: Adapter) -> bool:
    """Whether the model's tokenizer can be used here; where none is asked for, it can."""
    try:
        adapter.window_service.fits_within_context_window("a")
    except Exception:  # noqa: BLE001 - whatever a library raises that cannot load it
        return False
    return True


def render(state: RequestState) -> str:
    """Return one request state as text; the prompt stands between two lines of its own, to the byte."""
    request = state.request
    which = "" if state.reference_index is None else f", option {state.reference_index} ({state.request_mode})"
    lines = [f"──── row {state.instance.id} ({state.instance.split}{which})"]
    if request.messages:
        lines += [f"[{message['role']}] {message['content']}" for message in request.messages]
    else:
        lines.append(request.prompt)
    lines.append("──── end of prompt")
    if state.prompt_truncated:
        lines.append("warning: the prompt was truncated to fit the window")
    names = (
        "temperature", "max_tokens", "num_completions", "stop_sequences", "top_p", "top_k_per_token",
        "frequency_penalty", "presence_penalty", "random",
    )  # fmt: skip
    sampled = {name: getattr(request, name) for name in names}
    lines.append("request: " + ", ".join(f"{key}={value!r}" for key, value in sampled.items() if value is not None))
    lines.append(f"demonstrations: {state.num_train_instances}")
    golds = [reference.output.text for reference in state.instance.references if reference.is_correct]
    labels = [label for label, text in (state.output_mapping or {}).items() if text in golds]
    lines.append(
        "expected: "
        + " or ".join(map(repr, labels or golds))
        + (f" = {' or '.join(map(repr, golds))}" if labels else "")
    )
    return "\n".join(lines)


def _register_preview_deployment() -> None:
    from helm.benchmark.model_deployment_registry import ClientSpec, ModelDeployment, register_model_deployment

    # The client is never made, preview stops before requests are sent; this one may be asked anything.
    client = ClientSpec("helm.clients.huggingface_client.HuggingFaceClient")
    register_model_deployment(ModelDeployment(name=PREVIEW_DEPLOYMENT, client_spec=client))
