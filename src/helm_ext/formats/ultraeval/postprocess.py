"""From a completion to the answer in it: upstream's postprocessing by name (docs/ultraeval.md).

A name is looked up in the user's checkout first, so that a task is scored by the very code it was written for. Without
a checkout the rules below stand in for the common ones; `first_line`, `last_number`, `boxed` and `option_letter` are
ours.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from helm_ext.errors import RunEntryError, did_you_mean
from helm_ext.formats.ultraeval.checkout import POSTPROCESS_FILE, Checkout, open_checkout

if TYPE_CHECKING:
    from collections.abc import Callable

NONE = ("", "none", "general_torch")
"""Names of "leave the completion as it is"."""


def get_postprocess(name: str, root: str | None = None) -> Callable[[str], str]:
    """Return the function that turns a raw completion into the answer to be scored.

    Raises RunEntryError for an unknown name, TransformError if the checkout at `root` cannot be used.
    """
    checkout = open_checkout(Path(root), None) if root else None
    if name in NONE:
        return _unchanged
    registry = _registry(checkout) if checkout is not None else {}
    if checkout is not None and name in registry:
        return _from_checkout(name, checkout, registry[name])
    if name in OURS:
        return OURS[name]
    known = {*OURS, *map(str, registry)}
    where = f"in {checkout.root / POSTPROCESS_FILE} or among ours" if checkout else "among ours"
    hint = did_you_mean(name, known) or f"known: {', '.join(sorted(known))}"
    if checkout is None:
        hint += "; root=FOLDER names the UltraEval checkout that has it"
    raise RunEntryError(f"postprocess={name}: no such postprocessing {where}\n  hint: {hint}")


def comes_from_checkout(name: str, checkout: Checkout | None) -> bool:
    """Whether the checkout's own code would be used."""
    return checkout is not None and name not in NONE and name in _registry(checkout)


def _registry(checkout: Checkout) -> dict[str, Any]:
    registry = getattr(checkout.load_postprocess(), "POSTPROCESS_REGISTRY", {})
    return registry if isinstance(registry, dict) else {}


def _from_checkout(
    name: str, checkout: Checkout, factory: Callable[[], Callable[[list[str], list[str]], Any]]
) -> Callable[[str], str]:
    """Call upstream's object as upstream does, with lists of one: (raw, processed) to (raw, processed)."""

    def postprocess(text: str) -> str:
        failed = f"postprocess={name} of the checkout failed on the completion"
        hint = "it is called as UltraEval does: NAME()([text], [text]) returns a pair of lists"
        with checkout.running(POSTPROCESS_FILE, failed, hint, code="postprocess-raised", about=text):
            _, processed = factory()([text], [text])
            answer = processed if isinstance(processed, str) else processed[0]
            return "" if answer is None else str(answer)

    return postprocess


def _unchanged(text: str) -> str:
    return text


def _first_line(text: str) -> str:
    return text.strip().split("\n")[0].strip()


def short_answer(text: str) -> str:
    """Return the short answer of the first line, in lower case (upstream's `exact_match_post`).

    What follows the last "answer is" or "答案是", cut at the first full stop or comma, without
    punctuation and articles.
    """
    text = text.split("\n", maxsplit=1)[0].lower()
    for marker in ("answer is", "答案是"):
        if marker in text:
            text = text.rsplit(marker, 1)[1].strip()
    text = re.split(r"[\n.,]", text, maxsplit=1)[0]
    text = re.sub(r"[^\w\s]", "", text)
    text = re.sub(r"\b(?:a|an|the)\b", "", text, flags=re.IGNORECASE)
    return " ".join(text.split())


def gsm8k(text: str) -> str:
    """Return the final number of a worked solution (upstream's `gsm8k_post`).

    The number after "#### "; else the first word after the last ">>"; else after the last "="; else the last word that
    is all digits; else the first word.
    """
    marked = re.search(r"#### (-?[0-9.,]+)", text)
    if marked:
        return marked.group(1).strip().replace(",", "")
    for marker in (">>", "="):
        words = text.rsplit(marker, 1)[1].split() if marker in text else []
        if words:
            return words[0].strip("$").replace(",", "").rstrip(".").strip()
    words = text.split()
    return next((word for word in reversed(words) if word.isdigit()), words[0] if words else "")


def after_answer_is(text: str) -> str:
    """Return the word after the first "answer is", without punctuation around it (upstream's `theoremqa_post`)."""
    text = text.strip()
    found = re.search(r"answer is (\S+)", text)
    return found.group(1).strip(".,?!\"';:") if found else text


def function_body(text: str) -> str:
    """Return the completion up to the next top-level statement (upstream's `humaneval_post`)."""
    for end in ("\nclass", "\ndef", "\n#", "\n@", "\nprint", "\nif", "<|endoftext|>"):
        text = text.split(end, maxsplit=1)[0]
    return text


def from_first_letter(text: str) -> str:
    """Return the text from its first A, B, C or D on (upstream's `hellaswag_post`)."""
    found = re.search("[ABCD]", text)
    return text[found.start() :] if found else text


def answer_letter(text: str) -> str:
    """Return the letter after "answer is" or "答案是", else the first of A to F.

    Upstream's `agieval_single_answer_post`.
    """
    for pattern in ("answer is .*?([A-G])", "答案是.*?([A-G])"):
        found = re.search(pattern, text)
        if found:
            return found.group(1)
    return next((character for character in text if character in "ABCDEF"), "")


def last_number(text: str) -> str:
    """Return the last number of the text, without thousands separators, or ""."""
    numbers = re.findall(r"-?\d+(?:,\d{3})*(?:\.\d+)?", text)
    return numbers[-1].replace(",", "") if numbers else ""


def boxed(text: str) -> str:
    r"""Return what stands in the last `\boxed{...}`, braces matched, or ""."""
    start = text.rfind("\\boxed{")
    if start < 0:
        return ""
    depth = 0
    for position in range(start + len("\\boxed"), len(text)):
        depth += {"{": 1, "}": -1}.get(text[position], 0)
        if depth == 0:
            return text[start + len("\\boxed{") : position].strip()
    return ""


def option_letter(text: str) -> str:
    """Return the label "(A)", "(B)", ... that the completion names, or ""."""
    found = re.search(r"\(([A-Z])\)", text) or re.search(r"\b([A-Z])\b(?!\s+[a-z])", text)
    return f"({found.group(1)})" if found else ""


OURS: dict[str, Callable[[str], str]] = {
    # The first line.
    "until_return_post": _first_line,
    "exact_match_post": short_answer,
    "gsm8k_post": gsm8k,
    # What stands after the last "=".
    "arithmetic_post": lambda text: text.strip().rsplit("=", 1)[-1].strip(),
    "theoremqa_post": after_answer_is,
    # What stands before the first blank line.
    "mbpp_post": lambda text: text.split("\n\n", maxsplit=1)[0],
    "humaneval_post": function_body,
    "hellaswag_post": from_first_letter,
    # The last A, B, C or D.
    "gaokao_single_choice_post": lambda text: "".join(re.findall("[ABCD]", text)[-1:]),
    "agieval_single_answer_post": answer_letter,
    # All letters A to F, in order.
    "agieval_multiple_answer_post": lambda text: "".join(re.findall("[A-F]", text)),
    "first_line": _first_line,
    "last_number": last_number,
    "boxed": boxed,
    "option_letter": option_letter,
}
"""Upstream's names with the same rule, and ours. Upstream's longer ones (`math_post`, ...) need the checkout."""
