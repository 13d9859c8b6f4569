"""Every argument that is documented, through every command that takes it.

The arguments are those of the tables of formats. Each has a value here that is valid for its file and changes what is
read or scored: an argument without one, and one that is accepted and changes nothing, fails. helm-run's plan is what
all commands are compared with.
"""

import dataclasses
import json
import re
from pathlib import Path
from typing import Any, NamedTuple

import commands
import every_eval_ever_records
import every_format
import inspect_files
import lm_eval_logs
import openai_batches
import pytest
import request_states_files
import ultraeval_checkout
from every_format import Row
from helm.benchmark.run_spec import RunSpec
from helm.benchmark.run_spec_factory import construct_run_specs
from helm.benchmark.scenarios.scenario import create_scenario
from helm.common.object_spec import parse_object_spec

from helm_ext import plugin  # noqa: F401 - registers the run entries
from helm_ext.cli import convert as converting
from helm_ext.cli import requests as requesting
from helm_ext.cli import score as scoring
from helm_ext.cli import session
from helm_ext.cli.common import parse_arguments
from helm_ext.cli.validate import check_file
from helm_ext.clients.request_files import Plan
from helm_ext.errors import HelmExtError, RunEntryError
from helm_ext.evalset import EvalSet, row_extra
from helm_ext.formats import Format, all_formats, get_format, planned
from helm_ext.formats.registry import is_ours
from helm_ext.planning import RUN_ARGUMENTS

ROOT = Path(__file__).parents[3]


class Case(NamedTuple):
    """An argument's value, and the file and the other arguments with which it means something."""

    value: str
    file: str = "file"
    beside: str = ""
    """Further arguments, as in a run entry."""
    unlike: str | None = None
    """The arguments of the run that the value makes another one of; None: those beside."""


WORDS = ["iron", "tin; lead", "the gold", "zinc\nzinc", "1 2", "copper", "silver", "mercury"]


def rows_of_words(**more: Any) -> list[dict[str, Any]]:
    return [
        {
            "question": f"Which metal is number {at}?", "gold": word, "alpha": word.upper(), "beta": f"It is {word}.",
            "subject": f"s{at % 2}", "passage": f"p{at // 2}", "key": f"k{at}", "wording": f"Name metal {at}.", "score": "CPIN"[at % 4], "verdict": at % 2,
            "other_gold": f"{word}!", "part": "train" if at < 2 else "test", **more,
        }
        for at, word in enumerate(WORDS)
    ]  # fmt: skip


ROWS = [Row(row["wording"], row["gold"], row["beta"], {"subject": row["subject"], "passage": row["passage"]})
        for row in rows_of_words()]  # fmt: skip


def write_rows(path: Path, rows: list[dict[str, Any]], sep: str = ",") -> Path:
    import csv

    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, delimiter=sep).writerows([rows[0].keys(), *(row.values() for row in rows)])
    return path


SHARED = {
    "missing": Case("error"),
    "output_format": Case("list"),
    "by": Case("subject"),
    "cluster": Case("passage"),
    "metrics": Case("exact_match+f1_score"),
    "main_metric": Case("f1_score"),
    "completions": Case("mean"),
    "thinking": Case("keep"),
    "extract": Case(r"is (.*)\."),
    "strip": Case("true"),
    "lower": Case("true"),
    "separator": Case("\\n", beside="output_format=list"),
    "extract_all": Case(r"\w+", beside="output_format=list"),
    "extract_references": Case("true", beside="extract=[a-z]+"),
    "drop_duplicates": Case("true", beside="output_format=list"),
    "score_tokenizer": Case(str(ROOT / "tests" / "data" / "word_tokenizer")),
}  # fmt: skip


def make_table(folder: Path) -> dict[str, Path]:
    rows = rows_of_words()
    texts = write_rows(folder / "metals.csv", rows)
    empty = [{**row, "alpha": ""} if at == 3 else row for at, row in enumerate(rows)]
    choices = [
        {"question": f"Which is {at + 1}?", "A": "0", "B": "1", "C": "2", "options": "0", "gold": at % 2 + 1, "alpha": "1", "beta": "2"}
        for at in range(6)
    ]  # fmt: skip
    live = [{"question": row["question"], "gold": row["gold"]} for row in rows]
    bare = folder / "bare.csv"
    bare.write_text("".join(f"{row['question']},{row['key']},{row['passage']},{row['subject']}\n" for row in rows))
    return {
        "file": texts,
        "empty": write_rows(folder / "empty.csv", empty),
        "choices": write_rows(folder / "choices.csv", choices),
        "live": write_rows(folder / "live.csv", live),
        "semicolons": write_rows(
            folder / "semicolons.csv", [{**row, "a,b,c,d,e,f,g,h,i,j,k,l,m": ""} for row in rows], ";"
        ),
        "bare": bare,
    }


TABLE = {
    **{name: case._replace(beside=",".join(filter(None, ["output=beta", case.beside]))) for name, case in SHARED.items()},
    "question": Case("wording", beside="output=alpha"),
    "options": Case("A+B+C", "choices", "output=alpha,gold_kind=text"),
    "gold": Case("other_gold", beside="output=alpha"),
    "output": Case("beta", unlike="output=alpha"),
    "scores": Case("score", beside="output=alpha"),
    "judgements": Case("verdict", beside="output=alpha"),
    "id": Case("key", beside="output=alpha"),
    "context": Case("subject", beside="output=alpha"),
    "split": Case("part", beside="output=alpha"),
    "splits": Case("test", beside="output=alpha,split=part"),
    "gold_kind": Case("text", "choices", "output=alpha,options=A+B+C"),
    "index_base": Case("0", "choices", "output=alpha,options=A+B+C,gold_kind=index"),
    "multi_label": Case("true", "choices", "output=alpha,options=A+B+C,gold_kind=text"),
    "empty": Case("answer", "empty", "output=alpha"),
    "sep": Case("semicolon", "semicolons", "output=alpha"),
    "header": Case("no", "bare", "question=1,gold=2,output=3"),
    "max_train_instances": Case("2", "live"),
    "seed": Case("7", "live", "max_train_instances=2"),
}  # fmt: skip


def make_states(folder: Path) -> dict[str, Path]:
    write, answered = request_states_files.write, request_states_files.answered
    spec = {"max_train_instances": 0, "max_tokens": 9, "stop_sequences": ["\n"], "input_prefix": "Q: "}
    states = every_format.states(ROWS)
    choices = [answered(request_states_files.choice(f"Which? {at}", ["cod", "cat"], at % 2), "A") for at in range(4)]
    live = [request_states_files.state(*row[:2]) for row in ROWS]
    missing = [*states[:3], request_states_files.state("Asked in vain?", "tin")]
    return {
        "file": write(folder / "metals.json", states, spec),
        "choices": write(folder / "fish.json", choices, {**spec, "reference_prefix": "A. "}),
        "live": write(folder / "live.json", live, {**spec, "max_train_instances": 1}),
        "missing": write(folder / "missing.json", [*missing[:3], {**missing[3], "request": {}}], spec),
    }


STATES = {
    **SHARED,
    "missing": Case("skip", "missing"),
    "method": Case("generation", "choices"),
    "max_train_instances": Case("2", "live"),
    "seed": Case("7", "live"),
    "cut_at_stop": Case("true"),
    "name": Case("metals of ours"),
}


def make_log(folder: Path) -> dict[str, Path]:
    samples = every_format.samples(ROWS)
    logs = folder / "logs"
    logs.mkdir()
    inspect_files.write_eval(logs, samples, name="a.eval")
    inspect_files.write_eval(logs, samples[:5], name="b.eval")
    return {"file": inspect_files.write_eval(folder, samples, name="one.eval"), "folder": logs}


INSPECT = {**SHARED, "log": Case("b.eval", "folder", unlike="log=a.eval")}


def make_samples(folder: Path) -> dict[str, Path]:
    twice = folder / "twice"
    twice.mkdir()
    for time in (lm_eval_logs.TIME, LATER):
        for task in ("lx_text", "lx_sums"):
            rows = lm_eval_logs.lines(lm_eval_logs.samples(task))
            lm_eval_logs.write(twice / f"samples_{task}_{time}.jsonl", rows[: None if time == LATER else -2])
    numbers = lm_eval_logs.lines(lm_eval_logs.samples("lx_index"))
    for row in numbers:
        row["doc"].update(choices=["2", "1", "3"], answer=1)
        asked = row["arguments"].values()
        row.update(target="1", arguments={f"gen_args_{at}": {"arg_0": next(iter(asked))["arg_0"], "arg_1": f" {option}"}
                                          for at, option in enumerate("213")})  # fmt: skip
        row["resps"], row["filtered_resps"] = row["resps"][:3], row["filtered_resps"][:3]
    strict = [row for row in lm_eval_logs.lines(lm_eval_logs.samples("lx_sums")) if row["filter"] == "strict"]
    samples = lm_eval_logs.samples
    return {
        "file": samples("lx_sums"),
        "twice": twice,
        "strict": lm_eval_logs.write(folder / f"samples_strict_{LATER}.jsonl", strict),
        "numbers": lm_eval_logs.write(folder / f"samples_numbers_{LATER}.jsonl", numbers),
    }


LATER = "2027-01-02T03-04-05.678901"
LM_EVAL = {
    **SHARED,
    "by": Case("question"),
    "cluster": Case("question"),
    "task": Case("lx_text", "twice", f"time={LATER}", unlike=f"task=lx_sums,time={LATER}"),
    "time": Case(LATER, "twice", "task=lx_sums", unlike=f"task=lx_sums,time={lm_eval_logs.TIME}"),
    "results": Case("none"),
    "prediction": Case("filtered", "strict"),
    "filter": Case("last", unlike="filter=strict"),
    "gold": Case("doc.question"),
    "gold_kind": Case("text", "numbers"),
    "index_base": Case("0", "numbers", "gold=doc.answer,gold_kind=index"),
}  # fmt: skip


def make_records(folder: Path) -> dict[str, Path]:
    sample = every_eval_ever_records.sample
    rows = every_format.records(ROWS)
    positions = [sample(f"r{at}", answer="1", reference="1", choices=["2", "1", "3"]) for at in range(4)]
    second = [sample(f"b{at}", reference="banana", evaluation_name="berries") for at in range(4)]
    write, result, uuids = every_eval_ever_records.write, every_eval_ever_records.result, every_eval_ever_records.UUIDS
    several = folder / "several"
    write(several, rows, uuid=uuids[0])
    write(several, rows[:4], uuid=uuids[1])
    return {
        "file": write(folder / "one", rows),
        "choices": write(folder / "choices", positions),
        "evaluations": write(folder / "two", [*rows, *second], [result(), result("berries")]),
        "records": several,
    }


RECORDS = {
    **SHARED,
    "record": Case(every_eval_ever_records.UUIDS[1], "records", unlike=f"record={every_eval_ever_records.UUIDS[0]}"),
    "evaluation": Case("berries", "evaluations", unlike="evaluation=fruit"),
    "gold_kind": Case("text", "choices"),
    "index_base": Case("1", "choices", "gold_kind=index"),
}


def ask_for_option(name: str, question: str, option: str, logprob: float) -> tuple[dict[str, Any], dict[str, Any]]:
    """A request for the log-probability of an option, and its result."""
    prompt = f"Question: {question}\nAnswer:{option}"
    body = {"url": "/v1/completions", "prompt": prompt, "echo": True, "logprobs": 1, "max_tokens": 0, "temperature": 0}
    words = [" " + word for word in option.split()]
    start = len(prompt) - len(option)
    offsets = [0, *(start + sum(map(len, words[:at])) for at in range(len(words)))]
    logprobs = {
        "tokens": [prompt[:start], *words], "token_logprobs": [None, *[logprob] * len(words)], "text_offset": offsets,
    }  # fmt: skip
    choice = {"index": 0, "text": prompt, "logprobs": logprobs, "finish_reason": "length"}
    return openai_batches.request(name, **body), openai_batches.result(
        name, body={"model": "acme-1", "choices": [choice]}
    )


def make_batch(folder: Path) -> dict[str, Path]:
    write, result = openai_batches.write, openai_batches.result
    for name in ("one", "two"):
        (folder / name).mkdir()
        rows = [row._replace(question=f"{row.question} {name}") for row in ROWS]
        every_format.openai_batch(folder / name, rows, 8 if name == "one" else 6)
    table = [{"custom_id": f"r{at}", "gold": f"{row.gold}!", "plain": row.gold} for at, row in enumerate(ROWS)]
    write(folder / "gold.jsonl", table)
    options = folder / "options"
    options.mkdir()
    asked = [
        ask_for_option(f"q{at}#{number}", f"{at}?", f" the {text}", -1.0 - number)
        for at in range(3)
        for number, text in enumerate(("1", "0"))
    ]
    openai_batches.write_batch(options, *zip(*asked, strict=True), {f"q{at}": at % 2 for at in range(3)})
    (options / "ones.json").write_text(json.dumps({f"q{at}": 1 for at in range(3)}))
    write(folder / "late.jsonl", [result(f"r{at}", row.said) for at, row in enumerate(ROWS)][6:])
    return {
        "file": folder / "one" / "in.jsonl",
        "options": options / "in.jsonl",
        "half": folder / "two" / "in.jsonl",
        "result": folder / "one" / "out.jsonl",
    }


BATCH = {
    **{name: case._replace(beside=",".join(filter(None, ["gold={folder}/gold.jsonl", case.beside])))
       for name, case in SHARED.items()},
    "by": Case("id", beside="gold={folder}/gold.jsonl"),
    "cluster": Case("id", beside="gold={folder}/gold.jsonl"),
    "output": Case("{folder}/two/out.jsonl", beside="gold={folder}/gold.jsonl"),
    "errors": Case("{folder}/late.jsonl", "half", "gold={folder}/gold.jsonl"),
    "input": Case("{folder}/two/in.jsonl", "result", "gold={folder}/gold.jsonl"),
    "gold": Case("{folder}/gold.jsonl"),
    "gold_column": Case("plain", beside="gold={folder}/gold.jsonl"),
    "gold_kind": Case("text", "options", "gold={folder}/options/gold.json"),
    "index_base": Case("1", "options", "gold={folder}/options/ones.json"),
    "option_start": Case("Answer:", "options", "gold={folder}/options/gold.json,index_base=0"),
}  # fmt: skip


def make_checkout(folder: Path) -> dict[str, Path]:
    root = ultraeval_checkout.make_checkout(folder)
    dataset = root / "datasets" / "sums"
    rows = [ultraeval_checkout.question(at) for at in range(10, 14)]
    ultraeval_checkout.write_rows(root / "others.jsonl", rows)
    (root / "params.json").write_text(json.dumps({"temperature": 0.5, "max_tokens": 3}))
    config = [ultraeval_checkout.config(), ultraeval_checkout.config(task="more", path="others.jsonl")]
    names = root / "names_gen_v0.py"
    names.write_text(
        "def transform(data, number, r, name):\n    return {'input': name, 'output': '', 'processed_output': '1'}\n"
    )
    log = [
        {"data": {"question": "Name a red fruit.", "answer": "cherry"}, "ground_truth": "cherry",
         "prompt_inputs": ["Name a red fruit. Answer: "], "raw_outputs": ["apple"]},
    ]  # fmt: skip
    (folder / "checkout" / "tasks").mkdir(parents=True)
    loud = ultraeval_checkout.POSTPROCESS.replace("shout", "loud")
    (folder / "checkout" / "tasks" / "postprocess.py").write_text(loud)
    log_folder = folder / "logs" / "fruit_fruit_gen"
    names_dataset = root / "datasets" / "names"
    ultraeval_checkout.write_rows(names_dataset / "data" / "names.jsonl", rows)
    (names_dataset / "transform_gen_v0.py").write_text(names.read_text())
    (names_dataset / "transform_gen_v1.py").write_text(ultraeval_checkout.GEN_SCRIPT)
    return {
        "file": dataset,
        "names": names_dataset,
        "config": ultraeval_checkout.write_config(root / "tasks.json", config),
        "data": root / "others.jsonl",
        "log": ultraeval_checkout.write_rows(log_folder / "instance.jsonl", log),
    }


ULTRAEVAL = {
    "task": Case("more", "config", unlike="task=sums"),
    "transform": Case("{folder}/datasets/sums/transform_gen_v0.py", "data"),
    "method": Case("ppl", unlike="method=gen"),
    "thinking": Case("keep", beside="method=gen"),
    "version": Case("0", "names", "method=gen"),
    "fewshot": Case("2", beside="method=gen"),
    "seed": Case("5", beside="method=gen,fewshot=2"),
    "limit": Case("3", beside="method=gen"),
    "demos": Case("{folder}/others.jsonl", beside="method=gen,fewshot=2"),
    "postprocess": Case("shout", beside="method=gen"),
    "metric": Case("exact_match+f1_score", beside="method=gen"),
    "root": Case("{folder}/checkout", "data", "transform={folder}/names_gen_v0.py,postprocess=loud"),
    "dataset_name": Case("a_b_gen", "data", "transform={folder}/names_gen_v0.py"),
    "params": Case("{folder}/params.json", beside="method=gen"),
    "max_tokens": Case("3", beside="method=gen"),
    "allow_code": Case("true", beside="method=gen,metric=function_execution"),
    "missing": Case("skip", "log", "metric=exact_match"),
    "temperature": Case("0.5", beside="method=gen"),
    "name": Case("sums of ours", beside="method=gen"),
}  # fmt: skip


def make_bundle(folder: Path) -> dict[str, Path]:
    from helm_ext.formats.innodata.hub import pack

    rows, replies = every_format.innodata_lines(ROWS)
    write = openai_batches.write
    test, train = write(folder / "test.jsonl", rows[2:]), write(folder / "train.jsonl", rows[:2])
    write(folder / "replies.jsonl", replies[2:])
    write(folder / "some.jsonl", replies[3:])
    return {"file": pack(name="metals", test=test, train=train, attributes={}, target=folder).path}


INNODATA = {
    "split": Case("train"),
    "render": Case("text"),
    "replies": Case("{folder}/replies.jsonl"),
    "max_tokens": Case("7"),
    "limit": Case("2"),
    "missing": Case("skip", beside="replies={folder}/some.jsonl"),
    "metrics": Case("expected_exact"),
    "main_metric": Case("expected_exact"),
    "thinking": Case("keep"),
    "extract": Case(r"is (.*)\."),
    "strip": Case("true"),
    "lower": Case("true"),
    "temperature": Case("0.5"),
    "stop": Case("x+y"),
}

OF_LOAD = {"name", "stop"}
"""Arguments of `load` that no run entry of ours takes: HELM has its own of these names, or one of HELM's is in the way."""

FORMATS = {
    "table": (make_table, TABLE),
    "adapter_spec": (make_states, STATES),
    "inspect": (make_log, INSPECT),
    "lm_eval": (make_samples, LM_EVAL),
    "every_eval_ever": (make_records, RECORDS),
    "openai_batch": (make_batch, BATCH),
    "ultraeval": (make_checkout, ULTRAEVAL),
    "innodata": (make_bundle, INNODATA),
}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    made = {}
    for name, (make, _) in FORMATS.items():
        folder = tmp_path_factory.mktemp(name)
        made[name] = (folder, make(folder))
    return made


def read_arguments(text: str, folder: Path) -> dict[str, str]:
    return dict(each.split("=", 1) for each in text.replace("{folder}", str(folder)).split(",") if each)


def plan(format_: Format, file: Path, arguments: dict[str, str]) -> RunSpec:
    """Return the run that helm-run plans for a run entry."""
    given = {**format_.name_file(file), **arguments}
    entry = f"{format_.name}:{','.join(f'{key}={value}' for key, value in given.items())},model=recorded/m"
    (run_spec,) = construct_run_specs(parse_object_spec(entry))
    return run_spec


def find_effect(run_spec: RunSpec) -> Any:
    """Return what is asked and scored, and how: all but names."""
    planned.forget()
    scenario = create_scenario(run_spec.scenario_spec)
    instances = [dataclasses.asdict(instance) for instance in scenario.get_instances("")]
    metrics = [spec for spec in run_spec.metric_specs if spec.class_name != RUN_ARGUMENTS]
    return run_spec.adapter_spec, metrics, run_spec.annotators, instances, scenario.leaves_out


def without_model(run_spec: RunSpec) -> RunSpec:
    """Return a run with the model's name out of all that holds it."""
    spec = dataclasses.replace(run_spec.adapter_spec, model="", model_deployment="")
    return dataclasses.replace(run_spec, adapter_spec=spec, name=run_spec.name.partition(",model=")[0])


SOURCES = {"path", "config", "data", "dataset", "hub"}
"""Arguments that name the file, which a command is given: they are refused beside it."""
ARGUMENTS = [
    (format_.name, argument.name)
    for format_ in all_formats()
    if is_ours(format_.name)
    for argument in format_.arguments
    if argument.name not in SOURCES and (format_.name, argument.name) != ("innodata", "version")
]


def given(arguments: dict[str, str]) -> dict[str, Any]:
    """Return arguments as a command reads them of `--arg`."""
    return parse_arguments([f"{key}={value}" for key, value in arguments.items()])


@pytest.mark.parametrize(("name", "argument"), ARGUMENTS)
class TestArgument:
    @pytest.fixture
    def case(self, name, argument, files):
        """The format, the file, and the arguments with the one of this test and without it."""
        case, (folder, made) = FORMATS[name][1][argument], files[name]
        beside = read_arguments(case.beside, folder)
        without = beside if case.unlike is None else read_arguments(case.unlike, folder)
        value = case.value.replace("{folder}", str(folder))
        return get_format(name), made[case.file], {**beside, argument: value}, without

    @pytest.mark.long
    def test_helm_run(self, case, argument):
        format_, file, arguments, without = case
        if argument in OF_LOAD:
            with pytest.raises(Exception, match="unknown argument|Unknown value"):
                plan(format_, file, arguments)
            return
        found = find_effect(plan(format_, file, arguments))
        try:
            unlike = find_effect(plan(format_, file, without))
        except HelmExtError:
            return  # without the argument the file is refused
        assert found != unlike

    @pytest.mark.long
    def test_validate(self, case):
        format_, file, arguments, _ = case
        report = check_file(file, format_, given(arguments), lint=True)
        assert [str(problem) for problem in report["problems"] if problem.severity == "error"] == []
        assert report["linted"]

    @pytest.mark.long
    def test_score_preview_and_requests_out_plan_the_run_of_helm_run(self, case, argument, monkeypatch, tmp_path):
        if argument in OF_LOAD:
            return
        format_, file, arguments, _ = case
        expected = without_model(plan(format_, file, arguments))
        planned_by: dict[str, Any] = {}
        own = session.load_arguments(format_, file, given(arguments))
        for model in ("m", None):
            if model or (file.stem != "live" and format_.name_model(own)):
                [planned_by[f"score {model}"]] = plan_by_score(
                    monkeypatch, tmp_path, format_.name, arguments, file, model
                )
        run_spec = session.make_run_spec(format_, file, {"model": "recorded/m"}, given(arguments))
        format_.describe(own)
        planned_by["preview"] = run_spec
        entry = ",".join(f"{key}={value}" for key, value in {**format_.name_file(file), **arguments}.items())
        asked = Plan(run_entries=[f"{format_.name}:{entry}"], model="acme/model-1", endpoint="chat", sent_as="m")
        (planned_by["requests out"],) = requesting.plan_runs(asked)[1]
        assert {name: without_model(run_spec) for name, run_spec in planned_by.items()} == dict.fromkeys(
            planned_by, expected
        )

    @pytest.mark.long
    def test_convert_writes_what_scores_alike(self, case, argument, tmp_path):
        format_, file, arguments, _ = case
        if argument == "missing":
            return
        target = tmp_path / "converted.jsonl"
        written = converting.convert_file(
            format_, file, get_format("adapter_spec"), target, given(arguments), lossy=True
        )
        loaded = format_.load(**format_.name_file(file), **format_.parse_for_load(given(arguments)))
        again = get_format("adapter_spec").load(path=str(target))
        lost = " ".join(written.findings.losses)
        if "UltraEval" in lost or "cannot name" in lost:
            return
        assert again.scoring == loaded.scoring
        assert find_rows(again) == find_rows(loaded)


def find_rows(evalset: EvalSet) -> list[Any]:
    """Return what is asked, right and recorded in each row that is evaluated, with the scores that it came with."""
    found = []
    for row in evalset.instances:
        extra = row_extra(row)
        if row.split == "train" or extra.get("recorded", {}).get("status") == "unscored":
            continue
        said = [
            [one["text"] for one in state["result"]["completions"]]
            for state in extra.get("recorded", {}).get("states", ())
        ]
        right = [(reference.output.text, reference.is_correct) for reference in row.references]
        asked = "".join(extra["prompt"]) if "prompt" in extra else row.input.text
        found.append((row.id, asked, row.input.messages, right, extra.get("labels"), said, extra.get("likelihoods"),
                      extra.get("source_scores"), extra.get("judgements")))  # fmt: skip
    return found


def plan_by_score(monkeypatch, tmp_path, kind, arguments, file, model=None) -> list[RunSpec]:
    """Return the runs that `helm-ext score` would make."""
    scored: list[RunSpec] = []
    monkeypatch.setattr(scoring, "run", lambda run_spec, *_: scored.append(run_spec))
    monkeypatch.setattr(scoring, "ScoredRun", lambda *_: None)
    list(scoring.score_files([file], kind, given(arguments), model, session.Settings(tmp_path, tmp_path, "s")))
    return scored


@pytest.mark.parametrize("argument", [name for name, case in TABLE.items() if "output=" in case.beside])
def test_score_of_several_outputs_plans_the_run_of_each(argument, files, monkeypatch, tmp_path):
    folder, made = files["table"]
    case, format_ = TABLE[argument], get_format("table")
    one = {**read_arguments(case.beside, folder), argument: case.value}
    file = made[case.file]
    outputs = ["3", "4"] if case.file == "bare" else ["beta", "alpha"]
    if argument in ("scores", "judgements"):  # they are those of one output (docs/table.md)
        with pytest.raises(RunEntryError, match=f"{argument}={case.value} would be those of 2 models"):
            format_.tasks({"path": str(file), "output": outputs, argument: [case.value]})
        return
    expected = [without_model(plan(format_, file, {**one, "output": output})) for output in outputs]
    scored = plan_by_score(monkeypatch, tmp_path, "table", {**one, "output": "+".join(outputs)}, file)
    assert list(map(without_model, scored)) == expected


@pytest.mark.parametrize("argument", SHARED)
def test_score_of_a_folder_plans_the_run_of_each_log(argument, files, monkeypatch, tmp_path):
    folder, made = files["inspect"]
    case, format_ = SHARED[argument], get_format("inspect")
    arguments = {**read_arguments(case.beside, folder), argument: case.value}
    expected = [without_model(plan(format_, made["folder"], {**arguments, "log": log})) for log in ("a.eval", "b.eval")]
    scored = plan_by_score(monkeypatch, tmp_path, "inspect", arguments, made["folder"])
    assert [without_model(run_spec).scenario_spec for run_spec in scored] == [one.scenario_spec for one in expected]
    assert [run_spec.metric_specs for run_spec in scored] == [one.metric_specs for one in expected]


def test_a_conversion_keeps_every_row(files, tmp_path):
    for name in FORMATS:
        with pytest.raises(RunEntryError, match="a conversion keeps every row"):
            converting.convert_file(
                get_format(name), files[name][1]["file"], get_format("adapter_spec"), tmp_path / "x.jsonl",
                {"missing": "skip"},
            )  # fmt: skip


def test_a_conversion_names_what_of_a_table_was_not_copied(tmp_path):
    """A table whose outputs no argument names is converted as questions to ask; who scores that is told why."""
    target, table = tmp_path / "facts.jsonl", ROOT / "examples/tables/facts.csv"
    said = commands.run("convert", table, target).stderr
    assert "note: not copied: subject, falcon, heron; output=COLUMN takes a model's outputs along" in said
    for model in ([], ["--model", "m"]):
        done = commands.run("score", target, *model, "-o", tmp_path / "out", code=1)
        assert "nothing was copied of subject, falcon, heron" in done.stderr
        assert "--arg output=COLUMN" in done.stderr
    said = commands.run("convert", table, tmp_path / "f.jsonl", "--arg", "output=falcon").stderr
    assert "note: not copied: subject, heron\n" in said


WARNED = {
    "table": ("output=beta", 8), "adapter_spec": ("", 8), "inspect": ("main_metric=normalized_exact_match", 8),
    "every_eval_ever": ("", 0), "openai_batch": ("gold={folder}/gold.jsonl", 0),
}  # fmt: skip
"""Format to arguments, and how many of `ROWS` ("It is iron.") hold their gold within other words: none where the log's
own score is the main metric, or where the gold is written otherwise ("iron!")."""


@pytest.mark.parametrize(
    ("name", "extract"), [(name, given) for name in WARNED for given in ("", r"extract=is (.*)\.")]
)
def test_score_warns_of_answers_that_hold_their_gold(name, extract, files, tmp_path):
    folder, made = files[name]
    (beside, held), file = WARNED[name], made["file"]
    read = read_arguments(",".join(filter(None, [beside, extract])), folder)
    arguments = [part for key, value in read.items() for part in ("--arg", f"{key}={value}")]
    warned = commands.run("score", file, "--as", name, "--model", "m", *arguments, "-o", tmp_path).stderr
    said = re.findall(r"(\d+) of \d+ rows score 0 though the answer holds the gold", warned)
    assert said == ([str(held)] if held and not extract else [])


def test_the_first_command_of_the_readme_with_a_metric(tmp_path):
    """By hand: falcon names the right option of 10 of 12 rows, by its label or its text."""
    given = ("output=falcon", "metrics=quasi_exact_match", "main_metric=quasi_exact_match")
    arguments = [part for one in given for part in ("--arg", one)]
    out = commands.run("score", ROOT / "examples/tables/facts.csv", *arguments, "--json", "-o", tmp_path)
    (scored,) = map(json.loads, out.stdout.splitlines())
    assert (scored["main_metric"], scored["model"]) == ("quasi_exact_match", "falcon")
    assert scored["metrics"]["quasi_exact_match"]["mean"] == 10 / 12
