"""The scenario of `table:` entries. Its path stands in run specs: it is public."""

from __future__ import annotations

from helm_ext.formats.scenario import ImportedScenario
from helm_ext.formats.table.format import FORMAT


class TableScenario(ImportedScenario):
    """Questions of a table, and what models answered."""

    tags = ["table"]  # noqa: RUF012 - HELM's Scenario declares it so
    description = "A table of questions and answers"
    format = FORMAT
