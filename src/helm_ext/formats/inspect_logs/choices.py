"""Multiple choice: what a target means, and in which order options were shown that the task shuffled.

`multiple_choice(shuffle=True)` shows each sample's options in another order and then rewrites the sample as if it had
not: prompt and output say "ANSWER: B" in the order of the dataset (inspect_ai, solver/_multiple_choice.py,
`pretend_we_didnt_shuffle`). An answer that it cannot parse stays as it is, in the labels of the order shown. So what
the model was shown and what it said is taken from the last call of the model before the scorers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from helm_ext import parsing
from helm_ext.formats.inspect_logs.samples import Event, Message, Output, Sample, Texts

_EXPLAINED = "Choices were shuffled before generating a response"
"""Begins what the scorer `choice` says of a sample whose options were shuffled."""

_REWRITTEN = re.compile(r"ANSWER: (?P<labels>[A-Z0-9]+(?:, [A-Z0-9]+)*)")


def label(position: int) -> str:
    """Return the label of an option: A to Z, then 1, 2, ... (inspect_ai, _util/answer.py)."""
    return chr(ord("A") + position) if position < 26 else str(position - 25)


def read_target(target: Sequence[str], choices: Sequence[str], *, letters: bool) -> list[int] | None:
    """Return the positions of the right options; None where the target says none.

    `letters`: the task's own scorer reads the target as letters ("A", "AC", "A,C", ["A", "C"]). Otherwise it may also
    be the text of an option; one that would be two different options is neither.
    """
    named = _read_letters(target, len(choices))
    if letters:
        return named
    texts = [text.strip() for text in choices]
    given = [text.strip() for text in target]
    by_text = [texts.index(text) for text in given if texts.count(text) == 1]
    if len(by_text) < len(given) or not given:
        return named if not any(text in texts for text in given) else None
    return by_text if named is None or sorted(named) == sorted(by_text) else None


def _read_letters(target: Sequence[str], count: int) -> list[int] | None:
    """Read a target as inspect_ai's `choice` does (scorer/_choice.py, `_score_target`); None where it names none."""
    positions = {label(position): position for position in range(count)}
    tokens = [token for text in target for token in text.replace(",", " ").split()]
    names = [name for token in tokens for name in ([token] if token.isnumeric() else token)]
    found = {positions.get(str(int(name)) if name.isdecimal() else name.upper()) for name in names}
    return sorted(one for one in found if one is not None) if found and None not in found else None


@dataclass(frozen=True, slots=True)
class Shown:
    """What a model was shown of a sample whose options the task shuffles, and what it said."""

    order: tuple[int, ...]
    """The positions in the dataset of the options, in the order shown."""
    text: str
    """The answer, in the labels of that order."""

    def in_order_of_dataset(self, choices: Sequence[str], *, takes_all: bool, is_cut_off: bool) -> str:
        """Return the answer in the labels of the dataset's order; as it is where it names no option."""
        options = {label(position): choices[original] for position, original in enumerate(self.order)}
        named = parsing.read_choice(self.text, options, multi_label=takes_all, is_cut_off=is_cut_off)
        shown = [*options]
        found = sorted({self.order[shown.index(one)] for one in named if one is not None})
        return f"ANSWER: {', '.join(map(label, found))}" if found else self.text


def was_shuffled(sample: Sample, settings: Mapping[str, object] | None) -> bool:
    """Whether the task shuffled the options of a sample. `settings`: of the solver for multiple choice."""
    if sample.choices is None:
        return False
    if settings is not None and settings.get("shuffle"):
        return True
    return any((score.explanation or "").startswith(_EXPLAINED) for score in (sample.scores or {}).values())


def find_shown(sample: Sample, text: str, texts: Texts) -> Shown | None:
    """Return what the model was shown and said; None where the log does not tell. `text` is the sample's output."""
    choices = sample.choices or []
    asked = [score.explanation or "" for score in (sample.scores or {}).values()]
    event = _last_model_event(texts)
    said = None
    if event is not None:
        output = texts.to_struct(event.output, Output)
        said = texts.of_message(output.choices[0].message) if output.choices else output.completion or ""
        asked = [*_prompts(event, texts), *asked]
    order = next((found for prompt in asked if (found := _find_order(prompt, choices)) is not None), None)
    if order is not None and said is not None:
        return Shown(order, said)
    rewritten = _REWRITTEN.fullmatch(text)
    if rewritten:  # in the order of the dataset
        return Shown(tuple(range(len(choices))), text)
    return None if order is None else Shown(order, text)


def _last_model_event(texts: Texts) -> Event | None:
    """Return the last call of the model under test before the scorers, which may ask models too."""
    extras = texts.extras
    last = None
    for event in extras.events or (extras.transcript.events if extras.transcript else []):
        if _begins_scoring(event):
            break
        if event.event == "model" and event.role is None and event.output:
            last = event
    return last


def _begins_scoring(event: Event) -> bool:
    if event.event == "span_begin":
        return event.type in ("scorers", "scorer")
    if event.event == "step":
        return event.type == "scorer" and event.action == "begin"
    return event.event == "score" and not event.intermediate


def _prompts(event: Event, texts: Texts) -> Iterator[str]:
    """Yield the messages that were sent, the last first."""
    data = texts.extras.events_data
    if event.input_refs and data is not None:
        messages = [message for start, end in event.input_refs for message in data.messages[start:end]]
    else:
        messages = [texts.to_struct(message, Message) for message in event.input or ()]
    for message in reversed(messages):
        if message.role != "assistant":
            yield texts.of_message(message)


def _find_order(prompt: str, choices: Sequence[str]) -> tuple[int, ...] | None:
    r"""Return the order in which a prompt lists the options, "A) ...\nB) ..."; None where it does not, or says two."""
    if len(set(choices)) < len(choices):
        return None
    found = {
        order
        for start in re.finditer(r"^A\) ", prompt, re.MULTILINE)
        if (order := _match_options(prompt, start.end(), choices, ())) is not None
    }
    return found.pop() if len(found) == 1 else None


def _match_options(prompt: str, at: int, choices: Sequence[str], before: tuple[int, ...]) -> tuple[int, ...] | None:
    """Return the order of the options from position `at` on, where the text of the next one begins."""
    for position, text in enumerate(choices):
        if position in before or not prompt.startswith(text, at):
            continue
        order, end = (*before, position), at + len(text)
        if len(order) == len(choices):
            return order
        following = f"\n{label(len(order))}) "
        if prompt.startswith(following, end):
            rest = _match_options(prompt, end + len(following), choices, order)
            if rest is not None:
                return rest
    return None
