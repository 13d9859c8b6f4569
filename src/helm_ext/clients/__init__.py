"""Live models: behind an address that speaks OpenAI's protocol, in files of requests carried there, in this process.

openai_requests, openai_replies   HELM's Request to the body of an HTTP request, the body of a reply to a RequestResult
openai_compatible                 HELM's Client on these two
server                            one address over HTTP: many requests at once, attempts that end, what errors mean
client                            what clients share: what they can do and say beyond HELM's, and HELM's cache files
request_files                     requests written as files of OpenAI's Batch API, and what each is the request of
answers                           files of results joined with the requests, and HELM's Executor that hands them back
huggingface, shared_prefix        HELM's Client for a model of transformers, the options of a row asked together
deployments, probing              models written into HELM's files, and what a server knows of what runs may ask for
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from helm_ext.clients.huggingface import SharedPrefixHuggingFaceClient
    from helm_ext.clients.openai_compatible import OpenAICompatibleClient

__all__ = ["OpenAICompatibleClient", "SharedPrefixHuggingFaceClient"]

_MODULES = {"OpenAICompatibleClient": "openai_compatible", "SharedPrefixHuggingFaceClient": "huggingface"}


def __getattr__(name: str) -> Any:
    """Import a client when it is asked for: it imports HELM's, and with it what HELM's needs, such as torch."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
