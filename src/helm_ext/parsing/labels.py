r"""Which option of a multiple-choice question a completion means (docs/adapter_spec.md, "How an answer is read").

Forgiving about form, strict about meaning: what could be read in two ways is read in none. What is read does not depend
on which label it is: whether "A" is the label A or a word is told from what follows it alone. The rules, for users in
docs/adapter_spec.md, in order:

1.  *Label*: the completion is a label as it is spelled, but for white space, a final point and brackets. This also wins
    where another option's text is the same (options `AB`, `A`, `B`, `O`).
2.  *Text*: it is the text of an option. Options with the same text name the same answer: the first is returned.
3.  *Thinking* (`texts`) is not part of the answer, nor are special tokens at the end (`B</s>`), nor another question
    that a base model goes on with.
4.  *Decoration* goes, and the options are spelled as symbols wherever they are named (`marks`): at a line's end, before
    punctuation, a bracket, the label's own text, or prose that may follow an answer (because, since, and here, ...).
    The longest spelling counts: "$5" is the option `$5` rather than `5`. Numbers with units are values (`options`).
5.  *Claims* (`claims`): what introduces options, declares or denies them, and how much that weighs (`Rank`). A list in
    which one is marked as right or rated best claims that one (`reader`).
6.  *Lead* (`reader`): the completion begins with an option ("B. Paris is", "Option B, because", "Yes, it is"). Of a
    long text that was cut off, only where a reason follows; 7 does not count there.
7.  *Sentence* (`sentences`): the only option that is named, or of which words are; what all others leave over.

Several options named together ("A and C", "A or B") are no single answer, nor is a label with another option's text
("B. London"). Known limits: an initial that nothing tells from a label ("E. coli lives in the gut", label E) is read as
one; of a completion longer than HEAD + TAIL characters rules 4 to 7 see its beginning and its end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from helm_ext.parsing.options import NOTHING, Options, get_label_set, peel, simplify, strip_end_tokens
from helm_ext.parsing.segments import SEPARATOR, split_segments
from helm_ext.parsing.texts import apply_pattern, find_asked_options, split_thinking, without_next_question

HEAD = 4_000
"""Characters at the beginning of a long completion that are looked at: where a direct answer stands."""

TAIL = 8_000
"""Characters at the end of a long completion that are looked at: where reasoning ends in an answer."""


def read_label(completion: str, labels: Mapping[str, str], *, is_cut_off: bool = False) -> str | None:
    """Return the label (a key of `labels`, as it is spelled there) of the option that `completion` means, or None.

    `labels` maps each label to its option's text, in the order of the options. The rules are at the top of this
    module. Linear in the length of the completion. `is_cut_off`: the model was stopped before it had finished
    (`finish_reason` "length"): only an answer that stands there already counts.
    """
    named = _read(completion, labels, several=False, is_cut_off=is_cut_off)
    return named[0] if len(named) == 1 else None


def read_labels(completion: str, labels: Mapping[str, str], *, is_cut_off: bool = False) -> tuple[str, ...]:
    """Return every label that `completion` means, in the order of the options; () when it means none.

    For questions where all of the right options are asked for. The rules are those of `read_label`, but several options
    may be named together ("A, C", "(A) and (C)", "AC") or one after the other ("A is correct. C is correct.").
    """
    return _read(completion, labels, several=True, is_cut_off=is_cut_off)


def _read(completion: str, labels: Mapping[str, str], *, several: bool, is_cut_off: bool) -> tuple[str, ...]:
    stripped = completion.strip()
    if not stripped:
        return ()
    if stripped in labels:
        return (stripped,)
    label_set = get_label_set(tuple(labels))
    core = stripped.removesuffix(".")
    if (core[:1], core[-1:]) in {("(", ")"), ("[", "]")}:
        core = core[1:-1]
    bare = label_set.by_core.get(core)
    if bare is not None and core in bare:
        return (bare,)
    for label, text in labels.items():
        if text.strip() == stripped:
            return (label,)
    if bare is not None:  # another spelling of the label: "1" for ①, unless that is an option's text
        return (bare,)
    answer = strip_end_tokens(stripped, labels.values())
    _, answer = split_thinking(answer) or ("", answer)
    if answer != stripped:
        return _read(answer.strip(), labels, several=several, is_cut_off=is_cut_off)
    # These two are quick and change nothing: no option is so short that it could be what is named, with its decoration.
    if len(stripped) <= label_set.longest + 32 and all(len(text) > len(stripped) for text in labels.values()):
        loose = label_set.find(peel(simplify(stripped)))
        if loose is not None:
            return (loose,)
    plain = label_set.plain.fullmatch(stripped)
    stated = label_set.find(plain["label"]) if plain else None
    if plain and stated is not None and all(len(text) > len(plain["named"]) for text in labels.values()):
        return (stated,)
    from helm_ext.parsing.reader import read_options  # its patterns take 70 ms to compile: not where labels are plain

    options = Options(label_set, labels)
    text = without_next_question(completion.rstrip()).strip()
    asked = find_asked_options(text)
    # A question behind the answer shows that the answer had ended.
    ended = len(text) < len(completion.strip())
    named = read_options(
        options,
        simplify(_window(text[:asked])),
        several=several,
        is_cut_off=is_cut_off and not ended and asked == len(text),
    )
    if not named and asked < len(text):
        named = read_options(options, simplify(_window(text)), several=several, is_cut_off=is_cut_off)
    return tuple(label for label in labels if label in named)


def read_choice(
    text: str,
    options: Mapping[str, str],
    pattern: str | None = None,
    *,
    multi_label: bool = False,
    is_list: bool = False,
    is_exact: bool = False,
    is_cut_off: bool = False,
    separator: str = SEPARATOR,
) -> Sequence[str | None]:
    """Return the labels of the options that are named, None for a segment of a list that names none.

    `options`: label to text, in order. `pattern`: AdapterSpec's `output_mapping_pattern`: only what it extracts is read
    (docs/adapter_spec.md), first as a label by its exact spelling, as HELM does. `multi_label`: all right options are
    asked for. `is_list`: `output_format: list`, with `separator` between segments. `is_exact`: HELM's own rule
    (evaluate_reference_metrics.compute_reference_metrics), the stripped text is a label. `is_cut_off` as `read_label`.
    Raises ValueError for a pattern that is no regular expression.
    """
    if is_exact:
        label = apply_pattern(text.strip(), pattern) if pattern else text.strip()
        return [label] if label in options else []
    is_whole = not is_list or text.strip() in {option.strip() for option in options.values()}  # which may hold `;`
    segments = [text] if is_whole else split_segments(text, separator)
    is_cut_off = is_cut_off and not pattern

    def find(said: str) -> str:  # HELM strips a completion before it applies the pattern
        return apply_pattern(said.strip(), pattern) if pattern else said

    if multi_label and (is_whole or len(segments) == 1):  # "A, C" is as good as "A; C"
        return read_labels(find(text), options, is_cut_off=is_cut_off)
    last = len(segments) - 1
    return [
        said if said in options else read_label(said, options, is_cut_off=is_cut_off and place == last)
        for place, said in enumerate(map(find, segments))
    ]


def _window(text: str) -> str:
    """Return the text, or its beginning and end on lines of their own."""
    return text if len(text) <= HEAD + TAIL else f"{text[:HEAD]}\n{NOTHING}\n{text[-TAIL:]}"
