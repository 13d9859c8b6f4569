"""What we write, we read: a run's scenario_state.json, scored again, gives the stats of the run.

Every kind of run, by a file of its own: recorded and live, formats, methods, what rows and scores may ask for. The
copy lies elsewhere, so nothing beside it can tell anything.
"""

import json
import shutil
from pathlib import Path

import commands
import every_format
import inspect_files
import lm_eval_logs
import pytest
import request_states_files as files
import run_entries
import ultraeval_checkout
from every_format import Row
from helm.benchmark.runner import Runner
from run_entries import MODEL, run, stats

from helm_ext.cli.run_scores import ScoredRun
from helm_ext.running.runner import StreamingRunner

WORDS = ("amber", "basin", "cedar", "delta", "ember", "fjord")
SAID = ("Amber", "the basin", "cellar", "delta", "", "It is a fjord")
LIVE_ONLY = {"num_prompt_tokens", "num_output_tokens"}
"""Stats of the model's tokenizer, which a recording does not have: nobody can count them later."""

KINDS = {}


def kind(entry, **arguments):
    """Note a kind of run: a function that writes its file in a folder and returns the arguments that name it."""

    def note(write):
        KINDS[write.__name__] = (entry, write, arguments)
        return write

    return note


def rows(**instance):
    made = [files.state(f"Which word is number {n}?", word, id=f"r{n}", split="test", **instance)
            for n, word in enumerate(WORDS)]  # fmt: skip
    return [files.answered(row, said) for row, said in zip(made, SAID, strict=True)]


def choices(answers=("A", "B.", "(C)", "delta", "none", "A or B"), **instance):
    made = [
        files.choice(f"Which is {word}?", [*WORDS[:4]], number % 4, id=f"r{number}", split="test", **instance)
        for number, word in enumerate(WORDS)
    ]
    return [files.answered(row, said) for row, said in zip(made, answers, strict=True)]


def write(folder, states, spec=None, **top):
    return {"path": str(files.write(folder / "f.jsonl", states, {"max_train_instances": 0, **(spec or {})}, **top))}


@kind("adapter_spec")
def free_text(folder):
    return write(folder, rows())


@kind("adapter_spec", metrics="exact_match+f1_score+prefix_exact_match", main_metric="f1_score", lower="true")
def chosen_metrics(folder):
    return write(folder, rows())


WORD_TOKENIZER = Path(__file__).parents[2] / "data" / "word_tokenizer"


@kind(
    "adapter_spec",
    metrics="token_f1_with_penalty+entity_f1",
    main_metric="entity_f1",
    score_tokenizer=str(WORD_TOKENIZER),
)
def counted_over_all_rows(folder):
    states = [files.answered(files.state(f"{n}?", f"[ {word} | x ] ; y"), f"[{said} | x]; Rome")
              for n, (word, said) in enumerate(zip(WORDS, SAID, strict=True))]  # fmt: skip
    return write(folder, states)


@kind("adapter_spec")
def chosen_in_the_file(folder):
    return write(folder, rows(), scoring={"extract": r"(\w+)$", "strip": True, "main_metric": "quasi_exact_match"})


@kind("adapter_spec", missing="skip")
def left_out(folder):
    states = rows()
    states[1]["request"] = {"result": {"success": False, "completions": []}}
    states[3]["request"] = {}
    return write(folder, states)


@kind("adapter_spec", missing="skip")
def first_left_out(folder):
    states = rows()
    states[0]["request"] = {}
    return write(folder, states, {"output_format": "list"})


@kind("adapter_spec")
def lists(folder):
    states = [files.answered(files.state(f"Two words of {n}?", f"{word}; x", split="test"), f"x; {word}")
              for n, word in enumerate(WORDS)]  # fmt: skip
    return write(folder, states, {"output_format": "list"})


@kind("adapter_spec")
def lists_by_patterns(folder):
    states = [files.answered(files.state(f"Pair {n}?", f"[{word}|{n}]", split="test"), f"So [{word}|{n % 2}], [x|y]")
              for n, word in enumerate(WORDS)]  # fmt: skip
    scoring = {"extract_all": r"\[(.*?)\|(.*?)\]", "extract_references": True, "lower": True, "drop_duplicates": True,
               "metrics": ["list_f1", "list_micro_f1"], "main_metric": "list_micro_f1"}  # fmt: skip
    return write(folder, states, {"output_format": "list"}, scoring=scoring)


@kind("adapter_spec", separator="\\n", output_format="list")
def lists_by_lines(folder):
    return write(folder, [files.answered(files.state("Two?", "a\nb", split="test"), "b\na")])


def several(states):
    for number, row in enumerate(states):
        row["request"]["result"]["completions"] = [{"text": text} for text in (WORDS[number], "x", WORDS[number])]
    return states


@kind("adapter_spec", completions="mean")
def several_completions(folder):
    return write(folder, several(rows()), {"decoding_parameters": {"num_outputs": 3}})


@kind("adapter_spec")
def first_of_several(folder):
    return write(folder, several(rows()), {"num_outputs": 3})


@kind("adapter_spec", by="level+kind", cluster="passage")
def groups(folder):
    states = rows()
    for number, row in enumerate(states):
        row["instance"] |= {"level": number % 2, "extra_data": {"kind": "xyz"[number % 3], "passage": number // 2},
                            "sub_split": "ab"[number % 2]}  # fmt: skip
    return write(folder, states)


@kind("adapter_spec", cluster="passage")
def clusters(folder):
    states = rows()
    for number, row in enumerate(states):
        row["instance"]["passage"] = number // 3
    return write(folder, states)


@kind("adapter_spec")
def valid_split(folder):
    states = rows()
    for row in states:
        row["instance"]["split"] = "validation"
    return write(folder, states)


@kind("adapter_spec")
def joint(folder):
    return write(folder, choices())


@kind("adapter_spec", main_metric="exact_match", metrics="exact_match")
def mapped(folder):
    states = choices(("甲", "乙。", "（丙）", "delta", "none", "甲或乙"))
    for row in states:
        row["answer_mapping"] = dict(zip("甲乙丙丁", WORDS[:4], strict=True))
    return write(folder, states, {"method": "generation"})


@kind("adapter_spec")
def patterned(folder):
    return write(folder, choices(("It is A!", "It is B", "C", "D", "", "")), {"output_mapping_pattern": r"is (\w)"})


@kind("adapter_spec")
def several_right(folder):
    states = choices(("A, B", "B", "C", "A and D", "A", "B"))
    for row in states:
        row["instance"]["references"][1]["tags"] = ["correct"]
    return write(folder, states, {"multi_label": True})


@kind("adapter_spec")
def option_lists(folder):
    return write(folder, choices(("A", "B; A", "C", "D", "", "B")), {"output_format": "list"})


@kind("adapter_spec")
def run_on(folder):
    states = choices(tuple(f"{label}\n\nQuestion: next\nA. B. The answer is D." for label in "ABCDAB"))
    return write(folder, states, {"input_prefix": "Question: ", "instance_prefix": "\n\n", "max_tokens": 50})


@kind("adapter_spec")
def stopped(folder):
    states = [files.answered(files.state(f"Q{n}?", f"{word}<end> ", split="test"), f"{word}<end>{word}")
              for n, word in enumerate(WORDS)]  # fmt: skip
    return write(folder, states, {"stop_sequences": ["<end>"]})


@kind("adapter_spec", metrics="acc+acc_norm+exact_match", by="level")
def likelihoods(folder):
    states = choices()
    for number, row in enumerate(states):
        del row["request"]
        row["instance"]["level"] = number % 2
        row["likelihoods"] = [
            {"text": text, "logprob": -1.0 - (place * number) % 3} for place, text in enumerate(WORDS[:4])
        ]
    return write(folder, states)


@kind("adapter_spec")
def chat(folder):
    states = rows(input={"messages": [{"role": "user", "content": "Which word?"}]})
    return write(folder, states, {"method": "chat"})


def thoughts():
    states = rows()
    for row in states:
        [completion] = row["request"]["result"]["completions"]
        completion["text"] = f"<think>Hm.</think>\n\n{completion['text']}"
    return states


@kind("adapter_spec")
def thinking(folder):
    return write(folder, thoughts())


@kind("adapter_spec", thinking="keep", metrics="prefix_exact_match+f1_score")
def thinking_kept(folder):
    return write(folder, thoughts())


@kind("adapter_spec")
def logprobs(folder):
    states = rows()
    for number, row in enumerate(states):
        [completion] = row["request"]["result"]["completions"]
        completion |= {"tokens": [{"text": "t", "logprob": -0.5 - number}], "logprob": -0.5 - number,
                       "finish_reason": {"reason": "stop"}}  # fmt: skip
        row["request"]["result"] |= {"request_time": 0.5, "request_datetime": 1_700_000_000}
    return write(folder, states)


ROWS = [
    Row(f"Which is {n}?", word, said, {"level": n % 2}) for n, (word, said) in enumerate(zip(WORDS, SAID, strict=True))
]


@kind("table", by="level")
def table(folder):
    return every_format.table(folder, ROWS)


@kind("table", output_format="list")
def table_of_lists(folder):
    return every_format.table(folder, [Row("Which?", "a; b", "b; a")])


@kind("inspect")
def inspect(folder):
    samples = every_format.samples(ROWS)
    samples[2]["error"] = {"message": "no", "traceback": "", "traceback_ansi": ""}
    return {"path": str(inspect_files.write_json(folder, samples))}


@kind("every_eval_ever")
def every_eval_ever(folder):
    return every_format.every_eval_ever(folder, ROWS)


@kind("openai_batch")
def openai_batch(folder):
    return every_format.openai_batch(folder, ROWS, results=5)


def replied(said=SAID, **more):
    """Rows of which one has no reply."""
    replies = [None if n == 3 else text for n, text in enumerate(said)]
    return [row._replace(said=reply, more={"topic": "xy"[n % 2], **more})
            for n, (row, reply) in enumerate(zip(ROWS, replies, strict=True))]  # fmt: skip


@kind("innodata", missing="skip")
def innodata(folder):
    return every_format.innodata(folder, replied())


@kind("innodata", missing="skip", render="text", metrics="expected_exact+f1_score", lower="true", extract=r"(\w+)$")
def innodata_as_text(folder):
    return every_format.innodata(folder, replied())


@kind("innodata", missing="skip", main_metric="refusal_match")
def refusals(folder):
    said = ["I cannot help with that.", "Sure: amber."] * 3
    return every_format.innodata(folder, replied(said, refusal=True))


@kind("ultraeval", metric="in_match+f1_score+exact_match", postprocess="last_number")
def ultraeval_gen(folder):
    return every_format.ultraeval(folder, ROWS)


@kind("ultraeval", missing="skip")
def ultraeval_rows(folder):
    return every_format.ultraeval(folder, [*ROWS[:2], ROWS[2]._replace(said=[]), *ROWS[3:]], metric="qa_match")


@kind("ultraeval")
def ultraeval_ppl(folder):
    rows = [
        Row(f"{n}?", word, [[[-2.0, -1.0 * n], [-2.0, -2.0], [-2.0, -3.0]]],
            {"target_scores": {word: 1, "x": 0, "y": 0.5}})
        for n, word in enumerate(WORDS)
    ]  # fmt: skip
    return every_format.ultraeval(folder, rows, "ppl", "log_prob")


@kind("lm_eval")
def lm_eval(folder):
    shutil.copytree(lm_eval_logs.MODEL, folder / "log")
    tasks = sorted(path.name for path in (folder / "log").glob("samples_*"))
    return {"path": str(folder / "log" / tasks[0])}


def live(entry, **arguments):
    return kind(entry, model=MODEL, **arguments)


@live("adapter_spec", by="level")
def live_text(folder):
    states = rows()
    for number, row in enumerate(states):
        del row["request"]
        row["instance"]["level"] = number % 2
    return write(folder, states, {"decoding_parameters": {"num_outputs": 2}})


@live("adapter_spec")
def live_lists(folder):
    states = [files.state(f"Which word is number {n}?", word, split="test") for n, word in enumerate(WORDS)]
    return write(folder, states, {"output_format": "list"})


@live("adapter_spec")
def live_joint(folder):
    states = [{"instance": row["instance"]} for row in choices()]
    return write(folder, [*states, *({"instance": {**s["instance"], "id": f"t{n}", "split": "train"}}
                                     for n, s in enumerate(states))],
                 {"max_train_instances": 2, "num_train_trials": 2, "stop_sequences": ["\n"]})  # fmt: skip


@live("adapter_spec")
def live_separate(folder):
    states = [{"instance": row["instance"]} for row in choices()]
    return write(
        folder, states, {"method": "multiple_choice_separate_original", "output_suffix": "", "output_prefix": "A: "}
    )


@live("adapter_spec")
def live_calibrated(folder):
    states = [{"instance": row["instance"]} for row in choices()]
    return write(
        folder, states, {"method": "multiple_choice_separate_calibrated", "output_suffix": "", "output_prefix": "A: "}
    )


@live("innodata", render="text")
def live_chat(folder):
    return {"path": every_format.innodata(folder, ROWS)["path"]}


@live("ultraeval", method="gen", fewshot=1)
def live_ultraeval(folder):
    return {"dataset": str(ultraeval_checkout.make_checkout(folder) / "datasets" / "sums")}


@live("ultraeval", method="ppl", fewshot=1)
def live_ultraeval_ppl(folder):
    return {"dataset": str(ultraeval_checkout.make_checkout(folder) / "datasets" / "sums")}


@pytest.fixture
def answering(monkeypatch):
    """The model says a word a question, every other one right, and options by their letters."""
    said = {f"number {n}?": [said] for n, said in enumerate(SAID)} | {f"Which is {n}?": [s] for n, s in enumerate(SAID)}
    said |= {f"Which is {word}?": ["ABCDAB"[n]] for n, word in enumerate(WORDS)}
    monkeypatch.setattr(run_entries.Saying, "answers", {**said, "": ["4"]})


def compare(folder, again):
    """Return which stats differ: those of times and of tokenizers aside, which a recording cannot have."""
    first, second = stats(folder), stats(again)
    names = {key for key in first.keys() | second.keys() if json.loads(key)["name"] not in LIVE_ONLY}
    return {key: (first.get(key), second.get(key)) for key in sorted(names) if first.get(key) != second.get(key)}


LOSING = frozenset(
    """groups clusters likelihoods table innodata innodata_as_text refusals live_text live_chat
    inspect lm_eval every_eval_ever ultraeval_gen ultraeval_ppl live_ultraeval_ppl""".split()  # noqa: SIM905
)
"""Kinds that a conversion is refused for: of reports by attribute and by cluster, a source's own scores, a rule of UltraEval's."""

BY_HELMS_RUNNER = ("lists", "left_out", "live_text", "live_separate", "refusals")
"""It writes the same files: a few will do."""


@pytest.mark.long
@pytest.mark.parametrize(("name", "runner"), [
    *((name, StreamingRunner) for name in KINDS), *((name, Runner) for name in BY_HELMS_RUNNER),
], ids=[*KINDS, *(f"{name}-helm" for name in BY_HELMS_RUNNER)])  # fmt: skip
def test_the_same_stats(tmp_path, answering, name, runner):
    entry, write_files, arguments = KINDS[name]
    made = run(tmp_path, entry, runner=runner, **write_files(tmp_path), **arguments)
    scored = ScoredRun(made)
    assert scored.main in scored.stats  # as `requests in` shows a run, whose file is not there
    if name in ("live_separate", "live_calibrated", "live_ultraeval_ppl"):  # no answer is the prompt of an option
        found = list(scored.files.predictions())
        assert all(row.answer in [one["text"] for one in row.references] for row in found)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    shutil.copy(made / "scenario_state.json", elsewhere / "state.json")
    again = run(elsewhere, "adapter_spec", path=str(elsewhere / "state.json"))
    assert compare(made, again) == {}
    problems = files.problems(elsewhere / "state.json")
    assert [one for one in problems if one.severity == "error"] == []

    (elsewhere / "twice").mkdir()
    shutil.copy(again / "scenario_state.json", elsewhere / "twice" / "state.json")
    assert compare(made, run(elsewhere / "twice", "adapter_spec", path=str(elsewhere / "twice" / "state.json"))) == {}

    converted = elsewhere / "converted.jsonl"
    if commands.run("convert", elsewhere / "state.json", converted, code=int(name in LOSING)).code:
        return
    assert compare(made, run(elsewhere, "adapter_spec", path=str(converted), missing="skip", suite="c")) == {}


def finished(folder, name="chosen_in_the_file"):
    entry, write_files, arguments = KINDS[name]
    made = run(folder, entry, **write_files(folder), **arguments)
    copy = folder / "again"
    copy.mkdir()
    shutil.copy(made / "scenario_state.json", copy / "state.json")
    return copy / "state.json"


def change(path, edit):
    content = json.loads(path.read_bytes())
    edit(content["request_states"])
    path.write_text(json.dumps(content))


def test_arguments_win_over_what_the_file_says(tmp_path):
    state = finished(tmp_path)
    again = run(state.parent, "adapter_spec", path=str(state), metrics="f1_score", lower="true")
    spec, *_ = json.loads((again / "run_spec.json").read_bytes())["metric_specs"]
    assert {key: value for key, value in spec["args"].items() if key != "recorded_decoding"} == {
        "metrics": ["f1_score"], "main_metric": "f1_score", "extract": r"(\w+)$", "strip": True, "lower": True,
    }  # fmt: skip
    again = run(state.parent, "adapter_spec", path=str(state), suite="list", output_format="list")
    assert run_entries.value(again, "exact_match") is not None


def test_rows_that_were_left_out_are_said(tmp_path):
    state = finished(tmp_path, "left_out")
    found = {one.code: one for one in files.problems(state)}
    assert found["failed"].message == "1 row failed of 6; left out of the score, and counted"
    assert found["not-run"].hint == "as in the run that wrote the file"


@pytest.mark.long
@pytest.mark.parametrize(("edit", "said"), [
    ({"class_name": "os.system"}, 'scored by "os.system", which is none of this package'),
    ({"args": {"root": "/evil", "metrics": []}}, 'scored by code of "/evil", which is not run'),
    ({"args": {"metrics": ["ultraeval_function_execution"]}}, '"ultraeval_function_execution" cannot be measured here'),
    ({"args": {"metrics": ["exact_match"], "extract": "("}}, "not as a run writes it: not a regular expression"),
    ({"args": {"metrics": "exact_match"}}, "not as a run writes it: Expected `array`"),
    ({"args": {"metrics": [], "source": {"tool": "x"}}}, "not as a run writes it: Object missing"),
    ({"args": 1}, "not as a run writes it: Expected `object`, got `int`"),
])  # fmt: skip
def test_nothing_is_run_because_a_file_says_so(tmp_path, edit, said):
    state = finished(tmp_path)
    change(state, lambda states: states[0]["instance"]["extra_data"]["helm_ext"]["scoring"].update(edit))
    [error] = files.errors(state)
    assert said in error
    if edit.get("args") != 1:
        assert files.errors(state, metrics=["exact_match"]) == [] or "not as a run" in said


def test_rows_of_two_runs_that_were_scored_differently(tmp_path):
    state = finished(tmp_path)

    def add(states):
        other = json.loads(json.dumps(states[0]))
        other["instance"]["id"] = "other"
        other["instance"]["extra_data"]["helm_ext"]["scoring"]["args"]["lower"] = True
        states.append(other)

    change(state, add)
    assert "of another run, which scored otherwise than the first" in files.errors(state)[0]


def test_one_row_alone_says_how_a_run_scores(tmp_path):
    states = json.loads(finished(tmp_path, "innodata").read_bytes())["request_states"]
    said = ["scoring" in state["instance"]["extra_data"]["helm_ext"] for state in states]
    assert said == [True, False, False, False, False, False]
