"""Results joined with requests: any order, any number of files; nothing is taken for what it is not."""

import gzip
import json
import random
from concurrent.futures import ThreadPoolExecutor, TimeoutError

import pytest
from openai_server import write_lines

from helm_ext.clients.answers import ANSWERS, join
from helm_ext.clients.request_files import FORMAT, Manifest, Plan, PlannedRun, Sent, Target
from helm_ext.errors import DatasetError, DatasetIntegrityError, DatasetSyntaxError
from helm_ext.files.writing import COMMIT_LOCK, locked

IDS = ["d-1-0-none", "d-2-0-none", "d-3-0-none", "d-4-0-none"]


def make(endpoint="chat", **sent):
    plan = Plan(run_entries=["x"], model="acme/m", endpoint=endpoint, sent_as="m")
    requests = [
        Sent(custom_id=id_, key=id_, targets=[Target(run=0, instance=id_, trial=0, reference=None)], **sent)
        for id_ in IDS
    ]
    runs = [PlannedRun(name="x", digest="d", states=4, left_out=0)]
    return Manifest(format=FORMAT, helm_ext="0", plan=plan, runs=runs, requests=requests)


def ok(id_, text="Paris", **more):
    body = {
        "id": f"x{random.random()}",
        "created": random.randrange(10**9),
        "model": "m-2026",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text, **more}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12},
    }
    response = {"status_code": 200, "request_id": "r", "body": body}
    return {"id": "b", "custom_id": id_, "response": response, "error": None}


def old(id_, text="Paris"):
    """What earlier versions of `vllm run-batch` wrote."""
    line = ok(id_, text)
    return {**line, "response": line["response"]["body"]}


def texts(answers):
    done = [id_ for id_ in IDS if id_ not in answers.missing()]
    return {id_: answers.read(id_).choices[0].text for id_ in done}


def write(folder, name, *lines):
    return write_lines(folder / name, list(lines))


def test_files_in_any_order_with_lines_in_any_order(tmp_path):
    first = tmp_path / "1.jsonl.gz"
    first.write_bytes(
        gzip.compress(b"".join(json.dumps(one).encode() + b"\n" for one in (ok(IDS[3], "d"), ok(IDS[0], "a"))))
    )
    second = write(tmp_path, "2.jsonl", ok(IDS[1], "b"), old(IDS[2], "c"))
    answers = join(make(), tmp_path, [second, first])
    assert answers.missing() == []
    assert answers.new == 4
    assert texts(answers) == dict(zip(IDS, "abcd", strict=True))
    assert (answers.tally["prompt_tokens"], answers.tally["completion_tokens"]) == (40, 8)


def test_answers_come_in_parts_and_are_kept(tmp_path):
    part = write(tmp_path, "1.jsonl", ok(IDS[3], "d"), ok(IDS[0], "a"))
    assert join(make(), tmp_path, [part]).missing() == [IDS[1], IDS[2]]
    part.unlink()
    rest = write(tmp_path, "2.jsonl", ok(IDS[1], "b"), ok(IDS[2], "c"))
    answers = join(make(), tmp_path, [rest])
    assert (answers.new, answers.missing()) == (2, [])
    assert texts(answers) == dict(zip(IDS, "abcd", strict=True))
    again = join(make(), tmp_path)
    assert (again.new, again.missing(), again.tally) == (0, [], answers.tally)
    assert texts(again) == texts(answers)


ERRORS = {
    "expired": ({"response": None, "error": {"code": "batch_expired", "message": "late"}}, "not run: batch_expired"),
    "cancelled": ({"response": None, "error": {"code": "batch_cancelled", "message": ""}}, "not run: batch_cancelled"),
    "other error": ({"response": None, "error": {"code": "x", "message": "broke"}}, '"broke"'),
    "bad request": (
        {"response": {"status_code": 400, "body": {"error": {"message": "too long"}}}, "error": None},
        'status 400: "too long"',
    ),
    "vllm, a text": ({"response": {"status_code": 400, "body": None}, "error": "bad prompt"}, '"bad prompt"'),
    "vllm, an object": (
        {"response": {"status_code": 400, "body": None}, "error": {"error": {"message": "bad", "code": 400}}},
        '"bad"',
    ),
    **{
        f"a code of {code}": ({"response": None, "error": {"code": code, "message": "no"}}, '"no"')
        for code in ({"a": 1}, ["x"], 7, None)
    },
    "nothing": ({"response": None, "error": None}, "no response and no error"),
    "no choices": (
        {"response": {"status_code": 200, "body": {"choices": []}}, "error": None},
        "the reply is of no use: 0 choices, and 1 were asked for",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_a_failure_is_named_and_no_answer(tmp_path, name):
    line, said = ERRORS[name]
    answers = join(make(), tmp_path, [write(tmp_path, "1.jsonl", {"custom_id": IDS[1], **line}, ok(IDS[0]))])
    assert answers.failures == {IDS[1]: said}
    assert answers.missing() == IDS[1:]


def test_failures_are_kept_too(tmp_path):
    """Another start of the command says them again, and counts them as what they are; an answer takes their place."""
    lines = [
        {"custom_id": IDS[0], **ERRORS["expired"][0]},
        {"custom_id": IDS[1], **ERRORS["bad request"][0]},
        ok(IDS[2]),
    ]
    first = join(make(), tmp_path, [write(tmp_path, "1.jsonl", *lines)])
    again = join(make(), tmp_path)
    assert (again.failures, again.tried) == (first.failures, first.tried) == (
        {IDS[0]: "not run: batch_expired", IDS[1]: 'status 400: "too long"'}, {IDS[1]},
    )  # fmt: skip
    later = join(make(), tmp_path, [write(tmp_path, "2.jsonl", ok(IDS[1], "b"))])
    assert list(join(make(), tmp_path).failures) == list(later.failures) == [IDS[0]]
    assert texts(later) == {IDS[1]: "b", IDS[2]: "Paris"}


@pytest.mark.parametrize("order", [1, -1])
def test_an_answer_counts_whenever_a_failure_is_said(tmp_path, order):
    lines = [ok(IDS[0]), {"custom_id": IDS[0], **ERRORS["expired"][0]}][::order]
    answers = join(make(), tmp_path, [write(tmp_path, "1.jsonl", *lines)])
    assert answers.failures == {}
    assert IDS[0] not in answers.missing()


def test_the_same_answer_twice_is_one(tmp_path):
    """Ids, times and counts of tokens are those of the reply, not of what was answered."""
    files = [write(tmp_path, f"{name}.jsonl", ok(IDS[0]), ok(IDS[0])) for name in "ab"]
    answers = join(make(), tmp_path, files)
    assert (answers.repeated, answers.new, answers.tally["prompt_tokens"]) == (3, 1, 10)
    assert join(make(), tmp_path, files).repeated == 4


def test_two_different_answers_are_refused_and_nothing_is_changed(tmp_path):
    first = write(tmp_path, "1.jsonl", ok(IDS[1]), ok(IDS[0]))
    second = write(tmp_path, "2.jsonl", ok(IDS[0], "Rome"), ok(IDS[1], "Oslo"))
    with pytest.raises(DatasetIntegrityError) as raised:
        join(make(), tmp_path, [first, second])
    assert [str(p.location) for p in raised.value.problems] == [f"{second}:1: custom_id", f"{second}:2: custom_id"]
    assert raised.value.problems[0].message == f"another result for {IDS[0]} stands in {first}:2"
    assert not (tmp_path / ANSWERS).exists()
    join(make(), tmp_path, [first])
    before = (tmp_path / ANSWERS).read_bytes()
    with pytest.raises(DatasetIntegrityError, match=f"another result for {IDS[0]} stands in .*{ANSWERS}:2"):
        join(make(), tmp_path, [second])
    assert (tmp_path / ANSWERS).read_bytes() == before


@pytest.mark.parametrize(("line", "kind", "said"), [
    ("{", DatasetSyntaxError, "1.jsonl:2: not JSON"),
    ('{"custom_id": "d-1-0-none", "resp', DatasetSyntaxError, "1.jsonl:2: not JSON"),
    ("[]", DatasetSyntaxError, "1.jsonl:2: expected an object"),
    ('{"response": null}', DatasetSyntaxError, "1.jsonl:2: custom_id: expected a text, got null"),
    ('{"custom_id": "d-1-0-none", "response": 3}', DatasetSyntaxError, "1.jsonl:2: response: expected an object"),
    ('{"custom_id": "d-1-0-none", "url": "/v1", "body": {}}', DatasetSyntaxError, "1.jsonl:2: this is a request"),
    (json.dumps(ok("other-1-0-none")), DatasetIntegrityError, "'other-1-0-none' is no request of"),
])  # fmt: skip
def test_what_is_no_result_of_these_requests_is_refused(tmp_path, line, kind, said):
    path = tmp_path / "1.jsonl"
    path.write_text(json.dumps(ok(IDS[0])) + "\n" + line + "\n")
    with pytest.raises(kind, match=said):
        join(make(), tmp_path, [path])
    assert sorted(tmp_path.iterdir()) == [tmp_path / COMMIT_LOCK, path]


def test_a_hint_that_problems_share_is_said_once(tmp_path):
    with pytest.raises(DatasetIntegrityError) as caught:
        join(make(), tmp_path, [write(tmp_path, "1.jsonl", ok("x"), ok("y"), ok("z"))])
    *lines, hint = str(caught.value).splitlines()
    assert [line.partition(": custom_id: ")[2][:7] for line in lines] == ["'x' is ", "'y' is ", "'z' is "]
    assert hint == "  hint: these are results of other requests, or of an earlier version of the dataset"


def test_kept_answers_are_read_however_they_were_written(tmp_path):
    """Somebody may look through the file, and save it again."""
    answers = join(make(), tmp_path, [write(tmp_path, "1.jsonl", *[ok(id_, id_) for id_ in IDS])])
    lines = [json.loads(line) for line in answers.path.read_text().splitlines()]
    write(tmp_path, ANSWERS, lines[0], *lines)
    assert answers.path.write_text(answers.path.read_text().replace(":", ": "))
    assert texts(join(make(), tmp_path)) == {id_: id_ for id_ in IDS}
    for damaged, said in (
        ({"custom_id": IDS[0], "bodi": {}}, "no response and no error"), (ok("x"), "custom_id: 'x' is no request of .*"),
    ):  # fmt: skip
        write(tmp_path, ANSWERS, damaged, *lines[1:])
        with pytest.raises(DatasetError, match=f"{ANSWERS}:1: {said}\n  hint: remove {ANSWERS}"):
            join(make(), tmp_path)
    answers.path.write_bytes(b"")
    assert join(make(), tmp_path).missing() == IDS


def test_two_commands_at_once_keep_the_answers_of_both(tmp_path):
    first, second = write(tmp_path, "1.jsonl", ok(IDS[0])), write(tmp_path, "2.jsonl", ok(IDS[1]))
    with ThreadPoolExecutor(1) as other:
        with locked(tmp_path):
            waiting = other.submit(join, make(), tmp_path, [second])
            with pytest.raises(TimeoutError):
                waiting.result(timeout=0.2)
            first.rename(tmp_path / ANSWERS)  # as the command that holds the lock leaves them
        assert waiting.result().missing() == join(make(), tmp_path).missing() == IDS[2:]


def test_answers_are_counted_by_what_they_say_of_themselves(tmp_path):
    cut = ok(IDS[0])
    cut["response"]["body"]["created"] = 10**400  # a number of any size is kept
    cut["response"]["body"]["choices"][0]["finish_reason"] = "length"
    filtered = ok(IDS[1], None)
    filtered["response"]["body"]["choices"][0]["finish_reason"] = "content_filter"
    refused = ok(IDS[2], None, refusal="No.")
    tally = join(make(), tmp_path, [write(tmp_path, "1.jsonl", cut, filtered, refused, ok(IDS[3], ""))]).tally
    assert [tally[name] for name in ("truncated", "filtered", "refused", "empty")] == [1, 1, 1, 2]
    assert join(make(), tmp_path).missing() == []
