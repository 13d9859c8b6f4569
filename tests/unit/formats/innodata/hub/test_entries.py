"""Entries of versions: what is written, what is refused where one is not as it should be, and who gets a number."""

import json
from functools import partial

import pytest
import refusals

from helm_ext.errors import HubError
from helm_ext.formats.innodata.hub.storage import LocalStorage
from helm_ext.formats.innodata.hub.versioning import (
    Version,
    claim,
    entry_path,
    list_datasets,
    list_numbers,
    read_entry,
    require_dataset,
    require_no_gap,
    to_json,
)

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


refused = partial(refusals.refused, HubError)


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


@pytest.mark.parametrize("changes", [
    *({key: "1"} for key in ("number", "size", "test_size", "train_size")),
    *({key: True} for key in ("number", "size", "test_size", "train_size")),
    *({key: "a" * 63} for key in ("digest", "test_digest", "train_digest")),
    *({key: "g" * 64} for key in ("digest", "test_digest", "train_digest")),
    {"digest": None}, {"attributes": []}, {"format": None}, {"format": ...}, {"size": ...}, {"surprise": 1},
])  # fmt: skip
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


def test_the_next_number_is_claimed(storage):
    first = claim(storage, [], version(0))
    assert first == (version(1), [])
    second = claim(storage, [version(1)], version(0, digest="b" * 64, claim="other"))
    assert second == (version(2, digest="b" * 64, claim="other"), [version(1)])
    # What was claimed by others meanwhile is read; a ZIP that is a version already gets no other.
    third = claim(storage, [], version(0, digest="c" * 64, claim="third"))
    assert third == (version(3, digest="c" * 64, claim="third"), [first[0], second[0]])
    assert claim(storage, [], version(0)) == (version(1), [])  # its own entry: only the answer was lost
    assert refused(claim, storage, [], version(0, digest="b" * 64, claim="x")) == (
        "demo: this ZIP is version 2 already (SHA-256 bbbbbbbbbbbb, uploaded 2026-01-02T03:04:05+00:00); nothing was changed"
    )


def test_a_gap(storage, tmp_path):
    assert require_no_gap(storage, "demo") == []
    put(storage, version(1), version(2))
    assert require_no_gap(storage, "demo") == [1, 2]
    put(storage, version(5))
    assert refused(require_no_gap, storage, "demo") == (
        f"{tmp_path}/hub/datasets/demo/versions/00000003.json: missing, while version 5 exists\n"
        "  hint: restore it from a backup; nothing can be uploaded to this dataset before"
    )
