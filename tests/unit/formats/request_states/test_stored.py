"""What is stored of a row: everything that its instance is made of."""

import pytest
from msgspec.structs import replace

from helm_ext.files.store import RowStore
from helm_ext.formats.request_states.rows import Row
from helm_ext.judging.judgement import Judgement

ROW = Row(
    {"input": {"text": "2 + 2?"}}, is_helm=False, is_untagged=False, labels=None, labels_from="prefix", found=[],
    likelihoods=None, extra={}, is_left_out=False, judgements=None,
)  # fmt: skip

LARGE = {"input": {"text": "4 + 4?"}, "id": 1 << 70}
"""What msgpack cannot hold."""

ANOTHER = {
    "instance": {"id": "a", "input": {"text": "3 + 3?"}},
    "is_helm": True,
    "is_untagged": True,
    "labels": {"A": 0},
    "labels_from": "row",
    "found": [["ok", None]],
    "likelihoods": [[-1.5, None]],
    "extra": {"data": {"state": {"note": 1}}, "attributes": {"topic": "sums"}, "source_scores": {"acc": 1}},
    "is_left_out": True,
    "judgements": [Judgement(by="m", kind="model", criterion="correct", value=1)],
}


@pytest.mark.parametrize("instance", [ROW.instance, LARGE])
@pytest.mark.parametrize("name", Row.__struct_fields__)
def test_every_field_comes_back(tmp_path, monkeypatch, name, instance):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    given = replace(ROW, **{"instance": instance, name: ANOTHER[name]})
    store = RowStore(Row, 0)
    store.add(given)
    store.finish()
    (read,) = store.read([0])
    assert getattr(read, name) == ANOTHER[name] != getattr(ROW, name)
    assert read.instance == given.instance
