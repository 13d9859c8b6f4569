"""A suite of finished runs in a notebook: rows, scores with intervals and comparisons as tables."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from helm_ext.analysis.comparing import compare_runs
from helm_ext.analysis.run_scores import read_scores
from helm_ext.analysis.runs import FinishedRun, find_runs

if TYPE_CHECKING:
    import datasets
    import pandas as pd


@dataclass(frozen=True)
class Suite:
    """Finished runs of any HELM scenario. Their files are read when they are asked for."""

    runs: tuple[FinishedRun, ...]

    def to_pandas(self) -> pd.DataFrame:
        """Return all rows of all runs, with the columns of docs/how-to/export.md. All of them are in memory."""
        from helm_ext.analysis.export.tables import to_pandas

        return to_pandas(self.runs)

    def to_dataset(self) -> datasets.Dataset:
        """Return the same rows as a `datasets.Dataset`; null where a run has no such column."""
        import datasets

        return datasets.Dataset.from_pandas(self.to_pandas(), preserve_index=False)

    def scores(self, metric: str | None = None, *, cluster: str | None = None, level: float = 0.95) -> pd.DataFrame:
        """Return one line a run: dataset, model, metric, mean, low, high, rows, left_out, method.

        `mean`, `low` and `high` are in the unit of the metric (the run's main one unless it is named); `rows` are those
        that have a score, each with the mean over its trials. `cluster` names the key of what rows belong to.
        `low` and `high` are null where nothing is known of them. Raises RunEntryError, DatasetError.
        """
        import pandas as pd

        lines = []
        for run in self.runs:
            scores = read_scores(run, metric, cluster)
            interval = scores.measure(level=level)
            known = interval.method != "none"
            lines.append(
                {
                    "dataset": scores.title,
                    "model": scores.model,
                    "metric": scores.metric,
                    "mean": interval.mean,
                    "low": interval.low if known else None,
                    "high": interval.high if known else None,
                    "rows": interval.count,
                    "left_out": scores.left_out,
                    "method": interval.method,
                }
            )
        return pd.DataFrame(lines)

    def compare(
        self, *, baseline: str | None = None, metric: str | None = None, cluster: str | None = None,
        allow_different: bool = False, slices: Collection[str] | None = None,
    ) -> pd.DataFrame:  # fmt: skip
        """Return one line a pair of models and slice, as `helm-ext compare --json` prints them.

        `difference` is b - a in the unit of the metric; `p_holm` is corrected for the `family` of comparisons of all
        rows of a dataset, or of its slices. `slices`: the attributes that are looked at; None for all, [] for none.
        Raises RunEntryError, DatasetError.
        """
        import pandas as pd

        scores = [read_scores(run, metric, cluster) for run in self.runs]
        results, _ = compare_runs(scores, baseline=baseline, allow_different=allow_different, slices=slices)
        lines: list[dict[str, Any]] = [result.to_json() for result in results]
        return pd.DataFrame(lines)


def read_suite(*paths: str | Path) -> Suite:
    """Return the finished runs of these folders: runs, suites, or `benchmark_output`. Raises DatasetNotFoundError.

    Runs that are not finished are left out; `find_runs` names them.
    """
    return Suite(tuple(find_runs(paths)[0]))
