"""Recorded likelihoods of options, so that HELM's BasicReferenceMetric is right without a tokenizer."""

from __future__ import annotations

from dataclasses import replace

from helm.benchmark.adaptation.adapter_spec import ADAPT_MULTIPLE_CHOICE_SEPARATE_CALIBRATED, AdapterSpec
from helm.benchmark.adaptation.request_state import RequestState
from helm.benchmark.model_deployment_registry import get_model_deployment
from helm.common.request import Token

from helm_ext.errors import RecordedError, show
from helm_ext.scoring.scores.likelihoods import count_reference_tokens


def collapse_reference(state: RequestState, adapter_spec: AdapterSpec) -> RequestState:
    """Make HELM's BasicReferenceMetric right for a deployment without a tokenizer.

    It sums the last N tokens, N being the number of tokens of " " + reference, and divides by N where the method is
    not calibrated. Without a tokenizer N is 1 and the score is that of the last token. So the tokens that spell the
    reference are found in the recorded ones and replaced by one, with the same score.

    Raises RecordedError where the tokens do not end with it; formats leave such a recording out before (`not_run`).
    """
    if state.result is None or state.reference_index is None or not lacks_tokenizer(adapter_spec.model_deployment):
        return state
    completion = state.result.completions[0]
    reference = state.instance.references[state.reference_index].output.text
    tokens = [token.text for token in completion.tokens]
    count = count_reference_tokens(tokens, reference)
    if count is None:
        raise RecordedError(
            f"row {state.instance.id}: the recorded tokens end with {show(''.join(tokens)[-40:])}, which is not the "
            f"option {show(reference)}: its log-probability cannot be told"
        )
    logprob = sum(token.logprob for token in completion.tokens[len(completion.tokens) - count :])
    if adapter_spec.method != ADAPT_MULTIPLE_CHOICE_SEPARATE_CALIBRATED:
        logprob /= count
    collapsed = replace(completion, tokens=[Token(text=reference, logprob=logprob)])
    return replace(state, result=replace(state.result, completions=[collapsed]))


def lacks_tokenizer(model_deployment: str) -> bool:
    """Whether a deployment names no tokenizer: HELM then counts one token for any text."""
    return get_model_deployment(model_deployment).tokenizer_name is None
