"""The steps from a file to an EvalSet, each once and in this order; their arguments are those of the run entry.

bytes ──reading──▶ header, states ──read_rows──▶ rows, and their Profile ──plan, rules──▶ ──instances──▶ EvalSet

Reading is a fold over the rows, by this process, or by several that are given some lines each: a `Profile` is what is
known of some rows, profiles are merged in the order of the file. Each depends on its rows and the header alone. So it
does not matter where a file is cut, nor who reads; the rows of each are in a store of their own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from helm_ext.errors import DatasetError, Problem, Problems, RunEntryError, raise_for, show
from helm_ext.evalset import EvalSet, Scoring, garbage
from helm_ext.files import canonical_json, show_reading
from helm_ext.formats.request_states.header import Header, Options, read_header
from helm_ext.formats.request_states.instances import make_evalset
from helm_ext.formats.request_states.plan import File, make_plan
from helm_ext.formats.request_states.profile import Profile
from helm_ext.formats.request_states.reading import FileReader, LineReader, Lines, Reader, State, open_file
from helm_ext.formats.request_states.rows import ASKED_MODES, Row, RowReader, combine
from helm_ext.formats.request_states.rules import report

if TYPE_CHECKING:
    from helm_ext.files.store import RowStore, Segment

Opener = Callable[[str | Path, Problems], Reader]
"""Opens what is to be read, in the order in which problems are reported. Raises DatasetError when nothing of it can be
read."""

KEPT_ROWS = 5_000
"""Rows of a file that are kept in memory. Those of a larger one are stored on disk, and memory grows by some numbers a
row."""
LEAST_BYTES = 1 << 27
"""Of a file that several processes read, if there are several: what their start costs must be worth it."""
PART_BYTES = 1 << 22
"""That a process reads at a time: little to be done again, and what is known of them is little."""
_OUTPUT_FORMATS = (None, "string", "list")


class ReadAgainError(Exception):
    """A file must be read again by one process: where something is wrong with it, so that one reading says it all."""


class OnePieceError(ReadAgainError):
    """The rows of a file must be together, in one process and in memory."""


def read_rows(
    reader: Reader, header: Header, profile: Profile, keep: Callable[[Row], object] | None, *, may_group: bool
) -> None:
    """Read the states of a reader, and add their rows up. Written for speed: this goes through all rows.

    `keep`: what takes the rows. `may_group`: whether rows are in memory, all of them: HELM's states of one row may
    stand anywhere. Raises OnePieceError where they must be, and are not.
    """
    problems = reader.problems
    rows = RowReader(header, problems)
    waiting: dict[bytes | int, tuple[State, Row, list[Any]]] = {}
    """From HELM's first row on: each with what its states say, for further ones of it."""

    def see(state: State, row: Row, found: list[Any]) -> None:
        method = header.method or ""
        if row.is_helm or method in ASKED_MODES:
            row.recorded = combine(found, row, method, header.num_train_trials)
        if keep is not None:
            keep(row)
        profile.see(state, row)

    try:
        for state in reader.states():
            if state.nonfinite:
                profile.nonfinite.add(state.place)
                profile.nonfinite_numbers += state.nonfinite
            row = rows.read(state)
            if row is None:
                continue
            if row.is_helm:
                if not may_group:
                    raise OnePieceError
                _, _, found = waiting.setdefault(canonical_json(row.instance), (state, row, []))
                found.append(row.recorded)
            elif waiting:
                waiting[len(waiting)] = state, row, [row.recorded]
            else:
                see(state, row, [row.recorded])
    except DatasetError as error:  # what ends reading half-way: limits, truncated compression
        problems.extend(error.problems)
    for seen in waiting.values():
        see(*seen)


Part = tuple[Profile, Problems, "Segment"]
"""What is known of some lines of a file, what was found in them, and where their rows are stored."""


def begin_parts(
    path: str, header: Header, header_line: int, folder: str
) -> Callable[[Iterable[tuple[int, bytes]]], Part | None]:
    """Return what reads lines of a file in this process, and stores their rows in a folder.

    It returns None where there are errors, and raises OnePieceError.
    """
    from helm_ext.files.store import SpillWriter

    writer = SpillWriter(folder)

    def read(lines: Iterable[tuple[int, bytes]]) -> Part | None:
        problems, profile = Problems(path), Profile(header, is_checked=False)
        with garbage.paused():
            reader = LineReader(path, problems, lines, header_line)
            read_rows(reader, header, profile, writer.add, may_group=False)
        return None if problems.errors else (profile, problems, writer.end())

    return read


def load(path: str | Path, open_: Opener = open_file, **arguments: Any) -> EvalSet:
    """Read a file and return its EvalSet. Raises a DatasetError that carries all problems, HelmExtError where many rows
    cannot be stored.

    The arguments (docs/adapter_spec.md) win over what the file says; None where the file decides. `open_`: of a file of
    another format, whose reader gives it the shape of ours.
    """
    options = _to_options(arguments)
    with garbage.paused():
        file = _read(path, open_, options, kept=KEPT_ROWS)
        raise_for(file.finish())
        return make_evalset(file)


def check(path: str | Path, open_: Opener = open_file, **arguments: Any) -> tuple[list[Problem], dict[str, int]]:
    """Return all problems of a file (errors first, then warnings) and what was counted; `open_` as for `load`.

    Memory does not grow with JSON Lines but for some bytes a row (ids and inputs are compared).
    """
    options = _to_options(arguments)
    try:
        file = _read(path, open_, options, kept=None)
    except DatasetError as error:
        return list(error.problems), {}
    return file.finish(), {"rows": file.profile.rows, **file.counts}


_SCORING = {"cut_at_stop", *(field.name for field in fields(Scoring))}


def _to_options(arguments: Mapping[str, Any]) -> Options:
    """Return the options; all keys but those named here are keys of `scoring`. Raises RunEntryError for others."""
    given = {key: value for key, value in arguments.items() if key != "missing"}  # which the run decides
    own = {field.name for field in fields(Options)} - {"scoring"}
    if unknown := given.keys() - own - _SCORING:
        hint = "HELM's run expander of that name is for scenarios of its own"
        raise RunEntryError(f"adapter_spec: unknown argument {min(unknown)!r}\n  hint: {hint}")
    named = {key: value for key, value in given.items() if key in own and value is not None}
    return Options(**named, scoring={key: value for key, value in given.items() if key not in own})


def _read(path: str | Path, open_: Opener, options: Options, *, kept: float | None, may_share: bool = True) -> File:
    """Read every state. `kept`: how many rows are kept in memory, if there are no more; None: the file is only checked.

    `may_share`: whether several processes may read it.

    Raises DatasetError when nothing can be read at all, HelmExtError where it is not clear how many processes are
    wanted.
    """
    problems = Problems(str(path))
    if options.output_format not in _OUTPUT_FORMATS:
        message = f'expected "string" or "list", got {show(options.output_format)}'
        problems.add(("output_format",), message, code="wrong-value")
        options = replace(options, output_format=None)
    with show_reading(path):  # some are gone through to be opened, and documents are read whole
        reader = open_(path, problems)
    header = read_header(reader.header, options, problems)
    profile, store = Profile(header, is_checked=kept is None), None
    if kept is not None:
        from helm_ext.files.store import RowStore

        store = RowStore(Row, kept if reader.is_streamed else math.inf)
    try:
        may_group = kept in (None, math.inf) or not reader.is_streamed
        if may_group or not may_share or not _read_in_parts(reader, header, profile, store):
            with show_reading(path):
                read_rows(reader, header, profile, None if store is None else store.add, may_group=may_group)
    except ReadAgainError as error:
        reader.close()
        kept = math.inf if isinstance(error, OnePieceError) else kept
        return _read(path, open_, options, kept=kept, may_share=False)
    if store is not None:
        store.finish()
    file = File(reader, header, profile, problems, store)
    is_planned = header.is_right and profile.rows > 0
    if is_planned:
        make_plan(file)
        file.counts = _count(file)
    report(file, is_planned=is_planned)
    return file


def _read_in_parts(reader: Reader, header: Header, profile: Profile, store: RowStore[Row] | None) -> bool:
    """Let several processes read the states, if there are several and it pays. False: this one must do it.

    Raises ReadAgainError, HelmExtError.
    """
    if not isinstance(reader, FileReader) or reader.problems.errors or Path(reader.path).stat().st_size < LEAST_BYTES:
        return False
    from helm_ext.engines.engine import ThisProcess, find_engine
    from helm_ext.files.store import Folder

    engine = find_engine()
    if isinstance(engine, ThisProcess):
        return False
    folder = Folder()
    begin = partial(begin_parts, reader.path, header, reader.header_line, folder.path)
    segments: list[Segment] = []
    found = engine.map(begin, reader.cut(PART_BYTES), split=Lines.split)
    with show_reading(reader.path), closing(found):
        try:
            for part in found:
                if part is None:
                    raise ReadAgainError
                profile.merge(part[0])
                reader.problems.merge(part[1])
                segments.append(part[2])
        except DatasetError as error:  # in reading the lines
            raise ReadAgainError from error
    if not profile.rows:
        raise ReadAgainError
    assert store is not None
    store.take(segments, folder)
    return True


def _count(file: File) -> dict[str, int]:
    """Return what of the rows users are told."""
    profile = file.profile
    train = profile.splits["train"] if profile.is_differentiated else file.demonstrations
    of_status = {status: profile.find_status(status).count for status in ("ok", "not_run", "failed", "unscored")}
    counts = {"rows": profile.rows, "train": train, "eval": file.evaluated, "recorded": of_status.pop("ok")}
    if not profile.is_recorded:
        if file.cap is not None and file.evaluated > file.cap:
            return counts | {"eval": file.cap, "capped": file.evaluated - file.cap}
        del of_status["not_run"]
    always = ("not_run", "failed") if profile.is_recorded else ()
    return counts | {status: rows for status, rows in of_status.items() if rows or status in always}
