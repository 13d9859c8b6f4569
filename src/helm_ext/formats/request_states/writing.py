"""An EvalSet of any format as `adapter_spec` JSON Lines: the header, then one state a line."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from helm_ext.evalset import EXTRA_KEY, MEDIA_KEY, EvalSet, RowExtra, Scoring, Source, has_places, row_extra
from helm_ext.formats.conversion import NOT_COPIED, Converted, Findings, original_id, rejoin, write_lines
from helm_ext.formats.request_states.checking import known_keys
from helm_ext.formats.request_states.recorded import NOT_GIVEN, is_helm_state
from helm_ext.scoring.registry import find_unnamable
from helm_ext.scoring.score import ANSWERS, NOISE, list_judge_stats

if TYPE_CHECKING:
    from helm.benchmark.scenarios.scenario import Instance

_TRAIN = "train"
_NOT_WRITTEN = {"model", "model_deployment", "image_generation_parameters", "reeval_parameters", "max_eval_instances"}
_DECODING_NAMES = {"top_k_per_token": "top_k"}


def to_json_lines(
    evalset: EvalSet,
    target: Path,
    *,
    demonstrations: EvalSet | None = None,
    losses: Sequence[str] = (),
    lossy: bool = False,
) -> Converted:
    """Write an EvalSet as `adapter_spec` JSON Lines, atomically.

    `demonstrations` holds further rows that become such, `losses` what of the EvalSet's own format no other holds.

    Raises DatasetIntegrityError that lists all losses, unless `lossy`.
    """
    findings = Findings()
    header: dict[str, Any] = {
        "adapter_spec": _adapter_spec(evalset, findings),
        "scoring": _scoring(
            evalset.scoring,
            findings,
            has_stops=bool(evalset.adapter_spec.stop_sequences),
            has_source=evalset.source is not None,
            judge_stats=list_judge_stats(evalset.judged),
        ),
        "name": evalset.name,
    }
    if evalset.source is not None:
        header["source"] = _source(evalset.source, evalset.scoring)
        if columns := evalset.source.settings.get(NOT_COPIED):
            hint = "" if evalset.counts.get("recorded") else "; output=COLUMN takes a model's outputs along"
            findings.note(f"not copied: {columns}{hint}")
    header |= {key: value for key in ("display_name", "description") if (value := getattr(evalset, key))}
    for text in losses:
        findings.lose(text)
    names = ", ".join(name for name in evalset.attributes if name != "sub_split")  # that is HELM's, and written
    grouped = [f"reports by attribute ({names})"] if names else []
    if any("cluster" in row_extra(instance) for instance in evalset.instances):
        grouped.append("intervals by cluster (cluster=)")
    for what in grouped:
        findings.lose(f"{what}: an adapter_spec file has none; records keep their own keys")
    instances = [*((instance, _TRAIN) for instance in (demonstrations.instances if demonstrations else ()))]
    for instance in rejoin(evalset.instances):
        if row_extra(instance).get("recorded", {}).get("status") == "unscored":  # it would be refused: nothing is right
            findings.lose("a row that has no score, of which the file says why: it is not written")
        else:
            instances.append((instance, instance.split or "test"))
    theirs = {evalset.source.stat_name(name): name for name in evalset.source.scores} if evalset.source else {}
    is_helm = evalset.scoring.label_reading == "exact"
    states = [
        state for instance, split in instances for state in _states(instance, split, findings, theirs, is_helm=is_helm)
    ]
    if is_helm and not all(map(is_helm_state, states)):
        findings.lose("HELM's own exact reading of labels, for want of results in all rows; a file is read forgivingly")
    if not lossy:
        findings.require_none(evalset.name)
    write_lines(target, [header, *states])
    return Converted(target, len(instances), findings)


def _adapter_spec(evalset: EvalSet, findings: Findings) -> dict[str, Any]:
    spec = dataclasses.asdict(evalset.adapter_spec)
    written = {key: value for key, value in spec.items() if key not in _NOT_WRITTEN and value is not None}
    # What nobody recorded is not written; what the source says of it is.
    unsaid = {name for name, value in evalset.recorded_decoding.items() if value is None}
    written = {key: value for key, value in written.items() if key not in unsaid} | {
        name: value for name, value in evalset.recorded_decoding.items() if value is not None
    }
    written["output_format"] = evalset.scoring.output_format
    decodings = [row_extra(i).get("decoding", {}) for i in evalset.instances if i.split != _TRAIN]
    if any(decoding != decodings[0] for decoding in decodings):
        findings.lose("decoding parameters that differ from row to row")
    elif decodings and decodings[0]:
        written["decoding_parameters"] = {_DECODING_NAMES.get(key, key): value for key, value in decodings[0].items()}
    return written


def _scoring(
    scoring: Scoring, findings: Findings, *, has_stops: bool, has_source: bool, judge_stats: Sequence[str]
) -> dict[str, Any]:
    unsaid = {"metrics", *NOT_GIVEN}
    written: dict[str, Any] = {key: value for key, value in scoring.to_args().items() if key not in unsaid}
    if has_stops:
        written["cut_at_stop"] = bool(scoring.cut_at)
    refused = [
        name
        for name in scoring.metrics
        if find_unnamable(name, scoring.output_format, has_likelihoods=True, has_tokenizer=True)
    ]
    for name in refused:
        findings.lose(f"the metric {name}, which an adapter_spec file cannot name")
    main = scoring.main_metric if scoring.main_metric in judge_stats else scoring.own_metric or scoring.main_metric
    if not scoring.metrics and (has_source or main in judge_stats):
        return {"metrics": [], **written, **({"main_metric": main} if main in judge_stats else {})}
    if refused or not scoring.metrics:  # what is left may not give the main metric
        return written
    return {"metrics": list(scoring.metrics), **written, "main_metric": main}


def _source(source: Source, scoring: Scoring) -> dict[str, Any]:
    """Return what a file says of the tool that scored its rows.

    It is headed by the score that is the main metric; by none where that is ours, which then stays so.
    """
    unsaid = ("scores", "counts", "main", "main_reason")
    said = {key: value for key, value in source.to_args().items() if key not in unsaid}
    scores = {name: dataclasses.asdict(score) for name, score in source.scores.items()}
    main = next((name for name in scores if source.stat_name(name) == scoring.main_metric), None)
    headline = {} if main is None else {"main": main, "main_reason": source.main_reason if main == source.main else ""}
    return {**said, "scores": scores, **{key: value for key, value in headline.items() if value}}


def _name_score(stat: str, source_scores: Mapping[str, str]) -> str:
    """Return the source's name of a stat: of a score, or of what is said beside it."""
    end = next((end for end in (ANSWERS, NOISE) if stat.endswith(end)), "")
    return source_scores[stat.removesuffix(end)] + end


def _states(
    instance: Instance, split: str, findings: Findings, source_scores: Mapping[str, str], *, is_helm: bool
) -> Iterator[dict[str, Any]]:
    """Yield the states of a row.

    `source_scores`: by their stats, the names of the scores that the source gave; {} where it is not known.
    `is_helm`: whether the file was the output of a run of HELM without this package, to be scored as HELM does.
    """
    extra = row_extra(instance)
    made = _instance(instance, split, extra, findings)
    state: dict[str, Any] = {"instance": made, **_nested(extra, "state")}
    if "labels" in extra:
        state["answer_mapping"] = extra["labels"]
    if "likelihoods" in extra:
        state["likelihoods"] = extra["likelihoods"]
    scores: dict[str, float | None] = dict(extra.get("source_scores", {}))
    scores.update(dict.fromkeys(extra.get("source_unscored", ())))
    if scores and source_scores:
        state["source_scores"] = {_name_score(name, source_scores): value for name, value in scores.items()}
    if "judgements" in extra:
        state["judgements"] = extra["judgements"]
    recorded = extra.get("recorded")
    if recorded is not None and recorded["status"] in ("failed", "not_run"):
        findings.note("without a completion: helm-ext score --missing skip leaves it out")
    if recorded is None:
        yield state
    elif recorded["status"] == "failed":
        yield {**state, "request": {"result": {"success": False, "completions": []}}}
    elif not recorded["states"]:
        yield {**state, "request": {}}
    else:
        for found in recorded["states"]:
            rest = {key: value for key, value in found.items() if key not in {"request", "result"}}
            plain = len(recorded["states"]) == 1 and not rest
            request = dict(found.get("request", {}))
            if plain:
                yield {**state, "request": {**request, "result": found["result"]}}
            else:
                if not is_helm:  # else HELM's keys beside it would say so (`Profile.is_helm_output`)
                    made.setdefault("extra_data", {}).setdefault(EXTRA_KEY, {})
                yield {**state, **rest, "request": request, "result": found["result"]}


def _instance(instance: Instance, split: str, extra: RowExtra, findings: Findings) -> dict[str, Any]:
    text = instance.input.text
    if "prompt" in extra and split != _TRAIN:
        text = "".join(extra["prompt"])
        if len(extra["prompt"]) > 2:
            findings.lose(
                "dropping demonstrations from the front when a prompt does not fit the window: they are text now"
            )
    if "score" in extra and set(extra["score"].values()) - {0, 1}:
        findings.lose("options that are worth a number instead of right or wrong")
    if "only" in extra:
        findings.lose(f"rows that take part in {extra['only']} runs only")
    if instance.input.multimedia_content is not None or MEDIA_KEY in (instance.extra_data or {}):
        findings.lose("images, sound or video")
    shown: dict[str, Any] = {"text": text, **_nested(extra, "input")}
    if instance.input.messages:
        shown["messages"] = instance.input.messages
    references = [
        {"output": {"text": reference.output.text}, "tags": list(reference.tags)} for reference in instance.references
    ]
    for position, unknown in _nested(extra, "references").items():
        references[int(position)].update(unknown)
    made = {"id": original_id(instance), "input": shown, "references": references, "split": split}
    own, known = _nested(extra, "instance"), known_keys(("instance",))
    made |= {key: value for key, value in own.items() if key not in known}
    if instance.sub_split is not None:
        made["sub_split"] = instance.sub_split
    if instance.perturbation is not None:
        made["perturbation"] = dataclasses.asdict(instance.perturbation)
    # What is a key of this format, and was none of the row's own, may stand here.
    data: dict[str, Any] = {key: value for key, value in own.items() if key in known}
    data |= {key: value for key, value in (instance.extra_data or {}).items() if key != EXTRA_KEY}
    if "gold" in extra and len(references) == 1 and not isinstance(extra["gold"], str):
        data[EXTRA_KEY] = {"gold": extra["gold"]}
    if data:
        made["extra_data"] = data
    return made


def _nested(extra: RowExtra, place: str) -> dict[str, Any]:
    """Return the row's unknown keys of one place. Formats without such places keep theirs on the instance."""
    data = extra.get("data", {})
    if not has_places(data):
        return data if place == "instance" else {}
    return data.get(place, {})
