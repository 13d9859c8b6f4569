"""Completions as texts: what was thought, where the next question begins, what a pattern extracts, where it is cut.

The keys of `scoring` are described in docs/adapter_spec.md. Thinking, as far as it stands in the completion itself:

<think>…</think>Paris                     <thinking>…</thinking>Paris
…</think>Paris                            the chat template opened the thought in the prompt
<think>…                                  cut off while thinking: there is no answer
<|channel|>analysis<|message|>…<|end|><|start|>assistant<|channel|>final<|message|>Paris
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache


@lru_cache(maxsize=256)
def compile_pattern(pattern: str) -> re.Pattern[str]:
    """Compile a user's regular expression; ValueError says what is wrong with it and where."""
    try:
        return re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        reason = error.msg if isinstance(error, re.error) else "too deeply nested or too large"
        position = getattr(error, "pos", None)
        place = "" if position is None else f" at character {position + 1}"
        shown = pattern if len(pattern) <= 80 else pattern[:79] + "…"
        raise ValueError(f"not a regular expression: {reason}{place}: {shown}") from error


def _captured(match: re.Match[str]) -> str:
    """Return the first group, or the whole match where there is no group; "" for a group that took no part."""
    return (match.group(1) if match.re.groups else match.group(0)) or ""


def extract(text: str, pattern: str) -> str | None:
    """Return the first group of the last match (the whole match if the pattern has no group); None without a match.

    The last, because reasoning comes before the answer. A group that took no part in the match is "". A match of no
    character that captures none is passed over: a pattern that can be empty has one at the end of every text.
    """
    last = None
    for match in compile_pattern(pattern).finditer(text):
        if match.end() > match.start() or _captured(match):
            last = match
    return None if last is None else _captured(last)


def apply_pattern(text: str, pattern: str) -> str:
    """Return the first group of the *first* match, the whole match if the pattern has no group, or "" without a match.

    HELM's rule for `output_mapping_pattern` (evaluate_reference_metrics.py), but for a group that took no part in the
    match: HELM returns None there.
    """
    match = compile_pattern(pattern).search(text)
    return "" if match is None else _captured(match)


def clean(text: str, *, pattern: str | None = None, strip: bool = False, lower: bool = False) -> str | None:
    """Apply `extract`, `strip` and `lower` of `scoring`, in this order. None where the pattern matches nothing."""
    if pattern is not None:
        extracted = extract(text, pattern)
        if extracted is None:
            return None
        text = extracted
    if strip:
        text = text.strip()
    return text.lower() if lower else text


def is_cut_off(finish_reason: Mapping[str, str] | None) -> bool:
    """Tell whether a completion was stopped at its limit of tokens: no option is guessed from what had been said."""
    return finish_reason is not None and finish_reason.get("reason") in _LIMITS


_LIMITS = frozenset({"length", "max_tokens", "model_length"})
"""OpenAI's and HELM's word for it, Anthropic's, and inspect's for the model's window."""


def cut_at_stops(text: str, stops: Iterable[str]) -> str:
    """Return what stands before the first of some stop sequences.

    One of white space alone counts only behind other text: completions begin with blank lines.
    """
    end = len(text)
    for stop in stops:
        start = 0 if stop.strip() else len(text) - len(text.lstrip())
        found = text.find(stop, start)
        if found != -1:
            end = min(end, found)
    return text[:end]


class StopCensus:
    """References that hold a stop sequence: how many there are, and whether they are cut there. In constant memory.

    A live model never says what stands behind a stop sequence, so such a reference is out of its reach. Where only
    white space follows the stop sequence in every reference that holds it, nothing is lost by cutting there, and
    references and predictions are cut, in all rows alike. Where more follows, only the file can say so
    (`scoring.cut_at_stop`).
    """

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = tuple(dict.fromkeys(stop for stop in stops if stop))
        self._held: set[str] = set()
        """Those that a reference holds."""
        self._with_more: set[str] = set()
        """Those behind which a reference has more than white space."""
        self.count = 0
        """References that hold any stop sequence."""

    def add(self, reference: str) -> bool:
        """Look at one reference; return whether it holds a stop sequence."""
        found = False
        for stop in self._stops:
            before = cut_at_stops(reference, (stop,))
            if before == reference:
                continue
            found = True
            self._held.add(stop)
            if reference[len(before) + len(stop) :].strip():
                self._with_more.add(stop)
        self.count += found
        return found

    def merge(self, other: StopCensus) -> None:
        """Add what another census of the same stop sequences has counted."""
        self.count += other.count
        self._held |= other._held
        self._with_more |= other._with_more

    def decide(self, cut_at_stop: bool | None) -> tuple[str, ...]:
        """Return the stop sequences at which references and predictions are cut.

        True: all of them. False: none. None: those with nothing but white space behind them in each reference.
        """
        if cut_at_stop is not None:
            return self._stops if cut_at_stop else ()
        return tuple(stop for stop in self._stops if stop in self._held - self._with_more)


# ---- Thinking

_END = r"</think(?:ing)?>|<\|channel\|>final\s?(?:<\|constrain\|>)?[^<]{0,80}<\|message\|>"
_BEGIN = re.compile(
    r"\s*(?:<think(?:ing)?>|(?:<\|start\|>assistant)?<\|channel\|>(?:analysis|commentary)[^<]{0,80}<\|message\|>)",
    re.IGNORECASE,
)
_FIRST_MARK = re.compile(rf"(?P<end>(?<![`'\"]){_END})|<think(?:ing)?>|<\|channel\|>", re.IGNORECASE)
"""An end in quotes is spoken of: "close it with `</think>`"."""
_ANY_END = re.compile(_END, re.IGNORECASE)
_TAGS = re.compile(
    r"</?think(?:ing)?>|<\|start\|>assistant|<\|channel\|>[^<]{0,80}(?:<\|constrain\|>[^<]{0,80})?<\|message\|>"
    r"|<\|(?:channel|message|end|return)\|>",
    re.IGNORECASE,
)
_END_TOKENS = ("<|return|>", "<|end|>")


def split_thinking(text: str) -> tuple[str, str] | None:
    """Return what was thought and what was answered, or None for a completion without thinking.

    Thinking stands at the start, or before an end that nothing has opened; what is quoted further on is part of the
    answer. A thought without an end has no answer behind it: "". Linear in the length of the text.
    """
    if "<" not in text:
        return None
    answer = 0
    while True:
        begin = _BEGIN.match(text, answer)
        mark = _ANY_END.search(text, begin.end()) if begin else _FIRST_MARK.search(text, answer)
        if mark is None and begin:
            return _TAGS.sub("", text).strip(), ""
        if mark is None or not (begin or mark["end"]):
            break
        answer = mark.end()
    if not answer:
        return None
    thought, said = text[:answer], text[answer:].lstrip()
    if "<|channel|>" in thought:
        for token in _END_TOKENS:
            said = said.rstrip().removesuffix(token)
    return _TAGS.sub("", thought).strip(), said


def names_thinking(text: str) -> bool:
    """Whether a text itself holds such a tag: a reference about HTML or chat templates, say."""
    return "<" in text and _TAGS.search(text) is not None


# ---- The next question, which base models make up


def find_question_starts(instance_prefix: str, input_prefix: str, stop_sequences: Sequence[str]) -> tuple[str, ...]:
    """Return what the file's next question would begin with: AdapterSpec's prefixes and stop sequences.

    The prefixes count where `input_prefix` holds a word, stop sequences where they hold more than white space: answers
    themselves hold blank lines.
    """
    has_word = any(char.isalnum() for char in input_prefix)
    starts = [instance_prefix + input_prefix] if has_word else []
    return tuple(dict.fromkeys([*starts, *(stop for stop in stop_sequences if stop.strip())]))


def cut_at_next_question(text: str, starts: Sequence[str]) -> str:
    """Return the text up to where one of `starts` occurs first: on a line of its own, or after the first word."""
    first_word = len(text) - len(text.lstrip()) + 1
    places = [p for start in starts if (p := text.find(start, 0 if start[:1].isspace() else first_word)) >= 0]
    return text[: min(places)] if places else text


_QUESTION = (
    r"question|q|problem|exercise|example|task|quiz|next\squestion|new\squestion|follow-up\squestion|pregunta|pergunta"
    r"|domanda|frage|vraag|fråga|pytanie|soru|câu(?:\shỏi)?|pertanyaan|soal|вопрос|питання|ερώτηση|प्रश्न|السؤال|问题"
    r"|問題|题目|題目|例题|質問|문제|질문|問"
)
_SPEAKER = r"human|user|student|instruction|input|prompt"
_NEXT = re.compile(
    rf"^[ \t]{{0,8}}(?:#{{1,4}}\s|[*_]{{1,3}})?(?:(?:{_QUESTION})\s?(?:no\.?\s?)?\#?\d{{0,4}}[*_]{{0,3}}\s?[:.：）)]"
    rf"|(?:{_SPEAKER})[*_]{{0,3}}\s?[:：]|#{{1,4}}\s(?:next\s)?(?:{_QUESTION}|{_SPEAKER})\b"
    rf"|(?:{_QUESTION})\s?\#?\d{{0,4}}[*_]{{0,3}}[ \t]{{0,4}}$|the\sfollowing\s(?:are|is\sa)\smultiple[\s-]choice"
    r"|第\s?\d{1,3}\s?[题題問]|<\|(?:im_start|user|start_header_id)\|?>|\[INST\]|<start_of_turn>)",
    re.IGNORECASE | re.MULTILINE,
)
"""A line that begins another question or another turn."""


def without_next_question(text: str) -> str:
    """Return the text up to a line that begins another question, whatever the file calls it.

    Not where the text begins with it (the question is repeated; behind a line break it is another one), or where it was
    announced ("Here it is:").
    """
    for match in _NEXT.finditer(text) if "\n" in text else ():
        end = match.start()
        while end and text[end - 1].isspace():
            end -= 1
        if match.start() and (not end or text[end - 1] not in ":："):
            return text[:end]
    return text


def find_asked_options(text: str) -> int:
    """Return where, after a blank line, a question with lettered options begins; the text's length where none does."""
    match = _ASKED.search(text) if "\n" in text else None
    return match.start() if match else len(text)


_ASKED = re.compile(
    r"\n[ \t]*\n(?=[^\n]{1,600}(?:[?？:]|__[^\n_]{0,200})[ \t]*\n{1,2}[ \t]*[(\[]?(?:A|1|a|①|甲)[)\].:、])"
)
