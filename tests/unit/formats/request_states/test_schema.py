"""The JSON Schema says yes and no where reading does: an editor must neither hide a mistake nor invent one."""

import copy
import json
import re

import pytest
from request_states_files import answered, problems, state

from helm_ext.errors import DatasetIntegrityError
from helm_ext.formats import request_states
from helm_ext.formats.request_states import checking
from helm_ext.formats.request_states.shapes import METHODS

SCHEMA = checking.json_schema()

_TYPES = {
    "string": lambda value: isinstance(value, str),
    "integer": lambda value: not isinstance(value, bool) and isinstance(value, (int, float)) and value == int(value),
    "number": lambda value: not isinstance(value, bool) and isinstance(value, (int, float)),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}
_RULES = {
    "type": lambda value, name: _TYPES[name](value),
    "enum": lambda value, allowed: value in allowed,
    "const": lambda value, only: value == only,
    "minimum": lambda value, least: not _TYPES["number"](value) or value >= least,
    "maximum": lambda value, most: not _TYPES["number"](value) or value <= most,
    "pattern": lambda value, pattern: not isinstance(value, str) or re.search(pattern, value) is not None,
    "anyOf": lambda value, some: any(is_valid(value, one) for one in some),
    "$ref": lambda value, name: is_valid(value, SCHEMA["$defs"][name.removeprefix("#/$defs/")]),
    "items": lambda value, each: not isinstance(value, list) or all(is_valid(one, each) for one in value),
    "required": lambda value, names: not isinstance(value, dict) or set(names) <= set(value),
}
_SAY_NOTHING = {"$schema", "$defs", "title", "description", "default", "properties", "additionalProperties"}


def is_valid(value, schema):
    """The part of JSON Schema that the schema uses, by the specification."""
    if schema is True:
        return True
    assert set(schema) <= set(_RULES) | _SAY_NOTHING, "a rule that this test does not know"
    if isinstance(value, dict):
        known = schema.get("properties", {})
        more = schema.get("additionalProperties", True)
        for key, child in value.items():
            if key in known:
                if not is_valid(child, known[key]):
                    return False
            elif more is False or not is_valid(child, more):
                return False
    return all(_RULES[name](value, rule) for name, rule in schema.items() if name in _RULES)


WHOLE = (0, 1, 1.0, 1.5, -1, "1", True, None, [])
TEXTS = ("", "x", 1, True, None, [], {})
VALUES = {
    ("adapter_spec",): ({}, [], None, "x"),
    ("adapter_spec", "method"): (*METHODS, "ranking_binary", *TEXTS),
    ("adapter_spec", "output_format"): ("list", "string", "List", *TEXTS),
    ("adapter_spec", "max_tokens"): WHOLE,
    ("adapter_spec", "max_train_instances"): (*WHOLE, 0.0),
    ("adapter_spec", "max_eval_instances"): WHOLE,
    ("adapter_spec", "num_train_trials"): WHOLE,
    ("adapter_spec", "temperature"): WHOLE,
    ("adapter_spec", "stop_sequences"): (["\n"], [], "\n", [1], None),
    ("adapter_spec", "instructions"): TEXTS,
    ("adapter_spec", "eval_splits"): (
        ["test"], ["valid", "test"], ["dev"], ["Validation "], [], None, ["train"], ["tset"], [""], "test", [1],
    ),
    ("adapter_spec", "decoding_parameters"): ({}, None, [], {"zzz": 1}),
    ("adapter_spec", "decoding_parameters", "top_p"): (0, 0.5, 1, 1.0, 1.5, -0.1, "1", None, True),
    ("adapter_spec", "decoding_parameters", "top_k"): WHOLE,
    ("adapter_spec", "decoding_parameters", "num_outputs"): WHOLE,
    ("adapter_spec", "decoding_parameters", "seed"): (*WHOLE, "x"),
    ("adapter_spec", "multi_label"): (True, False, None, 1, "true"),
    ("adapter_spec", "substitutions"): ([{"source": "a", "target": ""}], [{"source": "a"}], [], None, {}),
    ("adapter_spec", "zzz"): (1, None),
    ("name",): TEXTS,
    ("scoring",): ({}, None, {"strip": True}, {"strip": "yes"}, {"extract": 1}, {"metrics": "exact_match"}),
    ("zzz",): (1,),
    ("request_states",): ([state()], {}, "x", None),
    ("request_states", 0): (state(), {}, None, "x", {"instance": {}}),
    ("request_states", 0, "instance", "split"): (
        "train", "test", "valid", "validation", "dev", "TEST", " Dev ", "tset", "", "test.", 1, None,
    ),
    ("request_states", 0, "instance", "id"): (1, 1.0, 1.5, "x", "", None, True, []),
    ("request_states", 0, "instance", "references", 0, "split"): ("test", "Test", "x", None, 1),
    ("request_states", 0, "instance", "references", 0, "tags"): (["correct"], "correct", [1]),
    ("request_states", 0, "instance", "references", 0, "output"): ({"text": "mercury"}, {}, "x", None),
    ("request_states", 0, "instance", "zzz"): (1, None, {}),
    ("request_states", 0, "answer_mapping"): ({"A": 0}, {"A": 0.0}, {"A": 0.5}, {"A": "mercury"}, {"A": None}, None, []),
    ("request_states", 0, "train_trial_index"): (0, 0.0, 0.5, "0", None),
    ("request_states", 0, "request"): ({}, None, [], {"zzz": 1}),
    ("request_states", 0, "request", "result"): ({}, None, [], {"success": None}, {"success": 1}, {"request_time": 1}),
    ("request_states", 0, "request", "result", "batch_size"): WHOLE,
    ("request_states", 0, "request", "result", "completions"): (
        [{"text": "x"}], [{"text": 1}], [{"text": "x", "logprob": -1}], [{"text": "x", "logprob": "-1"}], [], None,
    ),
}  # fmt: skip


def changed(path, value):
    document = {
        "adapter_spec": {"max_train_instances": 0, "decoding_parameters": {}},
        "scoring": {},
        "request_states": [answered(state(), "x"), answered(state("Which metal is light?", "lithium"), "y")],
    }
    for row in document["request_states"]:
        row["instance"]["input"]["messages"] = [{"role": "user", "content": "Which?"}]
    holder = document
    for part in path[:-1]:
        holder = holder[part]
    holder[path[-1]] = copy.deepcopy(value)
    return document


@pytest.mark.parametrize("path", VALUES, ids=lambda path: ".".join(map(str, path)))
@pytest.mark.parametrize("lines", [False, True])
def test_reading_and_the_schema_agree(tmp_path, path, lines):
    if lines and (path == ("request_states",) or path[0] != "request_states"):
        return  # the header is read in the same way
    for value in VALUES[path]:
        document = changed(path, value)
        file = tmp_path / ("x.jsonl" if lines else "x.json")
        if lines:
            rows = document.pop("request_states")
            file.write_text("".join(json.dumps(line) + "\n" for line in (document, *rows)))
            document["request_states"] = rows
        else:
            file.write_text(json.dumps(document))
        # What contradicts itself (a method that needs options) is no matter of shape.
        errors = [p for p in problems(file) if p.severity == "error" and p.kind is not DatasetIntegrityError]
        assert is_valid(document, SCHEMA) is not bool(errors), (value, [str(error) for error in errors])


def test_the_check_can_say_no():
    assert is_valid(changed(("name",), "x"), SCHEMA)
    assert not is_valid(changed(("adapter_spec", "method"), "multiple_choise_joint"), SCHEMA)
    assert not is_valid(changed(("request_states", 0, "instance", "split"), "tset"), SCHEMA)


def test_a_whole_number_with_a_point_is_that_number(tmp_path):
    document = changed(("adapter_spec", "max_tokens"), 7.0)
    document["request_states"][0]["instance"]["id"] = 3.0
    (tmp_path / "x.json").write_text(json.dumps(document))
    evalset = request_states.load(tmp_path / "x.json")
    assert evalset.adapter_spec.max_tokens == 7
    assert isinstance(evalset.adapter_spec.max_tokens, int)
    assert evalset.instances[0].id == "3"
