"""Fixtures of all tests."""

from __future__ import annotations

import logging

import hypothesis
import pytest

# The same examples every time, so that a run tells of a change and not of luck; `--hypothesis-profile=search` looks for
# new ones.
hypothesis.settings.register_profile("same", derandomize=True)
hypothesis.settings.register_profile("search", derandomize=False, max_examples=1_000)
hypothesis.settings.load_profile("same")
# For `make check` and `make mutants`: few examples, the same ones every time. Tests that say how many they need get them.
# No deadline: on a busy machine a slow example would look like a change of the code that a test noticed.
hypothesis.settings.register_profile("check", max_examples=20, derandomize=True, deadline=None)


@pytest.fixture(scope="session")
def live_deployment() -> str:
    """A deployment without tokenizer and without recordings; its client is never made."""
    from helm.benchmark.model_deployment_registry import ClientSpec, ModelDeployment, register_model_deployment

    name = "test/live"
    register_model_deployment(ModelDeployment(name, ClientSpec("helm.clients.simple_client.SimpleClient")))
    return name


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
