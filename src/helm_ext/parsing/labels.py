r"""Which option of a multiple-choice question a completion means (formats.md, section 1, "Reading the label").

Forgiving about form, strict about meaning: what could be read in two ways is read in none. The rules, in order; the
first that applies decides:

1.  *Nothing*: a blank completion means no option.
2.  *Exact label*: the completion, white space around it aside, is a label as it is spelled. This also wins where an
    option's text looks like a label (options `B` and `A`, numbers as labels and as options).
3.  *Exact text*: it is the text of an option. Options with the same text name the same answer: the first is returned.
4.  *Thinking*: what stands before the last `</think>` is not part of the answer, nor are special tokens at the end
    (`B</s>`, `B<|im_end|>`). The rules start anew with the rest.
5.  *Loose label*: it is a label but for decoration: Unicode compatibility forms (`Ｂ`, `（B）`, `②`), brackets, quotes,
    markdown, LaTeX, punctuation behind it, a bullet before it; then also but for case. Where several labels agree in
    that (`a` and `A`), only the spelling that tells them apart counts. In rules 5 to 9 decoration is taken off step by
    step, and the least stripped spelling that is a label or a text counts: "$5" is the option `$5` rather than `5`. A
    sign before a digit is no decoration. What was taken off must not make another option ("- 3" with `3` and `-3`).
6.  *Loose text*: it is an option's text but for case, white space, final punctuation and the decoration of rule 5. Two
    options that agree in that are told apart by rule 3 only.
7.  *Stated answer*: "the answer is B", "Answer: (B)", "I choose B", "答案是B", `\boxed{B}`, `<answer>B</answer>`,
    "B is correct", and the same with an option's text ("The answer is Paris."). The **last** statement that can be read
    decides, for reasoning comes before the answer. It means nothing when
    - it names several ("A or B", "A and C", "A, C"), unless that is an option's text;
    - label and text contradict each other ("The answer is B. London", London being A's text);
    - it is denied later ("The answer is not B"), hypothetical ("if the answer is B"), about the wrong one, doubted ("I
      doubt the answer is B") or what somebody else may think ("you might think the answer is B");
    - the first line is nothing but another label, text, or label with its text (two final answers), unless that line
      begins a list of the options.
    A text longer than the label it starts with wins over that label ("The answer is E. coli").
8.  *A line of its own*: the first or the last line is nothing but a label or an option's text (rules 2, 3, 5, 6). If
    both are and differ, the completion means nothing. Before a label on the last line, words such as "So" may stand.
9.  *Leading label*: `B. text`, `(B) text`, `B: text`, `B - text`, `B) text`, `Option B, because ...`, `B Paris` (with
    its own text only). Not when a sentence about the option follows ("(B) is wrong"), other options are named with it
    ("A and B"), another label leads a later line (the options are being listed), or the text contradicts.
10. Otherwise nothing. An option's text somewhere in a sentence is no answer.

A label is never part of a word, a number or an abbreviation: not in `Because`, `A good question`, `a dog`, `I think`,
`1.5`, `10`, `A's`, `C++`, `B-cell`, `A/B`, `乙方`. Known limits: an initial that nothing tells from a label ("E. coli
lives in the gut", label E) is read as one; of a completion longer than HEAD + TAIL characters rules 5 to 9 see its
beginning and its end.
"""

from __future__ import annotations

from collections.abc import Mapping

from helm_ext.parsing.options import Options
from helm_ext.parsing.predictions import apply_pattern, without_thinking
from helm_ext.parsing.reader import read_options
from helm_ext.parsing.runon import find_asked_options, without_next_question
from helm_ext.parsing.spelling import get_label_set, peel, simplify, strip_end_tokens

__all__ = ["HEAD", "TAIL", "map_answer", "map_answers", "read_label", "read_labels"]

HEAD = 4_000
"""Characters at the beginning of a long completion that are looked at: where a direct answer stands."""

TAIL = 8_000
"""Characters at the end of a long completion that are looked at: where reasoning ends in an answer."""


def read_label(completion: str, labels: Mapping[str, str]) -> str | None:
    """Return the label (a key of `labels`, as it is spelled there) of the option that `completion` means, or None.

    `labels` maps each label to its option's text, in the order of the options. The rules are at the top of this
    module. Linear in the length of the completion.
    """
    named = _read(completion, labels, several=False)
    return named[0] if len(named) == 1 else None


def read_labels(completion: str, labels: Mapping[str, str]) -> tuple[str, ...]:
    """Return every label that `completion` means, in the order of the options; () when it means none.

    For questions where all of the right options are asked for. The rules are those of `read_label`, but several options
    may be named together ("A, C", "(A) and (C)", "AC") or one after the other ("A is correct. C is correct.").
    """
    return _read(completion, labels, several=True)


def _read(completion: str, labels: Mapping[str, str], *, several: bool) -> tuple[str, ...]:
    stripped = completion.strip()
    if not stripped:
        return ()
    if stripped in labels:
        return (stripped,)
    label_set = get_label_set(tuple(labels))
    bare = label_set.by_core.get(_without_point(stripped))
    if bare is not None:
        return (bare,)
    for label, text in labels.items():
        if text.strip() == stripped:
            return (label,)
    answer = without_thinking(strip_end_tokens(stripped, labels.values()))
    if answer != stripped:
        return _read(answer, labels, several=several)
    # These two are quick and change nothing: no option is so short that it could be what is named, with its decoration.
    if len(stripped) <= label_set.longest + 32 and all(len(text) > len(stripped) for text in labels.values()):
        loose = label_set.find(peel(simplify(stripped)))
        if loose is not None:
            return (loose,)
    plain = label_set.plain.fullmatch(stripped)
    if plain and (stated := label_set.find(plain["label"])) and all(len(t) > len(plain["named"]) for t in labels.values()):
        return (stated,)
    options = Options(label_set, labels)
    text = without_next_question(stripped)
    asked = find_asked_options(text)
    named = read_options(options, simplify(_window(text[:asked])), several=several)
    if not named and asked < len(text):
        named = read_options(options, simplify(_window(text)), several=several)
    return tuple(label for label in labels if label in named)


def _without_point(text: str) -> str:
    """Return the text without a final point, and without brackets around it."""
    text = text[:-1] if text.endswith(".") else text
    return text[1:-1] if (text[:1], text[-1:]) in {("(", ")"), ("[", "]")} else text


def map_answer(completion: str, labels: Mapping[str, str], pattern: str | None = None) -> str | None:
    """Return the label that `completion` means; `pattern` is HELM's `output_mapping_pattern`, which overrides.

    With a pattern, only what it extracts is read (formats.md: it overrides the reading of the whole completion): first
    as a label by its exact spelling, as HELM does, then by the rules of `read_label`.
    """
    completion = _apply(completion, pattern)
    return completion if completion in labels else read_label(completion, labels)


def map_answers(completion: str, labels: Mapping[str, str], pattern: str | None = None) -> tuple[str, ...]:
    """Return all labels that `completion` means, as `map_answer` and `read_labels` say."""
    return read_labels(_apply(completion, pattern), labels)


def _apply(completion: str, pattern: str | None) -> str:
    # HELM strips a completion before it applies the pattern.
    return apply_pattern(completion.strip(), pattern) if pattern else completion


def _window(text: str) -> str:
    """Return the text, or its beginning and end on lines of their own."""
    return text if len(text) <= HEAD + TAIL else f"{text[:HEAD]}\n{_CUT}\n{text[-TAIL:]}"


_CUT = "\ue001"
"""Stands for what was left out (a private-use character): no label, no text, no phrase."""
