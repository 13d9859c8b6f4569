"""Formats of other distributions that are broken. One that works: docs/how-to/add_a_format.md, by test_tutorials.py."""

import os
from pathlib import Path

import pytest
import request_states_files
from processes import helm_run, run_folders

pytestmark = pytest.mark.slow


def with_paths(*folders: Path) -> dict[str, str]:
    return {"PYTHONPATH": os.pathsep.join([*map(str, folders), os.environ.get("PYTHONPATH", "")])}


def test_a_broken_format_of_somebody_elses_breaks_no_run(tmp_path):
    """One that cannot be imported, one that takes the name of a run entry of HELM's: two warnings, and the run goes on."""
    info = tmp_path / "site" / "broken-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[helm_ext.formats]\nbroken = no_such:FORMAT\nmmlu = no_such:FORMAT\n")
    request_states_files.write(tmp_path / "a.json", [request_states_files.state("?", "!", id="a")])
    done = helm_run(tmp_path, "adapter_spec:path=a.json,model=simple/model1", env=with_paths(tmp_path / "site"))
    log = done.stdout + done.stderr
    assert log.count("the format 'broken' of the distribution 'broken' cannot be loaded") == 1
    assert "the format 'mmlu' has no run entry: A run spec function with name mmlu already exists" in log
    assert len(run_folders(tmp_path)) == 1
    done = helm_run(tmp_path, "broken:path=a.json,model=simple/model1", env=with_paths(tmp_path / "site"), check=False)
    assert done.returncode != 0
    assert (
        "the format 'broken' of the distribution 'broken' cannot be loaded: no_such:FORMAT" in done.stdout + done.stderr
    )
