"""Which of HELM's clients can be asked with messages.

HELM's chat method sends `messages` and an empty prompt. A client that looks at the prompt alone would be asked "", and
answer something: a plausible score for a question that nobody saw. HELM has no flag for this, so it is decided by the
client's class, as read in HELM 0.5.16; tests/contract/test_chat_clients.py compares the list with the installed code.
"""

from __future__ import annotations

from helm.benchmark.adaptation.adapter_spec import ADAPT_CHAT, AdapterSpec
from helm.benchmark.model_deployment_registry import get_model_deployment

from helm_ext.errors import RunEntryError

IGNORES_MESSAGES = frozenset(
    f"helm.clients.{name}"
    for name in (
        "ai21_client.AI21Client",
        "ai21_client.AI21ChatClient",
        "aleph_alpha_client.AlephAlphaClient",
        "anthropic_client.AnthropicClient",
        "anthropic_client.AnthropicLegacyClient",
        "bedrock_client.BedrockClient",
        "bedrock_client.BedrockLlamaClient",
        "bedrock_client.BedrockMistralClient",
        "bedrock_client.BedrockTitanClient",
        "cohere_client.CohereClient",
        "cohere_client.CohereChatClient",
        "google_client.GoogleClient",
        "http_model_client.HTTPModelClient",
        "ibm_client.IbmClient",
        "ibm_client.IbmChatClient",
        "ibm_client.IbmTextClient",
        "lit_gpt_client.LitGPTClient",
        "megatron_client.MegatronClient",
        "openai_client.OpenAILegacyCompletionsClient",
        "openai_client.OpenAITranscriptionThenCompletionClient",
        "palmyra_client.PalmyraClient",
        "simple_client.SimpleClient",
        "stanfordhealthcare_claude_client.StanfordHealthCareClaudeClient",
        "stanfordhealthcare_google_client.StanfordHealthCareGoogleClient",
        "stanfordhealthcare_http_model_client.StanfordHealthCareHTTPModelClient",
        "together_client.TogetherClient",
        "together_client.TogetherCompletionClient",
        "vertexai_client.VertexAIClient",
        "vertexai_client.VertexAITextClient",
        "vllm_client.VLLMClient",
    )
)
"""Class paths of clients that never look at `messages`, or refuse them. A class that is not HELM's is trusted."""


def ignores_messages(client_class: str) -> bool:
    """Whether a deployment with this client would be asked an empty prompt by the chat method."""
    return client_class in IGNORES_MESSAGES


def require_chat_client(adapter_spec: AdapterSpec) -> None:
    """Raise RunEntryError for the chat method where the deployment's client would be asked an empty prompt."""
    if adapter_spec.method != ADAPT_CHAT:
        return
    client_class = get_model_deployment(adapter_spec.model_deployment).client_spec.class_name
    if ignores_messages(client_class):
        raise RunEntryError(
            f"{adapter_spec.model_deployment}: its client {client_class} ignores chat messages, so the model would be "
            "asked an empty prompt\n  hint: render=text writes the conversation as a text prompt (innodata:), or name "
            "a chat deployment"
        )
