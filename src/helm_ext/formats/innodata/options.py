"""The arguments of `innodata:` run entries and of `load` and `check`, and what makes no sense among them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from helm_ext.errors import RunEntryError
from helm_ext.evalset import Scoring
from helm_ext.formats.innodata.hub.records import SPLITS, Split
from helm_ext.parsing import compile_pattern

METRICS = (
    "expected_exact",
    "expected_prefix",
    "expected_contains",
    "refusal_match",
    "expected_f1",
    "expected_rouge_l",
    "expected_bleu",
    "expected_chrf",
)
MAIN_METRIC = "expected_contains"
"""Chat models wrap their answers in sentences, so the whole words of `expected` count wherever they stand."""


_WORDS = {"split": SPLITS, "render": ("chat", "text"), "thinking": ("move", "keep", None)}


@dataclass(frozen=True, kw_only=True)
class Options:
    """How a bundle is read and scored. `format` says what each means."""

    dataset: str | None = None
    """A name on the hub. Exactly one of `dataset` and `path` is needed."""
    path: str | Path | None = None
    version: int | str | None = None
    split: Split = "test"
    hub: str | None = None
    render: Literal["chat", "text"] = "chat"
    replies: str | Path | None = None
    max_tokens: int = 512
    temperature: float = 0.0
    stop: Sequence[str] | None = None
    limit: int | None = None
    """The first rows only. Records beyond are not parsed, so their rules are not checked; digests are."""
    missing: Literal["error", "skip"] = "error"
    """Decided by the run, see `helm_ext.adaptation`."""
    metrics: Sequence[str] | None = None
    main_metric: str | None = None
    thinking: Literal["move", "keep"] | None = None
    extract: str | None = None
    strip: bool = False
    lower: bool = False

    def require_sense(self) -> None:
        """Raise RunEntryError for arguments that contradict each other or have no meaning; not for metrics."""
        if (self.dataset is None) == (self.path is None):
            raise RunEntryError("innodata: exactly one of dataset and path is needed")
        for key, why in (("version", "a file has no versions"), ("hub", "a file is in no hub")):
            value = getattr(self, key)
            if self.path is not None and value is not None:
                hint = f"dataset=NAME,{key}={value} reads from the hub"
                raise RunEntryError(f"{key}={value}: {why}\n  hint: {hint}")
        for key, words in _WORDS.items():
            if (word := getattr(self, key)) not in words:
                raise RunEntryError(f"{key}={word}: expected {' or '.join(filter(None, words))}")
        for key in ("limit", "max_tokens"):
            number = getattr(self, key)
            if number is not None and (type(number) is not int or number < 1):
                raise RunEntryError(f"{key}={number}: expected a positive whole number")

    def to_scoring(self) -> Scoring:
        """Return the Scoring; the main metric is always measured, and is the first of `metrics` if it is not given.

        Raises RunEntryError for a metric that is not known or cannot be measured, and for an invalid pattern.
        """
        from helm_ext.scoring.registry import find_unnamable, get_scores, main_stat

        if self.extract is not None:
            try:
                compile_pattern(self.extract)
            except ValueError as error:
                raise RunEntryError(f"extract={self.extract}: {error}") from error
        chosen = tuple(dict.fromkeys(self.metrics or METRICS))
        main_metric = self.main_metric
        if main_metric is None:
            main_metric = MAIN_METRIC if MAIN_METRIC in chosen else chosen[0]
        elif main_metric not in chosen:
            chosen = (*chosen, main_metric)
        for name in chosen:
            unnamable = find_unnamable(name, examples=f"for example {', '.join(METRICS)}")
            if unnamable:
                message, hint = unnamable
                raise RunEntryError(f"{message}\n  hint: {hint}" if hint else message)
            prepare = get_scores()[name].prepare
            if prepare:
                prepare()
        return Scoring(
            chosen,
            main_stat(main_metric),
            extract=self.extract,
            strip=self.strip,
            lower=self.lower,
            thinking=self.thinking or "move",
        )
