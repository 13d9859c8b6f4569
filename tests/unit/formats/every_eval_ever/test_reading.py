"""Records of Every Eval Ever, read: rows, golds, scores of the record, what is refused. The data is invented."""

import json

import pytest
from every_eval_ever_records import FRUIT, UUIDS, result, sample, write
from finished_runs import score as score_file
from optional_sources import IMPORT_SAMPLES, needs_import_samples

from helm_ext.errors import DatasetError
from helm_ext.evalset import row_extra
from helm_ext.formats import detect
from helm_ext.formats.registry import get_format

EEE = get_format("every_eval_ever")


def load(path, **arguments):
    return EEE.load(path=str(path), **arguments)


def completions(evalset):
    states = [row_extra(instance)["recorded"]["states"] for instance in evalset.instances]
    return [[c["text"] for c in state[0]["result"]["completions"]] if state else None for state in states]


def golds(evalset):
    return [[r.output.text for r in instance.references if r.is_correct] for instance in evalset.instances]


def warnings(evalset):
    return [warning.message for warning in evalset.warnings if warning.code == "import"]


def test_a_record_is_known_by_either_file_and_by_its_folder(tmp_path):
    path = write(tmp_path / "data" / "fruit" / "lab" / "small", [sample("a"), sample("b", "apple", 0.0)])
    for name in (path, path.with_name(f"{path.stem}_samples.jsonl"), path.parent, tmp_path):
        assert detect(name).name == "every_eval_ever"
        evalset = load(name)
        assert completions(evalset) == [["banana"], ["apple"]]
        assert EEE.name_model({"path": str(name)}) == "lab/small"
    assert (evalset.name, evalset.source.tool, evalset.counts["lines"]) == ("fruit", "every_eval_ever", 2)
    assert warnings(evalset) == []


@pytest.mark.parametrize(("references", "arguments", "expected"), [
    (["0", "2"], {}, ["apple", "cherry"]), (["B", "C"], {}, ["banana", "cherry"]),
    (["banana", "cherry"], {}, ["banana", "cherry"]), (["1", "2"], {"index_base": 1}, ["apple", "banana"]),
])  # fmt: skip
def test_references_are_positions_letters_or_texts(tmp_path, references, arguments, expected):
    lines = [sample(str(n), reference=r, choices=FRUIT) for n, r in enumerate(references)]
    assert golds(load(write(tmp_path, lines), **arguments)) == [[text] for text in expected]


def test_references_that_can_be_read_in_two_ways_are_refused(tmp_path):
    lines = [sample("a", reference="1", choices=FRUIT), sample("b", reference="2", choices=FRUIT)]
    with pytest.raises(DatasetError, match=r'"1" is B \(index from 0\) or A \(index from 1\)(.|\n)*index_base=0'):
        load(write(tmp_path, lines))
    # lm-eval's converter counts from 0.
    assert golds(load(write(tmp_path, lines, library="lm_eval"))) == [["banana"], ["cherry"]]


def test_lists_that_lm_evals_converter_wrote_as_text_are_lists(tmp_path):
    lines = [sample("a", reference="['banana', 'a banana']"), sample("b", reference='["it\'s"]')]
    evalset = load(write(tmp_path, lines, library="lm_eval"))
    assert golds(evalset) == [["banana", "a banana"], ["it's"]]
    assert "references are Python lists" in warnings(evalset)[0]
    assert golds(load(write(tmp_path, lines))) == [["['banana', 'a banana']"], ['["it\'s"]']]
    assert golds(load(write(tmp_path, lines), gold_kind="list")) == [["banana", "a banana"], ["it's"]]
    lines.append(sample("c", reference="[1, 2]"))
    assert golds(load(write(tmp_path, lines, library="lm_eval")))[0] == ["['banana', 'a banana']"]


def test_several_positions_that_lm_evals_converter_wrote_as_text_are_all_right(tmp_path):
    """Of a task whose doc_to_target is a list: [0, 2], where another row may name one option twice."""
    lines = [sample(id_, reference=given, choices=FRUIT) for id_, given in (("a", "[0, 2]"), ("b", "[1, 1]"))]
    assert golds(load(write(tmp_path, lines, library="lm_eval"))) == [["apple", "cherry"], ["banana"]]
    with pytest.raises(DatasetError, match=r'"\[0, 2\]" is none of the options'):
        load(write(tmp_path, lines))


def source_scores(evalset, name="accuracy"):
    kept = [row_extra(instance).get("source_scores", {}) for instance in evalset.instances]
    return [scores.get(f"every_eval_ever_{name}") for scores in kept]


def test_what_has_no_answer_takes_part_in_no_mean_of_the_records(tmp_path):
    """A line must have a score: what failed or was not run says 0, and the record may count it."""
    lines = [sample("a"), sample("b", "", 0.0), sample("c", "x", 0.0, error="timeout"), sample("d", [], 0.0)]
    again = [sample("e", score=score, metadata={"epoch": epoch}, **more)
             for epoch, score, more in (("1", 0.0, {"error": "timeout"}), ("2", 1.0, {}))]  # fmt: skip
    mean = {"score": 2 / 3}
    evalset = load(write(tmp_path, [*lines, *again], [result(**mean)]))
    assert source_scores(evalset) == [1.0, 0.0, None, None, 1.0]
    assert [row_extra(i)["recorded"]["status"] for i in evalset.instances] == ["ok", "ok", "failed", "not_run", "ok"]
    assert (completions(evalset)[1], warnings(evalset)) == ([""], [])
    (said,) = warnings(load(write(tmp_path, [*lines, *again], [result(score=2 / 6)])))
    assert said == (
        "accuracy: the record reports 0.333333, the mean of its samples is 0.666667: it counts 3 lines without an "
        "answer as 0"
    )


def test_lines_of_several_metrics_are_one_row(tmp_path):
    results = [result(metric=m, score=s, evaluation_result_id=m) for m, s in (("accuracy", 0.5), ("f1", 0.75))]
    lines = [
        sample(id_, score=score, evaluation_result_id=metric)
        for metric, scores in (("accuracy", (1.0, 0.0)), ("f1", (1.0, 0.5)))
        for id_, score in zip("ab", scores, strict=True)
    ]
    evalset = load(write(tmp_path, lines, results))
    assert (source_scores(evalset), source_scores(evalset, "f1")) == ([1.0, 0.0], [1.0, 0.5])
    assert {name: score.mean for name, score in evalset.source.scores.items()} == {"accuracy": 0.5, "f1": 0.75}
    assert (evalset.counts["lines"], evalset.counts["read"]) == (4, 2)
    assert warnings(evalset) == []


def test_lm_evals_converter_keeps_all_scores_under_metadata(tmp_path):
    results = [
        result(metric_config={"evaluation_description": said, "lower_is_better": lower}, score=score)
        for said, lower, score in (("acc", False, 1.0), ("acc_norm (filter: none)", False, 0.0))
    ]
    line = sample(metadata={"lm_eval_metrics": '{"acc": 1.0, "acc_norm": 0.0}'}, evaluation_result_id=None)
    evalset = load(write(tmp_path, [line], results))
    assert source_scores(evalset, "acc") + source_scores(evalset, "acc_norm (filter: none)") == [1.0, 0.0]


def test_a_score_of_which_the_result_cannot_be_told_is_not_compared(tmp_path):
    evalset = load(write(tmp_path, [sample()], [result(metric="a"), result(metric="b")]))
    scores = evalset.source.scores
    assert {name: score.mean for name, score in scores.items()} == {"a": 0.5, "b": 0.5, "fruit": None}
    assert [bool(score.no_mean) for score in scores.values()] == [True, True, False]
    assert "1 samples do not say which of several results" in warnings(evalset)[0]


def test_the_main_metric_is_the_first_that_the_record_reports(tmp_path):
    def headline(results, lines=(sample("a", "apple", 1.0), sample("b", "banana", 0.0)), **arguments):
        evalset = load(write(tmp_path, lines, results), **arguments)
        score = evalset.source.scores[evalset.source.main]
        return evalset.scoring.main_metric, score.mean, score.lower_is_better, score.no_mean

    name, lower = "every_eval_ever_judge", {"metric_id": "judge", "lower_is_better": True}
    assert headline([result(metric="judge")]) == (name, 0.5, False, "")
    assert headline([result(metric_config=lower)]) == (name, 0.5, True, "")
    assert headline([result(metric="judge", score=0.75)]) == (name, 0.75, False, "the mean of the samples is another")
    corpus = [result(metric="judge", score=0.9, evaluation_result_id="j"), result(evaluation_result_id="a")]
    rows = [sample("a", evaluation_result_id="a"), sample("b", score=0.0, evaluation_result_id="a")]
    assert headline(corpus, rows) == (name, 0.9, False, "no sample has a score of that name")
    assert headline(corpus, rows, main_metric="accuracy")[0] == "every_eval_ever_accuracy"
    assert headline(corpus, rows, main_metric="exact_match")[0] == "exact_match"


FIRST, SECOND = "accuracy on fruit for scorer match", "std on fruit for scorer match"
EPOCHS = [("a", "1", 1.0), ("a", "2", 0.0), ("b", "1", 0.0)]
"""Mean of the samples 1/3, of the rows 1/4."""


@pytest.mark.parametrize(("lines", "reported", "main"), [
    ([("a", "1", 1.0), ("b", "1", 0.0)], 0.5, ("fruit", "")),
    ([("a", "1", 1.0), ("b", "1", 0.0)], 0.75, ("accuracy", "no sample has a score of that name")),
    (EPOCHS, 0.25, ("fruit", "")),
    (EPOCHS, 0.75, ("accuracy", "no sample has a score of that name")),
])  # fmt: skip
def test_samples_that_name_no_result_have_the_first_if_it_is_their_mean(tmp_path, lines, reported, main):
    """As upstream's converter writes logs of inspect_ai: the first score of each sample, under the task's name."""
    results = [result(FIRST, score=reported), result(SECOND, "std", 0.5)]
    samples = [sample(id_, score=score, metadata={"epoch": epoch}) for id_, epoch, score in lines]
    evalset = load(write(tmp_path, samples, results))
    scores = evalset.source.scores
    found = scores[evalset.source.main]
    assert (evalset.source.main, found.no_mean, found.mean) == (*main, reported)
    assert scores["std"].mean == 0.5
    assert [said.startswith("samples do not say which result") for said in warnings(evalset)] == [True]


@pytest.mark.parametrize("key", ["epoch", "trial"])
def test_epochs_and_trials_are_completions_of_one_row(tmp_path, key):
    """Two rows would be taken for independent ones. Each trial of HELM's has demonstrations of its own."""
    lines = [sample("a", f"answer {n}", score, metadata={key: str(n)}) for n, score in ((1, 1.0), (2, 0.0))]
    if key == "trial":
        for n, line in enumerate(lines):
            line["input"]["formatted"] = f"2+{n}=?\n{line['input']['raw']}"
    evalset = load(write(tmp_path, lines))
    assert completions(evalset) == [["answer 1", "answer 2"]]
    assert source_scores(evalset) == [0.5]
    assert evalset.scoring.completions == "mean"
    assert load(write(tmp_path, [sample("a", ["one", "two"])])).scoring.completions == "first"


@pytest.mark.parametrize(("score", "said", "expected"), [
    (0.5, {}, "mean"), (0.3, {}, "first"), (0.5, {"completions": "max"}, "max"), (0.5, {"completions": "first"}, "first"),
])  # fmt: skip
def test_several_completions_are_scored_as_the_record_scores_them(tmp_path, score, said, expected):
    """Its score is theirs together, where it is a share of them; our export says how they were scored."""
    ours = {"name": "helm", "version": "1", "additional_details": {"helm_ext_version": "1"}}
    results = [result(generation_config={"generation_args": {}, "additional_details": said})]
    evalset = load(write(tmp_path, [sample("a", ["banana", "two"], score)], results, eval_library=ours))
    assert evalset.scoring.completions == expected


@pytest.mark.parametrize("said", ["8", "max", 2, None, ["x"]], ids=repr)
def test_what_others_call_completions_is_no_way_of_scoring(tmp_path, said):
    results = [result(generation_config={"generation_args": {}, "additional_details": {"completions": said}})]
    evalset = load(write(tmp_path, [sample("a", ["banana", "two"], 0.5)], results))
    assert evalset.scoring.completions == "mean"


def test_what_rows_belong_to_is_said_until_intervals_respect_it(tmp_path):
    path = write(tmp_path, [sample("a", metadata={"cluster": "x"}), sample("b", metadata={"cluster": "x"})])
    begins = [one.startswith("samples say what they belong to") for one in warnings(load(path))]
    assert (any(begins), warnings(load(path, cluster="cluster"))) == (True, warnings(load(path))[1:])


@pytest.mark.parametrize("choices", [None, FRUIT])
def test_without_any_reference_the_records_own_score_is_the_main_one(tmp_path, choices):
    lines = [sample("a", reference=[], choices=choices), sample("b", score=0.0, reference=[], choices=choices)]
    path = write(tmp_path, lines)
    evalset = load(path)
    assert evalset.scoring.main_metric == "every_eval_ever_accuracy"
    assert warnings(evalset) == ["no sample says what is right: the record's own score is the main one"]
    assert evalset.counts["recorded"] == 2
    stats = json.loads((score_file(tmp_path, path).folder / "stats.json").read_bytes())
    assert [one["mean"] for one in stats if one["name"]["name"] == "every_eval_ever_accuracy"] == [0.5]


@pytest.mark.parametrize(("library", "differs"), [("inspect", 0), ("ours", 1)])
def test_several_right_options_of_inspect_are_the_answer_together(tmp_path, library, differs):
    """As its scorer `choice` has it; elsewhere nothing says whether any of them is enough."""
    lines = [sample("a", "A, C", 1.0, ["A", "C"], FRUIT), sample("b", "A, B", 0.0, "B", FRUIT)]
    run = score_file(tmp_path, write(tmp_path, lines, library=library))
    stats = {one["name"]["name"]: one for one in json.loads((run.folder / "stats.json").read_bytes())}
    assert stats["every_eval_ever_accuracy_differs"]["sum"] == differs


def asked(*id_, **given):
    """A line with other keys in its `input`."""
    line = sample(*id_)
    line["input"].update(given)
    return line


def agent(*turns):
    messages = [{"turn_idx": at, **turn} for at, turn in enumerate(turns)]
    return sample(interaction_type="agentic", output=None, messages=messages)


USER, TOOL = {"role": "user", "content": "Which?"}, {"role": "tool", "content": "yellow", "tool_call_id": ["1"]}
LOOKS = {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "name": "look"}]}
# As EEE's converter writes messages of inspect_ai's basic_agent: arguments of calls are JSON.
CALL = {"id": "1", "name": "submit", "arguments": {"answer": '"banana"'}}
SUBMITS = {"role": "assistant", "content": "tool call for tool submit", "tool_calls": [CALL]}
EASY, HARD = (sample(id_, metadata={"level": level}) for id_, level in (("a", "easy"), ("b", "hard")))


@pytest.mark.parametrize(("lines", "arguments", "look", "expected"), [
    ([sample(reference=["banana", "a banana"])], {}, golds, [["banana", "a banana"]]),
    ([sample("a"), sample("b", reference=[])], {}, lambda evalset: evalset.counts["unscored"], 1),
    ([sample(), sample()], {}, lambda evalset: (completions(evalset), evalset.counts["duplicates"]), ([["banana"]], 1)),
    ([sample(), asked(raw="Which is long?")], {}, lambda evalset: [one.id for one in evalset.instances], ["a", "a~2"]),
    ([asked(formatted="Q: Which?\nA:")], {}, lambda evalset: evalset.instances[0].input.text, "Q: Which?\nA:"),
    ([agent(USER, LOOKS, TOOL, {"role": "assistant", "content": "banana"})], {},
     lambda evalset: (completions(evalset), evalset.counts["agentic"]), ([["banana"]], 1)),
    ([agent(USER, SUBMITS, {**TOOL, "content": "banana"})], {}, completions, [["banana"]]),
    ([sample(answer="I say: banana!")], {}, completions, [["I say: banana!"]]),
    ([EASY, HARD], {"by": ["level"]}, lambda evalset: evalset.attributes, {"level": ("easy", "hard")}),
    ([{**sample(), "schema_version": "0.2.2"}], {}, completions, [["banana"]]),
])  # fmt: skip
def test_what_is_read_of_lines(tmp_path, lines, arguments, look, expected):
    version = lines[0]["schema_version"]
    assert look(load(write(tmp_path, lines, schema_version=version), **arguments)) == expected


def test_conversations_stay_conversations(tmp_path):
    said = ("Be brief.", "Fruit?", "Yes.", "Which?", "banana")
    turns = list(zip(("system", *("user", "assistant") * 2), said, strict=True))
    messages = [{"turn_idx": n, "role": role, "content": text} for n, (role, text) in enumerate(turns)]
    line = sample(interaction_type="multi_turn", output=None, messages=messages)
    single = sample("b")
    single["input"]["formatted"] = json.dumps([{"role": "user", "content": "Which?"}])
    evalset = load(write(tmp_path, [line, single]))
    assert evalset.adapter_spec.method == "chat"
    assert [(m["role"], m["content"]) for m in evalset.instances[0].input.messages] == turns[:-1]
    assert evalset.instances[1].input.messages == [{"role": "user", "content": "Which?"}]
    assert completions(evalset) == [["banana"], ["banana"]]


def test_each_evaluation_of_each_record_is_a_task(tmp_path):
    two = [sample("a"), sample("a", "apple", 0.0, evaluation_name="fruit/other")]
    write(tmp_path, two, [result(), result("fruit/other", score=0.0)])
    write(tmp_path / "deeper", [sample("z")], uuid=UUIDS[1])
    tasks = EEE.tasks({"path": str(tmp_path)})
    assert tasks == [
        {"record": UUIDS[0], "evaluation": "fruit"},
        {"record": UUIDS[0], "evaluation": "fruit/other"},
        {"record": UUIDS[1]},
    ]
    assert [completions(load(tmp_path, **task)) for task in tasks] == [[["banana"]], [["apple"]], [["banana"]]]
    with pytest.raises(DatasetError, match=r"2 records could be meant\n  hint: record=NAME chooses one: "):
        load(tmp_path)
    said = r"2 evaluations could be meant\n.*evaluation=NAME chooses one: fruit, fruit/other"
    with pytest.raises(DatasetError, match=said):
        load(tmp_path, record=UUIDS[0])
    with pytest.raises(DatasetError, match=r"no evaluation fruitt\n  hint: did you mean 'fruit'"):
        load(tmp_path, record=UUIDS[0], evaluation="fruitt")
    # Evaluations of the same answers are one task.
    lines = [sample("a", evaluation_name=name) for name in ("fruit.accuracy", "fruit.f1")]
    path = write(tmp_path, lines, [result("fruit.accuracy"), result("fruit.f1", "f1")])
    assert EEE.tasks({"path": str(path)}) == [{}]
    evalset = load(path)
    assert row_extra(evalset.instances[0])["source_scores"].keys() == {"every_eval_ever_accuracy", "every_eval_ever_f1"}


def test_what_must_be_known_of_a_record_is_said(tmp_path):
    path = write(tmp_path, [sample("a"), sample("b", score=0.0)], [result(score=0.75)])
    assert warnings(load(path)) == ["accuracy: the record reports 0.75, the mean of its samples is 0.5"]
    value = json.loads(path.read_text())
    value["detailed_evaluation_results"]["total_rows"] = 5000
    path.write_text(json.dumps(value))
    assert warnings(load(path))[0].startswith("2 of 5,000 samples are in the file")
    value["detailed_evaluation_results"] |= {"total_rows": 2, "checksum": "0" * 64}
    path.write_text(json.dumps(value))
    assert warnings(load(path))[0].startswith("the samples were changed after the record was made")
    path.unlink()
    evalset = load(path.with_name(f"{path.stem}_samples.jsonl"))
    assert warnings(evalset)[0].startswith("no aggregate file beside the samples")
    assert (evalset.source.model, evalset.source.scores["fruit"].mean) == ("lab/small", None)


def test_an_aggregate_alone_is_refused(tmp_path):
    path = write(tmp_path, [sample()])
    path.with_name(f"{path.stem}_samples.jsonl").unlink()
    with pytest.raises(DatasetError, match=rf"the samples that it names are not beside it: {UUIDS[0]}_samples.jsonl"):
        load(path)
    value = json.loads(path.read_text())
    del value["detailed_evaluation_results"]
    path.write_text(json.dumps(value))
    with pytest.raises(DatasetError, match="an aggregate without samples: there is no answer to score"):
        load(path)


@pytest.mark.parametrize(("change", "said"), [
    ({"interaction_type": "chat"}, r'interaction_type: expected "single_turn" or .*, got "chat"'),
    ({"sample_id": 7}, "sample_id: expected a string, got 7"),
    ({"sample_id": 7, "error": 5}, r"sample_id: expected a string, got 7\n.*\n.*_samples.jsonl:2: error: expected a string, got 5"),
    ({"output": {"raw": ["a"], "reasoning_trace": 5}}, "output.reasoning_trace: expected a string or a list, got 5"),
    ({"evaluation": {"score": "1", "is_correct": True}}, "evaluation.score: expected a number"),
    ({"evaluation": {"score": True, "is_correct": True}}, "evaluation.score: expected a number, got true"),
    ({"evaluation": {"score": 10**400, "is_correct": True}}, "evaluation.score: expected a number, got 1000"),
    ({"evaluation": {"score": 1}}, "without evaluation.is_correct"),
    ({"output": None}, "output: expected an object with raw"),
    ({"output": {"raw": "banana"}}, 'output.raw: expected a list, got "banana"'),
    ({"messages": []}, "messages: expected null, as single_turn has it"),
    ({"input": {"raw": "?", "reference": "banana"}}, "input.reference: expected a list"),
    ({"input": {"raw": "?"}}, "without input.reference"),
    ({"model_id": "lab/large"}, 'model_id: "lab/large" is not that of the aggregate, "lab/small"'),
    ({"evaluation_id": "x"}, 'evaluation_id: "x" is not that of the aggregate'),
    ({"schema_version": "9.1"}, 'schema_version "9.1" is not known here'),
    ({"metadata": []}, "metadata: expected an object"),
    ({"answer_attribution": ["extracted_value"]}, r'answer_attribution\[0\]: expected an object, got "extracted_value"'),
    ({"sample_id": "a", "evaluation": {"score": 0.0, "is_correct": False}, "input": sample("a")["input"]}, "sample_id: line 1 says something else"),
])  # fmt: skip
def test_a_line_that_is_wrong_is_named(tmp_path, change, said):
    path = write(tmp_path, [sample("a"), {**sample("b"), **change}])
    with pytest.raises(DatasetError, match=rf"_samples.jsonl:2: .*{said}"):
        load(path)
    problems, _ = EEE.check(path=str(path))
    assert {problem.location.line for problem in problems if problem.severity == "error"} == {2}


SCORE = r"evaluation_results\[0\].score_details.score: expected a number"


@pytest.mark.parametrize(("change", "said"), [
    ({"schema_version": "1.0"}, '"1.0" is not known here'), ({"model_info": {}}, "without model_info.id"),
    ({"evaluation_results": []}, "nothing is reported"), ({"evaluation_results": [result(score="high")]}, SCORE),
    ({"evaluation_results": [result(score=10**400)]}, rf"{SCORE}, got 1000"),
    ({"evaluation_results": [{}]}, r"without evaluation_results\[0\].evaluation_name, evaluation_results\[0\].score"),
])  # fmt: skip
def test_an_aggregate_that_breaks_the_schema_is_named(tmp_path, change, said):
    path = write(tmp_path, [sample()])
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(DatasetError, match=said):
        load(path)


def test_files_of_others_are_not_claimed(tmp_path):
    for name, text in {
        "a.json": '{"schema_version": "0.3.0", "evaluation_id": "x"}',
        "b.jsonl": '{"doc_id": 0, "doc": {}, "target": "x"}\n',
        f"{UUIDS[0]}_samples.jsonl": '{"question": "?"}\n',
        f"{UUIDS[1]}.json": "[]",
    }.items():
        (tmp_path / name).write_text(text)
        with pytest.raises(DatasetError):
            load(tmp_path / name)
    from helm_ext.formats.format import Claim, look

    assert {EEE.claims(look(path)) for path in (tmp_path, *tmp_path.iterdir())} == {Claim.NO}


@needs_import_samples
@pytest.mark.parametrize(("name", "rows", "source_mean"), [("imp_arc", 12, 0.16666666666666666), ("imp_multi", 8, 0.5)])
def test_records_that_upstream_made(name, rows, source_mean):
    evalset = load(IMPORT_SAMPLES / "every_eval_ever" / "data" / name)
    scores = [list(row_extra(instance)["source_scores"].values())[0] for instance in evalset.instances]
    assert (len(scores), sum(scores) / rows) == (rows, pytest.approx(source_mean, abs=1e-9))
    assert next(iter(evalset.source.scores.values())).mean == pytest.approx(source_mean)
