"""Requests that ask for the log-probabilities of a prompt and an option: several make one question.

Their ids differ in a number at the end (`q7#0`, `q7#1`, ...; ours end in `-REFERENCE`), their prompts in the option.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from helm_ext.clients.openai_replies import ReplyError, ReplyToken
from helm_ext.formats.imported.gold import MOST_OPTIONS, to_options
from helm_ext.formats.imported.row import Likelihood
from helm_ext.formats.openai_batch.requests import Request

_NUMBERED = re.compile(r"(.+?)[#\-_./: ]?(\d+)")


@dataclass(slots=True)
class Question:
    """One request, or those about the options of one question, in the order of their numbers."""

    id: str
    ids: list[str]
    prompts: list[Any]
    """Texts, or of one request also a conversation."""
    lines: list[int]
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
        return [Question(one.custom_id, [one.custom_id], [one.question], [one.line]) for one in asked.values()]
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
        ids, lines = [one.custom_id for one in requests], [one.line for one in requests]
        questions.append(Question(base, ids, [str(one.question) for one in requests], lines))
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
