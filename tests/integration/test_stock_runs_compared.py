"""Runs of HELM's own scenario, made by HELM's own runner: scored, compared, reported and exported; counted by hand.

`simple_mcqa` asks whether a number is even; 21 to 99 are its test split. One model says "A" (even) always and is right
on 22, 24 ... 98: 39 rows. The other knows the numbers below 80, and says the contrary from there on: 59 rows.
"""

import json
import os
from math import comb

import processes
import pytest

CLIENTS = """
import re
from helm.clients.client import Client
from helm.common.request import GeneratedOutput, RequestResult

class Always(Client):
    def answer(self, number):
        return "A"

    def make_request(self, request):
        number = int(re.findall(r"Is (\\d+) even", request.prompt)[-1])
        completions = [GeneratedOutput(self.answer(number), 0.0, [])]
        return RequestResult(True, [], completions, cached=False, request_time=0.0, request_datetime=0)

class Below80(Always):
    def answer(self, number):
        return "AB"[(number % 2) ^ (number >= 80)]
"""
DEPLOYMENT = """  - name: parity/{name}
    model_name: parity/{name}
    tokenizer_name: simple/tokenizer1
    max_sequence_length: 2048
    client_spec:
      class_name: parity_clients.{client}
"""
METADATA = """  - name: parity/{name}
    display_name: {name}
    description: parity
    creator_organization_name: parity
    access: open
    release_date: 2026-01-01
    tags: [TEXT_MODEL_TAG, FULL_FUNCTIONALITY_TEXT_MODEL_TAG]
"""
P = 2 * sum(comb(40, k) for k in range(11)) / 2**40
"""McNemar's: 40 rows differ, 10 of them (80, 82 ... 98) only `always` has right."""


pytestmark = [
    pytest.mark.slow,
    pytest.mark.nightly("src/helm_ext/analysis", "src/helm_ext/scoring", "src/helm_ext/formats/request_states"),
]


@pytest.fixture(scope="module")
def suite(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stock")
    (folder / "parity_clients.py").write_text(CLIENTS)
    (folder / "prod_env").mkdir()
    models = {"always": "Always", "below80": "Below80"}
    for file, key, text in (
        ("model_deployments", "model_deployments", DEPLOYMENT), ("model_metadata", "models", METADATA),
    ):  # fmt: skip
        lines = "".join(text.format(name=name, client=client) for name, client in models.items())
        (folder / "prod_env" / f"{file}.yaml").write_text(f"{key}:\n{lines}")
    entries = [f"simple_mcqa:model=parity/{name}" for name in models]
    command(folder, "helm-run", "--suite", "s", "-m", "1000", "--disable-cache", "--run-entries", *entries)
    return folder


def command(folder, name, *arguments):
    path = os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH"))))
    return processes.command(folder, name, *arguments, env={"PYTHONPATH": path})


def test_models_are_compared(suite):
    (line,) = command(suite, "helm-ext", "compare", "benchmark_output/runs/s", "--json").stdout.splitlines()
    found = json.loads(line)
    assert (found["model_a"], found["model_b"], found["rows"]) == ("parity/always", "parity/below80", 79)
    assert (found["mean_a"], found["mean_b"]) == (pytest.approx(39 / 79), pytest.approx(59 / 79))
    assert (found["greater"], found["less"], found["test"]) == (30, 10, "mcnemar")
    assert found["p"] == pytest.approx(P, rel=1e-12)
    assert found["verdict"] == "b"
    flip = found["flipped"][0]
    assert flip["question"].startswith("Is ")
    assert flip["gold"] in (["Even"], ["Odd"])
    assert flip["answer_a"] == "A"


def test_a_report_has_the_same_numbers(suite):
    assert "2 runs of 1 dataset" in command(suite, "helm-ext", "report", "benchmark_output/runs/s").stdout
    text = (suite / "report.html").read_text()
    assert "0.494" in text  # 39 of 79
    assert "0.747" in text  # 59 of 79
    assert "0.641 to 0.830" in text  # Wilson's of 59 of 79
    assert "p 0.0022, p (Holm) 0.0022; 40 rows differ" in text


def test_its_outputs_are_scored_again(suite):
    (state,) = (suite / "benchmark_output/runs/s").glob("*below80/scenario_state.json")
    done = command(suite, "helm-ext", "score", state, "--model", "again", "--json", "--show", "wrong=3")
    found = json.loads(done.stdout)
    assert found["counts"]["scored"] == 79
    assert found["metrics"][found["main_metric"]]["mean"] == pytest.approx(59 / 79)
    assert [row["question"] for row in found["wrong"]] == [f"Is {n} even or odd?" for n in (80, 81, 82)]


def test_scores_are_a_table(suite):
    command(suite, "helm-ext", "export", "benchmark_output/runs/s", "--to", "jsonl", "--table", "scores")
    lines = [json.loads(line) for line in (suite / "scores.jsonl").read_text().splitlines()]
    (found,) = [one for one in lines if one["metric"] == "exact_match" and one["model"] == "parity/below80"]
    assert (found["mean"], found["rows"], found["left_out"]) == (pytest.approx(59 / 79), 79, 0)
    assert (round(found["low"], 3), round(found["high"], 3)) == (0.641, 0.830)
    assert (found["interval"], found["main"], found["slice"]) == ("wilson", True, None)
