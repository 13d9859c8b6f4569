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


def group(requests: Mapping[str, tuple[str, int]]) -> list[Question]:
    """Return the questions of requests: id to (prompt, line), in the order of their first ones.

    Raises ValueError for an id without a number, a number that is missing, and a question with one option or too many.
    """
    numbered: dict[str, list[tuple[int, str]]] = {}
    for custom_id in requests:
        match = _NUMBERED.fullmatch(custom_id)
        if match is None:
            raise ValueError(f"{custom_id}: no number at the end says which option it is about")
        numbered.setdefault(match[1], []).append((int(match[2]), custom_id))
    questions = []
    for base, found in numbered.items():
        found.sort()
        numbers = [number for number, _ in found]
        if len(found) < 2 or numbers != list(range(numbers[0], numbers[0] + len(found))) or numbers[0] > 1:
            raise ValueError(f"{base}: the options {', '.join(map(str, numbers))} are not all of a question")
        if len(found) > MOST_OPTIONS:
            raise ValueError(f"{base}: {len(found)} options, and there are letters for {MOST_OPTIONS}")
        ids = [custom_id for _, custom_id in found]
        prompts, lines = zip(*(requests[custom_id] for custom_id in ids), strict=True)
        questions.append(Question(base, ids, list(prompts), list(lines)))
    return questions


def find_starts(questions: Sequence[Question], last_word: str | None = None) -> None:
    """Find where the options begin: after what the prompts of a question share, whole words.

    Options of one question may begin with the same words, but those of most do not: where a question's shared part goes
    on after the last word of most others (or `last_word`), it ends there. Raises ValueError where it has no such word.
    """
    shared = [_share(question.prompts) for question in questions]
    ends = Counter(part.split()[-1] if part.split() else "" for part in shared)
    word, often = ends.most_common(1)[0]
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
