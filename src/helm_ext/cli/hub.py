"""`helm-ext hub`: pack bundles, and keep them in a hub with immutable versions."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument, Exit, Option

import helm_ext.formats.innodata.hub as hubs
from helm_ext.cli import options
from helm_ext.cli.common import echo, make_console, parse_pairs, print_table, status, writing
from helm_ext.errors import HelmExtError, Location, Problems, count, raise_for, show
from helm_ext.evalset import DIGEST_LENGTH
from helm_ext.formats.innodata.hub.records import parse_object

hub_app = typer.Typer(
    help="The Innodata Dataset Hub: chat datasets with immutable versions, in a folder or an object store.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Hub = Annotated[
    str | None, Option("--hub", help=f"Folder or fsspec URL. Default: {hubs.HUB_ENV}, else a folder in your user data.")
]
Name = Annotated[str, Argument(metavar="NAME", help="A dataset of the hub.")]
VersionOption = Annotated[str | None, Option("--version", help="A number. Default: the newest.")]
AsJson = Annotated[bool, Option("--json", help="Print JSON for programs.")]


@hub_app.command()
def pack(
    test: Annotated[Path, Option(help="Records of the test split, JSON Lines.")],
    name: Annotated[str, Option(help="The dataset's name; the bundle is NAME.zip.")],
    train: Annotated[Path | None, Option(help="Records of the train split. Default: empty.")] = None,
    attr: Annotated[list[str] | None, Option(help="KEY=VALUE, a string attribute; repeatable.")] = None,
    attributes: Annotated[Path | None, Option(help="A JSON object with attributes of any type.")] = None,
    out: Annotated[Path, Option(help="The folder to write to.")] = Path(),
    replace: options.Replace = False,
) -> None:
    """Check two JSON Lines files and write NAME.zip: same input, same bytes."""
    given: dict[str, Any] = {}
    if attributes is not None:
        problems = Problems()
        with writing(attributes, "cannot be read: "):
            given = parse_object(attributes.read_bytes(), Location(str(attributes)), problems) or {}
        raise_for(problems.finish())
    given |= parse_pairs("--attr", attr)
    packed = hubs.pack(name=name, test=test, train=train, attributes=given, target=out, replace=replace)
    sizes = ", ".join(f"{number} {split}" for split, number in packed.sizes.items())
    echo(f"{packed.path}: {sizes}; SHA-256 {packed.digest}")


@hub_app.command()
def upload(
    files: Annotated[list[Path], Argument(metavar="FILE...", help="Bundles, NAME.zip.")], hub: Hub = None
) -> None:
    """Check bundles and make each the next version of its dataset. The same ZIP twice is refused.

    A file that is refused does not stop the others; the exit code is then 1.
    """
    refused = False
    for file in files:
        try:
            with status(f"uploading {file}"):
                uploaded = hubs.upload(file, hub)
        except HelmExtError as error:
            echo(f"error: {error}", err=True)
            refused = True
            continue
        for problem in uploaded.warnings:
            echo(f"warning: {problem}", err=True)
        version = uploaded.version
        echo(f"{version.name}: version {version.number}, SHA-256 {version.digest}")
    if refused:
        raise Exit(1)


@hub_app.command("list")
def list_(hub: Hub = None, as_json: AsJson = False) -> None:
    """List the datasets of the hub with their newest versions.

    One whose newest entry is damaged is named, and does not hide the others; the exit code is then 1.
    """
    hubs.require_hub(hub)
    newest, damaged = [], False
    for name in hubs.names(hub):
        try:
            newest.append(hubs.newest(name, hub))
        except HelmExtError as error:
            echo(f"error: {name}: {error}", err=True)
            damaged = True
    if newest or as_json:
        _print(newest, ("name", "version", "test", "train", "uploaded", "attributes"), as_json=as_json)
    elif not damaged:
        echo(f"no datasets in the hub at {hubs.get_root(hub)}")
    if damaged:
        raise Exit(1)


@hub_app.command("show")
def show_(name: Name, hub: Hub = None, as_json: AsJson = False) -> None:
    """Show all versions of a dataset, oldest first."""
    headings = ("version", "test", "train", "bytes", "uploaded", "SHA-256", "attributes")
    _print(hubs.versions(name, hub), headings, as_json=as_json)


@hub_app.command()
def verify(
    name: Annotated[str | None, Argument(metavar="[NAME]", help="One dataset. Default: all.")] = None, hub: Hub = None
) -> None:
    """Re-read every version: numbering, digests, and every rule of a bundle. Exit code 1 if anything is damaged."""
    with status("verifying"):
        problems = hubs.verify(name, hub)
    for problem in problems:
        echo(f"{problem.severity}: {problem}")
    checked = [name] if name else hubs.names(hub)
    echo(f"{count(len(checked), 'dataset')} verified, {count(len(problems), 'problem')}")
    if problems:
        raise Exit(1)


@hub_app.command()
def download(
    name: Name,
    version: VersionOption = None,
    out: Annotated[Path, Option(help="The folder to write to.")] = Path(),
    replace: options.Replace = False,
    hub: Hub = None,
) -> None:
    """Write NAME.zip, byte for byte as it was uploaded. The newest version, or a frozen one."""
    path, resolved = hubs.download(name, version, hub, out, replace=replace)
    if resolved.notice:
        echo(f"warning: {resolved.notice}", err=True)
    echo(f"{path}: version {resolved.version}, SHA-256 {resolved.digest}")


def _print(versions: Sequence[hubs.Version], headings: Sequence[str], *, as_json: bool) -> None:
    if as_json:
        made = [{key: value for key, value in dataclasses.asdict(one).items() if key != "claim"} for one in versions]
        echo(json.dumps(made, ensure_ascii=False, indent=2))
        return
    lines = []
    for one in versions:
        pairs = [f"{key}={value if isinstance(value, str) else show(value)}" for key, value in one.attributes.items()]
        cells = {
            "name": one.name, "version": one.number, "test": one.test_size, "train": one.train_size, "bytes": one.size,
            "uploaded": one.uploaded, "SHA-256": one.digest[:DIGEST_LENGTH],
            "attributes": ", ".join(pairs).replace("\n", "\\n"),  # no id of a stranger's looks like a line of ours
        }  # fmt: skip
        lines.append([cells[heading] for heading in headings])
    print_table(headings, lines, left=("uploaded", "SHA-256", "attributes"), console=make_console(piped=200))
