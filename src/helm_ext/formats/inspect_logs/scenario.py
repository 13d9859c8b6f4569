"""The HELM Scenario of `inspect:` entries."""

from __future__ import annotations

from helm_ext.formats.inspect_logs.format import FORMAT
from helm_ext.formats.scenario import ImportedScenario


class InspectScenario(ImportedScenario):
    """A run of a log that inspect_ai wrote."""

    name = "inspect"
    format = FORMAT
