"""Format 1: a JSON file with `adapter_spec` and `request_states` (or JSON Lines), lowered to an EvalSet.

    bytes ──reading──▶ header ──header──▶ settings
              └──────▶ states ──rows────▶ rows ──checks, plan──▶ problems, plan ──instances──▶ EvalSet

`load` raises with every problem it finds; `check` returns them. Every key, its default and HELM's counterpart, and what
is decided where a file is silent: docs/adapter_spec.md.
"""

from __future__ import annotations

from helm_ext.formats.request_states.load import check, json_schema, load

__all__ = ["check", "json_schema", "load"]
