"""Rules about recorded completions: which are missing, and which no score can read."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping

from helm_ext import parsing
from helm_ext.errors import count, show
from helm_ext.evalset.patterns import limit_pattern
from helm_ext.formats.request_states.checks.rule import MOST_KEPT, File, Rule
from helm_ext.formats.request_states.header import Header
from helm_ext.formats.request_states.reading import State
from helm_ext.formats.request_states.recorded import tells_option
from helm_ext.formats.request_states.rows import Row
from helm_ext.formats.request_states.tally import First

__all__ = [
    "IncompleteRecordings",
    "MissingRecordings",
    "MixedRecordings",
    "ReasonedAnswers",
    "UnmappedCompletions",
]


class MissingRecordings(Rule):
    """Rows of a recorded file that were not run, or failed."""

    def report(self, file: File) -> None:
        statuses = file.survey.statuses
        evaluated = sum(first.count for first in statuses.values())
        refused = "a recorded run refuses the file", "missing=skip scores the rest and reports how many were left out"
        left_out = "left out of the score, and counted", "missing=error refuses the file instead"
        unusable = left_out if file.is_imported else refused
        if file.survey.earlier_left_out:
            unusable = left_out[0], "as in the run that wrote the file"
        for first, one, many, code, (outcome, hint) in (
            (statuses["not_run"], "row was not run", "rows were not run", "not-run", unusable),
            (statuses["failed"], "row failed", "rows failed", "failed", unusable),
        ):
            if file.survey.is_recorded and first.row is not None:
                first.row.place.warn(
                    *(() if first.row.is_helm else ("request",)),
                    message=f"{count(first.count, one, many)} of {evaluated}; {outcome}",
                    hint=hint,
                    code=code,
                )


class IncompleteRecordings(Rule):
    """Rows with requests about some options, and not all that the method asks about."""

    def __init__(self, header: Header) -> None:
        super().__init__(header)
        self.found = First()
        self.requests: tuple[int, int] | None = None
        """Of the first of them: how many are recorded with log-probabilities, and how many are needed."""

    def see_incomplete(self, row: Row, requests: tuple[int, int]) -> None:
        self.requests = self.requests or requests
        self.found.add(row)

    def report(self, file: File) -> None:  # noqa: ARG002
        if self.found.row is not None:
            there, needed = self.requests or (0, 0)
            rows = count(self.found.count, "row has", "rows have")
            self.found.row.place.warn(
                "request",
                message=f"{rows} completions that the method cannot be scored with: it needs one request per option, "
                f"with log-probabilities of tokens that end with it; here {there} of {needed} are recorded"
                + _explain(self.found.row),
                hint="completions that name an option are scored with method generation or multiple_choice_joint",
                code="incomplete-recording",
            )


def _explain(row: Row) -> str:
    """Return which tokens of a row do not end with the option that was asked about, if such are the reason."""
    options = row.options
    for _, state in row.found:
        index = state.get("reference_index") if state is not None else None
        if state is None or index is None or tells_option(state, options):
            continue
        if not 0 <= index < len(options):
            return f"; reference_index {index} is none of its {count(len(options), 'reference')}"
        text = "".join(token["text"] for token in state["result"]["completions"][0].get("tokens") or ())
        if text and not text.strip().endswith(options[index].strip()):
            return f"; those of option {show(options[index])} end with {show(text[-40:])}"
    return ""


class MixedRecordings(Rule):
    """Rows recorded by a text beside rows recorded by log-probabilities: a score would be of a part of them."""

    def __init__(self, header: Header) -> None:
        super().__init__(header)
        self.found = First()

    def see(self, row: Row, state: State) -> None:  # noqa: ARG002
        if row.likelihoods is None and row.found[0][1] is not None and row.split != "train":
            self.found.add(row)

    def report(self, file: File) -> None:
        if file.survey.likelihoods.count and self.found.row is not None:
            self.found.row.place.error(
                "likelihoods",
                message=f"missing in {count(self.found.count, 'row', 'rows')} with a completion, and other rows have "
                "them",
                hint="put the rows that were asked for a text into a file of their own",
                code="likelihoods",
                is_integrity=True,
            )


def _take_answer(text: str, row: Row, thinking: str | None) -> str:
    """Return a completion's text without thinking, unless it is kept (`helm_ext.scoring.thinking`)."""
    if "<" not in text or thinking == "keep" or any(map(parsing.names_thinking, row.options)):
        return text
    found = parsing.split_thinking(text)
    return text if found is None else found[1]


class UnmappedCompletions(Rule):
    """Recorded completions that name none of a row's options, as the metric will read them."""

    def __init__(self, header: Header) -> None:
        super().__init__(header)
        self.found = First()
        given, scoring = header.settings.given, header.scoring
        self.pattern = given.get("output_mapping_pattern")
        self.multi_label = bool(given.get("multi_label"))
        self.is_list = header.settings.output_format == "list"
        self.next_question = header.settings.next_question
        self.extract, self.thinking = scoring.get("extract"), scoring.get("thinking")
        self.strip, self.lower = bool(scoring.get("strip")), bool(scoring.get("lower"))

    def see(self, row: Row, state: State) -> None:  # noqa: ARG002
        recorded = row.found[0][1]
        if row.is_helm or row.labels is None or recorded is None or row.split == "train":
            return
        options = {label: row.references[position]["output"]["text"] for label, position in row.labels.items()}
        completions = recorded["result"]["completions"]
        try:
            texts = [_take_answer(one["text"], row, self.thinking) for one in completions]
            cut = [parsing.is_cut_off(one.get("finish_reason")) for one in completions]
            counted = list(zip(texts, cut, strict=True))[: None if self.is_list else 1]
            if not any(self._names(text, options, is_cut_off=is_cut_off) for text, is_cut_off in counted):
                self.found.add(row)
        except ValueError:  # an invalid regular expression; reported with the header
            return

    def _names(self, completion: str, options: Mapping[str, str], *, is_cut_off: bool) -> bool:
        whole = parsing.cut_at_next_question(completion, self.next_question)
        with limit_pattern(self.extract, whole):
            text = parsing.clean(whole, extract=self.extract, strip=self.strip, lower=self.lower)
        if text is None:
            return False
        with limit_pattern(self.pattern, text):
            read = parsing.read_choice(
                text,
                options,
                self.pattern,
                multi_label=self.multi_label,
                is_list=self.is_list,
                is_cut_off=is_cut_off and self.extract is None and whole == completion,
            )
        return any(read)

    def report(self, file: File) -> None:
        if self.found.row is not None:
            file.counts["unmapped"] = self.found.count
            self.found.row.place.warn(
                "request",
                message=f"{self.found.count} of {file.survey.statuses['ok'].count} recorded completions name none of "
                "the options; they count as wrong",
                code="unmapped",
            )


class ReasonedAnswers(Rule):
    """Completions that reason before they answer: equal to no reference unless the answer is extracted."""

    def __init__(self, header: Header) -> None:
        super().__init__(header)
        scoring = header.scoring
        self.thinking = scoring.get("thinking")
        self.is_extracted = any(scoring.get(key) for key in ("extract", "extract_all"))
        self.equal = 0
        self.found = First()
        self.leads = Counter[str]()
        """The words before the answer, to how many completions have them."""

    def see(self, row: Row, state: State) -> None:  # noqa: ARG002
        recorded = row.found[0][1]
        if self.is_extracted or row.labels is not None or recorded is None or row.is_helm:
            return
        text = _take_answer(recorded["result"]["completions"][0]["text"], row, self.thinking)
        text = text.strip().rstrip(".").casefold()
        for gold in filter(None, (gold.strip().rstrip(".").casefold() for gold in row.golds)):
            if text == gold:
                self.equal += 1
            lead = re.search(r"(\w+\W+)?\w+\W*$", text.removesuffix(gold)) if text.endswith(gold) else None
            if lead is not None:
                self.found.add(row)
                self._count(lead[0].strip(), 1)

    def _count(self, lead: str, times: int) -> None:
        if lead in self.leads or len(self.leads) < MOST_KEPT:
            self.leads[lead] += times

    def report(self, file: File) -> None:
        plan, survey = file.plan, file.survey
        if self.is_extracted or plan.method != "generation" or survey.choice.count or survey.helm.count:
            return
        lead, times = (self.leads.most_common(1) or [("", 0)])[0]
        row = self.found.row if not self.equal and 2 * times > survey.statuses["ok"].count else None
        how = f"the recorded completions end with it, after {show(lead)}"
        thought = survey.thoughts.row
        if row is None and thought is not None and plan.settings.max_train_instances and not survey.is_recorded:
            row, how = thought, "the demonstrations show a chain of thought first"
            lead = plan.settings.text("chain_of_thought_suffix").strip()
        if row is not None:
            # Spaces and letters as they come; a final point is no part of an answer.
            words = r"\s+".join(map(re.escape, lead.split()))
            pattern = rf"(?i){words}\s*(.+?)\.?\s*$" if lead else r"([^\n]+?)\.?\s*$"
            file.problems.warn(
                ("scoring",),
                f"a completion that reasons before it answers is equal to no reference, and {how}",
                f'extract the answer: "scoring": {{"extract": {json.dumps(pattern)}}}',
                code="extract",
            )
