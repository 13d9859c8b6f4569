"""UltraEval task sets (docs/ultraeval.md): data, transform script, optional config, lowered to an EvalSet.

    GEN   one request a row: the prompt; `processed_output` are the accepted answers
    PPL   one request an option: prompt + key of `target_scores`; the likeliest whole string wins

A transform script is the user's code: `load` runs it, with the user's rights.

config.py       arguments of a run entry; task configs and sampling parameters, as upstream writes them
task.py         which task is meant, and its files
script.py       transform scripts ...
checkout.py     ... and the checkout of UltraEval that they import; from a completion to the answer in it
questions.py    rows, demonstrations, prompts ──▶ instances
scoring.py      which metrics, whose code
metrics.py      the metric of GEN runs
run_log.py      the log of a finished run ──▶ EvalSet
loading.py      a task ──▶ EvalSet
"""
