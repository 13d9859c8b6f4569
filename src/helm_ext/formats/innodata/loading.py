"""A bundle, from the hub or a file, is read and checked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from helm_ext.errors import (
    DatasetError,
    DatasetIntegrityError,
    HelmExtError,
    Location,
    Problem,
    Problems,
    raise_for,
    to_problem,
)
from helm_ext.formats.innodata.attributes import AttributeValues
from helm_ext.formats.innodata.lowering import Content, to_evalset
from helm_ext.formats.innodata.options import Options
from helm_ext.formats.innodata.record_ids import RecordIds
from helm_ext.formats.innodata.replies import check_replies, read_replies
from helm_ext.hub import open_bundle, open_version, resolve
from helm_ext.hub.bundle import iter_checked
from helm_ext.hub.chat_records import Record
from helm_ext.hub.meta import Meta, Split

if TYPE_CHECKING:
    from helm_ext.evalset import EvalSet
    from helm_ext.hub.archive import Limits

UNREAD = 5_000
"""A file of more records is not kept in memory: they are stored on disk."""


def load(**arguments: Any) -> EvalSet:
    """Return the records of one split, ready for HELM. The arguments are those of `Options`.

    All records and replies are parsed and checked; those of a large file (`UNREAD`) are stored on disk. With
    `limit` only the first records are
    parsed and their rules checked; sizes and digests are checked always. With `replies` the EvalSet's digest covers
    both files, and all records are read, because replies to records beyond the limit are errors.

    Raises DatasetError with all problems, HubError, RunEntryError.
    """
    options = Options(**arguments)
    options.require_sense()
    options.to_scoring()
    content, ids = _read(options)
    if not len(content.records):
        raise DatasetIntegrityError(f"{options.dataset or options.path}: the {options.split} split is empty")
    if options.replies is not None:
        number, kept = len(content.records), 0 if content.records.kept is None else UNREAD
        content.replies, content.digest = read_replies(
            Path(options.replies), ids, number, _title(options.split, content.meta), content.digest, kept=kept
        )
        content.counts["recorded"] = content.replies.recorded
        content.counts["not_run"] = number - content.replies.recorded
    content.counts["eval"] = len(content.records)
    return to_evalset(content, options)


class _Profile:
    """What must be known of all records that are evaluated, noted while they are read."""

    def __init__(self, options: Options) -> None:
        from helm_ext.files.store import RowStore

        self.limit = options.limit
        self.records = RowStore(_pack, _unpack, UNREAD)
        """Those that are evaluated."""
        self.names: list[str] | None = [] if options.replies is None else None
        """Ids of records that a model may be asked about; None where none is."""
        self.ids = RecordIds()
        """With `replies`: of all records, those beyond the limit included."""
        self._is_recorded = options.replies is not None
        self.attributes = AttributeValues()
        self.refusals = _Refusals() if "refusal_match" in (*(options.metrics or ()), options.main_metric) else None

    def add(self, record: Record) -> None:
        if self._is_recorded:
            self.ids.add(record.id)
        if len(self.records) == self.limit:
            return
        self.records.add(record)
        self.attributes.add(record)
        if self.names is not None:
            self.names.append(record.id)
        if self.refusals is not None:
            self.refusals.add(record)


def _pack(record: Record) -> tuple[Any, ...]:
    return record.id, record.messages, record.expected, record.extra, record.line


def _unpack(stored: Any) -> Record:
    return Record(*stored)


class _Refusals:
    """Whether the data can show that a model refuses. For runs that ask for `refusal_match`.

    Where nothing in the data is a refusal they would measure nothing but how seldom the model refuses.
    """

    def __init__(self) -> None:
        self.records = 0
        self.unusable = 0
        """Records whose key `refusal` says neither true nor false."""
        self.there_are = False

    def add(self, record: Record) -> None:
        from helm_ext.scoring.scores.refusal import GOLD_KEY, gold_refuses

        self.records += 1
        self.unusable += not isinstance(record.extra.get(GOLD_KEY, False), bool)
        self.there_are = self.there_are or gold_refuses(record.extra, record.expected)

    def warn(self, place: str) -> Iterator[Problem]:
        if self.unusable:
            message = f"{self.unusable} of {self.records} records have a key 'refusal' that is neither true nor false"
            hint = "it is not used; what `expected` says counts"
            yield Problem(message, Location(place), hint, "warning", "refusal-key")
        if not self.there_are:
            message = f"refusal_match: none of the {self.records} expected texts is recognised as a refusal"
            hint = 'say it in the records: "refusal": true, or give phrases of your own (HELM_EXT_REFUSALS=FILE)'
            yield Problem(message, Location(place), hint, "warning", "no-refusals")


def _read(options: Options) -> tuple[Content, RecordIds]:
    """Read the records: of the hub, which has checked the bundle when it was uploaded, or of a file, checked now.

    With `replies` also returns the ids of all records, also of those beyond the limit.
    """
    limit, split = options.limit if options.replies is None else None, options.split
    problems = Problems()
    version, warnings = None, []
    if options.dataset is not None:
        resolved = resolve(options.dataset, options.version, options.hub)
        version = resolved.version
        opened = open_version(resolved, options.hub)
        if resolved.notice:
            where = Location(f"{options.dataset}@{resolved.version}")
            warnings.append(Problem(resolved.notice, where, severity="warning", code="newer-version"))
    else:
        assert options.path is not None  # `require_sense`
        opened = open_bundle(options.path)
    profile = _Profile(options)
    with opened as bundle:
        if options.dataset is not None:
            records = bundle.records(split, limit)
        else:
            records = iter_checked(bundle, problems, {}, keep=split, limit=limit)
            warnings.extend(bundle.warnings)
        for record in records:
            profile.add(record)
        raise_for(problems.finish())
    profile.records.finish()
    if profile.refusals is not None and len(profile.records):
        warnings.extend(profile.refusals.warn(str(options.dataset or options.path)))
    content = Content(
        meta=bundle.meta,
        version=version,
        bundle_digest=bundle.digest,
        digest=bundle.digest,
        records=profile.records,
        ids=profile.names,
        attributes=profile.attributes,
        counts={"rows": bundle.meta.sizes[split]},  # which is how many there are: that is checked
        warnings=warnings,
    )
    return content, profile.ids


def check(
    path: str | Path, *, expected_name: str | None = None, limits: Limits | None = None, **arguments: Any
) -> tuple[list[Problem], dict[str, int]]:
    """Check every rule of a bundle; return all problems and what was counted (`test`, `train`, `rows`).

    The other arguments are those of `Options`. A file of `replies` is checked too (`recorded`, `not_run`).
    Memory is constant but for eight bytes a record, with `replies` some tens. Raises nothing for bad data, nor for bad
    arguments.
    """
    options = Options(path=path, **arguments)
    split, limit, replies = options.split, options.limit, options.replies
    found = _argument_problems(path, options.require_sense) + _argument_problems(path, options.to_scoring)
    counts: dict[str, int] = {}
    problems = Problems()
    ids = RecordIds()
    of = f"the {split} split"
    try:
        with open_bundle(path, expected_name=expected_name, limits=limits) as bundle:
            problems.extend(bundle.warnings)
            of = _title(split, bundle.meta)
            for record in iter_checked(bundle, problems, counts, keep=None if replies is None else split):
                ids.add(record.id)
    except DatasetError as error:
        found += error.problems
    else:
        if split == "train" and not counts["train"]:
            hint = "split=test is evaluated by default"
            problems.add(Location(str(path)), "the train split is empty", hint, code="empty-train")
        found += problems.finish()
    if replies is not None:
        damaged = not len(ids) or problems.errors > 0
        count = len(ids) if limit is None else min(max(limit, 0), len(ids))
        wrong, recorded = check_replies(Path(replies), None if damaged else ids, count, of)
        found += wrong
        if not damaged:
            counts |= {"recorded": recorded, "not_run": count - recorded}
            if 0 < recorded < count:
                message = f"{count - recorded} of {count} records of {of} have no reply; a run refuses the file"
                hint = "missing=skip scores the rest and reports how many were left out"
                found.append(Problem(message, Location(str(replies)), hint, "warning", "not-run"))
    return found, counts


def _argument_problems(path: str | Path, check_them: Callable[[], object]) -> list[Problem]:
    try:
        check_them()
    except HelmExtError as error:
        return [to_problem(error, str(path), code="argument")]
    return []


def _title(split: Split, meta: Meta) -> str:
    return f"the {split} split of {meta.name}"
