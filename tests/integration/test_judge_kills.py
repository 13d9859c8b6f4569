"""`judge in` killed wherever it writes: nothing is lost, nothing stands there twice, and the next call mends it."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import pytest
import request_states_files
from request_states_files import answered, state
from typer.testing import CliRunner

from helm_ext.cli import app

pytestmark = [
    pytest.mark.slow,
    pytest.mark.nightly("src/helm_ext/judging", "src/helm_ext/cli/judge", "src/helm_ext/clients"),
]

ROWS = 30
KILLED = 9
POINTS = 10
"""How many of the places where something is written are tried."""

_WRITES = {"os.rename", "os.remove", "os.mkdir", "os.link", "shutil.copyfile"}


def run(*arguments):
    return CliRunner().invoke(app, [*map(str, arguments)])


def in_child(folder: Path, work, kill_at: int | None = None) -> tuple[int, int]:
    """Do the work in a process that dies when it is about to write for the so-manieth time; its status, and the count."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        os.chdir(folder)
        seen = 0

        def look(event, arguments):
            nonlocal seen
            flags = arguments[2] if event == "open" and isinstance(arguments[2], int) else 0
            is_compiled = any("__pycache__" in str(argument) for argument in arguments)
            if not is_compiled and (event in _WRITES or flags & (os.O_WRONLY | os.O_RDWR)):
                seen += 1
                if seen == kill_at:
                    os._exit(KILLED)

        sys.addaudithook(look)
        done = work()
        os.write(writing, str(seen).encode())
        os._exit(done.exit_code if isinstance(done.exit_code, int) else 1)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        said = pipe.read()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), int(said or 0)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    folder = tmp_path_factory.mktemp("judged")
    rows = [state(f"{n} + 1?", str(n + 1), id=f"r{n}", split="test") for n in range(ROWS)]
    states = [answered(row, str(n + 1 + n % 2)) for n, row in enumerate(rows)]
    request_states_files.write(folder / "sums.json", states, name="sums")
    before = Path.cwd()
    os.chdir(folder)
    try:
        assert run("score", "sums.json", "--model", "one").exit_code == 0
        [scored] = Path("benchmark_output/runs/score").glob("adapter_spec*")
        assert run("judge", "out", scored, "--rubric", "correct", "--judge", "org/judge").exit_code == 0
    finally:
        os.chdir(before)
    lines = []
    for line in (folder / "judging/org_judge/requests-1-0001.jsonl").read_text().splitlines():
        request = json.loads(line)
        number = int(request["custom_id"].split("-")[1][1:])
        message = {"role": "assistant", "content": f"GRADE: {'CI'[number % 2]}"}
        body = {"model": "judge", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
        response = {"status_code": 200, "body": body}
        lines.append(json.dumps({"custom_id": request["custom_id"], "response": response, "error": None}))
    (folder / "results.jsonl").write_text("\n".join(lines))
    return folder


def judge_in(*files):
    return run("judge", "in", "judging/org_judge", *files)


def check(folder: Path) -> None:
    kept = [json.loads(line)["custom_id"] for line in (folder / "judging/org_judge/answers.jsonl").open()]
    assert len(kept) == len(set(kept)) == ROWS
    [judged] = (folder / "benchmark_output/runs/judged").glob("adapter_spec*")
    states = json.loads((judged / "scenario_state.json").read_text())["request_states"]
    values = [[one["value"] for one in state["instance"]["extra_data"]["helm_ext"]["judgements"]] for state in states]
    assert values == [[1.0 - n % 2] for n in range(ROWS)]
    assert json.loads((judged / "per_instance_stats.json").read_text())


def test_a_killed_judge_in_is_done_again(prepared, tmp_path):
    shutil.copytree(prepared, tmp_path / "whole")
    status, writes = in_child(tmp_path / "whole", lambda: judge_in("results.jsonl"))
    assert status == 0
    assert writes > 10
    check(tmp_path / "whole")
    some = {1 + (writes - 1) * point // (POINTS - 1) for point in range(POINTS)}
    for place in sorted(some.union(range(writes - 14, writes - 4))):  # where a run takes the place of another
        folder = tmp_path / f"killed {place}"
        shutil.copytree(prepared, folder)
        assert in_child(folder, lambda: judge_in("results.jsonl"), place)[0] == KILLED
        answers = folder / "judging/org_judge/answers.jsonl"
        if answers.exists():  # what was joined is there, whole: the results are no longer needed
            assert in_child(folder, judge_in)[0] == 0
        else:
            assert in_child(folder, lambda: judge_in("results.jsonl"))[0] == 0
        check(folder)
        shutil.rmtree(folder)
