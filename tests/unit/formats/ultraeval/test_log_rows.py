"""Large logs of finished runs are read again when their rows are scored; the rows are those that were checked."""

import gzip
import json

import pytest

from helm_ext import formats
from helm_ext.errors import DatasetError
from helm_ext.evalset.rows import StoredRows
from helm_ext.formats.ultraeval import run_log

ROWS = 40


def make_row(number, method):
    options = {f"{number} one": 0, f"{number} two": 1}
    outputs = [f"said {number}"] if method == "gen" else [[[-1.0, -number / 7], [-1.0, float("nan")]]]
    return {
        "data": {"question": f"{number}?", "target_scores": options},
        "ground_truth": f"{number} two",
        "prompt_inputs": [f"{number}? "],
        "raw_outputs": [] if number % 9 == 4 else outputs,
    }


def write(folder, method, name="instance.jsonl"):
    folder = folder / f"sums_sums_{method}"
    folder.mkdir(exist_ok=True)
    rule = "in_match" if method == "gen" else "log_prob"
    (folder / "config.json").write_text(json.dumps({"metric": {"accuracy": {"evaluation": {"type": rule}}}}))
    data = "".join(json.dumps(make_row(number, method)) + "\n" for number in range(ROWS)).encode() + b"\n"
    (folder / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return folder / name


def load(path, **arguments):
    return formats.get_format("ultraeval").load(data=str(path), **arguments)


@pytest.mark.parametrize("name", ["instance.jsonl", "instance.jsonl.gz"])
@pytest.mark.parametrize("method", ["gen", "ppl"])
@pytest.mark.parametrize("limit", [None, 30])
def test_rows_that_are_read_again_are_those_that_were_kept(tmp_path, monkeypatch, method, name, limit):
    path = write(tmp_path, method, name)
    kept = load(path, limit=limit)
    assert isinstance(kept.instances, list)
    monkeypatch.setattr(run_log, "KEPT_ROWS", 10)
    again = load(path, limit=limit)
    assert isinstance(again.instances, StoredRows)
    assert len(again.instances) == len(kept.instances) == (limit or ROWS)
    # repr: NaN is no number's equal
    assert repr(list(again.instances)) == repr(kept.instances)
    assert repr(list(again.instances.read([29, 2, 3]))) == repr([kept.instances[place] for place in (29, 2, 3)])
    assert (again.digest, again.question_digest, again.counts) == (kept.digest, kept.question_digest, kept.counts)
    status = [one.extra_data["helm_ext"]["recorded"]["status"] for one in kept.instances]
    assert [("ok", "not_run")[code] for code in again.instances.status] == status
    assert kept.counts["not_run"] == status.count("not_run") == len([n for n in range(limit or ROWS) if n % 9 == 4])


def test_every_line_of_another_shape_is_said(tmp_path):
    path = write(tmp_path, "gen")
    lines = path.read_text().splitlines()
    lines[7] = lines[7].replace('"question": "7?"', '"question": NaN')
    lines[9] = lines[9].replace('"ground_truth": "9 two"', '"ground_truth": 9')
    path.write_text("\n".join(lines))
    with pytest.raises(DatasetError) as caught:
        load(path)
    assert [problem.location.line for problem in caught.value.problems] == [8, 10]
    path.write_text("\n".join([*lines[:20], "[1]", "{", *lines[20:]]))
    with pytest.raises(DatasetError) as caught:
        load(path)
    assert [problem.location.line for problem in caught.value.problems] == [21, 22]
