"""Results joined with the requests that they answer: in any order, from any number of files, at any number of times.

What was joined is stored in `answers.jsonl` beside the manifest, so that results can come in parts. Memory holds the
place of each answer in that file.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from helm_ext.clients.manifest import MANIFEST, Manifest, Sent
from helm_ext.clients.openai_replies import Reply, ReplyError, parse_reply
from helm_ext.clients.openai_requests import Endpoint
from helm_ext.clients.outputs import OutputError, parse_output
from helm_ext.errors import (
    DatasetIntegrityError,
    DatasetSchemaError,
    DatasetSyntaxError,
    HelmExtError,
    Location,
    Problems,
    raise_for,
)
from helm_ext.files import LineSource, canonical_json, iter_json_lines
from helm_ext.files.writing import open_part

ANSWERS = "answers.jsonl"

_GIVE_AGAIN = f"remove {ANSWERS} and give all files of results again"


@dataclass
class Tally:
    """What the replies say of themselves, counted once a request."""

    truncated: int = 0
    """Texts that end at the limit of tokens."""
    refused: int = 0
    """Refusals in the reply's own field; the refusal's text is the answer."""
    filtered: int = 0
    """Texts that the provider's content filter cut."""
    empty: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0

    def add(self, reply: Reply, *, echo: bool) -> None:
        """Count a reply."""
        for choice in reply.choices:
            self.truncated += choice.finish_reason == "length" and not echo
            self.filtered += choice.finish_reason == "content_filter"
            self.refused += choice.is_refusal
            self.empty += not choice.text
        for name in ("prompt_tokens", "completion_tokens"):
            number = reply.usage.get(name)
            setattr(self, name, getattr(self, name) + (number if isinstance(number, int) else 0))


@dataclass(frozen=True)
class _Stored:
    """Where an answer is stored, and where it came from."""

    offset: int
    length: int
    fingerprint: bytes
    path: str
    line: int


@dataclass
class Answers:
    """The replies to the requests of a manifest."""

    path: Path
    endpoint: Endpoint
    requests: dict[str, Sent]
    """By custom id."""
    tally: Tally = field(default_factory=Tally)
    failures: dict[str, str] = field(default_factory=dict)
    """Why a request has no answer, where a result says so."""
    new: int = 0
    """How many answers the files that were read now brought."""
    repeated: int = 0
    """Lines that say again what another one says."""
    _stored: dict[str, _Stored] = field(default_factory=dict)

    def missing(self) -> list[str]:
        """Return the ids of the requests that have no answer, in the order in which they were written."""
        return [custom_id for custom_id in self.requests if custom_id not in self._stored]

    def read(self, custom_ids: Iterable[str]) -> Iterator[Reply]:
        """Yield the replies to these requests, which all have one."""
        with self.path.open("rb") as file:
            for custom_id in custom_ids:
                stored, sent = self._stored[custom_id], self.requests[custom_id]
                file.seek(stored.offset)
                try:
                    found = json.loads(file.read(stored.length))
                except ValueError:
                    found = {}
                if found.get("custom_id") != custom_id:
                    raise HelmExtError(f"{self.path}: has changed while it was read: one at a time")
                yield parse_reply(found["body"], self.endpoint, number=sent.choices, echo=sent.echo)

    def take(self, custom_id: str, body: Any, target: IO[bytes], path: str, line: int) -> str:
        """Write an answer to `target`. Returns what speaks against it, "" if nothing does.

        A reply that cannot be read is a failure of its request, and is not stored.
        """
        sent = self.requests[custom_id]
        try:
            reply = parse_reply(body, self.endpoint, number=sent.choices, echo=sent.echo)
        except ReplyError as error:
            self.failures.setdefault(custom_id, f"the reply is of no use: {error}")
            return ""
        data = canonical_json({"custom_id": custom_id, "body": body}) + b"\n"
        fingerprint = hashlib.sha256(canonical_json(body["choices"])).digest()[:16]
        before = self._stored.get(custom_id)
        if before is not None:
            self.repeated += 1
            same = before.fingerprint == fingerprint
            return "" if same else f"another result for {custom_id} stands in {before.path}:{before.line}"
        self._stored[custom_id] = _Stored(target.tell(), len(data), fingerprint, path, line)
        target.write(data)
        self.tally.add(reply, echo=sent.echo)
        return ""


def join(manifest: Manifest, folder: Path, files: Sequence[Path] = ()) -> Answers:
    """Join results with the requests of a manifest in `folder`, and keep them there.

    Raises DatasetError, with all problems and with nothing changed, for lines that are not results, results of requests
    that are not in the manifest, and two different results for one request.
    """
    requests = {sent.custom_id: sent for sent in manifest.requests}
    answers = Answers(folder / ANSWERS, manifest.plan.endpoint, requests)
    problems = Problems()
    stored_bytes = answers.path.stat().st_size if answers.path.exists() else 0
    with open_part(answers.path) as part:
        if stored_bytes:
            _read_results(answers.path, answers, part.file, problems)
        raise_for(problems.finish())
        before = len(answers._stored)  # noqa: SLF001 - one unit
        answers.repeated = 0
        for path in files:
            _read_results(path, answers, part.file, problems)
        raise_for(problems.finish())
        answers.new = len(answers._stored) - before  # noqa: SLF001
        if answers.new or part.file.tell() != stored_bytes:  # the places of answers are those in what was written now
            part.replace()
    answers.failures = {key: why for key, why in answers.failures.items() if key not in answers._stored}  # noqa: SLF001
    return answers


def _read_results(path: Path, answers: Answers, target: IO[bytes], problems: Problems) -> None:
    """Read a file of results. A line that is blank says nothing."""
    shown = str(path)
    with LineSource(path) as lines:
        for number, value in iter_json_lines(lines, shown, problems, blank="skip"):
            try:
                outcome = parse_output(value)
            except OutputError as error:
                problems.add(Location(shown, number), str(error), code="output", kind=DatasetSyntaxError)
                continue
            if outcome.custom_id not in answers.requests:
                problems.add(
                    Location(shown, number, "custom_id"),
                    f"{outcome.custom_id!r:.80} is no request of {answers.path.parent / MANIFEST}",
                    hint=_GIVE_AGAIN
                    if path == answers.path
                    else "these are results of other requests, or of an earlier version of the dataset",
                    code="unknown-id",
                    kind=DatasetIntegrityError,
                )
            elif outcome.failure and path == answers.path:  # only answers are stored there
                problems.add(
                    Location(shown, number), outcome.failure, hint=_GIVE_AGAIN, code="answer", kind=DatasetSchemaError
                )
            elif outcome.failure:
                answers.failures.setdefault(outcome.custom_id, outcome.failure)
            elif against := answers.take(outcome.custom_id, outcome.body, target, shown, number):
                problems.add(
                    Location(shown, number, "custom_id"), against,
                    hint="one of the two has to go: give the file that is right, and remove "
                    f"{ANSWERS} beside the manifest if the other one was read before",
                    code="two-results", kind=DatasetIntegrityError,
                )  # fmt: skip
