"""What is said about a file beyond the shape of its rows: functions of what is known of all rows, in one order."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from helm_ext.errors import DatasetIntegrityError, Location, Problem, Problems, count, did_you_mean, show
from helm_ext.formats.request_states.checking import guess_key
from helm_ext.formats.request_states.header import Header, Options
from helm_ext.formats.request_states.plan import Plan
from helm_ext.formats.request_states.profile import MOST_VALUES, Profile
from helm_ext.formats.request_states.reading import Reader
from helm_ext.formats.request_states.rows import Row

if TYPE_CHECKING:
    from helm_ext.files.store import RowStore

ALL_ROWS = ("request_states",)
"""The place of a problem that is about all rows."""
EXPECTED_EVAL_ROWS = 100
"""The format asks for the demonstrations and 100 rows more where it leaves the choice to us."""


@dataclass
class File:
    """A file of which all rows were seen, and what is planned with it."""

    reader: Reader
    header: Header
    options: Options
    profile: Profile
    problems: Problems
    store: RowStore[Row] | None
    """None where the file is only checked."""
    plan: Plan = field(init=False)
    counts: dict[str, int] = field(default_factory=dict)
    """What was counted, for the user."""

    def finish(self) -> list[Problem]:
        """Return all that was found, errors first."""
        return self.problems.finish(self.reader.locate)


# Which rows are demonstrations and which are evaluated


def too_few_rows(file: File) -> None:
    """Report a live run's file with too few rows to draw demonstrations and leave one to evaluate."""
    plan, problems = file.plan, file.problems
    is_recorded = file.profile.is_recorded or file.profile.find("incomplete").count
    if plan.can_run_live or is_recorded or problems.errors:  # rows that are wrong were not counted
        return
    message = (
        f"no completions are recorded, so a model would be asked, and {count(file.profile.rows, 'row is', 'rows are')} "
        f"too few: {plan.wanted} would be demonstrations, and at least one must be left to evaluate"
    )
    hint = "add rows, or lower adapter_spec.max_train_instances"
    problems.add(ALL_ROWS, message, hint, code="too-few-rows", kind=DatasetIntegrityError)


def selected_splits(file: File) -> None:
    """Report eval_splits that no row is of, or that leave rows out."""
    profile, splits, problems = file.profile, file.plan.settings.eval_splits, file.problems
    if not splits or problems.errors:
        return
    where = ("adapter_spec", "eval_splits")
    if not profile.selected:
        there = {split or "none given" for split in profile.splits}
        message = f"no row is of split {' or '.join(splits)}, so there is nothing to evaluate"
        hint = f"splits of the rows: {', '.join(sorted(there))}"
        problems.add(where, message, hint, code="no-eval-rows", kind=DatasetIntegrityError)
        return
    train = profile.splits["train"] if profile.is_differentiated else 0
    others = profile.rows - train - profile.selected
    if others:
        message = f"{count(others, 'row is', 'rows are')} of other splits and not evaluated"
        problems.warn(where, message, code="eval-splits")


def several_splits(file: File) -> None:
    """Report rows of two splits that are evaluated: of a run with both, HELM's leaderboards show the test split."""
    profile, valid = file.profile, file.profile.splits["valid"]
    others = profile.selected - valid
    if valid and others > 0 and "valid" in profile.eval_splits:
        rows = count(others, "row is", "rows are")
        message = f"{rows} of split test and {valid} of valid (dev, validation): scores are shown of test alone"
        hint = "one split for all rows makes one score of them"
        if not file.reader.is_imported:
            hint += '; adapter_spec.eval_splits: ["valid"] scores those alone'
        file.problems.warn(() if file.reader.is_imported else ALL_ROWS, message, hint, code="several-splits")


def recorded_train(file: File) -> None:
    """Report recorded completions of rows that are demonstrations."""
    if file.profile.is_differentiated:
        said = "recorded completions, which are not scored"
        file.profile.find("ok", ["train"]).warn("request", one="train row has", message=said, code="recorded-train")


def undifferentiated(file: File) -> None:
    """Report a file that does not say which rows are demonstrations: they are drawn."""
    profile, settings, problems = file.profile, file.plan.settings, file.problems
    is_theirs = file.reader.is_imported and not file.plan.wanted
    if profile.is_differentiated or profile.find("helm").count or is_theirs:
        return
    given = ", ".join(sorted(split for split in profile.splits if split)) or "none"
    message = f"train and test are not differentiated (splits given: {given})"
    if file.plan.demonstrations:
        drawn = f"{file.plan.demonstrations} demonstrations are drawn with seed {file.options.seed}"
        message += f": {drawn}, the rest is evaluated"
        if profile.is_recorded:
            message += "; a recorded run evaluates all"
    problems.warn(ALL_ROWS, message, code="not-differentiated")
    if profile.rows < file.plan.wanted + EXPECTED_EVAL_ROWS:
        asked = f"{settings.max_train_instances} demonstrations + {EXPECTED_EVAL_ROWS} test examples"
        message = f"{count(profile.rows, 'row')}, fewer than the {asked} that the format asks for"
        problems.warn(ALL_ROWS, message, code="few-rows")


# What rows say: inputs, references and labels


def unused_mapping(file: File) -> None:
    """Report a label of the whole file's answer mapping that names an option in no row."""
    used, code, kind = file.profile.used_labels, "mapping-without-option", DatasetIntegrityError
    for label, target in (file.plan.settings.mapping or {}).items():
        if used and label not in used:
            where, message = ("adapter_spec", "answer_mapping", label), f"no row has an option number {target}"
            file.problems.add(where, message, "positions count from 0", code=code, kind=kind)


def no_correct_reference(file: File) -> None:
    """Report rows without a correct reference."""
    hint, code = 'write "references": [{"output": {"text": ...}, "tags": ["correct"]}]', "no-correct-reference"
    for place, message in file.profile.lacking:
        place.error("instance", "references", message=message, hint=hint, code=code, is_integrity=True)
    if more := file.profile.lacking_rows - len(file.profile.lacking):
        where = Location(file.problems.path)
        file.problems.extend([Problem("", where, code=code, kind=DatasetIntegrityError, number=more)])


def untagged_reference(file: File) -> None:
    """Report a single reference without tags, which is taken as correct."""
    where, said = ("instance", "references", 0, "tags"), "a single reference without tags, taken as correct"
    file.profile.untagged.warn(*where, message=said, hint='add "tags": ["correct"]', code="untagged-reference")


def empty_answers(file: File) -> None:
    """Report correct references without text. HELM's draw of demonstrations ends at one, and then fails.

    See `InContextLearningAdapter.sample_examples`. An empty answer is equal to an empty reply.
    """
    profile, settings = file.profile, file.plan.settings
    train = profile.find("empty", ["train"])
    draws = settings.max_train_instances > 0 and settings.given.get("sample_train") is not False
    others = profile.find("empty", profile.to_score)
    first, may_be_drawn = train, train.count
    if not profile.is_differentiated:
        first = others  # those are drawn last
        may_be_drawn = file.plan.demonstrations - (profile.rows - first.count)
    where, is_error = ("instance", "references"), not profile.is_recorded
    if draws and may_be_drawn > 0 and not profile.find("helm").count:
        said = "an empty answer, and HELM cannot draw demonstrations where there is one"
        hint = 'write the answer, or "sample_train": false, which takes the first rows as they are'
        code = "empty-demonstration"
        first.warn(*where, one="demonstration has", message=said, hint=hint, code=code, is_error=is_error)
    said = "an empty correct reference: only an empty reply is equal to it"
    others.warn(*where, message=said, code="empty-answer")


def stops_in_references(file: File) -> None:
    """Report correct references that hold a stop sequence: no live model says what stands behind it."""
    said = "a correct reference with a stop sequence in it, which a live model cannot go beyond"
    hint = "cut_at_stop=true cuts references and predictions there"
    if cut_at := file.plan.scoring.cut_at:
        hint = f"references and predictions are cut at {', '.join(map(show, cut_at))}"
    found = file.profile.find("with_stop", file.profile.to_score)
    found.warn("instance", "references", message=said, hint=hint, code="stop-in-reference")


def doubled_prompt(file: File) -> None:
    """Report texts that hold the prefixes already which the prompt puts around them."""
    profile, plan = file.profile, file.plan
    if profile.find("helm").count or plan.method == "chat":
        return
    is_sent_as_it_is = plan.settings.max_train_instances == 0 and plan.method == "generation"
    for first, key, verb in (
        (profile.find("starts_doubled"), "input_prefix", "begin with"),
        (profile.find("ends_doubled"), "output_prefix", "end with"),
    ):
        if first.place is None or (is_sent_as_it_is and first.count == profile.rows):
            continue
        said = f"{first.count} of {profile.rows} inputs {verb} the {key} already, so the prompt has it twice"
        hint = (
            f'set adapter_spec.{key} to "", or take it out of the texts; if the texts hold worked examples, '
            "set max_train_instances to 0: then they are sent as they are"
        )
        first.place.warn("instance", "input", "text", message=said, hint=hint, code="doubled-prompt")


def separate_segments(file: File) -> None:
    """Report lists whose segments seem to be given as one correct reference each: then each alone is a right list."""
    scoring, profile = file.plan.scoring, file.profile
    if scoring.output_format != "list" or file.plan.settings.given.get("multi_label") or profile.holds_lists:
        return
    separator = show(scoring.separator)
    said = f"several correct references, none with {separator}: each alone is a right list"
    hint = f"join the segments with {separator} in one reference, or set multi_label"
    profile.find("several_golds").warn("instance", "references", message=said, hint=hint, code="separate-segments")


# What stands beside the texts of a row


def ids(file: File) -> None:
    """Report rows whose id is missing, empty, or taken by an earlier row."""
    known = file.profile
    repeated = known.find_repeated()
    if not repeated or (file.reader.is_imported and not known.numbers["id"].any()):  # a table without a column of ids
        return
    number = file.counts["renamed_ids"] = len(repeated)
    message = (
        f"{count(number, 'row has', 'rows have')} no id, or that of an earlier row: told apart by -2, -3, ... behind it"
    )
    known.locate(repeated[0]).warn("instance", "id", message=message, code="ids")


def scales(file: File) -> None:
    """Report judgements of one criterion on several scales: their mean would mean nothing."""
    for criterion, found in file.profile.scales.items():
        first, *others = found
        for scale in others[:1]:
            place, number = found[scale]
            other, one = (show(msgspec.json.decode(each)) for each in (scale, first))
            said = f"{other}, where {show(criterion)} was judged on {one} before"
            hint = "a criterion has one scale: name the other one otherwise"
            where = "judgements", number, "scale"
            place.error(*where, message=said, hint=hint, code="judgement", is_integrity=True)


def nonfinite_numbers(file: File) -> None:
    """Report NaN and infinity, which no browser reads."""
    found, numbers = file.profile.nonfinite, file.profile.nonfinite_numbers
    if found.place is not None:
        those = f"{count(numbers, 'number')} in {count(found.count, 'row')} {'is' if numbers == 1 else 'are'}"
        said = f"{those} NaN or infinite; treated as not recorded"
        found.place.warn(message=said, hint="write null", code="not-finite")


# What is recorded


def missing_recordings(file: File) -> None:
    """Report rows of a recorded file that were not run, or failed."""
    profile = file.profile
    refused = "a recorded run refuses the file", "missing=skip scores the rest and reports how many were left out"
    left_out = "left out of the score, and counted", "missing=error refuses the file instead"
    outcome, hint = left_out if file.reader.is_imported else refused
    if profile.earlier_left_out:
        outcome, hint = left_out[0], "as in the run that wrote the file"
    for first, one, many, code in (
        (profile.find_status("not_run"), "row was not run", "rows were not run", "not-run"),
        (profile.find_status("failed"), "row failed", "rows failed", "failed"),
    ):
        if profile.is_recorded and first.place is not None:
            message = f"{count(first.count, one, many)} of {profile.selected}; {outcome}"
            where = () if profile.find("helm").count else ("request",)
            first.place.warn(*where, message=message, hint=hint, code=code)


def incomplete_recordings(file: File) -> None:
    """Report rows with some of the requests of the method, and not all: about some options, or of some trials."""
    if (incomplete := file.profile.find("incomplete")).count:
        from helm_ext.adaptation.rows import explain_incomplete

        needs, hint = explain_incomplete(file.plan.method, file.plan.settings.num_train_trials)
        here = f"here {file.profile.missing_requests}"
        said = f"completions that the method cannot be scored with: {needs}; {here}"
        incomplete.warn("request", message=said, hint=hint, code="incomplete-recording")


def mixed_recordings(file: File) -> None:
    """Report rows recorded by a text beside rows recorded by log-probabilities: a score would be of a part of them."""
    profile = file.profile
    found = profile.find("by_text", [split for split in profile.splits if split != "train"])
    if profile.find("likelihoods").count:
        said = f"missing in {count(found.count, 'row')} with a completion, and other rows have them"
        hint = "put the rows that were asked for a text into a file of their own"
        found.refuse("likelihoods", message=said, hint=hint, code="likelihoods")


def several_completions(file: File) -> None:
    """Say that the first of several completions is scored, where nobody has said so."""
    number, plan = file.profile.find("several").count, file.plan
    is_said = plan.earlier is not None or file.header.scoring.get("completions") is not None
    if number and plan.scoring.metrics and plan.scoring.output_format == "string" and not is_said:
        said = f"{count(number, 'row has', 'rows have')} several completions, of which the first is scored"
        hint = "completions=mean, pass_at_2, ... score all; completions=first says it is meant"
        file.problems.add((), said, hint, code="first", severity="note")


def clusters(file: File) -> None:
    """Report a key that `cluster=` names and rows do not have."""
    lacking, name = file.profile.find("unclustered"), file.plan.settings.cluster
    if name is not None and lacking.count == file.profile.rows:
        file.problems.add(("cluster",), f"no row has a value of {show(name)}", code="cluster")
    elif name is not None:
        lacking.warn(message=f"no value of {show(name)}: each a cluster of its own", code="cluster")


def groups(file: File) -> None:
    """Report keys that `by=` names: those that no row has, and those with too many values for a report."""
    for name, values in file.profile.values.items():
        if not values:
            hint = did_you_mean(name, file.profile.keys) or f"keys: {', '.join(map(show, file.profile.keys))}"
            file.problems.add(("by",), f"no row has a value of {show(name)}", hint, code="by")
        elif len(values) > MOST_VALUES:
            message = f"{show(name)} has more than {MOST_VALUES} values, each a column of the report"
            file.problems.add(("by",), message, "name a key with fewer values", code="by")
        else:
            file.profile.ungrouped[name].warn(message=f"no value of {show(name)}: in no group of it", code="by")


def stray_keys(file: File) -> None:
    """Report keys that nothing reads, where one that is read may have been meant."""
    for (place, key), first in file.profile.strays.items():
        hint = guess_key(place, key)
        first.warn(*place, key, message="this key, which means nothing here", hint=hint, code="stray-key")


_RULES = (
    unused_mapping,
    too_few_rows,
    selected_splits,
    several_splits,
    no_correct_reference,
    recorded_train,
    undifferentiated,
    doubled_prompt,
    untagged_reference,
    nonfinite_numbers,
    ids,
    missing_recordings,
    incomplete_recordings,
    mixed_recordings,
    several_completions,
    stray_keys,
    stops_in_references,
    empty_answers,
    separate_segments,
    groups,
    clusters,
    scales,
)
"""Problems of one line are reported in this order."""


_OF_ROWS = {no_correct_reference, untagged_reference, nonfinite_numbers, ids, stray_keys, scales}
"""Those of them that depend on the rows alone."""


def report(file: File, *, is_planned: bool) -> None:
    """Report what is wrong with a file, or odd; unless `is_planned`, for its header is wrong, what rows alone say."""
    for rule in _RULES:
        if is_planned or rule in _OF_ROWS:
            rule(file)
