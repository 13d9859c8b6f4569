"""Format `lm_eval:` reads what lm-evaluation-harness leaves behind: `samples_*.jsonl` and `results_*.json`.

How the files are written: lm_eval/loggers/evaluation_tracker.py, lm_eval/evaluator.py and lm_eval/api/task.py of
https://github.com/EleutherAI/lm-evaluation-harness. docs/lm_eval.md says what is made of them.
"""
