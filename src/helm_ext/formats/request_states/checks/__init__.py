"""What is said about a file beyond the shape of its rows: one class a rule, which sees rows and then reports problems.

Each rule keeps a few counts and the first row it is about, however many rows there are (ids and inputs are compared:
some bytes a row).
"""

from __future__ import annotations

from helm_ext.formats.request_states.checks.completions import (
    IncompleteRecordings,
    MissingRecordings,
    MixedRecordings,
    ReasonedAnswers,
    UnmappedCompletions,
)
from helm_ext.formats.request_states.checks.groups import Cluster, Groups
from helm_ext.formats.request_states.checks.keys import Ids, NonfiniteNumbers, Scales, UnknownPerturbation
from helm_ext.formats.request_states.checks.rule import File, Rule
from helm_ext.formats.request_states.checks.splits import (
    MissingSplit,
    Overlap,
    RecordedTrain,
    SelectedSplits,
    TooFewRows,
    Undifferentiated,
)
from helm_ext.formats.request_states.checks.strays import StrayKeys
from helm_ext.formats.request_states.checks.texts import (
    DoubledPrompt,
    EmptyAnswers,
    NoCorrectReference,
    SeparateSegments,
    StopsInReferences,
    UntaggedReference,
    UnusedMapping,
)
from helm_ext.formats.request_states.header import Header
from helm_ext.formats.request_states.reading import State
from helm_ext.formats.request_states.rows import Row
from helm_ext.formats.request_states.tally import Tally

__all__ = ["Checks", "File"]

_RULES: tuple[type[Rule], ...] = (
    UnusedMapping,
    TooFewRows,
    SelectedSplits,
    NoCorrectReference,
    UnknownPerturbation,
    MissingSplit,
    Overlap,
    RecordedTrain,
    Undifferentiated,
    DoubledPrompt,
    UntaggedReference,
    NonfiniteNumbers,
    Ids,
    MissingRecordings,
    IncompleteRecordings,
    MixedRecordings,
    UnmappedCompletions,
    StrayKeys,
    StopsInReferences,
    EmptyAnswers,
    SeparateSegments,
    ReasonedAnswers,
    Groups,
    Cluster,
    Scales,
)
"""Problems of one line are reported in this order."""

_READ_COMPLETIONS = (UnmappedCompletions, ReasonedAnswers)


class Checks(Tally):
    """The rules of one file."""

    def __init__(self, header: Header, *, reads_completions: bool) -> None:
        """`reads_completions`: whether it is worth time to read every completion as the metrics will."""
        self._rules = [kind(header) for kind in _RULES if reads_completions or kind not in _READ_COMPLETIONS]
        self._see = [rule.see for rule in self._rules if type(rule).see is not Rule.see]
        self._see_all = [rule.see for rule in self._rules if rule.sees_all_states]

    def see(self, row: Row, state: State, *, is_new: bool) -> None:
        """Show a row to the rules. `is_new`: it is right, and no further state about a row that was seen."""
        for see in self._see if is_new else self._see_all:
            see(row, state)

    def see_incomplete(self, row: Row, requests: tuple[int, int]) -> None:
        """Show the rules a row that lacks requests."""
        for rule in self._rules:
            rule.see_incomplete(row, requests)

    def merge(self, other: Checks) -> None:
        """Add what the rules have kept of the rows that follow."""
        for rule, following in zip(self._rules, other._rules, strict=True):
            rule.merge(following)

    def report(self, file: File) -> None:
        """Let every rule report."""
        for rule in self._rules:
            rule.report(file)
