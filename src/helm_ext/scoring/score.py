"""What a score is: a name, a function, and how reports present it. What stats are called that stand beside another one.

`registry` knows all scores. This module imports little: whoever reads a run's files needs the names.

| kind          | the function gets                                                        |
|---------------|--------------------------------------------------------------------------|
| `text`        | a gold text and the prediction; the best over the accepted golds counts  |
| `row`         | the row's own data, its golds and the prediction, all at once            |
| `list`        | a gold list of segments and the predicted one (`output_format: list`)    |
| `likelihoods` | the log-probabilities of the row's options, and which of them are right  |
| `helm`        | nothing: HELM computes it, by its name                                   |
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from helm.benchmark.metrics.metric import MetricMetadata

    from helm_ext.evalset import Likelihood

Kind = Literal["text", "row", "list", "likelihoods", "helm"]

Value = float | Mapping[str, float]
"""What a function returns: a number, or for a score of several stats a number for each stat's name."""


DIFFERS = "_differs"
"""Ends the name of the stat that says on which part of the rows a source's score and ours differ."""

UNSCORED = "_unscored"
"""Ends the name of the stat that says how many rows a source could not score: judgements that it could not read."""

ENDS = ("@ci_low", "@ci_high")
"""End the names of the stats that hold the lower and the upper end of a metric's interval."""

THESE_ROWS = ("@these_rows_low", "@these_rows_high")
"""The same of the interval that knows the noise of the answers alone: what the model scores on exactly these rows."""

ANSWERS = "@answers"
"""Ends the name of a row's stat that says of how many answers to the row the score is made."""

NOISE = "@noise"
"""Ends the name of a row's stat: the variance of its score, were the row answered as often again."""

CORRECTED = "_corrected"
"""Ends the name of a judge's score that people's labels correct: `judge_correct_corrected`."""

LABELS, UNDESIGNED = "_labels", "_undesigned"
"""End the names of the stats that say how many rows have a label whose design is recorded, and how many labels none."""

JUDGED = "_judged"
"""Ends the name of a score of which a judge read what our own reading could not: `exact_match_judged`."""

BESIDE = (*ENDS, *THESE_ROWS, ANSWERS, NOISE)
"""The endings of stats that describe a score and are not scores themselves."""

CHOICE, ANSWER, REFUSAL = "unclear_choice", "unclear_answer", "unclear_refusal"
"""The criteria of rows that our own reading cannot tell: which option an answer chooses; whether an answer, of which
`extract` found nothing, is right; whether a reply refuses. The value of each says whether the row is right."""

UNCLEAR = {CHOICE: "unmapped", ANSWER: "unmapped", REFUSAL: "refusal_unclear"}
"""By criterion the row's stat that is 1 where our own reading cannot tell."""


@dataclass(frozen=True)
class StatInfo:
    """How reports present one stat."""

    name: str
    display_name: str
    description: str
    short_display_name: str | None = None
    lower_is_better: bool | None = False
    group: str | None = "accuracy"
    can_be_main: bool = True
    """Whether the stat can stand on a leaderboard. A share of rows that could not be told is no measure of quality."""
    bounds: tuple[float, float] = (0.0, 1.0)
    """The least and the greatest value of one that can."""

    def to_metadata(self) -> MetricMetadata:
        """Return HELM's form of it, for `helm-summarize --auto-generate-schema`."""
        from helm.benchmark.metrics.metric import MetricMetadata  # slow

        return MetricMetadata(
            name=self.name,
            display_name=self.display_name,
            short_display_name=self.short_display_name,
            description=self.description,
            lower_is_better=self.lower_is_better,
            group=self.group,
        )


def describe_count(
    name: str, display_name: str, description: str, *, lower_is_better: bool | None = True, can_be_main: bool = True
) -> StatInfo:
    """Return how reports present a number beside the scores: of rows, of judgements, of segments."""
    return StatInfo(
        name, display_name, description, None, lower_is_better, "general_information", can_be_main=can_be_main
    )


@dataclass(frozen=True)
class Score:
    """A named way to score a row. At most one of the functions is given, and tells the kind."""

    name: str
    function: Callable[[str, str], Value] | None = None
    """(gold, prediction); pure, offline, and defined for empty strings."""
    display_name: str = ""
    description: str = ""
    lower_is_better: bool = False
    row_function: Callable[..., Value] | None = None
    """(row, golds, prediction): used instead of `function` where it is given, for rules that need the row
    (`RowExtra["data"]`) or all accepted golds at once. One accepted gold comes as a text, several as a list
    (`RowExtra["gold"]`)."""
    list_function: Callable[[Sequence[str], Sequence[str]], Value] | None = None
    """(gold list, predicted list), for `output_format: list`."""
    reads_any_list: bool = False
    """Whether the predicted list is read whatever way it is written; else it is split at the separator alone."""
    likelihood_function: Callable[[Sequence[Likelihood], Sequence[bool]], float | None] | None = None
    """(options, which are right), for rows that were asked by log-probabilities (`RowExtra["likelihoods"]`). None: the
    score is not defined for the row, which is left out of its mean."""
    short_display_name: str | None = None
    group: str = "accuracy"
    bounds: tuple[float, float] = (0.0, 1.0)
    """The least and the greatest value. Read of HELM's scores and ours; nothing is taken for granted of others."""
    several: tuple[StatInfo, ...] = ()
    """The stats, where the function returns more than one number; the first is the main one."""
    over_all: tuple[StatInfo, ...] = ()
    """The stats that `summarize` gives, the main one first: of all rows together, not means of rows."""
    summarize: Callable[[Mapping[str, float]], Mapping[str, float]] | None = None
    """(mean over the rows of each of the score's stats) to the stats `over_all`."""
    refused: str = ""
    """Why the score cannot be had by naming it in a file or run entry; "" for one that can."""
    needs_tokenizer: bool = False
    """Whether it counts tokens: `row_function` gets what makes them of a text as a fourth argument, and the score needs
    a tokenizer that the user names."""
    prepare: Callable[[], object] | None = None
    """Called once when the score is asked for, before any model: raises HelmExtError where the score cannot work."""

    @cached_property
    def kind(self) -> Kind:
        """What the function gets."""
        if self.list_function is not None:
            return "list"
        if self.likelihood_function is not None:
            return "likelihoods"
        if self.row_function is not None:
            return "row"
        return "helm" if self.function is None else "text"

    @cached_property
    def stats(self) -> tuple[StatInfo, ...]:
        """The stats that the score gives for a row, the main one first."""
        title = self.display_name or self.name
        return self.several or (
            StatInfo(
                self.name, title, self.description, self.short_display_name, self.lower_is_better, self.group,
                bounds=self.bounds,
            ),
        )  # fmt: skip

    @property
    def main_stat(self) -> str:
        """The stat that a leaderboard shows when this score is the main metric."""
        return (*self.over_all, *self.stats)[0].name

    def to_stats(self, value: Value) -> Mapping[str, float]:
        """Return the stats of what the function returned. Raises ValueError where they are not those of `stats`."""
        if isinstance(value, float) or not isinstance(value, Mapping):
            if not self.several:
                return {self.name: value}
            value = {self.name: value}
        if value.keys() != {stat.name for stat in self.stats}:
            expected = ", ".join(stat.name for stat in self.stats)
            raise ValueError(f"score {self.name}: the function gave {', '.join(value)}; its stats are {expected}")
        return value


def judge_stat(criterion: str, by: str = "") -> str:
    """Return the stat of what a jury said, or one judge of several: `judge_correct`, `judge_correct[gpt]`."""
    return f"judge_{criterion}[{by}]" if by else f"judge_{criterion}"


def find_strict(criterion: str, metrics: Sequence[str], main_metric: str) -> str | None:
    """Return the stat beside which a criterion's score of unclear rows stands; None where the run has none."""
    if criterion == REFUSAL:
        return "refusal_match_low" if "refusal_match" in metrics else None
    strict = ("exact_match", "quasi_exact_match")  # which say right or wrong of an answer
    return next((name for name in (main_metric, *strict) if name in strict and name in metrics), None)


def list_judge_stats(judged: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the scores of judges: of each criterion, and where there are several of each judge.

    `judged`: `EvalSet.judged`.
    """
    return [
        judge_stat(criterion, by)
        for criterion, told in judged.items()
        for by in ("", *(told["judges"] if len(told["judges"]) > 1 else ()))
    ]
