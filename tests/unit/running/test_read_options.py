"""A run's page shows options with their letters, and which one was read; HELM's own runs as HELM shows them."""

from __future__ import annotations

import json

import pytest
import request_states_files as files
from helm.benchmark.presentation.schema import Schema
from helm.benchmark.run_spec import RunSpec
from helm.common.codec import from_json
from run_entries import run

from helm_ext.running.display import write_display_files

ANSWERS = ("The answer is B.", "A", "no idea")


@pytest.mark.long
def test_options_have_letters_and_the_answer_is_the_one_that_was_read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = []
    for number, text in enumerate(ANSWERS):
        row = files.choice(f"Which metal is liquid, {number}?", ["Iron", "Mercury", "Zinc"], 1, id=f"r{number}")
        rows.append(files.answered(row, text))
    files.write(tmp_path / "metals.json", rows)
    folder = run(tmp_path, "adapter_spec", path="metals.json")
    spec = from_json((folder / "run_spec.json").read_bytes(), RunSpec)
    write_display_files(folder, spec, Schema(), skip_completed=False)
    shown = json.loads((folder / "display_predictions.json").read_text())
    assert [one["mapped_output"] for one in shown] == ["B. Mercury", "A. Iron", "unmapped"]
    for instance in json.loads((folder / "instances.json").read_text()):
        texts = [reference["output"]["text"] for reference in instance["references"]]
        assert texts == ["A. Iron", "B. Mercury", "C. Zinc"]
