"""`helm-ext model`: models of one's own, written into HELM's own files."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from helm_ext.cli import options
from helm_ext.cli.common import echo, helm_output_to_stderr, make_console, print_table, status, without_output
from helm_ext.cli.session import blaming, starting
from helm_ext.clients import deployments as entries
from helm_ext.clients.deployments import LocalModels
from helm_ext.errors import DeploymentError, HelmExtError, RunEntryError, show

if TYPE_CHECKING:
    from helm_ext.clients.probing import Finding

model_app = typer.Typer(
    help="Models of your own, behind an address or in a folder: written into HELM's files, and tried.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Name = Annotated[str, Argument(metavar="NAME", help="ORGANIZATION/NAME, as in model=NAME of run entries.")]

WITHOUT_TOKENIZER = """\
without --tokenizer, prompts are not fitted to the model's window (demonstrations that do not fit are sent all the
  same), HELM's own count of a prompt's tokens is 1, and tasks that compare log-probabilities (PPL) cannot be run"""


@model_app.command()
def add(
    name: Name,
    url: Annotated[str | None, Option(help="The address of a server of OpenAI's protocol, with /v1.")] = None,
    path: Annotated[str | None, Option(help="Instead: a folder or hub name of a Hugging Face model.")] = None,
    is_chat: Annotated[bool, Option("--chat/--completions", help="Log-probabilities need completions.")] = True,
    model_name: Annotated[
        str | None, Option(help="Its name for the server. Default: the one listed, else from NAME.")
    ] = None,
    model: Annotated[str | None, Option(help="HELM's name of the model in results. Default: NAME.")] = None,
    tokenizer: Annotated[str | None, Option(help="HELM's, or a folder or hub name. Default: --path.")] = None,
    max_length: Annotated[
        int | None, Option(min=1, help="Its window in tokens. Default: as the server or tokenizer says.")
    ] = None,
    api_key_env: Annotated[str | None, Option(metavar="VAR", help="The environment variable with the key.")] = None,
    omit: options.Omit = None,
    top_k: options.TopK = False,
    seed: options.Seed = None,
    extra_token: options.ExtraToken = False,
    prompt_logprobs: Annotated[
        bool, Option("--prompt-logprobs", help="Score prompts as vLLM does, by prompt_logprobs.")
    ] = False,
    timeout: Annotated[float | None, Option(min=1, help="Seconds before a request is given up.")] = None,
    device: Annotated[str | None, Option(help="For --path: cpu, cuda, mps. Default: what there is.")] = None,
    display_name: Annotated[str | None, Option(help="What reports call it.")] = None,
    replace: Annotated[bool, Option("--replace", help="Write a deployment of this name again.")] = False,
    local_path: options.LocalPath = options.PROD_ENV,
) -> None:
    """Write a model into HELM's files, so that helm-run, preview, requests and PPL know it by its name.

    The server is asked which models it has, and need not answer. What is written is shown, but for keys.
    """
    entries.require_name(name)
    if (url is None) == (path is None):
        raise RunEntryError("one of --url and --path must be given")
    if api_key_env is not None and not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", api_key_env):  # not shown: may be a key
        raise RunEntryError("--api-key-env: expected the name of an environment variable, not the key itself")
    models = LocalModels(local_path)
    with starting("starting HELM", local_path):
        is_helms = _is_helms(models, name, model)
    args: dict[str, Any] = {"pretrained_model_name_or_path": path, "device": device}
    served, is_listed = None, False
    if url is not None:
        args = {
            "base_url": url.rstrip("/"),
            "endpoint": "chat" if is_chat else "completions",
            "openai_model_name": model_name or "",
            "api_key_env": api_key_env,
            "omit": omit,
            "send_top_k": top_k,
            "seed": seed,
            "extra_token": extra_token,
            "prompt_logprobs": prompt_logprobs,
            "timeout": timeout,
        }
        args = {key: value for key, value in args.items() if value is not None and value is not False}
        args["openai_model_name"], served, is_listed = _ask_server(name, args, local_path)
    else:
        given = {"--model-name": model_name, "--api-key-env": api_key_env, "--omit": omit, "--seed": seed,
                 "--timeout": timeout, "--top-k": top_k or None}  # fmt: skip
        if of_servers := [option for option, value in given.items() if value is not None]:
            raise RunEntryError(f"{of_servers[0]}: is for a server (--url)")
        tokenizer = tokenizer or path
    made: dict[str, dict[str, Any]] = {}
    own, length = _find_tokenizer(name, tokenizer, max_length, served)
    if own is not None:
        made[entries.TOKENIZERS] = own
    if not is_helms:
        has_logprobs = url is None or not is_chat
        made[entries.METADATA] = entries.make_metadata(name, display_name=display_name, has_logprobs=has_logprobs)
    deployment = {
        "name": name,
        "model_name": model,
        "tokenizer_name": name if own is not None else tokenizer,
        "max_sequence_length": length,
        "client_spec": {
            "class_name": entries.LOCAL if url is None else entries.OURS,
            "args": {key: value for key, value in args.items() if value is not None},
        },
    }
    made[entries.DEPLOYMENTS] = {key: value for key, value in deployment.items() if value is not None}
    _show(models.add(made, replace=replace))
    if url is not None:
        _say_what_follows(name, args, has_tokenizer=tokenizer is not None, is_listed=is_listed)
    echo(f"next: helm-ext model test {name}{'' if local_path == options.PROD_ENV else f' --local-path {local_path}'}")


@model_app.command("list")
def list_(local_path: options.LocalPath = options.PROD_ENV) -> None:
    """Show the models of HELM's folder of local configurations."""
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
def remove(name: Name, local_path: options.LocalPath = options.PROD_ENV) -> None:
    """Take a model out of HELM's files again, with what no other model needs."""
    _show(LocalModels(local_path).remove(name), verb="removed from")


@model_app.command("test")
def try_(
    name: Name,
    timeout: Annotated[float, Option(min=1, help="Seconds for a whole reply.")] = 60.0,
    local_path: options.LocalPath = options.PROD_ENV,
) -> None:
    """Ask a model for one answer of each kind, and show what it refuses or ignores.

    Some twenty short requests. The exit code is 1 if the deployment as it is written gets no answer.
    """
    from dataclasses import replace

    from helm_ext.clients.probing import Outcome, probe
    from helm_ext.clients.server import Server, run

    with starting(f"asking {name}", local_path):
        client = _get_client(name, local_path)
        if hasattr(client, "server") and hasattr(client, "dialect"):
            server = Server(client.server.url, client.server.api_key, timeout=timeout)
            dialect = client.dialect
            findings = run(probe(server, replace(dialect, model=dialect.model or name.split("/")[1])))
        else:
            findings = _try_client(client, name)
    rows = [(one.what, one.outcome.value, *one.said.splitlines()[:1]) for one in findings]
    print_table(("asked for", "", "answer"), rows, left=("", "answer"), console=make_console())
    if findings[0].outcome is not Outcome.WORKS:
        works = (one.what for one in findings if one.outcome is Outcome.WORKS and one.what.startswith("/v1"))
        hint = ""
        if other := next(works, None):
            endpoint = "chat" if "chat" in other else "completions"
            hint = f"\n  hint: {other} answers; helm-ext model add ... --{endpoint} --replace"
        raise DeploymentError(f"{name}: {findings[0].said}{hint}")


# What is checked and completed before a model is written


def _is_helms(models: LocalModels, name: str, model: str | None) -> bool:
    """Whether HELM, or another of its plugins, says what this model is. Its tags may change what is sent.

    Raises RunEntryError for a name that a deployment of HELM's has, and for a model that HELM does not know.
    """
    from helm.benchmark.model_deployment_registry import DEPLOYMENT_NAME_TO_MODEL_DEPLOYMENT
    from helm.benchmark.model_metadata_registry import MODEL_NAME_TO_MODEL_METADATA

    ours = {entry["name"] for entry in models.deployments}
    is_deployed = name in DEPLOYMENT_NAME_TO_MODEL_DEPLOYMENT
    if is_deployed and name not in ours:
        raise RunEntryError(f"{name}: HELM has a deployment of this name\n  hint: another NAME, with --model {name}")
    if model is not None:
        if model in MODEL_NAME_TO_MODEL_METADATA:
            return True
        hint = "leave it out, and results stand under NAME"
        raise RunEntryError(f"--model {model}: HELM knows no such model\n  hint: {hint}")
    ours |= {entry["name"] for entry in models.lists["models"].entries}
    return name in MODEL_NAME_TO_MODEL_METADATA and name not in ours and not is_deployed


def _ask_server(name: str, args: Mapping[str, Any], local_path: Path) -> tuple[str, int | None, bool]:
    """Return the model's name for the server, its window where the server says it, and whether the server lists models.

    Raises RunEntryError for wrong arguments, and for a name that the server does not list.
    """
    from helm.common.cache import BlackHoleCacheConfig
    from helm.common.credentials_utils import provide_api_key
    from helm.common.general import get_credentials

    from helm_ext.clients import OpenAICompatibleClient
    from helm_ext.clients.server import Server, run

    variable = args.get("api_key_env")
    client = OpenAICompatibleClient(
        BlackHoleCacheConfig(), **{key: value for key, value in args.items() if key != "api_key_env"}
    )
    if variable is not None:
        key = os.environ.get(variable)
    else:
        with without_output():
            key = provide_api_key(get_credentials(str(local_path)), name.partition("/")[0], name)
    listed = run(Server(client.server.url, key).list_models())
    windows = {str(model["id"]): model.get("max_model_len") for model in listed}
    given = args["openai_model_name"] or (next(iter(windows)) if len(windows) == 1 else name.split("/", 1)[1])
    if windows and given not in windows:
        shown = ", ".join([*windows][:10]) + (", ..." if len(windows) > 10 else "")
        raise RunEntryError(f"{given}: the server has no such model\n  hint: --model-name, one of: {shown}")
    window = windows.get(given)
    return given, window if type(window) is int and window > 0 else None, bool(windows)


def _find_tokenizer(
    name: str, tokenizer: str | None, max_length: int | None, served: int | None
) -> tuple[dict[str, Any] | None, int | None]:
    """Return the entry of a tokenizer, None for one that HELM knows; and the window. Raises HelmExtError."""
    from helm.benchmark.tokenizer_config_registry import TOKENIZER_NAME_TO_CONFIG

    if tokenizer is None:
        if max_length is not None:
            raise RunEntryError("--max-length: prompts are fitted to it by a tokenizer\n  hint: --tokenizer")
        return None, None
    entry, said = None, [served]
    if tokenizer not in TOKENIZER_NAME_TO_CONFIG or Path(tokenizer).exists():
        with status("reading the tokenizer"), helm_output_to_stderr():
            entry, window = entries.read_tokenizer(tokenizer, name)
        said.append(window)
    length = max_length or min(filter(None, said), default=None)
    if length is None:
        said_by = "Neither the server nor the tokenizer says"
        raise RunEntryError(f"{name}: how many tokens does the model take? {said_by}\n  hint: --max-length 4096")
    return entry, length


# What is asked for


def _get_client(name: str, local_path: Path) -> Any:
    """Return the client of a deployment, as helm-run makes it, but for the cache. Raises HelmExtError."""
    import tempfile

    from helm.clients.auto_client import AutoClient
    from helm.common.cache_backend_config import BlackHoleCacheBackendConfig
    from helm.common.general import get_credentials

    LocalModels(local_path).get(name)
    with without_output():
        credentials = get_credentials(str(local_path))
        client = AutoClient(credentials, tempfile.gettempdir(), BlackHoleCacheBackendConfig())
        # Packages that are not there, arguments that the client does not have
        with blaming(f"{name}: its client cannot be made", HelmExtError):
            return client._get_client(name)  # noqa: SLF001 - as helm_ext.running.executor does


def _try_client(client: Any, name: str) -> list[Finding]:
    """Ask any client of HELM's for a text, and for the log-probabilities of a prompt."""
    from dataclasses import replace

    from helm.common.request import Request

    from helm_ext.clients.probing import PROMPT, Finding, Outcome

    request = Request(model=name, model_deployment=name, prompt=PROMPT, temperature=0.0, max_tokens=8)
    scored = replace(request, max_tokens=0, echo_prompt=True)
    findings = []
    for what, asked in (("a text", request), ("log-probabilities of a prompt", scored)):
        try:
            with without_output():
                result = client.make_request(asked)
        except Exception as error:  # noqa: BLE001 - a client may raise anything
            findings.append(Finding(what, Outcome.REFUSED, f"{type(error).__name__}: {error}"))
            continue
        first = result.completions[0] if result.completions else None
        tokens = first.tokens if first else []
        works = first is not None if asked is request else any(token.logprob for token in tokens)
        said = f"answered: {show(first.text) if first else 'nothing'}" if asked is request else f"{len(tokens)} tokens"
        outcome = Outcome.WORKS if works else Outcome.IGNORED
        findings.append(
            Finding(what, outcome, said) if result.success else Finding(what, Outcome.REFUSED, str(result.error))
        )
    return findings


# What is said


def _show(written: Iterable[tuple[Path, Mapping[str, Any]]], verb: str = "written to") -> None:
    for path, entry in written:
        echo(f"{verb} {path}:\n{entries.write_entry(entry, 2)}", nl=False)


def _say_what_follows(name: str, args: Mapping[str, Any], *, has_tokenizer: bool, is_listed: bool) -> None:
    """Say what does not work, and where the key comes from."""
    variable, file_key = args.get("api_key_env"), f"{name.partition('/')[0]}ApiKey"
    without = f'none; if the server needs one: --api-key-env VAR, or {file_key}: "..." in credentials.conf'
    echo(f"key: {without if variable is None else _say_variable(variable)}")
    if not is_listed:
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
