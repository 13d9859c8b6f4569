"""`helm-ext judge sheet` and `judge labels`: people say how good answers are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from helm_ext.cli.judged_runs import MainMetric, require_run, write_judged
from helm_ext.cli.output import echo
from helm_ext.cli.requests import LocalPath, OutputPath, Suite
from helm_ext.cli.session import Settings, require_suite
from helm_ext.errors import HelmExtError, RunEntryError, count, did_you_mean

if TYPE_CHECKING:
    from helm_ext.analysis.judged import JudgedRow
    from helm_ext.analysis.row_stats import RowKey
    from helm_ext.judging.judgement import Judgement


def sheet(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="A finished run; for disagreements also two.")],
    number: Annotated[int, typer.Option("--number", "-n", min=1, help="How many answers people label.")] = 100,
    design: Annotated[str, typer.Option(help="random, by_verdict or disagreements.")] = "by_verdict",
    seed: Annotated[int, typer.Option(help="Of the draw.")] = 1,
    raters: Annotated[int, typer.Option(min=1, max=10, help="One sheet each; one in five answers is on all.")] = 1,
    criterion: Annotated[str | None, typer.Option(help="What is judged, of several things.")] = None,
    rubric: Annotated[str | None, typer.Option(help="What people are asked, where no judge was: a rubric.")] = None,
    target: Annotated[Path, typer.Option("--out", "-o", help="NAME of NAME.csv, .html, .draw.json.")] = Path("sheet"),
) -> None:
    """Draw answers for people to label, with known chances: a CSV file, and a page that works offline.

    Neither says whose an answer is, or what a judge said. NAME.draw.json does, and stays here: `judge labels` needs it.
    """
    from helm_ext.analysis.labelling import draw_sheet, find_asked
    from helm_ext.judging.rubrics import load_rubric
    from helm_ext.judging.sheets import DESIGNS, DRAW_ENDING, write_sheets

    if design not in DESIGNS:
        raise RunEntryError(f"--design {design}: {did_you_mean(design, DESIGNS) or 'expected ' + ', '.join(DESIGNS)}")
    if len(runs) > (2 if design == "disagreements" else 1):
        raise RunEntryError(f"--design {design} is of one run\n  hint: disagreements may be of two")
    if (record := target.with_name(f"{target.name}{DRAW_ENDING}")).exists():
        raise RunEntryError(f"--out {target}: a sheet is there already, {record}\n  hint: name another one")
    found = _read_runs(runs)
    asked = find_asked(
        [list(rows.values()) for rows in found.values()], criterion, load_rubric(rubric) if rubric else None
    )
    made, cells = draw_sheet({name: list(rows.values()) for name, rows in found.items()}, asked, design, number, seed)
    try:
        written = write_sheets(made, cells, target, raters)
    except OSError as error:
        raise HelmExtError(f"--out {target}: {error.strerror}") from error
    taken = Counter(row.stratum for row in made.rows)
    echo(f"{count(len(made.rows), 'answer')} to label: {asked.criterion}, drawn {design.replace('_', ' ')}")
    for stratum, size in made.strata.items():
        echo(f"  {stratum}: {taken[stratum]} of {size * len(runs)}")
    for path in written:
        echo(f"written to {path}")


def labels(
    sheets: Annotated[list[Path], typer.Argument(metavar="SHEET.csv... RUN...", help="Labelled sheets, and the runs.")],
    design: Annotated[
        str | None,
        typer.Option(help="Of labels made elsewhere: how their rows were chosen, random, by_verdict or by_label."),
    ] = None,
    by: Annotated[str | None, typer.Option(help="Who labelled. Default: the letter of the sheet.")] = None,
    criterion: Annotated[str | None, typer.Option(help="Of labels made elsewhere: what they judge.")] = None,
    rubric: Annotated[str | None, typer.Option(help="Of labels made elsewhere: what people were asked.")] = None,
    output_path: OutputPath = Path("benchmark_output"),
    suite: Suite = "judged",
    main_metric: MainMetric = None,
    local_path: LocalPath = Path("prod_env"),
) -> None:
    """Take labels back onto the rows that they are of, and score the run with them.

    Labels of another tool, in a CSV file with the columns id and label, correct a score only with --design: how the
    rows were chosen that people labelled.
    """
    from helm_ext.analysis.labelling import find_asked, take_elsewhere, take_labels, to_time
    from helm_ext.judging.rubrics import load_rubric

    require_suite("--suite", suite)
    folders, files = [path for path in sheets if path.is_dir()], [path for path in sheets if not path.is_dir()]
    if not folders or not files:
        raise RunEntryError(
            f"{'no sheet' if folders else 'no run'} is named\n  hint: helm-ext judge labels SHEET.csv RUN"
        )
    if design is not None and design not in _DESIGNS:
        raise RunEntryError(f"--design {design}: {did_you_mean(design, _DESIGNS) or 'expected ' + ', '.join(_DESIGNS)}")
    found = _read_runs(folders)
    together: dict[str, dict[RowKey, list[Judgement]]] = {}
    for path in files:
        at = to_time(path.stat().st_mtime) if path.exists() else ""  # no other time: the same labels, the same digest
        taken = take_labels(path, by, found, at)
        if taken is None:
            loaded = load_rubric(rubric) if rubric else None
            asked = find_asked([list(rows.values()) for rows in found.values()], criterion, loaded)
            judgements, numbers = take_elsewhere(path, by or "people", found, asked, design, at)
            if design is None:
                said = "how their rows were chosen is not known, so they correct no score"
                echo(f"warning: {path}: {said}\n  hint: --design random, by_verdict or by_label", err=True)
        else:
            judgements, numbers = taken
        empty = f", {numbers['empty']} without one" if numbers["empty"] else ""
        echo(f"{path}: {count(numbers['labels'], 'label')}{empty}")
        for name, rows in judgements.items():
            for key, new in rows.items():
                together.setdefault(name, {}).setdefault(key, []).extend(new)
    if not together:
        raise HelmExtError("no label, so no run is made\n  hint: a row's label stands in the column label")
    settings = Settings(output_path, local_path, suite)
    for name, folder in zip(found, folders, strict=True):
        if name in together:
            write_judged(folder, together[name], settings, main_metric)


_DESIGNS = ("random", "by_verdict", "by_label")


def _read_runs(folders: Sequence[Path]) -> dict[str, dict[RowKey, JudgedRow]]:
    """Return the rows of runs, by the runs' names. Raises HelmExtError."""
    from helm_ext.analysis.judged import read_judged
    from helm_ext.analysis.labelling import key_of
    from helm_ext.analysis.runs import RunFiles

    found = {}
    for folder in folders:
        require_run(folder)
        run = RunFiles(folder)
        found[run.name] = {key_of(row.row): row for row in read_judged(run)}
    if len(found) < len(folders):
        raise RunEntryError(f"two runs of one name: {next(iter(found))}")
    return found
