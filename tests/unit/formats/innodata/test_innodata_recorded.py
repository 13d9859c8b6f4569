"""Large bundles with replies: both files are read once, and rows are stored."""

import json
import os
import random
import threading
import zipfile

import pytest

from helm_ext.errors import DatasetError
from helm_ext.evalset.rows import StoredRows
from helm_ext.formats.innodata import loading
from helm_ext.formats.innodata.hub import pack
from helm_ext.formats.innodata.loading import check, load

COUNT = 40
NULL, ABSENT = (4, 13, 22), (7, 30)
"""Records whose reply is null, and that are not mentioned."""


def noise(number, size):
    """Text that no compression makes small."""
    return random.Random(number).randbytes(size // 2).hex()


def make_record(number, size=0):
    turns = [{"role": "user", "content": f"What is {number} + 1?" + noise(number, size)}]
    if number % 3 == 0:
        turns = [{"role": "user", "content": "Grüß dich\u2028"}, {"role": "assistant", "content": "…"}, *turns]
    return {
        "id": f"ид {number}",
        "messages": turns,
        "expected": str(number + 1),
        "topic": "odd" if number % 2 else "even",
    }


def make_reply(number, size=0):
    reply = {
        "id": f"ид {number}",
        "reply": None if number in NULL else ("", "It is ", "\n")[number % 3] + str(number) + noise(number, size),
    }
    return reply | ({"request_time": number / 7} if number % 2 else {"request_datetime": number})


def write(folder, *, end="\n", last="\n", order="shuffled", size=0):
    """Write a bundle and its replies; return their paths."""
    folder.mkdir(exist_ok=True)
    test, train = folder / "test.jsonl", folder / "train.jsonl"
    test.write_bytes((end.join(json.dumps(make_record(number, size)) for number in range(COUNT)) + last).encode())
    train.write_bytes((json.dumps(make_record(COUNT)) + "\n").encode())
    path = pack(name="sums", test=test, train=train, target=folder, replace=True).path
    numbers = [number for number in range(COUNT) if number not in ABSENT]
    if order == "shuffled":
        random.Random(3).shuffle(numbers)
    elif order == "reversed":
        numbers.reverse()
    replies = folder / "replies.jsonl"
    replies.write_bytes((end.join(json.dumps(make_reply(number, size)) for number in numbers) + last).encode())
    return path, replies


@pytest.fixture
def large(monkeypatch):
    monkeypatch.setattr(loading, "UNREAD", 3)


def all_of(evalset):
    return {**vars(evalset), "instances": list(map(repr, evalset.instances))}


@pytest.mark.parametrize("order", ["as records", "reversed", "shuffled"])
@pytest.mark.parametrize(("end", "last"), [("\r\n", ""), ("\n", "\n\n \n")])
@pytest.mark.parametrize("arguments", [{}, {"limit": 20, "render": "text", "metrics": ["refusal_match"]}])
def test_rows_that_are_read_again_are_those_that_were_kept(tmp_path, monkeypatch, order, end, last, arguments):
    path, replies = write(tmp_path, end=end, last=last, order=order)
    kept = load(path=path, replies=replies, **arguments)
    assert isinstance(kept.instances, list)
    monkeypatch.setattr(loading, "UNREAD", 3)
    again = load(path=path, replies=replies, **arguments)
    assert isinstance(again.instances, StoredRows)
    assert all_of(again) == all_of(kept)
    count = arguments.get("limit", COUNT)
    left_out = {*NULL, *ABSENT} & {*range(count)}
    assert again.counts == {"rows": COUNT, "recorded": count - len(left_out), "not_run": len(left_out), "eval": count}
    rows = again.instances
    assert len(rows) == count
    places = [0, 4, 7, 8, count - 1]
    assert list(map(repr, rows.read(places))) == [repr(kept.instances[place]) for place in places]
    assert [row.id for row in rows.read([9, 2, 9])] == ["ид 9", "ид 2", "ид 9"]


# What is held


@pytest.mark.parametrize("compress", [False, True], ids=["stored", "deflated"])
def test_a_bundle_that_another_tool_wrote(tmp_path, large, compress):
    """Members in another order, and with fields beside their names, so that records begin later."""
    path, replies = write(tmp_path)
    expected = list(map(repr, load(path=path, replies=replies).instances))
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in ("meta.json", "train.jsonl", "test.jsonl")}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED if compress else zipfile.ZIP_STORED) as archive:
        for name, data in members.items():
            member = zipfile.ZipInfo(name)
            member.compress_type, member.extra = archive.compression, b"\x99\x99\x04\x00abcd"
            archive.writestr(member, data)
    rows = load(path=path, replies=replies).instances
    assert list(map(repr, rows)) == expected


def test_replies_from_a_pipe_are_stored(tmp_path, large):
    path, replies = write(tmp_path)
    expected = list(map(repr, load(path=path, replies=replies).instances))
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(replies.read_bytes()))
    writer.start()
    evalset = load(path=path, replies=pipe)
    writer.join()
    assert isinstance(evalset.instances, StoredRows)
    assert list(map(repr, evalset.instances)) == expected


# Checks


WRONG = {
    "twice": [{"id": "ид 1", "reply": "2"}, {"id": "ид 2", "reply": None}, {"id": "ид 2", "reply": "3"}],
    "unknown": [{"id": "ид 99", "reply": "2"}, {"id": "ид 40", "reply": "2"}, {"id": "ид 99", "reply": "2"}],
    "malformed": [{"id": 1}, [], {"id": "ид 1", "reply": 4, "x": 0}, {"id": "ид 1", "reply": "", "request_time": -1}],
    "nothing": [{"id": "ид 1", "reply": None}],
}


@pytest.mark.parametrize("rows", WRONG.values(), ids=WRONG)
@pytest.mark.parametrize("limit", [None, 30])
def test_what_is_wrong_is_said_alike_of_files_of_any_size(tmp_path, monkeypatch, rows, limit):
    path, replies = write(tmp_path)
    good = replies.read_bytes() if len(rows) > 1 else b""
    replies.write_bytes(b"".join(json.dumps(row).encode() + b"\n" for row in rows) + good)
    said = []
    for size in (COUNT, 3):
        monkeypatch.setattr(loading, "UNREAD", size)
        with pytest.raises(DatasetError) as error:
            load(path=path, replies=replies, limit=limit)
        said.append([(str(problem), problem.code, problem.kind) for problem in error.value.problems])
    assert said[0] == said[1]
    errors = [problem for problem in check(path, replies=replies, limit=limit)[0] if problem.severity == "error"]
    assert [str(problem) for problem in errors] == [text for text, _, _ in said[0]]


def test_where_an_id_was_first_is_said_also_of_unknown_ones(tmp_path, large):
    path, replies = write(tmp_path)
    replies.write_bytes(b"".join(json.dumps(row).encode() + b"\n" for row in WRONG["unknown"]))
    with pytest.raises(DatasetError) as error:
        load(path=path, replies=replies)
    unknown = "is no record of the test split of sums\n  hint: replies belong to one split of one dataset"
    assert [str(problem) for problem in error.value.problems] == [
        f'{replies}:1: id: "ид 99" {unknown}',
        f'{replies}:2: id: "ид 40" {unknown}',
        f'{replies}:3: id: "ид 99" occurs already in line 1',
    ]


def test_only_records_that_are_scored_count_where_there_is_no_reply(tmp_path, large):
    path, replies = write(tmp_path)
    replies.write_bytes(b"".join(json.dumps({"id": f"ид {n}", "reply": None}).encode() + b"\n" for n in (1, 25, 3)))
    with pytest.raises(DatasetError, match="holds no reply to any of the 20 records of .*, 2 are null"):
        load(path=path, replies=replies, limit=20)
