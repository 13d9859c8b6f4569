"""A row of a finished run as lines of samples of Every Eval Ever: one for each score."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from helm_ext.analysis.export.tables import to_json
from helm_ext.analysis.json_arrays import stat_key
from helm_ext.analysis.judged import to_portable
from helm_ext.analysis.predictions import Prediction
from helm_ext.analysis.runs import RunFiles
from helm_ext.formats.every_eval_ever.record import KEPT
from helm_ext.scoring.score import list_judge_stats
from helm_ext.scoring.statistics import Interval, mean_interval

JSONObject = dict[str, Any]

Results = Sequence[tuple[JSONObject, str, str]]
"""Full name of a stat, its canonical text, and the id of its result."""

_LEFT_OUT = {
    "not_run": "not run: no completion is recorded",
    "failed": "failed: the request failed",
    "too_long": "left out: the question does not fit the model's context window",
    "unscored": "unscored: no score could be made of the answer",
}


class RowValues:
    """The values of one result: of each row one for each trial."""

    def __init__(self) -> None:
        self._rows: dict[str, list[float]] = {}
        self._clusters: dict[str, str] = {}

    def add(self, row: Prediction, value: float) -> None:
        """Take the value of a row in one trial."""
        self._rows.setdefault(row.instance_id, []).append(value)
        if row.cluster is not None:
            self._clusters[row.instance_id] = row.cluster

    def measure(self) -> Interval:
        """Return the interval of the mean over rows."""
        means = [sum(values) / len(values) for values in self._rows.values()]
        clusters = [self._clusters.get(key, f"\0{place}") for place, key in enumerate(self._rows)]
        return mean_interval(means, clusters if self._clusters else None)


class SampleWriter:
    """Makes the lines of a run, and counts the rows of each result."""

    def __init__(
        self,
        run: RunFiles,
        results: Results,
        source_stats: Mapping[str, str],
        start: JSONObject,
        dataset: str,
    ) -> None:
        """`source_stats`: the source's scores by the names of their stats. `start`: how each line begins."""
        self._is_ours = run.is_ours
        self._judge_stats = frozenset(list_judge_stats(run.metric_arguments.get("judged") or {}))
        self._source_stats, self._start, self._dataset, self._results = source_stats, start, dataset, results
        self._places = {
            key: _place(name.get("split"), name.get("sub_split"), name.get("perturbation")) for name, key, _ in results
        }
        self._knows_sub_splits = any(name.get("sub_split") is not None for name, _, _ in results)
        """Whether stats are told apart by sub-split: HELM's are, ours are not."""
        self.started: float | None = None
        """When the first request was made, in seconds since 1970."""
        self.scored: Counter[str] = Counter()
        """By the canonical text of a stat's full name: rows with a value."""
        self.values: dict[str, RowValues] = {}
        """By the same: the values themselves."""
        self.left_out: Counter[str] = Counter()
        """Rows without one: a line says why, with the score 0."""

    def to_samples(self, row: Prediction) -> Iterator[JSONObject]:
        """Yield a line for each result that the row belongs to."""
        if row.request_datetime is not None:
            self.started = min(row.request_datetime, self.started or row.request_datetime)
        shared = self._to_shared(row)
        by_key = {stat_key(stat["name"]): name for name, stat in row.stats.items()}
        scores = row.scores
        scored = set()
        for name, key, result_id in self._results:
            if by_key.get(key) in scores:
                scored.add(name["name"])
                self.scored[key] += 1
                self.values.setdefault(key, RowValues()).add(row, scores[by_key[key]])
                # A source may score what we leave out: that line has no error, its score is one.
                yield self._to_sample(row, shared, name["name"], result_id, scores[by_key[key]], error=row.error)
        place = _place(row.split, row.sub_split if self._knows_sub_splits else None, row.perturbation)
        for name, key, result_id in self._results:
            is_others = name["name"] in self._source_stats or name["name"] in self._judge_stats
            if is_others and row.left_out is None and row.error is None:
                continue  # the source has made no such score of this row, or no judge has
            if name["name"] not in scored and self._places[key] == place:
                self.left_out[key] += 1
                why = row.error or _LEFT_OUT.get(row.left_out or "", "no score was made of this row")
                yield self._to_sample(row, shared, name["name"], result_id, 0.0, error=why)

    def _to_sample(
        self, row: Prediction, shared: JSONObject, score: str, result_id: str, value: float, *, error: str | None
    ) -> JSONObject:
        kept: JSONObject = row.data.get(KEPT) or {}
        of_source = self._source_stats.get(score)
        original: JSONObject = (kept.get("scores") or {}).get(of_source) or {} if of_source is not None else {}
        sample = {
            **self._start,
            "evaluation_name": original.get("evaluation_name") or self._dataset,
            "evaluation_result_id": result_id,
            "sample_id": kept.get("sample_id", row.instance_id),
            **shared,
            "evaluation": {"score": value, "is_correct": value == 1.0, **shared["evaluation"]},
        }
        if "answer_attribution" in original:
            sample["answer_attribution"] = original["answer_attribution"]
        if "is_correct" in original and error is None:
            sample["evaluation"]["is_correct"] = original["is_correct"]
        if error is not None:
            sample["error"] = error
        return sample

    def _to_shared(self, row: Prediction) -> JSONObject:
        """Return what is the same in all lines of a row."""
        kept: JSONObject = row.data.get(KEPT) or {}
        turns = [message for message in row.messages or () if message["role"] != "system"]
        is_dialogue = len(turns) > 1
        raw = kept.get("raw", row.input or (_content(turns[-1]) if turns else ""))
        reference = kept.get("reference", row.gold)
        said: JSONObject = {"raw": raw, "reference": reference}
        formatted = _format(row, is_dialogue=is_dialogue)
        if formatted is not None and (formatted != raw or kept):
            said["formatted"] = formatted
        asked_each = any(completion["reference_index"] is not None for completion in row.completions)
        if row.options or asked_each:
            said["choices"] = list(row.options.values()) if row.options else [one["text"] for one in row.references]
        outputs = [completion["text"] for completion in row.completions]
        if row.read.method == "log_likelihood":  # of options that were asked about by themselves, the chosen one
            outputs = [] if row.read.text is None else [row.read.text]
        shared: JSONObject = {
            "sample_hash": to_hash(raw, reference),
            "interaction_type": "multi_turn" if is_dialogue else "single_turn",
            "input": said,
            "evaluation": {},
        }
        if is_dialogue:
            messages = [
                {"turn_idx": turn, "role": message["role"], "content": _content(message)}
                for turn, message in enumerate(row.messages or ())
            ]
            if outputs:
                messages.append({"turn_idx": len(messages), "role": "assistant", "content": outputs[0]})
            shared |= {"output": None, "messages": messages, "evaluation": {"num_turns": len(messages)}}
        else:
            output: JSONObject = {"raw": outputs}
            thoughts = [completion["thinking"] for completion in row.completions if completion["thinking"]]
            shared |= {"output": {**output, **({"reasoning_trace": thoughts} if thoughts else {})}, "messages": None}
        shared["answer_attribution"] = _attribute(row, outputs, shared["messages"])
        shared |= self._measure(row)
        shared["metadata"] = _to_metadata(row, outputs[1:] if is_dialogue else ())
        return shared

    def _measure(self, row: Prediction) -> JSONObject:
        """Return times and tokens, where they were measured: of HELM's own runs without a tokenizer tokens are not."""
        measured: JSONObject = {}
        if row.request_time is not None:
            measured["performance"] = {"latency_ms": row.request_time * 1000}
        tokens = [row.scores.get(name) for name in ("num_prompt_tokens", "num_output_tokens")]
        if self._is_ours and None not in tokens:
            read, written = (int(number or 0) for number in tokens)
            measured["token_usage"] = {
                "input_tokens": read, "output_tokens": written, "total_tokens": read + written
            }  # fmt: skip
        return measured


def _format(row: Prediction, *, is_dialogue: bool) -> str | None:
    """Return what the model was sent, where it is more than the bare question: a conversation as JSON."""
    kept: JSONObject | None = row.data.get(KEPT)
    if kept is not None and is_dialogue:
        return kept.get("formatted")
    if kept is not None and "raw" not in kept:
        return None
    if row.prompt or (kept is not None and row.input):
        return row.prompt or row.input
    turns = row.messages or []
    if kept is not None and len(turns) == 1:  # a text, beside conversations
        return _content(turns[0])
    return to_json(turns) if len(turns) > 1 else None


def _attribute(row: Prediction, outputs: Sequence[str], messages: Sequence[JSONObject] | None) -> list[JSONObject]:
    if not outputs:
        return []
    unread = row.read.method == "unknown"
    turn = len(messages) - 1 if messages else 0
    return [
        {
            "turn_idx": turn,
            "source": "messages[turn_idx].content" if messages else "output.raw",
            "extracted_value": outputs[0] if unread else row.read.text or "",
            "extraction_method": "none" if unread else row.read.method,
            "is_terminal": True,
        }
    ]


def to_hash(raw: str, reference: Sequence[str]) -> str:
    """Return the hash that tells one question from another across models and tools.

    Upstream's recipe (.agents/skills/eee-dataset-conversion/reference/instance-level.md): ASCII, compact, sorted.
    """
    text = json.dumps({"raw": raw, "reference": list(reference)}, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _place(split: str | None, sub_split: str | None, perturbation: JSONObject | None) -> str:
    """Return what rows and stats have in common."""
    named = {key: value for key, value in (perturbation or {}).items() if key != "computed_on"}
    return json.dumps([split, sub_split, named], sort_keys=True)


def _content(message: JSONObject) -> str:
    content = message.get("content")
    return content if isinstance(content, str) else to_json(content)


def _to_metadata(row: Prediction, other_outputs: Sequence[str]) -> dict[str, str]:
    """Return what else is known of a row, as text."""
    said: dict[str, Any] = {
        "trial": row.trial,
        "split": row.split,
        "sub_split": row.sub_split,
        "perturbation": row.perturbation,
        "answer_label": row.read.label,
        "option_labels": list(row.options) if row.options else None,
        "left_out": row.left_out,
        "likelihoods": row.likelihoods or None,
        "other_outputs": list(other_outputs) or None,
        "judgements": to_portable(row) or None,
    }
    own = {**row.attributes, **{key: value for key, value in row.data.items() if key != KEPT}}
    known = {key: value for key, value in said.items() if value is not None}
    texts = {key: _as_text(value) for key, value in known.items()}
    for key, value in own.items():
        if value is not None and texts.get(key) != _as_text(value):
            texts[key if key not in texts else f"data.{key}"] = _as_text(value)
    return texts


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else to_json(value)
