import pytest

from helm_ext.cli.score import deployment_of
from helm_ext.cli.session import parse_arguments
from helm_ext.errors import RunEntryError


def test_model_names():
    assert deployment_of("mine") == {"model": "recorded/mine"}
    assert deployment_of("recorded/mine") == {"model": "recorded/mine"}
    assert deployment_of("openai/gpt-4") == {"model": "openai/gpt-4", "model_deployment": "recorded/openai/gpt-4"}


def test_arguments_may_hold_commas():
    assert parse_arguments(["extract=a,b", "seed=-3", "name=x=y"]) == {"extract": "a,b", "seed": -3, "name": "x=y"}
    with pytest.raises(RunEntryError, match="--arg seed: expected KEY=VALUE"):
        parse_arguments(["seed"])
