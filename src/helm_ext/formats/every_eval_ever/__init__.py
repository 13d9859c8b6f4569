"""Every Eval Ever (EEE): a run as one aggregate JSON file and a JSON Lines file of its samples.

    folder  ── which files are one record
    record  ── the aggregate: what is reported
    samples ── lines of samples
    profile ── what all samples have in common; it keeps them
    rows    ── the samples of a question as a row of `formats.imported`

Schema 0.3.0, https://github.com/evaleval/every_eval_ever (schemas/*.json). `helm_ext.analysis` writes such files.
"""
