"""Format `inspect:`: its arguments, and which files are its own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from helm_ext.errors import DatasetIntegrityError, DatasetNotFoundError, Location, did_you_mean
from helm_ext.formats.arguments import PATH, TEXT, Argument
from helm_ext.formats.format import Plan
from helm_ext.formats.imported.format import SHARED_ARGUMENTS, ImportedFormat
from helm_ext.formats.seen import LOOKED_AT, Claim, Seen, look

if TYPE_CHECKING:
    from helm_ext.evalset import EvalSet
    from helm_ext.formats.imported.row import Opened

_ZIP = b"PK\x03\x04"
_FIRST_MEMBERS = (b"_journal/", b"header.json", b"samples/")
_SPEC = re.compile(rb'"eval"\s*:\s*(\{)')
_FINISHED = "success"


class _Inspect(ImportedFormat):
    name = "inspect"
    title = "inspect_ai log"
    dataset_title = "inspect_ai task"
    expects = "a log of inspect_ai, .eval or .json, or a folder of logs"
    usage = "inspect:path=FILE,model=..."
    scenario_class = "helm_ext.formats.inspect_logs.scenario.InspectScenario"
    arguments = (
        Argument("path", PATH, "a log, `.eval` or `.json`, or a folder of logs", names_data=True),
        Argument("log", TEXT, "which log of a folder: its file's name", "its only one", names_data=True),
        *SHARED_ARGUMENTS,
    )

    def claims(self, seen: Seen) -> Claim:
        """A ZIP that begins with a member of a log; an object with `eval`, which names task and model, and its plan."""
        if seen.is_folder:
            return Claim.SURE if _find_logs(seen.path) else Claim.NO
        return Claim.SURE if _is_log(seen) else Claim.NO

    def tasks(self, arguments: Mapping[str, Any]) -> list[dict[str, str]]:
        """Return what chooses each log of a folder."""
        path = Path(str(arguments.get("path", "")))
        if "log" in arguments or not path.is_dir():
            return [{}]
        names = _find_logs(path)
        return [{"log": name} for name in names] if len(names) > 1 else [{}]

    def read_model(self, **arguments: Any) -> str:
        """Return the model that the log names; its samples are not read for it."""
        from helm_ext.formats.inspect_logs.opening import read_model

        return read_model(_find_log(str(arguments["path"]), arguments.get("log")))

    def open(self, **arguments: Any) -> Opened:
        """Read a log. Raises DatasetError."""
        from helm_ext.formats.inspect_logs.opening import open_samples
        from helm_ext.formats.inspect_logs.shards import describe_shards

        path = _find_log(str(arguments["path"]), arguments.get("log"))
        notes = describe_shards(Path(path), of_folder=Path(str(arguments["path"])).is_dir())
        return open_samples(path, self.name, list(notes))

    def plan(self, arguments: Mapping[str, Any], evalset: EvalSet) -> Plan:
        """Return what the run is about. Raises DatasetIntegrityError for a run that has not ended well.

        `missing=skip` says that what such a run left is to be scored.
        """
        status = evalset.source.settings.get("status") if evalset.source is not None else None
        if status != _FINISHED and arguments.get("missing") != "skip":
            place = Location(str(arguments.get("path", "")))
            message = f"the run has not ended well, its status is {status}: scores of what it left may mislead"
            raise DatasetIntegrityError.at(place, message, "missing=skip scores what it left", code="status")
        return super().plan(arguments, evalset)


def _is_log(seen: Seen) -> bool:
    if seen.start.startswith(_ZIP):
        size = int.from_bytes(seen.start[26:28], "little")
        return seen.suffix == ".eval" or seen.start[30 : 30 + size].startswith(_FIRST_MEMBERS)
    spec = _SPEC.search(seen.start) if seen.is_like_json() and "eval" in seen.keys else None
    if spec is None:
        return False
    keys = Seen(seen.path, seen.start[spec.start(1) :]).keys
    if {"task", "model"} <= keys and seen.keys & {"plan", "status"}:
        return True
    is_truncated = len(seen.start) >= LOOKED_AT  # a log names all its samples before the model
    return is_truncated and {"task", "dataset"} <= keys


def _find_logs(folder: Path) -> list[str]:
    """Return the names of the logs in a folder and those below it, hidden ones aside, with `/` between folders.

    Shards that their merged log covers are not among them.
    """
    found = []
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        if path.suffix.lower() in (".eval", ".json") and not any(part.startswith(".") for part in name.parts):
            seen = look(path)
            if seen.exists and not seen.is_folder and (path.suffix.lower() == ".eval" or _is_log(seen)):
                found.append(name.as_posix())
    if not any(".shards/" in name for name in found):
        return found
    from helm_ext.formats.inspect_logs.shards import drop_covered

    return drop_covered(folder, found)


def _find_log(path: str, log: str | None) -> str:
    """Return the path of the log that is meant. Raises DatasetNotFoundError where a folder does not tell."""
    folder = Path(path)
    if not folder.is_dir():
        return path
    if log is not None and ".." not in Path(log).parts and (folder / log).is_file():
        return str(folder / log)  # a folder may hold thousands
    names = _find_logs(folder)
    if log is None and len(names) == 1:
        return str(folder / names[0])
    shown = ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")
    hint = (did_you_mean(log, names) if log else "") or (f"log= one of {shown}" if names else "")
    message = f"no log of the name {log}" if log else f"{len(names)} logs" if names else "no logs of inspect_ai"
    raise DatasetNotFoundError.at(path, message, hint, code="not-found")


FORMAT = _Inspect()
"""The format, as the table in `formats.registry` names it."""
