"""Prices, limits and estimates of live runs."""

import math

import pytest
from helm.common.request import Request

from helm_ext.clients import OpenAICompatibleClient
from helm_ext.errors import RunEntryError
from helm_ext.running.spending import Budget, Estimate, LimitReached, Prices, Spending, read_prices

CLIENT = OpenAICompatibleClient.__new__(OpenAICompatibleClient)


@pytest.fixture(autouse=True)
def _nothing_set(monkeypatch):
    for name in ("PRICES", "MAX_COST", "MAX_TOKENS"):
        monkeypatch.delenv(f"HELM_EXT_{name}", raising=False)


def request(prompt="one two three", **more):
    return Request(model="a/b", model_deployment="a/b", prompt=prompt, max_tokens=10, **more)


def test_prices_and_limits_are_read(tmp_path, monkeypatch):
    assert Spending.read(tmp_path) == Spending({}, Budget())
    (tmp_path / "prices.yaml").write_text("# ours\na/b: {in: 1, out: 2.5}\nc/d: {in: 4, out: 8, cached: 0}\n")
    monkeypatch.setenv("HELM_EXT_MAX_COST", "0.5")
    monkeypatch.setenv("HELM_EXT_MAX_TOKENS", "1e6")
    read = Spending.read(tmp_path)
    assert read.prices == {"a/b": Prices(1, 2.5), "c/d": Prices(4, 8, 0)}
    assert (read.budget.cost, read.budget.tokens) == (0.5, 1_000_000)
    assert read.prices_of(["c/d"]) == Prices(4, 8, 0)
    assert read.prices_of(["a/b", "c/d"]) is None
    assert read.prices_of([]) is None


def test_a_file_that_is_named_must_be_there(tmp_path, monkeypatch):
    monkeypatch.setenv("HELM_EXT_PRICES", str(tmp_path / "mine.yaml"))
    with pytest.raises(RunEntryError, match="mine.yaml: cannot be read"):
        Spending.read(tmp_path)


@pytest.mark.parametrize("text", [
    "a/b: 3", "a/b: {in: 1}", "a/b: {in: 1, out: -1}", "a/b: {in: 1, out: true}", "a/b: {in: .inf, out: 1}",
    "a/b: {in: 1, out: 2, kept: 3}", "a/b: {in: '1', out: 2}", "- a", "", "a: [", "a/b: {in: .nan, out: 1}",
])  # fmt: skip
def test_prices_that_are_none(tmp_path, text):
    path = tmp_path / "prices.yaml"
    path.write_text(text)
    with pytest.raises(RunEntryError, match="prices.yaml") as caught:
        read_prices(path)
    assert "hint: local/my-model: {in: 0.15" in str(caught.value) or "prices.yaml:1: not YAML" in str(caught.value)


@pytest.mark.parametrize(("name", "text"), [
    ("MAX_TOKENS", "much"), ("MAX_TOKENS", "1.5"), ("MAX_COST", "-1"), ("MAX_COST", "inf"), ("MAX_COST", "nan"),
])  # fmt: skip
def test_limits_that_are_none(tmp_path, monkeypatch, name, text):
    """There is no half a token."""
    kind = "a whole number of tokens" if name == "MAX_TOKENS" else "a number, in the currency of the prices,"
    monkeypatch.setenv(f"HELM_EXT_{name}", text)
    said = f'HELM_EXT_{name}="{text}": expected {kind} from 0 on\n  hint: unset it for no limit'
    with pytest.raises(RunEntryError, match=said):
        Spending.read(tmp_path)


@pytest.mark.parametrize(("prices", "budget", "client", "said"), [
    (None, {"cost": 1}, CLIENT, "what a/b costs is not known"), (Prices(1, 1), {"cost": 1}, CLIENT, ""),
    (None, {"tokens": 1}, None, "does not say how many tokens"),
    (Prices(1, 1), {"cost": 1}, None, "does not say how many tokens"),
    (Prices(0, 0), {"cost": 1}, None, ""),  # a model of one's own
    (None, {}, None, ""),
    (None, {"tokens": 5, "spent_tokens": 5}, CLIENT, "stopped: 5 tokens in and out"),  # nothing is left
])  # fmt: skip
def test_a_limit_needs_prices_and_a_client_that_counts(prices, budget, client, said):
    spending = Spending({} if prices is None else {"a/b": prices}, Budget(**budget))
    if not said:
        spending.require_kept("a/b", client)
        return
    with pytest.raises(LimitReached if "spent_tokens" in budget else RunEntryError, match=said):
        spending.require_kept("a/b", client)


def test_what_is_foreseen():
    spending = Spending({"a/b": Prices(1_000_000, 2_000_000)})
    requests = [request(), request("one"), request(num_completions=3)]
    estimate = spending.announce("a/b", requests, lambda text: len(text.split()))
    assert (estimate.prompt_tokens, estimate.completion_tokens) == (7, 50)
    assert str(estimate) == "tokens: 7 in, at most 50 out"


def test_a_prompt_that_is_scored_makes_no_text():
    estimate = Spending().announce("a/b", [request(echo_prompt=True)], None)
    assert estimate.completion_tokens == 10
    scored = Request(model="a/b", model_deployment="a/b", prompt="12345678", max_tokens=0, echo_prompt=True)
    estimate = Spending().announce("a/b", [scored], None)
    assert (estimate.prompt_tokens, estimate.completion_tokens) == (2, 0)
    assert "4 bytes a token" in str(estimate)


def test_the_first_prompts_tell_of_the_others():
    counted = []

    def count_tokens(text):
        counted.append(text)
        return len(text) // 2

    estimate = Estimate(count_tokens, most_counted=10)
    for number in range(100):
        estimate.add(request("x" * (20 + 2 * (number % 5))))
    assert len(counted) == 10
    assert math.isclose(estimate.prompt_tokens, 100 * 12, rel_tol=0.01)
    assert "(estimated from 10 prompts)" in str(estimate)
