"""`helm_ext.running.serialise` against HELM's `json.dumps(asdict_without_nones(...), indent=2)`."""

import datetime as dt
import enum
import io
import json
import math
from collections import OrderedDict
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import pytest
from helm.benchmark.adaptation.request_state import RequestState
from helm.benchmark.augmentations.perturbation_description import PerturbationDescription
from helm.benchmark.metrics.metric import PerInstanceStats
from helm.benchmark.metrics.metric_name import MetricName
from helm.benchmark.metrics.statistic import Stat
from helm.benchmark.runner import remove_per_instance_stats_nans
from helm.benchmark.scenarios.code_scenario import CodeReference
from helm.benchmark.scenarios.scenario import Input, Instance, Output, PassageQuestionInput, Reference
from helm.common.general import asdict_without_nones
from helm.common.media_object import MediaObject, MultimediaObject
from helm.common.request import GeneratedOutput, Request, RequestResult, Token
from hypothesis import given
from hypothesis import strategies as st

from helm_ext.adaptation.recorded import make_recorded_request
from helm_ext.running import serialise
from helm_ext.running.serialise import ArrayWriter, StatRenderer, dumps, write_array
from helm_ext.scoring.basic.row_stats import Names, RowStats


@dataclass
class Box:
    value: Any = None
    other: Any = None


@dataclass
class Named(Box):
    name: str = "n"


@dataclass(slots=True)
class Slotted:
    value: Any = None
    empty: Any = None


@dataclass
class One:
    items: list = field(default_factory=list)


@dataclass
class Nothing:
    pass


@dataclass(frozen=True)
class Leaf:
    number: float = 0.0
    text: str | None = None


@dataclass(frozen=True)
class Veined(Leaf):
    veins: list[Leaf] | None = None


class Colour(str, enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


class Text(str):
    __slots__ = ()


class Pair(NamedTuple):
    a: int
    b: Box


def helm(value):
    return json.dumps(asdict_without_nones(value), indent=2)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=3), inner, max_size=3)
        | st.builds(Box, inner, inner)
        | st.builds(Named, inner, name=st.text(max_size=3))
    ),
    max_leaves=8,
)


LEAVES = st.builds(Leaf, st.floats(), st.none() | st.text(max_size=3)) | st.builds(
    Veined, st.floats(), veins=st.none() | st.lists(st.builds(Leaf, st.floats()), max_size=2)
)
ANYTHING = st.recursive(
    JSON | LEAVES | st.sampled_from([Slotted("s"), Text("t"), Pair(1, Box(2)), Colour.RED, Nothing(), 2**70]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=3) | st.integers(), inner, max_size=2)
        | st.builds(Box, inner, inner)
        | st.builds(Slotted, inner, inner)
    ),
    max_leaves=6,
)


@given(st.lists(ANYTHING.map(Box), min_size=1, max_size=3))
def test_any_dataclass_in_arrays(items):
    file = io.BytesIO()
    writer = ArrayWriter(file, depth=2)
    for item in items:
        writer.add(item)
    writer.close()
    assert repr(json.loads(file.getvalue())) == repr([json.loads(helm(item)) for item in items])


def test_request_states():
    media = MultimediaObject(
        [MediaObject(content_type="text/plain", text="t"), MediaObject("image/png", location="https://localhost/i.png")]
    )
    request = Request(prompt="p", messages=[{"role": "user", "content": "ü"}], multimodal_prompt=media)
    token = Token("a", -0.5)
    result = RequestResult(
        success=True, embedding=[0.5], cached=False, request_time=None, error="e",
        completions=[GeneratedOutput("a", -0.5, [token, token], {"reason": None}, media), GeneratedOutput("", 0, [])],
    )  # fmt: skip
    instance = Instance(
        Input(multimedia_content=media), [Reference(Output("x", media), ["correct"]), Reference(Output(), [])],
        contrast_inputs=[PassageQuestionInput("p", "q")], contrast_references=[[Reference(Output("y"), [])], []],
        extra_data={"image": media, "none": None},
    )  # fmt: skip
    code = replace(instance, references=[CodeReference(output=Output("x"), tags=[], test_cases={"t": "u"})])
    states = [
        RequestState(instance, None, None, 0, {"A": "x"}, request, result, 0, False, annotations={"media": [media]}),
        RequestState(code, 0, "original", 0, None, make_recorded_request(request, result), None, 0, True),
        RequestState(instance, 1, None, 0, None, request, replace(result, request_time=math.inf), 0, False),
    ]
    file = io.BytesIO()
    write_array(file, states)
    assert file.getvalue().decode() == json.dumps(list(map(asdict_without_nones, states)), indent=2)


@pytest.mark.parametrize("value", [
    {1: "a", None: "b", False: "c", 1.5: "d"}, {"big": 2**64, "bigger": -(2**70), "fits": 2**64 - 1}, "\ud800 lone",
    [math.nan, -math.inf, None, "null"], {"text": "a: null,\n", "none": None}, (1, (2, Box(3))), Pair(1, Box(2)),
    OrderedDict(a=Box(None, 1)),
    {"e": Colour.RED, "i": Level.HIGH, "s": Text("t"), "f": np.float64(0.1)},
    '\x7f\x1f\u2028 ünï 😀 \\ "',
    {"é\x7f": ["a\x7fü\\u00fc\\xfc€😀😀 x😀\U0010ffff\x80", "null,\n", {"": None}, [None, math.nan]]},
    *("\x80", "\xff", "\U00010000", "\U0010ffff", '山\u0100\ud7ff\ue000\uffff \\x\x7f"'),
    [[], {}, Nothing(), One(), Slotted(1)], Request(prompt="p"),
    CodeReference(output=Output("x"), tags=[], test_cases={"not": "a field"}),
    PassageQuestionInput(passage="p", question="q"), 1e16, -0.0, Text("only"),
], ids=repr)  # fmt: skip
@pytest.mark.parametrize("depth", [0, 1, 2])
def test_odd_values(value, depth):
    expected = helm(Box(value)).replace("\n", "\n" + "  " * depth)
    data = dumps(Box(value), depth).decode("ascii")
    assert repr(json.loads(data)) == repr(json.loads(expected))
    if not isinstance(value, float):
        assert data == expected


@pytest.mark.parametrize("value", [
    {1, 2}, object(), np.float32(1), dt.date(2024, 1, 1), Box, b"x",
], ids=lambda value: type(value).__name__)  # fmt: skip
def test_what_json_cannot_write_is_refused_as_in_helm(value):
    with pytest.raises(TypeError, match="not JSON serializable"):
        helm(Box(value))
    with pytest.raises(TypeError, match="not JSON serializable"):
        dumps(Box(value))


@pytest.mark.parametrize("cached", [0, 1, 3, 1000])
def test_stats_are_helms_and_nans_go(cached, monkeypatch):
    """Rows of all kinds: with Stats that they share, perturbed, without any, with characters that are escaped."""
    monkeypatch.setattr(StatRenderer, "REMEMBERED", cached)
    monkeypatch.setattr(StatRenderer, "AT_A_TIME", 3)
    warned = []
    monkeypatch.setattr(serialise, "hwarn", warned.append)
    shared = [Stat(MetricName(f"a%b{i}", split="test")).add(i) for i in (0, 1, 2, math.inf)]
    rows = [
        PerInstanceStats(f"ü{i}", None, 0, [*shared, Stat(MetricName("nan")).add(math.nan), Stat(MetricName("none")),
                                            Stat(MetricName("x")).add(i / 3), Stat(MetricName("inf")).add(-math.inf)])
        for i in range(5)
    ]  # fmt: skip
    perturbation = PerturbationDescription(name="dialect", fairness=True)
    rows += [PerInstanceStats("b\x7f", perturbation, 1, shared), PerInstanceStats("c", None, 0, [])]
    file = io.BytesIO()
    writer, renderer = ArrayWriter(file), StatRenderer()
    for data in renderer.render(rows):
        writer.add_encoded(data)
    writer.close()
    expected = json.dumps(list(map(asdict_without_nones, remove_per_instance_stats_nans(rows))), indent=2)
    assert file.getvalue().decode() == expected
    assert warned == ["Removing stat nan because its value is NaN"] * 5


@pytest.mark.parametrize("remembered", [0, 1, 1000])
def test_stats_of_values_are_those_of_their_stats(remembered, monkeypatch):
    """Values that are equal and not the same (1, 1.0, True; 0.0, -0.0), that JSON does not have, of any size."""
    monkeypatch.setattr(StatRenderer, "REMEMBERED", remembered)
    monkeypatch.setattr(StatRenderer, "AT_A_TIME", 5)
    values = [1, 1.0, True, 0, 0.0, -0.0, None, math.nan, math.inf, -math.inf, 2**70, np.float64(0.5), 0.1, 1e20]
    names = Names([MetricName(f"a%b{i}", split="test") for i in range(3)])
    rows = [RowStats(names, (values[i], values[-i], values[i // 2])) for i in [*range(len(values)), 3, 2, 1]]
    rows[0].append(Stat(MetricName("further")).add(0.5))
    made, renderer = [PerInstanceStats(f"{i}", None, 0, row) for i, row in enumerate(rows)], StatRenderer()
    rendered = [*renderer.render(made), *renderer.render([])]
    file = io.BytesIO()
    write_array(file, remove_per_instance_stats_nans([replace(row, stats=[*row.stats]) for row in made]))
    assert file.getvalue() == b"[\n" + b",\n".join(rendered) + b"\n]"
    assert max(len(one.known) for one in renderer._by_name.values()) <= remembered
