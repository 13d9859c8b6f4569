"""`helm_ext.score` and `helm_ext.compare`: the commands of these names, for notebooks and programs.

What they plan, score and write is what `helm-ext score` does, by its functions.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from helm_ext.analysis import FinishedRun, Suite, read_run
from helm_ext.errors import missing_package_named

if TYPE_CHECKING:
    import pandas as pd


def score(
    data: str | Path | pd.DataFrame,
    *,
    model: str | None = None,
    format: str | None = None,  # noqa: A002 - `--as` is a keyword of Python's
    suite: str = "score",
    output_path: str | Path | None = None,
    **arguments: Any,
) -> FinishedRun:
    """Score recorded completions, and return the finished run: its `rows` as a DataFrame, its stats, its files.

    `data` is a file or folder that `helm-ext score` takes, or a DataFrame with a column for each of question, gold and
    output; `arguments` are those of `--arg` (gold="answer", output="falcon", by="subject"). The run is written below
    `output_path`, or in a temporary folder that is deleted when this process ends. What the command writes to standard
    error is a UserWarning. Raises HelmExtError where the command would end with an error, and RunEntryError where there
    is more than one run to be made.
    """
    from helm_ext.cli.common import parse_arguments
    from helm_ext.cli.score import score_one
    from helm_ext.cli.session import Settings

    folder = Path(output_path) if output_path is not None else _make_temporary()
    file = Path(data) if isinstance(data, str | Path) else _make_temporary() / "frame.jsonl"
    if not isinstance(data, str | Path):  # unlike CSV, JSON Lines keep lists, and tell a number from a text
        data.to_json(file, orient="records", lines=True, force_ascii=False, date_format="iso")
    texts = {name: "+".join(map(str, of)) if isinstance(of, list | tuple) else of for name, of in arguments.items()}
    given = parse_arguments([f"{name}={value}" for name, value in texts.items()])
    local_path = Path("prod_env") if Path("prod_env").is_dir() else folder / "prod_env"
    with _log_as_it_was(), missing_package_named():
        made = score_one(file, format, given, model, Settings(folder, local_path, suite))
        said = made.list_warnings()
    for one in said:
        warnings.warn(one.removeprefix("warning: "), stacklevel=2)
    return read_run(made.files.folder)


def compare(run_a: FinishedRun, run_b: FinishedRun, **options: Any) -> pd.DataFrame:
    """Return one line for all rows and one for each slice, as `helm-ext compare --json` prints them: b - a.

    `options` are those of `Suite.compare`: metric, cluster, allow_different. Raises RunEntryError, DatasetError.
    """
    return Suite((run_a, run_b)).compare(**options)


@contextlib.contextmanager
def _log_as_it_was() -> Iterator[None]:
    """The command turns logs off for as long as it runs, which is not for this process's."""
    before = logging.root.manager.disable
    try:
        yield
    finally:
        logging.disable(before)


def _make_temporary() -> Path:
    folder = tempfile.mkdtemp(prefix="helm-ext-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)
