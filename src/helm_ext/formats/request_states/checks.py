"""What is said about a file beyond the shape of its rows: one class a rule, which sees rows and then says its problems.

Each rule keeps a few counts and the first row it is about, however many rows there are (ids and inputs are compared:
some bytes a row). `RULES` is the list, in the order in which problems of one line are said.
"""

from __future__ import annotations

import json
import re
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from helm_ext import parsing
from helm_ext.errors import DatasetIntegrityError, Location, Path, Problem, Problems, count, format_path, show
from helm_ext.files import canonical_json
from helm_ext.formats.request_states.header import Header
from helm_ext.formats.request_states.instances import to_perturbation
from helm_ext.formats.request_states.plan import First, Plan, Survey
from helm_ext.formats.request_states.reading import Place, State
from helm_ext.formats.request_states.rows import Lack, Row
from helm_ext.formats.request_states.strays import guess, objects, readable_keys

__all__ = ["Checks", "File", "Rule"]

EXPECTED_EVAL_ROWS = 100
"""The format asks for the demonstrations and 100 rows more where it leaves the choice to us."""

_ALL = ("request_states",)
_KEPT = 1_000
"""Rows without a correct reference that are listed one by one; see `Problems`."""
_HASH_MASK = (1 << 60) - 1
"""A whole number of 60 bits takes 32 bytes, one of 64 bits 48; two are kept for each row."""


@dataclass
class File:
    """A file of which all rows were seen, and what is planned with it."""

    plan: Plan
    survey: Survey
    problems: Problems
    seed: int
    counts: dict[str, int] = field(default_factory=dict)
    """What was counted, for the user."""


class Rule:
    """Sees rows, then says what is wrong or odd. A rule overrides what it needs."""

    sees_all_states = False
    """Whether it also looks at rows of which a problem was reported, and at further states of HELM's about one row."""

    def __init__(self, header: Header) -> None:
        self.header = header

    def see(self, row: Row, state: State) -> None:
        """Look at a row; `state` is what it was made of. Written for speed: this runs once a row."""

    def see_incomplete(self, row: Row, requests: tuple[int, int]) -> None:
        """Look at a row that lacks requests: how many are recorded with log-probabilities, how many are needed."""

    def say(self, file: File) -> None:
        """Report, when all rows were seen."""


class Checks:
    """The rules of one file."""

    def __init__(self, header: Header, *, reads_completions: bool) -> None:
        """`reads_completions`: whether it is worth time to read every completion as the metrics will."""
        self._rules = [kind(header) for kind in RULES if reads_completions or kind not in _READ_COMPLETIONS]
        self._see = [rule.see for rule in self._rules if type(rule).see is not Rule.see]
        self._see_all = [rule.see for rule in self._rules if rule.sees_all_states]

    def see(self, row: Row, state: State, *, is_new: bool) -> None:
        """Show a row to the rules. `is_new`: it is right, and no further state about a row that was seen."""
        for see in self._see if is_new else self._see_all:
            see(row, state)

    def see_incomplete(self, row: Row, requests: tuple[int, int]) -> None:
        """Show the rules a row that lacks requests."""
        for rule in self._rules:
            rule.see_incomplete(row, requests)

    def say(self, file: File) -> None:
        """Let every rule report."""
        for rule in self._rules:
            rule.say(file)


# What is wrong


class UnusedMapping(Rule):
    """A label of the whole file's answer mapping that names an option in no row."""

    sees_all_states = True

    def __init__(self, header: Header) -> None:
        super().__init__(header)
        self.used: set[str] = set()

    def see(self, row: Row, state: State) -> None:  # noqa: ARG002
        if row.labels_from == "file" and row.labels is not None:
            self.used.update(row.labels)

    def say(self, file: File) -> None:
        for label, target in (file.plan.settings.mapping or {}).items():
            if self.used and label not in self.used:
                file.problems.add(
                    ("adapter_spec", "answer_mapping", label),
                    f"no row has an option number {target}",
                    "positions count from 0",
                    code="mapping-without-option",
                    kind=DatasetIntegrityError,
                )


class TooFewRows(Rule):
    """A file with too few rows to draw demonstrations and leave one to evaluate."""

    def say(self, file: File) -> None:
        plan, problems = file.plan, file.problems
        if plan.can_run_live or problems.errors:  # rows that are wrong were not counted
            return
        message = (
            f"{count(file.survey.rows, 'row is', 'rows are')} too few: {plan.wanted} would be demonstrations, and at "
            "least one must be left to evaluate"
        )
        hint = "add rows, or lower adapter_spec.max_train_instances"
        if file.survey.is_recorded:
            problems.warn(_ALL, f"the file cannot be run live: {message}", hint, code="too-few-rows")
        else:
            message = f"no completions are recorded, so a model would be asked, and {message}"
            problems.add(_ALL, message, hint, code="too-few-rows", kind=DatasetIntegrityError)


class SelectedSplits(Rule):
    """eval_splits that no row is of, or that leave rows out."""

    def say(self, file: File) -> None:
        survey, splits, problems = file.survey, file.plan.settings.eval_splits, file.problems
        if not splits or problems.errors:
            return
        where = ("adapter_spec", "eval_splits")
        if not survey.selected:
            there = {split or "none given" for split in survey.splits}
            problems.add(
                where,
                f"no row is of split {' or '.join(splits)}, so there is nothing to evaluate",
                f"splits of the rows: {', '.join(sorted(there))}",
                code="no-eval-rows",
                kind=DatasetIntegrityError,
            )
            return
        train = survey.splits["train"] if survey.is_differentiated else 0
        others = survey.rows - train - survey.selected
        if others:
            message = f"{count(others, 'row is', 'rows are')} of other splits and not evaluated"
            problems.warn(where, message, code="eval-splits")


class NoCorrectReference(Rule):
    """Rows without a correct reference. In train rows of a file that tells them apart it is only odd."""

    sees_all_states = True

    def __init__(self, header: Header) -> None:
        super().__init__(header)
        self.train: list[tuple[Place, Lack]] = []
        self.others: list[tuple[Place, Lack]] = []
        self.rows = Counter[bool]()
        """How many there are: whether they are train rows, to their number."""

    def see(self, row: Row, state: State) -> None:  # noqa: ARG002
        if row.lack is not None:
            is_train = row.split == "train"
            self.rows[is_train] += 1
            found = self.train if is_train else self.others
            if len(found) < _KEPT:
                found.append((row.place, row.lack))

    def say(self, file: File) -> None:
        is_odd = file.survey.is_differentiated
        wrong = self.others if is_odd else sorted([*self.train, *self.others], key=lambda found: found[0].index)
        for place, lack in wrong:
            place.error(
                "instance", "references",
                message=lack.message, hint=lack.hint, code="no-correct-reference", is_integrity=True,
            )  # fmt: skip
        more = (self.rows[False] if is_odd else self.rows.total()) - len(wrong)
        if more:
            where, code = Location(file.problems.path), "no-correct-reference"
            file.problems.extend([Problem("", where, code=code, kind=DatasetIntegrityError, number=more)])
        if is_odd and self.train:
            place, lack = self.train[0]
            place.warn(
                "instance", "references",
                message=f"{count(self.rows[True], 'train row has', 'train rows have')} no correct reference: the "
                "answer shown is n/a",
                hint=lack.hint,
                code="no-correct-reference",
            )  # fmt: skip


class UnknownPerturbation(Rule):
    """Descriptions of perturbations that HELM does not know."""

    def __init__(self, header: Header) -> None:
        super().__init__(header)
        self.wrong: dict[bytes, str] = {}
        """Descriptions that were looked at, and what is wrong with each: "" for nothing."""

    def see(self, row: Row, state: State) -> None:  # noqa: ARG002
        given = row.instance.get("perturbation")
        if not given:
            return
        key = canonical_json(given)
        if key not in self.wrong:
            if len(self.wrong) >= _KEPT:
                self.wrong.clear()
            self.wrong[key] = _is_unknown(given)
        if self.wrong[key]:
            row.place.error("instance", "perturbation", message=self.wrong[key], code="perturbation")


def _is_unknown(perturbation: Mapping[str, Any]) -> str:
    try:
        to_perturbation(perturbation)
    except ValueError as error:
        return str(error)
    return ""


class EmptyAnswers(Rule):
    """Correct references without text. HELM's draw of demonstrations ends at an empty answer, and then fails.

    See `InContextLearningAdapter.sample_examples`. An empty answer is equal to an empty reply.
    """

    def __init__(self, header: Header) -> None:
        super().__init__(header)
        self.train, self.others = First(), First()

    def see(self, row: Row, state: State) -> None:  # noqa: ARG002
        if "" in row.golds:
            (self.train if row.split == "train" else self.others).add(row)

    def say(self, file: File) -> None:
        survey, settings = file.survey, file.plan.settings
        draws = settings.max_train_instances > 0 and settings.given.get("sample_train") is not False
        first, may_be_drawn = self.train, self.train.count
        if not survey.is_differentiated:
            self.others.merge(self.train)
            first = self.others  # those are drawn last
            may_be_drawn = file.plan.demonstrations - (survey.rows - first.count)
        if draws and may_be_drawn > 0 and first.row is not None and not survey.helm.count:
            say = first.row.place.warn if survey.is_recorded else first.row.place.error
            rows = count(first.count, "demonstration has", "demonstrations have")
            say(
                "instance", "references",
                message=f"{rows} an empty answer, and HELM cannot draw demonstrations where there is one",
                hint='write the answer, or "sample_train": false, which takes the first rows as they are',
                code="empty-demonstration",
            )  # fmt: skip
        if self.others.row is not None:
            self.others.row.place.warn(
                "instance", "references",
                message=f"{count(self.others.count, 'row has', 'rows have')} an empty correct reference: only an empty "
                "reply is equal to it",
                code="empty-answer",
            )  # fmt: skip


class ReasonedAnswers(Rule):
    """Completions that reason before they answer: equal to no reference unless the answer is extracted."""

    def __init__(self, header: Header) -> None:
        super().__init__(header)
        scoring = header.scoring
        self.is_extracted = any(scoring.get(key) for key in ("extract", "extract_all"))
        self.equal = 0
        self.found = First()
        self.leads = Counter[str]()
        """The words before the answer, to how many completions have them."""

    def see(self, row: Row, state: State) -> None:  # noqa: ARG002
        recorded = row.found[0][1]
        if self.is_extracted or row.labels is not None or recorded is None or row.is_helm:
            return
        text = recorded["result"]["completions"][0]["text"].strip().rstrip(".").casefold()
        for gold in filter(None, (gold.strip().rstrip(".").casefold() for gold in row.golds)):
            if text == gold:
                self.equal += 1
            lead = re.search(r"(\w+\W+)?\w+\W*$", text.removesuffix(gold)) if text.endswith(gold) else None
            if lead is not None and len(self.leads) < _KEPT:
                self.found.add(row)
                self.leads[lead[0].strip()] += 1

    def say(self, file: File) -> None:
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


# What is odd about splits, sizes and prompts


class MissingSplit(Rule):
    """Rows without a split beside train rows."""

    def say(self, file: File) -> None:
        number = file.survey.splits[None]
        if file.survey.is_differentiated and number:
            message = f"{count(number, 'row has', 'rows have')} no split; evaluated, as others are train rows"
            file.problems.warn(_ALL, message, code="split-missing")


class Overlap(Rule):
    """Inputs both in the train split and in an evaluated one."""

    def __init__(self, header: Header) -> None:
        super().__init__(header)
        self.is_chat = header.settings.method == "chat"
        self.inputs: tuple[set[int], set[int]] = (set(), set())
        """Hashes of what is sent: of rows to evaluate, of train rows."""

    def see(self, row: Row, state: State) -> None:  # noqa: ARG002
        given = row.instance["input"]
        sent = given.get("text")
        if (not sent or self.is_chat) and given.get("messages"):
            sent = canonical_json(given["messages"])
        self.inputs[row.split == "train"].add(hash(sent) & _HASH_MASK)

    def say(self, file: File) -> None:
        number = len(self.inputs[0] & self.inputs[1])
        if file.survey.is_differentiated and number:
            file.problems.warn(
                _ALL,
                f"{count(number, 'input is', 'inputs are')} both in the train split and in an evaluated one",
                "a model is shown the answer to rows that it is scored on",
                code="overlap",
            )


class RecordedTrain(Rule):
    """Recorded completions of rows that are demonstrations."""

    def say(self, file: File) -> None:
        found = file.survey.train_statuses["ok"]
        if file.survey.is_differentiated and found.row is not None:
            found.row.place.warn(
                "request",
                message=f"{count(found.count, 'train row has', 'train rows have')} recorded completions, which are not "
                "scored",
                code="recorded-train",
            )


class Undifferentiated(Rule):
    """A file that does not say which rows are demonstrations: they are drawn."""

    def say(self, file: File) -> None:
        survey, settings, problems = file.survey, file.plan.settings, file.problems
        if survey.is_differentiated or survey.helm.count:
            return
        given = ", ".join(sorted(split for split in survey.splits if split)) or "none"
        message = f"train and test are not differentiated (splits given: {given})"
        if file.plan.demonstrations:
            drawn = f"{file.plan.demonstrations} demonstrations are drawn with seed {file.seed}"
            message += f": {drawn}, the rest is evaluated"
            if survey.is_recorded:
                message += "; a recorded run evaluates all"
        problems.warn(_ALL, message, code="not-differentiated")
        if survey.rows < file.plan.wanted + EXPECTED_EVAL_ROWS:
            problems.warn(
                _ALL,
                f"{count(survey.rows, 'row', 'rows')}, fewer than the {settings.max_train_instances} demonstrations + "
                f"{EXPECTED_EVAL_ROWS} test examples that the format asks for",
                code="few-rows",
            )
        if survey.thoughts.count and settings.max_train_instances:
            problems.warn(
                _ALL,
                "there are chains of thought, but train and test are not differentiated",
                'give the demonstrations "split": "train" and the others "split": "test"',
                code="chain-of-thought-split",
            )


class DoubledPrompt(Rule):
    """Texts that hold the prefixes already which the prompt puts around them."""

    def say(self, file: File) -> None:
        survey, plan = file.survey, file.plan
        if survey.helm.count or plan.method == "chat":
            return
        is_sent_as_it_is = plan.settings.max_train_instances == 0 and plan.method == "generation"
        for first, key, verb in (
            (survey.starts_doubled, "input_prefix", "begin with"),
            (survey.ends_doubled, "output_prefix", "end with"),
        ):
            if first.row is None or (is_sent_as_it_is and first.count == survey.rows):
                continue
            first.row.place.warn(
                "instance", "input", "text",
                message=f"{first.count} of {survey.rows} inputs {verb} the {key} already, so the prompt has it twice",
                hint=f'set adapter_spec.{key} to "", or take it out of the texts; if the texts hold worked examples, '
                "set max_train_instances to 0: then they are sent as they are",
                code="doubled-prompt",
            )  # fmt: skip


# What single rows lack, said once, at the first of them


class UntaggedReference(Rule):
    """A single reference without tags, which is taken as correct."""

    sees_all_states = True

    def __init__(self, header: Header) -> None:
        super().__init__(header)
        self.found = First()

    def see(self, row: Row, state: State) -> None:  # noqa: ARG002
        if row.is_untagged:
            self.found.add(row)

    def say(self, file: File) -> None:  # noqa: ARG002
        if self.found.row is not None:
            rows = count(self.found.count, "row has", "rows have")
            self.found.row.place.warn(
                "instance", "references", 0, "tags",
                message=f"{rows} a single reference without tags, taken as correct",
                hint='add "tags": ["correct"]',
                code="untagged-reference",
            )  # fmt: skip


class NonfiniteNumbers(Rule):
    """NaN and infinity, which no browser reads."""

    sees_all_states = True

    def __init__(self, header: Header) -> None:
        super().__init__(header)
        self.found = First()
        self.numbers = 0

    def see(self, row: Row, state: State) -> None:  # noqa: ARG002
        if row.nonfinite:
            self.found.add(row)
            self.numbers += row.nonfinite

    def say(self, file: File) -> None:  # noqa: ARG002
        if self.found.row is not None:
            self.found.row.place.warn(
                message=f"{count(self.numbers, 'number')} in {count(self.found.count, 'row')} "
                f"{'is' if self.numbers == 1 else 'are'} NaN or infinite; treated as not recorded",
                hint="write null",
                code="not-finite",
            )


class Ids(Rule):
    """Rows whose id is missing, empty, or taken by an earlier row."""

    def __init__(self, header: Header) -> None:
        super().__init__(header)
        self.found = First()
        self.ids: set[int] = set()
        self.order, self.places = array("q"), array("q")
        """Of each new id, its hash and where it stands (line or index): in few bytes."""
        self.twin = 0
        """Where the row stands whose id the first of them has."""

    def see(self, row: Row, state: State) -> None:  # noqa: ARG002
        given = row.instance.get("id")
        if given is None or given == "":
            self.found.add(row)
            return
        perturbation = row.instance.get("perturbation")
        hashed = hash((str(given), canonical_json(perturbation)) if perturbation else str(given)) & _HASH_MASK
        if hashed not in self.ids:
            self.ids.add(hashed)
            if not self.found.count:  # only the first one is told where its twin is
                self.order.append(hashed)
                self.places.append(row.place.number)
            return
        if not self.found.count:
            self.twin = self.places[self.order.index(hashed)]
        self.found.add(row)

    def say(self, file: File) -> None:
        row = self.found.row
        if row is None:
            return
        file.counts["renamed_ids"] = self.found.count
        message = f"{count(self.found.count, 'row has no id of its', 'rows have no id of their')} own; made unique"
        given = row.instance.get("id")
        twin: Path = ()
        if given is not None and given != "":
            message += f": {show(given)} is also the id of "
            if row.place.line is None:
                twin = (*_ALL, self.twin, "instance", "id")
                message += format_path(twin[:2])
            else:
                message += f"line {self.twin}"
        row.place.warn("instance", "id", message=message, code="ids", also=twin)


class MissingRecordings(Rule):
    """Rows of a recorded file that were not run, or failed."""

    def say(self, file: File) -> None:
        statuses = file.survey.statuses
        evaluated = sum(first.count for first in statuses.values())
        for first, one, many, code in (
            (statuses["not_run"], "row was not run", "rows were not run", "not-run"),
            (statuses["failed"], "row failed", "rows failed", "failed"),
        ):
            if file.survey.is_recorded and first.row is not None:
                first.row.place.warn(
                    *(() if first.row.is_helm else ("request",)),
                    message=f"{count(first.count, one, many)} of {evaluated}; a recorded run refuses the file",
                    hint="missing=skip scores the rest and reports how many were left out",
                    code=code,
                )


class IncompleteRecordings(Rule):
    """Rows with requests about some options, and not all that the method asks about."""

    def __init__(self, header: Header) -> None:
        super().__init__(header)
        self.found = First()
        self.requests = (0, 0)
        """Of the first of them: how many are recorded with log-probabilities, and how many are needed."""

    def see_incomplete(self, row: Row, requests: tuple[int, int]) -> None:
        self.requests = self.requests if self.found.count else requests
        self.found.add(row)

    def say(self, file: File) -> None:  # noqa: ARG002
        if self.found.row is not None:
            there, needed = self.requests
            rows = count(self.found.count, "row has", "rows have")
            self.found.row.place.warn(
                "request",
                message=f"{rows} completions that the method cannot be scored with: it needs one request per option, "
                f"with log-probabilities; here {there} of {needed} are recorded",
                hint="completions that name an option are scored with method generation or multiple_choice_joint",
                code="incomplete-recording",
            )


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
        self.extract = scoring.get("extract")
        self.strip, self.lower = bool(scoring.get("strip")), bool(scoring.get("lower"))

    def see(self, row: Row, state: State) -> None:  # noqa: ARG002
        recorded = row.found[0][1]
        if row.is_helm or row.labels is None or recorded is None or row.split == "train":
            return
        options = {label: row.references[position]["output"]["text"] for label, position in row.labels.items()}
        completions = recorded["result"]["completions"]
        try:
            if not any(self._names(one["text"], options) for one in completions[: None if self.is_list else 1]):
                self.found.add(row)
        except ValueError:  # a regular expression that is none; reported with the header
            return

    def _names(self, completion: str, options: Mapping[str, str]) -> bool:
        completion = parsing.cut_at_next_question(completion, self.next_question)
        text = parsing.clean(completion, extract=self.extract, strip=self.strip, lower=self.lower)
        if text is None:
            return False
        return any(parsing.read_choice(text, options, self.pattern, multi_label=self.multi_label, is_list=self.is_list))

    def say(self, file: File) -> None:
        if self.found.row is not None:
            file.counts["unmapped"] = self.found.count
            self.found.row.place.warn(
                "request",
                message=f"{self.found.count} of {file.survey.statuses['ok'].count} recorded completions name none of "
                "the options; they count as wrong",
                code="unmapped",
            )


class StrayKeys(Rule):
    """Keys that nothing reads, where somebody may have meant one that is read (see `strays`)."""

    def __init__(self, header: Header) -> None:
        super().__init__(header)
        self.found: dict[tuple[Path, str], tuple[First, str]] = {}
        """(place in the state, key) to where it was seen, and what may have been meant."""
        self.settled = {place: set(known) for place, known in readable_keys.items()}
        """Keys that are read, and those that rows have for themselves: they are not looked at again."""

    def see(self, row: Row, state: State) -> None:
        if row.is_helm or state.is_known:
            return
        settled = self.settled
        for place, given in objects(state.value, row):
            if not settled[place].issuperset(given):
                for key in given.keys() - settled[place]:
                    self._look_at(place, key, row)

    def _look_at(self, place: Path, key: str, row: Row) -> None:
        if (place, key) not in self.found:
            guessed = guess(place, key, is_recorded=row.found[0][0] == "ok")
            if guessed is None:
                return
            if not guessed:
                self.settled[place].add(key)
                return
            self.found[place, key] = First(), guessed
        self.found[place, key][0].add(row)

    def say(self, file: File) -> None:  # noqa: ARG002
        for (place, key), (first, hint) in self.found.items():
            assert first.row is not None
            rows = count(first.count, "row has", "rows have")
            first.row.place.warn(
                *place, key, message=f"{rows} this key, which means nothing here", hint=hint, code="stray-key"
            )


class StopsInReferences(Rule):
    """Correct references that hold a stop sequence: no live model says what stands behind it."""

    def say(self, file: File) -> None:
        found, cut_at = file.survey.with_stop, file.plan.scoring.cut_at
        if found.row is not None:
            found.row.place.warn(
                "instance", "references",
                message=f"{count(found.count, 'row has', 'rows have')} a correct reference with a stop sequence in it, "
                "which a live model cannot go beyond",
                hint=f"references and predictions are cut at {', '.join(map(show, cut_at))}"
                if cut_at
                else "cut_at_stop=true cuts references and predictions there",
                code="stop-in-reference",
            )  # fmt: skip


RULES: Iterable[type[Rule]] = (
    UnusedMapping,
    TooFewRows,
    SelectedSplits,
    NoCorrectReference,
    UnknownPerturbation,
    MissingSplit,
    Overlap,
    RecordedTrain,
    Undifferentiated,
    DoubledPrompt,
    UntaggedReference,
    NonfiniteNumbers,
    Ids,
    MissingRecordings,
    IncompleteRecordings,
    UnmappedCompletions,
    StrayKeys,
    StopsInReferences,
    EmptyAnswers,
    ReasonedAnswers,
)

_READ_COMPLETIONS = (UnmappedCompletions, ReasonedAnswers)
