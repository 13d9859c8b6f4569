"""The table of formats, and which of them a file is of.

Formats are ours, and those that other distributions bring by the entry point group `helm_ext.formats`.

An entry point's name is the format's, its value is where the `Format` object stands:

    [project.entry-points."helm_ext.formats"]
    csv_qa = "my_package.format:FORMAT"

A format of somebody else's that cannot be used is one warning in the log. It never keeps other runs from starting, and
a run entry that names it gets the reason. A name belongs to one distribution: ours first, then by the alphabet.

Which format a file is of, the formats are asked. Files that are known and not read: what they are, and the one step
that makes of them a file that is read.
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from helm.common.hierarchical_logger import hwarn

from helm_ext.errors import DatasetError, DatasetNotFoundError, RunEntryError, did_you_mean
from helm_ext.formats.format import Claim, Format, Seen, look

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "helm_ext.formats"

_OURS = {
    "adapter_spec": "helm_ext.formats.request_states.format:FORMAT",
    "ultraeval": "helm_ext.formats.ultraeval.format:FORMAT",
    "innodata": "helm_ext.formats.innodata.format:FORMAT",
    "table": "helm_ext.formats.table.format:FORMAT",
    "inspect": "helm_ext.formats.inspect_logs.format:FORMAT",
    "every_eval_ever": "helm_ext.formats.every_eval_ever.format:FORMAT",
    "openai_batch": "helm_ext.formats.openai_batch.format:FORMAT",
    "lm_eval": "helm_ext.formats.lm_eval.format:FORMAT",
}
"""Name of the run entry to where the object stands. A format of ours is one line here."""


def format_names() -> list[str]:
    """Return the names of all formats in the table, also of those that cannot be loaded."""
    return list(_entries())


def is_ours(name: str) -> bool:
    """Whether the format comes with helm-ext."""
    return name in _OURS


def get_format(name: str) -> Format:
    """Return the format of this name. Raises RunEntryError if there is none, or if it cannot be loaded."""
    entries = _entries()
    if name not in entries:
        hint = did_you_mean(name, entries) or f"known: {', '.join(entries)}"
        raise RunEntryError(f"no format named {name!r}\n  hint: {hint}")
    if isinstance(loaded := _load(entries[name]), str):
        raise RunEntryError(loaded)
    return loaded


def all_formats() -> list[Format]:
    """Return every format that can be loaded; warn, once, of each that cannot."""
    formats = []
    for entry in _entries().values():
        loaded = _load(entry)
        if isinstance(loaded, str):
            _warn(loaded)
        else:
            formats.append(loaded)
    return formats


@cache
def _entries() -> dict[str, EntryPoint]:
    from importlib.metadata import EntryPoint, entry_points

    entries = {name: EntryPoint(name, target, GROUP) for name, target in _OURS.items()}
    for found in sorted(entry_points(group=GROUP), key=lambda entry: (entry.name, _name_owner(entry), entry.value)):
        known = entries.setdefault(found.name, found)
        if (known.value, _name_owner(known)) != (found.value, _name_owner(found)):
            _warn(
                f"the format {found.name!r} of the distribution {_name_owner(found)!r} is refused: "
                f"{_name_owner(known)!r} has a format of that name already"
            )
    return entries


def _name_owner(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist is not None else "helm-ext"


@cache
def _load(entry: EntryPoint) -> Format | str:
    """Return the format, or why there is none."""
    said = f"the format {entry.name!r} of the distribution {_name_owner(entry)!r} cannot be loaded: {entry.value}"
    try:
        found = entry.load()
    except Exception as error:  # noqa: BLE001 - somebody else's module may raise anything
        return f"{said}: {type(error).__name__}: {error}"
    if not isinstance(found, Format):
        return f"{said} is no helm_ext.formats.Format"
    missing = [name for name in Format.__annotations__ if not hasattr(found, name)]
    if missing:
        return f"{said} says nothing of {', '.join(missing)}"
    return found if found.name == entry.name else f"{said} calls itself {found.name!r}"


@cache
def _warn(message: str) -> None:
    hwarn(message)


# Files


def detect(path: str | Path) -> Format:
    """Return the format that says that a file is its own. What is wrong with the file is for the format to report.

    Raises DatasetError for a file that two formats claim, with both names, and for one that none does: with the way out
    where it is a known kind of file.
    """
    seen, formats = look(path), all_formats()
    claims = {format_: _ask(format_, seen) for format_ in formats}
    best = max(claims.values(), default=Claim.NO)
    found = [format_ for format_, claim in claims.items() if claim == best]
    if best is not Claim.SURE and (known := find_way_out(seen)) is not None:
        raise DatasetError.at(path, *known, code="foreign-file")
    if best is Claim.NO:
        if not seen.exists:
            from helm_ext.files.content import near_files

            raise DatasetNotFoundError.at(path, "no such file", near_files(Path(path)), code="not-found")
        expected = "".join(f"\n    {format_.name}: {format_.expects}" for format_ in formats)
        hint = f"--as FORMAT says which it is; each expects{expected}"
        raise DatasetError.at(path, "no format that is known reads this file", hint, code="unknown-format")
    if len(found) > 1:
        names = " and ".join(format_.name for format_ in found)
        hint = "--as FORMAT says which it is"
        raise DatasetError.at(path, f"could be of {names}", hint, code="several-formats")
    return found[0]


def _ask(format_: Format, seen: Seen) -> Claim:
    return format_.claims(seen) if not format_.kinds or format_.kinds & seen.kinds else Claim.NO


def files_in(path: str | Path) -> list[Path]:
    """Return the dataset files of a folder that is no dataset itself; else the path alone.

    A file that is read with another one (results with their requests) is not read by itself once more.
    """
    path, formats = Path(path), all_formats()
    if not path.is_dir() or any(_ask(format_, look(path)) for format_ in formats):
        return [path]
    files = [file for file in sorted(path.iterdir()) if file.is_file()]
    parts: set[Path] = set()
    claimed: set[Path] = set()
    for format_ in formats:
        its = [file for file in files if _ask(format_, look(file))]
        claimed.update(its)
        parts.update(set(its).difference(format_.datasets_among(its)) if len(its) > 1 else ())
    return [file for file in files if file in claimed and file not in parts] or [path]


def find_way_out(seen: Seen) -> tuple[str, str] | None:
    """Return what a file is that no format reads, and what to do with it; None for others. Raises nothing."""
    if seen.is_folder or not seen.exists:
        return None
    return next(((message, hint) for is_one, message, hint in _KNOWN if is_one(seen)), None)


_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
"""How old Excel files, and other documents of that time, begin."""


def _is_workbook(seen: Seen) -> bool:
    if seen.start.startswith(_OLE):
        return seen.suffix in (".xls", ".xlt", ".xlsx")
    if not seen.is_zip:
        return False
    try:
        with zipfile.ZipFile(seen.path) as file:
            names = {*file.namelist()}
    except (OSError, zipfile.BadZipFile):
        return False
    return bool(names & {"xl/workbook.xml", "xl/workbook.bin"}) or (seen.suffix == ".ods" and "content.xml" in names)


def _is_events(seen: Seen) -> bool:
    """Events of OpenAI evals: the first line is `{"spec": ...}`, each further one an event (evals/record.py)."""
    return (seen.keys == {"spec"} and b'"completion_fns"' in seen.start) or seen.keys >= {
        "run_id", "event_id", "sample_id", "type", "data",
    }  # fmt: skip


def _is_predictions_of_evalscope(seen: Seen) -> bool:
    return seen.keys >= {"index", "model_output"} and bool(seen.keys & {"model", "messages"})


def _is_results_of_opencompass(seen: Seen) -> bool:
    """Metrics, and details as its evaluators write them (openicl_eval.py)."""
    pairs = (("pred", "answer"), ("predictions", "references"))
    return "details" in seen.keys and any(all(f'"{key}"'.encode() in seen.start for key in pair) for pair in pairs)


_KNOWN: Sequence[tuple[Callable[[Seen], bool], str, str]] = (
    (
        _is_workbook, "an Excel workbook (or one of LibreOffice), which is not read",
        ("save the sheet as CSV UTF-8 there; or in Python, with pandas and openpyxl: "
        'pandas.read_excel("FILE", dtype=str, keep_default_na=False).to_csv("FILE.csv", index=False)'),
    ),
    (
        _is_events, "a log of OpenAI evals: events, of which several make a row",
        ("make rows of it: jq -cs 'map(select(.sample_id)) | group_by(.sample_id)[] | "
        'map(select(.type == "sampling" or .type == "match").data) | add | '
        "select(.expected != null and .sampled != null) | {prompt, sampled, expected, correct}' FILE > ROWS.jsonl; "
        "then --arg output=sampled --arg gold=expected --arg scores=correct"),
    ),
    (
        _is_predictions_of_evalscope, "predictions of evalscope, which hold no right answers",
        "score its file of the same name in reviews/ in place of that in predictions/",
    ),
    (
        _is_results_of_opencompass, "results of OpenCompass, of which most do not say what was asked",
        "score its file of the same name in predictions/ in place of that in results/",
    ),
)  # fmt: skip
"""What knows a file that is not read, what it is, and the one step that makes of it a file that is read."""
