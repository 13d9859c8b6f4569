"""What a process on another machine needs to ask models as `helm-run` does here.

`helm-run` reads prod_env/*.yaml, credentials, plugins and flags into HELM's registries before it makes a runner. So the
registries are sent as they are, whatever filled them, and the code of plugins, which registers functions and holds
classes. Folders of this machine are used where they are there, too; else there is no cache, and nothing is read.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from helm.benchmark import model_deployment_registry, model_metadata_registry, tokenizer_config_registry
from helm.benchmark.executor import ExecutionSpec

from helm_ext.errors import HelmExtError, show
from helm_ext.files.content import format_size

SENT_ENV = "HELM_EXT_RAY_ENV"
"""The environment variable that names others, by commas, which actors get: keys that no file of HELM holds."""

CREDENTIALS_ENV = "HELM_CREDENTIALS"
CREDENTIALS_FILE = "credentials.conf"
"""HELM's names, helm/common/general.py."""

MAX_PLUGIN_BYTES = 5_000_000
"""A plugin is code. A folder with more in it is to be installed on the nodes."""


@dataclass(frozen=True)
class Plugin:
    """What `--plugins` names: a module by its name, or the code of one by its path."""

    name: str
    files: dict[str, bytes] = field(default_factory=dict)
    """By path relative to the folder that `name` is in; empty for a module that is installed everywhere."""

    @classmethod
    def read(cls, name: str) -> Plugin:
        """Read the code, if the plugin is a path. Raises HelmExtError if it is too large."""
        path = Path(name)
        if not path.exists():
            return cls(name)
        path = path.absolute()
        files = [path] if path.is_file() else sorted(one for one in path.rglob("*") if _is_code(one, path))
        size = sum(one.stat().st_size for one in files)
        if size > MAX_PLUGIN_BYTES:
            raise HelmExtError(
                f"--plugins {show(name)}: {format_size(size)} are too much to send to other machines\n"
                "  hint: name a folder with nothing but code in it, or install it on all nodes and name the module"
            )
        return cls(str(path), {str(one.relative_to(path.parent)): one.read_bytes() for one in files})

    def place(self) -> str:
        """Return what to import here: the same path if it holds the same code, else one that is made."""
        path = Path(self.name)
        if not self.files or all(_holds(path.parent / name, content) for name, content in self.files.items()):
            return self.name
        folder = Path(tempfile.mkdtemp(prefix="helm_ext-plugin-"))
        for name, content in self.files.items():
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
        return str(folder / path.name)


def _is_code(path: Path, folder: Path) -> bool:
    hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
    return path.is_file() and path.suffix != ".pyc" and not hidden


def _holds(path: Path, content: bytes) -> bool:
    try:
        return path.read_bytes() == content
    except OSError:
        return False


def find_plugins(argv: Sequence[str]) -> list[Plugin]:
    """Return the plugins of a helm-run command line, which a runner is not told."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--plugins", nargs="+", default=[])  # as in helm/benchmark/run.py
    return [Plugin.read(name) for name in parser.parse_known_args(list(argv))[0].plugins]


@dataclass(frozen=True)
class HelmContext:
    """The context of a helm-run, to be entered in another process. Nothing of it is ever printed."""

    execution_spec: ExecutionSpec = field(repr=False)
    credentials: str = field(repr=False)
    environ: dict[str, str] = field(repr=False)
    plugins: list[Plugin] = field(repr=False)
    metadata: list[Any] = field(repr=False)
    deployments: list[Any] = field(repr=False)
    tokenizers: list[Any] = field(repr=False)
    deployment: str = ""
    """The only model that the process asks, so that it has a GPU for itself; empty where models share a process."""

    @classmethod
    def of_this_process(cls, execution_spec: ExecutionSpec, deployment: str = "") -> HelmContext:
        """Gather it. Raises HelmExtError for plugins and variables that cannot be sent."""
        spec = execution_spec
        if spec.local_path:
            spec = replace(spec, local_path=str(Path(spec.local_path).absolute()))
        if (cache := spec.sqlite_cache_backend_config) is not None:
            spec = replace(spec, sqlite_cache_backend_config=replace(cache, path=str(Path(cache.path).absolute())))
        named = [name.strip() for name in os.environ.get(SENT_ENV, "").split(",") if name.strip()]
        for name in named:
            if name not in os.environ:
                raise HelmExtError(f"{SENT_ENV} names {show(name)}, which is not set here")
        return cls(
            execution_spec=spec,
            credentials=_read_credentials(spec.local_path),
            environ={name: os.environ[name] for name in named},
            plugins=find_plugins(sys.argv[1:]),
            metadata=list(model_metadata_registry.ALL_MODELS_METADATA),
            deployments=list(model_deployment_registry.ALL_MODEL_DEPLOYMENTS),
            tokenizers=list(tokenizer_config_registry.ALL_TOKENIZER_CONFIGS),
            deployment=deployment,
        )

    def enter(self) -> ExecutionSpec:
        """Make it this process's. Returns the specification of an Executor here."""
        from helm.benchmark.run import import_user_plugins, load_entry_point_plugins

        os.environ.update(self.environ)
        # An empty text would make HELM look for a file, which here may be somebody else's.
        os.environ[CREDENTIALS_ENV] = self.credentials or "\n"
        self._fill_registries()  # plugins may look something up
        with contextlib.redirect_stdout(io.StringIO()):
            load_entry_point_plugins()
            import_user_plugins([plugin.place() for plugin in self.plugins])
        self._fill_registries()  # what they have registered is in here once already
        spec = self.execution_spec
        if spec.local_path and not Path(spec.local_path).is_dir():
            spec = replace(
                spec,
                local_path=tempfile.mkdtemp(prefix="helm_ext-prod_env-"),
                sqlite_cache_backend_config=None,
            )
        return spec

    def _fill_registries(self) -> None:
        """Let HELM know the models, deployments and tokenizers of the sender, and no others."""
        for registered, by_name, sent in (
            (
                model_metadata_registry.ALL_MODELS_METADATA,
                model_metadata_registry.MODEL_NAME_TO_MODEL_METADATA,
                self.metadata,
            ),
            (
                model_deployment_registry.ALL_MODEL_DEPLOYMENTS,
                model_deployment_registry.DEPLOYMENT_NAME_TO_MODEL_DEPLOYMENT,
                self.deployments,
            ),
            (
                tokenizer_config_registry.ALL_TOKENIZER_CONFIGS,
                tokenizer_config_registry.TOKENIZER_NAME_TO_CONFIG,
                self.tokenizers,
            ),
        ):
            registered[:] = sent
            by_name.clear()
            by_name.update((one.name, one) for one in sent)


def _read_credentials(local_path: str | None) -> str:
    """Return the text of HELM's credentials, read as `helm.common.general.get_credentials` does."""
    given = os.environ.get(CREDENTIALS_ENV, "")
    path = Path(local_path or "") / CREDENTIALS_FILE
    return given if given or not path.is_file() else path.read_text(encoding="utf-8")
