"""Builds records of Every Eval Ever for tests. The data is invented."""

import hashlib
import json
from pathlib import Path

UUIDS = [f"0b0e7a52-9d4e-4f37-8a44-5f2f6d1c2a1{digit}" for digit in range(3)]
FRUIT = ["apple", "banana", "cherry"]


def result(name="fruit", metric="accuracy", score=0.5, **more):
    return {
        "evaluation_name": name,
        "source_data": {"dataset_name": name, "source_type": "other"},
        "metric_config": {"metric_id": metric, "lower_is_better": False},
        "score_details": {"score": score},
        **more,
    }


def sample(id_="a", answer="banana", score=1.0, reference="banana", choices=None, **more):
    """A line; keyword arguments are keys of it."""
    given = {"raw": f"Which fruit is {id_}?", "reference": [reference] if isinstance(reference, str) else reference}
    line = {
        "schema_version": "0.3.0",
        "evaluation_id": "fruit/1",
        "model_id": "lab/small",
        "evaluation_name": "fruit",
        "sample_id": id_,
        "interaction_type": "single_turn",
        "input": {**given, **({"choices": choices} if choices else {})},
        "output": {"raw": [answer] if isinstance(answer, str) else answer},
        "answer_attribution": [
            {
                "turn_idx": 0,
                "source": "output.raw",
                "extracted_value": "banana",
                "extraction_method": "x",
                "is_terminal": True,
            }
        ],
        "evaluation": {"score": score, "is_correct": score == 1.0},
    }
    return {**line, **more}


def write(folder: Path, samples, results=None, uuid=UUIDS[0], library="ours", **top):
    """Write a record, and return the path of its aggregate."""
    folder.mkdir(parents=True, exist_ok=True)
    data = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in samples).encode()
    (folder / f"{uuid}_samples.jsonl").write_bytes(data)
    aggregate = {
        "schema_version": "0.3.0",
        "evaluation_id": "fruit/1",
        "retrieved_timestamp": "1780000000",
        "source_metadata": {
            "source_type": "evaluation_run", "source_organization_name": "Lab", "evaluator_relationship": "other",
        },
        "eval_library": {"name": library, "version": "1"},
        "model_info": {"id": "lab/small", "name": "small"},
        "evaluation_results": results or [result()],
        "detailed_evaluation_results": {
            "format": "jsonl", "file_path": "x", "hash_algorithm": "sha256",
            "checksum": hashlib.sha256(data).hexdigest(), "total_rows": len(samples),
        },
        **top,
    }  # fmt: skip
    path = folder / f"{uuid}.json"
    path.write_text(json.dumps(aggregate))
    return path
