"""What HELM's clients can do, by class, as read in HELM 0.5.16; tests/contract holds that against the installed code.

HELM's chat method sends `messages` and an empty prompt. A client that looks at the prompt alone would be asked "", and
answer something: a plausible score for a question that nobody saw. HELM has no flag for this. Nor does it say which
clients give log-probabilities of the prompt, without which options cannot be compared.
"""

from __future__ import annotations

from collections.abc import Sequence

from helm.benchmark.adaptation.adapter_spec import ADAPT_CHAT, AdapterSpec
from helm.benchmark.model_deployment_registry import get_model_deployment
from helm.benchmark.scenarios.scenario import Instance

from helm_ext.errors import HelmExtError, RunEntryError
from helm_ext.evalset import row_extra


def _paths(names: str) -> frozenset[str]:
    return frozenset(f"helm.clients.{name}" for name in names.split())


IGNORES_MESSAGES = _paths(
    """
    ai21_client.AI21ChatClient ai21_client.AI21Client aleph_alpha_client.AlephAlphaClient
    anthropic_client.AnthropicClient anthropic_client.AnthropicLegacyClient bedrock_client.BedrockClient
    bedrock_client.BedrockLlamaClient bedrock_client.BedrockMistralClient bedrock_client.BedrockTitanClient
    cohere_client.CohereChatClient cohere_client.CohereClient google_client.GoogleClient
    http_model_client.HTTPModelClient ibm_client.IbmChatClient ibm_client.IbmClient ibm_client.IbmTextClient
    lit_gpt_client.LitGPTClient megatron_client.MegatronClient openai_client.OpenAILegacyCompletionsClient
    openai_client.OpenAITranscriptionThenCompletionClient palmyra_client.PalmyraClient simple_client.SimpleClient
    stanfordhealthcare_claude_client.StanfordHealthCareClaudeClient
    stanfordhealthcare_google_client.StanfordHealthCareGoogleClient
    stanfordhealthcare_http_model_client.StanfordHealthCareHTTPModelClient together_client.TogetherClient
    together_client.TogetherCompletionClient vertexai_client.VertexAIClient vertexai_client.VertexAITextClient
    vllm_client.VLLMClient
    """
)
"""Clients that never look at `messages`, or refuse them. A class that is not HELM's is trusted."""

_GIVES = _paths(
    """
    ai21_client.AI21Client aleph_alpha_client.AlephAlphaClient anthropic_client.AnthropicLegacyClient
    cohere_client.CohereClient huggingface_client.HuggingFaceClient openai_client.OpenAILegacyCompletionsClient
    together_client.TogetherClient vllm_client.VLLMClient
    """
)
"""For `echo_prompt` and `max_tokens=0` they return every token of the prompt with its value."""

_GIVES_NOT = _paths(
    """
    anthropic_client.AnthropicClient anthropic_client.AnthropicMessagesClient azure_openai_client.AzureOpenAIClient
    bedrock_client.BedrockLlamaClient bedrock_client.BedrockMistralClient bedrock_client.BedrockNovaClient
    bedrock_client.BedrockTitanClient cohere_client.CohereChatClient google_genai_client.GoogleGenAIClient
    grok_client.GrokChatClient huggingface_inference_providers_client.HuggingFaceInferenceProvidersClient
    huggingface_pipeline_client.HuggingFacePipelineClient lit_gpt_client.LitGPTClient
    litellm_client.LiteLLMCompletionClient megatron_client.MegatronClient mistral_client.MistralAIClient
    openai_client.OpenAIClient openai_responses_client.OpenAIResponseClient openrouter_client.OpenRouterClient
    palmyra_client.PalmyraClient reka_client.RekaClient simple_client.SimpleClient together_client.TogetherChatClient
    together_client.TogetherCompletionClient vertexai_client.VertexAIChatClient vertexai_client.VertexAITextClient
    vllm_client.VLLMChatClient writer_client.WriterClient
    """
)
"""They return no tokens, tokens of 0.0, the answer's tokens only, or refuse `echo_prompt`."""

PROMPT_LOGPROBS = {**dict.fromkeys(sorted(_GIVES), True), **dict.fromkeys(sorted(_GIVES_NOT), False)}
"""Client class to whether it gives log-probabilities of the prompt."""


class LogprobsMissingError(HelmExtError, ValueError):
    """A deployment returned no log-probabilities for the prompt, so that options cannot be compared."""


def _client_class(deployment: str) -> str:
    return get_model_deployment(deployment).client_spec.class_name


def ignores_messages(client_class: str) -> bool:
    """Whether a deployment with this client would be asked an empty prompt by the chat method."""
    return client_class in IGNORES_MESSAGES


def require_chat_client(adapter_spec: AdapterSpec) -> None:
    """Raise RunEntryError for the chat method where the deployment's client would be asked an empty prompt."""
    if adapter_spec.method != ADAPT_CHAT:
        return
    client_class = _client_class(adapter_spec.model_deployment)
    if ignores_messages(client_class):
        raise RunEntryError(
            f"{adapter_spec.model_deployment}: its client {client_class} ignores chat messages, so the model would be "
            "asked an empty prompt\n  hint: render=text writes the conversation as a text prompt (innodata:), or name "
            "a chat deployment"
        )


def gives_prompt_logprobs(client_class: str) -> bool | None:
    """Return whether HELM's client of this class gives log-probabilities of the prompt; None if that is not known."""
    return PROMPT_LOGPROBS.get(client_class)


def explain_missing(deployment: str) -> str:
    """Return what is wrong with a deployment without log-probabilities of the prompt, and what to use instead."""
    return (
        f"{deployment} returned no log-probabilities for the prompt, and PPL compares nothing else\n"
        "  hint: use a deployment whose client gives them (Hugging Face, vLLM, legacy completions), or the dataset's "
        "GEN script: method=gen"
    )


def require_prompt_logprobs(deployment: str, instances: Sequence[Instance]) -> None:
    """Raise LogprobsMissingError, before any request, where options are compared and the client gives no values."""
    compares = any("score" in row_extra(instance) for instance in instances)
    if compares and gives_prompt_logprobs(_client_class(deployment)) is False:
        raise LogprobsMissingError(explain_missing(deployment))
