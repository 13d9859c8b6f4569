"""`helm_ext.serialise` against HELM's `json.dumps(asdict_without_nones(...), indent=2)`."""

from __future__ import annotations

import datetime as dt
import enum
import io
import json
import math
from collections import OrderedDict, defaultdict
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pytest
from helm.benchmark.metrics.metric import PerInstanceStats
from helm.benchmark.metrics.metric_name import MetricName
from helm.benchmark.metrics.statistic import Stat
from helm.benchmark.runner import remove_per_instance_stats_nans
from helm.benchmark.scenarios.code_scenario import CodeReference
from helm.benchmark.scenarios.scenario import Output, PassageQuestionInput
from helm.common.general import asdict_without_nones
from helm.common.request import Request
from hypothesis import given
from hypothesis import strategies as st

from helm_ext import serialise
from helm_ext.serialise import ArrayWriter, StatRenderer, dumps, write_array, write_object


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


@given(JSON, JSON)
def test_any_value(first, second):
    box = Box(first, [second])
    data = dumps(box).decode("ascii")
    assert repr(json.loads(data)) == repr(json.loads(helm(box)))


@pytest.mark.parametrize(
    "value",
    [
        {1: "a", None: "b", False: "c", 1.5: "d"},
        {"big": 2**64, "bigger": -(2**70), "fits": 2**64 - 1},
        "\ud800 lone",
        [math.nan, -math.inf, None, "null"],
        {"text": "a: null,\n", "none": None},
        (1, (2, Box(3))),
        Pair(1, Box(2)),
        OrderedDict(a=Box(None, 1)),
        {"e": Colour.RED, "i": Level.HIGH, "s": Text("t"), "f": np.float64(0.1)},
        '\x7f\x1f\u2028 ünï 😀 \\ "',
        [[], {}, Nothing(), One(), Slotted(1)],
        Request(prompt="p"),
        CodeReference(output=Output("x"), tags=[], test_cases={"not": "a field"}),
        PassageQuestionInput(passage="p", question="q"),
        1e16,
        -0.0,
        Text("only"),
    ],
    ids=repr,
)  # fmt: skip
@pytest.mark.parametrize("depth", [0, 1, 2])
def test_odd_values(value, depth):
    expected = helm(Box(value)).replace("\n", "\n" + "  " * depth)
    data = dumps(Box(value), depth).decode("ascii")
    assert repr(json.loads(data)) == repr(json.loads(expected))
    if not isinstance(value, float):
        assert data == expected


def test_default_dict():
    assert json.loads(dumps(Box(defaultdict(list, {"a": [1]})))) == {"value": {"a": [1]}}


def test_attributes_that_are_no_fields_are_not_written():
    request = Request(prompt="p")
    object.__setattr__(request, "result", {"secret": 1})
    assert dumps(request).decode() == helm(request)


@pytest.mark.parametrize(
    "value",
    [{1, 2}, object(), np.float32(1), dt.date(2024, 1, 1), Box, b"x"],
    ids=lambda value: type(value).__name__,
)
def test_what_json_cannot_write_is_refused_as_in_helm(value):
    with pytest.raises(TypeError, match="not JSON serializable"):
        helm(Box(value))
    with pytest.raises(TypeError, match="not JSON serializable"):
        dumps(Box(value))


@pytest.mark.parametrize("count", [0, 1, serialise.CHUNK, serialise.CHUNK + 1])
@pytest.mark.parametrize("odd", [False, True])
def test_arrays(count, odd):
    items = [Box(i, "ü" if i % 100 == 0 else math.nan if odd and i % 50 == 1 else None) for i in range(count)]
    file = io.BytesIO()
    write_array(file, iter(items))
    assert file.getvalue().decode() == json.dumps([asdict_without_nones(item) for item in items], indent=2)


@pytest.mark.parametrize("items", [[], [Box(1)], [Box({2: 3}), Box(None)]])
def test_objects_with_a_streamed_field(items):
    @dataclass
    class State:
        spec: Box
        items: list
        last: Any = None

    for state in (State(Box({"a": [1]}), items), State(Box(), items, [Box(2)])):
        file = io.BytesIO()
        write_object(file, state, {"items": state.items})
        assert file.getvalue().decode() == helm(state)
    file = io.BytesIO()
    write_object(file, Nothing(), {"items": []})
    assert file.getvalue() == b"{}"


def test_array_writer_writes_in_pieces():
    file = io.BytesIO()
    writer = ArrayWriter(file, depth=1)
    for i in range(serialise.CHUNK):
        writer.add({"i": i})
    assert file.tell() > 0
    writer.close()
    assert json.loads(file.getvalue())[-1] == {"i": serialise.CHUNK - 1}


@pytest.mark.parametrize("cached", [0, 3, 1000])
def test_stats_are_helms_and_nans_go(cached, monkeypatch):
    monkeypatch.setattr(StatRenderer, "REMEMBERED", cached)
    shared = [Stat(MetricName(f"s{i}", split="test")).add(i) for i in range(3)]
    rows = [
        PerInstanceStats(f"ü{i}", None, 0, [*shared, Stat(MetricName("nan")).add(math.nan), Stat(MetricName("none")),
                                            Stat(MetricName("x")).add(i / 3), Stat(MetricName("inf")).add(math.inf)])
        for i in range(5)
    ]  # fmt: skip
    file = io.BytesIO()
    write_array(file, map(StatRenderer().render, rows))
    expected = json.dumps(list(map(asdict_without_nones, remove_per_instance_stats_nans(rows))), indent=2)
    assert json.loads(file.getvalue()) == json.loads(expected) or file.getvalue().decode() == expected
