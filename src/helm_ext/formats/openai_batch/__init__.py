"""Requests of OpenAI's Batch API and their results, as providers and `vllm run-batch` write them.

Shapes: https://platform.openai.com/docs/api-reference/batch, https://docs.vllm.ai (examples, `run-batch`).
"""

REQUEST_KEYS = frozenset({"custom_id", "method", "url", "body"})
RESULT_KEYS = frozenset({"custom_id", "response", "error"})
"""By these the lines of a batch are known."""
