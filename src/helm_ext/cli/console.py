"""The console for tables: like `cli.output`, it lets no data steer the terminal. Apart, since rich loads slowly."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import rich.console
from rich.segment import Segment

from helm_ext.errors import printable


class Console(rich.console.Console):
    """Rich's console. Its own control sequences are added behind this place."""

    def __init__(self, *, piped: int = 120, **options: Any) -> None:
        """`piped`: how many columns tables have that go to no terminal."""
        super().__init__(emoji=False, **options)
        if not self.is_terminal:
            self.width = piped

    def _render_buffer(self, buffer: Iterable[Segment]) -> str:
        return super()._render_buffer(
            segment if segment.control else Segment(printable(segment.text), segment.style) for segment in buffer
        )
