"""The file's `adapter_spec` as it is meant: typos resolved, doubled spellings compared, decoding parameters apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from helm_ext.errors import did_you_mean, show
from helm_ext.formats.request_states.models import METHODS, UNSUPPORTED_METHODS
from helm_ext.formats.request_states.report import INTEGRITY, Report
from helm_ext.formats.request_states.rows import SPLITS, Context, read_split
from helm_ext.formats.request_states.scoring import check_regex

if TYPE_CHECKING:
    from helm_ext.evalset import Decoding

__all__ = ["HELM_DEFAULTS", "JOINT", "JOINT_COT", "Settings", "read_settings"]

JOINT = "multiple_choice_joint"
JOINT_COT = "multiple_choice_joint_chain_of_thought"

HELM_DEFAULTS = {
    "instructions": "",
    "global_prefix": "",
    "global_suffix": "",
    "input_prefix": "Input: ",
    "input_suffix": "\n",
    "reference_prefix": "A. ",
    "reference_suffix": "\n",
    "chain_of_thought_prefix": "",
    "chain_of_thought_suffix": "\n",
    "output_prefix": "Output: ",
    "output_suffix": "\n",
    "instance_prefix": "\n",
}
"""HELM's AdapterSpec (0.5.16); a contract test compares them."""


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

    def text(self, key: str, *, used: bool = True) -> str:
        """Return a prefix or suffix: absent means HELM's default if the method uses it, null means ""."""
        if key in self.given:
            return self.given[key] or ""
        return HELM_DEFAULTS[key] if used else ""

    @property
    def eval_splits(self) -> list[str]:
        """The splits that are evaluated, by HELM's names; [] means all."""
        return self.given.get("eval_splits") or []

    @property
    def context(self) -> Context:
        """What single rows need to know."""
        return Context(
            self.method, self.text("reference_prefix"), self.given.get("reference_prefix_characters"), self.mapping
        )


def read_settings(
    given: Mapping[str, Any], report: Report, *, method: str | None, output_format: str | None
) -> Settings:
    """Read a valid `adapter_spec` object. `method` and `output_format` are arguments that win over it."""
    keys = dict(given)
    instance_prefix = _either(keys, "instance_prefix", "instance_prefixw", report)
    if "instance_prefixw" in keys:
        keys["instance_prefix"] = instance_prefix
    file_format = _either(keys, "output_format", "ouput_format", report)
    mapping = _either(keys, "answer_mapping", "output_mapping", report)
    decoding_keys = keys.get("decoding_parameters") or {}
    temperature = _either_place(keys, decoding_keys, "temperature", "temperature", report)
    num_outputs = _either_place(keys, decoding_keys, "num_outputs", "num_outputs", report)
    random = _either_place(keys, decoding_keys, "random", "seed", report)
    decoding: Decoding = {}
    for ours, helms in (
        ("top_p", "top_p"),
        ("top_k", "top_k_per_token"),
        ("frequency_penalty", "frequency_penalty"),
        ("presence_penalty", "presence_penalty"),
    ):
        if decoding_keys.get(ours) is not None:
            decoding[helms] = decoding_keys[ours]  # type: ignore[literal-required]
    if keys.get("output_mapping_pattern"):
        check_regex(keys["output_mapping_pattern"], ("adapter_spec", "output_mapping_pattern"), report)
    for index, substitution in enumerate(keys.get("substitutions") or []):
        check_regex(substitution["source"], ("adapter_spec", "substitutions", index, "source"), report)
    characters = keys.get("reference_prefix_characters")
    if characters is not None and (len(set(characters)) < len(characters) or not all(c.strip() for c in characters)):
        report.add(
            ("adapter_spec", "reference_prefix_characters"),
            "labels must be different and not empty",
            code="labels",
            kind=INTEGRITY,
        )
    chosen = (
        _check_method(method, ("method",), report)
        if method
        else _check_method(keys.get("method"), ("adapter_spec", "method"), report)
    )
    if keys.get("eval_splits"):
        keys["eval_splits"] = _read_eval_splits(keys["eval_splits"], report)
    max_train_instances = keys.get("max_train_instances")
    return Settings(
        given=keys,
        method=chosen,
        output_format=output_format or file_format or "string",
        mapping=mapping or None,
        decoding=decoding,
        max_eval_instances=keys.get("max_eval_instances"),
        max_train_instances=0 if chosen == "chat" else 5 if max_train_instances is None else max_train_instances,
        num_train_trials=keys.get("num_train_trials") or 1,
        num_outputs=num_outputs or 1,
        temperature=float(temperature or 0),
        random=None if random is None else str(random),
    )


def _read_eval_splits(names: Sequence[str], report: Report) -> list[str]:
    """Return the splits by HELM's names; what is none goes to the report."""
    known = [name for name in SPLITS if name != "train"]
    splits: dict[str, None] = {}
    for index, name in enumerate(names):
        split = read_split(name)
        path = ("adapter_spec", "eval_splits", index)
        if split is None:
            hint = did_you_mean(name, known) or "known: test, valid (validation, dev)"
            report.add(path, f"unknown split {show(name)}", hint, code="unknown-split")
        elif split == "train":
            report.add(path, "train rows are demonstrations and are not evaluated", "take it out", code="unknown-split")
        else:
            splits[split] = None
    return list(splits)


def _either(keys: Mapping[str, Any], name: str, other: str, report: Report) -> Any:
    """Return the value of a key with two spellings."""
    if name in keys and other in keys and keys[name] != keys[other]:
        report.add(
            ("adapter_spec", other),
            f"{show(keys[other])} contradicts {name} {show(keys[name])}, which means the same",
            "keep one of them",
            code="contradiction",
            kind=INTEGRITY,
        )
    return keys[name] if name in keys else keys.get(other)


def _either_place(keys: Mapping[str, Any], decoding: Mapping[str, Any], name: str, inside: str, report: Report) -> Any:
    """Return the value of a key that may stand in adapter_spec (HELM) or in decoding_parameters."""
    outer, inner = keys.get(name), decoding.get(inside)
    if outer is not None and inner is not None and str(outer) != str(inner) and outer != inner:
        report.add(
            ("adapter_spec", "decoding_parameters", inside),
            f"{show(inner)} contradicts adapter_spec.{name} {show(outer)}",
            "keep one of them",
            code="contradiction",
            kind=INTEGRITY,
        )
    return inner if inner is not None else outer


def _check_method(method: str | None, path: tuple[str, ...], report: Report) -> str | None:
    if method is None:
        return None
    if method in METHODS:
        return method
    if method in UNSUPPORTED_METHODS:
        report.add(
            path,
            f"HELM's method {show(method)} is not supported for this format",
            f"supported: {', '.join(METHODS)}",
            code="method",
        )
    else:
        report.add(
            path,
            f"unknown method {show(method)}",
            did_you_mean(method, METHODS) or f"known: {', '.join(METHODS)}",
            code="method",
        )
    return None
