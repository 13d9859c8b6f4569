"""The scenario of `innodata:` runs."""

from __future__ import annotations

from helm_ext.formats.innodata.format import FORMAT
from helm_ext.formats.scenario import EvalSetScenario


class InnodataScenario(EvalSetScenario):
    """A bundle of the Innodata Dataset Hub (docs/innodata.md).

    Arguments: those of `helm_ext.formats.innodata.loading.load`, with `version` resolved to a number.
    """

    format = FORMAT

    def dataset_name(self) -> str:
        """Return the dataset's name, and the version of one from the hub."""
        name, version = self.default_name(self.arguments), self.arguments.get("version")
        return f"{name} v{version}" if version is not None else name
