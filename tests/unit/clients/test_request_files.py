"""Request states as files of requests, and the manifest that says what each request is the request of."""

import json
import re
from dataclasses import replace

import helm_states
import pytest
from helm.benchmark.adaptation.adapter_spec import AdapterSpec
from helm.benchmark.augmentations.perturbation_description import PerturbationDescription
from helm.benchmark.run_spec import RunSpec
from helm.benchmark.scenarios.scenario import CORRECT_TAG, Input, Instance, Output, Reference, ScenarioSpec
from helm.common.request import Request

from helm_ext.adaptation.recorded import empty_request_result, make_recorded_request
from helm_ext.clients import request_files
from helm_ext.clients.answers import crosses_border, find_requests, require_planned
from helm_ext.clients.client import NotedResult
from helm_ext.clients.openai_requests import UnsendableError
from helm_ext.clients.request_files import (
    MANIFEST,
    Plan,
    RequestWriter,
    Target,
    make_run_digest,
    next_round,
    read_manifest,
)
from helm_ext.errors import DatasetChangedError, DatasetError, HelmExtError
from helm_ext.files.writing import staged

RUN = RunSpec(
    name="run", scenario_spec=ScenarioSpec("x.Y"), adapter_spec=AdapterSpec(method="generation"), metric_specs=[],
    groups=["g"],
)  # fmt: skip
PLAN = Plan(run_entries=["x"], model="acme/m", endpoint="completions", sent_as="m")


def state(number=0, prompt=None, *, id_=None, gold="2", reference=None, trial=0, **request):
    instance = Instance(
        Input(f"{number}+1?"),
        [Reference(Output(gold), [CORRECT_TAG]), Reference(Output("no"), [])],
        split="test",
        id=id_ or f"row{number}",
    )
    request = Request(model="acme/m", model_deployment="acme/m", prompt=prompt or f"Q{number}", **request)
    return helm_states.make_state(instance, reference_index=reference, train_trial_index=trial, request=request)


def write(folder, *runs, per_shard=50_000, only=None):
    with staged(folder) as files:
        writer = RequestWriter(files, PLAN.to_dialect(), per_shard=per_shard, only=only)
        for number, states in enumerate(runs):
            writer.write_run(replace(RUN, name=f"run{number}"), states)
        writer.close()
        return writer.write_manifest(PLAN)


def lines(folder, name):
    return [json.loads(line) for line in (folder / name).read_text().splitlines()]


def written(folder):
    """How many requests each file has."""
    return {path.name: len(path.read_text().splitlines()) for path in sorted(folder.glob("requests-*.jsonl"))}


def test_a_line_is_what_a_batch_service_takes(tmp_path):
    left_out = state(1)  # by the adapter: it is not sent
    left_out = replace(left_out, request=make_recorded_request(left_out.request, empty_request_result()))
    manifest = write(tmp_path, [left_out, state(7, max_tokens=3)])
    [line] = lines(tmp_path, "requests-1-0001.jsonl")
    assert list(line) == ["custom_id", "method", "url", "body"]
    assert (line["method"], line["url"]) == ("POST", "/v1/completions")
    assert line["custom_id"] == f"{manifest.runs[0].digest[:12]}-row7-0-none"
    assert (line["body"]["prompt"], line["body"]["max_tokens"]) == ("Q7", 3)
    assert (manifest.runs[0].states, manifest.runs[0].left_out) == (2, 1)


def test_the_manifest_is_read_as_it_was_written(tmp_path):
    manifest = write(tmp_path, [state(1, num_completions=2, temperature=1), state(2, reference=1, trial=3)], [state(3)])
    assert read_manifest(tmp_path / MANIFEST) == manifest
    assert [sent.choices for sent in manifest.requests] == [2, 1, 1]
    assert manifest.requests[1].targets == [Target(run=0, instance="row2", trial=3, reference=1)]
    assert manifest.requests[2].targets == [Target(run=1, instance="row3", trial=0, reference=None)]


def test_equal_requests_are_sent_once(tmp_path):
    """Within a run and between runs; not where HELM asks for another answer to the same request (`random`)."""
    states = [state(1, "same"), state(2, "same"), state(3, "other"), state(4, "same", random="1")]
    manifest = write(tmp_path, states, [state(5, "same")])
    assert [line["body"]["prompt"] for line in lines(tmp_path, "requests-1-0001.jsonl")] == ["same", "other", "same"]
    first, other, again = manifest.requests
    assert [(target.run, target.instance) for target in first.targets] == [(0, "row1"), (0, "row2"), (1, "row5")]
    assert [target.instance for target in other.targets + again.targets] == ["row3", "row4"]


def test_a_file_has_no_more_requests_and_bytes_than_it_may(tmp_path, monkeypatch):
    assert request_files.MAX_BYTES == 200_000_000
    manifest = write(tmp_path, [state(number) for number in range(5)], per_shard=2)
    assert written(tmp_path) == {"requests-1-0001.jsonl": 2, "requests-1-0002.jsonl": 2, "requests-1-0003.jsonl": 1}
    ids = [line["custom_id"] for name in written(tmp_path) for line in lines(tmp_path, name)]
    assert ids == [sent.custom_id for sent in manifest.requests]
    assert next_round(tmp_path) == 2
    states, folder = [state(number, f"{number:099}") for number in range(3)], tmp_path / "bytes"
    folder.mkdir()
    write(folder, states)
    monkeypatch.setattr(request_files, "MAX_BYTES", (folder / "requests-1-0001.jsonl").stat().st_size - 1)
    write(folder, states)
    assert list(written(folder).values()) == [2, 1]
    monkeypatch.setattr(request_files, "MAX_BYTES", 100)
    with pytest.raises(HelmExtError, match="a request of 3.. bytes: a file of requests has at most 100"):
        write(folder, states)


def test_only_the_requests_that_are_asked_for_are_written(tmp_path):
    """With the ids of the manifest, which an earlier version may have made in another way."""
    states = [state(number) for number in range(4)]
    (tmp_path / "before").mkdir()
    before = write(tmp_path / "before", states)
    wanted = {before.requests[1].key: "as-before", before.requests[3].key: before.requests[3].custom_id}
    again = write(tmp_path, states, only=wanted)
    assert [line["custom_id"] for line in lines(tmp_path, "requests-1-0001.jsonl")] == list(wanted.values())
    require_planned(before, {run.name: run.digest for run in again.runs})


def test_all_that_cannot_be_sent_is_said_and_nothing_is_written(tmp_path):
    states = [state(number, stop_sequences=list("abcde")) for number in range(5)]
    with pytest.raises(UnsendableError) as raised:
        write(tmp_path, [*states, state(9, top_k_per_token=7), state(8, "\ud800")])
    said = str(raised.value)
    assert (
        "5 of them, and OpenAI's API takes 4 (5 requests: run0, row row0; run0, row row1; run0, row row2, ... (2"
        in said
    )
    assert "top_k=7" in said
    assert "half of a surrogate pair" in said
    assert not list(tmp_path.glob("*.json*"))


def test_an_id_says_what_it_is_the_id_of_and_no_two_requests_have_one(tmp_path):
    """Windows of a long text, perturbed rows, rows whose ids look like what follows an id, and what no id can hold."""
    perturbed = PerturbationDescription(name="typos", robustness=True)
    states = [state(0, id_="a_b.c-1", trial=2, reference=3), *(state(n, f"w{n}", id_="x") for n in range(3))]
    states.append(replace(states[1], request=replace(states[1].request, prompt="p")))
    states[-1] = replace(states[-1], instance=replace(states[-1].instance, perturbation=perturbed))
    states += [state(9, f"o{odd}", id_=odd) for odd in ("a/b", "甲", "x" * 60, "a b")]
    states.append(state(9, "y", id_="x-0-none"))
    manifest = write(tmp_path, states)
    ids = [sent.custom_id for sent in manifest.requests]
    assert len(set(ids)) == len(ids) == len(states)
    assert all(re.fullmatch(r"[A-Za-z0-9_.-]{1,64}", one) for one in ids)
    assert {one.partition("-")[0] for one in ids} == {manifest.runs[0].digest[:12]}
    said = [one.partition("-")[2] for one in ids]
    assert (said[0], said[1], said[4], said[-1]) == ("a_b.c-1-2-3", "x-0-none", "x-0-none-typos", "x-0-none-0-none")


def test_the_digest_of_a_run_is_of_all_that_decides_its_files():
    digest = make_run_digest(RUN, [state(1), state(2)])
    others = [
        make_run_digest(RUN, [state(2), state(1)]),
        make_run_digest(RUN, [state(1)]),
        make_run_digest(RUN, [state(1), state(2, gold="3")]),
        make_run_digest(RUN, [state(1), state(2, max_tokens=9)]),
        make_run_digest(replace(RUN, groups=["h"]), [state(1), state(2)]),
    ]
    assert make_run_digest(RUN, [state(1), state(2)]) == digest
    assert len({digest, *others}) == 6


@pytest.mark.parametrize(("now", "said"), [
    ([state(1), state(2, "other")], "the request of row row2 is another one, or new"),
    ([state(1), state(2), state(3)], "the request of row row3 is another one, or new"),
    ([state(1), state(2, gold="3")], "its rows, or what they are scored with, are not the same"),
    ([state(1)], "its rows, or what they are scored with, are not the same"),
])  # fmt: skip
def test_answers_to_a_changed_dataset_are_refused(tmp_path, now, said):
    manifest = write(tmp_path, [state(1), state(2)])
    run_spec = replace(RUN, name="run0")
    ids = [sent.custom_id for sent in manifest.requests]
    assert find_requests(manifest, run_spec, [state(1), state(2)]) == ids
    with pytest.raises(DatasetChangedError, match=said):
        find_requests(manifest, run_spec, now)
    with pytest.raises(DatasetChangedError, match="run: the run is not the one that requests were written for"):
        find_requests(manifest, RUN, [state(1), state(2)])


@pytest.mark.parametrize(("before", "after", "said"), [
    ("{", "", "no manifest of requests"),
    ('"helm_ext"', '"helmext"', "no manifest of requests: Object missing required field `helm_ext`"),
    ("helm-ext requests 1", "helm-ext requests 2", r"manifest.json: format: expected 'helm-ext requests 1', got 'helm-ext requests 2'\n  hint: `helm"),
    ("run0", "\udcff", "no manifest of requests"),
    ('"run": 0', '"run": 7', r"manifest.json: requests\[0\].targets: there is no run 7, of 1\n  hint: `helm"),
    ('"echo": true', '"choices": 0', r">= 1 - at `\$.requests\[0\].choices`"),
])  # fmt: skip
def test_what_is_no_manifest_is_refused(tmp_path, before, after, said):
    write(tmp_path, [state(1, echo_prompt=True)])
    path = tmp_path / MANIFEST
    path.write_bytes(path.read_text().replace(before, after, 1).encode(errors="surrogateescape"))
    with pytest.raises(DatasetError, match=said):
        read_manifest(path)


@pytest.mark.parametrize(("tokens", "crosses"), [
    (["Q:", " 1+1?", "\nA:", " 2"], False), (["Q:", " 1+1?", "\nA: ", "2"], False),
    (["Q:", " 1+1?", "\nA", ": 2"], True), (["<s>", "Q:", " 1+1?", "\nA:", " 2"], False),
    (["Q:1+1?", "A:", "2"], False),  # tokens that do not spell the prompt say nothing of its borders
])  # fmt: skip
def test_a_token_on_both_sides_of_the_border_is_seen(tokens, crosses):
    from helm.common.request import GeneratedOutput, Token

    asked = state(1, "Q: 1+1?\nA: 2", reference=0, echo_prompt=True, max_tokens=0)
    completion = GeneratedOutput("Q: 1+1?\nA: 2", -1.0, [Token(text, -0.1) for text in tokens])
    result = NotedResult(success=True, embedding=[], completions=[completion], cached=False)
    assert crosses_border(replace(asked, result=result)) is crosses
    assert crosses_border(replace(state(1), result=result)) is False
