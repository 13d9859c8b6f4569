"""Samples of a large log are kept on disk until they are made rows of."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import every_eval_ever_records as records
import pytest

from helm_ext.files import store
from helm_ext.formats import get_format
from helm_ext.formats.every_eval_ever import profile as every_eval_ever


def make_record(folder: Path) -> Path:
    lines = [records.sample(name, metadata={"epoch": epoch, "n": 2**70}) for epoch in (1, 2) for name in "abc"]
    return records.write(folder, lines)


@pytest.mark.parametrize(("name", "module", "make"), [("every_eval_ever", every_eval_ever, make_record)])
def test_rows_are_the_same_where_samples_do_not_stay_in_memory(name, module, make, tmp_path, monkeypatch):
    path = str(make(tmp_path))
    in_memory = [asdict(row) for row in get_format(name).open(path=path).rows()]
    monkeypatch.setattr(store, "_find_place", lambda: tmp_path)
    monkeypatch.setattr(module, "KEPT_ROWS", 1)
    opened = get_format(name).open(path=path)
    assert any(file.name.startswith("rows-") for file in tmp_path.rglob("*"))
    assert [asdict(row) for row in opened.rows()] == in_memory
    assert len(in_memory) == 3
