"""A bundle, from the hub or a file, is read and checked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
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
from helm_ext.formats.innodata.lowering import Content, to_evalset
from helm_ext.formats.innodata.options import Options
from helm_ext.formats.innodata.replies import check_replies, read_replies
from helm_ext.hub import open_bundle, open_version, resolve
from helm_ext.hub.bundle import Bundle, check_records
from helm_ext.hub.codes import BundleCode
from helm_ext.hub.meta import Meta, Split
from helm_ext.hub.records import Record

if TYPE_CHECKING:
    from helm_ext.evalset import EvalSet
    from helm_ext.hub.archive import Limits

__all__ = ["check", "load"]


def load(**arguments: Any) -> EvalSet:
    """Return the records of one split, ready for HELM. The arguments are those of `Options`.

    With `limit` only the first records are parsed and their rules checked; sizes and digests are checked always. With
    `replies` the EvalSet's digest covers both files, and all records are read, because replies to records beyond the
    limit are errors.

    Raises DatasetError with all problems, HubError, RunEntryError.
    """
    options = Options(**arguments)
    options.require_sense()
    options.to_scoring()
    content = _read(options)
    if not content.records:
        raise DatasetIntegrityError(f"{options.dataset or options.path}: the {options.split} split is empty")
    if options.replies is not None:
        ids = [record.id for record in content.records]
        content.records = content.records[: options.limit]
        title = _title(options.split, content.meta)
        content.replies, content.digest = read_replies(
            Path(options.replies), ids, len(content.records), title, content.digest
        )
        content.counts["recorded"] = len(content.replies)
        content.counts["not_run"] = len(content.records) - len(content.replies)
    content.counts["eval"] = len(content.records)
    if "refusal_match" in (*(options.metrics or ()), options.main_metric):
        content.warnings.extend(_find_missing_refusals(content.records, str(options.dataset or options.path)))
    return to_evalset(content, options)


def _find_missing_refusals(records: Sequence[Record], place: str) -> Iterator[Problem]:
    """Yield a warning if nothing in the data is a refusal, and one for keys `refusal` that say neither true nor false.

    For runs that ask for `refusal_match`: they would measure nothing but how seldom the model refuses.
    """
    from helm_ext.scoring.scores.refusal import GOLD_KEY, gold_refuses

    where = Location(place)
    unusable = sum(not isinstance(record.extra.get(GOLD_KEY, False), bool) for record in records)
    if unusable:
        message = f"{unusable} of {len(records)} records have a key {GOLD_KEY!r} that is neither true nor false"
        hint = "it is not used; what `expected` says counts"
        yield Problem(message, where, hint, "warning", BundleCode.REFUSAL_KEY)
    if not any(gold_refuses(record.extra, record.expected) for record in records):
        message = f"refusal_match: none of the {len(records)} expected texts is recognised as a refusal"
        hint = f'say it in the records: "{GOLD_KEY}": true, or give phrases of your own (HELM_EXT_REFUSALS=FILE)'
        yield Problem(message, where, hint, "warning", BundleCode.NO_REFUSALS)


def _read(options: Options) -> Content:
    """Read the records: of the hub, which has checked the bundle when it was uploaded, or of a file, checked now."""
    limit = options.limit if options.replies is None else None
    if options.dataset is not None:
        resolved = resolve(options.dataset, options.version, options.hub)
        warnings = []
        if resolved.notice:
            where = Location(f"{options.dataset}@{resolved.version}")
            warnings.append(Problem(resolved.notice, where, severity="warning", code=BundleCode.NEWER_VERSION))
        with open_version(resolved, options.hub) as bundle:
            return _to_content(bundle, options, list(bundle.records(options.split, limit)), resolved.version, warnings)
    assert options.path is not None  # `require_sense`
    with open_bundle(options.path) as bundle:
        problems = Problems()
        records = check_records(bundle, problems, {}, keep=options.split, limit=limit)
        raise_for(problems.finish())
        return _to_content(bundle, options, records, None, list(bundle.warnings))


def _to_content(
    bundle: Bundle, options: Options, records: list[Record], version: int | None, warnings: list[Problem]
) -> Content:
    counts = {"rows": bundle.meta.sizes[options.split]}  # which is how many there are: that has been checked
    return Content(bundle.meta, version, bundle.digest, bundle.digest, records, counts, warnings)


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
