"""A plugin for helm-run: a scenario of any size, and a model that writes down who asked it what.

COUNTED_ROWS     rows of the scenario
COUNTED_LOG      a file; each call appends a line "PID PROMPT", in one write
COUNTED_SECONDS  how long an answer takes
COUNTED_GATE     a file; no answer comes before it is there ...
COUNTED_OPEN     ... but those of so many first rows
COUNTED_ACTORS   no answer comes before so many processes were asked: one that starts late gets its share
COUNTED_DEADLY   a prompt that ends the process
COUNTED_FAILING  a prompt that is answered by a failure
COUNTED_REWORDED the number of a row whose prompt begins with a capital letter
"""

import os
import signal
import time

from helm.benchmark.adaptation.adapter_spec import AdapterSpec
from helm.benchmark.metrics.common_metric_specs import get_exact_match_metric_specs
from helm.benchmark.model_deployment_registry import ClientSpec, ModelDeployment, register_model_deployment
from helm.benchmark.run_spec import RunSpec, run_spec_function
from helm.benchmark.scenarios.scenario import (
    CORRECT_TAG,
    TEST_SPLIT,
    Input,
    Instance,
    Output,
    Reference,
    Scenario,
    ScenarioSpec,
)
from helm.clients.client import Client
from helm.common.request import GeneratedOutput, Request, RequestResult, Token

MODEL = "counted/model"


class CountedScenario(Scenario):
    name = "counted"
    description = "Questions"
    tags: list[str] = []

    def get_instances(self, output_path):
        reworded = os.environ.get("COUNTED_REWORDED")
        return [
            Instance(
                Input(f"{'Question' if str(number) == reworded else 'question'} {number}"),
                [Reference(Output(str(number % 7)), [CORRECT_TAG])],
                split=TEST_SPLIT,
                id=f"row{number}",
            )
            for number in range(int(os.environ["COUNTED_ROWS"]))
        ]


class CountedClient(Client):
    """Answers with the prompt's number modulo 5. Times are the same every time."""

    def __init__(self, label: str = "") -> None:
        self.label = label

    def make_request(self, request: Request) -> RequestResult:
        prompt = request.prompt.strip()
        line = f"{os.getpid()} {self.label}{prompt}\n".encode()
        log = os.open(os.environ["COUNTED_LOG"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
        os.write(log, line)
        os.close(log)
        gate = os.environ.get("COUNTED_GATE")
        is_held = int(prompt.split()[-1]) >= int(os.environ.get("COUNTED_OPEN", "0"))
        while gate and is_held and not os.path.exists(gate):  # noqa: PTH110
            time.sleep(0.01)
        while len(self._asked()) < int(os.environ.get("COUNTED_ACTORS", "0")):
            time.sleep(0.01)
        time.sleep(float(os.environ.get("COUNTED_SECONDS", "0")))
        if prompt == os.environ.get("COUNTED_DEADLY"):
            os.kill(os.getpid(), signal.SIGKILL)
        if prompt == os.environ.get("COUNTED_FAILING"):
            return RequestResult(success=False, embedding=[], completions=[], cached=False, error="no")
        text = str(int(prompt.split()[-1]) % 5)
        completion = GeneratedOutput(text, -0.25, [Token(text, -0.25)], finish_reason={"reason": "stop"})
        return RequestResult(
            success=True, embedding=[], completions=[completion], cached=False, request_time=0.5, request_datetime=1
        )

    def _asked(self) -> set[str]:
        """Return the processes that this client's requests went to."""
        with open(os.environ["COUNTED_LOG"]) as log:
            calls = [line.partition(" ") for line in log]
        return {pid for pid, _, prompt in calls if prompt.startswith(f"{self.label}question")}


@run_spec_function("counted")
def get_counted_run_spec() -> RunSpec:
    return RunSpec(
        name="counted",
        scenario_spec=ScenarioSpec(f"{__name__}.CountedScenario"),
        adapter_spec=AdapterSpec(
            method="generation", input_prefix="", output_prefix="", reference_prefix="", max_train_instances=0,
            model=MODEL, model_deployment=MODEL, temperature=0.0, max_tokens=5,
        ),
        metric_specs=get_exact_match_metric_specs(),
        groups=["counted"],
    )  # fmt: skip


register_model_deployment(ModelDeployment(MODEL, ClientSpec(f"{__name__}.CountedClient")))
register_model_deployment(
    ModelDeployment("counted/other", ClientSpec(f"{__name__}.CountedClient", {"label": "other "}))
)
