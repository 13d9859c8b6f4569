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

import re
from collections.abc import Mapping

from helm_ext.parsing import phrases
from helm_ext.parsing.predictions import apply_pattern, without_thinking
from helm_ext.parsing.reader import Reader
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
    stripped = completion.strip()
    if not stripped:
        return None
    if stripped in labels:
        return stripped
    for label, text in labels.items():
        if text.strip() == stripped:
            return label
    answer = without_thinking(strip_end_tokens(stripped, labels.values()))
    if answer != stripped:
        return read_label(answer, labels)
    label_set = get_label_set(tuple(labels))
    # Quick: no option is so short that the decoration could be part of it.
    if len(stripped) <= label_set.longest + 32 and all(len(text) > len(stripped) for text in labels.values()):
        loose = label_set.find(peel(simplify(stripped)))
        if loose is not None:
            return loose
    return Reader(label_set, labels, simplify(_window(stripped))).read()


def read_labels(completion: str, labels: Mapping[str, str]) -> tuple[str, ...]:
    r"""Return every label that `completion` means, in the order of the options; () when it means none.

    For questions where all of the right options are asked for. Each of these is tried, the first that can be read
    counts: the whole completion; what the last statement says ("The answers are A and C."); the first or the last line
    (nothing, if both can be read and differ); one label by `read_label`. A piece of text can be read when it is labels
    and options' texts, with `,` `;` `/` `&` `+`, "and" or line breaks between them, and nothing else ("A, C",
    "(A) and (C)", "A. Paris\nC. Rome"), or labels of one letter without anything between them ("AC", "A C").
    """
    stripped = completion.strip()
    if stripped in labels:
        return (stripped,)
    answer = without_thinking(strip_end_tokens(stripped, labels.values()))
    if answer != stripped:
        return read_labels(answer, labels)
    text = simplify(_window(stripped))
    reader = Reader(get_label_set(tuple(labels)), labels, text)
    found = _read_pieces(text, reader)
    if not found:
        lines = [line for line in text.split("\n") if line.strip()] or [""]
        first, last = _read_pieces(lines[0], reader), _read_pieces(lines[-1], reader)
        stated = _read_stated(reader)
        if (stated and first and first != stated) or (not stated and first and last and first != last):
            return ()
        found = stated or first or last
    if not found:
        single = read_label(stripped, labels)
        found = frozenset() if single is None else frozenset({single})
    return tuple(label for label in labels if label in found)


def _read_stated(reader: Reader) -> frozenset[str]:
    """Return what the last statement says."""
    last = None
    for match in phrases.SEVERAL.finditer(reader.text.lower()):
        if not reader.is_void(match.start()):
            last = match
    if last is None:
        return frozenset()
    rest = reader.text[last.end() :]
    for part in (rest, rest.strip().partition("\n")[0]):
        filler = phrases.FILLER.match(part)
        found = _read_pieces(part, reader) or _read_pieces(part[filler.end() if filler else 0 :], reader)
        if found:
            return found
    return frozenset()


_BETWEEN = re.compile(r"[,;/&+\n、]|\b(?:and|und|et)\b|[和与及と]", re.IGNORECASE)
_MAX_PIECES = 64


def _read_pieces(text: str, reader: Reader) -> frozenset[str]:
    """Return the labels that the text consists of, nothing if there is anything else in it."""
    text = re.sub(r"^\s{0,3}both\s", "", text, flags=re.IGNORECASE)
    cuts = [0, *(position for match in _BETWEEN.finditer(text) for position in match.span()), len(text)]
    spans = [(start, end) for start, end in zip(cuts[::2], cuts[1::2], strict=True) if peel(text[start:end])]
    if not spans or len(spans) > _MAX_PIECES:
        return frozenset()
    # From the end: what the pieces from i on consist of. Options' texts may hold separators: the longest piece first.
    readings: list[frozenset[str] | None] = [None] * len(spans) + [frozenset()]
    for i in range(len(spans) - 1, -1, -1):
        for j in range(len(spans), i, -1):
            rest = readings[j]
            piece = text[spans[i][0] : spans[j - 1][1]].strip()
            if rest is None or len(piece) > 2 * reader.longest_text + 100:
                continue
            label = reader.read_line(piece, lead=True) or reader.read_pair(piece)
            if label is not None:
                readings[i] = rest | {label}
                break
    return readings[0] or _read_letters(peel(text), reader)


def _read_letters(text: str, reader: Reader) -> frozenset[str]:
    """Read "AC" and "A C": two or more different labels of one letter."""
    letters = text.split() if " " in text else list(text)
    found = [reader.label_set.by_core.get(letter) for letter in letters if len(letter) == 1 and letter.isalpha()]
    labels = frozenset(label for label in found if label is not None)
    return labels if len(labels) == len(letters) > 1 else frozenset()


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
