"""JSON Schemas of the typed dicts that rows and headers are checked with, for editors."""

from __future__ import annotations

from typing import Any

from pydantic import ConfigDict, TypeAdapter


def to_json_schema(model: Any, *configs: ConfigDict, title: str) -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a typed dict, each key described by the docstring behind it.

    `configs` are those of all typed dicts in it. They leave docstrings out otherwise: pydantic reads these from the
    source, in five times the time that it takes to make the validator, and every `validate` would pay for it.
    """
    for config in configs:
        config["use_attribute_docstrings"] = True
    try:
        schema = TypeAdapter(model).json_schema(by_alias=True)
    finally:
        for config in configs:
            del config["use_attribute_docstrings"]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": title}
