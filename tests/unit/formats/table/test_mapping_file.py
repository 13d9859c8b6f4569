"""`NAME.table.json`: what is said of a table, in a file beside it."""

import json

import pytest
from table_files import answers, golds, load, refusal, write_csv

from helm_ext.formats import detect, files_in
from helm_ext.formats.table.format import FORMAT


@pytest.fixture
def write(tmp_path):
    write_csv(
        tmp_path, ["frage", "antwort", "gpt", "llama", "topic"], ["?", "iron", "iron", "tin", "ore"], name="ores.csv"
    )

    def write_mapping(**said):
        path = tmp_path / "ores.table.json"
        path.write_text(json.dumps({"path": "ores.csv", "question": "frage", "gold": "antwort", **said}, indent=1))
        return str(path)

    return write_mapping


def test_says_what_a_run_entry_would(write):
    path = write(output="gpt", by=["topic"], display_name="Ores", description="What they are.")
    assert detect(path) is FORMAT
    evalset = load(path)
    assert (golds(evalset), answers(evalset)) == ([["iron"]], [["iron"]])
    assert (evalset.name, evalset.display_name, evalset.description) == ("ores", "Ores", "What they are.")
    assert evalset.attributes == {"topic": ("ore",)}


def test_arguments_win(write):
    assert answers(load(write(output="gpt"), output=["llama"])) == [["tin"]]


def test_says_how_a_live_run_asks_and_is_scored(write):
    spec = load(write(adapter_spec={"instructions": "Be brief.", "max_tokens": 7}, scoring={"lower": True}))
    assert (spec.adapter_spec.instructions, spec.adapter_spec.max_tokens, spec.scoring.lower) == ("Be brief.", 7, True)


def test_recorded_answers_were_asked_already(write):
    spec = load(write(output="gpt", adapter_spec={"instructions": "Be brief.", "max_train_instances": 1})).adapter_spec
    assert (spec.instructions, spec.max_train_instances) == ("", 0)


def test_is_part_of_the_digest(write):
    one = load(write(output="gpt")).digest
    assert load(write(output="llama")).digest != one


@pytest.mark.parametrize(("said", "message"), [
    ({"qestion": "x"}, "unknown key"), ({"options": []}, "expected"), ({"header": True}, "expected"),
    ({"path": 7}, "expected"),
])  # fmt: skip
def test_mistakes_are_shown_with_their_line(write, said, message):
    found = refusal(write(**said))
    assert message in found.message
    assert found.location.line in (2, 5)


def test_has_a_json_schema():
    schema = FORMAT.json_schema()
    assert set(schema["required"]) == {"path"}
    assert all("description" in value for value in schema["properties"].values())


def test_a_folder_with_both_holds_one_dataset(write, tmp_path):
    path = write(output="gpt")
    write_csv(tmp_path, ["question", "answer"], ["?", "tin"], name="others.csv")
    assert [each.name for each in files_in(tmp_path)] == ["ores.table.json", "others.csv"]
    with open(path, "w") as file:  # a mapping that cannot be read is an error of its own, and names no table
        file.write('{"path": 1}')
    assert [each.name for each in files_in(tmp_path)] == ["ores.csv", "ores.table.json", "others.csv"]
