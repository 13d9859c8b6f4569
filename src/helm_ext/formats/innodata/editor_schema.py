"""The JSON Schema of records and of `meta.json`, for editors."""

from __future__ import annotations

from typing import Any

from helm_ext.hub.meta import REQUIRED_KEYS


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
