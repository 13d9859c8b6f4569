"""Requests of OpenAI's Batch API and their results, as providers and `vllm run-batch` write them.

requests, replies   a line of the input, the body of a reply
files               which files belong together
golds               what is right, from a table joined on custom_id
options             requests about the options of one question, scored by log-probabilities
opening             requests, results and golds joined into rows

Shapes: https://platform.openai.com/docs/api-reference/batch, https://docs.vllm.ai (examples, `run-batch`).
"""

REQUEST_KEYS = frozenset({"custom_id", "method", "url", "body"})
RESULT_KEYS = frozenset({"custom_id", "response", "error"})
"""By these the lines of a batch are known."""
