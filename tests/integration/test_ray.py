"""Live runs on Ray, by real helm-run processes: equal files, and what happens when something dies.

The model writes down every call. Runs that leave Ray alone join one cluster, as its start takes longer than they do.
`tools/faults.py` does the same at many more moments.
"""

import json
import os
import re
import shutil
import signal
import tempfile
import time
from collections import Counter
from pathlib import Path

import processes
import pytest
import ray_runs
import recorded_runs
import served_runs
from openai_server import serve
from processes import read_all, without_times
from ray_runs import calls, children, read_files, run, run_folder, running, wait_until

ray = pytest.importorskip("ray")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.nightly("src/helm_ext/running", "src/helm_ext/engines", "src/helm_ext/clients", "tests/ray_"),
]

ROWS = 240
PROMPTS = Counter(f"question {number}" for number in range(ROWS))
LIVE = {"COUNTED_ROWS": ROWS, "COUNTED_SECONDS": 0.05}


@pytest.fixture(scope="module")
def cluster():
    """A cluster of one node with room for two actors. Tests may add nodes, and take them away again."""
    from ray.cluster_utils import Cluster

    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "num_gpus": 2, "include_dashboard": False})
    yield made
    made.shutdown()


@pytest.fixture
def joined(cluster):
    """The settings of a run on that cluster."""
    return {**LIVE, "RAY_ADDRESS": cluster.address}


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


@pytest.mark.parametrize("gpus", ["", "1"])
def test_every_row_is_asked_once_and_models_share_actors_unless_they_need_gpus(tmp_path, joined, expected, gpus):
    settings = {**joined, "HELM_EXT_RAY_ACTORS": "", "HELM_EXT_RAY_GPUS": gpus}  # as many as there is room for: 2
    settings["COUNTED_ACTORS"] = "2"
    processes.helm_run(
        tmp_path, "counted:model=counted/model", "counted:model=counted/other,model_deployment=counted/other",
        env=ray_runs.environ(tmp_path, **settings),
        options=("--plugins", str(ray_runs.PLUGIN), "--runner-class-name", "helm_ext.running.RayRunner"),
    )  # fmt: skip
    asked, other = ray_runs.actors_of(tmp_path, "question"), ray_runs.actors_of(tmp_path, "other question")
    assert (len(asked), len(other)) == (2, 2)
    assert (asked & other == set()) is bool(gpus)
    assert calls(tmp_path) == PROMPTS + Counter(f"other {prompt}" for prompt in PROMPTS)
    assert read_files(tmp_path) == expected


FULL = f"""
import resource, sys
from helm_ext.running.ray_runner import KeptAnswers
from helm.benchmark import run

append, begun = KeptAnswers.append, []

def append_until_full(self, answers):
    begun.append(self.path.stat().st_size)
    append(self, answers)
    if self.path.stat().st_size > begun[0] + 10_000:
        limit = self.path.stat().st_size + 100
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))

KeptAnswers.append = append_until_full
sys.argv[:] = {ray_runs.command("s")}
run.main()
"""


def test_starts_that_die_in_different_ways_ask_for_no_row_that_an_earlier_one_has_kept(tmp_path, joined, expected):
    """helm-run is killed; the disk is full; a row ends each process that asks for it; then all is well."""
    with running(tmp_path, **joined, COUNTED_GATE=tmp_path / "gate", COUNTED_OPEN=ROWS // 3) as process:
        wait_until(lambda: len(kept_prompts(tmp_path)) >= ROWS // 6, process)
        process.kill()
        process.wait()
        actors = ray_runs.actors_of(tmp_path)
    (tmp_path / "gate").touch()  # a task that has begun is done to its end
    while any(map(recorded_runs.is_alive, actors)):  # pytest's timeout says that they outlive the driver
        time.sleep(0.1)
    kept, before = kept_prompts(tmp_path), calls(tmp_path)
    assert ROWS // 6 <= len(kept) < ROWS - 20
    # What a killed writer, or a full disk, may leave: it is not an answer, and does not spoil the next line.
    with (run_folder(tmp_path) / ".answers.jsonl").open("ab") as file:
        file.write(b'\n{"place":239,"digest":"00')

    # This process can write no file past 10 kB more, as on a disk that has no more room.
    done = processes.command(
        tmp_path, processes.sys.executable, "-c", FULL, check=False, env=ray_runs.environ(tmp_path, **joined)
    )
    assert done.returncode == 1
    assert ".answers.jsonl: answers cannot be kept: [Errno 27] File too large" in done.stdout + done.stderr
    assert [path.name for path in run_folder(tmp_path).iterdir()] == [".answers.jsonl"]
    asked = calls(tmp_path) - before
    assert max(asked.values()) == 1
    assert asked.keys() & kept == set()
    before, already, kept = calls(tmp_path), kept, kept_prompts(tmp_path)
    assert len(already) + 10 < len(kept) < ROWS - 10

    output = run(tmp_path, check=False, COUNTED_DEADLY="question 230", **joined)
    assert "1 of 240 rows have no answer: row230: each of 3 processes that asked for it alone died" in output
    asked = calls(tmp_path) - before
    assert asked.keys() == PROMPTS.keys() - kept
    # With others, with its batch, three times alone.
    assert asked.pop("question 230") == 5
    # Its batch runs beside another, then for itself, then by rows.
    assert max(asked.values()) <= 3
    assert asked.total() <= ROWS - len(kept) - 1 + 16 + 8
    assert [path.name for path in run_folder(tmp_path).iterdir()] == [".answers.jsonl"]

    # Once it is harmless, it alone is asked, and a row whose question is another one now.
    before = calls(tmp_path)
    output = run(tmp_path, COUNTED_REWORDED=5, **joined)
    assert "238 of 240 answers were kept by an earlier start of this run, the last at 20" in output
    assert calls(tmp_path) - before == Counter(["question 230", "Question 5"])
    reworded = {name: re.sub(rb"\bquestion 5\b", b"Question 5", data) for name, data in expected.items()}
    assert read_files(tmp_path) == reworded != expected


def test_ray_itself_is_killed(tmp_path, expected):
    # Ray asks its processes more often whether they are alive.
    often = {"RAY_health_check_period_ms": 300, "RAY_health_check_timeout_ms": 3_000}
    gate = tmp_path / "gate"
    with running(tmp_path, **LIVE, **often, COUNTED_GATE=gate, COUNTED_OPEN=ROWS // 3) as process:
        wait_until(lambda: calls(tmp_path).total() > 20, process)
        (raylet,) = children(process.pid, "raylet")
        os.kill(raylet, signal.SIGKILL)
        for pid in children(process.pid, "ray::RayActor"):
            os.kill(pid, signal.SIGKILL)
        assert 20 < calls(tmp_path).total() < ROWS
        gate.touch()
        assert process.wait() == 0, (tmp_path / "output.log").read_text()[-5000:]
    assert read_files(tmp_path) == expected
    assert calls(tmp_path).keys() == PROMPTS.keys()


SECRET = "sk-4f7b-secret"


@pytest.fixture(scope="module")
def deadly(tmp_path_factory):
    """A run with a row that ends each process that asks for it, on a Ray of its own, with keys."""
    folder = tmp_path_factory.mktemp("greedy")
    rays = Path(tempfile.mkdtemp(prefix="ray", dir="/tmp"))  # sockets are in it: no long path
    (folder / "prod_env").mkdir()
    (folder / "prod_env" / "credentials.conf").write_text(f"countedApiKey: {SECRET}\n")
    size = {"COUNTED_ROWS": 20, "HELM_EXT_RAY_ACTORS": 1, "HELM_EXT_RAY_BATCH": 1}
    keys = {"HELM_EXT_RAY_ENV": "COUNTED_KEY", "COUNTED_KEY": f"{SECRET}-2"}
    output = run(folder, check=False, COUNTED_DEADLY="question 7", RAY_TMPDIR=rays, **size, **keys)
    yield folder, output, rays
    shutil.rmtree(rays)


def test_a_row_that_ends_each_process_is_named_and_the_others_are_asked_once(deadly):
    """So does one that takes all memory: what Ray's monitor raises is an error of Ray's, as a process that died is."""
    assert issubclass(ray.exceptions.OutOfMemoryError, ray.exceptions.RayError)
    folder, output, _ = deadly
    assert "1 of 20 rows have no answer: row7: each of 3 processes that asked for it alone died" in output
    asked = calls(folder)
    # With another, then three times alone.
    assert asked.pop("question 7") == 4
    assert asked.total() <= 19 + 1
    assert len(kept_prompts(folder)) == 19


def test_credentials_are_in_no_file(deadly):
    """Neither in the run's nor in Ray's, also where a process dies and much is logged."""
    folder, output, rays = deadly
    assert SECRET not in output
    logs = [path for path in rays.rglob("*") if path.is_file() and not path.is_symlink()]
    assert any("raylet" in path.name for path in logs)
    assert [path for path in logs if SECRET.encode() in path.read_bytes()] == []
    files = [path for path in folder.rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()]
    assert [path.name for path in files] == ["credentials.conf"]


def test_a_server_is_asked_as_without_ray(tmp_path, cluster):
    """Many at once from each actor; notes, cache and rows that fail are those of the streaming runner."""
    entry = "adapter_spec:path=questions.jsonl,model=local/tiny,missing=skip"
    with serve() as server:
        server.instead = lambda path, body: (
            (400, {"error": {"message": "too long"}}) if "Question 7?" in str(body) else None
        )
        files, asked = {}, {}
        for runner, starts in (("StreamingRunner", 1), ("RayRunner", 2)):
            folder = tmp_path / runner
            folder.mkdir()
            served_runs.make_folder(folder, server)
            for start in range(starts):
                processes.command(
                    folder, "helm-run", "--suite", f"s{start}", "-m", "1000", "--run-entries", entry,
                    "--runner-class-name", f"helm_ext.running.{runner}",
                    env={"HELM_EXT_RAY_BATCH": "3", "HELM_EXT_RAY_ACTORS": "2", "RAY_ADDRESS": cluster.address},
                )  # fmt: skip
                asked.setdefault(runner, []).append(len(server.asked))
                server.asked.clear()
            files[runner] = without_times(read_all(processes.only_run(folder, "s0")))
    assert files["RayRunner"] == files["StreamingRunner"]
    means = processes.stat_means(processes.only_run(tmp_path / "RayRunner", "s1"))
    assert (means["num_left_out"], means["num_instances"]) == (1, 19)
    # The second time, all that did not fail is cached.
    assert asked == {"StreamingRunner": [20], "RayRunner": [20, 1]}
