"""Transform scripts: loading a user's script, calling it on a row, checking what it returns (docs/ultraeval.md).

A script is the user's own code and runs with the user's rights, in this process. It is compiled with annotations left
alone (`dataset_name: string` without `import string` is upstream's own example), executed once under a module name of
its own, and called by position with a copy of the row.
"""

from __future__ import annotations
import __future__

import ast
import contextlib
import hashlib
import itertools
import os
import random
import re
import sys
import traceback
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from helm_ext.errors import Problem, TransformError, show
from helm_ext.formats.ultraeval.checkout import ALIASES, Checkout, describe, text_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

KEYS = ("input", "output", "processed_output")
_SIGNATURE = "def transform(data, num_sample, r, dataset_name):"
_module_numbers = itertools.count()


@dataclass(frozen=True)
class Transformed:
    """What `transform` made of one row."""

    input: str
    output: str
    """What a demonstration shows: the first of several."""
    processed_output: str | list[str]
    """The accepted answer, or a list of them."""


class TransformProblem(Exception):  # noqa: N818 - carries a Problem, is never shown itself
    """One row that the script could not transform."""

    def __init__(self, message: str, line: int | None, code: str = "transform-shape") -> None:
        super().__init__(message)
        self.message = message
        self.line = line
        self.code = code


@dataclass(frozen=True)
class Script:
    """A transform script, loaded."""

    path: Path
    sha256: str
    function: Callable[..., Any]
    checkout: Checkout | None

    @property
    def uses_checkout(self) -> bool:
        """Whether the script imported something of the checkout, whose bytes then matter too."""
        return self.checkout is not None and self.checkout.used

    def running(self) -> contextlib.AbstractContextManager[None]:
        """Return the context in which `transform` must be called: see `_user_code`."""
        return _user_code(self.checkout)

    def transform(
        self, row: Mapping[str, Any], fewshot: int, rng: random.Random, dataset_name: str, *, seed: int = 0
    ) -> Transformed:
        """Call the script on a copy of `row`, within `running()`. Raises TransformProblem.

        `seed` is the row's own: a script that uses `random` itself, not the generator that it is given, makes the same
        of a row in every run.
        """
        _seed_global_generators(seed)
        try:
            # By position: the names of the parameters differ between upstream's scripts.
            returned = self.function(msgspec.to_builtins(row), fewshot, rng, dataset_name)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            line = _script_line(error, self.path)
            raise TransformProblem(f"transform raised {describe(error)}", line, "transform-raised") from error
        try:
            return _check_returned(returned)
        except TransformProblem as problem:
            problem.line = getattr(getattr(self.function, "__code__", None), "co_firstlineno", None)
            raise


@contextlib.contextmanager
def _user_code(checkout: Checkout | None) -> Iterator[None]:
    """Run a script's code: imports reach its checkout, what it prints goes to standard error (standard output is the
    report's), and the global random generators and the working directory are afterwards as they were.
    """
    state, numpy_state, folder = random.getstate(), np.random.get_state(), Path.cwd()  # noqa: NPY002 - the global one
    try:
        with contextlib.redirect_stdout(sys.stderr), checkout or contextlib.nullcontext():
            yield
    finally:
        os.chdir(folder)  # else the next task's files are not found, and the run is written to another folder
        random.setstate(state)
        np.random.set_state(numpy_state)  # noqa: NPY002


def _seed_global_generators(seed: int) -> None:
    random.seed(seed)
    np.random.seed(seed % 2**32)  # noqa: NPY002


def load_script(path: Path, checkout: Checkout | None) -> Script:
    """Execute a transform script under a module name of its own.

    Raises TransformError if there is no such file, it does not compile, raises, or has no function `transform`.
    """
    source = _read(path)
    digest = hashlib.sha256(source).hexdigest()
    name = f"helm_ext_transform_{digest[:12]}_{next(_module_numbers)}"
    module = ModuleType(name)
    module.__file__ = str(path)
    folder = path.resolve().parent
    if checkout is not None and checkout.root in (folder, *folder.parents):  # where relative imports start
        module.__package__ = ".".join((ALIASES[0], *folder.relative_to(checkout.root).parts))
    sys.modules[name] = module  # dataclasses and pickle look a class's module up
    try:
        code = compile(source, str(path), "exec", flags=__future__.annotations.compiler_flag, dont_inherit=True)
        with _user_code(checkout):
            _seed_global_generators(0)
            exec(code, module.__dict__)  # noqa: S102 - the user's script, on purpose
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        del sys.modules[name]
        raise TransformError([_load_problem(path, error, checkout)]) from error
    if not callable(function := vars(module).get("transform")):
        del sys.modules[name]
        raise TransformError([_no_transform(path, (name for name in vars(module) if not name.startswith("_")))])
    return Script(path, digest, function, checkout)


_SPEAKS_OF_TRANSFORM = re.compile(rb"\btransform\b|\bimport\s*\*")


def check_source(path: Path, *, has_checkout: bool) -> list[Problem]:
    """Check a script without running it: it parses, speaks of a `transform`, its checkout is there.

    What `transform` takes and returns is known once it has run.
    """
    try:
        source = _read(path)
        tree = ast.parse(source, str(path))
    except TransformError as error:
        return list(error.problems)
    except (SyntaxError, ValueError) as error:
        return [_load_problem(path, error, None)]
    problems = [
        _no_checkout(path, node.lineno, name)
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom) and not has_checkout
        for name in ([node.module or ""] if isinstance(node, ast.ImportFrom) else [each.name for each in node.names])
        if name.split(".")[0] in ALIASES
    ]
    if not _SPEAKS_OF_TRANSFORM.search(source):
        names = (node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef))
        problems.append(_no_transform(path, names))
    return problems


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        reason = "no such file" if isinstance(error, FileNotFoundError) else f"cannot be read: {error.strerror}"
        raise TransformError.at(path, f"transform script: {reason}", code="no-script") from None


def _no_transform(path: Path, names: Iterable[str]) -> Problem:
    found = f"it defines {', '.join(itertools.islice(names, 5)) or 'nothing'}"
    message = f"the script has no function `transform`; {found}"
    return TransformError.problem_at(path, message, _SIGNATURE, code="no-transform")


def _no_checkout(path: Path, line: int | None, imported: str) -> Problem:
    message = f"the script imports `{imported}`, which belongs to an UltraEval checkout, and none was found above it"
    hint = "root=FOLDER names the checkout: the folder that holds tasks/postprocess.py"
    return TransformError.problem_at(path, message, hint, line, code="no-checkout")


def _load_problem(path: Path, error: BaseException, checkout: Checkout | None) -> Problem:
    if isinstance(error, SyntaxError):
        message = f"the script does not parse: {error.msg}"
        return TransformError.problem_at(path, message, line=error.lineno, code="script-syntax")
    line = _script_line(error, path)
    if isinstance(error, ModuleNotFoundError) and (error.name or "").split(".")[0] in ALIASES and checkout is None:
        return _no_checkout(path, line, error.name or "")
    hint = ""
    if isinstance(error, ImportError) and "relative import" in text_of(error):
        hint = "a relative import works in a script that lies in an UltraEval checkout; root=FOLDER names it"
    message = f"the script raised {describe(error)} while it was loaded"
    return TransformError.problem_at(path, message, hint, line, code="script-raised")


def _script_line(error: BaseException, path: Path) -> int | None:
    """Return the line of the script that an exception came through last."""
    frames = traceback.extract_tb(error.__traceback__)
    return next((frame.lineno for frame in reversed(frames) if frame.filename == str(path)), None)


def _check_returned(returned: Any) -> Transformed:
    """Return what `transform` returned, typed. Raises TransformProblem unless it has exactly upstream's three keys."""
    if not isinstance(returned, dict):
        raise TransformProblem(f"transform returned {_kind(returned)}, expected a dict with {', '.join(KEYS)}", None)
    missing = [key for key in KEYS if key not in returned]
    extra = [key if isinstance(key, str) else _kind(key) for key in returned if key not in KEYS]
    if missing or extra:
        said = [f"lacks {', '.join(missing)}"] * bool(missing) + [f"has {', '.join(extra)} besides"] * bool(extra)
        message = f"transform returned a dict that {' and '.join(said)}; expected exactly {', '.join(KEYS)}"
        raise TransformProblem(message, None)
    if not isinstance(returned["input"], str):
        raise TransformProblem(f"input: expected a string, got {_kind(returned['input'])}", None)
    asked, shown, accepted = (_require_texts(key, returned[key]) for key in KEYS)
    return Transformed(asked[0], shown[0], accepted if isinstance(returned["processed_output"], list) else accepted[0])


def _require_texts(key: str, value: Any) -> list[str]:
    """Return a text, or a list of texts, as a list."""
    texts = value if isinstance(value, list) else [value]
    if not texts or not all(isinstance(text, str) for text in texts):
        raise TransformProblem(f"{key}: expected a string or a list of strings, got {_kind(value)}", None)
    try:
        "".join(texts).encode()
    except UnicodeEncodeError:
        message = f"{key}: half of a surrogate pair, which is no character, in {show(value)}"
        raise TransformProblem(message, None) from None
    return texts


def _kind(value: Any) -> str:
    if value is None:
        return "None"
    try:
        return f"{type(value).__name__} {show(value)}"
    except Exception:  # noqa: BLE001 - the user's class
        return type(value).__name__
