"""Which task is run: from a run entry's arguments, or upstream's config, to files that exist and rules that are known.

Three ways to name a task (docs/ultraeval.md):

    config=FILE[,task=NAME]                       upstream's task config
    dataset=NAME[,method=gen|ppl][,version=0]     a folder `datasets/NAME/` in upstream's layout
    data=FILE,transform=SCRIPT                    two files

In each, further arguments win over the config. Paths in a config are relative to the checkout's root.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from helm_ext.errors import DatasetNotFoundError, Problem, RunEntryError, did_you_mean
from helm_ext.formats.ultraeval.checkout import find_checkout
from helm_ext.formats.ultraeval.config import Method, Options, Sampling, TaskConfig, read_config, read_sampling
from helm_ext.formats.ultraeval.scoring import MetricChoice, parse_metric_argument, read_metrics

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
        return script_name(self.script)[1]


@dataclass
class _Found:
    """The files that the arguments name, and the config that describes them."""

    data: Path
    script: Path
    root: Path | None
    config: TaskConfig | None = None
    config_path: Path | None = None
    warnings: list[Problem] = field(default_factory=list)


def resolve(options: Options) -> Task:
    """Return the task that the arguments name.

    Raises RunEntryError for arguments, DatasetError (DatasetNotFoundError among them) for files.
    """
    found = _find(options)
    config, script = found.config, found.script
    if options.transform is not None and options.data is None:
        script = options.transform
    elif options.version is not None and options.dataset is None:
        method = options.method or (config.kind if config else script_name(script)[0])
        script = script_of_version(script.parent, method, options.version)
    if config is not None and options.method not in (None, config.kind):
        raise RunEntryError(f"method={options.method}: the config's task is for {config.kind}")
    chosen: Method = options.method or (config.kind if config else script_name(script)[0]) or "gen"
    if (named := script_name(script)[0]) not in (None, chosen):
        message = f"method={chosen}, and by its name the script is for {named}"
        found.warnings.append(Problem.warning(script, message, code="other-method"))
    root = found.root or find_checkout(script) or find_checkout(found.data)
    files = [found.config_path] if found.config_path else []
    sampling = Sampling()
    if chosen == "gen":
        path = options.params
        if config is not None and config.generate.params:  # as upstream, whose `--params` is for tasks that name none
            path = (root or Path()) / config.generate.params
        elif path is not None and not path.is_file():
            path = (root or Path()) / path
        sampling, read, warnings = read_sampling(path, max_tokens=options.max_tokens, temperature=options.temperature)
        files += read
        found.warnings += warnings
    post = options.postprocess if options.postprocess is not None else (config.postprocess if config else "")
    metrics = (
        parse_metric_argument(options.metric, chosen, post)
        if options.metric is not None
        else read_metrics(config.metric if config else None, chosen, post, str(options.config or found.data))
    )
    dataset, task = _names(found.data, config, options.task)
    full = options.dataset_name
    if full is None and config is not None and FULL_NAME.fullmatch(config.task_name):
        full = config.task_name  # scripts get it as it stands
    return Task(
        name=_full_name(full, dataset, task, chosen),
        dataset=dataset,
        method=chosen,
        data=require_file(found.data, "data"),
        script=require_file(script, "transform"),
        root=root,
        description=config.description if config else "",
        fewshot=options.fewshot if options.fewshot is not None else (config.fewshot if config else 0),
        postprocess=post,
        metrics=metrics,
        sampling=sampling,
        demos=require_file(options.demos, "demos") if options.demos is not None else None,
        files=tuple(files),
        warnings=tuple(found.warnings),
    )


def _find(options: Options) -> _Found:
    """Return the files of a task, whichever way it is named."""
    root = options.root.expanduser() if options.root is not None else None
    if root is not None and not root.is_dir():
        raise RunEntryError(
            f"root={options.root}: no such folder\n  hint: the UltraEval checkout, the parent of datasets/"
        )
    if options.config is not None:
        config, root, warnings = _from_config(options.config, options.task, options.method, root)
        return _Found(root / config.path, root / config.transform, root, config, options.config, warnings)
    if options.dataset is not None:
        folder = find_dataset_folder(options.dataset, root)
        root = folder.parent.parent
        of_folder, path = _folder_config(folder, options.task, options.method)
        data = root / of_folder.path if of_folder else find_data_file(folder, options.task)
        method = options.method or (of_folder.kind if of_folder else None)
        warnings = []
        if options.version is None and of_folder is not None:
            script = root / of_folder.transform
        else:
            script = choose_script(folder, method, options.version, warnings)
        return _Found(data, script, root, of_folder, path, warnings)
    assert options.data is not None
    if options.transform is None:
        raise RunEntryError("data=...: transform=SCRIPT is needed too\n  hint: ultraeval:data=FILE,transform=SCRIPT")
    return _Found(options.data, options.transform, root)


def _from_config(
    path: Path, task: str | None, method: Method | None, root: Path | None
) -> tuple[TaskConfig, Path, list[Problem]]:
    configs, warnings = read_config(path)
    chosen = [c for c in configs if task is None or task in task_names(c)]
    if method is not None and len(chosen) > 1:
        chosen = [config for config in chosen if config.kind == method]
    if len(chosen) != 1:
        known = list(by_name(configs))
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
    message = f"data: no such file in any folder above {path}"
    hint = "paths in a config are relative to the checkout's root, the parent of datasets/; root=FOLDER names it"
    raise DatasetNotFoundError.at(config.path, message, hint, code="no-file")


def _folder_config(folder: Path, task: str | None, method: Method | None) -> tuple[TaskConfig | None, Path | None]:
    """Return the config of a dataset's folder that fits, if there is exactly one."""
    paths = sorted((folder / "config").glob("*.json"))
    found = [(config, path) for path in paths for config in read_config(path)[0] if method in (None, config.kind)]
    asked = (task or folder.name).lower()
    wanted = [each for each in found if asked in map(str.lower, task_names(each[0]))]
    if task is None and len(found) == 1:
        wanted = found
    return wanted[0] if len(wanted) == 1 else (None, None)


def task_names(config: TaskConfig) -> tuple[str, str]:
    """Return the names by which `task=` finds a task of a config: its own, and the full one with dataset and method."""
    if FULL_NAME.fullmatch(config.task_name):
        return config.task_name, config.task_name
    return config.task_name, _full_name(None, *_names(Path(config.path), config, None), config.kind)


def _names(data: Path, config: TaskConfig | None, task: str | None) -> tuple[str, str]:
    """Return the names of dataset and task: from the path `datasets/NAME/data/TASK.jsonl`, else the file's name."""
    data = Path(os.path.abspath(data))  # noqa: PTH100 - resolve() would follow links, to other names
    in_layout = data.parent.name == "data" and data.parent.parent.parent.name == "datasets"
    folder = data.parent.parent.name if in_layout else data.stem
    if config is None:
        return folder, data.stem if task is None else task
    if not FULL_NAME.fullmatch(config.task_name):
        return folder, config.task_name
    first, rest = config.task_name.rsplit("_", 1)[0].split("_", 1)
    return (folder if in_layout else first), rest


def _full_name(given: str | None, dataset: str, task: str, method: str) -> str:
    """Return `<dataset>_<task>_<method>` as upstream's `make_config.py` writes it: `_` in the task becomes `-`."""
    if given is None:
        return f"{dataset.lower()}_{re.sub('[-_]+', '-', task)}_{method}"
    if not FULL_NAME.fullmatch(given):
        raise RunEntryError(
            f"dataset_name={given}: expected <dataset>_<task>_<gen|ppl>\n"
            "  hint: scripts split the name at its underscores, some crash on anything else"
        )
    return given


def by_name(configs: Sequence[TaskConfig]) -> Mapping[str, TaskConfig]:
    """Return the tasks of a config file by the shortest name that is theirs alone."""
    short = [config.task_name for config in configs]
    return {
        config.task_name if short.count(config.task_name) == 1 else task_names(config)[1]: config for config in configs
    }


_SCRIPT_NAME = re.compile(r"transform_(gen|ppl)_(.+)\.py")


def script_name(script: Path) -> tuple[Method | None, str]:
    """Return the method and the version in a script's name.

    >>> script_name(Path("transform_gen_v0.py")), script_name(Path("transform.py"))
    (('gen', 'v0'), (None, ''))
    """
    match = _SCRIPT_NAME.fullmatch(script.name)
    return (None, "") if match is None else ("gen" if match[1] == "gen" else "ppl", match[2])


def require_file(path: Path, what: str) -> Path:
    """Return the path of a file that is there. Raises DatasetNotFoundError."""
    if not path.is_file():
        raise DatasetNotFoundError.at(path, f"{what}: no such file", _missing_hint(path), code="no-file")
    return path


def _missing_hint(path: Path) -> str:
    """Return what helps against a missing file: another name, or upstream's way to make it (no checkout has data)."""
    near = [other.name for other in path.parent.iterdir()] if path.parent.is_dir() else []
    maker = path.parent.parent / "make_dataset.py"
    if (hint := did_you_mean(path.name, near)) or path.parent.name != "data" or not maker.is_file():
        return hint
    return (
        f"{maker} writes it from UltraEval's raw data: unpack RawData.zip (UltraEval's README says where it is) in "
        "the checkout, then run python data_process.py there"
    )


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
    wanted = [path for path in files if path.stem == (task or folder.name)]
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


def choose_script(folder: Path, method: str | None, version: str | None, warnings: list[Problem]) -> Path:
    """Return the script to use: the version that is asked for, or the highest."""
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
        warnings.append(Problem.warning(folder, message, hint, code="version-chosen"))
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
