"""The executor of live runs: by row, many at once, or as HELM; what becomes of rows that fail."""

from dataclasses import replace

import pytest
from helm.benchmark.adaptation.adapter_spec import AdapterSpec
from helm.benchmark.adaptation.request_state import RequestState
from helm.benchmark.adaptation.scenario_state import ScenarioState
from helm.benchmark.executor import ExecutionSpec, ExecutorError
from helm.benchmark.run_spec import RunSpec
from helm.benchmark.scenarios.scenario import Input, Instance, Output, Reference, ScenarioSpec
from helm.clients.client import Client
from helm.common.authentication import Authentication
from helm.common.cache import BlackHoleCacheConfig, SqliteCacheConfig
from helm.common.request import ErrorFlags, GeneratedOutput, Request, RequestResult
from openai_server import Odd

from helm_ext.adaptation.rows import leave_out
from helm_ext.clients import OpenAICompatibleClient
from helm_ext.clients import server as server_module
from helm_ext.clients.client import annotate_with_notes
from helm_ext.clients.openai_requests import UnsendableError
from helm_ext.errors import DeploymentError
from helm_ext.running.asking import Asking, RowsFailedError, settle, skips_failed
from helm_ext.running.executor import FEWEST_FAILURES, LiveExecutor
from helm_ext.running.spending import LimitReached, LiveProgress

DEPLOYMENT = "here/tiny"
EXTRA = {"helm_ext": {}}


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(server_module, "FIRST_DELAY", 0.01)


def make_executor(tmp_path, client, *, parallelism=4, cls=LiveExecutor, **args):
    spec = ExecutionSpec(
        url=None, auth=Authentication(""), local_path=str(tmp_path / "prod_env"), parallelism=parallelism
    )
    executor = cls(spec)
    vars(executor).update(args)
    executor.context.client.clients[DEPLOYMENT] = client
    return executor


def make_states(rows=5, options=0, extra=EXTRA):
    """Rows r0, r1, ... of one request, or one an option."""
    states = []
    for number in range(rows):
        references = [Reference(Output(f"option {index}"), []) for index in range(options)]
        instance = Instance(Input(f"question {number}"), references, split="test", id=f"r{number}", extra_data=extra)
        for index in range(options) if options else [None]:
            request = Request(
                model="acme/tiny",
                model_deployment=DEPLOYMENT,
                prompt=f"row {number} option {index}",
                max_tokens=5,
                temperature=0,
            )
            mode = None if index is None else "original"
            states.append(RequestState(instance, index, mode, 0, None, request, None, 0, False))
    return states


def to_state(states):
    return ScenarioState(AdapterSpec(), states)


def execute(executor, states):
    return executor.execute(to_state(states)).request_states


def answer(request, **more):
    completion = GeneratedOutput(text=f"answer to {request.prompt}", logprob=0, tokens=[])
    return RequestResult(success=True, embedding=[], completions=[completion], cached=False, **more)


class Recording(LiveProgress):
    """What a run reports."""

    made = None

    def __init__(self, total_rows, **options):
        super().__init__(total_rows, **options)
        self.rows = self.cached = self.failed = self.tokens_in = self.tokens_out = self.calls = 0
        self.waiting = self.waited = 0
        self.most = 10**9
        Recording.made = self

    def done(self, rows=1, cached=0, failed=0, tokens_in=0, tokens_out=0, tokens_cached=0):
        self.calls += 1
        self.rows += rows
        self.cached += cached
        self.failed += failed
        self.tokens_in += tokens_in
        self.tokens_out += tokens_out
        if self.rows >= self.most:
            raise LimitReached("enough")

    def retrying(self, change):
        self.waiting += change
        self.waited += change > 0


class OneByOne(Client):
    """As HELM's clients are."""

    def __init__(self, odd=None):
        self.asked = []
        self.odd = odd or {}

    def make_request(self, request):
        self.asked.append(request.prompt)
        for part, outcome in self.odd.items():
            if part in request.prompt:
                if isinstance(outcome, Exception):
                    raise outcome
                return outcome
        return answer(request)


class ByRow(OneByOne):
    def __init__(self, odd=None):
        super().__init__(odd)
        self.lists = []

    def make_requests(self, requests):
        self.lists.append([request.prompt for request in requests])
        return [self.make_request(request) for request in requests]


def failure(message="it broke", **flags):
    flags = ErrorFlags(is_retriable=False, **flags)
    return RequestResult(success=False, embedding=[], completions=[], cached=False, error=message, error_flags=flags)


@pytest.mark.parametrize("parallelism", [1, 3])
def test_a_rows_requests_are_handed_over_together(tmp_path, parallelism):
    client = ByRow()
    states = make_states(6, options=4)
    done = execute(make_executor(tmp_path, client, parallelism=parallelism), states)
    assert sorted(client.lists) == [[f"row {row} option {index}" for index in range(4)] for row in range(6)]
    assert [state.result.completions[0].text for state in done] == [f"answer to {s.request.prompt}" for s in states]
    assert [replace(state, result=None) for state in done] == states


def test_rows_of_other_training_trials_are_rows_of_their_own(tmp_path):
    client = ByRow()
    states = [replace(state, train_trial_index=trial) for trial in range(2) for state in make_states(1, options=2)]
    instance = states[0].instance
    execute(make_executor(tmp_path, client), [replace(state, instance=instance) for state in states])
    assert [len(row) for row in client.lists] == [2, 2]


def test_too_few_results_are_a_failure(tmp_path):
    client = ByRow()
    client.make_requests = lambda requests: [answer(requests[0])]
    with pytest.raises(RowsFailedError, match="1 results of 2 requests"):
        execute(make_executor(tmp_path, client), make_states(1, options=2))


@pytest.mark.parametrize("kind", [OneByOne, ByRow])
@pytest.mark.parametrize("outcome", [failure(), ValueError("it broke")])
def test_a_row_that_fails_is_named_after_the_others_have_finished(tmp_path, kind, outcome):
    client = kind({"row 3 option 1": outcome})
    executor = make_executor(tmp_path, client, make_progress=Recording)
    executor.context.make_request = client.make_request  # without HELM's pauses
    with pytest.raises(RowsFailedError, match="^1 of 9 rows have no answer: r3: it broke\n") as caught:
        execute(executor, make_states(9, options=2))
    assert isinstance(caught.value, ExecutorError)
    assert len(client.asked) == 18
    assert "missing=skip" in str(caught.value)
    assert (Recording.made.rows, Recording.made.failed) == (9, 1)


def test_a_row_of_helms_own_scenarios_cannot_be_left_out(tmp_path):
    client = OneByOne({"row 3": failure()})
    with pytest.raises(RowsFailedError) as caught:
        execute(make_executor(tmp_path, client, skips_failed=True), make_states(9, extra=None))
    assert "missing=skip" not in str(caught.value)


@pytest.mark.parametrize("options", [0, 3])
def test_rows_that_fail_are_left_out_where_the_run_entry_says_so(tmp_path, options):
    part = "row 3" if not options else "row 3 option 1"
    executor = make_executor(tmp_path, ByRow({part: failure()}), skips_failed=True)
    done = execute(executor, make_states(9, options=options))
    left_out = [state for state in done if state.instance.extra_data["helm_ext"].get("left_out")]
    assert {state.instance.id for state in left_out} == {"r3"}
    assert len(left_out) == (options or 1)
    assert all(state.instance.extra_data["helm_ext"]["left_out"] == "failed" for state in left_out)
    assert all(state.result.completions[0].text == "" for state in left_out)
    assert all(state.request.model_deployment == "recorded/left-out" for state in left_out)
    assert [state.instance.id for state in done] == [f"r{row}" for row in range(9) for _ in range(options or 1)]


def test_not_all_rows_can_be_left_out(tmp_path):
    with pytest.raises(RowsFailedError, match="2 of 2 rows have no answer: r0, r1: it broke"):
        execute(make_executor(tmp_path, OneByOne({"row": failure()}), skips_failed=True), make_states(2))


def test_many_failures_are_named_by_their_reasons():
    states = make_states(60)
    asked = Asking(states, [], LiveProgress(60), 20)
    asked.failures.update({place: f"reason {place % 13}" if place < 20 else "other" for place in range(59)})
    with pytest.raises(RowsFailedError) as caught:
        settle(asked, skips_failed=False)
    said = str(caught.value)
    assert said.startswith("59 of 60 rows have no answer: r0, r13: reason 0; r1, r14: reason 1; ")
    assert "; ... and other reasons for 42 more" in said


@pytest.mark.parametrize(("name", "args", "expected"), [
    ("helm_ext.formats.request_states.scenario.AdapterSpecScenario", {}, False),
    ("helm_ext.formats.request_states.scenario.AdapterSpecScenario", {"missing": "skip"}, True),
    ("helm_ext.formats.lm_eval.scenario.LmEvalScenario", {}, True),
    ("helm_ext.formats.lm_eval.scenario.LmEvalScenario", {"missing": "error"}, False),
    ("helm.benchmark.scenarios.mmlu_scenario.MMLUScenario", {"missing": "skip"}, False),
])  # fmt: skip
def test_the_run_entry_decides_or_the_format(name, args, expected):
    spec = RunSpec("x", ScenarioSpec(name, args), AdapterSpec(), [], [])
    assert skips_failed(spec) is expected


def test_a_model_that_fails_again_and_again_is_given_up(tmp_path):
    client = OneByOne({"row": failure()})
    with pytest.raises(DeploymentError, match=f"{FEWEST_FAILURES} rows failed one after another"):
        execute(make_executor(tmp_path, client, parallelism=1), make_states(100))
    assert len(client.asked) == FEWEST_FAILURES


def test_one_row_of_many_options_is_one_failure(tmp_path):
    client = ByRow({"row 3 ": failure()})
    with pytest.raises(RowsFailedError, match="1 of 6 rows"):
        execute(make_executor(tmp_path, client, parallelism=1), make_states(6, options=3 * FEWEST_FAILURES))
    assert len(client.asked) == 6 * 3 * FEWEST_FAILURES


def test_failures_with_answers_between_them_do_not_end_a_run(tmp_path):
    client = OneByOne({f"row {number} ": failure() for number in range(0, 60, 2)})
    with pytest.raises(RowsFailedError, match="30 of 60 rows"):
        execute(make_executor(tmp_path, client, parallelism=1), make_states(60))


def test_what_is_left_out_already_is_not_asked(tmp_path):
    client = OneByOne()
    states = make_states(3)
    states[1] = leave_out(states[1], "too_long")
    done = execute(make_executor(tmp_path, client), states)
    assert len(client.asked) == 2
    assert done[1].result is states[1].request.result


# Many at once


def make_client(server, config=None, **args):
    return OpenAICompatibleClient(config or BlackHoleCacheConfig(), base_url=f"{server.url}/v1", **args)


def test_as_many_requests_are_in_flight_as_threads_are_asked_for(server, tmp_path):
    server.seconds = 0.05
    done = execute(make_executor(tmp_path, make_client(server), parallelism=7), make_states(40))
    assert server.most_in_flight == 7
    server.seconds = 0
    assert len(server.asked) == 40
    assert all(state.result.success for state in done)
    alone = make_client(server)
    assert [state.result.completions for state in done] == [
        alone.make_request(state.request).completions for state in done
    ]


def test_notes_stand_in_the_annotations_and_tokens_are_counted(server, tmp_path):
    config = SqliteCacheConfig(str(tmp_path / "cache.sqlite"))
    for cached in (0, 6):
        executor = make_executor(tmp_path, make_client(server, config, seed=3), make_progress=Recording)
        done = execute(executor, make_states(6, options=2))
        annotate_with_notes(done)
        for state in done:
            notes = state.annotations["helm_ext"]
            assert notes["usage"]["completion_tokens"] == 3
            assert (notes["seed"], notes["answered_by"]) == (3, "tiny-2026-01-01")
        progress = Recording.made
        assert (progress.total, progress.rows, progress.calls, progress.cached) == (6, 6, 6, cached)
        assert (progress.tokens_in, progress.tokens_out) == ((0, 0) if cached else (12 * 4, 12 * 3))
    assert len(server.asked) == 12


def test_a_second_start_asks_only_for_what_failed(server, tmp_path):
    config = SqliteCacheConfig(str(tmp_path / "cache.sqlite"))
    server.instead = lambda path, body: (400, {"error": "no"}) if "row 3 " in body["messages"][0]["content"] else None
    with pytest.raises(RowsFailedError, match="1 of 40 rows have no answer: r3: .*status 400"):
        execute(make_executor(tmp_path, make_client(server, config)), make_states(40))
    assert len(server.asked) == 40
    server.instead = lambda path, body: None
    done = execute(make_executor(tmp_path, make_client(server, config)), make_states(40))
    assert len(server.asked) == 41
    assert [state.result.cached for state in done] == [row != 3 for row in range(40)]


def test_rows_that_the_server_refuses_do_not_end_a_run_however_many(server, tmp_path):
    long = {f"row {row} " for row in range(10, 40)}
    server.instead = lambda path, body: (
        (400, {"error": "too long"}) if any(part in body["messages"][0]["content"] for part in long) else None
    )
    with pytest.raises(RowsFailedError, match="30 of 50 rows"):
        execute(make_executor(tmp_path, make_client(server), parallelism=1), make_states(50))
    assert len(server.asked) == 50


def test_a_server_that_hangs_ends_a_run(server, tmp_path):
    server.instead = lambda path, body: Odd(seconds=20)
    with pytest.raises(DeploymentError, match="10 rows failed one after another, .*no whole reply within 0.2 s"):
        execute(make_executor(tmp_path, make_client(server, timeout=0.2), parallelism=10), make_states(100))
    assert len(server.asked) <= 20


@pytest.mark.long
def test_a_row_that_hangs_does_not_hold_up_the_others(server, tmp_path):
    finished = []

    def hang(path, body):
        if "row 0 " in body["messages"][0]["content"]:
            return Odd(seconds=20)
        finished.append(body)
        return None

    server.instead = hang
    executor = make_executor(tmp_path, make_client(server, timeout=3.0), parallelism=2, skips_failed=True)
    done = execute(executor, make_states(30))
    assert len(finished) == 29
    assert len(server.asked) == 30
    assert done[0].instance.extra_data["helm_ext"]["left_out"] == "failed"


def test_waiting_for_another_attempt_is_reported(server, tmp_path):
    waiting = [(500, {})] * 3
    server.instead = lambda path, body: waiting.pop() if waiting else None
    execute(make_executor(tmp_path, make_client(server), parallelism=1, make_progress=Recording), make_states(4))
    assert (Recording.made.waited, Recording.made.waiting) == (3, 0)
    assert len(server.asked) == 7


@pytest.mark.parametrize(("status", "said"), [(401, "refuses requests without a key"), (404, "address or the model")])
def test_a_wrong_setup_ends_the_run_at_once(server, tmp_path, status, said):
    server.instead = lambda path, body: (status, {"error": {"message": "no"}})
    with pytest.raises(DeploymentError, match=said):
        execute(make_executor(tmp_path, make_client(server), parallelism=4, skips_failed=True), make_states(200))
    assert len(server.asked) <= 4


def test_what_cannot_be_sent_is_told_of_before_anything_is_sent(server, tmp_path):
    states = make_states(20)
    states[7] = replace(states[7], request=replace(states[7].request, top_k_per_token=5, temperature=1))
    with pytest.raises(UnsendableError, match="here/tiny: 1 of 20 requests cannot be sent\n  1 requests: top_k=5"):
        execute(make_executor(tmp_path, make_client(server)), states)
    assert server.asked == []


def test_a_limit_ends_a_run_and_what_is_in_flight_is_kept(server, tmp_path):
    class Limited(Recording):
        def __init__(self, total_rows, **options):
            super().__init__(total_rows, **options)
            self.most = 10

    one_by_one = OneByOne()
    with pytest.raises(LimitReached):
        execute(make_executor(tmp_path, one_by_one, parallelism=1, make_progress=Limited), make_states(50))
    assert len(one_by_one.asked) == 10
    config = SqliteCacheConfig(str(tmp_path / "cache.sqlite"))
    server.seconds = 0.02
    with pytest.raises(LimitReached):
        execute(
            make_executor(tmp_path, make_client(server, config), parallelism=5, make_progress=Limited), make_states(100)
        )
    sent = len(server.asked)
    assert 10 <= sent <= 14
    execute(make_executor(tmp_path, make_client(server, config), parallelism=5), make_states(100))
    assert len(server.asked) == 100
