"""Fixtures of all tests."""

from __future__ import annotations

import hypothesis
import pytest

# For `make check` and `make mutants`: few examples, the same ones every time. Tests that say how many they need get them.
hypothesis.settings.register_profile("check", max_examples=20, derandomize=True)


@pytest.fixture(scope="session")
def live_deployment() -> str:
    """A deployment without tokenizer and without recordings; its client is never made."""
    from helm.benchmark.model_deployment_registry import ClientSpec, ModelDeployment, register_model_deployment

    name = "test/live"
    register_model_deployment(ModelDeployment(name, ClientSpec("helm.clients.simple_client.SimpleClient")))
    return name


@pytest.fixture(autouse=True)
def nothing_planned(monkeypatch):
    """Each test plans and runs as a process of its own does."""
    from helm_ext.formats import planned

    monkeypatch.setattr(planned, "_waiting", {})
