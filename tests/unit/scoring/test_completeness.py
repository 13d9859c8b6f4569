"""What is not part of a score: rows that were left out, stats that nobody measured, options without log-probability."""

from dataclasses import dataclass, replace

import helm_states
import pytest
from helm.benchmark.adaptation.adapter_spec import AdapterSpec
from helm.benchmark.adaptation.scenario_state import ScenarioState
from helm.benchmark.scenarios.scenario import CORRECT_TAG, Input, Instance, Output, Reference
from helm.common.request import GeneratedOutput, Request, Token

from helm_ext.adaptation.recorded import register_deployments
from helm_ext.errors import RecordedError
from helm_ext.evalset import EXTRA_KEY
from helm_ext.scoring.completeness import (
    LeftOutTotal,
    collapse_reference,
    count_left_out,
    find_unmeasured,
    lacks_tokenizer,
    take_scored,
)
from helm_ext.scoring.scores.likelihoods import count_reference_tokens

PROBABILITIES = {
    "max_prob", "logprob", "num_perplexity_tokens", "num_bytes", "perplexity", "bits_per_byte", "logprob_per_byte",
}  # fmt: skip
RECORDED = AdapterSpec(method="generation", model="x", model_deployment="recorded/x")


@pytest.fixture(autouse=True)
def deployments():
    register_deployments()


def instance(id="a", left_out=None, **fields):
    extra = {} if left_out is None else {"left_out": left_out}
    references = [Reference(Output("Po"), [CORRECT_TAG]), Reference(Output("Ob river"), [])]
    return Instance(Input("?"), references, **{"split": "test", "id": id, "extra_data": {EXTRA_KEY: extra}, **fields})


def state(of=None, tokens=((" Po", -1.0),), logprob=-1.0, reference_index=None):
    completion = helm_states.make_output("Po", logprob, tokens)
    return helm_states.make_state(of or instance(), completion, reference_index=reference_index)


def test_rows_that_were_left_out_are_taken_away_and_the_rest_stays():
    kept, gone = state(instance("a")), state(instance("b", left_out="failed"))
    spec = AdapterSpec(model="x/y")
    taken = take_scored(ScenarioState(spec, [gone, kept]))
    assert taken.request_states == [kept]
    assert taken.adapter_spec is spec
    whole = ScenarioState(spec, [kept])
    assert take_scored(whole) is whole


def test_rows_are_counted_once_by_reason_and_split():
    two_states = instance("a", left_out="failed")
    rows = [two_states, two_states, instance("b", left_out="not_run"), instance("c", left_out="failed"), instance("d")]
    rows += [instance("a", split="valid"), instance("e", split="valid", left_out="failed", sub_split="x")]
    total = LeftOutTotal()
    for batch in (rows[:3], rows[3:]):
        total.add(count_left_out(batch))
    stats = total.to_stats()
    assert {(s.name.name, s.name.split, s.name.sub_split): s.sum for s in stats} == {
        ("num_left_out", "test", None): 3,
        ("num_failed", "test", None): 2,
        ("num_not_run", "test", None): 1,
        ("num_left_out", "valid", None): 0,
        ("num_left_out", "valid", "x"): 1,
        ("num_failed", "valid", "x"): 1,
    }
    names = [s.name.name for s in stats if s.name.split == "test"]
    assert names == sorted(names)


def test_log_probabilities_are_unmeasured_where_all_are_0_or_one_is_no_number():
    assert find_unmeasured(RECORDED, [state()]) == set()
    assert find_unmeasured(RECORDED, [state(), state(logprob=0.0)]) == PROBABILITIES
    assert find_unmeasured(RECORDED, [state(logprob=float("nan"))]) == PROBABILITIES
    assert find_unmeasured(RECORDED, [state(tokens=((" Po", float("-inf")),))]) == PROBABILITIES
    # Requests of a reference are scored, not generated; a request without result says nothing.
    assert find_unmeasured(RECORDED, [state(logprob=0.0, reference_index=0)]) == set()
    assert find_unmeasured(RECORDED, [replace(state(), result=None)]) == set()


def test_one_completion_of_several_with_log_probability_is_enough():
    made = state()
    zero = GeneratedOutput("", 0.0, [])
    both = replace(made, result=replace(made.result, completions=[zero, *made.result.completions]))
    assert find_unmeasured(RECORDED, [both]) == set()


def test_prompt_tokens_are_unmeasured_without_tokenizer(live_deployment):
    live = replace(RECORDED, model_deployment=live_deployment)
    assert lacks_tokenizer(live_deployment)
    assert find_unmeasured(live, [state()]) == {"num_prompt_tokens"}
    assert find_unmeasured(live, [state(logprob=0.0)]) == {"num_prompt_tokens"} | PROBABILITIES


TOKENS = (("Is", -9.0), (" it", -9.0), (" O", -1.0), ("b", -2.0), (" river", -3.0))


@pytest.mark.parametrize(("method", "logprob"), [
    ("multiple_choice_separate_original", -2.0), ("multiple_choice_separate_calibrated", -6.0),
])  # fmt: skip
def test_the_tokens_of_a_reference_become_one(method, logprob):
    made = state(tokens=TOKENS, reference_index=1)
    collapsed = collapse_reference(made, replace(RECORDED, method=method))
    (completion,) = collapsed.result.completions
    assert completion.tokens == [Token("Ob river", logprob)]
    assert collapsed.instance is made.instance
    assert len(made.result.completions[0].tokens) == len(TOKENS)  # HELM's own object stays as it is


def test_what_is_no_reference_is_left_as_it_is():
    generated = state(tokens=TOKENS)
    assert collapse_reference(generated, RECORDED) is generated
    unanswered = replace(state(reference_index=1), result=None)
    assert collapse_reference(unanswered, RECORDED) is unanswered


def test_tokens_of_sentencepiece_and_what_is_no_option():
    assert count_reference_tokens(["▁Is", "▁O", "b", "▁river"], "Ob river") == 3
    assert count_reference_tokens([" Ob", " river", " "], " Ob river") == 3
    assert count_reference_tokens(["Is", " it"], "Ob") is None
    assert count_reference_tokens([], "Ob") is None
    assert count_reference_tokens(["a", " b", "c"], "bc") == count_reference_tokens(["x", " Ob", ""], "Ob") == 2
    assert count_reference_tokens(["Is", ": Ob", " river"], "Ob river") is None  # not guessed at
    other = state(tokens=[("a", -1.0), ("b" * 40, -1.0)], reference_index=1)
    with pytest.raises(RecordedError, match='end with "b{40}", which is not the option "Ob river": its log-prob'):
        collapse_reference(other, RECORDED)


@dataclass(frozen=True)
class SomeUnmeasured(Request):
    """A request as recorded ones are: it says which of HELM's stats its recording cannot tell."""

    unmeasured: frozenset[str] = frozenset()


def test_what_a_recording_cannot_tell_is_unmeasured_in_the_whole_run(live_deployment):
    made = state()
    one, other = (replace(made, request=SomeUnmeasured(unmeasured=frozenset({name}))) for name in ("a", "b"))
    assert find_unmeasured(RECORDED, [made, one, other]) == {"a", "b"}
    live = replace(RECORDED, model_deployment=live_deployment)
    assert find_unmeasured(live, [one]) == {"a", "num_prompt_tokens"}
