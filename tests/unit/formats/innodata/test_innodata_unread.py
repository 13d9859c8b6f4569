"""Large bundles: their records are read once and stored, and made instances where a run scores them."""

import copy
import json
import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from helm.benchmark.scenarios.scenario import Instance

from helm_ext.errors import DatasetChangedError
from helm_ext.evalset.rows import StoredRows, make_all
from helm_ext.formats import planned
from helm_ext.formats.innodata import loading
from helm_ext.formats.innodata.hub import pack
from helm_ext.formats.innodata.loading import load
from helm_ext.formats.innodata.scenario import InnodataScenario
from helm_ext.planning.run_specs import get_run_spec

COUNT = 30


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


def test_a_scenario_without_a_plan_reads_the_file(bundle, large, monkeypatch):
    run_spec = get_run_spec("innodata", {"path": str(bundle)})
    monkeypatch.setattr(planned, "_waiting", {})
    rows = InnodataScenario(**run_spec.scenario_spec.args).get_instances("")
    assert [row.id for row in rows] == [f"r{number}" for number in range(COUNT)]
    write_bundle(bundle.parent, reply="x {}")
    with pytest.raises(DatasetChangedError):
        InnodataScenario(**run_spec.scenario_spec.args).get_instances("")
