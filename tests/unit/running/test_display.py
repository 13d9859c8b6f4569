"""The display files of StreamingSummarizer against those of HELM's `write_run_display_json`."""

import json
import math
import shutil
from dataclasses import replace
from pathlib import Path

import helm_states
import PIL.Image
import pytest
import request_states_files as files
from helm.benchmark.adaptation.adapter_spec import AdapterSpec
from helm.benchmark.adaptation.scenario_state import ScenarioState
from helm.benchmark.augmentations.misspelling_perturbation import MisspellingPerturbation
from helm.benchmark.augmentations.perturbation_description import PerturbationDescription
from helm.benchmark.metrics.metric import PerInstanceStats
from helm.benchmark.metrics.metric_name import MetricName
from helm.benchmark.metrics.statistic import Stat
from helm.benchmark.presentation.run_display import write_run_display_json
from helm.benchmark.presentation.schema import MetricGroup, MetricNameMatcher, RunGroup, Schema
from helm.benchmark.run_spec import RunSpec
from helm.benchmark.scenarios.scenario import CORRECT_TAG, Input, Instance, Output, Reference, ScenarioSpec
from helm.common.codec import from_json
from helm.common.general import asdict_without_nones
from helm.common.media_object import MediaObject, MultimediaObject
from helm.common.request import GeneratedOutput, Request, Thinking, Token
from run_entries import run

from helm_ext.analysis import json_arrays
from helm_ext.analysis.json_arrays import read_array
from helm_ext.running.display import DISPLAY_FILES, write_display_files

SCHEMA = Schema(
    metric_groups=[
        MetricGroup(
            name="shown",
            display_name="Shown",
            metrics=[
                MetricNameMatcher(name="${main_name}", split="test"),
                MetricNameMatcher(name="inference_runtime", split="test"),
                MetricNameMatcher(name="hidden", split="test", perturbation_name="robustness"),
            ],
        )
    ],
    run_groups=[
        RunGroup(
            name="g", display_name="G", metric_groups=["shown", "unknown"], environment={"main_name": "exact_match"}
        )
    ],
)
MISSPELLED = MisspellingPerturbation.Description(name="misspellings", robustness=True, prob=0.25)
LOWER = PerturbationDescription(name="lowercase", fairness=True)


def make_state(number, *, perturbation=None, trial=0, reference_index=None, mode=None, **changes):
    text = f"甲 null {number} 😀"
    state = helm_states.make_state(
        Instance(
            Input(text, messages=[{"role": "user", "content": text}] if number % 3 == 0 else None),
            [Reference(Output("yes"), [CORRECT_TAG]), Reference(Output("no"), [])],
            split="test",
            sub_split="s" if number % 2 else None,
            id=f"id{number}",
            perturbation=perturbation,
            contrast_inputs=[Input("c")] if number % 2 else None,
            contrast_references=[[Reference(Output("d"), [])]] if number % 2 else None,
            extra_data={"none": None, "nested": {"big": 2**70, "nan": math.inf}} if number % 4 == 1 else None,
        ),
        GeneratedOutput(
            f"{text} A" if number % 5 == 0 else " A\n",
            -1,
            [Token(" A", -1.0)],
            thinking=Thinking("hm") if number % 2 else None,
        ),
        reference_index=reference_index,
        request_mode=mode,
        train_trial_index=trial,
        output_mapping={"A": "yes", "B": "no"} if number % 2 else None,
        request=Request(
            model="m/m", model_deployment="m/m", prompt=text, temperature=0, stop_sequences=["\n"], top_p=1
        ),
        annotations={"a": [{"x": None}]} if number % 3 else None,
    )
    return replace(state, **changes)  # fmt: skip


def make_stats(state, **values):
    instance = state.instance
    values = values or {"exact_match": 1, "inference_runtime": int(instance.id[2:]) / 7, "hidden": 1, "other": 2}
    stats = [
        Stat(MetricName(name, split="test", perturbation=instance.perturbation)).add(value)
        for name, value in values.items()
    ]
    return PerInstanceStats(instance.id, instance.perturbation, state.train_trial_index, stats)


def write_run(path, method, states, stats, indent=2):
    path.mkdir(parents=True)
    spec = AdapterSpec(method=method, model="m/m", output_mapping_pattern="(A)" if method == "generation" else None)
    run_spec = RunSpec("run", ScenarioSpec("S"), spec, [], groups=["g", "none"])
    scenario_state = asdict_without_nones(ScenarioState(spec, states))
    for state in scenario_state["request_states"][::3]:  # HELM forgets what it does not know, and converts numbers
        state["request"] |= {"unknown": 1, "temperature": 0, "max_tokens": 7.0, "top_p": "1"}
        state["instance"] |= {"unknown": [1]}
        del state["request"]["prompt"]
    (path / "scenario_state.json").write_text(json.dumps(scenario_state, indent=indent))
    (path / "per_instance_stats.json").write_text(json.dumps([asdict_without_nones(s) for s in stats], indent=indent))
    return run_spec


def make_generation():
    states = [
        make_state(n, perturbation=p, trial=t) for t in range(2) for n in range(7) for p in (None, MISSPELLED, LOWER)
    ]
    states.append(make_state(90, result=None))
    states.append(make_state(91))  # without stats
    stats = [make_stats(s) for s in states[:-1]]
    stats += [make_stats(s, exact_match=0) for s in states[:5]]  # a second metric with the same stat
    stats.append(PerInstanceStats("id3", None, 1, [Stat(MetricName("inference_runtime"))]))  # no value
    return states, stats


def make_separate(modes):
    states = [make_state(n, reference_index=i, mode=m) for n in range(6) for i in range(2) for m in modes]
    return states, [make_stats(s, exact_match=1, predicted_index=int(s.instance.id[2:]) % 2) for s in states[:-1]]


def make_images(folder: Path):
    image = folder / "image.png"
    PIL.Image.new("RGB", (1, 1)).save(image)
    objects = [
        MultimediaObject([MediaObject("image/png", location=str(image))]),
        MultimediaObject(
            [MediaObject("text/plain", text="caption"), MediaObject("image/png", location="https://example.org/x.png")]
        ),
        MultimediaObject([]),
    ]
    states = []
    for number, content in enumerate(objects):
        state = make_state(number)
        completion = replace(state.result.completions[0], multimodal_content=content)
        states.append(replace(state, result=replace(state.result, completions=[completion])))
    return states, [make_stats(s) for s in states]


def make_repeated():
    first, second, again = make_state(1), make_state(2), make_state(1, trial=1)
    return [first, second, again, make_state(2, trial=2)], [make_stats(first)]


CASES = {
    "generation": lambda _: make_generation(),
    "multiple_choice_separate_original": lambda _: make_separate(["original"]),
    "multiple_choice_separate_calibrated": lambda _: make_separate(["original", "calibration"]),
    "language_modeling": lambda _: ([make_state(n) for n in range(4)], []),
    "chat": make_images,
    "multiple_choice_joint": lambda _: make_repeated(),
    "ehr_instruction": lambda _: ([], []),
}


@pytest.mark.parametrize("method", CASES)
@pytest.mark.parametrize("layout", ["helm", "compact", "small-reads"])
def test_display_files_are_helms(tmp_path, method, layout, monkeypatch):
    states, stats = CASES[method](tmp_path)
    run_spec = write_run(tmp_path / "helm", method, states, stats, indent=None if layout == "compact" else 2)
    shutil.copytree(tmp_path / "helm", tmp_path / "ours")
    if layout == "small-reads":
        monkeypatch.setattr(json_arrays, "CHUNK", 100)
    write_run_display_json(str(tmp_path / "helm"), run_spec, SCHEMA, skip_completed=False)
    write_display_files(tmp_path / "ours", run_spec, SCHEMA, skip_completed=False)
    for name in DISPLAY_FILES:
        helms, ours = ((tmp_path / folder / name).read_text() for folder in ("helm", "ours"))
        assert repr(json.loads(ours)) == repr(json.loads(helms))
    assert sorted(p.name for p in (tmp_path / "ours").glob("[!.]*")) == sorted(
        p.name for p in (tmp_path / "helm").iterdir()
    )


def test_completed_files_are_skipped(tmp_path):
    run_spec = write_run(tmp_path / "run", "generation", *make_generation())
    for name in DISPLAY_FILES:
        (tmp_path / "run" / name).write_text("old")
    write_display_files(tmp_path / "run", run_spec, SCHEMA, skip_completed=True)
    assert (tmp_path / "run" / "instances.json").read_text() == "old"
    write_display_files(tmp_path / "run", run_spec, SCHEMA, skip_completed=False)
    assert (tmp_path / "run" / "instances.json").read_text() != "old"


@pytest.mark.parametrize("name", ["scenario_state.json", "per_instance_stats.json"])
def test_runs_without_rows_are_skipped(tmp_path, name):
    run_spec = write_run(tmp_path / "run", "generation", *make_generation())
    (tmp_path / "run" / name).unlink()
    write_display_files(tmp_path / "run", run_spec, SCHEMA, skip_completed=False)
    assert not (tmp_path / "run" / "instances.json").exists()


@pytest.mark.parametrize("cut", [100, 2000, -5])
def test_truncated_files_leave_nothing(tmp_path, cut):
    run_spec = write_run(tmp_path / "run", "generation", *make_generation())
    path = tmp_path / "run" / "scenario_state.json"
    path.write_text(path.read_text()[: cut if cut > 0 else path.read_text().rindex("    }") - 1])
    with pytest.raises(ValueError, match="not complete|Expecting|Unterminated"):
        write_display_files(tmp_path / "run", run_spec, SCHEMA, skip_completed=False)
    assert sorted(p.name for p in (tmp_path / "run").glob("[!.]*")) == [
        "per_instance_stats.json",
        "scenario_state.json",
    ]


def test_elements_of_an_array(tmp_path):
    path = tmp_path / "x.json"
    items = [{"a": [{}], "text": '\n  }\n    "}'}, {"a": {"b": {}}}, {"n": math.nan, "i": 10**30}]
    for value, key in ((items, None), ({"first": 1, "request_states": items, "last": [1]}, "request_states")):
        path.write_text(json.dumps(value, indent=2))
        assert repr(list(read_array(path, key))) == repr(items)
    with pytest.raises(KeyError):
        list(read_array(path, "nothing"))


ANSWERS = ("The answer is B.", "A", "no idea")


@pytest.mark.long
def test_options_of_ours_have_letters_and_the_answer_is_the_one_that_was_read(tmp_path, monkeypatch):
    """HELM's own runs are shown as HELM shows them."""
    monkeypatch.chdir(tmp_path)
    rows = []
    for number, text in enumerate(ANSWERS):
        row = files.choice(f"Which metal is liquid, {number}?", ["Iron", "Mercury", "Zinc"], 1, id=f"r{number}")
        rows.append(files.answered(row, text))
    files.write(tmp_path / "metals.json", rows)
    folder = run(tmp_path, "adapter_spec", path="metals.json")
    spec = from_json((folder / "run_spec.json").read_bytes(), RunSpec)
    write_display_files(folder, spec, Schema(), skip_completed=False)
    shown = json.loads((folder / "display_predictions.json").read_text())
    assert [one["mapped_output"] for one in shown] == ["B. Mercury", "A. Iron", "unmapped"]
    for instance in json.loads((folder / "instances.json").read_text()):
        texts = [reference["output"]["text"] for reference in instance["references"]]
        assert texts == ["A. Iron", "B. Mercury", "C. Zinc"]
