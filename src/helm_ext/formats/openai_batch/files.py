"""Which files belong together: requests, results, and results that only say why there is no answer."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from helm_ext.errors import DatasetError, DatasetIntegrityError
from helm_ext.files import LineSource, iter_json_lines
from helm_ext.formats.openai_batch import REQUEST_KEYS, RESULT_KEYS
from helm_ext.formats.seen import look

_ENDINGS = (".jsonl", ".jsonl.gz", ".jsonl.zst", ".ndjson")


@dataclass(frozen=True)
class Batch:
    """Requests and the files of their results."""

    input: Path
    results: tuple[Path, ...]
    found: tuple[Path, ...] = ()
    """Those of `results` that no argument names."""


def find_input(path: Path, given: str | None) -> Path:
    """Return the file of requests: `path` itself, or where that holds results, `given` or the one beside it.

    Raises DatasetError where there is no such file, or several.
    """
    if not _is_results(path):
        if given is not None and Path(given) != path:
            raise DatasetIntegrityError.at(
                path, f"holds requests already, and input={given} names others", code="input"
            )
        return path
    if given is not None:
        return Path(given)
    first = _first_id(path)
    found = [each for each in _beside(path) if look(each).keys >= REQUEST_KEYS and first in _ids(each)]
    if len(found) == 1:
        return found[0]
    names = f"{len(found)} files beside it hold them: {', '.join(each.name for each in found)}" if found else (
        "and no file beside it holds the requests"
    )  # fmt: skip
    raise DatasetIntegrityError.at(
        path, f"these are results, {names}", "name the file of requests: input=FILE", code="input"
    )


def find_results(path: Path, requests: Path, named: Sequence[str], asked: Container[str]) -> Batch:
    """Return the files of results. `named` are those of the arguments, `asked` the ids of the requests.

    Without them: the results beside the requests that answer one of them. Where `path` holds results itself: it, and
    files of failures alone. Raises DatasetError where no file holds results.
    """
    if named:
        wanted = [*([path] if path != requests else []), *map(Path, named)]
        return Batch(requests, tuple(dict.fromkeys(wanted)))
    others = [each for each in _beside(requests) if each != path and _answers(each, asked)]
    if path != requests:
        found = [each for each in others if _holds_failures_alone(each)]
        return Batch(requests, (path, *found), tuple(found))
    if not others:
        hint = "name the files of results: output=FILE, errors=FILE"
        raise DatasetIntegrityError.at(
            path, "these are requests, and no file beside it holds their results", hint, code="output"
        )
    return Batch(requests, tuple(others), tuple(others))


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
