"""The file's `adapter_spec` becomes HELM's AdapterSpec: method, defaults, labels, decoding parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from helm_ext.errors import did_you_mean, show
from helm_ext.formats.request_states import labels as label_rules
from helm_ext.formats.request_states.models import METHODS, UNSUPPORTED_METHODS
from helm_ext.formats.request_states.report import INTEGRITY, Report
from helm_ext.formats.request_states.rows import SPLITS, Context, read_split
from helm_ext.formats.request_states.scoring import check_regex

if TYPE_CHECKING:
    from helm.benchmark.adaptation.adapter_spec import AdapterSpec

    from helm_ext.evalset import Decoding
    from helm_ext.formats.request_states.survey import Survey

__all__ = [
    "JOINT",
    "JOINT_COT",
    "Plan",
    "Settings",
    "choose_method",
    "make_adapter_spec",
    "read_settings",
    "request_decoding",
]

JOINT = "multiple_choice_joint"
JOINT_COT = "multiple_choice_joint_chain_of_thought"

_HELM_DEFAULTS = {
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

_FRAME = (
    "instructions",
    "global_prefix",
    "global_suffix",
    "input_prefix",
    "input_suffix",
    "output_prefix",
    "output_suffix",
    "instance_prefix",
)
_OPTIONS = ("reference_prefix", "reference_suffix")
_THOUGHTS = ("chain_of_thought_prefix", "chain_of_thought_suffix")
_USED = {
    "generation": _FRAME,
    "chat": (),
    JOINT: _FRAME + _OPTIONS,
    JOINT_COT: _FRAME + _OPTIONS + _THOUGHTS,
    "multiple_choice_separate_original": _FRAME,
    "multiple_choice_separate_calibrated": _FRAME,
}
"""The text keys that a method puts into the prompt."""

_PASSED_THROUGH = (
    "num_train_trials",
    "num_trials",
    "sample_train",
    "multi_label",
    "output_mapping_pattern",
    "max_tokens",
    "stop_sequences",
    "eval_splits",
)


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
        return _HELM_DEFAULTS[key] if used else ""

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


@dataclass(frozen=True)
class Plan:
    """How the rows are asked."""

    method: str
    labels: tuple[str, ...] = ()
    """The shared label sequence of the joint methods."""
    reference_prefix: str | None = None
    """As HELM's joint adapter renders it rightly; None: as the file has it."""


def choose_method(settings: Settings, survey: Survey, report: Report, *, is_argument: bool) -> Plan:
    """Choose the method where none is given, and make the labels fit it.

    All rows multiple choice, with one label sequence and the options not in the input text: multiple_choice_joint.
    """
    method = settings.method
    if method is None:
        method = _infer_method(settings, survey, report)
    if method not in (JOINT, JOINT_COT) or survey.helm.count:
        return Plan(method)
    if method == JOINT and survey.thoughts.count:
        if is_argument:
            row = survey.thoughts.row
            assert row is not None
            report.warn(
                (*row.path, "instance", "chain_of_thought"),
                f"not rendered by method {JOINT}",
                f"use {JOINT_COT}",
                code="unused-chain-of-thought",
                line=row.line,
            )
        else:
            method = JOINT_COT
    row = survey.few_options.row
    if row is not None:
        report.add(
            (*row.path, "instance", "references"),
            f"method {method} needs two or more options, and {_rows(survey.few_options.count)} fewer",
            'use "method": "generation"',
            code="too-few-options",
            line=row.line,
            kind=INTEGRITY,
        )
        return Plan(method)
    row = survey.unlabelled_option.row
    if row is not None:
        report.add(
            (*row.path, "instance", "answer_mapping"),
            f"method {method} shows every option with a label, and one has none",
            "map one label to each option",
            code="unlabelled-option",
            line=row.line,
            kind=INTEGRITY,
        )
    try:
        sequence = label_rules.shared_sequence(list(survey.label_sets))
        if not sequence:
            return Plan(method)
        return Plan(method, sequence, label_rules.encode_prefix(settings.text("reference_prefix"), sequence))
    except label_rules.LabelError as error:
        odd = survey.label_sets.get(error.labels)
        where = ("adapter_spec", "reference_prefix") if odd is None else (*odd.path, "instance")
        line = None if odd is None else odd.line
        report.add(where, error.message, error.hint, code=error.code, line=line, kind=INTEGRITY)
        return Plan(method)


def request_decoding(settings: Settings, method: str, survey: Survey) -> Decoding:
    """Return what each row's request needs beyond AdapterSpec.

    HELM's joint adapter asks for one completion whatever `num_outputs` is, and its own files are asked again so.
    """
    is_ours = not survey.helm.count or survey.ours.count > 0
    if method in (JOINT, JOINT_COT) and settings.num_outputs > 1 and is_ours:
        return {**settings.decoding, "num_completions": settings.num_outputs}
    return settings.decoding


def _rows(count: int) -> str:
    return "one row has" if count == 1 else f"{count} rows have"


def _infer_method(settings: Settings, survey: Survey, report: Report) -> str:
    if survey.rows and survey.chat_only.count == survey.rows:
        return "chat"
    mixed = survey.chat_only.row
    if mixed is not None:
        report.add(
            (*mixed.path, "instance", "input", "text"),
            "missing, and other rows have it",
            'give every row a text, or set "method": "chat" and give every row messages',
            code="missing-key",
            line=mixed.line,
        )
    if survey.choice.count < survey.rows or survey.few_options.count:
        return "generation"
    if survey.options_in_text.count == survey.rows:
        return "generation"
    hidden = "a model that is asked live is not shown the options: write them into input.text"
    row = survey.choice.row
    assert row is not None
    if survey.options_in_text.count:
        report.warn(
            ("adapter_spec", "method"),
            f"{survey.options_in_text.count} of {survey.rows} rows have their options in input.text, others have not",
            'set "method": "generation" or "multiple_choice_joint"',
            code="options-shown-twice",
        )
    try:
        sequence = label_rules.shared_sequence(list(survey.label_sets))
        if sequence:
            label_rules.encode_prefix(settings.text("reference_prefix"), sequence)
    except label_rules.LabelError as error:
        report.warn(
            (*row.path, "instance", "input", "text"),
            f"method generation is used: {error.message}",
            hidden,
            code="options-not-shown",
            line=row.line,
        )
        return "generation"
    if survey.unlabelled_option.count:
        report.warn(
            (*row.path, "instance"),
            "method generation is used: not every option has a label",
            hidden,
            code="options-not-shown",
            line=row.line,
        )
        return "generation"
    return JOINT


def make_adapter_spec(settings: Settings, plan: Plan, survey: Survey) -> AdapterSpec:
    """Return HELM's AdapterSpec, without a model and without max_eval_instances."""
    from helm.benchmark.adaptation.adapter_spec import AdapterSpec, Substitution

    used = _USED[plan.method]
    if plan.method == "generation" and survey.thoughts.count:
        used = (*used, *_THOUGHTS)
    texts = {key: settings.text(key, used=key in used) for key in _HELM_DEFAULTS}
    if plan.reference_prefix is not None:
        texts["reference_prefix"] = plan.reference_prefix
    given = settings.given
    characters = given.get("reference_prefix_characters")
    if settings.max_train_instances == 0 and plan.method == "generation" and not survey.helm.count:
        # The text holds the frame already, as in files with worked examples: it is given to the model as it is.
        if survey.starts_doubled.count == survey.rows:
            texts["input_prefix"] = ""
        if survey.ends_doubled.count == survey.rows:
            texts["input_suffix"] = texts["output_prefix"] = ""
    return AdapterSpec(
        method=plan.method,
        **texts,
        **{key: given[key] for key in _PASSED_THROUGH if given.get(key) is not None},
        reference_prefix_characters=list(plan.labels) if plan.labels else characters,
        substitutions=[Substitution(**substitution) for substitution in given.get("substitutions") or []],
        max_train_instances=settings.max_train_instances,
        num_outputs=settings.num_outputs,
        temperature=settings.temperature,
        random=settings.random,
    )
