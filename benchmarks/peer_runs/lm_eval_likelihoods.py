"""lm-evaluation-harness' model `hf` on the rows of `benchmarks.likelihoods`: FOLDER ROWS BATCH_SIZE."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from lm_eval.api.instance import Instance
from lm_eval.models.huggingface import HFLM


def main(folder: Path, count: int, batch_size: int) -> None:
    """Write the sum of each option's log-probabilities, and the CPU seconds of all rows but the first."""
    rows = json.loads((folder / "rows.json").read_text())[:count]
    model = HFLM(pretrained=str(folder), device="cpu", dtype="float32", batch_size=batch_size)
    sums = ask(model, rows[:1])
    started = time.process_time()
    sums += ask(model, rows[1:])
    cpu = time.process_time() - started
    (folder / f"lm_eval_{batch_size}.json").write_text(json.dumps({"sums": sums, "cpu": cpu}))


def ask(model: HFLM, rows: list[dict]) -> list[list[float]]:
    pairs = [(row["prompt"], option) for row in rows for option in row["options"]]
    requests = [
        Instance(request_type="loglikelihood", doc={}, arguments=pair, idx=place) for place, pair in enumerate(pairs)
    ]
    sums = iter([value for value, _ in model.loglikelihood(requests, disable_tqdm=True)])
    return [[next(sums) for _ in row["options"]] for row in rows]


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
