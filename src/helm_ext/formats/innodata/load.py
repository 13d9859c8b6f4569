"""A bundle as an EvalSet: conversations for HELM's chat method, or written out as text.

chat    messages are sent as they are, system included; the model's own template makes the prompt
text    System: You are terse.⏎⏎User: 2+2?⏎⏎Assistant: 4⏎⏎User: 3+3?⏎⏎Assistant:
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from helm_ext.errors import (
    DatasetIntegrityError,
    DatasetNotFoundError,
    DatasetSchemaError,
    Location,
    Problem,
    RunEntryError,
    raise_for,
    show,
)
from helm_ext.evalset import EXTRA_KEY, EvalSet, Recorded, RowExtra, Scoring
from helm_ext.formats.innodata.bundle import Bundle, check_records, open_bundle
from helm_ext.formats.innodata.meta import REQUIRED_KEYS, Meta, Split
from helm_ext.formats.innodata.records import Message, ProblemList, Record, read_json_object, read_lines

if TYPE_CHECKING:
    from helm.benchmark.scenarios.scenario import Instance

__all__ = ["METRICS", "json_schema", "load", "render_text"]

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
_MAX_VALUE_LENGTH = 40
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
    **scoring: Any,
) -> EvalSet:
    """Return the records of one split, ready for HELM.

    Exactly one of `dataset` (a name on the hub, with `version`: a number, a digest or the start of one; newest by
    default) and `path` (a bundle). `replies` is a JSON Lines file of `{id, reply}` to score instead of asking a model;
    the EvalSet's digest then covers both files. `limit` keeps the first rows. `scoring` takes the fields of `Scoring`
    (`extract`, `strip`, `lower`).

    Raises DatasetError with all problems, HubError, RunEntryError.
    """
    _check_options(dataset, path, version, split, render, limit)
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
    if limit is not None:
        records = records[:limit]
    answers: dict[str, Recorded] | None = None
    if replies is not None:
        answers, digest = _read_replies(Path(replies), {record.id for record in records}, meta, digest, limit)
        counts["recorded"] = len(answers)
        counts["not_run"] = len(records) - len(answers)
    counts["eval"] = len(records)
    return _make_evalset(
        records, meta, number, digest, split, render, answers, counts, warnings,
        scoring=Scoring(metrics=tuple(metrics or METRICS), main_metric=main_metric or MAIN_METRIC, **scoring),
        decoding={"max_tokens": max_tokens, "temperature": temperature,
                  "stop_sequences": list(stop if stop is not None else [TEXT_STOP] if render == "text" else [])},
    )  # fmt: skip


def _check_options(
    dataset: str | None,
    path: str | Path | None,
    version: int | str | None,
    split: str,
    render: str,
    limit: int | None,
) -> None:
    if (dataset is None) == (path is None):
        raise RunEntryError("innodata: exactly one of dataset and path is needed")
    if path is not None and version is not None:
        raise RunEntryError(
            f"version={version}: a file has no versions\n  hint: dataset=NAME,version={version} reads from the hub"
        )
    if split not in ("test", "train"):
        raise RunEntryError(f"split={split}: expected test or train")
    if render not in ("chat", "text"):
        raise RunEntryError(f"render={render}: expected chat or text")
    if limit is not None and (type(limit) is not int or limit < 1):
        raise RunEntryError(f"limit={limit}: expected a positive whole number")


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

    An attribute is a key of `meta.json` or an extra key of records whose values are all short strings, whole numbers or
    true/false, with at most 20 different ones. A record's own value goes before the dataset's.
    """
    values: dict[str, set[str]] = {}
    unfit: set[str] = set()
    for record in records:
        for key, value in {**meta_attributes, **record.extra}.items():
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
    """Return an attribute's value as it is shown, or None for one that is no short scalar."""
    if key in _NOT_GROUPED or not isinstance(value, (str, int)):
        return None
    text = str(value).lower() if isinstance(value, bool) else str(value).strip()
    return text if 0 < len(text) <= _MAX_VALUE_LENGTH and text.isprintable() else None


# Recorded replies


def _read_replies(
    path: Path, ids: set[str], meta: Meta, bundle_digest: str, limit: int | None
) -> tuple[dict[str, Recorded], str]:
    """Read `{id, reply}` lines; return them by id, and a digest of both files."""
    problems = ProblemList()
    hashes = hashlib.sha256()
    replies: dict[str, Recorded] = {}
    lines: dict[str, int] = {}
    for location, value in _read_objects(path, hashes, problems):
        record_id = _check_reply(value, location, problems)
        if record_id is None:
            continue
        if record_id in lines:
            problems.add(f"{show(record_id)} occurs already in line {lines[record_id]}",
                         Location(location.path, location.line, "id"), code="duplicate-id",
                         kind=DatasetIntegrityError)  # fmt: skip
            continue
        lines[record_id] = location.line or 0
        if record_id in ids:
            if value["reply"] is not None:
                replies[record_id] = _to_recorded(value)
        elif limit is None:
            problems.add(f"{show(record_id)} is no record of {meta.name}",
                         Location(location.path, location.line, "id"), code="unknown-id",
                         kind=DatasetIntegrityError, hint="replies belong to one split of one dataset")  # fmt: skip
    raise_for(problems.all(str(path)))
    digest = hashlib.sha256(f"{bundle_digest}\n{hashes.hexdigest()}\n".encode()).hexdigest()
    return replies, digest


def _read_objects(path: Path, hashes: Any, problems: ProblemList) -> Iterator[tuple[Location, dict[str, Any]]]:
    try:
        with path.open("rb") as file:
            for number, line in read_lines(file, hashes):
                location = Location(str(path), number)
                if line is None:
                    problems.add("the line is too long", location, code="line-too-long")
                elif line.strip():
                    value = read_json_object(line, location, problems)
                    if value is not None:
                        yield location, value
    except OSError as error:
        raise DatasetNotFoundError(f"{path}: replies cannot be read: {error.strerror}") from error


_REPLY_KEYS = ("id", "reply", "request_time", "request_datetime")


def _check_reply(value: Mapping[str, Any], location: Location, problems: ProblemList) -> str | None:
    before = len(problems.kept) + problems.left_out

    def add(field: str, message: str, code: str, hint: str = "") -> None:
        problems.add(message, Location(location.path, location.line, field), code=code, hint=hint,
                     kind=DatasetSchemaError)  # fmt: skip

    for key in value:
        if key not in _REPLY_KEYS:
            add(key, "unknown key", "unknown-key", f"known: {', '.join(_REPLY_KEYS)}")
    if not isinstance(value.get("id"), str):
        add("id", f"expected a string, got {show(value.get('id'))}" if "id" in value else "missing", "id-type")
    if "reply" not in value:
        add("reply", "missing", "missing-key", "write null for a record that was not run")
    elif not isinstance(value["reply"], str) and value["reply"] is not None:
        add("reply", f"expected a string or null, got {show(value['reply'])}", "reply-type")
    for key in ("request_time", "request_datetime"):
        number = value.get(key)
        if number is not None and (isinstance(number, bool) or not isinstance(number, (int, float))):
            add(key, f"expected a number, got {show(number)}", "time-type")
    return value["id"] if len(problems.kept) + problems.left_out == before else None


def _to_recorded(value: Mapping[str, Any]) -> Recorded:
    result: dict[str, Any] = {"success": True, "completions": [{"text": value["reply"]}]}
    for key in ("request_time", "request_datetime"):
        if value.get(key) is not None:
            result[key] = value[key]
    return {"status": "ok", "states": [{"result": result}]}


# JSON Schema


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of a record (a line of `test.jsonl`) and of `meta.json`.

    JSON Schema cannot say that user and assistant alternate, nor that ids are unique: `helm-ext validate` does.
    """
    message = {
        "type": "object",
        "properties": {"role": {"enum": ["system", "user", "assistant"]}, "content": {"type": "string"}},
        "required": ["role", "content"],
        "additionalProperties": False,
    }
    conversation = {
        "description": "system only first; user and assistant alternate; user first and last",
        "type": "array",
        "minItems": 1,
        "items": {"properties": {"role": {"enum": ["user", "assistant"]}}},
        "prefixItems": [{"$ref": "#/$defs/message", "properties": {"role": {"enum": ["system", "user"]}}}],
    }
    conversation["items"] = {"allOf": [{"$ref": "#/$defs/message"}, conversation["items"]]}
    record = {
        "type": "object",
        "properties": {
            "id": {"type": "string", "minLength": 1, "description": "unique across both splits"},
            "messages": conversation,
            "expected": {"type": "string", "description": "the expected reply; may be empty"},
        },
        "required": ["id", "messages", "expected"],
    }
    digest = {"type": "string", "pattern": "^([sS][hH][aA]256:)?[0-9a-fA-F]{64}$"}
    size = {"type": "integer", "minimum": 0}
    properties: dict[str, Any] = dict.fromkeys(REQUIRED_KEYS, digest)
    properties.update(
        name={"type": "string", "pattern": "^[a-z0-9]+([._-][a-z0-9]+)*$", "maxLength": 128},
        test_size={**size, "minimum": 1},
        train_size=size,
    )
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Innodata dataset: a record of test.jsonl or train.jsonl, or meta.json",
        "anyOf": [{"$ref": "#/$defs/record"}, {"$ref": "#/$defs/meta"}],
        "$defs": {
            "message": message,
            "record": record,
            "meta": {"type": "object", "properties": properties, "required": list(REQUIRED_KEYS)},
        },
    }
