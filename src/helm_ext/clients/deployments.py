"""Models that a user adds to HELM's folder of local configurations, `prod_env`: deployments, tokenizers, metadata.

    model_deployments:
      - name: local/my-model
        client_spec: ...

Entries are added and removed as text: comments, order, quotes and the other entries stay as they are. What comes out
is read again before it is written, and is not written unless it says what was there, and the change.
"""

from __future__ import annotations

import datetime as dt
import json
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import yaml
from filelock import FileLock

from helm_ext.errors import HelmExtError, RunEntryError, show
from helm_ext.files.writing import open_part

DEPLOYMENTS, METADATA, TOKENIZERS = "model_deployments", "models", "tokenizer_configs"
FILES = {TOKENIZERS: "tokenizer_configs.yaml", METADATA: "model_metadata.yaml", DEPLOYMENTS: "model_deployments.yaml"}
"""HELM's files (helm/benchmark/config_registry.py) by the key of their list. A deployment is written last: HELM finds
it with its tokenizer and its metadata, or not at all."""

OURS = "helm_ext.clients.OpenAICompatibleClient"
LOCAL = "helm_ext.clients.SharedPrefixHuggingFaceClient"

Entry = Mapping[str, Any]

_NAME = re.compile(r"[A-Za-z0-9][\w.:+@-]*/[\w.:+@-]+", re.ASCII)
_UNKNOWN_LENGTH = 1_000_000
"""Transformers says 1e30 for a tokenizer that does not know."""


def require_name(name: str) -> None:
    """Raise RunEntryError for a name that HELM, or a run entry, cannot read."""
    if not _NAME.fullmatch(name):
        raise RunEntryError(
            f"{name}: expected ORGANIZATION/NAME, of letters, digits and . _ : + @ -\n  hint: local/my-model"
        )
    if name.startswith("recorded/"):
        raise RunEntryError(f"{name}: names that begin with recorded/ are those of recordings")


def read_tokenizer(path: str, name: str) -> tuple[dict[str, Any], int | None]:
    """Load a tokenizer and return its entry of `tokenizer_configs.yaml`, and the window of its model where it says.

    `path`: a folder, or a name of the Hugging Face hub. As HELM does (helm/benchmark/huggingface_registration.py).
    Raises HelmExtError where it cannot be loaded.
    """
    try:
        from helm.tokenizers.huggingface_tokenizer import HuggingFaceTokenizer

        with HuggingFaceTokenizer.create_tokenizer(path) as tokenizer:
            length = tokenizer.model_max_length
            end, prefix = tokenizer.eos_token or "", tokenizer.bos_token or ""
    except Exception as error:  # whatever its library raises for a folder without one, or without a network
        said = str(error).strip().splitlines()
        raise HelmExtError(
            f"{path}: no tokenizer can be loaded: {said[0] if said else type(error).__name__}\n"
            "  hint: a folder that save_pretrained wrote, a name of the Hugging Face hub, or a tokenizer of HELM's"
        ) from error
    try:
        config = json.loads(Path(path, "config.json").read_bytes())
        lengths = [length, config.get("max_position_embeddings") or config.get("n_positions")]
    except (OSError, ValueError, RecursionError, AttributeError):  # a name of the hub
        lengths = [length]
    known = [number for number in lengths if type(number) is int and 0 < number < _UNKNOWN_LENGTH]
    class_name = "helm.tokenizers.huggingface_tokenizer.HuggingFaceTokenizer"
    spec = {"class_name": class_name, "args": {"pretrained_model_name_or_path": path}}
    entry = {"name": name, "tokenizer_spec": spec, "end_of_text_token": end, "prefix_token": prefix}
    return entry, min(known, default=None)


def make_metadata(name: str, *, display_name: str | None, has_logprobs: bool) -> dict[str, Any]:
    """Return the entry of `model_metadata.yaml`: what HELM's reports show.

    The tags change nothing that is sent. Those that do (prefixes, chat markup) are for models that HELM knows.
    """
    full = "FULL_FUNCTIONALITY_TEXT_MODEL_TAG" if has_logprobs else "LIMITED_FUNCTIONALITY_TEXT_MODEL_TAG"
    return {
        "name": name,
        "display_name": display_name or name.split("/")[1],
        "description": f"{name}, added with helm-ext model add.",
        "creator_organization_name": name.split("/", maxsplit=1)[0],
        "access": "closed",
        "release_date": dt.datetime.now(dt.timezone.utc).date(),
        "tags": ["TEXT_MODEL_TAG", full],
    }


class NamedList:
    """A YAML file with one list of entries that have names: its text, and what it says.

    Raises HelmExtError for a file that cannot be read, or that does not hold such a list.
    """

    def __init__(self, path: Path, key: str, text: str | None = None) -> None:
        """Read the file, where its `text` is not given; one that is not there is an empty list."""
        self.path = path
        self.key = key
        try:
            self.text = path.read_text(encoding="utf-8") if text is None else text
        except FileNotFoundError:
            self.text = ""
        except (OSError, UnicodeDecodeError) as error:
            raise HelmExtError(f"{path}: cannot be read: {error}") from error
        document = parse_yaml(self.text, path)
        if not isinstance(document, dict | None):
            raise HelmExtError(f"{path}: expected {key}: and a list, got {show(document)}")
        self.document: dict[str, Any] = document or {}
        entries = self.document.get(key) or []
        if not isinstance(entries, list):
            raise HelmExtError(f"{path}: {key}: expected a list, got {show(entries)}")
        for number, entry in enumerate(entries):
            if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
                raise HelmExtError(f"{path}: {key}[{number}]: expected an entry with a name, got {show(entry)}")
        self.entries: list[dict[str, Any]] = entries

    def get(self, name: str) -> dict[str, Any] | None:
        """Return the entry of this name; the last one, which HELM takes too."""
        return next((entry for entry in reversed(self.entries) if entry["name"] == name), None)

    def changed(self, name: str, entry: Mapping[str, Any] | None = None) -> NamedList:
        """Return the list without the entries of this name, and with `entry` at its end. Raises HelmExtError."""
        root: Any = yaml.compose(self.text, Loader=yaml.SafeLoader)
        node: Any = next((value for key, value in root.value if key.value == self.key), None) if root else None
        lines = self.text.splitlines()
        spans = [(item.start_mark.line, _last_line(lines, item) + 1) for item in (node.value if self.entries else ())]
        if spans:
            end, column = spans[-1][1], node.start_mark.column
        elif node is not None:  # `[]`, `null`, or nothing
            end, column = node.start_mark.line + 1, 2
            line = lines[end - 1]
            lines[end - 1] = line[: node.start_mark.column].rstrip() + line[node.end_mark.column :]
        else:
            lines.append(f"{self.key}:")
            end, column = len(lines), 2
        kept = [one for one in self.entries if one["name"] != name]
        if entry is not None:
            kept.append(dict(entry))
            lines[end:end] = write_entry(entry, column).splitlines()
        for (first, last), one in reversed(list(zip(spans, self.entries, strict=True))):
            if one["name"] == name:
                del lines[first:last]
        text = "".join(f"{line}\n" for line in lines)
        if not kept:  # HELM takes a list without entries for a mistake
            text = re.sub(rf"(?m)^{self.key}:", f"{self.key}: []", text, count=1)
        with suppress(HelmExtError):
            made = NamedList(self.path, self.key, text)
            if made.document == {**self.document, self.key: kept}:
                return made
        raise HelmExtError(
            f"{self.path}: this file is written in a way in which no entry can be changed here (brackets, anchors?)\n"
            "  hint: change it by hand; an entry stands on lines of its own, and begins with `- name:`"
        )

    def write(self) -> None:
        """Put the file in place of what was there. Raises HelmExtError."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            mode = self.path.stat().st_mode & 0o777 if self.path.exists() else None
            with open_part(self.path, mode) as part:
                part.file.write(self.text.encode("utf-8"))
                part.replace()
        except OSError as error:
            raise HelmExtError(f"{self.path}: cannot be written: {error.strerror}") from error


def _last_line(lines: list[str], item: Any) -> int:
    """Return the number of an entry's last line. YAML lets it end where the next one begins, after comments."""
    end = item.end_mark
    last = end.line if end.line < len(lines) and lines[end.line][: end.column].strip() else end.line - 1
    while not lines[last].strip() or lines[last].lstrip().startswith("#"):
        last -= 1
    return last


def parse_yaml(text: str, path: Path) -> Any:
    """Return what the text of a YAML file says. Raises RunEntryError with the line."""
    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        place = f"{path}:{mark.line + 1}" if mark is not None else str(path)
        said = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise RunEntryError(f"{place}: not YAML: {said}") from error


def write_entry(entry: Mapping[str, Any], column: int) -> str:
    """Return an entry as an item of a list that begins in this column."""
    text = yaml.safe_dump([dict(entry)], sort_keys=False, allow_unicode=True, default_flow_style=False, width=1000)
    return textwrap.indent(text, " " * column)


class LocalModels:
    """The three files of a folder. Raises HelmExtError for one that cannot be read."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lists = {key: NamedList(folder / name, key) for key, name in FILES.items()}

    @property
    def deployments(self) -> list[dict[str, Any]]:
        """The entries of `model_deployments.yaml`."""
        return self.lists[DEPLOYMENTS].entries

    def get(self, name: str) -> dict[str, Any]:
        """Return a deployment. Raises RunEntryError for one that is not there."""
        found = self.lists[DEPLOYMENTS].get(name)
        if found is None:
            known = ", ".join(entry["name"] for entry in self.deployments) or "none"
            raise RunEntryError(
                f"{name}: no such deployment in {self.lists[DEPLOYMENTS].path}\n  hint: there are: {known}"
            )
        return found

    def add(self, entries: Mapping[str, Mapping[str, Any]], *, replace: bool = True) -> list[tuple[Path, Entry]]:
        """Add entries, by the key of their list, in place of those of the same name; return what was written where.

        Raises RunEntryError for a deployment that is there, unless `replace`.
        """
        with self._locked():
            name = entries[DEPLOYMENTS]["name"]
            if not replace and self.lists[DEPLOYMENTS].get(name) is not None:
                raise RunEntryError(
                    f"{name}: is there already, in {self.folder}\n  hint: --replace, or helm-ext model remove {name}"
                )
            keys = [key for key in FILES if key in entries]
            self._write([self.lists[key].changed(entries[key]["name"], entries[key]) for key in keys])
        return [(self.lists[key].path, entries[key]) for key in keys]

    def remove(self, name: str) -> list[tuple[Path, Entry]]:
        """Remove a deployment, and the metadata and the tokenizer of its name that no other one needs; return them.

        Raises RunEntryError for a deployment that is not there.
        """
        self.get(name)  # no folder is made where there is none
        with self._locked():
            removed = {DEPLOYMENTS: self.get(name)}  # first: HELM finds no deployment without its tokenizer
            others = [entry for entry in self.deployments if entry["name"] != name]
            needed = {
                METADATA: {entry.get("model_name") or entry["name"] for entry in others},
                TOKENIZERS: {entry.get("tokenizer_name") for entry in others},
            }
            for key, names in needed.items():
                if (entry := self.lists[key].get(name)) is not None and name not in names:
                    removed[key] = entry
            self._write([self.lists[key].changed(name) for key in removed])
        return [(self.lists[key].path, entry) for key, entry in removed.items()]

    def _write(self, changed: Iterable[NamedList]) -> None:
        for made in changed:
            made.write()
            self.lists[made.key] = made

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Let others wait that change the files, and read what they have made of them. Raises HelmExtError."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with FileLock(self.folder / ".helm-ext.lock", mode=0o666):
                self.lists = LocalModels(self.folder).lists
                yield
        except (OSError, NotImplementedError) as error:  # a file system without locks
            raise HelmExtError(f"{self.folder}: cannot be changed: {error}") from error
