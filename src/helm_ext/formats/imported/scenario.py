"""The base of importers' scenarios."""

from __future__ import annotations

from typing import TYPE_CHECKING

from helm_ext.formats.scenario import EvalSetScenario

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


class ImportedScenario(EvalSetScenario):
    """A run of a file that another tool wrote: rows without a usable answer are excluded and counted by default."""

    skips_missing = True

    def _load_arguments(self) -> dict[str, Any]:
        """Return the arguments of `load`; the name is for reports alone."""
        return {key: value for key, value in super()._load_arguments().items() if key != "name"}

    @classmethod
    def default_name(cls, arguments: Mapping[str, Any]) -> str:
        """Return the dataset's name: planning knows it, and gives it as `name`."""
        return str(arguments.get("name") or super().default_name(arguments))
