"""Transform scripts: loading a user's script, calling it on a row, checking what it returns (formats.md, section 2).

A script is the user's own code and runs with the user's rights, in this process. It is compiled with annotations left
alone (`dataset_name: string` without `import string` is upstream's own example), executed once under a module name of
its own, and called by position with a copy of the row.
"""

from __future__ import annotations
import __future__

import ast
import hashlib
import itertools
import sys
import traceback
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any

from helm_ext.errors import Location, Problem, TransformError, show
from helm_ext.formats.ultraeval.checkout import ALIASES, Checkout

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Mapping
    from pathlib import Path

__all__ = ["Script", "TransformProblem", "Transformed", "check_source", "load_script"]

KEYS = ("input", "output", "processed_output")
PARAMETERS = 4
"""`transform(data, num_sample, r, dataset_name)`: names differ between upstream's scripts, so we call by position."""

_module_numbers = itertools.count()


@dataclass(frozen=True)
class Transformed:
    """What `transform` made of one row."""

    input: str
    output: tuple[str, ...]
    processed_output: tuple[str, ...]


class TransformProblem(Exception):  # noqa: N818 - carries a Problem, is never shown itself
    """One row that the script could not transform."""

    def __init__(self, message: str, line: int | None, code: str) -> None:
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

    def running(self) -> AbstractContextManager[Any]:
        """Return the context in which `transform` must be called: imports inside the function reach the checkout."""
        return nullcontext() if self.checkout is None else self.checkout

    def transform(self, row: Mapping[str, Any], fewshot: int, rng: random.Random, dataset_name: str) -> Transformed:
        """Call the script on a copy of `row`, within `running()`. Raises TransformProblem."""
        try:
            returned = self.function(copy_json(row), fewshot, rng, dataset_name)
        except (Exception, SystemExit) as error:
            raise TransformProblem(
                f"transform raised {_name(error)}", _script_line(error, self.path), "transform-raised"
            ) from error
        return _check_returned(returned, self.function)


def copy_json(value: Any) -> Any:
    """Return a deep copy of a value that was read from JSON; three times as fast as `copy.deepcopy`."""
    if type(value) is dict:
        return {key: copy_json(item) for key, item in value.items()}
    if type(value) is list:
        return [copy_json(item) for item in value]
    return value


def load_script(path: Path, checkout: Checkout | None) -> Script:
    """Execute a transform script under a module name of its own.

    Raises TransformError if there is no such file, it does not compile, raises, or has no function `transform`.
    """
    source = _read(path)
    digest = hashlib.sha256(source).hexdigest()
    name = f"helm_ext_transform_{digest[:12]}_{next(_module_numbers)}"
    module = ModuleType(name)
    module.__file__ = str(path)
    sys.modules[name] = module  # dataclasses and pickle look a class's module up
    try:
        code = compile(source, str(path), "exec", flags=__future__.annotations.compiler_flag, dont_inherit=True)
        with nullcontext() if checkout is None else checkout:
            exec(code, module.__dict__)  # noqa: S102 - the user's script, on purpose
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise TransformError([_load_problem(path, error, checkout)]) from error
    function = module.__dict__.get("transform")
    if not callable(function):
        del sys.modules[name]
        raise TransformError([_no_transform(path, [n for n in module.__dict__ if not n.startswith("_")])])
    return Script(path, digest, function, checkout)


def check_source(path: Path, *, has_checkout: bool) -> list[Problem]:
    """Check a script without running it: it parses, defines `transform` with four parameters, imports can be met."""
    try:
        tree = ast.parse(_read(path), str(path))
    except TransformError as error:
        return list(error.problems)
    except (SyntaxError, ValueError) as error:
        return [_load_problem(path, error, None)]
    problems = [
        _no_checkout(path, getattr(node, "lineno", None), name)
        for node in ast.walk(tree)
        for name in _imported(node)
        if name.split(".")[0] in ALIASES and not has_checkout
    ]
    functions = [
        node
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == "transform"
    ]
    if not functions and not _assigns_transform(tree):
        names = [node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
        problems.append(_no_transform(path, names))
    for function in functions[-1:]:
        arguments = function.args
        most = len(arguments.posonlyargs) + len(arguments.args)
        least = most - len(arguments.defaults)
        if (
            isinstance(function, ast.AsyncFunctionDef)
            or least > PARAMETERS
            or (most < PARAMETERS and not arguments.vararg)
        ):
            problems.append(
                Problem(
                    f"transform takes {most} positional arguments and is called with {PARAMETERS}",
                    Location(str(path), function.lineno),
                    "def transform(data, num_sample, r, dataset_name):",
                    code="transform-signature",
                    kind=TransformError,
                )
            )
    return problems


def _imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
        return [node.module]
    return []


def _assigns_transform(tree: ast.Module) -> bool:
    """Whether `transform` is bound at the top level in another way: assigned, or imported."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "transform" for t in node.targets):
            return True
        if isinstance(node, ast.ImportFrom) and any((a.asname or a.name) in ("transform", "*") for a in node.names):
            return True
    return False


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        reason = "no such file" if isinstance(error, FileNotFoundError) else f"cannot be read: {error.strerror}"
        problem = Problem(f"transform script: {reason}", Location(str(path)), code="no-script", kind=TransformError)
        raise TransformError([problem]) from None


def _no_transform(path: Path, names: list[str]) -> Problem:
    found = f"it defines {', '.join(names[:5])}" if names else "it defines nothing"
    return Problem(
        f"the script has no function `transform`; {found}",
        Location(str(path)),
        "def transform(data, num_sample, r, dataset_name):",
        code="no-transform",
        kind=TransformError,
    )


def _no_checkout(path: Path, line: int | None, imported: str) -> Problem:
    return Problem(
        f"the script imports `{imported}`, which belongs to an UltraEval checkout, and none was found above it",
        Location(str(path), line),
        "root=FOLDER names the checkout: the folder that holds tasks/postprocess.py",
        code="no-checkout",
        kind=TransformError,
    )


def _load_problem(path: Path, error: BaseException, checkout: Checkout | None) -> Problem:
    line = error.lineno if isinstance(error, SyntaxError) else _script_line(error, path)
    if isinstance(error, ModuleNotFoundError) and (error.name or "").split(".")[0] in ALIASES and checkout is None:
        return _no_checkout(path, line, error.name or "")
    if isinstance(error, SyntaxError):
        message, code = f"the script does not parse: {error.msg}", "script-syntax"
    else:
        message, code = f"the script raised {_name(error)} while it was loaded", "script-raised"
    return Problem(message, Location(str(path), line), code=code, kind=TransformError)


def _name(error: BaseException) -> str:
    text = str(error)
    return f"{type(error).__name__}: {show(text)[1:-1]}" if text else type(error).__name__


def _script_line(error: BaseException, path: Path) -> int | None:
    """Return the line of the script that an exception came through last."""
    frames = traceback.extract_tb(error.__traceback__)
    return next((frame.lineno for frame in reversed(frames) if frame.filename == str(path)), None)


def _check_returned(returned: Any, function: Callable[..., Any]) -> Transformed:
    """Return what `transform` returned, typed. Raises TransformProblem unless it has exactly upstream's three keys."""
    line = getattr(getattr(function, "__code__", None), "co_firstlineno", None)
    if not isinstance(returned, dict):
        raise TransformProblem(
            f"transform returned {_kind(returned)}, expected a dict with {', '.join(KEYS)}", line, "transform-shape"
        )
    missing = [key for key in KEYS if key not in returned]
    extra = [str(key) for key in returned if key not in KEYS]
    if missing or extra:
        said = [f"lacks {', '.join(missing)}"] * bool(missing) + [f"has {', '.join(extra)} besides"] * bool(extra)
        raise TransformProblem(
            f"transform returned a dict that {' and '.join(said)}; expected exactly {', '.join(KEYS)}",
            line,
            "transform-shape",
        )
    if not isinstance(returned["input"], str):
        raise TransformProblem(f"input: expected a string, got {_kind(returned['input'])}", line, "transform-shape")
    return Transformed(
        returned["input"],
        _texts("output", returned["output"], line),
        _texts("processed_output", returned["processed_output"], line),
    )


def _texts(key: str, value: Any, line: int | None) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
        return tuple(value)
    raise TransformProblem(
        f"{key}: expected a string or a list of strings, got {_kind(value)}", line, "transform-shape"
    )


def _kind(value: Any) -> str:
    return f"{type(value).__name__} {show(value)}" if value is not None else "None"
