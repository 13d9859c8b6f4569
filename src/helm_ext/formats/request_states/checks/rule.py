"""What a rule is, and what it is told about a file when all rows were seen."""

from __future__ import annotations

from dataclasses import dataclass, field

from helm_ext.errors import Problems
from helm_ext.formats.request_states.header import Header
from helm_ext.formats.request_states.ids import Ids
from helm_ext.formats.request_states.plan import Plan
from helm_ext.formats.request_states.reading import State
from helm_ext.formats.request_states.rows import Fetch, Row
from helm_ext.formats.request_states.survey import Survey
from helm_ext.formats.request_states.tally import MOST_KEPT, Tally

__all__ = ["ALL_ROWS", "MOST_KEPT", "File", "Rule"]

ALL_ROWS = ("request_states",)
"""The place of a problem that is about all rows."""


@dataclass
class File:
    """A file of which all rows were seen, and what is planned with it."""

    plan: Plan
    survey: Survey
    ids: Ids
    problems: Problems
    seed: int
    counts: dict[str, int] = field(default_factory=dict)
    """What was counted, for the user."""
    is_imported: bool = False
    """`Reader.is_imported`."""
    fetch: Fetch | None = None
    """Returns rows, where they are stored."""


class Rule(Tally):
    """Sees rows, then reports what is wrong or odd. A rule overrides what it needs."""

    sees_all_states = False
    """Whether it also looks at rows of which a problem was reported, and at further states of HELM's about one row."""

    def __init__(self, header: Header) -> None:
        self.header = header

    def see(self, row: Row, state: State) -> None:
        """Look at a row; `state` is what it was made of. Written for speed: this runs once a row."""

    def see_incomplete(self, row: Row, requests: tuple[int, int]) -> None:
        """Look at a row that lacks requests: how many are recorded with log-probabilities, how many are needed."""

    def report(self, file: File) -> None:
        """Report, when all rows were seen."""
