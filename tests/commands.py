"""`helm-ext` in this process: what it prints, and how it ends, as `helm_ext.cli.main` ends it."""

from collections.abc import Mapping
from typing import NamedTuple

from typer.testing import CliRunner

from helm_ext.cli import app, describe_error
from helm_ext.errors import HelmExtError, RunEntryError


class Done(NamedTuple):
    """A command that has ended."""

    code: int
    stdout: str
    stderr: str


def run(*arguments: object, code: int | None = 0, env: Mapping[str, str] | None = None) -> Done:
    """Run the command. `code`: the exit code that it must have, None for any; other errors than ours are raised."""
    done = CliRunner().invoke(app, [*map(str, arguments)], env=env)
    error = done.exception
    if isinstance(error, HelmExtError):
        said = f"{done.stderr}error: {describe_error(error, str(arguments[0]))}\n"
        found = Done(2 if isinstance(error, RunEntryError) else 1, done.stdout, said)
    elif error is not None and not isinstance(error, SystemExit):
        raise error
    else:
        found = Done(done.exit_code, done.stdout, done.stderr)
    assert code in (None, found.code), found
    return found
