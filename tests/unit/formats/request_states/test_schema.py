"""The JSON Schema says yes and no where reading does: an editor must neither hide a mistake nor invent one."""

import copy
import json

import pytest
from jsonschema import Draft202012Validator
from request_states_files import answered, problems, state

from helm_ext.errors import DatasetIntegrityError
from helm_ext.formats import request_states
from helm_ext.formats.request_states import checking
from helm_ext.formats.request_states.shapes import METHODS

SCHEMA = Draft202012Validator(checking.json_schema())

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
    ("adapter_spec", "substitutions"): ([{"source": "a", "target": ""}], [{"source": "a"}], [], None, {}, [{"source": "", "target": "", "zzz": 1}]),
    ("adapter_spec", "zzz"): (1, None),
    ("name",): TEXTS,
    ("scoring",): ({}, None, {"strip": True}, {"strip": "yes"}, {"extract": 1}, {"metrics": "exact_match"}, {"zzz": 1}),
    ("source",): ({"tool": "judge"}, {}, None, {"tool": "judge", "zzz": 1}, {"tool": "judge", "scores": {"a": {"zzz": 1}}}),
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
        assert SCHEMA.is_valid(document) is not bool(errors), (value, [str(error) for error in errors])


def test_the_check_can_say_no():
    assert SCHEMA.is_valid(changed(("name",), "x"))
    assert not SCHEMA.is_valid(changed(("adapter_spec", "method"), "multiple_choise_joint"))
    assert not SCHEMA.is_valid(changed(("request_states", 0, "instance", "split"), "tset"))


def test_a_whole_number_with_a_point_is_that_number(tmp_path):
    document = changed(("adapter_spec", "max_tokens"), 7.0)
    document["request_states"][0]["instance"]["id"] = 3.0
    (tmp_path / "x.json").write_text(json.dumps(document))
    evalset = request_states.load(tmp_path / "x.json")
    assert evalset.adapter_spec.max_tokens == 7
    assert isinstance(evalset.adapter_spec.max_tokens, int)
    assert evalset.instances[0].id == "3"
