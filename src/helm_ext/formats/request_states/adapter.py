"""How the rows are asked: the method, the labels that fit it, HELM's AdapterSpec."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from helm_ext.formats.request_states import labels as label_rules
from helm_ext.formats.request_states.report import INTEGRITY, Report
from helm_ext.formats.request_states.settings import HELM_DEFAULTS, JOINT, JOINT_COT, Settings

if TYPE_CHECKING:
    from helm.benchmark.adaptation.adapter_spec import AdapterSpec

    from helm_ext.evalset import Decoding
    from helm_ext.formats.request_states.survey import Survey

__all__ = ["Plan", "choose_method", "make_adapter_spec", "request_decoding"]

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
    texts = {key: settings.text(key, used=key in used) for key in HELM_DEFAULTS}
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
