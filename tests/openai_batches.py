"""Files of batches: requests, results, golds."""

import json


def request(custom_id, *contents, url="/v1/chat/completions", **body):
    """One request; `contents` are the texts of a conversation that a user begins."""
    roles = ("user", "assistant")
    messages = [{"role": roles[at % 2], "content": content} for at, content in enumerate(contents)]
    asked = {"messages": messages} if url.endswith("chat/completions") else {}
    return {"custom_id": custom_id, "method": "POST", "url": url, "body": {"model": "acme-1", **asked, **body}}


def result(custom_id, *texts, body=None, finish="stop", **message):
    """One result of OpenAI's; `texts` are its choices."""
    choices = [
        {
            "index": at,
            "message": {"role": "assistant", "content": text, "refusal": None, **message},
            "finish_reason": finish,
        }
        for at, text in enumerate(texts)
    ]
    made = body or {"object": "chat.completion", "model": "acme-1-2025-01-01", "choices": choices}
    response = {"status_code": 200, "request_id": "r", "body": made}
    return {"id": f"batch_req_{custom_id}", "custom_id": custom_id, "response": response, "error": None}


def write(path, values):
    path.write_text("".join(json.dumps(value, ensure_ascii=False) + "\n" for value in values), encoding="utf-8")
    return path


def write_batch(folder, requests, results, golds, name="in.jsonl", output="out.jsonl"):
    """Write the three files; returns the arguments of `load`."""
    write(folder / name, requests)
    write(folder / output, results)
    (folder / "gold.json").write_text(json.dumps(golds, ensure_ascii=False), encoding="utf-8")
    return {"path": str(folder / name), "gold": str(folder / "gold.json")}
