"""Live models behind an address that speaks OpenAI's protocol, and the same requests carried there as files.

openai_requests, openai_replies   HELM's Request to the body of an HTTP request, the body of a reply to a RequestResult
openai_compatible                 HELM's Client on these two
server, event_loop                one address over HTTP: many requests at once, attempts that end, what errors mean
cache                             HELM's cache files, with one connection a file and process
asking                            what a client can do and say beyond HELM's (`running.executor` asks for it)
manifest, shards                  requests written as files of OpenAI's Batch API, and what each is the request of
outputs, answers                  files of results read and joined with the requests
answered                          HELM's Executor that hands these results back
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from helm_ext.clients.openai_compatible import OpenAICompatibleClient

__all__ = ["OpenAICompatibleClient"]


def __getattr__(name: str) -> Any:
    """Import the client when it is asked for: it imports HELM's."""
    if name != "OpenAICompatibleClient":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from helm_ext.clients.openai_compatible import OpenAICompatibleClient

    return OpenAICompatibleClient
