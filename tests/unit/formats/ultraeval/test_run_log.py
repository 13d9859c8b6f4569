"""Outputs of a finished UltraEval run (`instance.jsonl`), scored again."""

import json
from dataclasses import replace

import pytest
import ultraeval_checkout as made
from helm.benchmark.adaptation.scenario_state import ScenarioState
from helm.benchmark.metrics.metric import create_metric
from refusals import refused

from helm_ext import plugin  # noqa: F401 - registers recorded deployments
from helm_ext.adaptation import wrap as adaptation
from helm_ext.errors import DatasetError, RecordedError, RunEntryError
from helm_ext.evalset import row_extra
from helm_ext.formats.ultraeval import loading as ultraeval


def line(number, outputs, **changes):
    row = made.question(number)
    return {
        "data": row,
        "ground_truth": row["answer"],
        "prompt_inputs": [f"Q: {row['question']}\nA: "],
        "raw_outputs": outputs,
        "processed_outputs": [],
        "eval_results": {},
        "metrics": {},
        **changes,
    }


def config_of(method):
    """The part of `config.json` that is read."""
    return {"metric": {"accuracy": {"evaluation": {"type": "exact_match" if method == "gen" else "log_prob"}}}}


@pytest.fixture
def write(tmp_path):
    def write(lines, config=None, folder="sums_sums_gen"):
        """`config`: by default that of an exact_match or log_prob task; False for none."""
        path = made.write_rows(tmp_path / "logs" / folder / "instance.jsonl", lines)
        outputs = next((line["raw_outputs"] for line in lines if line.get("raw_outputs")), [""])
        if config is None:
            config = config_of("gen" if isinstance(outputs[0], str) else "ppl")
        (path.parent / "config.json").unlink(missing_ok=True)
        if config is not False:
            (path.parent / "config.json").write_text(json.dumps(config))
        return path

    return write


def rescore(evalset, postprocess=None):
    """What a recorded run computes."""
    spec = replace(evalset.adapter_spec, model="x/y", model_deployment="recorded/x")
    states = adaptation.rebuild_recorded(evalset.instances, spec)
    states = [replace(state, result=state.request.result) for state in states]
    metric = create_metric(evalset.details.to_metric_spec(evalset.scoring))
    result = metric.evaluate(ScenarioState(spec, states), None, "", parallelism=1)
    return {stat.name.name: stat.mean for stat in result.aggregated_stats if stat.name.split == "test"}


def test_logs_of_two_models_are_one_column(write):
    one = ultraeval.load(data=write([line(1, ["a"]), line(2, ["b"])], folder="one_sums_gen"))
    two = ultraeval.load(data=write([line(1, ["c"]), line(2, ["b"])], folder="two_sums_gen"))
    other = ultraeval.load(data=write([line(1, ["a"]), line(3, ["b"])], folder="three_sums_gen"))
    assert one.digest != two.digest
    assert one.question_digest == two.question_digest != other.question_digest
    scored = ultraeval.load(data=write([line(1, ["a"]), line(2, ["b"])]), metric="f1_score")
    assert scored.question_digest != one.question_digest


def test_gen(write):
    config = {**config_of("gen"), "task_postprocess": "first_line", "few-shot": 0}
    path = write([line(1, ["2\nand so on"]), line(2, ["4"]), line(3, ["4", "5"])], config)
    assert ultraeval.check(data=path)[0] == []
    evalset = ultraeval.load(data=path)
    assert evalset.name == "sums_sums_gen"
    assert evalset.counts["recorded"] == 3
    facts = evalset.details
    assert (facts.script, facts.script_sha, facts.dataset) == ("instance", "none", "sums")
    assert facts.postprocess == "first_line"
    state = row_extra(evalset.instances[0])["recorded"]["states"][0]
    assert state["request"]["prompt"] == "Q: What is 1 + 1?\nA: "
    stats = rescore(evalset)
    assert stats["ultraeval_exact_match"] == pytest.approx(2 / 3)


def test_ppl(write):
    # options "1" and "2" (right), then "2" and "3": the second line's wrong option is likelier
    lines = [line(1, [[[-1.0, -5.0], [-1.0, -2.0]]]), line(2, [[[-1.0, -0.5], [-1.0, -2.0]]])]
    evalset = ultraeval.load(data=write(lines, folder="sums_sums_ppl"))
    assert evalset.adapter_spec.method == "multiple_choice_separate_original"
    stats = rescore(evalset)
    assert stats["ppl_accuracy"] == stats["acc"] == 0.5
    assert rescore(ultraeval.load(data=write(lines), metric="ppl_norm"))["ppl_norm_accuracy"] == 0.5
    nested = [line(1, [[[[-1.0, -5.0], [-1.0, -2.0]]]])]
    assert rescore(ultraeval.load(data=write(nested)))["ppl_accuracy"] == 1


def test_other_metrics_than_the_runs_own(write):
    path = write([line(1, ["It is 2."])])
    assert rescore(ultraeval.load(data=path, metric="in_match"))["ultraeval_in_match"] == 0
    assert rescore(ultraeval.load(data=write([line(1, [" 2\n"])]), metric="in_match"))["ultraeval_in_match"] == 1
    write([line(1, ["It is 2."])])
    assert rescore(ultraeval.load(data=path, metric="qa_match"))["ultraeval_qa_match"] == 0
    assert rescore(ultraeval.load(data=path, postprocess="last_number"))["ultraeval_exact_match"] == 1
    assert len(ultraeval.load(data=write([line(1, ["2"]), line(2, ["3"])]), limit=1).instances) == 1


def test_the_name_of_another_folder(write):
    assert ultraeval.load(data=write([line(1, ["2"])], folder="old")).name == "old_instance_gen"
    assert ultraeval.load(data=write([line(1, ["2"])], folder="old"), dataset_name="a_b_gen").name == "a_b_gen"
    for key in ("task_name", "dataset_name"):  # runs say the one, upstream's leaderboard the other
        named = write([line(1, ["2"])], {**config_of("gen"), key: "sums_more-sums_gen"}, folder="old")
        assert ultraeval.load(data=named).name == "sums_more-sums_gen"


@pytest.mark.parametrize("key", ["metric", "metrics"])
@pytest.mark.parametrize("upstream", ["prefix_match", "in_match", "qa_match", "f1_score", "chrf", "rouge"])
def test_a_log_is_scored_with_its_own_metric(write, key, upstream):
    config = {key: {"accuracy": {"evaluation": {"type": upstream}}}}
    assert ultraeval.load(data=write([line(1, ["2"])], config)).scoring.main_metric == f"ultraeval_{upstream}"


@pytest.mark.parametrize("key", ["metric", "metrics"])
def test_the_rule_of_a_ppl_log(write, key):
    lines = [line(1, [[[-1.0, -5.0], [-1.0, -2.0]]])]
    mc2 = {key: {"accuracy": {"evaluation": {"type": "log_prob_mc2"}}}}
    assert ultraeval.load(data=write(lines, mc2)).scoring.main_metric == "mc2"
    norm = {**config_of("ppl"), "model_postprocess": "general_torch_ppl_norm", "task_postprocess": ""}
    assert ultraeval.load(data=write(lines, norm)).scoring.main_metric == "ppl_norm_accuracy"
    # The task's postprocessing starts from the raw outputs again: the model's is forgotten.
    norm["task_postprocess"] = "general_torch_ppl"
    assert ultraeval.load(data=write(lines, norm)).scoring.main_metric == "ppl_accuracy"


SAY = "  hint: metric=NAME says how to score"


@pytest.mark.parametrize(("config", "message"), [
    (False, f"config.json: no such file: how the run was scored is not known\n{SAY}"),
    ({}, f"config.json: metric: names no metric\n{SAY}"), ({"metric": {}}, "config.json: metric: names no metric"),
])  # fmt: skip
def test_a_log_whose_metric_is_not_known_is_refused(write, config, message):
    path = write([line(1, ["2"])], config)
    assert message in refused(DatasetError, ultraeval.load, data=path)
    (problem,) = ultraeval.check(data=path)[0]
    assert (problem.severity, problem.code) == ("error", "no-metric")
    assert ultraeval.load(data=path, metric="exact_match").scoring.main_metric == "ultraeval_exact_match"


def test_a_log_with_a_metric_of_nobodys_is_refused(write):
    path = write([line(1, ["2"])], {"metric": {"accuracy": {"evaluation": {"type": "exact_macth"}}}})
    said = refused(RunEntryError, ultraeval.load, data=path)
    assert "metric=exact_macth: unknown metric\n  hint: did you mean 'exact_match'" in said


def test_rows_that_were_not_run(write):
    for lines in ([line(1, ["2"]), line(2, [])], [line(1, [[[-1.0], [-2.0]]]), line(2, [])]):
        evalset = ultraeval.load(data=write(lines))
        assert row_extra(evalset.instances[1])["recorded"]["status"] == "not_run"
        with pytest.raises(RecordedError, match="1 of 2 rows cannot be scored"):
            rescore(evalset)


@pytest.mark.parametrize(("lines", "message"), [
    ([line(1, ["2"], data=3)], "data: not a line of instance.jsonl: 3"),
    ([line(1, ["2"]), {"data": {}}], "prompt_inputs: not a line of instance.jsonl: null"),
    ([line(1, ["2"], prompt_inputs=[1])], "prompt_inputs: not a line"),
    ([line(1, ["2"]), line(1, "2")], "raw_outputs: not a line of instance.jsonl"),
    (
        [line(1, ["2"]), {key: value for key, value in line(2, ["2"]).items() if key != "ground_truth"}],
        "instance.jsonl:2: ground_truth: expected a string or a list of strings, got null",
    ),
    ([line(1, ["2"], ground_truth=2)], "ground_truth: expected a string or a list of strings, got 2"),
    ([line(1, ["2"], ground_truth=[])], "ground_truth: expected a string or a list of strings, got []"),
    ([line(1, ["2", 3])], 'raw_outputs: expected texts, got ["2", 3]'),
    ([line(1, [[[-1.0]]])], "raw_outputs: expected the log-probabilities of 2 options, got [-1.0]"),
    ([line(1, [[[-1.0], ["x"]]])], "raw_outputs: expected the log-probabilities of 2 options"),
    ([line(1, [[[-1.0], [-2.0]]], data={})], "target_scores: missing"),
])  # fmt: skip
def test_lines_of_another_shape(write, lines, message):
    path = write(lines)
    assert message in refused(DatasetError, ultraeval.load, data=path)
    problems, counts = ultraeval.check(data=path)
    assert {problem.severity for problem in problems} == {"error"}
    assert counts == {"rows": len(lines)}


def test_a_log_without_outputs_is_of_the_method_that_is_named(write):
    path = write([line(1, []), line(2, [])], config_of("ppl"))
    assert "hint: method=ppl" in refused(RunEntryError, ultraeval.load, data=path)
    loaded = ultraeval.load(data=path, method="ppl")
    assert (loaded.counts["recorded"], loaded.counts["eval"]) == (0, 2)
    assert loaded.adapter_spec.method == "multiple_choice_separate_original"


def test_what_is_beside_a_log(write):
    path = write([line(1, ["2"])], {"metrics": {"accuracy": 3}})
    said = refused(DatasetError, ultraeval.load, data=path)
    assert "config.json: metrics.accuracy: expected an object, got 3\n  hint: " in said
    assert "metric=NAME and postprocess=NAME say it in its place" in said
    assert ultraeval.load(data=path, metric="exact_match").counts["eval"] == 1
    assert "holds the outputs of a gen run" in refused(RunEntryError, ultraeval.load, data=path, method="ppl")
    write([line(1, ["2"])], {**config_of("gen"), "task_postprocess": False})
    assert "task_postprocess: expected a string, got false" in refused(DatasetError, ultraeval.load, data=path)
    write([line(1, ["2"])], [])
    assert "config.json: expected an object, got []" in refused(DatasetError, ultraeval.load, data=path)
    write([line(1, ["2"])], {"metrics": {"pass_k": {"evaluation": {"type": "function_execution"}}}})
    assert "allow_code=true" in refused(RunEntryError, ultraeval.load, data=path)


def test_check_without_running_anything(write, tmp_path):
    path = write([line(1, ["2"])], {**config_of("gen"), "task_postprocess": "shout"})
    ran = tmp_path / "ran"
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks" / "postprocess.py").write_text(f"open({str(ran)!r}, 'w').close()\n" + made.POSTPROCESS)
    assert ultraeval.check(data=path, execute=False)[0] == []
    assert not ran.exists()
    assert ultraeval.check(data=path)[0] == []
    assert ran.exists()


def test_a_log_with_a_checkouts_postprocessing(write, tmp_path):
    root = made.make_checkout(tmp_path / "UltraEval")
    path = write([line(1, ["2"])])
    evalset = ultraeval.load(data=path, postprocess="shout", root=root)
    assert evalset.details.root == str(root)
    assert evalset.digest != ultraeval.load(data=path).digest


@pytest.mark.parametrize("method", ["gen", "ppl"])
def test_rows_that_were_not_run_are_counted_as_such(write, method):
    outputs = ["2"] if method == "gen" else [[[-1.0, -5.0], [-1.0, -2.0]]]
    path = write([line(1, outputs), line(2, []), line(3, [])])
    problems, counts = ultraeval.check(data=path, missing="error", limit=2)
    assert (counts["eval"], counts["recorded"], counts["not_run"]) == (2, 1, 1)
    assert counts == ultraeval.load(data=path, limit=2).counts
    (warning,) = [problem for problem in problems if problem.code == "not-run"]
    assert str(warning) == (
        f"{path}: 1 of 2 rows were not run; a recorded run refuses the file\n"
        "  hint: missing=skip scores the rest and reports how many were left out"
    )


def test_numbers_as_upstream_writes_them(write, tmp_path):
    """Python writes NaN and -Infinity; an option that has one of them loses."""
    nan, inf = float("nan"), float("inf")
    lines = [
        line(1, [[[-1.0, -5.0], [-1.0, nan]]]),  # "2" is right, and cannot win
        line(1, [[[-1.0, -inf], [-1.0, -9.0]]]),
        line(1, [[[-1.0, -5.0], [-1.0, -2.0]]]),
    ]
    assert rescore(ultraeval.load(data=write(lines, folder="sums_sums_ppl")))["ppl_accuracy"] == pytest.approx(2 / 3)
    with pytest.raises(DatasetError, match="expected the log-probabilities of 2 options"):
        ultraeval.load(data=write([line(1, [[[-1.0, inf], [-1.0, -2.0]]])]))
    root = made.make_checkout(tmp_path / "UltraEval")
    made.write_rows(root / "datasets" / "sums" / "data" / "sums.jsonl", [made.question(1, weight=nan)])
    with pytest.raises(DatasetError, match="NaN is not JSON"):  # rows that a task is made of
        ultraeval.load(dataset="sums", root=root, method="gen")


@pytest.mark.parametrize("number", ["nan", "inf", "-inf"])
def test_only_outputs_hold_what_is_no_json(write, number):
    """A row travels into HELM's `instances.json`, which a browser reads."""
    data = {**made.question(1), "notes": [{"weight": float(number)}]}
    path = write([line(1, ["2"], data=data), line(2, ["4"])])
    with pytest.raises(DatasetError, match=r"instance\.jsonl:1: data: NaN or Infinity, which are not JSON") as error:
        ultraeval.load(data=path)
    assert len(error.value.problems) == 1
    problems, _ = ultraeval.check(data=path)
    assert [problem.code for problem in problems] == ["not-json"]
