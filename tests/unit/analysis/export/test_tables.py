"""Tables of predictions: the same rows in every kind of file."""

import csv
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from finished_runs import run_sums, score
from request_states_files import answered, choice, state, write

from helm_ext.analysis.export import tables

PAGE = Path(__file__).parents[4] / "docs" / "how-to" / "export.md"
ODD = 'a "quoted", text;\nof two lines \u2028 甲'


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A run of ours with what trips writers, and one of HELM's."""
    folder = tmp_path_factory.mktemp("tables")
    rows = [
        answered(choice(ODD, ["gold", "tin"], 0, id="odd", split="test"), "B\u2028"),
        {**choice("Which?", ["gold", "tin"], 1, id="absent", split="test")},
    ]
    rows[0]["instance"]["extra_data"] = {"level": "hard"}
    spec = {"method": "multiple_choice_joint", "max_train_instances": 0}
    ours = score(folder, write(folder / "odd.jsonl", rows, spec), missing="skip", by="level")
    return [ours, run_sums(folder)]


@pytest.fixture(scope="module")
def lines(runs, tmp_path_factory):
    path = tmp_path_factory.mktemp("lines") / "rows.jsonl"
    assert tables.write_table("jsonl", runs, path) == 5
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.long
def test_every_line_has_all_columns(runs, lines):
    names = [column.name for column in tables.predictions_table(runs)[0]]
    assert [list(line) for line in lines] == [names] * 5
    assert names[-len(names) + len(tables.COLUMNS)] == "attribute.level"
    assert {"stat.exact_match", "stat.unmapped", "stat.num_prompt_tokens"} <= {*names}


def test_what_a_row_holds(lines):
    odd, absent, sums = lines[0], lines[1], lines[2]
    assert (odd["input"], odd["completion"], odd["answer"], odd["answer_label"]) == (ODD, "B\u2028", "tin", "B")
    assert odd["options"] == [{"label": "A", "text": "gold"}, {"label": "B", "text": "tin"}]
    assert odd["references"] == [{"text": "gold", "correct": True}, {"text": "tin", "correct": False}]
    assert (odd["gold"], odd["stat.exact_match"], odd["attribute.level"]) == (["gold"], 0.0, "hard")
    assert (absent["left_out"], absent["completions"], absent["completion"], absent["stat.exact_match"]) == (
        "not_run", [], None, None,
    )  # fmt: skip
    assert (sums["scenario"], sums["model"], sums["logprob"], sums["stat.unmapped"]) == ("sums", "org/two", -1.0, None)
    assert sums["data"] == {"level": 1, "weird": "Infinity"}
    assert (sums["data_digest"], len(odd["data_digest"])) == (None, 12)


def test_csv_for_spreadsheets_holds_no_formula(tmp_path):
    texts = ["=1+1", "+1", "-1", "@x", "\t=1", "a=1", ""]
    shown = [tables.Column("=name", "text", "", None), tables.Column("number", "number", "", None)]
    table = lambda runs: (shown, iter([[text, -0.5] for text in texts]))  # noqa: E731
    tables.write_table("csv", [], tmp_path / "rows.csv", table=table, for_spreadsheets=True)
    with (tmp_path / "rows.csv").open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    assert header == ["'=name", "number"]
    assert [row[0] for row in rows] == ["'=1+1", "'+1", "'-1", "'@x", "'\t=1", "a=1", ""]
    assert {row[1] for row in rows} == {"-0.5"}


def test_csv_says_the_same(runs, lines, tmp_path):
    assert tables.write_table("csv", runs, tmp_path / "rows.csv") == 5
    with (tmp_path / "rows.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for row, line in zip(rows, lines, strict=True):
        assert list(row) == list(line)
        for name, value in line.items():
            if isinstance(value, str):
                assert row[name] == value
            else:
                assert (json.loads(row[name]) if row[name] else None) == value, name


def test_parquet_says_the_same(runs, lines, tmp_path):
    assert tables.write_table("parquet", runs, tmp_path / "rows.parquet") == 5
    from_parquet = pq.read_table(tmp_path / "rows.parquet").to_pylist()
    expected = [{**line, "data": line["data"] and json.dumps(line["data"])} for line in lines]
    for found, line in zip(from_parquet, expected, strict=True):
        assert {**found, "data": found["data"] and json.dumps(json.loads(found["data"]))} == line
    assert [path.name for path in tmp_path.iterdir()] == ["rows.parquet"]


def test_pandas_says_the_same(runs, lines):
    frame = tables.to_pandas(runs)
    assert list(frame.columns) == list(lines[0])
    assert frame["completion"].tolist()[:2] == ["B\u2028", None]
    assert frame["stat.exact_match"].tolist()[2:] == [1.0, 0.0, 0.0]
    assert (str(frame["trial"].dtype), str(frame["cached"].dtype)) == ("Int64", "boolean")
    assert frame["gold"].tolist()[0] == ["gold"]
    assert runs[1].to_pandas().shape[0] == 3


def test_nothing_is_left_of_a_table_that_could_not_be_written(tmp_path):
    run = run_sums(tmp_path)
    path = run.folder / "scenario_state.json"
    path.write_bytes(path.read_bytes()[:-400])
    for kind in tables.KINDS:
        with pytest.raises(Exception, match=r"scenario_state"):
            tables.write_table(kind, [run], tmp_path / "target")
    assert {path.name for path in tmp_path.iterdir()} <= {"out", "cache"}


def test_half_a_character_becomes_a_question_mark(tmp_path):
    run = run_sums(tmp_path)
    path = run.folder / "scenario_state.json"
    path.write_text(path.read_text().replace('" 2"', '" 2\\ud800"'))
    for kind in tables.KINDS:
        assert tables.write_table(kind, [run], tmp_path / kind) == 3
    assert pq.read_table(tmp_path / "parquet")["completion"].to_pylist() == [" 2?"] * 3


def test_a_run_without_rows_is_a_table_without_rows(tmp_path):
    run = run_sums(tmp_path)
    states = json.loads((run.folder / "scenario_state.json").read_bytes())
    (run.folder / "scenario_state.json").write_text(json.dumps({**states, "request_states": []}, indent=2))
    (run.folder / "per_instance_stats.json").write_text("[]")
    for kind in tables.KINDS:
        assert tables.write_table(kind, [run], tmp_path / kind) == 0
    assert run.to_pandas().shape[0] == 0


def test_the_page_has_the_columns():
    page = PAGE.read_text(encoding="utf-8")
    for name, columns in (("columns", [*tables.COLUMNS, *tables.MORE]), ("columns of scores", tables.SCORE_COLUMNS)):
        lines = page.split(f"<!-- {name} -->\n")[1].split("<!-- end")[0].strip().splitlines()
        assert lines[2:] == [f"| `{one.name}` | {one.kind} | {one.description} |" for one in columns]


def test_conversations_are_lists_of_messages(tmp_path):
    turns = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Which metal?"}]
    row = state("", "tin", id="a", split="test")
    row["instance"]["input"] = {"messages": turns}
    run = score(
        tmp_path, write(tmp_path / "chat.jsonl", [answered(row, "tin")], {"method": "chat", "max_train_instances": 0})
    )
    frame = run.to_pandas()
    assert frame["messages"][0] == turns
