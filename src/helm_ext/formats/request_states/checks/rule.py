"""What a rule is, and what it is told about a file when all rows were seen."""

from __future__ import annotations

from dataclasses import dataclass, field

from helm_ext.errors import Problems
from helm_ext.formats.request_states.header import Header
from helm_ext.formats.request_states.ids import Ids
from helm_ext.formats.request_states.plan import Plan
from helm_ext.formats.request_states.profile import Profile
from helm_ext.formats.request_states.reading import State
from helm_ext.formats.request_states.rows import Fetch, Row
from helm_ext.formats.request_states.tally import Tally


@dataclass
class File:
    """A file of which all rows were seen, and what is planned with it."""

    plan: Plan
    profile: Profile
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
    """A rule that must see rows for itself. Others are functions of what is known of all rows."""

    def __init__(self, header: Header) -> None:
        """Begin with a file."""

    def see(self, row: Row, state: State) -> None:
        """Look at a row; `state` is what it was made of. Written for speed: this runs once a row."""

    def report(self, file: File) -> None:
        """Report, when all rows were seen."""
