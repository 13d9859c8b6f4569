"""Recorded likelihoods of options, so that HELM's BasicReferenceMetric is right without a tokenizer."""

from __future__ import annotations

from collections.abc import Sequence

from helm.benchmark.adaptation.adapter_spec import ADAPT_MULTIPLE_CHOICE_SEPARATE_CALIBRATED, AdapterSpec
from helm.benchmark.adaptation.request_state import RequestState
from helm.benchmark.model_deployment_registry import get_model_deployment
from helm.common.request import Token

from helm_ext.evalset.copying import copy_with

__all__ = ["collapse_reference", "count_reference_tokens", "lacks_tokenizer"]


def collapse_reference(state: RequestState, adapter_spec: AdapterSpec) -> RequestState:
    """Make HELM's BasicReferenceMetric right for a deployment without a tokenizer.

    It sums the last N tokens, N being the number of tokens of " " + reference, and divides by N where the method is
    not calibrated. Without a tokenizer N is 1 and the score is that of the last token. So the tokens that spell the
    reference are found in the recorded ones and replaced by one, with the same score.
    """
    if state.result is None or state.reference_index is None or not lacks_tokenizer(adapter_spec.model_deployment):
        return state
    completion = state.result.completions[0]
    reference = state.instance.references[state.reference_index].output.text
    count = count_reference_tokens([token.text for token in completion.tokens], reference)
    logprob = sum(token.logprob for token in completion.tokens[len(completion.tokens) - count :])
    if adapter_spec.method != ADAPT_MULTIPLE_CHOICE_SEPARATE_CALIBRATED:
        logprob /= count
    collapsed = copy_with(completion, tokens=[Token(text=reference, logprob=logprob)])
    return copy_with(state, result=copy_with(state.result, completions=[collapsed]))


def count_reference_tokens(tokens: Sequence[str], reference: str) -> int:
    """Return how many of the last tokens spell `reference` (the space before it belongs to its first token).

    Raises ValueError when the tokens do not end with it: the log-probability of this option is then unknown.
    """
    wanted = reference.strip()
    tail = ""
    for count, token in enumerate(reversed(tokens), start=1):
        # SentencePiece writes its word boundary as U+2581.
        tail = token.replace("▁", " ") + tail
        if tail.strip() == wanted:
            return count
        if len(tail.strip()) > len(wanted):
            break
    raise ValueError(
        f"the recorded tokens end with {''.join(tokens)[-40:]!r}, which is not the option {reference!r}: "
        "its log-probability cannot be told"
    )


def lacks_tokenizer(model_deployment: str) -> bool:
    """Whether a deployment names no tokenizer: HELM then counts one token for any text."""
    return get_model_deployment(model_deployment).tokenizer_name is None
