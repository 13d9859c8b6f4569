"""A bundle, from the hub or a file, is read and checked, and becomes an EvalSet: as the arguments of the run say."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from helm_ext.errors import (
    DatasetError,
    DatasetIntegrityError,
    HelmExtError,
    Location,
    Problem,
    Problems,
    RunEntryError,
    raise_for,
    to_problem,
)
from helm_ext.evalset import EvalSet, Places, Scoring
from helm_ext.files.store import RowStore
from helm_ext.formats.innodata.hub import open_bundle, open_version, resolve
from helm_ext.formats.innodata.hub.bundle import iter_checked
from helm_ext.formats.innodata.hub.records import SPLITS, Record, Split
from helm_ext.formats.innodata.replies import (
    AttributeValues,
    Replies,
    make_instances,
    read_replies,
    short_attributes,
    to_instance,
)
from helm_ext.parsing import compile_pattern

if TYPE_CHECKING:
    from helm.benchmark.adaptation.adapter_spec import AdapterSpec

METRICS = (
    "expected_exact",
    "expected_prefix",
    "expected_contains",
    "refusal_match",
    "expected_f1",
    "expected_rouge_l",
    "expected_bleu",
    "expected_chrf",
)
MAIN_METRIC = "expected_contains"
"""Chat models wrap their answers in sentences, so the whole words of `expected` count wherever they stand."""


_WORDS = {"split": SPLITS, "render": ("chat", "text"), "thinking": ("move", "keep", None)}


@dataclass(frozen=True, kw_only=True)
class Options:
    """How a bundle is read and scored. `format` says what each means."""

    dataset: str | None = None
    """A name on the hub. Exactly one of `dataset` and `path` is needed."""
    path: str | Path | None = None
    version: int | str | None = None
    split: Split = "test"
    hub: str | None = None
    render: Literal["chat", "text"] = "chat"
    replies: str | Path | None = None
    max_tokens: int = 512
    temperature: float = 0.0
    stop: Sequence[str] | None = None
    limit: int | None = None
    """The first rows only. Records beyond are not parsed, so their rules are not checked; digests are."""
    missing: Literal["error", "skip"] = "error"
    """Decided by the run, see `helm_ext.adaptation`."""
    metrics: Sequence[str] | None = None
    main_metric: str | None = None
    thinking: Literal["move", "keep"] | None = None
    extract: str | None = None
    strip: bool = False
    lower: bool = False

    def require_sense(self) -> None:
        """Raise RunEntryError for arguments that contradict each other or have no meaning; not for metrics."""
        if (self.dataset is None) == (self.path is None):
            raise RunEntryError("innodata: exactly one of dataset and path is needed")
        for key, why in (("version", "a file has no versions"), ("hub", "a file is in no hub")):
            value = getattr(self, key)
            if self.path is not None and value is not None:
                hint = f"dataset=NAME,{key}={value} reads from the hub"
                raise RunEntryError(f"{key}={value}: {why}\n  hint: {hint}")
        for key, words in _WORDS.items():
            if (word := getattr(self, key)) not in words:
                raise RunEntryError(f"{key}={word}: expected {' or '.join(filter(None, words))}")
        for key in ("limit", "max_tokens"):
            number = getattr(self, key)
            if number is not None and (type(number) is not int or number < 1):
                raise RunEntryError(f"{key}={number}: expected a positive whole number")

    def to_scoring(self) -> Scoring:
        """Return the Scoring; the main metric is always measured, and is the first of `metrics` if it is not given.

        Raises RunEntryError for a metric that is not known or cannot be measured, and for an invalid pattern.
        """
        from helm_ext.scoring.registry import find_unnamable, get_scores, main_stat

        if self.extract is not None:
            try:
                compile_pattern(self.extract)
            except ValueError as error:
                raise RunEntryError(f"extract={self.extract}: {error}") from error
        chosen = tuple(dict.fromkeys(self.metrics or METRICS))
        main_metric = self.main_metric
        if main_metric is None:
            main_metric = MAIN_METRIC if MAIN_METRIC in chosen else chosen[0]
        elif main_metric not in chosen:
            chosen = (*chosen, main_metric)
        for name in chosen:
            unnamable = find_unnamable(name, examples=f"for example {', '.join(METRICS)}")
            if unnamable:
                message, hint = unnamable
                raise RunEntryError(f"{message}\n  hint: {hint}" if hint else message)
            prepare = get_scores()[name].prepare
            if prepare:
                prepare()
        return Scoring(
            chosen,
            main_stat(main_metric),
            extract=self.extract,
            strip=self.strip,
            lower=self.lower,
            thinking=self.thinking or "move",
        )


_TEXT_STOP = "\n\nUser:"
"""With `render="text"` a model that goes on to write the user's next turn is stopped there."""

UNREAD = 5_000
"""A file of more records is not kept in memory: they are stored on disk."""


def load(**arguments: Any) -> EvalSet:
    """Return the records of one split, ready for HELM. The arguments are those of `Options`.

    All records and replies are parsed and checked; those of a large file (`UNREAD`) are stored on disk. With `limit`
    only the first records are parsed and their rules checked; sizes and digests are checked always. With `replies` the
    EvalSet's digest covers both files, and all records are read, because replies to records beyond the limit are
    errors.

    Raises DatasetError with all problems, HubError, RunEntryError.
    """
    options = Options(**arguments)
    options.require_sense()
    scoring = options.to_scoring()
    place, split = str(options.dataset or options.path), options.split
    profile = _Profile(options)
    problems = Problems()
    version, warnings = None, []
    limit = options.limit if options.replies is None else None
    if options.dataset is not None:  # the hub has checked it when it was uploaded
        resolved = resolve(options.dataset, options.version, options.hub)
        version = resolved.version
        opened = open_version(resolved, options.hub)
        if resolved.notice:
            warnings.append(Problem.warning(f"{options.dataset}@{version}", resolved.notice, code="newer-version"))
    else:
        opened = open_bundle(place)
    with opened as bundle:
        is_checked = options.dataset is not None
        for record in bundle.records(split, limit) if is_checked else iter_checked(bundle, problems, {}, split, limit):
            profile.add(record)
        raise_for(problems.finish())
        meta, digest = bundle.meta, bundle.digest
        warnings.extend(() if is_checked else bundle.warnings)
    records = profile.records
    records.finish()
    if not len(records):
        raise DatasetIntegrityError(f"{place}: the {split} split is empty")
    warnings.extend(profile.warn(place))
    counts = {"rows": meta.sizes[split], "eval": len(records)}  # rows: that they are so many is checked
    replies: Replies | None = None
    if options.replies is not None:
        kept = 0 if records.kept is None else UNREAD
        title = f"the {split} split of {meta.name}"
        replies = read_replies(Path(options.replies), profile.ids, len(records), title, problems, kept=kept)
        raise_for(problems.finish())
        digest = hashlib.sha256(f"{digest}\n{replies.digest}\n".encode()).hexdigest()
        counts |= {"recorded": replies.recorded, "not_run": len(records) - replies.recorded}

    own, attributes = short_attributes(meta.attributes), profile.attributes.finish(meta.attributes)
    warnings.extend(profile.attributes.warn(attributes, f"{place}/{split}.jsonl"))
    label = meta.name if version is None else f"{meta.name} v{version}"
    shown, description = meta.attributes.get("display_name"), meta.attributes.get("description")
    return EvalSet(
        name=meta.name,
        format="innodata",
        digest=digest,
        question_digest=bundle.digest,  # whoever's replies: one column
        instances=make_instances(
            records, replies, profile.names, partial(to_instance, own, attributes, options.render)
        ),
        adapter_spec=to_adapter_spec(options),
        scoring=scoring,
        display_name=(f"{shown} v{version}" if version else shown) if isinstance(shown, str) else label,
        description=description if isinstance(description, str) else f"Chat dataset {label}, {split} split",
        tags=tuple(f"{key}={value}" for key, value in own.items()),
        warnings=tuple(warnings),
        counts=counts,
        # A record stands on each line: a blank one before the last is an error.
        places=Places(f"{place}/{split}.jsonl", range(1, len(records) + 1)),
        attributes=attributes,
    )


class _Profile:
    """What must be known of all records that are evaluated, noted while they are read."""

    def __init__(self, options: Options) -> None:
        self._limit = options.limit
        self._is_recorded = options.replies is not None
        self._is_about_refusals = "refusal_match" in (*(options.metrics or ()), options.main_metric)
        self.records = RowStore(Record, UNREAD)
        """Those that are evaluated."""
        self.names: list[str] | None = None if self._is_recorded else []
        """Ids of records that a model may be asked about; None where none is."""
        self._read = 0
        self.ids: dict[str, int] = {}
        """With `replies`: the place of each record, those beyond the limit included."""
        self.attributes = AttributeValues()
        self._unusable = 0
        """Records whose key `refusal` says neither true nor false."""
        self._has_refusals = False

    def add(self, record: Record) -> None:
        if self._is_recorded:
            self.ids[record.id] = self._read
            self._read += 1
        if len(self.records) == self._limit:
            return
        self.records.add(record)
        self.attributes.add(record)
        if self.names is not None:
            self.names.append(record.id)
        if self._is_about_refusals:
            from helm_ext.scoring.scores.refusal import GOLD_KEY, find_expected

            self._unusable += not isinstance(record.extra.get(GOLD_KEY, False), bool)
            self._has_refusals = self._has_refusals or "refused" in find_expected(record.extra, [record.expected])

    def warn(self, place: str) -> list[Problem]:
        """Say what keeps a run that asks for `refusal_match` from showing that a model refuses.

        Where nothing in the data is a refusal it would measure nothing but how seldom the model refuses.
        """
        found = []
        if self._unusable:
            of = f"{self._unusable} of {len(self.records)} records"
            message = f"{of} have a key 'refusal' that is neither true nor false"
            found.append(
                Problem.warning(place, message, "it is not used; what `expected` says counts", code="refusal-key")
            )
        if self._is_about_refusals and not self._has_refusals:
            message = f"refusal_match: none of the {len(self.records)} expected texts is recognised as a refusal"
            hint = 'say it in the records: "refusal": true'
            found.append(Problem.warning(place, message, hint, code="no-refusals"))
        return found


def check(path: str | Path, **arguments: Any) -> tuple[list[Problem], dict[str, int]]:
    """Check every rule of a bundle; return all problems and what was counted (`test`, `train`, `rows`).

    The other arguments are those of `Options`. A file of `replies` is checked too (`recorded`, `not_run`).
    Memory is constant but for the ids. Raises nothing for bad data, nor for bad
    arguments.
    """
    options = Options(path=path, **arguments)
    split, limit, replies = options.split, options.limit, options.replies
    found: list[Problem] = []
    for check_them in (options.require_sense, options.to_scoring):
        try:
            check_them()
        except HelmExtError as error:
            found.append(to_problem(error, str(path), code="argument"))
    counts: dict[str, int] = {}
    problems = Problems()
    ids: dict[str, int] = {}
    values, title = AttributeValues(), f"the {split} split"
    try:
        with open_bundle(path) as bundle:
            problems.extend(bundle.warnings)
            title = f"the {split} split of {bundle.meta.name}"
            for record in iter_checked(bundle, problems, counts, split):
                values.add(record)
                if replies is not None:
                    ids[record.id] = len(ids)
            problems.extend(values.warn(values.finish(bundle.meta.attributes), f"{bundle.path}/{split}.jsonl"))
    except DatasetError as error:
        found += error.problems
    else:
        if split == "train" and not counts["train"]:
            hint = "split=test is evaluated by default"
            problems.add(Location(str(path)), "the train split is empty", hint, code="empty-train")
        found += problems.finish()
    if replies is not None:
        damaged = not ids or problems.errors > 0
        count = len(ids) if limit is None else min(max(limit, 0), len(ids))
        wrong = Problems()
        recorded = read_replies(Path(replies), None if damaged else ids, count, title, wrong).recorded
        found += wrong.finish()
        if not damaged:
            counts |= {"recorded": recorded, "not_run": count - recorded}
            if 0 < recorded < count:
                message = f"{count - recorded} of {count} records of {title} have no reply; a run refuses the file"
                hint = "missing=skip scores the rest and reports how many were left out"
                found.append(Problem.warning(replies, message, hint, code="not-run"))
    return found, counts


def to_adapter_spec(options: Options) -> AdapterSpec:
    """Return how models are asked: nothing is added to what a record says."""
    from helm.benchmark.adaptation.adapter_spec import ADAPT_CHAT, ADAPT_GENERATION, AdapterSpec

    stop = options.stop if options.stop is not None else [_TEXT_STOP] if options.render == "text" else []
    nothing = dict.fromkeys(
        ("instructions", "input_prefix", "input_suffix", "reference_prefix", "reference_suffix", "output_prefix",
         "output_suffix", "instance_prefix"), ""
    )  # fmt: skip
    return AdapterSpec(
        method=ADAPT_CHAT if options.render == "chat" else ADAPT_GENERATION,
        **nothing,
        max_train_instances=0,
        num_outputs=1,
        max_tokens=options.max_tokens,
        temperature=options.temperature,
        stop_sequences=list(stop),
    )
