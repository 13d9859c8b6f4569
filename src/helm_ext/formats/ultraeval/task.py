"""Which task is run: from a run entry's arguments, or upstream's config, to files that exist and rules that are known.

Three ways to name a task (formats.md, section 2):

    config=FILE[,task=NAME]                       upstream's task config
    dataset=NAME[,method=gen|ppl][,version=0]     a folder `datasets/NAME/` in upstream's layout
    data=FILE,transform=SCRIPT                    two files

In each, further arguments win over the config. Paths in a config are relative to the checkout's root.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from helm_ext.errors import DatasetNotFoundError, Location, Problem, RunEntryError, did_you_mean
from helm_ext.formats.ultraeval.checkout import find_checkout
from helm_ext.formats.ultraeval.config import TaskConfig, read_config
from helm_ext.formats.ultraeval.metric_names import MetricChoice, parse_metric_argument, read_metrics
from helm_ext.formats.ultraeval.sampling import Sampling, read_sampling

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["Method", "Task", "resolve", "script_version"]

Method = Literal["gen", "ppl"]
METHODS: tuple[Method, ...] = ("gen", "ppl")

_SCRIPT_NAME = re.compile(r"transform_(gen|ppl)_(.+)\.py")
FULL_NAME = re.compile(r"[^_]+_.+_(gen|ppl)")


@dataclass(frozen=True)
class Task:
    """One task, every name resolved. Nothing has been run yet."""

    name: str
    """`<dataset>_<task>_<gen|ppl>`: what scripts are told, and the EvalSet's name."""
    dataset: str
    method: Method
    data: Path
    script: Path
    root: Path | None
    description: str = ""
    fewshot: int = 0
    postprocess: str = ""
    metrics: MetricChoice = field(default_factory=lambda: MetricChoice(()))
    sampling: Sampling = field(default_factory=Sampling)
    demos: Path | None = None
    files: tuple[Path, ...] = ()
    """Further files that the task is made of (config, sampling parameters): part of the digest."""
    warnings: tuple[Problem, ...] = ()

    @property
    def version(self) -> str:
        """The script's version: `v0`, `cot`, or "" for `transform.py`."""
        return script_version(self.script)


def script_version(script: Path) -> str:
    """Return the version in a script's name.

    >>> script_version(Path("transform_gen_v0.py")), script_version(Path("transform.py"))
    ('v0', '')
    """
    match = _SCRIPT_NAME.fullmatch(script.name)
    return match.group(2) if match else ""


def resolve(
    *,
    config: str | Path | None = None,
    task: str | None = None,
    data: str | Path | None = None,
    transform: str | Path | None = None,
    dataset: str | None = None,
    method: str | None = None,
    version: int | str | None = None,
    fewshot: int | None = None,
    demos: str | Path | None = None,
    postprocess: str | None = None,
    metric: Any = None,
    root: str | Path | None = None,
    dataset_name: str | None = None,
    params: str | Path | None = None,
    max_tokens: int | None = None,
    temperature: float | None = None,
) -> Task:
    """Return the task that the arguments name.

    Raises RunEntryError for arguments, DatasetError (DatasetNotFoundError among them) for files.
    """
    _require_one_source(config=config, dataset=dataset, data=data)
    # HELM makes numbers of values that look like some.
    task, dataset, method, postprocess, dataset_name = (
        None if value is None else str(value) for value in (task, dataset, method, postprocess, dataset_name)
    )
    if method is not None and method not in METHODS:
        raise RunEntryError(f"method={method}: expected gen or ppl\n  hint: {did_you_mean(method, METHODS)}".rstrip())
    top = _folder(root)
    found: TaskConfig | None = None
    files: list[Path] = []
    warnings: list[Problem] = []
    if config is not None:
        found, top, config_warnings = _from_config(Path(str(config)), task, method, top)
        files.append(Path(str(config)))
        warnings += config_warnings
        data_path, script = top / found.path, top / found.transform
    elif dataset is not None:
        folder = _dataset_folder(dataset, top)
        top = folder.parent.parent
        found, config_path = _folder_config(folder, task, method)
        if config_path is not None:
            files.append(config_path)
        data_path = top / found.path if found else _data_file(folder, task)
        wanted = method or (_method_of(found) if found else None)
        script = _choose_script(folder, wanted, version, found, root=top, warnings=warnings)
    else:
        data_path = Path(str(data))
        if transform is None:
            raise RunEntryError(
                "data=...: transform=SCRIPT is needed too\n  hint: ultraeval:data=FILE,transform=SCRIPT"
            )
        script = Path(str(transform))
    if transform is not None and data is None:
        script = Path(str(transform))
    elif version is not None and dataset is None:
        script = _script_of_version(script.parent, method or _method_of(found) or _method_in(script), version)
    chosen = _choose_method(method, found, script)
    if _method_in(script) not in (None, chosen):
        message = f"method={chosen}, and by its name the script is for {_method_in(script)}"
        warnings.append(Problem(message, Location(str(script)), "", "warning", "other-method"))
    top = top or find_checkout(script) or find_checkout(data_path)
    sampling = Sampling()
    if chosen == "gen":
        sampling, sampling_files, sampling_warnings = read_sampling(
            _parameter_file(found, params, top), max_tokens=max_tokens, temperature=temperature
        )
        files += sampling_files
        warnings += sampling_warnings
    post = postprocess if postprocess is not None else (found.postprocess if found else "")
    metrics = (
        parse_metric_argument(metric, chosen, post)
        if metric is not None
        else read_metrics(found.metric if found else None, chosen, post, str(config or data_path))
    )
    folder_name, task_name = _names(data_path, found, task)
    if dataset_name is None and found is not None and FULL_NAME.fullmatch(found.task_name):
        dataset_name = found.task_name  # already full: scripts get it as it stands
    return Task(
        name=_full_name(dataset_name, folder_name, task_name, chosen),
        dataset=folder_name,
        method=chosen,
        data=_existing(data_path, "data"),
        script=_existing(script, "transform"),
        root=top,
        description=found.description if found else "",
        fewshot=fewshot if fewshot is not None else (found.fewshot if found else 0),
        postprocess=post,
        metrics=metrics,
        sampling=sampling,
        demos=_existing(Path(str(demos)), "demos") if demos is not None else None,
        files=tuple(files),
        warnings=tuple(warnings),
    )


def _require_one_source(**sources: Any) -> None:
    given = [name for name, value in sources.items() if value is not None]
    if len(given) != 1:
        said = "none of them is given" if not given else f"{' and '.join(given)} are given"
        raise RunEntryError(
            f"ultraeval: exactly one of config, dataset, data is needed, {said}\n"
            "  hint: ultraeval:config=FILE,model=... or ultraeval:dataset=NAME,method=gen,model=... "
            "or ultraeval:data=FILE,transform=SCRIPT,model=..."
        )


def _folder(root: str | Path | None) -> Path | None:
    if root is None:
        return None
    folder = Path(str(root)).expanduser()
    if not folder.is_dir():
        raise RunEntryError(f"root={root}: no such folder\n  hint: the UltraEval checkout, the parent of datasets/")
    return folder


def _parameter_file(config: TaskConfig | None, params: str | Path | None, root: Path | None) -> Path | None:
    """Return the file of sampling parameters: the config's own, else that of `params=`, as upstream's `--params`."""
    top = root or Path()
    if config is not None and config.generate.params:
        return top / config.generate.params
    if params is None:
        return None
    return path if (path := Path(str(params))).is_file() else top / path


def _existing(path: Path, what: str) -> Path:
    if not path.is_file():
        problem = Problem(
            f"{what}: no such file", Location(str(path)), _missing_hint(path), code="no-file", kind=DatasetNotFoundError
        )
        raise DatasetNotFoundError([problem])
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


def _from_config(
    path: Path, task: str | None, method: str | None, root: Path | None
) -> tuple[TaskConfig, Path, list[Problem]]:
    configs, warnings = read_config(path)
    chosen = [c for c in configs if task is None or any(is_called(task, name) for name in task_names(c))]
    if method is not None and len(chosen) > 1:
        chosen = [c for c in chosen if _method_of(c) == method]
    if len(chosen) != 1:
        known = list(_by_name(configs))
        if not chosen:
            asked = f"task={task}" if task is not None else f"method={method}"
            hint = (did_you_mean(task, known) if task else "") or f"tasks: {', '.join(known)}"
            raise RunEntryError(f"{asked}: {path} has no such task\n  hint: {hint}")
        raise RunEntryError(f"{path} holds {len(chosen)} tasks\n  hint: task=NAME chooses one: {', '.join(known)}")
    config = chosen[0]
    if root is not None:
        return config, root, warnings
    for wanted in (config.path, config.transform):  # without the data, the script shows where the root is
        for folder in path.resolve().parents:
            if (folder / wanted).is_file():
                return config, folder, warnings
    hint = "paths in a config are relative to the checkout's root, the parent of datasets/; root=FOLDER names it"
    place = Location(config.path)
    message = f"data: no such file in any folder above {path}"
    raise DatasetNotFoundError([Problem(message, place, hint, code="no-file", kind=DatasetNotFoundError)])


def task_names(config: TaskConfig) -> tuple[str, str]:
    """Return the names by which `task=` finds a task of a config: its own, and the full one with dataset and method."""
    folder, name = _names(Path(config.path), config, None)
    if FULL_NAME.fullmatch(config.task_name):
        return config.task_name, config.task_name
    return config.task_name, _full_name(None, folder, name, _method_of(config) or "gen")


def is_called(asked: str, name: str) -> bool:
    """Whether `name` is the one asked for. HELM makes 7 of `007` and 100000.0 of `1e5`: such names agree by value."""
    try:
        return asked == name or float(asked) == float(name)
    except ValueError:
        return False


def _dataset_folder(dataset: str, root: Path | None) -> Path:
    candidates = [Path(dataset)] if "/" in dataset else []
    bases = [root] if root is not None else [Path.cwd(), *Path.cwd().parents]
    candidates += [base / "datasets" / dataset for base in bases]
    for folder in candidates:
        if folder.is_dir():
            return folder.resolve()
    siblings = [f.name for base in bases if (base / "datasets").is_dir() for f in (base / "datasets").iterdir()]
    hint = did_you_mean(dataset, siblings) or "root=FOLDER names the checkout, the parent of datasets/"
    problem = Problem(f"no folder datasets/{dataset}", Location(str(bases[0])), hint, code="no-dataset")
    raise DatasetNotFoundError([problem])


def _folder_config(folder: Path, task: str | None, method: str | None) -> tuple[TaskConfig | None, Path | None]:
    """Return the config of a dataset's folder that fits, if there is exactly one."""
    found: list[tuple[TaskConfig, Path]] = []
    for path in sorted((folder / "config").glob("*.json")):
        found += [(config, path) for config in read_config(path)[0]]
    found = [(c, p) for c, p in found if method is None or _method_of(c) == method]
    asked = (task or folder.name).lower()
    wanted = [(c, p) for c, p in found if any(is_called(asked, name.lower()) for name in task_names(c))]
    if task is None and len(found) == 1:
        wanted = found
    return wanted[0] if len(wanted) == 1 else (None, None)


def _data_file(folder: Path, task: str | None) -> Path:
    files = sorted((folder / "data").glob("*.jsonl"))
    wanted = [path for path in files if is_called(task or folder.name, path.stem)]
    if task is None and len(files) == 1:
        wanted = files
    if wanted:
        return wanted[0]
    if not files:
        hint = _missing_hint(folder / "data" / "*.jsonl")
        problem = Problem("no data/*.jsonl in the folder", Location(str(folder)), hint, code="no-file")
        raise DatasetNotFoundError([problem])
    names = [path.stem for path in files]
    hint = (did_you_mean(task, names) if task else "") or f"task=NAME chooses one: {', '.join(names)}"
    raise RunEntryError(
        f"dataset={folder.name}: {len(files)} data files, and none is {task or folder.name}\n  hint: {hint}"
    )


def _choose_script(
    folder: Path, method: str | None, version: int | str | None, config: TaskConfig | None, *, root: Path,
    warnings: list[Problem],
) -> Path:  # fmt: skip
    """Return the script to use: the version that is asked for, the config's, or the highest."""
    if version is None and config is not None:
        return root / config.transform
    scripts = _scripts(folder)
    kinds = {kind for kind, _ in scripts}
    if not scripts:
        if (folder / "transform.py").is_file():
            return folder / "transform.py"
        problem = Problem("no transform_gen_v0.py or the like in the folder", Location(str(folder)), code="no-script")
        raise DatasetNotFoundError([problem])
    if method is None:
        if len(kinds) > 1:
            raise RunEntryError(f"dataset={folder.name}: it has GEN and PPL scripts\n  hint: method=gen or method=ppl")
        method = next(iter(kinds))
    if version is not None:
        return _script_of_version(folder, method, version)
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


def _scripts(folder: Path) -> list[tuple[str, str]]:
    matches = (_SCRIPT_NAME.fullmatch(path.name) for path in sorted(folder.glob("transform_*.py")))
    return [(match.group(1), match.group(2)) for match in matches if match]


def _script_of_version(folder: Path, method: str | None, version: int | str) -> Path:
    names = [str(version)] if not str(version).isdigit() else [f"v{int(version)}"]
    names += [name[1:] for name in names if re.fullmatch(r"v\D.*", name)]
    for name in names:
        for kind in [method] if method else METHODS:
            path = folder / f"transform_{kind}_{name}.py"
            if path.is_file():
                return path
    known = sorted(name for kind, name in _scripts(folder) if method in (None, kind))
    raise RunEntryError(
        f"version={version}: {folder} has no script transform_{method or 'gen'}_{names[0]}.py\n"
        f"  hint: {'versions: ' + ', '.join(known) if known else 'it has none of this method'}"
    )


def _method_of(config: TaskConfig | None) -> Method | None:
    if config is None:
        return None
    return "gen" if config.generate.method == "generate" else "ppl"


def _method_in(script: Path) -> Method | None:
    match = _SCRIPT_NAME.fullmatch(script.name)
    return None if match is None else ("gen" if match.group(1) == "gen" else "ppl")


def _choose_method(method: str | None, config: TaskConfig | None, script: Path) -> Method:
    """Return the method: the argument's, the config's, the script name's, else gen. They must not contradict."""
    known = _method_of(config) or _method_in(script)
    chosen: Method = next((m for m in METHODS if m == (method or known)), METHODS[0])
    if config is not None and method is not None and method != _method_of(config):
        raise RunEntryError(f"method={method}: the config's task is for {_method_of(config)}")
    return chosen


def _names(data: Path, config: TaskConfig | None, task: str | None) -> tuple[str, str]:
    """Return the names of dataset and task: from the path `datasets/NAME/data/TASK.jsonl`, else the file's name."""
    data = Path(os.path.abspath(data))  # noqa: PTH100 - resolve() would follow links, to other names
    in_layout = data.parent.name == "data" and data.parent.parent.parent.name == "datasets"
    folder = data.parent.parent.name if in_layout else data.stem
    if config is not None and not FULL_NAME.fullmatch(config.task_name):
        return folder, config.task_name
    if config is not None:
        first, rest = config.task_name.rsplit("_", 1)[0].split("_", 1)
        return (folder if in_layout else first), rest
    return folder, data.stem if task is None else task


def _full_name(given: str | None, dataset: str, task: str, method: str) -> str:
    """Return `<dataset>_<task>_<method>` as upstream's `make_config.py` writes it: `_` in the task becomes `-`."""
    if given is not None:
        if not FULL_NAME.fullmatch(given):
            raise RunEntryError(
                f"dataset_name={given}: expected <dataset>_<task>_<gen|ppl>\n"
                "  hint: scripts split the name at its underscores, some crash on anything else"
            )
        return given
    return f"{dataset.lower()}_{re.sub('[-_]+', '-', task)}_{method}"


def tasks_of(path: Path) -> Mapping[str, TaskConfig]:
    """Return the tasks of a config file by the shortest name that is theirs alone. Raises DatasetError."""
    return _by_name(read_config(path)[0])


def _by_name(configs: Sequence[TaskConfig]) -> Mapping[str, TaskConfig]:
    short = [config.task_name for config in configs]
    return {
        config.task_name if short.count(config.task_name) == 1 else task_names(config)[1]: config for config in configs
    }
