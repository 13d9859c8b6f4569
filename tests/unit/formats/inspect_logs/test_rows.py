"""What of a log becomes a row, an answer, a failure, a count; and which logs are refused."""

import json
import math

import pytest
from tests.inspect_files import (
    header,
    open_log,
    read_row,
    read_rows,
    sample,
    score,
    with_config,
    with_eval,
    write_eval,
    write_json,
    write_zstandard,
)

from helm_ext.errors import DatasetError
from helm_ext.formats import get_format

# Answers


def output(content, completion="", stop="stop", **message):
    choice = {"message": {"role": "assistant", "content": content, **message}, "stop_reason": stop}
    return {"output": {"choices": [choice], "completion": completion}}


def with_logprobs(*values):
    made = output("Anda")
    made["output"]["choices"][0]["logprobs"] = {"content": [{"token": "x", "logprob": value} for value in values]}
    return made


def thought(**part):
    return {"type": "reasoning", **part}


def said(text):
    return {"type": "text", "text": text}


@pytest.mark.parametrize(("changes", "expected"), [
    (output([thought(reasoning="East?"), said("An"), said("da")]), {"text": "An\nda", "thinking": "East?"}),
    (output([thought(reasoning="x9f", redacted=True, summary="about rivers")]), {"text": "", "thinking": "about rivers"}),
    (output("And", stop="max_tokens"), {"finish_reason": "length", "is_refusal": False}),
    (output("And", stop="model_length"), {"finish_reason": "length", "is_refusal": False}),
    (output("And", stop="stop"), {"finish_reason": "stop", "is_refusal": False}),
    (output("", stop="content_filter"), {"text": "", "is_refusal": True}),
    (with_logprobs(-0.5, -0.25), {"logprob": -0.75}),
    ({"output": {"choices": [], "completion": "Anda"}}, {"text": "Anda", "finish_reason": ""}),
])  # fmt: skip
def test_what_is_read_of_an_output(tmp_path, changes, expected) -> None:
    (answer,) = read_row(tmp_path, [sample(**changes)]).answers
    assert {name: getattr(answer, name) for name in expected} == expected


SUBMIT = ("submit", {"answer": "Anda"})


@pytest.mark.parametrize(("said", "completion", "calls", "answer"), [
    # What basic_agent and react of inspect_ai 0.3.285 leave, by how `submit` is set up; mockllm says so beside a call.
    ("tool call for tool submit", "Anda", [SUBMIT], "Anda"),
    ("tool call for tool submit\n\nAnda", "tool call for tool submit\n\nAnda", [SUBMIT], "Anda"),
    ("Anda", "Anda\n\nAnda", [SUBMIT], "Anda"), ("I submit.", "I submit.\n\nAnda", [SUBMIT], "Anda"),
    ("I submit.", "Anda", [("hand_in", {"text": "Anda"})], "Anda"),
    ("", "4", [("submit", {"answer": 4})], "4"),
    # The solver did not take the answer out of the call.
    ("tool call for tool submit", "tool call for tool submit", [SUBMIT], "Anda"),
    ("", "", [SUBMIT], "Anda"),
    # A solver of its own made the completion, or a tool was called that submits nothing.
    ("", "the river Anda", [SUBMIT], "the river Anda"),
    ("I look it up.", "I look it up.", [("look_up", {"town": "1"})], "I look it up."),
    ("tool call for tool look_up", "tool call for tool look_up", [("look_up", {"town": "1", "n": 2})], ""),
])  # fmt: skip
def test_the_answer_of_an_agent_is_what_it_submits(tmp_path, said, completion, calls, answer) -> None:
    made = [{"id": "1", "function": name, "arguments": arguments} for name, arguments in calls]
    (found,) = read_row(tmp_path, [sample(**output(said, completion, tool_calls=made))]).answers
    assert found.text == answer


@pytest.mark.parametrize(("changes", "reason"), [
    ({"error": {"message": "no route"}}, "error: no route"),
    ({"output": {"choices": [], "completion": ""}}, "no output"),
    ({"output": {"choices": []}, "limit": {"type": "time", "limit": 3}}, "limit: time"),
])  # fmt: skip
def test_what_has_no_answer_failed(tmp_path, changes, reason) -> None:
    row = read_row(tmp_path, [sample(**changes)])
    assert (row.failed, row.answers) == (reason, None)
    assert row.source_scores == {"match": 1.0}


# Questions


def test_conversations_stay_conversations(tmp_path) -> None:
    turns = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": [{"type": "text", "text": "?"}]}]
    opened = open_log(write_json(tmp_path, [sample(input=turns), sample(2)]))
    assert opened.adapter_spec == {"method": "chat"}
    assert next(opened.rows()).question == [{**turns[0]}, {"role": "user", "content": "?"}]


@pytest.mark.parametrize("protocol", ["attachment", "tc"])
def test_attachments_are_put_back(tmp_path, protocol) -> None:
    apart = {"attachments": {"9f": "A long question"}} if protocol == "attachment" else {
        "transcript": {"content": {"9f": "A long question"}, "events": []}}  # fmt: skip
    assert read_row(tmp_path, [sample(input=f"{protocol}://9f", **apart)]).question == "A long question"


def test_any_of_several_targets_is_right_and_none_is_no_score(tmp_path) -> None:
    rows = read_rows(
        write_json(tmp_path, [sample(target=["Anda", "ANDA"]), sample(2, target=""), sample(3, target=[])])
    )
    assert [row.gold for row in rows] == [["Anda", "ANDA"], [], []]
    assert [bool(row.unscored) for row in rows] == [False, True, True]


def test_where_no_sample_has_a_target_the_logs_own_score_is_the_main_one(tmp_path) -> None:
    samples = [sample(1, target=""), sample(2, target=[], value="I")]
    head = {**header(), "results": {"scores": [score("match", accuracy=0.5)]}}
    evalset = get_format("inspect").load(path=str(write_json(tmp_path, samples, head)))
    assert evalset.scoring.main_metric == "inspect_match"
    assert evalset.counts["recorded"] == 2


# Epochs


def test_epochs_are_answers_of_one_row_in_their_order(tmp_path) -> None:
    samples = [sample("a", 2, "two", "I"), sample("b", 1, "other"), sample("a", 1, "one", "C")]
    opened = open_log(write_json(tmp_path, samples, with_config(epochs=2)))
    first, other = opened.rows()
    assert [answer.text for answer in first.answers] == ["one", "two"]
    assert first.source_scores == {"match": 0.5, "match@answers": 2, "match@noise": 0.25}  # (1/2)^2 / (2 - 1)
    assert other.source_scores == {"match": 1}
    assert (other.id, opened.scoring) == ("b", {"completions": "mean"})


@pytest.mark.parametrize(("reducers", "completions"), [
    (None, "mean"), (["mode"], "mode"), (["mine", "max"], "max"), (["pass_at_2", "mean"], "pass_at_2"), ([], "mean"),
])  # fmt: skip
def test_our_scores_of_epochs_are_reduced_as_the_logs_are(tmp_path, reducers, completions) -> None:
    samples = [sample(), sample(epoch=2)]
    assert (
        open_log(write_json(tmp_path, samples, with_config(epochs_reducer=reducers))).scoring["completions"]
        == completions
    )


def test_means_over_all_epochs_are_not_compared_where_rows_have_fewer(tmp_path) -> None:
    samples = [sample(), sample(epoch=2, value="I"), sample(2)]
    opened = open_log(write_json(tmp_path, samples, with_config(epochs_reducer=[])))
    list(opened.rows())
    assert opened.source.scores["match"].mean is None


def test_an_epoch_that_failed_is_left_out_of_its_row_and_counted(tmp_path) -> None:
    failed = sample(epoch=2, scores={}, error={"message": "x"})
    opened = open_log(write_json(tmp_path, [sample(), failed, sample(epoch=3, value="I")]))
    (row,) = opened.rows()
    assert (len(row.answers), row.failed, row.source_scores["match"]) == (2, "", 0.5)
    assert row.source_scores["match@answers"] == 2
    assert opened.source.counts["failed_epochs"] == 1


def test_what_the_log_scored_of_failed_samples_is_part_of_its_own_scores_alone_and_said(tmp_path) -> None:
    samples = [sample(), sample(2, error={"message": "x"})]  # as score_on_error scores it: C
    opened = open_log(write_json(tmp_path, samples))
    assert [(row.failed, row.source_scores) for row in opened.rows()] == [
        ("", {"match": 1.0}),
        ("error: x", {"match": 1.0}),
    ]
    assert (opened.source.counts["failed_scored"], opened.source.notes) == (
        1,
        ["1 failed sample has scores in the log: its own scores count them, ours do not"],
    )


def test_of_an_epoch_that_stands_twice_in_a_zip_the_last_counts(tmp_path) -> None:
    with pytest.warns(UserWarning, match="Duplicate name"):
        path = write_eval(tmp_path, [sample(text="first"), sample(text="last")])
    opened = open_log(path)
    (row,) = opened.rows()
    assert (row.answers[0].text, opened.source.counts) == ("last", {"lines": 1, "duplicates": 1})


# Scores


def test_the_only_score_of_old_logs(tmp_path) -> None:
    old = {**header(), "results": {"scorer": {"name": "match"}, "metrics": {"accuracy": {"value": 1.0}}}}
    made = sample(score={"value": "C"})
    del made["scores"]
    opened = open_log(write_json(tmp_path, [made], old))
    assert [row.source_scores for row in opened.rows()] == [{"match": 1.0}]
    assert opened.source.scores["match"].mean == 1.0


# Logs as wholes


def test_either_kind_of_log_has_the_same_rows(tmp_path) -> None:
    """Ids: 1 and "1" are two, and may look like names of members. NaN is unscored, and null in what is kept."""
    ids = [1, "1", "a/b", "x_epoch_2", "y_epoch_1/messages/0"]
    samples = [sample(id, metadata={"side": "east", "size": [id, math.nan]}) for id in ids]
    samples[2]["scores"]["match"]["value"] = math.nan
    (tmp_path / "turned.json").write_text(json.dumps({"samples": samples, **header()}))
    for path in (write_json(tmp_path, samples), write_eval(tmp_path, samples[1:]), tmp_path / "turned.json"):
        opened = open_log(path)
        rows = list(opened.rows())
        assert [row.id for row in rows] == ids[-len(rows) :]
        assert [row.data for row in rows] == [{"side": "east", "size": [id, None]} for id in ids[-len(rows) :]]
        assert [row.source_scores["match"] for row in rows[-3:]] == [None, 1.0, 1.0]
        assert opened.source.counts["source_unscored"] == 1


EDITED = {"match": {"value": "I", "history": [{"value": "C"}]}}
SEEN = {"role": "user", "content": [said("What is it?"), {"type": "image", "image": "data:..."}]}
LIMITED = with_eval(dataset={"samples": 8}, config={"epochs": 2})
PARTLY = header(results={"completed_samples": 100, "scores": [score("match", accuracy=0.25)]})


@pytest.mark.parametrize(("changes", "head", "note", "counted"), [
    ({}, LIMITED, "the log holds 1 of 16 samples of the dataset (samples times epochs): a limit", {}),
    ({}, PARTLY, "the log holds 1 of the 100 samples that its own scores are about", {}),
    ({"scores": EDITED}, header(), "1 sample has a score that was edited afterwards", {"edited": 1}),
    ({"invalidation": {"author": "x"}}, header(), "1 sample is marked as invalid, and scored", {"invalidated": 1}),
    ({"input": [SEEN]}, header(), "1 image or file in messages: a word stands for each", {"media": 1}),
])  # fmt: skip
def test_what_must_be_known_of_a_log_is_said_and_counted(tmp_path, changes, head, note, counted) -> None:
    opened = open_log(write_json(tmp_path, [sample(**changes)], head))
    (row,) = opened.rows()
    assert note in opened.source.notes
    assert opened.source.counts == {"lines": 1, **counted}
    if "input" in changes:
        assert row.question[0]["content"] == "What is it?\n[image]"


def test_a_run_that_has_not_ended_is_refused_unless_it_is_asked_for(tmp_path) -> None:
    format_ = get_format("inspect")
    for status in ("cancelled", "error", "started"):
        path = str(write_json(tmp_path, [sample()], header(status=status)))
        evalset = format_.load(path=path)
        with pytest.raises(DatasetError, match=f"its status is {status}"):
            format_.plan({"path": path}, evalset)
        with pytest.raises(DatasetError, match=f"its status is {status}"):
            format_.plan({"path": path, "missing": "error"}, evalset)
        assert format_.plan({"path": path, "missing": "skip"}, evalset)
        problems, _ = format_.check(path=path)
        assert any(status in problem.message and problem.severity == "warning" for problem in problems)


def test_a_run_that_was_killed_has_no_header(tmp_path) -> None:
    members = {"_journal/start.json": json.dumps({**header(), "status": None}).encode(),
               "samples/1_epoch_1.json": json.dumps(sample()).encode()}  # fmt: skip
    opened = open_log(write_zstandard(tmp_path / "log.eval", members))
    assert opened.source.settings["status"] == "started"
    assert len(list(opened.rows())) == 1


@pytest.mark.parametrize("version", [1, 2, 3, None])
def test_known_versions(tmp_path, version) -> None:
    head = {key: value for key, value in header(version=version).items() if value is not None}
    assert len(read_rows(write_json(tmp_path, [sample()], head))) == 1


def of(*samples, **head):
    """What writes a log of these samples, with other values in its header."""
    return lambda folder: write_json(folder, list(samples), header(**head))


def doubled(key):
    """What writes a log of one sample that has a key a second time, with another value before it."""
    text = json.dumps(sample(metadata={})).replace(f'"{key}": ', f'"{key}": null, "{key}": ', 1)
    return lambda folder: write_zstandard(
        folder / "log.eval",
        {"header.json": json.dumps(header()).encode(), "samples/1_epoch_1.json": text.encode()},
    )


def members(**given):
    """What writes a ZIP of these members."""
    named = {name.replace("__", "/"): json.dumps(value).encode() for name, value in given.items()}
    return lambda folder: write_zstandard(folder / "log.eval", {f"{name}.json": data for name, data in named.items()})


CONTENT = {"output": {"choices": [{"message": {"content": 3}}]}}
FAILED = (sample(id, error={"message": "no route"}) for id in (1, 2))


@pytest.mark.parametrize(("write", "said"), [
    (of(sample(input="attachment://9f")), 'no attachment "attachment://9f"'),
    (of(sample(), sample()), "log.json:[0-9]+: epoch 1 of sample 1 stands there twice"),
    (of(sample(), sample(epoch=2, input="?")), "ask different questions"),
    (of(*FAILED), "no row has an answer that can be scored: 2 failed"),
    (of(), "there are no samples"),
    (lambda folder: write_json(folder, None), "there are no samples"),
    (lambda folder: write_eval(folder, []), "there are no samples"),
    (members(header=header(), samples__notes={}), "samples/notes.json: no sample"),
    (members(other={}), "a ZIP without header.json"),
    *((doubled(key), f'the key "{key}" is given twice in one object') for key in ("metadata", "value")),
    (of(sample(), version=4), "log.json: version: logs of version 4 are not known"),
    (of(sample(), version=""), 'log.json: version: logs of version ""'),
    (of(sample(), version=True), "logs of version true"),
    (of(sample(), status="paused"), 'status: expected "started" or'),
    (of(sample(), eval={"model": "m"}), "log.json: eval.task: no log of inspect_ai: without eval.task"),
    (of(sample(), eval={"task": "t", "model": 3}), "eval.model: expected a string, got 3"),
    (of(sample(), plan=[]), "plan: expected an object"), (of(sample(target=3)), "log.json:[0-9]+: target: expected"),
    (of(sample(None)), "log.json:[0-9]+: id: expected"),
    (of(sample(scores={"match": "C"})), 'log.json:[0-9]+: scores.match: expected an object, got "C"'),
    (of(sample(**CONTENT)), r"log.json:[0-9]+: output.choices\[0\].message.content: expected a string or a list, got 3"),
    (lambda folder: write_eval(folder, [sample(target=3)]), "log.eval: samples/1_epoch_1.json:1: target: expected"),
])  # fmt: skip
def test_what_is_refused_and_where(tmp_path, write, said) -> None:
    with pytest.raises(DatasetError, match=said):
        get_format("inspect").load(path=str(write(tmp_path)))
