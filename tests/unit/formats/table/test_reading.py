"""What is read of a table, and where one is refused: rows, arguments, and what comes of them."""

import pytest
from table_files import answers, golds, labels, load, refusal, write_csv, write_lines

from helm_ext.formats import get_format

FACTS = {
    "golds": golds,
    "labels": labels,
    "answers": answers,
    "attributes": lambda evalset: evalset.attributes,
    "ids": lambda evalset: [instance.id for instance in evalset.instances],
    "inputs": lambda evalset: [instance.input.messages or instance.input.text for instance in evalset.instances],
    "splits": lambda evalset: [instance.split for instance in evalset.instances],
    "method": lambda evalset: evalset.adapter_spec.method,
    "demonstrations": lambda evalset: evalset.adapter_spec.max_train_instances,
    "said": lambda evalset: [(one.code, one.location.field, one.hint) for one in evalset.warnings],
    "counts": lambda evalset: {name: evalset.counts.get(name) for name in ("read", "recorded", "not_run")},
}


def write(folder, rows):
    """Write a table: CSV of lists, whose first is the header ([] for none); else JSON Lines of objects."""
    return write_lines(folder, *rows) if isinstance(rows[0], dict) else write_csv(folder, rows[0] or None, *rows[1:])


FREE, MC = ["question", "answer", "output"], ["question", "A", "B", "C", "answer", "output"]
METALS = ["iron", "tin", "oak"]
TURNS = [{"role": "user", "content": "Metal?"}]
SPLITS = [{"question": f"{n}?", "answer": "iron", "split": split} for n, split in enumerate(["train", "val", "test"])]
NO_YES = {"false": "no", "true": "yes"}
NO_HEADER = [[], ["Metal?", "iron", "oak", "silk", "salt", "A"], ["Cloth, then?", "iron", "oak", "silk", "salt", "C"]]
ABCD = dict(zip("ABCD", "wxyz", strict=True))


def row(**changes):
    return {"question": "?", "answer": "iron", "output": "iron", **changes}


def choice(choices, **changes):
    return row(**{"choices": choices, "answer": "tin", "output": "tin", **changes})


def positions(*golds):
    return [MC, *(["?", *METALS, gold, "A"] for gold in golds)]


HELLASWAG = {"ind": 4, "activity_label": "Smelting", "ctx_a": "He melts ore.", "ctx_b": "then he", "ctx": "He melts ore. then he",
             "endings": ["pours it.", "eats it.", "sings.", "sleeps."], "source_id": "z~1", "split": "val",
             "split_type": "indomain", "label": "0"}  # fmt: skip
SQUAD = {"id": "z", "title": "Zormun", "context": "Iron rusts.", "question": "What rusts?",
         "answers": {"text": ["Iron", "Iron", "iron"], "answer_start": [0, 0, 0]}, "output": "Iron"}  # fmt: skip
BOOLQ = {"question": "?", "passage": "Iron rusts.", "output": "Yes, it does."}
MC1 = {"choices": ["No.", "Yes.", "It glows."], "labels": [1, 0, 0]}
MC2 = {"choices": ["No.", "It is not.", "Yes."], "labels": [1, 1, 0]}
GSM8K = {"question": "How many ingots?", "answer": "He has 2+2=<<2+2=4>>4 bars.\nAll in all 1,004.\n#### 1,004"}
DOC = {"query": "Which rusts?", "choices": [" iron", " tin", " gold"], "gold_index": 0, "id": "7", "task_name": "ores"}
STEM = {"question": {"stem": "What rusts?"}, "answer": {"text": "iron", "start": 0}, "output": {"text": "tin"}}
LANGFUSE = {"id": "a1", "input": {"question": "What rusts?"}, "expectedOutput": "iron", "metadata": None}


def lighteval(doc, **response):
    """As lighteval's Doc and ModelResponse are written (tasks/requests.py, models/model_output.py)."""
    said = {"input": "x", "text": [], "logprobs": [], "argmax_logits_eq_gold": [], **response}
    return {"doc": {**DOC, **doc}, "model_response": said, "metric": {"em": 0.5}}


READ = [
    # Outputs
    ([FREE, ["?", "iron", "iron"], ["?", "tin", ""]], {"empty": "answer"}, {"answers": [["iron"], [""]]}),
    ([FREE, ["?", "iron", "iron"], ["?", "tin", ""]], {"empty": "not_run"}, {"answers": [["iron"], "not_run"]}),
    *(([MC, ["?", "iron", "tin", nothing, "A", "B"], ["?", *METALS, "C", "C"]], {}, {"labels": [{"A": "iron", "B": "tin"}, dict(zip("ABC", METALS, strict=True))]})
      for nothing in ("", " ")),
    ([*(row(output=output) for output in ("tin", None, "")), {"question": "?", "answer": "iron"}], {},
    {"answers": [["tin"], "not_run", [""], "not_run"], "counts": {"read": 4, "recorded": 2, "not_run": 2}}),
    ([row(output=["iron", "tin"])], {}, {"answers": [["iron", "tin"]]}),
    *(([row(answer=True, output=output)], {}, {"answers": [[read]]}) for output, read in
    [(True, "true"), ("False.", "False."), (1, "yes"), (0.0, "no"), ("Yes, it is.", "Yes, it is.")]),
    # Golds
    (positions("1", "2", "3"), {}, {"golds": [["iron"], ["tin"], ["oak"]]}),
    (positions("1", "2"), {"index_base": 0}, {"golds": [["tin"], ["oak"]]}),
    *(([FREE, ["?", cell, "Fe"]], {}, {"golds": [["iron", "Fe"]]}) for cell in ('["iron", "Fe"]', "['iron', 'Fe']")),
    ([FREE, ["Range?", "[0, 1]", "0"], ["?", "iron", "iron"]], {}, {"golds": [["[0, 1]"], ["iron"]]}),
    ([FREE, ["?", '["iron", "Fe"]', "Fe"], ["?", "tin", "tin"], ["?", "[sic] [x]", "x"]], {}, {"golds": [["iron", "Fe"], ["tin"], ["[sic] [x]"]]}),
    *(([FREE, ["?", "tin", "tin"], ["?", cell, "['x']"]], {"gold_kind": kind}, {"golds": [["tin"], read]}) for cell, kind, read in [
        ("['x', 'y']", "list", ["x", "y"]), ('["x", "y"]', "list", ["x", "y"]), ('["x", "y"]', "text", ['["x", "y"]']), ("[1]", "list", ["1"])]),
    *(([MC, ["?", *METALS, several, "C"], ["?", *METALS, one, "B"]], said, {"golds": [["iron", "oak"], ["tin"]]}) for several, one, said in [
        ('["A", "C"]', "B", {}), ("['A', 'C']", "[B]", {}), ('["iron", "oak"]', "tin", {}), ("[0, 2]", "1", {}), ('["A", "C"]', "B", {"gold_kind": "label"})]),
    ([MC, ["?", '["x"]', "tin", "oak", '["x"]', "C"], ["?", *METALS, "tin", "B"]], {}, {"golds": [['["x"]'], ["tin"]]}),
    ([FREE, ["Range?", "[0, 1]", "0"]], {"gold_kind": "text"}, {"golds": [["[0, 1]"]]}),
    ([FREE, ["Range?", "[0, 1]", "0"]], {"gold_kind": "list"}, {"golds": [["0", "1"]]}),
    ([FREE, ["?", "{'value': 'iron'}", "iron"]], {"gold_kind": "text"}, {"golds": [["{'value': 'iron'}"]]}),
    *(([FREE, ["?", yes, "Yes."], ["?", no, "False, it is not."]], {}, {"golds": [["yes"], ["no"]], "labels": [NO_YES] * 2})
    for yes, no in (("TRUE", "FALSE"), ("True", "False"), ("true", "false"))),
    ([FREE, ["?", "True", "x"], ["?", "iron", "x"]], {}, {"golds": [["True"], ["iron"]]}),
    # Options
    ([choice(["iron", "tin", None])], {}, {"labels": [{"A": "iron", "B": "tin"}]}),
    *(([choice(choices)], {}, {"labels": [expected], "golds": [["tin"]]}) for choices, expected in [
        (["iron", "tin"], {"A": "iron", "B": "tin"}),
        ({"text": ["iron", "tin"], "label": ["1", "2"]}, {"1": "iron", "2": "tin"}),
        ({"label": ["1", "2"], "text": ["iron", "tin"]}, {"1": "iron", "2": "tin"}),
        ([{"label": "A", "text": "iron"}, {"label": "B", "text": "tin"}], {"A": "iron", "B": "tin"}),
        ({"A": "iron", "B": "tin"}, {"A": "iron", "B": "tin"}),
        ("['iron', 'tin']", {"A": "iron", "B": "tin"}),
    ]),
    *(([["question", *columns, "gold", "output"], ["?", *(f"metal {name}" for name in columns), f"metal {columns[0]}", "x"]], {},
       {"labels": [{name: f"metal {column}" for name, column in zip(names, sorted(columns), strict=True)}]})
      for columns, names in [
        (["A", "B", "C"], "ABC"), (["b", "a", "c"], "ABC"), (["option_a", "option_b"], "AB"), (["Option A", "Option B"], "AB"),
        (["choice1", "choice2"], "AB"), (["ending0", "ending1", "ending2"], "ABC"), (["answerA", "answerB"], "AB"),
    ]),
    ([MC[:5], ["?", "iron", "tin", "", "A"], ["?", "x", "y", "z", "C"]], {}, {"labels": [{"A": "iron", "B": "tin"}, {"A": "x", "B": "y", "C": "z"}]}),
    ([["question", "answer", "answer1", "answer2", "answer3"], ["?", "iron", "iron", "tin", "lead"]], {"output": ["answer3"]}, {"labels": [None]}),
    # A column called `m` is no fifth option after A to D, and takes nothing away from them.
    *(([[*names, *"ABCDm"], [*"B" * len(names), *"wxyz", "B"]], {role: ["m"] if role in ("output", "by") else "m"}, {"labels": [ABCD]})
    for role, names in {"question": FREE[1:], "gold": ["question", "output"], "output": FREE[:2], "id": FREE, "by": FREE}.items()),
    # Questions, splits, ids
    ([["passage", *FREE], ["Iron rusts.", "What rusts?", "iron", "iron"]], {}, {"inputs": ["Iron rusts.\nWhat rusts?"]}),
    ([row(question=TURNS)], {}, {"method": "chat", "inputs": [TURNS]}),
    (SPLITS, {}, {"splits": ["train", "valid", "test"], "demonstrations": 5,
                  "said": [("several-splits", "", "one split for all rows makes one score of them")]}),
    (SPLITS, {"splits": ["val"]}, {"inputs": ["1?"]}),
    ([{**one, "split": "indomain"} for one in SPLITS], {}, {"splits": ["test"] * 3}),
    ([["qid", *FREE], ["007", "?", "iron", "tin"]], {}, {"ids": ["007"]}),
    # A live run has one sequence of labels.
    ([{"question": "?", "choices": {"text": ["iron", "tin"], "label": list(names)}, "answer": names[1]} for names in ("12", "AB")],
    {}, {"method": "multiple_choice_joint", "golds": [["tin"], ["tin"]]}),
    # Columns as they are named
    *(([[question, gold, "Response"], ["Metal?", "iron", "zinc"]], {}, {"golds": [["iron"]], "answers": [["zinc"]]})
      for question, gold in [
        ("question", "answer"), ("Prompt", "answerKey"), ("INPUT", "Label"), ("query", "target"), ("problem", "gold"),
        ("instruction", "answers"), ("question", "expected"), ("question", "reference"),
    ]),
    ([["question", "label", "answer"], ["?", "iron", "tin"]], {"output": ["answer"]}, {"golds": [["iron"]], "answers": [["tin"]]}),
    ([["instruction", "output"], ["?", "iron"]], {"gold": "output"}, {"counts": {"read": 1, "recorded": 0, "not_run": None}}),
    ([["frage", "x", "y", "antwort", "gpt"], ["?", "iron", "tin", "y", "tin"]],
    {"question": "frage", "options": ["x", "y"], "gold": "antwort", "output": ["gpt"], "gold_kind": "label"},
    {"labels": [{"X": "iron", "Y": "tin"}], "golds": [["tin"]], "answers": [["tin"]]}),
    ([{"doc": {"q": "Metal?", "golds": ["iron"]}, "replies": [{"text": "tin"}], "meta": "{'topic': 'metals'}"}],
    {"question": "doc.q", "gold": "doc.golds", "output": ["replies.0.text"], "by": ["meta.topic"]},
    {"golds": [["iron"]], "answers": [["tin"]], "attributes": {"meta.topic": ("metals",)}}),
    (NO_HEADER, {"header": "no"}, {"golds": [["iron"], ["silk"]]}),
    ([[], ["Metal?", "iron", "tin"]], {"header": "no", "question": "1", "gold": "2", "output": ["3"]}, {"golds": [["iron"]], "answers": [["tin"]]}),
    # Public datasets
    ([{"question": "?", "subject": "ore", "choices": [*METALS, "silk"], "answer": n} for n in (0, 3)], {"by": ["subject"]},
    {"golds": [["iron"], ["silk"]], "attributes": {"subject": ("ore",)}}),
    ([["Question", *"ABCD", "Answer", "Subject"], ["?", *METALS, "silk", "C", "ore"]], {}, {"golds": [["oak"]], "attributes": {}}),
    ([{"id": "Z1", "question": "?", "choices": {"text": METALS, "label": ["1", "2", "3"]}, "answerKey": "1", "output": "1"},
     {"id": "Z2", "question": "?", "choices": {"text": list("vwxyz"), "label": list("ABCDE")}, "answerKey": "E", "output": "(E)"}],
    {}, {"golds": [["iron"], ["z"]], "labels": [dict(zip("123", METALS, strict=True)), dict(zip("ABCDE", "vwxyz", strict=True))]}),
    ([HELLASWAG, {**HELLASWAG, "ind": 5, "label": "2"}], {},
    {"golds": [["pours it."], ["sings."]], "ids": ["4", "5"], "splits": ["valid"] * 2, "inputs": ["He melts ore. then he"] * 2}),
    ([{"question": "Is zormun a metal?", "mc1_targets": MC1, "mc2_targets": MC2, "output": "A"}], {},
    {"labels": [{"A": "No.", "B": "Yes.", "C": "It glows."}], "golds": [["No."]]}),
    ([{"question": "Is zormun a metal?", "mc2_targets": MC2, "output": "B"}], {}, {"golds": [["No.", "It is not."]]}),
    ([{"type": "x", "category": "y", "question": "?", "best_answer": "No.", "correct_answers": ["No.", "It is not."],
     "incorrect_answers": ["Yes."], "source": "z", "output": "It is not."}], {}, {"golds": [["No.", "It is not."]]}),
    ([SQUAD], {}, {"golds": [["Iron", "iron"]], "inputs": ["Iron rusts.\nWhat rusts?"]}),
    ([SQUAD, {**SQUAD, "answers": {"text": [], "answer_start": []}, "output": ""}], {}, {"golds": [["Iron", "iron"], [""]]}),
    *(([{**BOOLQ, column: yes}, {**BOOLQ, column: no}], {}, {"golds": [["yes"], ["no"]], "labels": [NO_YES] * 2})
    for column in ("answer", "label") for yes, no in ((True, False), (1, 0), ("True", "False"))),
    ([{**BOOLQ, "answer": True, "output": False}], {}, {"answers": [["false"]]}),
    ([["metadata", "problem", "answer", "output"], ["{'topic': 'Ores', 'urls': ['https://zormun.example']}", "Which?", "iron", "iron"]],
    {"by": ["metadata.topic"]}, {"golds": [["iron"]], "attributes": {"metadata.topic": ("Ores",)}}),
    *(([header, ["What rusts?", *cells, ""]], {}, {"golds": [["iron"]]}) for header, cells in [  # SciQ, GPQA
        (["question", "distractor3", "distractor1", "distractor2", "correct_answer", "support"], ["tin", "gold", "lead", "iron"]),
        (["Question", "Correct Answer", *(f"Incorrect Answer {n}" for n in (1, 2, 3)), "Subdomain"], ["iron", "gold", "lead", "tin"]),
    ]),
    # Other tools
    ([lighteval({"choices": ["iron", "Fe"], "gold_index": [0, 1]}, text=["Fe", "tin"])], {},
    {"golds": [["iron", "Fe"]], "answers": [["Fe", "tin"]], "labels": [None]}),
    ([["user_input", "retrieved_contexts", "response", "reference", "faithfulness"], ["What rusts?", "['Iron rusts.']", "Iron.", "iron", "1.0"]],
    {}, {"golds": [["iron"]], "answers": [["Iron."]]}),
    ([LANGFUSE], {"question": "input.question"}, {"golds": [["iron"]]}),
    ([STEM], {"question": "question.stem", "gold": "answer.text", "output": "output.text"}, {"golds": [["iron"]], "answers": [["tin"]]}),
]  # fmt: skip


@pytest.mark.parametrize(("rows", "arguments", "expected"), READ)
def test_what_is_read(tmp_path, rows, arguments, expected):
    evalset = load(write(tmp_path, rows), **arguments)
    assert {name: FACTS[name](evalset) for name in expected} == expected


@pytest.mark.parametrize(("rows", "arguments", "expected"), READ)
def test_a_conversion_is_read_alike(tmp_path, rows, arguments, expected):  # noqa: ARG001 - the table of the test above
    before = load(write(tmp_path, rows), **arguments)
    made = get_format("adapter_spec").write(before, tmp_path / "made.jsonl", lossy=True)
    after = get_format("adapter_spec").load(path=str(made.path))
    kept = ["golds", "labels", "ids", "inputs", "splits", "method", "demonstrations"]
    kept += ["answers"] if before.counts.get("recorded") else []
    assert {fact: FACTS[fact](after) for fact in kept} == {fact: FACTS[fact](before) for fact in kept}
    assert after.scoring == before.scoring


REFUSED = [
    # Outputs
    *(([FREE, ["?", "iron", "iron"], ["?", "tin", nothing]], {}, "cell", 3, "empty=answer") for nothing in ("", " ", "\n")),
    *(([row(output=output)], {}, "cell", 1, "") for output in ({"text": "iron"}, [1.5, 2.5], ["iron", None])),
    *(([row(output=output)], said, "no-outputs", None, hint) for output, said, hint in [
        (None, {}, "leave it out of the table"), ({"gpt": "tin"}, {"output": ["output.gtp"]}, "did you mean 'gpt'?"),
        ({"gpt": "tin", "llama": "oak"}, {"output": ["output.text"]}, "output holds gpt, llama")]),
    # Golds
    (positions("1", "2"), {}, "gold-ambiguous", 2, "say which: index_base=0 or index_base=1"),
    (positions("A", ""), {}, "gold-hidden", 3, "write the gold"),
    # A list beside plain golds is several answers, unless a program may have printed it as one.
    *(([FREE, ["?", *cells], *plain], {}, "list", line, "gold_kind=text")
      for cells, plain, line in [(["[0, 1]", "0"], [], 2), (["['x', 'y']", "x"], [["?", "iron", "iron"]], 2),
                                 (['["x", "y"]', "['x']"], [["?", "iron", "iron"]], 2), (['["x"]', "x"], [["?", "[1]", "1"]], 3)]),
    *(([["question", "choices", "answer"], ["?", cell, "iron"]], {}, "cell", 2, "")
      for cell in ("['iron' 'Fe']", "['iron'\n 'Fe']", "[iron, Fe]", "['iron', 'Fe'")),
    ([FREE, ["?", "{'value': 'iron'}", "iron"]], {}, "cell", 2, "gold=COLUMN.KEY"),
    # Options
    *(([choice(["iron", "tin"]), choice(choices)], {}, "cell", 2, "") for choices in
      [None, [], ["iron"], "iron|tin", {"text": ["iron", "tin"], "label": ["A"]}, {"text": ["a", "b"], "label": ["A", "A"]},
       ["iron", ["tin"]], 7]),
    ([["question", "option_a", "option_c", "gold"], ["?", "iron", "tin", "iron"]], {}, "options-gap", None, ""),
    ([["question", "answer", *"ABCN"], ["?", "B", *"wxyz"]], {}, "options-gap", None, "name those that are: options=A+B+C+N"),
    *(([MC[:5], ["?", "iron", nothing, "tin", "A"]], {}, "cell", 2, "") for nothing in ("", " ")),
    ([["question", "answer", *(f"option{n}" for n in range(1, 28))], ["?", "1", *range(27)]], {}, "options", None, ""),
    # Questions, splits
    *(([row(), row(question=question)], {}, "cell", 2, "") for question in (None, "", {"a": 1}, [1])),
    ([{**one, "split": "indomain"} for one in SPLITS], {"split": "split"}, "split", 1, ""),
    *(([*SPLITS, {**SPLITS[0], "split": typo}], {}, "split", 4, "") for typo in ("tset", "", "indomain")),  # all would be test rows
    ([["question", "answer"]], {}, "no-rows", None, ""),
    # Columns: a guess needs exactly one candidate.
    *(([header, ["x"] * len(header)], {}, code, None, hint) for header, code, hint in [
        (["question", "prompt", "answer"], "ambiguous-column", "say which: question=question or question=prompt"),
        (["question", "answer", "label"], "ambiguous-column", "say which: gold=answer or gold=label"),
        ([*FREE, "response"], "ambiguous-column", "say which: output=output or output=response"),
        (["question", "gold", "choices", "A", "B"], "ambiguous-column", "say which: options=choices or options=A+B"),
        (["item", "answer"], "no-question", "say which: question=COLUMN; columns: item, answer; sep= where cells are parted otherwise; header=no where the first line is a row already"),
        (["question", "right"], "no-gold", "say which: gold=COLUMN"),
    ]),
    ([["question", "answer"], ["?", "iron"]], {"output": ["answer"]}, "no-gold", None, ""),
    ([["question", "answer"], ["?", "iron"]], {"output": ["answer"], "gold": "answer"}, "column-twice", None, ""),
    ([["frage", "answer"], ["?", "iron"]], {"question": "farge"}, "unknown-column", None, "did you mean 'frage'?"),
    ([["question", "answer", "topic"], ["?", "iron", "ore"]], {"by": ["topc"]}, "unknown-column", None, "did you mean 'topic'?"),
    (NO_HEADER, {}, "no-question", None, "say which: question=COLUMN"),
    ([[], ["Metal?", "iron", "tin"]], {"header": "no"}, "no-header", None, ""),
    ([{"question": "x"}, {"question": "y", "answer": "B"}], {"header": "no"}, "no-header", None, ""),
    # Public datasets
    ([{**HELLASWAG, "label": ""}], {}, "gold-hidden", 1, "HellaSwag's test split has no labels: use the validation split"),
    ([GSM8K, {"question": "?", "answer": "4"}], {}, "cell", 2, ""),
    ([["context", "question", "answers", "output"],
      ["Iron rusts.", "?", "{'text': array(['Iron'], dtype=object), 'answer_start': array([0])}", "Iron"]], {}, "cell", 2, ""),
    ([{"question": "?", "passage": "Iron rusts.", "idx": 0, "label": -1}], {}, "gold-hidden", 1, ""),
    # Other tools
    ([lighteval({}, logprobs=[-1.0])], {}, "cell", 1, ""),
    ([lighteval({"gold_index": 3})], {}, "cell", 1, ""),
    *(([lighteval({}), {**lighteval({}), "doc": doc}], {}, "cell", 2, "") for doc in (None, 3, {"choices": 3})),
    ([lighteval({}, logprobs=[-1.0, [], -2.0])], {}, "cell", 1, ""),
    ([choice({"text": ["iron", "tin"], "label": 0.5})], {}, "cell", 1, ""),
    ([["question", "answer", "ground_truth"], ["?", "tin", "iron"]], {}, "ambiguous-column", None, "say which: gold=answer or gold=ground_truth"),
    ([LANGFUSE], {}, "cell", 1, "name what is in it: question=input.question"),
    ([STEM], {}, "cell", 1, "name what is in it: gold=answer.text"),
    ([STEM], {"gold": "answer.text"}, "cell", 1, "name what is in it: question=question.stem"),
    ([STEM], {"gold": "answer.text", "question": "question.stem"}, "cell", 1, "name what is in it: output=output.text"),
    # Scores
    ([["question", "answer", "judge"], ["?", "x", "C"]], {"scores": ["judge"]}, "scores", None, "output=COLUMN names it"),
    *(([row(judge="C"), row(judge=value)], {"scores": ["judge"]}, "cell", 2, "" if isinstance(value, dict) else "scores are numbers")
      for value in ("good", "c", "nan", "1e999", [1], {"value": 1})),
    *(([FREE + ["judge"], ["?", "x", "y", value]], {"scores": ["judge"]}, "cell", 2, "scores are numbers (4.5, 80)")
      for value in ("85%", "80 %", "4,5", "1.000,5")),
    *(([row(j=value)], {"judgements": ["j"]}, "cell", 1, hint)
      for value, hint in [(4, "a verdict is 1 or 0, true/false, yes/no, C or I; on another scale it is a score: scores=j"), ("good", "a verdict is 1 or 0, true"), ("N", "a verdict is 1 or 0, true")]),
    ([["question", "answer", "a+b"], ["?", "x", "y"]], {"output": ["a", "b"]}, "several-outputs", None, ""),
    ([["question", "answer", "a+b"], ["?", "x", "y"]], {"by": ["b"]}, "unknown-column", None, "a + within a name is written %2B: by=a%2Bb"),
    ([["question", "choices", "answer"], ["?", "iron|tin", "iron"]], {}, "cell", 2, "give each option a column"),
]  # fmt: skip


@pytest.mark.parametrize(("row", "answer"), [
    ({"input": "?", "actualOutput": "a", "expectedOutput": "a", "metricsData": True}, "a"),
    ({"index": 1, "target": "A", "input": "?", "messages": 7, "sample_score": {"score": {"value": 1, "prediction": "A"}}}, "A"),
    ({"promptIdx": 0, "testCase": {"assert": 5}, "prompt": "?", "response": {"output": "1"}, "vars": [], "namedScores": 1}, "1"),
    ({"promptIdx": 0, "testCase": {"assert": [{"type": []}]}, "prompt": "?", "response": {"output": "1"}}, "1"),
])  # fmt: skip
def test_odd_values_of_other_tools_are_as_if_they_were_not_there(tmp_path, row, answer):
    assert recorded(write(tmp_path, [row])) == [answer]


def recorded(path):
    return [row.answers[0].text for row in get_format("table").open(path=path).rows()]


@pytest.mark.parametrize(("rows", "arguments", "code", "line", "hint"), REFUSED)
def test_what_is_refused(tmp_path, rows, arguments, code, line, hint):
    found = refusal(write(tmp_path, rows), **arguments)
    assert (found.code, found.location.line) == (code, line)
    assert found.hint.startswith(hint)
