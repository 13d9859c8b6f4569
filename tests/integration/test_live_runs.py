"""helm-run with the streaming runner against a server on this machine: failures, kills, credentials, reports."""

import itertools
import json
import os
import re
import shutil
import signal
import threading
from pathlib import Path

import pytest
from processes import command, load, only_run, run_folders, start, stat_means
from served_runs import ENTRY, RUNNER, SECRET, make_folder

from helm_ext.clients.client import CHUNK

pytestmark = [
    pytest.mark.slow,
    pytest.mark.nightly("src/helm_ext/clients", "src/helm_ext/running", "tests/openai_server.py"),
]


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


@pytest.mark.parametrize(("number", "rows", "lost"), [(signal.SIGKILL, 400, 16 + CHUNK), (signal.SIGINT, 400, 16)])
def test_a_run_that_is_ended_asks_again_for_what_was_in_flight_and_killed_for_a_chunk(
    server, tmp_path, number, rows, lost
):
    folder = make_folder(tmp_path, server, rows=rows)
    has_begun, has_ended, numbers = threading.Event(), threading.Event(), itertools.count()

    def end(path, body):
        """The first after 250 ends the run, and no other is answered before it has ended."""
        if next(numbers) == 250:
            has_begun.wait()
            os.kill(process.pid, number)
        elif len(server.asked) > 250:
            has_ended.wait(1)  # an interrupted run may wait for what is in flight

    server.instead, server.seconds = end, 0.001
    arguments = ("--suite", "s", "-m", "100000", *RUNNER, "-n", "16", "--run-entries", ENTRY)
    process = start(folder, "helm-run", *arguments)
    has_begun.set()
    assert process.wait() != 0
    has_ended.set()
    assert len(server.asked) < rows
    run(folder)
    assert rows <= len(server.asked) <= rows + lost
    assert stat_means(only_run(folder))["num_instances"] == rows


def test_a_files_own_top_k_of_1_is_said_not_to_be_sent(server, tmp_path):
    folder = make_folder(tmp_path, server, rows=2, send_top_k=True)
    lines = (folder / "questions.jsonl").read_text().splitlines()[1:]
    saids = []
    for decoding in ({"temperature": 0.5, "top_k": 1}, {"temperature": 0.5}, {"temperature": 0, "top_k": 1}):
        head = {"adapter_spec": {"max_tokens": 5, "max_train_instances": 0, "decoding_parameters": decoding}}
        (folder / "questions.jsonl").write_text("\n".join([json.dumps(head), *lines]) + "\n")
        done = run(folder)
        saids.append((done.stdout + done.stderr).count("top_k_per_token=1, which the file sets for 2 requests, is not"))
    assert saids == [1, 0, 0]
    assert not any("top_k" in body for _, body in server.asked)


@pytest.mark.parametrize("name", ["HELM_EXT_MAX_COST", "HELM_EXT_MAX_TOKENS"])
def test_a_limit_that_helms_own_runner_cannot_keep_is_refused_before_anything_is_asked(server, tmp_path, name):
    folder = make_folder(tmp_path, server)
    stock = ("helm-run", "--suite", "s", "-m", "100", "--run-entries", ENTRY)
    refused = command(folder, *stock, check=False, env={name: "5"})
    assert refused.returncode != 0
    said = refused.stdout + refused.stderr
    assert f"{name}=5: the limit cannot be kept" in said
    assert "hint: --runner-class-name helm_ext.running.StreamingRunner" in said
    assert server.asked == []
    assert not run_folders(folder)
    command(folder, *stock)
    assert len(server.asked) == 20


def test_helms_own_runner_says_which_runner_goes_on_after_a_failure_and_knows_workers(server, tmp_path):
    folder = make_folder(tmp_path, server)
    server.instead = lambda path, body: (400, {"error": {"message": "too long"}}) if row_of(body) == 3 else None
    entry = ("--suite", "s", "-m", "100", "--run-entries", f"{ENTRY},missing=skip")
    done = command(folder, "helm-run", *entry, check=False, env={"HELM_EXT_WORKERS": "2"})
    assert done.returncode != 0
    said = done.stdout + done.stderr
    assert "HELM's runner stops at the first request without an answer, also with missing=skip" in said
    assert said.count("HELM_EXT_WORKERS=2 is for runners of this package") == 1
    done = command(folder, "helm-run", *RUNNER, *entry, env={"HELM_EXT_WORKERS": "2"})
    assert "is for runners of this package" not in done.stdout + done.stderr
    assert stat_means(only_run(folder))["num_failed"] == 1
