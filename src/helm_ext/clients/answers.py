"""Results joined with the requests that they answer: in any order, from any number of files, at any number of times.

What was joined is stored in `answers.jsonl` beside the manifest, so that results can come in parts. `AnsweredExecutor`
makes a run of them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from importlib.metadata import version
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

from helm.benchmark.adaptation.scenario_state import ScenarioState
from helm.benchmark.executor import ExecutionSpec, Executor

from helm_ext.adaptation.rows import leave_out_rows, row_of
from helm_ext.clients.openai_replies import Reply, ReplyError, parse_output, parse_reply, to_result
from helm_ext.clients.openai_requests import Endpoint, to_body
from helm_ext.clients.request_files import MANIFEST, Manifest, Sent, is_asked, make_key, make_run_digest
from helm_ext.errors import (
    DatasetChangedError,
    DatasetIntegrityError,
    DatasetSyntaxError,
    Location,
    Problems,
    RecordedError,
    raise_for,
)
from helm_ext.evalset import EXTRA_KEY, LeftOut
from helm_ext.files import LineSource, canonical_json, iter_json_lines
from helm_ext.files.writing import locked, open_part

if TYPE_CHECKING:
    from helm.benchmark.adaptation.request_state import RequestState
    from helm.benchmark.run_spec import RunSpec

ANSWERS = "answers.jsonl"


@dataclass
class Answers:
    """The replies to the requests of a manifest."""

    path: Path
    endpoint: Endpoint
    requests: dict[str, Sent]
    """By custom id."""
    tally: Counter[str] = field(default_factory=Counter)
    """Of texts, how many are `truncated` at the limit of tokens, `filtered` (cut by the provider), `refused` in the
    reply's own field, `empty`; and the tokens as they were counted, once a request."""
    failures: dict[str, str] = field(default_factory=dict)
    """Why a request has no answer, where a result says so."""
    tried: set[str] = field(default_factory=set)
    """Those that failed: the others' batch ended (`batch_expired`) before a model saw them."""
    new: int = 0
    """How many answers the files that were read now brought."""
    repeated: int = 0
    """Lines that say again what another one says."""
    _data: bytearray = field(default_factory=bytearray)
    """The replies as JSON, one behind the other: objects of their own would take six times the memory."""
    _bodies: dict[str, slice] = field(default_factory=dict)
    """Where the reply to a request is in there."""
    _places: dict[str, str] = field(default_factory=dict)

    def missing(self) -> list[str]:
        """Return the ids of the requests that have no answer, in the order in which they were written."""
        return [custom_id for custom_id in self.requests if custom_id not in self._bodies]

    def read(self, custom_id: str) -> Reply:
        """Return the reply to a request that has one."""
        return self._parse(custom_id, json.loads(self._data[self._bodies[custom_id]]))

    def take(self, files: Sequence[Path]) -> None:
        """Add the results of files to those that are stored. Raises as `join`."""
        with locked(self.path.parent) if files else nullcontext():  # another command may add to them meanwhile
            self._take(files)

    def _take(self, files: Sequence[Path]) -> None:
        problems = Problems()
        if self.path.exists() and self.path.stat().st_size:
            self._read_results(self.path, problems)
        before, self.repeated = len(self._bodies), 0
        for path in files:
            self._read_results(path, problems)
        raise_for(problems.finish())
        self.new = len(self._bodies) - before
        self.failures = {key: why for key, why in self.failures.items() if key not in self._bodies}
        if not files:
            return
        with open_part(self.path) as part:
            for custom_id, place in self._bodies.items():
                part.file.write(b'{"body":%b,"custom_id":%b}\n' % (bytes(self._data[place]), canonical_json(custom_id)))
            for custom_id, why in self.failures.items():
                line = {"custom_id": custom_id, "failure": why, "is_not_run": custom_id not in self.tried}
                part.file.write(canonical_json(line) + b"\n")
            part.replace()

    def _parse(self, custom_id: str, body: Any) -> Reply:
        sent = self.requests[custom_id]
        return parse_reply(body, self.endpoint, number=sent.choices, echo=sent.echo)

    def _read_results(self, path: Path, problems: Problems) -> None:
        """Take the results of a file. A line that is blank says nothing."""
        hint = "these are results of other requests, or of an earlier version of the dataset"
        if path == self.path:
            hint = f"remove {ANSWERS} and give all files of results again"
        with LineSource(path) as lines:
            for number, value in iter_json_lines(lines, str(path), problems, blank="skip"):
                place = Location(str(path), number)
                try:
                    outcome = parse_output(value)
                except ReplyError as error:
                    problems.add(place, str(error), code="output", kind=DatasetSyntaxError)
                    continue
                custom_id = outcome.custom_id
                if path == self.path and outcome.failure and "failure" not in value:  # no line that was written here
                    problems.add(place, outcome.failure, hint, code="output", kind=DatasetSyntaxError)
                elif custom_id not in self.requests:
                    message = f"{custom_id!r:.80} is no request of {self.path.parent / MANIFEST}"
                    problems.add(place.at("custom_id"), message, hint, code="unknown-id", kind=DatasetIntegrityError)
                elif outcome.failure:
                    self._fail(custom_id, outcome.failure, is_tried=not outcome.is_not_run)
                elif before := self._store(custom_id, outcome.body, str(place)):
                    problems.add(
                        place.at("custom_id"), f"another result for {custom_id} stands in {before}",
                        hint="one of the two has to go: give the file that is right, and remove "
                        f"{ANSWERS} beside the manifest if the other one was read before",
                        code="two-results", kind=DatasetIntegrityError,
                    )  # fmt: skip

    def _fail(self, custom_id: str, why: str, *, is_tried: bool = True) -> None:
        self.failures[custom_id] = why  # of several tries the last counts
        if is_tried:
            self.tried.add(custom_id)

    def _store(self, custom_id: str, body: Any, place: str) -> str:
        """Keep an answer. Returns the place of another one to the same request that differs, "" if there is none.

        A reply that cannot be read is a failure of its request, and is not kept.
        """
        try:
            reply = self._parse(custom_id, body)
        except ReplyError as error:
            self._fail(custom_id, f"the reply is of no use: {error}")
            return ""
        if custom_id in self._bodies:
            self.repeated += 1
            is_same = json.loads(self._data[self._bodies[custom_id]])["choices"] == body["choices"]
            return "" if is_same else self._places[custom_id]
        start = len(self._data)
        self._data += canonical_json(body)
        self._bodies[custom_id], self._places[custom_id] = slice(start, len(self._data)), place
        for choice in reply.choices:
            self.tally["truncated"] += choice.finish_reason == "length" and not self.requests[custom_id].echo
            self.tally["filtered"] += choice.finish_reason == "content_filter"
            self.tally["refused"] += choice.is_refusal
            self.tally["empty"] += not choice.text
        for name in ("prompt_tokens", "completion_tokens"):
            number = reply.usage.get(name)
            self.tally[name] += number if isinstance(number, int) else 0
        return ""


def join(manifest: Manifest, folder: Path, files: Sequence[Path] = ()) -> Answers:
    """Join results with the requests of a manifest in `folder`, and keep them there.

    Raises DatasetError, with all problems and with nothing changed, for lines that are not results, results of requests
    that are not in the manifest, and two different results for one request.
    """
    answers = Answers(folder / ANSWERS, manifest.plan.endpoint, {sent.custom_id: sent for sent in manifest.requests})
    answers.take(files)
    return answers


class AnsweredExecutor(Executor):
    """Fills in the results of one run's request states. Asks nobody."""

    def __init__(self, execution_spec: ExecutionSpec, run_spec: RunSpec, manifest: Manifest, answers: Answers) -> None:
        """Take the answers. Rows without one are excluded, which only metrics of this package know and count."""
        super().__init__(execution_spec)
        self.run_spec = run_spec
        self.manifest = manifest
        self.answers = answers
        self.crossing = 0
        """Requests in which a token lies on both sides of the border of prompt and option."""
        self.excluded = 0
        """How many rows lack an answer to one of their requests."""

    def execute(self, scenario_state: ScenarioState) -> ScenarioState:
        """Return the state with results.

        Raises DatasetChangedError where the request states are not those that the requests were made of, and
        RecordedError for a reply that cannot be made a result, and for rows without a reply that cannot be excluded.
        """
        ids = find_requests(self.manifest, self.run_spec, scenario_state.request_states)
        states = self._without_unanswered(scenario_state.request_states, ids)
        dialect = self.manifest.plan.to_dialect()
        for state, id_ in zip(states, ids, strict=True):
            # As `recorded.hand_back`: HELM's executor would copy each state.
            if id_ is None or not is_asked(state):
                vars(state)["result"] = state.request.result
                continue
            try:
                vars(state)["result"] = to_result(self.answers.read(id_), state.request, dialect)
            except ReplyError as error:
                raise RecordedError(f"{id_}: {error}") from error
            self.crossing += crosses_border(state)
        return ScenarioState(scenario_state.adapter_spec, states, scenario_state.annotator_specs)

    def _without_unanswered(self, states: list[RequestState], ids: Sequence[str | None]) -> list[RequestState]:
        """Return the states; rows with a request that has no answer are marked as excluded."""
        missing = set(self.answers.missing())
        reasons: dict[object, LeftOut] = {
            row_of(state): "failed" if id_ in self.answers.tried else "not_run"
            for state, id_ in zip(states, ids, strict=True)
            if id_ in missing
        }
        if not reasons:
            return states
        rows = {row_of(state): state for state in states}
        self.excluded = len(reasons)
        if len(reasons) == len(rows):
            raise RecordedError(f"{self.run_spec.name}: no row has an answer to all of its requests")
        if any(EXTRA_KEY not in (rows[row].instance.extra_data or {}) for row in reasons):
            raise RecordedError(
                f"{self.run_spec.name}: HELM's own metrics cannot leave out rows, and {len(reasons)} have no answer\n"
                "  hint: without --missing skip the run is made when all of them have one"
            )
        return leave_out_rows(states, reasons)


def find_requests(manifest: Manifest, run_spec: RunSpec, states: Sequence[RequestState]) -> list[str | None]:
    """Return the id of each state's request; None for rows that were excluded before requests were written.

    Raises DatasetChangedError if the run is no longer one of the manifest's.
    """
    dialect = manifest.plan.to_dialect()
    by_key = {sent.key: sent.custom_id for sent in manifest.requests}
    keys = [make_key(to_body(s.request, dialect), s.request.random) if is_asked(s) else None for s in states]
    changed = next((s for s, key in zip(states, keys, strict=True) if key is not None and key not in by_key), None)
    if changed is not None:
        raise _changed(run_spec.name, manifest, f"the request of row {changed.instance.id} is another one, or new")
    require_planned(manifest, {run_spec.name: make_run_digest(run_spec, states)})
    return [None if key is None else by_key[key] for key in keys]


def require_planned(manifest: Manifest, digests: Mapping[str, str]) -> None:
    """Raise DatasetChangedError unless runs with these names and digests are among the manifest's."""
    before = {run.name: run.digest for run in manifest.runs}
    if changed := [name for name, digest in digests.items() if before.get(name) != digest]:
        raise _changed(changed[0], manifest, "its rows, or what they are scored with, are not the same")


def _changed(name: str, manifest: Manifest, how: str) -> DatasetChangedError:
    ours = version("helm-ext")
    versions = "" if manifest.helm_ext == ours else f" (by helm-ext {manifest.helm_ext}, and this is {ours})"
    return DatasetChangedError(
        f"{name}: the run is not the one that requests were written for{versions}: {how}\n"
        "  hint: the dataset, the scenario or HELM's configuration has changed since; write the requests again"
    )


def crosses_border(state: RequestState) -> bool:
    """Whether a token of the scored prompt lies on both sides of the beginning of the option.

    The option's log-probability is then not its own: HELM and this package count whole tokens. A space before the
    option belongs to it, as in HELM's prompts.
    """
    if state.reference_index is None or not state.request.echo_prompt or state.result is None:
        return False
    option = state.instance.references[state.reference_index].output.text
    before, found, _ = state.request.prompt.rpartition(option)
    texts = [token.text for token in state.result.completions[0].tokens]
    start = "".join(texts).rfind(before + option)
    if not found or not option or start < 0:  # the tokens do not spell the prompt: their borders are not known
        return False
    border, borders = start + len(before), {*accumulate(map(len, texts), initial=0)}
    return border not in borders and not (before.endswith(" ") and border - 1 in borders)
