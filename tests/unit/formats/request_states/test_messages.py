"""What is said of files that are wrong: one table of rows, header and the errors, by `check` and `load` alike."""

import pytest
from request_states_files import answered, choice, errors, reference, split_rows, state, write

RIVERS = ["Nile", "Volga", "Rhine"]
NONE = {"max_train_instances": 0}
JOINT = {**NONE, "method": "multiple_choice_joint"}
LIST = {**NONE, "output_format": "list"}
IRON = {"likelihoods": [{"text": "iron", "logprob": -3.5}, {"text": "mercury", "logprob": -4.0}]}
MESSAGES = [{"role": "user", "content": "Hi"}]


def rivers(count=3, **instance):
    return [choice(f"Where is {n}?", RIVERS, n % 3, id=n, split="test", **instance) for n in range(count)]


def metals(**more):
    return {**choice("Which metal is liquid?", ["iron", "mercury"], 1, id="a"), **IRON, **more}


def asked(*golds, **given):
    """A row of a conversation or text, with these right answers."""
    return {"instance": {"input": given, "references": [reference(gold, correct=True) for gold in golds or ["Hello"]]}}


def changed(row, **result):
    return {**row, "result": {"success": True, "completions": [{"text": "iron"}]}, **result}


def without_answer(place, row):
    rows = split_rows(8, train=3)
    rows[place]["instance"]["references"] = [row]
    return rows


def mapped(*mappings, options=(RIVERS, RIVERS)):
    return [choice(f"{n}?", some, answer_mapping=one) for n, (one, some) in enumerate(zip(mappings, options))]


EMPTY = reference("", correct=True)
PERTURBED = {"perturbation": {"A": True}}
UNKNOWN_PERTURBATION = 'instance.perturbation: HELM knows no such perturbation: {"A": true}'
NO_PREFIX = (
    '1: adapter_spec.reference_prefix: reference_prefix "" holds no label (a letter or digit that stands alone)\n'
    '  hint: set adapter_spec.reference_prefix (for example "A. "), or give an answer_mapping'
)
NO_REFERENCE = (
    "{}: instance.references: missing, so there is nothing to compare an answer with\n"
    '  hint: write "references": [{{"output": {{"text": ...}}, "tags": ["correct"]}}]'
)
NO_SERIES = (
    '1: adapter_spec.reference_prefix: there is no series of 3 labels that begins with "{}"\n'
    "  hint: set adapter_spec.reference_prefix_characters to the labels, or give an answer_mapping"
)
NO_SPLIT = "1: adapter_spec.eval_splits: no row is of split valid, so there is nothing to evaluate\n  hint: splits of the rows: "
TWICE = "\n  hint: an answer could not be told right from wrong; change or remove one"

SAID = {
    "two results": ([changed(answered(state(), "mercury"))], NONE, ["2: result: contradicts request.result, which means the same\n  hint: keep one of them"]),
    "one result": ([changed(answered(state(), "mercury"), result=None)], NONE, []),
    "perturbations": ([state(**PERTURBED), state("2?", **PERTURBED)], NONE, [f"{line}: {UNKNOWN_PERTURBATION}" for line in (2, 3)]),
    "a perturbation": ([state(perturbation={"name": "identity", "robustness": True, "fairness": True, "computed_on": "original"})], NONE, []),
    "an empty demonstration": (without_answer(1, EMPTY), {"max_train_instances": 2}, [
        ("3: instance.references: 1 demonstration has an empty answer, and HELM cannot draw demonstrations where there is one\n"
        '  hint: write the answer, or "sample_train": false, which takes the first rows as they are')]),
    "too few with an answer": ([state(f"{n}?", "" if n < 6 else "x", id=n) for n in range(8)], {"max_train_instances": 3}, [
        ("2: instance.references: 6 demonstrations have an empty answer, and HELM cannot draw demonstrations where there is one\n"
        '  hint: write the answer, or "sample_train": false, which takes the first rows as they are')]),
    "none is shown": (without_answer(1, EMPTY), NONE, []),
    "none is drawn": (without_answer(1, EMPTY), {"max_train_instances": 2, "sample_train": False}, []),
    "splits": (split_rows(6), {**NONE, "eval_splits": ["dev"]}, [f"{NO_SPLIT}test"]),
    "splits beside train": (split_rows(6, train=2), {"max_train_instances": 2, "eval_splits": ["dev"]}, [f"{NO_SPLIT}test, train"]),
    "recorded splits": ([answered(row, "4") for row in split_rows(6)], {**NONE, "eval_splits": ["dev"]}, [f"{NO_SPLIT}test"]),
    "names of splits": ([state()], {**NONE, "eval_splits": ["tset", "train", "q"]}, [
        "1: adapter_spec.eval_splits[0]: unknown split \"tset\"\n  hint: did you mean 'test'?",
        "1: adapter_spec.eval_splits[1]: train rows are demonstrations and are not evaluated\n  hint: take it out",
        '1: adapter_spec.eval_splits[2]: unknown split "q"\n  hint: known: test, valid (validation, dev)']),
    "two splits": ([asked("a") | {"instance": {**state(split="train")["instance"], "references": [reference("a", correct=True), reference("b", split="dev")]}}, state()], NONE, [
        ('2: instance.references[1].split: split "dev" contradicts split "train" of the same row\n'
        "  hint: the instance and all its references must have one split")]),
    "too few rows": ([state(f"{n}?", id=n) for n in range(5)], {"max_train_instances": 5}, [
        ("1: request_states: no completions are recorded, so a model would be asked, and 5 rows are too few: 5 would be "
        "demonstrations, and at least one must be left to evaluate\n  hint: add rows, or lower adapter_spec.max_train_instances")]),
    "no references": ([state(), {"instance": {"input": {"text": "x"}}}, {"instance": {"input": {"text": "x"}, "references": None}}], NONE, list(map(NO_REFERENCE.format, (3, 4)))),
    "messages": ([asked(messages=[{"role": "user"}, {"content": "x", "role": 1}]), asked(messages="x")], {"method": "chat"}, [
        "2: instance.input.messages[0].content: missing",
        '2: instance.input.messages[1].role: expected a string, got 1\n  hint: write "1" in quotes',
        '3: instance.input.messages: expected a list, got "x"']),
    "chat without messages": ([state()], {"method": "chat"}, [
        '2: instance.input.messages: missing, and method chat sends nothing else\n  hint: give a list of {"role": ..., "content": ...}']),
    "messages without chat": ([asked(messages=MESSAGES), state()], {"method": "generation"}, [
        '2: instance.input.text: missing\n  hint: messages are sent by "method": "chat"']),
    "messages and texts": ([asked(messages=MESSAGES), state()], NONE, [
        '2: instance.input.text: missing, and other rows have it\n  hint: give every row a text, or set "method": "chat" and give every row messages']),
    "joint, two without options": ([*rivers(), state(), state()], JOINT, [
        '5: instance.references: method multiple_choice_joint needs two or more options, and 2 rows have fewer\n  hint: use "method": "generation"']),
    "joint, one without options": ([*rivers(), state()], JOINT, [
        '5: instance.references: method multiple_choice_joint needs two or more options, and one row has fewer\n  hint: use "method": "generation"']),
    "joint, an option without a label": (mapped({"A": 0, "B": 1}), JOINT, [(
        "2: instance.answer_mapping: method multiple_choice_joint shows every option with a label, and one has none\n"
        "  hint: map one label to each option")]),
    "joint, other labels": (mapped({"A": 0, "B": 1, "C": 2}, {"1": 0, "2": 1}, options=(RIVERS, RIVERS[:2])), JOINT, [
        ('3: instance: the rows\' labels differ: ["A", "B", "C"] and ["1", "2"]\n  hint: multiple_choice_joint needs one label '
        'sequence for all rows; use "method": "generation" and write the options into input.text')]),
    **{f"no prefix, {prefix} {method}": (rivers(), {"reference_prefix": prefix, "method": method}, [NO_PREFIX])
       for prefix in ("", None) for method in (None, "generation", "multiple_choice_joint")},
    **{f"text before the label: {prefix}": (rivers(), {**JOINT, "reference_prefix": prefix}, [
        (f'1: adapter_spec.reference_prefix: reference_prefix "{prefix}" cannot be rendered by HELM\'s joint adapter\n'
        '  hint: begin it with the label, for example "A. "')]) for prefix in ("Answer A. ", "Option A: ")},
    # No character of their kind follows.
    **{f"no series: {prefix}": (rivers(), {**NONE, "reference_prefix": prefix}, [NO_SERIES.format(prefix[0])]) for prefix in ("Ֆ. ", "ⅿ. ")},
    **{f"mapping to {expected[:20]}": (mapped(mapping), NONE, [f"2: instance.answer_mapping: {expected}"]) for mapping, expected in (
        ({"A": "Nile", "B": "Wolga"}, '"B" maps to "Wolga", which is none of the references\n  hint: did you mean \'Volga\'?'),
        ({"A": "Nile", "B": "1"}, '"B" maps to "1", which is none of the references\n  hint: every option must be one of the references; a position has no quotes'),
        ({"A": 1, "B": 3}, '"B" maps to option number 3, but there are 3 options\n  hint: positions count from 0'),
        ({"A": -1}, '"A" maps to option number -1, but there are 3 options\n  hint: positions count from 0'),
        ({" ": 0}, "an answer mapping has an empty label"),
        ({"A": 1, "B": 2}, "no label names a correct option, so no answer could be right\n  hint: map one label to each option"))},
    "HELM's mapping": ([choice("a?", RIVERS, output_mapping={"A": 1, "B": 3})], NONE, [
        '2: instance.output_mapping: "B" maps to option number 3, but there are 3 options\n  hint: positions count from 0']),
    "a position of no row": (rivers(), {**NONE, "output_mapping": {"A": 0, "B": 1, "C": 2, "D": 3}}, [
        "1: adapter_spec.answer_mapping.D: no row has an option number 3\n  hint: positions count from 0"]),
    "two mappings": ([choice("a?", RIVERS, answer_mapping={"A": 0}, output_mapping={"A": 1})], NONE, [
        "2: instance.answer_mapping: contradicts output_mapping, which means the same\n  hint: keep one of them"]),
    "two mappings of the file": (rivers(1), {**NONE, "answer_mapping": {"A": 0}, "output_mapping": {"A": 1}}, [
        '1: adapter_spec.output_mapping: {"A": 1} contradicts adapter_spec.answer_mapping {"A": 0}, which means the same\n  hint: keep one of them']),
    "the same right and wrong": ([choice("a?", ["Nile", "Volga", "Nile"])], NONE, [
        f'2: instance.references[2].output.text: two options read "Nile", and only one of them is correct{TWICE}']),
    "the same but for a space": ([choice("a?", ["Nile", "Nile "])], NONE, [
        f'2: instance.references[1].output.text: two options read "Nile", and only one of them is correct{TWICE}']),
    "the same and both wrong": ([choice("a?", ["Nile", "Volga", "Volga"])], NONE, []),
    "the same and wrong, but for a space": ([choice("a?", ["Nile", "Volga", "Volga "])], NONE, []),
    "too few labels": (rivers(1), {**NONE, "reference_prefix_characters": ["x"]}, [
        ("2: instance.references: the row has 3 options, and reference_prefix_characters has 1 labels\n"
        "  hint: give as many labels as the longest row has options")]),
    "likelihoods of one": ([metals(likelihoods=IRON["likelihoods"][:1])], NONE, [
        "2: likelihoods: there are 2 references, and likelihoods of 1\n  hint: give one for each reference, in their order"]),
    "likelihoods of others": ([metals(likelihoods=IRON["likelihoods"][::-1])], NONE, [
        '2: likelihoods[0].text: "mercury" is neither the text of reference 0, "iron", nor its label, "A"\n  hint: give one for each reference, in their order']),
    "likelihoods and another answer": ([answered(metals(), "B")], NONE, [
        ('2: likelihoods: the likeliest option is "A", and the completion is "B"\n'
        "  hint: leave the completion out, or give the label of the first of the likeliest options")]),
    "a likelihood without a number": ([metals(likelihoods=[{"text": "iron"}, {"text": "mercury", "logprob": "-1"}])], NONE, [
        "2: likelihoods[0].logprob: missing",
        '2: likelihoods[1].logprob: expected a number, got "-1"\n  hint: write the number without quotes']),
    "likelihoods without labels": ([metals(answer_mapping={"B": "mercury"})], NONE, [
        "2: likelihoods: likelihoods compare options, and not every option of the row has a label"]),
    "likelihoods and texts": ([metals(), answered(choice("Which?", ["tin", "zinc"], id="c"), "A")], NONE, [
        ("3: likelihoods: missing in 1 row with a completion, and other rows have them\n"
        "  hint: put the rows that were asked for a text into a file of their own")]),
    "an infinite likelihood": ([metals(likelihoods=[{"text": "iron", "logprob": -1}, {"text": "mercury", "logprob": float("-inf")}])], NONE, [
        "2: likelihoods[1].logprob: expected a number, got null\n  hint: NaN and infinities are read as null"]),
    "likelihoods of another method": ([metals()], JOINT, [
        ("2: likelihoods: rows with likelihoods are rows of method generation, and the method is multiple_choice_joint\n"
        '  hint: use "method": "generation"')]),
    # A completion without a text is no wrong answer
    **{f"{what} {'beside' if beside else 'inside'} {keys}": ([answered(state("Always there?"), "yes"), {**state(), **(beside and {"result": result} or {"request": {"result": result}})}], NONE, [(
        f"3: {'' if beside else 'request.'}result.completions[1].text: {what}, so there is no answer to score; the completion has {keys}\n"
        '  hint: an empty answer is "text": "", a request that failed has "success": false')])
       for beside in (False, True) for completion, what, keys in (({"output": "a", "logprob": -1}, "missing", '"logprob", "output"'), ({}, "missing", "no key at all"), ({"text": None}, "null", '"text"'))
       for result in [{"success": True, "completions": [{"text": "x"}, completion]}]},
    # What HELM's stats would fail at
    **{said: ([answered(state(), "a", completions=[{"text": "a", **completion}], **result)], NONE, [f"2: request.result.{said}"]) for result, completion, said in (
        ({}, {"finish_reason": {}}, "completions[0].finish_reason.reason: missing"),
        ({}, {"finish_reason": {"reason": None}}, "completions[0].finish_reason.reason: expected a string, got null"),
        ({}, {"logprob": -1e200}, "completions[0].logprob: expected a number >= -1e+100, got -1e+200"),
        ({}, {"tokens": [{"text": "a", "logprob": 1e308}]}, "completions[0].tokens[0].logprob: expected a number <= 1e+100, got 1e+308"),
        ({"request_time": 1e308}, {}, "request_time: expected a number <= 1e+100, got 1e+308"),
        ({"batch_size": 0, "batch_request_time": 1.0}, {}, "batch_size: expected a whole number >= 1, got 0"))},
}  # fmt: skip


@pytest.mark.parametrize("name", SAID)
def test_what_is_said_of_a_file(tmp_path, name):
    rows, spec, expected = SAID[name]
    assert errors(write(tmp_path / "x.jsonl", rows, spec)) == expected


@pytest.mark.parametrize(("spec", "scoring", "options", "expected"), [
    (NONE, {"metrics": ["exact_macth"]}, {}, "scoring.metrics: unknown metric \"exact_macth\"\n  hint: did you mean 'exact_match'"),
    (NONE, {"metrics": ["list_f1"]}, {}, 'scoring.metrics: unknown metric "list_f1"\n  hint: list_f1 is for "output_format": "list"'),
    (NONE, {"metrics": ["pass"]}, {}, 'scoring.metrics: "pass" cannot be measured here: it needs test cases'),
    (NONE, {}, {"metrics": ["pass"]}, 'metrics: "pass" cannot be measured here: it needs test cases'),
    (NONE, {}, {"metrics": ["acc_norm"]}, 'metrics: "acc_norm" cannot be measured here'),
    (NONE, {}, {"main_metric": "acc"}, 'main_metric: "acc" is none of the metrics'),
    (NONE, {}, {"output_format": "lists"}, 'output_format: expected "string" or "list", got "lists"'),
    (NONE, {}, {"method": "genration"}, "method: unknown method \"genration\"\n  hint: did you mean 'generation'?"),
    (NONE, {"metrics": []}, {}, "scoring.metrics: the list of metrics is empty\n  hint: leave the key out for the defaults"),
    (NONE, {"main_metric": "f1_scor"}, {}, "scoring.main_metric: \"f1_scor\" is none of the metrics that are measured\n  hint: did you mean 'f1_score'"),
    (NONE, {"metrics": ["f1_score"], "main_metric": "zzz"}, {}, 'scoring.main_metric: "zzz" is none of the metrics that are measured\n  hint: measured: f1_score'),
    (NONE, {"extract": "("}, {}, 'scoring.extract: "(" is no regular expression: missing ), unterminated subpattern at position 0'),
    (NONE, {"separator": ","}, {}, 'scoring.separator: predictions are no lists\n  hint: "output_format": "list" makes them'),
    (LIST, {"extract_all": "("}, {}, 'scoring.extract_all: "(" is no regular expression'),
    (LIST, {"separator": ""}, {}, "scoring.separator: expected a string of length >= 1"),
    (LIST, {"extract_all": "(.)(.)"}, {}, "scoring.extract_all: each segment is a tuple of 2, and references are split at the separator alone"),
])  # fmt: skip
def test_what_is_said_of_scoring(tmp_path, spec, scoring, options, expected):
    (error,) = errors(write(tmp_path / "x.jsonl", [state()], spec, scoring=scoring), **options)
    assert error.startswith(f"1: {expected}")
