"""Where a completion goes on after the answer: the next question, which base models make up."""

from __future__ import annotations

import re
from collections.abc import Sequence


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
    rf"|(?:{_QUESTION})\s?\#?\d{{0,4}}[*_]{{0,3}}[ \t]{{0,4}}$"
    r"|the\sfollowing\s(?:are|is\sa)\smultiple[\s-]choice|第\s?\d{1,3}\s?[题題問]|<\|(?:im_start|user"
    r"|start_header_id)\|?>|\[INST\]|<start_of_turn>)",
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


_ASKED = re.compile(r"\n[ \t]*\n(?=[^\n]{1,600}[?？:][ \t]*\n{1,2}[ \t]*[(\[]?(?:A|1|a|①|甲)[)\].:、])")
