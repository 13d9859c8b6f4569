"""Rows of finished runs as a CSV, JSON Lines or Parquet file, or as a saved dataset of the Hugging Face library.

One batch of rows is in memory at a time. A file is written aside and put in place whole.
"""

from __future__ import annotations

import csv
import io
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from helm_ext.analysis.export.columns import Column, Row, Table, predictions_table, to_json, to_line
from helm_ext.analysis.runs import RunFiles
from helm_ext.errors import DatasetIntegrityError, DatasetNotFoundError, DatasetSyntaxError
from helm_ext.files.writing import no_formula, open_part

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

KINDS = ("csv", "jsonl", "parquet", "hf")

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
    that spreadsheets would take for a formula. jsonl: each line with all columns. parquet: compressed with zstd. hf: a
    folder that `datasets.load_from_disk` reads.

    Raises DatasetIntegrityError for a target that exists, unless `replace`; DatasetError for broken runs.
    """
    if target.exists() and not replace:
        raise DatasetIntegrityError(f"{target}: exists\n  hint: --replace overwrites it")
    if not target.parent.is_dir():
        raise DatasetNotFoundError(f"{target.parent}: no such folder")
    columns, rows = table(runs)
    if kind == "hf":
        return _write_hf(columns, rows, target)
    with open_part(target) as part:
        if kind == "csv":
            written = _write_csv(columns, rows, part.file, for_spreadsheets=for_spreadsheets)
        elif kind == "jsonl":
            written = _write_jsonl(columns, rows, part.file)
        else:
            import pyarrow.parquet as pq

            with pq.ParquetWriter(part.file, _to_schema(columns), compression="zstd") as writer:
                written = _write_batches(columns, rows, writer)
        part.replace()
    return written


def _write_csv(columns: Sequence[Column], rows: Iterator[Row], file: BinaryIO, *, for_spreadsheets: bool) -> int:
    text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
    writer = csv.writer(text, lineterminator="\n")
    written = -1
    for written, row in enumerate(_to_cells(columns, rows)):  # noqa: B007 - how many there are
        writer.writerow([no_formula(cell) for cell in row] if for_spreadsheets else row)
    text.detach()
    return written


def _to_cells(columns: Sequence[Column], rows: Iterator[Row]) -> Iterator[Row]:
    yield [column.name for column in columns]
    for row in rows:
        yield [
            value if value is None or column.kind in ("text", "integer", "number") else to_json(value)
            for column, value in zip(columns, row, strict=True)
        ]


def _write_jsonl(columns: Sequence[Column], rows: Iterator[Row], file: BinaryIO) -> int:
    names, written = [column.name for column in columns], 0
    for row in rows:
        file.write(to_line(dict(zip(names, row, strict=True))))
        written += 1
    return written


def _write_hf(columns: Sequence[Column], rows: Iterator[Row], target: Path) -> int:
    import datasets
    import pyarrow as pa

    with tempfile.TemporaryDirectory(prefix=".export-", dir=target.parent) as folder:
        arrow, made = Path(folder) / "rows.arrow", Path(folder) / "dataset"
        with arrow.open("wb") as file, pa.ipc.new_stream(file, _to_schema(columns)) as writer:
            written = _write_batches(columns, rows, writer)
        dataset = datasets.Dataset.from_file(str(arrow))
        with _without_progress_bars():
            dataset.save_to_disk(str(made))
        if target.exists():
            shutil.rmtree(target)
        made.rename(target)
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


def _write_batches(columns: Sequence[Column], rows: Iterator[Row], writer: Any) -> int:
    """Write the rows as Arrow's batches, and return how many there are."""
    import pyarrow as pa

    schema, written = _to_schema(columns), 0
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

    text = pa.string()
    completion = {
        "text": text, "logprob": pa.float64(), "finish_reason": text, "thinking": text,
        "reference_index": pa.int64(), "request_mode": text,
    }  # fmt: skip
    likelihood = {"text": text, "logprob": pa.float64(), "greedy": pa.bool_(), "alone": pa.float64()}
    types = {
        "text": text,
        "integer": pa.int64(),
        "number": pa.float64(),
        "boolean": pa.bool_(),
        "texts": pa.list_(text),
        "messages": pa.list_(pa.struct({"role": text, "content": text}.items())),
        "references": pa.list_(pa.struct({"text": text, "correct": pa.bool_()}.items())),
        "options": pa.list_(pa.struct({"label": text, "text": text}.items())),
        "completions": pa.list_(pa.struct(completion.items())),
        "likelihoods": pa.list_(pa.struct(likelihood.items())),
        "JSON": text,
    }
    return pa.schema([pa.field(column.name, types[column.kind]) for column in columns])


@contextmanager
def _without_progress_bars() -> Iterator[None]:
    """Turn the bars of the Hugging Face library off for a while."""
    import datasets

    were_off = datasets.are_progress_bars_disabled()
    datasets.disable_progress_bars()
    try:
        yield
    finally:
        if not were_off:
            datasets.enable_progress_bars()
