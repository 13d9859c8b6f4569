"""What a model thinks before it answers, as far as it stands in the completion itself.

<think>…</think>Paris                     <thinking>…</thinking>Paris
…</think>Paris                            the chat template opened the thought in the prompt
<think>…                                  cut off while thinking: there is no answer
<|channel|>analysis<|message|>…<|end|><|start|>assistant<|channel|>final<|message|>Paris
"""

from __future__ import annotations

import re

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
