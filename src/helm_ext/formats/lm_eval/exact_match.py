"""What lm-eval's `exact_match` does to both texts before it compares them (lm_eval/api/metrics.py).

Where an answer was filtered, golds and answers are cleaned so: the task says what in them is no part of the answer
("She has <<1+2=3>>3 pears. #### 3"). Case and punctuation are left to our scores, which forgive them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from helm_ext.errors import RunEntryError, show
from helm_ext.evalset.patterns import limit_pattern

Cleaner = Callable[[str], str]


def make_cleaner(options: Mapping[str, Any] | None) -> Cleaner | None:
    """Return what removes all matches of `regexes_to_ignore` from a text; None where the task has no such patterns."""
    given = (options or {}).get("regexes_to_ignore")
    if not isinstance(given, list) or not given:
        return None
    try:
        patterns = [re.compile(pattern) for pattern in given]
    except (re.error, TypeError) as error:
        raise RunEntryError(f"exact_match of the results file: {show(given)} are no regular expressions") from error

    def clean(text: str) -> str:
        for pattern in patterns:
            with limit_pattern(pattern.pattern, text):
                text = pattern.sub("", text)
        return text

    return clean


def is_lenient(options: Mapping[str, Any]) -> bool:
    """Whether texts that differ can be equal to the task."""
    return any(options.get(key) for key in ("ignore_case", "ignore_punctuation", "ignore_numbers", "regexes_to_ignore"))
