"""Any file: `load` and `check` agree, nothing but DatasetError is raised, and no row is lost."""

import contextlib
import json
import random
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from helm_ext import files as sources
from helm_ext.errors import DatasetError
from helm_ext.evalset import row_extra
from helm_ext.formats import request_states

FEW = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
texts = st.sampled_from(["Nile", "Volga", "Rhine", "Elbe", "2", ""])
references = st.fixed_dictionaries(
    {"output": st.fixed_dictionaries({"text": texts | json_values})},
    optional={"tags": st.sampled_from([["correct"], [], None]), "split": st.sampled_from(["train", "test", None])},
)
results = st.fixed_dictionaries(
    {},
    optional={
        "success": st.sampled_from([True, False, None]),
        "completions": st.lists(st.fixed_dictionaries({"text": texts}), max_size=2) | st.none(),
    },
)
states = st.fixed_dictionaries(
    {
        "instance": st.fixed_dictionaries(
            {"input": st.fixed_dictionaries({"text": texts})},
            optional={
                "references": st.lists(references, max_size=4),
                "split": st.sampled_from(["train", "test", "dev", None, "x"]),
                "id": st.sampled_from(["a", "a-2", "", None, 3]) | json_values,
                "chain_of_thought": st.sampled_from(["Why", None]),
                "answer_mapping": st.dictionaries(st.sampled_from("ABC"), texts | st.integers(-1, 4), max_size=3),
            },
        )
    },
    optional={
        "request": st.fixed_dictionaries({}, optional={"result": results}),
        "train_trial_index": st.integers(0, 1),
    },
)
specs = st.fixed_dictionaries(
    {},
    optional={
        "max_train_instances": st.integers(0, 3),
        "max_eval_instances": st.integers(1, 4),
        "reference_prefix": st.sampled_from(["A. ", "", None, "1)", "Option A"]),
        "method": st.sampled_from(["generation", "multiple_choice_joint", "multiple_choice_separate_original"]),
        "answer_mapping": st.just({"A": 0, "B": 1}),
        "num_outputs": json_values,
    },
)


def outcome(path):
    problems, _ = request_states.check(path)
    wrong = [str(problem) for problem in problems if problem.severity == "error"]
    raised = None
    try:
        evalset = request_states.load(path)
    except DatasetError as error:
        raised = error
    if raised is None:
        assert wrong == []
        return evalset
    assert [str(problem) for problem in raised.problems if problem.severity == "error"] == wrong
    assert "pydantic" not in str(raised)
    assert "Input should" not in str(raised)
    return None


@pytest.mark.long
@FEW
@given(spec=specs, rows=st.lists(states, min_size=1, max_size=6), is_lines=st.booleans())
def test_whatever_the_file_holds(tmp_path_factory, spec, rows, is_lines):
    path = tmp_path_factory.mktemp("x") / ("x.jsonl" if is_lines else "x.json")
    if is_lines:
        path.write_text("\n".join(json.dumps(line) for line in [{"adapter_spec": spec}, *rows]))
    else:
        path.write_text(json.dumps({"adapter_spec": spec, "request_states": rows}))
    evalset = outcome(path)
    if evalset is None:
        return
    ids = Counter(instance.id for instance in evalset.instances)
    assert [id for id, count in ids.items() if count > 1] == []
    assert evalset.counts["rows"] == len(rows)
    assert any(instance.split != "train" for instance in evalset.instances)
    for instance in evalset.instances:
        labels = row_extra(instance).get("labels", {})
        assert set(labels.values()) <= {reference.output.text for reference in instance.references}


@pytest.mark.long
@FEW
@given(count=st.integers(12, 60), demonstrations=st.integers(0, 4), cap=st.none() | st.integers(1, 20), seed=st.integers(0, 3), shuffle=st.randoms())  # fmt: skip
def test_sampling_is_a_disjoint_partition_independent_of_order(
    tmp_path_factory, count, demonstrations, cap, seed, shuffle
):
    rows = [
        {
            "instance": {
                "input": {"text": f"{n}?"},
                "references": [{"output": {"text": "x"}, "tags": ["correct"]}],
                "id": f"n{n}",
            }
        }
        for n in range(count)
    ]
    path = tmp_path_factory.mktemp("x") / "x.json"

    def draw():
        spec = {"max_train_instances": demonstrations, "max_eval_instances": cap}
        path.write_text(json.dumps({"adapter_spec": spec, "request_states": rows}))
        instances = request_states.load(path, seed=seed).instances
        return {split: {i.id for i in instances if (i.split == "train") == split} for split in (True, False)}

    one = draw()
    shuffle.shuffle(rows)
    assert draw() == one
    assert len(one[True]) == demonstrations
    assert len(one[False]) == min(count - demonstrations, cap or count)
    assert not one[True] & one[False]


@FEW
@given(value=json_values, indent=st.sampled_from([None, 1]))
def test_json_is_read_as_the_standard_library_reads_it(value, indent):
    assert sources.parse_json(json.dumps(value, indent=indent).encode(), "x") == value


@FEW
@given(value=json_values, data=st.data())
def test_places_agree_with_a_search_by_marker(value, data):
    """Put a marker anywhere into a document: its line is that of the marker's text."""
    paths = []

    def mark(part, path):
        if isinstance(part, dict):
            made = {}
            for key, inner in part.items():
                made[key] = mark(inner, (*path, key))
            return made
        if isinstance(part, list):
            return [mark(inner, (*path, index)) for index, inner in enumerate(part)]
        paths.append(path)
        return f"marker-{len(paths) - 1}-end"

    text = json.dumps(mark({"top": value}, ()), indent=1)
    if not paths:
        return
    chosen = data.draw(st.integers(0, len(paths) - 1))
    line = next(n for n, line in enumerate(text.split("\n"), start=1) if f"marker-{chosen}-end" in line)
    assert sources.locate(text, [paths[chosen]]) == {paths[chosen]: line}


@FEW
@given(data=st.binary(max_size=60))
def test_any_bytes_give_a_value_or_a_dataset_error(data):
    for parse in (sources.parse_json, sources.parse_relaxed_json):
        with contextlib.suppress(DatasetError):
            parse(data, "x")


@FEW
@given(
    lines=st.lists(st.binary(max_size=8).filter(lambda line: b"\n" not in line), max_size=30), seed=st.integers(0, 9)
)
def test_lines_are_those_between_newlines(tmp_path_factory, lines, seed):
    path: Path = tmp_path_factory.mktemp("x") / "x"
    data = b"\n".join(lines) * (1 + random.Random(seed).randrange(2))
    if not data or data.startswith((b"\x1f\x8b", b"\x28\xb5\x2f\xfd")):  # compressed, by its magic
        return
    path.write_bytes(data)
    expected = data.split(b"\n")
    if expected[-1] == b"":
        expected.pop()
    with sources.LineSource(path) as source:
        found = [line for _, line in source]
    assert found == [line.removesuffix(b"\r") for line in expected]
