"""The format's object: what its files are called, which arguments there are, how a file is read."""

import csv
import hashlib
from pathlib import Path
from typing import Any

from helm_ext.errors import DatasetNotFoundError, DatasetSchemaError, raise_for
from helm_ext.evalset import EXTRA_KEY, EvalSet, Scoring
from helm_ext.formats import Claim, Format, Seen
from helm_ext.formats.format import MISSING, PATH, WHOLE_NUMBER, Argument

COLUMNS = ["question", "answer"]


class QaCsv(Format):
    name = "qa_csv"
    title = "CSV of questions and answers"
    dataset_title = "CSV file"
    expects = "a file NAME.qa with the columns question and answer"
    usage = "qa_csv:path=FILE,model=..."
    scenario_class = "qa_csv_format.scenario.QaCsvScenario"
    arguments = (
        Argument("path", PATH, "a CSV file", names_data=True),
        Argument("max_tokens", WHOLE_NUMBER, "of an answer", "20"),
        MISSING,
    )

    def claims(self, seen: Seen) -> Claim:
        return Claim.SURE if seen.suffix == ".qa" else Claim.NO

    def load(self, path: str, max_tokens: int = 20) -> EvalSet:
        from helm.benchmark.adaptation.adapter_spec import AdapterSpec

        try:
            data = Path(path).read_bytes()
        except OSError as error:
            raise DatasetNotFoundError.at(path, str(error.strerror), code="unreadable") from error
        rows = list(csv.DictReader(data.decode().splitlines()))
        problems = [
            DatasetSchemaError.problem_at(
                path, f"expected the columns {COLUMNS}, got {list(row)}", line=line, code="columns"
            )
            for line, row in enumerate(rows, 2)
            if list(row) not in (COLUMNS, [*COLUMNS, "reply"])
        ]
        raise_for(problems)
        if not rows:
            raise DatasetSchemaError.at(path, "no rows", code="no-rows")
        return EvalSet(
            name=Path(path).stem,
            format=self.name,
            digest=hashlib.sha256(data).hexdigest(),
            instances=[to_instance(f"row{number}", row) for number, row in enumerate(rows, 1)],
            adapter_spec=AdapterSpec(
                method="generation",
                input_prefix="Q: ",
                output_prefix="A: ",
                max_train_instances=0,
                num_outputs=1,
                temperature=0.0,
                max_tokens=max_tokens,
            ),  # fmt: skip
            scoring=Scoring(metrics=("exact_match",), main_metric="exact_match"),
            counts={"rows": len(rows), "eval": len(rows)},
        )


def to_instance(id_: str, row: dict[str, Any]):
    from helm.benchmark.scenarios.scenario import CORRECT_TAG, TEST_SPLIT, Input, Instance, Output, Reference

    extra: dict[str, Any] = {}
    if row.get("reply"):
        extra["recorded"] = {"status": "ok", "states": [{"result": {"completions": [{"text": row["reply"]}]}}]}
    references = [Reference(Output(row["answer"]), [CORRECT_TAG])]
    return Instance(Input(row["question"]), references, TEST_SPLIT, id=id_, extra_data={EXTRA_KEY: extra})


FORMAT = QaCsv()
