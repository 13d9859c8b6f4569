"""Rows become HELM Instances, with what each carries for adapter and metrics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import msgspec
import numpy as np
from helm.benchmark.scenarios.scenario import Input, Instance, Output, Reference

from helm_ext.evalset import EXTRA_KEY
from helm_ext.evalset.rows import LIVE, StoredRows
from helm_ext.formats.request_states.plan import Plan, make_adapter_spec, request_decoding
from helm_ext.formats.request_states.recorded import combine
from helm_ext.formats.request_states.rows import CORRECT, Row, read_perturbation
from helm_ext.formats.request_states.shapes import JOINT_METHODS, LABELLED_METHODS
from helm_ext.judging.judgement import bind, question_text

if TYPE_CHECKING:
    from helm_ext.evalset import Recorded, RowExtra
    from helm_ext.files.store import RowStore
    from helm_ext.formats.request_states.columns import Chosen
    from helm_ext.formats.request_states.profile import Profile
    from helm_ext.judging.judgement import Judgement

_PLAIN_KEYS = frozenset({"input", "references", "split", "id", "answer_mapping", "output_mapping"})
"""A row with no other keys needs nothing special. Unknown keys go through the slower way too."""


class Maker:
    """Makes the instances of a file out of its rows. Can be sent to another process."""

    def __init__(self, plan: Plan, profile: Profile, chosen: Chosen) -> None:
        """Of `chosen`, no column is kept: what is known of a row comes with it (`make`)."""
        self.spec = make_adapter_spec(plan, profile)
        self.sequence = tuple(plan.labels)
        self.decoding = request_decoding(plan, profile)
        self.is_recorded = profile.is_recorded or profile.find("incomplete").count > 0
        self.unmeasured = plan.earlier.unmeasured if plan.earlier is not None else ()
        """Keys of HELM's states that nobody recorded, of the output of a run of ours."""
        self.reorder = plan.method in JOINT_METHODS and bool(plan.labels)
        self.labelled = plan.method in LABELLED_METHODS
        self.asks_once = not plan.method.startswith("multiple_choice_separate")
        self.splits, self.renamed, self.moves = chosen.splits, chosen.renamed, chosen.moves

    def make(self, row: Row, place: int, ordinal: int, index: int, split: int, only: int) -> Instance:
        """Return the instance of a row, which stands at a place among those of the file. Written for speed.

        Its extra data always has our key, so that adapter and metrics know it as ours.
        """
        row.split = self.splits[split]
        named = row.instance.get("id")
        name = self.renamed.get(ordinal)
        if name is None:
            name = f"id{index}" if named is None or named == "" else str(named)
        if only == LIVE:  # a row that is a demonstration of live runs, and scored in recorded ones
            name += "-demo"
        given = row.instance
        labels = row.labels if self.labelled else None
        references = row.references
        if (
            row.labels_from != "prefix"
            and labels is not None
            and self.reorder
            and [*labels.values()] != [*range(len(references))]
        ):
            # HELM renders option i with label i: the options are put into the order of their labels.
            labels = {label: labels[label] for label in self.sequence[: len(labels)]}
            references = [references[position] for position in labels.values()]
            labels = {label: position for position, label in enumerate(labels)}
        made = [Reference(Output(reference["output"]["text"]), reference.get("tags") or []) for reference in references]
        extra: RowExtra = {}
        if "id" in given and named != name:
            extra["id"] = given["id"]
        if row.has_unknown or row.extra:
            extra["data"] = row.unknown_data
        if only:
            extra["only"] = "live" if only == LIVE else "recorded"
        if row.attributes:
            extra["attributes"] = row.attributes
        if row.cluster is not None:
            extra["cluster"] = row.cluster
        if row.source_scores:
            extra["source_scores"] = row.source_scores
        if row.source_unscored:
            extra["source_unscored"] = row.source_unscored
        is_train = row.split == "train"
        if not is_train:
            if self.decoding:
                extra["decoding"] = self.decoding
            if self.is_recorded and only != LIVE:
                extra["recorded"] = self.recorded(row)
                if row.likelihoods is not None and extra["recorded"]["status"] == "ok":
                    extra["likelihoods"] = row.likelihoods
                if row.judgements:
                    extra["judgements"] = _bind(row.judgements, given["input"], extra["recorded"])
        if labels is not None:
            extra["labels"] = {label: references[place]["output"]["text"] for label, place in labels.items()}
        if self.moves and not is_train:  # `order_for_sampling` will move some
            extra["position"] = place
        if _PLAIN_KEYS.issuperset(given):
            return Instance(_input(given["input"]), made, row.split, None, name, extra_data={EXTRA_KEY: extra})
        return self._make_with_extras(row, name, made, extra)

    def _make_with_extras(self, row: Row, name: str, made: list[Reference], extra: RowExtra) -> Instance:
        """Return the Instance of a row that has one of the rare keys."""
        given = row.instance
        extra_data = dict(given.get("extra_data") or {})
        thought = given.get("chain_of_thought")
        if thought:
            extra_data["chain_of_thought"] = thought
            shown = next((place for place, one in enumerate(made) if CORRECT in one.tags), None)
            if row.split == "train" and self.spec.method == "generation" and shown is not None:
                # Before the answer that a demonstration shows. Train rows are never scored.
                before = self.spec.chain_of_thought_prefix + thought + self.spec.chain_of_thought_suffix
                made[shown] = replace(made[shown], output=Output(text=before + made[shown].output.text))
        if row.earlier is not None:
            if row.is_helm:
                extra.pop("data", None)  # the annotations that it wrote
            kept = {
                key: value for key, value in row.earlier.items() if key not in ("left_out", "scoring", "judgements")
            }
            extra = cast("RowExtra", {**kept, **extra})
        extra_data[EXTRA_KEY] = extra
        contrasts, perturbation = given.get("contrast_references"), given.get("perturbation")
        return Instance(
            input=_input(given["input"]),
            references=made,
            split=row.split,
            sub_split=given.get("sub_split"),
            id=name,
            perturbation=read_perturbation(msgspec.json.encode(perturbation)) if perturbation else None,
            contrast_inputs=[_input(one) for one in given["contrast_inputs"]] if given.get("contrast_inputs") else None,
            contrast_references=[[_reference(one) for one in some] for some in contrasts] if contrasts else None,
            extra_data=extra_data,
        )

    def recorded(self, row: Row) -> Recorded:
        """Return what is recorded for a row."""
        if self.asks_once and not row.is_helm and (state := row.found[0][1]) is not None:
            return {"status": "ok", "states": [state]}
        trials = self.spec.num_train_trials if row.is_helm else 1
        found = combine(row.found, self.spec.method, row.options, trials, of_whole=row.compares_wholes)
        if row.earlier is not None and "left_out" in row.earlier:
            found["skip"] = True  # as in the run that wrote the file
        for state in found["states"]:
            for key in self.unmeasured:
                state.pop(key, None)  # type: ignore[misc]
        return found


def _bind(judgements: Sequence[Judgement], asked: dict[str, Any], recorded: Recorded) -> list[dict[str, Any]]:
    """Return the judgements, each with the digest of what it is of, if it has none yet."""
    question = question_text(asked.get("text"), asked.get("messages"))
    completions = recorded["states"][0]["result"]["completions"] if recorded["states"] else ()
    answers = [completion["text"] for completion in completions]
    return [bind(judgement, question, answers).to_json() for judgement in judgements]


def _reference(given: dict[str, Any]) -> Reference:
    return Reference(Output(text=given["output"]["text"]), tags=given.get("tags") or [])


def _input(given: dict[str, Any]) -> Input:
    messages = given.get("messages")
    if not messages:
        return Input(text=given.get("text") or "")
    return Input(
        text=given.get("text") or "",
        messages=[{"role": message["role"], "content": message["content"]} for message in messages],
    )


def make_instances(maker: Maker, chosen: Chosen, store: RowStore[Row]) -> Sequence[Instance]:
    """Return the instances of a file: made of the rows in memory, or of those on disk when somebody looks at them."""
    told = np.arange(len(chosen.ordinals), dtype=np.uint32), chosen.ordinals, chosen.indexes, chosen.split, chosen.only
    if store.kept is not None:
        return list(map(maker.make, store.release(chosen.ordinals.tolist()), *(column.tolist() for column in told)))
    return StoredRows(
        store=store,
        make=maker.make,
        numbers=chosen.ordinals,
        told=told,
        splits=chosen.splits,
        split=chosen.split,
        only=chosen.only,
        status=chosen.status,
        lacks=chosen.lacks,
        has_perturbations=chosen.has_perturbations,
        has_labels=chosen.has_labels,
    )
