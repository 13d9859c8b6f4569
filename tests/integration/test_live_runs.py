"""helm-run with the streaming runner against a server on this machine: failures, kills, credentials, reports."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from openai_server import Odd, serve
from processes import BIN, OFFLINE, load, only_run, run_folders, stat_means
from warm_processes import command

from helm_ext.clients.cache import CHUNK

pytestmark = pytest.mark.slow

RUNNER = ("--runner-class-name", "helm_ext.running.StreamingRunner")
SECRET = "sk-hush-0123456789"
NOT_OF_THE_PROMPT = ("finish_reason", "num_completion_tokens", "num_output_tokens", "inference_runtime")
ENTRY = "adapter_spec:path=questions.jsonl,model=local/tiny"


@pytest.fixture
def server():
    with serve() as running:
        yield running


def make_folder(folder: Path, server, rows: int = 20, **args) -> Path:
    head = {"adapter_spec": {"output_prefix": "Answer: ", "max_tokens": 5, "max_train_instances": 0}}
    lines = [
        {"instance": {"id": f"r{row}", "split": "test", "input": {"text": f"Question {row}?"}, "references": [
            {"output": {"text": "Paris"}, "tags": ["correct"]}]}}
        for row in range(rows)
    ]  # fmt: skip
    (folder / "questions.jsonl").write_text("".join(json.dumps(line) + "\n" for line in [head, *lines]))
    (folder / "prod_env").mkdir(exist_ok=True)
    args = {"base_url": f"{server.url}/v1", **args}
    deployment = {
        "name": "local/tiny",
        "client_spec": {"class_name": "helm_ext.clients.OpenAICompatibleClient", "args": args},
    }
    (folder / "prod_env" / "model_deployments.yaml").write_text(json.dumps({"model_deployments": [deployment]}))
    (folder / "prod_env" / "credentials.conf").write_text(f'localApiKey: "{SECRET}"\n')
    return folder


def row_of(body) -> int:
    return int(re.search(r"Question (\d+)\?", body["messages"][0]["content"])[1])


def run(folder: Path, entry: str = ENTRY, *, check: bool = True, options: tuple[str, ...] = ("-n", "8")):
    return command(
        folder, "helm-run", "--suite", "s", "-m", "100000", *RUNNER, *options, "--run-entries", entry, check=check
    )


def test_rows_that_fail_stop_the_run_or_are_left_out_and_nothing_is_asked_twice(server, tmp_path):
    folder = make_folder(tmp_path, server)
    server.instead = lambda path, body: (400, {"error": {"message": "too long"}}) if row_of(body) in (3, 7) else None
    done = run(folder, check=False)
    assert done.returncode != 0
    assert "2 of 20 rows have no answer: r3, r7: " in done.stdout + done.stderr
    assert "too long" in done.stdout + done.stderr
    assert not run_folders(folder)
    assert len(server.asked) == 20
    run(folder, f"{ENTRY},missing=skip")
    assert len(server.asked) == 22
    means = stat_means(only_run(folder))
    assert (means["num_left_out"], means["num_failed"], means["num_instances"]) == (2, 2, 18)
    server.instead = lambda path, body: None
    shutil.rmtree(folder / "benchmark_output")
    run(folder)
    assert len(server.asked) == 24
    means = stat_means(only_run(folder))
    assert (means["num_left_out"], means["num_instances"]) == (0, 20)


def test_credentials_are_nowhere_but_in_their_file(server, tmp_path):
    folder = make_folder(tmp_path, server)
    server.instead = lambda path, body: (
        (400, {"error": {"message": f"Incorrect key {server.keys[-1]}"}}) if row_of(body) == 3 else None
    )
    texts = []
    for entry in (ENTRY, f"{ENTRY},missing=skip"):
        done = run(folder, entry, check=False)
        texts.append(done.stdout + done.stderr)
    assert set(server.keys) == {f"Bearer {SECRET}"}
    assert only_run(folder)
    assert "Incorrect key Bearer ***" in texts[0]
    found = [path for path in folder.rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()]
    assert found == [folder / "prod_env" / "credentials.conf"]
    assert SECRET not in "".join(texts)


def test_notes_stand_in_the_runs_files_and_everything_reads_them(server, tmp_path):
    folder = make_folder(tmp_path, server, seed=5)
    run(folder)
    states = load(only_run(folder) / "scenario_state.json")["request_states"]
    for state in states:
        notes = state["annotations"]["helm_ext"]
        assert (notes["seed"], notes["usage"]["completion_tokens"]) == (5, 3)
        assert state["result"]["completions"][0]["finish_reason"]["reason"] in ("stop", "length")
    for summarizer in ((), ("--summarizer-class-name", "helm_ext.running.StreamingSummarizer")):
        command(folder, "helm-summarize", "--suite", "s", "--auto-generate-schema", *summarizer)
        shown = load(only_run(folder) / "display_predictions.json")
        assert shown[0]["annotations"]["helm_ext"]["seed"] == 5
    done = command(
        folder, "helm-ext", "score", str(only_run(folder) / "scenario_state.json"), "--model", "tiny", "--json"
    )
    assert json.loads(done.stdout)


def test_a_killed_run_asks_again_for_what_was_in_flight_and_one_chunk_at_most(server, tmp_path):
    folder = make_folder(tmp_path, server, rows=600)
    server.seconds = 0.02
    arguments = ("--suite", "s", "-m", "100000", *RUNNER, "-n", "16", "--run-entries", ENTRY)
    process = subprocess.Popen(
        [str(BIN / "helm-run"), *arguments], cwd=folder, env={**os.environ, **OFFLINE},
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    while len(server.asked) < 350:
        assert process.poll() is None
        time.sleep(0.005)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    time.sleep(0.5)  # the server still takes note of what was on its way
    assert len(server.asked) < 600
    run(folder)
    assert 600 <= len(server.asked) <= 600 + 16 + CHUNK
    assert stat_means(only_run(folder))["num_instances"] == 600


def test_an_interrupted_run_loses_what_was_in_flight_and_no_more(server, tmp_path):
    folder = make_folder(tmp_path, server, rows=400)
    server.seconds = 0.05
    arguments = ("--suite", "s", "-m", "100000", *RUNNER, "-n", "16", "--run-entries", ENTRY)
    process = subprocess.Popen(
        [str(BIN / "helm-run"), *arguments], cwd=folder, env={**os.environ, **OFFLINE},
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    while len(server.asked) < 150:
        assert process.poll() is None
        time.sleep(0.005)
    process.send_signal(signal.SIGINT)
    assert process.wait() != 0
    assert len(server.asked) < 400
    run(folder)
    assert 400 <= len(server.asked) <= 400 + 16


def test_a_second_run_is_the_first_also_where_rows_are_equal_and_answers_sampled(server, tmp_path):
    folder = make_folder(tmp_path, server, rows=6)
    server.generates, server.seconds = True, 0.05
    head = {"adapter_spec": {
        "method": "generation", "max_tokens": 5, "max_train_instances": 0, "num_outputs": 3,
        "stop_sequences": [" w1"], "decoding_parameters": {"temperature": 1.0},
    }}  # fmt: skip
    lines = (folder / "questions.jsonl").read_text().splitlines()[1:]
    equal = [re.sub(r"Question [0-4]\\?", "Question 0?", line) for line in lines]
    (folder / "questions.jsonl").write_text("\n".join([json.dumps(head), *equal]) + "\n")
    answers = []
    for _ in range(2):
        run(folder)
        states = load(only_run(folder) / "scenario_state.json")["request_states"]
        answers.append([state["result"]["completions"] for state in states])
        shutil.rmtree(folder / "benchmark_output")
    assert answers[0] == answers[1]
    assert answers[0][0] != answers[0][5]
    assert len(server.asked) == 2


def test_what_the_file_sets_reaches_the_server(server, tmp_path):
    folder = make_folder(tmp_path, server, rows=2, send_top_k=True)
    decoding = {"temperature": 0.5, "top_p": 0.9, "top_k": 7, "seed": 42, "presence_penalty": 0.25}
    head = {"adapter_spec": {
        "max_tokens": 9, "stop_sequences": ["#"], "max_train_instances": 0, "decoding_parameters": decoding,
    }}  # fmt: skip
    lines = (folder / "questions.jsonl").read_text().splitlines()
    (folder / "questions.jsonl").write_text("\n".join([json.dumps(head), *lines[1:]]) + "\n")
    run(folder)
    for _, body in server.asked:
        sent = {key: body[key] for key in body if key not in ("messages", "model", "n", "frequency_penalty")}
        assert sent == {
            "temperature": 0.5, "top_p": 0.9, "top_k": 7, "seed": 42, "presence_penalty": 0.25,
            "max_completion_tokens": 9, "stop": ["#"],
        }  # fmt: skip


def test_annotations_stand_beside_the_notes(server, tmp_path):
    """Metrics see the annotations alone: some of HELM's refuse more than their own."""
    folder = make_folder(tmp_path, server)
    head = {"adapter_spec": {"method": "multiple_choice_joint", "max_tokens": 5, "max_train_instances": 0}}
    options = [{"output": {"text": "Paris"}, "tags": ["correct"]}, {"output": {"text": "Rome"}}]
    row = {"instance": {"id": "r0", "split": "test", "input": {"text": "Question 0?"}, "references": options}}
    (folder / "questions.jsonl").write_text(f"{json.dumps(head)}\n{json.dumps(row)}\n")
    run(folder)
    [state] = load(only_run(folder) / "scenario_state.json")["request_states"]
    assert set(state["annotations"]) == {"answer", "helm_ext"}


def test_one_request_an_option_and_what_a_prompt_is_worth(server, tmp_path):
    """A row of PPL against vLLM's prompt_logprobs and against echo: the same numbers."""
    server.is_vllm = True
    means = []
    for name, args in (("echo", {}), ("own", {"prompt_logprobs": True})):
        (tmp_path / name).mkdir()
        folder = make_folder(tmp_path / name, server, endpoint="completions", **args)
        deployments = json.loads((folder / "prod_env" / "model_deployments.yaml").read_text())
        deployments["model_deployments"][0] |= {"tokenizer_name": "simple/tokenizer1", "max_sequence_length": 1000}
        (folder / "prod_env" / "model_deployments.yaml").write_text(json.dumps(deployments))
        head = {"adapter_spec": {"method": "multiple_choice_separate_original", "max_train_instances": 0}}
        rows = [
            {"instance": {"id": f"r{row}", "split": "test", "input": {"text": f"Question {row} is"}, "references": [
                {"output": {"text": "long and red"}, "tags": ["correct"]}, {"output": {"text": "wide"}}]}}
            for row in range(12)
        ]  # fmt: skip
        (folder / "questions.jsonl").write_text("".join(json.dumps(line) + "\n" for line in [head, *rows]))
        run(folder)
        found = stat_means(only_run(folder))
        means.append({key: value for key, value in found.items() if not key.startswith(NOT_OF_THE_PROMPT)})
    assert means[0] == means[1]
    assert len(server.asked) == 48
    assert {body.get("prompt_logprobs") for _, body in server.asked} == {None, 0}


@pytest.mark.parametrize(
    ("odd", "said"),
    [
        ((401, {"error": {"message": "no"}}), "the server refuses the key that it was sent"),
        ((404, {"error": {"message": "The model `tiny` does not exist"}}), "does not know the model 'tiny'"),
    ],
)
def test_a_wrong_key_or_model_is_told_of_at_once(server, tmp_path, odd, said):
    folder = make_folder(tmp_path, server, rows=300)
    server.models = ["large"]
    server.instead = lambda path, body: odd
    done = run(folder, f"{ENTRY},missing=skip", check=False)
    assert done.returncode != 0
    assert said in done.stdout + done.stderr
    assert len(server.asked) <= 8


def test_a_hang_costs_its_idle_time_and_the_others_finish(server, tmp_path):
    folder = make_folder(tmp_path, server, timeout=1)
    server.instead = lambda path, body: Odd(seconds=60) if row_of(body) == 0 else None
    run(folder, f"{ENTRY},missing=skip")
    assert len(server.asked) == 20
    assert stat_means(only_run(folder))["num_failed"] == 1
