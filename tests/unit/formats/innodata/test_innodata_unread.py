"""Large bundles: their records are read once and stored, and made instances where a run scores them."""

import copy
import json
import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from helm.benchmark.augmentations.data_augmenter import DataAugmenterSpec
from helm.benchmark.augmentations.perturbation import PerturbationSpec
from helm.benchmark.executor import ExecutionSpec
from helm.benchmark.model_deployment_registry import ClientSpec, ModelDeployment, register_model_deployment
from helm.benchmark.runner import Runner
from helm.benchmark.scenarios.scenario import Instance
from helm.clients.client import Client
from helm.common.authentication import Authentication
from helm.common.request import GeneratedOutput, RequestResult

from helm_ext.analysis.siblings import TIMES_FILE
from helm_ext.errors import DatasetChangedError, DatasetError
from helm_ext.evalset.rows import StoredRows, make_all
from helm_ext.formats import planned
from helm_ext.formats.innodata import loading
from helm_ext.formats.innodata.hub import bundle as bundle_module
from helm_ext.formats.innodata.hub import pack
from helm_ext.formats.innodata.loading import load
from helm_ext.formats.innodata.scenario import InnodataScenario
from helm_ext.planning.run_specs import get_run_spec
from helm_ext.running.runner import StreamingRunner

COUNT = 30


class EchoClient(Client):
    def make_request(self, request):
        said = request.prompt or request.messages[-1]["content"]
        return RequestResult(
            success=True, embedding=[], cached=False, request_time=0.5, request_datetime=1_700_000_000,
            completions=[GeneratedOutput(text=said[::-1], logprob=0.0, tokens=[])],
        )  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def deployment():
    register_model_deployment(ModelDeployment("unread/echo", ClientSpec(f"{__name__}.EchoClient")))


def write_bundle(folder: Path, *, reply: str = "{}", train: int = 2, **changes) -> Path:
    folder.mkdir(exist_ok=True)

    def record(number):
        asked = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": f"What Is {number} + 1?"}]
        more = {"topic": "odd" if number % 2 else "even", "note": f"n{number}", **changes.get(f"r{number}", {})}
        return {"id": f"r{number}", "messages": asked, "expected": reply.format(number + 1), **more}

    for name, numbers in (("test", range(COUNT)), ("train", range(COUNT, COUNT + train))):
        text = "".join(json.dumps(record(number)) + "\n" for number in numbers)
        (folder / f"{name}.jsonl").write_text(text, encoding="utf-8")
    files = {"test": folder / "test.jsonl", "train": folder / "train.jsonl"}
    return pack(name="sums", **files, attributes={"level": 3}, target=folder, replace=True).path


@pytest.fixture
def bundle(tmp_path):
    return write_bundle(tmp_path / "data")


@pytest.fixture
def large(monkeypatch):
    monkeypatch.setattr(loading, "UNREAD", 3)


@pytest.fixture
def parsed(monkeypatch):
    """The lines that were parsed as records, since this list was last cleared."""
    lines = []
    parse = bundle_module.parse_record

    def note(data, location, problems):
        lines.append(location.line)
        return parse(data, location, problems)

    monkeypatch.setattr(bundle_module, "parse_record", note)
    return lines


def all_of(evalset):
    return {**vars(evalset), "instances": list(map(repr, evalset.instances))}


@pytest.mark.parametrize("arguments", [
    {}, {"render": "text"}, {"split": "train"}, {"limit": 7}, {"limit": 3}, {"limit": 1_000},
    {"metrics": ["refusal_match"]},
    {"metrics": ["expected_exact"], "main_metric": "refusal_match"},
])  # fmt: skip
def test_what_is_loaded_is_the_same(bundle, monkeypatch, arguments):
    at_once = load(path=bundle, **arguments)
    assert isinstance(at_once.instances, list)
    monkeypatch.setattr(loading, "UNREAD", 1)
    later = load(path=bundle, **arguments)
    assert isinstance(later.instances, StoredRows)
    assert all_of(later) == all_of(at_once)
    assert (later.splits(), later.has_options()) == (at_once.splits(), at_once.has_options()) == ({"test"}, False)


def test_rows_as_a_sequence(bundle, large):
    rows = load(path=bundle).instances
    ids = [f"r{number}" for number in range(COUNT)]
    assert len(rows) == COUNT
    assert [row.id for row in rows] == [row.id for row in rows] == ids
    assert (rows[0].id, rows[7].id, rows[-1].id) == ("r0", "r7", "r29")
    assert [row.id for row in rows[4:20:3]] == ids[4:20:3]
    assert [row.id for row in rows[20:4:-3]] == ids[20:4:-3]
    assert rows[5:5] == []
    with pytest.raises(IndexError):
        rows[COUNT]


def test_few_records_are_kept(bundle, tmp_path, monkeypatch):
    monkeypatch.setattr(loading, "UNREAD", COUNT)
    assert isinstance(load(path=bundle).instances, list)
    monkeypatch.setattr(loading, "UNREAD", COUNT - 1)
    assert isinstance(load(path=bundle).instances, StoredRows)
    assert isinstance(load(path=bundle, limit=COUNT - 1).instances, list)
    replies = tmp_path / "replies.jsonl"
    replies.write_text("".join(json.dumps({"id": f"r{number}", "reply": "1"}) + "\n" for number in range(COUNT)))
    assert isinstance(load(path=bundle, replies=replies).instances, StoredRows)
    assert isinstance(load(path=bundle, replies=replies, limit=COUNT - 1).instances, list)


def test_all_records_are_checked_before_anything_runs(tmp_path, large):
    folder = tmp_path / "data"
    path = write_bundle(folder)
    test = folder / "test.jsonl"
    test.write_text(test.read_text().replace('"r25"', '"r3"').replace('"expected": "9"', '"expected": 9'))
    with pytest.raises(DatasetError):
        pack(name="sums", test=test, target=folder, replace=True)
    import hashlib
    import zipfile

    data = test.read_bytes()
    meta = {"name": "sums", "test_size": COUNT, "train_size": 0, "train_digest": hashlib.sha256(b"").hexdigest(),
            "test_digest": hashlib.sha256(data).hexdigest()}  # fmt: skip
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in (("test.jsonl", data), ("train.jsonl", b""), ("meta.json", json.dumps(meta))):
            archive.writestr(name, content)
    with pytest.raises(DatasetError) as error:
        load(path=path)
    assert [problem.location.line for problem in error.value.problems] == [9, 26]


def test_an_unread_row_knows_its_id_and_split_and_becomes_an_instance(bundle, large):
    wanted = list(load(path=bundle).instances)
    stored, made = load(path=bundle).instances, []
    rows = replace(
        stored, store=SimpleNamespace(read=lambda numbers: made.extend(numbers) or stored.store.read(numbers))
    ).hand_out()
    assert [(row.id, row.split, row.sub_split, row.perturbation) for row in rows] == [
        (f"r{number}", "test", None, None) for number in range(COUNT)
    ]
    assert made == []
    chosen = [rows[20], rows[4], rows[20], rows[0]]
    make_all(chosen)
    assert made == [20, 4, 0]
    assert [type(row) for row in chosen] == [Instance] * 4
    assert list(map(repr, chosen)) == [repr(wanted[place]) for place in (20, 4, 20, 0)]
    make_all(chosen)
    assert made == [20, 4, 0]
    assert type(rows[1]) is not Instance


def test_rows_of_two_files_and_others_are_read_together(tmp_path, large):
    one = load(path=write_bundle(tmp_path / "one")).instances.hand_out()
    two = load(path=write_bundle(tmp_path / "two", reply="two {}")).instances.hand_out()
    plain = load(path=tmp_path / "one/sums.zip", limit=1).instances[0]
    mixed = [two[3], plain, one[3], two[1]]
    make_all(mixed)
    assert [row.references[0].output.text for row in mixed] == ["two 4", "1", "4", "two 2"]


@pytest.mark.parametrize("look", [lambda row: row.input, lambda row: row.references, lambda row: row.extra_data])
def test_who_looks_at_one_row_has_no_other_made(bundle, large, look):
    wanted = list(load(path=bundle).instances)
    rows = load(path=bundle).instances.hand_out()
    assert look(rows[20]) == look(wanted[20])
    assert type(rows[20]) is Instance
    assert type(rows[19]) is not Instance
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(look, rows)) == list(map(look, wanted))


@pytest.mark.parametrize("make", [
    copy.deepcopy, copy.copy, lambda row: pickle.loads(pickle.dumps(row)), lambda row: replace(row, sub_split=None),
])  # fmt: skip
def test_a_copy_of_an_unread_row_is_an_instance(bundle, large, make):
    evalset = load(path=bundle)
    made = make(evalset.instances.hand_out()[5])
    assert type(made) is Instance
    assert repr(made) == repr(evalset.instances[5])


# Runs

LOWER = DataAugmenterSpec(
    perturbation_specs=[
        PerturbationSpec("helm.benchmark.augmentations.lowercase_perturbation.LowerCasePerturbation", {})
    ],
    should_augment_eval_instances=True,
    should_include_original_eval=True,
)


def run(path, runner_class, folder, *, limit, augment=None, cache=False, render="chat"):
    run_spec = get_run_spec("innodata", {"path": str(path), "render": render})
    adapter_spec = replace(
        run_spec.adapter_spec, model="unread/echo", model_deployment="unread/echo", max_eval_instances=limit
    )
    run_spec = replace(
        run_spec, name="run", adapter_spec=adapter_spec, data_augmenter_spec=augment or DataAugmenterSpec()
    )
    spec = ExecutionSpec(url=None, auth=Authentication(""), local_path=str(folder / "prod_env"), parallelism=2)
    flags = {
        "skip_instances": False,
        "cache_instances_only": False,
        "skip_completed_runs": False,
        "exit_on_error": True,
    }
    runner_class(spec, str(folder), "suite", cache_instances=cache, **flags).run_all([run_spec])
    return {file.name: file.read_bytes() for file in folder.rglob("*.json") if file.name != TIMES_FILE}


@pytest.mark.parametrize("runner_class", [Runner, StreamingRunner])
@pytest.mark.parametrize("how", [
    {"limit": 5}, {"limit": None}, {"limit": 5, "augment": LOWER, "render": "text"}, {"limit": 5, "cache": True},
], ids=["some", "all", "augmented", "cached"])  # fmt: skip
def test_runs_write_the_same_files(bundle, tmp_path, monkeypatch, runner_class, how):
    at_once = run(bundle, runner_class, tmp_path / "at_once", **how)
    monkeypatch.setattr(loading, "UNREAD", 3)
    later = run(bundle, runner_class, tmp_path / "later", **how)
    assert len(later) == 5 + how.get("cache", False)
    assert later == at_once


@pytest.mark.parametrize("runner_class", [Runner, StreamingRunner])
def test_a_run_reads_all_records_once(bundle, tmp_path, large, parsed, runner_class):
    run(bundle, runner_class, tmp_path / "out", limit=4)
    assert len(parsed) == COUNT + 2  # the train split is checked too


def test_a_scenario_without_a_plan_reads_the_file(bundle, large, parsed, monkeypatch):
    run_spec = get_run_spec("innodata", {"path": str(bundle)})
    monkeypatch.setattr(planned, "_waiting", {})
    rows = InnodataScenario(**run_spec.scenario_spec.args).get_instances("")
    assert [row.id for row in rows] == [f"r{number}" for number in range(COUNT)]
    write_bundle(bundle.parent, reply="x {}")
    with pytest.raises(DatasetChangedError):
        InnodataScenario(**run_spec.scenario_spec.args).get_instances("")
