"""From a file to its header and its states, for both spellings: one JSON object, or JSON Lines."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path as FilePath
from typing import Any, TypeVar

import msgspec
import numpy as np

from helm_ext import files as sources
from helm_ext.errors import DatasetError, Problem, did_you_mean, show
from helm_ext.formats.request_states.report import Report
from helm_ext.formats.request_states.rows import RawState
from helm_ext.formats.request_states.state_models import KNOWN_STATE, STATE
from helm_ext.formats.request_states.wording import Path

__all__ = ["Reader", "open_file"]

T = TypeVar("T")

_PEEK_BYTES = 1 << 20
"""A first line longer than this is no JSON Lines header."""

_BATCH_BYTES = 1 << 16
"""Rows of this size together are read at once."""

_PATIENCE = 2
"""Times that all rows read at once had keys of their own, after which a file is taken to be full of such rows."""


class Reader:
    """A file whose header was read; `states` may be iterated once. `digest` is complete after that."""

    header: dict[str, Any] | None = None
    """All top-level keys but request_states; None when there is no telling (the reason is in the report)."""
    is_lines = False

    def __init__(self, path: str | FilePath, report: Report) -> None:
        self.path = path
        self.report = report
        self.digest = ""

    def states(self) -> Iterator[RawState]:
        """Yield the states. What cannot be parsed goes to the report."""
        raise NotImplementedError

    def prefix(self, index: int) -> Path:
        """Return the path of a state as the reader of the file would write it."""
        raise NotImplementedError

    def reparse(self, index: int, line: int | None) -> Any:  # noqa: ARG002 - a hook
        """Parse a state again with exact integers; None where that is not possible."""
        return None

    def locate(self, paths: Sequence[Path]) -> dict[Path, int]:  # noqa: ARG002 - a hook
        """Return the lines of paths."""
        return {}


class _Document(Reader):
    def __init__(self, path: str | FilePath, report: Report) -> None:
        super().__init__(path, report)
        source = sources.read_source(path)
        self.digest = source.digest
        data = source.data
        if data.startswith(sources.BOM):
            data = data[len(sources.BOM) :]
            report.warn(
                (), "the file begins with a byte order mark", "save it as UTF-8 without BOM", code="bom", line=1
            )
        self._data = data
        value = self._parse(data, report)
        self._is_finite = sources.is_faithful(data, value)
        self._states: list[Any] = []
        self._exact: list[Any] | None = None
        if not isinstance(value, dict):
            report.add(
                (),
                f"expected an object with adapter_spec and request_states, got {show(value)}",
                code="wrong-type",
                line=1,
            )
            return
        self._states = value.pop("request_states", None)
        self.header = value
        if self._states is None:
            report.add(("request_states",), "missing", code="missing-key")
            self._states = []
        elif not isinstance(self._states, list):
            report.add(("request_states",), f"expected a list, got {show(self._states)}", code="wrong-type")
            self._states = []
        elif not self._states:
            report.add(("request_states",), "the list is empty: there are no rows", code="no-rows")

    def _parse(self, data: bytes, report: Report) -> Any:
        path = str(self.path)
        try:
            return sources.parse_json(data, path, allow_nan=True)
        except DatasetError as strict:
            if strict.problems[0].code != "not-json":
                raise
            try:
                value = sources.parse_relaxed_json(data, path)
            except DatasetError as relaxed:
                raise relaxed from None
            line = strict.problems[0].location.line
            report.warn(
                (),
                f"not strict JSON ({strict.problems[0].message}); read as JSON5",
                "remove comments and trailing commas; keys and strings stand in double quotes",
                code="json5",
                line=line,
            )
            return value

    def states(self) -> Iterator[RawState]:
        for index in range(len(self._states)):
            value = self._states[index]
            self._states[index] = None  # a million rows twice in memory would be too many
            yield index, None, value, False, self._is_finite, False

    def prefix(self, index: int) -> Path:
        return ("request_states", index)

    def reparse(self, index: int, line: int | None) -> Any:  # noqa: ARG002
        if self._exact is None:
            try:
                self._exact = json.loads(self._data)["request_states"]
            except ValueError:  # JSON5
                self._exact = []
        return self._exact[index] if index < len(self._exact) else None

    def locate(self, paths: Sequence[Path]) -> dict[Path, int]:
        return sources.locate(self._data.decode("utf-8"), paths)


class _Lines(Reader):
    is_lines = True

    def __init__(self, path: str | FilePath, report: Report) -> None:
        super().__init__(path, report)
        self._source = sources.LineSource(path)
        self._lines = self._without_bom()
        self._problems: list[Problem] = []
        first = next(sources.iter_json_lines(self._lines, str(path), self._problems, allow_nan=True), None)
        report.extend(self._problems)
        self._header_line = 1 if first is None else first[0]
        self._first_state: list[tuple[int, bytes]] = []
        self._is_other = False
        """Whether the file is of another kind, so that there is nothing to say of its further lines."""
        if first is None:
            return
        line, value = first
        if isinstance(value, dict) and "instance" in value and "adapter_spec" not in value:
            if not self._problems:  # a line that cannot be read was meant as the header
                report.add(
                    (),
                    'there is no header: the first line must be {"adapter_spec": ...}, and is a row',
                    'put {"adapter_spec": {...}} on a line above it',
                    code="missing-key",
                    line=line,
                )
            self._first_state.append((line, sources.canonical_json(value)))
        elif not isinstance(value, dict) or not _is_header(value):
            message = f'the first line must be {{"adapter_spec": ...}}, got {show(value)}'
            report.add((), message, _header_hint(value), code="wrong-type", line=line)
            self._is_other = isinstance(value, dict)
        else:
            self._drop_states(value, line)
            self.header = value

    def _drop_states(self, header: dict[str, Any], line: int) -> None:
        """Take an empty list of rows off the header: the rows are the lines that follow."""
        if header.pop("request_states", None):
            self.report.add(
                ("request_states",),
                "the first line holds rows, and more lines follow",
                'write {"adapter_spec": ...} on the first line and each row on a line of its own',
                code="states-in-header",
                line=line,
            )

    def _without_bom(self) -> Iterator[tuple[int, bytes]]:
        for number, line in self._source:
            if number == 1 and line.startswith(sources.BOM):
                self.report.warn(
                    (), "the file begins with a byte order mark", "save it as UTF-8 without BOM", code="bom", line=1
                )
                yield number, line[len(sources.BOM) :]
            else:
                yield number, line

    def states(self) -> Iterator[RawState]:
        index = -1
        patience = _PATIENCE
        with self._source:
            for batch in _batches(itertools.chain(self._first_state, self._lines)):
                if self._is_other:
                    continue
                known = _decode_known([data for _, data in batch]) if patience else [None] * len(batch)
                patience = _PATIENCE if any(known) else max(0, patience - 1)
                for (line, data), state in zip(batch, known, strict=True):
                    index += 1
                    if state is not None:
                        yield index, line, state, True, True, True
                        continue
                    valid = _decode(data)
                    if valid is not None:
                        yield index, line, valid, True, True, False
                        continue
                    try:
                        value = sources.parse_json(data, str(self.path), line, allow_nan=True)
                    except DatasetError as error:
                        self.report.extend(error.problems)
                    else:
                        yield index, line, value, False, False, False
        if index < 0 and not self.report.errors:
            self.report.add((), "there are no rows after the first line", code="no-rows", line=self._header_line)
        self.digest = self._source.digest

    def prefix(self, index: int) -> Path:  # noqa: ARG002 - the line says which
        return ()

    def locate(self, paths: Sequence[Path]) -> dict[Path, int]:
        # Problems of rows know their line; what is left is about the header.
        return dict.fromkeys(paths, self._header_line)

    def reparse(self, index: int, line: int | None) -> Any:  # noqa: ARG002
        with sources.LineSource(self.path) as lines:
            for number, data in lines:
                if number == line:
                    return json.loads(data)
        return None


def _batches(lines: Iterable[tuple[int, bytes]]) -> Iterator[list[tuple[int, bytes]]]:
    """Yield the lines that are not blank, some at a time. What was read before an error comes before it."""
    batch: list[tuple[int, bytes]] = []
    size = 0
    try:
        for line, data in lines:
            if not data.strip():
                continue
            batch.append((line, data))
            size += len(data)
            if size >= _BATCH_BYTES:
                yield batch
                batch, size = [], 0
    except DatasetError:
        if batch:
            yield batch
        raise
    if batch:
        yield batch


def _decode_known(lines: Sequence[bytes]) -> list[Any]:
    """Return the state of each line that is valid and has no keys but known ones; None for the others."""
    states: list[Any] = []
    expected: list[int] = []
    decode = KNOWN_STATE.decode
    for data in lines:
        try:
            state = decode(data)
        except (ValueError, msgspec.MsgspecError, RecursionError):
            states.append(None)
            expected.append(-1)
            continue
        states.append(state)
        expected.append(_look(sources.expected_quotes, data, state))
    # Unknown keys were left out, and of two equal ones the first: such a line has more quotes. All are counted at once.
    if -1 not in expected and sum(expected) == _count_quotes(b"".join(lines)):
        return states
    return [
        state if data.count(b'"') == quotes else None
        for data, state, quotes in zip(lines, states, expected, strict=True)
    ]


def _count_quotes(data: bytes) -> int:
    return int(np.count_nonzero(np.frombuffer(data, np.uint8) == ord('"')))


def _decode(data: bytes) -> Any:
    """Return the state of a line if it is valid and nothing of it was lost, else None. Faster than in two steps."""
    try:
        state = STATE.validator.validate_json(data)
    except ValueError:
        return None
    return state if _look(sources.is_faithful, data, state) else None


def _look(check: Callable[[bytes, Any, Sequence[str]], T], data: bytes, state: Any) -> T:
    """Return what `check` says. A valid state's long texts stand beside it meanwhile: they are searched for nothing."""
    given, request = state["instance"]["input"], state.get("request") or {}
    text, prompt = given.get("text"), request.get("prompt")
    if text:
        given["text"] = ""
    if prompt:
        request["prompt"] = ""
    try:
        return check(data, state, [one for one in (text, prompt) if one])
    finally:
        if text:
            given["text"] = text
        if prompt:
            request["prompt"] = prompt


def _is_header(value: dict[str, Any]) -> bool:
    """Whether an object is meant to be the first line, the key perhaps misspelt."""
    return "adapter_spec" in value or any(did_you_mean(key, ("adapter_spec",)) for key in value)


def _header_hint(value: Any) -> str:
    if isinstance(value, dict) and {"messages", "expected"} <= set(value):
        return "records with messages and expected are an Innodata dataset: pack them with `helm-ext hub pack`"
    return 'write {"adapter_spec": {...}} on the first line, and {"instance": {...}} for a row on each further line'


def open_file(path: str | FilePath, report: Report) -> Reader:
    """Open a file of either spelling. Raises DatasetError when nothing of it can be read."""
    return _Lines(path, report) if _is_json_lines(path) else _Document(path, report)


def _is_json_lines(path: str | FilePath) -> bool:
    """Whether the first line is a header or a state by itself; where that cannot be told, the name decides."""
    is_named_so = ".jsonl" in FilePath(path).name.lower()
    lines = []
    try:
        with sources.LineSource(path, max_line_bytes=_PEEK_BYTES) as source:
            for number, line in source:
                lines.append(line.removeprefix(sources.BOM) if number == 1 else line)
                if not lines[-1].strip():
                    lines.pop()
                elif len(lines) > 1:
                    break
    except DatasetError as error:
        if error.problems[0].code != "too-large":
            raise
        if not lines:
            return False
        lines.append(b"...")
    try:
        value = sources.parse_json(lines[0] if lines else b"", str(path), allow_nan=True)
    except DatasetError:
        return is_named_so and lines[:1] not in ([b"{"], [b"["]) and not _is_document(path)
    if not isinstance(value, dict):
        return is_named_so
    if len(lines) == 1 and not is_named_so:  # all of the file is one object, and that is what the name says
        return False
    if "request_states" in value:
        return len(lines) > 1
    return is_named_so or bool({"adapter_spec", "instance"} & set(value))


def _is_document(path: str | FilePath) -> bool:
    """Whether a whole file is one JSON object, spread over lines."""
    try:
        return isinstance(sources.parse_json(sources.read_source(path).data, str(path), allow_nan=True), dict)
    except DatasetError:
        return False
