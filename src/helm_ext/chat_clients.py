"""Which of HELM's clients send a conversation, and which would send an empty prompt instead.

HELM's chat adapter fills `Request.messages` and leaves the prompt empty. A client that never looks at `messages` asks
its model "" and the reply is scored. No HELM client says which kind it is, so its code is asked: whether what
`make_request` calls, within its class, reads an attribute `messages`.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import CodeType, FunctionType
from typing import Any

from helm_ext.errors import RunEntryError

__all__ = ["require_messages", "sends_messages"]

REFUSES = frozenset({"AI21ChatClient", "CohereChatClient", "DivaLlamaClient"})
"""These look at `messages` only to refuse them (AssertionError, NonRetriableException)."""

DROPS_ROLES = frozenset({"DSPyClient"})
"""Joins the contents to one text, without roles and without the system message: not the conversation as it is."""


def sends_messages(client_class: type[Any]) -> bool:
    """Whether a client's class sends the messages of a request as they are."""
    if client_class.__name__ in REFUSES | DROPS_ROLES:
        return False
    return any("messages" in code.co_names for code in _reachable(client_class))


def _reachable(client_class: type[Any]) -> Iterator[CodeType]:
    """Yield the code of `make_request` and of all methods of the class that it may call, directly or not."""
    waiting = ["make_request"]
    seen = set(waiting)
    while waiting:
        for code in _definitions(client_class, waiting.pop()):
            yield code
            for name in code.co_names:
                if name not in seen and callable(getattr(client_class, name, None)):
                    seen.add(name)
                    waiting.append(name)


def _definitions(client_class: type[Any], name: str) -> Iterator[CodeType]:
    """Yield the code of a method, and of the one that it overrides where it calls `super()`."""
    for base in client_class.__mro__:
        method = vars(base).get(name)
        if method is None:
            continue
        function = getattr(method, "__func__", method)
        function = getattr(function, "__wrapped__", function)
        codes = list(_nested(function.__code__)) if isinstance(function, FunctionType) else []
        yield from codes
        if not any("super" in code.co_names for code in codes):
            return


def _nested(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _nested(constant)


def require_messages(model_deployment: str) -> None:
    """Raise RunEntryError when a deployment's client would send an empty prompt for a conversation.

    A client that cannot be imported here (an optional package is missing) is let through: HELM says what is missing.
    """
    from helm.benchmark.model_deployment_registry import get_model_deployment
    from helm.common.object_spec import get_class_by_name

    class_name = get_model_deployment(model_deployment).client_spec.class_name
    try:
        client_class = get_class_by_name(class_name)
    except Exception:  # noqa: BLE001 - HELM's clients raise several kinds for packages that are missing
        return
    if not sends_messages(client_class):
        raise RunEntryError(
            f"{model_deployment}: its client, {class_name.rsplit('.', 1)[-1]}, does not send conversations: the model "
            "would be asked an empty prompt\n  hint: render=text writes the conversation as a text prompt"
        )
