"""A real server with a real model: `transformers serve`, which speaks OpenAI's protocol, on a tiny model made here.

It is one that refuses and ignores a good deal: top_k is refused, `n` ignored, log-probabilities are not known.
"""

import importlib.util
import json
import socket
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from processes import BIN, command, helm_run, load, only_run, stat_means
from tiny_model import build_tiny_model, offline_environment

pytestmark = [
    pytest.mark.slow,
    pytest.mark.nightly("src/helm_ext/clients", "tests/openai_server.py"),
    pytest.mark.skipif(
        any(importlib.util.find_spec(name) is None for name in ("fastapi", "uvicorn", "openai")),
        reason="`transformers serve` needs transformers[serving]",
    ),
]

QUESTIONS = "adapter_spec:path=questions.jsonl,model=local/my-model"
STREAMING = ("--runner-class-name", "helm_ext.running.StreamingRunner", "-n", "4")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """Serve ./my-model; yields the folder in which it is, and the address."""
    folder = tmp_path_factory.mktemp("served")
    build_tiny_model(folder / "my-model", chat_template=True)
    write_questions(folder / "questions.jsonl")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = (folder / "serve.log").open("w")
    process = subprocess.Popen(
        [str(BIN / "transformers"), "serve", "--host", "127.0.0.1", "--port", str(port), "--device", "cpu", "./my-model"],
        cwd=folder, env=offline_environment(), stdout=log, stderr=subprocess.STDOUT,
    )  # fmt: skip
    try:
        url = f"http://127.0.0.1:{port}"
        wait_for(f"{url}/health", process, folder / "serve.log")
        yield folder, f"{url}/v1"
    finally:
        process.terminate()
        process.wait()
        log.close()


def write_questions(path: Path) -> None:
    """Write eight short rows: with the chat's markup they fit into the tiny model's window."""
    head = {"adapter_spec": {"output_prefix": "Answer: ", "max_tokens": 5, "max_train_instances": 0}}
    lines = [
        {"instance": {"id": f"r{row}", "split": "test", "input": {"text": f"How many apples are {row} and 1?"},
         "references": [{"output": {"text": str(row + 1)}, "tags": ["correct"]}]}}
        for row in range(8)
    ]  # fmt: skip
    path.write_text("".join(json.dumps(line) + "\n" for line in [head, *lines]))


def wait_for(url: str, process: subprocess.Popen, log: Path) -> None:
    while process.poll() is None:
        try:
            urllib.request.urlopen(url).close()
        except OSError:
            time.sleep(0.5)
        else:
            return
    raise AssertionError(log.read_text()[-3000:])


def add(folder: Path, url: str, *options: str) -> None:
    command(
        folder, "helm-ext", "model", "add", "local/my-model", "--url", url, "--model-name", "./my-model",
        "--tokenizer", "./my-model", "--replace", *options, env=offline_environment(),
    )  # fmt: skip


@pytest.mark.parametrize("endpoint", ["--chat", "--completions"])
def test_a_run_on_a_real_server(server, endpoint):
    folder, url = server
    add(folder, url, endpoint)
    tried = command(folder, "helm-ext", "model", "test", "local/my-model", env={"COLUMNS": "200"})
    rows = {line.partition("  ")[0]: line for line in tried.stdout.splitlines()}
    assert " works " in rows["/v1/chat/completions"]
    assert " works " in rows["/v1/completions"]
    assert " refused " in rows["top_k"]
    assert " works " not in rows["log-probabilities: echo"]
    suite = endpoint[2:]
    helm_run(folder, QUESTIONS, suite=suite, options=STREAMING, env=offline_environment())
    run = only_run(folder, suite)
    states = load(run / "scenario_state.json")["request_states"]
    assert len(states) == stat_means(run)["num_instances"] == 8
    for state in states:
        usage = state["annotations"]["helm_ext"]["usage"]
        assert usage["prompt_tokens"] > 0
        assert 0 < usage["completion_tokens"] <= state["request"]["max_tokens"]
        assert state["result"]["completions"][0]["finish_reason"]["reason"] in ("stop", "length")


def test_equal_requests_get_equal_answers_of_a_real_model(server):
    """At temperature 0, and whatever else is in flight."""
    folder, url = server
    add(folder, url, "--completions")
    texts = []
    for suite, threads in (("one", "1"), ("four", "4")):
        helm_run(
            folder, QUESTIONS, suite=suite, env=offline_environment(),
            options=("--runner-class-name", "helm_ext.running.StreamingRunner", "-n", threads),
        )  # fmt: skip
        states = load(only_run(folder, suite) / "scenario_state.json")["request_states"]
        texts.append([state["result"]["completions"][0]["text"] for state in states])
    assert texts[0] == texts[1]
    assert len(set(texts[0])) > 1


def test_a_wrong_name_is_told_of(server):
    folder, url = server
    add(folder, url)
    path = folder / "prod_env" / "model_deployments.yaml"
    path.write_text(path.read_text().replace("openai_model_name: ./my-model", "openai_model_name: other"))
    tried = command(folder, "helm-ext", "model", "test", "local/my-model", check=False)
    assert tried.returncode == 1
    assert "requested 'other'" in tried.stderr
