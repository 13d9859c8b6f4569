"""`helm-ext model`: models of one's own, written into HELM's own files."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich import box
from rich.markup import escape
from rich.table import Table

from helm_ext.cli.console import Console
from helm_ext.cli.model_options import (
    choose_name,
    find_tokenizer,
    is_known_model,
    list_models,
    make_client,
    require_absent,
    require_free,
    require_model,
    require_variable,
    window_of,
)
from helm_ext.cli.output import echo, status
from helm_ext.cli.server_options import ExtraTokenOption, OmitOption, SeedOption, TopKOption
from helm_ext.cli.session import helm_output_to_stderr, register_models, start_helm, without_output
from helm_ext.errors import DeploymentError, HelmExtError, RunEntryError, show

if TYPE_CHECKING:
    from helm_ext.clients.probing import Finding

model_app = typer.Typer(
    help="Models of your own, behind an address or in a folder: written into HELM's files, and tried.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="ORGANIZATION/NAME, as in model=NAME of run entries.")]
LocalPath = Annotated[Path, typer.Option(help="HELM's folder of local configurations.")]
_PROD_ENV = Path("prod_env")

WITHOUT_TOKENIZER = """\
without --tokenizer, prompts are not fitted to the model's window (demonstrations that do not fit are sent all the
  same), HELM's own count of a prompt's tokens is 1, and tasks that compare log-probabilities (PPL) cannot be run"""


@model_app.command()
def add(
    name: Name,
    url: Annotated[str | None, typer.Option(help="A server of OpenAI's protocol, up to and with /v1.")] = None,
    path: Annotated[
        str | None, typer.Option(help="Instead: a folder with a Hugging Face model, or its name on the hub.")
    ] = None,
    is_chat: Annotated[
        bool, typer.Option("--chat/--completions", help="The endpoint; log-probabilities need completions.")
    ] = True,
    model_name: Annotated[
        str | None, typer.Option(help="The model's name for the server. Default: the only one it lists, else of NAME.")
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="HELM's name of the model, under which results stand. Default: NAME.")
    ] = None,
    tokenizer: Annotated[
        str | None, typer.Option(help="One of HELM's, or a folder or hub name of Hugging Face. Default for --path: it.")
    ] = None,
    max_length: Annotated[
        int | None, typer.Option(min=1, help="Tokens of the model's window. Default: as server or tokenizer say.")
    ] = None,
    api_key_env: Annotated[
        str | None, typer.Option(metavar="VAR", help="The environment variable that holds the key.")
    ] = None,
    omit: OmitOption = None,
    top_k: TopKOption = False,
    seed: SeedOption = None,
    extra_token: ExtraTokenOption = False,
    prompt_logprobs: Annotated[
        bool, typer.Option("--prompt-logprobs", help="Scored prompts: ask by vLLM's prompt_logprobs, not by echo.")
    ] = False,
    timeout: Annotated[
        float | None, typer.Option(min=1, help="Seconds for a whole reply before a request is given up.")
    ] = None,
    device: Annotated[str | None, typer.Option(help="For --path: cpu, cuda, mps. Default: what there is.")] = None,
    display_name: Annotated[str | None, typer.Option(help="What reports call it.")] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Write a deployment of this name again.")] = False,
    local_path: LocalPath = _PROD_ENV,
) -> None:
    """Write a model into HELM's files, so that helm-run, preview, requests and PPL know it by its name.

    The server is asked for its models, and need not answer. The files are shown as they are written; keys never are.
    """
    from helm_ext.clients import deployments as entries

    entries.require_name(name)
    if (url is None) == (path is None):
        raise RunEntryError("one of --url and --path must be given")
    models = entries.LocalModels(local_path)
    with status("starting HELM"), helm_output_to_stderr():
        start_helm()
        register_models(local_path)
        require_free(models, name, replace=replace)
        known_model = require_model(model)
        is_helms = model is not None or is_known_model(models, name)
    if url is not None:
        args: dict[str, Any] = {
            "base_url": url.rstrip("/"),
            "endpoint": "chat" if is_chat else "completions",
            "openai_model_name": model_name,
            "api_key_env": require_variable(api_key_env),
            "omit": omit or [],
            "send_top_k": top_k,
            "seed": seed,
            "extra_token": extra_token,
            "prompt_logprobs": prompt_logprobs,
            "timeout": timeout,
        }
        client = make_client(args)
        listed = list_models(client, api_key_env, local_path, name)
        args["openai_model_name"] = choose_name(name, model_name, listed)
        has_logprobs = not is_chat
    else:
        given = {"--model-name": model_name, "--api-key-env": api_key_env, "--omit": omit, "--seed": seed}
        require_absent(given | {"--timeout": timeout, "--top-k": top_k}, "a server (--url)")
        args = {"pretrained_model_name_or_path": path, "device": device}
        listed, has_logprobs = [], True
        tokenizer = tokenizer or path
    found, length = find_tokenizer(tokenizer, max_length, window_of(listed, args.get("openai_model_name")))
    own = found.to_entry(name) if found is not None else None
    made: dict[str, dict[str, Any]] = {} if own is None else {entries.TOKENIZERS: own}
    if not is_helms:
        made[entries.METADATA] = entries.make_metadata(name, display_name=display_name, has_logprobs=has_logprobs)
    made[entries.DEPLOYMENTS] = entries.make_deployment(
        name,
        class_name=entries.OURS if url is not None else entries.LOCAL,
        args=args,
        model_name=known_model,
        tokenizer_name=name if own is not None else tokenizer,
        max_length=length,
    )
    _show(models.add(made, replace=replace))
    if url is not None:
        _say_what_follows(name, args, has_tokenizer=tokenizer is not None, listed=listed)
    echo(f"next: helm-ext model test {name}{_say_folder(local_path)}")


@model_app.command("list")
def list_(local_path: LocalPath = _PROD_ENV) -> None:
    """Show the models of HELM's folder of local configurations."""
    from helm_ext.clients.deployments import LocalModels

    models = LocalModels(local_path)
    if not models.deployments:
        echo(f"no models in {local_path}")
        return
    for entry in models.deployments:
        spec = _object(entry.get("client_spec"))
        args = _object(spec.get("args"))
        asked_as = args.get("openai_model_name")
        parts = [
            f"{str(spec.get('class_name', '')).rpartition('.')[2]} {args.get('base_url') or ''}".strip(),
            args.get("pretrained_model_name_or_path"),
            args.get("endpoint"),
            asked_as and f"as {asked_as}",
            entry.get("tokenizer_name") and f"tokenizer {entry['tokenizer_name']}",
            entry.get("max_sequence_length") and f"{entry['max_sequence_length']} tokens",
            args.get("api_key_env") and f"key {_say_variable(str(args['api_key_env']))}",
        ]
        echo(f"{entry['name']}: {', '.join(str(part) for part in parts if part)}")


@model_app.command()
def remove(name: Name, local_path: LocalPath = _PROD_ENV) -> None:
    """Take a model out of HELM's files again, with what no other one needs."""
    from helm_ext.clients.deployments import LocalModels

    _show(LocalModels(local_path).remove(name), verb="removed from")


@model_app.command("test")
def try_(
    name: Name,
    timeout: Annotated[float, typer.Option(min=1, help="Seconds for a whole reply.")] = 60.0,
    local_path: LocalPath = _PROD_ENV,
) -> None:
    """Ask a model for one answer of each kind, and show what it refuses or ignores.

    Some twenty short requests. The exit code is 1 if the deployment as it is written gets no answer.
    """
    from helm_ext.clients.probing import Outcome, probe
    from helm_ext.clients.server import run

    with status(f"asking {name}"), helm_output_to_stderr():
        start_helm()
        register_models(local_path)
        client = _get_client(name, local_path)
        if hasattr(client, "server") and hasattr(client, "dialect"):
            from dataclasses import replace

            from helm_ext.clients.server import Server

            model = client.openai_model_name or name.split("/")[1]
            server = Server(
                client.server.url, client.server.api_key, reply_seconds=timeout, attempts=client.server.attempts
            )
            findings = run(probe(server, replace(client.dialect, model=model)))
        else:
            findings = _try_client(client, name)
    _print_findings(findings)
    if findings[0].outcome is not Outcome.WORKS:
        working = [
            finding for finding in findings if finding.outcome is Outcome.WORKS and finding.what.startswith("/v1")
        ]
        hint = ""
        if working:
            endpoint = "chat" if "chat" in working[0].what else "completions"
            hint = f"\n  hint: {working[0].what} answers; helm-ext model add ... --{endpoint} --replace"
        raise DeploymentError(f"{name}: {findings[0].said}{hint}")


# What is asked for


def _get_client(name: str, local_path: Path) -> Any:
    """Return the client of a deployment, as helm-run makes it, but for the cache. Raises HelmExtError."""
    import tempfile

    from helm.clients.auto_client import AutoClient
    from helm.common.cache_backend_config import BlackHoleCacheBackendConfig
    from helm.common.general import get_credentials

    from helm_ext.clients.deployments import LocalModels

    LocalModels(local_path).get(name)
    with without_output():
        credentials = get_credentials(str(local_path))
        client = AutoClient(credentials, tempfile.gettempdir(), BlackHoleCacheBackendConfig())
        try:
            return client._get_client(name)  # noqa: SLF001 - as helm_ext.running.executor does
        except HelmExtError:
            raise
        except Exception as error:  # packages that are not there, arguments that the client does not have
            raise HelmExtError(f"{name}: its client cannot be made: {type(error).__name__}: {error}") from error


def _try_client(client: Any, name: str) -> list[Finding]:
    """Ask any client of HELM's for a text, and for the log-probabilities of a prompt."""
    from dataclasses import replace

    from helm.common.request import Request

    from helm_ext.clients.probing import PROMPT, Finding, Outcome

    request = Request(model=name, model_deployment=name, prompt=PROMPT, temperature=0.0, max_tokens=8)
    findings = []
    for what, asked in (
        ("a text", request),
        ("log-probabilities of a prompt", replace(request, max_tokens=0, echo_prompt=True)),
    ):
        try:
            with without_output():
                result = client.make_request(asked)
        except Exception as error:  # noqa: BLE001 - a client may raise anything
            findings.append(Finding(what, Outcome.REFUSED, f"{type(error).__name__}: {error}"))
            continue
        if not result.success:
            findings.append(Finding(what, Outcome.REFUSED, str(result.error)))
        elif asked is request:
            said = f"answered: {show(result.completions[0].text) if result.completions else 'nothing'}"
            findings.append(Finding(what, Outcome.WORKS if result.completions else Outcome.IGNORED, said))
        else:
            tokens = result.completions[0].tokens if result.completions else []
            known = any(token.logprob for token in tokens)
            findings.append(Finding(what, Outcome.WORKS if known else Outcome.IGNORED, f"{len(tokens)} tokens"))
    return findings


# What is said


def _show(entries: Iterable[tuple[Path, Mapping[str, Any]]], verb: str = "written to") -> None:
    from helm_ext.clients.deployments import write_entry

    for path, entry in entries:
        echo(f"{verb} {path}:\n{write_entry(entry, 2)}", nl=False)


def _say_what_follows(name: str, args: Mapping[str, Any], *, has_tokenizer: bool, listed: list[dict[str, Any]]) -> None:
    """Say what does not work, and where the key comes from."""
    variable = args.get("api_key_env")
    if variable is None:
        organization = name.split("/", maxsplit=1)[0]
        echo(
            f'key: none; if the server needs one: --api-key-env VAR, or {organization}ApiKey: "..." in credentials.conf'
        )
    else:
        echo(f"key: {_say_variable(variable)}")
    if not listed:
        echo(
            f"note: {args['base_url']}/models lists no models, or nobody answers there: whether a server runs at this "
            f"address and knows the model as {args['openai_model_name']!r} (--model-name) is not known yet"
        )
    if args["endpoint"] == "chat":
        echo("note: the chat endpoint gives no log-probabilities of prompts: no PPL")
    if not has_tokenizer:
        echo(f"note: {WITHOUT_TOKENIZER}")


def _say_variable(variable: str) -> str:
    return variable if os.environ.get(variable) else f"{variable} (not set in this shell)"


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _say_folder(local_path: Path) -> str:
    return "" if local_path == _PROD_ENV else f" --local-path {local_path}"


def _print_findings(findings: Iterable[Finding]) -> None:
    table = Table(box=box.SIMPLE)
    for column in ("asked for", "", "answer"):
        table.add_column(column, overflow="fold")
    for finding in findings:
        said = finding.said.splitlines()[0] if finding.said else ""
        table.add_row(escape(finding.what), finding.outcome.value, escape(said))
    with contextlib.suppress(BrokenPipeError):
        Console().print(table)
