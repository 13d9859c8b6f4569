"""Format `lm_eval:` reads what lm-evaluation-harness leaves behind: `samples_*.jsonl` and `results_*.json`.

    folder  ── which files of a folder belong together
    report  ── the results file: how a task was asked, what the harness reports of it
    samples ── lines of a samples file
    requests ── what a line asked
    golds   ── what its `target` means
    profile ── which lines belong to one question, what holds for all of them; it keeps them
    rows    ── the questions as rows of `formats.imported`

How the files are written: lm_eval/loggers/evaluation_tracker.py, lm_eval/evaluator.py and lm_eval/api/task.py of
https://github.com/EleutherAI/lm-evaluation-harness. docs/lm_eval.md says what is made of them.
"""
