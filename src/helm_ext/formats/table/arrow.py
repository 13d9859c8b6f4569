"""Parquet, and datasets of the Hugging Face library: folders that `save_to_disk` wrote, and names on the Hub.

Only the columns that are needed are read, a thousand rows at a time. No code of a dataset is run: datasets with scripts
are refused.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from helm_ext.errors import DatasetError, DatasetNotFoundError, DatasetSchemaError, DatasetSyntaxError, show
from helm_ext.files.content import Hashing
from helm_ext.formats.imported.tables import Table, TableRow

if TYPE_CHECKING:
    import datasets
    import pyarrow as pa

MAGIC = b"PAR1"

HUB = "hub:"
"""What begins the name of a dataset on the Hub: `hub:owner/name@revision`."""

_BATCH = 1_000
"""Rows made Python values at a time."""


class ParquetTable(Table):
    """A Parquet file."""

    def __init__(self, path: str) -> None:
        """Read the schema. Raises DatasetError."""
        super().__init__(path)
        from pyarrow import ArrowException, parquet

        try:
            schema = parquet.read_schema(path)
        except (ArrowException, OSError) as error:
            message, hint = f"this is no valid Parquet file: {show(str(error))}", "is it a pointer? git lfs pull"
            raise DatasetSyntaxError.at(path, message, hint, code="parquet") from error
        self.columns = list(schema.names)
        features = json.loads((schema.metadata or {}).get(b"huggingface", b"{}"))
        self.class_labels = _read_class_labels(features.get("info", {}).get("features", {}))

    def read(self, columns: Sequence[str] | None = None) -> Iterator[TableRow]:
        """Yield (position, cells, ""). Raises DatasetError."""
        from pyarrow import ArrowException, parquet

        self.digest = _hash_file(Path(self.path))
        number = 0
        try:
            with parquet.ParquetFile(self.path) as opened:
                batches = opened.iter_batches(batch_size=_BATCH, columns=columns)
                for number, cells in enumerate(_read_batches(batches), 1):
                    yield number, cells, ""
        except (ArrowException, OSError) as error:
            message = f"the file cannot be read after row {number}: {show(str(error))}"
            raise DatasetSyntaxError.at(self.path, message, code="parquet") from error


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
    with path.open("rb") as file:
        hashing = Hashing(file)
        hashing.drain()
    return hashing.hash.hexdigest()


def is_saved_dataset(folder: Path) -> bool:
    """Whether `save_to_disk` wrote the folder: by the files that it holds."""
    if (folder / "dataset_dict.json").is_file():
        return True
    return (folder / "state.json").is_file() and (folder / "dataset_info.json").is_file()


class SavedTable(Table):
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
            labels = _read_class_labels(datasets.Features.to_dict(split.features))
            for column, names in labels.items():
                if self.class_labels.setdefault(column, names) != names:
                    message = f"the labels of {show(column)} in the split {show(name)} are not those of the others"
                    raise DatasetSchemaError.at(path, message, code="class-labels")
        self.columns = list(columns)

    def read(self, columns: Sequence[str] | None = None) -> Iterator[TableRow]:
        """Yield (position over all splits, cells, the name of the split)."""
        is_of_hub = self.path.startswith(HUB)
        self.digest = hashlib.sha256(self.path.encode()).hexdigest() if is_of_hub else _hash_folder(Path(self.path))
        number = 0
        for name, split in self._splits.items():
            kept = split if columns is None else split.select_columns([c for c in columns if c in split.column_names])
            tables = kept.with_format("arrow").iter(batch_size=_BATCH)
            batches = (batch for table in tables for batch in table.to_batches())
            for number, cells in enumerate(_read_batches(batches), number + 1):  # noqa: B020 - goes on counting
                yield number, cells, name


def _hash_folder(folder: Path) -> str:
    """Return the SHA-256 of all files of a folder, with their names."""
    whole = hashlib.sha256()
    for file in sorted(file for file in folder.rglob("*") if file.is_file()):
        whole.update(f"{file.relative_to(folder).as_posix()}\0{_hash_file(file)}\n".encode())
    return whole.hexdigest()


def _load_from_disk(path: str) -> dict[str, datasets.Dataset]:
    import datasets

    try:
        loaded = datasets.load_from_disk(path)
    except Exception as error:
        # The library raises many kinds, also its own and pyarrow's, for folders that are not whole.
        message = f"the saved dataset cannot be read: {show(str(error))}"
        hint = (
            f"`datasets` {datasets.__version__} is installed here: what a newer version wrote needs pip install -U "
            "datasets, or is written with that as Parquet: load_from_disk(FOLDER).to_parquet(FILE), for each split"
        )
        raise DatasetSyntaxError.at(path, message, hint, code="saved-dataset") from error
    return dict(loaded) if isinstance(loaded, datasets.DatasetDict) else {"": loaded}


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
