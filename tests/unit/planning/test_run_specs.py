import json
import re

import pytest
from helm.benchmark.scenarios.scenario import create_scenario
from helm.common.object_spec import parse_object_spec

from helm_ext.errors import DatasetChangedError, RunEntryError
from helm_ext.evalset import row_extra
from helm_ext.formats import planned
from helm_ext.formats.scenario import group_name, tell_apart
from helm_ext.planning import run_specs

NONE = {"max_train_instances": 0}
BOTH_FORMS = "  hint: adapter_spec:dataset=NAME,model=... or adapter_spec:path=FILE,model=..."


def state(text="2+2?", gold="4", completion=None, **instance):
    references = [{"output": {"text": gold}, "tags": ["correct"]}]
    made = {"instance": {"split": "test", "input": {"text": text}, "references": references, **instance}}
    if completion is not None:
        made["request"] = {"result": {"completions": [{"text": completion}]}}
    return made


@pytest.fixture
def write(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "adapter_specs").mkdir()

    def write(file="sums", /, states=None, **top):
        states = states or [state(f"{i}+{i}?", str(2 * i), id=f"r{i}") for i in range(4)]
        content = {"adapter_spec": {"max_train_instances": 0}, "request_states": states, **top}
        path = tmp_path / "adapter_specs" / f"{file}.json"
        path.write_text(json.dumps(content))
        return path

    return write


def make(entry):
    return run_specs.get_run_spec("adapter_spec", parse_object_spec(entry).args)


def test_a_run_names_its_data(write):
    write()
    spec = make("adapter_spec:dataset=sums")
    args = spec.scenario_spec.args
    assert spec.name == f"adapter_spec:dataset=sums,digest={args['digest']}"
    assert args["dataset"] == "sums"
    assert len(args["digest"]) == 12
    assert re.fullmatch(r"sums-[0-9a-f]{6}", spec.groups[0])
    assert args["questions"].startswith(spec.groups[0].removeprefix("sums-"))
    assert len(spec.groups) == 1
    assert spec.adapter_spec.max_eval_instances is None


def test_recordings_of_two_models_are_one_column(write):
    asked = [("1+1?", "2", "a"), ("2+2?", "4", "b")]

    def record(file, answers, step=1, /, **top):
        rows = [state(text, gold, answer, id=i) for (text, gold, i), answer in zip(asked, answers, strict=True)]
        path = write(file)
        path.write_text(json.dumps({**json.loads(path.read_text()), "request_states": rows[::step], **top}))
        return make(f"adapter_spec:dataset={file}")

    one, two = record("one", "25", name="sums"), record("two", "44", name="sums")
    assert one.groups == two.groups
    assert one.scenario_spec.args["digest"] != two.scenario_spec.args["digest"]
    assert "name=" not in one.name  # names files, and the file is named
    assert [create_scenario(s.scenario_spec).get_metadata().display_name for s in (one, two)] == ["sums"] * 2
    assert record("turned", "52", -1, name="sums").groups == one.groups
    spec = {"max_train_instances": 0, "model": "a/b", "model_deployment": "a/b"}
    assert record("said", "25", name="sums", adapter_spec=spec).groups == one.groups
    # Another name, another prompt, another score, other questions: other columns.
    assert record("three", "25").groups != one.groups
    spec = {"max_train_instances": 0, "instructions": "Add."}
    assert record("prompt", "25", name="sums", adapter_spec=spec).groups != one.groups
    assert record("lower", "25", name="sums", scoring={"lower": True}).groups != one.groups
    asked[1] = ("2+2?", "5", "b")
    assert record("wrong", "25", name="sums").groups != one.groups


def test_a_file_that_changes_between_planning_and_running_is_refused(write, monkeypatch):
    write()
    spec = make("adapter_spec:dataset=sums")
    write(states=[state("1+1?", "2")])
    assert make("adapter_spec:dataset=sums").name != spec.name
    monkeypatch.setattr(planned, "_waiting", {})  # the run starts elsewhere
    with pytest.raises(DatasetChangedError, match="sums: the data changed since the run was planned"):
        create_scenario(spec.scenario_spec).get_instances("")


def test_paths(write, tmp_path):
    path = write()
    assert make("adapter_spec:path=adapter_specs/sums.json").scenario_spec.args["path"] == "adapter_specs/sums.json"
    # Below the working directory an absolute path becomes relative: HELM makes file names of it.
    assert make(f"adapter_spec:path={path}").scenario_spec.args["path"] == "adapter_specs/sums.json"
    path.rename(path.with_name("a,b.json"))
    name = make("adapter_spec:path=adapter_specs/a%2Cb.json").name
    assert name.startswith("adapter_spec:path=adapter_specs_a%2Cb.json")
    write("2024")  # a number names the file that is called so
    assert "dataset=2024," in make("adapter_spec:dataset=2024").name


NEEDED = "adapter_spec: exactly one of dataset, path is needed,"


@pytest.mark.parametrize(("arguments", "message"), [
    ("datset=x", "adapter_spec: unknown argument 'datset'\n  hint: did you mean 'dataset'?"),
    ("seed=1", f"{NEEDED} none is given\n{BOTH_FORMS}"),
    ("dataset=sums,path=x", f"{NEEDED} dataset and path are given\n{BOTH_FORMS}"),
    ("dataset=sums,seed=x", "seed=x: expected a whole number"),
    ("dataset=sums,separator=", "separator=: expected a text that is not empty"),
    ("dataset=sums,strip=perhaps", "strip=perhaps: expected true or false"),
    ("dataset=sums,missing=skp", "missing=skp: not a choice\n  hint: did you mean 'skip'?"),
    ("dataset=sums,output_format=tree", "output_format=tree: not a choice\n  hint: one of string, list"),
])  # fmt: skip
def test_wrong_arguments(write, arguments, message):
    write()
    with pytest.raises(RunEntryError) as caught:
        make(f"adapter_spec:{arguments}")
    assert str(caught.value) == message


def test_the_scenario_hands_over_the_instances_and_describes_them(write):
    rows = [state(f"{i}+{i}?", str(2 * i), id=f"r{i}", split="dev") for i in range(4)]
    path = write(states=rows, display_name="Sums", description="Adding a number to itself.")
    spec = make("adapter_spec:dataset=sums,seed=3")
    scenario = create_scenario(spec.scenario_spec)
    instances = scenario.get_instances("")
    assert instances[0].input.text == "0+0?"
    assert scenario.description == "Adding a number to itself."
    path.unlink()  # the description needs no file
    metadata = create_scenario(spec.scenario_spec).get_metadata()
    assert metadata.name == spec.groups[0]
    assert metadata.display_name == metadata.short_display_name == "Sums (seed=3)"
    assert f"Digest of the questions: {spec.scenario_spec.args['questions']};" in metadata.description
    assert (metadata.main_metric, metadata.main_split) == (spec.scenario_spec.args["main_metric"], "valid")


@pytest.mark.parametrize(("missing", "warned"), [("", True), (",missing=skip", False)])
def test_missing_rows_are_warned_of_unless_they_are_to_be_skipped(write, caplog, missing, warned):
    write(states=[state("1+1?", "2", "2", id="a"), state("2+2?", "4", id="b")])
    with caplog.at_level("INFO", logger="helm"):
        scenario = create_scenario(make("adapter_spec:dataset=sums" + missing).scenario_spec)
    assert ("a recorded run refuses the file" in caplog.text) == warned
    assert "1 not_run" in caplog.text
    skipped = {i.id: row_extra(i)["recorded"].get("skip") for i in scenario.get_instances("") if i.split == "test"}
    assert skipped == {"a": None, "b": None if warned else True}


def test_group_names_dodge_babi_and_keep_versions_apart():
    assert group_name("babi_task", "abcdef012345") == "bAbI_task-abcdef"
    assert "babi" not in group_name("x/babi babi", "0" * 12)
    assert group_name("a b/c", "0" * 12) == "a_b_c-000000"
    assert group_name("x", "1" * 12) != group_name("x", "2" * 12)
    assert group_name("x", "1" * 12, "seed=1") != group_name("x", "1" * 12, "seed=2")
    assert len(group_name("甲" * 50, "0" * 12).encode()) <= 47


def test_titles_of_one_suite_that_are_equal_get_digits(write):
    write("sums")
    before = describe("adapter_spec:dataset=sums")
    write("sums", states=[state("7+7?", "14", "14", id="new")])
    after = describe("adapter_spec:dataset=sums")
    write("others")
    other = describe("adapter_spec:dataset=others")
    assert [group.display_name for group in (before, after, other)] == ["sums", "sums", "others"]
    shown = [group.display_name for group in tell_apart([before, other, after])]
    assert shown == [f"sums ({before.name[-6:]})", "others", f"sums ({after.name[-6:]})"]
    assert len(set(shown)) == 3
    assert tell_apart([before, other]) == [before, other]


def describe(entry):
    return create_scenario(make(entry).scenario_spec).get_metadata()


def test_a_column_says_that_live_runs_score_fewer_rows(write):
    """Three demonstrations are drawn for live runs; a recorded run scores all ten rows. Both are in one column."""
    spec = {"max_train_instances": 3}
    plain, recorded = (
        [state(f"{i}+{i}?", str(2 * i), answer and str(2 * i)) for i in range(10)] for answer in (None, "4")
    )
    write("plain", plain, adapter_spec=spec, name="sums")
    write("recorded", recorded, adapter_spec=spec, name="sums")
    assert make("adapter_spec:dataset=plain").groups == make("adapter_spec:dataset=recorded").groups
    described = [describe(f"adapter_spec:dataset={name}") for name in ("plain", "recorded")]
    assert described[0].display_name == described[1].display_name
    assert described[0].description.endswith(" A live run scores 7 of 10 rows.")
    write("capped", recorded, adapter_spec={**NONE, "max_eval_instances": 4})
    assert describe("adapter_spec:dataset=capped").description.endswith(" A live run scores 4 of 10 rows.")


def test_where_all_runs_score_the_same_rows_no_column_says_otherwise(write):
    write(states=[state(f"{i}?", "x", "x") for i in range(10)])
    assert "live_rows" not in make("adapter_spec:dataset=sums").scenario_spec.args
    assert "live run" not in describe("adapter_spec:dataset=sums").description
    split = [state(f"{i}?", "x", "x", split="train" if i < 3 else "test") for i in range(10)]
    write(states=split, adapter_spec={"max_train_instances": 3})
    assert "live run" not in describe("adapter_spec:dataset=sums").description
