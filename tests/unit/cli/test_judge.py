"""Judges are asked by files and live, about the answers of a finished run; what they say comes back on its rows."""

import json
import re
from pathlib import Path

import pytest
import request_states_files as files
from judge_commands import find_run, read_judgements, run
from openai_server import answer_file, envelope, serve, write_lines

pytestmark = pytest.mark.long

ROWS = 12
WRONG = {3, 7}
REFUSED, UNCLEAR, CUT = 5, 6, 8
"""Rows whose judge refuses, says two things, and is cut off."""


def write_answers(path: Path, wrong=WRONG) -> None:
    rows = [files.state(f"{n} + 1?", str(n + 1), id=f"r{n}", split="test") for n in range(ROWS)]
    said = [files.answered(row, f"It is {n + 2 if n in wrong else n + 1}.") for n, row in enumerate(rows)]
    files.write(path, said, name="sums")


def judge(path, body):
    """Answer as a judge that is right: by the numbers that the prompt shows between its lines."""
    prompt = body["messages"][-1]["content"]
    question, *others = re.findall(r"\[BEGIN \w+(?: \w)? \w+\]\n(.*?)\n\[END", prompt, re.DOTALL)
    number = int(question.split()[0])
    message, reason = {"role": "assistant", "refusal": None}, "stop"
    if "CHOICE" in prompt:
        message["content"] = "CHOICE: A"  # whatever stands first
    elif number == REFUSED:
        message |= {"content": None, "refusal": "I cannot help with that."}
    else:
        is_right = str(number + 1) in re.findall(r"\d+", others[-1])
        said = "GRADE: C" if is_right else "GRADE: I"
        message["content"] = "GRADE: C\nGRADE: I" if number == UNCLEAR else f"I compared them.\n\n{said}"
        reason = "length" if number == CUT else "stop"
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": reason}
    return 200, envelope(body, "chat.completion", [choice], (len(prompt.split()), 7))


@pytest.fixture(scope="module")
def server():
    with serve() as running:
        running.instead = judge
        yield running


@pytest.fixture
def folder(tmp_path, monkeypatch, server):
    monkeypatch.chdir(tmp_path)
    server.asked.clear()
    write_answers(tmp_path / "sums.json")
    run("score", "sums.json", "--model", "one")
    args = {"base_url": f"{server.url}/v1", "endpoint": "chat"}
    spec = {"class_name": "helm_ext.clients.OpenAICompatibleClient", "args": args}
    (tmp_path / "prod_env").mkdir(exist_ok=True)
    deployments = [{"name": name, "client_spec": spec} for name in ("org/judge", "org/other")]
    (tmp_path / "prod_env/model_deployments.yaml").write_text(json.dumps({"model_deployments": deployments}))
    (tmp_path / "prod_env/prices.yaml").write_text("org/judge: {in: 1.0, out: 2.0}\n")
    return tmp_path


def check_correct(judgements: dict[str, list[dict]], by="org/judge") -> None:
    assert len(judgements) == ROWS
    for n in range(ROWS):
        [one] = [one for one in judgements[f"r{n}"] if one["by"] == by]
        status = {REFUSED: "refused", UNCLEAR: "unparsed", CUT: "unparsed"}.get(n, "ok")
        assert (one.get("status", "ok"), one.get("value")) == (
            status,
            float(n not in WRONG) if status == "ok" else None,
        ), (n, one)
        assert one["kind"] == "model"
        assert one["criterion"] == "correct"
        assert one["model_version"] == f"{by.partition('/')[2]}-2026-01-01"
        assert one["tokens"]["out"] == 7
        assert one["reply"]


def test_out_and_in(folder, server):
    scored = find_run()
    out = ("--rubric", "correct.toml", "--judge", "org/judge", "--prices", "1,2")
    said = run("judge", "out", scored.parent, *out, code=1)
    assert f"a suite of 1 run: which one?\n  hint: name it: {scored.parent}" in said
    said = run("judge", "out", scored, *out)
    assert "12 requests in 1 file" in said
    assert "cost:" in said
    asked = Path("judging/org_judge")
    assert [path.name for path in Path("judging").iterdir()] == ["org_judge"]
    results = answer_file(server, asked / "requests-1-0001.jsonl")
    write_lines(Path("some.jsonl"), results[:7])
    assert "absent.jsonl: no such file" in run("judge", "in", asked, "absent.jsonl", code=1)
    assert "5 answers without a reply" in run("judge", "in", asked, "some.jsonl", code=1)
    said = run("judge", "out", "--only-missing", "--out", asked)
    assert "5 of 12 requests have no answer" in said
    write_lines(Path("rest.jsonl"), answer_file(server, asked / "requests-2-0001.jsonl"))
    said = run("judge", "in", asked, "rest.jsonl", "--prices", "1,2")
    assert "correct by org/judge: 9 ok, 2 unparsed, 1 refused" in said
    assert "Looking in path" not in said  # as HELM says of its own affairs
    judgements = read_judgements(find_run("judged"))
    check_correct(judgements)
    cost = judgements["r1"][0]["tokens"]
    assert judgements["r1"][0]["cost"] == pytest.approx((cost["in"] + 2 * 7) / 1e6)
    # Replies are read again by another rule, and nobody is asked.
    number = len(server.asked)
    rubric = Path(__file__).parents[3] / "src/helm_ext/judging/rubrics/correct.toml"
    Path("mine.toml").write_text(rubric.read_text().replace('keys = ["grade"]', 'keys = ["verdict"]'))
    assert "correct by org/judge: 11 unparsed, 1 refused" in run("judge", "in", asked, "--rubric", "mine.toml")
    Path("other.toml").write_text(rubric.read_text().replace("You grade", "You  grade"))
    assert "it asks something else" in run("judge", "in", asked, "--rubric", "other.toml", code=1)
    assert len(server.asked) == number
    # An answer that was edited since is not the one that was judged.
    state = scored / "scenario_state.json"
    state.write_text(state.read_text().replace("It is 2.", "It is 3."))
    assert "the request of row r1 is another one" in run("judge", "in", asked, code=1)


def test_a_jury_is_asked_live_and_not_twice(folder, server):
    arguments = ["judge", "ask", find_run(), "--rubric", "correct", "--judge", "org/judge", "--judge", "org/other"]
    said = run(*arguments)
    assert "correct by org/judge: 9 ok, 2 unparsed, 1 refused" in said
    assert "correct by org/other: 9 ok, 2 unparsed, 1 refused" in said
    assert len(server.asked) == 2 * ROWS
    judgements = read_judgements(find_run("judged"))
    check_correct(judgements)
    check_correct(judgements, "org/other")
    assert judgements["r1"][0]["cost"] > 0
    assert "cost" not in judgements["r1"][1]  # nobody said what it costs
    run(*arguments)
    assert len(server.asked) == 2 * ROWS
    assert {len(one) for one in read_judgements(find_run("judged", -1)).values()} == {2}


def test_a_judge_that_nobody_added_is_not_asked(folder):
    said = run("judge", "ask", find_run(), "--rubric", "correct", "--judge", "org/unknown", code=1)
    assert "--judge org/unknown: there is no such model\n  hint: helm-ext model add org/unknown" in said


def test_live_limits_are_kept(folder, monkeypatch):
    monkeypatch.setenv("HELM_EXT_MAX_TOKENS", "10")
    said = run("judge", "ask", find_run(), "--rubric", "correct", "--judge", "org/judge", code=1)
    assert "and the limit is 10" in said


def test_a_judge_that_always_takes_the_first_is_worth_a_half(folder):
    write_answers(Path("sums.json"), wrong={1, 2})
    run("score", "sums.json", "--model", "two", "--suite", "other")
    one, two = find_run(), find_run("other")
    assert "--against RUN" in run("judge", "ask", one, "--rubric", "better", "--judge", "org/judge", code=1)
    run("judge", "ask", one, "--rubric", "better", "--against", two, "--swap", "--judge", "org/judge")
    rows = read_judgements(find_run("judged"))
    assert all(
        [(one["order"], one["value"]) for one in row] == [("given", 1.0), ("swapped", 0.0)] for row in rows.values()
    )
    # A sheet shows one answer: labels of pairs are made elsewhere.
    for more in ((), ("--rubric", "better")):
        assert "better: it compares two answers" in run("judge", "sheet", find_run("judged"), *more, code=1)
    Path("mine.csv").write_text("id,label\n" + "".join(f"r{n},0.5\n" for n in range(5)))
    assert "mine.csv: 5 labels" in run("judge", "labels", "mine.csv", find_run("judged"), "--design", "random")


def test_requests_of_judges_and_of_runs_are_not_mixed_up(folder):
    run("judge", "out", find_run(), "--rubric", "correct", "--judge", "org/judge", "--judge", "org/other")
    assert "helm-ext judge in judging/org_judge" in run("requests", "in", "judging/org_judge", code=1)
    assert "one judge at a time: org_judge, org_other" in run("judge", "in", "judging", code=1)
    assert "requests are there already" in run(
        "judge", "out", find_run(), "--rubric", "correct", "--judge", "org/judge", code=1
    )
