"""The classes of HELM that `helm_ext.evalset.copying.copy_with` copies: what `dataclasses.replace` makes of them, it makes too."""

from __future__ import annotations

import dataclasses
import inspect
import pickle

import pytest
from helm.benchmark.adaptation.request_state import RequestState
from helm.benchmark.metrics.metric import PerInstanceStats
from helm.benchmark.scenarios.scenario import Input, Instance, Output, PassageQuestionInput, Reference
from helm.common.request import GeneratedOutput, Request, RequestResult, Token

from helm_ext.evalset import quick, quick_stats
from helm_ext.evalset.copying import copy_with, make_template

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


@pytest.mark.parametrize("value", [value for value, _ in COPIED], ids=lambda value: type(value).__name__)
def test_a_template_is_its_value(value):
    template = make_template(value)
    assert template is not value
    assert type(template) is type(value)
    assert list(vars(template).items()) == list(vars(value).items())


@pytest.mark.parametrize("cls", sorted({type(value) for value, _ in COPIED}, key=lambda cls: cls.__name__))
def test_nothing_is_computed_after_init(cls):
    """RequestState's `__post_init__` only checks `request_mode`, which no copy of ours changes."""
    if cls is RequestState:
        assert "self.request_mode" in inspect.getsource(cls.__post_init__)
        assert "self.request_mode =" not in inspect.getsource(cls.__post_init__)
    else:
        assert not hasattr(cls, "__post_init__")


QUICK = [
    (quick.Input, Input, {"text": "2+2?", "messages": [{"role": "user", "content": "2+2?"}]}),
    (quick.Output, Output, {"text": "4"}),
    (quick.Reference, Reference, {"output": Output("4"), "tags": ["correct"]}),
    (quick.Instance, Instance, {"input": Input("2+2?"), "references": [], "id": "i"}),
    (quick.Token, Token, {"text": "4", "logprob": -0.5}),
    (quick.GeneratedOutput, GeneratedOutput, {"text": "4", "logprob": -0.5, "tokens": []}),
    (quick_stats.PerInstanceStats, PerInstanceStats, {"instance_id": "i", "perturbation": None, "train_trial_index": 0, "stats": []}),
]  # fmt: skip


@pytest.mark.parametrize(("ours", "helms", "values"), QUICK, ids=lambda part: getattr(part, "__name__", ""))
def test_quick_classes_are_helms_in_all_but_speed(ours, helms, values):
    made, expected = ours(**values), helms(**values)
    assert isinstance(made, helms)
    assert vars(made) == vars(expected)
    assert list(vars(made)) == list(vars(expected))
    assert repr(made) == repr(expected)
    assert dataclasses.asdict(made) == dataclasses.asdict(expected)
    ours_take, helms_take = (inspect.signature(cls).parameters.values() for cls in (ours, helms))
    assert [(one.name, one.default) for one in ours_take] == [(one.name, one.default) for one in helms_take]
    assert type(dataclasses.replace(made)) is ours
    assert vars(pickle.loads(pickle.dumps(made))) == vars(expected)
    if helms is Instance:  # compared by identity
        assert made != expected
        return
    assert made == expected
    assert expected == made
    name = next(iter(values))
    assert made != dataclasses.replace(expected, **{name: "other"})
    assert dataclasses.replace(expected, **{name: "other"}) != made
    if helms in (Output, Token):  # the others hold lists
        assert hash(made) == hash(expected)


def test_quick_classes_differ_from_other_subclasses():
    assert quick.Input("p\nQuestion: q") != PassageQuestionInput("p", "q")
    assert PassageQuestionInput("p", "q") != quick.Input("p\nQuestion: q")
