"""The list of clients that ignore `messages` is what the installed HELM's code says."""

import ast
from pathlib import Path

import helm.clients

from helm_ext.adaptation.wrap import IGNORES_MESSAGES

# They refuse messages with an assertion: the code mentions them all the same.
REFUSE = {"helm.clients.ai21_client.AI21ChatClient", "helm.clients.cohere_client.CohereChatClient"}
# These make no completions of text.
OTHER = {"AutoClient", "Client", "CachingClient"}
# OpenAIClient looks at messages in a method that its completions clients do not use.
COMPLETIONS = {"OpenAILegacyCompletionsClient", "VLLMClient"}


def read_classes():
    """Return {class name: (module, names of its bases, whether its own code looks at messages)}, from the source."""
    classes = {}
    for path in sorted(Path(helm.clients.__file__).parent.glob("*_client.py")):
        if path.name.startswith("test_"):
            continue
        source = path.read_text(encoding="utf-8")
        for node in ast.parse(source).body:
            if isinstance(node, ast.ClassDef):
                bases = [ast.unparse(base) for base in node.bases]
                looks = ".messages" in ast.get_source_segment(source, node)
                classes[node.name] = (f"helm.clients.{path.stem}", bases, looks)
    return classes


def test_the_list_is_what_the_code_says():
    classes = read_classes()

    def is_client(name):
        return name in OTHER or any(is_client(base) for base in classes.get(name, ("", [], False))[1])

    def looks(name):
        if name in COMPLETIONS or name not in classes:
            return False
        _, bases, own = classes[name]
        return own or any(looks(base) for base in bases)

    found = {
        f"{module}.{name}"
        for name, (module, _, _) in classes.items()
        if name not in OTHER and is_client(name) and not looks(name)
    }
    assert found | REFUSE == IGNORES_MESSAGES
