"""`meta.json` of a bundle: what is in it, and the dataset's attributes (docs/innodata.md, "Bundles")."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from helm_ext.errors import Location, Problems, show
from helm_ext.hub.chat_records import parse_object, suggest_rename

Split = Literal["test", "train"]
SPLITS: tuple[Split, ...] = ("test", "train")

META_NAME = "meta.json"
REQUIRED_KEYS = ("name", "test_size", "train_size", "test_digest", "train_digest")

_NAME = re.compile(r"[a-z0-9]+([._-][a-z0-9]+)*")
_MAX_NAME = 128
NAME_RULE = "lower-case letters and digits, parts joined by single . _ or -, at most 128 characters"

_DIGEST = re.compile(r"(?:sha256:)?([0-9a-f]{64})", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Meta:
    """The content of `meta.json`."""

    name: str
    sizes: dict[Split, int]
    """Records in each split."""
    digests: dict[Split, str]
    """SHA-256 of each member's bytes, 64 lower-case hex digits."""
    attributes: dict[str, Any]
    """All other keys (severity, task, ...), any JSON value, in the order of the file."""


def is_valid_name(name: str) -> bool:
    """Whether a dataset may be called so."""
    return len(name) <= _MAX_NAME and _NAME.fullmatch(name) is not None


def parse_meta(data: bytes, path: str, problems: Problems) -> Meta | None:
    """Parse `meta.json`; None when a rule is broken, each noted in `problems`."""
    value = parse_object(data, Location(path), problems)
    if value is None:
        return None
    errors = problems.errors

    def add(field: str, message: str, code: str, hint: str = "") -> None:
        problems.add(Location(path, None, field), message, code=code, hint=hint)

    for key in REQUIRED_KEYS:
        if key not in value:
            add(key, "missing", "missing-key", suggest_rename(key, value, REQUIRED_KEYS))
    name = value.get("name")
    if "name" in value and not (isinstance(name, str) and is_valid_name(name)):
        add("name", f"not a dataset name: {show(name)}", "name", NAME_RULE)
    for key in ("test_size", "train_size"):
        size = value.get(key)
        if key in value and (type(size) is not int or size < 0):
            add(key, f"expected a number of records, got {show(size)}", "size-type")
    for key in ("test_digest", "train_digest"):
        digest = value.get(key)
        if key in value and not (isinstance(digest, str) and _DIGEST.fullmatch(digest)):
            add(key, f"expected a SHA-256 of 64 hex digits, got {show(digest)}", "digest-type")
    if problems.errors > errors:
        return None
    return Meta(
        name=value["name"],
        sizes={"test": value["test_size"], "train": value["train_size"]},
        digests={"test": _plain_digest(value["test_digest"]), "train": _plain_digest(value["train_digest"])},
        attributes=_attributes(value),
    )


def _plain_digest(digest: str) -> str:
    return digest[-64:].lower()


def _attributes(value: Mapping[str, Any]) -> dict[str, Any]:
    return {key: item for key, item in value.items() if key not in REQUIRED_KEYS}
