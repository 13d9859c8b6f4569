"""Lines of result files: OpenAI's Batch API, `vllm run-batch`, and whatever else answers such requests.

https://platform.openai.com/docs/api-reference/batch/request-output. A line has `custom_id`, `response` and `error`; the
body of the reply stands in `response.body`, in older versions of `vllm run-batch` in `response` itself. Lines of
`answers.jsonl` (`clients.answers`) have `custom_id` and `body` alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from helm_ext.errors import show

OK = 200

NOT_RUN = ("batch_expired", "batch_cancelled")  # a code may be of any type, a list too
"""Codes of errors of a request that no model has seen."""


class OutputError(ValueError):
    """A line is not a result."""


@dataclass(frozen=True)
class Outcome:
    """What a line says about a request: the body of the reply, or why there is no reply."""

    custom_id: str
    body: Any = None
    failure: str = ""
    is_not_run: bool = False
    """Whether no model has seen the request: the batch ended before."""


def parse_output(line: Any) -> Outcome:
    """Return what a line of a file of results says. Raises OutputError."""
    if not isinstance(line, dict):
        raise OutputError(f"expected an object, got {show(line)}")
    if "body" in line and not line.keys().isdisjoint(("method", "url")) and "response" not in line:
        raise OutputError("this is a request, not its result")
    custom_id = line.get("custom_id")
    if not isinstance(custom_id, str) or not custom_id:
        raise OutputError(f"custom_id: expected a text, got {show(custom_id)}")
    if line.keys() == {"custom_id", "body"}:
        return Outcome(custom_id, body=line["body"])
    response, error = line.get("response"), line.get("error")
    if error or response is None:
        code = error.get("code") if isinstance(error, dict) else None
        return Outcome(custom_id, failure=_explain(error, response), is_not_run=code in NOT_RUN)
    if not isinstance(response, dict):
        raise OutputError(f"response: expected an object, got {show(response)}")
    if "status_code" not in response and "choices" in response:
        return Outcome(custom_id, body=response)
    status, body = response.get("status_code"), response.get("body")
    if status != OK:
        return Outcome(custom_id, failure=f"status {show(status)}: {_explain(body, None)}")
    return Outcome(custom_id, body=body)


def _explain(error: Any, response: Any) -> str:
    """Return what an error says: OpenAI's object, vLLM's text or object, or the body of an HTTP error."""
    if isinstance(error, dict):
        inner = error.get("error", error)
        if isinstance(inner, dict):
            code, message = inner.get("code"), inner.get("message")
            if code in NOT_RUN:
                return f"not run: {code}"
            return show(message if message is not None else inner)
        return show(inner)
    if isinstance(error, str):
        return show(error)
    if isinstance(response, dict) and "status_code" in response:
        return f"status {show(response['status_code'])}"
    return "no response and no error"
