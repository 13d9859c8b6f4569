"""Which folders are finished runs."""

from __future__ import annotations

import pytest
from finished_runs import run_sums

import helm_ext
from helm_ext.analysis import FinishedRun, find_runs
from helm_ext.errors import DatasetIntegrityError, DatasetNotFoundError, DatasetSyntaxError


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    for name in ("one", "two"):
        run_sums(folder, name)
    return folder / "out"


def test_runs_are_found_in_any_folder_above_them_and_once(out):
    suite = out / "runs" / "s"
    for paths in ([out], [suite], [suite / "two", suite / "one"], [out, suite / "one"]):
        runs, unfinished = find_runs(paths)
        assert sorted(run.name for run in runs) == ["one", "two"]
        assert unfinished == []
    assert {run.suite for run in runs} == {"s"}


def test_a_run_that_is_not_finished_is_left_out_and_named(out, tmp_path):
    half = out / "runs" / "s" / "half"
    half.mkdir()
    (half / "run_spec.json").write_text("{}")
    try:
        runs, unfinished = find_runs([out])
        assert (len(runs), unfinished) == (2, [half])
        with pytest.raises(DatasetIntegrityError, match=r"half: the run is not finished: no scenario.json, "):
            find_runs([half])
    finally:
        (half / "run_spec.json").unlink()
        half.rmdir()


def test_what_is_no_run_is_refused(tmp_path):
    with pytest.raises(DatasetNotFoundError, match=r"nowhere: no such folder"):
        helm_ext.read_run(tmp_path / "nowhere")
    with pytest.raises(DatasetNotFoundError, match=r"no run: none of HELM's files is in it"):
        helm_ext.read_run(tmp_path)
    with pytest.raises(DatasetNotFoundError, match=r"no finished run is in this folder\n  hint: benchmark_output"):
        find_runs([tmp_path])
    (tmp_path / "killed").mkdir()
    (tmp_path / "killed" / ".commit.lock").touch()
    with pytest.raises(
        DatasetNotFoundError, match=r"killed was begun and did not finish: start the same helm-run again"
    ):
        find_runs([tmp_path])


def test_read_run_is_at_the_top_of_the_package(out):
    run = helm_ext.read_run(str(out / "runs" / "s" / "one"))
    assert isinstance(run, FinishedRun)
    assert (run.name, run.scenario_name, run.is_ours) == ("one", "sums", False)
    assert "read_run" in helm_ext.__all__


def test_a_run_spec_of_something_else_is_refused(out, tmp_path):
    import shutil

    copy = shutil.copytree(out / "runs" / "s" / "one", tmp_path / "copy")
    (copy / "run_spec.json").write_text('{"name": "x"}')
    with pytest.raises(DatasetSyntaxError, match=r"run_spec.json: no run spec of HELM's: without scenario_spec, "):
        _ = helm_ext.read_run(copy).name
    (copy / "run_spec.json").write_text("{")
    with pytest.raises(DatasetSyntaxError, match=r"run_spec.json: not as HELM writes it"):
        _ = helm_ext.read_run(copy).name
