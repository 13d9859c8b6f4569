"""Answers kept until a run is complete."""

import json
import math
import os
import resource
from contextlib import suppress
from dataclasses import asdict, replace

import pytest
from helm.benchmark.model_deployment_registry import ClientSpec, ModelDeployment
from helm.common.request import ErrorFlags, GeneratedOutput, Request, RequestResult, Thinking, Token

from helm_ext.clients.client import NotedResult, notes_of
from helm_ext.errors import HelmExtError
from helm_ext.running.ray_runner import KeptAnswers, digest_of

DEPLOYMENT = ModelDeployment("a/b", ClientSpec("c.D", {"base_url": "http://x"}))
REQUEST = Request(model="a/b", model_deployment="a/b", prompt="what?")


def make_result(**changes):
    completion = GeneratedOutput(
        "甲\n\ud800 \x7f", 0, [Token("甲", -0.1), Token("", -math.inf)], {"reason": "stop", "x": None},
        thinking=Thinking("so"),
    )  # fmt: skip
    given = {"success": True, "embedding": [0.5], "completions": [completion], "cached": False, "request_time": 0.1}
    return RequestResult(**{**given, **changes})


def test_answers_come_back_as_they_were(tmp_path):
    results = {
        0: make_result(),
        7: make_result(completions=[], embedding=[], request_datetime=3, batch_size=2, batch_request_time=1),
        2: make_result(error="e", error_flags=ErrorFlags(is_fatal=False)),
    }
    kept = KeptAnswers(tmp_path)
    kept.append((place, f"d{place}", result) for place, result in results.items())
    read = KeptAnswers(tmp_path).read({place: f"d{place}" for place in range(9)})
    assert read == results
    assert repr(read) == repr(results)  # an int is no float, and an infinity one
    kept.remove()
    kept.remove()
    assert list(tmp_path.iterdir()) == []
    assert kept.read({0: "d0"}) == {}


def test_notes_stay_with_their_result(tmp_path):
    noted = NotedResult(**asdict(make_result(completions=[])))
    noted.notes = {"usage": {"prompt_tokens": 3}}
    KeptAnswers(tmp_path).append([(1, "d", noted), (2, "d", make_result())])
    read = KeptAnswers(tmp_path).read({1: "d", 2: "d"})
    assert notes_of(read[1]) == {"usage": {"prompt_tokens": 3}}
    assert notes_of(read[2]) == {}


def test_an_answer_is_that_of_its_request(tmp_path):
    kept = KeptAnswers(tmp_path)
    kept.append([(0, "x", make_result()), (1, "y", make_result())])
    assert kept.read({0: "y", 1: "x", 2: "x"}) == {}
    assert list(kept.read({0: "x"})) == [0]


def test_whatever_changes_an_answer_changes_the_digest():
    others = [
        (replace(REQUEST, prompt="what"), DEPLOYMENT),
        (replace(REQUEST, random="1"), DEPLOYMENT),
        (replace(REQUEST, temperature=0.5), DEPLOYMENT),
        (replace(REQUEST, messages=[{"role": "user", "content": "what?"}]), DEPLOYMENT),
        (REQUEST, replace(DEPLOYMENT, client_spec=ClientSpec("c.D", {"base_url": "http://y"}))),
    ]
    digests = {digest_of(request, deployment) for request, deployment in others}
    assert len(digests) == len(others)
    assert digest_of(REQUEST, DEPLOYMENT) not in digests
    assert digest_of(replace(REQUEST), replace(DEPLOYMENT)) == digest_of(REQUEST, DEPLOYMENT)


def whole_lines(data):
    """Return the places of the lines that are JSON."""
    found = set()
    for line in filter(None, data.split(b"\n")):
        with suppress(ValueError):
            found.add(json.loads(line)["place"])
    return found


def test_any_prefix_of_a_file_gives_its_whole_lines_and_takes_more(tmp_path):
    kept = KeptAnswers(tmp_path)
    kept.append((place, "d", make_result()) for place in range(3))
    data = kept.path.read_bytes()
    digests = dict.fromkeys(range(10), "d")
    for length in range(0, len(data) + 1, 7):
        kept.path.write_bytes(data[:length])
        before = set(kept.read(digests))
        assert before == whole_lines(data[:length])
        kept.append([(9, "d", make_result())])
        assert kept.read(digests).keys() == before | {9}
    assert before == {0, 1, 2}


@pytest.mark.parametrize(
    "line",
    [b"{", b"[]", b"3", b"null", b'{"place":0}', b'{"place":[],"digest":"d"}', b'{"place":0,"digest":"d","result":3}',
     b'{"place":0,"digest":"d","result":{},"notes":{}}', b'{"place":0,"digest":"d","result":{"success":true},"notes":0}',
     b"[" * 100_000, b"\xff\x00"],
)  # fmt: skip
def test_other_lines_are_no_answers(tmp_path, line, caplog):
    kept = KeptAnswers(tmp_path)
    kept.path.write_bytes(line)
    kept.append([(1, "d", make_result())])
    assert kept.read({0: "d", 1: "d"}).keys() == {1}
    assert "1 lines hold no whole answer" in caplog.text


def test_a_full_disk_is_an_error_and_what_was_kept_stays(tmp_path):
    kept = KeptAnswers(tmp_path)
    kept.append([(0, "d", make_result())])
    pid = os.fork()
    if not pid:
        code = 1
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (kept.path.stat().st_size + 50,) * 2)
            try:
                kept.append([(1, "d", make_result())])
            except HelmExtError as error:
                code = 0 if "answers cannot be kept" in str(error) and "hint: make room" in str(error) else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert kept.read({0: "d", 1: "d"}).keys() == {0}
    kept.append([(1, "d", make_result())])
    assert kept.read({0: "d", 1: "d"}).keys() == {0, 1}
