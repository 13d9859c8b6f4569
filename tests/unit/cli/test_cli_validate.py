import json
from pathlib import Path

import commands
import pytest
from request_states_files import state

from helm_ext.cli.validate import NOT_CHECKED
from helm_ext.formats.innodata.hub import pack

GOOD = {
    "adapter_spec": {"max_train_instances": 0},
    "request_states": [state(f"{i}+{i}?", str(2 * i), id=f"r{i}", split="test") for i in range(3)],
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good.json").write_text(json.dumps(GOOD))
    bad = json.loads(json.dumps(GOOD))
    bad["adapter_spec"]["instuctions"] = "Add."
    bad["request_states"][1]["instance"]["references"][0]["output"]["text"] = 42
    (tmp_path / "bad.json").write_text(json.dumps(bad, indent=1))
    return tmp_path


def run(*arguments, code=None):
    return commands.run("validate", *arguments, code=code)


def test_a_good_file(folder):
    result = run("good.json", code=0)
    assert "good.json: adapter_spec: 0 errors, " in result.stdout
    assert NOT_CHECKED in result.stdout


def test_all_problems_of_a_file_at_once_with_line_field_value_and_hint(folder):
    result = run("bad.json", code=1)
    lines = (folder / "bad.json").read_text().splitlines()
    wrong = next(number for number, line in enumerate(lines, 1) if '"text": 42' in line)
    assert f"error: bad.json:{wrong}: request_states[1].instance.references[0].output.text: " in result.stdout
    assert "expected a string, got 42" in result.stdout
    assert "hint: did you mean 'instructions'" in result.stdout
    assert "2 errors" in result.stdout


def test_what_rows_alone_say_is_said_beside_errors_of_the_header_and_of_the_row(folder):
    """Of references nothing, where the header says that rows are scored elsewhere."""
    wrong = json.loads((folder / "bad.json").read_text())
    wrong["request_states"][0]["instance"] |= {
        "split": "tset",
        "references": [{"output": {"text": "x"}, "tags": ["corect"]}],
    }
    right = {**GOOD["request_states"][0], "request": {"results": {}}}
    right["instance"] = {**right["instance"], "id": "twice"}
    wrong["request_states"] += [right, right]
    (folder / "bad.json").write_text(json.dumps(wrong))
    said = run("bad.json", code=1).stdout
    assert '[0].instance.references: no reference is tagged correct, but "corect"' in said
    assert "[4].instance.id: 1 row has no id, or that of an earlier row" in said
    assert "[3].request.results: 2 rows have this key, which means nothing here" in said
    assert "3 rows, 1 renamed id" in said  # those that are right
    wrong |= {"scoring": {"metrics": []}, "source": {"tool": "x"}}
    (folder / "bad.json").write_text(json.dumps(wrong))
    assert "tagged correct" not in run("bad.json", code=1).stdout


def test_a_folder_of_files_and_a_name(folder):
    (folder / "adapter_specs").mkdir()
    for name in ("good.json", "bad.json"):
        (folder / name).rename(folder / "adapter_specs" / name)
    result = run("adapter_specs", code=1)
    assert "adapter_specs/bad.json: adapter_spec: 2 errors" in result.stdout
    assert "adapter_specs/good.json: adapter_spec: 0 errors" in result.stdout
    run("good", code=0)


def test_json_output_is_json_alone(folder):
    result = run("bad.json", "--format", "json", code=1)
    (report,) = json.loads(result.stdout)
    assert report["file"] == "bad.json"
    assert {"severity", "code", "path", "line", "field", "message", "hint"} <= set(report["problems"][0])


def test_github_output_is_one_workflow_command_a_problem(folder):
    result = run("bad.json", "--format", "github")
    lines = [line for line in result.stdout.splitlines() if line]
    assert all(line.startswith(("::error file=bad.json", "::warning file=bad.json")) for line in lines)
    assert any("expected a string, got 42" in line for line in lines)
    assert any("unknown key%0Ahint: did you mean 'instructions'" in line for line in lines)


def test_a_forced_format(folder):
    run("good.json", "--as", "innodata", code=1)


@pytest.mark.parametrize("arguments", [[], ["good.json", "--format", "xml"], ["good.json", "--nonsense"]])
def test_wrong_usage(folder, arguments):
    run(*arguments, code=2)


@pytest.mark.parametrize("name", ["adapter_spec", "ultraeval"])
def test_schema_prints_json(name):
    assert isinstance(json.loads(commands.run("schema", name).stdout), dict)


@pytest.mark.parametrize(("argument", "message"), [
    ("foo=1", "adapter_spec: unknown argument 'foo'"), ("model=x", "adapter_spec: unknown argument 'model'"),
    ("path=other.json", "--arg path=other.json: the dataset is named already, good.json"),
    ("dataset=good", "--arg dataset=good: the dataset is named already, good.json"),
    ("seed=x", "seed=x: expected a whole number"), ("lower=maybe", "lower=maybe: expected true or false"),
    ("foo", "--arg foo: expected KEY=VALUE"),
])  # fmt: skip
def test_wrong_arguments_are_wrong_usage(folder, argument, message):
    assert message in run("good.json", "--arg", argument, code=2).stderr


def test_the_same_mistake_in_every_row_is_shown_some_times_and_counted(folder):
    row = {"instance": {**GOOD["request_states"][0]["instance"], "input": {"txt": "?"}, "id": 4.5}}
    (folder / "many.json").write_text(json.dumps({**GOOD, "request_states": [row] * 1500}))
    result = run("many.json", code=1)
    lines = result.stdout.splitlines()
    assert len(lines) < 120
    problems = json.loads(run("many.json", "--format", "json").stdout)[0]["problems"]
    errors = [problem for problem in problems if problem["severity"] == "error"]
    assert len(errors) == 1001
    total = 1000 + int(errors[-1]["message"].split()[2])
    assert total % 1500 == 0
    assert f"many.json: adapter_spec: {total} errors, " in result.stdout
    assert "more like these; --format json lists them" in result.stdout


def test_more_problems_of_a_bundle_than_are_listed(folder):
    bundle = pack_bundle(folder)
    (folder / "replies.jsonl").write_text('{"id": "z", "reply": 1}\n' * 1500)
    result = run(str(bundle), "--arg", "replies=replies.jsonl")
    assert "front-desk.zip: innodata: 1500 errors, 0 warnings; " in result.stdout


def pack_bundle(folder):
    examples = Path(__file__).resolve().parents[3] / "examples" / "innodata"
    return pack(name="front-desk", test=examples / "test.jsonl", target=folder).path


@pytest.mark.parametrize(("argument", "message"), [
    ("version=1", "version=1: a file has no versions\n  hint: dataset=NAME,version=1 reads from the hub"),
    ("hub=there", "hub=there: a file is in no hub\n"),
    ("metrics=expected_exat", 'unknown metric "expected_exat"\n  hint: did you mean'),
    ("extract=(", "extract=(: "),
    ("replies=none.jsonl", "none.jsonl: replies cannot be read: No such file"),
])  # fmt: skip
def test_wrong_arguments_of_a_bundle_are_problems(folder, argument, message):
    result = run(pack_bundle(folder), "--arg", argument, code=1)
    assert message in result.stdout
    assert "1 error, " in result.stdout


def test_missing_skip_takes_its_own_advice(folder):
    state = {**GOOD["request_states"][0], "request": {"result": {"success": True, "completions": [{"text": "0"}]}}}
    (folder / "half.json").write_text(json.dumps({**GOOD, "request_states": [state, *GOOD["request_states"][1:]]}))
    assert "missing=skip scores the rest" in run("half.json").stdout
    assert "missing=skip scores the rest" not in run("half.json", "--arg", "missing=skip").stdout


def test_an_ultraeval_log_takes_missing(folder):
    row = {"data": {"question": "1+1?"}, "ground_truth": "2", "prompt_inputs": ["1+1?"]}
    lines = [{**row, "raw_outputs": ["2"]}, {**row, "raw_outputs": []}]
    (folder / "instance.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    result = run("instance.jsonl", "--arg", "missing=skip", "--arg", "metric=exact_match", code=0)
    assert "2 rows, 1 recorded, 1 not run" in result.stdout


def test_one_row_is_a_row(folder):
    (folder / "one.json").write_text(json.dumps({**GOOD, "request_states": GOOD["request_states"][:1]}))
    assert "; 1 row\n" in run("one.json").stdout


def test_the_file_name_of_a_dataset(folder):
    (folder / "adapter_specs").mkdir()
    (folder / "good.json").rename(folder / "adapter_specs" / "good.json")
    result = run("good.json", code=1)
    expected = "error: good.json: no such file\n  hint: dataset=good reads adapter_specs/good.json\n"
    assert result.stdout.startswith(expected)


def test_what_is_said_of_one_models_answers_names_it(tmp_path):
    """By hand: a's answers are the golds, c gave none to the first; what is said of all is said once."""
    table = tmp_path / "t.csv"
    rows = "q1?,one,one,It is one.,\nq2?,two,two,It is two.,two\nq2?,two,two,It is two.,two\n"
    table.write_text(f"question,gold,a,b,c\n{rows}")
    lines = run("validate", table, "--arg", "output=a+b").stdout.splitlines()
    assert sum("every output is equal to its gold" in line and " a: " in line for line in lines) == 2
    assert sum("asks the same as" in line or "same question" in line for line in lines) == 1
    assert f"error: {table}:2: c: the cell c is empty" in run("validate", table, "--arg", "output=a+c", code=1).stdout
