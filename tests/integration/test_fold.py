"""A run of rows that are read some at a time writes the files of HELM's runner, in this process and in several."""

import gzip
import json
import random
import re
import shutil

import pytest
from processes import command, run_folders
from recorded_runs import WORDS, few_rows, make_row, write

from helm_ext.formats.innodata.hub import pack

FILES = ("run_spec.json", "scenario_state.json", "stats.json", "per_instance_stats.json")
OURS = ("--runner-class-name", "helm_ext.running.StreamingRunner")
ROWS = 260

pytestmark = pytest.mark.slow


def write_ultraeval(folder, method, draw):
    """The outputs of a finished UltraEval run; some rows have none."""
    folder.mkdir()
    rule = "in_match" if method == "gen" else "log_prob"
    (folder / "config.json").write_text(json.dumps({"metric": {"accuracy": {"evaluation": {"type": rule}}}}))
    with (folder / "instance.jsonl").open("w") as file:
        for number in range(ROWS):
            options = {f"{word} {number}": int(not place) for place, word in enumerate(draw.sample(WORDS, 3))}
            logprobs = [[-2.0, *(-4 * draw.random() for _ in range(3))] for _ in options]
            outputs = [draw.choice([*options])] if method == "gen" else [logprobs]
            row = {
                "data": {"question": f"{number}?", "target_scores": options},
                "ground_truth": next(iter(options)),
                "prompt_inputs": [f"Which of {' '.join(WORDS)}? "],
                "raw_outputs": [] if number % 50 == 3 else outputs,
            }
            file.write(json.dumps(row) + "\n")


def write_innodata(folder, name, draw):
    """A bundle, and replies to its records in an order of their own; some have none."""
    records, replies = folder / f"{name}.records", [*range(ROWS)]
    lines = [
        {"id": f"q{n}", "messages": [{"role": "user", "content": f"Which of {draw.choice(WORDS)} {n}?"}],
         "expected": WORDS[n % 12], "topic": "xyz"[n % 3]}
        for n in range(ROWS)
    ]  # fmt: skip
    records.write_text("".join(json.dumps(line) + "\n" for line in lines))
    pack(name=name, test=records, target=folder)
    draw.shuffle(replies)
    said = [{"id": f"q{n}", "reply": None if n % 50 == 3 else f"It is {draw.choice(WORDS[:3] + [WORDS[n % 12]])}.",
             "request_time": draw.random()} for n in replies if n % 50 != 9]  # fmt: skip
    (folder / f"{name}.replies.jsonl").write_text("".join(json.dumps(line) + "\n" for line in said))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Files that need something else each: ids, splits, draws, caps, rows that are left out, groups."""
    folder = tmp_path_factory.mktemp("fold")
    draw = random.Random(5)

    def rows(**instance):
        return [make_row(draw, number, **instance) for number in range(ROWS)]

    write(folder / "plain.jsonl", rows(split="test"))
    unmeasured = rows(split="test")
    del unmeasured[-7]["request"]["result"]["completions"][0]["logprob"]
    del unmeasured[-7]["request"]["result"]["completions"][0]["tokens"]
    write(folder / "unmeasured.jsonl", unmeasured)
    left_out = rows(split="test")
    for number in range(3, ROWS, 9):
        left_out[number]["request"] = {"result": {"success": False}} if number % 2 else None
        left_out[number] = {key: value for key, value in left_out[number].items() if value}
    write(folder / "left_out.jsonl", left_out)
    write(folder / "splits.jsonl", [make_row(draw, n, split=("train", "test", "valid", "test")[n % 4])
                                    for n in range(ROWS)], max_train_instances=3)  # fmt: skip
    write(folder / "drawn.jsonl", rows(), max_train_instances=4, max_eval_instances=150)
    ids = rows(split="test")
    for number, row in enumerate(ids):
        row["instance"]["id"] = [f"q{number % 50}", None, number, "id7"][number % 4]
    write(folder / "ids.jsonl", ids)
    twice = rows()[:90]
    for row in twice:
        del row["instance"]["id"]
    write(folder / "twice.jsonl", twice * 3, max_train_instances=4)
    groups = [make_row(draw, n, split="test", sub_split="ab"[n % 2],
                       extra_data={"kind": "xyz"[n % 3], "passage": str(n // 5)}) for n in range(ROWS)]  # fmt: skip
    write(folder / "groups.jsonl", groups)
    judged = rows(split="test")
    for number, row in enumerate(judged):
        row["judgements"] = [
            {"by": by, "kind": "model", "criterion": "correct", "value": draw.choice([0.0, 1.0]), "status": "ok"}
            for by in ("openai/gpt", "anthropic/claude") if number % 7
        ]  # fmt: skip
    write(folder / "judged.jsonl", judged)
    header, *lines = (folder / "plain.jsonl").read_text().splitlines()
    spec = json.loads(header)["adapter_spec"] | {"output_format": "list"}
    header = json.dumps({"adapter_spec": spec, "scoring": {"separator": " "}})
    (folder / "lists.jsonl").write_text("\n".join([header, *lines]) + "\n")
    (folder / "packed.jsonl.gz").write_bytes(gzip.compress((folder / "plain.jsonl").read_bytes()))
    (folder / "returns.jsonl").write_bytes((folder / "plain.jsonl").read_bytes().replace(b"\n", b"\r\n"))
    lines = ["id,question,answer,said", *(f"{n},What is {n}?,{n},{n + n % 3 // 2}" for n in range(ROWS))]
    (folder / "table.csv").write_text("\n".join(lines) + "\n")
    for method in ("gen", "ppl"):
        write_ultraeval(folder / f"sums_sums_{method}", method, draw)
    write_innodata(folder, "chats", draw)
    return folder


ENTRIES = (
    "adapter_spec:path=plain.jsonl,model=recorded/m",
    "adapter_spec:path=unmeasured.jsonl,model=recorded/m",
    "adapter_spec:path=left_out.jsonl,missing=skip,model=recorded/m",
    "adapter_spec:path=splits.jsonl,model=recorded/m",
    "adapter_spec:path=drawn.jsonl,model=recorded/m",
    "adapter_spec:path=ids.jsonl,model=recorded/m",
    "adapter_spec:path=twice.jsonl,model=recorded/m",
    "adapter_spec:path=groups.jsonl,by=kind,cluster=passage,model=recorded/m",
    "adapter_spec:path=packed.jsonl.gz,model=recorded/m",
    "adapter_spec:path=returns.jsonl,model=recorded/m",
    "table:path=table.csv,output=said,model=recorded/m",
    "ultraeval:data=sums_sums_gen/instance.jsonl,missing=skip,model=recorded/m",
    "ultraeval:data=sums_sums_ppl/instance.jsonl,missing=skip,model=recorded/m",
    "innodata:path=chats.zip,replies=chats.replies.jsonl,missing=skip,model=recorded/m",
    "innodata:path=chats.zip,replies=chats.replies.jsonl,missing=skip,render=text,model=recorded/m",
    "adapter_spec:path=judged.jsonl,model=recorded/m",
    "adapter_spec:path=lists.jsonl,model=recorded/m",
)


def run(folder, suite, *options, entries=ENTRIES, most=100_000, said=None, **env):
    """Run all entries; return the files of each run, as bytes. What is said of the files goes to `said`."""
    few = few_rows(folder) if env else {}
    done = command(
        folder, "helm-run", "--suite", suite, "--disable-cache", "--exit-on-error", "-m", str(most), *options,
        "--run-entries", *entries, env={**env, **few, "HELM_EXT_PROGRESS": "off"},
    )  # fmt: skip
    if said is not None:
        log = [re.sub(r"^[-\d]+ [:,\d]+ ", "", line) for line in (done.stdout + done.stderr).splitlines()]
        said += [line for line in log if "SHA-256" in line or "hint:" in line or re.search(r"jsonl(:\d+)?: ", line)]
    return {
        name: {file: (path / file).read_bytes() for file in FILES} for name, path in run_folders(folder, suite).items()
    }


def parsed(runs):
    # repr tells 1 from 1.0, and NaN is equal to itself.
    return {name: {file: repr(json.loads(data)) for file, data in files.items()} for name, files in runs.items()}


@pytest.fixture(scope="module")
def whole(folder):
    """The files that are made of all rows at once, and what is said of them."""
    said = []
    runs = run(folder, "whole", *OURS, said=said)
    assert len(runs) == len(ENTRIES)
    return runs, said


def test_files_are_those_of_helms_runner(folder, whole):
    """Each file is stored and folded by one worker or by two."""
    made, said_of_whole = whole
    assert parsed(made) == parsed(run(folder, "helm"))
    some = [ENTRIES[place] for place in (1, 2, 4, 5, 8, 10, 13, 14, 15, 16)]
    folded, said = {}, {}
    for workers, entries in (("1", [entry for entry in ENTRIES if entry not in some]), ("2", some)):
        said[workers] = []
        folded |= run(folder, workers, *OURS, entries=entries, said=said[workers], HELM_EXT_WORKERS=workers)
    assert folded == made
    for lines in said.values():
        assert [line for line in said_of_whole if line in lines] == lines
    assert sum("SHA-256" in line for line in said["2"]) == len(some)
    assert any("rows have no id, or that of an earlier row" in line for line in said["2"])
    left = list((folder / "benchmark_output").rglob("*.part"))
    assert left == []


def test_files_of_a_part_of_the_rows_are_those_of_helms_runner(folder, whole):
    """Those of runs that are scored again, too."""
    made = run_folders(folder, "whole")
    for name in ("lists", "judged"):
        (scored,) = (path for run_name, path in made.items() if name in run_name)
        shutil.copy(scored / "scenario_state.json", folder / f"{name}_again.json")
    again = [f"adapter_spec:path={name}_again.json,model=recorded/m" for name in ("lists", "judged")]
    entries = [*(ENTRIES[place] for place in (2, 3, 4, 5, 6, 7, 10, 12, 13)), *again]
    helms = run(folder, "helm100", entries=entries, most=100)
    assert parsed(run(folder, "fold100", *OURS, entries=entries, most=100, HELM_EXT_WORKERS="1")) == parsed(helms)


@pytest.mark.nightly("src/helm_ext/running", "src/helm_ext/engines", "src/helm_ext/evalset")
def test_rays_actors_make_the_same_files(folder, whole):
    """Rows are sent to them, and the parts of the files come back: no disk is shared."""
    pytest.importorskip("ray")
    ray = ("--runner-class-name", "helm_ext.running.RayRunner")
    made = run(folder, "ray", *ray, entries=[ENTRIES[place] for place in (2, 4, 5, 8, 13, 16)], HELM_EXT_RAY_ACTORS="2")
    assert len(made) == 6
    assert made == {name: whole[0][name] for name in made}
