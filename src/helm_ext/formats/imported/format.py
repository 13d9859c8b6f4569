"""The base of importers' `Format` objects: what is the same for all files that another tool wrote."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from helm_ext.errors import (
    DatasetError,
    DatasetIntegrityError,
    Problem,
    Problems,
    RunEntryError,
    count,
    did_you_mean,
    show,
    to_problem,
)
from helm_ext.formats.format import Argument, Format, Plan, of_values, one_of
from helm_ext.formats.request_states.format import FORMAT as REQUEST_STATES

if TYPE_CHECKING:
    from helm_ext.evalset import EvalSet
    from helm_ext.formats.imported.row import ImportReader, Opened

_MISSING = Argument(
    "missing",
    one_of("skip", "error"),
    "rows that were not run, or failed: `error` refuses the file; `skip` also scores a run that was broken off",
    "they are left out of the score and counted",
)

GOLD_KIND = one_of("label", "index", "text", "list", "flags")
INDEX_BASE = of_values("`0` or `1`", lambda value: value in (0, 1), "0 or 1")

_SCORING = (
    "by", "cluster", "output_format", "metrics", "main_metric", "completions", "thinking", "extract", "strip", "lower",
    "separator", "extract_all", "extract_references", "drop_duplicates", "score_tokenizer",
)  # fmt: skip

SHARED_ARGUMENTS = (
    _MISSING,
    *(
        argument
        if argument.name in ("by", "cluster", "thinking")
        else replace(argument, default="as the file suggests")
        for argument in REQUEST_STATES.arguments
        if argument.name in _SCORING
    ),
)
"""Arguments of every importer, beside those that say where its rows are. They go to the pipeline, not to `open`."""

_SHOWN = 10
"""Names of parts that an error lists."""

_OF_THE_PIPELINE = frozenset({*_SCORING, "seed", "max_train_instances"})


class ImportedFormat(Format):
    """A format of files that another tool wrote. A subclass defines `open`, `claims` and what `Format` declares.

    `open` and `read_model` get the format's own arguments alone: those that say where its rows are.

    Rows that were not run, or failed, are excluded from the score and counted, unless `missing=error`.
    """

    @abstractmethod
    def open(self, **arguments: Any) -> Opened:
        """Open one task of a file or folder. The arguments are the format's own, and `by`: the keys that rows keep.

        Raises DatasetError for what cannot be read, with the way out where there is one.
        """

    def losses(self, evalset: EvalSet) -> Sequence[str]:
        """Say of how many rows no option is right: in other formats such a row is an error."""
        none_right = evalset.counts.get("none_right", 0)
        return [f"{count(none_right, 'row')} without a right option, wrong whatever was answered"] if none_right else []

    def load(self, **arguments: Any) -> EvalSet:
        """Read a file. Raises DatasetError."""
        from helm_ext.evalset import garbage
        from helm_ext.formats.request_states.loading import load

        with garbage.paused():
            opened, scoring = self._open(arguments)
        evalset = load(opened.path, lambda _, problems: _read(opened, problems, scoring), **scoring)
        if not opened.may_be_live:
            _require_answers(opened, evalset.counts)
        counts = {**evalset.counts, **opened.source.counts}
        decoding = {name: _find_setting(opened.source.settings, name) for name in evalset.recorded_decoding}
        return replace(evalset, format=self.name, source=opened.source, counts=counts, recorded_decoding=decoding)

    def check(self, *, execute: bool = True, **arguments: Any) -> tuple[list[Problem], dict[str, int]]:  # noqa: ARG002
        """Return all problems of a file and what was counted; nothing is executed."""
        from helm_ext.formats.request_states.loading import check

        arguments.pop("missing", None)
        try:
            opened, scoring = self._open(arguments)
            problems, counts = check(opened.path, lambda _, found: _read(opened, found, scoring), **scoring)
            if not opened.may_be_live and not any(problem.severity == "error" for problem in problems):
                _require_answers(opened, counts)
        except DatasetError as error:
            path = str(next(iter(arguments.values()), self.name))
            return list(error.problems) or [to_problem(error, path)], {}
        return problems, {**counts, **opened.source.counts}

    def name_model(self, arguments: Mapping[str, Any]) -> str:
        """Return the model that the source names."""
        return self.read_model(**own_arguments(arguments))

    def json_schema(self) -> dict[str, Any]:
        """Raise RunEntryError: what a file must hold is for the tool to say that writes it."""
        said = f"{self.name}: there is no JSON Schema: another tool writes these files"
        raise RunEntryError(f"{said}\n  hint: `helm-ext validate FILE` checks one: {self.expects}")

    def read_model(self, **arguments: Any) -> str:
        """Return the model that a file names, "" where it names none. Raises DatasetError."""
        return self.open(**arguments).source.model

    def _open(self, arguments: Mapping[str, Any]) -> tuple[Opened, dict[str, Any]]:
        """Return what is opened, and the arguments of the pipeline."""
        return self.open(**own_arguments(arguments)), {
            name: value for name, value in arguments.items() if name in _OF_THE_PIPELINE
        }

    def plan(self, arguments: Mapping[str, Any], evalset: EvalSet) -> Plan:
        """Name the dataset as its source does: files of several models may hold the completions of one dataset."""
        return Plan({**arguments, "name": evalset.name}, arguments)


def choose_part(path: Path | str, names: Sequence[str], name: str | None, argument: str) -> str:
    """Return which part of a file or folder is meant: the one that is named, else its only one.

    `argument`: what of the run entry names it. Raises DatasetIntegrityError that says which there are.
    """
    if name in names:
        return str(name)
    if name is None and len(names) == 1:
        return names[0]
    shown = ", ".join(names[:_SHOWN]) + (f", ... ({len(names) - _SHOWN} more)" if len(names) > _SHOWN else "")
    hint = (did_you_mean(name, names) if name else "") or (f"{argument}=NAME chooses one: {shown}" if names else "")
    message = f"no {argument} {name}" if name else f"{count(len(names), argument)} could be meant"
    raise DatasetIntegrityError.at(path, message, hint, code=argument)


def own_arguments(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that say where rows are, with those keys that rows keep as `by`.

    How they are drawn and scored is for the pipeline to know, what is missing for the run.
    """
    own = {name: value for name, value in arguments.items() if name not in _OF_THE_PIPELINE and name != "missing"}
    kept = [*(arguments.get("by") or ()), *([arguments["cluster"]] if arguments.get("cluster") else [])]
    return {**own, "by": kept} if kept else own


def _find_setting(settings: Mapping[str, Any], name: str) -> float | None:
    """Return a decoding parameter that the source names, at the top of its settings or in a part of them."""
    from helm_ext.formats.imported.row import is_finite_number

    for part in (settings, *(part for part in settings.values() if isinstance(part, Mapping))):
        value = part.get(name)
        if is_finite_number(value):
            return value
    return None


def _read(opened: Opened, problems: Problems, scoring: Mapping[str, Any]) -> ImportReader:
    """Return what reads the rows for the pipeline."""
    from helm_ext.formats.imported.row import ImportReader
    from helm_ext.scoring.registry import find_unnamable

    main, output_format = scoring.get("main_metric"), scoring.get("output_format") or "string"
    names_ours = scoring.get("metrics") is not None or (
        main is not None and find_unnamable(main, output_format, has_likelihoods=True, has_tokenizer=True) is None
    )
    if opened.cluster and not scoring.get("cluster"):
        said = f"intervals respect it with cluster={opened.cluster}, and are too short without"
        opened.source.notes = [f"samples say what they belong to: {said}", *opened.source.notes]
    return ImportReader(opened, problems, is_measured=opened.is_measured or names_ours)


def _require_answers(opened: Opened, counts: Mapping[str, int]) -> None:
    """Raise unless a row has an answer that can be scored, here or by the source (a judge needs no gold)."""
    if counts.get("recorded") or (counts.get("unscored") and opened.source.scores):
        return
    left_out = {what: counts.get(what, 0) for what in ("not_run", "failed", "unscored")}
    said = ", ".join(f"{number} {what.replace('_', ' ')}" for what, number in left_out.items() if number)
    message = f"no row has an answer that can be scored{f': {said}' if said else ''}"
    hint = f"the first failed so: {show(opened.failed)}" if opened.failed else ""
    raise DatasetIntegrityError.at(opened.path, message, hint, code="nothing-to-score")
