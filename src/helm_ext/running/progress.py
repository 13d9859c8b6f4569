"""How far a live run is. This one shows nothing."""

from __future__ import annotations

from typing import Any

from typing_extensions import Self

from helm_ext.errors import HelmExtError

__all__ = ["LimitReached", "Progress"]


class LimitReached(HelmExtError):  # noqa: N818 - no fault: what the user asked for
    """A limit that the user set (money, tokens) is met. What was answered is in the cache."""


class Progress:
    """Rows as they finish. Its methods may be called by any thread."""

    def __init__(self, total_rows: int, **_: Any) -> None:
        self.total_rows = total_rows

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def done(self, rows: int = 1, cached: int = 0, failed: int = 0, tokens_in: int = 0, tokens_out: int = 0) -> None:
        """Count rows that are finished, those of them that came from the cache or failed, and tokens asked for now.

        Raises LimitReached.
        """

    def retrying(self, change: int) -> None:
        """Count requests that wait for another attempt: +1 when one begins to, -1 when it ends."""
