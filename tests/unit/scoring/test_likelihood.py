"""Options compared by log-probability: the scores of one number each, the rules of PPL tasks, and their metric."""

import hashlib
import math
import random
import struct
from dataclasses import replace

import helm_states
import pytest
from helm.benchmark.adaptation.adapter_spec import AdapterSpec
from helm.benchmark.adaptation.scenario_state import ScenarioState
from helm.benchmark.augmentations.perturbation_description import PerturbationDescription
from helm.benchmark.metrics.basic_metrics import InstancesPerSplitMetric, compute_request_state_metrics
from helm.benchmark.metrics.efficiency_metrics import EfficiencyMetric
from helm.benchmark.metrics.metric_name import MetricName
from helm.benchmark.metrics.reference_metric import ReferenceMetric
from helm.benchmark.metrics.statistic import Stat, merge_stat
from helm.benchmark.scenarios.scenario import CORRECT_TAG, Input, Instance, Output, Reference
from helm.common.request import GeneratedOutput, Request

from helm_ext.adaptation.recorded import register_deployments
from helm_ext.adaptation.wrap import LogprobsMissingError
from helm_ext.errors import RunEntryError
from helm_ext.evalset import EXTRA_KEY
from helm_ext.scoring import likelihood
from helm_ext.scoring.likelihood import SentenceLikelihoodMetric, require_logprobs, score_row
from helm_ext.scoring.scores.likelihoods import (
    acc,
    acc_bytes,
    acc_mutual_info,
    acc_norm,
    argmin,
    brier_score,
    common_prefix,
    mc2,
    ppl,
    ppl_norm,
)


def options(**logprobs):
    return [{"text": text, "logprob": logprob} for text, logprob in logprobs.items()]


def test_the_first_of_the_likeliest_options_wins():
    tied = options(fox=-2.0, owl=-1.0, bee=-1.0)
    assert [acc(tied, right) for right in ([1, 0, 0], [0, 1, 0], [0, 0, 1])] == [0, 1, 0]
    assert acc(tied, [0, 1, 1]) == acc(tied, [1, 1, 0]) == 1  # any right option


def test_lengths_are_characters_or_bytes_of_the_option():
    # "東港" has 2 characters and 6 bytes: -1.5 and -0.5; "Tallo" 5 and 5: -0.7 and -0.7
    row = [{"text": "Tallo", "logprob": -3.5}, {"text": "東港", "logprob": -3.0}]
    assert (acc(row, [0, 1]), acc_norm(row, [0, 1]), acc_bytes(row, [0, 1])) == (1, 0, 1)


def test_an_empty_option_cannot_win_by_its_length():
    row = [{"text": "", "logprob": -0.1}, {"text": "no", "logprob": -9.0}]
    assert (acc(row, [1, 0]), acc_norm(row, [1, 0]), acc_bytes(row, [1, 0])) == (1, 0, 0)


def test_mutual_information_needs_all_options_without_the_question():
    row = [{"text": "a", "logprob": -3.0, "alone": -1.0}, {"text": "b", "logprob": -4.0, "alone": -3.0}]
    assert acc_mutual_info(row, [0, 1]) == 1  # -2 and -1
    row[0]["alone"] = None
    assert acc_mutual_info(row, [0, 1]) is None


def test_the_brier_score_is_of_the_softmax_over_the_options():
    # e^-1 : e^-1 : e^-1-ln 2 = 2 : 2 : 1
    row = options(a=-1.0, b=-1.0, c=-1.0 - math.log(2))
    assert brier_score(row, [0, 0, 1]) == pytest.approx(0.4**2 + 0.4**2 + 0.8**2)
    assert brier_score(row, [1, 0, 0]) == pytest.approx(0.6**2 + 0.4**2 + 0.2**2)
    assert brier_score(options(a=-1e100, b=-3.0), [0, 1]) == 0
    assert brier_score(row, [1, 1, 0]) is None


# The rules of PPL tasks


NAN, INF = math.nan, math.inf


@pytest.fixture(autouse=True)
def deployments():
    register_deployments()


@pytest.mark.parametrize(("rule", "options", "expected"), [
    (ppl, [[-1.0, -2.0], [-0.5], []], [3.0, 0.5, 0.0]),  # the negative sum, without normalisation
    (ppl_norm, [[-1, -2, -3, -5], [-1, -2, -3.5]], [4.0, 3.5]),  # -1, -2 are common: the means of what is left
    (ppl_norm, [[-1, -2], [-1, -2, -6]], [NAN, 6]), (ppl_norm, [[-1.0], [-1.0]], [NAN, NAN]),  # all prefix
])  # fmt: skip
def test_perplexities(rule, options, expected):
    assert rule(options) == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize(("second", "texts", "expected"), [
    (-1.00009, None, 1),  # rounding between two requests
    (-1.0002, None, 0), (-1.00009, ("\ufffd", "\ufffd"), 1),
    (-1.00009, ("x", "y"), 0),  # known to be two tokens
    (-1.0, ("x", "y"), 1),  # upstream looks at nothing else
    (-1.0002, ("x\ufffd", "x\ufffd"), 0), (NAN, None, 0), (NAN, ("x", "x"), 1),
])  # fmt: skip
def test_what_is_common(second, texts, expected):
    assert common_prefix([[-1.0], [second]], texts and [[text] for text in texts]) == expected
    assert common_prefix([[-2e-6], [-9e-6]]) == 1  # near 0, a relative difference says nothing


def test_argmin_takes_the_lowest_and_nan_is_infinite():
    assert argmin([3.0, 1.0, 2.0]) == 1
    assert argmin([NAN, 5.0]) == 1
    assert argmin([NAN, INF]) in (0, 1)
    assert argmin([NAN, NAN]) is None


@pytest.mark.parametrize("values", [[1.0, 1.0], [2.0, 1.0, 1.0], [0.25, 0.25, 0.25, 7.0], [1.5, NAN, 1.5]])
def test_ties_are_broken_by_the_hash_of_the_values(values):
    clean = [INF if math.isnan(value) else value for value in values]
    lowest = [index for index, value in enumerate(clean) if value == min(clean)]
    digest = int(hashlib.sha256(struct.pack(f"={len(clean)}d", *clean)).hexdigest(), 16)
    assert argmin(values) == lowest[digest % len(lowest)]


def test_a_known_tie():
    # The winners of eight ties, written down: no new library may change them. Arbitrary, not always the first.
    assert [argmin([float(n), float(n)]) for n in range(1, 9)] == [1, 0, 0, 1, 0, 0, 0, 0]


HALF, QUARTER = -math.log(0.5), -math.log(0.25)


@pytest.mark.parametrize(("values", "right", "share"), [
    ([HALF, QUARTER, QUARTER], [1, 1, 0], 0.75), ([HALF, QUARTER, QUARTER], [1, 1, 1], 1),
    ([HALF, QUARTER, QUARTER], [0, 1, 0], 0.25),  # right options need not come first
    # exp(-2000) is 0 in floating point; the share is e^-2000 / (e^-2000 + e^-2001)
    ([2000.0, 2001.0], [1, 0], 1 / (1 + math.exp(-1))),
    ([NAN, 1.0], [1, 1], 1), ([NAN, 1.0], [1, 0], 0), ([NAN, NAN], [1, 0], 0),
])  # fmt: skip
def test_mc2_is_the_share_of_probability(values, right, share):
    assert mc2(values, right) == pytest.approx(share)


# From request states


def make_instance(options=("yes", "no"), right=(True, False), id="id0", **extra):
    references = [Reference(Output(text), [CORRECT_TAG] if ok else []) for text, ok in zip(options, right, strict=True)]
    return Instance(Input("?"), references, split="test", id=id, extra_data={EXTRA_KEY: extra})


def make_state(instance, index, tokens, context="Is it so? "):
    prompt = context + instance.references[index].output.text
    request = Request(model_deployment="recorded/x", prompt=prompt, max_tokens=0, echo_prompt=True)
    result = helm_states.make_result(helm_states.make_output(prompt, 0.0, tokens), request_time=0.0)
    return helm_states.make_state(
        instance, reference_index=index, request_mode="original", request=request, result=result
    )


CONTEXT = [("Is", 0.0), (" it", -1.0), (" so?", -2.0), (" ", -0.5)]


def states_of(first, second, context="Is it so? ", **fields):
    """The two request states of one row, with all their tokens."""
    instance = make_instance(**fields)  # one object: HELM groups request states by identity
    return [make_state(instance, 0, first, context), make_state(instance, 1, second, context)]


def row(yes, no, **fields):
    return states_of([*CONTEXT, *yes], [*CONTEXT, *no], **fields)


def evaluate(states, rule="ppl"):
    spec = AdapterSpec(method="multiple_choice_separate_original", model="x", model_deployment="recorded/x")
    return helm_states.means(SentenceLikelihoodMetric(rule), spec, states)


def test_the_whole_string_but_its_first_token_is_scored():
    option = require_logprobs(row([("yes", -4.0)], [("no", -1.0)])[0])
    assert option.tokens == (" it", " so?", " ", "yes")
    assert option.logprobs == (-1.0, -2.0, -0.5, -4.0)


def test_the_lowest_wins_and_its_worth_is_the_score():
    _, stats = evaluate(row([("yes", -1.0)], [("n", -0.25), ("o", -0.25)], score={"yes": 0.75, "no": 0.25}))
    assert stats["ppl_accuracy"] == 0.25  # 3.5+0.5 beats 3.5+1.0
    assert stats["predicted_index"] == 1
    assert stats["acc"] == 0  # a flag, not a number
    assert stats["num_instances"] == 1


def test_all_nan_is_worth_nothing_and_chooses_nothing():
    _, stats = evaluate(row([("yes", NAN)], [("no", NAN)]))
    assert stats["ppl_accuracy"] == stats["acc"] == 0
    assert "predicted_index" not in stats


def test_rule_ppl_norm():
    # beyond the common prefix: -3 over one token, -2 in the mean over two
    states = row([("yes", -3.0)], [("n", -1.0), ("o", -3.0)])
    assert evaluate(states, "ppl")[1]["predicted_index"] == 0
    _, stats = evaluate(states, "ppl_norm")
    assert stats["predicted_index"] == 1
    assert stats["ppl_norm_accuracy"] == 0


def test_rule_mc2():
    _, stats = evaluate(row([("yes", math.log(0.6))], [("no", math.log(0.2))]), "mc2")
    assert stats["mc2"] == pytest.approx(0.75)
    assert stats["predicted_index"] == 0
    # Of means, as upstream's metric gets them from its postprocess: exp(-2) to exp(-3), not exp(-4) to exp(-3).
    longer = row([("y", -1.0), ("es", -3.0)], [("no", -3.0)])
    _, stats = evaluate(longer, "mc2_norm")
    assert stats["mc2_norm"] == pytest.approx(math.exp(-2) / (math.exp(-2) + math.exp(-3)))
    assert stats["predicted_index"] == 0
    assert stats["ppl_norm_undefined"] == 0
    assert evaluate(longer, "mc2")[1]["mc2"] == pytest.approx(math.exp(-4) / (math.exp(-4) + math.exp(-3)))


def test_an_unknown_rule():
    with pytest.raises(RunEntryError, match="did you mean 'ppl_norm'"):
        SentenceLikelihoodMetric("ppl_nrm")


def test_rows_with_an_option_without_tokens_of_its_own_are_counted():
    # "a" begins "ab": beyond the common prefix it has nothing, and "ab" wins by default.
    states = states_of(
        [("Q", 0.0), ("a", -1.0)], [("Q", 0.0), ("a", -1.0), ("b", -9.0)], options=("a", "ab"), context="Q"
    )
    _, stats = evaluate(states, "ppl_norm")
    assert stats["ppl_norm_undefined"] == 1
    assert stats["predicted_index"] == 1
    assert evaluate(row([("yes", -3.0)], [("no", -3.0)]), "ppl_norm")[1]["ppl_norm_undefined"] == 1  # equal numbers
    assert evaluate(row([("yes", -3.0)], [("no", -2.0)]), "ppl_norm")[1]["ppl_norm_undefined"] == 0


# Deployments that give no log-probabilities


@pytest.mark.parametrize("tokens", [
    [], [("Is", 0.0), (" it", 0.0), (" so?", 0.0), (" yes", 0.0)],
    [("yes", -1.0)],  # the answer's tokens instead of the prompt's
    [("A", -1.0), ("!", -0.5)],
    [("Is it so? yes", 0.0)],  # HELM's SimpleClient, old Together results: the whole text as one token
])  # fmt: skip
def test_missing_logprobs_name_the_deployment_and_a_way_out(tokens):
    states = states_of(tokens, tokens)
    with pytest.raises(LogprobsMissingError) as caught:
        evaluate(states)
    message = str(caught.value)
    assert "recorded/x returned no log-probabilities" in message
    assert "id0" in message
    assert "method=gen" in message


def test_a_single_option_of_one_token_is_fine():
    states = states_of([("a", 0.0)], [("a", 0.0), ("b", -1.0)], options=("a", "ab"), context="")
    assert evaluate(states)[1]["predicted_index"] == 0


def test_rows_that_were_left_out_are_counted_and_not_scored():
    scored = row([("yes", -1.0)], [("no", -2.0)])
    assert evaluate(scored)[1]["num_left_out"] == 0
    result, stats = evaluate([*scored, *states_of([], [], id="id1", left_out="too_long")])
    assert stats["num_left_out"] == stats["num_too_long"] == 1
    assert [r.instance_id for r in result.per_instance_stats if any(s.name.name == "acc" for s in r.stats)] == ["id0"]


def test_a_row_with_one_option_left_out_is_left_out_whole_and_counted_once():
    # The first option is too long for the window. Alone, "no" would win as option 0, which is worth 1.
    good = row([("yes", -2.0)], [("no", -1.0)])
    cut = row([], [("no", -1.0)], id="id1")
    marked = make_instance(id="id1", left_out="too_long")
    for broken in ([replace(cut[0], instance=marked), cut[1]], [cut[0], replace(cut[1], instance=marked)]):
        for rule, name in (("ppl", "ppl_accuracy"), ("mc2", "mc2")):
            result, stats = evaluate([*broken, *good], rule)
            assert stats["num_left_out"] == stats["num_too_long"] == 1
            assert stats["num_instances"] == 1
            assert stats["predicted_index"] == 1
            assert [r.instance_id for r in result.per_instance_stats if any(s.name.name == name for s in r.stats)] == [
                "id0"
            ]


def test_what_is_missing_of_a_row_is_said_with_its_name():
    states = row([("yes", -2.0)], [("no", -1.0)])
    with pytest.raises(LogprobsMissingError, match="id0: no result for option 1 of 2"):
        evaluate(states[1:])
    for broken in (replace(states[0], result=None), replace(states[0], reference_index=None)):
        with pytest.raises(LogprobsMissingError, match=r"^id0: .*recorded/x"):
            require_logprobs(broken)
    with pytest.raises(LogprobsMissingError, match=r"^id0: .*recorded/x"):  # a token each, and no other
        evaluate(states_of([("yes", -1.0)], [("no", -1.0)], context=""))


def test_several_trials_of_one_row_are_one():
    states = row([("yes", -2.0)], [("no", -1.0)])
    _, stats = evaluate(states)
    assert stats["ppl_accuracy"] == 0
    assert evaluate([*states, *states])[1] == evaluate(states[::-1])[1] == stats


def test_perturbed_options_keep_their_worth():
    # Lower-cased, both options read "a": only the order tells them apart.
    original = make_instance(("A", "a"), score={"A": 0.75, "a": 0.25})
    references = [replace(reference, output=Output("a")) for reference in original.references]
    perturbed = replace(original, references=references, perturbation=PerturbationDescription("lower"))
    states = [make_state(perturbed, index, [*CONTEXT, ("a", -1.0 - index)]) for index in (0, 1)]
    result, _ = evaluate(states)
    (score,) = [s.mean for r in result.per_instance_stats for s in r.stats if s.name.name == "ppl_accuracy"]
    assert score == 0.75


def test_a_chat_template_around_the_prompt_is_noticed(capsys, monkeypatch):
    monkeypatch.setattr(likelihood, "_warned", set())
    heard = []
    monkeypatch.setattr(likelihood, "hwarn", heard.append)
    states = row([("yes", -1.0)], [("no", -2.0)])
    evaluate(states)
    assert heard == []
    for state in states:
        state.result.completions[0] = GeneratedOutput(
            f"<|user|>{state.request.prompt}<|assistant|>", 0.0, state.result.completions[0].tokens
        )
    evaluate(states)
    evaluate(states)
    (message,) = heard
    assert "recorded/x" in message
    assert "apply_chat_template: false" in message


@pytest.mark.parametrize("rule", ["ppl", "ppl_norm", "mc2", "mc2_norm"])
def test_every_stat_is_described(rule):
    _, stats = evaluate(row([("yes", -1.0)], [("no", -2.0)]), rule)
    described = {metadata.name for metadata in SentenceLikelihoodMetric(rule).get_metadata()}
    assert set(stats) <= described
    assert ("ppl_norm_undefined" in described) == rule.endswith("_norm")


# What the rules above leave open


def test_tokens_that_spell_half_of_the_prompt_may_be_those_of_the_prompt():
    # The prompt has four letters; of them two are spelled, then one.
    state = states_of([("a", 0.0), ("b", -1.0)], [("x", 0.0)], context="ab ")[0]
    half = replace(state, request=replace(state.request, prompt="abcd"))
    assert require_logprobs(half).tokens == ("b",)
    with pytest.raises(LogprobsMissingError):
        require_logprobs(replace(half, request=replace(state.request, prompt="abcde")))
    without_texts = states_of([("", 0.0), ("", -1.0)], [("", 0.0)])[0]
    assert require_logprobs(without_texts).logprobs == (-1.0,)


# The frame is HELM's


class Plain(ReferenceMetric):
    """What SentenceLikelihoodMetric says of a row, as HELM's own ReferenceMetric adds it up."""

    def __init__(self, rule, unmeasured):
        self.rule, self.unmeasured = rule, unmeasured

    def evaluate_references(self, adapter_spec, reference_request_states, metric_service, eval_cache_path):
        instance = reference_request_states[0].instance
        by_option = {}
        for state in reference_request_states:
            by_option.setdefault(state.reference_index, state)
        states = [by_option[index] for index in range(len(instance.references))]
        usual = {}
        for state in states:
            for stat in compute_request_state_metrics(EfficiencyMetric(), adapter_spec, state, metric_service):
                merge_stat(usual, stat)
        worth = instance.extra_data[EXTRA_KEY].get("score") or {}
        right = [reference.is_correct for reference in instance.references]
        of_options = [worth.get(one.output.text, float(one.is_correct)) for one in instance.references]
        values = score_row([require_logprobs(state) for state in states], of_options, right, self.rule)
        own = [Stat(MetricName(name)).add(value) for name, value in values.items()]
        return [stat for stat in usual.values() if stat.name.name not in self.unmeasured] + own


def random_rows(draw, *, perturbed=False):
    """Rows of two splits and two to four options, some worth a part; times differ."""
    for number in range(23):
        options = [f"option {letter}" for letter in "abcd"[: draw.randint(2, 4)]]
        right = [draw.random() < 0.5 for _ in options]
        extra = {"score": {option: draw.random() for option in options}} if number % 3 else {}
        instance = replace(
            make_instance(options, right, id=f"id{number}", **extra), split=draw.choice(["test", "valid"])
        )
        kinds = [None, PerturbationDescription("p", robustness=True)] if perturbed else [None]
        for kind in kinds:
            found = replace(instance, perturbation=kind)
            for index, option in enumerate(options):
                state = make_state(found, index, [*CONTEXT, *[(f" {w}", -3 * draw.random()) for w in option.split()]])
                yield replace(state, result=replace(state.result, request_time=draw.random()))


def said(stats):
    return [repr(vars(stat)) for stat in stats]


@pytest.mark.long
@pytest.mark.parametrize("perturbed", [False, True])
@pytest.mark.parametrize("trials", [1, 2])
@pytest.mark.parametrize("rule", ["ppl", "ppl_norm", "mc2", "mc2_norm"])
def test_stats_and_their_order_are_those_of_helms_frame(rule, trials, perturbed):
    states = list(random_rows(random.Random(7), perturbed=perturbed))
    states = [replace(state, train_trial_index=trial) for trial in range(trials) for state in states]
    spec = AdapterSpec(
        method="multiple_choice_separate_original", model="x", model_deployment="recorded/x", num_train_trials=trials
    )
    state = ScenarioState(spec, states)
    metric = SentenceLikelihoodMetric(rule)
    found = metric.evaluate(state, None, "", parallelism=1)
    plain = [InstancesPerSplitMetric(), Plain(rule, metric.find_facts(state).unmeasured)]
    results = [one.evaluate(state, None, "", parallelism=1) for one in plain]
    expected = [stat for result in results for stat in result.aggregated_stats]
    assert said(found.aggregated_stats)[: len(expected)] == said(expected)
    assert {stat.name.name for stat in found.aggregated_stats[len(expected) :]} == {"num_left_out"}
    (rows,) = [result.per_instance_stats for result in results if result.per_instance_stats]
    assert [(row.instance_id, row.perturbation, row.train_trial_index) for row in found.per_instance_stats] == [
        (row.instance_id, row.perturbation, row.train_trial_index) for row in rows
    ]
    assert [said(row.stats) for row in found.per_instance_stats] == [said(row.stats) for row in rows]
