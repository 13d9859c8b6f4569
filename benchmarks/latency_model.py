"""A plugin: a model that answers after 50 ms, and costs next to nothing."""

from __future__ import annotations

import time

from helm.benchmark.model_deployment_registry import ClientSpec, ModelDeployment, register_model_deployment
from helm.clients.client import Client
from helm.common.request import GeneratedOutput, Request, RequestResult, Token

MODEL = "latency/model"
SECONDS = 0.05


class LatencyClient(Client):
    def make_request(self, request: Request) -> RequestResult:
        time.sleep(SECONDS)
        text = request.prompt[-20:]
        return RequestResult(True, [], [GeneratedOutput(text, -0.5, [Token(text, -0.5)] * 5)], False, SECONDS, 1)


register_model_deployment(ModelDeployment(MODEL, ClientSpec(f"{__name__}.LatencyClient")))
