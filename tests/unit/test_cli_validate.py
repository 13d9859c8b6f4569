import json

import pytest
from typer.testing import CliRunner

from helm_ext.cli import app, main
from helm_ext.cli.validate import NOT_CHECKED

GOOD = {
    "adapter_spec": {"max_train_instances": 0},
    "request_states": [
        {
            "instance": {
                "id": f"r{i}",
                "split": "test",
                "input": {"text": f"{i}+{i}?"},
                "references": [{"output": {"text": str(2 * i)}, "tags": ["correct"]}],
            }
        }
        for i in range(3)
    ],
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


def run(*arguments):
    return CliRunner().invoke(app, ["validate", *arguments])


def test_a_good_file(folder):
    result = run("good.json")
    assert result.exit_code == 0
    assert "good.json: adapter_spec: 0 errors, " in result.stdout
    assert NOT_CHECKED in result.stdout


def test_all_problems_of_a_file_at_once_with_line_field_value_and_hint(folder):
    result = run("bad.json")
    assert result.exit_code == 1
    lines = (folder / "bad.json").read_text().splitlines()
    wrong = next(number for number, line in enumerate(lines, 1) if '"text": 42' in line)
    assert f"error: bad.json:{wrong}: request_states[1].instance.references[0].output.text: " in result.stdout
    assert "expected a string, got 42" in result.stdout
    assert "hint: did you mean 'instructions'" in result.stdout
    assert "2 errors" in result.stdout


def test_a_folder_of_files_and_a_name(folder):
    (folder / "adapter_specs").mkdir()
    for name in ("good.json", "bad.json"):
        (folder / name).rename(folder / "adapter_specs" / name)
    result = run("adapter_specs")
    assert result.exit_code == 1
    assert "adapter_specs/bad.json: adapter_spec: 2 errors" in result.stdout
    assert "adapter_specs/good.json: adapter_spec: 0 errors" in result.stdout
    assert run("good").exit_code == 0


def test_several_files_and_one_that_is_missing(folder):
    result = run("good.json", "nothing.json")
    assert result.exit_code == 1
    assert "good.json: adapter_spec: 0 errors" in result.stdout
    assert "nothing.json" in result.stdout


def test_json_output_is_json_alone(folder):
    result = run("bad.json", "--format", "json")
    assert result.exit_code == 1
    (report,) = json.loads(result.stdout)
    assert report["file"] == "bad.json"
    assert {"severity", "code", "path", "line", "field", "message", "hint"} <= set(report["problems"][0])


def test_github_output_is_one_workflow_command_a_problem(folder):
    result = run("bad.json", "--format", "github")
    lines = [line for line in result.stdout.splitlines() if line]
    assert all(line.startswith(("::error file=bad.json", "::warning file=bad.json")) for line in lines)
    assert any("expected a string, got 42" in line for line in lines)


def test_a_forced_format(folder):
    result = run("good.json", "--as", "innodata")
    assert result.exit_code == 1


@pytest.mark.parametrize("arguments", [[], ["good.json", "--format", "xml"], ["good.json", "--nonsense"]])
def test_wrong_usage(folder, arguments):
    assert run(*arguments).exit_code == 2


@pytest.mark.parametrize("name", ["adapter_spec", "ultraeval", "innodata"])
def test_schema_prints_json(name):
    result = CliRunner().invoke(app, ["schema", name])
    assert result.exit_code == 0
    assert isinstance(json.loads(result.stdout), dict)


def test_arguments_are_those_of_the_run_entry(folder):
    assert run("good.json", "--arg", "metrics=exact_match+f1_score", "--arg", "lower=true").exit_code == 0
    result = run("good.json", "--arg", "metrics=exact_macht")
    assert result.exit_code == 1
    assert "exact_macht" in result.stdout


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("foo=1", "adapter_spec: unknown argument 'foo'"),
        ("model=x", "adapter_spec: unknown argument 'model'"),
        ("seed=x", "seed=x: expected a whole number"),
        ("lower=maybe", "lower=maybe: expected true or false"),
        ("foo", "--arg foo: expected KEY=VALUE"),
    ],
)
def test_wrong_arguments_are_wrong_usage(folder, monkeypatch, capsys, argument, message):
    monkeypatch.setattr("sys.argv", ["helm-ext", "validate", "good.json", "--arg", argument])
    with pytest.raises(SystemExit) as caught:
        main()
    assert caught.value.code == 2
    assert message in capsys.readouterr().err
