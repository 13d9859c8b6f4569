"""Parquet, and datasets of the Hugging Face library: folders that `save_to_disk` wrote, and names on the Hub.

Only the columns that are needed are read, a thousand rows at a time. No code of a dataset is run: datasets with scripts
are refused.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from helm_ext.errors import DatasetError, DatasetNotFoundError, DatasetSchemaError, DatasetSyntaxError, show
from helm_ext.files.limits import COPY_BYTES
from helm_ext.files.opening import open_raw
from helm_ext.formats.table.table import Table, TableRow

if TYPE_CHECKING:
    import datasets
    import pyarrow as pa

MAGIC = b"PAR1"

HUB = "hub:"
"""What begins the name of a dataset on the Hub: `hub:owner/name@revision`."""

_BATCH = 1_000
"""Rows made Python values at a time."""

_LFS = b"version https://git-lfs"

_NOT_JSON = re.compile("date|time|duration|decimal|binary|map|interval")
"""In the names of Arrow's types whose values JSON cannot hold."""


class _ArrowTable(Table):
    def __init__(self, path: str) -> None:
        super().__init__(path)
        self._fields: list[pa.Field] = []

    def is_json(self, columns: Sequence[str] | None) -> bool:
        """Whether JSON can hold all values of these columns."""
        fields = (field for field in self._fields if columns is None or field.name in columns)
        return not any(_NOT_JSON.search(str(field.type)) for field in fields)


class ParquetTable(_ArrowTable):
    """A Parquet file."""

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
            schema = parquet.read_schema(path)
        except (ArrowException, OSError) as error:
            message = f"this is no valid Parquet file: {show(str(error))}"
            raise DatasetSyntaxError.at(path, message, code="parquet") from error
        self._fields, self.columns = list(schema), list(schema.names)
        features = json.loads((schema.metadata or {}).get(b"huggingface", b"{}"))
        self.class_labels = _read_class_labels(features.get("info", {}).get("features", {}))

    def read(self, columns: Sequence[str] | None = None) -> Iterator[TableRow]:
        """Yield (position, cells, ""). Raises DatasetError."""
        from pyarrow import ArrowException, parquet

        number = 0
        try:
            with parquet.ParquetFile(self.path) as opened:
                batches = opened.iter_batches(batch_size=_BATCH, columns=columns)
                for number, cells in enumerate(_read_batches(batches), 1):
                    yield number, cells, ""
        except (ArrowException, OSError) as error:
            message = f"the file cannot be read after row {number}: {show(str(error))}"
            raise DatasetSyntaxError.at(self.path, message, code="parquet") from error

    def digest(self) -> str:
        """Return the SHA-256 of the file."""
        return _hash_file(Path(self.path))


def _read_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[dict[str, Any]]:
    """Yield the rows; by column, which is several times as fast as pyarrow's own `to_pylist`."""
    for batch in batches:
        names = batch.schema.names
        for values in zip(*map(_to_list, batch.columns), strict=True):
            yield dict(zip(names, values, strict=True))


def _to_list(column: pa.Array) -> list[Any]:
    """Return the values of a column. A number of 32 bits is the one that it is written as: 0.1, not 0.10000000149."""
    import pyarrow as pa

    if pa.types.is_float32(column.type):
        column = column.cast(pa.string()).cast(pa.float64())
    return column.to_pylist()


def _read_class_labels(features: Any) -> dict[str, Sequence[str]]:
    """Return the names of each column of class labels that the Hugging Face library has noted in a schema."""
    found: dict[str, Sequence[str]] = {}
    for column, feature in features.items() if isinstance(features, Mapping) else ():
        if isinstance(feature, Mapping) and feature.get("_type") == "ClassLabel":
            names = feature.get("names")
            if isinstance(names, list) and all(isinstance(name, str) for name in names):
                found[column] = names
    return found


def _hash_file(path: Path) -> str:
    """Return the SHA-256 of a file, lower-case hex."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(COPY_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def is_saved_dataset(folder: Path) -> bool:
    """Whether `save_to_disk` wrote the folder: by the files that it holds."""
    if (folder / "dataset_dict.json").is_file():
        return True
    return (folder / "state.json").is_file() and (folder / "dataset_info.json").is_file()


class SavedTable(_ArrowTable):
    """One saved dataset, or one of the Hub, of one or several splits."""

    def __init__(self, path: str) -> None:
        """Open the dataset. Raises DatasetError."""
        super().__init__(path)
        import datasets

        self._splits = _load_from_hub(path) if path.startswith(HUB) else _load_from_disk(path)
        self.splits = list(self._splits) if len(self._splits) > 1 else []
        columns: dict[str, None] = {}
        for name, split in self._splits.items():
            columns.update(dict.fromkeys(split.column_names))
            self._fields += split.features.arrow_schema
            labels = _read_class_labels(datasets.Features.to_dict(split.features))
            for column, names in labels.items():
                if self.class_labels.setdefault(column, names) != names:
                    message = f"the labels of {show(column)} in the split {show(name)} are not those of the others"
                    raise DatasetSchemaError.at(path, message, code="class-labels")
        self.columns = list(columns)

    def read(self, columns: Sequence[str] | None = None) -> Iterator[TableRow]:
        """Yield (position over all splits, cells, the name of the split)."""
        number = 0
        for name, split in self._splits.items():
            kept = split if columns is None else split.select_columns([c for c in columns if c in split.column_names])
            tables = kept.with_format("arrow").iter(batch_size=_BATCH)
            batches = (batch for table in tables for batch in table.to_batches())
            for number, cells in enumerate(_read_batches(batches), number + 1):  # noqa: B020 - goes on counting
                yield number, cells, name

    def digest(self) -> str:
        """Return the SHA-256 of the folder's files, or of the name and commit on the Hub."""
        whole = hashlib.sha256()
        if self.path.startswith(HUB):
            whole.update(self.path.encode())
        else:
            folder = Path(self.path)
            for file in sorted(file for file in folder.rglob("*") if file.is_file()):
                whole.update(f"{file.relative_to(folder).as_posix()}\0{_hash_file(file)}\n".encode())
        return whole.hexdigest()


def _load_from_disk(path: str) -> dict[str, datasets.Dataset]:
    import datasets

    try:
        loaded = datasets.load_from_disk(path)
    except Exception as error:
        # The library raises many kinds, also its own and pyarrow's, for folders that are not whole.
        hint = _way_out(str(error))
        message = f"the saved dataset cannot be read: {show(str(error))}"
        raise DatasetSyntaxError.at(path, message, hint, code="saved-dataset") from error
    return dict(loaded) if isinstance(loaded, datasets.DatasetDict) else {"": loaded}


def _way_out(said: str) -> str:
    """Return what to do about an error of the library; "" for one that is not known.

    Since 4.0 the library writes lists as the feature `List`, which older versions do not know.
    """
    import datasets

    if "Feature type" not in said or "not found" not in said:
        return ""
    return (
        f"a newer version of `datasets` wrote it than is installed here ({datasets.__version__}): pip install -U "
        "datasets, or write the table with the newer one: load_from_disk(FOLDER).to_parquet(FILE), for each split"
    )


def _load_from_hub(path: str) -> dict[str, datasets.Dataset]:
    """Return the splits of a dataset on the Hub. Raises DatasetError."""
    import datasets

    name, revision = _parse_name(path)
    try:
        configs = datasets.get_dataset_config_names(name, revision=revision)
        loaded = datasets.load_dataset(name, revision=revision) if len(configs) == 1 else None
    except Exception as error:  # network, authentication, scripts, broken files: each a class of another library
        raise _unreachable(path, error) from error
    if loaded is None:
        hint = f'save the one you mean: load_dataset("{name}", CONFIG).save_to_disk(FOLDER), and give the folder'
        message = f"the dataset has several configurations: {show(configs)}"
        raise DatasetSchemaError.at(path, message, hint, code="several-configurations")
    return dict(loaded) if isinstance(loaded, Mapping) else {"": loaded}


def pin_revision(path: str) -> str:
    """Return the name of a dataset on the Hub with the commit that its revision is now. Raises DatasetError.

    A name that has a full commit already is returned as it is, without asking the Hub.
    """
    name, revision = _parse_name(path)
    if revision is not None and len(revision) == 40 and all(character in "0123456789abcdef" for character in revision):
        return path
    from huggingface_hub import HfApi

    try:
        found = HfApi().dataset_info(name, revision=revision)
    except Exception as error:
        raise _unreachable(path, error) from error
    return f"{HUB}{name}@{found.sha}"


def _parse_name(path: str) -> tuple[str, str | None]:
    name, _, revision = path.removeprefix(HUB).partition("@")
    owner, slash, rest = name.partition("/")
    if not owner or not slash or not rest or "/" in rest:
        raise DatasetNotFoundError.at(
            path, "this names no dataset", "hub:OWNER/NAME or hub:OWNER/NAME@REVISION", code="hub-name"
        )
    return name, revision or None


def _unreachable(path: str, error: Exception) -> DatasetError:
    said = show(str(error).partition("\n")[0])
    hint = "the Hub is asked over the network; a saved dataset works without: save_to_disk(FOLDER), and give the folder"
    message = f"the dataset cannot be had: {type(error).__name__}: {said}"
    return DatasetNotFoundError.at(path, message, hint, code="hub")
