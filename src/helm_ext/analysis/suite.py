"""Finished runs in folders, of any HELM scenario; in a notebook, their rows, scores and comparisons as tables."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from helm_ext.analysis.runs import RUN_FILES, RunFiles
from helm_ext.errors import (
    DatasetIntegrityError,
    DatasetNotFoundError,
    count,
    did_you_mean,
    missing_package_named,
)
from helm_ext.scoring.score import CORRECTED
from helm_ext.scoring.statistics.intervals import LEVEL

if TYPE_CHECKING:
    import pandas as pd

_SHOWN = 10
"""Folders that a hint names."""
_RUNS = Path("benchmark_output/runs")


class FinishedRun(RunFiles):
    """A finished run of any HELM scenario, ours and HELM's own. Its rows are read when they are asked for."""

    @property
    def rows(self) -> pd.DataFrame:
        """The rows as `to_pandas` returns them. Raises HelmExtError where pandas is not installed."""
        return self.to_pandas()

    def to_pandas(self) -> pd.DataFrame:
        """Return the rows as a DataFrame with the columns of docs/how-to/export.md. All of them are in memory."""
        return Suite((self,)).to_pandas()


def read_run(path: str | Path) -> FinishedRun:
    """Return the finished run of a folder, `benchmark_output/runs/SUITE/NAME`.

    Raises DatasetNotFoundError where there is none, DatasetIntegrityError where the run is not finished.
    """
    folder = Path(path)
    if folder.is_file():
        raise DatasetNotFoundError(f"{folder}: a file, and no folder of runs\n  hint: {_say_where_runs_are()}")
    if not folder.is_dir():
        raise DatasetNotFoundError(f"{folder}: no such folder\n  hint: {near_folders(folder)}")
    missing = [name for name in RUN_FILES if not (folder / name).is_file()]
    if len(missing) == len(RUN_FILES):
        inside = [str(path.parent) for path in sorted(folder.glob(f"*/{RUN_FILES[0]}"))]
        if not inside:
            raise _find_none(folder, [])
        said = f"a suite of {count(len(inside), 'run')}: which one?\n  hint: name it: {', '.join(inside[:_SHOWN])}"
        raise DatasetNotFoundError(f"{folder}: {said}")
    if missing:
        said = f"the run is not finished: no {', '.join(missing)}\n  hint: start it again"
        raise DatasetIntegrityError(f"{folder}: {said}")
    return FinishedRun(folder)


def _say_where_runs_are() -> str:
    suites = sorted(path.name for path in _RUNS.glob("*") if path.is_dir())
    if suites:
        return f"{_RUNS}/SUITE, here of {', '.join(suites[:_SHOWN])}"
    return f"helm-ext score makes runs of recorded outputs, in {_RUNS}/score; helm-run those of a model"


def near_folders(folder: Path) -> str:
    """Return a hint for a folder of runs that does not exist: the suite of that name, those like it
    beside it, else those that are there.
    """
    if (_RUNS / folder).is_dir():
        return str(_RUNS / folder)
    beside = sorted(path.name for path in folder.parent.glob("*") if path.is_dir())
    if not beside:
        return f"a run's folder is {_RUNS}/SUITE/RUN"
    more = f" and {len(beside) - _SHOWN} more" if len(beside) > _SHOWN else ""
    return did_you_mean(folder.name, beside) or f"in {folder.parent} there is {', '.join(beside[:_SHOWN])}{more}"


def find_runs(paths: Iterable[str | Path]) -> tuple[list[FinishedRun], list[Path]]:
    """Return the finished runs in these folders, and the folders of runs that are not finished.

    A path is a run's folder, or one with runs somewhere below: a suite, `benchmark_output`. Raises
    DatasetNotFoundError for a path without a finished run, and as `read_run` for a run's own folder.
    """
    runs: dict[Path, FinishedRun] = {}
    unfinished: dict[Path, None] = {}
    for path in map(Path, paths):
        if not path.is_dir() or any((path / name).is_file() for name in RUN_FILES):
            run = read_run(path)
            runs.setdefault(run.folder.resolve(), run)
            continue
        found = [Path(folder) for folder, _, files in os.walk(path) if not {*RUN_FILES}.isdisjoint(files)]
        finished = [folder for folder in sorted(found) if all((folder / name).is_file() for name in RUN_FILES)]
        if not finished:
            raise _find_none(path, found)
        unfinished.update(dict.fromkeys(folder for folder in found if folder not in finished))
        for folder in finished:
            runs.setdefault(folder.resolve(), FinishedRun(folder))
    return list(runs.values()), list(unfinished)


def _find_none(path: Path, found: list[Path]) -> DatasetNotFoundError:
    """Return the error for a folder without a finished run. `found`: those with some of its files."""
    from helm_ext.files.writing import COMMIT_LOCK

    begun = sorted([*found, *(lock.parent for lock in path.rglob(COMMIT_LOCK))])
    if begun:
        hint = f"{begun[0].name} was begun and did not finish: start the same helm-run again"
    else:
        hint = _say_where_runs_are()
    return DatasetNotFoundError(f"{path}: no finished run is in this folder\n  hint: {hint}")


@dataclass(frozen=True)
class Suite:
    """Finished runs of any HELM scenario. Their files are read when they are asked for."""

    runs: tuple[FinishedRun, ...]

    @missing_package_named()
    def to_pandas(self) -> pd.DataFrame:
        """Return all rows of all runs, with the columns of docs/how-to/export.md. All of them are in memory."""
        from helm_ext.analysis.export.tables import to_pandas

        return to_pandas(self.runs)

    @missing_package_named()
    def scores(self, metric: str | None = None, *, cluster: str | None = None, level: float = LEVEL) -> pd.DataFrame:
        """Return one line a run: dataset, model, metric, mean, low, high, rows, left_out, method.

        `mean`, `low` and `high` are in the unit of the metric (the run's main one unless it is named); `rows` are those
        that have a score, each with the mean over its trials. `cluster` names the key of what rows belong to.
        `low` and `high` are null where nothing is known of them, as of a score of all rows together. A judge's score
        that people's labels correct is the corrected one, and so is its name; `raw` has the mean of the verdicts.
        Raises RunEntryError, DatasetError.
        """
        import pandas as pd

        from helm_ext.analysis.run_scores import open_headline, read_rows

        lines = []
        for run in self.runs:
            scores = read_rows(open_headline(run, metric, cluster))
            raw, corrected = scores.measure(level=level), scores.measure_corrected(level=level)
            interval = corrected or raw
            lines.append(
                {
                    "dataset": scores.title,
                    "model": scores.model,
                    "metric": f"{scores.metric}{CORRECTED if corrected else ''}",
                    **interval.to_json(),
                    "rows": interval.count,
                    "left_out": scores.left_out,
                    "method": interval.method,
                    **({"raw": raw.mean} if corrected else {}),
                }
            )
        return pd.DataFrame(lines)

    @missing_package_named()
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

        from helm_ext.analysis.comparing import compare_runs
        from helm_ext.analysis.run_scores import read_scores

        scores = [read_scores(run, metric, cluster) for run in self.runs]
        results, _ = compare_runs(scores, baseline=baseline, allow_different=allow_different, slices=slices)
        return pd.DataFrame([result.to_json() for result in results])


def read_suite(*paths: str | Path) -> Suite:
    """Return the finished runs of these folders: runs, suites, or `benchmark_output`. Raises DatasetNotFoundError.

    Runs that are not finished are left out; `find_runs` names them.
    """
    return Suite(tuple(find_runs(paths)[0]))
