"""Parquet, read by row group and only the columns that are asked for."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from helm_ext.errors import DatasetSyntaxError, show
from helm_ext.files.limits import COPY_BYTES
from helm_ext.files.opening import open_raw
from helm_ext.formats.table.table import Cells, Table

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["MAGIC", "ParquetTable", "read_batch", "read_class_labels"]

MAGIC = b"PAR1"

_BATCH = 1_000
"""Rows made Python values at a time."""

_LFS = b"version https://git-lfs"


class ParquetTable(Table):
    """A Parquet file."""

    names_lines = False

    def __init__(self, path: str) -> None:
        """Read the schema. Raises DatasetError."""
        super().__init__(path)
        with open_raw(path) as file:
            start = file.read(len(_LFS))
        if start == _LFS:
            message = "this is a pointer of Git LFS, not the file itself"
            raise DatasetSyntaxError.at(path, message, "fetch the file: git lfs pull", code="lfs-pointer")
        from pyarrow import ArrowException, parquet

        try:
            with parquet.ParquetFile(path) as opened:
                schema = opened.schema_arrow
                self.lines = opened.metadata.num_rows
        except (ArrowException, OSError) as error:
            raise DatasetSyntaxError.at(
                path, f"this is no valid Parquet file: {show(str(error))}", code="parquet"
            ) from error
        self.columns = list(schema.names)
        features = json.loads((schema.metadata or {}).get(b"huggingface", b"{}"))
        self.class_labels = read_class_labels(features.get("info", {}).get("features", {}))

    def rows(self, columns: Sequence[str] | None = None) -> Iterator[tuple[int, Cells, str]]:
        """Yield (position, cells, ""). Raises DatasetError."""
        from pyarrow import ArrowException, parquet

        number = 0
        try:
            with parquet.ParquetFile(self.path) as opened:
                for batch in opened.iter_batches(batch_size=_BATCH, columns=columns):
                    for cells in read_batch(batch):
                        number += 1
                        yield number, cells, ""
        except (ArrowException, OSError) as error:
            said = show(str(error))
            raise DatasetSyntaxError.at(
                self.path, f"the file cannot be read after row {number}: {said}", code="parquet"
            ) from error

    def digest(self) -> str:
        """Return the SHA-256 of the file."""
        return hash_file(Path(self.path))


def read_batch(batch: pa.RecordBatch) -> Iterator[dict[str, Any]]:
    """Yield the rows of a batch; by column, which is several times as fast as pyarrow's `to_pylist`."""
    names = batch.schema.names
    for values in zip(*map(_to_list, batch.columns), strict=True):
        yield dict(zip(names, values, strict=True))


def _to_list(column: pa.Array) -> list[Any]:
    """Return the values of a column. A number of 32 bits is the one that it is written as: 0.1, not 0.10000000149."""
    import pyarrow as pa

    if pa.types.is_float32(column.type):
        column = column.cast(pa.string()).cast(pa.float64())
    return column.to_pylist()


def read_class_labels(features: Any) -> dict[str, Sequence[str]]:
    """Return the names of each column of class labels that the Hugging Face library has noted in a schema."""
    found: dict[str, Sequence[str]] = {}
    for column, feature in features.items() if isinstance(features, Mapping) else ():
        if isinstance(feature, Mapping) and feature.get("_type") == "ClassLabel":
            names = feature.get("names")
            if isinstance(names, list) and all(isinstance(name, str) for name in names):
                found[column] = names
    return found


def hash_file(path: Path) -> str:
    """Return the SHA-256 of a file, lower-case hex."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(COPY_BYTES):
            digest.update(chunk)
    return digest.hexdigest()
