"""The example files: made by `tools/make_examples.py`, and what is true of them, as files and as datasets."""

import json
import re
import subprocess
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


def gold(state: dict) -> str:
    (text,) = [r["output"]["text"] for r in state["instance"]["references"] if "correct" in r["tags"]]
    return text


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


@pytest.mark.parametrize(("model", "name"), [
    *(("first-model", name) for name in COUNTED), *(("second-model", name) for name in COUNTED_SECOND),
])  # fmt: skip
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


# A second count of the expected scores, from the files, for those whose rule fits into a line.


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
    problems, _ = request_states.check(FOLDER / file_name)
    expected = {"not-differentiated"} if file_name in NOT_DIFFERENTIATED else set()
    assert {problem.code for problem in problems} == expected


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
