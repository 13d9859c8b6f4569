"""Our rules beside UltraEval's own code, on the same inputs: metrics, postprocessing, PPL rules, whole evaluations.

`ULTRAEVAL_REPO` names a checkout of github.com/OpenBMB/UltraEval; without one these tests are skipped, and say so. The
unit tests (test_ultraeval_scores.py, test_ultraeval_postprocess.py, test_likelihood.py) hold literal values.
"""

import importlib.util
import itertools
import json
import math
import random
import subprocess
import sys
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import upstream_ultraeval
from helm.benchmark.adaptation.scenario_state import ScenarioState
from helm.benchmark.metrics.metric import create_metric
from optional_sources import ULTRAEVAL_REPO as REPO
from optional_sources import needs_ultraeval

from helm_ext import plugin  # noqa: F401 - registers recorded deployments
from helm_ext.adaptation import wrap
from helm_ext.errors import DatasetNotFoundError, TransformError
from helm_ext.evalset import Scoring, row_extra
from helm_ext.formats.ultraeval import loading as ultraeval
from helm_ext.formats.ultraeval.checkout import NONE, get_postprocess
from helm_ext.formats.ultraeval.config import RunConfig, Sampling
from helm_ext.formats.ultraeval.metrics import PASS_AT, UltraEvalMetric, pass_at
from helm_ext.formats.ultraeval.questions import to_gen_instance
from helm_ext.formats.ultraeval.scoring import read_metrics
from helm_ext.scoring.answers import Answer, AnswerReader, Question
from helm_ext.scoring.scores.likelihoods import argmin, mc2, ppl, ppl_norm
from helm_ext.scoring.scores.ultraeval import make_program, passes

pytestmark = needs_ultraeval

GEN_METRICS = ("exact_match", "prefix_match", "in_match", "qa_match", "f1_score", "gaokaobench_match", "bleu", "chrf")


@pytest.fixture(scope="module")
def metrics():
    return upstream_ultraeval.load_upstream(REPO, "upstream_metrics", "metrics/__init__.py").METRICS_REGISTRY


@pytest.fixture(scope="module")
def aggregators():
    return upstream_ultraeval.load_upstream(REPO, "upstream_aggregator", "metrics/aggregator.py").AGGREGATOR_REGISTRY


@pytest.fixture(scope="module")
def postprocess():
    return upstream_ultraeval.load_upstream(REPO, "upstream_postprocess", "tasks/postprocess.py").POSTPROCESS_REGISTRY


PIECES = (
    "Paris", "paris", " ", "  ", "\n", "\n\n", "\t", "\r\n", "\u00a0", "\u3000", "\u2028", ".", ",", "A", "B", "C", "(A)", "(B)", "B.", "(C).",
    "answer is", "The answer is ", "So the answer is", "答案是", "【答案】", "【答案】：B", "北京", "the", "an", "İstanbul", "straße", "É",
    "é", "42", "-1,000.5", "3.14", "####", "#### 42", "=", ">>", "<<6*7=42>>", "$", "$x = 5$", "\\boxed{4}", "\\boxed{x=4}",
    "\\frac12", "\\frac{1}{2}", "\\sqrt3", "0.5", "1/2", "50\\%", "\\text{ cm}", "[SEP]", "AB[SEP]CD", "ABCD", "ACBDE", "None", "null",
    "true", "```python\ndef f():\n    return 1\n```", "```", "def f(x):", "    return x", "import os", '"""', "<|endoftext|>",
    "\nclass", "\nprint(1)", "Hence x = 3", "final answer is $7$", "Which animal barks?", "The dog", "ﬀ", "①", "👍", "\u0301", "\x00", "\x1c",
)  # fmt: skip


def make_texts(count, seed=0):
    """Pieces, and words made of some: the same in every run."""
    rng = random.Random(seed)
    made = ["".join(rng.choices(PIECES, k=rng.randint(2, 6))) for _ in range(count - len(PIECES) - 1)]
    return ["", *PIECES, *made]


def make_golds(text, rng):
    """Accepted answers of which some fit: as they are, changed, in lists."""
    near = (text, text.strip(), text.lower().strip(), text[:3], text.replace(" ", ""), rng.choice(PIECES), text.upper())
    gold = rng.choice(near)
    return rng.choice((gold, gold, [gold], [rng.choice(PIECES), gold], [gold, gold, "x"], list(gold) or [""]))


ROW_SHAPES = (
    {"question": "Which animal barks?", "target_scores": {"The cat": 0, "The dog": 1, "The fish": 0}, "score": 3},
    {"question": "", "target_scores": {"Paris": 1, "B": 0}, "score": 1},
    {"question": " 42 ", "target_scores": {"": 1, "x": 1}, "score": 0.5},
    {"question": "北京", "target_scores": {"答案是": 0.5, " B ": 1, "A": 1, "c": 0}, "score": 2},
)


def ours(name, row, gold, predictions, definitions=None):
    """The value that a run would report for the row."""
    metric = UltraEvalMetric([name], definitions=definitions)
    instance = to_gen_instance(0, ("", "?"), gold, sampling=Sampling(), row=row)
    question = Question(instance, None, AnswerReader(Scoring()))
    return metric.compute_own_stats(question, [Answer(text) for text in predictions])[name]


def upstreams(make, *arguments):
    """Upstream's value; None where its code raises, which ends its run."""
    try:
        value = make(*arguments)
    except Exception:  # noqa: BLE001
        return None
    return float(np.mean(value))


def compare(name, upstream, definitions=None, count=700):
    """Compare both on `count` inputs; return how many upstream has a value for."""
    rng = random.Random(name)
    compared = Counter()
    for text in make_texts(count, seed=len(name)):
        row, gold = dict(rng.choice(ROW_SHAPES)), make_golds(text, rng)
        wanted = upstreams(upstream, row, gold, [text])
        value = ours(name, row, gold, [text], definitions)
        assert math.isfinite(value)
        if wanted is not None:
            assert value == pytest.approx(wanted, rel=1e-12, abs=1e-12), (row, gold, text)
            compared["equal", wanted > 0] += 1
    assert compared["equal", True] > 20
    assert compared["equal", False] > 20
    return compared.total()


@pytest.mark.parametrize("name", GEN_METRICS)
def test_metrics(metrics, name):
    # prefix_match raises for lists of golds: ours takes the best of them.
    assert compare(f"ultraeval_{name}", metrics[name]()) > (250 if name == "prefix_match" else 600)


@pytest.mark.parametrize("tokenizer", ["intl", "zh", "char", "none"])
def test_bleu_with_tokenizers(metrics, tokenizer):
    assert compare(f"ultraeval_bleu_{tokenizer}", metrics["bleu"](tokenizer=tokenizer), count=300) > 250


@pytest.mark.skipif(importlib.util.find_spec("rouge_chinese") is None, reason="rouge-chinese is not installed")
@pytest.mark.parametrize(("arguments", "suffix"), [
    ({}, ""), ({"n_gram": "2"}, "_2"), ({"n_gram": "l", "index": "r"}, "_r_l"), ({"tokenizer": "zh"}, "_zh"),
])  # fmt: skip
def test_rouge(metrics, arguments, suffix):
    name = f"ultraeval_rouge{suffix}"
    definitions = {name: {"type": "rouge", **arguments}} if arguments else None
    assert compare(name, metrics["rouge"](**arguments), definitions) > 600


PROGRAMS = (
    "    return x + 1\n", "    return x\n", "    raise SystemExit\n", "    return (\n", "    while True: pass\n", "",
    "    return x + 1\nif __name__ == '__main__':\n    raise ValueError\n", "    input()\n    return x + 1\n",
    "    return int(input())\n", "    import math\n    return math.floor(x + 1.5)\n", "    return x + 1\nassert __name__ == 'builtins'\n",
)  # fmt: skip


@pytest.mark.parametrize("body", PROGRAMS)
def test_function_execution(metrics, body):
    execution = metrics["function_execution"]()
    for row, completion in (
        (upstream_ultraeval.HUMANEVAL, body),
        (upstream_ultraeval.MBPP, f"def add(x):\n{body}"),
        ({**upstream_ultraeval.MBPP, **upstream_ultraeval.HUMANEVAL}, f"def add(x):\n{body}"),
        ({**upstream_ultraeval.MBPP, "text": 'Quote """ it.'}, f"def add(x):\n{body}"),
    ):
        assert [passes(make_program(row, completion))] == execution(row, "", [completion])


def test_several_samples(aggregators):
    aggregate = aggregators["pass_k"]()
    for samples, passed in ((1, 0), (1, 1), (2, 1), (10, 3), (10, 10), (60, 0), (100, 97), (120, 40)):
        wanted = aggregate([True] * passed + [False] * (samples - passed))
        assert wanted["pass@1"] == pytest.approx(passed / samples)
        made = {f"pass@{k}": pass_at(k, samples, passed) for k in PASS_AT if k <= samples}
        assert made == pytest.approx({key: value for key, value in wanted.items() if key != "pass@1"})
    assert aggregators["mean"]()([True, False, False, True]) == 0.5  # as pass@1


def make_logprobs(rng):
    """Log-probabilities of two to five options that begin alike; some are equal, some are NaN."""
    shared = [-rng.random() for _ in range(rng.randint(0, 3))]
    options = [shared + [-rng.random() * 9 for _ in range(rng.randint(1, 4))] for _ in range(rng.randint(2, 5))]
    if rng.random() < 0.3:
        options[1] = list(options[0])
    if rng.random() < 0.2:
        options[rng.randrange(len(options))][-1] = math.nan
    return options


def test_ppl_rules(metrics, postprocess):
    rng = random.Random(0)
    for _ in range(500):
        options = make_logprobs(rng)
        worth = {str(index): float(index == 0) for index in range(len(options))}
        row = {"target_scores": worth}
        (whole,) = postprocess["general_torch_ppl"]()([options], None)[1]
        assert ppl(options) == pytest.approx(whole, nan_ok=True)
        winner = argmin(whole)
        wanted = metrics["log_prob"]()(row, "", [whole])
        assert (worth[str(winner)] if winner is not None else 0) == wanted
        if not any(map(math.isnan, whole)):
            assert mc2(whole, list(worth.values())) == pytest.approx(metrics["log_prob_mc2"]()(row, "", [whole]))
        norm = upstreams(lambda options=options: postprocess["general_torch_ppl_norm"]()([options], None)[1][0])
        if norm is not None:
            (means,) = postprocess["general_torch_ppl_norm"]()([options], None)[1]
            assert ppl_norm(options) == pytest.approx(means, nan_ok=True)


def test_ties_are_broken_alike(metrics):
    for size in range(2, 30):
        row = {"target_scores": {str(index): index for index in range(size)}}
        values = [float(size)] * size
        assert argmin(values) == metrics["log_prob"]()(row, "", [values])


def test_postprocessing(postprocess):
    """Each of upstream's is its own code, called through a checkout."""
    texts = make_texts(700)
    compared, ended = Counter(), Counter()
    for name, factory in postprocess.items():
        if name.startswith("general_torch"):
            continue
        through_checkout = get_postprocess(name, str(REPO))
        for text in texts:
            try:
                (wanted,) = factory()([text], [text])[1]
            except Exception:  # noqa: BLE001
                ended[name] += 1
                with pytest.raises(TransformError, match="failed on the completion"):
                    through_checkout(text)
                continue
            compared[name] += 1
            assert through_checkout(text) == ("" if wanted is None else wanted), (name, text)
    assert len(compared) == 20
    assert "general_torch" in NONE  # upstream's leaves the text as it is
    assert postprocess["general_torch"]()(texts, None)[1] == texts


# Whole evaluations ----------------------------------------------------------------------------------------------------

STATS = {
    "prefix_match": "ultraeval_prefix_match", "exact_match": "ultraeval_exact_match", "in_match": "ultraeval_in_match",
    "qa_match": "ultraeval_qa_match", "f1_score": "ultraeval_f1_score", "chrf": "ultraeval_chrf",
    "gaokaobench_match": "ultraeval_gaokaobench_match", "function_execution": "ultraeval_function_execution",
    "log_prob": "ppl_accuracy", "log_prob_mc2": "mc2", ("bleu", "13a"): "ultraeval_bleu", ("bleu", "char"): "ultraeval_bleu_char",
}  # fmt: skip


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """A copy of the checkout with data of ours for every config."""
    root = upstream_ultraeval.copy_checkout(REPO, tmp_path_factory.mktemp("UltraEval"))
    yield root
    sys.modules.pop("UltraEval", None)


@pytest.fixture(scope="module")
def logs(checkout, tmp_path_factory):
    """What upstream's main.py writes for every config: one folder a task."""
    out = tmp_path_factory.mktemp("logs")
    for method in ("gen", "ppl"):
        command = [sys.executable, upstream_ultraeval.__file__, str(checkout), method, str(out)]
        subprocess.run(command, check=True, capture_output=True)
    return {folder.name: folder for folder in sorted(out.iterdir())}


def all_configs(checkout):
    return upstream_ultraeval.make_configs(checkout, "gen") + upstream_ultraeval.make_configs(checkout, "ppl")


def stat_of(config, name):
    """The stat that upstream's metric is in our results."""
    evaluation = config["metric"][name]["evaluation"]
    kind = evaluation["type"]
    if kind == "log_prob" and config["postprocess"] == "general_torch_ppl_norm":
        return "ppl_norm_accuracy"
    return STATS[(kind, evaluation["tokenizer"]) if kind == "bleu" else kind]


def rescore(evalset):
    """Row number to the stats of a recorded run."""
    spec = replace(evalset.adapter_spec, model="x/y", model_deployment="recorded/x")
    states = wrap.rebuild_recorded(evalset.instances, spec)
    states = [replace(state, result=state.request.result) for state in states]
    metric = create_metric(evalset.details.to_metric_spec(evalset.scoring))
    result = metric.evaluate(ScenarioState(spec, states), None, "", parallelism=1)
    return {
        int(row.instance_id.removeprefix("id")): {stat.name.name: stat.mean for stat in row.stats}
        for row in result.per_instance_stats
    }


def test_every_log_of_upstreams_keeps_its_metric_and_its_scores(checkout, logs):
    configs = {config["task_name"]: config for config in all_configs(checkout)}
    assert set(logs) == set(configs)
    assert len(logs) == 407
    values = Counter()
    for task, folder in logs.items():
        evalset = ultraeval.load(data=folder / "instance.jsonl", root=checkout, allow_code=True)
        assert evalset.name == task
        config = configs[task]
        stats = {name: stat_of(config, name) for name in config["metric"]}
        assert set(evalset.scoring.metrics or [evalset.scoring.main_metric]) == set(stats.values())
        main = "accuracy" if "accuracy" in stats else next(iter(stats))
        assert evalset.scoring.main_metric == stats[main]
        rows = rescore(evalset)
        lines = (folder / "instance.jsonl").read_text(encoding="utf-8").splitlines()
        for number, line in enumerate(map(json.loads, lines)):
            for name, stat in stats.items():
                wanted = float(np.mean(line["eval_results"][name]))
                assert rows[number][stat] == pytest.approx(wanted), (task, number, name)
                values[stat, wanted > 0] += 1
        final = json.loads((folder / "final_metrics.json").read_text(encoding="utf-8"))["overall_result"]
        mean = float(np.mean([rows[number][stats[main]] for number in rows]))
        assert mean == pytest.approx(final.get(main, final.get("pass@1")))
    # Right and wrong answers occurred for each rule.
    assert [
        key for key in itertools.product(STATS.values(), (True, False)) if not values[key] and key[0] != "mc2"
    ] == []


def test_every_file_of_upstreams_leaderboard_names_its_metric():
    """They say `metrics`, and PPL's rule also in `model_postprocess`."""
    paths = sorted(REPO.glob("leaderboard/**/*.json"))
    assert len(paths) > 3000
    found = Counter()
    for path in paths:
        said = json.loads(path.read_text(encoding="utf-8"))
        log = RunConfig.model_validate(said)
        method = "gen" if said["generate"]["method"] == "generate" else "ppl"
        choice = read_metrics(log.metrics, method, log.postprocess(method), "")
        config = {"metric": said["metrics"], "postprocess": said["task_postprocess"] or said["model_postprocess"]}
        assert set(choice.names) == {stat_of(config, name) for name in said["metrics"]}
        assert log.task_name == said["dataset_name"]
        found[choice.names[0]] += 1
    assert set(found) == {
        "ultraeval_prefix_match", "ultraeval_exact_match", "ultraeval_function_execution", "ppl_accuracy", "ppl_norm_accuracy",
    }  # fmt: skip


def test_every_task_asks_upstreams_prompts(checkout, logs):
    for method in ("gen", "ppl"):
        config = checkout / "configs" / f"all_{method}.json"  # written by make_configs for upstream's run
        names = ultraeval.tasks(config)
        assert len(names) == {"gen": 340, "ppl": 67}[method]
        for task in names:
            evalset = ultraeval.load(config=config, task=task, allow_code=True)
            lines = (logs[task] / "instance.jsonl").read_text(encoding="utf-8").splitlines()
            asked = ["".join(row_extra(instance)["prompt"]) for instance in evalset.instances]
            assert asked == [json.loads(line)["prompt_inputs"][0] for line in lines], task


def test_every_config_without_data_says_what_makes_it():
    for path in sorted(REPO.glob("datasets/*/config/*.json")):
        data = REPO / json.loads(path.read_text(encoding="utf-8"))["path"]
        assert not data.is_file()
        with pytest.raises(DatasetNotFoundError) as caught:
            ultraeval.load(config=path, allow_code=True)
        maker = data.parent.parent / "make_dataset.py"
        assert str(caught.value).startswith(
            f"{data}: data: no such file\n  hint: {maker} writes it from UltraEval's raw data"
        )
