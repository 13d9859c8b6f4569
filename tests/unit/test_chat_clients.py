"""Which clients send conversations. HELM's own are looked at as they are installed."""

from __future__ import annotations

import pytest
from helm.benchmark.model_deployment_registry import ClientSpec, ModelDeployment, register_model_deployment
from helm.clients.huggingface_client import HuggingFaceClient
from helm.clients.simple_client import SimpleClient

from helm_ext.chat_clients import require_messages, sends_messages
from helm_ext.errors import RunEntryError


class Direct:
    def make_request(self, request):
        return request.messages


class Indirect:
    def make_request(self, request):
        return [self._chat(request) for _ in range(1)]

    def _chat(self, request):
        def inner():
            return request.messages

        return inner()

    def _unused(self, request):
        return self._chat(request)


class Override(Indirect):
    def _chat(self, request):
        return request.prompt


class CallsSuper(Indirect):
    def _chat(self, request):
        return super()._chat(request)


class Static:
    def make_request(self, request):
        return self.convert(request)

    @staticmethod
    def convert(request):
        return request.messages


class Unreached:
    def make_request(self, request):
        return request.prompt

    def _chat(self, request):
        return request.messages


class CohereChatClient(Direct):
    pass


class DSPyClient(Direct):
    pass


@pytest.mark.parametrize(
    ("client_class", "expected"),
    [
        (HuggingFaceClient, True),
        (SimpleClient, False),
        (Direct, True),
        (Indirect, True),
        (Override, False),
        (CallsSuper, True),
        (Static, True),
        (Unreached, False),
        (CohereChatClient, False),
        (DSPyClient, False),
        (object, False),
    ],
)
def test_sends_messages(client_class, expected):
    assert sends_messages(client_class) is expected


def register(name, class_name):
    register_model_deployment(ModelDeployment(name=name, client_spec=ClientSpec(class_name=class_name)))


def test_deployments():
    register("chat-clients/simple", "helm.clients.simple_client.SimpleClient")
    register("chat-clients/local", "helm.clients.huggingface_client.HuggingFaceClient")
    register("chat-clients/missing", "no_such_package.Client")
    with pytest.raises(RunEntryError) as caught:
        require_messages("chat-clients/simple")
    assert str(caught.value) == (
        "chat-clients/simple: its client, SimpleClient, does not send conversations: the model would be asked an empty "
        "prompt\n  hint: render=text writes the conversation as a text prompt"
    )
    require_messages("chat-clients/local")
    require_messages("chat-clients/missing")
