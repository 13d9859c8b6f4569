"""The files of a task: scripts, data and the dataset's folder, found by name, or said to be missing with what helps."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from helm_ext.errors import DatasetNotFoundError, Location, Problem, RunEntryError, did_you_mean

if TYPE_CHECKING:
    from helm_ext.formats.ultraeval.config import TaskConfig

Method = Literal["gen", "ppl"]

_SCRIPT_NAME = re.compile(r"transform_(gen|ppl)_(.+)\.py")


def script_name(script: Path) -> tuple[Method | None, str]:
    """Return the method and the version in a script's name.

    >>> script_name(Path("transform_gen_v0.py")), script_name(Path("transform.py"))
    (('gen', 'v0'), (None, ''))
    """
    match = _SCRIPT_NAME.fullmatch(script.name)
    return (None, "") if match is None else ("gen" if match[1] == "gen" else "ppl", match[2])


def is_called(asked: str, name: str) -> bool:
    """Whether `name` is the one asked for. HELM makes 7 of `007` and 100000.0 of `1e5`: such names agree by value."""
    try:
        return asked == name or float(asked) == float(name)
    except ValueError:
        return False


def require_file(path: Path, what: str) -> Path:
    """Return the path of a file that is there. Raises DatasetNotFoundError."""
    if not path.is_file():
        raise DatasetNotFoundError.at(path, f"{what}: no such file", _missing_hint(path), code="no-file")
    return path


def _missing_hint(path: Path) -> str:
    """Return what helps against a missing file: another name, upstream's way to make it, a comma written otherwise."""
    if path.parent.is_dir():
        near = did_you_mean(path.name, [other.name for other in path.parent.iterdir()])
        if near:
            return near
    maker = path.parent.parent / "make_dataset.py"
    if path.parent.name == "data" and maker.is_file():
        return (
            f"{maker} writes it from UltraEval's raw data: unpack RawData.zip (UltraEval's README says where it is) in "
            "the checkout, then run python data_process.py there"
        )
    if path.parent.is_dir() or "," in str(path):
        return ""
    return "a path with a comma cannot stand in a run entry: rename it, or write %2C for the comma"


def find_dataset_folder(dataset: str, root: Path | None) -> Path:
    """Return the folder `datasets/NAME` (below `root` or here), or the folder of that path. Raises DatasetError."""
    candidates = [Path(dataset)] if "/" in dataset else []
    bases = [root] if root is not None else [Path.cwd(), *Path.cwd().parents]
    candidates += [base / "datasets" / dataset for base in bases]
    for folder in candidates:
        if folder.is_dir():
            return folder.resolve()
    siblings = [f.name for base in bases if (base / "datasets").is_dir() for f in (base / "datasets").iterdir()]
    hint = did_you_mean(dataset, siblings) or "root=FOLDER names the checkout, the parent of datasets/"
    raise DatasetNotFoundError.at(bases[0], f"no folder datasets/{dataset}", hint, code="no-dataset")


def find_data_file(folder: Path, task: str | None) -> Path:
    """Return the data file of a dataset's folder, of its only task or the one asked for. Raises HelmExtError."""
    files = sorted((folder / "data").glob("*.jsonl"))
    wanted = [path for path in files if is_called(task or folder.name, path.stem)]
    if task is None and len(files) == 1:
        wanted = files
    if wanted:
        return wanted[0]
    if not files:
        hint = _missing_hint(folder / "data" / "*.jsonl")
        raise DatasetNotFoundError.at(folder, "no data/*.jsonl in the folder", hint, code="no-file")
    names = [path.stem for path in files]
    hint = (did_you_mean(task, names) if task else "") or f"task=NAME chooses one: {', '.join(names)}"
    raise RunEntryError(
        f"dataset={folder.name}: {len(files)} data files, and none is {task or folder.name}\n  hint: {hint}"
    )


def choose_script(
    folder: Path, method: str | None, version: str | None, config: TaskConfig | None, *, root: Path,
    warnings: list[Problem],
) -> Path:  # fmt: skip
    """Return the script to use: the version that is asked for, the config's, or the highest."""
    if version is None and config is not None:
        return root / config.transform
    scripts = [name for path in sorted(folder.glob("transform_*.py")) if (name := script_name(path))[0]]
    kinds = {str(kind) for kind, _ in scripts}
    if not scripts:
        if (folder / "transform.py").is_file():
            return folder / "transform.py"
        raise DatasetNotFoundError.at(folder, "no transform_gen_v0.py or the like in the folder", code="no-script")
    if method is None:
        if len(kinds) > 1:
            raise RunEntryError(f"dataset={folder.name}: it has GEN and PPL scripts\n  hint: method=gen or method=ppl")
        method = next(iter(kinds))
    if version is not None:
        return script_of_version(folder, method, version)
    versions = [name for kind, name in scripts if kind == method]
    if not versions:
        raise RunEntryError(f"method={method}: {folder} has scripts for {', '.join(kinds)} only")
    numbered = [name for name in versions if re.fullmatch(r"v\d+", name)]
    highest = max(numbered, key=lambda name: int(name[1:])) if numbered else max(versions)
    if len(versions) > 1:
        message = f"{highest} of the scripts {', '.join(sorted(versions))} is used"
        hint = "version=N chooses another"
        warnings.append(Problem(message, Location(str(folder)), hint, "warning", "version-chosen"))
    return folder / f"transform_{method}_{highest}.py"


def script_of_version(folder: Path, method: str | None, version: str) -> Path:
    """Return the script of a version, `0`, `v0` or `cot`. Raises RunEntryError."""
    name = f"v{int(version)}" if version.isdigit() else version
    for kind in [method] if method else ["gen", "ppl"]:
        path = folder / f"transform_{kind}_{name}.py"
        if path.is_file():
            return path
    names = map(script_name, folder.glob("transform_*.py"))
    known = sorted(name for kind, name in names if kind and method in (None, kind))
    raise RunEntryError(
        f"version={version}: {folder} has no script transform_{method or 'gen'}_{name}.py\n"
        f"  hint: {'versions: ' + ', '.join(known) if known else 'it has none of this method'}"
    )
