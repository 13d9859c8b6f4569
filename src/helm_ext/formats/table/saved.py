"""Datasets of the Hugging Face library: folders that `save_to_disk` wrote, and names on the Hub.

The Arrow files are read a thousand rows at a time. No code of a dataset is run: datasets with scripts are refused.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from helm_ext.errors import DatasetError, DatasetNotFoundError, DatasetSchemaError, DatasetSyntaxError, show
from helm_ext.formats.table.parquet import hash_file, read_batch, read_class_labels
from helm_ext.formats.table.table import Cells, Table

if TYPE_CHECKING:
    import datasets

__all__ = ["HUB", "SavedTable", "is_saved_dataset", "pin_revision"]

HUB = "hub:"
"""What begins the name of a dataset on the Hub: `hub:owner/name@revision`."""

_BATCH = 1_000


def is_saved_dataset(folder: Path) -> bool:
    """Whether `save_to_disk` wrote the folder: by the files that it holds."""
    if (folder / "dataset_dict.json").is_file():
        return True
    return (folder / "state.json").is_file() and (folder / "dataset_info.json").is_file()


class SavedTable(Table):
    """One saved dataset, or one of the Hub, of one or several splits."""

    names_lines = False

    def __init__(self, path: str) -> None:
        """Open the dataset. Raises DatasetError."""
        super().__init__(path)
        import datasets

        self._splits = _load_from_hub(path) if path.startswith(HUB) else _load_from_disk(path)
        self.splits = list(self._splits) if len(self._splits) > 1 else []
        columns: dict[str, None] = {}
        for name, split in self._splits.items():
            columns.update(dict.fromkeys(split.column_names))
            labels = read_class_labels(datasets.Features.to_dict(split.features))
            for column, names in labels.items():
                if self.class_labels.setdefault(column, names) != names:
                    message = f"the labels of {show(column)} in the split {show(name)} are not those of the others"
                    raise DatasetSchemaError.at(path, message, code="class-labels")
        self.columns = list(columns)

    def rows(self, columns: Sequence[str] | None = None) -> Iterator[tuple[int, Cells, str]]:
        """Yield (position over all splits, cells, the name of the split)."""
        number = 0
        for name, split in self._splits.items():
            kept = split if columns is None else split.select_columns([c for c in columns if c in split.column_names])
            for table in kept.with_format("arrow").iter(batch_size=_BATCH):
                for batch in table.to_batches():
                    for cells in read_batch(batch):
                        number += 1
                        yield number, cells, name
        self.lines = number

    def digest(self) -> str:
        """Return the SHA-256 of the folder's files, or of the name and commit on the Hub."""
        whole = hashlib.sha256()
        if self.path.startswith(HUB):
            whole.update(self.path.encode())
        else:
            folder = Path(self.path)
            for file in sorted(file for file in folder.rglob("*") if file.is_file()):
                whole.update(f"{file.relative_to(folder).as_posix()}\0{hash_file(file)}\n".encode())
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
