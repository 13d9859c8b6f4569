"""An EvalSet of any format as a bundle, NAME.zip, and its recorded completions as a file of replies."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from helm_ext.errors import DatasetIntegrityError, Location, Problems, RunEntryError, show
from helm_ext.evalset import EvalSet, RowExtra, row_extra
from helm_ext.formats.conversion import Converted, Findings, rejoin, to_line, write_lines
from helm_ext.formats.innodata.hub.packing import pack
from helm_ext.formats.innodata.hub.records import parse_record

if TYPE_CHECKING:
    from helm.benchmark.scenarios.scenario import Instance

_TRAIN = "train"
_CORRECT = "correct"


def to_bundle(
    evalset: EvalSet, target: Path, *, replies: Path | None = None, losses: Sequence[str] = (), lossy: bool = False
) -> Converted:
    """Write an EvalSet as the bundle `target` (NAME.zip), and recorded completions as JSON Lines to `replies`.

    `losses` holds what of the EvalSet's own format no other holds.

    Raises DatasetIntegrityError that lists all losses, unless `lossy`.
    """
    if target.suffix != ".zip":
        raise RunEntryError(f"{target}: a bundle is named NAME.zip")
    findings = Findings()
    _settings_notes(evalset, findings)
    for text in losses:
        findings.lose(text)
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
    titles = {"display_name": evalset.display_name, "description": evalset.description}
    attributes = {key: value for key, value in titles.items() if value and value != evalset.name}
    with tempfile.TemporaryDirectory() as folder:
        sources = {split: Path(folder) / f"{split}.jsonl" for split in rows}
        for split, path in sources.items():
            path.write_text("".join(to_line(row) for row in rows[split]), encoding="utf-8")
        # Whether a file may be overwritten, `convert` has decided.
        test, train = sources["test"], sources["train"]
        packed = pack(
            name=target.stem, test=test, train=train, attributes=attributes, target=target.parent, replace=True
        )
    if replies is not None:
        write_lines(replies, said)
    return Converted(packed.path, len(evalset.instances), findings, replies)


def _settings_notes(evalset: EvalSet, findings: Findings) -> None:
    """Note what is a setting of the run, not of the data."""
    spec, scoring = evalset.adapter_spec, evalset.scoring
    settings = [f"max_tokens={spec.max_tokens}", f"temperature={spec.temperature:g}"]
    settings += [f"stop={show(spec.stop_sequences)}"] if spec.stop_sequences else []
    settings += [f"metrics={'+'.join(scoring.metrics)}"] if scoring.metrics else []
    settings += [f"main_metric={scoring.own_metric or scoring.main_metric}"]
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


def _record(instance: Instance, evalset: EvalSet, findings: Findings) -> dict[str, Any]:
    extra = row_extra(instance)
    golds = [reference.output.text for reference in instance.references if _CORRECT in reference.tags]
    if len(golds) > 1:
        findings.lose("further accepted answers: a record has one `expected`")
    if len(instance.references) > len(golds) or "labels" in extra:
        findings.lose("the options of multiple-choice rows")
    if "likelihoods" in extra:
        findings.lose("log-probabilities of options: a reply is a text")
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
    problems = Problems()
    parse_record(to_line(record).encode(), Location(f"record {show(instance.id)}"), problems)
    for problem in problems.finish():
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
