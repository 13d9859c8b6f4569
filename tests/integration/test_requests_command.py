"""`helm-ext requests` in this process: in parts, with failures, changed data, killed; and what it refuses.

tests/integration/test_requests_elsewhere.py compares whole runs with live ones.
"""

import json
import re
import shutil
from pathlib import Path

import commands
import pytest
import request_states_files
from openai_server import answer_file, serve, write_lines
from processes import load

from helm_ext.analysis.siblings import TIMES_FILE

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
WORKSHOP = "examples/ultraeval/datasets/workshop/config/workshop_ppl.json"
FILES = ["per_instance_stats.json", "run_spec.json", "scenario.json", "scenario_state.json", "stats.json"]


@pytest.fixture(scope="module")
def server():
    with serve() as running:
        yield running


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_dataset(tmp_path)
    return tmp_path


def write_dataset(folder: Path, gold: str = "1", rows: int = 7) -> None:
    states = [
        request_states_files.state(f"What is {n} + 1?", str(n + int(gold)), id=f"row {n}", split="test")
        for n in range(rows)
    ]
    spec = {"input_prefix": "Q: ", "output_prefix": "A:", "max_train_instances": 0, "max_tokens": 5}
    request_states_files.write(folder / "sums.json", states, spec)


def run(*arguments, expect=0):
    return commands.run("requests", *arguments, code=expect)


def refused(*arguments) -> tuple[int, str]:
    """Return the exit code, and what is said to be wrong."""
    done = commands.run("requests", *arguments, code=None)
    return done.code, done.stderr


MODEL = ("--model", "here/tiny", "--endpoint", "chat")


def out(*options, expect=0):
    return run("out", "adapter_spec:path=sums.json", *MODEL, *options, expect=expect)


def finished(folder: Path, suite: str = "default") -> list[Path]:
    return [path.parent for path in folder.glob(f"benchmark_output/runs/{suite}/*/stats.json")]


def ids(path: Path) -> list[str]:
    return [json.loads(line)["custom_id"] for line in path.read_text().splitlines()]


def test_results_come_in_parts_and_the_rest_is_asked_again(folder, server):
    said = out("--per-shard", "3", "--prices", "1,2")
    assert "7 requests in 3 files: requests-1-0001.jsonl ... requests-1-0003.jsonl" in said.stdout
    assert "sent to /v1/chat/completions as model here/tiny" in said.stdout
    assert "at most 35 out" in said.stdout
    assert said.stderr == ""
    content = load(folder / "sums.json")
    content["request_states"] *= 2
    (folder / "twice.json").write_text(json.dumps(content))
    assert "warning: twice.json:" in run("out", "adapter_spec:path=twice.json", *MODEL, "--out", "twice").stderr
    assert "cost: " in said.stdout
    first, second, third = (folder / "requests" / f"requests-1-000{n}.jsonl" for n in (1, 2, 3))

    lines = answer_file(server, first)
    failed = lines[1]["custom_id"]
    lines[1]["response"] = {"status_code": 500, "request_id": "r", "body": {"error": {"message": "out of memory"}}}
    result = run("in", "requests/manifest.json", write_lines(folder / "1.jsonl", lines), expect=1)
    assert "2 of 7 requests are answered\n" in result.stdout
    assert f'failed: 1\n  {failed}: status 500: "out of memory"' in result.stderr
    assert f"missing: 4\n  {ids(second)[0]}" in result.stderr
    assert "5 requests without an answer" in result.stderr
    assert finished(folder) == []

    result = run("in", "requests", write_lines(folder / "3.jsonl", answer_file(server, third)), expect=1)
    assert "3 of 7 requests are answered, 1 of them now" in result.stdout

    said = run("out", "--only-missing").stdout
    assert "4 of 7 requests have no answer" in said
    rest = folder / "requests" / "requests-2-0001.jsonl"
    assert ids(rest) == [failed, *ids(second)]
    originals = [json.loads(line) for path in (first, second) for line in path.read_text().splitlines()]
    assert [json.loads(line) for line in rest.read_text().splitlines()] == [originals[i] for i in (1, 3, 4, 5)]

    result = run("in", "requests", write_lines(folder / "rest.jsonl", answer_file(server, rest)))
    assert "7 of 7 requests are answered, 4 of them now" in result.stdout
    assert re.search(
        r"here/tiny on sums-.*normalized_exact_match \(main\) │ +\d.*num_instances +│ +7 ", result.stdout, re.DOTALL
    )
    [made] = finished(folder)
    assert f"written to {made.relative_to(folder)}" in result.stdout
    assert sorted(path.name for path in made.glob("*.json")) == sorted([TIMES_FILE, *FILES])
    assert "every request is answered" in run("out", "--only-missing").stdout

    # In one go, the same.
    out("--out", "again")
    results = write_lines(folder / "all.jsonl", answer_file(server, folder / "again" / "requests-1-0001.jsonl"))
    run("in", "again", results, results, "--suite", "again")
    [whole] = finished(folder, "again")
    assert "7 of 7 requests are answered, 7 said twice" in run("in", "again", results, "--suite", "again").stdout
    for name in FILES:
        assert load(whole / name) == load(made / name)


def test_runs_that_are_answered_are_made_and_the_others_are_named(folder, server):
    shutil.copy("sums.json", "more.json")
    write_dataset(folder, rows=3)
    entries = ["adapter_spec:path=more.json", "adapter_spec:path=sums.json"]
    said = run("out", *entries, "--model", "here/tiny", "--endpoint", "completions", "--per-shard", "5").stdout
    assert "7 requests in 2 files" in said
    assert "3 requests more, equal to one of these" in said
    results = write_lines(folder / "1.jsonl", answer_file(server, folder / "requests" / "requests-1-0001.jsonl"))
    result = run("in", "requests", results, expect=1)
    assert "not made: adapter_spec:path=more.json" in result.stderr
    [made] = finished(folder)
    assert "path=sums.json" in made.name
    assert len(load(made / "scenario_state.json")["request_states"]) == 3


@pytest.mark.parametrize("change", ["gold", "rows"])
def test_answers_to_a_changed_dataset_are_refused(folder, server, change):
    out()
    results = write_lines(folder / "1.jsonl", answer_file(server, folder / "requests" / "requests-1-0001.jsonl"))
    write_dataset(folder, **({"gold": "2"} if change == "gold" else {"rows": 8}))
    code, said = refused("in", "requests", results)
    assert code == 1
    assert "the requests were written for other runs: adapter_spec:path=sums.json,digest=" in said
    assert "has changed since; write the requests again" in said
    assert not list(folder.glob("benchmark_output/runs/default/adapter_spec*"))
    # And so are new requests beside the old ones.
    (folder / "requests" / "answers.jsonl").unlink()
    code, said = refused("out", "--only-missing")
    assert code == 1
    assert "the run is not the one that requests were written for" in said
    assert len(list((folder / "requests").glob("requests-*"))) == 1
    # Requests that are written anew take no answers to the old ones.
    out("--out", "new")
    code, said = refused("in", "new", results)
    assert code == 1
    assert "is no request of new/manifest.json" in said


def test_results_of_requests_that_were_never_written(folder):
    code, said = refused("in", "never", "results.jsonl")
    assert code == 1
    assert "never/manifest.json: no such file\n  hint: the folder of `helm-ext requests out`" in said


TINY, CHAT = "--model here/tiny", "--model here/tiny --endpoint chat"


@pytest.mark.parametrize(("arguments", "code", "said"), [
    (f"adapter_spec:path=sums.json {TINY}", 2, "given\n  hint: --model ORGANIZATION/NAME, --endpoint chat"),
    ("adapter_spec:path=sums.json --endpoint chat", 2, "--model: must be given"),
    (CHAT, 2, "RUN_ENTRY: must be given"),
    (f"adapter_spec:path=sums.json {TINY} --endpoint both", 2, "is not one of 'chat'"),
    ("adapter_spec:path=sums.json --model tiny --endpoint chat", 2, "expected ORGANIZATION/NAME"),
    ("adapter_spec:path=sums.json --model recorded/x --endpoint chat", 2, "a recorded model answers"),
    (f"adapter_spec:path=none.json {CHAT}", 1, "error: none.json: no such file"),
    (f"sums.json {CHAT}", 2, "sums.json: a file, and no run entry\n  hint: adapter_spec:path=sums.json"),
    (f"no_such_entry {CHAT}", 2, "Unknown run spec name: no_such_entry"),
    (f"adapter_spec:path=sums.json,model=simple/model1 {CHAT}", 2, "names another model than --model here/tiny"),
    (f"adapter_spec:path=sums.json adapter_spec:path=sums.json {CHAT}", 2, "is named twice"),
    (f"adapter_spec:path=sums.json {CHAT} --prices 1", 2, "--prices 1: expected IN,OUT"),
    (f"adapter_spec:path=sums.json {CHAT} --omit stop", 2, "omit=stop: cannot be left out"),
    (f"ultraeval:config={WORKSHOP} {CHAT}", 1, "echo_prompt: log-probabilities of the prompt are asked for"),
    (
        f"commonsense:dataset=hellaswag,method=multiple_choice_separate_original {TINY} --endpoint completions",
        2,
        "HELM needs a tokenizer for multiple_choice_separate_original",
    ),
    (f"innodata:path=first.zip {TINY} --endpoint completions", 1, "messages: the completions endpoint takes a text (24 requests: "),
    (f"simple_safety_tests {CHAT}", 2, "SimpleSafetyTestsAnnotator asks mo"),
    ("--only-missing", 1, "requests/manifest.json: no such file"),
])  # fmt: skip
def test_what_cannot_be_written_is_refused_and_nothing_is(folder, arguments, code, said):
    shutil.copytree(ROOT / "examples", "examples")
    if "innodata" in arguments:
        pack = ["hub", "pack", "--test", "examples/innodata/test.jsonl", "--name", "first"]
        commands.run(*pack)
    got, err = refused("out", *arguments.split())
    assert (got, said in err) == (code, True), err
    assert "Traceback" not in err
    assert not (folder / "requests").exists()


def test_requests_that_are_there_are_not_written_over(folder):
    out()
    before = (folder / "requests" / "manifest.json").read_bytes()
    code, said = refused("out", "adapter_spec:path=sums.json", "--model", "here/tiny", "--endpoint", "chat")
    assert code == 2
    assert "requests are there already" in said
    assert (folder / "requests" / "manifest.json").read_bytes() == before
    code, said = refused("out", "--only-missing", "--model", "here/other")
    assert code == 2
    assert 'these requests were planned with "here/tiny"' in said


def test_rows_without_an_answer_are_left_out_where_that_is_asked_for(folder, server):
    """They count in no score, and are counted as what they are."""
    out("--per-shard", "5")
    lines = answer_file(server, folder / "requests" / "requests-1-0001.jsonl")
    lines[1] = {"custom_id": lines[1]["custom_id"], "response": None, "error": {"code": "batch_expired"}}
    lines[2]["response"] = {"status_code": 500, "body": {}}
    results = write_lines(folder / "1.jsonl", lines)
    said = run("in", "requests", results, "--missing", "skip").stdout
    assert "4 rows left out, without an answer" in said
    [made] = finished(folder)
    means = {stat["name"]["name"]: stat["mean"] for stat in load(made / "stats.json") if "mean" in stat}
    assert (means["num_left_out"], means["num_failed"], means["num_not_run"]) == (4, 1, 3)
    states = load(made / "scenario_state.json")["request_states"]
    left_out = [state["instance"]["extra_data"]["helm_ext"].get("left_out") for state in states]
    assert left_out == [None, "not_run", "failed", None, None, "not_run", "not_run"]
    scored = [stats for stats in load(made / "per_instance_stats.json") if stats["stats"]]
    assert {stats["instance_id"] for stats in scored} == {"row 0", "row 3", "row 4"}
    said = commands.run("score", made / "scenario_state.json").stdout
    assert re.search(r"here/tiny on .*num_left_out +│ +4 .*num_not_run +│ +3 .*num_failed +│ +1 ", said, re.DOTALL)
    # HELM's own metrics know no such rows.
    run("out", "simple_mcqa", "-m", "9", "--model", "here/tiny", "--endpoint", "chat", "--out", "stock")
    lines = answer_file(server, folder / "stock" / "requests-1-0001.jsonl")
    code, said = refused("in", "stock", write_lines(folder / "2.jsonl", lines[1:]), "--missing", "skip")
    assert code == 1
    assert "HELM's own metrics cannot leave out rows, and 1 have no answer" in said
