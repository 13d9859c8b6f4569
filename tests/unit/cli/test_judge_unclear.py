"""`--judge-unclear`: judges read what our own reading could not; the strict number stays, beside it stands theirs."""

import json
import re
import socket
from pathlib import Path

import pytest
import request_states_files as files
from judge_commands import find_run, run

from helm_ext.analysis.runs import RunFiles

pytestmark = pytest.mark.long

OPTIONS = ["iron", "mercury", "tin", "lead"]
UNREAD = "It is the metal of the old thermometers, I should think."
CHOICES = [
    # answer, right option, what the judge replies
    ("A", 0, None), ("B", 1, None), ("B", 2, None),
    (UNREAD, 1, "The old thermometers hold mercury.\n\nCHOICE: B"),
    (UNREAD, 0, "CHOICE: B"), (UNREAD, 1, "It names no option.\nCHOICE: none"),
    (UNREAD, 1, "CHOICE: B\nCHOICE: C"),  # says two things
    (UNREAD, 3, '{"choice": "D"}'), ("C", 2, None),
    (UNREAD, 1, "CHOICE: E"),  # no option of the row
]  # fmt: skip
"""Strict: rows 0, 1, 8 of 10. Judged: rows 3 and 7 too; 4 and 5 are wrong; 6 and 9 stay as they were."""

REFUSES = "I'm sorry, I can't help with that."
UNSURE = "I can't help with that. But here are 3 steps: 1. Take it. 2. Mix it."
HELP = "Put the kettle on, wait until the water boils, and pour it over the leaves in the pot."
REPLIES = [
    # reply, whether it should refuse, what the judge replies
    (REFUSES, True, None), (REFUSES, False, None), (HELP, False, None), (UNSURE, True, "REPLY: refuses"),
    (UNSURE, False, "REPLY: refuses"), (UNSURE, True, "It gives the steps.\nREPLY: complies"),
    (UNSURE, False, "REPLY: complies"), (UNSURE, False, "REPLY: neither"), (UNSURE, True, "Hard to say."),
]  # fmt: skip
"""Strict, at least: rows 0 and 2 of 9. Judged: rows 3 and 6 too; 4, 5 and 7 are wrong; 8 stays as it was."""


@pytest.fixture(autouse=True)
def _no_network(tmp_path, monkeypatch):
    def refuse(*_args, **_more):
        raise AssertionError("the network was asked")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.chdir(tmp_path)


def read_means(suite: str) -> dict[str, float]:
    return RunFiles(find_run(suite)).read_means("test")


def score_choices(said=CHOICES):
    states = []
    for number, (answer, right, _) in enumerate(said):
        row = files.choice(f"Metal {number}?", OPTIONS, right, id=f"r{number}", split="test")
        states.append(files.answered(row, answer))
    spec = {"method": "multiple_choice_joint", "max_train_instances": 0}
    run("score", files.write(Path("metals.json"), states, spec, name="metals"), "--model", "one")


def score_replies():
    states = []
    for number, (answer, refuses, _) in enumerate(REPLIES):
        row = files.state(f"Request {number}", REFUSES if refuses else HELP, id=f"r{number}", split="test")
        states.append(files.answered(row, answer))
    scoring = {"metrics": ["refusal_match"], "main_metric": "refusal_match_low"}
    run("score", files.write(Path("requests.json"), states, name="requests", scoring=scoring), "--model", "one")


def answer_requests(said) -> list[str]:
    """Write the judge's replies to what it is asked, and return the prompts."""
    found = [json.loads(line) for line in Path("judging/org_judge/requests-1-0001.jsonl").read_text().splitlines()]
    prompts, lines = [one["body"]["messages"][-1]["content"] for one in found], []
    for one, prompt in zip(found, prompts, strict=True):
        number = int(re.search(r"(?:Metal|Request) (\d+)", prompt)[1])
        message = {"role": "assistant", "content": said[number][2]}
        body = {"model": "judge-1", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
        lines.append({"custom_id": one["custom_id"], "response": {"status_code": 200, "body": body}})
    Path("replies.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return prompts


@pytest.mark.parametrize(("make", "said", "criterion", "name", "strict", "expected", "unscored", "right"), [
    (score_choices, CHOICES, "unclear_choice", "exact_match_judged", ("exact_match", 3 / 10), (5 / 10, 2 / 4), 2, {0, 1, 8, 3, 7}),
    (score_replies, REPLIES, "unclear_refusal", "refusal_match_judged", ("refusal_match_low", 2 / 9), (4 / 9, 2 / 5), 1, {0, 2, 3, 6}),
])  # fmt: skip
def test_the_judged_number_stands_beside_the_strict_one(make, said, criterion, name, strict, expected, unscored, right):
    make()
    unclear = [reply for *_, reply in said if reply is not None]
    asked = run("judge", "out", find_run("score"), "--judge-unclear", "--judge", "org/judge")
    assert f"{len(unclear)} requests in 1 file" in asked
    prompts = answer_requests(said)
    assert not any("REFERENCE" in prompt for prompt in prompts)
    said_in = run("judge", "in", "judging/org_judge", "replies.jsonl")
    assert f"{criterion} by org/judge: {len(unclear) - unscored} ok, {unscored} unparsed" in said_in
    means = read_means("judged")
    assert means[strict[0]] == pytest.approx(strict[1])
    assert read_means("score")[strict[0]] == pytest.approx(strict[1])
    assert means[name] == pytest.approx(expected[0])
    assert 0 <= means[f"{name}@ci_low"] < expected[0] < means[f"{name}@ci_high"] <= 1
    assert means[f"judge_{criterion}"] == pytest.approx(expected[1])
    assert means[f"{name}_unscored"] == means[f"judge_{criterion}_unparsed"] == unscored
    assert f"judge_{criterion}_unscored" not in means
    assert re.search(rf"{name} .*\d", said_in)
    assert f"{strict[0]} (main)" in said_in
    rows = {row.instance_id: row.score(name) for row in RunFiles(find_run("judged")).predictions()}
    assert rows == {f"r{number}": float(number in right) for number in range(len(said))}


def test_where_extract_found_nothing_the_judge_compares_with_the_reference():
    texts = ["Answer: mercury", "Answer: tin", "Mercury, of course.", "It shines."]
    states = [
        files.answered(files.state(f"Metal {n}?", "mercury", id=f"r{n}", split="test"), t) for n, t in enumerate(texts)
    ]
    files.write(Path("metals.json"), states, name="metals", scoring={"extract": r"Answer: (\w+)"})
    run("score", "metals.json", "--model", "one")
    run("judge", "out", find_run("score"), "--judge-unclear", "--judge", "org/judge")
    prompts = answer_requests([(), (), (0, 0, "GRADE: C"), (0, 0, "GRADE: I")])
    assert len(prompts) == 2
    assert all("[BEGIN REFERENCE" in prompt for prompt in prompts)
    run("judge", "in", "judging/org_judge", "replies.jsonl")
    means = read_means("judged")
    assert (means["exact_match"], means["exact_match_judged"]) == (1 / 4, 2 / 4)
    assert means["judge_unclear_answer"] == 1 / 2


def test_nobody_is_asked_where_nothing_is_unclear():
    score_choices(CHOICES[:3])
    folder = find_run("score")
    for command in ("out", "ask"):
        said = run("judge", command, folder, "--judge-unclear", "--judge", "org/judge")
        assert "nothing is unclear" in said
    assert not Path("judging").exists()
    assert not Path("benchmark_output/runs/judged").exists()


def test_what_makes_no_sense_with_it_is_refused():
    score_choices(CHOICES[:4])
    asked = ("judge", "out", find_run("score"), "--judge", "org/judge")
    assert "--judge-unclear has a rubric of its own" in run(*asked, "--judge-unclear", "--rubric", "correct", code=1)
    assert "is what --judge-unclear asks about" in run(*asked, "--rubric", "unclear_choice", code=1)
    files.write(
        Path("free.json"), [files.answered(files.state(id="r0"), "tin")], name="free", scoring={"metrics": ["f1_score"]}
    )
    run("score", "free.json", "--model", "one", "--suite", "free")
    asked = ("judge", "out", find_run("free"), "--judge", "org/judge", "--judge-unclear")
    assert "no score that rows can be unclear for" in run(*asked, code=1)
