"""What a reply says of its tokens, as limits of what is spent take it."""

import io

import pytest
from helm.benchmark.adaptation.request_state import RequestState
from helm.benchmark.scenarios.scenario import Input, Instance
from helm.common.request import GeneratedOutput, Request

from helm_ext.clients.client import NotedResult
from helm_ext.running.asking import Asking
from helm_ext.running.spending import Budget, LimitReached, LiveProgress, Prices


def ask(usage, **budget):
    """Take one answer of a run of two rows; return what was counted."""
    state = RequestState(Instance(Input("?"), [], id="q"), None, None, 0, None, Request("m", "local/m"), None, 0, False)
    prices = Prices(prompt=2.0, completion=10.0, cached=0.5)
    progress = LiveProgress(2, stream=io.StringIO(), prices=prices, budget=Budget(**budget))
    asking = Asking([state, state], [[0], [1]], progress, 20)
    result = NotedResult(success=True, embedding=[], completions=[GeneratedOutput("a", 0, [])], cached=False)
    result.notes = {"usage": usage}
    asking.take(0, result)
    if asking.stopped_by is not None:
        raise asking.stopped_by
    return progress.counts()


def test_no_more_tokens_of_a_prompt_are_kept_than_it_has():
    usage = {"prompt_tokens": 1_000_000, "completion_tokens": 0, "prompt_tokens_details": {"cached_tokens": 10**12}}
    assert ask(usage, cost=9.0).cost == pytest.approx(0.5)
    with pytest.raises(LimitReached, match="spent"):
        ask(usage, cost=0.4)


@pytest.mark.parametrize("usage", [{"total_tokens": 5}, {"prompt_tokens": 0}, {"prompt_tokens": -3}])
def test_a_reply_that_counts_nothing_ends_a_run_with_a_limit(usage):
    assert ask(usage).tokens_in == 0
    with pytest.raises(LimitReached, match="does not count tokens"):
        ask(usage, tokens=100)
