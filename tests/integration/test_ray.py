"""Live runs on Ray, by real helm-run processes: equal files, and what happens when something dies.

The model writes down every call. `tools/ray_faults.py` does the same at many more moments.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import tempfile
import time
from collections import Counter
from pathlib import Path

import processes
import pytest
import ray_runs
from openai_server import serve
from processes import STOCK_ENTRIES, read_all, without_times
from ray_runs import calls, children, read_files, run, run_folder, running, wait_until

pytest.importorskip("ray")
pytestmark = pytest.mark.slow

ROWS = 160
PROMPTS = Counter(f"question {number}" for number in range(ROWS))
LIVE = {"COUNTED_ROWS": ROWS, "COUNTED_SECONDS": 0.05}


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """The files of a run without Ray."""
    folder = tmp_path_factory.mktemp("expected")
    run(folder, runner="StreamingRunner", COUNTED_ROWS=ROWS)
    assert calls(folder) == PROMPTS
    files = read_files(folder)
    assert list(files) == ray_runs.FILES
    return files


def kept_prompts(folder):
    """Return the prompts whose answers a run that is not complete has kept."""
    path = run_folder(folder) / ".answers.jsonl"
    lines = path.read_bytes().splitlines() if path.exists() else []
    found = set()
    for line in filter(None, lines):
        try:
            found.add(f"question {json.loads(line)['place']}")
        except ValueError:  # being written
            continue
    return found


def test_stock_runs_are_those_of_helms_runner(tmp_path):
    for folder, extra in (("stock", ()), ("ray", ("--runner-class-name", "helm_ext.running.RayRunner"))):
        processes.helm_run(tmp_path, *STOCK_ENTRIES, options=("-m", "12", "-o", folder, *extra))
    stock, ours = (read_all(tmp_path / folder / "runs") for folder in ("stock", "ray"))
    assert len(stock) == 5 * len(STOCK_ENTRIES)
    assert list(ours) == list(stock)
    for path, helms in stock.items():
        assert without_times(ours[path]) == without_times(helms), path
    assert list((tmp_path / "ray").rglob(".answers.jsonl")) == []


def test_every_row_is_asked_once_and_by_several_processes(tmp_path, expected):
    run(tmp_path, **LIVE)
    assert read_files(tmp_path) == expected
    assert calls(tmp_path) == PROMPTS
    assert len(ray_runs.actors_of(tmp_path)) == 2


def test_actors_are_killed_at_random_moments(tmp_path, expected):
    moments, killed = random.Random(3), 0
    with running(tmp_path, **LIVE) as process:
        wait_until(lambda: calls(tmp_path).total() > 0, process)
        while process.poll() is None and killed < 4:
            time.sleep(moments.uniform(0.1, 0.6))
            # Those that ask: one that is only starting has nothing to lose.
            asking = [pid for pid in children(process.pid, "ray::RayActor") if pid in ray_runs.actors_of(tmp_path)]
            if asking:
                os.kill(moments.choice(asking), signal.SIGKILL)
                killed += 1
        assert process.wait(timeout=200) == 0, (tmp_path / "output.log").read_text()[-5000:]
    assert killed == 4
    assert read_files(tmp_path) == expected
    asked = calls(tmp_path)
    assert asked.keys() == PROMPTS.keys()
    # Two batches of 8, and one that waits, are an actor's.
    assert asked.total() <= ROWS + 4 * 16


def test_a_row_that_ends_its_process_is_named_and_the_others_are_asked_once_more_at_most(tmp_path, expected):
    output = run(tmp_path, check=False, COUNTED_DEADLY="question 17", **LIVE)
    assert "1 of 160 rows have no answer: row17: each of 3 processes that asked for it alone died" in output
    asked = calls(tmp_path)
    # With others, with its batch, three times alone.
    assert asked.pop("question 17") == 5
    # Its batch runs beside another, then for itself, then by rows.
    assert max(asked.values()) <= 3
    assert asked.total() <= ROWS - 1 + 16 + 8
    assert [path.name for path in run_folder(tmp_path).iterdir()] == [".answers.jsonl"]

    # Once it is harmless, it alone is asked.
    run(tmp_path, **LIVE)
    assert calls(tmp_path) - asked == Counter({"question 17": 6})
    assert read_files(tmp_path) == expected


def test_the_driver_is_killed_and_the_second_start_asks_for_the_rest(tmp_path, expected):
    with running(tmp_path, **LIVE) as process:
        wait_until(lambda: len(kept_prompts(tmp_path)) >= ROWS // 3, process)
        process.kill()
        process.wait()
        actors = ray_runs.actors_of(tmp_path)
    deadline = time.monotonic() + 30
    while any(os.path.exists(f"/proc/{pid}/cmdline") and open(f"/proc/{pid}/cmdline").read() for pid in actors):
        assert time.monotonic() < deadline, "actors outlive the driver"
        time.sleep(0.1)
    kept, before = kept_prompts(tmp_path), calls(tmp_path)
    assert ROWS // 3 <= len(kept) < ROWS
    # What a killed writer, or a full disk, may leave: it is not an answer, and does not spoil the next line.
    with (run_folder(tmp_path) / ".answers.jsonl").open("ab") as file:
        file.write(b'\n{"place":159,"digest":"00')
    run(tmp_path, **LIVE)
    assert calls(tmp_path) - before == Counter(dict.fromkeys(PROMPTS.keys() - kept, 1))
    assert read_files(tmp_path) == expected


def test_answers_to_other_requests_are_not_taken(tmp_path):
    with running(tmp_path, **LIVE) as process:
        wait_until(lambda: len(kept_prompts(tmp_path)) >= ROWS // 3, process)
    run(tmp_path, COUNTED_WORDING="Question", **LIVE)
    asked = calls(tmp_path)
    assert all(asked[f"Question {number}"] == 1 for number in range(ROWS))
    state = json.loads(read_files(tmp_path)["scenario_state.json"])
    assert [one["request"]["prompt"].strip() for one in state["request_states"]] == [
        f"Question {number}" for number in range(ROWS)
    ]


def test_ray_itself_is_killed(tmp_path, expected):
    with running(tmp_path, COUNTED_ROWS=ROWS, COUNTED_SECONDS=0.5) as process:
        wait_until(lambda: calls(tmp_path).total() > 20, process)
        (raylet,) = children(process.pid, "raylet")
        os.kill(raylet, signal.SIGKILL)
        for pid in children(process.pid, "ray::RayActor"):
            os.kill(pid, signal.SIGKILL)
        assert process.wait(timeout=250) == 0, (tmp_path / "output.log").read_text()[-5000:]
    assert read_files(tmp_path) == expected
    assert calls(tmp_path).keys() == PROMPTS.keys()


def test_a_node_is_removed(tmp_path, expected, monkeypatch):
    monkeypatch.setenv("COUNTED_LOG", str(tmp_path / "calls.log"))
    for name, value in LIVE.items():
        monkeypatch.setenv(name, str(value))
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    try:
        nodes = [cluster.add_node(num_cpus=1) for _ in range(2)]
        with running(tmp_path, RAY_ADDRESS=cluster.address, **LIVE) as process:
            wait_until(lambda: len(ray_runs.actors_of(tmp_path)) == 2, process)
            cluster.remove_node(nodes[0], allow_graceful=False)
            assert process.wait(timeout=250) == 0, (tmp_path / "output.log").read_text()[-5000:]
    finally:
        cluster.shutdown()
    assert read_files(tmp_path) == expected
    asked = calls(tmp_path)
    assert asked.keys() == PROMPTS.keys()
    assert asked.total() <= ROWS + 16


def test_credentials_are_in_no_file(tmp_path):
    """Neither in the run's nor in Ray's, also where a process dies and much is logged."""
    secret = "sk-4f7b-secret"
    rays = Path(tempfile.mkdtemp(prefix="ray", dir="/tmp"))  # sockets are in it: no long path
    try:
        (tmp_path / "prod_env").mkdir()
        (tmp_path / "prod_env" / "credentials.conf").write_text(f"countedApiKey: {secret}\n")
        settings = {**LIVE, "COUNTED_ROWS": 20, "COUNTED_DEADLY": "question 3", "RAY_TMPDIR": rays}
        output = run(tmp_path, check=False, **settings, HELM_EXT_RAY_ENV="COUNTED_KEY", COUNTED_KEY=f"{secret}-2")
        assert secret not in output
        logs = [path for path in rays.rglob("*") if path.is_file() and not path.is_symlink()]
        assert any("raylet" in path.name for path in logs)
        assert [path for path in logs if secret.encode() in path.read_bytes()] == []
    finally:
        shutil.rmtree(rays)
    files = [path for path in tmp_path.rglob("*") if path.is_file() and secret.encode() in path.read_bytes()]
    assert [path.name for path in files] == ["credentials.conf"]


def memory_share(extra_bytes):
    """Return the share of this machine's memory that is taken, with so much more."""
    lines = (line.split() for line in open("/proc/meminfo"))
    sizes = {line[0].rstrip(":"): int(line[1]) * 1024 for line in lines}
    if sizes["MemAvailable"] < 4 * extra_bytes:
        pytest.skip("too little memory is free")
    return 1 - (sizes["MemAvailable"] - extra_bytes) / sizes["MemTotal"]


def test_a_row_that_takes_all_memory_is_named(tmp_path):
    """Ray's monitor ends the process that took the memory, here from 2 GB on."""
    limits = {"RAY_memory_usage_threshold": memory_share(2e9), "RAY_memory_monitor_refresh_ms": 100}
    settings = {**LIVE, **limits, "COUNTED_ROWS": 40}
    output = run(tmp_path, check=False, COUNTED_GREEDY="question 17", **settings)
    assert "1 of 40 rows have no answer: row17: each of 3 processes that asked for it alone died" in output
    assert "low on memory" in output
    asked = calls(tmp_path)
    # With others or alone, as the monitor may have ended the other process first.
    assert 4 <= asked["question 17"] <= 6
    run(tmp_path, **settings)
    assert calls(tmp_path) - asked == Counter({"question 17": 1})
    assert len(json.loads(read_files(tmp_path)["scenario_state.json"])["request_states"]) == 40


FULL = f"""
import resource, sys
from helm_ext.running.kept import KeptAnswers
from helm.benchmark import run

append = KeptAnswers.append

def append_until_full(self, answers):
    append(self, answers)
    if self.path.stat().st_size > 10_000:  # Ray's own files have been opened by then, by processes of its own
        limit = self.path.stat().st_size + 100
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))

KeptAnswers.append = append_until_full
sys.argv[:] = {ray_runs.command("s")}
run.main()
"""


def test_the_disk_is_full(tmp_path, expected):
    """This process can write no file past 10 kB, as on a disk that has no more room."""
    done = processes.command(
        tmp_path, processes.sys.executable, "-c", FULL, check=False, env=ray_runs.environ(tmp_path, **LIVE)
    )
    assert done.returncode == 1
    assert ".answers.jsonl: answers cannot be kept: [Errno 27] File too large" in done.stdout + done.stderr
    assert [path.name for path in run_folder(tmp_path).iterdir()] == [".answers.jsonl"]
    kept, before = kept_prompts(tmp_path), calls(tmp_path)
    assert 10 < len(kept) < ROWS
    run(tmp_path, **LIVE)
    assert calls(tmp_path) - before == Counter(dict.fromkeys(PROMPTS.keys() - kept, 1))
    assert read_files(tmp_path) == expected


def make_served_run(folder, server, rows=20):
    """Write a run entry's data, and a deployment with a key that the server wants."""
    lines = [{"adapter_spec": {"output_prefix": "Answer: ", "max_tokens": 5, "max_train_instances": 0}}]
    for row in range(rows):
        references = [{"output": {"text": "Paris"}, "tags": ["correct"]}]
        text = {"text": f"Question {row}?"}
        lines.append({"instance": {"id": f"r{row}", "split": "test", "input": text, "references": references}})
    folder.mkdir()
    (folder / "questions.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (folder / "prod_env").mkdir()
    args = {"base_url": f"{server.url}/v1"}
    client = {"class_name": "helm_ext.clients.OpenAICompatibleClient", "args": args}
    deployments = {"model_deployments": [{"name": "local/tiny", "client_spec": client}]}
    (folder / "prod_env" / "model_deployments.yaml").write_text(json.dumps(deployments))
    (folder / "prod_env" / "credentials.conf").write_text('localApiKey: "sk-1"\n')


def test_a_server_is_asked_as_without_ray(tmp_path):
    """Many at once from each actor; notes, cache and rows that fail are those of the streaming runner."""
    entry = "adapter_spec:path=questions.jsonl,model=local/tiny,missing=skip"
    with serve() as server:
        server.instead = lambda path, body: (
            (400, {"error": {"message": "too long"}}) if "Question 7?" in str(body) else None
        )
        files, asked = {}, {}
        for runner in ("StreamingRunner", "RayRunner"):
            folder = tmp_path / runner
            make_served_run(folder, server)
            for _ in range(2):
                processes.command(
                    folder, "helm-run", "--suite", "s", "-m", "1000", "--run-entries", entry,
                    "--runner-class-name", f"helm_ext.running.{runner}", env={"HELM_EXT_RAY_BATCH": "3"},
                )  # fmt: skip
                asked.setdefault(runner, []).append(len(server.asked))
                server.asked.clear()
            files[runner] = without_times(read_all(processes.only_run(folder)))
    assert files["RayRunner"] == files["StreamingRunner"]
    means = processes.stat_means(processes.only_run(tmp_path / "RayRunner"))
    assert (means["num_left_out"], means["num_instances"]) == (1, 19)
    assert asked == {
        "StreamingRunner": [20, 1],
        "RayRunner": [20, 1],
    }  # the second time, all that did not fail is cached


@pytest.mark.parametrize("gpus", ["", "1"])
def test_models_share_actors_unless_they_need_gpus(tmp_path, gpus):
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "num_gpus": 2, "include_dashboard": False})
    try:
        settings = {**LIVE, "COUNTED_ROWS": 64, "RAY_ADDRESS": cluster.address}
        settings |= {"HELM_EXT_RAY_ACTORS": "", "HELM_EXT_RAY_GPUS": gpus}  # as many as there is room for
        settings["HELM_EXT_RAY_ENV"] = "COUNTED_LOG, COUNTED_SECONDS"  # the cluster is older than these
        processes.helm_run(
            tmp_path, "counted:model=counted/model", "counted:model=counted/other,model_deployment=counted/other", env=ray_runs.environ(tmp_path, **settings),
            options=("--plugins", str(ray_runs.PLUGIN), "--runner-class-name", "helm_ext.running.RayRunner"),
        )  # fmt: skip
    finally:
        cluster.shutdown()
    asked, other = ray_runs.actors_of(tmp_path, "question"), ray_runs.actors_of(tmp_path, "other question")
    assert (len(asked), len(other)) == (2, 2)
    assert (asked & other == set()) is bool(gpus)
    assert calls(tmp_path).total() == 2 * 64
