"""What is stored of a row: everything that its instance is made of."""

import pytest
from msgspec.structs import replace

from helm_ext.formats.request_states.rows import Row, unpack
from helm_ext.judging.judgement import Judgement

ROW = Row(
    {"input": {"text": "2 + 2?"}}, is_helm=False, is_untagged=False, labels=None, labels_from="prefix", found=[],
    unknown=None, likelihoods=None, attributes=None, cluster=None, earlier=None, source_scores=None,
    source_unscored=None, judgements=None,
)  # fmt: skip

OTHERWISE_KNOWN = {"place", "split", "is_choice", "nonfinite", "lack", "is_right"}
"""Of no use any more, in the columns of the store, or decided after all rows are read."""

ANOTHER = {
    "instance": {"id": "a", "input": {"text": "3 + 3?"}},
    "is_helm": True,
    "is_untagged": True,
    "labels": {"A": 0},
    "labels_from": "row",
    "found": [["ok", None]],
    "unknown": {"state": {"note": 1}},
    "likelihoods": [[-1.5, None]],
    "attributes": {"topic": "sums"},
    "cluster": "c",
    "earlier": {"cluster": "g"},
    "source_scores": {"acc": 1},
    "source_unscored": ["acc"],
    "judgements": [Judgement(by="m", kind="model", criterion="correct", value=1)],
}


@pytest.mark.parametrize("name", [name for name in Row.__struct_fields__ if name not in OTHERWISE_KNOWN])
def test_every_field_comes_back(name):
    assert getattr(unpack(replace(ROW, **{name: ANOTHER[name]}).pack()), name) == ANOTHER[name] != getattr(ROW, name)
