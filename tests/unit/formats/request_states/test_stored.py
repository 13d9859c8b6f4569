"""What is stored of a row: everything that its instance is made of."""

from dataclasses import fields, replace

import pytest

from helm_ext.formats.request_states.rows import Row
from helm_ext.formats.request_states.stored import pack, unpack
from helm_ext.judging.judgement import Judgement

ROW = Row(
    None, {"input": {"text": "2 + 2?"}}, [], None, is_helm=False, is_choice=False, labels=None, labels_from=None, found=[],
    has_unknown=False, nonfinite=0,
)  # fmt: skip

OTHERWISE_KNOWN = {"place", "split", "is_choice", "nonfinite", "lack", "is_untagged", "is_right", "only", "helm_id"}
"""Of no use any more, in the columns of the store, or decided after all rows are read."""

ANOTHER = {
    "instance": {"id": "a", "input": {"text": "3 + 3?"}},
    "references": [{"output": {"text": "4"}, "tags": ["correct"]}],
    "is_helm": True,
    "labels": {"A": 0},
    "labels_from": "given",
    "found": [("ok", None)],
    "has_unknown": True,
    "extra": {"note": 1},
    "likelihoods": [[-1.5, None]],
    "attributes": {"topic": "sums"},
    "cluster": "c",
    "earlier": {"group": "g"},
    "source_scores": {"acc": 0.5},
    "source_unscored": ["acc"],
    "judgements": [Judgement(by="m", kind="model", criterion="correct", value=1)],
}


@pytest.mark.parametrize("name", [field.name for field in fields(Row) if field.name not in OTHERWISE_KNOWN])
def test_every_field_comes_back(name):
    assert getattr(unpack(pack(replace(ROW, **{name: ANOTHER[name]}))), name) == ANOTHER[name] != getattr(ROW, name)
