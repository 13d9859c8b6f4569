"""The columns of an exported table: one row a prediction, the same in every kind of file.

The table in docs/how-to/export.md is made of `COLUMNS` (`to_table`); a test holds both equal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from helm_ext.analysis.export.lines import to_json
from helm_ext.analysis.judged import to_portable
from helm_ext.analysis.predictions import Prediction
from helm_ext.analysis.runs import RunFiles

Kind = Literal[
    "text",
    "integer",
    "number",
    "boolean",
    "texts",
    "messages",
    "references",
    "options",
    "completions",
    "likelihoods",
    "JSON",
]
"""`texts` is a list of text, the others in the plural are lists of objects; `JSON` is an object of any keys."""

Getter = Callable[[RunFiles, Prediction], Any]


@dataclass(frozen=True)
class Column:
    """One column."""

    name: str
    kind: Kind
    description: str
    get: Getter


def _of_run(get: Callable[[RunFiles], Any]) -> Getter:
    return lambda run, _: get(run)


def _of_row(get: Callable[[Prediction], Any]) -> Getter:
    return lambda _, row: get(row)


def _of_first_completion(name: str) -> Getter:
    return lambda _, row: row.completions[0][name] if row.completions else None


COLUMNS: tuple[Column, ...] = (
    Column("run", "text", "name of the run", _of_run(lambda run: run.name)),
    Column("suite", "text", "the folder that the run is in", _of_run(lambda run: run.suite)),
    Column("model", "text", "as HELM's tables name it", _of_run(lambda run: run.adapter_spec["model"])),
    Column("model_deployment", "text", "where it was asked", _of_run(lambda run: run.adapter_spec["model_deployment"])),
    Column("scenario", "text", "name of the scenario, or of the dataset", _of_run(lambda run: run.scenario_name)),
    Column("data_digest", "text", "of a dataset read by helm-ext: first digits of the SHA-256 of its files",
           _of_run(lambda run: run.run_spec["scenario_spec"].get("args", {}).get("digest"))),
    Column("method", "text", "HELM's adaptation method", _of_run(lambda run: run.adapter_spec["method"])),
    Column("instance_id", "text", "id of the row in its dataset", _of_row(lambda row: row.instance_id)),
    Column("trial", "integer", "which draw of demonstrations, from 0", _of_row(lambda row: row.trial)),
    Column("split", "text", "`train`, `valid`, `test`, or another of the scenario", _of_row(lambda row: row.split)),
    Column("sub_split", "text", "part of the split, where the scenario has some", _of_row(lambda row: row.sub_split)),
    Column("perturbation", "text", "name of what changed the question; null for the original",
           _of_row(lambda row: row.perturbation["name"] if row.perturbation else None)),
    Column("perturbation_details", "JSON", "its settings", _of_row(lambda row: row.perturbation)),
    Column("input", "text", 'the bare question; "" where it is a conversation', _of_row(lambda row: row.input)),
    Column("messages", "messages", "the conversation that was sent: `role`, `content`",
           _of_row(lambda row: _plain_messages(row.messages))),
    Column("prompt", "text", 'the text that was sent, shots included; "" where a recording does not say it. Where each '
           "option was asked about by itself, the first request's", _of_row(lambda row: row.prompt)),
    Column("references", "references", "`text` and `correct` of each", _of_row(lambda row: row.references)),
    Column("gold", "texts", "the correct references", _of_row(lambda row: row.gold)),
    Column("options", "options", "`label` and `text`, where completions are read as labels",
           _of_row(lambda row: [{"label": key, "text": text} for key, text in (row.options or {}).items()] or None)),
    Column("completion", "text", "the first completion; null where there is none", _of_first_completion("text")),
    Column("completions", "completions", "all of them: `text`, `logprob`, `finish_reason`, `thinking`; where each "
           "option was asked about by itself, its `reference_index` (from 0) and `request_mode`",
           _of_row(lambda row: row.completions)),
    Column("likelihoods", "likelihoods", "`text`, `logprob`, `greedy`, `alone` of each option, where the row was "
           "recorded by log-probabilities", _of_row(lambda row: row.likelihoods or None)),
    Column("answer", "text", "what the completion was scored as: the option it was read as, or the extracted text; "
           "null where nothing was read in it", _of_row(lambda row: row.read.text)),
    Column("answer_label", "text", "the label of that option", _of_row(lambda row: row.read.label)),
    Column("left_out", "text", "why the row is in no score: `not_run`, `failed`, `too_long`, `unscored`; null for "
           "scored rows", _of_row(lambda row: row.left_out)),
    Column("error", "text", "what a client said of a request that failed", _of_row(lambda row: row.error)),
    Column("finish_reason", "text", "why the first completion ended", _of_first_completion("finish_reason")),
    Column("logprob", "number", "log-probability of the first completion, in nats; null where it was not measured",
           _of_first_completion("logprob")),
    Column("request_time", "number", "seconds that the row's requests took", _of_row(lambda row: row.request_time)),
    Column("request_datetime", "integer", "when the first was made, in seconds since 1970",
           _of_row(lambda row: None if row.request_datetime is None else int(row.request_datetime))),
    Column("cached", "boolean", "whether a request was answered from HELM's cache", _of_row(lambda row: row.cached)),
    Column("num_train_instances", "integer", "demonstrations in the prompt",
           _of_row(lambda row: row.num_train_instances)),
    Column("prompt_truncated", "boolean", "whether the prompt was cut to fit the model's window",
           _of_row(lambda row: row.prompt_truncated)),
    Column("data", "JSON", "what else the dataset says of the row", _of_row(lambda row: dict(row.data) or None)),
)  # fmt: skip

ATTRIBUTE = "attribute."
STAT = "stat."
JUDGEMENTS = Column(
    "judgements", "JSON", "where answers of a run were judged: what was said of the row's, as in format 1. Those that "
    "are not stale have no `judged_sha256`", _of_row(lambda row: to_portable(row) or None),
)  # fmt: skip
MORE = (
    (JUDGEMENTS.name, JUDGEMENTS.kind, JUDGEMENTS.description),
    ("attribute.NAME", "text", "the row's value of each attribute that the report groups by"),
    (
        "stat.NAME",
        "number",
        "each of the row's stats: scores, token counts, ... (mean, where a stat has several values)",
    ),
)
"""Columns whose names the runs decide."""


def find_columns(runs: Sequence[RunFiles]) -> list[Column]:
    """Return the columns of a table of these runs. A stat that a run does not have is null in its rows."""
    attributes = dict.fromkeys(name for run in runs for name in run.metric_arguments.get("attributes", {}))
    stats = dict.fromkeys(name for run in runs for name in run.row_stats.names)
    return [
        *COLUMNS,
        *([JUDGEMENTS] if any(run.metric_arguments.get("judged") for run in runs) else ()),
        *(
            Column(ATTRIBUTE + name, "text", "", partial(_attribute, name))
            for name in attributes
            if name != "sub_split"
        ),
        *(Column(STAT + name, "number", "", partial(_stat, name)) for name in stats),
    ]


def to_row(columns: Sequence[Column], run: RunFiles, row: Prediction) -> list[Any]:
    """Return the values of a row, in the order of the columns: JSON's types."""
    return [column.get(run, row) for column in columns]


def to_table() -> str:
    """Return the columns as a Markdown table."""
    every = [*((column.name, column.kind, column.description) for column in COLUMNS), *MORE]
    return "\n".join(
        ["| column | type | |", "|---|---|---|", *(f"| `{n}` | {kind} | {said} |" for n, kind, said in every)]
    )


def _attribute(name: str, _run: RunFiles, row: Prediction) -> str | None:
    return row.attributes.get(name)


def _stat(name: str, _run: RunFiles, row: Prediction) -> float | None:
    return row.scores.get(name)


def _plain_messages(messages: Sequence[dict[str, Any]] | None) -> list[dict[str, str]] | None:
    """Return messages with text alone: what has parts (images) is written as JSON."""
    if messages is None:
        return None
    return [{"role": str(message["role"]), "content": _plain(message.get("content"))} for message in messages]


def _plain(content: Any) -> str:
    return content if isinstance(content, str) else to_json(content)
