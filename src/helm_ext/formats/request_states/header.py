"""The first thing that is known of a file: its header, and `adapter_spec` as it is meant.

Typos are resolved, doubled spellings compared, decoding parameters are kept apart. Of a header that is wrong, what is
right is used all the same: the rows are read with it, so that one look finds all that is wrong.
Every key and its default: docs/adapter_spec.md.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
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


@dataclass(frozen=True)
class Settings:
    """The file's `adapter_spec`, read once: typos resolved, decoding parameters apart."""

    given: Mapping[str, Any]
    """Keys as HELM spells them."""
    method: str | None
    """From the argument or the file; None where the rows decide."""
    output_format: Any
    mapping: Mapping[str, str | int] | None
    decoding: Decoding
    max_eval_instances: int | None
    max_train_instances: int
    num_train_trials: int
    num_outputs: int
    temperature: float
    random: str | None
    by: Sequence[str]
    """`Options.by`."""
    cluster: str | None
    """`Options.cluster`."""
    source: Source | None = None
    """What the file says of the tool that scored its rows; None where it says nothing."""
    is_measured: bool = True
    """Whether answers are compared with what is right, beside the scores of the source."""

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


@dataclass(frozen=True)
class Header:
    """The top-level keys of a file, its rows aside."""

    keys: Mapping[str, Any]
    """As the file has them; {} where something is wrong with one of them."""
    settings: Settings
    """Of a header that is wrong: what is right of it."""
    scoring: Mapping[str, Any]
    """The keys of `scoring` and the arguments that win over them."""
    is_right: bool


def read_header(given: Mapping[str, Any] | None, options: Options, problems: Problems) -> Header:
    """Read the top-level keys of a file; None where it has none that can be told."""
    overrides = {key: value for key, value in options.scoring.items() if value is not None}
    if given is None:
        return Header({}, read_settings({}, Options(), Problems()), overrides, is_right=False)
    keys, findings = conform({**given, "request_states": []}, FileShape)
    for found in findings:
        problems.add(found.path, found.message, found.hint, code=found.code)
    scoring = {**(keys.get("scoring") or {}), **overrides}
    settings = read_settings(keys.get("adapter_spec") or {}, options, problems)
    is_judged = str(scoring.get("main_metric")).startswith(judge_stat(""))
    is_measured = scoring.get("metrics") != [] or not (given.get("source") or is_judged)
    settings = replace(settings, is_measured=is_measured)
    if findings:
        return Header({}, settings, overrides, is_right=False)
    return Header(keys, replace(settings, source=_read_source(keys.get("source"))), scoring, is_right=True)


def _read_source(given: Mapping[str, Any] | None) -> Source | None:
    if given is None:
        return None
    from helm_ext.evalset import Source

    scores = {
        name: {key: value for key, value in said.items() if value is not None or key == "lower_is_better"}
        for name, said in (given.get("scores") or {}).items()
    }
    said = {key: value for key, value in given.items() if value is not None}
    return msgspec.convert({**said, "scores": scores}, Source)


def read_settings(given: Mapping[str, Any], options: Options, problems: Problems) -> Settings:
    """Read a valid `adapter_spec` object."""
    keys = dict(given)
    instance_prefix = _settle(keys, "instance_prefix", "instance_prefixw", problems)
    if "instance_prefixw" in keys:
        keys["instance_prefix"] = instance_prefix
    file_format = _settle(keys, "output_format", "ouput_format", problems)
    mapping = _settle(keys, "answer_mapping", "output_mapping", problems)
    temperature, num_outputs, random = (
        _settle(keys, name, other, problems, place="decoding_parameters")
        for name, other in (("temperature", "temperature"), ("num_outputs", "num_outputs"), ("random", "seed"))
    )
    decoding_keys = keys.get("decoding_parameters") or {}
    decoding = {helms: decoding_keys[ours] for ours, helms in _DECODING.items() if decoding_keys.get(ours) is not None}
    if keys.get("output_mapping_pattern"):
        check_regex(keys["output_mapping_pattern"], ("adapter_spec", "output_mapping_pattern"), problems)
    for index, substitution in enumerate(keys.get("substitutions") or []):
        check_regex(substitution["source"], ("adapter_spec", "substitutions", index, "source"), problems)
    characters = keys.get("reference_prefix_characters")
    if characters is not None and (len(set(characters)) < len(characters) or not all(c.strip() for c in characters)):
        where, message = ("adapter_spec", "reference_prefix_characters"), "labels must be different and not empty"
        problems.add(where, message, code="labels", kind=DatasetIntegrityError)
    in_file = () if options.method else ("adapter_spec",)
    method = _check_method(options.method or keys.get("method"), (*in_file, "method"), problems)
    if keys.get("eval_splits"):
        keys["eval_splits"] = _read_eval_splits(keys["eval_splits"], problems)
    demonstrations = options.max_train_instances
    if demonstrations is None:
        demonstrations = keys.get("max_train_instances")
    return Settings(
        given=keys,
        method=method,
        output_format=options.output_format or file_format or "string",
        mapping=mapping or None,
        decoding=cast("Decoding", decoding),
        max_eval_instances=keys.get("max_eval_instances"),
        max_train_instances=0 if method == "chat" else 5 if demonstrations is None else demonstrations,
        num_train_trials=keys.get("num_train_trials") or 1,
        num_outputs=num_outputs or 1,
        temperature=float(temperature or 0),
        random=None if random is None else str(random),
        by=options.by,
        cluster=options.cluster,
    )


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


def _check_method(method: str | None, path: Path, problems: Problems) -> str | None:
    if method is None or method in METHODS:
        return method
    hint = did_you_mean(method, METHODS) or f"supported: {', '.join(METHODS)}"
    problems.add(path, f"unknown method {show(method)}", hint, code="method")
    return None


def check_regex(pattern: str, path: Path, report: Problems) -> None:
    """Report a regular expression that Python cannot compile."""
    try:
        re.compile(pattern)
    except re.error as error:
        report.add(path, f"{show(pattern)} is no regular expression: {error}", code="regex")
