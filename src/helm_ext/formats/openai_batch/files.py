"""Which files belong together: requests, results, and results that only say why there is no answer."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from helm_ext.errors import DatasetError, DatasetIntegrityError
from helm_ext.files import LineSource, iter_json_lines
from helm_ext.formats.format import look
from helm_ext.formats.openai_batch import REQUEST_KEYS, RESULT_KEYS

_ENDINGS = (".jsonl", ".jsonl.gz", ".jsonl.zst", ".ndjson")


def find_input(path: Path, given: str | None) -> Path:
    """Return the file of requests: `path` itself, or where that holds results, `given` or the one beside it.

    Raises DatasetError where there is no such file, or several.
    """
    if not _is_results(path):
        if given is not None and Path(given) != path:
            message = f"holds requests already, and input={given} names others"
            raise DatasetIntegrityError.at(path, message, code="input")
        return path
    if given is not None:
        return Path(given)
    first = _first_id(path)
    found = [each for each in _beside(path) if look(each).keys >= REQUEST_KEYS and first in _ids(each)]
    if len(found) == 1:
        return found[0]
    message = "these are results, and no file beside it holds the requests"
    if found:
        names = ", ".join(each.name for each in found)
        message = f"these are results, {len(found)} files beside it hold them: {names}"
    raise DatasetIntegrityError.at(path, message, "name the file of requests: input=FILE", code="input")


def find_results(path: Path, requests: Path, asked: Container[str]) -> list[Path]:
    """Return the results beside the requests that answer one of those `asked`, an id.

    Where `path` holds results itself: files of failures alone. Raises DatasetError where no file holds results.
    """
    others = [each for each in _beside(requests) if each != path and _answers(each, asked)]
    if path != requests:
        return [each for each in others if _holds_failures_alone(each)]
    if not others:
        message = "these are requests, and no file beside it holds their results"
        raise DatasetIntegrityError.at(
            path, message, "name the files of results: output=FILE, errors=FILE", code="output"
        )
    return others


def without_answers(files: Sequence[Path]) -> list[Path]:
    """Return the files but for results that `find_results` finds for one of the others."""
    asked = [{*_ids(each)} for each in files if not _is_results(each)]
    return [each for each in files if not any(_answers(each, ids) for ids in asked)]


def _beside(path: Path) -> Iterator[Path]:
    for each in sorted(path.parent.iterdir()):
        if each.name.endswith(_ENDINGS) and each.is_file() and each != path:
            yield each


def _is_results(path: Path) -> bool:
    keys = look(path).keys
    return keys >= RESULT_KEYS and not keys >= REQUEST_KEYS


def _answers(path: Path, asked: Container[str]) -> bool:
    """Whether a file holds results, the first of them that of a request with one of these ids."""
    return _is_results(path) and _first_id(path) in asked


def _first_id(path: Path) -> str:
    return next(_ids(path), "")


def _ids(path: Path) -> Iterator[str]:
    return (str(value.get("custom_id")) for value in _values(path))


def _holds_failures_alone(path: Path) -> bool:
    """Whether no line has a reply: what OpenAI calls the error file."""
    for value in _values(path):
        response = value.get("response")
        if isinstance(response, dict) and response.get("status_code") in (200, None):
            return False
    return True


def _values(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the objects of a file; what cannot be read is said when the file is used."""
    with suppress(DatasetError), LineSource(path) as lines:
        for _, value in iter_json_lines(lines, str(path), []):
            if isinstance(value, dict):
                yield value
