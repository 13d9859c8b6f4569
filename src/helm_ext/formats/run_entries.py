"""The arguments of our run entries: which there are, and what type each has.

HELM hands them over as strings, and as numbers where they look like some (`helm.common.object_spec.parse_object_spec`).
The command's `--arg KEY=VALUE` takes the same arguments.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from helm_ext.errors import RunEntryError, did_you_mean
from helm_ext.formats import catalog

__all__ = ["known_arguments", "parse_arguments", "require_one"]


def parse_arguments(entry: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of one run entry with their types.

    Raises RunEntryError for an unknown name (with the nearest known one) and for a value that is none of its type.
    """
    known = _ARGUMENTS[entry]
    for name in arguments:
        if name not in known:
            hint = did_you_mean(name, known) or f"known: {', '.join(known)}"
            raise RunEntryError(f"{entry}: unknown argument {name!r}\n  hint: {hint}")
    return {name: known[name](name, value) for name, value in arguments.items()}


def known_arguments(entry: str) -> list[str]:
    """Return the names of the arguments of one run entry."""
    return list(_ARGUMENTS[entry])


def require_one(entry: str, arguments: Mapping[str, Any], *names: str) -> str:
    """Return the one of `names` that is given; raises RunEntryError for none and for several."""
    given = [name for name in names if name in arguments]
    if len(given) != 1:
        problem = "none is given" if not given else f"{' and '.join(given)} are given"
        raise RunEntryError(
            f"{entry}: exactly one of {', '.join(names)} is needed, {problem}\n"
            f"  hint: {entry}:{names[0]}=NAME,model=... or {entry}:path=FILE,model=..."
        )
    return given[0]


def _text(_name: str, value: Any) -> str:
    return str(value)


def _as_given(_name: str, value: Any) -> Any:
    """A name that HELM may have turned into a number: `helm_ext.formats.catalog` finds the file that it stands for."""
    return value


def _whole_number(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise RunEntryError(f"{name}={value}: expected a whole number")
    return value


def _flag(name: str, value: Any) -> bool:
    words = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
    word = str(value).lower()
    if word not in words:
        raise RunEntryError(f"{name}={value}: expected true or false")
    return words[word]


def _several(_name: str, value: Any) -> list[str]:
    """HELM splits run entries at commas, so lists are written with `+`."""
    return str(value).split("+")


def _separator(_name: str, value: Any) -> str:
    r"""What HELM cannot carry in a run entry is written as in JSON and URLs: `\n`, `\t`, `%2C` for a comma."""
    return str(value).replace("\\n", "\n").replace("\\t", "\t").replace("%2C", ",")


def _path(_name: str, value: Any) -> str:
    """Return a path as it goes into names: relative where it lies below the working directory.

    HELM splits run entries at commas; a path with a comma is written with `%2C`.
    """
    path = str(value)
    if "%" in path and not os.path.exists(path):  # noqa: PTH110
        path = unquote(path)
    if os.path.isabs(path):  # noqa: PTH117
        relative = os.path.relpath(path)
        return path if relative.startswith(os.pardir) else relative
    return path


def _dataset_path(name: str, value: Any) -> str:
    """Return a path; where there is no such file, but a dataset of that name, say so."""
    path = _path(name, value)
    if os.path.basename(path) == path and not os.path.exists(path):  # noqa: PTH110, PTH119
        dataset = catalog.dataset_name(Path(path)) or path
        file = catalog.list_datasets().get(dataset)
        if file is not None:
            raise RunEntryError(f"{path}: no such file\n  hint: dataset={dataset} reads {file}")
    return path


def _one_of(*choices: str) -> Callable[[str, Any], str]:
    def choose(name: str, value: Any) -> str:
        if value not in choices:
            hint = did_you_mean(str(value), choices) or f"one of {', '.join(choices)}"
            raise RunEntryError(f"{name}={value}: not a choice\n  hint: {hint}")
        return str(value)

    return choose


_MISSING = _one_of("error", "skip")
_SCORING: dict[str, Callable[[str, Any], Any]] = {
    "metrics": _several,
    "main_metric": _text,
    "extract": _text,
    "strip": _flag,
    "lower": _flag,
}
_ARGUMENTS: dict[str, dict[str, Callable[[str, Any], Any]]] = {
    "adapter_spec": {
        "dataset": _as_given,
        "path": _dataset_path,
        "method": _text,
        "seed": _whole_number,
        "missing": _MISSING,
        "output_format": _one_of("string", "list"),
        **_SCORING,
        "separator": _separator,
        "extract_all": _text,
        "extract_positions": _flag,
        "extract_references": _flag,
        "drop_duplicates": _flag,
        "cut_at_stop": _flag,
    },
    "ultraeval": {
        "config": _path,
        "task": _text,
        "data": _path,
        "transform": _path,
        "dataset": _text,
        "method": _one_of("gen", "ppl"),
        "version": _as_given,
        "fewshot": _whole_number,
        "seed": _whole_number,
        "limit": _whole_number,
        "demos": _path,
        "postprocess": _text,
        "metric": _several,
        "root": _path,
        "dataset_name": _text,
        "params": _path,
        "max_tokens": _whole_number,
        "allow_code": _flag,
        "missing": _MISSING,
    },
    "innodata": {
        "dataset": _text,
        "path": _path,
        "version": _as_given,
        "split": _one_of("test", "train"),
        "hub": _path,
        "render": _one_of("chat", "text"),
        "replies": _path,
        "max_tokens": _whole_number,
        "limit": _whole_number,
        "missing": _MISSING,
        **_SCORING,
    },
}
