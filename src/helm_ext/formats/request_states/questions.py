"""The digest of what a file asks and what is right, whoever answered."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b, sha256
from typing import TYPE_CHECKING, Any

from helm_ext.evalset import EXTRA_KEY
from helm_ext.files import canonical_json

if TYPE_CHECKING:
    from helm_ext.formats.request_states.rows import Row

_OF_ANSWERS = frozenset({"scoring", "judgements", "likelihoods", "source_scores", "source_unscored", "left_out"})
"""Keys of `RowExtra` that say something of an answer, or of whose it is."""


def digest_question(row: Row) -> int:
    """Return a number for what a row asks and what is right. What a run wrote of its answer is no part of it."""
    instance, extra_data = row.instance, row.instance.get("extra_data")
    if isinstance(extra_data, dict) and isinstance(extra := extra_data.get(EXTRA_KEY), dict):
        asked = {key: value for key, value in extra.items() if key not in _OF_ANSWERS}
        instance = {**instance, "extra_data": {**extra_data, EXTRA_KEY: asked}}
    content = canonical_json([instance, row.labels if row.labels_from != "prefix" else None])
    return int.from_bytes(blake2b(content, digest_size=32).digest(), "big")


def digest_questions(header: Mapping[str, Any], rows: int) -> str:
    """Return the digest of a file without its completions and without whose they are: `EvalSet.question_digest`.

    It says which runs are comparable. Files that hold the completions of several models agree in it; the order of the
    rows (`rows` is the sum of their numbers) does not count. The header does, for it makes the prompts and the scores.
    """
    spec = {key: value for key, value in header["adapter_spec"].items() if key not in ("model", "model_deployment")}
    content = canonical_json([spec, header.get("scoring"), f"{rows:x}"])
    return sha256(content).hexdigest()
