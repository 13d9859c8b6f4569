"""Samples of a large log are kept on disk until they are made rows of."""

import json
from pathlib import Path

import every_eval_ever_records as records
import lm_eval_logs
import pytest
from msgspec import to_builtins

from helm_ext.files import store
from helm_ext.formats import get_format
from helm_ext.formats.every_eval_ever import task as every_eval_ever
from helm_ext.formats.lm_eval import task as lm_eval


def make_record(folder: Path) -> Path:
    lines = [records.sample(name, metadata={"epoch": epoch, "n": 2**70}) for epoch in (1, 2) for name in "abc"]
    return records.write(folder, lines)


@pytest.mark.parametrize(("name", "module", "make", "arguments", "rows"), [
    ("every_eval_ever", every_eval_ever, make_record, {}, 3),
    ("lm_eval", lm_eval, lambda _: lm_eval_logs.samples("lx_sums"), {}, 7),
    ("lm_eval", lm_eval, lambda _: lm_eval_logs.samples("lx_sums"), {"filter": "last"}, 7),
])  # fmt: skip
def test_rows_are_the_same_where_samples_do_not_stay_in_memory(
    name, module, make, arguments, rows, tmp_path, monkeypatch
):
    arguments = {"path": str(make(tmp_path)), **arguments}
    in_memory = [json.dumps(to_builtins(row)) for row in get_format(name).open(**arguments).rows()]
    monkeypatch.setattr(store, "_find_place", lambda: tmp_path)
    monkeypatch.setattr(module, "KEPT_ROWS", 1)
    opened = get_format(name).open(**arguments)
    assert any(file.name.startswith("rows-") for file in tmp_path.rglob("*"))
    assert [json.dumps(to_builtins(row)) for row in opened.rows()] == in_memory
    assert len(in_memory) == rows
