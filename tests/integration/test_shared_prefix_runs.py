"""helm-run with the client that computes a row's options together, beside HELM's client and HELM's runner."""

import json
import random

import processes
import pytest
import request_states_files
import tiny_model
import ultraeval_checkout
from request_states_files import choice

pytestmark = [pytest.mark.slow, pytest.mark.nightly("src/helm_ext/clients", "src/helm_ext/scoring/likelihood")]

MODEL = "tiny/gpt2"
OURS = "helm_ext.clients.SharedPrefixHuggingFaceClient"
STREAMING = ("--runner-class-name", "helm_ext.running.StreamingRunner")
SUBJECTS = ("The kettle", "A sleepy dog", "Mira", "今天的小猫", "Tom's bicycle", "The café owner")
VERBS = ("is warm", "is warm and runs", "runs to the library", "在屋里", "keeps 3 apples", "waits")
ENTRIES = (
    f"ultraeval:dataset=sums,root=checkout,method=ppl,model={MODEL}",
    f"ultraeval:dataset=sums,root=checkout,method=ppl,metric=ppl_norm,limit=15,model={MODEL}",
    f"adapter_spec:path=original.jsonl,model={MODEL}",
    f"adapter_spec:path=calibrated.jsonl,model={MODEL}",
)
WAYS = {
    "helm": ({}, ()),
    "ours": ({"client": OURS}, STREAMING),
}
TIMES = ("request_time", "request_datetime", "cached")
RUNTIMES = ("inference_runtime", "inference_denoised_runtime")


def make_rows(count):
    rng = random.Random(5)
    rows = []
    for number in range(count):
        options = rng.sample(VERBS, rng.choice((2, 3, 4)))
        right = rng.randrange(len(options))
        question = f"{rng.choice(SUBJECTS)} ({number})"
        worth = {option: float(place == right) for place, option in enumerate(options)}
        rows.append({"question": question, "target_scores": worth, "answer": "x"})
    return rows


def write_choices(path, method, rows):
    spec = {"method": method, "input_prefix": "Question: ", "output_prefix": "Answer: ", "max_train_instances": 2}
    states = []
    for number, row in enumerate(rows):
        options, worth = zip(*row["target_scores"].items(), strict=True)
        split = "train" if number < 5 else "test"
        states.append(choice(row["question"], options, worth.index(1), id=f"id{number}", split=split))
    request_states_files.write(path, states, spec)


def prepare(folder, model, rows, **arguments):
    folder.mkdir()
    tiny_model.model_files(folder / "prod_env", model, MODEL, **arguments)
    root = ultraeval_checkout.make_checkout(folder / "checkout")
    ultraeval_checkout.write_rows(root / "datasets" / "sums" / "data" / "sums.jsonl", rows)
    for method in ("original", "calibrated"):
        write_choices(folder / f"{method}.jsonl", f"multiple_choice_separate_{method}", rows)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return tiny_model.build_tiny_model(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def runs(tmp_path_factory, model):
    """{way: {name of the run: its folder}}"""
    found = {}
    for way, (arguments, options) in WAYS.items():
        folder = tmp_path_factory.mktemp("runs") / way
        prepare(folder, model, make_rows(20), **arguments)
        processes.helm_run(folder, *ENTRIES, options=options, env=tiny_model.offline_environment())
        found[way] = processes.run_folders(folder)
        assert len(found[way]) == len(ENTRIES)
    return found


def read_states(run, without=("annotations",)):
    states = processes.load(run / "scenario_state.json")
    for state in states["request_states"]:
        for name in without:
            state.pop(name, None)
        for name in TIMES:
            state["result"].pop(name, None)
    return states


def near(found, expected, where=""):
    """Equal, numbers but for the last digits."""
    if isinstance(expected, float) and isinstance(found, (int, float)):
        assert found == pytest.approx(expected, rel=1e-4, abs=1e-4), where
        return
    assert type(found) is type(expected), where
    if isinstance(expected, dict):
        assert found.keys() == expected.keys(), where
        for key, value in expected.items():
            near(found[key], value, f"{where}.{key}")
    elif isinstance(expected, list):
        assert len(found) == len(expected), where
        for place, value in enumerate(expected):
            near(found[place], value, f"{where}[{place}]")
    else:
        assert found == expected, where


def stats_by_name(stats):
    return {json.dumps(stat["name"], sort_keys=True): stat for stat in stats if stat["name"]["name"] not in RUNTIMES}


def stats_of_rows(run):
    return {
        (row["instance_id"], row["train_trial_index"], place): stats_by_name(row["stats"])
        for place, row in enumerate(processes.load(run / "per_instance_stats.json"))
    }


def test_files_are_those_of_helms_client_and_runner(runs):
    for name, run in runs["helm"].items():
        ours = runs["ours"][name]
        for file in ("run_spec.json", "scenario.json"):
            assert processes.load(ours / file) == processes.load(run / file)
        near(read_states(ours), read_states(run), name)
        near(stats_by_name(processes.load(ours / "stats.json")), stats_by_name(processes.load(run / "stats.json")))
        assert sorted(map(str, stats_of_rows(ours).values())) != []
        near(list(stats_of_rows(ours).values()), list(stats_of_rows(run).values()), name)


def test_the_files_say_how_each_was_computed(runs):
    for name, run in runs["ours"].items():
        said = [state["annotations"]["helm_ext"] for state in read_states(run, without=())["request_states"]]
        assert {(one["device"], one["dtype"]) for one in said} == {("cpu", "torch.float32")}
        assert all(one["computed_together"] > 1 and one["shared_tokens"] > 5 for one in said) or "calib" in name
