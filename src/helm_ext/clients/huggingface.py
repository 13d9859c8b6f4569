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

import copy
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from helm.clients.huggingface_client import HuggingFaceClient, HuggingFaceServerFactory
from helm.common.cache import CacheConfig
from helm.common.hierarchical_logger import hlog, hwarn
from helm.common.request import Request, RequestResult, Token
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
        scored: dict[int, list[int]] = {}
        for place, request in enumerate(requests):
            if ids := self._tokenize(request) if _is_scored(request) else []:
                scored[place] = ids
            else:  # generated; or an empty prompt, which is HELM's own error
                results[place] = super().make_request(request)
        places = list(scored)
        for group in group_by_prefix(list(scored.values())):
            members = [places[member] for member in group.members]
            asked = [(requests[place], scored[place]) for place in members]
            results.update(zip(members, self._answer_group(asked, group.shared), strict=True))
        return [results[place] for place in range(len(requests))]

    def _tokenize(self, request: Request) -> list[int]:
        """Return the prompt's tokens, with those that the tokenizer puts around each text."""
        prompt = self.get_prompt(request)
        with self._wrapped_tokenizer as tokenizer:
            ids: list[int] = tokenizer(prompt, return_token_type_ids=False)["input_ids"]
        return ids

    def _answer_group(self, asked: Sequence[tuple[Request, list[int]]], shared: int) -> list[RequestResult]:
        """Return the results of requests that begin with the same `shared` tokens, from the cache or from the model."""
        keys = [self._read(request, {"completions": [], "request_time": 0})[1] for request, _ in asked]
        replies = [reply for reply in self.cache.get_many(keys) if reply and reply["completions"][0]["prompt_logprobs"]]
        cached = len(replies) == len(asked)
        if not cached:
            model = self._load(asked[0][0])
            try:
                replies = self._compute(model, [ids for _, ids in asked], shared)
            except Exception as error:  # noqa: BLE001 - the model may raise anything, such as for a prompt that is too long
                if len(asked) == 1:
                    return [fail(f"HuggingFace error: {error}")]
                hwarn(f"{len(asked)} requests cannot be computed together, so each on its own: {error}")
                return [self._answer_group([one], len(one[1]))[0] for one in asked]
            self.cache.put_many(zip(keys, replies, strict=True))
        known: dict[Token, Token] = {}
        return [
            self._to_result(request, reply, known, cached=cached)
            for (request, _), reply in zip(asked, replies, strict=True)
        ]

    def _read(self, request: Request, reply: dict[str, Any]) -> tuple[RequestResult, Mapping[str, Any]]:
        """Return what HELM's client makes of a reply to this request, and the key under which it looks for one."""
        client = copy.copy(self)
        client.cache = only = _OneReply(reply)  # type: ignore[assignment]
        return HuggingFaceClient.make_request(client, request), only.key

    def _to_result(
        self, request: Request, reply: dict[str, Any], known: dict[Token, Token], *, cached: bool
    ) -> RequestResult:
        """Return HELM's result with notes. Equal tokens are one object."""
        result = NotedResult(**{**vars(self._read(request, reply)[0]), "cached": cached})
        [completion] = result.completions
        tokens = [known.setdefault(token, token) for token in completion.tokens]
        result.completions = [replace(completion, tokens=tokens)]
        usage = {"prompt_tokens": reply["input_length"], "completion_tokens": 0}
        result.notes = {**reply.get(NOTES, {}), "usage": usage}
        return result

    def _compute(self, model: PrefixModel, sequences: Sequence[list[int]], shared: int) -> list[dict[str, Any]]:
        """Return replies as HELM's HuggingFaceServer makes them. Each has its part of the time that all took."""
        started = time.time()
        values = model.score(sequences, shared)
        texts = self._decode(sequences)
        is_shared = len(sequences) > 1 and model.shares(sequences)
        notes = {
            "device": str(model.model.device),
            "dtype": str(model.model.dtype),
            "computed_together": len(sequences) if is_shared else 1,
            "shared_tokens": shared if is_shared else 0,
        }
        took = (time.time() - started) / len(sequences)
        return [
            {
                "completions": [{"text": text, "tokens": tokens, "logprobs": [], "prompt_logprobs": logprobs}],
                "input_length": len(tokens),
                "request_time": took,
                "request_datetime": int(started),
                NOTES: notes,
            }
            for (text, tokens), logprobs in zip(texts, values, strict=True)
        ]

    def _decode(self, sequences: Sequence[list[int]]) -> list[tuple[str, list[str]]]:
        """Return the text of each sequence, and the text of each of its tokens."""
        with self._wrapped_tokenizer as tokenizer:
            for token in {token for sequence in sequences for token in sequence} - self._texts.keys():
                self._texts[token] = tokenizer.decode(token)
            texts = tokenizer.batch_decode(sequences)
        return [(text, [self._texts[token] for token in ids]) for text, ids in zip(texts, sequences, strict=True)]

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


class _OneReply:
    """A cache for HELM's client that has one reply, whatever is asked for."""

    def __init__(self, reply: dict[str, Any]) -> None:
        self.reply = reply
        self.key: Mapping[str, Any] = {}

    def get(self, key: Mapping[str, Any], _compute: object) -> tuple[dict[str, Any], bool]:
        """Return the reply, and keep what was asked for."""
        self.key = key
        return self.reply, True


def _is_scored(request: Request) -> bool:
    """Whether log-probabilities are asked for and nothing is generated, as HELM's HuggingFaceServer decides it."""
    return bool(
        request.echo_prompt and request.max_tokens == 0 and request.num_completions == 1 and not request.embedding
    )
