"""What is said about a file beyond the shape of its rows, by what is known of all of them. Each paragraph is a rule."""

from __future__ import annotations

import msgspec

from helm_ext.errors import DatasetIntegrityError, count, did_you_mean, show
from helm_ext.formats.request_states.checking import guess_key
from helm_ext.formats.request_states.plan import File
from helm_ext.formats.request_states.profile import MOST_VALUES
from helm_ext.formats.request_states.rows import ASKED_MODES

ALL_ROWS = ("request_states",)
"""The place of a problem that is about all rows."""
EXPECTED_EVAL_ROWS = 100
"""The format asks for the demonstrations and 100 rows more where it leaves the choice to us."""


def report(file: File, *, is_planned: bool) -> None:
    """Report what is wrong with a file, or odd; unless `is_planned`, for its header is wrong, what rows alone say.

    Problems of one line are reported in the order in which they are found here.
    """
    if is_planned:
        _check_splits(file)
        _check_prompts(file)
    _check_rows(file)
    if is_planned:
        _check_recordings(file)
        _check_references(file)
        _check_keys(file)


def _check_splits(file: File) -> None:
    """Which rows are demonstrations, and which are evaluated."""
    profile, header, problems = file.profile, file.header, file.problems
    is_counted = problems.errors == profile.find("lacks_gold").count  # other rows that are wrong were not
    integrity = DatasetIntegrityError
    for label, target in (header.mapping or {}).items():
        if is_counted and profile.used_labels and label not in profile.used_labels:
            at, message = ("adapter_spec", "answer_mapping", label), f"no row has an option number {target}"
            problems.add(at, message, "positions count from 0", code="mapping-without-option", kind=integrity)

    is_recorded = profile.is_recorded or profile.find("incomplete").count
    if not file.can_run_live and not is_recorded and is_counted:
        message = (
            f"no completions are recorded, so a model would be asked, and {count(profile.rows, 'row is', 'rows are')} "
            f"too few: {file.wanted} would be demonstrations, and at least one must be left to evaluate"
        )
        hint = "add rows, or lower adapter_spec.max_train_instances"
        problems.add(ALL_ROWS, message, hint, code="too-few-rows", kind=integrity)

    train = profile.splits["train"] if profile.is_differentiated else 0
    others = profile.rows - train - profile.selected
    splits, where = header.eval_splits, ("adapter_spec", "eval_splits")
    if splits and is_counted and not profile.selected:
        there = ", ".join(sorted({split or "none given" for split in profile.splits}))
        message = f"no row is of split {' or '.join(splits)}, so there is nothing to evaluate"
        problems.add(where, message, f"splits of the rows: {there}", code="no-eval-rows", kind=integrity)
    elif splits and is_counted and others:
        message = f"{count(others, 'row is', 'rows are')} of other splits and not evaluated"
        problems.warn(where, message, code="eval-splits")

    valid = profile.splits["valid"]
    others = profile.selected - valid
    if valid and others > 0 and "valid" in profile.eval_splits:  # HELM's leaderboards show the test split of such a run
        rows = count(others, "row is", "rows are")
        message = f"{rows} of split test and {valid} of valid (dev, validation): scores are shown of test alone"
        hint = "one split for all rows makes one score of them"
        if not file.reader.is_imported:
            hint += '; adapter_spec.eval_splits: ["valid"] scores those alone'
        problems.warn(() if file.reader.is_imported else ALL_ROWS, message, hint, code="several-splits")

    if profile.is_differentiated:
        said = "recorded completions, which are not scored"
        profile.find("ok", ["train"]).warn("request", one="train row has", message=said, code="recorded-train")
    elif not profile.find("helm").count and (file.wanted or not file.reader.is_imported):
        given = ", ".join(sorted(split for split in profile.splits if split)) or "none"
        message = f"train and test are not differentiated (splits given: {given})"
        if file.demonstrations:
            drawn = f"{file.demonstrations} demonstrations are drawn with seed {file.header.options.seed}"
            message += f": {drawn}, the rest is evaluated"
            if profile.is_recorded:
                message += "; a recorded run evaluates all"
        problems.warn(ALL_ROWS, message, code="not-differentiated")
        if profile.rows < file.wanted + EXPECTED_EVAL_ROWS:
            asked = f"{file.max_train_instances} demonstrations + {EXPECTED_EVAL_ROWS} test examples"
            message = f"{count(profile.rows, 'row')}, fewer than the {asked} that the format asks for"
            problems.warn(ALL_ROWS, message, code="few-rows")


def _check_prompts(file: File) -> None:
    """Texts that hold the prefixes already which the prompt puts around them."""
    profile = file.profile
    is_sent_as_it_is = file.max_train_instances == 0 and file.method == "generation"
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
        if file.method != "chat" and not profile.find("helm").count:
            first.place.warn("instance", "input", "text", message=said, hint=hint, code="doubled-prompt")


def _check_rows(file: File) -> None:
    """What depends on the rows alone."""
    profile = file.profile
    tags, said = ("instance", "references", 0, "tags"), "a single reference without tags, taken as correct"
    profile.find("untagged").warn(*tags, message=said, hint='add "tags": ["correct"]', code="untagged-reference")

    numbers = profile.nonfinite_numbers  # no browser reads them
    if profile.nonfinite.place is not None:
        those = f"{count(numbers, 'number')} in {count(profile.nonfinite.count, 'row')}"
        said = f"{those} {'is' if numbers == 1 else 'are'} NaN or infinite; treated as not recorded"
        profile.nonfinite.place.warn(message=said, hint="write null", code="not-finite")

    repeated = profile.find_repeated()
    if repeated and (not file.reader.is_imported or profile.numbers["id"].any()):  # else a table without ids
        number = file.counts["renamed_ids"] = len(repeated)
        rows = count(number, "row has", "rows have")
        said = f"{rows} no id, or that of an earlier row: told apart by -2, -3, ... behind it"
        profile.locate(repeated[0]).warn("instance", "id", message=said, code="ids")

    for (steps, key), first in profile.strays.items():
        said, hint = "this key, which means nothing here", guess_key(steps, key)
        is_lost = steps == ("request",) and "'result'" in hint and not profile.is_recorded  # what was answered
        first.warn(*steps, key, message=said, hint=hint, code="stray-key", is_error=is_lost)

    for criterion, scales in profile.scales.items():  # a mean of judgements on two scales would mean nothing
        first_scale, *other_scales = scales
        for scale in other_scales[:1]:
            place, number = scales[scale]
            other, one = (show(msgspec.json.decode(each)) for each in (scale, first_scale))
            said = f"{other}, where {show(criterion)} was judged on {one} before"
            hint = "a criterion has one scale: name the other one otherwise"
            place.error("judgements", number, "scale", message=said, hint=hint, code="judgement", is_integrity=True)


def _check_recordings(file: File) -> None:
    """What is recorded."""
    profile, is_helm = file.profile, file.profile.find("helm").count > 0
    outcome, hint = "a recorded run refuses the file", "missing=skip scores the rest and reports how many were left out"
    if file.reader.is_imported or profile.earlier_left_out:
        outcome, hint = "left out of the score, and counted", "missing=error refuses the file instead"
    if profile.earlier_left_out:
        hint = "as in the run that wrote the file"
    for first, one, many, code in (
        (profile.find_status("not_run"), "row was not run", "rows were not run", "not-run"),
        (profile.find_status("failed"), "row failed", "rows failed", "failed"),
    ):
        if profile.is_recorded and first.place is not None:
            message = f"{count(first.count, one, many)} of {profile.selected}; {outcome}"
            first.place.warn(*(() if is_helm else ("request",)), message=message, hint=hint, code=code)

    if (incomplete := profile.find("incomplete")).count:
        from helm_ext.adaptation.rows import explain_incomplete

        needs, hint = explain_incomplete(file.method, file.header.num_train_trials)
        said = f"completions that the method cannot be scored with: {needs}; here {profile.missing_requests}"
        incomplete.warn("request", message=said, hint=hint, code="incomplete-recording")

    by_text = profile.find("by_text", [split for split in profile.splits if split != "train"])
    if profile.find("likelihoods").count:  # a score would be of a part of the rows
        said = f"missing in {count(by_text.count, 'row')} with a completion, and other rows have them"
        hint = "put the rows that were asked for a text into a file of their own"
        by_text.refuse("likelihoods", message=said, hint=hint, code="likelihoods")

    # HELM's own metrics of texts end there (`Processor.process`).
    if file.method not in ASKED_MODES:
        said = "several results of one training trial, and HELM's metrics score one"
        hint = "keep one of them; results for several seeds (num_trials) are scored as a file each"
        asked_again = profile.find("asked_again", profile.to_score)
        asked_again.warn("train_trial_index", message=said, hint=hint, code="asked-again", is_error=True)

    number = profile.find("several").count
    is_said = file.earlier is not None or file.header.scoring.get("completions") is not None
    if number and file.scoring.metrics and file.scoring.output_format == "string" and not is_said:
        said = f"{count(number, 'row has', 'rows have')} several completions, of which the first is scored"
        hint = "completions=mean, pass_at_2, ... score all; completions=first says it is meant"
        file.problems.add((), said, hint, code="first", severity="note")


def _check_references(file: File) -> None:
    """What is right, as it will be shown and compared."""
    profile, header, scoring = file.profile, file.header, file.scoring
    where = "instance", "references"
    compared = profile.has("none_right") & (profile.has("ok") if profile.is_recorded else True)
    if compared.any() and scoring.metrics and file.method not in ASKED_MODES:  # HELM's own metrics of texts end there
        said = f"none that is tagged correct, and {scoring.metrics[0]} compares answers with those"
        hint = 'write "tags": ["correct"] at what is right, or "references": [] where nothing can be compared'
        none_right = profile.find("none_right", profile.to_score)
        none_right.warn(*where, message=said, hint=hint, code="no-correct-reference", is_error=True)
    said = "a correct reference with a stop sequence in it, which a live model cannot go beyond"
    hint = "cut_at_stop=true cuts references and predictions there"
    if scoring.cut_at:
        hint = f"references and predictions are cut at {', '.join(map(show, scoring.cut_at))}"
    profile.find("with_stop", profile.to_score).warn(*where, message=said, hint=hint, code="stop-in-reference")

    # HELM's draw of demonstrations ends at an empty answer, and fails (`InContextLearningAdapter.sample_examples`).
    others = profile.find("empty", profile.to_score)
    shown = profile.find("empty", ["train"])
    may_be_shown = shown.count
    if not profile.is_differentiated:
        shown, may_be_shown = others, file.demonstrations - (profile.rows - others.count)  # those are drawn last
    draws = file.max_train_instances > 0 and header.given.get("sample_train") is not False
    if draws and may_be_shown > 0 and not profile.find("helm").count:
        said = "an empty answer, and HELM cannot draw demonstrations where there is one"
        hint = 'write the answer, or "sample_train": false, which takes the first rows as they are'
        code, is_error = "empty-demonstration", not profile.is_recorded
        shown.warn(*where, one="demonstration has", message=said, hint=hint, code=code, is_error=is_error)
    said = "an empty correct reference: only an empty reply is equal to it"
    others.warn(*where, message=said, code="empty-answer")

    if scoring.output_format == "list" and not header.given.get("multi_label") and not profile.holds_lists:
        separator = show(scoring.separator)
        said = f"several correct references, none with {separator}: each alone is a right list"
        hint = f"join the segments with {separator} in one reference, or set multi_label"
        profile.find("several_golds").warn(*where, message=said, hint=hint, code="separate-segments")


def _check_keys(file: File) -> None:
    """Keys that `by=` and `cluster=` name: those that rows do not have, and those with too many values for a report."""
    profile, name = file.profile, file.header.options.cluster
    named = {"by": profile.ungrouped, "cluster": {} if name is None else {name: profile.find("unclustered")}}
    outcomes = {"by": "in no group of it", "cluster": "each a cluster of its own"}
    for argument, lacking in named.items():
        for key, first in lacking.items():
            hint = did_you_mean(key, profile.keys) or f"keys: {', '.join(map(show, profile.keys))}"
            if first.count == profile.rows:
                message = f"no row has a value of {show(key)}"
                file.problems.add((argument,), message, hint if argument == "by" else "", code=argument)
            elif len(profile.values.get(key, ())) > MOST_VALUES and argument == "by":
                message = f"{show(key)} has more than {MOST_VALUES} values, each a column of the report"
                file.problems.add(("by",), message, "name a key with fewer values", code="by")
            else:
                first.warn(message=f"no value of {show(key)}: {outcomes[argument]}", code=argument)
