"""The sample files beside the checkout, where they are: expected values were counted by hand."""

import pytest
from optional_sources import IMPORT_SAMPLES, needs_import_samples

from helm_ext.formats.openai_batch.format import FORMAT

SAMPLES = IMPORT_SAMPLES / "openai_batch"
pytestmark = needs_import_samples


@pytest.mark.parametrize(("file", "expected"), [
    ("chat_input", {"lines": 12, "read": 12, "recorded": 9, "not_run": 2, "failed": 1, "refused": 1, "cut": 1}),
    ("responses_input", {"lines": 7, "read": 7, "recorded": 7, "refused": 1, "cut": 1}),
    ("completions_input", {"lines": 20, "read": 5, "recorded": 5}),
    ("vllm_output", {"lines": 6, "read": 6, "recorded": 4, "failed": 2}),
    ("vllm_old_output", {"lines": 6, "read": 6, "recorded": 6}),
])  # fmt: skip
def test_counts(file, expected):
    evalset = FORMAT.load(path=str(SAMPLES / f"{file}.jsonl"), gold=str(SAMPLES / "gold.json"))
    assert {key: evalset.counts.get(key, 0) for key in expected} == expected
