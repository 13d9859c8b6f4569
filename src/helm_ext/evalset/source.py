"""Where the completions of an imported file come from, and what the tool that wrote it said of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class SourceScore:
    """What a source reports of one of its scores, over all rows."""

    mean: float | None = None
    """As it is reported; None where there is no report."""
    lower_is_better: bool | None = False
    """None: nobody says, as of a spread."""
    no_mean: str = ""
    """Why what is reported is no mean of the rows' scores; "" where it is one. No row has such a score: it is shown as
    it is reported, and there is no interval of it."""
    bounds: tuple[float, float] | None = None
    """The least and the greatest value that a row may have; None where nobody says."""


@dataclass(kw_only=True)
class Source:
    """Where rows come from. Stands in the run's spec, in the arguments of its metric."""

    tool: str
    """The format's name: the source's scores are stats named `TOOL_SCORE`."""
    version: str = ""
    model: str = ""
    """As the source spells it."""
    task: str = ""
    """Name of the dataset."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Shots, decoding parameters and the like, as the source spells them. JSON."""
    scores: dict[str, SourceScore] = field(default_factory=dict)
    """Every name that occurs in a row's scores of the source, and those of what it reports of all rows together."""
    main: str = ""
    """Name of the score that the source itself is headed by: the main metric, unless the run entry names another. ""
    where it has none. Known when the last row was read, as `scores` and `counts` are."""
    main_reason: str = ""
    """Why that one, in words, where there are others: "the first of metric_list"."""
    counts: dict[str, int] = field(default_factory=dict)
    """What the importer counts beyond the rows themselves: `lines`, `duplicates`, `edited`, ... Complete when the last
    row was read."""
    notes: Sequence[str] = ()
    """What a reader of the score must know, in words: "8 of 5,000 rows are in the log". Become warnings."""

    def stat_name(self, score: str) -> str:
        """Return the name of the stat that holds the source's own score: `lm_eval_exact_match`.

        lm-eval's filter "none" is no filter, and is left out.
        """
        return f"{self.tool}_{score.removesuffix(',none')}"

    def find_stat(self, name: str) -> str | None:
        """Return the stat of the score that goes by this name: the stat's own, or the source's, also without "none".

        HELM splits run entries at commas; there a name with one is written with `%2C`.
        """
        name = name.replace("%2C", ",")
        known = [(score, self.stat_name(score)) for score in self.scores]
        return next((stat for score, stat in known if name in (stat, score, score.removesuffix(",none"))), None)

    def to_args(self) -> dict[str, Any]:
        """Return what stands in the run's spec: all but the notes, as JSON."""
        scores = {
            name: {
                "stat": self.stat_name(name),
                "mean": score.mean,
                "lower_is_better": score.lower_is_better,
                **({"no_mean": score.no_mean} if score.no_mean else {}),
                **({"bounds": list(score.bounds)} if score.bounds else {}),
            }
            for name, score in self.scores.items()
        }
        said = {"version": self.version, "model": self.model, "task": self.task}
        return {
            "tool": self.tool,
            **{key: value for key, value in said.items() if value},
            **({"settings": dict(self.settings)} if self.settings else {}),
            **({"main": self.stat_name(self.main), "main_reason": self.main_reason} if self.main_reason else {}),
            "scores": scores,
            "counts": dict(self.counts),
        }
