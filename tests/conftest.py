"""Fixtures of all tests."""

import functools
import logging
import os
import subprocess
import sys
from pathlib import Path

import hypothesis
import pytest

# The same examples every time, so that a run tells of a change and not of luck; `--hypothesis-profile=search` looks for
# new ones. No deadline: on a busy machine a slow example would look like a fault.
hypothesis.settings.register_profile("same", derandomize=True, deadline=None)
hypothesis.settings.register_profile("search", derandomize=False, deadline=None, max_examples=1_000)
hypothesis.settings.load_profile("same")
# For `make check` and `make mutants`: few examples, the same ones every time. Tests that say how many they need get them.
hypothesis.settings.register_profile("check", max_examples=20, derandomize=True, deadline=None)

# Ray's monitor would end workers of a test where something else on this machine takes memory.
os.environ.setdefault("RAY_memory_monitor_refresh_ms", "0")

# Hundreds of processes import the package: what is compiled once halves their time.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

ROOT = Path(__file__).parents[1]
ALWAYS = (
    "pyproject.toml", "constraints.txt", "tests/conftest.py", "tests/processes.py", "tests/warm_processes.py",
    "src/helm_ext/plugin", "src/helm_ext/evalset",
)  # fmt: skip
"""What all tests stand on."""


def pytest_addoption(parser):
    parser.addoption(
        "--nightly", choices=("all", "changed"), default="all",
        help="tests marked `nightly`: all, or where what they stand on has changed since the main branch",
    )  # fmt: skip


def pytest_collection_modifyitems(config, items):
    """Skip what is marked `nightly` where nothing that it names has changed; the reasons are printed and counted."""
    if config.getoption("nightly") == "all":
        return
    for item in items:
        mark = item.get_closest_marker("nightly")
        for path in mark.args if mark is not None else ():
            if not any(ROOT.glob(f"{path.rstrip('/')}*")):
                raise pytest.UsageError(f"{item.nodeid}: nightly names {path}, where nothing is: it would never run")
        if mark is not None and not _has_changed(*mark.args, str(item.path.relative_to(ROOT))):
            reason = f"nightly: no change of {', '.join(mark.args)} since the main branch; `make test-all` runs it"
            item.add_marker(pytest.mark.skip(reason=reason))


def _has_changed(*beginnings):
    """Return whether a file has changed of which the path begins so. True if git cannot tell."""
    changed = _changed_files()
    return changed is None or any(path.startswith((*ALWAYS, *beginnings)) for path in changed)


@functools.cache
def _changed_files():
    """Return the paths that differ from where this branch left the main one, uncommitted ones too; None: unknown."""

    def git(*arguments):
        done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
        return done.stdout.splitlines() if done.returncode == 0 else None

    for main in ("origin/HEAD", "origin/main", "main"):
        if base := git("merge-base", "HEAD", main):
            changed, new = git("diff", "--name-only", *base), git("ls-files", "--others", "--exclude-standard")
            return None if changed is None or new is None else [*changed, *new]
    return None


@pytest.fixture(scope="session")
def live_deployment() -> str:
    """A deployment without tokenizer and without recordings; its client is never made."""
    from helm.benchmark.model_deployment_registry import ClientSpec, ModelDeployment, register_model_deployment

    name = "test/live"
    register_model_deployment(ModelDeployment(name, ClientSpec("helm.clients.simple_client.SimpleClient")))
    return name


@pytest.fixture
def server():
    """A model server of a test's own."""
    from openai_server import serve

    with serve() as running:
        yield running


@pytest.fixture(autouse=True)
def logging_as_it_was():
    """`helm-ext` turns HELM's warnings off in its process; a test, or a fixture of some, does not for the next one."""
    logging.disable(logging.NOTSET)
    yield
    logging.disable(logging.NOTSET)


@pytest.fixture(autouse=True)
def nothing_planned(monkeypatch):
    """Each test plans and runs as a process of its own does."""
    from helm_ext.formats import planned

    monkeypatch.setattr(planned, "_waiting", {})
