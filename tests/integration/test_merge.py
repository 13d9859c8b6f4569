"""Runs of shards are merged to what one run of all rows writes: its stats byte by byte, and its rows."""

import json
import math
import random
import shutil
from pathlib import Path

import commands
import pytest
import recorded_runs
from processes import command, load, run_folders, without_times
from recorded_runs import WORDS
from request_states_files import answered, choice

from helm_ext.planning import CAPPED_ROWS

OURS = ("--runner-class-name", "helm_ext.running.StreamingRunner")
CUTS = (0, 23, 230, 300)
"""Where shards begin: 23, 207 and 70 rows; a batch has 200."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.nightly("src/helm_ext/running", "src/helm_ext/cli/merge", "src/helm_ext/scoring"),
]


def make_row(draw, number, **instance):
    return recorded_runs.make_row(draw, number, **{"split": "test", **instance})


def make_choice(draw, number):
    split = ("test", "valid")[number % 3 == 1]
    row = choice(f"Which of these? {number}", draw.sample(WORDS, 4), number % 4, id=f"c{number}", split=split)
    return answered(row, draw.choice(["A", "B.", "(C)", "none"]))


def make_likelihoods(draw, number):
    """HELM's states of a row that was asked about by its options, once each."""
    instance = make_row(draw, number)["instance"]
    instance["references"].append({"output": {"text": "a wrong one"}, "tags": []})
    question = instance["input"]["text"]
    states = []
    for index, reference in enumerate(instance["references"]):
        option = f" {reference['output']['text']}"
        tokens = [{"text": question, "logprob": -0.5}, {"text": option, "logprob": -draw.random()}]
        completion = {"text": question + option, "logprob": sum(token["logprob"] for token in tokens), "tokens": tokens}
        state = answered({"instance": instance}, "", completions=[completion])
        states.append({**state, "reference_index": index, "request_mode": "original"})
    return states


def make_trials(draw, number):
    first = make_row(draw, number)
    again = make_row(draw, number)["request"]
    return [{**first, "train_trial_index": 0}, {**first, "request": again, "train_trial_index": 1}]


def make_files():
    draw = random.Random(7)
    total = CUTS[-1]
    text = {"scoring": {"metrics": ["exact_match", "quasi_exact_match", "f1_score"], "main_metric": "f1_score"}}
    groups = [make_row(draw, n, sub_split="ab"[n % 2], extra_data={"kind": "xyz"[n // 2 % 3], "passage": str(n // 40)})
              for n in range(total)]  # fmt: skip
    for number in range(3, total, 9):
        groups[number]["request"] = {"result": {"success": False}} if number % 2 else None
        groups[number] = {key: value for key, value in groups[number].items() if value}
    for row in groups[: CUTS[1]]:  # a value that the first shard does not have
        row["instance"]["extra_data"]["kind"] = "y"
    unmeasured = [make_row(draw, n) for n in range(total)]
    del unmeasured[100]["request"]["result"]["completions"][0]["logprob"]
    del unmeasured[100]["request"]["result"]["completions"][0]["tokens"]
    nameless = [make_row(draw, n) for n in range(total)]
    for row in nameless:
        del row["instance"]["id"]
    for row in nameless[::7]:  # wrong, with the gold inside
        row["request"]["result"]["completions"][0]["text"] = (
            f"It is {row['instance']['references'][0]['output']['text']}."
        )
    return {
        "groups": (text, [[row] for row in groups]),
        "choices": ({"adapter_spec": {"method": "multiple_choice_joint"}}, [[make_choice(draw, n)] for n in range(total)]),
        "unmeasured": (text, [[row] for row in unmeasured]),
        "nameless": ({}, [[row] for row in nameless]),
        "likelihoods": ({"adapter_spec": {"method": "multiple_choice_separate_original"}},
                        [make_likelihoods(draw, n) for n in range(total)]),
        "trials": ({**text, "adapter_spec": {"max_train_instances": 1, "num_train_trials": 2}}, [make_trials(draw, n) for n in range(total)]),
        "lists": ({"adapter_spec": {"output_format": "list"}, "scoring": {"metrics": ["list_micro_f1"]}},
                  [[make_row(draw, n)] for n in range(total)]),
    }  # fmt: skip


EXTRA = {"groups": ",missing=skip,by=kind,cluster=passage"}
NAMES = ("groups", "choices", "unmeasured", "nameless", "likelihoods", "trials", "lists")


def write(path, header, rows):
    spec = {"method": "generation", "max_train_instances": 0, "max_tokens": 5, **header.get("adapter_spec", {})}
    lines = [{**header, "adapter_spec": spec}, *(state for states in rows for state in states)]
    write_lines(path, lines)


def write_lines(path, lines):
    path.write_text("\n".join(map(json.dumps, lines)) + "\n")


def helm_run(folder, suite, *entries, options=OURS):
    limits = ("--disable-cache", "--exit-on-error", "-m", "100000")
    command(folder, "helm-run", "--suite", suite, *limits, *options, "--run-entries", *entries)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Each dataset as a whole and as three shards, all run by StreamingRunner."""
    folder = tmp_path_factory.mktemp("merge")
    entries: dict[tuple[str, str], list[str]] = {}
    for name, (header, rows) in make_files().items():
        write(folder / f"{name}.jsonl", header, rows)
        trials = "2" if name == "trials" else "1"
        end = f"{EXTRA.get(name, '')},model=recorded/m"
        entries.setdefault(("whole", trials), []).append(f"adapter_spec:path={name}.jsonl{end}")
        for number, (first, last) in enumerate(zip(CUTS, CUTS[1:], strict=False), 1):
            write(folder / f"{name}-{number}.jsonl", header, rows[first:last])
            entries.setdefault(("shards", trials), []).append(f"adapter_spec:path={name}-{number}.jsonl{end}")
    for (suite, trials), these in entries.items():
        helm_run(folder, suite, *these, options=("-t", trials, *OURS))
    return folder


@pytest.fixture(autouse=True)
def _inside(folder, monkeypatch):
    monkeypatch.chdir(folder)


def find(folder, name, suite="shards"):
    """Return the folders of a dataset's runs, in the order of its shards."""
    return [
        path for run, path in run_folders(folder, suite).items() if f"path={name}-" in run or f"path={name}." in run
    ]


def helm_ext(folder, *arguments, check=True):
    assert Path.cwd() == folder
    return commands.run(*arguments, code=0 if check else None)


def merge(folder, runs, *options, into="merged", check=True):
    return helm_ext(folder, "merge", *runs, "--into", into, *options, check=check)


@pytest.mark.parametrize("name", NAMES)
def test_stats_are_those_of_one_run(folder, name):
    merge(folder, find(folder, name))
    (whole,) = find(folder, name, "whole")
    (merged,) = find(folder, name, "merged")
    assert (merged / "stats.json").read_bytes() == (whole / "stats.json").read_bytes()
    rows, expected = load(merged / "per_instance_stats.json"), load(whole / "per_instance_stats.json")
    states, expected_states = (load(run / "scenario_state.json")["request_states"] for run in (merged, whole))
    if name == "nameless":  # rows were numbered in each shard
        ids = [row["instance_id"] for row in rows]
        assert len(set(ids)) == len(ids) == 300
        assert ids[:2] == ["id0", "id1"]
        assert ids[23:25] == ["id0-2", "id1-2"]
        assert [state["instance"]["id"] for state in states] == ids
        for one in (*rows, *expected):
            one.pop("instance_id")
        for one in (*states, *expected_states):
            one["instance"].pop("id")
            one["instance"].pop("extra_data", None)
    if name == "trials":  # which rows a live run would take as demonstrations: each file has a draw of its own
        for one in (*states, *expected_states):
            one["instance"].pop("extra_data", None)
    assert rows == expected
    assert states == expected_states
    (specs, expected_specs) = (load(run / "run_spec.json")["metric_specs"] for run in (merged, whole))
    assert specs[:-1] == [one for one in expected_specs if one["class_name"] != CAPPED_ROWS]


def test_the_order_is_that_of_the_runs(folder):
    """Floats are added in the order of the rows: another order is another sum."""
    runs = find(folder, "groups")
    merge(folder, [runs[2], runs[0], runs[1]], into="turned")
    ids = [
        state["instance"]["id"]
        for state in load(run_folders(folder, "turned").popitem()[1] / "scenario_state.json")["request_states"]
    ]
    assert ids == [f"r{n}" for n in (*range(230, 300), *range(23), *range(23, 230))]


def test_runs_of_helms_runner_and_of_a_live_model(folder):
    """HELM's own files are read likewise, and no tokenizer is asked."""
    entries = [f"adapter_spec:path=unmeasured{end}.jsonl,model=simple/model1" for end in ("", "-1", "-2", "-3")]
    helm_run(folder, "live", *entries, options=())
    *shards, whole = find(folder, "unmeasured", "live")
    merge(folder, shards, into="live_merged")
    merged, whole = (load(run / "stats.json") for run in (find(folder, "unmeasured", "live_merged")[0], whole))
    assert without_times(merged) == without_times(whole)
    assert [stat["name"] for stat in merged] == [stat["name"] for stat in whole]


def test_what_was_merged_is_not_merged_again_when_asked_not_to(folder):
    runs = find(folder, "choices")
    merge(folder, runs, into="once")
    (run,) = find(folder, "choices", "once")
    before = (run / "stats.json").stat()
    done = merge(folder, runs, "--skip-completed-runs", into="once")
    assert "is there already" in done.stdout
    assert (run / "stats.json").stat().st_mtime_ns == before.st_mtime_ns
    merge(folder, runs, into="once")
    assert (run / "stats.json").stat().st_mtime_ns != before.st_mtime_ns
    again = merge(folder, [run, *runs[:1]], check=False)
    assert "is a merged run\n  hint: name the runs that it was made of" in again.stderr


def copy_of(folder, runs, where):
    """Return copies of runs, to be broken."""
    copies = []
    for run in runs:
        target = folder / "benchmark_output" / "runs" / where / run.name
        shutil.copytree(run, target)
        copies.append(target)
    return copies


def change(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def test_a_shard_that_is_not_its_stats_is_refused(folder):
    runs = copy_of(folder, find(folder, "groups"), "changed")
    change(runs[1] / "per_instance_stats.json", '"sum": 1.0', '"sum": 0.5')
    done = merge(folder, runs, into="bad", check=False)
    assert done.code == 1
    assert runs[1].name in done.stderr
    assert "is not what its rows add up to" in done.stderr
    (left,) = (folder / "benchmark_output" / "runs" / "bad").iterdir()
    assert [path.name for path in left.iterdir()] == [".commit.lock"]
    earlier = copy_of(folder, find(folder, "groups"), "earlier")
    stats = earlier[0] / "stats.json"
    known = [stat for stat in json.loads(stats.read_text()) if stat["name"]["name"] != "num_left_out"]
    stats.write_text(json.dumps(known))
    done = merge(folder, earlier, into="bad", check=False)
    assert done.code == 1
    assert "written by an earlier version of helm-ext, which did not count this: run the shard again" in done.stderr
    cut = copy_of(folder, find(folder, "groups"), "cut")
    data = (cut[0] / "scenario_state.json").read_bytes()
    (cut[0] / "scenario_state.json").write_bytes(data[: len(data) // 2])
    done = merge(folder, cut, into="bad", check=False)
    assert done.code == 1
    assert "Traceback" not in done.stderr
    assert "scenario_state.json" in done.stderr


def test_rows_in_two_shards_are_refused(folder):
    lines = [json.loads(line) for line in (folder / "groups.jsonl").read_text().splitlines()]
    for number, (first, last) in enumerate(((0, 60), (40, 100)), 1):
        write_lines(folder / f"overlap-{number}.jsonl", [lines[0], *lines[1 + first : 1 + last]])
    helm_run(folder, "overlap", *(f"adapter_spec:path=overlap-{n}.jsonl,missing=skip,model=recorded/m" for n in (1, 2)))
    done = merge(folder, find(folder, "overlap", "overlap"), into="bad2", check=False)
    assert done.code == 1
    assert "'r40'" in done.stderr
    assert "overlap-1" in done.stderr
    assert "overlap-2" in done.stderr


CHANGED = [
    ("adapter_spec.model", "recorded/n", 'are no shards of one run: model is "recorded/m" and "recorded/n"'),
    ("adapter_spec.temperature", 0.5, "adapter_spec.temperature is 0.0 and 0.5"),
    ("adapter_spec.max_tokens", "many", "adapter_spec.max_tokens is 5 and"),
    ("adapter_spec.max_eval_instances", 207, "207 rows are evaluated, and --max-eval-instances was 207"),
    ("scenario_spec.args.main_metric", "set_exact_match", "arguments.main_metric is "),
    ("scenario_spec.class_name", "no.such.Thing", "cannot be imported here"),
    ("metric_specs.0", {"class_name": "helm.benchmark.metrics.dry_run_metrics.DryRunMetric", "args": {}},
     "DryRunMetric makes of shards cannot be merged: it wants all rows at once"),
]  # fmt: skip
"""What of a shard's specification is another, and what is said of it."""


def test_runs_that_are_no_shards_are_refused(folder):
    runs = find(folder, "groups")
    unfinished = copy_of(folder, runs[1:2], "unfinished")[0]
    (unfinished / "stats.json").unlink()
    cases = [
        ([runs[0], runs[0]], "nothing to merge"),
        ([runs[0], find(folder, "choices")[1]], "are no shards of one run: adapter_spec.method"),
        ([runs[0], find(folder, "unmeasured")[1]], "are no shards of one run: arguments."),
        ([runs[0], *copy_of(folder, runs[:1], "same")], "are runs of the same data"),
        (["nowhere", runs[0]], "no such folder"),
        ([runs[0], unfinished], "the run is not finished"),
        ([runs[0], unfinished.parent], "no finished run"),
    ]
    for path, value, expected in CHANGED:
        other = copy_of(folder, runs[1:2], path)[0]
        place = spec = load(other / "run_spec.json")
        *keys, last = (int(key) if key.isdigit() else key for key in path.split("."))
        for key in keys:
            place = place[key]
        place[last] = value
        (other / "run_spec.json").write_text(json.dumps(spec))
        cases.append(([runs[0], other], expected))
    for these, expected in cases:
        done = merge(folder, these, into="refused", check=False)
        assert done.code in (1, 2), expected
        assert expected in done.stderr
        assert "Traceback" not in done.stderr
    assert not (folder / "benchmark_output" / "runs" / "refused").exists()


def test_tables_are_refused_for_what_they_are(folder):
    """A table reports no scores; but whether its golds count from 0 or from 1 is told by all of its rows."""
    for number, golds in enumerate(("0123", "1234"), 1):
        rows = [f"{number}-{n},Which {n}?,red,blue,green,black,{gold},red" for n, gold in enumerate(golds)]
        (folder / f"golds-{number}.csv").write_text("\n".join(["id,question,A,B,C,D,answer,said", *rows]) + "\n")
    helm_run(folder, "tables", *(f"table:path=golds-{n}.csv,output=said,model=recorded/m" for n in (1, 2)))
    runs = sorted(run_folders(folder, "tables").values())
    right = [[reference["output"]["text"] for reference in state["instance"]["references"] if reference["tags"]]
             for run in runs for state in load(run / "scenario_state.json")["request_states"]]  # fmt: skip
    assert right == [["red"], ["blue"], ["green"], ["black"]] * 2  # each shard counts from another number
    done = merge(folder, runs, into="refused", check=False)
    assert done.code == 2
    assert "what its columns, golds and reported scores mean is told by all of its rows" in done.stderr


def test_options_that_make_no_sense(folder):
    for name in ("x" * 256, "\u00e4" * 128, ".hidden", "a/b", "..", "a?b", "50%", "", "groups", "a\n", "\udc80"):
        done = merge(folder, find(folder, "groups"), "--name", name, into="refused", check=False)
        assert (done.code, "Traceback" in done.stderr) == (2, False), name
    assert merge(folder, find(folder, "groups"), into="../up", check=False).code == 2


def test_one_row_without_log_probabilities_takes_them_from_all(folder):
    """As in one run: and it is said."""
    done = merge(folder, find(folder, "unmeasured"), into="said")
    assert "not all shards measured bits_per_byte, logprob" in done.stderr
    (run,) = find(folder, "unmeasured", "said")
    names = {stat["name"]["name"] for stat in load(run / "stats.json")}
    assert "logprob" not in names
    assert "ece_10_bin" not in names
    assert math.isfinite(next(s["mean"] for s in load(run / "stats.json") if s["name"]["name"] == "f1_score"))


def test_a_shard_of_another_split(folder):
    """A file of "valid" rows alone is shown by that split, and one with a row of another by "test"."""
    draw = random.Random(11)
    rows = [[make_row(draw, n, split="valid" if n >= 20 else "test")] for n in range(60)]
    write(folder / "splits.jsonl", {}, rows)
    for number in range(3):
        write(folder / f"splits-{number}.jsonl", {}, rows[20 * number : 20 * number + 20])
    helm_run(
        folder, "splits", *(f"adapter_spec:path=splits{end}.jsonl,model=recorded/m" for end in ("-0", "-1", "-2", ""))
    )
    *runs, whole = find(folder, "splits", "splits")
    for these, expected in ((runs, None), (runs[1:], "valid")):
        merge(folder, these, "--name", str(len(these)), into="merged_splits")
        merged = folder / "benchmark_output" / "runs" / "merged_splits" / str(len(these))
        assert load(merged / "run_spec.json")["scenario_spec"]["args"].get("main_split") == expected
    three = folder / "benchmark_output" / "runs" / "merged_splits" / "3"
    assert (three / "stats.json").read_bytes() == (whole / "stats.json").read_bytes()


def test_a_shard_that_did_not_run_is_missed_in_a_folder(folder):
    """A run that failed leaves an empty folder, or none of HELM's files in it."""
    runs = copy_of(folder, find(folder, "choices"), "failed")
    for path in runs[1].iterdir():
        path.unlink()
    done = merge(folder, [runs[0].parent], into="refused", check=False)
    assert done.code == 2
    assert f"{runs[1]}: the run is not finished" in done.stderr
