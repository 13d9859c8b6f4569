"""Options that are asked for one by one: from a file to scores, with log-probabilities that are known."""

import re
from dataclasses import replace

import pytest
from helm.benchmark.adaptation.adapters.adapter_factory import AdapterFactory
from helm.benchmark.adaptation.scenario_state import ScenarioState
from helm.common.request import GeneratedOutput, RequestResult, Token
from request_states_files import answered, choice, write

from helm_ext import plugin  # noqa: F401 - registers recorded deployments
from helm_ext.errors import RunEntryError
from helm_ext.formats import request_states
from helm_ext.scoring.metrics import EvalSetMetric

ORIGINAL, CALIBRATED = "multiple_choice_separate_original", "multiple_choice_separate_calibrated"

KNOWN = {" Paris": -1.0, " Rome": -3.0, " New": -2.0, " York": -1.5}
"""After the question."""
ALONE = {" Paris": -0.5, " Rome": -4.5, " New": -2.0, " York": -1.0}
"""After "Answer:", which is what HELM asks instead of the question."""


def ask(state):
    result = getattr(state.request, "result", None)
    if result is not None:
        return replace(state, result=result)
    known = ALONE if state.request_mode == "calibration" else KNOWN
    tokens = [Token(one, known.get(one, -9.0)) for one in re.findall(r" ?\w+|\s|[^\w\s]", state.request.prompt)]
    completion = GeneratedOutput(state.request.prompt, sum(token.logprob for token in tokens), tokens)
    return replace(state, result=RequestResult(success=True, embedding=[], completions=[completion], cached=False))


def run(tmp_path, deployment, method, rows, **spec):
    path = write(tmp_path / "x.json", rows, {"method": method, "max_train_instances": 0, **spec})
    evalset = request_states.load(path)
    adapter_spec = replace(evalset.adapter_spec, model=deployment, model_deployment=deployment)
    states = AdapterFactory.get_adapter(adapter_spec, None).adapt(evalset.instances, parallelism=1)
    metric = EvalSetMetric(**evalset.scoring.to_args())
    asked = [ask(state) for state in states]
    result = metric.evaluate(ScenarioState(adapter_spec, asked), None, "", parallelism=1)
    return asked, {stat.name.name: stat.mean for stat in result.aggregated_stats}


ROWS = [choice("Capital of France?", ["Rome", "Paris", "New York"], correct=1)]


@pytest.mark.parametrize(("method", "predicted"), [
    # -3, -1, (-2 - 1.5) / 2 = -1.75: Paris
    (ORIGINAL, 1),
    # -3 - -4.5 = 1.5, -1 - -0.5 = -0.5, -3.5 - -3 = -0.5: Rome
    (CALIBRATED, 0),
])  # fmt: skip
def test_the_option_is_what_is_scored_where_the_file_gives_no_suffix(method, predicted, tmp_path, live_deployment):
    states, stats = run(tmp_path, live_deployment, method, ROWS)
    assert states[0].request.prompt == "Input: Capital of France?\nOutput: Rome"
    assert (stats["predicted_index"], stats["exact_match"]) == (predicted, predicted == 1)
    if method == CALIBRATED:
        assert states[1].request.prompt == "Input: Answer:\nOutput: Rome"


@pytest.mark.parametrize("method", [ORIGINAL, CALIBRATED])
@pytest.mark.parametrize(("spec", "said"), [
    ({"output_suffix": "\n"}, r'output_suffix "\\n": with method .* the end of the prompt is scored'),
    ({"global_suffix": "."}, r'global_suffix "."'),
    ({"output_prefix": "Output:"}, r'output_prefix "Output:": .*\n  hint: "output_prefix": "Output: "'),
], ids=lambda given: next(iter(given)) if isinstance(given, dict) else "")  # fmt: skip
def test_a_live_run_that_would_score_something_else_is_refused(method, spec, said, tmp_path, live_deployment):
    with pytest.raises(RunEntryError, match=said):
        run(tmp_path, live_deployment, method, ROWS, **spec)


@pytest.mark.parametrize("mode", [{"request_mode": "original"}, {"request_mode": None}, {}], ids=str)
def test_recorded_options_are_scored_whatever_the_file_says_of_prompts(mode, tmp_path):
    """Nobody is asked: the tokens that were recorded end with the option. The method has one mode, said or not."""
    tokens = {name: [{"text": "\n", "logprob": -9.0}, {"text": f" {name}", "logprob": KNOWN[f" {name}"]}]
              for name in ("Rome", "Paris")}  # fmt: skip
    rows = []
    for index, (name, spelled) in enumerate(tokens.items()):
        row = answered(choice("Capital of France?", ["Rome", "Paris"], correct=1), f" {name}")
        row["request"]["result"]["completions"][0]["tokens"] = spelled
        rows.append({**row, "reference_index": index, **mode})
    states, stats = run(tmp_path, "recorded/x", ORIGINAL, rows, output_suffix="\n", output_prefix="")
    assert len(states) == 2
    assert stats["exact_match"] == 1
