"""Sampling parameters of a task: upstream's files (vLLM's names) in HELM's words."""

import json

import pytest

from helm_ext.errors import DatasetNotFoundError, DatasetSchemaError, Location, Problem
from helm_ext.formats.ultraeval.config import Sampling, read_sampling


@pytest.fixture
def write(tmp_path):
    path = tmp_path / "params.json"

    def write_values(values):
        path.write_text(values if isinstance(values, str) else json.dumps(values))
        return path

    return write_values


def read(path, max_tokens=None, temperature=None):
    return read_sampling(path, max_tokens=max_tokens, temperature=temperature)


def test_without_a_file(tmp_path):
    assert read(None) == (Sampling(0.0, 100, (), 1, {}), [], [])
    assert read(None, 7, 0.5) == (Sampling(0.5, 7, (), 1, {}), [], [])
    path = tmp_path / "none.json"
    hint = "root=FOLDER names the checkout that has it; or give max_tokens=N in its place"
    with pytest.raises(DatasetNotFoundError) as error:
        read(path, temperature=0.5)
    assert error.value.problems == (
        Problem("generate.params: no such file", Location(str(path)), hint, code="no-params"),
    )
    assert read(path, 5) == (Sampling(max_tokens=5), [], [])


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


@pytest.mark.parametrize(("values", "expected"), [
    ({}, {}), ({"stop": None, "top_k": None}, {}),
    *(({"stop": stop}, {"stop": read_as}) for stop, read_as in [("END", ("END",)), (["a", "b"], ("a", "b")), ("", ())]),
    *(({"top_k": top_k}, {}) for top_k in (-1, 0)), ({"top_k": 1}, {"decoding": {"top_k_per_token": 1}}),
    *(({"n": 2, **more}, {"num_outputs": number}) for more, number in [({}, 2), ({"sampling_num": 3}, 3)]),
    *(({"repetition_penalty": nothing}, {}) for nothing in (False, 0, 0.0, 1, 1.0, "", [], None)),
    *(({key: 5}, {}) for key in ("batch_size", "logprobs", "prompt_logprobs", "skip_special_tokens")),
])  # fmt: skip
def test_what_values_mean(write, values, expected):
    found, _, warnings = read(write(values))
    assert (found, warnings) == (Sampling(**expected), [])


@pytest.mark.parametrize(("values", "field", "message"), [
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
])  # fmt: skip
def test_what_is_wrong(write, values, field, message):
    path = write(values)
    with pytest.raises(DatasetSchemaError) as error:
        read(path)
    assert error.value.problems == (Problem(message, Location(str(path), field=field), code="sampling"),)


def test_all_that_is_wrong_is_said(write):
    with pytest.raises(DatasetSchemaError) as error:
        read(write({"n": 0, "beam_width": 4, "stop": 5, "top_p": ""}))
    assert [(problem.location.field, problem.severity) for problem in error.value.problems] == [
        *(("top_p", "error"), ("n", "error"), ("stop", "error"), ("beam_width", "warning"))
    ]


@pytest.mark.parametrize("value", [True, 2, 0.9, "yes", ["x"], {"a": 1}])
def test_what_is_not_sent_is_said(write, value):
    path = write({"repetition_penalty": value})
    message = f"HELM's requests have no such parameter; {json.dumps(value)} is not sent"
    location = Location(str(path), field="repetition_penalty")
    assert read(path)[2] == [Problem(message, location, "", "warning", "sampling-ignored")]
