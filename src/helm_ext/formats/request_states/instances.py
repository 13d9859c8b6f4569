"""Rows become HELM's Instances: which id, split and runs each has, and what each carries for its run.

Which rows become demonstrations, and which a cap leaves, their contents alone decide: rows are ordered by a keyed hash,
never by their order in the file or by a library's random numbers. Another row more changes little.

    Profile ──choose──▶ ordinals ──store, Maker──▶ Instances, some at a time
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from helm.benchmark.scenarios.scenario import Input, Instance, Output, Reference

from helm_ext.evalset import EXTRA_KEY, EvalSet, Places, ScoredRows
from helm_ext.evalset.rows import LIVE, RECORDED, StoredRows
from helm_ext.files import canonical_json
from helm_ext.formats.request_states.plan import File, make_adapter_spec, request_decoding
from helm_ext.formats.request_states.profile import SPLITS, TEST, TRAIN, Profile, hash_content
from helm_ext.formats.request_states.rows import CORRECT, Row, read_perturbation
from helm_ext.formats.request_states.shapes import JOINT_METHODS, LABELLED_METHODS
from helm_ext.judging.judgement import bind, question_text

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from helm_ext.evalset import Recorded, RowExtra
    from helm_ext.formats.request_states.rows import Fetch
    from helm_ext.judging.judgement import Judgement


_SUFFIXES = {".gz", ".zst", ".zstd", ".json", ".jsonl", ".json5"}


def make_evalset(file: File) -> EvalSet:
    """Return the EvalSet of a file without errors: all that was found are warnings. The file's store is its rows'."""
    profile, header = file.profile, file.header
    store, file.store = file.store, None
    assert store is not None
    ordinals, splits, only = _choose(file, store.read)
    # Columns, not the rows that they stand in: those would be kept whole.
    known = {name: profile.numbers[name][ordinals] for name in ("index", "number", "group", "unrecorded")}
    maker = Maker(file, _rename(profile, store.read), moves=bool((only == RECORDED).any()))
    numbers = ordinals.astype(np.uint32)
    told = np.arange(len(ordinals), dtype=np.uint32), numbers, known["index"], splits, only
    instances: Sequence[Instance] = StoredRows(
        store=store,
        make=maker.make,
        numbers=numbers,
        told=told,
        splits=tuple(split or "" for split in SPLITS),
        split=splits,
        only=only,
        status=profile.find_statuses()[ordinals],
        unrecorded=known["unrecorded"],
        is_kept=store.kept is not None,
        has_perturbations=bool(profile.perturbed),
        has_labels=file.method in LABELLED_METHODS and bool(profile.has("labelled")[ordinals].any()),
    )
    if store.kept is not None and (not profile.is_recorded or profile.find("helm").count):  # all are wanted at once
        kept = store.release(ordinals.tolist())
        instances = list(map(maker.make, kept, *(column.tolist() for column in told)))
    live = int(((splits != TRAIN) & (only != RECORDED)).sum())
    position = array("I", known["number"].tobytes())
    by = header.options.by or (file.earlier.attributes if file.earlier is not None else ())
    return EvalSet(
        name=header.options.name or header.keys.get("name") or _stem(file.reader.path),
        format="adapter_spec",
        digest=file.reader.digest,
        question_digest=_digest_questions(header.keys, profile.questions),
        instances=instances,
        adapter_spec=maker.spec,
        scoring=file.scoring,
        display_name=header.keys.get("display_name") or "",
        description=header.keys.get("description") or "",
        warnings=tuple(file.finish()),
        counts=file.counts,
        places=Places(file.reader.path, position, "" if file.reader.is_streamed else "request_states"),
        attributes=_find_attributes(profile, known["group"][splits != TRAIN], by),
        details=file.earlier,
        recorded_decoding=header.find_unrecorded() if profile.is_recorded else {},
        scored_rows=ScoredRows(live, profile.selected) if 0 < live < profile.selected else None,
        source=header.source,
        judged=profile.judged,
    )


def _digest_questions(header: Mapping[str, Any], rows: int) -> str:
    """Return the digest of a file without its completions and without whose they are: `EvalSet.question_digest`.

    It says which runs are comparable. Files that hold the completions of several models agree in it; the order of the
    rows (`rows` is the sum of their numbers) does not count. The header does, for it makes the prompts and the scores.
    """
    spec = {key: value for key, value in header["adapter_spec"].items() if key not in ("model", "model_deployment")}
    content = canonical_json([spec, header.get("scoring"), f"{rows:x}"])
    return sha256(content).hexdigest()


def _stem(path: str) -> str:
    """Return a file's name without the endings that say how it is written."""
    name = Path(path).name
    while Path(name).suffix.lower() in _SUFFIXES and Path(name).stem:
        name = Path(name).stem
    return name


def _find_attributes(profile: Profile, groups: NDArray[np.int64], by: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the values of sub-split and of each attribute among rows of these groups."""
    # With counts: without them, np.unique imports numpy.ma, which takes 15 ms of each start.
    found = [profile.group_values[group] for group in np.unique(groups, return_counts=True)[0].tolist() if group]
    sub_splits = tuple(sorted({sub_split for sub_split, _ in found if sub_split}))
    named = {name: tuple(sorted({row[name] for _, row in found if name in row})) for name in by}
    return ({"sub_split": sub_splits} if sub_splits else {}) | named


def _choose(file: File, fetch: Fetch) -> tuple[NDArray[np.intp], NDArray[np.uint8], NDArray[np.uint8]]:
    """Return the ordinals of the rows that become instances, the codes of their splits, and of the runs they are in."""
    profile = file.profile
    splits = profile.numbers["split"].copy()
    splits[splits == 0] = TEST
    if not profile.is_differentiated:
        splits[splits == TRAIN] = TEST
    evaluated = np.isin(splits, [SPLITS.index(split) for split in profile.eval_splits])
    drawn, beyond = (np.zeros(0, np.intp),) * 2
    if profile.draws and (file.demonstrations or file.cap is not None):
        drawn, beyond = _draw(file, evaluated, fetch)
    kept = evaluated | (splits == TRAIN)
    if not profile.is_recorded:
        splits[drawn] = TRAIN
        kept[drawn] = True
        kept[beyond] = False
        ordinals = np.flatnonzero(kept)
        return ordinals, splits[ordinals], np.zeros(len(ordinals), np.uint8)
    ordinals = np.sort(np.concatenate([np.flatnonzero(kept), drawn]), kind="stable")
    is_copy = np.zeros(len(ordinals), bool)
    is_copy[np.searchsorted(ordinals, drawn)] = True  # a copy stands before its row
    chosen = splits[ordinals]
    recorded_only = np.full(len(splits), not file.can_run_live)
    recorded_only[drawn] = recorded_only[beyond] = True
    only = np.where(recorded_only[ordinals] & (chosen != TRAIN), RECORDED, 0).astype(np.uint8)
    chosen[is_copy], only[is_copy] = TRAIN, LIVE
    return ordinals, chosen, only


def _draw(file: File, evaluated: NDArray[np.bool_], fetch: Fetch) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the ordinals of rows that are drawn as demonstrations, and of those beyond the cap.

    `evaluated`: which rows are of a split that is evaluated. Rows that are not are drawn first; those with an empty
    answer last, for HELM cannot show them.
    """
    order = order_rows(file.profile, fetch)
    rank = np.empty(len(order), np.intp)
    rank[order] = np.arange(len(order))
    order = np.lexsort((rank, evaluated, file.profile.has("empty")))
    drawn = order[: file.demonstrations]
    rest = order[file.demonstrations :]
    rest = rest[evaluated[rest]]
    return np.sort(drawn), rest[:0] if file.cap is None else rest[file.cap :]


def order_rows(profile: Profile, fetch: Fetch) -> NDArray[np.intp]:
    """Return the ordinals of the rows in their random order.

    Where id and input of two rows are the same, the rest of the row decides: those are fetched.
    """
    halves = np.frombuffer(bytes(profile.drawn), ">u8").reshape(-1, 2)
    order = np.lexsort((halves[:, 1], halves[:, 0]))
    same = (halves[order][1:] == halves[order][:-1]).all(axis=1)
    for start, last in np.flatnonzero(np.diff(np.r_[False, same, False])).reshape(-1, 2).tolist():
        ordinals = sorted(order[start : last + 1].tolist())
        rest = zip(map(_rest, fetch(ordinals)), ordinals, strict=True)
        order[start : last + 1] = [ordinal for _, ordinal in sorted(rest)]
    return order


def _rest(row: Row) -> bytes:
    return canonical_json([row.references, row.instance.get("perturbation"), row.instance])


def _rename(profile: Profile, fetch: Fetch) -> Mapping[int, str]:
    """Return the ids of rows that HELM could not tell apart, by ordinal: unique but for perturbations of one row.

    The first row with an id keeps it, the next get `-2`, `-3`, ...; rows without one are `id<position>`, as HELM
    numbers them.
    """
    waiting, ids, indexes = profile.find_repeated(), profile.numbers["id"], profile.numbers["index"]
    if not waiting:
        return {}
    names = ids.copy()
    for ordinal, hashed in profile.perturbed.items():
        names[ordinal] = hashed
    taken = np.sort(np.delete(names, waiting))
    repeated = [ordinal for ordinal in waiting if ids[ordinal]]
    given = {ordinal: str(row.instance["id"]) for ordinal, row in zip(repeated, fetch(repeated), strict=True)}
    new: set[int] = set()
    last: dict[str, int] = {}
    renamed = {}
    for ordinal in waiting:
        base = given.get(ordinal) or f"id{indexes[ordinal]}"
        number = last.get(base, 1)
        name = base
        while (hashed := hash_content(name)) in new or hashed in taken[taken.searchsorted(hashed) :][:1]:
            number += 1
            name = f"{base}-{number}"
        if name != base:
            renamed[ordinal] = name
            last[base] = number
            new.add(hashed)
    return renamed


class Maker:
    """Makes the instances of a file out of its rows. Can be sent to another process."""

    def __init__(self, file: File, renamed: Mapping[int, str], *, moves: bool) -> None:
        """Begin with a file.

        `renamed`: the ids of rows that cannot have the one that the file gives, or `id<position>`, by ordinal.
        `moves`: whether some rows take part in recorded runs only, so that `order_for_sampling` needs each's position.
        """
        self.spec = make_adapter_spec(file)
        self.sequence = tuple(file.labels)
        self.decoding = request_decoding(file)
        self.is_recorded = file.profile.is_recorded or file.profile.find("incomplete").count > 0
        self.unmeasured = file.earlier.unmeasured if file.earlier is not None else ()
        """Keys of HELM's states that nobody recorded, of the output of a run of ours."""
        self.reorder = file.method in JOINT_METHODS and bool(file.labels)
        self.labelled = file.method in LABELLED_METHODS
        self.renamed, self.moves = renamed, moves

    def make(self, row: Row, place: int, ordinal: int, index: int, split: int, only: int) -> Instance:
        """Return the instance of a row, which stands at a place among those of the file. Written for speed.

        Its extra data always has our key, so that adapter and metrics know it as ours.
        """
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
        extra.update(row.extra)  # type: ignore[typeddict-item]
        if only:
            extra["only"] = "live" if only == LIVE else "recorded"
        is_train = split == TRAIN
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
        extra_data = dict(given.get("extra_data") or {})
        thought = given.get("chain_of_thought")
        if thought:
            extra_data["chain_of_thought"] = thought
            shown = next((place for place, one in enumerate(made) if CORRECT in one.tags), None)
            if is_train and self.spec.method == "generation" and shown is not None:
                # Before the answer that a demonstration shows. Train rows are never scored.
                before = self.spec.chain_of_thought_prefix + thought + self.spec.chain_of_thought_suffix
                made[shown] = replace(made[shown], output=Output(text=before + made[shown].output.text))
        extra_data[EXTRA_KEY] = extra
        contrasts, perturbation = given.get("contrast_references"), given.get("perturbation")
        return Instance(
            input=_input(given["input"]),
            references=made,
            split=SPLITS[split],
            sub_split=given.get("sub_split"),
            id=name,
            perturbation=read_perturbation(msgspec.json.encode(perturbation)) if perturbation else None,
            contrast_inputs=[_input(one) for one in given["contrast_inputs"]] if given.get("contrast_inputs") else None,
            contrast_references=[[_reference(one) for one in some] for some in contrasts] if contrasts else None,
            extra_data=extra_data,
        )

    def recorded(self, row: Row) -> Recorded:
        """Return what is recorded for a row, without what nobody has measured."""
        found: Recorded = row.recorded
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
    messages = given.get("messages") or ()
    shown = [{"role": message["role"], "content": message["content"]} for message in messages]
    return Input(text=given.get("text") or "", messages=shown or None)
