"""Text to predictions: cleaning, extraction, lists, and which option a completion means. Standard library only.

    completion ──clean──▶ text ──────────────────────────▶ prediction            (output_format "string")
                           │ ├────split_segments, ───────▶ list of segments      (output_format "list")
                           │ │    find_segments
                           │ └────read_choice────────────▶ labels of options     (multiple choice)

How labels are read is said in `helm_ext.parsing.labels`, and for users in docs/adapter_spec.md.
"""

from __future__ import annotations

from helm_ext.parsing.labels import read_choice, read_label, read_labels
from helm_ext.parsing.segments import find_segments, read_list, split_segments, trim
from helm_ext.parsing.texts import (
    StopCensus,
    clean,
    compile_pattern,
    cut_at_next_question,
    cut_at_stops,
    extract,
    find_question_starts,
    is_cut_off,
    names_thinking,
    split_thinking,
)

__all__ = [
    "StopCensus",
    "clean",
    "compile_pattern",
    "cut_at_next_question",
    "cut_at_stops",
    "extract",
    "find_question_starts",
    "find_segments",
    "is_cut_off",
    "names_thinking",
    "read_choice",
    "read_label",
    "read_labels",
    "read_list",
    "split_segments",
    "split_thinking",
    "trim",
]
