"""FastGenerationMetric and FastReferenceMetric against HELM's metrics, bit for bit."""

import math
import random
from dataclasses import replace
from types import SimpleNamespace

import helm_states
import pytest
from helm.benchmark.adaptation.adapter_spec import AdapterSpec
from helm.benchmark.adaptation.scenario_state import ScenarioState
from helm.benchmark.augmentations.misspelling_perturbation import MisspellingPerturbation
from helm.benchmark.augmentations.perturbation_description import PerturbationDescription
from helm.benchmark.metrics.basic_metrics import BasicGenerationMetric, BasicReferenceMetric
from helm.benchmark.metrics.evaluate_reference_metrics import normalize_text as helm_normalize_text
from helm.benchmark.scenarios.scenario import CORRECT_TAG, Input, Instance, Output, Reference
from helm.benchmark.window_services.window_service_factory import WindowServiceFactory
from helm.common.general import asdict_without_nones
from helm.common.request import GeneratedOutput, Request, Token
from hypothesis import example, given
from hypothesis import strategies as st

from helm_ext.scoring.basic.metrics import FastGenerationMetric, FastReferenceMetric, read_as_helm
from helm_ext.scoring.scores.helm import get_score, normalize_text

NAMES = [
    "exact_match", "quasi_exact_match", "quasi_leave_articles_exact_match", "prefix_exact_match",
    "quasi_prefix_exact_match", "final_number_exact_match", "f1_set_match", "iou_set_match", "f1_score", "rouge_1",
    "rouge_2", "rouge_l", "absolute_value_difference", "math_equiv",
]  # fmt: skip
WORDS = ["the", "A", "cat", "12", "3.5", "sat.", "on", "", "an", "Mat!", "is", "and", "Nothing.", "$x$", "ÄÖ", "甲"]
PERTURBATIONS = [
    PerturbationDescription(name="contraction", robustness=True),
    MisspellingPerturbation.Description(name="misspellings", robustness=True, fairness=False, prob=0.25),
    PerturbationDescription(name="dialect", fairness=True),
]


class Words:
    """A window service that counts words."""

    def __init__(self):
        self.counted = []

    def get_num_tokens(self, text):
        self.counted.append(text)
        return len(text.split())

    def tokenize(self, text):
        return text.split()


@pytest.fixture(autouse=True)
def words(monkeypatch):
    window = Words()
    monkeypatch.setattr(WindowServiceFactory, "get_window_service", staticmethod(lambda _name, _service: window))
    return window


def text(rng, words=4):
    return " ".join(rng.choices(WORDS, k=rng.randint(0, words)))


def make_completion(rng, mapping, with_tokens=True):
    words = (rng.choice(list(mapping)) if mapping and rng.random() < 0.8 else text(rng)) + rng.choice(["", " ", "\n"])
    tokens = [Token(text=word, logprob=-rng.random()) for word in words.split()] if with_tokens else []
    if tokens and rng.random() < 0.2:
        tokens[0] = Token(text="bytes:\\xe2\\x80", logprob=-0.5)
    return GeneratedOutput(
        text=words,
        logprob=rng.choice([0, 0.0, -0.5, -0.5, sum(token.logprob for token in tokens)]),
        tokens=tokens,
        finish_reason=rng.choice([None, {"reason": "stop"}, {"reason": "length"}, {"reason": "odd"}]),
    )


def make_result(rng, completions):
    batch = rng.random() < 0.2
    return helm_states.make_result(
        *completions,
        request_time=rng.choice([None, rng.random(), 1]),
        batch_size=7 if batch else None,
        batch_request_time=rng.random() if batch else None,
    )


def make_instances(rng, rows, perturbed):
    instances = []
    for row in range(rows):
        references = [Reference(Output(text(rng)), tags=[]) for _ in range(rng.randint(0, 4))]
        for index in rng.sample(range(len(references)), k=min(len(references), rng.randint(1, 2))):
            references[index] = replace(references[index], tags=[CORRECT_TAG])
        instance = Instance(
            Input(text(rng)),
            references,
            split=rng.choice(["test", "valid"]),
            sub_split=rng.choice([None, "hard"]),
            id=f"id{row}",
        )
        instances.append(instance)
        if perturbed:
            instances += [
                replace(instance, perturbation=perturbation, input=Input(text(rng)))
                for perturbation in PERTURBATIONS
                if rng.random() < 0.7
            ]
    return instances


def make_generation(seed, *, rows=16, trials=1, outputs=1, perturbed=False, mapped=False, echo=False, model="x/y"):
    rng = random.Random(seed)
    spec = AdapterSpec(
        method="generation",
        num_train_trials=trials,
        num_outputs=outputs,
        model=model,
        model_deployment=model,
        output_mapping_pattern=r"([A-D])" if mapped and seed % 2 else None,
    )
    states = []
    instances = make_instances(rng, rows, perturbed)
    for trial in range(trials):
        for instance in instances:
            if rng.random() < 0.05:
                continue  # not every instance is there in every trial
            mapping = {"ABCD"[i]: r.output.text for i, r in enumerate(instance.references)} if mapped else None
            completions = [make_completion(rng, mapping) for _ in range(outputs)]
            states.append(
                helm_states.make_state(
                    instance,
                    train_trial_index=trial,
                    output_mapping=mapping,
                    request=Request(prompt=text(rng, 30), model=model, model_deployment=model, echo_prompt=echo),
                    result=make_result(rng, completions),
                    num_train_instances=rng.randint(0, 5),
                    prompt_truncated=rng.random() < 0.2,
                    num_conditioning_tokens=rng.choice([0, 0, 1]) if completions[0].tokens else 0,
                )
            )
    return ScenarioState(spec, states)


def make_references(seed, *, method="multiple_choice_separate_original", rows=20, trials=1, perturbed=False):
    rng = random.Random(seed)
    spec = AdapterSpec(method=method, num_train_trials=trials, model="x/y", model_deployment="x/y")
    modes = ["original", "calibration"] if method.endswith("calibrated") else ["original"]
    states = []
    for trial in range(trials):
        for instance in make_instances(rng, rows, perturbed):
            tie = rng.random() < 0.3
            for index, reference in enumerate(instance.references):
                for mode in modes:
                    tokens = [
                        Token(word, -1.0 if tie else -rng.random()) for word in ["x", *reference.output.text.split()]
                    ]
                    states.append(
                        helm_states.make_state(
                            instance,
                            reference_index=index,
                            request_mode=mode,
                            train_trial_index=trial,
                            request=Request(prompt=text(rng, 9), model="x/y", model_deployment="x/y", echo_prompt=True),
                            result=make_result(rng, [GeneratedOutput(text="x", logprob=-1.0, tokens=tokens)]),
                            num_train_instances=rng.randint(0, 5),
                        )
                    )
    return ScenarioState(spec, [s for s in states if all(r.output.text.split() for r in s.instance.references)])


def plain(stats):
    """Stats as HELM's files hold them; repr tells 1 from 1.0 and every bit of a float."""
    return [
        repr(asdict_without_nones(stat)).replace("np.float64", "").replace("(", "").replace(")", "") for stat in stats
    ]


def evaluate(metric, state, service=None):
    return metric.evaluate(state, service or SimpleNamespace(), "", 1)


def split_fitted(stats):
    """Return the stats that are equal to the last bit, and those of a fit by name."""
    fitted = {stat.name: stat.mean for stat in stats if stat.name.name.startswith("platt_")}
    return plain([stat for stat in stats if stat.name not in fitted]), fitted


def assert_equal(ours, helms):
    (mine, my_fit), (theirs, their_fit) = split_fitted(ours.aggregated_stats), split_fitted(helms.aggregated_stats)
    assert mine == theirs
    assert my_fit == pytest.approx(their_fit, rel=1e-9, abs=1e-12)
    assert len(ours.per_instance_stats) == len(helms.per_instance_stats)
    for mine, theirs in zip(ours.per_instance_stats, helms.per_instance_stats, strict=True):
        assert (mine.instance_id, mine.perturbation, mine.train_trial_index) == (
            theirs.instance_id,
            theirs.perturbation,
            theirs.train_trial_index,
        )
        assert plain(mine.stats) == plain(theirs.stats)


@pytest.mark.long
@pytest.mark.parametrize("options", [
    {}, {"trials": 3}, {"outputs": 3}, {"perturbed": True}, {"mapped": True}, {"echo": True},
    {"model": "openai/davinci"},  # a deployment of HELM's efficiency tables
    {"trials": 2, "outputs": 2, "perturbed": True, "mapped": True},
], ids=lambda options: "-".join(options) or "plain")  # fmt: skip
@pytest.mark.parametrize("seed", [1, 2])
def test_generation_equals_helm(options, seed):
    names = NAMES[:5] if options.get("mapped") else NAMES  # the others cannot take an answer that maps to nothing
    state = make_generation(seed, **options)
    ours = evaluate(FastGenerationMetric(names), state)
    assert_equal(ours, evaluate(BasicGenerationMetric(names), state))
    assert len(ours.aggregated_stats) > 30


@pytest.mark.parametrize("method", ["multiple_choice_separate_original", "multiple_choice_separate_calibrated"])
@pytest.mark.parametrize("options", [{}, {"trials": 2}, {"perturbed": True}], ids=lambda o: "-".join(o) or "plain")
def test_references_equal_helm(method, options):
    state = make_references(3, method=method, **options)
    ours = evaluate(FastReferenceMetric(), state)
    assert_equal(ours, evaluate(BasicReferenceMetric(), state))
    assert {"exact_match", "predicted_index", "max_prob"} <= {stat.name.name for stat in ours.aggregated_stats}


def test_more_must_not_repeat_a_stat():
    state = make_generation(1, rows=2)
    metric = FastGenerationMetric(
        [], read=lambda s: read_as_helm(s, state.adapter_spec)._replace(more={"logprob": 1.0})
    )
    with pytest.raises(ValueError, match="logprob"):
        evaluate(metric, state)


def test_same_id_twice_fails_as_in_helm():
    state = make_generation(9, rows=3)
    doubled = [
        replace(s, instance=replace(s.instance, id="same", split="test", sub_split=None)) for s in state.request_states
    ]
    with pytest.raises(AssertionError):
        evaluate(FastGenerationMetric([]), ScenarioState(state.adapter_spec, doubled))


@pytest.mark.parametrize(("change", "message"), [
    (lambda s: replace(s, result=None), "never executed"),
    (lambda s: replace(s, instance=replace(s.instance, id=None)), "no id"),
    (lambda s: replace(s, instance=replace(s.instance, references=[Reference(Output("x"), [])])), "correct"),
])  # fmt: skip
def test_unusable_states(change, message):
    state, metric = make_generation(10, rows=2), FastGenerationMetric(["exact_match"])
    with pytest.raises(ValueError, match=message):
        evaluate(metric, ScenarioState(state.adapter_spec, [change(state.request_states[0])]))


@pytest.mark.parametrize(("method", "logprob", "message"), [
    ("multiple_choice_separate_original", math.nan, "not a number"),
    ("generation", -1.0, "Unknown adapter method"),
])  # fmt: skip
def test_unusable_references(method, logprob, message):
    state = make_references(1, rows=3)
    first = state.request_states[0]
    tokens = [Token("x", logprob)] * 9
    states = [
        replace(s, result=replace(s.result, completions=[GeneratedOutput("", 0, tokens)]))
        for s in state.request_states
        if s.instance is first.instance
    ]
    with pytest.raises(ValueError, match=message):
        evaluate(FastReferenceMetric(), ScenarioState(replace(state.adapter_spec, method=method), states))


def test_unknown_names_and_methods():
    state = make_generation(1, rows=1)
    with pytest.raises(ValueError, match="language_modeling"):
        evaluate(FastGenerationMetric([]), ScenarioState(replace(state.adapter_spec, method="language_modeling"), []))
    with pytest.raises(NameError, match=r"exact_mach is not in the list of metric functions\."):
        evaluate(FastGenerationMetric(["exact_mach"]), make_generation(1, rows=1))


def test_metadata_and_name_are_helms():
    for ours, helms in (
        (FastGenerationMetric(NAMES), BasicGenerationMetric(NAMES)),
        (FastReferenceMetric(), BasicReferenceMetric()),
    ):
        assert ours.get_metadata() == helms.get_metadata()
        assert repr(ours) == repr(helms)


def test_code_metrics(monkeypatch):
    from helm.benchmark.metrics import evaluate_reference_metrics
    from helm.benchmark.scenarios.code_scenario import CodeReference

    monkeypatch.setattr(
        evaluate_reference_metrics, "code_eval", lambda gold, prediction: float(gold[1]["x"] == prediction)
    )
    state = make_generation(11, rows=6, outputs=3)
    for seed, request_state in enumerate(state.request_states):
        rng = random.Random(seed)
        for completion in request_state.result.completions:
            object.__setattr__(completion, "text", rng.choice(["1", "2"]))
        gold = CodeReference(output=Output("x"), tags=[CORRECT_TAG], test_cases={"x": "1"})
        object.__setattr__(request_state.instance, "references", [gold])
    names = ["pass", "code_eval_acc"]
    assert_equal(evaluate(FastGenerationMetric(names), state), evaluate(BasicGenerationMetric(names), state))


@given(st.text(alphabet=st.sampled_from("aAn the.,!'\t\n ß甲_-1"), max_size=40))
def test_normal_form(text):
    assert normalize_text(text) == helm_normalize_text(text)


_TEXTS = st.text(max_size=20) | st.lists(st.sampled_from(WORDS), max_size=4).map(" ".join)


@given(_TEXTS, st.none() | _TEXTS)
@example("cat on the mat", "Mat on a cat.")  # the same words in another order
@example("on on", "on")
@example("the", "an")
def test_quasi_matches(gold, prediction):
    from helm.benchmark.metrics import evaluate_reference_metrics

    for name in ("quasi_exact_match", "quasi_prefix_exact_match"):
        assert get_score(name)(gold, prediction) == getattr(evaluate_reference_metrics, name)(gold, prediction)
    ours, helms = (f1(gold, prediction or "") for f1 in (get_score("f1_score"), evaluate_reference_metrics.f1_score))
    assert repr(ours) == repr(helms)  # 0 and 0.0 are two things in the files


def test_calibration_that_cannot_be_loaded_is_an_error_and_no_run_with_fewer_stats(monkeypatch):
    """As under `ulimit -v`, where a shared library cannot be mapped."""
    from array import array

    from helm.benchmark.metrics.metric_name import MetricName
    from helm.benchmark.metrics.statistic import Stat

    from helm_ext.errors import HelmExtError
    from helm_ext.scoring.basic import metrics as fast_stats

    def fail(*_):
        raise ImportError("libx.so: failed to map segment from shared object")

    monkeypatch.setattr(fast_stats, "compute_calibration", fail)
    metric = fast_stats.FastGenerationMetric(["exact_match"], frozenset())
    stats = {MetricName("logprob"): Stat(MetricName("logprob")).add(-1.0)}
    with pytest.raises(HelmExtError, match="failed to map segment"):
        metric.derive_from_kept(stats, [array("d", [0.5]), array("d", [1.0])])
