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
import inspect
import itertools
import os
import random
import sys
import traceback
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from helm_ext.errors import Location, Problem, TransformError, show
from helm_ext.formats.ultraeval.checkout import ALIASES, Checkout, describe, text_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

__all__ = ["Script", "TransformProblem", "Transformed", "check_source", "load_script"]

KEYS = ("input", "output", "processed_output")
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
    names_numpy: bool = False
    """Whether its source speaks of numpy: then numpy's global generator is seeded too."""

    @property
    def uses_checkout(self) -> bool:
        """Whether the script imported something of the checkout, whose bytes then matter too."""
        return self.checkout is not None and self.checkout.used

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Return the context in which `transform` must be called: see `_user_code`."""
        with _user_code(self.checkout):
            yield

    def transform(
        self, row: Mapping[str, Any], fewshot: int, rng: random.Random, dataset_name: str, *, seed: int = 0
    ) -> Transformed:
        """Call the script on a copy of `row`, within `running()`. Raises TransformProblem.

        `seed` is the row's own: a script that uses `random` itself, not the generator that it is given, makes the same
        of a row in every run.
        """
        _seed_global_generators(seed, numpy=self.names_numpy)
        try:
            # By position: the names of the parameters differ between upstream's scripts.
            returned = self.function(copy_json(row), fewshot, rng, dataset_name)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            raise TransformProblem(
                f"transform raised {describe(error)}", _script_line(error, self.path), "transform-raised"
            ) from error
        return _check_returned(returned, self.function)


@contextlib.contextmanager
def _user_code(checkout: Checkout | None) -> Iterator[None]:
    """Run a script's code: imports reach its checkout, what it prints goes to standard error (standard output is the
    report's), and the global random generators and the working directory are afterwards as they were.
    """
    state = random.getstate()
    folder = Path.cwd()
    numpy = sys.modules.get("numpy")
    numpy_state = numpy.random.get_state() if numpy is not None else None
    try:
        with contextlib.redirect_stdout(sys.stderr), nullcontext() if checkout is None else checkout:
            yield
    finally:
        os.chdir(folder)  # else the next task's files are not found, and the run is written to another folder
        random.setstate(state)
        if numpy is not None:
            numpy.random.set_state(numpy_state)


def _seed_global_generators(seed: int, *, numpy: bool) -> None:
    random.seed(seed)
    module = sys.modules.get("numpy") if numpy else None
    if module is not None:
        module.random.seed(seed % 2**32)


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
    module.__package__ = _package_of(path, checkout)
    sys.modules[name] = module  # dataclasses and pickle look a class's module up
    try:
        code = compile(source, str(path), "exec", flags=__future__.annotations.compiler_flag, dont_inherit=True)
        with _user_code(checkout):
            _seed_global_generators(0, numpy=True)
            exec(code, module.__dict__)  # noqa: S102 - the user's script, on purpose
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        del sys.modules[name]
        raise TransformError([_load_problem(path, error, checkout)]) from error
    function = module.__dict__.get("transform")
    if not callable(function):
        del sys.modules[name]
        raise TransformError([_no_transform(path, [n for n in module.__dict__ if not n.startswith("_")])])
    if inspect.iscoroutinefunction(function):
        del sys.modules[name]
        raise TransformError([_is_async(path, function.__code__.co_firstlineno)])
    return Script(path, digest, function, checkout, names_numpy=b"numpy" in source)


def _package_of(path: Path, checkout: Checkout | None) -> str | None:
    """Return the package that a script of a checkout lies in: its relative imports start there."""
    folder = path.resolve().parent
    if checkout is None or checkout.root not in (folder, *folder.parents):
        return None
    return ".".join((ALIASES[0], *folder.relative_to(checkout.root).parts))


def check_source(path: Path, *, has_checkout: bool) -> list[Problem]:
    """Check a script without running it: it parses, speaks of a `transform`, its checkout is there.

    What `transform` takes and returns is known once it has run.
    """
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
    if not any(map(_names_transform, ast.walk(tree))):
        names = [node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
        problems.append(_no_transform(path, names))
    return problems


def _imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
        return [node.module]
    return []


def _names_transform(node: ast.AST) -> bool:
    """Whether a script that runs may have a `transform` by this: it is defined, assigned, imported, or so named."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return node.name == "transform"
    if isinstance(node, ast.alias):
        return (node.asname or node.name) in ("transform", "*")
    if isinstance(node, ast.Constant):
        return bool(node.value == "transform")
    return isinstance(node, ast.Name) and node.id == "transform" and isinstance(node.ctx, ast.Store)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        reason = "no such file" if isinstance(error, FileNotFoundError) else f"cannot be read: {error.strerror}"
        raise TransformError.at(path, f"transform script: {reason}", code="no-script") from None


def _no_transform(path: Path, names: list[str]) -> Problem:
    found = f"it defines {', '.join(names[:5])}" if names else "it defines nothing"
    return Problem(
        f"the script has no function `transform`; {found}",
        Location(str(path)),
        "def transform(data, num_sample, r, dataset_name):",
        code="no-transform",
        kind=TransformError,
    )


def _is_async(path: Path, line: int) -> Problem:
    return Problem(
        "transform is an async function, and is called as a plain one",
        Location(str(path), line),
        "def transform(data, num_sample, r, dataset_name):",
        code="transform-async",
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
    if isinstance(error, ImportError) and "relative import" in text_of(error):
        message = f"the script raised {describe(error)} while it was loaded"
        hint = "a relative import works in a script that lies in an UltraEval checkout; root=FOLDER names it"
        return Problem(message, Location(str(path), line), hint, code="script-raised", kind=TransformError)
    if isinstance(error, SyntaxError):
        message, code = f"the script does not parse: {error.msg}", "script-syntax"
    else:
        message, code = f"the script raised {describe(error)} while it was loaded", "script-raised"
    return Problem(message, Location(str(path), line), code=code, kind=TransformError)


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
    extra = [key if isinstance(key, str) else _kind(key) for key in returned if key not in KEYS]
    if missing or extra:
        said = [f"lacks {', '.join(missing)}"] * bool(missing) + [f"has {', '.join(extra)} besides"] * bool(extra)
        raise TransformProblem(
            f"transform returned a dict that {' and '.join(said)}; expected exactly {', '.join(KEYS)}",
            line,
            "transform-shape",
        )
    if not isinstance(returned["input"], str):
        raise TransformProblem(f"input: expected a string, got {_kind(returned['input'])}", line, "transform-shape")
    for key in KEYS:
        _require_unicode(key, returned[key], line)
    shown = _texts("output", returned["output"], line)
    return Transformed(
        returned["input"],
        shown if isinstance(shown, str) else shown[0],
        _texts("processed_output", returned["processed_output"], line),
    )


def _texts(key: str, value: Any, line: int | None) -> str | list[str]:
    if isinstance(value, str) or (isinstance(value, list) and value and all(isinstance(item, str) for item in value)):
        return value
    raise TransformProblem(
        f"{key}: expected a string or a list of strings, got {_kind(value)}", line, "transform-shape"
    )


def _require_unicode(key: str, value: Any, line: int | None) -> None:
    """Raise TransformProblem for half of a surrogate pair: no tokenizer and no file takes it."""
    for text in value if isinstance(value, list) else [value]:
        if isinstance(text, str) and not text.isascii():
            try:
                text.encode()
            except UnicodeEncodeError as error:
                found = f"U+{ord(text[error.start]):04X}"
                message = f"{key}: a lone surrogate ({found}), which is no character, in {show(text)}"
                raise TransformProblem(message, line, "transform-surrogate") from None


def _kind(value: Any) -> str:
    if value is None:
        return "None"
    try:
        return f"{type(value).__name__} {show(value)}"
    except Exception:  # noqa: BLE001 - the user's class
        return type(value).__name__
