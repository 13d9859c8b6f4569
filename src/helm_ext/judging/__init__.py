"""Answers judged by models and by people: what is asked, how replies are read, which rows people label.

judgement  what was said of one answer, bound to what was judged: stale when that has changed; and the jury's value
rubrics    what a judge is asked, as small TOML files: three of ours, and users' own; a reply to a value, or to nothing
sheets     which answers people label, drawn with known chances; CSV files and pages to label in
"""
