"""From a file's bytes to its header and its states, for both spellings: one JSON object, or JSON Lines."""

from __future__ import annotations

import contextlib
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import Any, Literal, NamedTuple

import xxhash

from helm_ext import files
from helm_ext.errors import (
    DatasetError,
    DatasetIntegrityError,
    DatasetSchemaError,
    Path,
    Problem,
    Problems,
    did_you_mean,
    show,
)
from helm_ext.evalset import RowExtra, RunScoring, Source
from helm_ext.formats.conversion import NOT_COPIED
from helm_ext.formats.format import look
from helm_ext.formats.request_states.checking import conform, read_known
from helm_ext.formats.request_states.shapes import FileShape


@dataclass(slots=True)
class Place:
    """Where a state stands, and where problems of it go."""

    problems: Problems
    index: int
    """Position in request_states, or among the lines of rows."""
    line: int | None
    """Where it is known: in JSON Lines."""
    path: Path
    """As a reader of the file would write it; () in JSON Lines, where the line says which."""

    @property
    def number(self) -> int:
        """The line; in a document, the position."""
        return self.index if self.line is None else self.line

    def error(self, *where: str | int, message: str, hint: str = "", code: str, is_integrity: bool = False) -> None:
        """Report an error at `where` inside the state."""
        kind = DatasetIntegrityError if is_integrity else DatasetSchemaError
        self.problems.add((*self.path, *where), message, hint, code=code, line=self.line, kind=kind)

    def warn(self, *where: str | int, message: str, hint: str = "", code: str) -> None:
        """Report a warning at `where` inside the state."""
        self.problems.warn((*self.path, *where), message, hint, code=code, line=self.line)


StateFact = Literal[
    "choice",
    "untagged",  # its single reference has no tag
    "lacks_gold",  # no reference is correct, where one must be: reported
]
"""What reading a state finds to be true of its row."""


@dataclass(slots=True)
class State:
    """One state as it was parsed: a value of any shape; and what is known of its row while the file is read."""

    place: Place
    value: Any
    is_known: bool
    """Whether it is certainly of the shape of a state, and has no keys but those of the format."""
    nonfinite: int = 0
    """How many of its numbers were NaN or infinite: they were made None."""
    unscored: bool = False
    """Whether no score can be made of the answer that it holds, as the tool says that wrote it."""
    unknown: Sequence[Path] = ()
    """Where it has keys that the format does not know, when it was checked."""
    extra: RowExtra = field(default_factory=RowExtra)
    """What of its row's `RowExtra` who wrote it knows already, or its reader."""
    needs_gold: bool = True
    """Whether what is recorded is compared with what is right: false where only another tool's scores are reported."""

    # What reading its row says besides (`rows.RowReader`).
    split: str | None = None
    """HELM's name of the split; None where the file gives none."""
    facts: list[StateFact] = field(default_factory=list)
    told: RunScoring | None = None
    """How the run of ours scored that wrote it, where it says so."""


class Reader(ABC):
    """A file whose header was read; `states` may be iterated once. `digest` is complete after that."""

    header: dict[str, Any] | None = None
    """All top-level keys but request_states; None when there is no telling (the reason is among the problems)."""
    digest = ""
    is_streamed = False
    """Whether its rows come one by one, and none is kept: those of a document are there together."""
    rows = 0
    """How many rows of JSON Lines were come across, those that cannot be read included."""
    is_imported = False
    """Whether another tool wrote the file. It owes nothing to this format's own demands, and rows that it could not run
    are left out and counted unless the run entry says otherwise."""
    source: Source | None = None
    """Where another tool's file comes from; complete after the last state."""
    is_measured = True
    """Whether answers are compared with what is right, beside the scores that the source gave."""

    def __init__(self, path: str | FilePath, problems: Problems) -> None:
        self.path = str(path)
        self.problems = problems

    @abstractmethod
    def states(self) -> Iterator[State]:
        """Yield the states. What cannot be parsed goes to the problems."""

    def close(self) -> None:  # noqa: B027 - most are closed when they were read
        """Close a file whose states are not wanted."""

    @abstractmethod
    def locate(self, paths: Sequence[Path]) -> dict[Path, int]:
        """Return the lines of paths."""


class _Document(Reader):
    def __init__(self, path: str | FilePath, problems: Problems) -> None:
        super().__init__(path, problems)
        source = files.read_source(path)
        self.digest = source.digest
        self._data = source.data.removeprefix(files.BOM)
        value, self._may_hold_nan = self._parse()
        self._states: list[Any] = []
        if not isinstance(value, dict):
            message = f"expected an object with adapter_spec and request_states, got {show(value)}"
            hint = 'write {"adapter_spec": {...}, "request_states": [...]} around it' * isinstance(value, list)
            problems.add((), message, hint, code="wrong-type", line=1)
            return
        states = value.pop("request_states", None)
        self.header = value
        if states is None:
            problems.add(("request_states",), "missing", code="missing-key")
        elif not isinstance(states, list):
            problems.add(("request_states",), f"expected a list, got {show(states)}", code="wrong-type")
        elif not states:
            problems.add(("request_states",), "the list is empty: there are no rows", code="no-rows")
        else:
            self._states = states

    def _parse(self) -> tuple[Any, bool]:
        try:
            return _parse(self._data, self.path)
        except DatasetError as error:
            strict = error.problems[0]
            if strict.code != "not-json":
                raise
        value = files.parse_relaxed_json(self._data, self.path)
        said = f"not strict JSON ({strict.message}); read without its comments and trailing commas"
        self.problems.warn((), said, "remove them, for other tools", code="relaxed-json", line=strict.location.line)
        return value, True

    def states(self) -> Iterator[State]:
        for index in range(len(self._states)):
            value = self._states[index]
            self._states[index] = None  # a million rows twice in memory would be too many
            place = Place(self.problems, index, None, ("request_states", index))
            yield State(place, value, is_known=False, nonfinite=drop_nonfinite(value) if self._may_hold_nan else 0)

    def locate(self, paths: Sequence[Path]) -> dict[Path, int]:
        return files.locate(self._data.decode("utf-8"), paths)


class LineReader(Reader):
    """Reads lines that hold a state each; blank lines hold none."""

    is_streamed = True

    def __init__(
        self, path: str | FilePath, problems: Problems, lines: Iterable[tuple[int, bytes]], header_line: int = 0
    ) -> None:
        """`header_line`: where it stands among the lines."""
        super().__init__(path, problems)
        self._lines = lines
        self.header_line = header_line

    def states(self) -> Iterator[State]:
        for line, data in self._lines:
            if line <= self.header_line or not data.strip():
                continue
            place = Place(self.problems, self.rows, line, ())
            self.rows += 1
            state = State(place, read_known(data), is_known=True)
            if state.value is None:
                try:
                    state.value, may_hold_nan = _parse(data, self.path, line)
                except DatasetError as error:
                    self.problems.extend(error.problems)
                    continue
                state.is_known, state.nonfinite = False, drop_nonfinite(state.value) if may_hold_nan else 0
            yield state

    def locate(self, paths: Sequence[Path]) -> dict[Path, int]:  # noqa: ARG002
        return {}  # problems of rows know their line


_END = b"\n"


class Span(NamedTuple):
    """Where bytes of a file stand, and what tells that they are still the same."""

    path: str
    start: int
    size: int
    digest: int

    def read(self) -> bytes:
        """Return them. Raises DatasetError where they are not those any more."""
        with files.open_raw(self.path) as file:
            file.seek(self.start)
            data = file.read(self.size)
        if xxhash.xxh3_64_intdigest(data) != self.digest:
            raise DatasetIntegrityError.at(self.path, "the file was changed while it was read", code="changed")
        return data


@dataclass(frozen=True)
class Lines:
    """Some lines of a file that follow one another, for another process to read. Iteration yields `(number, bytes)`."""

    first: int
    """Number of the first line."""
    block: bytes | Span
    """All of them in one piece; of a file that is not compressed, where they are."""

    def __str__(self) -> str:
        return f"lines {self.first} to {self.first + len(self._read()) - 1}"

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        return enumerate(self._read(), self.first)

    def _read(self) -> list[bytes]:
        block = self.block if isinstance(self.block, bytes) else self.block.read()
        return block.removesuffix(_END).split(_END)

    def split(self) -> list[Lines]:
        """Return them in tenths, down to a line each, so that one that ends its reader can be named."""
        lines = self._read()
        size = max(1, len(lines) // 10)
        return [Lines(self.first + at, _END.join(lines[at : at + size])) for at in range(0, len(lines), size)]


class FileReader(LineReader):
    """Reads a file of JSON Lines: the header, then a state on each line."""

    def __init__(self, path: str | FilePath, problems: Problems) -> None:
        self._source = files.LineSource(path)
        lines = self._read_lines()
        super().__init__(path, problems, lines)
        unreadable: list[Problem] = []
        first = next(files.iter_json_lines(lines, self.path, unreadable, allow_nan=True), None)
        problems.extend(unreadable)
        self.header_line, value = first or (1, None)
        if first is None:
            return
        if not isinstance(value, dict) or not _is_header(value):
            message = f'the first line must be {{"adapter_spec": ...}}, got {show(value)}'
            hint = 'write {"adapter_spec": {...}} on it, and {"instance": {...}} for a row on each further line'
            if isinstance(value, dict) and {"messages", "expected"} <= value.keys():
                hint = "records with messages and expected are an Innodata dataset: helm-ext hub pack makes a bundle"
            problems.add((), message, hint, code="wrong-type", line=self.header_line)
            self._lines = ()  # of a file of another kind there is nothing to say of further lines
        else:
            self.header = value
            # An empty list of rows is as good as none: the rows are the lines that follow.
            if value.pop("request_states", None):
                message = "the first line holds rows, and more lines follow"
                hint = 'write {"adapter_spec": ...} on the first line and each row on a line of its own'
                problems.add(("request_states",), message, hint, code="states-in-header", line=self.header_line)

    def _read_lines(self) -> Iterator[tuple[int, bytes]]:
        for number, data in self._source:
            yield number, data.removeprefix(files.BOM) if number == 1 else data

    def states(self) -> Iterator[State]:
        with self._source:
            yield from super().states()
            self.digest = self._source.digest
        if not self.rows and not self.problems.errors:
            self.problems.add((), "there are no rows after the first line", code="no-rows", line=self.header_line)

    def cut(self, size: int) -> Iterator[Lines]:
        """Yield all lines, in place of the states: pieces of `size` bytes or more. Raises DatasetError."""
        self.close()
        with files.LineSource(self.path) as source:
            for first, start, chunks in source.cut(size):
                if source.compression:
                    yield Lines(first, b"".join(chunks))
                    continue
                digest = xxhash.xxh3_64()
                for chunk in chunks:
                    digest.update(chunk)
                yield Lines(first, Span(self.path, start, sum(map(len, chunks)), digest.intdigest()))
            self.digest = source.digest

    def close(self) -> None:
        with self._source:
            pass

    def locate(self, paths: Sequence[Path]) -> dict[Path, int]:
        # Problems of rows know their line; what is left is about the header.
        return dict.fromkeys(paths, self.header_line)


def _parse(data: bytes, path: str, line: int = 1) -> tuple[Any, bool]:
    """Return a JSON value, and whether it may hold NaN or infinities, as log-probabilities. Raises DatasetError."""
    try:
        return files.parse_json(data, path, line), False
    except DatasetError:
        return files.parse_json(data, path, line, allow_nan=True), True


def drop_nonfinite(value: Any) -> int:
    """Replace each NaN and infinity inside an object or list by None, in place, and return how many there were.

    HELM would write them as they are, and no browser reads such a file. Any other value holds none.
    """
    if not isinstance(value, (dict, list)):
        return 0
    count = 0
    for key, child in list(value.items()) if isinstance(value, dict) else enumerate(value):
        if isinstance(child, float) and not math.isfinite(child):
            value[key] = None
            count += 1
        else:
            count += drop_nonfinite(child)
    return count


def _is_header(value: dict[str, Any]) -> bool:
    """Whether an object is meant to be the first line, the key perhaps misspelt."""
    return "adapter_spec" in value or any(did_you_mean(key, ("adapter_spec",)) for key in value)


def open_file(path: str | FilePath, problems: Problems) -> Reader:
    """Open a file of either spelling. Raises DatasetError when nothing of it can be read."""
    seen = look(path)
    is_whole = "request_states" in seen.keys and b"\n" not in seen.start.strip()
    return FileReader(path, problems) if seen.is_lines() and not is_whole else _Document(path, problems)


_RECORDED = "recorded/"


def read_model(path: str) -> str:
    """Return the model that all rows name: "" where one names none, or two differ.

    A row names one as `recorded/X`, without it the header's `source.model` does: who answered the rows of another
    tool's log. The names of live models count in what HELM writes of a finished run alone: any other file with requests
    may have been written before anybody answered them. What is wrong with the file, its reader says later.

    Raises DatasetIntegrityError for a file without answers that was converted from a table with columns to spare.
    """
    from helm_ext.adaptation.recorded import LEFT_OUT_DEPLOYMENT

    found, left = "", ""
    with contextlib.suppress(DatasetError):
        reader = open_file(path, Problems(path))
        source = conform(reader.header or {}, FileShape)[0].get("source") or {}
        try:
            for state in reader.states():
                name = _name_model(state.value, LEFT_OUT_DEPLOYMENT) or source.get("model") or ""
                if not name or (found and name != found):
                    if isinstance(state.value, dict) and "request" not in state.value:
                        left = str((source.get("settings") or {}).get(NOT_COPIED, ""))
                    found = ""
                    break
                found = name
        finally:
            reader.close()
    if left:
        message = f"the rows have no answers: of the table that they were converted from, nothing was copied of {left}"
        hint = "helm-ext convert TABLE FILE.jsonl --arg output=COLUMN copies those of one column"
        raise DatasetIntegrityError.at(path, message, hint, code="not-recorded")
    return found


def _name_model(row: Any, stand_in: str) -> str:
    """Return the recorded model that a row names, without the prefix: its deployment has an organization's name too.

    `stand_in`: the deployment of rows that a run left out.
    """
    request = row.get("request") if isinstance(row, dict) else None
    named = [request.get(key) for key in ("model_deployment", "model")] if isinstance(request, dict) else []
    names = [name for name in named if isinstance(name, str) and name != stand_in]
    recorded = [name for name in names if name.startswith(_RECORDED)]
    if not recorded and names and "train_trial_index" in row:  # HELM's file of a live run
        return names[-1]
    return recorded[0].removeprefix(_RECORDED) if recorded else ""
