"""Which files of a batch belong together; and its requests: which model is asked what, and how.

Results are a file of their own, as providers and `vllm run-batch` write them, often with another one that only says why
there is no answer: https://platform.openai.com/docs/api-reference/batch, https://docs.vllm.ai (examples, `run-batch`).

Several requests for the log-probabilities of a prompt and an option make one question: their ids differ in a number at
the end (`q7#0`, `q7#1`, ...; ours end in `-REFERENCE`), their prompts in the option.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from helm_ext.clients.openai_replies import ReplyError, ReplyToken
from helm_ext.errors import DatasetError, DatasetIntegrityError, DatasetSchemaError, Location, Problems, raise_for, show
from helm_ext.evalset import Likelihood
from helm_ext.files import LineSource, iter_json_lines
from helm_ext.formats.format import look
from helm_ext.formats.imported.gold import MOST_OPTIONS, to_options
from helm_ext.formats.imported.json_log import StructLines
from helm_ext.formats.imported.row import Message, RowError, as_object

REQUEST_KEYS = frozenset({"custom_id", "method", "url", "body"})
RESULT_KEYS = frozenset({"custom_id", "response", "error"})
"""By these the lines of a batch are known."""

_ENDINGS = (".jsonl", ".jsonl.gz", ".jsonl.zst", ".ndjson")


def find_input(path: Path, given: str | None) -> Path:
    """Return the file of requests: `path` itself, or where that holds results, `given` or the one beside it.

    Raises DatasetError where there is no such file, or several.
    """
    if not _is_results(path):
        if given is not None and Path(given) != path:
            message = f"holds requests already, and input={given} names others"
            raise DatasetIntegrityError.at(path, message, code="input")
        return path
    if given is not None:
        return Path(given)
    first = _first_id(path)
    found = [each for each in _beside(path) if look(each).keys >= REQUEST_KEYS and first in _ids(each)]
    if len(found) == 1:
        return found[0]
    message = "these are results, and no file beside it holds the requests"
    if found:
        names = ", ".join(each.name for each in found)
        message = f"these are results, {len(found)} files beside it hold them: {names}"
    raise DatasetIntegrityError.at(path, message, "name the file of requests: input=FILE", code="input")


def find_results(path: Path, requests: Path, asked: Container[str]) -> list[Path]:
    """Return the results beside the requests that answer one of those `asked`, an id.

    Where `path` holds results itself: files of failures alone. Raises DatasetError where no file holds results.
    """
    others = [each for each in _beside(requests) if each != path and _answers(each, asked)]
    if path != requests:
        return [each for each in others if _holds_failures_alone(each)]
    if not others:
        message = "these are requests, and no file beside it holds their results"
        raise DatasetIntegrityError.at(path, message, "name the files of results: output=FILE+FILE", code="output")
    return others


def without_answers(files: Sequence[Path]) -> list[Path]:
    """Return the files but for results that `find_results` finds for one of the others."""
    asked = [{*_ids(each)} for each in files if not _is_results(each)]
    return [each for each in files if not any(_answers(each, ids) for ids in asked)]


def _beside(path: Path) -> Iterator[Path]:
    for each in sorted(path.parent.iterdir()):
        if each.name.endswith(_ENDINGS) and each.is_file() and each != path:
            yield each


def _is_results(path: Path) -> bool:
    keys = look(path).keys
    return keys >= RESULT_KEYS and not keys >= REQUEST_KEYS


def _answers(path: Path, asked: Container[str]) -> bool:
    """Whether a file holds results, the first of them that of a request with one of these ids."""
    return _is_results(path) and _first_id(path) in asked


def _first_id(path: Path) -> str:
    return next(_ids(path), "")


def _ids(path: Path) -> Iterator[str]:
    return (str(value.get("custom_id")) for value in _values(path))


def _holds_failures_alone(path: Path) -> bool:
    """Whether no line has a reply: what OpenAI calls the error file."""
    for value in _values(path):
        response = value.get("response")
        if isinstance(response, dict) and response.get("status_code") in (200, None):
            return False
    return True


def _values(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the objects of a file; what cannot be read is said when the file is used."""
    with suppress(DatasetError), LineSource(path) as lines:
        for _, value in iter_json_lines(lines, str(path), []):
            if isinstance(value, dict):
                yield value


Endpoint = Literal["chat", "completions", "responses"]

_ENDPOINTS: dict[str, Endpoint] = {
    "/v1/chat/completions": "chat",
    "/v1/completions": "completions",
    "/v1/responses": "responses",
}
_NO_SETTINGS = frozenset({"model", "messages", "prompt", "input", "instructions", "user", "metadata", "store"})


class _Part(msgspec.Struct):
    type: Literal["text", "input_text", "output_text"]
    text: str


class _Item(msgspec.Struct):
    """A message, or of the endpoint responses another item of the input."""

    type: str = "message"
    role: str = ""
    content: str | list[_Part] | None = None
    tool_calls: Any = None


_Name = Annotated[str, msgspec.Meta(min_length=1)]


class _Body(msgspec.Struct):
    model: _Name
    messages: list[_Item] | None = None
    prompt: str | list[Any] | None = None
    input: str | list[_Item] | None = None
    instructions: str | None = None
    previous_response_id: Any = None
    n: Annotated[int, msgspec.Meta(ge=1)] | None = None
    echo: Any = None
    logprobs: Any = None
    max_tokens: Any = None


class _Line(msgspec.Struct):
    custom_id: _Name
    method: Literal["POST"]
    url: Literal["/v1/chat/completions", "/v1/completions", "/v1/responses"]
    body: _Body


@dataclass(slots=True)
class Request:
    """One request."""

    line: int
    """Where it stands in its file."""
    custom_id: str
    endpoint: Endpoint
    model: str
    question: str | list[Message]
    number: int
    """How many answers are asked for."""
    echo: bool
    """Whether the answer repeats the prompt."""
    is_scored: bool
    """Whether the log-probabilities of the prompt are asked for, and no answer in words."""
    settings: Mapping[str, Any]
    """Decoding parameters, as the body spells them."""


def read_requests(path: Path) -> tuple[dict[str, Request], str]:
    """Return the requests of a file by id, and its digest. Raises DatasetError with all problems."""
    problems = Problems(str(path))
    lines = StructLines(path, _Line, "request of a batch", problems)
    asked: dict[str, Request] = {}
    for number, value, line in lines:
        try:
            request = _to_request(line, value["body"], number)
            _require_alike(request, asked)
        except RowError as error:
            place = Location(str(path), number, error.place)
            problems.add(place, str(error), error.hint, code=error.code or "request", kind=DatasetSchemaError)
            continue
        asked[request.custom_id] = request
    if not asked and not problems.errors:
        problems.add((), "there are no requests", code="no-rows")
    raise_for(problems.finish())
    return asked, lines.digest


def read_first_model(path: Path) -> str:
    """Return the model that the first request asks. Raises DatasetError."""
    model = as_object(next(_values(path), {}).get("body")).get("model")
    return model if isinstance(model, str) and model else next(iter(read_requests(path)[0].values())).model


def _to_request(line: _Line, given: Mapping[str, Any], number: int) -> Request:
    endpoint, body = _ENDPOINTS[line.url], line.body
    question: str | list[Message]
    if endpoint == "chat":
        question = _read_items(body.messages or (), "body.messages")
    elif endpoint == "completions":
        question = _read_prompt(body.prompt)
    else:
        question = _read_input(body, given)
    echo = endpoint == "completions" and body.echo is True
    is_scored = echo and body.logprobs is not None and body.max_tokens in (0, 1)
    settings = {key: value for key, value in given.items() if key not in _NO_SETTINGS and value is not None}
    return Request(number, line.custom_id, endpoint, body.model, question, body.n or 1, echo, is_scored, settings)


def _require_alike(request: Request, asked: Mapping[str, Request]) -> None:
    first, known = next(iter(asked.values()), request), asked.get(request.custom_id)
    if known is not None:
        message = f"{show(request.custom_id)} stands on line {known.line} already: results cannot be told apart"
        raise RowError(message, place="custom_id", code="repeated-id")
    if request.model != first.model:
        message = f"{show(request.model)}, and requests before ask {show(first.model)}"
        raise RowError(message, "write a file for each model", place="body.model", code="several-models")
    if request.endpoint != first.endpoint or request.is_scored != first.is_scored:
        message = "requests before are of another kind (endpoint, or log-probabilities of the prompt)"
        raise RowError(message, "write a file for each kind", place="url", code="several-kinds")


def _read_items(items: Sequence[_Item], place: str) -> list[Message]:
    """Return a conversation. What is no text would be lost, and is refused."""
    messages: list[Message] = []
    for at, item in enumerate(items):
        where, is_call = f"{place}[{at}]", bool(item.tool_calls) or item.role in ("tool", "function")
        if item.type == "reasoning":
            continue
        if item.type != "message" or is_call:
            raise RowError("calls of tools are no part of a question in words", place=where, code="no-text")
        if not item.role or item.content is None:
            raise RowError("expected a message with role and content", place=where)
        content = item.content if isinstance(item.content, str) else "".join(part.text for part in item.content)
        messages.append({"role": item.role, "content": content})
    if not items:
        raise RowError("expected a list of messages", place=place)
    return messages


def _read_prompt(prompt: str | list[Any] | None) -> str:
    if isinstance(prompt, list) and len(prompt) == 1:
        prompt = prompt[0]
    if not isinstance(prompt, str):
        hint = "several prompts of one request have one custom_id: write a request for each" if prompt else ""
        raise RowError(f"expected one text, got {show(prompt)}", hint, place="body.prompt")
    return prompt


def _read_input(body: _Body, given: Mapping[str, Any]) -> list[Message]:
    """Return instructions and input of the endpoint responses as a conversation."""
    if body.previous_response_id or given.get("prompt"):
        raise RowError("a part of what was asked stands on the provider's side", place="body", code="no-text")
    messages: list[Message] = [{"role": "system", "content": body.instructions}] if body.instructions else []
    if isinstance(body.input, str):
        return [*messages, {"role": "user", "content": body.input}]
    return messages + _read_items(body.input or (), "body.input")


_NUMBERED = re.compile(r"(.+?)[#\-_./: ]?(\d+)")


@dataclass(slots=True)
class Question:
    """One request, or those about the options of one question, in the order of their numbers."""

    id: str
    ids: list[str]
    prompts: list[Any]
    """Texts, or of one request also a conversation."""
    line: int
    """Of the first of them."""
    start: int = 0
    """Where the options begin, in characters of the prompts."""

    @property
    def asked(self) -> Any:
        """What stands before the options; the whole prompt where there are no options."""
        return self.prompts[0][: self.start] if len(self.ids) > 1 else self.prompts[0]

    @property
    def options(self) -> dict[str, str] | None:
        """Label to text; None for a request that is answered in words."""
        return to_options([self.option(at) for at in range(len(self.ids))]) if len(self.ids) > 1 else None

    def option(self, at: int) -> str:
        """Return the text of an option, without the white space before it."""
        return str(self.prompts[at][self.start :]).strip()


def find_questions(asked: Mapping[str, Request], option_start: str | None) -> list[Question]:
    """Return what is asked, in the order of the first requests: by each, or by those about one question together.

    `option_start`: the last word before an option. Raises ValueError for an id without a number, a number that is
    missing, a question with one option or too many, and one whose prompts do not share that word.
    """
    if not next(iter(asked.values())).is_scored:
        return [Question(one.custom_id, [one.custom_id], [one.question], one.line) for one in asked.values()]
    numbered: dict[str, list[tuple[int, Request]]] = {}
    for custom_id, request in asked.items():
        match = _NUMBERED.fullmatch(custom_id)
        if match is None:
            raise ValueError(f"{custom_id}: no number at the end says which option it is about")
        numbered.setdefault(match[1], []).append((int(match[2]), request))
    questions = []
    for base, found in numbered.items():
        found.sort(key=lambda one: one[0])
        numbers, requests = [number for number, _ in found], [request for _, request in found]
        if len(found) < 2 or numbers != list(range(numbers[0], numbers[0] + len(found))) or numbers[0] > 1:
            raise ValueError(f"{base}: the options {', '.join(map(str, numbers))} are not all of a question")
        if len(found) > MOST_OPTIONS:
            raise ValueError(f"{base}: {len(found)} options, and there are letters for {MOST_OPTIONS}")
        ids, prompts = [one.custom_id for one in requests], [str(one.question) for one in requests]
        questions.append(Question(base, ids, prompts, requests[0].line))
    _find_starts(questions, option_start)
    return questions


def _find_starts(questions: Sequence[Question], last_word: str | None) -> None:
    """Find where the options begin: after what the prompts of a question share, whole words.

    Options of one question may begin with the same words, but those of most do not: where a question's shared part goes
    on after the last word of most others (or `last_word`), it ends there.
    """
    shared = [_share(question.prompts) for question in questions]
    word, often = Counter(part.split()[-1] if part.split() else "" for part in shared).most_common(1)[0]
    if last_word is None and often > len(questions) // 2:  # else each question ends its prompt in another word
        last_word = word
    for question, part in zip(questions, shared, strict=True):
        question.start = len(part)
        if last_word and not part.endswith(last_word):
            at = part.rfind(last_word)
            if at < 0:
                raise ValueError(f"{question.id}: the prompts do not share {last_word!r} before their options")
            question.start = at + len(last_word)


def _share(prompts: Sequence[str]) -> str:
    """Return what prompts begin with in common, without white space at its end and without a part of a word."""
    common = os.path.commonprefix(list(prompts))  # noqa: RUF071 - texts, not paths
    if any(len(prompt) > len(common) and not prompt[len(common)].isspace() for prompt in prompts):
        whole = re.match(r"(?s)(.*)(?<=\S)(?=\s)", common)
        common = whole[1] if whole else common
    return common.rstrip()


def score_option(question: Question, at: int, tokens: Sequence[ReplyToken]) -> tuple[Likelihood, bool]:
    """Return the likelihood of an option, and whether a token lies across its beginning.

    The option's tokens are those that begin at it or after it, up to the prompt's end; the space before an option
    belongs to it. Raises ReplyError where the reply does not say where tokens begin.
    """
    offsets = [token.offset for token in tokens]
    if None in offsets:
        raise ReplyError("the log-probabilities do not say where tokens begin (text_offset)")
    first = offsets[0] or 0
    end = len(question.prompts[at])
    own = [token for token in tokens if question.start <= (token.offset or 0) - first < end]
    values = [token.logprob for token in own]
    if not own or None in values:
        raise ReplyError("no log-probabilities of the option")
    crosses = (own[0].offset or 0) - first not in (question.start, question.start + 1)
    return Likelihood(text=question.option(at), logprob=sum(value for value in values if value is not None)), crosses
