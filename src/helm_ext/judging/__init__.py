"""Answers judged by models and by people: what is asked, how replies are read, which rows people label.

judgement  what was said of one answer, bound to what was judged: stale when that has changed
jury       one value of what several judges said
rubrics    what a judge is asked, as small TOML files: three of ours, and users' own
verdicts   a judge's reply to a value, or to nothing
drawing    which answers people label, with known chances
sheets     CSV files and pages to label in, and the labels on them
"""
