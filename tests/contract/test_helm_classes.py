"""The classes of HELM that `helm_ext.copying.copy_with` copies: what `dataclasses.replace` makes of them, it makes too."""

from __future__ import annotations

import dataclasses
import inspect

import pytest
from helm.benchmark.adaptation.request_state import RequestState
from helm.benchmark.metrics.metric import PerInstanceStats
from helm.benchmark.scenarios.scenario import Input, Instance, Output, Reference
from helm.common.request import GeneratedOutput, Request, RequestResult, Token

from helm_ext.copying import copy_with

INSTANCE = Instance(Input("2+2?"), [Reference(Output("4"), ["correct"])], split="test", id="i", extra_data={"a": 1})
RESULT = RequestResult(True, [], [GeneratedOutput("4", -0.5, [Token("4", -0.5)])], cached=False, request_time=0.5)
REQUEST = Request(model="a/b", model_deployment="a/b", prompt="2+2?", stop_sequences=["\n"])
COPIED = [
    (INSTANCE, {"id": "j"}),
    (INSTANCE.input, {"text": "3+3?"}),
    (RESULT, {"completions": []}),
    (RESULT.completions[0], {"text": "6", "logprob": -1.0}),
    (REQUEST, {"prompt": "3+3?"}),
    (RequestState(INSTANCE, None, None, 0, {"A": "4"}, REQUEST, RESULT, 0, prompt_truncated=False), {"result": None}),
    (PerInstanceStats("i", None, 0, []), {"instance_id": "j"}),
]


@pytest.mark.parametrize(("value", "changes"), COPIED, ids=lambda part: type(part).__name__)
def test_copies_are_those_of_replace(value, changes):
    copied, expected = copy_with(value, **changes), dataclasses.replace(value, **changes)
    assert type(copied) is type(expected)
    assert vars(copied) == vars(expected)
    assert list(vars(copied)) == list(vars(expected))
    assert vars(value) == vars(dataclasses.replace(value))


@pytest.mark.parametrize("cls", sorted({type(value) for value, _ in COPIED}, key=lambda cls: cls.__name__))
def test_nothing_is_computed_after_init(cls):
    """RequestState's `__post_init__` only checks `request_mode`, which no copy of ours changes."""
    if cls is RequestState:
        assert "self.request_mode" in inspect.getsource(cls.__post_init__)
        assert "self.request_mode =" not in inspect.getsource(cls.__post_init__)
    else:
        assert not hasattr(cls, "__post_init__")
