"""`helm-ext convert`: what comes back is what went in, or is listed as lost."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from helm_ext import hub
from helm_ext.cli.convert import convert
from helm_ext.errors import DatasetIntegrityError, HelmExtError, RunEntryError
from helm_ext.evalset import EXTRA_KEY, row_extra
from helm_ext.formats import request_states
from helm_ext.formats.innodata import loading
from helm_ext.formats.request_states.writing import to_json_lines
from helm_ext.formats.ultraeval.format import FORMAT as ULTRAEVAL
from helm_ext.formats.ultraeval.scoring import MetricChoice, TaskFacts

REPOSITORY = Path(__file__).parents[3]
CHAT = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "2+2?"}]


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    app = typer.Typer()
    app.command()(convert)

    def run(*arguments):
        done = CliRunner().invoke(app, [str(argument) for argument in arguments])
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return done

    return run


def write_bundle(tmp_path, **attributes):
    rows = [
        {"id": "a", "messages": CHAT, "expected": "4", "note": ["x"]},
        {"id": "b", "messages": CHAT[1:], "expected": ""},
    ]
    (tmp_path / "t").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "r").write_text(json.dumps({"id": "c", "messages": CHAT, "expected": "four"}) + "\n")
    return hub.pack(name="sums", test=tmp_path / "t", train=tmp_path / "r", attributes=attributes, target=tmp_path).path


def write_file(tmp_path, states, name="qa", scoring=None, **spec):
    prompt = {"input_prefix": "Q: ", "input_suffix": "\n", "output_prefix": "A: ", "max_train_instances": 0}
    value = {"adapter_spec": {"method": "generation", **prompt, **spec}, "request_states": states}
    if scoring:
        value["scoring"] = scoring
    path = tmp_path / f"{name}.json"
    path.write_text(json.dumps(value))
    return path


def state(record_id, text="2+2?", gold="4", split="test", reply=None, **instance):
    references = [{"output": {"text": gold}, "tags": ["correct"]}]
    made = {
        "instance": {"id": record_id, "input": {"text": text}, "references": references, "split": split, **instance}
    }
    return (
        made if reply is None else {**made, "request": {"result": {"success": True, "completions": [{"text": reply}]}}}
    )


def plain(evalset):
    """What a run sees of an EvalSet, without where it came from."""
    keep = ("decoding", "labels", "data", "recorded", "score")
    return [
        (i.id, i.input, i.references, i.split, {key: value for key, value in row_extra(i).items() if key in keep})
        for i in evalset.instances
    ]


def test_a_bundle_to_json_lines(tmp_path, run):
    path = write_bundle(tmp_path)
    done = run(path, "sums.jsonl")
    assert done.stdout == "sums.jsonl: 3 rows\n"
    before, after = loading.load(path=path), request_states.load("sums.jsonl")
    assert [instance.id for instance in after.instances if instance.split == "train"] == ["c"]
    found = [row for row in plain(after) if row[3] == "test"]
    for (id1, input1, references1, _, _), (id2, input2, references2, _, _) in zip(plain(before), found, strict=True):
        assert (id1, input1.messages, references1) == (id2, input2.messages, references2)
    assert row_extra(after.instances[-2])["data"] == {"instance": {"note": ["x"]}}
    assert (after.adapter_spec.method, after.adapter_spec.max_tokens) == ("chat", 512)
    assert after.scoring.main_metric == before.scoring.main_metric
    assert set(after.scoring.metrics) == set(before.scoring.metrics)


def test_attributes_of_a_bundle_are_a_loss(tmp_path, run):
    path = write_bundle(tmp_path, severity="high")
    with pytest.raises(DatasetIntegrityError) as caught:
        run(path, "sums.jsonl")
    assert str(caught.value) == (
        "sums: converting it would lose:\n"
        "  - reports by attribute (severity): an adapter_spec file has none; records keep their own keys\n"
        "  hint: --lossy converts it all the same"
    )
    assert not (tmp_path / "sums.jsonl").exists()
    done = run(path, "sums.jsonl", "--lossy")
    assert done.stderr.startswith("lost: reports by attribute (severity)")
    with pytest.raises(DatasetIntegrityError, match="exists\n  hint: --replace"):
        run(path, "sums.jsonl", "--lossy")
    run(path, "sums.jsonl", "--lossy", "--replace", "--arg", "limit=1", "--arg", "metrics=refusal_match")
    assert request_states.load("sums.jsonl").scoring.metrics == ("refusal_match",)


@pytest.mark.parametrize("name", sorted(path.name for path in (REPOSITORY / "adapter_specs").glob("*.json*")))
def test_adapter_spec_files_come_back_equal(tmp_path, name):
    source = REPOSITORY / "adapter_specs" / name
    before = request_states.load(source)
    to_json_lines(before, tmp_path / "x.jsonl")
    after = request_states.load(tmp_path / "x.jsonl")
    assert plain(after) == plain(before)
    assert replace(after.adapter_spec, max_eval_instances=None) == replace(before.adapter_spec, max_eval_instances=None)
    assert after.scoring == before.scoring


def test_ultraeval(tmp_path, run):
    config = sorted((REPOSITORY / "examples" / "ultraeval").rglob("*.json"))
    configs = [path for path in config if '"transform"' in path.read_text()]
    assert configs
    from helm_ext.formats.ultraeval import loading as ultraeval

    evalset = ultraeval.load(config=configs[0])
    done = run(configs[0], "u.jsonl", "--lossy")
    assert f"u.jsonl: {len(evalset.instances)} rows" in done.stdout
    after = request_states.load("u.jsonl")
    wanted = ["".join(row_extra(i).get("prompt", [i.input.text])) for i in evalset.instances]
    assert [instance.input.text for instance in after.instances] == wanted


def test_rows_that_differ_in_ways_a_file_cannot_say(tmp_path):
    evalset = request_states.load(write_file(tmp_path, [state("a"), state("b")]))
    first, second = evalset.instances
    extra = {"decoding": {"top_p": 0.5}, "score": {"4": 0.5}, "only": "live"}
    changed = replace(first, extra_data={EXTRA_KEY: {**row_extra(first), **extra}})
    with pytest.raises(DatasetIntegrityError) as caught:
        to_json_lines(replace(evalset, instances=[changed, second]), tmp_path / "x.jsonl")
    for loss in ("decoding parameters that differ", "worth a number", "rows that take part in live runs only"):
        assert loss in str(caught.value)
    exact = replace(evalset, scoring=replace(evalset.scoring, label_reading="exact"))
    with pytest.raises(DatasetIntegrityError, match="HELM's own exact reading of labels"):
        to_json_lines(exact, tmp_path / "x.jsonl")


def test_the_output_of_helms_own_run_comes_back(tmp_path):
    rows = [
        {**state(name, reply=text), "train_trial_index": trial, "output_mapping": {"A": "4", "B": "5"}}
        for name, text in (("a", " A"), ("b", "A.")) for trial in (0, 1)
    ]  # fmt: skip
    for row in rows:
        row["instance"]["references"].append({"output": {"text": "5"}, "tags": []})
    before = request_states.load(write_file(tmp_path, rows, method="multiple_choice_joint", num_train_trials=2))
    to_json_lines(before, tmp_path / "x.jsonl")
    after = request_states.load(tmp_path / "x.jsonl")
    assert (plain(after), after.scoring) == (plain(before), before.scoring)
    assert after.scoring.label_reading == "exact"


def test_what_an_ultraeval_task_loses(tmp_path):
    evalset = request_states.load(write_file(tmp_path, [state("a")]))
    first = evalset.instances[0]
    prompt = replace(first, extra_data={EXTRA_KEY: {"prompt": ["head ", "demo ", "question"], "score": {"4": 0.5}}})
    metrics = MetricChoice(("ultraeval_mine",), {"ultraeval_mine": {"type": "mine"}})
    facts = TaskFacts("ppl", "sums", "v0", "", "", metrics, postprocess="strip")
    task = replace(evalset, format="ultraeval", details=facts, instances=[prompt])
    with pytest.raises(DatasetIntegrityError) as caught:
        to_json_lines(task, tmp_path / "x.jsonl", losses=ULTRAEVAL.losses(task))
    for loss in (
        "the postprocess strip",
        "the perplexity rule",
        "the metric ultraeval_mine",
        "dropping demonstrations",
        "worth a number",
    ):
        assert loss in str(caught.value)


@pytest.mark.parametrize(("arguments", "error", "message"), [
    (["x.json", "x.txt"], RunEntryError, "expected FILE.jsonl"),
    (["qa.json", "x.jsonl", "--arg", "sed=1"], RunEntryError, "adapter_spec: unknown argument 'sed'\n  hint: did you mean 'seed'"),
    (["none.json", "x.jsonl"], HelmExtError, "none.json"),
    (["qa.json", "none/x.jsonl"], HelmExtError, "none/x.jsonl: cannot be written: No such file"),
])  # fmt: skip
def test_usage(tmp_path, run, arguments, error, message):
    write_bundle(tmp_path)
    write_file(tmp_path, [state("a")])
    with pytest.raises(error, match=message):
        run(*arguments)


def test_an_empty_train_split(tmp_path, run):
    (tmp_path / "t").write_text(json.dumps({"id": "a", "messages": CHAT, "expected": "4"}) + "\n")
    path = hub.pack(name="sums", test=tmp_path / "t", target=tmp_path).path
    assert run(path, "x.jsonl").stdout == "x.jsonl: 1 row\n"
