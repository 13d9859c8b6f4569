"""What becomes of files that are right: one table of rows, header, arguments, and what is expected of the dataset."""

from collections import Counter
from dataclasses import fields

import pytest
from helm.benchmark.adaptation.adapter_spec import AdapterSpec, Substitution
from helm.benchmark.augmentations.typos_perturbation import TyposPerturbation
from request_states_files import answered, choice, problems, reference, split_rows, state, write

from helm_ext.evalset import Scoring, row_extra
from helm_ext.formats.request_states import load

RIVERS = ["Nile", "Volga", "Rhine"]
NONE = {"max_train_instances": 0}
TWO = {"max_train_instances": 2}
LINES = {"stop_sequences": ["\n", "###"], "instance_prefix": "\n\n", "input_prefix": "Q: ", **NONE}
FRAMED = {"input_prefix": "Q: ", "output_prefix": "A: "}


def rivers(count=3, **instance):
    return [choice(f"Where is {n}?", RIVERS, n % 3, id=n, split="test", **instance) for n in range(count)]


def rows_of(count, split=None):
    return [{"instance": {**row["instance"], "split": split}} for row in split_rows(count)]


def known(count, split=None):
    return [answered(row, "4") for row in rows_of(count, split)]


def framed(*texts):
    return [state("Demo?", split="train", id="d"), *(state(text, split="test", id=n) for n, text in enumerate(texts))]


def reasoned(make, *more, **given):
    return [make("a?", *more, split="train", chain_of_thought="Why.", **given), make("b?", *more, split="test")]


def under_references(split, *splits):
    """Two rows, the second with its split at references."""
    references = [reference("abc"[n], correct=n == 0) | {"split": one} for n, one in enumerate(splits)]
    return [state(split="train"), state("Other?", references=references, **({"split": split} if split else {}))]


def facts(path, **options):
    """All that is known of a dataset, and under `said CODE` its warnings without the file's name."""
    evalset = load(path, **options)
    extras = list(map(row_extra, evalset.instances))
    found = {f"said {one.code}": str(one).replace(f"{path}:", "", 1) for one in problems(path, **options)}
    for name in ("labels", "decoding", "id", "data", "recorded", "likelihoods"):
        found[name] = [extra.get(name) for extra in extras]
    return found | vars(evalset.adapter_spec) | vars(evalset.scoring) | {
        "spec": evalset.adapter_spec, "scoring": evalset.scoring, "counts": evalset.counts,
        "splits": Counter(one.split for one in evalset.instances), "ids": [one.id for one in evalset.instances],
        "golds": [[gold.output.text for gold in one.references] for one in evalset.instances],
        "thoughts": [(one.extra_data or {}).get("chain_of_thought") for one in evalset.instances],
        "perturbations": [one.perturbation for one in evalset.instances],
        "messages": [one.input.messages for one in evalset.instances],
        "shown": {one.id for one in evalset.instances if one.split == "train"},
    }  # fmt: skip


PASSED = {
    "method": "generation", "global_prefix": "[", "global_suffix": "]", "instructions": "Answer.", "input_prefix": "Q: ",
    "input_suffix": "\n\n", "reference_prefix": "- ", "reference_suffix": ";", "chain_of_thought_prefix": "Because ",
    "chain_of_thought_suffix": "So ", "output_prefix": "A: ", "output_suffix": ".", "instance_prefix": "#",
    "max_train_instances": 3, "num_train_trials": 2, "num_trials": 2, "sample_train": False, "max_tokens": 7,
    "stop_sequences": ["\n"], "multi_label": True, "eval_splits": ["test"], "output_mapping_pattern": "(.)",
    "reference_prefix_characters": ["x", "y"], "random": "r", "num_outputs": 4, "temperature": 0.5,
}  # fmt: skip
EMPTY = dict.fromkeys(
    ("instructions", "global_prefix", "global_suffix", "input_prefix", "input_suffix", "output_prefix", "output_suffix",
     "instance_prefix", "chain_of_thought_suffix")
)  # fmt: skip
HELMS = {field.name: getattr(AdapterSpec(), field.name) for field in fields(AdapterSpec)} | {
    "method": "generation", "model": "a/b", "model_deployment": "a/b", "image_generation_parameters": {},
    "reeval_parameters": {},
}  # fmt: skip
PARAMETERS = {
    "temperature": 0.7,
    "top_p": 0.9,
    "top_k": 40,
    "frequency_penalty": 0.1,
    "presence_penalty": 0,
    "num_outputs": 3,
    "seed": 7,
}
DECODING = {"top_p": 0.9, "top_k_per_token": 40, "frequency_penalty": 0.1, "presence_penalty": 0}
BOTH = [state("?", split="test"), state(split="train")]
PAIRS = [choice("a?", ["Nile", "Volga"]), choice("b?", ["Po", "Rhine"], correct=1)]
MAPPING = {"A": 0, "B": 1, "C": 2}
NAMED = {"A": "Nile", "B": "Volga", "C": "Rhine"}
ORDERS = [{"A": a, "B": b, "C": c} for a, b, c in ([2, 1, 0], [1, 0, 2], [0, 1, 2])]
NAMES = "normalized_exact_match exact_match quasi_exact_match prefix_exact_match quasi_prefix_exact_match f1_score"
SHORT = Scoring(metrics=(*NAMES.split(),), main_metric="normalized_exact_match")
LISTED = Scoring(
    metrics=("exact_match", "set_exact_match", "list_f1"), main_metric="set_exact_match", output_format="list"
)
GIVEN = {"main_metric": "rouge_l", "extract": "is (.*)", "strip": True, "lower": True}
OF_LISTS = {"separator": "\n", "extract_all": "<(.*?)>", "extract_references": True, "drop_duplicates": True}
MIXED = [*rows_of(4, "dev"), *(state(f"Test {n}?", split="test", id=f"t{n}") for n in range(3))]
ODD_IDS = ["a", "a", 7, "", None, "a-2", "a", "7", "id3"]
TYPOS = {"name": "typos", "robustness": True, "prob": 0.1}
OTHERS = [
    choice("a?", RIVERS, answer_mapping=MAPPING),
    choice("b?", RIVERS, answer_mapping={"1": 0, "2": 1, "3": 2}),
]
TRIED = [
    answered(state("1?"), "x"),
    state("2?"),
    {**state("3?"), "request": {"result": {"success": False}}},
    answered(state("4?"), "x"),
]


REFUSED = "a recorded run refuses the file\n  hint: missing=skip scores the rest and reports how many were left out"
TOKEN = {"text": " B", "logprob": -0.5}
RESULT = {
    "success": True,
    "completions": [{**TOKEN, "tokens": [TOKEN]}, {"text": ""}],
    "cached": False,
    "request_time": 0.25,
    "request_datetime": 1700000000,
}
GOLDS = [reference("mercury", correct=True), reference("Hg", correct=True, answer=2)]
OWN = {"instance": {"input": {"text": "?", "lang": "en"}, "references": GOLDS, "page_rank": 3}, "program": ["a"]}
TALK = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]


def tried(*splits):
    """Rows that were answered, not run, failed, answered."""
    return [{**row, "instance": {**row["instance"], "split": split}} for row, split in zip(TRIED, splits)]


TIN = {"tin": -1.0, "zinc": -2.0}
CHOSE = {"status": "ok", "states": [{"result": {"success": True, "completions": [{"text": "A"}]}}]}


def likely(logprobs, correct=0, options=(), tags=()):
    """A row whose options have these log-probabilities; `tags` of the last option."""
    row = choice("Which?", list(options) or list(logprobs), correct)
    row["instance"]["references"][-1]["tags"] = list(tags) or row["instance"]["references"][-1]["tags"]
    return {**row, "likelihoods": [{"text": text, "logprob": logprob} for text, logprob in logprobs.items()]}


def counted(rows, train, evaluated, recorded, not_run=None, failed=None, **more):
    found = {
        "rows": rows,
        "train": train,
        "eval": evaluated,
        "recorded": recorded,
        "not_run": not_run,
        "failed": failed,
    }
    return {"counts": {name: number for name, number in found.items() if number is not None} | more}


BECOMES = {
    # adapter_spec: absent means HELM's default for what the method uses, null is empty
    "defaults": (BOTH, {}, {}, {"spec": AdapterSpec(method="generation", reference_prefix="", reference_suffix="", chain_of_thought_suffix="", num_outputs=1, temperature=0.0)}),
    "defaults of options": (rivers(), NONE, {}, {"spec": AdapterSpec(
        method="multiple_choice_joint", chain_of_thought_suffix="", num_outputs=1, temperature=0.0, reference_prefix_characters=["A", "B", "C"], max_train_instances=0)}),
    "null": (BOTH, EMPTY, {}, dict.fromkeys(EMPTY, "")),
    "all keys": (BOTH, {**PASSED, "substitutions": [{"source": "a", "target": "b"}]}, {}, {**PASSED, "substitutions": [Substitution("a", "b")]}),
    "HELM's own": (BOTH, HELMS, {}, {"model": "", "model_deployment": "", "max_eval_instances": None, "num_outputs": 5, "temperature": 1}),
    # decoding parameters; HELM's joint adapter asks for one completion, whatever num_outputs is
    "decoding": (split_rows(4, train=2), {"decoding_parameters": PARAMETERS}, {}, {"temperature": 0.7, "num_outputs": 3, "random": "7", "decoding": [None, None, DECODING, DECODING]}),
    "decoding twice": (BOTH, {"temperature": 1, "decoding_parameters": {"temperature": 1.0, "seed": 3}, "random": "3"}, {}, {"temperature": 1.0, "random": "3"}),
    "joint outputs": (PAIRS, {**NONE, "num_outputs": 3}, {}, {"method": "multiple_choice_joint", "num_outputs": 3, "decoding": [{"num_completions": 3}] * 2}),
    "joint outputs and top_p": (PAIRS, {**NONE, "decoding_parameters": {"num_outputs": 3, "top_p": 0.5}}, {}, {"decoding": [{"num_completions": 3, "top_p": 0.5}] * 2}),
    "outputs": (PAIRS, {**NONE, "num_outputs": 3, "method": "generation"}, {}, {"decoding": [None] * 2}),
    "one output": (PAIRS, {**NONE, "num_outputs": 1}, {}, {"decoding": [None] * 2}),
    "HELM's joint outputs": ([{**PAIRS[0], "train_trial_index": 0, "output_mapping": {"A": "Nile", "B": "Volga"}}], {**NONE, "num_outputs": 5, "method": "multiple_choice_joint"}, {}, {"decoding": [None]}),
    # The method
    "options": (rivers(), NONE, {}, {"method": "multiple_choice_joint"}),
    "one row without": ([*rivers(), state(id="s")], NONE, {}, {"method": "generation"}),
    "one row shows them": ([*rivers(), choice("A. Nile\nB. Volga\nC. Rhine", RIVERS, id="x")], NONE, {}, {"method": "multiple_choice_joint"}),
    "the file's method": (rivers(), {**NONE, "method": "generation"}, {}, {"method": "generation"}),
    "the argument's method": (rivers(), {**NONE, "method": "generation"}, {"method": "multiple_choice_joint"}, {"method": "multiple_choice_joint"}),
    **{name: (rivers(), {**NONE, "method": name, "reference_prefix": None}, {}, {"method": name, "labels": [None] * 3, "scoring": Scoring(metrics=("exact_match",), main_metric="exact_match")})
       for name in ("multiple_choice_separate_original", "multiple_choice_separate_calibrated")},
    "labels that differ": (OTHERS, NONE, {}, {"method": "generation", "said options-not-shown": (
        '2: instance.input.text: method generation is used: the rows\' labels differ: ["A", "B", "C"] and ["1", "2", "3"]\n'
        "  hint: a model that is asked live is not shown the options: write them into input.text")}),
    "an option without a label": ([choice("a?", RIVERS, answer_mapping={"A": 0, "B": 1})], NONE, {}, {"method": "generation", "said options-not-shown": (
        "2: instance: method generation is used: not every option has a label\n"
        "  hint: a model that is asked live is not shown the options: write them into input.text")}),
    "no prefix, and a mapping": (rivers(answer_mapping=MAPPING), {**NONE, "reference_prefix": None}, {}, {"method": "generation", "labels": [NAMED] * 3}),
    "text before the label": (rivers(), {**NONE, "reference_prefix": "Answer A. "}, {}, {"method": "generation", "labels": [NAMED] * 3}),
    # Mappings: both names, all places, both forms; the nearest wins
    **{f"{key} {place} {mapping}": ([choice("a?", RIVERS, **({key: mapping} if place == "instance" else {})) | ({key: mapping} if place == "state" else {})],
                                    {**NONE, **({key: mapping} if place == "file" else {})}, {}, {"labels": [NAMED]})
       for key in ("answer_mapping", "output_mapping") for place in ("state", "instance", "file") for mapping in (MAPPING, NAMED, {"A": " Nile\n", "B": "Volga", "C": 2})},
    "the state's mapping": ([{**choice("a?", RIVERS, answer_mapping=ORDERS[1]), "output_mapping": ORDERS[0]}], {**NONE, "method": "generation", "answer_mapping": ORDERS[2]}, {}, {"labels": [{"A": "Rhine", "B": "Volga", "C": "Nile"}]}),
    "the instance's mapping": ([choice("a?", RIVERS, answer_mapping=ORDERS[1])], {**NONE, "method": "generation", "answer_mapping": ORDERS[2]}, {}, {"labels": [{"A": "Volga", "B": "Nile", "C": "Rhine"}]}),
    "a mapping longer than a row": ([choice("a?", RIVERS), choice("b?", RIVERS[:2])], {**NONE, "answer_mapping": MAPPING}, {}, {"labels": [NAMED, {"A": "Nile", "B": "Volga"}]}),
    "a mapping makes options": ([{**answered(state("a?", "Nile"), "A"), "answer_mapping": {"A": "Nile"}}], NONE, {}, {"labels": [{"A": "Nile"}], "method": "generation"}),
    # Chains of thought
    "thoughts": (reasoned(state), {"max_train_instances": 1, "chain_of_thought_prefix": "Think: ", "chain_of_thought_suffix": "\nSo: "}, {},
                 {"golds": [["Think: Why.\nSo: mercury"], ["mercury"]], "chain_of_thought_suffix": "\nSo: ", "thoughts": ["Why.", None]}),
    "a thought of several golds": (reasoned(state, references=[reference(x, correct=True) for x in "xyz"]), {"max_train_instances": 1}, {}, {"golds": [["Why.\nx", "y", "z"], ["mercury"]]}),
    "thoughts of options": (reasoned(choice, RIVERS), {"max_train_instances": 1, "chain_of_thought_prefix": "Think: "}, {}, {
        "method": "multiple_choice_joint_chain_of_thought", "chain_of_thought_prefix": "Think: ", "thoughts": ["Why.", None], "golds": [RIVERS] * 2}),
    "thoughts, and an argument": (reasoned(choice, RIVERS), {"max_train_instances": 1}, {"method": "multiple_choice_joint"}, {"method": "multiple_choice_joint"}),
    "thoughts of rows that are drawn": ([state("?", id=n, chain_of_thought="Why.") for n in range(2)], {"max_train_instances": 1}, {}, {
        "golds": [["Why.\nmercury"], ["mercury"]], "splits": {"train": 1, "test": 1}}),
    "options in the text": ([choice("Which? A. Nile B. Volga", ["Nile", "Volga"])], NONE, {}, {"method": "generation"}),
    # Prompts that double
    "doubled": (framed("Q: Who?\nA: ", "Q: Why?"), {**FRAMED, "max_train_instances": 1}, {}, {"input_prefix": "Q: ", "said doubled-prompt": (
        "3: instance.input.text: 1 of 3 inputs end with the output_prefix already, so the prompt has it twice\n"
        '  hint: set adapter_spec.output_prefix to "", or take it out of the texts; if the texts hold worked examples, set '
        "max_train_instances to 0: then they are sent as they are")}),
    "doubled once": (framed("Q: Who?"), {**FRAMED, "max_train_instances": 1}, {}, {"said doubled-prompt": (
        "3: instance.input.text: 1 of 2 inputs begin with the input_prefix already, so the prompt has it twice\n"
        '  hint: set adapter_spec.input_prefix to "", or take it out of the texts; if the texts hold worked examples, set '
        "max_train_instances to 0: then they are sent as they are")}),
    "as it is": ([state(f"Q: 1+{n}?\nA: {n}\nQ: 2+{n}?\nA: ", id=n) for n in range(2)], {**FRAMED, **NONE}, {}, {"input_prefix": "", "input_suffix": "", "output_prefix": "", "said doubled-prompt": None}),
    "begins as it is": ([state("Q: Who?"), state("Q: Why?")], {**FRAMED, **NONE}, {}, {"input_prefix": "", "input_suffix": "\n", "output_prefix": "A: "}),
    "ends as it is": ([state("Who?\nA: ")], {**FRAMED, **NONE}, {}, {"input_prefix": "Q: ", "input_suffix": "", "output_prefix": ""}),
    # Scoring
    "scoring": ([state()], NONE, {}, {"scoring": SHORT}),
    "scoring of options": (rivers(), NONE, {}, {"scoring": Scoring(metrics=("exact_match", "quasi_exact_match"), main_metric="exact_match", next_question=("\nInput: ",))}),
    "scoring of options that are shown": ([choice("A. Nile\nB. Volga\nC. Rhine", RIVERS)], NONE, {}, {"main_metric": "exact_match"}),
    "scoring of lists": ([state()], {**NONE, "ouput_format": "list"}, {}, {"scoring": LISTED}),
    "scoring as lists": ([state()], NONE, {"output_format": "list"}, {"scoring": LISTED}),
    "separated": ([state()], NONE, {"output_format": "list", "separator": "|"}, {"separator": "|"}),
    "the file's scoring": ([state()], NONE, {"top": {"metrics": ["rouge_l", "exact_match"], **GIVEN}}, {"scoring": Scoring(metrics=("rouge_l", "exact_match"), **GIVEN)}),
    "the arguments' scoring": ([state()], NONE, {"top": {"metrics": ["rouge_l"], **GIVEN, "main_metric": None, "lower": None}, "metrics": ["f1_score"], "extract": "so (.*)", "strip": False, "lower": True},
                               {"scoring": Scoring(metrics=("f1_score",), main_metric="f1_score", extract="so (.*)", strip=False, lower=True)}),
    "the best of several": ([state()], {**NONE, "num_outputs": 3}, {"main_metric": "f1_score@3"}, {"main_metric": "f1_score@3"}),
    "the keys of lists": ([state()], {**NONE, "output_format": "list"}, {"top": OF_LISTS}, OF_LISTS),
    "the next question": (rivers(), LINES, {}, {"next_question": ("\n\nQ: ", "###")}),
    "a next question without words": (rivers(), {**LINES, "input_prefix": " "}, {}, {"next_question": ("###",)}),
    "no next question": ([state()], LINES, {}, {"next_question": ()}),
    "more behind a stop": ([state("0?", "Ob <stop> or Irtysh"), state("1?", "Po")], {**NONE, "stop_sequences": ["<stop>", "\n"]}, {}, {"cut_at": (), "said stop-in-reference": (
        "2: instance.references: 1 row has a correct reference with a stop sequence in it, which a live model cannot go beyond\n"
        "  hint: cut_at_stop=true cuts references and predictions there")}),
    "cut": ([state("0?", "Ob <stop> or Irtysh")], {**NONE, "stop_sequences": ["<stop>", "\n"]}, {"top": {"cut_at_stop": True}}, {"cut_at": ("<stop>", "\n")}),
    "not cut": ([state("0?", "Po<stop>")], {**NONE, "stop_sequences": ["<stop>", "\n"]}, {"cut_at_stop": False}, {"cut_at": ()}),
    # Splits, and which are evaluated
    **{f"split {given}": ([state(split="train"), state("Other?", split=given)], TWO, {}, {"splits": {"train": 1, split: 1}})
       for given, split in (("test", "test"), ("Test ", "test"), *((name, "valid") for name in ("valid", "validation", "dev", "DEV")))},
    **{f"splits {places}": (under_references(*places), TWO, {}, {"splits": {"train": 1, "test": 1}}) for places in ((None, "test"), ("test", "test"), (None, "test", None, "test"))},
    "some splits": (MIXED, {**NONE, "eval_splits": ["Dev", "valid"]}, {}, {"eval_splits": ["valid"], "splits": {"valid": 4}, **counted(7, 0, 4, 0),
        "said eval-splits": "1: adapter_spec.eval_splits: 3 rows are of other splits and not evaluated"}),
    **{f"scores of test alone: {splits}": (rows, {**NONE, **({"eval_splits": splits} if splits else {})}, {}, {"said several-splits": said}) for rows, splits, said in (
        (MIXED, None, ("1: request_states: 3 rows are of split test and 4 of valid (dev, validation): scores are shown of test alone\n"
                      '  hint: one split for all rows makes one score of them; adapter_spec.eval_splits: ["valid"] scores those alone')),
        (MIXED, ["test"], None), (MIXED, ["valid"], None), (known(2, "dev"), None, None), (split_rows(4, train=2), None, None))},
    "others are shown": (MIXED, {"max_train_instances": 4, "eval_splits": ["valid"]}, {}, {"splits": {"valid": 3, "train": 4}, **counted(7, 4, 3, 0)}),
    "one is left": (MIXED, {"max_train_instances": 6, "eval_splits": ["valid"]}, {}, {"splits": {"valid": 1, "train": 6}}),
    "recorded splits": ([*known(3, "dev"), *MIXED[4:6]], {**NONE, "eval_splits": ["valid"]}, {}, {"splits": {"valid": 3}, **counted(5, 0, 3, 3, 0, 0), "said not-run": None}),
    "other splits are recorded": ([*known(3, "dev"), *MIXED[4:6]], {**NONE, "eval_splits": ["test"]}, {}, counted(5, 0, 2, 0)),
    "train alone": (known(3, "train"), {"max_train_instances": 1, "eval_splits": ["test"]}, {}, {"splits": {"test": 3, "train": 1}, **counted(3, 1, 3, 3, 0, 0)}),
    # What is drawn
    **{f"drawn of {split}": (rows_of(120, split), {**TWO, "num_train_trials": 3}, {}, {"splits": {"train": 6, "valid" if split == "dev" else "test": 114}, **counted(120, 6, 114, 0), "said few-rows": None})
       for split in (None, "test", "train", "dev")},
    "few rows": (rows_of(104), {"max_train_instances": 5}, {}, {
        "said not-differentiated": "1: request_states: train and test are not differentiated (splits given: none): 5 demonstrations are drawn with seed 0, the rest is evaluated",
        "said few-rows": "1: request_states: 104 rows, fewer than the 5 demonstrations + 100 test examples that the format asks for"}),
    "enough rows": (rows_of(105), {"max_train_instances": 5}, {}, {"said few-rows": None}),
    "just enough rows": (rows_of(6), {"max_train_instances": 5}, {}, {"splits": {"train": 5, "test": 1}}),
    "capped": (split_rows(10, train=4), {**TWO, "max_eval_instances": 3}, {}, {"splits": {"train": 4, "test": 3}, "max_eval_instances": None, **counted(10, 4, 3, 0, capped=3)}),
    # Ids
    "odd ids": ([*(state(f"Question {n}?", id=name) for n, name in enumerate(ODD_IDS)), state("No id?")], NONE, {}, {
        "ids": ["a", "a-3", "7", "id3-2", "id4", "a-2", "a-4", "7-2", "id3", "id9"], "id": [None, "a", 7, "", None, None, "a", "7", None, None],
        "said ids": "3: instance.id: 6 rows have no id, or that of an earlier row: told apart by -2, -3, ... behind it", **counted(10, 0, 10, 0, renamed_ids=6)}),
    "perturbed": ([state(id="a"), state("Wihch metal?", id="a", perturbation=TYPOS), state("Another?", id="a")], NONE, {}, {
        "ids": ["a", "a", "a-2"], "perturbations": [None, TyposPerturbation.Description(name="typos", robustness=True, prob=0.1), None]}),
    # What is recorded of rows that are evaluated
    "recorded": (tried("train", None, "valid", "test"), NONE, {}, counted(4, 1, 3, 1, 1, 1, renamed_ids=4)),
    "recorded of train alone": (tried("train", "train"), NONE, {}, counted(2, 0, 2, 1, 1, 0, renamed_ids=2)),
    "recorded of some splits": (tried("test", None, "valid", None), {**NONE, "eval_splits": ["test"]}, {}, counted(4, 0, 3, 2, 1, 0, renamed_ids=4)),
    "some were not run": ([answered(state("1"), "x"), state("2"), {**state("3"), "request": {}}, answered(state("4"), "x", success=False)], NONE, {}, {
        **counted(4, 0, 4, 1, 2, 1, renamed_ids=4), "said not-run": f"3: request: 2 rows were not run of 4; {REFUSED}", "said failed": f"5: request: 1 row failed of 4; {REFUSED}"}),
    **{f"placeholder {completion}": ([answered(state("1"), "x"), {**state(), "request": {"result": {"completions": [completion]}}}], NONE, {}, counted(2, 0, 2, 1, 1, 0, renamed_ids=2))
       for completion in ({"output": "a", "logprob": -1}, {}, {"text": None})},
    "all that is recorded": ([{**state(), "request": {"prompt": "Q", "result": RESULT, "model": "a/b"}}], NONE, {}, {
        "recorded": [{"status": "ok", "states": [{"result": RESULT, "request": {"prompt": "Q", "model": "a/b"}}]}]}),
    "numbers that are none": ([answered(state(), "a", request_time=float("nan"), batch_request_time=float("inf"))], NONE, {}, {
        "said not-finite": "2: 2 numbers in 1 row are NaN or infinite; treated as not recorded\n  hint: write null"}),
    "one request, and one an option is needed": ([answered(choice("a?", ["Nile", "Volga", "Po"]), "A"), choice("b?", ["Nile", "Ob"])], {**NONE, "method": "multiple_choice_separate_original"}, {}, {
        "recorded": [{"status": "not_run", "states": [], "requests": [0, 3]}, {"status": "not_run", "states": []}], "said incomplete-recording": (
            "2: request: 1 row has completions that the method cannot be scored with: it needs one request per option, with log-probabilities of tokens that end "
            "with it; here 0 of 3 are recorded\n  hint: completions that name an option are scored with method=generation or method=multiple_choice_joint")}),
    "one option": ([{**choice("a?", ["Nile"]), "likelihoods": [{"text": "Nile", "logprob": -1.5, "greedy": True}]}], NONE, {}, {"metrics": ("acc",)}),
    "options that read the same, named by their labels": ([likely({"A": -2.0, "B": -2.0}, 1, ["tin", "tin"])], NONE, {}, {"recorded": [CHOSE]}),
    "several right options": ([likely({"tin": -1, "zinc": -2}, tags=["correct"])], NONE, {}, {"metrics": ("acc", "acc_norm", "acc_bytes")}),
    "likelihoods of some": ([{**likely(TIN), "request": {"result": {"success": False}}}, likely(TIN), choice("?", ["tin", "zinc"])], NONE, {}, {
        "recorded": [{"status": "failed", "states": []}, CHOSE, {"status": "not_run", "states": []}],
        "likelihoods": [None, likely(TIN)["likelihoods"], None]}),
    # Keys of their own, conversations
    "keys of their own": ([OWN], NONE, {}, {"data": [{"state": {"program": ["a"]}, "instance": {"page_rank": 3}, "input": {"lang": "en"}, "references": {"1": {"answer": 2}}}]}),
    "messages beside empty texts, as HELM writes them": ([{"instance": {"input": {"text": "", "messages": TALK}, "references": [reference("Hello", correct=True)]}}], NONE, {}, {
        "method": "chat", "messages": [TALK]}),
    "chats have no demonstrations": ([{"instance": {"input": {"messages": TALK}, "references": [reference("Hello", correct=True)]}}] * 2, {"max_train_instances": 1}, {}, {
        "method": "chat", "splits": {"test": 2}, "max_train_instances": 0}),
    "chat": ([{"instance": {"input": {"messages": TALK}, "references": [reference("Hello", correct=True)]}}], {"method": "chat"}, {}, {"messages": [TALK], "spec": AdapterSpec(
        method="chat", instructions="", input_prefix="", input_suffix="", reference_prefix="", reference_suffix="", output_prefix="", output_suffix="", instance_prefix="",
        chain_of_thought_suffix="", max_train_instances=0, num_outputs=1, temperature=0.0)}),
    # What is odd about answers
    "segments": ([state("?", references=[reference(x, correct=True) for x in ("red", "blue")])], {**NONE, "output_format": "list"}, {}, {"said separate-segments": (
        '2: instance.references: 1 row has several correct references, none with ";": each alone is a right list\n'
        '  hint: join the segments with ";" in one reference, or set multi_label')}),
    **{f"no segments: {golds} {spec}": ([state("?", references=[reference(x, correct=True) for x in golds])], {**NONE, **spec}, {}, {"said separate-segments": None}) for golds, spec in (
        (("red", "blue"), {}), (("red", "blue"), {"output_format": "list", "multi_label": True}), (("red; blue", "rouge; bleu"), {"output_format": "list"}), (("red",), {"output_format": "list"}))},
    "empty answers": ([state(f"{n}?", "" if n in (1, 2) else "x", id=n) for n in range(4)], NONE, {}, {
        "said empty-answer": "3: instance.references: 2 rows have an empty correct reference: only an empty reply is equal to it"}),
    "empty demonstrations of recorded rows": ([state("0?", "", id=0, split="train"), *known(3, "test")], TWO, {}, {"said empty-demonstration": (
        "2: instance.references: 1 demonstration has an empty answer, and HELM cannot draw demonstrations where there is one\n"
        '  hint: write the answer, or "sample_train": false, which takes the first rows as they are')}),
    "empty answers are drawn last": ([state(f"{n}?", "" if n < 6 else "x", id=n) for n in range(8)], TWO, {}, {"shown": {"6", "7"}, "said empty-demonstration": None}),
}  # fmt: skip


@pytest.mark.parametrize("name", BECOMES)
def test_what_becomes_of_a_file(tmp_path, name):
    rows, spec, options, expected = BECOMES[name]
    options = dict(options)
    found = facts(write(tmp_path / "x.jsonl", rows, spec, scoring=options.pop("top", None)), **options)
    assert {fact: found.get(fact) for fact in expected} == expected
