"""Which record a reply belongs to is told by 16 bytes of its id."""

from __future__ import annotations

import random

from helm_ext.formats.innodata import replies
from helm_ext.formats.innodata.replies import RecordIds, hash_id


def test_ids_are_found_and_others_are_not():
    names = [f"id {number}" for number in range(500)] + ["", "é", "\u2028", "1", "01"]
    random.Random(1).shuffle(names)
    ids = RecordIds()
    assert (len(ids), ids.find(hash_id("id 1"))) == (0, None)
    for name in names:
        ids.add(name)
    assert len(ids) == len(names)
    assert [ids.find(hash_id(name)) for name in names] == list(range(len(names)))
    assert len(ids) == len(names)
    assert [ids.find(hash_id(name)) for name in ("id 500", "ID 1", "001", " ")] == [None] * 4


def test_a_half_of_a_hash_that_two_ids_share_takes_neither_for_the_other(monkeypatch):
    def hash_badly(name):
        return b"\0" * 7 + bytes([ord(name[0])]) + name.encode().rjust(8, b"\0")

    monkeypatch.setattr(replies, "hash_id", hash_badly)
    names = [f"{letter}{number}" for number in range(5) for letter in "zab"]
    ids = RecordIds()
    for name in names:
        ids.add(name)
    assert [ids.find(hash_badly(name)) for name in names] == list(range(15))
    assert [ids.find(hash_badly(name)) for name in ("a9", "c1", "Z1", "~1")] == [None] * 4
