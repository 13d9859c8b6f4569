"""What `helm-ext model add` makes of its options: checked, and completed by what the server and the tokenizer say."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from helm_ext.cli.output import status
from helm_ext.cli.session import helm_output_to_stderr, without_output
from helm_ext.errors import RunEntryError

if TYPE_CHECKING:
    from helm_ext.clients.deployments import LocalModels, Tokenizer


def require_free(models: LocalModels, name: str, *, replace: bool) -> None:
    """Raise RunEntryError for a name that a deployment has already."""
    from helm.benchmark.model_deployment_registry import DEPLOYMENT_NAME_TO_MODEL_DEPLOYMENT

    if name in {entry["name"] for entry in models.deployments}:
        if not replace:
            models.require_absent(name)
    elif name in DEPLOYMENT_NAME_TO_MODEL_DEPLOYMENT:
        raise RunEntryError(f"{name}: HELM has a deployment of this name\n  hint: another NAME, with --model {name}")


def require_model(model: str | None) -> str | None:
    """Return the name of one of HELM's models. Raises RunEntryError."""
    from helm.benchmark.model_metadata_registry import get_model_metadata

    if model is not None:
        try:
            get_model_metadata(model)
        except ValueError as error:
            raise RunEntryError(
                f"--model {model}: HELM knows no such model\n  hint: leave it out, and results stand under NAME"
            ) from error
    return model


def is_known_model(models: LocalModels, name: str) -> bool:
    """Whether HELM, or another of its plugins, says what this model is. Its tags may change what is sent."""
    from helm.benchmark.model_deployment_registry import DEPLOYMENT_NAME_TO_MODEL_DEPLOYMENT
    from helm.benchmark.model_metadata_registry import MODEL_NAME_TO_MODEL_METADATA

    is_ours = any(entry["name"] == name for entry in [*models.lists["models"].entries, *models.deployments])
    return name in MODEL_NAME_TO_MODEL_METADATA and not is_ours and name not in DEPLOYMENT_NAME_TO_MODEL_DEPLOYMENT


def require_variable(name: str | None) -> str | None:
    """Return the name of an environment variable. Raises RunEntryError, which does not show what may be a key."""
    if name is not None and not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise RunEntryError("--api-key-env: expected the name of an environment variable, not the key itself")
    return name


def require_absent(given: Mapping[str, Any], what_for: str) -> None:
    if names := [name for name, value in given.items() if value is not None and value is not False and value != []]:
        raise RunEntryError(f"{names[0]}: is for {what_for}")


def make_client(args: Mapping[str, Any]) -> Any:
    """Return the client, as a check of its arguments. Raises RunEntryError."""
    from helm.common.cache import BlackHoleCacheConfig

    from helm_ext.clients import OpenAICompatibleClient

    kept = {key: value for key, value in args.items() if key != "api_key_env" and value is not None}
    return OpenAICompatibleClient(BlackHoleCacheConfig(), **kept)


def list_models(client: Any, api_key_env: str | None, local_path: Path, name: str) -> list[dict[str, Any]]:
    """Return what the server lists; [] where it does not answer."""
    from helm.common.credentials_utils import provide_api_key
    from helm.common.general import get_credentials

    from helm_ext.clients.server import Server, run

    with without_output():
        key = provide_api_key(get_credentials(str(local_path)), name.split("/", maxsplit=1)[0], name)
    if api_key_env is not None:
        key = os.environ.get(api_key_env)
    server = Server(client.server.url, key, reply_seconds=5, attempts=client.server.attempts)
    return run(server.list_models())


def choose_name(name: str, given: str | None, listed: list[dict[str, Any]]) -> str:
    """Return the model's name for the server. Raises RunEntryError for one that the server does not list."""
    names = [str(model["id"]) for model in listed]
    if given is None:
        given = names[0] if len(names) == 1 else name.split("/", 1)[1]
    if names and given not in names:
        shown = ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")
        raise RunEntryError(f"{given}: the server has no such model\n  hint: --model-name, one of: {shown}")
    return given


def window_of(listed: Iterable[Mapping[str, Any]], model_name: Any) -> int | None:
    """Return the window that the server says (vLLM's `max_model_len`)."""
    found = next((model.get("max_model_len") for model in listed if model["id"] == model_name), None)
    return found if type(found) is int and found > 0 else None


def find_tokenizer(
    tokenizer: str | None, max_length: int | None, served: int | None
) -> tuple[Tokenizer | None, int | None]:
    """Return a tokenizer to be written, None for one that HELM knows; and the window. Raises HelmExtError."""
    from helm.benchmark.tokenizer_config_registry import TOKENIZER_NAME_TO_CONFIG

    from helm_ext.clients.deployments import read_tokenizer

    if tokenizer is None:
        if max_length is not None:
            raise RunEntryError("--max-length: prompts are fitted to it by a tokenizer\n  hint: --tokenizer")
        return None, None
    if tokenizer in TOKENIZER_NAME_TO_CONFIG and not Path(tokenizer).exists():
        return None, max_length or served
    with status("reading the tokenizer"), helm_output_to_stderr():
        found = read_tokenizer(tokenizer)
    said = [length for length in (served, found.max_length) if length is not None]
    return found, max_length or min(said, default=None)
