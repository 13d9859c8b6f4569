"""Which folders are finished runs."""

import shutil

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


def test_what_is_no_run_is_refused(out, tmp_path):
    (tmp_path / "begun" / "killed").mkdir(parents=True)
    (tmp_path / "begun" / "killed" / ".commit.lock").touch()
    (tmp_path / "empty").mkdir()
    copy = shutil.copytree(out / "runs" / "s" / "one", tmp_path / "other")
    (copy / "run_spec.json").write_text('{"name": "x"}')
    half = shutil.copytree(copy, tmp_path / "half")
    (half / "run_spec.json").write_text("{")
    for read, path, said in (
        (helm_ext.read_run, "xyz", "xyz: no such folder\n  hint: in .* there is begun, empty, half, other"),
        (lambda path: find_runs([path]), "halv", "halv: no such folder\n  hint: did you mean 'half'"),
        (helm_ext.read_run, "empty", "no finished run is in this folder\n  hint: helm-ext score makes"),
        (helm_ext.read_run, ".", "a suite of 2 runs: which one.\n  hint: name it: .*half, .*other"),
        (lambda path: find_runs([path]), "begun", "killed was begun and did not finish: start the same helm-run again"),
        (lambda path: helm_ext.read_run(path).name, "other", "run_spec.json: no run spec of HELM's: without scenario_"),
        (lambda path: helm_ext.read_run(path).name, "half", "run_spec.json: not as HELM writes it"),
    ):
        with pytest.raises((DatasetNotFoundError, DatasetSyntaxError), match=said):
            read(tmp_path / path)


def test_read_run_is_at_the_top_of_the_package(out):
    run = helm_ext.read_run(str(out / "runs" / "s" / "one"))
    assert isinstance(run, FinishedRun)
    assert (run.name, run.scenario_name, run.is_ours) == ("one", "sums", False)
    assert "read_run" in helm_ext.__all__
