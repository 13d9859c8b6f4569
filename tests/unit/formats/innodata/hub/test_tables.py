"""A bundle as a `datasets.DatasetDict`."""

from __future__ import annotations

import hashlib
import json

import pytest

from helm_ext.formats.innodata.hub import bundle as bundles
from helm_ext.formats.innodata.hub import open_bundle, pack
from helm_ext.formats.innodata.hub.bundle import get_attributes, to_dataset_dict

USER = {"role": "user", "content": "2+2?"}


@pytest.fixture
def bundle(tmp_path):
    rows = [{"id": f"r{n}", "messages": [USER], "expected": f"é{n}", "topic": "ü", "n": n} for n in range(5)]
    (tmp_path / "test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    path = pack(name="demo", test=tmp_path / "test.jsonl", attributes={"task": "é"}, target=tmp_path).path
    with open_bundle(path) as opened:
        yield opened


@pytest.mark.parametrize("batch", [1, 2, 5, 10_000])
def test_all_records_in_their_order(bundle, monkeypatch, batch):
    monkeypatch.setattr(bundles, "_BATCH", batch)
    found = to_dataset_dict(bundle, 3)
    assert list(found) == ["train", "test"]
    assert found["test"].to_list() == [
        {"id": f"r{n}", "messages": [USER], "expected": f"é{n}", "extra": f'{{"topic": "ü", "n": {n}}}'}
        for n in range(5)
    ]
    assert found["train"].to_list() == []


def test_what_a_dataset_says_of_itself(bundle):
    found = to_dataset_dict(bundle, 3)
    digest = hashlib.sha256(open(bundle.path, "rb").read()).hexdigest()
    stated = {"name": "demo", "version": 3, "digest": digest, "attributes": {"task": "é"}}
    for split, dataset in found.items():
        assert dataset.info.description == json.dumps(stated, ensure_ascii=False)
        assert dataset.info.dataset_name == "demo"
        assert str(dataset.info.version) == "3.0.0"
        assert list(dataset.features) == ["id", "messages", "expected", "extra"]
        assert str(dataset.split) == split
        assert dataset._fingerprint == f"{digest[:48]}-{split}"
    assert get_attributes(found) == get_attributes(found["train"]) == {"task": "é"}
    assert get_attributes(found["test"].filter(lambda row: row["id"] == "r1")) == {"task": "é"}
