"""From a bundle to an EvalSet: what HELM is given."""

import dataclasses
import hashlib
import json
import zipfile
from collections import Counter
from pathlib import Path

import pytest
from helm.benchmark.adaptation.adapter_spec import AdapterSpec

from helm_ext import hub
from helm_ext.adaptation.rows import select
from helm_ext.errors import DatasetError, DatasetIntegrityError, RunEntryError
from helm_ext.formats.innodata.format import FORMAT
from helm_ext.formats.innodata.hub import pack
from helm_ext.formats.innodata.loading import check, load
from helm_ext.formats.innodata.replies import render_text
from helm_ext.scoring.breakdown import describe_breakdown
from helm_ext.scoring.registry import get_scores
from helm_ext.scoring.scores.ultraeval import EXECUTING

CHAT = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "2+2?"},
    {"role": "assistant", "content": "4"},
    {"role": "user", "content": "And 3+3?"},
]


def write_lines(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture
def bundle(tmp_path):
    rows = [
        {"id": "a", "messages": CHAT, "expected": "6", "topic": "sums", "hard": False},
        {"id": "b", "messages": CHAT[1:2], "expected": "", "topic": "sums", "note": "x" * 100},
        {"id": "c", "messages": CHAT[1:2], "expected": "4", "topic": "other", "severity": "low", "note": "y"},
    ]
    test = write_lines(tmp_path / "t.jsonl", rows)
    train = write_lines(tmp_path / "r.jsonl", [{"id": "d", "messages": CHAT[1:2], "expected": "4"}])
    attributes = {"severity": "high", "level": 3, "description": "Small sums", "tags": ["x"]}
    return pack(name="sums", test=test, train=train, attributes=attributes, target=tmp_path).path


def test_chat(bundle):
    evalset = load(path=bundle)
    assert (evalset.name, evalset.format) == ("sums", "innodata")
    assert evalset.digest == hashlib.sha256(bundle.read_bytes()).hexdigest()
    assert evalset.description == "Small sums"
    assert evalset.tags == ("level=3", "severity=high")
    assert evalset.counts == {"rows": 3, "eval": 3}
    assert evalset.warnings == ()
    first, second, _ = evalset.instances
    assert first.input.messages == CHAT
    assert first.input.text == ""
    assert [(reference.output.text, reference.tags) for reference in first.references] == [("6", ["correct"])]
    assert (first.split, first.id) == ("test", "a")
    assert second.references[0].output.text == ""
    assert evalset.adapter_spec == AdapterSpec(
        method="chat", instructions="", input_prefix="", input_suffix="", reference_prefix="", reference_suffix="",
        output_prefix="", output_suffix="", instance_prefix="", max_train_instances=0, num_outputs=1, max_tokens=512,
        temperature=0.0, stop_sequences=[],
    )  # fmt: skip
    assert set(evalset.scoring.metrics) <= set(get_scores())
    assert evalset.scoring.main_metric == "expected_contains"


def test_attributes_of_rows_and_of_the_dataset(bundle):
    evalset = load(path=bundle)
    assert evalset.attributes == {
        "hard": ("false",),
        "level": ("3",),
        "severity": ("high", "low"),
        "topic": ("other", "sums"),
    }
    extras = [instance.extra_data["helm_ext"] for instance in evalset.instances]
    assert extras[0]["attributes"] == {"hard": "false", "level": "3", "severity": "high", "topic": "sums"}
    assert extras[2]["attributes"] == {"level": "3", "severity": "low", "topic": "other"}
    assert extras[1]["data"] == {"topic": "sums", "note": "x" * 100}


def test_too_many_values_are_no_attribute(tmp_path):
    rows = [{"id": str(i), "messages": CHAT[1:2], "expected": "", "k": i, "m": i % 20} for i in range(21)]
    packed = pack(name="many", test=write_lines(tmp_path / "t.jsonl", rows), target=tmp_path)
    assert list(load(path=packed.path).attributes) == ["m"]


def test_records_without_a_value(tmp_path):
    """One record with null does not cost all others their table."""
    values = ["high", None, "", " ", "low"]
    rows = [{"id": str(i), "messages": CHAT[1:2], "expected": "", "severity": v} for i, v in enumerate(values)]
    packed = pack(
        name="gaps", test=write_lines(tmp_path / "t.jsonl", rows), attributes={"severity": "mid"}, target=tmp_path
    )
    evalset = load(path=packed.path)
    assert evalset.attributes == {"severity": ("high", "low")}
    own = [instance.extra_data["helm_ext"].get("attributes") for instance in evalset.instances]
    assert own == [{"severity": "high"}, None, None, None, {"severity": "low"}]


def test_a_value_that_divides_no_report_costs_its_own_record_alone_and_is_said(tmp_path):
    values = ["high", ["low"], "low", "x" * 41, "low", None]
    rows = [{"id": str(i), "messages": CHAT[1:2], "expected": "", "severity": v} for i, v in enumerate(values)]
    test = write_lines(tmp_path / "t.jsonl", rows)
    bundle = pack(name="odd", test=test, attributes={"severity": ["any"]}, target=tmp_path).path
    evalset = load(path=bundle)
    assert evalset.attributes == {"severity": ("high", "low")}
    own = [instance.extra_data["helm_ext"].get("attributes") for instance in evalset.instances]
    assert own == [{"severity": "high"}, None, {"severity": "low"}, None, {"severity": "low"}, None]
    [warning] = evalset.warnings
    assert str(warning) == (
        f'{bundle}/test.jsonl:2: severity: ["low"] is no value that reports can be grouped by: 2 records are in no '
        "group of severity\n"
        "  hint: a text of at most 40 characters, a whole number, true or false; null for none"
    )
    assert check(bundle)[0] == [warning]


def test_long_and_unprintable_names_are_no_attributes(tmp_path):
    names = {"n" * 41: "a", "line\nbreak": "b", "": "c", "n" * 40: "d", "a/b": "n/a"}
    rows = [{"id": "1", "messages": CHAT[1:2], "expected": "", **names}]
    packed = pack(name="names", test=write_lines(tmp_path / "t.jsonl", rows), target=tmp_path)
    evalset = load(path=packed.path)
    assert evalset.attributes == {"a/b": ("n/a",), "n" * 40: ("d",)}
    described = describe_breakdown({}, "expected_contains", evalset.attributes)
    assert [metadata.group for metadata in described] == ["by_a_b", "by_" + "n" * 40]  # become file names
    assert described[0].name == "expected_contains@a/b=n/a"


def test_text(bundle):
    evalset = load(path=bundle, render="text", max_tokens=9, temperature=0.5)
    text = "System: Be brief.\n\nUser: 2+2?\n\nAssistant: 4\n\nUser: And 3+3?\n\nAssistant:"
    assert render_text(CHAT) == text
    assert evalset.instances[0].input.text == text
    assert evalset.instances[0].input.messages is None
    spec = evalset.adapter_spec
    assert (spec.method, spec.max_tokens, spec.temperature) == ("generation", 9, 0.5)
    assert spec.stop_sequences == ["\n\nUser:"]
    assert load(path=bundle, render="text", stop=["###"]).adapter_spec.stop_sequences == ["###"]
    assert load(path=bundle, render="text", stop=[]).adapter_spec.stop_sequences == []


def test_split_and_limit_and_scoring(bundle):
    evalset = load(path=bundle, split="train", metrics=["refusal_match"], main_metric="refusal_match", lower=True)
    assert [instance.id for instance in evalset.instances] == ["d"]
    assert evalset.instances[0].split == "test"
    assert evalset.scoring.to_args() == {
        "metrics": ["refusal_match"],
        "main_metric": "refusal_match_low",
        "lower": True,
    }
    limited = load(path=bundle, limit=2)
    assert [instance.id for instance in limited.instances] == ["a", "b"]
    assert limited.counts == {"rows": 3, "eval": 2}


@pytest.mark.parametrize("options", [{}, {"path": "x.zip", "dataset": "x"}])
def test_a_dataset_or_a_file_is_needed(options):
    with pytest.raises(RunEntryError, match="exactly one of dataset and path is needed"):
        load(**options)


@pytest.mark.parametrize(("options", "message"), [
    ({"version": 2}, "version=2: a file has no versions\n  hint: dataset=NAME,version=2 reads from the hub"),
    ({"hub": "there"}, "hub=there: a file is in no hub\n  hint: dataset=NAME,hub=there reads from the hub"),
    ({"split": "dev"}, "split=dev: expected test or train"), ({"render": "html"}, "render=html: expected chat or text"),
    ({"limit": 0}, "limit=0: expected a positive whole number"),
    ({"max_tokens": 0}, "max_tokens=0: expected a positive whole number"),
    ({"max_tokens": -1}, "max_tokens=-1: expected a positive whole number"),
    ({"extract": "(x"}, "extract=(x: not a regular expression: missing ), unterminated"),
    ({"metrics": ["exact_macht"]}, "unknown metric \"exact_macht\"\n  hint: did you mean 'exact_match'"),
    ({"main_metric": "refusal_mtch"}, "unknown metric \"refusal_mtch\"\n  hint: did you mean 'refusal_match'"),
    ({"metrics": ["zzz"]}, 'unknown metric "zzz"\n  hint: for example expected_exact'),
    # Records may hold what UltraEval's HumanEval rows hold; naming its metric must not run a model's code.
    *(({"metrics": [name]}, f'"{name}" cannot be measured here: it ') for name in (*EXECUTING, "pass", "code_eval_acc")),
    *(({"main_metric": name}, f'"{name}" cannot be measured here: it ') for name in (*EXECUTING, "pass")),
])  # fmt: skip
def test_options_that_make_no_sense(bundle, options, message):
    with pytest.raises(RunEntryError) as caught:
        load(path=bundle, **options)
    assert str(caught.value).startswith(message)
    (problem,), counts = check(bundle, **options)
    assert (problem.message, problem.hint) == tuple(f"{caught.value}\n  hint: ".split("\n  hint: ")[:2])
    assert counts == {"test": 3, "train": 1, "rows": 4}


def test_with_a_limit_digests_are_compared_all_the_same(bundle):
    with zipfile.ZipFile(bundle) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    members["test.jsonl"] = members["test.jsonl"].replace(b'"note": "y"', b'"note": "z"')
    with zipfile.ZipFile(bundle, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    with pytest.raises(DatasetError, match="test_digest: "):
        load(path=bundle, limit=1)


def test_what_a_limit_leaves_unchecked_a_load_of_all_and_validate_find(tmp_path):
    rows = [{"id": str(n), "messages": [{"role": "user", "content": "2+2?"}], "expected": "4"} for n in range(9)]
    data = "".join(json.dumps(row) + "\n" for row in [*rows, rows[0], {"id": "x"}]).encode()
    meta = {"name": "sums", "test_size": 11, "train_size": 0}
    meta |= {"test_digest": hashlib.sha256(data).hexdigest(), "train_digest": hashlib.sha256(b"").hexdigest()}
    with zipfile.ZipFile(tmp_path / "sums.zip", "w") as archive:
        archive.writestr("test.jsonl", data)
        archive.writestr("train.jsonl", b"")
        archive.writestr("meta.json", json.dumps(meta))
    assert len(load(path=tmp_path / "sums.zip", limit=9).instances) == 9
    for use in (lambda: load(path=tmp_path / "sums.zip"), lambda: load(path=tmp_path / "sums.zip", limit=11)):
        with pytest.raises(DatasetError, match="occurs already in test.jsonl:1"):
            use()
    assert {problem.code for problem in check(tmp_path / "sums.zip")[0]} == {"duplicate-id", "missing-key"}


def test_commas_in_a_hubs_path():
    """HELM splits run entries at commas, so paths are written with %2C."""
    assert FORMAT.parse({"hub": "a%2Cb/hub"}) == {"hub": "a,b/hub"}
    assert FORMAT.parse({"hub": "s3://bucket/hub"}) == {"hub": "s3://bucket/hub"}


def test_from_the_hub(tmp_path, bundle):
    root = str(tmp_path / "hub")
    hub.upload(bundle, root)
    pack(name="sums", test=tmp_path / "r.jsonl", target=tmp_path, replace=True)
    hub.upload(bundle, root)
    newest = load(dataset="sums", hub=root)
    assert newest.display_name == "sums v2"
    assert newest.description == "Chat dataset sums v2, test split"
    assert newest.warnings == ()
    frozen = load(dataset="sums", version=1, hub=root)
    assert len(frozen.instances) == 3
    assert [problem.message for problem in frozen.warnings] == ["sums is frozen to version 1; version 2 is the newest"]


# Recorded replies


def test_replies(tmp_path, bundle):
    lines = [{"id": "c", "reply": "4"}, {"id": "a", "reply": "", "request_time": 0.5}, {"id": "b", "reply": None}]
    replies = write_lines(tmp_path / "replies.jsonl", lines)
    evalset = load(path=bundle, replies=replies)
    recorded = [instance.extra_data["helm_ext"]["recorded"] for instance in evalset.instances]
    assert recorded == [
        {"status": "ok", "states": [{"result": {"success": True, "completions": [{"text": ""}], "request_time": 0.5}}]},
        {"status": "not_run", "states": []},
        {"status": "ok", "states": [{"result": {"success": True, "completions": [{"text": "4"}]}}]},
    ]
    assert evalset.counts == {"rows": 3, "recorded": 2, "not_run": 1, "eval": 3}
    plain = load(path=bundle)
    both = f"{plain.digest}\n{hashlib.sha256(replies.read_bytes()).hexdigest()}\n"
    assert evalset.digest == hashlib.sha256(both.encode()).hexdigest()
    assert evalset.question_digest == plain.question_digest == plain.digest  # one column, whoever replied
    assert [instance.id for instance in load(path=bundle, replies=replies, limit=1).instances] == ["a"]


@pytest.mark.parametrize(("line", "message"), [
    ({"reply": "x"}, "1: id: missing"),
    ({"id": 1, "reply": "x"}, '1: id: expected a string, got 1\n  hint: write "1" in quotes'),
    ({"id": "a"}, "1: reply: missing\n  hint: write null for a record that was not run"),
    ({"id": "a", "text": "x"}, ("1: text: unknown key\n  hint: known: id, reply, request_time, request_datetime\n"
                               '{replies}:1: reply: missing\n  hint: rename "text" to "reply"')),
    ({"id": "a", "reply": 4}, '1: reply: expected a string or null, got 4\n  hint: write "4" in quotes'),
    ({"id": "a", "reply": "x", "model": "m"}, "1: model: unknown key\n  hint: known: id, reply, request_time, request_datetime"),
    ({"id": "a", "reply": "x", "request_time": "1"}, '1: request_time: expected a number that is not negative, got "1"'),
    ({"id": "z", "reply": "x"}, '1: id: "z" is no record of the test split of sums\n  hint: replies belong to one split of one dataset'),
    ({"id": "d", "reply": "x"}, '1: id: "d" is no record of the test split of sums\n  hint: replies belong to one split of one dataset'),
    ({"id": "a", "reply": "x", "request_time": -5}, "1: request_time: expected a number that is not negative, got -5"),
    ({"id": "a", "reply": "x", "request_datetime": -0.5}, "1: request_datetime: expected a number that is not negative, got -0.5"),
    (["a"], "1: a JSON array, expected one object a line\n  hint: jq -c '.[]' FILE writes an array so"),
])  # fmt: skip
def test_bad_replies(tmp_path, bundle, line, message):
    replies = write_lines(tmp_path / "replies.jsonl", [line])
    with pytest.raises(DatasetError) as caught:
        load(path=bundle, replies=replies)
    assert str(caught.value) == f"{replies}:{message}".replace("{replies}", str(replies))


def test_replies_of_a_limited_dataset(tmp_path, bundle):
    """Records beyond the limit may have replies, an id that no record has is still an error."""
    replies = write_lines(tmp_path / "replies.jsonl", [{"id": "c", "reply": "4"}, {"id": "a", "reply": "6"}])
    assert load(path=bundle, replies=replies, limit=1).counts == {"rows": 3, "recorded": 1, "not_run": 0, "eval": 1}
    write_lines(replies, [{"id": "a", "reply": "6"}, {"id": "A", "reply": "6"}])
    with pytest.raises(DatasetIntegrityError, match=':2: id: "A" is no record of the test split of sums'):
        load(path=bundle, replies=replies, limit=1)


def test_blank_lines_between_replies_are_errors_as_between_records(tmp_path, bundle):
    replies = tmp_path / "replies.jsonl"
    replies.write_text('{"id": "a", "reply": "6"}\n\n{"id": "b", "reply": ""}\n\n')
    with pytest.raises(DatasetError) as caught:
        load(path=bundle, replies=replies)
    assert str(caught.value) == f"{replies}:2: blank line\n  hint: remove it"
    replies.write_text('{"id": "a", "reply": "6"}\n{"id": "b", "reply": ""}\n \n\n')
    assert load(path=bundle, replies=replies).counts["recorded"] == 2


def test_a_model_is_not_asked_where_replies_are_to_be_scored(tmp_path, bundle):
    evalset = load(path=bundle, replies=write_lines(tmp_path / "replies.jsonl", [{"id": "a", "reply": "6"}]))
    spec = dataclasses.replace(evalset.adapter_spec, model_deployment="openai/gpt-4")
    with pytest.raises(RunEntryError) as caught:
        select(evalset.instances, spec, "live")
    assert str(caught.value) == (
        "openai/gpt-4 would be asked, but the 3 rows are there for their recorded completions\n"
        "  hint: model=recorded/NAME scores those; to ask the model, leave out replies=FILE (innodata:), or leave rows "
        "beside the demonstrations: fewer with max_train_instances=N (adapter_spec:)"
    )
    assert len(select(evalset.instances, spec, "recorded")) == 3


def test_metrics(bundle):
    scoring = load(path=bundle, metrics=["refusal_match", "rouge_l"]).scoring
    assert (scoring.metrics, scoring.main_metric) == (("refusal_match", "rouge_l"), "refusal_match_low")
    scoring = load(path=bundle, metrics=["expected_f1"], main_metric="refusal_match").scoring
    assert (scoring.metrics, scoring.main_metric) == (("expected_f1", "refusal_match"), "refusal_match_low")
    assert load(path=bundle, metrics=["rouge_l", "rouge_l"]).scoring.metrics == ("rouge_l",)


# check


def test_replies_are_checked(tmp_path, bundle):
    lines = [{"id": "a", "reply": "4"}, {"id": "b", "reply": None}, {"id": "c", "reply": "4"}]
    replies = write_lines(tmp_path / "replies.jsonl", lines)
    (warning,), counts = check(bundle, replies=replies)
    assert (warning.severity, warning.code) == ("warning", "not-run")
    assert warning.message == "1 of 3 records of the test split of sums have no reply; a run refuses the file"
    assert counts == {"test": 3, "train": 1, "rows": 4, "recorded": 2, "not_run": 1}
    assert check(bundle, replies=replies, limit=1) == ([], {**counts, "recorded": 1, "not_run": 0})
    (problem,) = check(bundle, replies=tmp_path / "none.jsonl")[0]
    assert problem.message == "replies cannot be read: No such file or directory"
    replies.write_text(json.dumps(lines, indent=1))
    hint = "jq -c '.[]' FILE writes an array so"
    assert [*map(str, check(bundle, replies=replies)[0])] == [
        f"{replies}:1: a JSON array, expected one object a line\n  hint: {hint}"
    ]


def test_the_problems_of_bundle_arguments_and_replies_at_once(tmp_path, bundle):
    replies = write_lines(tmp_path / "replies.jsonl", [{"id": "z", "reply": "4"}, {"id": "a", "reply": 4}])
    found, _ = check(bundle, replies=replies, metrics=["nothing"], limit=0)
    assert [(problem.location.path, problem.location.line, problem.code) for problem in found] == [
        *[(str(bundle), None, "argument")] * 2, (str(replies), 1, "unknown-id"), (str(replies), 2, "reply-type"),
    ]  # fmt: skip
    bundle.write_bytes(b"PK")  # ids are not compared with those of a damaged one
    found, _ = check(bundle, replies=replies)
    assert [problem.code for problem in found] == ["not-a-zip", "reply-type"]


def test_an_empty_train_split(tmp_path):
    test = write_lines(tmp_path / "t.jsonl", [{"id": "a", "messages": CHAT, "expected": ""}])
    path = pack(name="sums", test=test, target=tmp_path).path
    (problem,) = check(path, split="train")[0]
    assert (problem.message, problem.hint) == ("the train split is empty", "split=test is evaluated by default")


def test_the_example(tmp_path):
    """24 replies: 13 hold the expected words, 21 refuse or answer as expected (one leaks, one obeys, one is too shy)."""
    folder = Path(__file__).parents[4] / "examples" / "innodata"
    packed = pack(name="front-desk", test=folder / "test.jsonl", train=folder / "train.jsonl", target=tmp_path)
    evalset = load(path=packed.path, replies=folder / "replies.jsonl")
    assert evalset.counts == {"rows": 24, "recorded": 24, "not_run": 0, "eval": 24}
    assert list(evalset.attributes) == ["language", "severity", "topic"]
    right = Counter()
    for instance in evalset.instances:
        (state,) = instance.extra_data["helm_ext"]["recorded"]["states"]
        gold, reply = instance.references[0].output.text, state["result"]["completions"][0]["text"]
        for name in ("expected_contains", "expected_exact"):
            right[name] += get_scores()[name].function(gold, reply)
        right.update(get_scores()["refusal_match"].row_function({}, [gold], reply))
    assert right == {
        "expected_contains": 13, "expected_exact": 4, "refusal_golds": 7,
        "refusal_match_low": 21, "refusal_match_high": 21, "refusal_unclear": 0,
    }  # fmt: skip


def make_rows(*rows):
    return [
        {"id": str(number), "messages": [{"role": "user", "content": "?"}], **row} for number, row in enumerate(rows)
    ]


@pytest.mark.parametrize(("rows", "codes"), [
    ([{"expected": "I'm sorry, I can't help with that."}, {"expected": "4"}], []),
    ([{"expected": "4"}, {"expected": "5"}], ["no-refusals"]),
    ([{"expected": "4", "refusal": True}, {"expected": "5"}], []),
    ([{"expected": "I refuse to answer.", "refusal": False}], ["no-refusals"]),
    ([{"expected": "I refuse to answer.", "refusal": "yes"}], ["refusal-key"]),
])  # fmt: skip
def test_data_without_refusals_warns_who_asks_for_refusal_match(tmp_path, rows, codes):
    test = write_lines(tmp_path / "t.jsonl", make_rows(*rows))
    path = pack(name="refusals", test=test, train=write_lines(tmp_path / "r.jsonl", []), target=tmp_path).path
    for asked in ({"metrics": ["refusal_match"]}, {"main_metric": "refusal_match"}):
        assert [warning.code for warning in load(path=path, **asked).warnings] == codes
    assert not load(path=path).warnings
