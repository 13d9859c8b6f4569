"""Opening a log: its samples are read once, and handed on as rows.

All samples are seen before the first row is yielded: whether questions are conversations, and whether several options
are asked for, is said of a log as a whole, and the epochs of a sample may stand anywhere. What is kept of a sample is
what its row needs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from helm_ext.errors import count
from helm_ext.evalset import Source, garbage
from helm_ext.formats.imported.row import Opened, Row
from helm_ext.formats.inspect_logs.header import Header, no_samples
from helm_ext.formats.inspect_logs.reading import open_log
from helm_ext.formats.inspect_logs.rows import RowMaker
from helm_ext.formats.inspect_logs.scores import Scores
from helm_ext.scoring.reducers import FIRST, find_reducer

_COUNTED = ("failed_epochs", "edited", "invalidated", "shuffled", "media", "other_choices", "other_completion")
"""What is counted of samples, where there is any."""


def read_model(path: str) -> str:
    """Return the model that a log names. Raises DatasetError."""
    with open_log(path) as log:
        return log.header.model


def open_samples(path: str, tool: str, notes: Sequence[str] = ()) -> Opened:
    """Read a log and return it opened, of the format `tool`; `notes` are said of it too. Raises DatasetError."""
    with garbage.paused(), open_log(path) as log:
        header = log.header
        scores = Scores(header.reducers, header.scores)
        rows = RowMaker(header, scores)
        for logged in log.samples():
            rows.see(logged)
        if not rows.counts["lines"]:
            raise no_samples(path)
        if log.repeated:
            rows.counts["duplicates"] = log.repeated
        digest = log.digest()
    source = header.to_source(tool)
    rows.needs_gold = rows.has_gold or not (header.scores or rows.has_scores)
    return Opened(
        path=path,
        source=source,
        rows=lambda: _hand_on(rows, scores, header, source, notes),
        digest=lambda: digest,
        adapter_spec=_to_adapter_spec(rows),
        scoring={"completions": _to_reducer(header)} if rows.most_epochs > 1 else {},
        is_measured=rows.needs_gold,
    )


def _to_adapter_spec(rows: RowMaker) -> dict[str, Any]:
    return {
        **({"method": "chat"} if rows.is_chat else {}),
        **({"multi_label": True} if rows.takes_all else {}),
    }


def _to_reducer(header: Header) -> str:
    """Return how our scores of several epochs become one: as the log's, where that can be done here."""
    known = [name for name in header.reducers or () if name != FIRST and find_reducer(name) is not None]
    return known[0] if known else "mean"


def _hand_on(rows: RowMaker, scores: Scores, header: Header, source: Source, notes: Sequence[str]) -> Iterator[Row]:
    """Yield the rows; complete what is said of the source when the last one went."""
    yield from rows.rows()
    if rows.most_epochs == 1:
        del rows.counts["failed_epochs"]  # these are rows that failed
    counts = {"lines": rows.counts["lines"], **{what: rows.counts[what] for what in _COUNTED if rows.counts[what]}}
    if rows.counts["duplicates"]:
        counts["duplicates"] = rows.counts["duplicates"]
    if scores.no_answer:
        counts["no_answer"] = scores.no_answer
    if rows.counts["source_unscored"]:
        counts["source_unscored"] = rows.counts["source_unscored"]
    names = scores.finish(is_whole=_is_whole(header, rows))
    source.scores = scores.reported
    source.main, source.main_reason = _choose_main(header, names, source)
    source.counts = counts
    source.notes = [
        *notes,
        *_about_completeness(header, rows),
        *_about_scores(header, scores, rows),
        *_about_texts(rows),
    ]


def _is_whole(header: Header, rows: RowMaker) -> bool:
    """Whether the log holds all that its own scores are about."""
    scored = header.results.get("completed_samples")
    return header.is_finished and not (isinstance(scored, int) and rows.counts["lines"] < scored)


def _choose_main(header: Header, names: Sequence[Mapping[str, str]], source: Source) -> tuple[str, str]:
    """Return the name of the score that the log is headed by, and why; the first of its samples' where it reports none.

    `names`: of each score of the log, metric to name.
    """
    headline = header.headline
    main, reason = next(iter(source.scores), ""), "the first of its samples' scores"
    if headline is not None:
        main, reason = names[headline.score][headline.metric], headline.reason
    return main, reason if len(source.scores) > 1 else ""


def _about_completeness(header: Header, rows: RowMaker) -> Iterator[str]:
    read = rows.counts["lines"]
    if not header.is_finished:
        yield f"the run has not ended well, its status is {header.status}: missing=skip scores what it left"
    scored, planned = header.results.get("completed_samples"), header.planned
    if isinstance(scored, int) and read < scored:
        yield f"the log holds {read} of the {scored} samples that its own scores are about"
    elif planned and read < planned:
        why = ": a limit" if header.is_finished else ""
        yield f"the log holds {read} of {planned} samples of the dataset (samples times epochs){why}"
    if rows.counts["failed_epochs"]:
        failed = count(rows.counts["failed_epochs"], "epoch of a sample", "epochs of samples")
        yield f"{failed} failed: the score of a row is made of its other epochs, as in the log"
    for what, one, many in (
        ("edited", "sample has a score that was edited afterwards", "samples have scores that were edited afterwards"),
        ("invalidated", "sample is marked as invalid, and scored", "samples are marked as invalid, and scored"),
    ):
        if rows.counts[what]:
            yield count(rows.counts[what], one, many)


def _about_scores(header: Header, scores: Scores, rows: RowMaker) -> Iterator[str]:
    if not rows.needs_gold:
        yield "no sample has a target: the log's own scores are all there is"
    for name in scores.unknown:
        yield f"the epochs_reducer {name} is not known: a row has no score of the log by it"
    if rows.most_epochs > 1 and _to_reducer(header) not in (header.reducers or ["mean"]):
        yield "scores of several epochs are reported as their mean"
    if scores.is_over_epochs and not rows.is_even:
        yield "the log's own scores are means over all epochs, of which some rows have fewer: they are not compared"
    for name in sorted(scores.not_numbers):
        yield f"the log's score {name} has values that are no numbers: it is left out"


def _about_texts(rows: RowMaker) -> Iterator[str]:
    if rows.counts["media"]:
        yield f"{count(rows.counts['media'], 'image or file', 'images and files')} in messages: a word stands for each"
    if rows.counts["media_removed"]:
        gone = count(rows.counts["media_removed"], "image or file", "images and files")
        yield f"{gone} of questions not in the log (log_images): questions that differ in them alone count as the same"
    if rows.counts["other_choices"]:
        said = count(rows.counts["other_choices"], "further completion")
        yield f"{said} of a sample: the first is scored, as in the log"
    if rows.counts["other_completion"]:
        said = count(rows.counts["other_completion"], "sample's output was", "samples' outputs were")
        yield f"{said} rewritten by the task: what the model said is scored"
