"""A user's checkout of UltraEval, importable as `UltraEval` without being on `sys.path`; and postprocessing by name.

On `sys.path`, the checkout's folder `datasets` would hide Hugging Face's package of that name. So the package names
that its scripts use are put into `sys.modules`, and only while a script of that checkout runs: two checkouts can be
used in one process, and nothing else ever sees them.

Postprocessing makes the answer of a completion (docs/ultraeval.md). Its name is looked up in the checkout first, so
that a task is scored by the very code it was written for; a few simple ones are ours.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import re
import sys
import threading
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType, TracebackType
from typing import TYPE_CHECKING, Any

from helm_ext.errors import RunEntryError, TransformError, did_you_mean, show

if TYPE_CHECKING:
    from collections.abc import Callable

ALIASES = ("UltraEval", "seereval")
"""Names under which scripts import their checkout: today's, and the project's earlier one."""

POSTPROCESS_FILE = Path("tasks") / "postprocess.py"

_lock = threading.RLock()


class Checkout:
    """The packages of one checkout. `with checkout:` makes them importable; `used` says whether any was."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._modules = {name: _package(name, root) for name in ALIASES}
        self._hidden: dict[str, ModuleType] = {}
        self._depth = 0

    @property
    def used(self) -> bool:
        """Whether a module of the checkout has been imported."""
        modules = sys.modules if self._depth else self._modules
        return any(name.split(".", 1)[0] in ALIASES and "." in name for name in modules)

    def __enter__(self) -> Checkout:  # noqa: PYI034 - typing.Self is of Python 3.11
        _lock.acquire()
        self._depth += 1
        if self._depth == 1:
            self._hidden = _take_out()
            sys.modules.update(self._modules)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._depth -= 1
        if self._depth == 0:
            self._modules = _take_out()
            sys.modules.update(self._hidden)
        _lock.release()

    @contextlib.contextmanager
    def running(
        self, file: Path, failed: str, hint: str = "", *, code: str, about: str | None = None
    ) -> Iterator[None]:
        """Run code of the checkout: its imports are found, and what it prints goes to standard error.

        Raises TransformError for whatever it raises: `failed` says what did not work, in `file` of the checkout, and
        `about` is the text that it did not work with.
        """
        try:
            with self, contextlib.redirect_stdout(sys.stderr):
                yield
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            shown = "" if about is None else f" {show(about)}"
            message = f"{failed}{shown}: {describe(error)}"
            raise TransformError.at(self.root / file, message, hint, code=code) from error

    def load_postprocesses(self) -> dict[str, Any]:
        """Return what `tasks/postprocess.py` registers. Raises TransformError if it cannot be loaded."""
        failed = "the checkout's postprocess module could not be loaded"
        with self.running(POSTPROCESS_FILE, failed, code="postprocess-raised"):
            module = importlib.import_module(f"{ALIASES[0]}.tasks.postprocess")
        registry = getattr(module, "POSTPROCESS_REGISTRY", {})
        return registry if isinstance(registry, dict) else {}

    def digest(self) -> str:
        """Return the SHA-256 of the postprocess module's bytes."""
        return hashlib.sha256((self.root / POSTPROCESS_FILE).read_bytes()).hexdigest()


def text_of(error: BaseException) -> str:
    """Return the text of an exception that a user's code raised; its class may be the user's too."""
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - the user's class
        return "(its text cannot be shown)"


def describe(error: BaseException) -> str:
    """Return class and text of an exception that a user's code raised, on one line."""
    text = text_of(error)
    return f"{type(error).__name__}: {show(text)[1:-1]}" if text else type(error).__name__


def _package(name: str, root: Path) -> ModuleType:
    package = ModuleType(name)
    package.__path__ = [str(root)]
    spec = ModuleSpec(name, None, is_package=True)
    spec.submodule_search_locations = [str(root)]
    package.__spec__ = spec
    return package


def _take_out() -> dict[str, ModuleType]:
    names = [name for name in sys.modules if name.split(".", 1)[0] in ALIASES]
    return {name: sys.modules.pop(name) for name in names}


def find_checkout(start: Path) -> Path | None:
    """Return the nearest folder above `start` that holds `tasks/postprocess.py`, or None."""
    return next((folder for folder in start.resolve().parents if (folder / POSTPROCESS_FILE).is_file()), None)


def open_checkout(root: Path | None, script: Path | None) -> Checkout | None:
    """Return the checkout at `root` if one is named, else the one that `script` lies in, else None.

    Raises TransformError if `root` is no folder.
    """
    if root is not None:
        if not root.is_dir():
            raise TransformError.at(root, "root: no such folder", code="no-root")
        return Checkout(root.resolve()) if (root / POSTPROCESS_FILE).is_file() else None
    found = find_checkout(script) if script is not None else None
    return Checkout(found) if found is not None else None


def open_root(root: str | None) -> Checkout:
    """Return the checkout in a folder that was found to be one when the run was planned."""
    found = open_checkout(Path(root), None) if root is not None else None
    if found is None:
        raise TransformError.at(str(root), "root: no UltraEval checkout", code="no-root")
    return found


NONE = ("", "none", "general_torch")
"""Names of "leave the completion as it is"."""


def get_postprocess(name: str, root: str | None = None) -> Callable[[str], str]:
    """Return the function that turns a raw completion into the answer to be scored.

    Raises RunEntryError for an unknown name, TransformError if the checkout at `root` cannot be used.
    """
    checkout = open_checkout(Path(root), None) if root else None
    if name in NONE:
        return lambda text: text
    registry = checkout.load_postprocesses() if checkout is not None else {}
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
    "first_line": lambda text: text.strip().split("\n")[0].strip(),
    "last_number": last_number,
    "boxed": boxed,
    "option_letter": option_letter,
}
"""Names that no checkout has."""
