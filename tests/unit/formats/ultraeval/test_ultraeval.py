"""UltraEval task sets: from arguments and files to an EvalSet, and everything that can be wrong."""

import json

import pytest
import ultraeval_checkout as made
from helm.benchmark.metrics.metric import create_metric
from helm.benchmark.scenarios.scenario import CORRECT_TAG
from jsonschema import Draft202012Validator
from refusals import refused

from helm_ext.errors import (
    DatasetError,
    DatasetIntegrityError,
    DatasetNotFoundError,
    DatasetSchemaError,
    RunEntryError,
    TransformError,
)
from helm_ext.evalset import row_extra
from helm_ext.formats.ultraeval import loading as ultraeval
from helm_ext.formats.ultraeval.config import schema as config_schema
from helm_ext.formats.ultraeval.format import FORMAT
from helm_ext.scoring.answers import Answer, AnswerReader, Question


@pytest.fixture
def root(tmp_path):
    return made.make_checkout(tmp_path / "UltraEval")


@pytest.fixture
def folder(root):
    return root / "datasets" / "sums"


def load(root, **arguments):
    return ultraeval.load(dataset="sums", root=root, **arguments)


def check(root, **arguments):
    return ultraeval.check(dataset="sums", root=root, **arguments)


def rule_of(evalset):
    """The rule of a PPL task's score, as the run's spec says it."""
    return evalset.details.to_metric_spec(evalset.scoring).args["rule"]


def prompts(evalset):
    return ["".join(row_extra(instance)["prompt"]) for instance in evalset.instances]


def test_gen(root):
    evalset = load(root, method="gen", version=0, fewshot=1)
    assert evalset.name == "sums_sums_gen"
    assert evalset.format == "ultraeval"
    assert len(evalset.digest) == 64
    assert len(evalset.instances) == evalset.counts["eval"] == evalset.counts["rows"] == 10
    first = evalset.instances[0]
    assert (first.id, first.split) == ("id0", "test")
    assert first.input.text == "Q: What is 0 + 1?\nA: "
    assert [(r.output.text, r.tags) for r in first.references] == [("1", [CORRECT_TAG])]
    head, demonstration, asked = row_extra(first)["prompt"]
    assert (head, asked) == ("", first.input.text)
    assert demonstration.startswith("Q: What is ")
    assert demonstration.endswith("\n\n")
    spec = evalset.adapter_spec
    assert spec.method == "generation"
    assert spec.max_train_instances == 0
    fixes = ("instructions", "input_prefix", "input_suffix", "output_prefix", "output_suffix", "instance_prefix",
             "reference_prefix", "reference_suffix", "global_prefix", "global_suffix")  # fmt: skip
    assert {getattr(spec, name) for name in fixes} == {""}
    assert (spec.temperature, spec.max_tokens, spec.stop_sequences, spec.num_outputs) == (0, 100, [], 1)
    assert (evalset.scoring.metrics, evalset.scoring.main_metric) == (
        ("ultraeval_exact_match",),
        "ultraeval_exact_match",
    )
    assert (evalset.details.script, evalset.details.method) == ("v0", "gen")


def test_ppl(root):
    evalset = load(root, method="ppl", version=0)
    first = evalset.instances[0]
    assert [(r.output.text, r.tags) for r in first.references] == [("0", []), ("1", [CORRECT_TAG])]
    assert row_extra(first)["score"] == {"0": 0, "1": 1}
    spec, scoring = evalset.adapter_spec, evalset.scoring
    assert (spec.method, spec.max_tokens) == ("multiple_choice_separate_original", 0)
    assert (scoring.metrics, scoring.main_metric, rule_of(evalset)) == ((), "ppl_accuracy", "ppl")


@pytest.mark.parametrize(("worth", "right"), [
    ({"a": 0.25, "b": 0.75, "c": 0}, ["b"]), ({"a": 1, "b": 1, "c": 0}, ["a", "b"]), ({"a": 0, "b": 0}, []),
    ({"a": -1, "b": -2}, []), ({"a": True, "b": False}, ["a"]),
])  # fmt: skip
def test_the_right_options_are_those_of_the_highest_positive_worth(root, folder, worth, right):
    made.write_rows(folder / "data" / "sums.jsonl", [made.question(0, target_scores=worth)])
    (instance,) = load(root, method="ppl").instances
    assert [r.output.text for r in instance.references if r.is_correct] == right
    assert [r.output.text for r in instance.references] == list(worth)


def test_a_list_of_accepted_answers_and_the_first_in_demonstrations(root, folder):
    rows = [made.question(n, answer=[f"first{n}", f"second{n}"]) for n in range(3)]
    made.write_rows(folder / "data" / "sums.jsonl", rows)
    evalset = load(root, method="gen", fewshot=2)
    assert [r.output.text for r in evalset.instances[1].references] == ["first1", "second1"]
    assert all(r.is_correct for r in evalset.instances[1].references)
    assert "first0\n\n" in prompts(evalset)[1]
    assert "second0" not in prompts(evalset)[1]


def test_rows_keep_their_own_keys(root, folder):
    """Keys of one row must not appear in another, as they do where rows are read as a table."""
    (folder / "transform_gen_v0.py").write_text(
        "def transform(data, n, r, name):\n"
        "    keys = ','.join(sorted(data))\n"
        "    return {'input': keys, 'output': '', 'processed_output': ''}\n"
    )
    made.write_rows(folder / "data" / "sums.jsonl", [{"a": 1}, {"b": {"c": None}}, {}])
    assert prompts(load(root, method="gen", version=0)) == ["a", "b", ""]


# Which task


def with_config(root, configs=None, name="configs/one.json", **changes):
    """Write a config into the checkout: the tasks that are given, or a GEN task with these keys."""
    return made.write_config(root / name, made.config(**changes) if configs is None else configs)


def test_a_config(root):
    path = with_config(root, fewshot=2, description="Add.")
    evalset = ultraeval.load(config=path)
    assert evalset.name == "sums_sums_gen"
    assert prompts(evalset)[0].startswith("Add.\n\nQ: ")
    assert len(row_extra(evalset.instances[0])["prompt"]) == 4
    assert ultraeval.load(config=path, fewshot=0).counts["demonstrations"] == 0  # arguments win
    generate = {"method": "generate", "params": None}
    evalset = ultraeval.load(config=with_config(root, description=None, postprocess=None, generate=generate))
    assert (prompts(evalset)[0], evalset.details.postprocess) == ("Q: What is 0 + 1?\nA: ", "")  # null is empty
    config = {**made.config("ppl"), "dataset_name": "sums_two-digits_ppl"}  # make_configs' spelling
    config["transforms"], config["metrics"] = config.pop("transform"), config.pop("metric")
    del config["task_name"]
    path = with_config(root, [config])
    evalset = ultraeval.load(config=path)
    assert (evalset.name, evalset.details.dataset) == ("sums_two-digits_ppl", "sums")
    assert ultraeval.load(config=path, task="sums_two-digits_ppl").digest == evalset.digest
    (warning,) = ultraeval.load(config=with_config(root, fewshots=3)).warnings
    assert str(warning).endswith("fewshots: unknown key, not used\n  hint: did you mean 'fewshot'?")


def test_paths_of_a_config_are_relative_to_the_checkout_not_to_the_working_directory(root, tmp_path, monkeypatch):
    path = with_config(root, name="datasets/sums/config/sums_gen.json")
    monkeypatch.chdir(tmp_path)
    assert ultraeval.load(config=path.relative_to(tmp_path)).counts["rows"] == 10
    elsewhere = with_config(tmp_path, name="mine.json")
    assert ultraeval.load(config=elsewhere, root=root).counts["rows"] == 10
    said = refused(DatasetNotFoundError, ultraeval.load, config=elsewhere)
    assert "data: no such file in any folder above" in said
    assert "root=FOLDER" in said


def test_a_config_of_several_tasks(root):
    more = made.config("gen", task="more")
    made.write_rows(root / more["path"], [made.question(1)])
    path = with_config(root, [made.config("gen"), made.config("ppl"), more])
    assert ultraeval.tasks(path) == ["sums_sums_gen", "sums_sums_ppl", "more"]
    for name in ultraeval.tasks(path):
        assert ultraeval.load(config=path, task=name).counts["eval"] in (1, 10)
    assert ultraeval.load(config=path, task="sums", method="ppl").name == "sums_sums_ppl"
    assert ultraeval.load(config=path, method="ppl").name == "sums_sums_ppl"


def test_data_and_transform(root, folder, tmp_path):
    data = made.write_rows(tmp_path / "my data.jsonl", [made.question(n) for n in range(3)])
    script = tmp_path / "transform.py"
    script.write_text(made.GEN_SCRIPT)
    evalset = ultraeval.load(data=data, transform=script)
    assert evalset.name == "my data_my data_gen"
    assert evalset.details.script == "transform"
    assert ultraeval.load(data=data, transform=script, method="ppl").name.endswith("_ppl")
    assert ultraeval.load(data=data, transform=folder / "transform_ppl_v1.py").name.endswith("_ppl")
    assert ultraeval.load(data=data, transform=folder / "transform_ppl_v1.py", version=0).details.script == "v0"
    other = ultraeval.load(data=data, transform=folder / "transform_gen_v0.py", method="ppl")
    assert [w.message for w in other.warnings] == ["method=ppl, and by its name the script is for gen"]


def test_versions(root, folder):
    assert load(root, method="gen", version="v0").details.script == "v0"
    (folder / "transform_gen_v10.py").write_text(made.GEN_SCRIPT)
    (folder / "transform_gen_cot.py").write_text(made.GEN_SCRIPT)
    newest = load(root, method="gen")
    assert newest.details.script == "v10"  # a number, not a string
    (warning,) = newest.warnings
    assert warning.message == "v10 of the scripts cot, v0, v1, v10 is used"
    assert load(root, method="gen", version="cot").details.script == "cot"
    for path in folder.glob("transform_gen_v*.py"):
        path.unlink()
    assert load(root, method="gen").details.script == "cot"


def test_the_method_of_a_folder(root, folder):
    for path in folder.glob("transform_gen_*.py"):
        path.unlink()
    assert load(root).adapter_spec.method == "multiple_choice_separate_original"
    for path in folder.glob("transform_*.py"):
        path.unlink()
    (folder / "transform.py").write_text(made.GEN_SCRIPT)
    assert load(root).name == "sums_sums_gen"


def test_a_folder_uses_its_config(root, folder):
    made.write_config(folder / "config" / "sums_gen.json", made.config("gen", fewshot=3, postprocess="first_line"))
    made.write_config(folder / "config" / "sums_ppl.json", made.config("ppl", fewshot=1))
    assert load(root, method="gen").counts["demonstrations"] == 3
    assert load(root, method="gen").details.postprocess == "first_line"
    assert load(root, method="ppl").counts["demonstrations"] == 1
    assert load(root, method="gen", version=1).details.script == "v1"


def test_a_folder_of_several_tasks(root, folder):
    made.write_rows(folder / "data" / "small.jsonl", [made.question(0)])
    assert load(root, method="gen", task="small").name == "sums_small_gen"
    (folder / "data" / "sums.jsonl").rename(folder / "data" / "large.jsonl")
    (folder / "data" / "large.jsonl").unlink()
    assert load(root, method="gen").name == "sums_small_gen"  # the only one


def test_a_folder_is_found_from_the_working_directory_and_by_path(root, folder, monkeypatch, tmp_path):
    monkeypatch.chdir(root / "tasks")
    assert ultraeval.load(dataset="sums", method="gen").counts["rows"] == 10
    monkeypatch.chdir(tmp_path)
    assert ultraeval.load(dataset=str(folder), method="gen").counts["rows"] == 10
    assert "root=FOLDER names the checkout" in refused(
        DatasetNotFoundError, ultraeval.load, dataset="sums", method="gen"
    )


TELL_NAME = 'def transform(a, b, c, name):\n    return {"input": name, "output": "o", "processed_output": "p"}\n'


def test_the_name_that_scripts_are_told(root, folder, monkeypatch):
    (folder / "transform_gen_v0.py").write_text(TELL_NAME)
    made.write_rows(folder / "data" / "two_digit-sums.jsonl", [{}])
    options = {"method": "gen", "version": 0, "limit": 1}
    assert prompts(load(root, task="two_digit-sums", **options)) == ["sums_two-digit-sums_gen"]
    assert prompts(load(root, dataset_name="a_b_gen", **options)) == ["a_b_gen"]
    path = with_config(root, task_name="a_b_t-1_gen")  # a full name stays as it stands
    evalset = ultraeval.load(config=path)
    assert evalset.instances[0].input.text == evalset.name == "a_b_t-1_gen"
    assert ultraeval.load(config=path, task="a_b_t-1_gen").name == "a_b_t-1_gen"
    assert ultraeval.load(config=path, dataset_name="x_y_gen").name == "x_y_gen"
    data = root / "datasets" / "a_b" / "data"
    made.write_rows(data / "t_1.jsonl", [made.question(1)])
    (data.parent / "transform_gen_v0.py").write_text(TELL_NAME)
    there = ultraeval.load(data=data / "t_1.jsonl", transform=data.parent / "transform_gen_v0.py")
    monkeypatch.chdir(data)
    here = ultraeval.load(data="t_1.jsonl", transform="../transform_gen_v0.py")
    assert here.name == there.name == "a_b_t-1_gen"
    assert here.details.dataset == there.details.dataset == "a_b"


def test_names_that_helm_made_numbers_of(root, folder):
    made.write_rows(folder / "data" / "2024.jsonl", [made.question(1)])
    (instance,) = load(root, method="gen", version=0, task=2024).instances
    assert instance.input.text == "Q: What is 1 + 1?\nA: "
    for arguments in (*({source: 5, "transform": 6} for source in ("config", "data", "dataset")), {"data": 5}):
        assert refused((DatasetError, RunEntryError), ultraeval.check, **arguments)


@pytest.mark.parametrize(("arguments", "rule", "stat"), [
    ({}, "ppl", "ppl_accuracy"), ({"metric": "log_prob"}, "ppl", "ppl_accuracy"),
    ({"postprocess": "general_torch_ppl_norm"}, "ppl_norm", "ppl_norm_accuracy"),
    ({"metric": ["ppl_norm"]}, "ppl_norm", "ppl_norm_accuracy"), ({"metric": "log_prob_mc2"}, "mc2", "mc2"),
    *(({"metric": name, "postprocess": "general_torch_ppl_norm"}, "mc2_norm", "mc2_norm") for name in ("log_prob_mc2", "mc2_norm")),
])  # fmt: skip
def test_ppl_rules(root, arguments, rule, stat):
    evalset = load(root, method="ppl", **arguments)
    assert rule_of(evalset) == rule
    assert evalset.scoring.main_metric == stat


def test_gen_metrics(root):
    assert load(root, method="gen", metric="f1_score+rouge_l").scoring.metrics == ("ultraeval_f1_score", "rouge_l")
    metric = {
        "f1": {"evaluation": {"type": "f1_score"}},
        "accuracy": {"evaluation": {"type": "Exact_Match"}, "aggregation": {"type": "mean"}},
        "bleu": {"evaluation": {"type": "bleu", "tokenizer": "zh"}, "aggregation": {"type": "pass_k"}},
    }
    evalset = ultraeval.load(config=with_config(root, metric=metric))
    assert evalset.scoring.metrics == ("ultraeval_exact_match", "ultraeval_f1_score", "ultraeval_bleu_zh")
    assert evalset.scoring.main_metric == "ultraeval_exact_match"  # `accuracy` comes first


def test_the_row_travels_only_where_the_metric_needs_it(root):
    assert "data" not in row_extra(load(root, method="gen").instances[0])
    extra = row_extra(load(root, method="gen", metric="qa_match").instances[0])
    assert extra["data"] == made.question(0)


# Sampling


def with_params(root, content, **arguments):
    (root / "models").mkdir(exist_ok=True)
    (root / "models" / "p.json").write_text(content if isinstance(content, str) else json.dumps(content))
    generate = {"method": "generate", "params": "models/p.json"}
    return ultraeval.load(config=with_config(root, generate=generate), **arguments)


def test_sampling_parameters(root):
    content = {
        "temperature": 0.3, "top_p": 0.8, "top_k": 5, "max_tokens": 300, "stop": ["\n\n", "Q:"], "sampling_num": 2,
        "frequency_penalty": 0.5, "presence_penalty": 1, "batch_size": 8, "use_beam_search": True, "stop_token_ids": None,
    }  # fmt: skip
    evalset = with_params(root, content)
    spec = evalset.adapter_spec
    assert (spec.temperature, spec.max_tokens, spec.stop_sequences, spec.num_outputs) == (0.3, 300, ["\n\n", "Q:"], 2)
    decoding = {"top_p": 0.8, "top_k_per_token": 5, "frequency_penalty": 0.5, "presence_penalty": 1.0}
    assert all(row_extra(instance)["decoding"] == decoding for instance in evalset.instances)
    ignored, warning = evalset.warnings
    assert (ignored.code, ignored.location.field) == ("sampling-ignored", "use_beam_search")
    assert (warning.code, "but for metrics that look at all" in warning.message) == ("several-samples", False)
    code = with_params(root, content, metric="function_execution", allow_code=True)
    assert "but for metrics that look at all" in code.warnings[1].message
    assert with_params(root, content, max_tokens=7, temperature=1).adapter_spec.max_tokens == 7
    assert with_params(root, {"top_k": -1, "stop": "x"}).adapter_spec.stop_sequences == ["x"]
    assert "decoding" not in row_extra(with_params(root, {"top_k": -1}).instances[0])


def test_params_are_those_of_tasks_that_name_none(root, tmp_path, monkeypatch):
    """As upstream's `--params`: `sample_config["params"] if sample_config["params"] else params`."""
    own = made.write_config(root / "models" / "own.json", {"max_tokens": 11})
    other = made.write_config(root / "models" / "other.json", {"max_tokens": 22})
    generate = {"method": "generate", "params": "models/own.json"}
    with_own, without = with_config(root, name="own.json", generate=generate), with_config(root)
    monkeypatch.chdir(tmp_path)

    def max_tokens(**arguments):
        return ultraeval.load(**arguments).adapter_spec.max_tokens

    assert max_tokens(config=without, params=other) == 22
    assert max_tokens(config=with_own, params=other) == 11
    assert max_tokens(config=with_own, params=root / "models" / "none.json") == 11
    assert max_tokens(config=without, params="models/other.json") == 22  # in the checkout
    assert max_tokens(config=without, params=other, max_tokens=33) == 33
    made.write_config(tmp_path / "models" / "other.json", {"max_tokens": 44})
    assert max_tokens(config=without, params="models/other.json") == 44  # nearer: in the working directory
    assert max_tokens(dataset="sums", root=root, method="gen", params=own) == 11
    ppl = ultraeval.load(dataset="sums", root=root, method="ppl", params=own)
    assert ppl.digest == ultraeval.load(dataset="sums", root=root, method="ppl").digest  # nothing is sampled
    changed = ultraeval.load(config=without, params=other).digest
    assert changed != ultraeval.load(config=without).digest


# Metrics of the checkout's own

METRICS = """\
class Longer:
    def __init__(self, by=0):
        self.by = by

    def __call__(self, doc, ground_truth, results):
        print("noise")
        assert doc["question"].startswith("What"), doc
        return len(results[0]) - self.by >= len(ground_truth if isinstance(ground_truth, str) else ground_truth[0])


class Samples:
    def __call__(self, doc, ground_truth, results):
        return [isinstance(ground_truth, list), len(results) > 1]


class Broken:
    def __call__(self, doc, ground_truth, results):
        raise KeyError("score")


class Wordy:
    def __call__(self, doc, ground_truth, results):
        return "good"


METRICS_REGISTRY = {"longer": Longer, "samples": Samples, "broken": Broken, "wordy": Wordy}
"""


@pytest.fixture
def own_metrics(root):
    (root / "metrics").mkdir()
    (root / "metrics" / "__init__.py").write_text(METRICS)
    return root


def row_stats(evalset, *texts, number=0):
    metric = create_metric(evalset.details.to_metric_spec(evalset.scoring))
    question = Question(evalset.instances[number], None, AnswerReader(evalset.scoring))
    return metric.compute_own_stats(question, [Answer(text) for text in texts])


def test_a_metric_that_the_checkout_registers(own_metrics, folder, capsys):
    evalset = load(own_metrics, method="gen", metric="Longer+exact_match")
    assert evalset.scoring.metrics == ("ultraeval_longer", "ultraeval_exact_match")
    assert evalset.scoring.main_metric == "ultraeval_longer"
    assert row_stats(evalset, "1") == {"ultraeval_longer": 1, "ultraeval_exact_match": 1}
    assert row_stats(evalset, "") == {"ultraeval_longer": 0, "ultraeval_exact_match": 0}
    assert capsys.readouterr().out == ""  # what it prints goes to standard error
    described = create_metric(evalset.details.to_metric_spec(evalset.scoring)).get_metadata()
    assert "ultraeval_longer" in {metadata.name for metadata in described}
    metric = {"accuracy": {"evaluation": {"type": "longer", "by": 1}}}
    evalset = ultraeval.load(config=with_config(own_metrics, metric=metric))
    assert evalset.scoring.main_metric == "ultraeval_longer_by=1"
    assert row_stats(evalset, "1") == {"ultraeval_longer_by=1": 0}
    assert row_stats(evalset, "11") == {"ultraeval_longer_by=1": 1}
    # Called as upstream does: with the answer or the list of answers, and all samples; several values are averaged.
    assert row_stats(load(own_metrics, method="gen", metric="samples"), "a", "b") == {"ultraeval_samples": 0.5}
    made.write_rows(folder / "data" / "sums.jsonl", [made.question(0, answer=["1"])])
    assert row_stats(load(own_metrics, method="gen", metric="samples"), "a", "b") == {"ultraeval_samples": 1}


def test_metrics_of_the_checkout_are_part_of_the_digest(own_metrics):
    before = load(own_metrics, method="gen", metric="longer").digest
    plain = load(own_metrics, method="gen").digest
    (own_metrics / "metrics" / "__init__.py").write_text(METRICS + "\n")
    assert load(own_metrics, method="gen", metric="longer").digest != before
    assert load(own_metrics, method="gen").digest == plain


@pytest.mark.parametrize(("metric", "error", "message"), [
    ("longr", RunEntryError, "metric=longr: unknown metric, also in .*metrics/__init__.py\n  hint: .*'longer'"),
    ("exat_match", RunEntryError, "metric=exat_match: unknown metric.*\n  hint: did you mean 'exact_match'"),
    ("broken", TransformError, "broken of the checkout's .* could not score the answer \"1\": KeyError: 'score'"),
    ("wordy", TransformError, 'metric wordy of the checkout returned "good", expected a number'),
])  # fmt: skip
def test_metrics_of_the_checkout_that_fail(own_metrics, metric, error, message):
    with pytest.raises(error, match=message):
        row_stats(load(own_metrics, method="gen", metric=metric), "1")


def test_metrics_that_cannot_be_loaded_or_made(own_metrics):
    path = with_config(own_metrics, metric={"accuracy": {"evaluation": {"type": "longer", "than": 1}}})
    assert "could not make longer: TypeError" in refused(TransformError, ultraeval.load, config=path)
    (own_metrics / "metrics" / "__init__.py").write_text("import no_such_package\n")
    said = refused(TransformError, ultraeval.load, config=path)
    assert "could not be loaded: ModuleNotFoundError" in said
    assert "\n  hint: upstream's metrics import" in said
    problems, _ = ultraeval.check(config=path)
    assert [problem.code for problem in problems] == ["metric-raised"]
    assert ultraeval.check(config=path, execute=False)[0] == []  # its code is not run
    (own_metrics / "metrics" / "__init__.py").unlink()
    problems, _ = ultraeval.check(config=path, execute=False)
    assert [problem.code for problem in problems] == ["metric"]


def test_several_samples_of_code(root, folder):
    row = {"prompt": "def f():\n", "test": "def check(g):\n    assert g() == 1", "entry_point": "f"}
    made.write_rows(folder / "data" / "sums.jsonl", [made.question(0, **row)])
    evalset = load(root, method="gen", metric="function_execution", allow_code=True)
    right, wrong = "    return 1", "    return 2"
    assert row_stats(evalset, right) == {"ultraeval_function_execution": 1}
    # 1 of 3 passes: pass@1 is 1/3, pass@2 is 1 - (2 of 2 wrong ones)/(3 of 2) = 1 - 1/3.
    stats = row_stats(evalset, wrong, right, wrong)
    assert stats == pytest.approx({"ultraeval_function_execution": 1 / 3, "ultraeval_pass@2": 2 / 3})
    described = create_metric(evalset.details.to_metric_spec(evalset.scoring)).get_metadata()
    assert {"ultraeval_pass@2", "ultraeval_pass@100"} <= {metadata.name for metadata in described}
    plain = create_metric(load(root, method="gen").details.to_metric_spec(evalset.scoring.__class__())).get_metadata()
    assert not any("pass@" in metadata.name for metadata in plain)


# Postprocessing


def test_postprocessing_of_the_checkout_wins(root):
    evalset = load(root, method="gen", postprocess="first_line")
    assert evalset.details.root == str(root)
    assert ultraeval.get_postprocess("first_line", evalset.details.root)("a\nb") == "A\nB"
    assert ultraeval.get_postprocess("first_line")("a\nb") == "a"
    assert load(root, method="gen", postprocess="boxed").details.root is None
    assert ultraeval.get_postprocess("nothing", str(root))("x") == ""
    assert ultraeval.get_postprocess("whole", str(root))("x") == "x!"
    assert ultraeval.get_postprocess("", str(root))(" raw ") == " raw "
    with pytest.raises(RunEntryError, match="no such postprocessing in .*postprocess.py or among ours"):
        ultraeval.get_postprocess("zzzz", str(root))
    (root / "tasks" / "postprocess.py").write_text("POSTPROCESS_REGISTRY = 3\n")
    assert load(root, method="gen", postprocess="boxed").details.postprocess == "boxed"


# The digest


def test_the_digest_covers_what_the_task_is_made_of(root, folder):
    with_config(folder, name="config/sums_gen.json")
    digests = [load(root, method="gen").digest]
    assert load(root, method="gen").digest == digests[0]
    assert load(root, method="gen", seed=3, fewshot=2).digest == digests[0]  # options stand in the run's name
    with_config(folder, name="config/sums_gen.json", description="Add.")
    digests.append(load(root, method="gen").digest)
    (folder / "transform_gen_v0.py").write_text(made.GEN_SCRIPT + "# changed\n")
    digests.append(load(root, method="gen").digest)
    with (folder / "data" / "sums.jsonl").open("a") as file:
        file.write(json.dumps(made.question(99)) + "\n")
    digests.append(load(root, method="gen").digest)
    demos = made.write_rows(root / "demos.jsonl", [made.question(7)])
    digests.append(load(root, method="gen", demos=demos, fewshot=1).digest)
    digests.append(load(root, method="gen", postprocess="shout").digest)
    (root / "tasks" / "postprocess.py").write_text(made.POSTPROCESS + "# changed\n")
    assert load(root, method="gen").digest not in digests[4:]
    digests.append(load(root, method="gen", postprocess="shout").digest)
    assert len(set(digests)) == len(digests)


# Demonstrations


# What is refused

DATA, CONFIG, SUMS = "datasets/sums/data/sums.jsonl", "configs/one.json", {"dataset": "sums"}
GEN, PPL, ONE = {**SUMS, "method": "gen"}, {**SUMS, "method": "ppl"}, {"config": CONFIG}
SEVERAL = {CONFIG: [made.config("gen"), made.config("ppl"), made.config("gen", task="more")]}
PAIR = {"data": DATA, "transform": "datasets/sums/transform_gen_v0.py"}
BLEU = {"evaluation": {"type": "bleu"}, "aggregation": {"type": "pass_k"}}


def bleu(**changes):
    return {CONFIG: made.config(metric={"bleu": {**BLEU, **changes}})}


REFUSED = [
    # The files in the checkout that are others (None: not there), the arguments, the error.
    ({}, {}, RunEntryError, "exactly one of config, dataset, data is needed, none is given"),
    ({}, {"config": "a", "dataset": "b"}, RunEntryError, "config and dataset are given"),
    ({}, {"data": DATA}, RunEntryError, "transform=SCRIPT is needed"),
    ({}, {**GEN, "root": "nowhere"}, RunEntryError, "root=nowhere: no such folder"),
    ({}, {**GEN, "fewshots": 1}, RunEntryError, "unknown argument 'fewshots'\n  hint: did you mean 'fewshot'"),
    ({}, {**SUMS, "zzzz": 1}, RunEntryError, "hint: known: config, "),
    ({}, {**SUMS, "method": "perplexity"}, RunEntryError, "method=perplexity: expected gen or ppl"),
    ({}, {**SUMS, "method": 5}, RunEntryError, "method=5: expected gen or ppl"),
    *(({}, {**GEN, "dataset_name": name}, RunEntryError, f"dataset_name={name}: expected <dataset>_<task>_<gen|ppl>") for name in ("sums", 5)),
    *(({}, {**GEN, name: value}, RunEntryError, f"{name}={value}: expected {said}") for name, values, said in [
        ("seed", ["x"], "a whole number"),
        ("fewshot", [-1, 1.5, 2.0], "a whole number of at least 0"),
        ("limit", [0, True], "a whole number of at least 1"),
        ("max_tokens", [0, "5"], "a whole number of at least 1"),
        ("temperature", [-0.5], "a number that is not negative"),
        ("temperature", ["hot", float("nan"), float("inf"), "0.5"], "a number"),
    ] for value in values),
    # Metrics and postprocessing
    *(({}, {**GEN, **arguments}, RunEntryError, said) for arguments, said in [
        ({"metric": "exactmatch"}, "did you mean 'exact_match'"),
        ({"metric": "gpt4_eval"}, "metric=gpt4_eval: unknown metric"),
        ({"metric": "log_prob"}, "method=ppl"),
        ({"metric": "zzzz"}, "known: "),
        ({"metric": "function_execution"}, "allow_code=true permits it"),
        ({"postprocess": "shoot"}, "did you mean 'shout'"),
        ({"postprocess": 5}, "postprocess=5: no such postprocessing"),
    ]),
    *(({}, {**PPL, **arguments}, RunEntryError, said) for arguments, said in [
        ({"metric": "exact_match"}, "it scores generated answers: method=gen"),
        ({"metric": "logprob"}, "did you mean 'log_prob'"),
        ({"metric": "zzzz"}, "known: log_prob, ppl"),
        ({"postprocess": "general_torch_ppl_nrm"}, "did you mean 'general_torch_ppl_norm'"),
        ({"postprocess": "zzzz"}, "known: none, general_torch"),
    ]),
    (bleu(evaluation={"type": "bleu", "tokenizer": "ja-mecab"}), ONE, RunEntryError, "tokenizer 'ja-mecab' is not available"),
    (bleu(aggregation={"type": "median"}), ONE, DatasetError, "metric.bleu.aggregation.type: unknown aggregation 'median'"),
    # Which task, and its files
    (SEVERAL, ONE, RunEntryError, "holds 3 tasks\n  hint: task=NAME chooses one: sums_sums_gen, sums_sums_ppl, more"),
    (SEVERAL, {**ONE, "task": "mroe"}, RunEntryError, "one.json has no such task\n  hint: did you mean"),
    ({CONFIG: [made.config("gen"), made.config("gen", task="more")]}, {**ONE, "method": "ppl"}, RunEntryError, "one.json has no such task"),
    ({CONFIG: made.config()}, {**ONE, "method": "ppl"}, RunEntryError, "method=ppl: the config's task is for gen"),
    ({CONFIG: made.config()}, {**ONE, "params": "models/none.json"}, DatasetNotFoundError, "params: no such file"),
    ({}, SUMS, RunEntryError, "GEN and PPL scripts\n  hint: method=gen or method=ppl"),
    ({}, {**PPL, "version": 7}, RunEntryError, "has no script transform_ppl_v7.py\n  hint: versions: v0, v1"),
    ({f"datasets/sums/transform_gen_v{n}.py": None for n in "01"}, GEN, RunEntryError, "has scripts for ppl only"),
    ({f"datasets/sums/transform_{kind}_v{n}.py": None for kind in ("gen", "ppl") for n in "01"}, GEN, DatasetNotFoundError, "no transform_gen_v0.py"),
    ({DATA: None, "datasets/sums/data/a.jsonl": "", "datasets/sums/data/b.jsonl": ""}, GEN, RunEntryError,
     "2 data files, and none is sums\n  hint: task=NAME chooses one: a, b"),
    ({}, {**GEN, "task": "sum"}, RunEntryError, "did you mean 'sums'"),
    ({DATA: None}, GEN, DatasetNotFoundError, "no data/*.jsonl in the folder"),
    # A fresh checkout has scripts and configs, and no data: the hint says how upstream makes it.
    ({DATA: None, "datasets/sums/make_dataset.py": ""}, GEN, DatasetNotFoundError, "make_dataset.py writes it"),
    ({}, {**GEN, "dataset": "sum"}, DatasetNotFoundError, "no folder datasets/sum\n  hint: did you mean 'sums'"),
    ({}, {**PAIR, "data": DATA.replace("sums.j", "sum.j")}, DatasetNotFoundError, "data: no such file\n  hint: did you mean 'sums.jsonl'"),
    ({}, {**PAIR, "transform": "datasets/sums/transform_gen_v9.py"}, DatasetNotFoundError, "transform: no such file\n  hint: did you mean"),
    ({}, {**GEN, "demos": "none.jsonl"}, DatasetNotFoundError, "demos: no such file"),
    ({}, {"config": "none.json"}, DatasetNotFoundError, "none.json"),
    ({}, {**GEN, "fewshot": 10}, DatasetIntegrityError, "10 demonstrations and the question need 11 rows, the file has 10\n  hint: fewshot=9 is possible; demos=FILE"),
    ({"demos.jsonl": '{"a": 1}\n'}, {**GEN, "fewshot": 2, "demos": "demos.jsonl"}, DatasetIntegrityError, "2 demonstrations need 2 rows, the file has 1"),
    # What the files hold
    *(({DATA: content}, GEN, DatasetError, said) for content, said in [
        ("", "the file is empty"),
        ("\n\n", "the file holds no rows"),
        ('{"a": 1}\n[1]\n3\n', ":2: expected a JSON object, got [1]"),
        ('{"a": 1}\n{"b"\n', ":2: not JSON"),
        ('{"a": 1}\n\n{"b": 1}\n', ":2: blank line"),
        (b'{"a": "\xff"}\n', ":1: not UTF-8: byte 0xff"),
        ('{"target_scores": {"x": 0, "x": 1}}\n', 'the key "x" is given twice'),
    ]),
    ({CONFIG: "{"}, ONE, DatasetError, "not JSON"),
    *(({CONFIG: content}, ONE, DatasetSchemaError, said) for content, said in [
        ([], "the config holds no tasks"),
        (3, "expected an object or a list of objects, got 3"),
        (["x"], '[0]: expected an object or a list of objects, got "x"'),
        ({"dataset_name": "x", "instance_result": {}, "overall_result": {}}, "one.json: this is the log or the result of a finished run"),
        (made.config(**{"few-shot": 0, "log_dir": "logs"}), "one.json: this is the log or the result of a finished run"),
        ({}, "task_name: missing"),
        (made.config(fewshot=-1), "fewshot: expected a whole number of at least 0, got -1"),
        (made.config(fewshot="2"), 'fewshot: expected a whole number of at least 0, got "2"'),
        (made.config(path=""), "path: must not be empty"),
        (made.config(metric={}), "metric: must not be empty"),
        (made.config(metric={"accuracy": {}}), "metric.accuracy.evaluation: missing"),
        (made.config(metric=3), "metric: expected an object, got 3"),
        (made.config(generate=3), "generate: expected an object, got 3"),
        (made.config(description=3), "description: expected a string, got 3"),
        (made.config(generate={"method": "beam"}), 'generate.method: expected "generate" or "loglikelihood", got "beam"'),
        ([made.config(), made.config()], "two tasks are called 'sums'"),
    ]),
]  # fmt: skip


@pytest.mark.parametrize(("files", "arguments", "error", "message"), REFUSED)
def test_what_is_refused(root, monkeypatch, files, arguments, error, message):
    monkeypatch.chdir(root)
    for name, content in files.items():
        (root / name).parent.mkdir(exist_ok=True)
        if content is None:
            (root / name).unlink()
        elif isinstance(content, str | bytes):
            (root / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        else:
            made.write_config(root / name, content)
    said = refused(error, FORMAT.load, **arguments)
    assert message in said
    assert "pydantic" not in said
    try:  # `check` says the same, as a problem or an error
        found = "\n".join(map(str, FORMAT.check(**arguments)[0]))
    except (DatasetError, RunEntryError) as caught:
        found = str(caught)
    assert message in found or "allow_code" in message


@pytest.mark.parametrize(("options", "message"), [
    (None, "target_scores: missing"),
    ({}, "target_scores: expected options with numbers, got {}"),
    (["a"], 'target_scores: expected options with numbers, got ["a"]'),
    ({"a": "1"}, 'target_scores: "a": expected a finite number, got "1"'),
])  # fmt: skip
def test_ppl_needs_options_with_numbers(root, folder, options, message):
    bad = made.question(1)
    if options is None:
        del bad["target_scores"]
    else:
        bad["target_scores"] = options
    (folder / "transform_ppl_v1.py").write_text(made.GEN_SCRIPT)
    made.write_rows(folder / "data" / "sums.jsonl", [made.question(0), bad, bad])
    with pytest.raises(DatasetIntegrityError) as caught:
        load(root, method="ppl", version=1)
    assert message in str(caught.value)
    assert [problem.location.line for problem in caught.value.problems] == [2, 3]
    assert load(root, method="gen").counts["eval"] == 3  # free-form rows are fine there


def test_all_failing_rows_are_reported_once(root, folder):
    rows = [made.question(n) for n in range(6)]
    del rows[2]["answer"]
    rows[4]["answer"] = 5
    made.write_rows(folder / "data" / "sums.jsonl", rows)
    with pytest.raises(TransformError) as caught:
        load(root, method="gen", fewshot=3)
    first, second = caught.value.problems
    assert first.message == "sums.jsonl, row 3: transform raised KeyError: 'answer'"
    assert first.location.line == 2
    assert first.hint.startswith('the row (line 3): {"question"')
    assert second.message == "sums.jsonl, row 5: output: expected a string or a list of strings, got int 5"
    demos = made.write_rows(root / "demos.jsonl", [rows[2]])
    made.write_rows(folder / "data" / "sums.jsonl", rows[:2])
    with pytest.raises(TransformError, match=r"demos\.jsonl, row 1: transform raised KeyError"):
        load(root, method="gen", fewshot=1, demos=demos)


# Configs of other shapes


def test_all_problems_of_a_config_at_once(root):
    with pytest.raises(DatasetSchemaError) as caught:
        ultraeval.load(config=with_config(root, [{}, made.config(fewshot=-1)]))
    fields = [problem.location.field for problem in caught.value.problems]
    assert fields == ["[0].task_name", "[0].path", "[0].transform", "[0].generate", "[0].metric", "[1].fewshot"]


# check


def test_check_runs_the_script_on_every_row(root, folder):
    assert check(root, method="gen", version=0) == ([], {"rows": 10, "failed": 0})
    rows = [made.question(n) for n in range(5)]
    del rows[1]["answer"]
    del rows[3]["answer"]
    made.write_rows(folder / "data" / "sums.jsonl", rows)
    problems, counts = check(root, method="gen", version=0, limit=1, seed=3)
    assert [problem.message.split(":")[0] for problem in problems] == ["sums.jsonl, row 2", "sums.jsonl, row 4"]
    assert counts == {"rows": 5, "failed": 2}
    assert check(root, method="gen", version=0, execute=False) == ([], {"rows": 5})


def test_check_collects_across_files(root, folder):
    made.write_rows(folder / "data" / "sums.jsonl", [made.question(0), {"question": "?"}])
    demos = root / "demos.jsonl"
    demos.write_text("{}\nx\n")
    problems, counts = check(root, method="ppl", version=0, fewshot=5, demos=demos)
    codes = [problem.code for problem in problems]
    assert "no-options" in codes
    assert "transform-raised" in codes
    assert any("demos.jsonl:2" in str(problem) for problem in problems)
    assert counts["rows"] == 2
    problems, _ = check(root, method="ppl", version=0, fewshot=5)
    assert "too-few-rows" in [problem.code for problem in problems]


def test_check_does_not_run_a_script_unless_asked(root, folder, tmp_path):
    marker = tmp_path / "marker"
    (folder / "transform_gen_v0.py").write_text(f"open({str(marker)!r}, 'w')\n" + made.GEN_SCRIPT)
    check(root, method="gen", version=0, execute=False)
    assert not marker.exists()
    check(root, method="gen", version=0)
    assert marker.exists()


def test_check_of_broken_scripts(root, folder):
    (folder / "transform_gen_v0.py").write_text("def transform(:\n")
    for execute in (True, False):
        (problem,) = check(root, method="gen", version=0, execute=execute)[0]
        assert problem.code == "script-syntax"
    (problem,) = check(root, method="gen", version=1, postprocess="zzzz")[0]
    assert problem.code == "postprocess"
    (problem,) = check(root, method="gen", version=1, metric="function_execution")[0]
    assert (problem.code, problem.severity) == ("code-execution", "warning")
    assert check(root, method="gen", version=1, metric="function_execution", allow_code=True)[0] == []
    (folder / "data" / "sums.jsonl").write_text("\n")
    (problem,) = check(root, method="gen", version=1)[0]
    assert problem.code == "no-rows"


def test_rows_without_options_are_told_before_the_script_runs(root, folder, tmp_path):
    ran = tmp_path / "ran"
    (folder / "transform_ppl_v1.py").write_text(f"open({str(ran)!r}, 'w').close()\n" + made.PPL_SCRIPT)
    made.write_rows(folder / "data" / "sums.jsonl", [made.question(0), {"question": "Why?"}])
    with pytest.raises(DatasetIntegrityError, match=r"sums\.jsonl:2: target_scores: missing"):
        load(root, method="ppl", version=1)
    assert not ran.exists()
    load(root, method="ppl", version=1, limit=1)  # rows beyond are not asked
    assert ran.exists()


@pytest.mark.parametrize("worth", ["1e999", "-1e999", "1" + "0" * 400])
def test_an_option_is_worth_a_finite_number(root, folder, worth):
    text = json.dumps(made.question(0, target_scores={"a": 0, "b": 77})).replace("77", worth)
    (folder / "data" / "sums.jsonl").write_text(text + "\n")
    problems, _ = check(root, method="ppl", version=0)
    assert len(problems) == 1
    assert problems[0].severity == "error"


POSTPROCESSES = """
class Eager:
    def __call__(self, raw_outputs, processed_outputs):
        return raw_outputs, [processed_outputs[0].split()[0]]

class Needs:
    def __init__(self, settings):
        pass

class Leaves:
    def __call__(self, raw_outputs, processed_outputs):
        raise SystemExit("bye")

POSTPROCESS_REGISTRY = {"eager": Eager, "needs": Needs, "leaves": Leaves}
"""


@pytest.mark.parametrize(
    ("name", "said"), [("eager", "IndexError: list index"), ("needs", "TypeError: "), ("leaves", "SystemExit: bye")]
)
def test_check_calls_the_checkouts_postprocessing_once(root, name, said):
    (root / "tasks" / "postprocess.py").write_text(POSTPROCESSES)
    (problem,) = check(root, method="gen", version=0, postprocess=name)[0]
    assert f'postprocess={name} of the checkout failed on the completion "": {said}' in problem.message
    assert problem.code == "postprocess-raised"
    assert check(root, method="gen", version=0, postprocess=name, execute=False)[0] == []


def test_the_schema_describes_the_configs_that_are_read(root):
    schema = json.loads(json.dumps(config_schema()))
    assert schema["$schema"] == Draft202012Validator.META_SCHEMA["$id"]
    assert schema["$defs"]["TaskConfig"]["properties"].keys() == made.config().keys()
    is_valid = Draft202012Validator(schema).is_valid
    assert all(map(is_valid, [made.config(), [made.config(), made.config("ppl")]]))
    assert not any(map(is_valid, [{}, [{}], 3, made.config(fewshot="2")]))
