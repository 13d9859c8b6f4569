"""Which options the completion of a multiple-choice row names, however many it may name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from helm_ext.parsing.labels import map_answer, map_answers
from helm_ext.parsing.predictions import apply_pattern
from helm_ext.parsing.segments import SEPARATOR, split_segments

__all__ = ["read_choice"]


def read_choice(
    text: str,
    options: Mapping[str, str],
    pattern: str | None = None,
    *,
    multi_label: bool = False,
    is_list: bool = False,
    is_exact: bool = False,
    is_cut_off: bool = False,
    separator: str = SEPARATOR,
) -> Sequence[str | None]:
    """Return the labels of the options that are named, None for a segment of a list that names none.

    `options`: label to text, in order. `pattern`: AdapterSpec's `output_mapping_pattern`, which overrides the reading
    of labels. `multi_label`: all right options are asked for. `is_list`: `output_format: list`, with
    `separator` between segments. `is_exact`: HELM's own
    rule (evaluate_reference_metrics.compute_reference_metrics), the stripped text is a label. `is_cut_off`: the model
    was stopped before it had finished (`finish_reason` "length").
    Raises ValueError for a pattern that is no regular expression.
    """
    if is_exact:
        label = apply_pattern(text.strip(), pattern) if pattern else text.strip()
        return [label] if label in options else []
    if is_list and not _is_one_option(text, options):
        segments = split_segments(text, separator)
        if not multi_label or len(segments) != 1:  # "A, C" is as good as "A; C"
            last = len(segments) - 1
            return [
                map_answer(segment, options, pattern, is_cut_off=is_cut_off and place == last)
                for place, segment in enumerate(segments)
            ]
    if multi_label:
        return map_answers(text, options, pattern, is_cut_off=is_cut_off)
    return [map_answer(text, options, pattern, is_cut_off=is_cut_off)]


def _is_one_option(text: str, options: Mapping[str, str]) -> bool:
    """Tell whether the text is that of an option, which may hold `;`."""
    return text.strip() in {option.strip() for option in options.values()}
