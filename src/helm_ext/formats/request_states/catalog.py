"""Finding a dataset by name: `adapter_spec:dataset=NAME`.

Searched in this order: the folder `adapter_specs` below the working directory, each folder in the environment variable
HELM_EXT_PATH (separated as in PATH), and the examples that come with the package. The first folder that holds the name
wins.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from helm_ext.errors import DatasetNotFoundError, RunEntryError, did_you_mean
from helm_ext.formats.arguments import as_helm_reads

SUFFIXES = (".json", ".jsonl", ".json5")
COMPRESSIONS = ("", ".gz", ".zst")


def search_folders() -> list[Path]:
    """Return the folders that exist, in the order in which they are searched."""
    folders = [Path("adapter_specs")]
    folders += [Path(part) for part in os.environ.get("HELM_EXT_PATH", "").split(os.pathsep) if part]
    folders.append(_packaged_examples())
    return [folder for folder in folders if folder.is_dir()]


def _packaged_examples() -> Path:
    here = Path(__file__).resolve().parents[2]
    installed = here / "examples"
    # In a source checkout (an editable install) the examples are still in their own folder.
    return installed if installed.is_dir() else here.parents[1] / "adapter_specs"


def dataset_name(path: Path) -> str | None:
    """Return the name under which a file can be asked for, or None for a file of another kind."""
    name = path.name
    for compression in COMPRESSIONS[1:]:
        name = name.removesuffix(compression)
    for suffix in SUFFIXES:
        if name.endswith(suffix):
            return name.removesuffix(suffix)
    return None


def default_name(arguments: Mapping[str, Any]) -> str:
    """Return the name of a dataset that has none of its own: the one asked for, or the file's without its endings."""
    if arguments.get("dataset") is not None:
        return str(arguments["dataset"])
    path = Path(arguments["path"])
    return dataset_name(path) or path.stem


def list_datasets() -> dict[str, Path]:
    """Return every dataset that can be asked for by name, and its file."""
    found: dict[str, Path] = {}
    for folder in search_folders():
        for name, path in datasets_in(folder):
            found.setdefault(name, path)
    return found


def find_dataset(name: str | float) -> Path:
    """Return the file of the dataset `name`.

    HELM turns values of run entries that look like numbers into numbers: `dataset=007` arrives as 7, `dataset=1.10` as
    1.1. So a number stands for every file whose name HELM would have turned into it; the file's own name is what counts
    from there on.

    Raises DatasetNotFoundError, or RunEntryError when a number could mean several files.
    """
    available = list_datasets()
    if isinstance(name, str):
        direct = available.get(name) or _by_file_name(name)
        if direct is None:
            raise _not_found(name, available)
        return direct
    matches = {known: path for known, path in available.items() if repr(as_helm_reads(known)) == repr(name)}
    if not matches:
        raise _not_found(str(name), available)
    if len(matches) > 1:
        raise RunEntryError(
            f"dataset={name} could be any of {', '.join(sorted(matches))}, because HELM reads such names as numbers\n"
            f"  hint: write the file's whole name, for example dataset={next(iter(sorted(matches.values()))).name}"
        )
    return next(iter(matches.values()))


def datasets_in(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield the name and the file of each dataset of a folder."""
    for path in sorted(folder.iterdir()):
        name = dataset_name(path)
        if name is not None and path.is_file():
            yield name, path


def _by_file_name(name: str) -> Path | None:
    """`dataset=007.json` works too: it is how a name that looks like a number can be written unmistakably."""
    if os.path.basename(name) != name:  # noqa: PTH119 - a check on the text, not on a path
        return None
    return next((folder / name for folder in search_folders() if (folder / name).is_file()), None)


def _not_found(name: str, available: dict[str, Path]) -> DatasetNotFoundError:
    folders = ", ".join(str(folder) for folder in search_folders()) or "none of the folders exists"
    suggestion = did_you_mean(name, available)
    if not suggestion and Path(name).exists():
        suggestion = f"for a file, write path={name}"
    hint = suggestion or f"available: {', '.join(sorted(available)) or 'no datasets'}"
    return DatasetNotFoundError(f"no dataset named {name!r} (searched: {folders})\n  hint: {hint}")
