"""Rows of finished runs as a CSV, JSON Lines or Parquet file, or as a saved dataset of the Hugging Face library.

One batch of rows is in memory at a time. A file is written aside and put in place whole.
"""

from __future__ import annotations

import csv
import io
import json
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from helm_ext.analysis.export.columns import Column, Kind, find_columns, to_row
from helm_ext.analysis.export.lines import to_json, to_line
from helm_ext.analysis.runs import RunFiles
from helm_ext.errors import DatasetIntegrityError, DatasetNotFoundError, DatasetSyntaxError
from helm_ext.files.writing import no_formula, open_part

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

BATCH = 1_000
"""Rows in memory, and in a row group of a Parquet file's buffer."""

Row = list[Any]

Table = Callable[[Sequence[RunFiles]], tuple[Sequence[Column], Iterator[Row]]]
"""What is written about runs: the columns, and the values of each row in their order."""


def predictions_table(runs: Sequence[RunFiles]) -> tuple[Sequence[Column], Iterator[Row]]:
    """Return a row for each prediction (`columns.COLUMNS`)."""
    columns = find_columns(runs)
    return columns, _rows(columns, runs)


def write_csv(
    runs: Sequence[RunFiles],
    target: Path,
    *,
    replace: bool = False,
    table: Table = predictions_table,
    for_spreadsheets: bool = False,
) -> int:
    """Write a CSV file, and return the number of rows: a header, lists and objects as JSON, null as an empty cell.

    `for_spreadsheets`: an apostrophe is put before texts that spreadsheets would take for a formula.
    Raises DatasetIntegrityError for a target that exists, unless `replace`; DatasetError for broken runs.
    """
    columns, found = table(runs)

    def write(file: BinaryIO) -> int:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
        writer = csv.writer(text, lineterminator="\n")
        guard = no_formula if for_spreadsheets else _as_it_is
        writer.writerow([guard(column.name) for column in columns])
        rows = 0
        for row in found:
            writer.writerow([guard(_cell(column.kind, value)) for column, value in zip(columns, row, strict=True)])
            rows += 1
        text.detach()
        return rows

    return _write(target, write, replace=replace)


def write_jsonl(
    runs: Sequence[RunFiles], target: Path, *, replace: bool = False, table: Table = predictions_table
) -> int:
    """Write a JSON Lines file, each line with all columns, and return the number of rows. Raises as `write_csv`."""
    columns, found = table(runs)
    names = [column.name for column in columns]

    def write(file: BinaryIO) -> int:
        rows = 0
        for row in found:
            file.write(to_line(dict(zip(names, row, strict=True))))
            rows += 1
        return rows

    return _write(target, write, replace=replace)


def write_parquet(
    runs: Sequence[RunFiles], target: Path, *, replace: bool = False, table: Table = predictions_table
) -> int:
    """Write a Parquet file, compressed with zstd, and return the number of rows. Raises as `write_csv`."""
    import pyarrow.parquet as pq

    columns, found = table(runs)
    schema = _to_schema(columns)

    def write(file: BinaryIO) -> int:
        with pq.ParquetWriter(file, schema, compression="zstd") as writer:
            return _write_batches(columns, found, schema, writer.write_batch)

    return _write(target, write, replace=replace)


def write_hf(runs: Sequence[RunFiles], target: Path, *, replace: bool = False, table: Table = predictions_table) -> int:
    """Write a folder that `datasets.load_from_disk` reads, and return the number of rows. Raises as `write_csv`."""
    import datasets
    import pyarrow as pa

    _require_place(target, replace=replace)
    columns, found = table(runs)
    schema = _to_schema(columns)
    with tempfile.TemporaryDirectory(prefix=".export-", dir=target.parent) as folder:
        arrow, made = Path(folder) / "rows.arrow", Path(folder) / "dataset"
        with arrow.open("wb") as file, pa.ipc.new_stream(file, schema) as writer:
            rows = _write_batches(columns, found, schema, writer.write_batch)
        dataset = datasets.Dataset.from_file(str(arrow))
        with _without_progress_bars():
            dataset.save_to_disk(str(made))
        if target.exists():
            shutil.rmtree(target)
        made.rename(target)
    return rows


def to_pandas(runs: Sequence[RunFiles]) -> pd.DataFrame:
    """Return the rows as a DataFrame: lists and objects as Python's own, whole numbers and booleans that know null."""
    import pandas as pd

    columns = find_columns(runs)
    rows = [to_row(columns, run, row) for run in runs for row in run.predictions()]
    values = zip(*rows, strict=True) if rows else ([] for _ in columns)
    return pd.DataFrame(
        {
            column.name: pd.Series(list(given), dtype=_PANDAS.get(column.kind, "object"))
            for column, given in zip(columns, values, strict=True)
        }
    )


_PANDAS = {"integer": "Int64", "number": "float64", "boolean": "boolean"}


def _rows(columns: Sequence[Column], runs: Sequence[RunFiles]) -> Iterator[Row]:
    """Yield the rows of all runs. Half of a surrogate pair, which no file can hold, becomes a question mark."""
    for run in runs:
        for prediction in run.predictions():
            with run.blaming("scenario_state.json"):
                row = to_row(columns, run, prediction)
            try:
                to_json(row).encode()
            except UnicodeEncodeError:
                row = json.loads(to_json(row).encode("utf-8", "replace"))
            yield row


def _write(target: Path, write: Callable[[BinaryIO], int], *, replace: bool) -> int:
    _require_place(target, replace=replace)
    with open_part(target) as part:
        rows = write(part.file)
        part.replace()
    return rows


def _require_place(target: Path, *, replace: bool) -> None:
    """Raise unless a file or folder can be written there."""
    if target.exists() and not replace:
        raise DatasetIntegrityError(f"{target}: exists\n  hint: --replace overwrites it")
    if not target.parent.is_dir():
        raise DatasetNotFoundError(f"{target.parent}: no such folder")


def _as_it_is(value: Any) -> Any:
    return value


def _cell(kind: Kind, value: Any) -> Any:
    if value is None or kind in ("text", "integer", "number"):
        return value
    return to_json(value)


def _write_batches(
    columns: Sequence[Column],
    rows: Iterator[Row],
    schema: pa.Schema,
    write: Callable[[pa.RecordBatch], object],
) -> int:
    """Write the rows as Arrow's batches, and return how many there are."""
    import pyarrow as pa

    written = 0
    while batch := list(islice(rows, BATCH)):
        try:
            arrays = [
                pa.array([_for_arrow(column.kind, value) for value in values], type=field.type)
                for column, field, values in zip(columns, schema, zip(*batch, strict=True), strict=True)
            ]
        except (pa.ArrowException, TypeError, AttributeError) as error:
            where = batch[0][0]  # the run
            raise DatasetSyntaxError(f"{where}: a row is not as HELM writes it: {str(error)[:80]}") from error
        write(pa.RecordBatch.from_arrays(arrays, schema=schema))
        written += len(batch)
    return written


def _for_arrow(kind: Kind, value: Any) -> Any:
    return to_json(value) if kind == "JSON" and value is not None else value


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
