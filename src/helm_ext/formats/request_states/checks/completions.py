"""Rules that read recorded completions as the metrics will."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping

from helm_ext import parsing
from helm_ext.errors import show
from helm_ext.evalset.patterns import limit_pattern
from helm_ext.formats.request_states.checks.rule import File, Rule
from helm_ext.formats.request_states.header import Header
from helm_ext.formats.request_states.reading import State
from helm_ext.formats.request_states.rows import Row
from helm_ext.formats.request_states.tally import MOST_KEPT, First


def _take_answer(text: str, row: Row, thinking: str | None) -> str:
    """Return a completion's text without thinking, unless it is kept (`helm_ext.scoring.thinking`)."""
    if "<" not in text or thinking == "keep" or any(map(parsing.names_thinking, row.options)):
        return text
    found = parsing.split_thinking(text)
    return text if found is None else found[1]


class UnmappedCompletions(Rule):
    """Recorded completions that name none of a row's options, as the metric will read them."""

    def __init__(self, header: Header) -> None:
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
            text = parsing.clean(whole, pattern=self.extract, strip=self.strip, lower=self.lower)
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
                message=f"{self.found.count} of {file.profile.statuses['ok'].count} recorded completions name none of "
                "the options; they count as wrong",
                code="unmapped",
            )


class ReasonedAnswers(Rule):
    """Completions that reason before they answer: equal to no reference unless the answer is extracted."""

    def __init__(self, header: Header) -> None:
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
                words = lead[0].strip()
                if words in self.leads or len(self.leads) < MOST_KEPT:
                    self.leads[words] += 1

    def report(self, file: File) -> None:
        plan, profile = file.plan, file.profile
        if self.is_extracted or plan.method != "generation" or profile.choice.count or profile.helm.count:
            return
        lead, times = (self.leads.most_common(1) or [("", 0)])[0]
        row = self.found.row if not self.equal and 2 * times > profile.statuses["ok"].count else None
        how = f"the recorded completions end with it, after {show(lead)}"
        thought = profile.thoughts.row
        if row is None and thought is not None and plan.settings.max_train_instances and not profile.is_recorded:
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
