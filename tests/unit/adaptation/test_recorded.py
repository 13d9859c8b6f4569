import dataclasses
import pickle

import helm_states
import pytest
from helm.benchmark.model_deployment_registry import get_model_deployment
from helm.benchmark.scenarios.scenario import Input, Instance
from helm.common.request import Request

from helm_ext import plugin  # noqa: F401 - the plugin registers the deployment generator
from helm_ext.adaptation import recorded, rows
from helm_ext.errors import RecordedError
from helm_ext.evalset import row_extra


def result(text="yes"):
    return recorded.to_request_result({"completions": [{"text": text}]})


def test_any_name_is_a_deployment_and_real_models_keep_their_name(live_deployment):
    mine = get_model_deployment("recorded/mine")
    assert (mine.name, mine.model_name, mine.tokenizer_name) == ("recorded/mine", "recorded/mine", None)
    real = get_model_deployment("recorded/openai/gpt-4-0613")
    assert real.model_name == "openai/gpt-4-0613"
    assert recorded.is_recorded("recorded/openai/gpt-4-0613")
    assert not recorded.is_recorded(live_deployment)


def test_the_request_hands_back_its_result_and_is_written_as_a_plain_request():
    request = recorded.make_recorded_request(Request(prompt="2+2?"), result("4"))
    answer = recorded.RecordedClient().make_request(request)
    assert [completion.text for completion in answer.completions] == ["4"]
    assert dataclasses.asdict(request) == dataclasses.asdict(Request(prompt="2+2?"))


def test_the_result_survives_pickling():
    # HELM's multi-GPU runner sends requests between processes.
    state = {"result": {"completions": [{"text": "4"}]}}
    request = pickle.loads(pickle.dumps(recorded.rebuild_request(recorded.RecordedRequest(), state)))
    assert request.result.completions[0].text == "4"
    assert "num_train_instances" in request.unmeasured


def test_a_request_that_carries_nothing_is_refused():
    with pytest.raises(RecordedError, match=r"recorded/x only hands back completions that a file holds"):
        recorded.RecordedClient().make_request(Request(model_deployment="recorded/x"))
    # dataclasses.replace makes a new request, which has lost its answer: an error, never an empty completion.
    copied = dataclasses.replace(recorded.make_recorded_request(Request(), result()), prompt="other")
    with pytest.raises(RecordedError):
        recorded.RecordedClient().make_request(copied)


def test_a_full_result_is_kept_as_it_is():
    token = {"text": " office", "logprob": -1.4}
    full = {**token, "tokens": [token], "finish_reason": {"reason": "stop"}, "thinking": {"text": "hm"}}
    times = {"cached": True, "request_time": 1.622053623199463, "request_datetime": 1669584580}
    completions = [full, {"text": "b", "logprob": None, "tokens": None}]
    made = recorded.to_request_result({"success": True, "completions": completions, **times})
    assert made.success
    assert {name: getattr(made, name) for name in times} == times
    first, second = made.completions
    assert (first.text, first.logprob, first.tokens[0].logprob) == (" office", -1.4, -1.4)
    assert first.finish_reason == {"reason": "stop"}
    assert first.thinking.text == "hm"
    assert (second.logprob, second.tokens) == (0.0, [])


def test_unmeasured_stats():
    bare = {"result": {"completions": [{"text": "a"}]}}
    of_tokens = {"num_prompt_tokens", "num_output_tokens"}
    of_all = {*of_tokens, "num_completion_tokens", "num_train_instances", "prompt_truncated"}
    assert recorded.unmeasured_stats(bare) == of_all
    full = {"result": {"completions": [{"text": "a", "tokens": [{"text": "a"}]}]}}
    assert recorded.unmeasured_stats({**full, "num_train_instances": 5, "prompt_truncated": False}) == of_tokens


def test_rows_are_left_out_whole_and_the_first_tells_how_all_are_scored():
    first, second = (Instance(Input("2+2?"), [], id=name, extra_data={"mine": name}) for name in "ab")
    states = [helm_states.make_state(one, reference_index=index) for one in (first, second) for index in (0, 1)]
    found = rows.leave_out_rows(states, {rows.row_of(states[2]): "failed"})
    assert [row_extra(state.instance).get("left_out") for state in found] == [None, None, "failed", "failed"]
    rows.tell_scoring(first, {"class_name": "some.Metric", "args": {}, "main_metric": "f1_score"}, {"prompt_truncated"})
    said = {"class_name": "some.Metric", "args": {}, "main_metric": "f1_score", "unmeasured": ["prompt_truncated"]}
    assert row_extra(states[1].instance) == {"scoring": said}
    assert first.extra_data["mine"] == "a"
