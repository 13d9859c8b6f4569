"""The one wrap around HELM: what a row needs and HELM's AdapterSpec cannot say.

HELM chooses its adapter in a closed if/else (`AdapterFactory.get_adapter`). `install` wraps that one function; the
adapter it returns decorates HELM's own:

    prepare   rows that the run cannot use are taken out; demonstrations are fitted to the context window
    adapt     HELM's adapter, unchanged
    finish    each request gets its row's decoding parameters, stop sequences and answer mapping

A recorded run makes no requests, so no adapter runs: its request states are rebuilt as they were recorded.
Instances without our key in `extra_data` are not changed.

What HELM's clients can do stands here by class, as read in HELM 0.5.16; tests/contract holds it against the installed
code. HELM's chat method sends `messages` and an empty prompt: a client that looks at the prompt alone would be asked
"", and answer something, a plausible score for a question that nobody saw. HELM has no flag for this. Nor does it say
which clients give log-probabilities of the prompt, without which options cannot be compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from helm.benchmark.adaptation.adapter_spec import ADAPT_CHAT, ADAPT_GENERATION, AdapterSpec
from helm.benchmark.adaptation.adapters.adapter import Adapter
from helm.benchmark.adaptation.adapters.adapter_factory import AdapterFactory
from helm.benchmark.adaptation.request_state import RequestState
from helm.benchmark.model_deployment_registry import get_model_deployment
from helm.benchmark.scenarios.scenario import TRAIN_SPLIT, Instance
from helm.common.hierarchical_logger import hwarn

from helm_ext.adaptation import recorded
from helm_ext.adaptation.rows import OF_RECORDED, leave_out, rebuild_recorded, select, tell_scoring, without_recording
from helm_ext.errors import HelmExtError, RecordedError, RunEntryError, count, show
from helm_ext.evalset import EXTRA_KEY, row_extra
from helm_ext.evalset.rows import make_all

if TYPE_CHECKING:
    from helm.benchmark.window_services.tokenizer_service import TokenizerService
    from helm.benchmark.window_services.window_service import WindowService


def install() -> None:
    """Wrap `AdapterFactory.get_adapter` and register `recorded/` deployments, once.

    Cheap, and safe to call from every module that may be the first one imported: the plugin, or a scenario in a worker
    of HELM's that loads no plugins.
    """
    recorded.register_deployments()
    wrapped = AdapterFactory.get_adapter
    if getattr(wrapped, "wrapped_by_helm_ext", False):
        return

    def get_adapter(adapter_spec: AdapterSpec, tokenizer_service: TokenizerService) -> Adapter:
        return EvalSetAdapter(wrapped(adapter_spec, tokenizer_service))

    get_adapter.wrapped_by_helm_ext = True  # type: ignore[attr-defined]
    AdapterFactory.get_adapter = staticmethod(get_adapter)


class EvalSetAdapter(Adapter):
    """Decorates one of HELM's adapters. See the module's docstring for what it adds."""

    def __init__(self, adapter: Adapter) -> None:
        # Not Adapter.__init__: it would build a second window service.
        self.adapter = adapter
        self.adapter_spec: AdapterSpec = adapter.adapter_spec

    def __getattr__(self, name: str) -> Any:
        """Everything else is HELM's adapter's, so that code which looks at an adapter sees the one it knows."""
        if name == "adapter":  # not yet set: pickle and copy ask before __init__
            raise AttributeError(name)
        return getattr(self.adapter, name)

    def adapt(self, instances: list[Instance], parallelism: int) -> list[RequestState]:
        """Turn instances into request states.

        Raises RecordedError when a recorded deployment meets rows without a usable recording, and RunEntryError when
        no row is left to evaluate.
        """
        make_all(instances)
        is_recorded = recorded.is_recorded(self.adapter_spec.model_deployment)
        if not any(EXTRA_KEY in (instance.extra_data or {}) for instance in instances):
            if is_recorded and instances:
                raise RecordedError(
                    f"{self.adapter_spec.model_deployment} needs a dataset that holds completions, and this scenario "
                    "holds none\n  hint: use adapter_spec:path=FILE with a file that holds them, or name a real model"
                )
            return self.adapter.adapt(instances, parallelism)
        if is_recorded:
            return rebuild_recorded(instances, self.adapter_spec)
        return self._adapt_live(instances, parallelism)

    def _adapt_live(self, instances: list[Instance], parallelism: int) -> list[RequestState]:
        _require_texts(instances, self.adapter_spec)
        _require_shown_options(instances, self.adapter_spec)
        _require_options_at_the_end(instances, self.adapter_spec)
        require_chat_client(self.adapter_spec)
        require_prompt_logprobs(self.adapter_spec.model_deployment, instances)
        prepared = [
            prepare(instance, self.adapter_spec, self.adapter.window_service)
            for instance in select(instances, self.adapter_spec, "live")
        ]
        _log_ignored_recordings(instances)
        originals = {id(ready.instance): ready for ready in prepared}
        states = self.adapter.adapt([ready.instance for ready in prepared], parallelism)
        if states and (scoring := row_extra(instances[0]).get("scoring")) is not None:
            tell_scoring(originals[id(states[0].instance)].original, scoring)
        return [finish(state, originals[id(state.instance)], self.adapter_spec) for state in states]


# Live runs


class Prepared(NamedTuple):
    """An instance as HELM's adapter sees it, and what its request states are given back afterwards."""

    instance: Instance
    original: Instance
    """The instance without its recording: what metrics and reports see."""
    demonstrations: int | None = None
    """How many demonstrations were kept in a prompt of our own; None when HELM renders the prompt."""
    too_long: bool = False
    """The question does not fit the window, alone or with one of its options: the whole row is left out."""


def prepare(instance: Instance, adapter_spec: AdapterSpec, window_service: WindowService) -> Prepared:
    """Take the recording off, and put a prompt of our own, fitted to the window, where HELM's adapter looks.

    Raises RunEntryError where a run expander asks for what a prompt of our own cannot have.
    """
    original = without_recording(instance, OF_RECORDED)
    parts = row_extra(instance).get("prompt")
    if parts is None or instance.split == TRAIN_SPLIT:
        return Prepared(original, original)
    _require_own_prompt(adapter_spec)
    if instance.perturbation is not None:  # data_augmentation= changes the question and knows nothing of our parts
        parts = [*parts[:-1], instance.input.text]
    text, kept, fits = fit_prompt(parts, instance, adapter_spec, window_service)
    prepared = replace(original, input=replace(original.input, text=text))
    return Prepared(prepared, original, kept, too_long=not fits)


def _require_own_prompt(adapter_spec: AdapterSpec) -> None:
    """Refuse what HELM's run expanders can ask for and such a prompt cannot have."""
    if adapter_spec.max_train_instances > 0:
        raise RunEntryError(
            f"max_train_instances={adapter_spec.max_train_instances}: this dataset's prompts hold their own "
            "demonstrations, HELM would add none\n  hint: fewshot=N says how many"
        )
    if adapter_spec.method.startswith("multiple_choice_separate") and adapter_spec.num_outputs > 1:
        raise RunEntryError(
            f"num_outputs={adapter_spec.num_outputs}: nothing is sampled where the options of a row are compared\n"
            "  hint: remove it, or use the dataset's GEN script: method=gen"
        )


def fit_prompt(
    parts: Sequence[str], instance: Instance, adapter_spec: AdapterSpec, window_service: WindowService
) -> tuple[str, int, bool]:
    """Join [head, demonstration, ..., question], dropping demonstrations from the front until it fits the window.

    Where each reference is appended to the prompt, it must fit with every one of them. The question is never cut: a
    row whose question does not fit without demonstrations is left out (docs/ultraeval.md).

    Returns the text, the number of demonstrations kept, and whether it fits.
    """
    head, *demonstrations, question = parts
    appended = [""]
    if adapter_spec.method.startswith("multiple_choice_separate"):
        # The one with most characters most often has most tokens too: where something does not fit, one look tells.
        texts = {reference.output.text for reference in instance.references} or {""}
        appended = sorted(texts, key=lambda text: (-len(text), text))
    elif not demonstrations:
        return f"{head}{question}", 0, True  # HELM's adapter looks itself, once: `prompt_truncated`

    def fits(text: str) -> bool:
        return all(
            window_service.fits_within_context_window(
                text=f"{adapter_spec.global_prefix}{text}{option}{adapter_spec.global_suffix}",
                expected_completion_token_length=adapter_spec.max_tokens,
            )
            for option in appended
        )

    for first in range(len(demonstrations) + 1):
        text = "".join([head, *demonstrations[first:], question])
        if fits(text):
            return text, len(demonstrations) - first, True
    return f"{head}{question}", 0, False


def finish(state: RequestState, prepared: Prepared, adapter_spec: AdapterSpec) -> RequestState:
    """Give a request state of HELM's what its row needs and AdapterSpec cannot say."""
    extra = row_extra(prepared.original)
    state = replace(state, instance=prepared.original)
    if prepared.demonstrations is not None:
        if state.prompt_truncated or prepared.too_long:
            return leave_out(state, "too_long")
        state = replace(state, num_train_instances=prepared.demonstrations)
    changes: dict[str, Any] = {}
    if not state.request.echo_prompt:  # nothing is sampled where a given text is scored
        changes.update(extra.get("decoding", {}))
        if adapter_spec.stop_sequences and not state.request.stop_sequences:
            changes["stop_sequences"] = adapter_spec.stop_sequences  # HELM's joint adapter drops them
    if changes:
        state = replace(state, request=replace(state.request, **changes))
    if "labels" in extra and state.reference_index is None:
        state = replace(state, output_mapping=dict(extra["labels"]))
    return state


def _require_options_at_the_end(instances: Sequence[Instance], adapter_spec: AdapterSpec) -> None:
    """Refuse a prompt of which HELM would score other tokens than the option's.

    HELM counts the tokens of " " and the option, and adds up the log-probabilities of as many at the end of the prompt
    (basic_metrics.py, `compute_logprob_and_length`).
    """
    if not adapter_spec.method.startswith("multiple_choice_separate"):
        return
    if any("prompt" in row_extra(instance) for instance in instances):
        return  # a prompt of our own, whose options begin where they say
    for key in ("output_suffix", "global_suffix"):
        if text := getattr(adapter_spec, key):
            raise RunEntryError(
                f"{key} {show(text)}: with method {adapter_spec.method} the end of the prompt is scored, which would "
                f'be {show(text)} and not the option\n  hint: "{key}": "", and what stands between demonstrations in '
                "instance_prefix"
            )
    if not adapter_spec.output_prefix.endswith(" "):
        raise RunEntryError(
            f"output_prefix {show(adapter_spec.output_prefix)}: with method {adapter_spec.method} HELM scores the "
            "tokens of a space and the option, and no space is before the option\n"
            f'  hint: "output_prefix": {show(adapter_spec.output_prefix + " ")}'
        )


def _require_texts(instances: Sequence[Instance], adapter_spec: AdapterSpec) -> None:
    """Refuse to ask for texts where rows are scored by the log-probabilities of their options."""
    if any("likelihoods" in row_extra(instance) for instance in instances):
        raise RunEntryError(
            f"{adapter_spec.model_deployment} would be asked for texts, and these rows are scored by the "
            "log-probabilities that were recorded of their options\n  hint: model=recorded/NAME scores those; to ask "
            "a model, take `likelihoods` out of the rows"
        )


def _require_shown_options(instances: Sequence[Instance], adapter_spec: AdapterSpec) -> None:
    """Refuse to ask questions without their options: a table of outputs has both, and not how they were asked."""
    if adapter_spec.method != ADAPT_GENERATION or adapter_spec.instructions:
        return
    hidden = [
        instance
        for instance in instances
        if "recorded" in (extra := row_extra(instance))
        and (options := extra.get("labels"))
        and not any(option in instance.input.text for option in options.values())
    ]
    if hidden:
        raise RunEntryError(
            f"{adapter_spec.model_deployment} would be asked without the options of {count(len(hidden), 'row')} "
            f"(for example {hidden[0].id}): the file holds answers, and not how its questions were asked\n"
            "  hint: a table without its columns of outputs is asked with options; recorded/NAME scores the answers"
        )


def _log_ignored_recordings(instances: Sequence[Instance]) -> None:
    unused = sum(row_extra(instance).get("recorded", {}).get("status") == "ok" for instance in instances)
    if unused:
        hwarn(
            f"{unused} rows carry recorded completions; this run asks the model again and leaves those unused. "
            "To score them instead: model=recorded/NAME"
        )


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

NO_PROMPT_LOGPROBS = _paths(
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
"""For `echo_prompt` and `max_tokens=0` they return no tokens, tokens of 0.0, the answer's only, or refuse it. Other
classes are trusted."""


class LogprobsMissingError(HelmExtError, ValueError):
    """A deployment returned no log-probabilities for the prompt, so that options cannot be compared."""


def _client_class(deployment: str) -> str:
    return get_model_deployment(deployment).client_spec.class_name


def require_chat_client(adapter_spec: AdapterSpec) -> None:
    """Raise RunEntryError for the chat method where the deployment's client would be asked an empty prompt."""
    if adapter_spec.method != ADAPT_CHAT:
        return
    client_class = _client_class(adapter_spec.model_deployment)
    if client_class in IGNORES_MESSAGES:
        raise RunEntryError(
            f"{adapter_spec.model_deployment}: its client {client_class} ignores chat messages, so the model would be "
            "asked an empty prompt\n  hint: render=text writes the conversation as a text prompt (innodata:), or name "
            "a chat deployment"
        )


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
    if compares and _client_class(deployment) in NO_PROMPT_LOGPROBS:
        raise LogprobsMissingError(explain_missing(deployment))
