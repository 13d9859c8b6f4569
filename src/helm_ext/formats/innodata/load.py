"""A bundle as an EvalSet: conversations for HELM's chat method, or written out as text.

chat    messages are sent as they are, system included; the model's own template makes the prompt
text    System: You are terse.⏎⏎User: 2+2?⏎⏎Assistant: 4⏎⏎User: 3+3?⏎⏎Assistant:
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from helm_ext.errors import (
    DatasetError,
    DatasetIntegrityError,
    HelmExtError,
    Location,
    Problem,
    RunEntryError,
    raise_for,
    to_problem,
)
from helm_ext.evalset import EXTRA_KEY, EvalSet, Recorded, RowExtra, Scoring
from helm_ext.formats.innodata.replies import check_replies, read_replies
from helm_ext.hub.bundle import Bundle, check_records, open_bundle
from helm_ext.hub.meta import Meta, Split
from helm_ext.hub.records import Message, ProblemList, Record
from helm_ext.parsing import compile_pattern

if TYPE_CHECKING:
    from helm.benchmark.scenarios.scenario import Instance

    from helm_ext.hub.archive import Limits

__all__ = ["METRICS", "check", "load", "render_text"]

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

TEXT_STOP = "\n\nUser:"
"""With `render="text"` a model that goes on to write the user's next turn is stopped there."""

_ROLE_TITLES = {"system": "System", "user": "User", "assistant": "Assistant"}
_MAX_VALUES = 20
_MAX_LENGTH = 40
"""Characters of an attribute's name, and of a value: both stand in the titles of tables and columns."""
_NOT_GROUPED = ("description", "display_name", "license", "source", "url", "author", "citation")
"""Attributes that describe a dataset and do not divide it."""


def load(
    *,
    dataset: str | None = None,
    path: str | Path | None = None,
    version: int | str | None = None,
    split: Split = "test",
    hub: str | None = None,
    render: Literal["chat", "text"] = "chat",
    replies: str | Path | None = None,
    metrics: Sequence[str] | None = None,
    main_metric: str | None = None,
    max_tokens: int = 512,
    temperature: float = 0.0,
    stop: Sequence[str] | None = None,
    limit: int | None = None,
    extract: str | None = None,
    strip: bool = False,
    lower: bool = False,
) -> EvalSet:
    """Return the records of one split, ready for HELM.

    Exactly one of `dataset` (a name on the hub, with `version`: a number, a digest or the start of one; newest by
    default) and `path` (a bundle). `replies` is a JSON Lines file of `{id, reply}` to score instead of asking a model;
    the EvalSet's digest then covers both files. `limit` keeps the first rows. `metrics`, `main_metric`, `extract`,
    `strip` and `lower` are fields of `Scoring`.

    Raises DatasetError with all problems, HubError, RunEntryError.
    """
    _check_options(dataset, path, version, hub, split, render, limit, max_tokens)
    chosen = _make_scoring(metrics, main_metric, extract, strip, lower)
    warnings: list[Problem] = []
    if dataset is not None:
        from helm_ext.hub import open_version, resolve

        resolved = resolve(dataset, version, hub)
        if resolved.notice:
            where = Location(f"{dataset}@{resolved.version}")
            warnings.append(Problem(resolved.notice, where, severity="warning", code="newer-version"))
        with open_version(resolved, hub) as bundle:
            records = list(bundle.records(split))
            meta, digest = bundle.meta, bundle.digest
        number: int | None = resolved.version
    else:
        assert path is not None
        number = None
        with open_bundle(path) as bundle:
            warnings.extend(bundle.warnings)
            records = _check_and_read(bundle, split)
            meta, digest = bundle.meta, bundle.digest
    if not records:
        raise DatasetIntegrityError(f"{dataset or path}: the {split} split is empty")
    counts = {"rows": len(records)}
    ids = [record.id for record in records]
    if limit is not None:
        records = records[:limit]
    answers: dict[str, Recorded] | None = None
    question_digest = digest  # whoever's replies: one column
    if replies is not None:
        answers, digest = read_replies(Path(replies), ids, len(records), _title(split, meta), digest)
        counts["recorded"] = len(answers)
        counts["not_run"] = len(records) - len(answers)
    counts["eval"] = len(records)
    if "refusal_match" in (*(metrics or ()), main_metric):
        warnings.extend(_find_missing_refusals(records, str(dataset or path)))
    return _make_evalset(
        records, meta, number, digest, split, render, answers, counts, warnings,
        question_digest=question_digest,
        scoring=chosen,
        decoding={"max_tokens": max_tokens, "temperature": temperature,
                  "stop_sequences": list(stop if stop is not None else [TEXT_STOP] if render == "text" else [])},
    )  # fmt: skip


def check(
    path: str | Path,
    *,
    expected_name: str | None = None,
    limits: Limits | None = None,
    dataset: str | None = None,
    version: int | str | None = None,
    split: Split = "test",
    hub: str | None = None,
    render: Literal["chat", "text"] = "chat",
    replies: str | Path | None = None,
    metrics: Sequence[str] | None = None,
    main_metric: str | None = None,
    max_tokens: int = 512,
    limit: int | None = None,
    extract: str | None = None,
    strip: bool = False,
    lower: bool = False,
    missing: Literal["error", "skip"] = "error",  # noqa: ARG001 - decided by the run, see helm_ext.adaptation
) -> tuple[list[Problem], dict[str, int]]:
    """Check every rule of a bundle; return all problems and what was counted (`test`, `train`, `rows`).

    The other arguments are those of the run entry. A file of `replies` is checked too (`recorded`, `not_run`).
    Memory is constant but for eight bytes a record, with `replies` the records of the split. Raises nothing for bad
    data, nor for bad arguments.
    """
    found = _argument_problems(
        path, lambda: _check_options(dataset, path, version, hub, split, render, limit, max_tokens)
    ) + _argument_problems(path, lambda: _make_scoring(metrics, main_metric, extract, strip, lower))
    counts: dict[str, int] = {}
    problems = ProblemList()
    records: list[Record] = []
    of = f"the {split} split"
    try:
        with open_bundle(path, expected_name=expected_name, limits=limits) as bundle:
            problems.kept.extend(bundle.warnings)
            of = _title(split, bundle.meta)
            records = check_records(bundle, problems, counts, keep=None if replies is None else split)
    except DatasetError as error:
        message = error.message.removeprefix(f"{path}: ")
        found += error.problems or [Problem(message, Location(str(path)), code="unreadable", kind=type(error))]
    else:
        if split == "train" and not counts["train"]:
            problems.add("the train split is empty", Location(str(path)), code="empty-train",
                         kind=DatasetIntegrityError, hint="split=test is evaluated by default")  # fmt: skip
        found += problems.all(str(path))
    if replies is not None:
        damaged = not records or problems.has_errors
        ids = None if damaged else [record.id for record in records]
        count = len(records) if limit is None else min(max(limit, 0), len(records))
        wrong, recorded = check_replies(Path(replies), ids, count, of)
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


def _check_options(
    dataset: str | None,
    path: str | Path | None,
    version: int | str | None,
    hub: str | None,
    split: str,
    render: str,
    limit: int | None,
    max_tokens: int,
) -> None:
    if (dataset is None) == (path is None):
        raise RunEntryError("innodata: exactly one of dataset and path is needed")
    if path is not None and version is not None:
        raise RunEntryError(
            f"version={version}: a file has no versions\n  hint: dataset=NAME,version={version} reads from the hub"
        )
    if path is not None and hub is not None:
        raise RunEntryError(f"hub={hub}: a file is in no hub\n  hint: dataset=NAME,hub={hub} reads from the hub")
    if split not in ("test", "train"):
        raise RunEntryError(f"split={split}: expected test or train")
    if render not in ("chat", "text"):
        raise RunEntryError(f"render={render}: expected chat or text")
    for name, number in (("limit", limit), ("max_tokens", max_tokens)):
        if number is not None and (type(number) is not int or number < 1):
            raise RunEntryError(f"{name}={number}: expected a positive whole number")


def _make_scoring(
    metrics: Sequence[str] | None, main_metric: str | None, extract: str | None, strip: bool, lower: bool
) -> Scoring:
    """Return the Scoring; the main metric is always measured, and is the first of `metrics` if it is not given."""
    from helm_ext.scoring.registry import find_unnamable, get_scores, main_stat

    if extract is not None:
        try:
            compile_pattern(extract)
        except ValueError as error:
            raise RunEntryError(f"extract={extract}: {error}") from error
    chosen = tuple(dict.fromkeys(metrics or METRICS))
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
    main_metric = main_stat(main_metric)
    return Scoring(chosen, main_metric, extract=extract, strip=strip, lower=lower)


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
        yield Problem(message, where, hint, "warning", "refusal-key")
    if not any(gold_refuses(record.extra, record.expected) for record in records):
        message = f"refusal_match: none of the {len(records)} expected texts is recognised as a refusal"
        hint = f'say it in the records: "{GOLD_KEY}": true, or give phrases of your own (HELM_EXT_REFUSALS=FILE)'
        yield Problem(message, where, hint, "warning", "no-refusals")


def _check_and_read(bundle: Bundle, split: Split) -> list[Record]:
    """Read a file that no hub has checked: every rule, over both splits."""
    problems = ProblemList()
    records = check_records(bundle, problems, {}, keep=split)
    raise_for(problems.all(bundle.path))
    return records


def _make_evalset(
    records: Sequence[Record],
    meta: Meta,
    version: int | None,
    digest: str,
    split: Split,
    render: str,
    answers: Mapping[str, Recorded] | None,
    counts: dict[str, int],
    warnings: Sequence[Problem],
    *,
    question_digest: str,
    scoring: Scoring,
    decoding: dict[str, Any],
) -> EvalSet:
    from helm.benchmark.adaptation.adapter_spec import ADAPT_CHAT, ADAPT_GENERATION, AdapterSpec

    attributes = find_attributes(meta.attributes, records)
    nothing = dict.fromkeys(
        ("instructions", "input_prefix", "input_suffix", "reference_prefix", "reference_suffix", "output_prefix",
         "output_suffix", "instance_prefix"), ""
    )  # fmt: skip
    adapter_spec = AdapterSpec(
        method=ADAPT_CHAT if render == "chat" else ADAPT_GENERATION,
        **nothing,
        max_train_instances=0,
        num_outputs=1,
        **decoding,
    )
    label = meta.name if version is None else f"{meta.name} v{version}"
    shown = meta.attributes.get("display_name")
    description = meta.attributes.get("description")
    return EvalSet(
        name=meta.name,
        format="innodata",
        digest=digest,
        question_digest=question_digest,
        instances=[_to_instance(record, meta, attributes, render, answers) for record in records],
        adapter_spec=adapter_spec,
        scoring=scoring,
        display_name=(f"{shown} v{version}" if version else shown) if isinstance(shown, str) else label,
        description=description if isinstance(description, str) else f"Chat dataset {label}, {split} split",
        tags=tuple(f"{key}={text}" for key, value in meta.attributes.items() if (text := _as_value(key, value))),
        warnings=tuple(warnings),
        counts=counts,
        attributes=attributes,
    )


def _to_instance(
    record: Record,
    meta: Meta,
    attributes: Mapping[str, Sequence[str]],
    render: str,
    answers: Mapping[str, Recorded] | None,
) -> Instance:
    from helm.benchmark.scenarios.scenario import CORRECT_TAG, TEST_SPLIT, Input, Instance, Output, Reference

    extra: RowExtra = {}
    if record.extra:
        extra["data"] = record.extra
    values = {**meta.attributes, **record.extra}
    own = {key: text for key in attributes if (text := _as_value(key, values.get(key)))}
    if own:
        extra["attributes"] = own
    if answers is not None:
        extra["only"] = "recorded"  # who names replies wants them scored: another model is refused, not asked
        extra["recorded"] = answers.get(record.id, {"status": "not_run", "states": []})
    if render == "chat":
        shown = Input(messages=[{"role": m["role"], "content": m["content"]} for m in record.messages])
    else:
        shown = Input(text=render_text(record.messages))
    return Instance(
        input=shown,
        references=[Reference(Output(record.expected), tags=[CORRECT_TAG])],
        split=TEST_SPLIT,
        id=record.id,
        extra_data={EXTRA_KEY: extra} if extra else {EXTRA_KEY: {}},
    )


def render_text(messages: Iterable[Message]) -> str:
    """Write a conversation as a text prompt that ends where the assistant's reply begins."""
    turns = [f"{_ROLE_TITLES[message['role']]}: {message['content']}" for message in messages]
    return "\n\n".join([*turns, "Assistant:"])


def find_attributes(meta_attributes: Mapping[str, Any], records: Sequence[Record]) -> dict[str, tuple[str, ...]]:
    """Return what reports can be grouped by: each attribute and the values that occur, sorted.

    An attribute is a key of `meta.json` or an extra key of records, short itself, whose values are all short strings,
    whole numbers or true/false, with at most 20 different ones. A record's own value goes before the dataset's; with
    null or "" a record has none.
    """
    values: dict[str, set[str]] = {}
    unfit: set[str] = set()
    for record in records:
        for key, value in {**meta_attributes, **record.extra}.items():
            if value is None or (isinstance(value, str) and not value.strip()):
                continue
            text = _as_value(key, value)
            if text is None:
                unfit.add(key)
            else:
                values.setdefault(key, set()).add(text)
    return {
        key: tuple(sorted(values[key]))
        for key in sorted(values)
        if key not in unfit and len(values[key]) <= _MAX_VALUES
    }


def _as_value(key: str, value: Any) -> str | None:
    """Return an attribute's value as it is shown, or None for one that is no short scalar, or has no short name."""
    if key in _NOT_GROUPED or not isinstance(value, (str, int)) or not _is_short(key):
        return None
    text = str(value).lower() if isinstance(value, bool) else str(value).strip()
    return text if _is_short(text) else None


def _is_short(text: str) -> bool:
    return 0 < len(text) <= _MAX_LENGTH and text.isprintable()
