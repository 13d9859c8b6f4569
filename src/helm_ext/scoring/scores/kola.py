"""Scores of the KoLA benchmark, by the rules of its evaluation scripts (docs/how-to/kola.md has a recipe for each).

They look at the first correct reference and at the completion as they are written. Segments keep their white space and
full stops, which the scores of lists drop. Where a script adds 1e-10 to a denominator, values here differ by less than
that.

tests/unit/scoring/test_kola.py counts by hand what the rules give.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from helm_ext.errors import DatasetError, show
from helm_ext.scoring.score import Score, StatInfo, describe_count

MAX_PAIRS = 1_000_000
"""The most pairs of segments that are compared. Predicted segments beyond are matched with none, and still count."""

_SMOOTHING = 0.001
"""What KoLA adds to the denominators of `*_with_penalty`: a perfect answer of one segment has 1 / 1.001."""

Split = Callable[[str], Sequence[str]]
Tokenize = Callable[[str], Sequence[int]]
_Counts = Mapping[str, tuple[float, float, float]]
"""What is counted in a row to how many were found, predicted and expected."""


def split_at_semicolons(text: str) -> list[str]:
    """Split as scripts 1-x do: the stripped text at each `;`, so that "" is one empty segment."""
    return text.strip().split(";")


def split_quoted(text: str) -> list[str]:
    """Split as scripts 3-5 and 3-6 do: `"a", "b" <stop>` at `", "`, up to `<stop>`; nothing is the empty list."""
    before, _, _ = text.strip().partition("<stop>")
    if not before:
        return []
    segments = before.split('", "')
    segments[-1] = segments[-1].strip().removesuffix('"')
    segments[0] = segments[0].removeprefix('"')
    return segments


def match(gold: Sequence[str], pred: Sequence[str]) -> tuple[list[tuple[str, str]], float]:
    """Return pairs of segments whose Levenshtein distances have the least sum, and the penalty for their number.

    The penalty is the shorter list's length by the longer one's.
    """
    if not gold or not pred:
        return [], 0.0
    # Imported here: who names no such score should not wait for them.
    from rapidfuzz.distance import Levenshtein
    from rapidfuzz.process import cdist
    from scipy.optimize import linear_sum_assignment

    compared = pred[: max(1, MAX_PAIRS // len(gold))]
    distances = cdist(compared, gold, scorer=Levenshtein.distance).astype(float)
    pairs = [(gold[column], compared[row]) for row, column in zip(*linear_sum_assignment(distances), strict=True)]
    return pairs, min(len(gold), len(pred)) / max(len(gold), len(pred))


def _em_acc(split: Split, _row: Mapping[str, Any], golds: str | Sequence[str], prediction: str) -> float:
    """Return the share of matched segments that are equal, by the penalty; an empty list for an empty one is 1."""
    gold, pred = split(_first(golds)), split(prediction)
    pairs, penalty = match(gold, pred)
    if not gold and not pred:
        return 1.0
    return sum(one == other for one, other in pairs) / (len(pairs) + _SMOOTHING) * penalty


def _token_f1(
    split: Split, _row: Mapping[str, Any], golds: str | Sequence[str], prediction: str, tokenize: Tokenize
) -> float:
    """Return the F1 of the tokens of matched segments, by the penalty; a token is found as often as it is predicted."""
    gold, pred = split(_first(golds)), split(prediction)
    pairs, penalty = match(gold, pred)
    if not gold and not pred:
        return 1.0
    found = predicted = expected = 0
    for one, other in pairs:
        wanted, said = tokenize(one), tokenize(other)
        known = set(wanted)
        found += sum(token in known for token in said)
        predicted, expected = predicted + len(said), expected + len(wanted)
    precision, recall = found / (predicted + _SMOOTHING), found / (expected + _SMOOTHING)
    return 2 * precision * recall / (precision + recall) * penalty if found else 0.0


def read_entities(text: str) -> list[tuple[str, ...]]:
    """Return the entities of `[ Nile | river ] flows` as script 2-4 reads them: name and type, in lower case."""
    marked = [part.split("[")[-1].split("|") for part in text.split("]")]
    return [tuple(part.strip().lower() for part in parts[:2]) for parts in marked if len(parts) > 1]


def _count_entities(gold: str, prediction: str) -> _Counts:
    wanted, said = read_entities(gold), read_entities(prediction)
    known = set(wanted)
    return {"entity": (sum(entity in known for entity in said), len(said), len(wanted))}


_TRIPLE = re.compile(r"entity\d+,[a-zA-Z\s]+,entity\d+", re.IGNORECASE)
_NUMBER = re.compile(r"(?<=entity)\d+\.?\d*")


def read_triple(text: str) -> tuple[str, ...] | None:
    """Return both numbers and the relation of `(entity1,capital,entity4)`: what stands between the first two commas."""
    numbers = _NUMBER.findall(text)
    return (*numbers[:2], *text.split(",")[1:2]) if len(numbers) > 1 else None


def _count_triples(gold: str, prediction: str) -> _Counts:
    """Compare the lines of a reference with what has the form of a triple in the prediction, as 2-5 and 2-8 do."""
    wanted = Counter(triple for line in gold.split("\n") if (triple := read_triple(line)) is not None)
    said = [read_triple(match) for match in _TRIPLE.findall(prediction)]
    return {"triple": (sum(wanted[triple] for triple in said if triple is not None), len(said), wanted.total())}


_MARK = re.compile("(</?mark>)")


def read_events(text: str) -> list[tuple[str, tuple[int, int], str]]:
    """Return the marked events of a text as script 2-6 reads them: trigger, first and last place among words, type.

    The text is `Output: A <mark> war </mark> began . Events: war:Attack`. The n-th type is the n-th trigger's, and `NA`
    where it stands for another word. Without `Output:` or `Events:` there are no events.
    """
    head, *types = " ".join(text.split()).split("Events:")
    marked = head.split("Output:")
    if not types or len(marked) < 2:
        return []
    words = _MARK.sub(r" \1 ", marked[1]).split()
    starts = [at for at, word in enumerate(words) if word == "<mark>"]
    ends = [at for at, word in enumerate(words) if word == "</mark>"]
    named = [one.split(":") for one in types[0].split(";")]
    events = []
    for number, (start, end) in enumerate(zip(starts, ends, strict=False)):
        trigger = " ".join(words[start + 1 : end])
        said = named[number] if number < len(named) else []
        type_ = said[1] if len(said) > 1 and said[0] == trigger else "NA"
        events.append((trigger, (start - 2 * number, end - 1 - 2 * number), type_))
    return events


def _count_events(gold: str, prediction: str) -> _Counts:
    wanted, said = read_events(gold), read_events(prediction)
    places = Counter(event[:2] for event in wanted) & Counter(event[:2] for event in said)
    return {
        "event_classification": ((Counter(wanted) & Counter(said)).total(), len(said), len(wanted)),
        "event_identification": (places.total(), len(said), len(wanted)),
    }


_RELATIONS = {
    "temporal": ("before", "overlap", "contains", "simultaneous", "begins-on", "ends-on"),
    "causal": ("cause", "precondition"),
    "subevent": ("subevent",),
    "coreference": ("coreference",),
}
_KIND_OF = {name: f"event_{kind}" for kind, names in _RELATIONS.items() for name in names}
_KINDS = tuple(dict.fromkeys(_KIND_OF.values()))
_NAME = re.compile("[a-zA-Z-]+")


def read_relations(text: str) -> list[str] | None:
    """Return the names in the brackets of `Answer: [before, cause]`, in lower case; None where there are none.

    The first line that has such brackets counts, to its last `]`.
    """
    for line in text.split("\n"):
        answer = min((at for at in (line.find("answer"), line.find("Answer")) if at >= 0), default=None)
        if answer is not None:
            start, end = line.find(": [", answer + len("answer")), line.rfind("]")
            if 0 <= start <= end - len(": ["):
                return [name.lower() for name in _NAME.findall(line[start + len(": [") : end])]
    return None


def _count_relations(gold: str, prediction: str) -> _Counts:
    """Count relations of each kind. One of no kind counts a quarter in each: the mean of KoLA's draw among the four.

    Raises DatasetError for a reference that names an unknown relation.
    """
    names = read_relations(gold)
    wanted = [name.lower() for name in _NAME.findall(gold)] if names is None else names
    unknown = next((name for name in wanted if name not in _KIND_OF), None)
    if unknown is not None:
        raise DatasetError(
            f"event_relation_f1: the reference {show(gold)} names {show(unknown)}, which is no relation\n"
            f"  hint: a reference is `before, cause` or ends in `Answer: [before, cause]`; known: {', '.join(_KIND_OF)}"
        )
    said = read_relations(prediction) or []
    share = sum(name not in _KIND_OF for name in said) / len(_KINDS)
    found = Counter(_KIND_OF[name] for name in said if name in wanted)
    predicted = Counter(_KIND_OF[name] for name in said if name in _KIND_OF)
    expected = Counter(_KIND_OF[name] for name in wanted)
    return {kind: (found[kind], predicted[kind] + share, expected[kind]) for kind in _KINDS}


def _over_all_rows(name: str, count: Callable[[str, str], _Counts], titles: Mapping[str, str], mean: str = "") -> Score:
    """Return a score of all rows together: F1, precision and recall of the counts of each key of `titles`.

    `mean`: the title of the mean of these F1, which is then the main stat and has the score's name. Nothing found is 0.
    """
    counts = ("found", "predicted", "expected")

    def count_row(_row: Mapping[str, Any], golds: str | Sequence[str], prediction: str) -> dict[str, float]:
        counted = count(_first(golds), prediction)
        return {f"{key}_{what}": value for key in titles for what, value in zip(counts, counted[key], strict=True)}

    def summarize(means: Mapping[str, float]) -> dict[str, float]:
        stats: dict[str, float] = {}
        for key in titles:
            found, predicted, expected = (means[f"{key}_{what}"] for what in counts)
            stats[f"{key}_f1"] = 2 * found / (predicted + expected) if found else 0.0
            stats[f"{key}_precision"] = found / predicted if found else 0.0
            stats[f"{key}_recall"] = found / expected if found else 0.0
        return ({name: sum(stats[f"{key}_f1"] for key in titles) / len(titles)} if mean else {}) | stats

    return Score(
        name=name,
        row_function=count_row,
        several=tuple(
            describe_count(f"{key}_{what}", f"# {title} {what}", f"{title} {what}, mean over rows.",
                           lower_is_better=False, can_be_main=False)
            for key, title in titles.items() for what in counts
        ),
        over_all=(
            *([StatInfo(name, mean, f"{mean}, each of all rows together.")] if mean else []),
            *(
                StatInfo(f"{key}_{part.lower()}", f"{title}: {part}", f"{part} of {title.lower()}, all rows together.")
                for key, title in titles.items() for part in ("F1", "precision", "recall")
            ),
        ),
        summarize=summarize,
    )  # fmt: skip


def _first(golds: str | Sequence[str]) -> str:
    return golds if isinstance(golds, str) else golds[0]


def _penalty_scores(suffix: str, split: Split, how: str) -> tuple[Score, Score]:
    return (
        Score(
            name=f"em_acc_with_penalty{suffix}",
            row_function=partial(_em_acc, split),
            display_name=f"EM accuracy with penalty{suffix.replace('_', ' ')}",
            description=f"KoLA's share of equal segments, {how}; less for too many or too few.",
        ),
        Score(
            name=f"token_f1_with_penalty{suffix}",
            row_function=partial(_token_f1, split),
            needs_tokenizer=True,
            display_name=f"Token F1 with penalty{suffix.replace('_', ' ')}",
            description=f"KoLA's F1 over tokens of segments, {how}; less for too many or too few.",
        ),
    )


SCORES: tuple[Score, ...] = (
    *_penalty_scores("", split_at_semicolons, "with `;` between segments"),
    *_penalty_scores("_quoted", split_quoted, 'in quotes up to "<stop>"'),
    _over_all_rows("entity_f1", _count_entities, {"entity": "Entities"}),
    _over_all_rows("triple_f1", _count_triples, {"triple": "Triples"}),
    _over_all_rows(
        "event_f1",
        _count_events,
        {"event_classification": "Classified events", "event_identification": "Identified events"},
    ),
    _over_all_rows(
        "event_relation_f1",
        _count_relations,
        {kind: f"{kind.removeprefix('event_').capitalize()} relations" for kind in _KINDS},
        mean="Mean F1 of four kinds of relations",
    ),
)
"""What `helm_ext.scoring.registry` offers from this module."""
