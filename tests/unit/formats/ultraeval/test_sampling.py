"""Sampling parameters of a task: upstream's files (vLLM's names) in HELM's words."""

from __future__ import annotations

import json

import pytest

from helm_ext.errors import DatasetError, DatasetNotFoundError, DatasetSchemaError, Location, Problem
from helm_ext.formats.ultraeval.config import DEFAULT_MAX_TOKENS, Sampling, read_sampling


@pytest.fixture
def write(tmp_path):
    path = tmp_path / "params.json"

    def write_values(values):
        path.write_text(values if isinstance(values, str) else json.dumps(values))
        return path

    return write_values


def read(path, max_tokens=None, temperature=None):
    return read_sampling(path, max_tokens=max_tokens, temperature=temperature)


def test_without_a_file():
    assert read(None) == (Sampling(0.0, DEFAULT_MAX_TOKENS, (), 1, {}), [], [])
    assert read(None, 7, 0.5) == (Sampling(0.5, 7, (), 1, {}), [], [])
    assert DEFAULT_MAX_TOKENS == 100


def test_all_that_helm_has(write):
    path = write(
        {"temperature": 1, "max_tokens": 20, "top_p": 1, "top_k": 40, "frequency_penalty": 0.5, "presence_penalty": -1,
         "stop": ["\n", "Q:"], "sampling_num": 3, "n": 2, "use_beam_search": False, "best_of": 1, "seed": None}
    )  # fmt: skip
    found, files, warnings = read(path)
    decoding = {"top_p": 1.0, "top_k_per_token": 40, "frequency_penalty": 0.5, "presence_penalty": -1.0}
    assert found == Sampling(1.0, 20, ("\n", "Q:"), 3, decoding)
    assert [type(value) for value in (found.temperature, found.decoding["top_p"])] == [float, float]
    assert (files, warnings) == ([path], [])
    assert read(path, 5, 0.25)[0] == Sampling(0.25, 5, ("\n", "Q:"), 3, decoding)
    assert read(path, temperature=0)[0].temperature == 0.0


def test_an_empty_file(write):
    assert read(write({}))[0] == Sampling()
    assert read(write({"stop": None, "top_k": None}))[0] == Sampling()


@pytest.mark.parametrize(("stop", "expected"), [("END", ("END",)), (["a", "b"], ("a", "b")), ([], ()), ("", ())])
def test_stops(write, stop, expected):
    assert read(write({"stop": stop}))[0].stop == expected


@pytest.mark.parametrize(
    ("top_k", "sent"), [(-1, {}), (0, {}), (1, {"top_k_per_token": 1}), (2, {"top_k_per_token": 2})]
)
def test_no_top_k(write, top_k, sent):
    assert read(write({"top_k": top_k}))[0].decoding == sent


@pytest.mark.parametrize(
    ("values", "expected"), [({"n": 2}, 2), ({"sampling_num": 3}, 3), ({"n": 2, "sampling_num": 3}, 3)]
)
def test_how_many_are_sampled(write, values, expected):
    assert read(write(values))[0].num_outputs == expected


@pytest.mark.parametrize(
    ("values", "field", "message"),
    [
        ({"temperature": "hot"}, "temperature", 'expected a number, got "hot"'),
        ({"top_p": True}, "top_p", "expected a number, got true"),
        ({"frequency_penalty": []}, "frequency_penalty", "expected a number, got []"),
        ({"presence_penalty": {}}, "presence_penalty", "expected a number, got {}"),
        ({"max_tokens": 0}, "max_tokens", "expected a whole number of at least 1, got 0"),
        ({"max_tokens": 1.5}, "max_tokens", "expected a whole number of at least 1, got 1.5"),
        ({"max_tokens": True}, "max_tokens", "expected a whole number of at least 1, got true"),
        ({"sampling_num": -1}, "sampling_num", "expected a whole number of at least 1, got -1"),
        ({"n": "2"}, "n", 'expected a whole number of at least 1, got "2"'),
        ({"top_k": 2.5}, "top_k", "expected a whole number, got 2.5"),
        ({"stop": 1}, "stop", "expected a string or a list of strings, got 1"),
        ({"stop": ["a", 1]}, "stop", 'expected a string or a list of strings, got ["a", 1]'),
        ([1], "", "expected an object of sampling parameters, got [1]"),
    ],
)
def test_what_is_wrong(write, values, field, message):
    path = write(values)
    with pytest.raises(DatasetSchemaError) as error:
        read(path)
    assert error.value.problems == (Problem(message, Location(str(path), field=field), code="sampling"),)
    assert error.value.problems[0].kind is DatasetSchemaError


def test_a_file_that_is_no_json(write):
    with pytest.raises(DatasetError, match="not JSON"):
        read(write("{"))


def test_all_that_is_wrong_is_said(write):
    with pytest.raises(DatasetSchemaError) as error:
        read(write({"n": 0, "beam_width": 4, "stop": 5, "top_p": ""}))
    assert [(problem.location.field, problem.severity) for problem in error.value.problems] == [
        *(("top_p", "error"), ("n", "error"), ("stop", "error"), ("beam_width", "warning"))
    ]


@pytest.mark.parametrize("value", [True, 2, 0.9, "yes", ["x"], {"a": 1}])
def test_what_is_not_sent_is_said(write, value):
    path = write({"repetition_penalty": value})
    shown = json.dumps(value)
    message = f"HELM's requests have no such parameter; {shown} is not sent"
    location = Location(str(path), field="repetition_penalty")
    assert read(path)[2] == [Problem(message, location, "", "warning", "sampling-ignored")]


@pytest.mark.parametrize("value", [False, 0, 0.0, 1, 1.0, "", [], None])
def test_what_asks_for_nothing_is_not_said(write, value):
    assert read(write({"repetition_penalty": value}))[2] == []


@pytest.mark.parametrize("key", ["batch_size", "logprobs", "prompt_logprobs", "skip_special_tokens"])
def test_how_upstreams_server_works_is_not_said(write, key):
    assert read(write({key: 5})) == (Sampling(), [write({key: 5})], [])


def test_no_such_file(tmp_path):
    path = tmp_path / "none.json"
    with pytest.raises(DatasetNotFoundError) as error:
        read(path, temperature=0.5)
    hint = "root=FOLDER names the checkout that has it; or give max_tokens=N in its place"
    assert error.value.problems == (
        Problem("generate.params: no such file", Location(str(path)), hint, code="no-params"),
    )
    assert read(path, 5) == (Sampling(max_tokens=5), [], [])


def test_least_values():
    assert read(None, 1, 0)[0] == Sampling(0.0, 1)
