"""Which of HELM's clients give log-probabilities of the prompt, and what is said of those that give none."""

from __future__ import annotations

from collections.abc import Sequence

from helm.benchmark.model_deployment_registry import get_model_deployment
from helm.benchmark.scenarios.scenario import Instance

from helm_ext.errors import HelmExtError
from helm_ext.evalset import row_extra

_GIVES = (
    "huggingface_client.HuggingFaceClient",
    "vllm_client.VLLMClient",
    "openai_client.OpenAILegacyCompletionsClient",
    "together_client.TogetherClient",
    "anthropic_client.AnthropicLegacyClient",
    "aleph_alpha_client.AlephAlphaClient",
    "ai21_client.AI21Client",
    "cohere_client.CohereClient",
)
"""Read in HELM 0.5.16: for `echo_prompt` and `max_tokens=0` they return every token of the prompt with its value."""

_GIVES_NOT = (
    "openai_client.OpenAIClient",
    "azure_openai_client.AzureOpenAIClient",
    "openai_responses_client.OpenAIResponseClient",
    "openrouter_client.OpenRouterClient",
    "grok_client.GrokChatClient",
    "vllm_client.VLLMChatClient",
    "anthropic_client.AnthropicClient",
    "anthropic_client.AnthropicMessagesClient",
    "bedrock_client.BedrockNovaClient",
    "bedrock_client.BedrockTitanClient",
    "bedrock_client.BedrockMistralClient",
    "bedrock_client.BedrockLlamaClient",
    "cohere_client.CohereChatClient",
    "google_genai_client.GoogleGenAIClient",
    "huggingface_inference_providers_client.HuggingFaceInferenceProvidersClient",
    "huggingface_pipeline_client.HuggingFacePipelineClient",
    "litellm_client.LiteLLMCompletionClient",
    "lit_gpt_client.LitGPTClient",
    "megatron_client.MegatronClient",
    "mistral_client.MistralAIClient",
    "palmyra_client.PalmyraClient",
    "reka_client.RekaClient",
    "simple_client.SimpleClient",
    "together_client.TogetherChatClient",
    "together_client.TogetherCompletionClient",
    "vertexai_client.VertexAITextClient",
    "vertexai_client.VertexAIChatClient",
    "writer_client.WriterClient",
)
"""Read in HELM 0.5.16: they return no tokens, tokens of 0.0, the answer's tokens only, or refuse `echo_prompt`."""

PROMPT_LOGPROBS: dict[str, bool] = {
    **{f"helm.clients.{name}": True for name in _GIVES},
    **{f"helm.clients.{name}": False for name in _GIVES_NOT},
}
"""Client class to whether it gives log-probabilities of the prompt."""


class LogprobsMissingError(HelmExtError, ValueError):
    """A deployment returned no log-probabilities for the prompt, so that options cannot be compared."""


def gives_prompt_logprobs(client_class: str) -> bool | None:
    """Return whether HELM's client of this class gives log-probabilities of the prompt; None if that is not known."""
    return PROMPT_LOGPROBS.get(client_class)


def explain_missing(deployment: str) -> str:
    """Return what is wrong with a deployment without log-probabilities of the prompt, and what to use instead."""
    return (
        f"{deployment} returned no log-probabilities for the prompt, and PPL compares nothing else\n"
        """Raise LogprobsMissingError, before any request, where options are compared and the client gives no values."""
        "or the dataset's GEN script: method=gen"
    )


def require_prompt_logprobs(deployment: str, instances: Sequence[Instance]) -> None:
    """Raise LogprobsMissingError, before any request, where options are compared and the client gives no values."""
    if not any("score" in row_extra(instance) for instance in instances):
        return
    client_class = get_model_deployment(deployment).client_spec.class_name
    if gives_prompt_logprobs(client_class) is False:
        raise LogprobsMissingError(explain_missing(deployment))
