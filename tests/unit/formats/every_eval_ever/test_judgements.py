"""A result that the record says a model gave is a judgement of each of its samples, by the schema's `llm_scoring`."""

from pathlib import Path
from typing import Any

import every_eval_ever_records as records
import finished_runs
import pytest

from helm_ext.errors import DatasetSchemaError
from helm_ext.formats import get_format


def config(*judges: str, **more: Any) -> dict[str, Any]:
    info = [{"model_info": {"name": name, "id": f"lab/{name}"}} for name in judges]
    told = {"judges": info, "input_prompt": "Is it right?"}
    return {"metric_id": "right", "lower_is_better": False, "llm_scoring": told, "score_type": "binary", **more}


@pytest.mark.parametrize(("given", "judge", "scale"), [
    (config("a"), "lab/a", (0.0, 1.0)), (config("a", "b"), "lab/a + lab/b", (0.0, 1.0)),
    (config("a", score_type="continuous", min_score=0, max_score=5), "lab/a", (0.0, 5.0)),
])  # fmt: skip
def test_each_score_of_a_judge_is_a_judgement(tmp_path: Path, given: dict[str, Any], judge: str, scale: Any) -> None:
    samples = [
        records.sample("a", score=1.0),
        records.sample("b", score=0.0),
        records.sample("c", score=0.0, error="timeout"),
    ]
    path = records.write(tmp_path, samples, [records.result(metric="right", metric_config=given)])
    said = [one for row in finished_runs.score(tmp_path, path).predictions() for one in row.said]
    assert [(one.by, one.value, one.bounds) for one in said] == [(judge, 1.0, scale), (judge, 0.0, scale)]
    assert {(one.criterion, one.status) for one in said} == {("right", "ok")}


def test_a_score_without_a_scale_or_a_judge_is_none(tmp_path: Path) -> None:
    plain = config("a", score_type="continuous", min_score=0, max_score="Infinity")
    path = records.write(tmp_path, [records.sample()], [records.result(metric="right", metric_config=plain)])
    assert not any(row.said for row in finished_runs.score(tmp_path, path).predictions())


@pytest.mark.parametrize(("written", "message"), [
    ("[{", "not JSON"),
    ('[{"by": "x", "kind": "robot"}]', r'judgements\[0\].kind: expected "model" or "human", got "robot"'),
])  # fmt: skip
def test_judgements_that_are_wrong_are_an_error_with_the_line(tmp_path: Path, written: str, message: str) -> None:
    path = records.write(tmp_path, [records.sample(), records.sample("b", metadata={"judgements": written})])
    with pytest.raises(DatasetSchemaError, match=rf"samples.jsonl:2: metadata.*{message}"):
        get_format("every_eval_ever").load(path=str(path))
