"""A row of a finished run: one instance in one trial, what was asked, what came back, how that was read and scored.

Most rows are one request. Where a method asks about each option by itself, or about each piece of a long text, the
requests of one instance and trial are one row, in the order in which they were made.

What the completions of a row were scored as is told from the files of its run:

| the run                         | the answer                                                                     |
|---------------------------------|--------------------------------------------------------------------------------|
| of ours, options                | the option that the completion was read as; none where it was unmapped          |
| of ours, text                   | the text after `extract`, `strip`, `lower`; of a list, its segments             |
| of HELM's, `output_mapping`     | the option whose label the completion is, as HELM reads it                      |
| of HELM's, text                 | the completion without white space around it                                    |
| log-likelihoods of each option  | the option that HELM found likeliest (its stat `predicted_index`)               |

No code is run that a file names: where a checkout of the user's did the postprocessing, the answer is not known.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any

from helm_ext import parsing
from helm_ext.analysis.json_arrays import RowKey, StatsIndex, read_array, row_key, state_key
from helm_ext.evalset import EXTRA_KEY, MEDIA_KEY, Scoring, flatten_data
from helm_ext.judging.judgement import Judgement, question_text, take_judgements
from helm_ext.scoring.bounded import limit_pattern

JSONObject = dict[str, Any]

_OUR_METRIC = "helm_ext.scoring.metrics.EvalSetMetric"


@dataclass(frozen=True, slots=True)
class Read:
    """What was read in the completions of a row."""

    text: str | None
    """None: nothing was (`unmapped`), or it is not known what."""
    label: str | None
    """Of the option, where completions are read as labels."""
    method: str
    """`label`, `label_exact`, `regex`, `list`, `text`, `log_likelihood`, or `unknown`."""


Reader = Callable[[Sequence[JSONObject], "Mapping[str, str] | None"], Read]
"""From the completions of one request and the row's options (label to text) to what was read."""


def make_reader(run_spec: JSONObject) -> Reader:
    """Return what reads completions of a run as its metric did."""
    spec = run_spec["adapter_spec"]
    pattern = spec.get("output_mapping_pattern")
    metric = next((metric for metric in run_spec["metric_specs"] if _is_ours(metric["class_name"])), None)
    if metric is not None and not (metric.get("args") or {}).get("root"):  # a folder of the user's with code in it
        return _our_reader(metric, pattern, multi_label=bool(spec.get("multi_label")))
    if metric is None and all(metric["class_name"].startswith("helm.") for metric in run_spec["metric_specs"]):
        return lambda completions, options: _read_as_helm(completions, options, pattern)
    return lambda completions, options: Read(None, None, "unknown")  # noqa: ARG005


def _is_ours(class_name: str) -> bool:
    """Whether a metric is our `EvalSetMetric`, or a format's own one that derives from it."""
    if class_name == _OUR_METRIC or not class_name.startswith("helm_ext."):
        return class_name == _OUR_METRIC
    from helm.common.object_spec import get_class_by_name

    from helm_ext.scoring.metrics import EvalSetMetric

    found = get_class_by_name(class_name)
    return isinstance(found, type) and issubclass(found, EvalSetMetric)


def _our_reader(metric_spec: JSONObject, pattern: str | None, *, multi_label: bool) -> Reader:
    from helm_ext.scoring.answers import AnswerReader, name_chosen

    arguments, post = metric_spec.get("args") or {}, None
    if metric_spec["class_name"] == _OUR_METRIC:  # its module takes seconds to import
        known = {field.name for field in fields(Scoring)}
        scoring = Scoring(**{name: value for name, value in arguments.items() if name in known})
    else:
        from helm.common.object_spec import get_class_by_name

        own = get_class_by_name(metric_spec["class_name"])(**arguments)
        scoring, post = own.scoring, own.get_postprocess()
        """What a completion goes through before it is read."""
    reader = AnswerReader(scoring, pattern, multi_label=multi_label)
    method = "list" if reader.is_list else "regex" if scoring.extract is not None or post is not None else "text"

    def read(completions: Sequence[JSONObject], options: Mapping[str, str] | None) -> Read:
        if reader.is_exact and len(completions) > 1:
            completions = sorted(completions, key=lambda completion: -(completion.get("logprob") or 0.0))
        answers = [
            reader.read(
                one["text"] if post is None else post(one["text"]), options,
                is_cut_off=parsing.is_cut_off(one.get("finish_reason")),
            )
            for one in completions
        ]  # fmt: skip
        if options is not None:
            label, text = name_chosen(answers if reader.is_list else answers[:1]) or (None, None)
            return Read(text, label, "label_exact" if reader.is_exact else "label")
        if all(answer.unmatched for answer in answers):
            return Read(None, None, method)
        texts = [answer.text for answer in answers]
        return Read("; ".join(reader.split(texts)) if reader.is_list else texts[0].strip(), None, method)

    return read


def _read_as_helm(completions: Sequence[JSONObject], options: Mapping[str, str] | None, pattern: str | None) -> Read:
    """Restate how `compute_reference_metrics` reads a row (helm/benchmark/metrics/evaluate_reference_metrics.py)."""
    text = max(completions, key=lambda completion: completion.get("logprob") or 0.0)["text"].strip()
    if options is None:
        return Read(text, None, "text")
    if pattern:
        with limit_pattern(pattern, text):
            match = re.search(pattern, text)
        text = "" if match is None else match.group(1) if match.groups() else match.group(0)
    return Read(options.get(text), text if text in options else None, "label_exact")


_CORRECT = "correct"


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
    """What was judged of its completions, as the run has it."""
    said: list[Judgement] = field(default_factory=list)
    """The same, checked: those count that are `ok`; what is stale or replaced has this status, and no value."""
    judged_question: str = ""
    """The question as judgements are bound to it."""
    stats: dict[str, JSONObject] = field(default_factory=dict)
    """By name, as HELM wrote them."""
    requests: list[JSONObject] = field(default_factory=list)
    """HELM's requests (helm/common/request.py)."""

    @property
    def answer(self) -> str | None:
        """The first completion; where options were compared, the likeliest one. None where there is neither."""
        is_text = self.completions and self.completions[0]["reference_index"] is None
        return str(self.completions[0]["text"]) if is_text else self.read.text

    @property
    def key(self) -> RowKey:
        """What tells the rows of a run apart."""
        return row_key(self.instance_id, self.perturbation, self.trial)

    @property
    def answers(self) -> list[str]:
        """The texts of the completions."""
        return [one["text"] for one in self.completions]

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

    def list_said(self, criterion: str) -> list[Judgement]:
        """Return what was judged by one criterion."""
        return [one for one in self.said if one.criterion == criterion]

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


def read_predictions(states_path: Path, stats: StatsIndex, read: Reader, *, keeps_zero: bool) -> Iterator[Prediction]:
    """Yield the rows of a run, one in memory at a time.

    `keeps_zero`: HELM writes a log-probability of 0 for one that nobody measured. Whether rows with a stat `logprob`
    were certainly measured, so that a 0 of theirs is one. Raises ValueError, KeyError or OSError for broken files.
    """
    for key, group in groupby(read_array(states_path, "request_states"), key=state_key):
        row_stats = stats.get(key)
        yield _to_prediction(key, list(group), row_stats, read, keeps_zero=keeps_zero and "logprob" in row_stats)


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
    references: list[JSONObject] = [
        {"text": one["output"].get("text") or "", "correct": _CORRECT in (one.get("tags") or ())}
        for one in instance.get("references") or ()
    ]
    likelihoods = extra.get("likelihoods") or []
    options = extra.get("labels") or first.get("output_mapping") or None
    times = [result["request_time"] for result in results if result.get("request_time") is not None]
    dates = [result["request_datetime"] for result in results if result.get("request_datetime") is not None]
    errors = [result["error"] for result in results if result.get("error")]
    own = {name: value for name, value in extra_data.items() if name != EXTRA_KEY}
    asked = question_text(instance["input"].get("text"), instance["input"].get("messages"))
    # A row that cannot be scored here may have been judged; its answer is not in the run's files.
    answers = None if left_out == "unscored" else [one["text"] for one in completions]

    def make_read() -> Read:
        if first.get("reference_index") is not None:
            chosen = (stats.get("predicted_index") or {}).get("mean")
            return Read(None if chosen is None else references[int(chosen)]["text"], None, "log_likelihood")
        if len(answered) != 1:  # pieces of a long text: nothing is read in them
            return Read(None, None, "unknown")
        found = read(answered[0][1]["completions"], options)
        return replace(found, method="log_likelihood") if likelihoods else found

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
        likelihoods=likelihoods,
        make_read=make_read,
        left_out=left_out,
        error=errors[0] if errors else None,
        request_time=math.fsum(times) if len(times) == len(states) and not left_out else None,
        request_datetime=None if left_out or not dates else min(dates),
        cached=any(bool(result.get("cached")) for result in results),
        num_train_instances=first.get("num_train_instances"),
        prompt_truncated=first.get("prompt_truncated"),
        attributes=extra.get("attributes") or {},
        data=flatten_data(extra.get("data") or {}, own),
        media=_find_media(instance, own, extra.get("data") or {}),
        cluster=extra.get("cluster"),
        judgements=extra.get("judgements") or [],
        said=take_judgements(extra.get("judgements") or (), asked, answers),
        judged_question=asked,
        stats=stats,
        requests=[state["request"] for state in states],
    )


def _find_media(instance: JSONObject, own: JSONObject, unknown: JSONObject) -> list[Any]:
    """Return the images and files of a row: HELM's own (`multimedia_content`), those that an importer noted."""
    inside = unknown.get("input")  # a place of the file, or a key of the row's own, which may be anything
    holders = [instance["input"], inside if isinstance(inside, dict) else {}]
    holders += [reference["output"] for reference in instance.get("references") or ()]
    found = [holder["multimedia_content"] for holder in holders if holder.get("multimedia_content")]
    noted = own.get(MEDIA_KEY)
    return [*found, *(noted if isinstance(noted, list) else ())]


def _to_completion(completion: JSONObject, state: JSONObject, *, keeps_zero: bool) -> JSONObject:
    logprob = completion.get("logprob")
    reason = completion.get("finish_reason")
    is_measured = logprob is not None and math.isfinite(logprob) and (keeps_zero or logprob)
    return {
        "text": completion["text"],
        "logprob": logprob if is_measured else None,
        "finish_reason": (reason.get("reason") if isinstance(reason, dict) else None) or None,
        "thinking": (completion.get("thinking") or {}).get("text"),
        "reference_index": state.get("reference_index"),
        "request_mode": state.get("request_mode"),
    }
