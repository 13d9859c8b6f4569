"""Properties of records, bundles and the hub, on data that hypothesis makes up."""

import json
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from helm_ext.errors import Location, Problems
from helm_ext.formats.innodata.hub import open_bundle, pack
from helm_ext.formats.innodata.hub.records import parse_record
from helm_ext.formats.innodata.loading import check
from helm_ext.scoring.scores.texts import SCORES

texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=20)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=5,
)


@st.composite
def conversations(draw):
    turns = draw(st.integers(0, 2))
    found = [{"role": role, "content": draw(texts)} for role in ["user", "assistant"] * turns + ["user"]]
    return ([{"role": "system", "content": draw(texts)}] if draw(st.booleans()) else []) + found


records = st.builds(
    lambda record_id, chat, expected, extra: {**extra, "id": record_id, "messages": chat, "expected": expected},
    texts.filter(bool),
    conversations(),
    texts,
    st.dictionaries(texts, json_values, max_size=3),
)


@given(records, st.booleans())
def test_every_sound_record_is_read_back(record, ascii_only):
    found = Problems()
    parsed = parse_record(json.dumps(record, ensure_ascii=ascii_only).encode(), Location("t", 1), found)
    assert found.finish() == []
    assert parsed is not None
    assert {**parsed.extra, "id": parsed.id, "messages": parsed.messages, "expected": parsed.expected} == record


@given(st.binary(max_size=60) | json_values.map(lambda value: json.dumps(value).encode()))
def test_any_bytes_give_a_record_or_a_problem(data):
    found = Problems()
    assert (parse_record(data, Location("t", 1), found) is None) == bool(found.finish())


@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.lists(records, min_size=1, max_size=5, unique_by=lambda record: record["id"]), st.booleans())
def test_packed_bundles_are_sound(rows, split_them):
    cut = len(rows) // 2 if split_them else 0
    with tempfile.TemporaryDirectory() as folder:
        paths = {}
        for split, part in (("train", rows[:cut]), ("test", rows[cut:])):
            paths[split] = Path(folder) / f"{split}.jsonl"
            paths[split].write_bytes("".join(json.dumps(row) + "\n" for row in part).encode())
        packed = pack(name="x", **paths, target=folder)
        assert check(packed.path) == ([], {"test": len(rows) - cut, "train": cut, "rows": len(rows)})
        with open_bundle(packed.path) as bundle:
            assert [record.id for split in ("train", "test") for record in bundle.records(split)] == [
                row["id"] for row in rows
            ]


@given(texts, texts)
def test_scores_are_between_0_and_1_and_perfect_on_themselves(gold, reply):
    for score in SCORES:
        assert 0 <= score.function(gold, reply) <= 1 + 1e-9
        assert score.function(gold, gold) > 0.99
