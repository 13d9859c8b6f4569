"""What the completions of a row were scored as, told from the files of its run.

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

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from helm_ext import parsing
from helm_ext.evalset import Scoring
from helm_ext.evalset.patterns import limit_pattern

JSONObject = dict[str, Any]

_OUR_METRIC = "helm_ext.scoring.metrics.EvalSetMetric"
_RUNS_CODE = "root"
"""The argument of a metric that names a folder of the user's with code in it."""


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
    if metric is not None and not (metric.get("args") or {}).get(_RUNS_CODE):
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
    from helm_ext.scoring.answers import AnswerReader

    scoring, post = _read_metric(metric_spec["class_name"], metric_spec.get("args") or {})
    reader = AnswerReader(scoring, pattern, multi_label=multi_label)
    method = "list" if reader.is_list else "regex" if scoring.extract is not None or post is not None else "text"

    def read(completions: Sequence[JSONObject], options: Mapping[str, str] | None) -> Read:
        if reader.is_exact and len(completions) > 1:
            completions = sorted(completions, key=lambda completion: -(completion.get("logprob") or 0.0))
        answers = [
            reader.read(
                completion["text"] if post is None else post(completion["text"]),
                options,
                is_cut_off=parsing.is_cut_off(completion.get("finish_reason")),
            )
            for completion in completions
        ]
        if options is None:
            if all(answer.unmatched for answer in answers):
                return Read(None, None, method)
            if reader.is_list:
                return Read("; ".join(reader.split([answer.text for answer in answers])), None, method)
            return Read(answers[0].text.strip(), None, method)
        how = "label_exact" if reader.is_exact else "label"
        counted = answers if reader.is_list else answers[:1]
        labels = [label for answer in counted for label in answer.labels]
        if not labels:
            return Read(None, None, how)
        chosen = [option for answer in counted for option in answer.options if option]
        return Read(", ".join(chosen), ", ".join(labels), how)

    return read


def _read_metric(class_name: str, arguments: JSONObject) -> tuple[Scoring, Callable[[str], str] | None]:
    """Return how a metric of ours scores, and what a completion goes through before it is read."""
    if class_name == _OUR_METRIC:  # its module takes seconds to import
        return Scoring(**{name: value for name, value in arguments.items() if name in _SCORING}), None
    from helm.common.object_spec import get_class_by_name

    metric = get_class_by_name(class_name)(**arguments)
    return metric.scoring, metric.get_postprocess()


_SCORING = frozenset(field.name for field in fields(Scoring))


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
