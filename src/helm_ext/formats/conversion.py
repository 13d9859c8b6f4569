"""From one format to another, where nothing is lost; and what would be lost, in words, where something is.

    adapter_spec file ─┐              ┌─▶ adapter_spec JSON Lines (one state a line)
    UltraEval config  ─┼──▶ EvalSet ──┤
    bundle            ─┘              └─▶ bundle (NAME.zip), and a file of replies for recorded completions

A *loss* is something that the target cannot hold and that changes prompts or scores. A *note* is something that moves:
to another file, or to arguments of the run.
"""

from __future__ import annotations

import dataclasses
import json
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from helm_ext.errors import DatasetIntegrityError, DatasetNotFoundError, Location, RunEntryError, show
from helm_ext.evalset import EXTRA_KEY, EvalSet, RowExtra, Scoring, row_extra
from helm_ext.formats.ultraeval.facts import TaskFacts
from helm_ext.hub.pack import pack, write_atomically
from helm_ext.hub.records import ProblemList, parse_record

if TYPE_CHECKING:
    from helm.benchmark.scenarios.scenario import Instance

__all__ = ["Converted", "Findings", "to_bundle", "to_json_lines"]

_TRAIN = "train"
_CORRECT = "correct"
_NOT_WRITTEN = {"model", "model_deployment", "image_generation_parameters", "reeval_parameters", "max_eval_instances"}
_DECODING_NAMES = {"top_k_per_token": "top_k"}


@dataclass
class Findings:
    """What was noticed on the way: each text once, with the number of rows that it is about."""

    losses: dict[str, int] = field(default_factory=dict)
    notes: dict[str, int] = field(default_factory=dict)

    def lose(self, text: str) -> None:
        """Note a loss, for one row or for the whole dataset."""
        self.losses[text] = self.losses.get(text, 0) + 1

    def note(self, text: str) -> None:
        """Note what has moved."""
        self.notes[text] = self.notes.get(text, 0) + 1

    def require_none(self, source: str) -> None:
        """Raise DatasetIntegrityError if anything would be lost."""
        if self.losses:
            lines = "\n".join(
                f"  - {text}" + (f" ({rows} rows)" if rows > 1 else "") for text, rows in self.losses.items()
            )
            raise DatasetIntegrityError(
                f"{source}: converting it would lose:\n{lines}\n  hint: --lossy converts it all the same"
            )


@dataclass(frozen=True)
class Converted:
    """What was written."""

    path: Path
    rows: int
    findings: Findings
    replies: Path | None = None


# To adapter_spec JSON Lines


def to_json_lines(evalset: EvalSet, target: Path, *, train: EvalSet | None = None, lossy: bool = False) -> Converted:
    """Write an EvalSet as `adapter_spec` JSON Lines, atomically. `train`: a bundle's other split.

    Raises DatasetIntegrityError that lists all losses, unless `lossy`.
    """
    findings = Findings()
    header: dict[str, Any] = {
        "adapter_spec": _adapter_spec(evalset, findings),
        "scoring": _scoring(evalset.scoring, findings),
        "name": evalset.name,
    }
    header |= {key: value for key in ("display_name", "description") if (value := getattr(evalset, key))}
    _dataset_losses(evalset, findings)
    instances = [*((instance, _TRAIN) for instance in (train.instances if train else ()))]
    instances += [(instance, instance.split or "test") for instance in rejoin(evalset.instances)]
    states = [state for instance, split in instances for state in _states(instance, split, findings)]
    if not lossy:
        findings.require_none(evalset.name)
    _write_lines(target, [header, *states])
    return Converted(target, len(instances), findings)


def rejoin(instances: Sequence[Instance]) -> list[Instance]:
    """Undo the sampling of a recorded file: a sampled row is a demonstration in live runs and scored in recorded ones.

    Written as one row again, it is sampled again, by the same seeded rule.
    """
    scored = {_original_id(i) for i in instances if row_extra(i).get("only") == "recorded"}
    joined = []
    for instance in instances:
        extra = row_extra(instance)
        if "only" in extra and _original_id(instance) in scored:
            if extra["only"] == "live":
                continue
            extra = {key: value for key, value in extra.items() if key != "only"}  # type: ignore[assignment]
            joined.append(dataclasses.replace(instance, extra_data={**(instance.extra_data or {}), EXTRA_KEY: extra}))
        else:
            joined.append(instance)
    return joined


def _original_id(instance: Instance) -> Any:
    return row_extra(instance).get("id", instance.id)


def _adapter_spec(evalset: EvalSet, findings: Findings) -> dict[str, Any]:
    spec = dataclasses.asdict(evalset.adapter_spec)
    written = {key: value for key, value in spec.items() if key not in _NOT_WRITTEN and value is not None}
    written["output_format"] = evalset.scoring.output_format
    decodings = [row_extra(i).get("decoding", {}) for i in evalset.instances if i.split != _TRAIN]
    if any(decoding != decodings[0] for decoding in decodings):
        findings.lose("decoding parameters that differ from row to row")
    elif decodings and decodings[0]:
        written["decoding_parameters"] = {_DECODING_NAMES.get(key, key): value for key, value in decodings[0].items()}
    return written


def _scoring(scoring: Scoring, findings: Findings) -> dict[str, Any]:
    if scoring.label_reading == "exact":
        findings.lose("HELM's own exact reading of labels; an adapter_spec file is read forgivingly")
    args = scoring.to_args()
    unsaid = ("main_metric", "output_format", "label_reading", "cut_at")
    written: dict[str, Any] = {key: value for key, value in args.items() if key not in unsaid}
    if scoring.cut_at:
        written["cut_at_stop"] = True
    return {**written, "main_metric": scoring.main_metric}


def _dataset_losses(evalset: EvalSet, findings: Findings) -> None:
    if isinstance(evalset.details, TaskFacts):
        _task_losses(evalset.details, findings)
    names = ", ".join(name for name in evalset.attributes if name != "sub_split")  # that is HELM's, and written
    if names:
        findings.lose(f"reports by attribute ({names}): an adapter_spec file has none; records keep their own keys")


def _task_losses(facts: TaskFacts, findings: Findings) -> None:
    if facts.postprocess:
        findings.lose(f"the postprocess {facts.postprocess}: completions would be scored as they are")
    if facts.method == "ppl":
        findings.lose("the perplexity rule of UltraEval (sum of log-probabilities of the whole string)")
    for stat in facts.metrics.definitions:
        findings.lose(f"the metric {stat}, which UltraEval tasks alone can have")


def _states(instance: Instance, split: str, findings: Findings) -> Iterator[dict[str, Any]]:
    extra = row_extra(instance)
    made = _instance(instance, split, extra, findings)
    state: dict[str, Any] = {"instance": made, **_nested(extra, "state")}
    if "labels" in extra:
        state["answer_mapping"] = extra["labels"]
    recorded = extra.get("recorded")
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
    if instance.input.multimedia_content is not None:
        findings.lose("images, sound or video")
    shown: dict[str, Any] = {"text": text, **_nested(extra, "input")}
    if instance.input.messages:
        shown["messages"] = instance.input.messages
    references = [
        {"output": {"text": reference.output.text}, "tags": list(reference.tags)} for reference in instance.references
    ]
    for position, unknown in _nested(extra, "references").items():
        references[int(position)].update(unknown)
    made = {"id": _original_id(instance), "input": shown, "references": references, "split": split}
    made |= _nested(extra, "instance")
    if instance.sub_split is not None:
        made["sub_split"] = instance.sub_split
    if instance.perturbation is not None:
        made["perturbation"] = dataclasses.asdict(instance.perturbation)
    return made


_NESTED = {"state", "instance", "input", "references"}


def _nested(extra: RowExtra, place: str) -> dict[str, Any]:
    """Return the row's unknown keys of one place. Formats without such places keep theirs on the instance."""
    data = extra.get("data", {})
    if not all(key in _NESTED and isinstance(value, dict) for key, value in data.items()):
        return data if place == "instance" else {}
    return data.get(place, {})


# To a bundle


def to_bundle(
    evalset: EvalSet,
    target: Path,
    *,
    attributes: Mapping[str, Any] | None = None,
    replies: Path | None = None,
    lossy: bool = False,
    replace: bool = False,
) -> Converted:
    """Write an EvalSet as the bundle `target` (NAME.zip), and recorded completions as JSON Lines to `replies`.

    Raises DatasetIntegrityError that lists all losses, unless `lossy`.
    """
    if target.suffix != ".zip":
        raise RunEntryError(f"{target}: a bundle is named NAME.zip")
    findings = Findings()
    _settings_notes(evalset, findings)
    rows: dict[str, list[dict[str, Any]]] = {"test": [], "train": []}
    said: list[dict[str, Any]] = []
    for instance in rejoin(evalset.instances):
        record = _record(instance, evalset, findings)
        rows["train" if instance.split == _TRAIN else "test"].append(record)
        reply = _reply(instance, record["id"], findings, written=replies is not None)
        if reply is not None:
            said.append(reply)
    if not lossy:
        findings.require_none(evalset.name)
    known = dict(attributes or {})
    for key in ("display_name", "description"):
        value = getattr(evalset, key)
        if value and value != evalset.name:
            known.setdefault(key, value)
    with tempfile.TemporaryDirectory() as folder:
        sources = {split: Path(folder) / f"{split}.jsonl" for split in rows}
        for split, path in sources.items():
            path.write_text("".join(_to_line(row) for row in rows[split]), encoding="utf-8")
        packed = pack(
            name=target.stem,
            test=sources["test"],
            train=sources["train"],
            attributes=known,
            target=target.parent,
            replace=replace,
        )
    if replies is not None:
        _write_lines(replies, said)
    return Converted(packed.path, len(evalset.instances), findings, replies)


def _settings_notes(evalset: EvalSet, findings: Findings) -> None:
    """Note what is a setting of the run, not of the data."""
    spec, scoring = evalset.adapter_spec, evalset.scoring
    settings = [f"max_tokens={spec.max_tokens}", f"temperature={spec.temperature:g}"]
    settings += [f"stop={show(spec.stop_sequences)}"] if spec.stop_sequences else []
    settings += [f"metrics={'+'.join(scoring.metrics)}"] if scoring.metrics else []
    settings += [f"main_metric={scoring.main_metric}"]
    settings += [f"extract={show(scoring.extract)}"] if scoring.extract else []
    settings += [f"{key}=true" for key in ("strip", "lower") if getattr(scoring, key)]
    findings.note(f"a bundle holds no settings of the run; this one had {', '.join(settings)}")
    if spec.max_train_instances:
        findings.lose(f"{spec.max_train_instances} demonstrations before each question")
    if spec.method not in {"chat", "generation"}:
        findings.lose(f"the method {spec.method}: its options and how they are shown")
    if scoring.output_format == "list":
        findings.lose("output_format list: replies are scored as one text")
    if spec.num_outputs > 1:
        findings.lose(f"{spec.num_outputs} outputs for each question")
    if evalset.format == "ultraeval":
        _dataset_losses(dataclasses.replace(evalset, attributes={}), findings)


def _record(instance: Instance, evalset: EvalSet, findings: Findings) -> dict[str, Any]:
    extra = row_extra(instance)
    golds = [reference.output.text for reference in instance.references if _CORRECT in reference.tags]
    if len(golds) > 1:
        findings.lose("further accepted answers: a record has one `expected`")
    if len(instance.references) > len(golds) or "labels" in extra:
        findings.lose("the options of multiple-choice rows")
    if "score" in extra:
        findings.lose("options that are worth a number instead of right or wrong")
    if "decoding" in extra:
        findings.note("top_p, top_k and penalties are settings of the run, and a bundle's run has none")
    if "id" in extra and extra["id"] != instance.id:
        findings.note("ids that were no unique strings are replaced")
    record: dict[str, Any] = {
        "id": instance.id,
        "messages": instance.input.messages or _as_message(instance, extra, evalset, findings),
        "expected": golds[0] if golds else "",
    }
    record |= {key: value for key, value in extra.get("data", {}).items() if key not in record}
    problems = ProblemList()
    parse_record(_to_line(record).encode(), Location(f"record {show(instance.id)}"), problems)
    for problem in problems.kept:
        # A conversation that breaks the rules cannot be converted at all, lossy or not.
        raise DatasetIntegrityError([dataclasses.replace(problem, hint="a bundle's conversations keep formats' rules")])
    return record


def _as_message(instance: Instance, extra: RowExtra, evalset: EvalSet, findings: Findings) -> list[dict[str, str]]:
    spec = evalset.adapter_spec
    if "prompt" in extra:
        text = "".join(extra["prompt"])
    else:
        head = f"{spec.instructions}{spec.instance_prefix}" if spec.instructions else ""
        tail = spec.input_suffix + spec.output_prefix.rstrip()
        text = f"{spec.global_prefix}{head}{spec.input_prefix}{instance.input.text}{tail}{spec.global_suffix}"
    findings.note("a text prompt becomes one user message: chat models are asked the same, completion models are not")
    if spec.substitutions:
        findings.lose("substitutions in the prompt")
    return [{"role": "user", "content": text}]


def _reply(instance: Instance, record_id: str, findings: Findings, *, written: bool) -> dict[str, Any] | None:
    """Return the line of the replies file for a recorded row."""
    recorded = row_extra(instance).get("recorded")
    if recorded is None:
        return None
    if not written:
        findings.lose("recorded completions; --replies FILE keeps them")
        return None
    if recorded["status"] != "ok":
        return {"id": record_id, "reply": None}
    result = recorded["states"][0]["result"]
    if len(recorded["states"]) > 1 or len(result["completions"]) > 1:
        findings.lose("all but the first completion of a row")
    line = {"id": record_id, "reply": result["completions"][0]["text"]}
    return line | {k: result[k] for k in ("request_time", "request_datetime") if result.get(k) is not None}


def _to_line(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False) + "\n"


def _write_lines(path: Path, values: Iterable[Mapping[str, Any]]) -> None:
    if not path.parent.is_dir():
        raise DatasetNotFoundError(f"{path.parent}: no such folder")
    with tempfile.TemporaryFile() as file:
        for value in values:
            file.write(_to_line(value).encode())
        write_atomically(file, path)
