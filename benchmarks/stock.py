"""The workloads as a scenario and a client of stock HELM: `helm-run --plugins benchmarks.stock`.

The client has each row's answer and request time in a table and answers at once, so that only the harness is measured.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

from helm.benchmark.adaptation.adapter_spec import AdapterSpec
from helm.benchmark.metrics.common_metric_specs import get_basic_metric_specs
from helm.benchmark.run_spec import RunSpec, run_spec_function
from helm.benchmark.scenarios.scenario import (
    CORRECT_TAG,
    TEST_SPLIT,
    TRAIN_SPLIT,
    Input,
    Instance,
    Output,
    Reference,
    Scenario,
    ScenarioSpec,
)
from helm.clients.client import Client
from helm.common.request import GeneratedOutput, Request, RequestResult, Token

from benchmarks.workloads import ADAPTER, COMMON, DEMONSTRATIONS, METRICS

ROWS_VARIABLE = "HELM_EXT_BENCHMARK_ROWS"
"""Environment variable: the file that `workloads.write_plain` wrote."""
_NUMBER = re.compile(r"\[#(\d+)\]")


def _read_rows() -> list[dict]:
    return [json.loads(line) for line in Path(os.environ[ROWS_VARIABLE]).read_text().splitlines()]


class WorkloadScenario(Scenario):
    name = "workload"
    description = "A benchmark's workload"
    tags = ["benchmark"]  # noqa: RUF012 - as HELM declares it

    def __init__(self, workload: str) -> None:
        super().__init__()
        self.workload = workload

    def get_instances(self, output_path: str) -> list[Instance]:  # noqa: ARG002 - HELM's signature
        return [
            Instance(
                Input(row["text"]),
                [
                    Reference(Output(option), [CORRECT_TAG] if index == row["right"] else [])
                    for index, option in enumerate(row["options"])
                ],
                split=TRAIN_SPLIT if row["number"] < DEMONSTRATIONS else TEST_SPLIT,
                id=f"id{row['number']}",
            )
            for row in _read_rows()
        ]


class TableClient(Client):
    """Answers with the row whose number is the last one in the prompt."""

    def __init__(self) -> None:
        self.rows = {row["number"]: (row["answer"], row["request_time"]) for row in _read_rows()}

    def make_request(self, request: Request) -> RequestResult:
        number = int(_NUMBER.findall(request.prompt)[-1])
        answer, request_time = self.rows[number]
        return RequestResult(
            success=True,
            embedding=[],
            completions=[GeneratedOutput(text=f" {answer}", logprob=-0.5, tokens=[Token(answer, -0.5)])],
            cached=False,
            request_time=request_time,
            request_datetime=1_700_000_000 + number,
        )


@run_spec_function("workload")
def get_workload_run_spec(workload: str) -> RunSpec:
    return RunSpec(
        name=f"workload:workload={workload}",
        scenario_spec=ScenarioSpec("benchmarks.stock.WorkloadScenario", {"workload": workload}),
        adapter_spec=AdapterSpec(**ADAPTER[workload], **COMMON),
        metric_specs=get_basic_metric_specs(METRICS[workload]),
        groups=["workload"],
    )


DEPLOYMENTS = """\
model_deployments:
  - name: bench/wide
    model_name: bench/model
    tokenizer_name: simple/tokenizer1
    max_sequence_length: 1000000
    client_spec:
      class_name: "benchmarks.stock.TableClient"
"""
METADATA = """\
models:
  - name: bench/model
    display_name: Benchmark
    description: Answers at once.
    creator_organization_name: None
    access: open
    release_date: 2024-01-01
    tags: [TEXT_MODEL_TAG]
"""


def write_prod_env(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model_deployments.yaml").write_text(DEPLOYMENTS)
    (folder / "model_metadata.yaml").write_text(METADATA)
