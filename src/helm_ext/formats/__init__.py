"""The three formats. Each is a front end: it reads its files and lowers them to an `EvalSet`.

Every format module has `load(...) -> EvalSet` (raises DatasetError with all problems), `check(path, ...)` (returns
problems and counts, raises nothing for bad data) and `json_schema()`.
"""

from __future__ import annotations

import importlib
import zipfile
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

__all__ = ["FORMATS", "Format", "detect"]


@dataclass(frozen=True)
class Format:
    """One format: where its code is, and how a run entry names a file of it."""

    name: str
    """Also the name of its run entry."""
    title: str
    module_name: str

    @property
    def module(self) -> ModuleType:
        """The format's module, imported when first asked for."""
        return importlib.import_module(self.module_name)

    def arguments(self, path: str | Path) -> dict[str, str]:
        """Return the arguments of `load`, `check` and the run entry that name this file.

        UltraEval has three: a config, a dataset's folder, or a script (which needs `data` beside it).
        """
        if self.name != "ultraeval":
            return {"path": str(path)}
        if Path(path).is_dir():
            return {"dataset": str(path)}
        return {{".py": "transform", ".jsonl": "data"}.get(Path(path).suffix, "config"): str(path)}


FORMATS = {
    format_.name: format_
    for format_ in (
        Format("adapter_spec", "adapter_spec + request_states", "helm_ext.formats.request_states"),
        Format("ultraeval", "UltraEval task set", "helm_ext.formats.ultraeval"),
        Format("innodata", "Innodata Dataset Hub bundle", "helm_ext.formats.innodata"),
    )
}

_ULTRAEVAL_KEYS = (b'"transform"', b'"transforms"', b'"target_scores"', b'"raw_outputs"')
_LOOKED_AT = 65_536
"""Bytes at the start of a file that decide its format."""


def detect(path: str | Path) -> Format:
    """Return the format that a file most likely is of. Content errors are the format's own business to report.

    A ZIP is a bundle; a Python script, a folder, a config that names a `transform`, rows with `target_scores`, and the
    log of an UltraEval run are UltraEval; all else is `adapter_spec`.
    """
    path = Path(path)
    if path.suffix.lower() == ".zip" or (path.is_file() and zipfile.is_zipfile(path)):
        return FORMATS["innodata"]
    if path.suffix == ".py" or path.is_dir():
        return FORMATS["ultraeval"]
    if path.is_file():
        with path.open("rb") as file:
            start = file.read(_LOOKED_AT)
        if b'"adapter_spec"' not in start and any(key in start for key in _ULTRAEVAL_KEYS):
            return FORMATS["ultraeval"]
    return FORMATS["adapter_spec"]
