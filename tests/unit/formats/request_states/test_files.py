"""Spelling of the file: both forms, compression, comments, top-level keys, and every problem with its place."""

import gzip
import hashlib
import json
import random
from pathlib import Path

import pytest
import zstandard
from helm.common.general import asdict_without_nones
from request_states_files import answered, choice, errors, problems, split_rows, state, write

from helm_ext.formats import get_format
from helm_ext.formats.request_states import check, load

DATA = Path(__file__).parents[2].parent / "data" / "request_states"


class TestSeedExample:
    """The format's own example: comments, trailing commas, both typos. It must load as it stands."""

    def test_what_it_says(self):
        path = DATA / "seed_example.json"
        evalset = load(path)
        spec = evalset.adapter_spec
        assert (spec.instance_prefix, spec.max_tokens, spec.stop_sequences) == ("\n", 5, ["\n"])
        assert (spec.temperature, spec.num_outputs, spec.max_eval_instances, spec.model) == (1.0, 1, None, "")
        assert (spec.input_prefix, spec.output_prefix, spec.max_train_instances) == ("Passage: ", "Answer: ", 5)
        assert evalset.scoring.output_format == "list"
        assert evalset.digest == hashlib.sha256(path.read_bytes()).hexdigest()
        (instance,) = evalset.instances
        assert (instance.id, instance.split) == ("id1295", "test")
        assert instance.input.text.endswith("Question: Where was the apple before the garden?")
        recorded = instance.extra_data["helm_ext"]["recorded"]
        assert recorded["status"] == "ok"
        assert recorded["states"][0]["result"]["completions"][0]["text"] == " office"
        assert recorded["states"][0]["result"]["request_time"] == 1.622053623199463

    def test_what_is_said_about_it(self):
        found, counts = check(DATA / "seed_example.json")
        assert [(problem.code, problem.severity, problem.location.line) for problem in found] == [
            ("relaxed-json", "warning", 2),
            ("not-differentiated", "warning", 22),
            ("few-rows", "warning", 22),
        ]
        assert counts == {"rows": 1, "train": 0, "eval": 1, "recorded": 1, "not_run": 0, "failed": 0}


class TestForms:
    ROWS = [answered(row, "4") for row in split_rows(6, train=2)]

    def test_one_object_and_json_lines_say_the_same(self, tmp_path):
        whole = load(write(tmp_path / "a.json", self.ROWS))
        lines = load(write(tmp_path / "a.jsonl", self.ROWS))
        compact = tmp_path / "b.json"
        compact.write_text(json.dumps({"adapter_spec": {"max_train_instances": 0}, "request_states": self.ROWS}))
        for evalset in (lines, load(compact)):
            assert evalset.adapter_spec == whole.adapter_spec
            assert [i.input for i in evalset.instances] == [i.input for i in whole.instances]
            assert [i.extra_data for i in evalset.instances] == [i.extra_data for i in whole.instances]

    @pytest.mark.parametrize(("compress", "suffix"), [(gzip.compress, ".gz"), (zstandard.compress, ".zst")])
    @pytest.mark.parametrize("form", [".json", ".jsonl"])
    def test_compressed(self, tmp_path, compress, suffix, form):
        plain = write(tmp_path / f"plain{form}", self.ROWS)
        path = tmp_path / f"rivers{form}{suffix}"
        path.write_bytes(compress(plain.read_bytes()))
        evalset = load(path)
        assert (evalset.name, len(evalset.instances)) == ("rivers", 6)
        assert evalset.digest == hashlib.sha256(path.read_bytes()).hexdigest()

    def test_an_object_under_the_name_of_json_lines(self, tmp_path):
        for indent in (None, 1):
            document = {"adapter_spec": {"max_train_instances": 0}, "request_states": self.ROWS}
            (tmp_path / "a.jsonl").write_text(json.dumps(document, indent=indent))
            assert len(load(tmp_path / "a.jsonl").instances) == 6

    @pytest.mark.parametrize("name", ["a.json", "a.jsonl"])
    def test_a_byte_order_mark_is_no_part_of_the_text(self, tmp_path, name):
        path = write(tmp_path / name, self.ROWS)
        path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
        assert len(load(path).instances) == 6

    def test_name_title_and_description(self, tmp_path):
        path = write(tmp_path / "a.b.json", self.ROWS, name="sums", display_name="Sums", description="Adding up")
        evalset = load(path)
        assert (evalset.name, evalset.display_name, evalset.description) == ("sums", "Sums", "Adding up")
        assert load(path, name="mine").name == "mine"
        assert load(write(tmp_path / "a.b.json", self.ROWS)).name == "a.b"
        assert evalset.format == "adapter_spec"
        assert evalset.counts == {"rows": 6, "train": 2, "eval": 4, "recorded": 4, "not_run": 0, "failed": 0}

    def test_json_lines_whose_header_has_an_empty_list_of_rows(self, tmp_path):
        path = write(tmp_path / "a.jsonl", self.ROWS, request_states=[])
        assert len(load(path).instances) == 6
        path = write(tmp_path / "b.jsonl", self.ROWS, request_states=self.ROWS[:1])
        assert errors(path) == [
            (
                "1: request_states: the first line holds rows, and more lines follow\n"
                '  hint: write {"adapter_spec": ...} on the first line and each row on a line of its own'
            )
        ]

    def test_a_first_line_that_is_very_long(self, tmp_path):
        rows = [answered(state(text="x" * (1 << 20)), "4")]
        assert len(load(write(tmp_path / "a.jsonl", rows)).instances) == 1
        path = tmp_path / "b.json"
        path.write_text(json.dumps({"adapter_spec": {"max_train_instances": 0}, "request_states": rows}))
        assert len(load(path).instances) == 1


class TestNumbersThatAreNone:
    """NaN and infinities are no JSON: HELM would write them into files that no browser reads."""

    def rows(self):
        found = {"logprob": float("nan"), "tokens": [{"text": "4", "logprob": float("-inf")}]}
        first = answered(state(id="a"), "4", request_time=0.5)
        second = answered(state(id="b"), "4", request_time=float("inf"), note=[float("nan")])
        second["request"]["temperature"] = float("nan")
        second["request"]["result"]["completions"][0] |= found
        second["instance"]["rank"] = {"page": float("nan"), "of": 3.5}
        return [first, second]

    @pytest.mark.parametrize("name", ["a.json", "a.jsonl"])
    def test_they_are_not_recorded(self, tmp_path, name):
        path = write(tmp_path / name, self.rows())
        evalset = load(path)
        json.dumps([one.extra_data for one in evalset.instances], allow_nan=False)
        (found,) = evalset.instances[1].extra_data["helm_ext"]["recorded"]["states"]
        assert found["request"] == {"temperature": None}
        assert found["result"] == {
            "success": True,
            "completions": [{"text": "4", "logprob": None, "tokens": [{"text": "4", "logprob": None}]}],
            "request_time": None,
            "note": [None],
        }
        assert evalset.instances[1].extra_data["helm_ext"]["data"] == {"instance": {"rank": {"page": None, "of": 3.5}}}
        assert evalset.instances[0].extra_data["helm_ext"]["recorded"]["states"][0]["result"]["request_time"] == 0.5
        (warning,) = [problem for problem in problems(path) if problem.code == "not-finite"]
        assert warning.message == "6 numbers in 1 row are NaN or infinite; treated as not recorded"
        lines = [number for number, line in enumerate(path.read_text().splitlines(), 1) if '"instance"' in line]
        assert warning.severity == "warning"
        assert warning.location.line == (3 if name == "a.jsonl" else lines[1] - 1)  # the brace before it


LAYOUT = '\n  hint: write {"adapter_spec": {...}} on it, and {"instance": {...}} for a row on each further line'
ROW = json.dumps(state())
SHAPES = {"instance": {"input": {"text": 1}, "references": [{"tags": [2]}], "split": 3}, "request": 4}
BAD = [
    ("x.jsonl", '{"question": "a"}\n{"question": "b"}\n', ['1: the first line must be {"adapter_spec": ...}, got {"question": "a"}' + LAYOUT]),
    ("x.jsonl", '{"id": "1", "messages": [], "expected": ""}\n', [
        ('1: the first line must be {"adapter_spec": ...}, got {"id": "1", "messages": [], "expected": ""}\n'
        "  hint: records with messages and expected are an Innodata dataset: helm-ext hub pack makes a bundle")]),
    ("x.jsonl", '{"adaptor_spec": {}}\n' + ROW, [
        "1: adapter_spec: missing\n  hint: 'adaptor_spec' is there: write 'adapter_spec'",
        "1: adaptor_spec: unknown key\n  hint: did you mean 'adapter_spec' or 'annotator_specs'?"]),
    ("x.jsonl", f"{ROW}\n{ROW}", [f'1: the first line must be {{"adapter_spec": ...}}, got {ROW[:79]}…{LAYOUT}']),
    ("x.jsonl", '{"adapter_spec": {}}\n', ["1: there are no rows after the first line"]),
    *(("x.json", value, [f"1: expected an object with adapter_spec and request_states, got {value}{hint}"]) for value, hint in (
        ("[]", '\n  hint: write {"adapter_spec": {...}, "request_states": [...]} around it'), ("3", ""), ('"x"', ""))),
    ("x.json", '{"adapter_spec": {},\n"request_states": []}', ["2: request_states: the list is empty: there are no rows"]),
    ("x.json", '{"adapter_spec": {},\n"request_states": 3}', ["2: request_states: expected a list, got 3"]),
    ("x.json", "{\n}", ["1: request_states: missing", "1: adapter_spec: missing"]),
    ("x.jsonl", "\n".join(['{"adapter_spec": {}}', json.dumps(state(id=1.5)), json.dumps(state(split="tset")), "{", "[]"]), [
        "2: instance.id: expected a whole number or a string, got 1.5",
        "3: instance.split: unknown split \"tset\"\n  hint: did you mean 'test'?",
        "4: not JSON: the text ends too early (column 2)",
        "5: expected an object, got []"]),
    *(("x.jsonl", f'{{"adapter_spec": {{"temperature": {word}}}}}\n{ROW}', [f"1: adapter_spec.temperature: expected {said}, got {word}"])
      for word, said in (("NaN", "a finite number"), ("Infinity", "a finite number"))),
    ("x.jsonl", '{"adapter_spec": {}}\n' + json.dumps(SHAPES), [
        '2: instance.input.text: expected a string, got 1\n  hint: write "1" in quotes',
        "2: instance.references[0].output: missing",
        '2: instance.references[0].tags[0]: expected a string, got 2\n  hint: write "2" in quotes',
        '2: instance.split: expected a string, got 3\n  hint: write "3" in quotes',
        "2: request: expected an object, got 4"]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text", "expected"), BAD)
def test_what_is_no_such_file(tmp_path, name, text, expected):
    (tmp_path / name).write_text(text)
    assert errors(tmp_path / name) == expected


class TestWrongValues:
    """One message a place, in our words, with what came and what to do."""

    def check(self, tmp_path, spec=None, row=None, **top):
        return errors(write(tmp_path / "x.json", [row or state(split="test"), state(split="train")], spec, **top))

    @pytest.mark.parametrize(("spec", "expected"), [
        ({"max_tokens": "5"}, '3: adapter_spec.max_tokens: expected a whole number, got "5"\n  hint: write the number without quotes'),
        ({"max_train_instances": -1}, "3: adapter_spec.max_train_instances: expected a whole number >= 0, got -1"),
        ({"max_eval_instances": 0}, "3: adapter_spec.max_eval_instances: expected a whole number >= 1, got 0"),
        ({"max_eval_instances": True}, "3: adapter_spec.max_eval_instances: expected a whole number, got true"),
        ({"stop_sequences": "\n"}, '3: adapter_spec.stop_sequences: expected a list, got "\\n"\n  hint: write ["\\n"]'),
        ({"input_prefix": 3}, '3: adapter_spec.input_prefix: expected a string, got 3\n  hint: write "3" in quotes'),
        ({"input_prefx": ""}, "3: adapter_spec.input_prefx: unknown key\n  hint: did you mean 'input_prefix' or 'output_prefix' or 'input_suffix'?"),
        ({"top_p": 0.5}, "3: adapter_spec.top_p: unknown key\n  hint: top_p stands in adapter_spec.decoding_parameters"),
        ({"zzz": 1}, "3: adapter_spec.zzz: unknown key"),
        ({"output_format": "lists"}, "3: adapter_spec.output_format: expected \"string\" or \"list\", got \"lists\"\n  hint: did you mean 'list'?"),
        ({"decoding_parameters": {"top_p": 2}}, "4: adapter_spec.decoding_parameters.top_p: expected a number <= 1.0, got 2"),
        ({"decoding_parameters": {"temperature": "hot"}}, '4: adapter_spec.decoding_parameters.temperature: expected a number, got "hot"\n  hint: write the number without quotes'),
        ({"decoding_parameters": {"max_tokens": 5}}, "4: adapter_spec.decoding_parameters.max_tokens: unknown key\n  hint: max_tokens stands in adapter_spec"),
        ({"decoding_parameters": {"beams": 5}}, "4: adapter_spec.decoding_parameters.beams: unknown key\n  hint: known keys: temperature, top_p, top_k, frequency_penalty, presence_penalty, num_outputs, seed"),
        ({"decoding_parameters": []}, "3: adapter_spec.decoding_parameters: expected an object, got []"),
        ({"method": "generate"}, "3: adapter_spec.method: unknown method \"generate\"\n  hint: did you mean 'generation'?"),
        ({"method": "ranking_binary"}, '3: adapter_spec.method: unknown method "ranking_binary"\n  hint: supported: generation, chat, multiple_choice_joint, multiple_choice_joint_chain_of_thought, multiple_choice_separate_original, multiple_choice_separate_calibrated'),
        ({"instance_prefix": "a", "instance_prefixw": "b"}, '4: adapter_spec.instance_prefixw: "b" contradicts adapter_spec.instance_prefix "a", which means the same\n  hint: keep one of them'),
        ({"output_format": "list", "ouput_format": "string"}, '4: adapter_spec.ouput_format: "string" contradicts adapter_spec.output_format "list", which means the same\n  hint: keep one of them'),
        ({"temperature": 1, "decoding_parameters": {"temperature": 0}}, "5: adapter_spec.decoding_parameters.temperature: 0.0 contradicts adapter_spec.temperature 1.0, which means the same\n  hint: keep one of them"),
        ({"output_mapping_pattern": "("}, '3: adapter_spec.output_mapping_pattern: "(" is no regular expression: missing ), unterminated subpattern at position 0'),
        ({"substitutions": [{"source": "("}]}, "4: adapter_spec.substitutions[0].target: missing"),
        ({"substitutions": [{"source": "(", "target": ""}]}, '5: adapter_spec.substitutions[0].source: "(" is no regular expression: missing ), unterminated subpattern at position 0'),
        ({"substitutions": [{"source": "a", "target": "", "flags": 1}]}, "7: adapter_spec.substitutions[0].flags: unknown key\n  hint: known keys: source, target"),
        ({"reference_prefix_characters": ["A", "A"]}, "3: adapter_spec.reference_prefix_characters: labels must be different and not empty"),
    ])  # fmt: skip
    def test_adapter_spec(self, tmp_path, spec, expected):
        assert self.check(tmp_path, spec) == [expected]

    def test_all_mistakes_of_a_header_at_once(self, tmp_path):
        spec = {
            "method": "multiple_choise_joint", "output_format": "List", "eval_splits": ["tset"], "max_tokens": "5",
            "decoding_parameters": {"top_p": 3, "num_outputs": 2}, "num_outputs": 1, "output_mapping_pattern": "(",
        }  # fmt: skip
        scoring = {"metrics": ["exact_mach"], "extract": "[", "strip": 1}
        for name in ("x.json", "x.jsonl"):
            found = errors(write(tmp_path / name, [state(), state(split="tset")], spec, scoring=scoring))
            assert sorted(line.split(": ")[1] for line in found) == sorted(
                [
                    "adapter_spec.method", "adapter_spec.output_format", "adapter_spec.eval_splits[0]",
                    "adapter_spec.max_tokens", "adapter_spec.decoding_parameters.top_p",
                    "adapter_spec.decoding_parameters.num_outputs", "adapter_spec.output_mapping_pattern",
                    "scoring.strip",
                    "request_states[1].instance.split" if name == "x.json" else "instance.split",
                ]
            )  # fmt: skip

    @pytest.mark.parametrize(("top", "expected"), [
        ({"titel": "x"}, "titel: unknown key\n  hint: known keys: $schema, name, display_name, description, adapter_spec, scoring, source, annotator_specs, request_states"),
        ({"request_state": []}, "request_state: unknown key\n  hint: did you mean 'request_states'?"),
        ({"max_tokens": 1}, "max_tokens: unknown key\n  hint: max_tokens stands in adapter_spec"),
        ({"name": 3}, 'name: expected a string, got 3\n  hint: write "3" in quotes'),
        ({"scoring": {"metric": []}}, "scoring.metric: unknown key\n  hint: did you mean 'metrics' or 'main_metric' or 'extract'?"),
        ({"scoring": {"strip": "yes"}}, 'scoring.strip: expected true or false, got "yes"'),
    ])  # fmt: skip
    def test_top_level(self, tmp_path, top, expected):
        (error,) = self.check(tmp_path, **top)
        assert error.endswith(expected)

    @pytest.mark.parametrize(("row", "expected"), [
        ({}, ".instance: missing"),
        ("x", ': expected an object, got "x"\n  hint: write {"instance": {"input": {"text": "x"}}}'),
        ({"instance": {}}, ".instance.input: missing"),
        (state(42), '.instance.input.text: expected a string, got 42\n  hint: write "42" in quotes'),
        (state(references=[{"output": {"text": "y"}, "tags": "correct"}]), '.instance.references[0].tags: expected a list, got "correct"\n  hint: write ["correct"]'),
        (state(id=True), ".instance.id: expected a whole number or a string, got true"),
        ({**state(), "answer_mapping": {"A": 1.5}}, ".answer_mapping.A: expected a string or a whole number, got 1.5"),
        ({**state(), "answer_mapping": {"a b": None}}, '.answer_mapping["a b"]: expected a string or a whole number, got null'),
        ({**state(), "request_mode": "x"}, '.request_mode: expected "original" or "calibration", got "x"'),
    ])  # fmt: skip
    def test_rows(self, tmp_path, row, expected):
        (error,) = errors(write(tmp_path / "x.json", [row, state("Other?", split="test")]))
        line, said = error.split(": ", 1)
        assert said == f"request_states[0]{expected}"
        assert line.isdecimal()

    def test_an_integer_of_more_than_64_bits_is_an_id(self, tmp_path):
        big = 12345678901234567890123
        for name in ("x.json", "x.jsonl"):
            path = write(tmp_path / name, [state(id=big), state("Other?", id=7)])
            assert [instance.id for instance in load(path).instances] == [str(big), "7"]


class TestJsonSchema:
    SCHEMA = get_format("adapter_spec").json_schema()

    def test_what_it_says_of_itself(self):
        assert self.SCHEMA["$schema"] == "https://json-schema.org/draft/2020-12/schema"
        assert self.SCHEMA["title"] == "adapter_spec + request_states"
        assert self.SCHEMA["required"] == ["adapter_spec", "request_states"]
        assert set(self.SCHEMA["properties"]) == {
            "$schema", "name", "display_name", "description", "scoring", "source", "annotator_specs", "adapter_spec",
            "request_states",
        }  # fmt: skip
        assert all("description" in key for key in self.SCHEMA["$defs"]["ScoringShape"]["properties"].values())

    def test_every_key_is_described(self):
        for name, model in {**self.SCHEMA["$defs"], "file": self.SCHEMA}.items():
            assert model.get("description"), name
            for key, value in model["properties"].items():
                assert value.get("description") or "$ref" in value, (name, key)


def shuffled(value, rng):
    """Return the same JSON value with the keys of its objects in another order."""
    if isinstance(value, list):
        return [shuffled(item, rng) for item in value]
    if not isinstance(value, dict):
        return value
    items = [(key, shuffled(item, rng)) for key, item in value.items()]
    rng.shuffle(items)
    return dict(items)


@pytest.mark.long
@pytest.mark.parametrize("own_keys", ["none", "some rows", "all rows"])
@pytest.mark.parametrize("name", ["x.jsonl", "x.json"])
@pytest.mark.parametrize("method", ["chat", "generation", "multiple_choice_joint"])
def test_the_order_of_keys_does_not_count(method, name, own_keys, tmp_path):
    """Rows with keys of their own are read by another parser; which rows are drawn must not depend on that."""
    rows = []
    for number in range(40):
        row = answered(choice(f"Question {number}?", ["a", "b", "c"], number % 3), "B", request_time=0.5 + number)
        row["instance"]["input"]["messages"] = [
            {"role": "system", "content": "Answer."},
            {"role": "user", "content": f"Question {number}?", **({"name": "x"} if number % 5 == 0 else {})},
        ]
        if method == "chat":
            del row["instance"]["input"]["text"]
        row["request"] = {"prompt": f"Question {number}?", "temperature": 0.5, **row["request"]}
        if own_keys == "all rows" or (own_keys == "some rows" and number % 3 == 0):
            row["note"] = number
        rows.append(row)
    spec = {"method": method, "max_train_instances": 0 if method == "chat" else 2, "reference_prefix": "A. "}
    path = tmp_path / name

    def read(states):
        write(path, states, {**spec, "max_eval_instances": 9})
        return [asdict_without_nones(instance) for instance in load(path).instances]

    expected = read(rows)
    assert len(expected) > 9
    rng = random.Random(7)
    for _ in range(3):
        assert read([shuffled(row, rng) for row in rows]) == expected
    without_notes = [{key: value for key, value in row.items() if key != "note"} for row in rows]
    drawn = [(row["id"], row["split"]) for row in expected]
    assert [(row["id"], row["split"]) for row in read(without_notes)] == drawn
