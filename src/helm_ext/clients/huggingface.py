"""HELM's client for a model of transformers in this process, which computes what the requests of a row share once.

In `prod_env/model_deployments.yaml`, with the arguments of HELM's HuggingFaceClient:

    model_deployments:
      - name: local/my-model
        tokenizer_name: local/my-model
        client_spec:
          class_name: helm_ext.clients.SharedPrefixHuggingFaceClient
          args:
            pretrained_model_name_or_path: ./my-model

HELM's runner asks for one request after the other, and then nothing is shared; `helm_ext.running.StreamingRunner` asks
by the row.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from helm.clients.huggingface_client import HuggingFaceClient, HuggingFaceServerFactory
from helm.common.cache import CacheConfig
from helm.common.hierarchical_logger import hlog, hwarn
from helm.common.request import GeneratedOutput, Request, RequestResult, Token
from helm.tokenizers.tokenizer import Tokenizer

from helm_ext.clients.client import NotedResult, RequestCache, fail, find_unenforced_limit
from helm_ext.clients.shared_prefix import PrefixModel, group_by_prefix
from helm_ext.errors import DeploymentError

NOTES = "notes"
"""Key of a cached reply: what the run's files say about it."""


class SharedPrefixHuggingFaceClient(HuggingFaceClient):
    """Scores the options of a row together. Everything else is HELM's. The class path is public API.

    Requests, results, the tokens in them and the cache's keys are those of HELM's HuggingFaceClient. Log-probabilities
    differ from HELM's in the last bits of the model's precision, and are the same in each run: the requests of a group
    that begins alike come from the cache when all of them are there, and are all computed again when not.
    """

    def __init__(self, cache_config: CacheConfig, tokenizer: Tokenizer, **kwargs: Any) -> None:
        """Take the arguments of `client_spec.args`: HELM's, of which most go to `from_pretrained`."""
        super().__init__(cache_config, tokenizer, **kwargs)
        self.cache = RequestCache.of(cache_config)
        self._texts: dict[int, str] = {}
        """Of single tokens, which are asked for often."""
        self._model: PrefixModel | None = None
        self._lock = threading.Lock()

    def make_request(self, request: Request) -> RequestResult:
        """Return the result of one request, as HELM's client."""
        if limit := find_unenforced_limit(is_local=True):
            return fail(limit)
        if not _is_scored(request):
            return super().make_request(request)
        try:
            return self.make_requests([request])[0]
        except DeploymentError as error:  # HELM would try again, for minutes
            return fail(str(error))

    def make_requests(self, requests: Sequence[Request]) -> list[RequestResult]:
        """Return the results of the requests of a row, in their order.

        Raises DeploymentError if the model cannot be loaded.
        """
        results: dict[int, RequestResult] = {}
        scored: list[_Scored] = []
        for place, request in enumerate(requests):
            if not _is_scored(request):
                results[place] = super().make_request(request)
                continue
            prompt = self.get_prompt(request)
            with self._wrapped_tokenizer as wrapped:
                ids = wrapped(prompt, return_token_type_ids=False)["input_ids"]
            if not ids:  # HELM's own error
                results[place] = super().make_request(request)
                continue
            scored.append(_Scored(place, request, self._make_key(request, prompt), ids))
        for group in group_by_prefix([one.ids for one in scored]):
            members = [scored[member] for member in group.members]
            made = self._answer_group(members, group.shared)
            results.update((member.place, result) for member, result in zip(members, made, strict=True))
        return [results[place] for place in range(len(requests))]

    def _answer_group(self, members: Sequence[_Scored], shared: int) -> list[RequestResult]:
        """Return the results of requests that begin with the same `shared` tokens, from the cache or from the model."""
        keys = [member.key for member in members]
        found = [reply for reply in self.cache.get_many(keys) if reply is not None and _is_whole(reply)]
        if len(found) == len(keys):
            return _to_results(found, cached=True)
        model = self._load(members[0].request)
        try:
            made = self._compute(model, members, shared)
        except Exception as error:  # noqa: BLE001 - the model may raise anything, such as for a prompt that is too long
            if len(members) == 1:
                return [fail(f"HuggingFace error: {error}")]
            hwarn(f"{len(members)} requests cannot be computed together, so each on its own: {error}")
            return [self._answer_group([member], len(member.ids))[0] for member in members]
        self.cache.put_many(zip(keys, made, strict=True))
        return _to_results(made, cached=False)

    def _compute(self, model: PrefixModel, members: Sequence[_Scored], shared: int) -> list[dict[str, Any]]:
        """Return replies as HELM's HuggingFaceServer makes them. Each has its part of the time that all took."""
        started = time.time()
        sequences = [member.ids for member in members]
        values = model.score(sequences, shared)
        texts = self._decode(sequences)
        is_shared = len(members) > 1 and model.shares(sequences)
        notes = {
            "device": str(model.model.device),
            "dtype": str(model.model.dtype),
            "computed_together": len(members) if is_shared else 1,
            "shared_tokens": shared if is_shared else 0,
        }
        took = (time.time() - started) / len(members)
        return [
            {
                "completions": [{"text": text, "tokens": tokens, "logprobs": [], "prompt_logprobs": logprobs}],
                "input_length": len(member.ids),
                "request_time": took,
                "request_datetime": int(started),
                NOTES: notes,
            }
            for member, (text, tokens), logprobs in zip(members, texts, values, strict=True)
        ]

    def _decode(self, sequences: Sequence[list[int]]) -> list[tuple[str, list[str]]]:
        """Return the text of each sequence, and the text of each of its tokens."""
        with self._wrapped_tokenizer as tokenizer:
            for token in {token for sequence in sequences for token in sequence} - self._texts.keys():
                self._texts[token] = tokenizer.decode(token)
            texts = tokenizer.batch_decode(sequences)
        return [(text, [self._texts[token] for token in ids]) for text, ids in zip(texts, sequences, strict=True)]

    def _make_key(self, request: Request, prompt: str) -> Mapping[str, Any]:
        """Return what HELM's client keeps the reply under."""
        raw = {
            "engine": request.model_engine,
            "prompt": prompt,
            "temperature": 1e-7 if request.temperature == 0 else request.temperature,
            "num_return_sequences": request.num_completions,
            "max_new_tokens": request.max_tokens,
            "top_p": request.top_p,
            "echo_prompt": request.echo_prompt,
            "top_k_per_token": request.top_k_per_token,
            "stop_sequences": request.stop_sequences,
        }
        key: Mapping[str, Any] = self.make_cache_key(raw, request)
        return key

    def _load(self, request: Request) -> PrefixModel:
        """Return the model: HELM's, which is loaded once a process. Raises DeploymentError."""
        with self._lock:
            if self._model is None:
                name = self._pretrained_model_name_or_path or request.model
                try:
                    server = HuggingFaceServerFactory.get_server(
                        helm_model_name=request.model,
                        pretrained_model_name_or_path=name,
                        wrapped_tokenizer=self._wrapped_tokenizer,
                        **self._kwargs,
                    )
                except Exception as error:
                    raise DeploymentError(f"{request.model}: {name} cannot be loaded: {error}") from error
                self._model = PrefixModel(server.model, 0 if server.device is None else server.device)
                if self._model.obstacle:
                    hwarn(f"{request.model}: every request is computed on its own: {self._model.obstacle}")
                hlog(f"{request.model}: {server.model.dtype} on {server.model.device}")
            return self._model


@dataclass(frozen=True)
class _Scored:
    """A request whose prompt's log-probabilities are asked for."""

    place: int
    request: Request
    key: Mapping[str, Any]
    ids: list[int]
    """The prompt's tokens, with those that the tokenizer puts around each text."""


def _is_scored(request: Request) -> bool:
    """Whether log-probabilities are asked for and nothing is generated, as HELM's HuggingFaceServer decides it."""
    return bool(
        request.echo_prompt and request.max_tokens == 0 and request.num_completions == 1 and not request.embedding
    )


def _is_whole(reply: Mapping[str, Any]) -> bool:
    """Whether a reply from the cache has what a result is made of."""
    try:
        (completion,) = reply["completions"]
        length = len(completion["prompt_logprobs"])
        return bool(length == len(completion["tokens"]) == reply["input_length"] and "request_time" in reply)
    except (KeyError, TypeError, ValueError):
        return False


def _to_results(replies: Sequence[Mapping[str, Any]], *, cached: bool) -> list[RequestResult]:
    """Return HELM's results; as HELM's client, which truncates no echoed prompt. Equal tokens are one object."""
    known: dict[tuple[str, float], Token] = {}
    results: list[RequestResult] = []
    for reply in replies:
        (completion,) = reply["completions"]
        tokens = []
        logprob: float = 0
        for pair in zip(completion["tokens"], completion["prompt_logprobs"], strict=True):
            token = known.get(pair)
            if token is None:
                token = known[pair] = Token(text=pair[0], logprob=pair[1])
            tokens.append(token)
            logprob += pair[1]
        result = NotedResult(
            success=True,
            cached=cached,
            request_time=reply["request_time"],
            request_datetime=reply.get("request_datetime"),
            completions=[GeneratedOutput(text=completion["text"], logprob=logprob, tokens=tokens)],
            embedding=[],
        )
        usage = {"prompt_tokens": reply["input_length"], "completion_tokens": 0}
        result.notes = {**reply.get(NOTES, {}), "usage": usage}
        results.append(result)
    return results
