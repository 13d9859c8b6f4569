"""Which format a file is of, and which files of a folder are datasets: the formats are asked."""

from __future__ import annotations

from pathlib import Path

from helm_ext.errors import DatasetError, DatasetNotFoundError
from helm_ext.formats.foreign import find_way_out
from helm_ext.formats.format import Format
from helm_ext.formats.registry import all_formats
from helm_ext.formats.seen import Claim, look


def detect(path: str | Path) -> Format:
    """Return the format that says that a file is its own. What is wrong with the file is for the format to report.

    Raises DatasetError for a file that two formats claim, with both names, and for one that none does: with the way out
    where it is a known kind of file.
    """
    seen, formats = look(path), all_formats()
    claims = {format_: format_.claims(seen) for format_ in formats}
    best = max(claims.values(), default=Claim.NO)
    found = [format_ for format_, claim in claims.items() if claim == best]
    if best is not Claim.SURE and (known := find_way_out(seen)) is not None:
        raise DatasetError.at(path, known.message, known.hint, code="foreign-file")
    if best is Claim.NO:
        if not seen.exists:
            from helm_ext.files.opening import near_files

            raise DatasetNotFoundError.at(path, "no such file", near_files(Path(path)), code="not-found")
        expected = "".join(f"\n    {format_.name}: {format_.expects}" for format_ in formats)
        hint = f"--as FORMAT says which it is; each expects{expected}"
        raise DatasetError.at(path, "no format that is known reads this file", hint, code="unknown-format")
    if len(found) > 1:
        names = " and ".join(format_.name for format_ in found)
        hint = "--as FORMAT says which it is"
        raise DatasetError.at(path, f"could be of {names}", hint, code="several-formats")
    return found[0]


def files_in(path: str | Path) -> list[Path]:
    """Return the dataset files of a folder that is no dataset itself; else the path alone.

    A file that is read with another one (results with their requests) is not read by itself once more.
    """
    path, formats = Path(path), all_formats()
    if not path.is_dir() or any(format_.claims(look(path)) for format_ in formats):
        return [path]
    files = [file for file in sorted(path.iterdir()) if file.is_file()]
    parts: set[Path] = set()
    claimed: set[Path] = set()
    for format_ in formats:
        its = [file for file in files if format_.claims(look(file))]
        claimed.update(its)
        parts.update(set(its).difference(format_.datasets_among(its)) if len(its) > 1 else ())
    return [file for file in files if file in claimed and file not in parts] or [path]
