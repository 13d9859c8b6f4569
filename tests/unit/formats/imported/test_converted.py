"""What another tool scored survives `convert`: the file is right, and scored as its source is."""

import json
from pathlib import Path

import pytest
from every_eval_ever_records import sample as eee_sample
from every_eval_ever_records import write as write_eee
from finished_runs import score as score_file
from inspect_files import header, sample, score, write_eval
from lm_eval_logs import samples

from helm_ext.analysis.export.every_eval_ever import write_every_eval_ever
from helm_ext.errors import DatasetError
from helm_ext.evalset import row_extra
from helm_ext.formats import get_format

FILE = get_format("adapter_spec")


def judged(folder: Path) -> Path:
    """A log that only a judge could score, and once it could not."""
    rows = [sample(id, target="", value=value) for id, value in enumerate((1.0, 0.5, float("nan"), 0.25))]
    return write_eval(folder, rows, header(results={"scores": [score("match", mean=7 / 12)]}))


def with_gold(folder: Path) -> Path:
    return write_eval(folder, [sample(1), sample(2, text="Rhine", value="I")])


def record(folder: Path) -> Path:
    return write_eee(folder, [eee_sample("a"), eee_sample("b", "apple", 0.0), eee_sample("c", "", error="timeout")])


def without_reference(folder: Path) -> Path:
    return write_eee(folder, [eee_sample("a", reference=[]), eee_sample("b", score=0.0, reference=[])])


def table(folder: Path) -> Path:
    path = folder / "t.csv"
    path.write_text("question,answer,output,judge\n2+2?,4,4,1\n3+3?,6,5,0.25\n", encoding="utf-8")
    return path


def harness(task: str):
    return lambda folder: samples(task)


@pytest.mark.parametrize(("format_", "make", "arguments"), [
    ("inspect", judged, {}), ("inspect", with_gold, {}), ("inspect", with_gold, {"main_metric": "exact_match"}),
    ("every_eval_ever", record, {}), ("every_eval_ever", without_reference, {}),
    *(("lm_eval", harness(task), {}) for task in ("lx_index", "lx_sums", "lx_own", "lx_ending", "lx_lists")),
    ("table", table, {"scores": ["judge"], "main_metric": "judge"}),
])  # fmt: skip
def test_scores_of_a_source_survive_a_conversion(tmp_path, format_, make, arguments) -> None:
    path = make(tmp_path)
    before = get_format(format_).load(path=str(path), **arguments)
    made = FILE.write(before, tmp_path / "made.jsonl")
    problems, _ = FILE.check(path=str(made.path))
    assert [str(problem) for problem in problems if problem.severity == "error"] == []
    after = FILE.load(path=str(made.path))
    for what in ("metrics", "main_metric", "own_metric"):
        assert getattr(after.scoring, what) == getattr(before.scoring, what)
    said = [{**one.source.to_args(), "counts": {}} for one in (before, after)]
    if arguments.get("main_metric") == "exact_match":  # ours, so that the file has no headline
        said = [{key: value for key, value in one.items() if key not in ("main", "main_reason")} for one in said]
    assert said[0] == said[1]
    assert FILE.name_model({"path": str(made.path)}) == before.source.model
    for key in ("source_scores", "source_unscored"):
        assert [row_extra(i).get(key) for i in after.instances] == [row_extra(i).get(key) for i in before.instances]


def left_out(folder: Path) -> Path:
    """A log of which we can score one row of three: one target names no option, one sample failed and was scored."""
    rows = [sample(1, choices=["Anda", "Brell"], target="A", text="ANSWER: A"),
            sample(2, choices=["Anda", "Brell"], target="D", value="C"),
            sample(3, choices=["Anda", "Brell"], target="A", value="I", error={"message": "x"})]  # fmt: skip
    return write_eval(folder, rows, header(results={"scores": [score("match", accuracy=2 / 3)]}))


def test_rows_that_the_source_alone_could_score_come_back_of_a_record_and_are_a_loss_of_a_conversion(tmp_path) -> None:
    run = score_file(tmp_path, left_out(tmp_path))
    (record,) = write_every_eval_ever([run], tmp_path / "record")
    found = get_format("every_eval_ever").load(path=str(record.aggregate))
    assert (found.source.main, found.source.scores["inspect_match"].mean) == ("inspect_match", pytest.approx(2 / 3))
    scores = {i.id: row_extra(i)["source_scores"].get("every_eval_ever_inspect_match") for i in found.instances}
    assert list(scores.values()) == [1.0, 1.0, 0.0]
    assert {what: found.counts.get(what) for what in ("unscored", "failed")} == {"unscored": 1, "failed": 1}
    before = get_format("inspect").load(path=str(tmp_path / "log.eval"))
    with pytest.raises(DatasetError, match="a row that has no score"):
        FILE.write(before, tmp_path / "made.jsonl")
    made = FILE.write(before, tmp_path / "made.jsonl", lossy=True)
    assert len(FILE.load(path=str(made.path), missing="skip").instances) == 2


def test_rows_of_another_model_than_the_source_name_none(tmp_path) -> None:
    path = with_gold(tmp_path)
    made = FILE.write(get_format("inspect").load(path=str(path)), tmp_path / "made.jsonl").path
    *lines, last = made.read_text("utf-8").splitlines()
    row = json.loads(last)
    row["request"]["model"] = "recorded/other"
    made.write_text("\n".join([*lines, json.dumps(row)]), "utf-8")
    assert FILE.name_model({"path": str(made)}) == ""


def test_a_score_that_the_header_does_not_name_is_an_error(tmp_path) -> None:
    path = judged(tmp_path)
    made = FILE.write(get_format("inspect").load(path=str(path)), tmp_path / "made.jsonl").path
    made.write_text(
        made.read_text("utf-8").replace('"source_scores": {"match"', '"source_scores": {"mtch"', 1), "utf-8"
    )
    with pytest.raises(DatasetError, match=r"made.jsonl:2: source_scores.mtch: no score of the source\n.*'match'"):
        FILE.load(path=str(made))


def test_rows_that_cannot_be_scored_are_a_loss_and_those_that_were_not_run_a_note(tmp_path) -> None:
    """By hand: the row without a gold cannot stand in the file, which is valid without it."""
    (tmp_path / "t.csv").write_text(
        "question,answer,output,judge\n2+2?,4,4,1\n3+3?,,5,0.25\n4+4?,8,,\n", encoding="utf-8"
    )
    said = {"scores": ["judge"], "empty": "not_run"}
    before, target = get_format("table").load(path=str(tmp_path / "t.csv"), **said), tmp_path / "made.jsonl"
    with pytest.raises(DatasetError, match="converting it would lose:\n  - a row that has no score"):
        FILE.write(before, target)
    made = FILE.write(before, target, lossy=True)
    assert made.rows == 2
    assert [note for note in made.findings.notes if "score --missing skip" in note]
    assert FILE.load(path=str(target)).counts["recorded"] == 1
