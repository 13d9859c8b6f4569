"""The arguments of `innodata:` run entries and of `load` and `check`, and what makes no sense among them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from helm_ext.errors import RunEntryError
from helm_ext.evalset import Scoring
from helm_ext.hub.meta import SPLITS, Split
from helm_ext.parsing import compile_pattern

__all__ = ["METRICS", "Options"]

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


@dataclass(frozen=True, kw_only=True)
class Options:
    """How a bundle is read and scored."""

    dataset: str | None = None
    """A name on the hub. Exactly one of `dataset` and `path` is needed."""
    path: str | Path | None = None
    """A bundle."""
    version: int | str | None = None
    """Of `dataset`: a number, a digest or the start of one; None is the newest."""
    split: Split = "test"
    hub: str | None = None
    render: Literal["chat", "text"] = "chat"
    replies: str | Path | None = None
    """A JSON Lines file of `{id, reply}` to score instead of asking a model."""
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
        if self.path is not None and self.version is not None:
            raise RunEntryError(
                f"version={self.version}: a file has no versions\n"
                f"  hint: dataset=NAME,version={self.version} reads from the hub"
            )
        if self.path is not None and self.hub is not None:
            raise RunEntryError(
                f"hub={self.hub}: a file is in no hub\n  hint: dataset=NAME,hub={self.hub} reads from the hub"
            )
        if self.split not in SPLITS:
            raise RunEntryError(f"split={self.split}: expected test or train")
        if self.render not in ("chat", "text"):
            raise RunEntryError(f"render={self.render}: expected chat or text")
        for name, number in (("limit", self.limit), ("max_tokens", self.max_tokens)):
            if number is not None and (type(number) is not int or number < 1):
                raise RunEntryError(f"{name}={number}: expected a positive whole number")
        if self.thinking not in (None, "move", "keep"):
            raise RunEntryError(f"thinking={self.thinking}: expected move or keep")

    def to_scoring(self) -> Scoring:
        """Return the Scoring; the main metric is always measured, and is the first of `metrics` if it is not given.

        Raises RunEntryError for a metric that is not known or cannot be measured, and for an invalid pattern.
        """
        made = _make_scoring(self.metrics, self.main_metric, self.extract, self.strip, self.lower)
        return replace(made, thinking=self.thinking or "move")


def _make_scoring(
    metrics: Sequence[str] | None, main_metric: str | None, extract: str | None, strip: bool, lower: bool
) -> Scoring:
    """Return the Scoring; the main metric is always measured, and is the first of `metrics` if it is not given."""
    from helm_ext.scoring.registry import find_unnamable, get_scores, main_stat

    if extract is not None:
        try:
            compile_pattern(extract)
        except ValueError as error:
            raise RunEntryError(f"extract={extract}: {error}") from error
    chosen = tuple(dict.fromkeys(metrics or METRICS))
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
    main_metric = main_stat(main_metric)
    return Scoring(chosen, main_metric, extract=extract, strip=strip, lower=lower)
