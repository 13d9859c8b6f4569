"""All scores by name: ours, HELM's, and those that other installed packages bring in.

Whoever needs to know which names there are, what they mean or whether one may be asked for, asks here. Importing this
module loads neither HELM nor tokenizers: the functions load what they need when they are called.

Another package adds scores by an entry point of the group `helm_ext.scores` that names a `Score` or a sequence of them
(docs/how-to/add_a_score.md).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from types import MappingProxyType
from typing import Any

from helm_ext.errors import RunEntryError, did_you_mean, show
from helm_ext.scoring.score import JUDGED, Score, StatInfo, judge_stat
from helm_ext.scoring.scores import helm, kola, likelihoods, lists, refusal, texts, ultraeval

ENTRY_POINTS = "helm_ext.scores"
"""The entry point group of other packages' scores."""

_OURS: list[Score] = [
    score for module in (helm, texts, lists, kola, likelihoods, refusal, ultraeval) for score in module.SCORES
]

LIST_SCORES = tuple(score.name for score in lists.SCORES)
"""The names for `output_format: list`, in the order of reports."""

_EXAMPLES = (
    "for example exact_match (accuracy), normalized_exact_match, f1_score, rouge_l; leave it out for the defaults"
)
_TOKENIZER_HINT = "score_tokenizer=FOLDER names one of Hugging Face's, where the format takes that argument"


def get_scores(output_format: str = "string") -> Mapping[str, Score]:
    """Return every score by name, those that must not be named included (`Score.refused`).

    Where lists are compared, `exact_match` is that of lists; elsewhere no score of lists is there.
    """
    return _tables()[output_format == "list"]


def main_stat(name: str, output_format: str = "string") -> str:
    """Return the stat that a leaderboard shows for a main metric; the name itself for what is no score's name."""
    score = get_scores(output_format).get(name)
    return score.main_stat if score else name


def find_unnamable(
    name: str,
    output_format: str = "string",
    *,
    examples: str = _EXAMPLES,
    has_likelihoods: bool = False,
    has_tokenizer: bool = False,
) -> tuple[str, str] | None:
    """Return what is wrong with a metric's name in a file or run entry, and a hint; None for a name that can be had.

    `examples` is the hint where no known name is near; `has_likelihoods`: whether the rows were asked by
    log-probabilities; `has_tokenizer`: whether the user names one.
    """
    scores = get_scores(output_format)
    if name in scores:
        refused = scores[name].refused
        if scores[name].kind == "likelihoods" and not has_likelihoods:
            refused = "it compares the options' log-probabilities, and the rows hold none (`likelihoods`)"
        if scores[name].needs_tokenizer and not has_tokenizer:
            return f"{show(name)} counts tokens, and no tokenizer is named", _TOKENIZER_HINT
        return (f"{show(name)} cannot be measured here: {refused}", "") if refused else None
    if name in LIST_SCORES:
        return f"unknown metric {show(name)}", f'{name} is for "output_format": "list"'
    known = sorted(
        known
        for known, score in scores.items()
        if not score.refused and (has_likelihoods or score.kind != "likelihoods")
    )
    longer = [one for one in known if len(name) > 1 and one.startswith(f"{name.lower()}_")]
    hint = did_you_mean(name, known) or (f"did you mean {longer[0]!r}?" if longer else examples)
    return f"unknown metric {show(name)}", hint


@lru_cache(maxsize=1)
def our_stats() -> Mapping[str, StatInfo]:
    """Return the stats of HELM's scores and ours, those that must not be named included; not those of other packages.

    Of these alone is known what they mean.
    """
    return MappingProxyType({stat.name: stat for score in _OURS for stat in (*score.over_all, *score.stats)})


def find_bounds(stat: str, arguments: Mapping[str, Any] | None = None) -> tuple[float, float]:
    """Return the least and the greatest value of a stat: of HELM's or ours, of a judge's, or as the source has it.

    `arguments`: those of the run's metric, with `source` (`Source.to_args()`) and `judged` (`EvalSet.judged`). Of any
    other stat, minus and plus infinity.
    """
    source, judged = ((arguments or {}).get(name) for name in ("source", "judged"))
    for criterion, told in (judged or {}).items():
        if stat.startswith(judge_stat(criterion)) and stat[len(judge_stat(criterion)) :][:1] in ("", "[", "@"):
            scale = told["scale"]
            ends = (scale["min"], scale["max"]) if isinstance(scale, Mapping) else scale
            return min(ends), max(ends)
    for score in source["scores"].values() if source else ():
        if stat == score["stat"] or stat.startswith(f"{score['stat']}@"):  # `inspect_match@subject=law`
            lowest, highest = score.get("bounds") or (-math.inf, math.inf)
            return lowest, highest
    name = stat.partition("@")[0]  # `exact_match@5`: the best of five; `exact_match@subject=law`
    if name.endswith(JUDGED):  # a share of right rows
        return 0.0, 1.0
    known = our_stats().get(name)
    if known is None:
        return -math.inf, math.inf
    return known.bounds if known.can_be_main else (0.0, math.inf)  # which counts what others are made of


@lru_cache(maxsize=2)
def load_tokenizer(name: str) -> Callable[[str], Sequence[int]]:
    """Return what gives the ids of a text's tokens, with those that the tokenizer adds by itself (GPT-2's adds none).

    `name` is a folder, or the name of a tokenizer in Hugging Face's cache on this machine. Nothing is downloaded and no
    code of the folder is run, because the name may come with the data. Raises RunEntryError where there is none.
    """
    from transformers import AutoTokenizer  # slow, and few need it

    try:
        tokenizer = AutoTokenizer.from_pretrained(name, local_files_only=True, trust_remote_code=False)
    except Exception as error:  # whatever a folder holds: transformers raises many kinds
        why = " ".join(str(error).split())[:200]
        raise RunEntryError(
            f"score_tokenizer={show(name)} cannot be loaded: {type(error).__name__}: {why}\n"
            "  hint: a folder with tokenizer.json, or a name that `hf download NAME` has put into this machine's cache"
        ) from error
    return lambda text: tokenizer(text)["input_ids"]


@lru_cache(maxsize=1)
def _tables() -> tuple[Mapping[str, Score], Mapping[str, Score]]:
    users = _load_user_scores(entry_points(group=ENTRY_POINTS), {score.name: "helm-ext" for score in _OURS})
    every = [*_OURS, *users]
    texts = {score.name: score for score in every if score.kind != "list"}
    return MappingProxyType(texts), MappingProxyType(texts | {s.name: s for s in every if s.kind == "list"})


def _load_user_scores(found: Iterable[EntryPoint], owners: dict[str, str]) -> list[Score]:
    """Return what other packages add. `owners`: name to the package that has it already.

    An entry point that cannot be loaded, and a name that is taken, are one warning each; the rest is there.
    """
    scores: list[Score] = []
    for entry_point in sorted(found, key=lambda entry: (entry.name, entry.value)):
        owner = entry_point.dist.name if entry_point.dist else entry_point.value
        try:
            given = _require_scores(entry_point.load())
        except Exception as error:  # noqa: BLE001 - another package's mistake must not stop runs that do not use it
            warnings.warn(
                f"the scores {entry_point.name!r} of {owner} ({entry_point.value}) cannot be used: "
                f"{type(error).__name__}: {error}",
                stacklevel=2,
            )
            continue
        for score in given:
            if score.name in owners:
                warnings.warn(
                    f"the score {score.name!r} of {owner} is not used: {owners[score.name]} has that name",
                    stacklevel=2,
                )
                continue
            owners[score.name] = owner
            scores.append(score)
    return scores


def _require_scores(loaded: object) -> list[Score]:
    """Return what an entry point names as a list. Raises TypeError for what is neither a Score nor several."""
    scores: list[Score] = []
    for one in loaded if isinstance(loaded, Sequence) else [loaded]:
        if not isinstance(one, Score):
            raise TypeError(f"{type(one).__name__} is no helm_ext.scoring.score.Score")
        scores.append(one)
    return scores
