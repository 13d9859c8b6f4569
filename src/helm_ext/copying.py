"""Copies of HELM's dataclasses with other values, several times as fast as `dataclasses.replace`.

`replace` calls `__init__`, and a frozen dataclass sets each field through `object.__setattr__`. Where some dozen copies
are made for every row, that was a fifth of a run. Objects that differ little from one another are best made as copies.
"""

from __future__ import annotations

from typing import Any, TypeVar

__all__ = ["copy_with"]

T = TypeVar("T")


def copy_with(value: T, /, **changes: Any) -> T:
    """Return a copy of `value` with other values for some of its fields; nothing is validated.

    For dataclasses without slots. `__post_init__` is not called, and attributes that are no fields are copied too. The
    classes of HELM that this is used for allow it: tests/contract/test_helm_classes.py.
    """
    copied = object.__new__(type(value))
    # A new dict rather than a copy of it: attributes are read from a copy, which shares its keys, four times as slowly.
    object.__setattr__(copied, "__dict__", {**value.__dict__, **changes})
    return copied
