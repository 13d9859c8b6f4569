"""What a state says about a request that was made earlier (docs/adapter_spec.md, Recorded completions, Likelihoods)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import msgspec
from typing_extensions import Required, TypedDict

from helm_ext.errors import show
from helm_ext.evalset import EXTRA_KEY, KeptExtra, Likelihood, Recorded, RecordedState, RunScoring, Scoring
from helm_ext.formats.request_states.reading import Place
from helm_ext.parsing import compile_pattern
from helm_ext.scoring.registry import find_unnamable

_STATE_FIELDS = tuple(key for key in RecordedState.__annotations__ if key not in ("result", "request"))


def is_helm_state(state: Mapping[str, Any]) -> bool:
    """Whether a state was written by HELM, where several states may be about one instance."""
    return "train_trial_index" in state or "reference_index" in state


def find_result(state: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the state's result: under `request`, or in HELM's place beside it."""
    request = state.get("request")
    inside = request.get("result") if request else None
    return inside if inside is not None else state.get("result")


def read_recorded(state: Mapping[str, Any], place: Place, *, is_helm: bool) -> Recorded:
    """Return what is recorded in a state.

    A placeholder (no completions, or an empty text without tokens and without `success`) is not a wrong answer, and
    neither is a completion without a text, which is reported.
    """
    result = find_result(state) or {}
    success, completions = result.get("success"), result.get("completions")
    if success is False:
        return {"status": "failed", "states": []}
    nothing: Recorded = {"status": "not_run", "states": []}
    if not completions:
        return nothing
    only = completions[0] if success is None and len(completions) == 1 else None
    if only is not None and not only.get("text") and not only.get("tokens"):
        return nothing
    request = state.get("request") or {}
    for number, completion in enumerate(completions):
        if completion.get("text") is None:
            where = *(("request", "result") if request.get("result") is result else ("result",)), "completions", number
            keys = ", ".join(map(show, sorted(completion))) or "no key at all"
            what = "null" if "text" in completion else "missing"
            said = f"{what}, so there is no answer to score; the completion has {keys}"
            hint = 'an empty answer is "text": "", a request that failed has "success": false'
            place.error(*where, "text", message=said, hint=hint, code="no-text")
            return nothing
    recorded: RecordedState = {"result": result}
    if asked := {key: value for key, value in request.items() if key != "result"}:
        recorded["request"] = asked
    if is_helm:
        for name in _STATE_FIELDS:
            if state.get(name) is not None:
                recorded[name] = state[name]  # type: ignore[literal-required]
    return {"status": "ok", "states": [recorded]}


# Log-probabilities: one sum for each option. The option that wins is the completion: its label.
# So such a row is recorded as any other, and reports show it.


_ONE_EACH = "give one for each reference, in their order"


def settle_completion(
    state: dict[str, Any],
    likelihoods: Sequence[Likelihood],
    options: Sequence[str],
    labels: Mapping[str, int] | None,
    place: Place,
) -> None:
    """Make the label of the option that wins the state's completion, where the file gives none.

    `options` are the texts of the references, `labels` says where the option of each label stands among them. What
    contradicts them is reported.
    """
    if len(options) == len(likelihoods) == 1:
        _settle_one(state, likelihoods[0], options[0], place)
        return
    positions = {position: label for label, position in (labels or {}).items()}
    if len(positions) < len(options):
        _report(place, message="likelihoods compare options, and not every option of the row has a label")
        return
    if len(likelihoods) != len(options):
        message = f"there are {len(options)} references, and likelihoods of {len(likelihoods)}"
        _report(place, message=message, hint=_ONE_EACH)
        return
    names = [positions[position] for position in range(len(options))]
    for position, one in enumerate(likelihoods):  # written for speed
        text, option = one["text"], options[position]
        if text != option and text != names[position] and text.strip() not in (option.strip(), names[position].strip()):
            names_neither = f"the text of reference {position}, {show(option)}, nor its label, {show(names[position])}"
            _report(place, position, "text", message=f"{show(text)} is neither {names_neither}", hint=_ONE_EACH)
            return
    if len({one.get("alone") is None for one in likelihoods}) > 1:
        _report(place, message="`alone` is given for some options and not for others")
        return
    values = [one["logprob"] for one in likelihoods]
    winner = names[values.index(max(values))]
    said = _complete(state, winner)
    if said is not None and said.strip() != winner.strip():
        _report(
            place,
            message=f"the likeliest option is {show(winner)}, and the completion is {show(said)}",
            hint="leave the completion out, or give the label of the first of the likeliest options",
        )


def _settle_one(state: dict[str, Any], only: Likelihood, option: str, place: Place) -> None:
    """Make the option the completion if the model would have written it; else nobody knows what it would have."""
    if only["text"].strip() != option.strip():
        _report(place, 0, "text", message=f"{show(only['text'])} is not the text of the reference, {show(option)}")
    elif only.get("greedy") is None:
        _report(place, 0, "greedy", message="missing: with one option, it says whether the model would have written it")
    else:
        _complete(state, only["text"] if only["greedy"] else "")


def _complete(state: dict[str, Any], text: str) -> str | None:
    """Make a text the state's completion where it has none; return the one that it has. None for a failed one too."""
    result = find_result(state)
    if result is None:
        state["request"] = {**(state.get("request") or {}), "result": {"success": True}}
        result = state["request"]["result"]
    if result.get("success") is False:
        return None
    completions = result.get("completions")
    if completions and completions[0].get("text"):
        return str(completions[0]["text"])
    result["success"] = True
    result["completions"] = [{**(completions[0] if completions else {}), "text": text}]
    return None


def _report(place: Place, *where: int | str, message: str, hint: str = "") -> None:
    place.error("likelihoods", *where, message=message, hint=hint, code="likelihoods", is_integrity=True)


# What a run of ours wrote about its rows, and how it scored them: its `scenario_state.json` is scored again alike.
# It is read as any data: checked, and nothing is run because a file says so.

_LIKELIHOODS = "helm_ext.scoring.likelihood.SentenceLikelihoodMetric"
_RUN_METRICS = frozenset(
    {"helm_ext.scoring.metrics.EvalSetMetric", "helm_ext.formats.ultraeval.metrics.UltraEvalMetric", _LIKELIHOODS}
)
"""Metrics of runs, by their public class paths."""
_SCORING_FIELDS = frozenset(field.name for field in fields(Scoring))
NOT_GIVEN = frozenset({"cut_at", "next_question", "label_reading", "own_metric", "main_metric", "output_format"})
"""Fields of Scoring that are no keys of a file's `scoring`, or have another meaning there."""


class _RunScore(TypedDict, total=False):
    stat: Required[str]
    mean: float | None
    lower_is_better: bool | None
    no_mean: str


class _RunSource(TypedDict, total=False):
    tool: Required[str]
    scores: Required[dict[str, _RunScore]]


class _RunArgs(TypedDict, total=False):
    """Arguments of metrics beside those of `Scoring`."""

    attributes: dict[str, list[str]]
    judged: dict[str, Any]
    source: _RunSource
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

    @property
    def attributes(self) -> list[str]:
        """What the run reported by, HELM's sub-split aside."""
        return [name for name in self.args.get("attributes", {}) if name != "sub_split"]

    def to_given(self, *, names_metrics: bool) -> dict[str, Any]:
        """Return the keys of `scoring` that a file would have which is scored so.

        `names_metrics`: whether other metrics are wanted; then the main one is one of these.
        """
        args = {key: value for key, value in self.scoring.to_args().items() if key not in NOT_GIVEN}
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


def read_earlier_row(instance: Mapping[str, Any], place: Place) -> KeptExtra | None:
    """Return what a run of ours wrote about a row; None for other rows. What is not as it was written is reported."""
    extra = (instance.get("extra_data") or {}).get(EXTRA_KEY)
    if not isinstance(extra, dict):
        return None
    known = {key: value for key, value in extra.items() if key in KeptExtra.__annotations__}
    try:
        return msgspec.convert(known, KeptExtra)
    except msgspec.ValidationError as error:
        where, said = ("instance", "extra_data", EXTRA_KEY), f"not as a run writes it: {error}"
        place.error(*where, message=said, hint=_OURS_HINT, code="helm-ext")
        return None


_OURS_HINT = "this key is helm-ext's own; take it out, or keep it as it was written"


def read_earlier_run(told: RunScoring, place: Place, *, overridden: bool) -> EarlierRun | None:
    """Return how the run of a file scored its rows; what is not as a run writes it is reported.

    `overridden`: whether the user names other metrics, so that those of the file do not matter.
    """
    name, args = told["class_name"], told["args"]
    message, hint = "", _CHOOSE_HINT
    if name not in _RUN_METRICS:
        message = f"the run was scored by {show(name)}, which is none of this package"
    elif args.get("root") is not None:
        message = f"the run was scored by code of {show(args['root'])}, which is not run because a file says so"
        hint = "score the outputs of the task again (ultraeval:), or " + _CHOOSE_HINT
    if message:
        if not overridden:
            _report_run(place, message, hint)
        return None
    try:
        others = {key: value for key, value in args.items() if key not in _SCORING_FIELDS}
        msgspec.convert(others, _RunArgs)
        given = {"metrics": [], **{key: value for key, value in args.items() if key in _SCORING_FIELDS}}
        scoring = msgspec.convert({**given, "main_metric": told["main_metric"]}, Scoring)
        for pattern in (scoring.extract, scoring.extract_all):
            if pattern is not None:
                compile_pattern(pattern)
    except ValueError as error:  # msgspec's is one
        _report_run(place, f"not as a run writes it: {error}", _OURS_HINT)
        return None
    for metric in scoring.metrics:
        has_tokenizer = scoring.score_tokenizer is not None
        unnamable = find_unnamable(metric, scoring.output_format, has_likelihoods=True, has_tokenizer=has_tokenizer)
        if unnamable and metric not in args.get("definitions", {}) and not overridden:
            _report_run(place, unnamable[0], _CHOOSE_HINT)
            return None
    return EarlierRun(name, others, scoring, frozenset(told["unmeasured"]))


_CHOOSE_HINT = "metrics= names others"


def _report_run(place: Place, message: str, hint: str) -> None:
    place.error("instance", "extra_data", EXTRA_KEY, "scoring", message=message, hint=hint, code="helm-ext")
