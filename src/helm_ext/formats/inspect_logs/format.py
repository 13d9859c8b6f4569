"""Format `inspect:`: its arguments, which files are its own, and which log of a folder is meant."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from helm_ext.errors import DatasetError, DatasetIntegrityError, DatasetNotFoundError, Location, count
from helm_ext.formats.format import LOOKED_AT, PATH, TEXT, ZIP, Argument, Claim, Plan, Seen, look
from helm_ext.formats.imported.format import SHARED_ARGUMENTS, ImportedFormat, choose_part

if TYPE_CHECKING:
    from helm_ext.evalset import EvalSet
    from helm_ext.formats.imported.row import Opened

_FIRST_MEMBERS = (b"_journal/", b"header.json", b"samples/")
_SPEC = re.compile(rb'"eval"\s*:\s*(\{)')
_RECOVERED = "-recovered"
"""What the name of a merged log ends with that was put together from what a killed run left."""
_FINISHED = "success"


class _Inspect(ImportedFormat):
    name = "inspect"
    title = "inspect_ai log"
    dataset_title = "inspect_ai task"
    expects = "a log of inspect_ai, .eval or .json, or a folder of logs"
    kinds = frozenset({"folder", "zip", "json"})
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
        from helm_ext.formats.inspect_logs.log import open_log

        with open_log(_find_log(str(arguments["path"]), arguments.get("log"))) as log:
            return log.header.model

    def open(self, **arguments: Any) -> Opened:
        """Read a log. Raises DatasetError."""
        from helm_ext.formats.inspect_logs.rows import open_samples

        path = Path(_find_log(str(arguments["path"]), arguments.get("log")))
        covered = _list_covered(path) if Path(str(arguments["path"])).is_dir() else []
        shards = f"{count(len(covered), 'shard')} in {_shards_of(path).name}"
        said = f"{shards} not read: this log has the same samples, merged"
        return open_samples(str(path), self.name, [said] if covered else [])

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
    if seen.start.startswith(ZIP):
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

    Shards that the log covers which they were merged into are not among them.
    """
    found = []
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        if path.suffix.lower() not in (".eval", ".json") or any(part.startswith(".") for part in name.parts):
            continue
        seen = look(path)
        if seen.exists and not seen.is_folder and (path.suffix.lower() == ".eval" or _is_log(seen)):
            found.append(path)
    covered = {shard for path in found for shard in _list_covered(path)}
    return [path.relative_to(folder).as_posix() for path in found if path not in covered]


def _list_covered(log: Path) -> list[Path]:
    """Return the logs of workers, `NAME.shards/K/FILE.eval`, that are in the log beside that they were merged into.

    inspect_ai lists such a shard no longer once its merged log ended well (log/_shard_listing.py, _util/log_layout.py);
    it compares the times of files, which copies do not keep. Here the merged log must have the shard's samples.
    """
    shards = sorted(_shards_of(log).glob("*/*.eval"))
    whole = _read_contents(log) if shards else None
    if whole is None or whole.status != _FINISHED:
        return []
    parts = [(shard, part) for shard in shards if (part := _read_contents(shard)) is not None]
    return [shard for shard, part in parts if part.run == whole.run and part.samples <= whole.samples]


def _shards_of(log: Path) -> Path:
    return log.with_name(log.stem.removesuffix(_RECOVERED) + ".shards")


class _Contents(NamedTuple):
    """What tells which samples of which run a log holds."""

    status: str
    run: tuple[str, str]
    """Task and model."""
    samples: frozenset[str]
    """Names of members."""


def _read_contents(path: Path) -> _Contents | None:
    """Return what a log holds; None where it cannot be read, which is said elsewhere."""
    from helm_ext.formats.inspect_logs.log import EvalLog

    with suppress(DatasetError), EvalLog(path) as log:
        names = frozenset(name for name in log.members if name.startswith("samples/"))
        return _Contents(log.header.status, (log.header.task, log.header.model), names)
    return None


def _find_log(path: str, log: str | None) -> str:
    """Return the path of the log that is meant. Raises DatasetError where a folder does not tell."""
    folder = Path(path)
    if not folder.is_dir():
        return path
    if log is not None and ".." not in Path(log).parts and (folder / log).is_file():
        return str(folder / log)  # a folder may hold thousands
    names = _find_logs(folder)
    if not names:
        raise DatasetNotFoundError.at(path, "no logs of inspect_ai", code="not-found")
    return str(folder / choose_part(path, names, log, "log"))


FORMAT = _Inspect()
"""The format, as the table in `formats.registry` names it."""
