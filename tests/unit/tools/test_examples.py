"""The example files: made by `tools/make_examples.py`, and what is true of them, as files and as datasets."""

from __future__ import annotations

import gzip
import json
import re
import string
import subprocess
from collections import Counter
from dataclasses import asdict
from fractions import Fraction
from itertools import permutations
from pathlib import Path

import pytest

from helm_ext import parsing
from helm_ext.evalset import row_extra
from helm_ext.formats import request_states

ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / "adapter_specs"
BY_MODEL = json.loads((ROOT / "tests/data/example_scores.json").read_text(encoding="utf-8"))
SCORES = BY_MODEL["first-model"]

# Counted by hand from the plans in tools/example_data: (recorded rows, {stat: rows that earn it}).
COUNTED = {
    "short_answer_qa": (
        120,
        {
            "normalized_exact_match": 84 + 4 + 4 + 4,
            "exact_match": 84,
            "quasi_exact_match": 84 + 4 + 4 + 4,
            "prefix_exact_match": 84 + 4,
            "quasi_prefix_exact_match": 84 + 4 + 4 + 4,
            "f1_score": 84 + 4 + 4 + 4,
        },
    ),
    "multiple_choice": (120, {"exact_match": 78, "quasi_exact_match": 78, "unmapped": 4 + 2 + 2}),
    "labels_stems": (110, {"exact_match": 77, "quasi_exact_match": 77, "unmapped": 3 + 2 + 1}),
    "chain_of_thought": (100, {"exact_match": 70 + 6 + 5, "quasi_exact_match": 70 + 6 + 5}),
    "list_output": (110, {"exact_match": 40 + 10 + 5, "set_exact_match": 40 + 10 + 5 + 17 + 5}),
    "babi_style": (20, dict.fromkeys(SCORES["babi_style"]["stats"], 15)),
    "options_in_input": (105, {"exact_match": 72, "quasi_exact_match": 72, "unmapped": 5 + 2 + 2}),
}
COUNTED_SECOND = {
    "short_answer_qa": (
        120,
        {
            "normalized_exact_match": 70 + 20 + 5 + 5,
            "exact_match": 70,
            "quasi_exact_match": 70 + 20 + 5 + 5,
            "prefix_exact_match": 70 + 5,
            "quasi_prefix_exact_match": 70 + 20 + 5 + 5,
            "f1_score": 70 + 20 + 5 + 5,
        },
    ),
    "multiple_choice": (120, {"exact_match": 90, "quasi_exact_match": 90, "unmapped": 4}),
    "labels_stems": (110, {"exact_match": 66, "quasi_exact_match": 66, "unmapped": 4}),
    "chain_of_thought": (100, {"exact_match": 84 + 2, "quasi_exact_match": 84 + 2}),
    "list_output": (110, {"exact_match": 50, "set_exact_match": 50 + 10}),
}
FILES = sorted([*(f"{name}.json" for name in COUNTED), "yes_no_questions.jsonl"])
MULTIPLE_CHOICE = ("multiple_choice.json", "labels_stems.json", "options_in_input.json")


def read(file_name: str) -> tuple[dict, list[dict]]:
    text = (FOLDER / file_name).read_text(encoding="utf-8")
    if file_name.endswith(".jsonl"):
        header, *states = [json.loads(line) for line in text.splitlines()]
        return header, states
    content = json.loads(text)
    return content, content["request_states"]


def said(state: dict) -> list[str]:
    return [completion["text"] for completion in state["request"]["result"]["completions"]]


def gold(state: dict) -> str:
    (text,) = [r["output"]["text"] for r in state["instance"]["references"] if "correct" in r["tags"]]
    return text


def normalised(text: str) -> str:
    """Lower case, no ASCII punctuation, no articles, single spaces: HELM's rule for the quasi exact match."""
    text = "".join(character for character in text.lower() if character not in string.punctuation)
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", text).split())


@pytest.fixture(scope="module")
def made():
    import sys

    sys.path.insert(0, str(ROOT / "tools"))
    try:
        import make_examples
    finally:
        sys.path.remove(str(ROOT / "tools"))
    return make_examples.make_files()


def test_making_them_again_gives_the_same_bytes(made):
    on_disk = {path: (ROOT / path).read_bytes() for path in made}
    assert {path: text.encode("utf-8") for path, text in made.items()} == on_disk


def test_every_file_is_made_and_none_is_left_over(made):
    datasets = {f"adapter_specs/{name}" for name in FILES}
    second = {f"examples/second_model/{name}.json" for name in COUNTED_SECOND}
    assert set(made) == {*datasets, *second, "tests/data/example_scores.json"}
    assert {f"examples/second_model/{path.name}" for path in (ROOT / "examples/second_model").iterdir()} == second
    assert files_of_the_folder() == {*FILES, "README.md"}


def files_of_the_folder() -> set[str]:
    """Those that git tracks: users put datasets of their own here. All of them where there is no git."""
    command = ["git", "ls-files", "-z", "--", "."]
    try:
        listed = subprocess.run(command, cwd=FOLDER, capture_output=True, check=True, text=True).stdout
    except (OSError, subprocess.CalledProcessError):
        listed = ""
    return set(filter(None, listed.split("\0"))) or {path.name for path in FOLDER.iterdir()}


def test_the_readme_names_every_file():
    named = re.findall(r"^\| `([^`]+)` \|", (FOLDER / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(named) == FILES


@pytest.mark.parametrize(
    ("model", "name"),
    [*(("first-model", name) for name in COUNTED), *(("second-model", name) for name in COUNTED_SECOND)],
)
def test_expected_scores_are_those_counted_by_hand(model, name):
    rows, counted = (COUNTED if model == "first-model" else COUNTED_SECOND)[name]
    table = BY_MODEL[model][name]
    assert table["rows"] == rows
    assert table["main_metric"] in counted
    assert {stat: table["stats"][stat] for stat in counted} == {stat: n / rows for stat, n in counted.items()}
    assert set(table["stats"]) - set(counted) == ({"list_f1"} if name == "list_output" else set())


@pytest.mark.parametrize("name", COUNTED_SECOND)
def test_both_models_are_asked_the_same(name):
    """What differs is the request, which holds the answer: so both stand in one column of the leaderboard."""
    first, second = (
        json.loads((ROOT / folder / f"{name}.json").read_text(encoding="utf-8"))
        for folder in ("adapter_specs", "examples/second_model")
    )
    assert first.keys() == second.keys()
    for key in first.keys() - {"request_states"}:
        assert first[key] == second[key]
    for one, two in zip(first["request_states"], second["request_states"], strict=True):
        assert {**one, "request": 0} == {**two, "request": 0}
    paths = [ROOT / folder / f"{name}.json" for folder in ("adapter_specs", "examples/second_model")]
    assert len({request_states.load(path).question_digest for path in paths}) == 1


@pytest.mark.parametrize("file_name", FILES)
def test_sizes(file_name):
    _, states = read(file_name)
    assert (FOLDER / file_name).stat().st_size < 300_000
    assert len(states) >= (23 if file_name == "babi_style.json" else 105)
    recorded = sum("request" in state for state in states)
    assert recorded == COUNTED.get(Path(file_name).stem, (0, {}))[0]


@pytest.mark.parametrize("file_name", FILES)
def test_rows_differ(file_name):
    _, states = read(file_name)
    for field in (lambda i: i["id"], lambda i: i["input"]["text"]):
        assert max(Counter(field(state["instance"]) for state in states).values()) == 1


@pytest.mark.parametrize("file_name", FILES)
def test_each_row_has_one_right_answer(file_name):
    _, states = read(file_name)
    for state in states:
        options = [reference["output"]["text"] for reference in state["instance"]["references"]]
        assert len(options) == (4 if file_name in MULTIPLE_CHOICE else 1)
        # Also for HELM's quasi exact match: no two options may look the same to it.
        assert len({normalised(option) for option in options}) == len(options)
        assert gold(state) in options


@pytest.mark.parametrize("file_name", MULTIPLE_CHOICE)
def test_the_right_option_is_at_every_place(file_name):
    _, states = read(file_name)
    places = Counter(
        ["correct" in reference["tags"] for reference in state["instance"]["references"]].index(True)
        for state in states
    )
    assert min(places[place] for place in range(4)) >= len(states) / 8


@pytest.mark.parametrize("name", sorted(COUNTED))
def test_recorded_results_hang_together(name):
    _, states = read(f"{name}.json")
    results = [state["request"]["result"] for state in states if "request" in state]
    for result in results:
        for completion in result["completions"]:
            if "tokens" in completion:
                assert "".join(token["text"] for token in completion["tokens"]) == completion["text"]
                total = sum(token["logprob"] for token in completion["tokens"])
                assert completion["logprob"] == pytest.approx(total, abs=1e-4)
    times = [result["request_datetime"] for result in results]
    assert times == sorted(times)
    assert len({result["request_time"] for result in results}) > 0.9 * len(results)


# A second count of the expected scores, from the files, for those whose rule fits into a line.


@pytest.mark.parametrize("name", ["short_answer_qa", "babi_style"])
def test_short_answers_score_as_expected(name):
    states = [state for state in read(f"{name}.json")[1] if "request" in state]
    stats = SCORES[name]["stats"]
    exact = [said(state)[0].strip() == gold(state) for state in states]
    quasi = [normalised(said(state)[0]) == normalised(gold(state)) for state in states]
    assert (sum(exact) / len(exact), sum(quasi) / len(quasi)) == (stats["exact_match"], stats["quasi_exact_match"])


def test_short_answers_follow_from_the_passage():
    """The answers, worked out again by reading the sentences instead of running the world."""
    for state in read("short_answer_qa.json")[1]:
        *sentences, asked = state["instance"]["input"]["text"].split("\n")
        place, holder, trail = {}, {}, []
        thing, wanted = re.fullmatch(r"Question: Where was the (\w+) before the (\w+)\?", asked).groups()
        for sentence in sentences:
            person = sentence.split()[0]
            if moved := re.fullmatch(r"\w+ (?:went back|walked|hurried|strolled|cycled) to the (\w+)\.", sentence):
                place[person] = moved[1]
                if holder.get(thing) == person:
                    trail.append(moved[1])
            elif took := re.fullmatch(r"\w+ (?:picked up|took|lifted) the (\w+)(?: along)?\.", sentence):
                holder[took[1]] = person
                if took[1] == thing and not trail:
                    trail.append(place[person])
            else:
                left = re.fullmatch(r"\w+ (?:put|left|set) the (\w+) (?:down|behind|aside)\.", sentence)
                assert holder.pop(left[1]) == person
        assert trail.count(wanted) == 1
        assert gold(state) == trail[trail.index(wanted) - 1]


def test_chain_of_thought_scores_as_expected():
    header, states = read("chain_of_thought.json")
    train = [state["instance"] for state in states if state["instance"]["split"] == "train"]
    assert len(train) == 5
    assert all(instance["chain_of_thought"] for instance in train)
    test = [state for state in states if state["instance"]["split"] == "test"]
    right = 0
    for state in test:
        found = re.findall(header["scoring"]["extract"], said(state)[0])
        right += bool(found) and found[-1] == gold(state)
    assert right / len(test) == SCORES["chain_of_thought"]["stats"]["exact_match"]


def test_worked_solutions_compute():
    """Every step `3 x 4 = 12` of the train rows' reasoning is right, and the last one gives the answer."""
    for state in read("chain_of_thought.json")[1][:5]:
        steps = re.findall(r"((?:\d+ [-+x/] )+\d+) = (\d+)", state["instance"]["chain_of_thought"])
        assert steps
        assert [eval(left.replace("x", "*")) for left, _ in steps] == [int(value) for _, value in steps]
        assert steps[-1][1] == gold(state)


def test_lists_score_as_expected():
    states = read("list_output.json")[1]
    exact = as_set = 0
    for state in states:
        texts = said(state)
        predicted = [text.strip() for text in (texts if len(texts) > 1 else texts[0].split(";"))]
        wanted = gold(state).split("; ")
        exact += predicted == wanted
        as_set += sorted(predicted) == sorted(wanted)
    stats = SCORES["list_output"]["stats"]
    assert (exact / len(states), as_set / len(states)) == (stats["exact_match"], stats["set_exact_match"])


def test_yes_and_no_are_balanced():
    states = read("yes_no_questions.jsonl")[1]
    assert Counter(gold(state) for state in states) == {"Yes": 60, "No": 60}
    assert not any("split" in state["instance"] for state in states)


@pytest.mark.parametrize("file_name", FILES)
def test_only_one_name_is_hidden_by_helm(file_name):
    """`helm-summarize` hides groups with "babi" in their name; one example is there to show that ours are not."""
    assert ("babi" in file_name) == (file_name == "babi_style.json")


def test_list_f1_is_that_of_a_matching_by_hand():
    """Every one-to-one matching tried; a pair of segments is worth the F1 of their words."""

    def worth(one: str, other: str) -> Fraction:
        both = Counter(one.split()) & Counter(other.split())
        return Fraction(2 * both.total(), len(one.split()) + len(other.split()))

    states = read("list_output.json")[1]
    total = Fraction(0)
    for state in states:
        texts = said(state)
        predicted = [text.strip() for text in (texts if len(texts) > 1 else texts[0].split(";"))]
        wanted = gold(state).split("; ")
        short, long = sorted((predicted, wanted), key=len)
        best = max(sum(map(worth, short, order)) for order in permutations(long, len(short)))
        total += 2 * best / (len(predicted) + len(wanted))
    assert float(total / len(states)) == SCORES["list_output"]["stats"]["list_f1"]


# Read as a dataset.

NOT_DIFFERENTIATED = sorted(set(FILES) - {"chain_of_thought.json", "babi_style.json"})


@pytest.mark.parametrize("file_name", FILES)
def test_it_loads_without_warnings_but_the_documented_one(file_name):
    """All rows `test` (or none with a split) is how the format may be written; that they are drawn from is said."""
    evalset = request_states.load(FOLDER / file_name)
    expected = ["not-differentiated"] if file_name in NOT_DIFFERENTIATED else []
    assert [problem.code for problem in evalset.warnings] == expected
    header, states = read(file_name)
    assert evalset.display_name == header["display_name"]
    assert evalset.description == header["description"]
    rows = [instance for instance in evalset.instances if instance.split == "test"]
    name = Path(file_name).stem
    assert len(rows) == (COUNTED[name][0] if name in COUNTED else header["adapter_spec"]["max_eval_instances"])
    if name in SCORES:
        assert evalset.scoring.main_metric == SCORES[name]["main_metric"]
        assert {row_extra(row)["recorded"]["status"] for row in rows} == {"ok"}
    if file_name in MULTIPLE_CHOICE:
        options = {row.id: [reference.output.text for reference in row.references] for row in rows}
        assert {row.id: list(row_extra(row)["labels"].values()) for row in rows} == options


@pytest.mark.parametrize("file_name", FILES)
def test_validate_finds_nothing_but_what_the_files_are_there_to_show(file_name):
    problems, counts = request_states.check(FOLDER / file_name)
    expected = {"not-differentiated"} if file_name in NOT_DIFFERENTIATED else set()
    expected |= {"unmapped"} if file_name in MULTIPLE_CHOICE else set()
    assert {problem.code for problem in problems} == expected
    name = Path(file_name).stem
    assert counts.get("unmapped", 0) == COUNTED.get(name, (0, {}))[1].get("unmapped", 0)


@pytest.mark.parametrize("file_name", MULTIPLE_CHOICE)
def test_choices_are_read_as_they_were_meant(file_name):
    """The mean of the rows where the label that is read stands for the right option."""
    evalset = request_states.load(FOLDER / file_name)
    golds = {str(state["instance"]["id"]): gold(state) for state in read(file_name)[1]}
    right = unmapped = rows = 0
    for instance in evalset.instances:
        extra = row_extra(instance)
        if instance.split != "test":
            continue
        (state,) = extra["recorded"]["states"]
        label = parsing.read_label(state["result"]["completions"][0]["text"], extra["labels"])
        rows += 1
        unmapped += label is None
        right += label is not None and extra["labels"][label] == golds[instance.id]
    stats = SCORES[Path(file_name).stem]["stats"]
    assert (right / rows, unmapped / rows) == (stats["exact_match"], stats["unmapped"])


def test_a_gzipped_twin_of_the_json_lines_file_is_the_same_dataset(tmp_path):
    plain = FOLDER / "yes_no_questions.jsonl"
    packed = tmp_path / "yes_no_questions.jsonl.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    one, other = request_states.load(plain), request_states.load(packed)
    # HELM compares Instances by identity.
    assert [asdict(row) for row in one.instances] == [asdict(row) for row in other.instances]
    assert one.adapter_spec == other.adapter_spec
    assert (one.name, other.name) == ("yes_no_questions", "yes_no_questions")
