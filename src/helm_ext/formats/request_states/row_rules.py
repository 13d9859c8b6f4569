"""The rules that look at rows for themselves: they keep counts and the first row that they are about, no more."""

from __future__ import annotations

import difflib
import json
import re
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec

from helm_ext import parsing
from helm_ext.errors import Path, Problem, Problems, count, did_you_mean, show
from helm_ext.files import canonical_json
from helm_ext.formats.request_states import shapes
from helm_ext.formats.request_states.checking import known_keys
from helm_ext.formats.request_states.columns import Columns, hash_content
from helm_ext.formats.request_states.header import Header, Options
from helm_ext.formats.request_states.instances import to_perturbation
from helm_ext.formats.request_states.plan import Plan
from helm_ext.formats.request_states.profile import MOST_KEPT, First, Profile, Tally
from helm_ext.formats.request_states.reading import Reader, State
from helm_ext.formats.request_states.rows import Row
from helm_ext.scoring.texts import limit_pattern

if TYPE_CHECKING:
    from helm_ext.files.store import RowStore

ALL_ROWS = ("request_states",)
"""The place of a problem that is about all rows."""
_MOST_VALUES = 200
"""Of one attribute: each is a column of a report."""


@dataclass
class File:
    """A file of which all rows were seen, and what is planned with it."""

    reader: Reader
    header: Header
    options: Options
    profile: Profile
    columns: Columns
    problems: Problems
    store: RowStore[Row] | None
    """None where the file is only checked."""
    plan: Plan = field(init=False)
    counts: dict[str, int] = field(default_factory=dict)
    """What was counted, for the user."""

    def finish(self) -> list[Problem]:
        """Return all that was found, errors first."""
        return self.problems.finish(self.reader.locate)


class Rule(Tally):
    """A rule that must see rows for itself. Others are functions of what is known of all rows."""

    def __init__(self, header: Header) -> None:
        """Begin with a file."""

    def see(self, row: Row, state: State) -> None:
        """Look at a row; `state` is what it was made of. Written for speed: this runs once a row."""

    def report(self, file: File) -> None:
        """Report, when all rows were seen."""


class Overlap(Rule):
    """Inputs both in the train split and in an evaluated one."""

    def __init__(self, header: Header) -> None:
        self.is_chat = header.settings.method == "chat"
        self.inputs = {False: array("q"), True: array("q")}
        """Hashes of what is sent: whether of train rows, to those."""

    def see(self, row: Row, state: State) -> None:  # noqa: ARG002
        given = row.instance["input"]
        sent = given.get("text")
        if (not sent or self.is_chat) and given.get("messages"):
            sent = canonical_json(given["messages"])
        self.inputs[row.split == "train"].append(hash_content(sent or ""))

    def report(self, file: File) -> None:
        shown, asked = self.inputs[True], self.inputs[False]
        number = len(set(shown).intersection(asked)) if file.profile.is_differentiated else 0
        if number:
            file.problems.warn(
                ALL_ROWS,
                f"{count(number, 'input is', 'inputs are')} both in the train split and in an evaluated one",
                "a model is shown the answer to rows that it is scored on",
                code="overlap",
            )


class UnknownPerturbation(Rule):
    """Descriptions of perturbations that HELM does not know."""

    def see(self, row: Row, state: State) -> None:  # noqa: ARG002
        given = row.instance.get("perturbation")
        wrong = _find_wrong(msgspec.json.encode(given)) if given else ""
        if wrong:
            row.place.error("instance", "perturbation", message=wrong, code="perturbation")


@lru_cache(MOST_KEPT)
def _find_wrong(perturbation: bytes) -> str:
    """Return what is wrong with a description, which is JSON; "" for nothing."""
    try:
        to_perturbation(msgspec.json.decode(perturbation))
    except ValueError as error:
        return str(error)
    return ""


class Groups(Rule):
    """Keys that `by=` names: those that no row has, and those with too many values for a report."""

    def __init__(self, header: Header) -> None:
        self.values: dict[str, set[str]] = {name: set() for name in header.settings.by}
        self.lacking = {name: First() for name in self.values}
        self.keys: dict[str, None] = {}
        """Keys that the first rows have."""

    def see(self, row: Row, state: State) -> None:
        for name, values in self.values.items():
            value = (row.attributes or {}).get(name)
            if value is None:
                self.lacking[name].add(row.place)
            elif len(values) <= _MOST_VALUES:
                values.add(value)
        if self.values and len(self.keys) < MOST_KEPT:
            extra = row.instance.get("extra_data") or {}
            self.keys |= dict.fromkeys((*extra, *row.instance, *state.value))

    def report(self, file: File) -> None:
        for name, values in self.values.items():
            if not values:
                hint = did_you_mean(name, self.keys) or f"keys: {', '.join(map(show, list(self.keys)[:20]))}"
                file.problems.add(("by",), f"no row has a value of {show(name)}", hint, code="by")
            elif len(values) > _MOST_VALUES:
                message = f"{show(name)} has more than {_MOST_VALUES} values, each a column of the report"
                file.problems.add(("by",), message, "name a key with fewer values", code="by")
            else:
                self.lacking[name].warn(message=f"no value of {show(name)}: in no group of it", code="by")


# Completions, read as the metrics will


def _take_answer(text: str, row: Row, thinking: str | None) -> str:
    """Return a completion's text without thinking, unless it is kept (`scoring.thinking`)."""
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
            if not any(
                self._names(_take_answer(one["text"], row, self.thinking), options, one.get("finish_reason"))
                for one in completions[: None if self.is_list else 1]
            ):
                self.found.add(row.place)
        except ValueError:  # an invalid regular expression; reported with the header
            return

    def _names(self, completion: str, options: Mapping[str, str], finish_reason: Any) -> bool:
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
                is_cut_off=parsing.is_cut_off(finish_reason) and self.extract is None and whole == completion,
            )
        return any(read)

    def report(self, file: File) -> None:
        if self.found.place is not None:
            file.counts["unmapped"] = self.found.count
            self.found.place.warn(
                "request",
                message=f"{self.found.count} of {file.profile.find_status('ok').count} recorded completions name none "
                "of the options; they count as wrong",
                code="unmapped",
            )


class ReasonedAnswers(Rule):
    """Completions that reason before they answer: equal to no reference unless the answer is extracted."""

    def __init__(self, header: Header) -> None:
        scoring = header.scoring
        self.thinking = scoring.get("thinking")
        self.is_extracted = any(scoring.get(key) for key in ("extract", "extract_all"))
        self.equal = 0
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
                words = lead[0].strip()
                if words in self.leads or len(self.leads) < MOST_KEPT:
                    self.leads[words] += 1

    def report(self, file: File) -> None:
        plan, profile = file.plan, file.profile
        is_choice = profile.find("choice").count or profile.find("helm").count
        if self.is_extracted or plan.method != "generation" or is_choice:
            return
        lead, times = (self.leads.most_common(1) or [("", 0)])[0]
        how = ""
        if not self.equal and 2 * times > profile.find_status("ok").count:
            how = f"the recorded completions end with it, after {show(lead)}"
        elif profile.thoughts.count and plan.settings.max_train_instances and not profile.is_recorded:
            how = "the demonstrations show a chain of thought first"
            lead = plan.settings.text("chain_of_thought_suffix").strip()
        if how:
            # Spaces and letters as they come; a final point is no part of an answer.
            words = r"\s+".join(map(re.escape, lead.split()))
            pattern = rf"(?i){words}\s*(.+?)\.?\s*$" if lead else r"([^\n]+?)\.?\s*$"
            file.problems.warn(
                ("scoring",),
                f"a completion that reasons before it answers is equal to no reference, and {how}",
                f'extract the answer: "scoring": {{"extract": {json.dumps(pattern)}}}',
                code="extract",
            )


# Keys that nothing reads

_READABLE_KEYS: dict[Path, frozenset[str]] = {
    (): known_keys(shapes.StateShape),
    ("instance",): known_keys(shapes.InstanceShape),
    ("instance", "input"): known_keys(shapes.InputShape),
    ("instance", "references"): known_keys(shapes.ReferenceShape),
    ("request",): known_keys(shapes.RequestShape),
    ("request", "result"): known_keys(shapes.ResultShape),
    ("request", "result", "completions"): known_keys(shapes.CompletionShape),
    ("result",): known_keys(shapes.ResultShape),
    ("result", "completions"): known_keys(shapes.CompletionShape),
}
"""The places in a state, and the keys that are read there."""

_A_COMPLETION = 'a completion is read in request.result.completions: [{"text": ...}]'
_MEANT = {
    "completions": "completions is read in request.result",
    "success": "success is read in request.result",
    "result": "result is read in request",
    "input": "input is read in instance",
    "references": "references is read in instance",
    "split": "split is read in instance",
    "chain_of_thought": "chain_of_thought is read in instance",
    "tags": "tags is read in the reference itself",
    "correct": 'write "tags": ["correct"]',
    "is_correct": 'write "tags": ["correct"]',
    "completion": _A_COMPLETION,
}
"""Keys that mean the same wherever they stand, and what to do."""
_ANSWERS = {"output", "response", "prediction"}
_IN_COMPLETION = _ANSWERS | {"content", "message"}
"""Keys that may be a row's own, and are taken for a completion only where none is recorded."""
_NEAR = 0.85
"""Of difflib: `tag` and `Tags` are near `tags`, `idx` and `input_text` are near nothing."""


class StrayKeys(Rule):
    """Keys that nothing reads, where somebody may have meant one that is read.

    Rows may have keys of their own; they are kept (`RowExtra.data`). But a key that is spelt nearly as one of the
    format's, or that the format has at another place, was hardly meant as such: a completion under
    `request.completions` would never be scored. Such keys are warned of.
    """

    def __init__(self, header: Header) -> None:  # noqa: ARG002
        self.found: dict[tuple[Path, str], First] = {}
        """(place in the state, key) to where it was seen."""

    def see(self, row: Row, state: State) -> None:
        if row.is_helm or state.is_known:
            return
        is_recorded = row.found[0][0] == "ok"
        for place, given in _find_objects(state.value, row):
            readable = _READABLE_KEYS[place]
            if not readable.issuperset(given):
                for key in given:
                    if key not in readable and _guess(place, key, is_recorded=is_recorded):
                        self.found.setdefault((place, key), First()).add(row.place)

    def report(self, file: File) -> None:  # noqa: ARG002
        for (place, key), first in self.found.items():
            hint = _guess(place, key, is_recorded=False)
            first.warn(*place, key, message="this key, which means nothing here", hint=hint, code="stray-key")


def _find_objects(state: Mapping[str, Any], row: Row) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """Yield the objects of a valid state that may have keys which mean something elsewhere, and their places."""
    if row.extra:
        yield (), state
    if row.has_unknown:
        instance = state["instance"]
        yield ("instance",), instance
        yield ("instance", "input"), instance["input"]
        for reference in instance.get("references") or ():
            yield ("instance", "references"), reference
    request = state.get("request") or {}
    yield ("request",), request
    for place, result in ((("request", "result"), request.get("result")), (("result",), state.get("result"))):
        if result:
            yield place, result
            for completion in result.get("completions") or ():
                yield (*place, "completions"), completion


@lru_cache(MOST_KEPT)  # rows have the same keys again and again, as a rule: a file may have some of its own in each row
def _guess(place: Path, key: str, *, is_recorded: bool) -> str:
    """Return what may have been meant, or ""."""
    if place[-1:] == ("completions",):
        answers, hint = _IN_COMPLETION, "the text of a completion is read in 'text'"
    else:
        answers, hint = _ANSWERS | {"text"}, _A_COMPLETION
    if key in answers and place[:1] != ("instance",):
        return "" if is_recorded else hint
    near = difflib.get_close_matches(key.lower(), sorted(_READABLE_KEYS[place]), n=1, cutoff=_NEAR)
    return f"did you mean {near[0]!r}?" if near else _MEANT.get(key, "")
