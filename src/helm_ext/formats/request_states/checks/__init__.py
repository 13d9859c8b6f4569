"""What is said about a file beyond the shape of its rows: one table of rules, which report problems in its order.

A rule is a function of what is known of all rows; those that must look at rows for themselves are classes, and keep a
few counts and the first row that they are about, however many rows there are.
"""

from __future__ import annotations

from helm_ext.formats.request_states.checks import rules
from helm_ext.formats.request_states.checks.completions import ReasonedAnswers, UnmappedCompletions
from helm_ext.formats.request_states.checks.groups import Groups, clusters
from helm_ext.formats.request_states.checks.rule import File, Rule
from helm_ext.formats.request_states.checks.strays import StrayKeys
from helm_ext.formats.request_states.header import Header
from helm_ext.formats.request_states.reading import State
from helm_ext.formats.request_states.rows import Row
from helm_ext.formats.request_states.tally import Tally

__all__ = ["Checks", "File"]

_RULES = (
    rules.unused_mapping,
    rules.too_few_rows,
    rules.selected_splits,
    rules.no_correct_reference,
    rules.UnknownPerturbation,
    rules.missing_split,
    rules.Overlap,
    rules.recorded_train,
    rules.undifferentiated,
    rules.doubled_prompt,
    rules.untagged_reference,
    rules.nonfinite_numbers,
    rules.ids,
    rules.missing_recordings,
    rules.incomplete_recordings,
    rules.mixed_recordings,
    UnmappedCompletions,
    StrayKeys,
    rules.stops_in_references,
    rules.empty_answers,
    rules.separate_segments,
    ReasonedAnswers,
    Groups,
    clusters,
    rules.scales,
)
"""Problems of one line are reported in this order."""

_READ_COMPLETIONS = (UnmappedCompletions, ReasonedAnswers)


class Checks(Tally):
    """The rules of one file."""

    def __init__(self, header: Header, *, reads_completions: bool) -> None:
        """`reads_completions`: whether it is worth time to read every completion as the metrics will."""
        classes = [kind for kind in _RULES if isinstance(kind, type)]
        self.rules: dict[object, Rule] = {
            kind: kind(header) for kind in classes if reads_completions or kind not in _READ_COMPLETIONS
        }
        self._see = tuple(rule.see for rule in self.rules.values())

    def see(self, row: Row, state: State) -> None:
        """Show a row to the rules."""
        for see in self._see:
            see(row, state)

    def report(self, file: File) -> None:
        """Let every rule report."""
        for kind in _RULES:
            if kind in self.rules:
                self.rules[kind].report(file)
            elif not isinstance(kind, type):
                kind(file)
