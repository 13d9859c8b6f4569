"""The keys by which lines of a batch are known."""

from __future__ import annotations

__all__ = ["REQUEST_KEYS", "RESULT_KEYS"]

REQUEST_KEYS = frozenset({"custom_id", "method", "url", "body"})
RESULT_KEYS = frozenset({"custom_id", "response", "error"})
