"""UltraEval tasks on a real (tiny) Hugging Face model through helm-run, against plain torch on the same strings.

By HELM's client and runner, and by ours: the client that computes the options of a row together.
"""

import json
import math
import random
import subprocess
import sys

import processes
import pytest
import tiny_model
import ultraeval_checkout

pytestmark = [
    pytest.mark.slow,
    pytest.mark.nightly(
        "src/helm_ext/formats/ultraeval", "src/helm_ext/clients", "src/helm_ext/adaptation", "src/helm_ext/scoring"
    ),
]

ROWS = 50
SUBJECTS = ("The kettle", "A sleepy dog", "Mira", "今天的小猫", "Tom's bicycle", "The café owner")
VERBS = ("is warm", "runs to the library", "在屋里", "keeps 3 apples", "waits")
MODEL = "tiny/gpt2"
OURS = "helm_ext.clients.SharedPrefixHuggingFaceClient"
WAYS = {"helm": ({}, ()), "ours": ({"client": OURS}, ("--runner-class-name", "helm_ext.running.StreamingRunner"))}

TORCH = """
import json, sys
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

folder, strings = sys.argv[1], json.load(sys.stdin)
tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModelForCausalLM.from_pretrained(folder).eval()
scores = []
with torch.no_grad():
    for string in strings:
        ids = tokenizer(string, return_tensors="pt").input_ids
        loss = model(ids, labels=ids).loss  # mean over all tokens but the first
        scores.append(loss.item() * (ids.shape[1] - 1))
json.dump(scores, sys.stdout)
"""


def make_rows():
    rng = random.Random(5)
    rows = []
    for number in range(ROWS):
        options = rng.sample(VERBS, rng.choice((2, 3, 4)))
        worth = [rng.choice((0, 0.25, 1)) for _ in options]
        worth[rng.randrange(len(worth))] = 1
        question = f"{rng.choice(SUBJECTS)} ({number})"
        rows.append({"question": question, "target_scores": dict(zip(options, worth, strict=True)), "answer": "x"})
    return rows


@pytest.fixture(scope="module", params=WAYS)
def folder(request, tmp_path_factory):
    """One helm-run of three entries and four runs, then helm-summarize."""
    folder = tmp_path_factory.mktemp("ultraeval")
    model = tiny_model.build_tiny_model(folder / "model")
    client, options = WAYS[request.param]
    tiny_model.model_files(folder / "prod_env", model, **client)
    root = ultraeval_checkout.make_checkout(folder / "checkout")
    ultraeval_checkout.write_rows(root / "datasets" / "sums" / "data" / "sums.jsonl", make_rows())
    configs = [
        ultraeval_checkout.config("ppl"),
        ultraeval_checkout.config(
            "gen",
            fewshot=2,
            description="Answer.",
            postprocess="shout",
            generate={"method": "generate", "params": "models/params.json"},
        ),
    ]
    ultraeval_checkout.write_config(root / "configs" / "both.json", configs)
    ultraeval_checkout.write_config(
        root / "models" / "params.json", {"temperature": 0.5, "top_p": 0.9, "max_tokens": 4}
    )
    env = tiny_model.offline_environment()
    done = processes.helm_run(
        folder,
        f"ultraeval:config=checkout/configs/both.json,model={MODEL}",  # two tasks, two runs
        f"ultraeval:dataset=sums,root=checkout,method=ppl,metric=ppl_norm,limit=12,model={MODEL}",
        "ultraeval:dataset=sums,root=checkout,method=ppl,version=1,limit=2,model=simple/model1",
        options=options,
        env=env,
        check=False,
    )
    processes.command(folder, "helm-summarize", "--suite", "s", "--auto-generate-schema", env=env)
    (folder / "log.txt").write_text(done.stdout + done.stderr)
    return folder


def runs(folder, part):
    (found,) = [path for name, path in processes.run_folders(folder).items() if part in name]
    return found


def states_by_row(run):
    rows = {}
    for state in processes.load(run / "scenario_state.json")["request_states"]:
        rows.setdefault(state["instance"]["id"], []).append(state)
    return rows


def whole_string_score(state):
    """The negative log-likelihood in a run's file: every token but the first."""
    return -sum(token["logprob"] for token in state["result"]["completions"][0]["tokens"][1:])


def row_stats(run):
    return {
        row["instance_id"]: {stat["name"]["name"]: stat.get("mean") for stat in row["stats"]}
        for row in processes.load(run / "per_instance_stats.json")
    }


def test_ppl_equals_plain_torch(folder):
    run = runs(folder, "task=sums_sums_ppl")
    rows, stats = states_by_row(run), row_stats(run)
    data = make_rows()
    strings = [f"Q: {row['question']}\nA: {option}" for row in data for option in row["target_scores"]]
    done = subprocess.run(
        [sys.executable, "-c", TORCH, str(folder / "model")],
        input=json.dumps(strings), env=tiny_model.offline_environment(), capture_output=True, text=True, check=True,
    )  # fmt: skip
    expected = iter(json.loads(done.stdout))
    worst, total = 0.0, 0.0
    assert len(rows) == len(stats) == ROWS
    for number, row in enumerate(data):
        states = rows[f"id{number}"]
        wanted = [next(expected) for _ in row["target_scores"]]
        for state, option, score in zip(states, row["target_scores"], wanted, strict=True):
            assert state["request"]["prompt"] == f"Q: {row['question']}\nA: {option}"
            assert state["request"]["echo_prompt"] is True
            assert state["request"]["max_tokens"] == 0
            worst = max(worst, abs(whole_string_score(state) - score) / abs(score))
        winner = wanted.index(min(wanted))
        assert stats[f"id{number}"]["predicted_index"] == winner
        worth = list(row["target_scores"].values())[winner]
        assert stats[f"id{number}"]["ppl_accuracy"] == worth
        total += worth
    print(f"largest relative difference from torch: {worst:.2g}")
    assert worst <= 1e-4
    assert processes.stat_means(run)["ppl_accuracy"] == pytest.approx(total / ROWS)


def test_the_files_say_what_was_computed_together(folder):
    is_ours = OURS in (folder / "prod_env" / "model_deployments.yaml").read_text()
    for states in states_by_row(runs(folder, "task=sums_sums_ppl")).values():
        notes = [state.get("annotations", {}).get("helm_ext", {}) for state in states]
        assert [one.get("computed_together", 1) for one in notes] == [len(states) if is_ours else 1] * len(states)


def test_ppl_norm_by_hand(folder):
    """The mean beyond the tokens that all options share, from the tokens in the run's file."""
    run = runs(folder, "metric=ppl_norm")
    stats = row_stats(run)
    for row_id, states in states_by_row(run).items():
        tokens = [state["result"]["completions"][0]["tokens"][1:] for state in states]
        shared = 0
        while all(shared < len(t) for t in tokens) and len({t[shared]["text"] for t in tokens}) == 1:
            shared += 1
        means = [-math.fsum(t["logprob"] for t in ts[shared:]) / len(ts[shared:]) for ts in tokens]
        assert stats[row_id]["predicted_index"] == means.index(min(means))
        assert "ppl_norm_accuracy" in stats[row_id]


def test_gen_sends_the_prompt_and_the_sampling_parameters(folder):
    run = runs(folder, "task=sums_sums_gen")
    data = {f"Q: {row['question']}\nA: ": row for row in make_rows()}
    rows = states_by_row(run)
    assert sorted(rows) == sorted(f"id{n}" for n in range(ROWS))
    seen = set()
    for (state,) in rows.values():
        request = state["request"]
        assert (request["temperature"], request["top_p"], request["max_tokens"]) == (0.5, 0.9, 4)
        head, *demonstrations, question = request["prompt"].split("\n\n")
        assert head == "Answer."
        assert question in data
        assert len(demonstrations) == state["num_train_instances"] == 2
        assert all(demonstration.removesuffix("x") in data for demonstration in demonstrations)
        assert question not in {demonstration.removesuffix("x") for demonstration in demonstrations}
        seen.add(tuple(demonstrations))
    assert len(seen) > 6  # each question has its own
    spec = processes.load(run / "run_spec.json")
    metric = spec["metric_specs"][0]
    assert metric["args"]["postprocess"] == "shout"
    assert processes.stat_means(run)["ultraeval_exact_match"] == 0


def test_a_model_without_logprobs_fails_and_says_what_to_use(folder):
    log = (folder / "log.txt").read_text()
    assert "simple/model1 returned no log-probabilities for the prompt" in log
    assert "method=gen" in log
    assert not [name for name in processes.run_folders(folder) if "simple" in name]
