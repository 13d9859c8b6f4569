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
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from helm_ext.errors import DatasetNotFoundError, Location, Problem, RunEntryError, did_you_mean
from helm_ext.formats.ultraeval.checkout import find_checkout
from helm_ext.formats.ultraeval.config import TaskConfig, read_config
from helm_ext.formats.ultraeval.metric_names import MetricChoice, parse_metric_argument, read_metrics
from helm_ext.formats.ultraeval.options import Options
from helm_ext.formats.ultraeval.sampling import Sampling, read_sampling
from helm_ext.formats.ultraeval.task_files import (
    METHODS,
    Method,
    choose_script,
    find_data_file,
    find_dataset_folder,
    is_called,
    method_in,
    require_file,
    script_of_version,
    script_version,
)  # fmt: skip

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["Task", "resolve", "task_names", "tasks_of"]

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


def resolve(options: Options) -> Task:
    """Return the task that the arguments name.

    Raises RunEntryError for arguments, DatasetError (DatasetNotFoundError among them) for files.
    """
    config, data, transform, version = options.config, options.data, options.transform, options.version
    _require_one_source(config=config, dataset=options.dataset, data=data)
    # HELM makes numbers of values that look like some.
    task, dataset, method = _text(options.task), _text(options.dataset), _text(options.method)
    postprocess, dataset_name = _text(options.postprocess), _text(options.dataset_name)
    if method is not None and method not in METHODS:
        raise RunEntryError(f"method={method}: expected gen or ppl\n  hint: {did_you_mean(method, METHODS)}".rstrip())
    top = _folder(options.root)
    found: TaskConfig | None = None
    files: list[Path] = []
    warnings: list[Problem] = []
    if config is not None:
        found, top, config_warnings = _from_config(Path(str(config)), task, method, top)
        files.append(Path(str(config)))
        warnings += config_warnings
        data_path, script = top / found.path, top / found.transform
    elif dataset is not None:
        folder = find_dataset_folder(dataset, top)
        top = folder.parent.parent
        found, config_path = _folder_config(folder, task, method)
        if config_path is not None:
            files.append(config_path)
        data_path = top / found.path if found else find_data_file(folder, task)
        wanted = method or (_method_of(found) if found else None)
        script = choose_script(folder, wanted, version, found, root=top, warnings=warnings)
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
        script = script_of_version(script.parent, method or _method_of(found) or method_in(script), version)
    chosen = _choose_method(method, found, script)
    if method_in(script) not in (None, chosen):
        message = f"method={chosen}, and by its name the script is for {method_in(script)}"
        warnings.append(Problem(message, Location(str(script)), "", "warning", "other-method"))
    top = top or find_checkout(script) or find_checkout(data_path)
    sampling = Sampling()
    if chosen == "gen":
        sampling, sampling_files, sampling_warnings = read_sampling(
            _parameter_file(found, options.params, top), max_tokens=options.max_tokens, temperature=options.temperature
        )
        files += sampling_files
        warnings += sampling_warnings
    post = postprocess if postprocess is not None else (found.postprocess if found else "")
    metrics = (
        parse_metric_argument(options.metric, chosen, post)
        if options.metric is not None
        else read_metrics(found.metric if found else None, chosen, post, str(config or data_path))
    )
    folder_name, task_name = _names(data_path, found, task)
    if dataset_name is None and found is not None and FULL_NAME.fullmatch(found.task_name):
        dataset_name = found.task_name  # already full: scripts get it as it stands
    return Task(
        name=_full_name(dataset_name, folder_name, task_name, chosen),
        dataset=folder_name,
        method=chosen,
        data=require_file(data_path, "data"),
        script=require_file(script, "transform"),
        root=top,
        description=found.description if found else "",
        fewshot=options.fewshot if options.fewshot is not None else (found.fewshot if found else 0),
        postprocess=post,
        metrics=metrics,
        sampling=sampling,
        demos=require_file(Path(str(options.demos)), "demos") if options.demos is not None else None,
        files=tuple(files),
        warnings=tuple(warnings),
    )


def _text(value: object) -> str | None:
    return None if value is None else str(value)


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
    raise DatasetNotFoundError.at(place, message, hint, code="no-file")


def task_names(config: TaskConfig) -> tuple[str, str]:
    """Return the names by which `task=` finds a task of a config: its own, and the full one with dataset and method."""
    folder, name = _names(Path(config.path), config, None)
    if FULL_NAME.fullmatch(config.task_name):
        return config.task_name, config.task_name
    return config.task_name, _full_name(None, folder, name, _method_of(config) or "gen")


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


def _method_of(config: TaskConfig | None) -> Method | None:
    if config is None:
        return None
    return "gen" if config.generate.method == "generate" else "ppl"


def _choose_method(method: str | None, config: TaskConfig | None, script: Path) -> Method:
    """Return the method: the argument's, the config's, the script name's, else gen. They must not contradict."""
    known = _method_of(config) or method_in(script)
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
