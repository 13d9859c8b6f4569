"""Finished runs as tables: a row for each prediction, or for each score and slice; as CSV, JSON Lines or Parquet.

The tables in docs/how-to/export.md are made of `COLUMNS` and `SCORE_COLUMNS`; a test holds both equal.
One batch of rows is in memory at a time. A file is written aside and put in place whole.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from helm_ext.analysis.judged import list_judged, to_portable
from helm_ext.analysis.predictions import Prediction
from helm_ext.analysis.run_scores import RunScores, find_main_metric, find_scores, open_scores, open_total
from helm_ext.analysis.runs import RunFiles
from helm_ext.errors import DatasetIntegrityError, DatasetNotFoundError, DatasetSyntaxError, RunEntryError
from helm_ext.files.writing import no_formula, open_part
from helm_ext.scoring.score import CORRECTED

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from helm_ext.scoring.statistics import Interval

Row = list[Any]

Table = Callable[[Sequence[RunFiles]], tuple[Sequence["Column"], Iterator[Row]]]
"""What is written about runs: the columns, and the values of each row in their order."""


class Column(NamedTuple):
    """One column."""

    name: str
    kind: str
    """`text`, `integer`, `number`, `boolean`; `texts`, a list; `messages`, `references`, `options`, `completions`,
    `likelihoods`, lists of objects; `JSON`, an object of any keys."""
    description: str
    get: Callable[[RunFiles, Prediction], Any] | None = None
    """Its value, where a row is a prediction; None: the prediction's attribute of that name."""


def _first(name: str) -> Callable[[RunFiles, Prediction], Any]:
    return lambda _, row: row.completions[0][name] if row.completions else None


def _attribute(name: str) -> Callable[[RunFiles, Prediction], Any]:
    return lambda _, row: row.attributes.get(name)


def _stat(name: str) -> Callable[[RunFiles, Prediction], Any]:
    return lambda _, row: row.score(name)


COLUMNS: tuple[Column, ...] = (
    Column("run", "text", "name of the run", lambda run, _: run.name),
    Column("suite", "text", "the folder that the run is in", lambda run, _: run.suite),
    Column("model", "text", "as HELM's tables name it", lambda run, _: run.adapter_spec["model"]),
    Column("model_deployment", "text", "where it was asked", lambda run, _: run.adapter_spec["model_deployment"]),
    Column("scenario", "text", "name of the scenario, or of the dataset", lambda run, _: run.scenario_name),
    Column("data_digest", "text", "of a dataset read by helm-ext: first digits of the SHA-256 of its files",
           lambda run, _: run.scenario_arguments.get("digest")),
    Column("method", "text", "HELM's adaptation method", lambda run, _: run.adapter_spec["method"]),
    Column("instance_id", "text", "id of the row in its dataset"),
    Column("trial", "integer", "which draw of demonstrations, from 0"),
    Column("split", "text", "`train`, `valid`, `test`, or another of the scenario"),
    Column("sub_split", "text", "part of the split, where the scenario has some"),
    Column("perturbation", "text", "name of what changed the question; null for the original",
           lambda _, row: row.perturbation["name"] if row.perturbation else None),
    Column("perturbation_details", "JSON", "its settings", lambda _, row: row.perturbation),
    Column("input", "text", 'the bare question; "" where it is a conversation'),
    Column("messages", "messages", "the conversation that was sent: `role`, `content`",
           lambda _, row: None if row.messages is None
           else [{"role": str(one["role"]), "content": as_text(one.get("content"))} for one in row.messages]),
    Column("prompt", "text", 'the text that was sent, shots included; "" where a recording does not say it. Where each '
           "option was asked about by itself, the first request's"),
    Column("references", "references", "`text` and `correct` of each"),
    Column("gold", "texts", "the correct references"),
    Column("options", "options", "`label` and `text`, where completions are read as labels",
           lambda _, row: [{"label": key, "text": text} for key, text in (row.options or {}).items()] or None),
    Column("completion", "text", "the first completion; null where there is none", _first("text")),
    Column("completions", "completions", "all of them: `text`, `logprob`, `finish_reason`, `thinking`; where each "
           "option was asked about by itself, its `reference_index` (from 0) and `request_mode`"),
    Column("likelihoods", "likelihoods", "`text`, `logprob`, `greedy`, `alone` of each option, where the row was "
           "recorded by log-probabilities", lambda _, row: row.likelihoods or None),
    Column("answer", "text", "what the completion was scored as: the option it was read as, or the extracted text; "
           "null where nothing was read in it", lambda _, row: row.read.text),
    Column("answer_label", "text", "the label of that option", lambda _, row: row.read.label),
    Column("left_out", "text", "why the row is in no score: `not_run`, `failed`, `too_long`, `unscored`; null for "
           "scored rows"),
    Column("error", "text", "what a client said of a request that failed"),
    Column("finish_reason", "text", "why the first completion ended", _first("finish_reason")),
    Column("logprob", "number", "log-probability of the first completion, in nats; null where it was not measured",
           _first("logprob")),
    Column("request_time", "number", "seconds that the row's requests took"),
    Column("request_datetime", "integer", "when the first was made, in seconds since 1970",
           lambda _, row: None if row.request_datetime is None else int(row.request_datetime)),
    Column("cached", "boolean", "whether a request was answered from HELM's cache"),
    Column("num_train_instances", "integer", "demonstrations in the prompt"),
    Column("prompt_truncated", "boolean", "whether the prompt was cut to fit the model's window"),
    Column("data", "JSON", "what else the dataset says of the row", lambda _, row: dict(row.data) or None),
)  # fmt: skip

_JUDGEMENTS = Column(
    "judgements", "JSON", "where answers of a run were judged: what was said of the row's, as in format 1. Those that "
    "are not stale have no `judged_sha256`", lambda _, row: to_portable(row) or None,
)  # fmt: skip
MORE = (
    _JUDGEMENTS,
    Column("attribute.NAME", "text", "the row's value of each attribute that the report groups by"),
    Column("stat.NAME", "number", "each of the row's stats: scores, token counts, ... (mean, where a stat has several "
           "values)"),
)  # fmt: skip
"""Columns whose names the runs decide."""

SCORE_COLUMNS = (
    Column("run", "text", "name of the run"),
    Column("suite", "text", "the folder that the run is in"),
    Column("model", "text", "as `helm-ext compare` names it"),
    Column("dataset", "text", "title of the dataset"),
    Column("metric", "text", "a score of the rows"),
    Column("main", "boolean", "whether it is the run's main metric, of a judge's score the corrected one where "
           "there is one; null where a run of HELM's own names none"),
    Column("slice", "text", "`ATTRIBUTE=VALUE`; null for all rows"),
    Column("mean", "number", "over the rows, each with the mean over its trials"),
    Column("low", "number", "lower end of the 95 % interval; null where the rows do not tell it"),
    Column("high", "number", "upper end"),
    Column("interval", "text", "how it was made: `wilson`, `t`, `clusters`, `few clusters`, `none`, `corrected` by "
           "labels"),
    Column("rows", "integer", "rows with a score"),
    Column("clusters", "integer", "groups of rows that are not independent, where the run has them (`cluster=`)"),
    Column("left_out", "integer", "rows without a score; null for slices"),
)  # fmt: skip


def predictions_table(runs: Sequence[RunFiles]) -> tuple[Sequence[Column], Iterator[Row]]:
    """Return the columns, and a row for each prediction. A stat that a run does not have is null in its rows."""
    attributes = dict.fromkeys(name for run in runs for name in run.metric_arguments.get("attributes", {}))
    stats = dict.fromkeys(name for run in runs for name in run.row_stats.names)
    columns = [
        *COLUMNS,
        *([_JUDGEMENTS] if any(run.judged for run in runs) else ()),
        *(Column(f"attribute.{name}", "text", "", _attribute(name)) for name in attributes if name != "sub_split"),
        *(Column(f"stat.{name}", "number", "", _stat(name)) for name in stats),
    ]
    return columns, (row for run in runs for row in _to_rows(columns, run))


def _to_rows(columns: Sequence[Column], run: RunFiles) -> Iterator[Row]:
    """Yield the rows of a run. Half of a surrogate pair, which no file can hold, becomes a question mark."""
    for prediction in run.predictions():
        with run.blaming("scenario_state.json"):
            row = [
                column.get(run, prediction) if column.get else getattr(prediction, column.name) for column in columns
            ]
        try:
            to_json(row).encode()
        except UnicodeEncodeError:
            row = json.loads(to_json(row).encode("utf-8", "replace"))
        yield row


def scores_table(runs: Sequence[RunFiles]) -> tuple[Sequence[Column], Iterator[Row]]:
    """Return the columns, and a row for each score and slice of each run. Each run's files are read once.

    Perturbed copies, and rows of other splits than leaderboards show, are no part of it.
    """
    return SCORE_COLUMNS, (line for run in runs for line in _measure(run))


def find_main(run: RunFiles) -> str | None:
    """Return the main metric of a run; None for one of HELM's own that has no usual one."""
    try:
        return find_main_metric(run)
    except RunEntryError:
        return None


def _measure(run: RunFiles) -> Iterator[list[Any]]:
    main = find_main(run)
    total = None if main is None else open_total(run)
    every = [*([total] if total else ()), *(open_scores(run, name) for name in find_scores(run.row_stats.names))]
    for row in run.predictions():
        for scores in every:
            scores.see(row)
    judged = {one.score: one.corrected for one in list_judged(run, every[0].split)} if every else {}
    corrected = []
    for scores in every:
        slices = {"": [*scores.rows.items()]} | {f"{key}={of}": rows for (key, of), rows in scores.slices().items()}
        for name, rows in slices.items() if scores.rows else ():
            is_main = None if main is None else scores.metric == main and not judged.get(main)
            yield _to_line(scores, scores.metric, is_main, name, scores.measure(rows))
        for name, found in judged.get(scores.metric, {}).items():
            interval, metric = replace(found, count=len(slices[name])), f"{scores.metric}{CORRECTED}"
            corrected.append(_to_line(scores, metric, scores.metric == main, name, interval))
    yield from corrected


def _to_line(scores: RunScores, metric: str, is_main: bool | None, name: str, interval: Interval) -> list[Any]:
    return [
        scores.run.name, scores.run.suite, scores.model, scores.title, metric, is_main, name or None, interval.mean,
        *interval.ends, interval.method, interval.count, interval.clusters, None if name else scores.left_out,
    ]  # fmt: skip


def as_text(value: Any) -> str:
    """Return a text as it is, and any other value as JSON: messages with parts (images), say."""
    return value if isinstance(value, str) else to_json(value)


_LINE_ENDS = {ord(character): f"\\u{ord(character):04x}" for character in "\x85\u2028\u2029"}
"""Python's `str.splitlines`, as Every Eval Ever's validator uses it, ends a line at these; JSON leaves them raw."""


def to_json(value: Any) -> str:
    """Return a value as JSON on one line. NaN and infinities, which JSON has no numbers for, are written as text."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except ValueError:
        return json.dumps(_name_nonfinite(value), ensure_ascii=False, allow_nan=False)


def to_line(value: Any) -> bytes:
    """Return a line of JSON Lines. Half of a surrogate pair, which no file can hold, becomes a question mark."""
    return to_json(value).translate(_LINE_ENDS).encode("utf-8", "replace") + b"\n"


def _name_nonfinite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, dict):
        return {key: _name_nonfinite(item) for key, item in value.items()}
    return [_name_nonfinite(item) for item in value] if isinstance(value, list) else value


KINDS = ("csv", "jsonl", "parquet")

_BATCH = 1_000
"""Rows in memory, and in a row group of a Parquet file's buffer."""


def write_table(
    kind: str,
    runs: Sequence[RunFiles],
    target: Path,
    *,
    replace: bool = False,
    table: Table = predictions_table,
    for_spreadsheets: bool = False,
) -> int:
    """Write a file of one of `KINDS`, and return the number of rows.

    csv: a header, lists and objects as JSON, null as an empty cell; `for_spreadsheets` puts an apostrophe before texts
    that spreadsheets would take for a formula. jsonl: each line with all columns. parquet: compressed with zstd.

    Raises DatasetIntegrityError for a target that exists, unless `replace`; DatasetError for broken runs.
    """
    if target.exists() and not replace:
        raise DatasetIntegrityError(f"{target}: exists\n  hint: --replace overwrites it")
    if not target.parent.is_dir():
        raise DatasetNotFoundError(f"{target.parent}: no such folder")
    columns, rows = table(runs)
    with open_part(target) as part:
        if kind == "csv":
            written = _write_csv(columns, rows, part.file, for_spreadsheets=for_spreadsheets)
        elif kind == "jsonl":
            names, written = [column.name for column in columns], 0
            for written, row in enumerate(rows, 1):  # noqa: B007 - how many there are
                part.file.write(to_line(dict(zip(names, row, strict=True))))
        else:
            written = _write_parquet(columns, rows, part.file)
        part.replace()
    return written


def _write_csv(columns: Sequence[Column], rows: Iterator[Row], file: BinaryIO, *, for_spreadsheets: bool) -> int:
    text, written = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True), 0
    writer, finish = csv.writer(text, lineterminator="\n"), no_formula if for_spreadsheets else lambda cell: cell
    writer.writerow([finish(column.name) for column in columns])
    are_plain = [column.kind in ("text", "integer", "number") for column in columns]
    for written, row in enumerate(rows, 1):  # noqa: B007 - how many there are
        cells = zip(row, are_plain, strict=True)
        writer.writerow([finish(value if is_plain or value is None else to_json(value)) for value, is_plain in cells])
    text.detach()
    return written


def to_pandas(runs: Sequence[RunFiles]) -> pd.DataFrame:
    """Return the rows as a DataFrame: lists and objects as Python's own, whole numbers and booleans that know null."""
    import pandas as pd

    kinds = {"integer": "Int64", "number": "float64", "boolean": "boolean"}
    columns, rows = predictions_table(runs)
    values = list(zip(*rows, strict=True)) or [()] * len(columns)
    return pd.DataFrame(
        {
            column.name: pd.Series(list(given), dtype=kinds.get(column.kind, "object"))
            for column, given in zip(columns, values, strict=True)
        }
    )


def _write_parquet(columns: Sequence[Column], rows: Iterator[Row], file: BinaryIO) -> int:
    """Write the rows as Arrow's batches, and return how many there are."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema, written = _to_schema(columns), 0
    with pq.ParquetWriter(file, schema, compression="zstd") as writer:
        while batch := list(islice(rows, _BATCH)):
            try:
                arrays = [
                    pa.array([to_json(v) if column.kind == "JSON" and v is not None else v for v in values], field.type)
                    for column, field, values in zip(columns, schema, zip(*batch, strict=True), strict=True)
                ]
            except (pa.ArrowException, TypeError, AttributeError) as error:
                where = batch[0][0]  # the run
                raise DatasetSyntaxError(f"{where}: a row is not as HELM writes it: {str(error)[:80]}") from error
            writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=schema))
            written += len(batch)
    return written


def _to_schema(columns: Sequence[Column]) -> pa.Schema:
    import pyarrow as pa

    text, number, integer, boolean = pa.string(), pa.float64(), pa.int64(), pa.bool_()
    objects = {
        "messages": {"role": text, "content": text},
        "references": {"text": text, "correct": boolean},
        "options": {"label": text, "text": text},
        "completions": {"text": text, "logprob": number, "finish_reason": text, "thinking": text,
                        "reference_index": integer, "request_mode": text},
        "likelihoods": {"text": text, "logprob": number, "greedy": boolean, "alone": number},
    }  # fmt: skip
    types = {"text": text, "integer": integer, "number": number, "boolean": boolean, "JSON": text}
    types |= {"texts": pa.list_(text)} | {kind: pa.list_(pa.struct(fields.items())) for kind, fields in objects.items()}
    return pa.schema([pa.field(column.name, types[column.kind]) for column in columns])
