"""What a run of ours wrote about its rows, and how it scored them: its `scenario_state.json` is scored again alike.

It is read as any data: checked, and nothing is run because a file says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import msgspec
from typing_extensions import Required, TypedDict

from helm_ext.errors import show
from helm_ext.evalset import EXTRA_KEY, LeftOut, Likelihood, RunScoring, Scoring
from helm_ext.parsing import compile_pattern
from helm_ext.scoring.registry import find_unnamable

if TYPE_CHECKING:
    from helm_ext.formats.request_states.reading import Place

_LIKELIHOODS = "helm_ext.scoring.likelihood.SentenceLikelihoodMetric"
_METRICS = frozenset(
    {"helm_ext.scoring.metrics.EvalSetMetric", "helm_ext.formats.ultraeval.metrics.UltraEvalMetric", _LIKELIHOODS}
)
"""Metrics of runs, by their public class paths."""
_SCORING = frozenset(field.name for field in fields(Scoring))
_NOT_GIVEN = frozenset({"cut_at", "next_question", "label_reading", "own_metric", "main_metric", "output_format"})
"""Fields of Scoring that are no keys of a file's `scoring`, or have another meaning there."""


class EarlierRow(TypedDict, total=False):
    """Keys of `RowExtra` that hold for a row when it is scored again."""

    id: Any
    data: dict[str, Any]
    gold: str | list[str]
    labels: dict[str, str]
    score: dict[str, float]
    likelihoods: list[Likelihood]
    attributes: dict[str, str]
    cluster: str
    source_scores: dict[str, float]
    source_unscored: list[str]
    judgements: list[dict[str, Any]]
    left_out: LeftOut
    scoring: RunScoring


class _Score(TypedDict, total=False):
    stat: Required[str]
    mean: float | None
    lower_is_better: bool | None
    no_mean: str


class _Source(TypedDict, total=False):
    tool: Required[str]
    scores: Required[dict[str, _Score]]


class _Args(TypedDict, total=False):
    """Arguments of metrics beside those of `Scoring`."""

    attributes: dict[str, list[str]]
    judged: dict[str, Any]
    source: _Source
    postprocess: str
    definitions: dict[str, dict[str, Any]]
    rule: str


@dataclass(frozen=True)
class EarlierRun:
    """How a run scored its rows."""

    class_name: str
    args: Mapping[str, Any]
    """Of its metric, those of `scoring` aside."""
    scoring: Scoring
    unmeasured: frozenset[str]
    """`RunScoring.unmeasured`."""

    @property
    def is_likelihood(self) -> bool:
        """Whether options were compared by a rule of log-probabilities, and no text was read."""
        return self.class_name == _LIKELIHOODS

    def to_given(self, *, names_metrics: bool) -> dict[str, Any]:
        """Return the keys of `scoring` that a file would have which is scored so.

        `names_metrics`: whether other metrics are wanted; then the main one is one of these.
        """
        args = {key: value for key, value in self.scoring.to_args().items() if key not in _NOT_GIVEN}
        own = self.scoring.own_metric
        main = self.scoring.main_metric if own is None else own
        return {**args, **({"main_metric": main} if main and not names_metrics else {})}

    def settle(self, scoring: Scoring) -> Scoring:
        """Return a scoring that was made of `to_given` and of what the user wants otherwise."""
        mine = self.scoring
        return replace(scoring, cut_at=mine.cut_at, next_question=mine.next_question, label_reading=mine.label_reading)

    def to_metric(self, scoring: Scoring) -> tuple[str, dict[str, Any]]:
        """Return the class and the arguments of the metric of a run that is scored again."""
        return self.class_name, {**self.args, **({} if self.is_likelihood else scoring.to_args())}


def read_earlier_row(instance: Mapping[str, Any], place: Place) -> EarlierRow | None:
    """Return what a run of ours wrote about a row; None for other rows. What is not as it was written is reported."""
    extra = (instance.get("extra_data") or {}).get(EXTRA_KEY)
    if not isinstance(extra, dict):
        return None
    known = {key: value for key, value in extra.items() if key in EarlierRow.__annotations__}
    try:
        return msgspec.convert(known, EarlierRow)
    except msgspec.ValidationError as error:
        place.error(
            "instance", "extra_data", EXTRA_KEY, message=f"not as a run writes it: {error}", hint=_HINT, code="helm-ext"
        )
        return None


_HINT = "this key is helm-ext's own; take it out, or keep it as it was written"


def read_earlier_run(told: RunScoring, place: Place, *, overridden: bool) -> EarlierRun | None:
    """Return how the run of a file scored its rows; what is not as a run writes it is reported.

    `overridden`: whether the user names other metrics, so that those of the file do not matter.
    """
    name, args = told["class_name"], told["args"]
    if name not in _METRICS:
        if not overridden:
            _report(place, f"the run was scored by {show(name)}, which is none of this package", _CHOOSE)
        return None
    if args.get("root") is not None:
        if not overridden:
            message = f"the run was scored by code of {show(args['root'])}, which is not run because a file says so"
            _report(place, message, "score the outputs of the task again (ultraeval:), or " + _CHOOSE)
        return None
    try:
        others = {key: value for key, value in args.items() if key not in _SCORING}
        msgspec.convert(others, _Args)
        given = {"metrics": [], **{key: value for key, value in args.items() if key in _SCORING}}
        scoring = msgspec.convert({**given, "main_metric": told["main_metric"]}, Scoring)
        for pattern in (scoring.extract, scoring.extract_all):
            if pattern is not None:
                compile_pattern(pattern)
    except ValueError as error:  # msgspec's is one
        _report(place, f"not as a run writes it: {error}", _HINT)
        return None
    for metric in scoring.metrics:
        has_tokenizer = scoring.score_tokenizer is not None
        unnamable = find_unnamable(metric, scoring.output_format, has_likelihoods=True, has_tokenizer=has_tokenizer)
        if unnamable and metric not in args.get("definitions", {}) and not overridden:
            _report(place, unnamable[0], _CHOOSE)
            return None
    return EarlierRun(name, others, scoring, frozenset(told["unmeasured"]))


_CHOOSE = "metrics= names others"


def _report(place: Place, message: str, hint: str) -> None:
    place.error("instance", "extra_data", EXTRA_KEY, "scoring", message=message, hint=hint, code="helm-ext")
