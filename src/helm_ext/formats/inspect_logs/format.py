"""Format `inspect:`: its arguments, and which files are its own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from helm_ext.errors import DatasetIntegrityError, Location
from helm_ext.formats.arguments import PATH, TEXT, Argument
from helm_ext.formats.format import Plan
from helm_ext.formats.imported.format import SHARED_ARGUMENTS, ImportedFormat
from helm_ext.formats.inspect_logs.folder import describe_shards, find_log, find_logs, is_log
from helm_ext.formats.seen import Claim, Seen

if TYPE_CHECKING:
    from helm_ext.evalset import EvalSet
    from helm_ext.formats.imported.row import Opened

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
            return Claim.SURE if find_logs(seen.path) else Claim.NO
        return Claim.SURE if is_log(seen) else Claim.NO

    def tasks(self, arguments: Mapping[str, Any]) -> list[dict[str, str]]:
        """Return what chooses each log of a folder."""
        path = Path(str(arguments.get("path", "")))
        if "log" in arguments or not path.is_dir():
            return [{}]
        names = find_logs(path)
        return [{"log": name} for name in names] if len(names) > 1 else [{}]

    def read_model(self, **arguments: Any) -> str:
        """Return the model that the log names; its samples are not read for it."""
        from helm_ext.formats.inspect_logs.files import open_log

        with open_log(find_log(str(arguments["path"]), arguments.get("log"))) as log:
            return log.header.model

    def open(self, **arguments: Any) -> Opened:
        """Read a log. Raises DatasetError."""
        from helm_ext.formats.inspect_logs.rows import open_samples

        path = find_log(str(arguments["path"]), arguments.get("log"))
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


FORMAT = _Inspect()
"""The format, as the table in `formats.registry` names it."""
