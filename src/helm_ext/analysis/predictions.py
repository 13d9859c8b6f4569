"""A row of a finished run: one instance in one trial, what was asked, what came back, and what it scored.

Most rows are one request. Where a method asks about each option by itself, or about each piece of a long text, the
requests of one instance and trial are one row, in the order in which they were made.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import groupby
from pathlib import Path
from typing import Any

from helm_ext.analysis.answers import Read, Reader
from helm_ext.analysis.json_arrays import read_array
from helm_ext.analysis.row_stats import RowKey, RowStats, row_key
from helm_ext.evalset import EXTRA_KEY, MEDIA_KEY
from helm_ext.judging.judgement import question_text

JSONObject = dict[str, Any]

_CORRECT = "correct"
_ORIGINAL = "original"


@dataclass(kw_only=True)
class Prediction:
    """One instance in one trial. What the run's files do not say is None, or empty."""

    instance_id: str
    trial: int
    split: str | None
    sub_split: str | None
    perturbation: JSONObject | None
    input: str
    """The question's text; "" for a conversation."""
    messages: list[JSONObject] | None
    """The conversation that was sent, `role` and `content`."""
    prompt: str
    """What was sent as text, shots and instructions included; of several requests the first one's."""
    references: list[JSONObject]
    """`text` and `correct`."""
    options: dict[str, str] | None
    """Label to text, where completions are read as labels."""
    completions: list[JSONObject]
    """`text`, `logprob`, `finish_reason`, `thinking`, and `reference_index`, `request_mode` where the run has them."""
    likelihoods: list[JSONObject]
    """Where the row was recorded by log-probabilities: `text`, `logprob`, `greedy`, `alone` of each option
    (`helm_ext.evalset.Likelihood`)."""
    make_read: Callable[[], Read] = field(compare=False, repr=False)
    """Returns `read`, which takes as long as all else of a row together: most callers want scores alone."""
    left_out: str | None
    """Why the row is part of no score: `not_run`, `failed`, `too_long`, `unscored`."""
    error: str | None
    """Why there is no answer, as the client said it."""
    request_time: float | None
    """Seconds, of all requests together."""
    request_datetime: int | None
    """Seconds since 1970, of the first request."""
    cached: bool
    num_train_instances: int | None
    prompt_truncated: bool | None
    attributes: Mapping[str, str]
    """The row's values of what the report groups by."""
    data: Mapping[str, Any]
    """What else the dataset says of the row (HELM: `extra_data`)."""
    media: list[Any] = field(default_factory=list)
    """What tells the images and files of question and references from others: a URL, a path, a digest."""
    cluster: str | None = None
    """What the row belongs to, by the run's own `cluster=`."""
    judgements: list[JSONObject] = field(default_factory=list)
    """What was judged of its completions, as the run has it; `analysis.judged` reads them."""
    judged_question: str = ""
    """The question as judgements are bound to it."""
    stats: dict[str, JSONObject] = field(default_factory=dict)
    """By name, as HELM wrote them."""
    requests: list[JSONObject] = field(default_factory=list)
    """HELM's requests (helm/common/request.py)."""

    @property
    def question(self) -> str:
        """The question for people: its text, or the conversation with the roles in front."""
        return self.input or "\n".join(f"{message['role']}: {message['content']}" for message in self.messages or ())

    @property
    def groups(self) -> dict[str, str]:
        """The slices that the row is in: attribute to value, HELM's `sub_split` included."""
        return {**({} if self.sub_split is None else {"sub_split": self.sub_split}), **self.attributes}

    @property
    def gold(self) -> list[str]:
        """The texts of the correct references."""
        return [reference["text"] for reference in self.references if reference["correct"]]

    @cached_property
    def read(self) -> Read:
        """What the completions were scored as."""
        return self.make_read()

    def score(self, name: str) -> float | None:
        """Return the row's value of one stat, as `scores` has it; None where it has none."""
        mean = self.stats.get(name, {}).get("mean")
        return mean if mean is not None and math.isfinite(mean) else None

    @cached_property
    def scores(self) -> dict[str, float]:
        """The stats that have a finite mean: its name, and the mean over the stat's values."""
        means = ((name, stat.get("mean")) for name, stat in self.stats.items())
        return {name: mean for name, mean in means if mean is not None and math.isfinite(mean)}


def read_predictions(states_path: Path, stats: RowStats, read: Reader, *, keeps_zero: bool) -> Iterator[Prediction]:
    """Yield the rows of a run, one in memory at a time.

    `keeps_zero`: HELM writes a log-probability of 0 for one that nobody measured. Whether rows with a stat `logprob`
    were certainly measured, so that a 0 of theirs is one. Raises ValueError, KeyError or OSError for broken files.
    """
    states = read_array(states_path, "request_states")
    for key, group in groupby(states, key=_key_of):
        row_stats = stats.get(key)
        yield _to_prediction(key, list(group), row_stats, read, keeps_zero=keeps_zero and "logprob" in row_stats)


def _key_of(state: JSONObject) -> RowKey:
    instance = state["instance"]
    return row_key(instance["id"], instance.get("perturbation"), state["train_trial_index"])


def _to_prediction(
    key: RowKey, states: Sequence[JSONObject], stats: dict[str, JSONObject], read: Reader, *, keeps_zero: bool
) -> Prediction:
    first = states[0]
    instance, request = first["instance"], first["request"]
    extra_data: JSONObject = instance.get("extra_data") or {}
    extra: JSONObject = extra_data.get(EXTRA_KEY) or {}
    results: list[JSONObject] = [state.get("result") or {} for state in states]
    left_out = extra.get("left_out")
    # Of a row that was left out, and of a request that failed, HELM holds a stand-in for a completion.
    answered = [(s, r) for s, r in zip(states, results, strict=True) if r.get("success") and r.get("completions")]
    if left_out:
        answered = []
    completions = [
        _to_completion(completion, state, keeps_zero=keeps_zero)
        for state, result in answered
        for completion in result["completions"]
    ]
    references = [_to_reference(reference) for reference in instance.get("references") or ()]
    options = extra.get("labels") or first.get("output_mapping") or None
    times = [result["request_time"] for result in results if result.get("request_time") is not None]
    dates = [result["request_datetime"] for result in results if result.get("request_datetime") is not None]
    errors = [result["error"] for result in results if result.get("error")]
    own = {name: value for name, value in extra_data.items() if name != EXTRA_KEY}
    return Prediction(
        instance_id=key[0],
        trial=key[2],
        split=instance.get("split"),
        sub_split=instance.get("sub_split"),
        perturbation=instance.get("perturbation"),
        input=instance["input"].get("text") or "",
        messages=request.get("messages") or instance["input"].get("messages"),
        prompt=request.get("prompt") or "",
        references=references,
        options=options,
        completions=completions,
        likelihoods=_likelihoods(first),
        make_read=partial(_read, first, completions, answered, references, options, stats, read),
        left_out=left_out,
        error=errors[0] if errors else None,
        request_time=math.fsum(times) if len(times) == len(states) and not left_out else None,
        request_datetime=None if left_out or not dates else min(dates),
        cached=any(bool(result.get("cached")) for result in results),
        num_train_instances=first.get("num_train_instances"),
        prompt_truncated=first.get("prompt_truncated"),
        attributes=extra.get("attributes") or {},
        data={**own, **(extra.get("data") or {})},
        media=_find_media(instance, own, extra.get("data") or {}),
        cluster=extra.get("cluster"),
        judgements=extra.get("judgements") or [],
        judged_question=question_text(instance["input"].get("text"), instance["input"].get("messages")),
        stats=stats,
        requests=[state["request"] for state in states],
    )


def _find_media(instance: JSONObject, own: JSONObject, unknown: JSONObject) -> list[Any]:
    """Return the images and files of a row: HELM's own (`multimedia_content`), those that an importer noted."""
    holders = [instance["input"], unknown.get("input") or {}]
    holders += [reference["output"] for reference in instance.get("references") or ()]
    found = [holder["multimedia_content"] for holder in holders if holder.get("multimedia_content")]
    noted = own.get(MEDIA_KEY)
    return [*found, *(noted if isinstance(noted, list) else ())]


def _read(
    first: JSONObject,
    completions: Sequence[JSONObject],
    answered: Sequence[tuple[JSONObject, JSONObject]],
    references: Sequence[JSONObject],
    options: Mapping[str, str] | None,
    stats: Mapping[str, JSONObject],
    read: Reader,
) -> Read:
    """Return what the row's completions were scored as."""
    if first.get("reference_index") is not None:
        chosen = (stats.get("predicted_index") or {}).get("mean")
        return Read(None if chosen is None else references[int(chosen)]["text"], None, "log_likelihood")
    if not completions:
        return Read(None, None, "unknown")
    if len(answered) > 1:  # pieces of a long text: nothing is read in them
        return Read(None, None, "unknown")
    found = read(answered[0][1]["completions"], options)
    return replace(found, method="log_likelihood") if _likelihoods(first) else found


def _likelihoods(state: JSONObject) -> list[JSONObject]:
    """Return the log-probabilities of the options, of a row that was recorded so."""
    extra: JSONObject = (state["instance"].get("extra_data") or {}).get(EXTRA_KEY) or {}
    return extra.get("likelihoods") or []


def _to_reference(reference: JSONObject) -> JSONObject:
    return {"text": reference["output"].get("text") or "", "correct": _CORRECT in (reference.get("tags") or ())}


def _to_completion(completion: JSONObject, state: JSONObject, *, keeps_zero: bool) -> JSONObject:
    logprob = completion.get("logprob")
    reason = completion.get("finish_reason")
    made = {
        "text": completion["text"],
        "logprob": logprob if logprob or (keeps_zero and logprob is not None) else None,
        "finish_reason": (reason.get("reason") if isinstance(reason, dict) else None) or None,
        "thinking": (completion.get("thinking") or {}).get("text"),
        "reference_index": state.get("reference_index"),
        "request_mode": state.get("request_mode"),
    }
    if made["logprob"] is not None and not math.isfinite(made["logprob"]):
        made["logprob"] = None
    return made
