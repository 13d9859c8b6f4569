"""Records of Every Eval Ever: what the schema demands, restated, and what a line says of a row.

The validator of upstream checks the same files where EEE_REPO names a checkout of
https://github.com/evaleval/every_eval_ever, run by EEE_PYTHON (`optional_sources`).
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import commands
import pytest
from every_eval_ever_records import FRUIT, result, sample
from every_eval_ever_records import write as write_record
from finished_runs import run_sums, score
from optional_sources import EEE_PYTHON, EEE_REPO, needs_eee
from request_states_files import answered, choice, split_rows, state, write

from helm_ext.analysis import read_run
from helm_ext.analysis.export import every_eval_ever
from helm_ext.analysis.export.every_eval_ever import Publisher, write_every_eval_ever
from helm_ext.analysis.export.every_eval_ever_samples import to_hash
from helm_ext.analysis.export.tables import to_line
from helm_ext.errors import DatasetIntegrityError
from helm_ext.formats.every_eval_ever.record import ENUMS

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[4]
ULTRAEVAL = ROOT / "examples" / "ultraeval" / "logs" / "first-model" / "workshop_workshop_gen" / "instance.jsonl"
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


def chat_bundle(folder: Path) -> Path:
    from helm_ext import hub

    examples = ROOT / "examples" / "innodata"
    hub.pack(name="desk", test=examples / "test.jsonl", train=examples / "train.jsonl", attributes={}, target=folder)
    return folder / "desk.zip"


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Runs of each format, and two of HELM's own scenario, by name."""
    folder = tmp_path_factory.mktemp("runs")
    rows = [answered(row, "0") for row in split_rows(2)]
    rows.append({**state("Which failed?", id="failed", split="test"), "request": {"result": {"success": False}}})
    rows.append(state("Which was not run? \u2028", id="absent", split="test"))
    choices = [answered(choice("Which is yellow?", ["gold", "tin"], 0, id="g", split="test"), "(A)")]
    joint = {"method": "multiple_choice_joint", "max_train_instances": 0}
    replies = str(ROOT / "examples" / "innodata" / "replies.jsonl")
    return {
        "text": score(folder, write(folder / "text.jsonl", rows), missing="skip"),
        "choice": score(folder, write(folder / "choice.jsonl", choices, joint), model="plain"),
        "ultraeval": score(folder, ULTRAEVAL),
        "chat": score(folder, chat_bundle(folder), replies=replies),
        "helm": run_sums(folder, more=("finished_runs.Odd",)),
        "separate": run_sums(folder, "separate", method="multiple_choice_separate_original"),
        "failing": run_sums(folder, "failing", deployment="fail"),
    }


@pytest.fixture(scope="module")
def records(runs, tmp_path_factory):
    """Name of a run to (aggregate, samples, path of the aggregate)."""
    target = tmp_path_factory.mktemp("records")
    written = write_every_eval_ever(list(runs.values()), target)
    return {
        name: (json.loads(one.aggregate.read_bytes()), read_lines(one.samples), one.aggregate)
        for name, one in zip(runs, written, strict=True)
    }


def read_lines(path: Path):
    # As the validator reads them: `splitlines` ends a line at U+2028 too.
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def look_up(value, path):
    for key in path.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    return value


REQUIRED_OF_AGGREGATE = """
    schema_version evaluation_id retrieved_timestamp source_metadata.source_type
    source_metadata.source_organization_name source_metadata.evaluator_relationship eval_library.name
    eval_library.version model_info.name model_info.id model_info.additional_details.deployment_type
    model_info.additional_details.model_availability evaluation_results
""".split()
REQUIRED_OF_RESULT = """
    evaluation_name source_data.dataset_name source_data.source_type metric_config.lower_is_better score_details.score
""".split()
REQUIRED_OF_INSTANCE = """
    schema_version evaluation_id model_id evaluation_name sample_id interaction_type input.raw input.reference
    answer_attribution evaluation.score evaluation.is_correct
""".split()


def test_every_required_field_is_there_and_of_the_right_words(records):
    for aggregate, samples, _ in records.values():
        for required, holders in (
            (REQUIRED_OF_AGGREGATE, [aggregate]),
            (REQUIRED_OF_RESULT, aggregate["evaluation_results"]),
            (REQUIRED_OF_INSTANCE, samples),
        ):
            assert [path for holder in holders for path in required if look_up(holder, path) is None] == []
        for holder in (aggregate, *aggregate["evaluation_results"], *samples):
            for path, words in ENUMS.items():
                assert look_up(holder, path) in (None, *words), path


def test_the_two_files_belong_together(records):
    for aggregate, samples, path in records.values():
        details = aggregate["detailed_evaluation_results"]
        data = path.with_name(f"{path.stem}_samples.jsonl").read_bytes()
        assert UUID.fullmatch(path.stem)
        assert details["file_path"] == "/".join([*path.parts[-5:-1], f"{path.stem}_samples.jsonl"])
        assert path.parts[-5] == "data"
        assert (details["checksum"], details["total_rows"]) == (hashlib.sha256(data).hexdigest(), len(samples))
        assert {sample["evaluation_id"] for sample in samples} == {aggregate["evaluation_id"]}
        assert {sample["model_id"] for sample in samples} == {aggregate["model_info"]["id"]}
        ids = {result["evaluation_result_id"] for result in aggregate["evaluation_results"]}
        assert {sample["evaluation_result_id"] for sample in samples} == ids
        assert len(ids) == len(aggregate["evaluation_results"])


def test_details_are_text(records):
    def details(value):
        if isinstance(value, dict):
            for key, found in value.items():
                if key in ("additional_details", "details", "metadata"):
                    yield found
                yield from details(found)
        elif isinstance(value, list):
            for one in value:
                yield from details(one)

    for aggregate, samples, _ in records.values():
        assert all(isinstance(text, str) for found in details([aggregate, samples]) for text in found.values())


def test_each_score_is_the_mean_of_its_lines_within_its_bounds_and_says_how_sure_it_is(records):
    """But for rows that were left out. Of 0 and 1: Wilson's interval of statsmodels."""
    from statsmodels.stats.proportion import proportion_confint

    checked = 0
    for aggregate, samples, _ in records.values():
        for found in aggregate["evaluation_results"]:
            config, score = found["metric_config"], found["score_details"]
            low, high = (float(config[key]) for key in ("min_score", "max_score"))
            assert config["score_type"] == "continuous"
            assert low <= score["score"] <= high
            of_result = [s for s in samples if s["evaluation_result_id"] == found["evaluation_result_id"]]
            scored = [
                s["evaluation"]["score"] for s in of_result if not s.get("error", "").startswith(("failed", "not run"))
            ]
            assert sum(scored) / len(scored) == pytest.approx(score["score"])
            left_out = int(score.get("details", {}).get("rows_left_out", 0))
            assert (len(scored), left_out) == (score["uncertainty"]["num_samples"], len(of_result) - len(scored))
            interval = score["uncertainty"].get("confidence_interval")
            if interval is not None and interval["method"] == "wilson":
                low, high = proportion_confint(sum(scored), len(scored), method="wilson")
                assert (interval["lower"], interval["upper"]) == (pytest.approx(low), pytest.approx(high))
                assert interval["confidence_level"] == 0.95
                checked += 1
    assert checked > 3


def test_rows_that_were_left_out_have_an_error_and_the_score_0(records):
    _, samples, _ = records["text"]
    errors = {sample["sample_id"]: (sample["error"], sample["evaluation"], sample["output"])
              for sample in samples if "error" in sample}  # fmt: skip
    nothing = ({"score": 0.0, "is_correct": False}, {"raw": []})
    assert errors == {
        "failed": ("failed: the request failed", *nothing),
        "absent": ("not run: no completion is recorded", *nothing),
    }
    _, samples, _ = records["failing"]
    assert {s["sample_id"]: s["error"] for s in samples if "error" in s} == {"s3": "refused by the provider"}


def test_a_line_of_a_choice(records):
    aggregate, samples, path = records["choice"]
    sample = samples[0]
    assert sample["input"] == {"raw": "Which is yellow?", "reference": ["gold"], "choices": ["gold", "tin"]}
    assert (sample["output"], sample["messages"], sample["interaction_type"]) == ({"raw": ["(A)"]}, None, "single_turn")
    assert sample["answer_attribution"] == [
        {"turn_idx": 0, "source": "output.raw", "extracted_value": "gold", "extraction_method": "label", "is_terminal": True}
    ]  # fmt: skip
    assert sample["evaluation"] == {"score": 1.0, "is_correct": True}
    assert sample["metadata"]["answer_label"] == "A"
    # A model's name without an organization is that of `recorded/NAME`.
    assert (aggregate["model_info"]["id"], path.parts[-3:-1]) == ("recorded/plain", ("recorded", "plain"))


def test_conversations_of_several_turns_are_transcripts(records):
    _, samples, _ = records["chat"]
    of_rows = {sample["sample_id"]: sample for sample in samples}
    source = [json.loads(line) for line in (ROOT / "examples/innodata/test.jsonl").read_text("utf-8").splitlines()]
    lines = (ROOT / "examples/innodata/replies.jsonl").read_text("utf-8").splitlines()
    replies = {reply["id"]: reply["reply"] for reply in map(json.loads, lines)}
    several = 0
    for record in source:
        sample = of_rows[record["id"]]
        turns = [message for message in record["messages"] if message["role"] != "system"]
        assert sample["input"]["raw"] == turns[-1]["content"]
        if len(turns) > 1:
            several += 1
            assert (sample["interaction_type"], sample["output"]) == ("multi_turn", None)
            said = [{key: message[key] for key in ("role", "content")} for message in sample["messages"]]
            assert said[:-1] == record["messages"]
            assert said[-1]["role"] == "assistant"
            assert sample["answer_attribution"][0]["turn_idx"] == len(said) - 1
            assert said[-1]["content"] == replies[record["id"]]
        else:
            assert (sample["interaction_type"], sample["messages"]) == ("single_turn", None)
            assert sample["output"] == {"raw": [replies[record["id"]]]}
    assert several


def test_options_that_were_asked_about_by_themselves(records):
    _, samples, _ = records["separate"]
    assert samples[0]["input"]["choices"] == ["2", "0", "9"]
    assert samples[0]["output"] == {"raw": ["2"]}
    assert samples[0]["answer_attribution"][0]["extraction_method"] == "log_likelihood"


def test_whether_lower_is_better_is_said_not_to_be_known(runs, tmp_path):
    (written,) = write_every_eval_ever([runs["helm"]], tmp_path)
    assert written.notes == ("whether lower is better is not known of odd_length: written as false",)
    results = {r["metric_config"]["metric_id"]: r["metric_config"] for r in json.loads(written.aggregate.read_bytes())["evaluation_results"]}  # fmt: skip
    assert results["odd_length"]["additional_details"] == {"computed_by": "helm", "lower_is_better": "not known"}
    assert (results["odd_length"]["min_score"], results["odd_length"]["max_score"]) == ("-Infinity", "Infinity")
    assert "odd_nan" not in results


def test_the_same_run_gives_the_same_record(runs, records, tmp_path, monkeypatch):
    monkeypatch.setattr(every_eval_ever.time, "time", lambda: 1234567890.5)
    publisher = Publisher("Our lab", "third_party", "self_deployed", "open_weights")
    (written,) = write_every_eval_ever([runs["choice"]], tmp_path, publisher)
    assert written.aggregate.name == records["choice"][2].name
    assert read_lines(written.samples) == records["choice"][1]
    made = json.loads(written.aggregate.read_bytes())
    assert made["retrieved_timestamp"] == "1234567890"
    assert made["source_metadata"]["source_organization_name"] == "Our lab"
    assert made["model_info"]["additional_details"]["deployment_type"] == "self_deployed"
    with pytest.raises(DatasetIntegrityError, match=r"\.json: exists"):
        write_every_eval_ever([runs["choice"]], tmp_path)
    write_every_eval_ever([runs["choice"]], tmp_path, replace=True)


def test_what_makes_no_record_is_refused_before_anything_is_written(runs, tmp_path):
    nothing = run_sums(tmp_path, "nothing", metrics=())
    with pytest.raises(DatasetIntegrityError, match=r"nothing: none of the stats of its rows is a score"):
        write_every_eval_ever([runs["choice"], nothing], tmp_path / "target")
    copy = read_run(shutil.copytree(runs["helm"].folder, tmp_path / "other" / "sums"))
    with pytest.raises(DatasetIntegrityError, match=r"are one run, with one record\n  hint: export one suite"):
        write_every_eval_ever([runs["helm"], copy], tmp_path / "target")
    assert not (tmp_path / "target").exists()


def test_the_hash_is_upstreams():
    # The sample of upstream's own tests/data/skill_reference_conversion.
    assert to_hash("What is 2 + 2?", ["4"]) == "9c94305328f8e70341f9d1880f4eaa6ea7f93b8922e6a03a8cdcf1924d28db0b"


def test_a_line_is_one_line_to_every_reader():
    line = to_line({"text": "a\x85b\u2028c\u2029d\ne\ud800", "number": float("nan")})
    assert len(line.decode().splitlines()) == 1
    assert json.loads(line) == {"text": "a\x85b\u2028c\u2029d\ne?", "number": "NaN"}


@pytest.mark.parametrize(("name", "part"), [
    ("plain", "plain"), ("a/b:c?", "a_b_c_"), ("data", "_data"), ("con.x", "_con.x"), ("dots..", "dots"),
    ("...", "unknown"), ("甲" * 100, None),
])  # fmt: skip
def test_names_become_parts_of_paths(name, part):
    made = every_eval_ever._to_component(name)
    assert made == part if part else len(made.encode()) <= 120
    assert not re.search(r'[<>:"/\\|?*\x00-\x1f]', made)


def export_again(folder, path, **arguments):
    """Score a record, and export its run: (aggregate, samples)."""
    run = score(folder, path, model=json.loads(path.read_bytes())["model_info"]["id"], **arguments)
    (written,) = write_every_eval_ever([run], folder / "again", replace=True)
    return json.loads(written.aggregate.read_bytes()), read_lines(written.samples)


def kept(sample):
    return {path: look_up(sample, path) for path in REQUIRED_OF_INSTANCE if path != "evaluation_id"}


def test_a_record_that_was_imported_keeps_its_required_fields(tmp_path):
    said = [("user", "Fruit?"), ("assistant", "Yes."), ("user", "Which?"), ("assistant", "fig")]
    turns = [{"turn_idx": number, "role": role, "content": text} for number, (role, text) in enumerate(said)]
    lines = [
        sample("a", "The answer is B.", reference="1", choices=FRUIT, metadata={"level": "easy"}),
        sample("b", "none", 0.0, reference="0", choices=FRUIT),
        sample("c", ["one", "two"], 0.0, reference=["fig", "figs"]),
        sample("d", interaction_type="multi_turn", output=None, messages=turns),
        sample("e", evaluation={"score": 0.25, "is_correct": True}),
    ]
    lines[2]["input"]["formatted"] = "Q: Which?\nA:"
    path = write_record(tmp_path, lines, [result(score=0.45)], library="lm_eval")
    original = json.loads(path.read_bytes())
    aggregate, samples = export_again(tmp_path, path)
    result_id = "every_eval_ever_accuracy:test"
    again = {sample["sample_id"]: sample for sample in samples if sample["evaluation_result_id"] == result_id}
    for line in lines:
        made = again[line["sample_id"]]
        assert kept(made) == kept(line)
        assert (made["output"], made["messages"], made["input"]) == (
            line["output"],
            line.get("messages"),
            line["input"],
        )
    (mine,) = [r for r in aggregate["evaluation_results"] if r["evaluation_result_id"] == result_id]
    for key in ("evaluation_name", "source_data", "metric_config"):
        assert mine[key] == original["evaluation_results"][0][key]
    assert mine["score_details"]["score"] == pytest.approx((1 + 0 + 0 + 1 + 0.25) / 5)
    assert aggregate["model_info"] == original["model_info"]
    for key, value in original["source_metadata"].items():
        assert aggregate["source_metadata"][key] == value
    details = aggregate["source_metadata"]["additional_details"]
    assert (details["original_evaluation_id"], details["original_eval_library_name"]) == ("fruit/1", "lm_eval")


def test_an_export_says_how_several_completions_were_scored(tmp_path):
    """The best of two is 1: no share of them would tell."""
    row = answered(choice("Which is yellow?", ["gold", "tin"], 0, id="g", split="test"), "tin")
    row["request"]["result"]["completions"].append({"text": "gold"})
    run = score(tmp_path, write(tmp_path / "several.jsonl", [row]), completions="max")
    (written,) = write_every_eval_ever([run], tmp_path / "record")
    again = score(tmp_path / "again", written.aggregate)
    assert [one.metric_arguments["completions"] for one in (run, again)] == ["max", "max"]


@pytest.mark.parametrize("name", ["text", "choice", "chat", "ultraeval", "helm"])
def test_an_export_scored_and_exported_again_says_the_same(records, tmp_path, name):
    record, before, path = records[name]
    again, after = export_again(tmp_path, path)

    def to_keys(samples):
        said = [[kept(one), one["output"], one["messages"], one.get("error")] for one in samples]
        return sorted(json.dumps(one, sort_keys=True) for one in said)

    of_source = [sample for sample in after if sample["evaluation_result_id"].startswith("every_eval_ever_")]
    assert to_keys(of_source) == to_keys(before)
    # Rows without an answer have lines that say 0, and take part in no mean.
    scores = {one["evaluation_result_id"]: one["score_details"]["score"] for one in again["evaluation_results"]}
    for one in record["evaluation_results"] if name != "helm" else ():  # its scores are told apart by sub-split
        assert scores[f"every_eval_ever_{one['evaluation_result_id']}"] == pytest.approx(
            one["score_details"]["score"], abs=1e-12
        )


@needs_eee
def test_upstreams_validator_has_no_errors_and_no_warnings(records):
    target = records["text"][2].parents[4]
    files = [str(path.relative_to(target)) for path in sorted((target / "data").rglob("*.json*"))]
    done = subprocess.run(
        [EEE_PYTHON, "-m", "every_eval_ever", "validate", *files, "--format", "json"],
        cwd=target, env={**os.environ, "PYTHONPATH": str(EEE_REPO)}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    reports = json.loads(done.stdout)
    assert len(reports) == len(files) == 2 * len(records)
    assert [(r["file"], r["errors"], r["warnings"]) for r in reports if not r["valid"] or r["warnings"]] == []


def test_a_rows_own_keys_group_the_record_as_they_did_the_run(tmp_path):
    """They stood in the record's metadata as one text, `instance`, of which no key could be named."""
    states = [answered(state(f"{n}?", "a", passage=n // 3, id=f"r{n}"), "ab"[n > 3]) for n in range(6)]
    made, found = write(tmp_path / "f.jsonl", states), []
    for number, key in enumerate(("passage", "cluster", "passage")):
        out = tmp_path / f"o{number}"
        done = commands.run("score", made, "--model", "m", "-o", out, "--json", "--arg", f"cluster={key}")
        (line,) = [json.loads(text) for text in done.stdout.splitlines()]
        found.append({end: line["metrics"][line["main_metric"]][end] for end in ("mean", "low", "high")})
        commands.run("export", out, "--to", "every_eval_ever", "--out", tmp_path / "records")
        (made,) = (tmp_path / "records").rglob("*.json")
        (tmp_path / "records").rename(tmp_path / f"records{number}")
        made = tmp_path / f"records{number}" / made.relative_to(tmp_path / "records")
    assert found[0] == found[1] == found[2]
    assert (
        "cluster=cluster, and are too short without"
        in commands.run("score", made, "--model", "m", "-o", tmp_path / "again").stderr
    )
    assert found[0]["high"] - found[0]["low"] > 0.7  # two passages tell less than six rows: Wilson's would be 0.60
