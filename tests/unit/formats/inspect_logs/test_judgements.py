"""Scores that a model gave are judgements: as scorer/_model.py of inspect_ai 0.3.285, and of 0.3.100, writes them."""

from pathlib import Path
from typing import Any

import finished_runs
import inspect_files as files

NAN = float("nan")
OPTIONS = {"model": {"model": "mockllm/judge", "config": {}}, "instructions": "Grade it."}


def graded(number: int, value: Any, reply: str, **more: Any) -> dict[str, Any]:
    """Return a sample with the score that `model_graded_qa` gives for a reply of the grader."""
    found = reply if "GRADE" in reply else f"Grade not found in model output: {reply}"
    message = {"role": "assistant", "model": "mockllm/judge-2", "content": reply}
    score = {
        "value": value, "answer": "Anda", "explanation": found, "history": [],
        "metadata": {"grading": [{"role": "user", "content": f"Is it right? {number}"}, message]}, **more,
    }  # fmt: skip
    return {**files.sample(number), "scores": {"model_graded_qa": score}}


def read(folder: Path, samples: list[Any], **options: Any) -> Any:
    folder.mkdir(exist_ok=True)
    head = files.with_eval(scorers=[{"name": "model_graded_qa", "options": {**OPTIONS, **options}}])
    return finished_runs.score(folder, files.write_json(folder, samples, head))


def test_replies_graders_and_what_is_unparsed(tmp_path: Path) -> None:
    run = read(tmp_path, [
        graded(1, "C", "Yes. GRADE: C"),
        graded(2, "I", "GRADE: I"),
        graded(3, NAN, "Hm.", reason="grader_failed"),
        graded(4, "I", "Hard to say."),  # as before 0.3.245: the log counts it as wrong
        {**files.sample(5), "scores": {"model_graded_qa": {"value": "C", "explanation": "I say so", "history": [{}]}}},
    ])  # fmt: skip
    stats = {stat["name"]["name"]: stat.get("mean") for stat in run.stats if stat["name"].get("split") == "test"}
    assert (stats["judge_model_graded_qa"], stats["inspect_model_graded_qa"]) == (1 / 2, 2 / 4)
    assert (stats["judge_model_graded_qa_unparsed"], stats["judge_model_graded_qa_unscored"]) == (2, 3)
    rows = list(run.predictions())
    (first,) = rows[0].list_said("model_graded_qa")
    assert (first.by, first.kind, first.value, first.reply) == ("mockllm/judge", "model", 1.0, "Yes. GRADE: C")
    assert first.judged_sha256 is not None
    (unread,) = rows[3].list_said("model_graded_qa")
    assert (unread.status, unread.reply) == ("unparsed", "Hard to say.")


def test_partial_credit_panels_and_rubrics(tmp_path: Path) -> None:
    panel = {"panel": {"votes": ["C", "I"], "size": 2, "failures": []}}
    one = read(tmp_path / "a", [graded(1, "P", "GRADE: P"), graded(2, "C", "GRADE: C")], partial_credit=True)
    two = read(
        tmp_path / "b", [graded(1, "C", "", explanation=None, metadata=panel)],
        model=[{"model": "a"}, {"model": "b"}], instructions="Grade it. ",
    )  # fmt: skip
    (half,), (whole,) = (next(run.predictions()).list_said("model_graded_qa") for run in (one, two))
    assert (half.value, half.scale) == (0.5, (0.0, 0.5, 1.0))
    assert (whole.by, whole.reply, whole.params) == ("a + b", None, panel)
    assert half.rubric_sha256 != whole.rubric_sha256


def test_each_epoch_has_its_own(tmp_path: Path) -> None:
    samples = [graded(1, "C", "GRADE: C"), {**graded(1, "I", "GRADE: I"), "epoch": 2}]
    run = read(tmp_path, samples)
    assert [one.completion for one in next(run.predictions()).said] == [0, 1]
    (stat,) = [stat for stat in run.stats if stat["name"] == {"name": "judge_model_graded_qa", "split": "test"}]
    assert stat["mean"] == 0.5
