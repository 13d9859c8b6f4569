"""What changed between two bundles: ids in their order, keys, places, attributes."""

from __future__ import annotations

import bundles
import pytest
from bundles import record

from helm_ext.formats.innodata.hub import open_bundle
from helm_ext.formats.innodata.hub.bundle import Change, Difference, SplitDifference, compare


@pytest.fixture
def difference(tmp_path):
    def compare_records(old, new, *, old_train=(), new_train=(), old_attributes=None, new_attributes=None):
        paths = []
        for side, test, train, attributes in (
            ("old", old, old_train, old_attributes),
            ("new", new, new_train, new_attributes),
        ):
            paths.append(bundles.make(tmp_path / side, test, train, **(attributes or {})))
        with open_bundle(paths[0]) as left, open_bundle(paths[1]) as right:
            return compare(left, right)

    return compare_records


NOTHING = SplitDifference((), (), ())


def test_equal_bundles(difference):
    found = difference(
        [record("a"), record("b")], [record("a"), record("b")], old_attributes={"x": 1}, new_attributes={"x": 1}
    )
    assert found == Difference({"test": NOTHING, "train": NOTHING}, {})
    assert not found


def test_each_kind_of_change(difference):
    old = [record("a"), record("b"), record("c", topic="x", n=1), record("d"), record("e")]
    new = [record("f"), record("e"), record("b", "5"), record("c", n=True, level=1), record("d")]
    found = difference(
        old, new, old_train=[record("t")], new_train=[record("a")],
        old_attributes={"same": 1, "gone": None, "type": 1}, new_attributes={"same": 1, "type": 1.5, "new": [1]},
    )  # fmt: skip
    changes = (Change("b", ("expected",)), Change("c", ("topic", "n", "level")))
    assert found.splits == {
        "test": SplitDifference(("f",), ("a",), changes, reordered=True),
        "train": SplitDifference(("a",), ("t",), ()),
    }
    assert found.attributes == {"gone": (None, None), "type": (1, 1.5), "new": (None, [1])}
    assert found


def test_messages_and_the_order_of_keys(difference):
    asked = {"role": "user", "content": "3+3?"}
    old = [{**record("a"), "x": {"p": 1, "q": 2}}, record("b")]
    new = [{**record("a"), "x": {"q": 2, "p": 1}}, {**record("b"), "messages": [asked]}]
    assert difference(old, new).splits["test"] == SplitDifference((), (), (Change("b", ("messages",)),))


@pytest.mark.parametrize("field", ["added", "removed", "changed", "reordered"])
def test_any_change_is_one(field):
    changed = SplitDifference(**{"added": (), "removed": (), "changed": (), field: ("x",)})
    assert changed
    assert not NOTHING
    assert Difference({"test": NOTHING, "train": changed}, {})
    assert Difference({"test": NOTHING, "train": NOTHING}, {"a": (1, 2)})
    assert not Difference({"test": NOTHING, "train": NOTHING}, {})
