"""How stats are called that stand beside another one. Imports nothing: whoever reads a run's files needs the names."""

__all__ = ["DIFFERS", "ENDS", "UNSCORED"]

DIFFERS = "_differs"
"""Ends the name of the stat that says on which part of the rows a source's score and ours differ."""

UNSCORED = "_unscored"
"""Ends the name of the stat that says how many rows a source could not score: judgements that it could not read."""

ENDS = ("@ci_low", "@ci_high")
"""End the names of the stats that hold the lower and the upper end of a metric's interval."""
