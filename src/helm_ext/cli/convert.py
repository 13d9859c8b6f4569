"""`helm-ext convert`: from any of the three formats to another."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

from helm_ext.cli.session import find_file, parse_arguments, require_unnamed
from helm_ext.cli.validate import FormatName
from helm_ext.errors import DatasetIntegrityError, RunEntryError, count, did_you_mean
from helm_ext.formats import FORMATS, Format, detect
from helm_ext.formats.run_entries import known_arguments
from helm_ext.formats.run_entries import parse_arguments as parse_run_arguments

if TYPE_CHECKING:
    from helm_ext.evalset import EvalSet
    from helm_ext.formats.conversion import Converted

__all__ = ["convert"]

_JSON_LINES = {".jsonl", ".ndjson"}


def convert(
    source: Annotated[Path, typer.Argument(metavar="SRC", help="A dataset file; any of the three formats.")],
    target: Annotated[Path, typer.Argument(metavar="DST", help="FILE.jsonl (adapter_spec) or NAME.zip (a bundle).")],
    arg: Annotated[list[str] | None, typer.Option(help="KEY=VALUE, as in the run entry of SRC; repeatable.")] = None,
    kind: Annotated[FormatName | None, typer.Option("--as", help="Read SRC as this format.")] = None,
    replies: Annotated[
        Path | None, typer.Option(help="To a bundle: write recorded completions to this JSON Lines file.")
    ] = None,
    lossy: Annotated[bool, typer.Option("--lossy", help="Convert even if something is lost.")] = False,
    replace: Annotated[bool, typer.Option("--replace", help="Overwrite DST.")] = False,
) -> None:
    """Convert a dataset to adapter_spec JSON Lines or to a bundle, if that loses nothing; else say what it would lose.

    Exit code 1: something would be lost, and nothing was written.
    """
    if target.suffix not in {*_JSON_LINES, ".zip"}:
        raise RunEntryError(f"{target}: expected FILE.jsonl or NAME.zip")
    if replies is not None and target.suffix != ".zip":
        raise RunEntryError("--replies: adapter_spec files hold completions themselves")
    if target.exists() and not replace:
        raise DatasetIntegrityError(f"{target}: exists\n  hint: --replace overwrites it")
    source = find_file(source)
    format_ = FORMATS[kind.value] if kind else detect(source)
    with Console(stderr=True).status(escape(f"converting {source}")):
        converted = _convert(format_, source, target, parse_arguments(arg or []), replies, lossy=lossy)
    for kind_of, found in (("lost", converted.findings.losses), ("note", converted.findings.notes)):
        for text, rows in found.items():
            typer.echo(f"{kind_of}: {text}" + (f" ({rows} rows)" if rows > 1 else ""), err=True)
    typer.echo(f"{converted.path}: {count(converted.rows, 'row')}")
    if converted.replies is not None:
        typer.echo(f"{converted.replies}: recorded completions")


def _convert(
    format_: Format, source: Path, target: Path, arguments: dict[str, Any], replies: Path | None, *, lossy: bool
) -> Converted:
    from helm_ext.formats import conversion

    arguments = _with_types(format_, source, arguments)
    evalset = format_.module.load(**format_.arguments(source), **arguments)
    if target.suffix in _JSON_LINES:
        train = None
        if format_.name == "innodata" and arguments.get("split", "test") == "test":
            train = _train_split(source, arguments)
        return conversion.to_json_lines(evalset, target, train=train, lossy=lossy)
    if format_.name == "innodata":
        raise RunEntryError(f"{source}: is a bundle already")
    return conversion.to_bundle(evalset, target, replies=replies, lossy=lossy, replace=True)


def _with_types(format_: Format, source: Path, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return `load`'s arguments, with the types of the run entry for those that it has too."""
    known = inspect.signature(format_.module.load).parameters
    require_unnamed(format_.arguments(source), arguments)
    for name in arguments:
        if name not in known:
            hint = did_you_mean(name, known) or f"known: {', '.join(known)}"
            raise RunEntryError(f"--arg {name}: {format_.name} has no such argument\n  hint: {hint}")
    shared = {name: value for name, value in arguments.items() if name in known_arguments(format_.name)}
    return arguments | parse_run_arguments(format_.name, shared)


def _train_split(source: Path, arguments: dict[str, Any]) -> EvalSet | None:
    """Return a bundle's train split as an EvalSet; None when it is empty."""
    from helm_ext.formats import innodata

    with innodata.open_bundle(source) as bundle:
        if not bundle.meta.sizes["train"]:
            return None
    options = {key: value for key, value in arguments.items() if key not in {"split", "replies", "limit"}}
    return innodata.load(path=source, split="train", **options)
