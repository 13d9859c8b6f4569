"""A bundle, from the hub or a file, is read and checked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from helm_ext.errors import (
    DatasetChangedError,
    DatasetError,
    DatasetIntegrityError,
    HelmExtError,
    Location,
    Problem,
    Problems,
    raise_for,
    to_problem,
)
from helm_ext.evalset import DIGEST_LENGTH
from helm_ext.formats.innodata.attributes import AttributeValues
from helm_ext.formats.innodata.lowering import Content, UnreadRecords, to_evalset
from helm_ext.formats.innodata.options import Options
from helm_ext.formats.innodata.replies import check_replies, read_replies
from helm_ext.hub import open_bundle, open_version, resolve
from helm_ext.hub.bundle import Bundle, check_records, iter_checked
from helm_ext.hub.codes import BundleCode
from helm_ext.hub.meta import Meta, Split
from helm_ext.hub.records import Record

if TYPE_CHECKING:
    from helm_ext.evalset import EvalSet
    from helm_ext.hub.archive import Limits

__all__ = ["check", "load"]


UNREAD = 10_000
"""With more records than so many, what is handed out is read again when it is asked for, and not kept in memory."""


def load(**arguments: Any) -> EvalSet:
    """Return the records of one split, ready for HELM. The arguments are those of `Options`.

    All records are parsed and checked; those of a large file (`UNREAD`) are read again when they are asked for, and
    then raise DatasetChangedError where the file is no longer the same. With `limit` only the first records are parsed
    and their rules checked; sizes and digests are checked always. With `replies` the EvalSet's digest covers both
    files, and all records are read, because replies to records beyond the limit are errors.

    Raises DatasetError with all problems, HubError, RunEntryError.
    """
    options = Options(**arguments)
    options.require_sense()
    options.to_scoring()
    content, ids = _read(options)
    if not ids:
        raise DatasetIntegrityError(f"{options.dataset or options.path}: the {options.split} split is empty")
    eval_count = len(ids[: options.limit])
    if options.replies is not None:
        title = _title(options.split, content.meta)
        content.replies, content.digest = read_replies(Path(options.replies), ids, eval_count, title, content.digest)
        content.counts["recorded"] = len(content.replies)
        content.counts["not_run"] = eval_count - len(content.replies)
    content.counts["eval"] = eval_count
    return to_evalset(content, options)


class _Survey:
    """What must be known of all records that are evaluated, noted while they are read."""

    def __init__(self, options: Options, count: int) -> None:
        """`count`: how many records will be evaluated, as far as is known before they are read."""
        self.ids: list[str] = []
        """Of all records that were read, those beyond the limit included."""
        self.kept: list[Record] | None = [] if count <= UNREAD or options.replies is not None else None
        self.attributes = AttributeValues()
        self.refusals = _Refusals() if "refusal_match" in (*(options.metrics or ()), options.main_metric) else None

    def add(self, record: Record) -> None:
        self.attributes.add(record)
        if self.kept is not None:
            self.kept.append(record)
        if self.refusals is not None:
            self.refusals.add(record)


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
        from helm_ext.scoring.scores.refusal import GOLD_KEY

        where = Location(place)
        if self.unusable:
            message = (
                f"{self.unusable} of {self.records} records have a key {GOLD_KEY!r} that is neither true nor false"
            )
            hint = "it is not used; what `expected` says counts"
            yield Problem(message, where, hint, "warning", BundleCode.REFUSAL_KEY)
        if not self.there_are:
            message = f"refusal_match: none of the {self.records} expected texts is recognised as a refusal"
            hint = f'say it in the records: "{GOLD_KEY}": true, or give phrases of your own (HELM_EXT_REFUSALS=FILE)'
            yield Problem(message, where, hint, "warning", BundleCode.NO_REFUSALS)


def _read(options: Options) -> tuple[Content, list[str]]:
    """Read the records: of the hub, which has checked the bundle when it was uploaded, or of a file, checked now.

    Also returns the ids of all records, with `replies` also of those beyond the limit.
    """
    limit = options.limit if options.replies is None else None
    problems = Problems()
    version, warnings = None, []
    with ExitStack() as stack:
        if options.dataset is not None:
            resolved = resolve(options.dataset, options.version, options.hub)
            version = resolved.version
            reopen = partial(open_version, resolved, options.hub)
            bundle = stack.enter_context(reopen())
            records = bundle.records(options.split, limit)
            if resolved.notice:
                where = Location(f"{options.dataset}@{resolved.version}")
                warnings.append(Problem(resolved.notice, where, severity="warning", code=BundleCode.NEWER_VERSION))
        else:
            assert options.path is not None  # `require_sense`
            reopen = partial(open_bundle, options.path)
            bundle = stack.enter_context(reopen())
            records = iter_checked(bundle, problems, {}, keep=options.split, limit=limit)
            warnings.extend(bundle.warnings)
        count = bundle.meta.sizes[options.split]  # which is how many there are: that is checked
        survey = _Survey(options, count if options.limit is None else min(count, options.limit))
        for record in records:
            survey.ids.append(record.id)
            if options.limit is None or len(survey.ids) <= options.limit:
                survey.add(record)
        raise_for(problems.finish())
    if survey.refusals is not None and survey.ids:
        warnings.extend(survey.refusals.warn(str(options.dataset or options.path)))
    kept: Sequence[Record] | UnreadRecords
    if survey.kept is not None:
        kept = survey.kept
    else:
        kept = UnreadRecords(survey.ids, partial(_pick, reopen, bundle.digest, options.split))
    content = Content(
        bundle.meta, version, bundle.digest, bundle.digest, kept, survey.attributes, {"rows": count}, warnings
    )
    return content, survey.ids


def _pick(
    reopen: Callable[[], AbstractContextManager[Bundle]], digest: str, split: Split, places: Sequence[int]
) -> Iterator[Record]:
    """Yield the records at these places of a bundle that was read before."""
    with reopen() as bundle:
        if bundle.digest != digest:
            raise DatasetChangedError(
                f"{bundle.path}: the file changed while it was in use: SHA-256 {bundle.digest[:DIGEST_LENGTH]}, it was "
                f"{digest[:DIGEST_LENGTH]}\n  hint: start again; a run's name carries the digest of its data"
            )
        yield from bundle.pick(split, places)


def check(
    path: str | Path, *, expected_name: str | None = None, limits: Limits | None = None, **arguments: Any
) -> tuple[list[Problem], dict[str, int]]:
    """Check every rule of a bundle; return all problems and what was counted (`test`, `train`, `rows`).

    The other arguments are those of `Options`. A file of `replies` is checked too (`recorded`, `not_run`).
    Memory is constant but for eight bytes a record, with `replies` the records of the split. Raises nothing for bad
    data, nor for bad arguments.
    """
    options = Options(path=path, **arguments)
    split, limit, replies = options.split, options.limit, options.replies
    found = _argument_problems(path, options.require_sense) + _argument_problems(path, options.to_scoring)
    counts: dict[str, int] = {}
    problems = Problems()
    records: list[Record] = []
    of = f"the {split} split"
    try:
        with open_bundle(path, expected_name=expected_name, limits=limits) as bundle:
            problems.extend(bundle.warnings)
            of = _title(split, bundle.meta)
            records = check_records(bundle, problems, counts, keep=None if replies is None else split)
    except DatasetError as error:
        message = error.message.removeprefix(f"{path}: ")
        found += error.problems or [Problem(message, Location(str(path)), code=BundleCode.UNREADABLE, kind=type(error))]
    else:
        if split == "train" and not counts["train"]:
            problems.add(Location(str(path)), "the train split is empty", code=BundleCode.EMPTY_TRAIN,
                         kind=DatasetIntegrityError, hint="split=test is evaluated by default")  # fmt: skip
        found += problems.finish()
    if replies is not None:
        damaged = not records or problems.errors > 0
        ids = None if damaged else [record.id for record in records]
        count = len(records) if limit is None else min(max(limit, 0), len(records))
        wrong, recorded = check_replies(Path(replies), ids, count, of)
        found += wrong
        if not damaged:
            counts |= {"recorded": recorded, "not_run": count - recorded}
            if 0 < recorded < count:
                message = f"{count - recorded} of {count} records of {of} have no reply; a run refuses the file"
                hint = "missing=skip scores the rest and reports how many were left out"
                found.append(Problem(message, Location(str(replies)), hint, "warning", BundleCode.NOT_RUN))
    return found, counts


def _argument_problems(path: str | Path, check_them: Callable[[], object]) -> list[Problem]:
    try:
        check_them()
    except HelmExtError as error:
        return [to_problem(error, str(path), code=BundleCode.ARGUMENT)]
    return []


def _title(split: Split, meta: Meta) -> str:
    return f"the {split} split of {meta.name}"
