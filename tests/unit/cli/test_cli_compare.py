"""`helm-ext compare` of folders of runs, in this process; tests/integration/test_compare.py has the rest."""

import json

import finished_runs
from commands import run
from optional_sources import IMPORT_SAMPLES, needs_import_samples


@needs_import_samples
def test_a_perplexity_of_all_rows_is_left_out_and_named(tmp_path):
    for model in ("org/one", "org/two"):
        for task in ("imp_arc", "imp_ppl"):
            finished_runs.score(tmp_path, IMPORT_SAMPLES / "lm_eval", model, task=task)
    done = run("compare", tmp_path / "out")
    assert done.stderr.count("not compared: ") == 2
    assert "lm_eval_acc" in done.stdout
    # what cannot be compared does not pass
    run("compare", tmp_path / "out", "--baseline", "org/one", "--fail-if-worse", "0.02", code=2)


def test_a_run_that_is_refused_leaves_no_folder(tmp_path):
    """An empty one would count as a run that is not finished, and keep the others from being merged."""
    states = [
        {
            "instance": {"id": f"r{n}", "input": {"text": f"{n}?"}, "references": [{"output": {"text": "iron"}, "tags": ["correct"]}]},
            "request": {"result": {"success": True, "completions": [{"text": "iron"}]}} if n else {},
        }
        for n in range(3)
    ]  # fmt: skip
    path = tmp_path / "rows.json"
    path.write_text(json.dumps({"adapter_spec": {"max_train_instances": 0}, "request_states": states}))
    run("score", path, "--model", "m", "-o", tmp_path / "out", code=1)
    assert not [*(tmp_path / "out").glob("runs/*/adapter_spec*")]
