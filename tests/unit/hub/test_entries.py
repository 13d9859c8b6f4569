"""Versions of a dataset in a folder: their entries, their numbers, and what is said where one is not as it should be."""

from __future__ import annotations

import dataclasses
import json

import pytest

from helm_ext.errors import HubError
from helm_ext.hub.entries import (
    Version,
    blob_path,
    claim,
    entry_path,
    list_datasets,
    list_numbers,
    read_entry,
    read_versions,
    require_dataset,
    require_no_gap,
    require_other_digest,
    to_json,
)
from helm_ext.hub.storage import LocalStorage

FIELDS = {
    "size": 10, "test_size": 2, "train_size": 0, "test_digest": "1" * 64, "train_digest": "2" * 64,
    "uploaded": "2026-01-02T03:04:05+00:00", "attributes": {"é": [1]}, "claim": "me",
}  # fmt: skip


def version(number=1, name="demo", digest="a" * 64, **changes):
    return Version(name=name, number=number, digest=digest, **{**FIELDS, **changes})


@pytest.fixture
def storage(tmp_path):
    return LocalStorage(tmp_path / "hub")


def put(storage, *versions):
    for one in versions:
        storage.create(entry_path(one.name, one.number), to_json(one))


def refused(function, *arguments):
    with pytest.raises(HubError) as error:
        function(*arguments)
    return str(error.value)


def test_paths():
    assert entry_path("demo", 12) == "datasets/demo/versions/00000012.json"
    assert blob_path("abc") == "blobs/abc.zip"


def test_the_bytes_of_an_entry_and_back(storage):
    one = version()
    stated = {"format": 1, "name": "demo", "number": 1, "digest": "a" * 64, **FIELDS}
    assert to_json(one).decode() == json.dumps(stated, ensure_ascii=False, indent=2) + "\n"
    put(storage, one, version(2, digest="b" * 64))
    assert read_entry(storage, "demo", 1) == one
    assert read_versions(storage, "demo") == [one, version(2, digest="b" * 64)]


def test_which_there_are(storage, tmp_path):
    assert (list_datasets(storage), list_numbers(storage, "demo")) == ([], [])
    put(storage, version(10), version(2), version(1, name="other"))
    folder = tmp_path / "hub/datasets"
    for name in (
        "demo/versions/3.json",
        "demo/versions/00000004.json~",
        "demo/versions/000000005.json",
        "UPPER/versions/00000001.json",
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("{}")
    (folder / "empty/versions").mkdir(parents=True)
    assert list_numbers(storage, "demo") == [2, 10]
    assert list_datasets(storage) == ["demo", "other"]
    assert require_dataset(storage, "demo") == [2, 10]


def test_a_dataset_that_cannot_be_listed_is_not_hidden(storage, tmp_path, monkeypatch):
    put(storage, version())
    list_names = storage.list_names

    def fail(folder):
        if folder == "datasets/demo/versions":
            raise HubError("no")
        return list_names(folder)

    monkeypatch.setattr(storage, "list_names", fail)
    assert list_datasets(storage) == ["demo"]


def test_no_such_dataset(storage, tmp_path):
    place = f"in the hub at {tmp_path}/hub"
    hint = "there is no hub; the first upload makes it"
    assert refused(require_dataset, storage, "demo") == f'no dataset "demo" {place}\n  hint: {hint}'
    (tmp_path / "hub").mkdir()
    assert refused(require_dataset, storage, "demo") == f'no dataset "demo" {place}\n  hint: this hub is empty'
    put(storage, *(version(name=f"set-{letter}") for letter in "abcdefghijkl"))
    known = ", ".join(f"set-{letter}" for letter in "abcdefghij")
    assert refused(require_dataset, storage, "zzzz") == f'no dataset "zzzz" {place}\n  hint: known: {known}'
    assert refused(require_dataset, storage, "set-b2").startswith(
        f'no dataset "set-b2" {place}\n  hint: did you mean \'set-'
    )
    assert refused(require_dataset, storage, "../x").startswith('no dataset "../x" ')
    assert refused(read_versions, storage, "zzzz") == f'no dataset "zzzz" {place}\n  hint: known: {known}'


@pytest.mark.parametrize(
    "changes",
    [
        *({key: "1"} for key in ("number", "size", "test_size", "train_size")),
        *({key: True} for key in ("number", "size", "test_size", "train_size")),
        *({key: "a" * 63} for key in ("digest", "test_digest", "train_digest")),
        *({key: "g" * 64} for key in ("digest", "test_digest", "train_digest")),
        {"digest": None}, {"attributes": []}, {"format": None}, {"format": ...}, {"size": ...}, {"surprise": 1},
    ],
)  # fmt: skip
def test_a_damaged_entry(storage, tmp_path, changes):
    stated = {**json.loads(to_json(version())), **changes}
    data = json.dumps({key: value for key, value in stated.items() if value is not ...}).encode()
    storage.create(entry_path("demo", 1), data)
    assert refused(read_entry, storage, "demo", 1) == (
        f"{tmp_path}/hub/datasets/demo/versions/00000001.json: damaged entry; restore it from a backup\n"
        "  hint: helm-ext hub verify lists all that is damaged"
    )


def test_entries_that_are_others(storage, tmp_path):
    path = f"{tmp_path}/hub/datasets/demo/versions/"
    assert refused(read_entry, storage, "demo", 1) == f"{path}00000001.json: missing"
    storage.create(entry_path("demo", 1), to_json(version(2)))
    assert refused(read_entry, storage, "demo", 1) == f'{path}00000001.json: states version 2 of "demo": damaged entry'
    storage.create(entry_path("demo", 2), to_json(version(2, name="x")))
    assert refused(read_entry, storage, "demo", 2) == f'{path}00000002.json: states version 2 of "x": damaged entry'
    newer = to_json(version(3)).replace(b'"format": 1', b'"format": 2')
    storage.create(entry_path("demo", 3), newer)
    assert refused(read_entry, storage, "demo", 3) == (
        f"{path}00000003.json: format 2 is of a newer helm-ext\n  hint: update it"
    )
    older = to_json(version(4)).replace(b'"format": 1', b'"format": 0')
    storage.create(entry_path("demo", 4), older)
    assert read_entry(storage, "demo", 4) == version(4)


def fields(**changes):
    return {**FIELDS, **changes}


def test_the_next_number_is_claimed(storage):
    first = claim(storage, [], fields(), "a" * 64, "demo")
    assert first == (version(1), [])
    second = claim(storage, [version(1)], fields(claim="other"), "b" * 64, "demo")
    assert second == (version(2, digest="b" * 64, claim="other"), [version(1)])
    assert read_versions(storage, "demo") == [first[0], second[0]]
    # What was claimed by others meanwhile is read.
    third = claim(storage, [], fields(claim="third"), "c" * 64, "demo")
    assert third == (version(3, digest="c" * 64, claim="third"), [first[0], second[0]])


def test_a_claim_knows_its_own_entry(storage):
    put(storage, version(1, claim="mine"))
    assert claim(storage, [], fields(claim="mine"), "a" * 64, "demo") == (version(1, claim="mine"), [])


def test_a_zip_that_is_a_version_already(storage):
    put(storage, version(1), version(2, digest="b" * 64))
    uploaded = "uploaded 2026-01-02T03:04:05+00:00"
    assert refused(claim, storage, [], fields(claim="x"), "b" * 64, "demo") == (
        f"demo: this ZIP is version 2 already (SHA-256 bbbbbbbbbbbb, {uploaded}); nothing was changed"
    )
    assert refused(require_other_digest, version(1), "a" * 64, 3) == (
        f"demo: this ZIP is version 1 already (SHA-256 aaaaaaaaaaaa, {uploaded}; version 3 is the newest); "
        "nothing was changed"
    )
    require_other_digest(version(1), "b" * 64, 1)


def test_a_gap(storage, tmp_path):
    assert require_no_gap(storage, "demo") == []
    put(storage, version(1), version(2))
    assert require_no_gap(storage, "demo") == [1, 2]
    put(storage, version(5))
    assert refused(require_no_gap, storage, "demo") == (
        f"{tmp_path}/hub/datasets/demo/versions/00000003.json: missing, while version 5 exists\n"
        "  hint: restore it from a backup; nothing can be uploaded to this dataset before"
    )


def test_equal_content():
    one = version()
    assert one.has_content_of(version(2, digest="b" * 64), ["test", "train"])
    other = dataclasses.replace(one, train_digest="9" * 64)
    assert one.has_content_of(other, ["test"])
    assert not one.has_content_of(other, ["train"])
    assert not one.has_content_of(other, ["test", "train"])
