"""The first thing that is known of a file: its header, and `adapter_spec` as it is meant.

Typos are resolved, doubled spellings compared, decoding parameters are kept apart. Of a header that is wrong, what is
right is used all the same: the rows are read with it, so that one look finds all that is wrong.
Every key and its default: docs/adapter_spec.md.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import msgspec
from helm.benchmark.adaptation.adapter_spec import AdapterSpec

from helm_ext.errors import DatasetIntegrityError, Path, Problems, did_you_mean, show
from helm_ext.formats.request_states.checking import conform
from helm_ext.formats.request_states.shapes import METHODS, FileShape
from helm_ext.parsing import find_question_starts
from helm_ext.scoring.score import judge_stat

if TYPE_CHECKING:
    from helm_ext.evalset import Decoding, Source

SPLITS = {"train": "train", "test": "test", "valid": "valid", "validation": "valid", "dev": "valid"}
"""Names of splits as files write them, and HELM's."""

_DECODING = {
    "top_p": "top_p",
    "top_k": "top_k_per_token",
    "frequency_penalty": "frequency_penalty",
    "presence_penalty": "presence_penalty",
}
"""Keys of `decoding_parameters`, and HELM's."""


@dataclass(frozen=True)
class Options:
    """The arguments of `load` and `check`. They win over what the file says; None where the file decides."""

    method: str | None = None
    output_format: Any = None
    seed: int = 0
    max_train_instances: int | None = None
    name: str | None = None
    by: Sequence[str] = ()
    """Keys of the rows, with dots between a key and one inside it, that reports group the rows by."""
    cluster: str | None = None
    """The key, written likewise, that names what a row belongs to."""
    scoring: Mapping[str, Any] = field(default_factory=dict)
    """Keys of `scoring`, None where not given."""

    @property
    def score_otherwise(self) -> bool:
        """Whether the user wants rows scored otherwise than the file says."""
        return self.output_format is not None or any(value is not None for value in self.scoring.values())


@dataclass(frozen=True, kw_only=True)
class Header:
    """The top-level keys of a file: `adapter_spec` read once, its typos resolved, decoding parameters apart.

    Of a header that is wrong: what is right of it.
    """

    options: Options
    is_right: bool
    keys: Mapping[str, Any]
    """As the file has them; {} where something is wrong with one of them."""
    scoring: Mapping[str, Any]
    """The keys of `scoring` and the arguments that win over them."""
    source: Source | None
    """What the file says of the tool that scored its rows; None where it says nothing."""
    is_measured: bool
    """Whether answers are compared with what is right, beside the scores of the source."""
    given: Mapping[str, Any]
    """The keys of `adapter_spec`, as HELM spells them."""
    method: str | None
    """From the argument or the file; None where the rows decide."""
    output_format: Any
    mapping: Mapping[str, str | int] | None
    decoding: Decoding
    max_train_instances: int
    num_train_trials: int
    num_outputs: int
    temperature: float
    random: str | None

    def text(self, key: str, *, used: bool = True) -> str:
        """Return a prefix or suffix: absent means HELM's default if the method uses it, null means ""."""
        if key in self.given:
            return self.given[key] or ""
        return str(getattr(AdapterSpec, key)) if used else ""

    def find_unrecorded(self) -> dict[str, None]:
        """Return the decoding parameters that a file with completions does not name (`EvalSet.recorded_decoding`)."""
        from helm_ext.evalset import DECODING_NUMBERS

        given = {**self.given, **(self.given.get("decoding_parameters") or {})}
        if str(given.get("model_deployment", "")).startswith("recorded/"):
            given = {}  # HELM's file of a recorded run: its numbers are those that HELM's class must have
        return {name: None for name in DECODING_NUMBERS if given.get(name) is None}

    @property
    def next_question(self) -> tuple[str, ...]:
        """What the file's next question would begin with; see `helm_ext.parsing.find_question_starts`."""
        prefixes = self.text("instance_prefix"), self.text("input_prefix")
        return find_question_starts(*prefixes, self.given.get("stop_sequences") or ())

    @property
    def eval_splits(self) -> list[str]:
        """The splits that are evaluated, by HELM's names; [] means all."""
        return self.given.get("eval_splits") or []


def read_header(found: Mapping[str, Any] | None, options: Options, problems: Problems) -> Header:
    """Read the top-level keys of a file; None where it has none that can be told, of which nothing is said again."""
    keys, findings = conform({**(found or {}), "request_states": []}, FileShape)
    if found is None:
        options, problems = Options(scoring=options.scoring), Problems()
    for one in findings:
        problems.add(one.path, one.message, one.hint, code=one.code)
    scoring = {**(keys.get("scoring") or {}), **{key: one for key, one in options.scoring.items() if one is not None}}
    is_judged = str(scoring.get("main_metric")).startswith(judge_stat(""))

    given = dict(keys.get("adapter_spec") or {})
    instance_prefix = _settle(given, "instance_prefix", "instance_prefixw", problems)
    if "instance_prefixw" in given:
        given["instance_prefix"] = instance_prefix
    file_format = _settle(given, "output_format", "ouput_format", problems)
    mapping = _settle(given, "answer_mapping", "output_mapping", problems)
    temperature, num_outputs, random = (
        _settle(given, name, other, problems, place="decoding_parameters")
        for name, other in (("temperature", "temperature"), ("num_outputs", "num_outputs"), ("random", "seed"))
    )
    decoding_keys = given.get("decoding_parameters") or {}
    decoding = {helms: decoding_keys[ours] for ours, helms in _DECODING.items() if decoding_keys.get(ours) is not None}
    if given.get("output_mapping_pattern"):
        check_regex(given["output_mapping_pattern"], ("adapter_spec", "output_mapping_pattern"), problems)
    for index, substitution in enumerate(given.get("substitutions") or []):
        check_regex(substitution["source"], ("adapter_spec", "substitutions", index, "source"), problems)
    characters = given.get("reference_prefix_characters")
    if characters is not None and (len(set(characters)) < len(characters) or not all(c.strip() for c in characters)):
        said, kind = "labels must be different and not empty", DatasetIntegrityError
        problems.add(("adapter_spec", "reference_prefix_characters"), said, code="labels", kind=kind)
    method = options.method or given.get("method")
    if method is not None and method not in METHODS:
        hint = did_you_mean(method, METHODS) or f"supported: {', '.join(METHODS)}"
        where: Path = ("method",) if options.method else ("adapter_spec", "method")
        problems.add(where, f"unknown method {show(method)}", hint, code="method")
        method = None
    if given.get("eval_splits"):
        given["eval_splits"] = _read_eval_splits(given["eval_splits"], problems)
    demonstrations = options.max_train_instances
    if demonstrations is None:
        demonstrations = given.get("max_train_instances")
    return Header(
        options=options,
        is_right=not findings,
        keys={} if findings else keys,
        scoring=scoring,
        source=None if findings or keys.get("source") is None else _read_source(keys["source"]),
        is_measured=scoring.get("metrics") != [] or not ((found or {}).get("source") or is_judged),
        given=given,
        method=method,
        output_format=options.output_format or file_format or "string",
        mapping=mapping or None,
        decoding=cast("Decoding", decoding),
        max_train_instances=0 if method == "chat" else 5 if demonstrations is None else demonstrations,
        num_train_trials=given.get("num_train_trials") or 1,
        num_outputs=num_outputs or 1,
        temperature=float(temperature or 0),
        random=None if random is None else str(random),
    )


def _read_source(given: Mapping[str, Any]) -> Source:
    from helm_ext.evalset import Source

    scores = {
        name: {key: value for key, value in said.items() if value is not None or key == "lower_is_better"}
        for name, said in (given.get("scores") or {}).items()
    }
    said = {key: value for key, value in given.items() if value is not None}
    return msgspec.convert({**said, "scores": scores}, Source)


def read_split(name: str) -> str | None:
    """Return HELM's name of a split, None if there is no such split."""
    return SPLITS.get(name) or SPLITS.get(name.strip().lower())


def _read_eval_splits(names: Sequence[str], problems: Problems) -> list[str]:
    """Return the splits by HELM's names; names of no split, and train, are reported."""
    known = [name for name in SPLITS if name != "train"]
    splits: dict[str, None] = {}
    for index, name in enumerate(names):
        split = read_split(name)
        path = ("adapter_spec", "eval_splits", index)
        if split is None:
            hint = did_you_mean(name, known) or "known: test, valid (validation, dev)"
            problems.add(path, f"unknown split {show(name)}", hint, code="unknown-split")
        elif split == "train":
            message = "train rows are demonstrations and are not evaluated"
            problems.add(path, message, "take it out", code="unknown-split")
        else:
            splits[split] = None
    return list(splits)


def _settle(keys: Mapping[str, Any], name: str, other: str, problems: Problems, *, place: str = "") -> Any:
    """Return the value of a key that has another spelling, or another place in `decoding_parameters`.

    What stands there wins, and null says nothing there.
    """
    inside = (keys.get(place) or {}) if place else keys
    given = [(holder[key], key) for holder, key in ((inside, other), (keys, name)) if key in holder]
    given = [(value, key) for value, key in given if value is not None or not place]
    if len(given) == 2 and given[0][0] != given[1][0] and not (place and str(given[0][0]) == str(given[1][0])):
        (second, _), (first, _) = given
        message = f"{show(second)} contradicts adapter_spec.{name} {show(first)}, which means the same"
        where, kind = ("adapter_spec", *([place] if place else []), other), DatasetIntegrityError
        problems.add(where, message, "keep one of them", code="contradiction", kind=kind)
    return given[0 if place else -1][0] if given else None


def check_regex(pattern: str, path: Path, report: Problems) -> None:
    """Report a regular expression that Python cannot compile."""
    try:
        re.compile(pattern)
    except re.error as error:
        report.add(path, f"{show(pattern)} is no regular expression: {error}", code="regex")
