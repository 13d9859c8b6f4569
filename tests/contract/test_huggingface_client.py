"""What `helm_ext.clients.huggingface` restates of HELM's client, and relies on, is still what was read.

The source is read without importing it, which would import torch.
"""

import ast
import hashlib
import importlib.util

import pytest

CLIENT, BASE = "helm.clients.huggingface_client", "helm.clients.client"
RESTATED = {
    (CLIENT, "HuggingFaceServer.serve_request"): "162689469409553b",
    (CLIENT, "HuggingFaceServerFactory.get_server"): "8bfb6e7eb21efb37",
    (CLIENT, "HuggingFaceClient.make_request"): "55ae72aff4946124",
    (BASE, "CachingClient.make_cache_key"): "bcca5557ab7f9dc4",
    (BASE, "truncate_sequence"): "0af338a0e6cce689",
}


def source_of(module, name):
    text = importlib.util.find_spec(module).loader.get_source(module)
    node = ast.parse(text)
    for part in name.split("."):
        (node,) = [child for child in node.body if getattr(child, "name", None) == part]
    return ast.get_source_segment(text, node)


@pytest.mark.parametrize(("module", "name"), RESTATED)
def test_helms_source_is_the_one_that_was_restated(module, name):
    found = hashlib.sha256(source_of(module, name).encode()).hexdigest()[:16]
    assert found == RESTATED[module, name], f"{module}.{name} has changed in HELM"


def test_an_echoed_prompt_is_not_truncated():
    source = source_of(BASE, "truncate_sequence")
    assert source.index("if request.echo_prompt:") < source.index("return sequence") < source.index("stop_sequences =")
