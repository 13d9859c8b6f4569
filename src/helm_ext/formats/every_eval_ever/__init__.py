"""Every Eval Ever (EEE): a run as one aggregate JSON file and a JSON Lines file of its samples.

Schema 0.3.0, https://github.com/evaleval/every_eval_ever (schemas/*.json). `helm_ext.analysis` writes such files.
"""
