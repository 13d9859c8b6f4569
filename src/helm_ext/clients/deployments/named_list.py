"""A YAML file with one list of entries that have names, as HELM's `model_deployments.yaml`.

    model_deployments:
      - name: local/my-model
        client_spec: ...

Entries are added and removed as text: comments, order, quotes and the other entries stay as they are. What comes out
is read again before it is written, and is not written unless it says what was there, and the change.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from helm_ext.errors import HelmExtError, show
from helm_ext.files.writing import open_part

MAX_BYTES = 1 << 24
"""HELM's own file has 0.3 MB."""


class NamedList:
    """The file's text, and what it says. Raises HelmExtError for a file that does not hold such a list."""

    def __init__(self, path: Path, key: str, text: str) -> None:
        self.path = path
        self.key = key
        self.text = text
        self.document = self._load(text)
        self.entries = self._entries(self.document)

    @classmethod
    def read(cls, path: Path, key: str) -> NamedList:
        """Read the file; one that is not there is an empty list. Raises HelmExtError."""
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            data = b""
        except OSError as error:
            raise HelmExtError(f"{path}: cannot be read: {error.strerror}") from error
        if len(data) > MAX_BYTES:
            raise HelmExtError(f"{path}: {len(data):,} bytes, and {MAX_BYTES:,} at most are read")
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise HelmExtError(f"{path}: not UTF-8: byte {error.start}") from error
        return cls(path, key, text)

    def get(self, name: str) -> dict[str, Any] | None:
        """Return the entry of this name; the last one, which HELM takes too."""
        return next((entry for entry in reversed(self.entries) if entry["name"] == name), None)

    def with_entry(self, entry: Mapping[str, Any]) -> NamedList:
        """Return the list with one entry more, at its end. Raises HelmExtError."""
        node = self._find_list()
        newline = "\r\n" if "\r\n" in self.text else "\n"
        if node is None:
            text = self.text if not self.text or self.text.endswith("\n") else self.text + newline
            made = text + f"{self.key}:{newline}" + write_entry(entry, 2, newline)
        elif not self.entries:  # `[]`, `null`, or nothing
            after = self.text[node.end_mark.index :]
            made = self.text[: node.start_mark.index].rstrip(" ") + newline
            made += write_entry(entry, 2, newline) + after.removeprefix(newline)
        else:
            self._require_block(node)
            lines = self.text.splitlines(keepends=True)
            end = self._last_line(lines, node.value[-1]) + 1
            lines[end - 1] = lines[end - 1] if lines[end - 1].endswith("\n") else lines[end - 1] + newline
            lines.insert(end, write_entry(entry, node.start_mark.column, newline))
            made = "".join(lines)
        return self._checked(made, [*self.entries, dict(entry)])

    def without(self, name: str) -> NamedList:
        """Return the list without the entries of this name. Raises HelmExtError."""
        kept = [entry for entry in self.entries if entry["name"] != name]
        node = self._find_list()
        if node is None or len(kept) == len(self.entries):
            return self
        self._require_block(node)
        lines = self.text.splitlines(keepends=True)
        column = node.start_mark.column
        for item, entry in reversed(list(zip(node.value, self.entries, strict=True))):
            if entry["name"] != name:
                continue
            first = item.start_mark.line
            while lines[first][column : column + 1] != "-":
                first -= 1
            del lines[first : self._last_line(lines, item) + 1]
        made = "".join(lines)
        if not kept:
            made = self._say_empty(made)
        return self._checked(made, kept)

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

    def _say_empty(self, text: str) -> str:
        """Return the text, of which the last entry was taken, with an empty list: HELM reads nothing as a mistake."""
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        found = next(key for key, _ in node.value if key.value == self.key)
        end = found.end_mark.index + 1  # the colon
        return f"{text[:end]} []{text[end:]}"

    def _load(self, text: str) -> dict[str, Any]:
        try:
            document = yaml.safe_load(text)
        except (yaml.YAMLError, ValueError, RecursionError) as error:
            mark = getattr(error, "problem_mark", None)
            place = f"{self.path}:{mark.line + 1}" if mark is not None else str(self.path)
            said = getattr(error, "problem", None) or str(error).splitlines()[0]
            raise HelmExtError(f"{place}: not YAML: {said}") from error
        document = {} if document is None else document
        if not isinstance(document, dict):
            raise HelmExtError(f"{self.path}: expected {self.key}: and a list, got {show(document)}")
        return document

    def _entries(self, document: Mapping[str, Any]) -> list[dict[str, Any]]:
        found = document.get(self.key)
        entries = [] if found is None else found
        if not isinstance(entries, list):
            raise HelmExtError(f"{self.path}: {self.key}: expected a list, got {show(entries)}")
        for place, entry in enumerate(entries):
            if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
                raise HelmExtError(
                    f"{self.path}: {self.key}[{place}]: expected an entry with a name, got {show(entry)}"
                )
        return entries

    def _find_list(self) -> Any:
        """Return the list's node; None where the file has none."""
        node = yaml.compose(self.text, Loader=yaml.SafeLoader)
        if node is None:
            return None
        return next((value for key, value in node.value if key.value == self.key), None)

    def _require_block(self, node: Any) -> None:
        if node.flow_style:
            raise HelmExtError(
                f"{self.path}:{node.start_mark.line + 1}: the list is in brackets, and is changed by hand only\n"
                "  hint: write each entry on lines of its own, beginning with `- name:`"
            )

    def _last_line(self, lines: list[str], item: Any) -> int:
        """Return the number of an entry's last line. YAML lets it end where the next one begins, after comments.

        What a line that begins with `#` is, only YAML can tell: texts of several lines hold such lines too.
        """
        start, end = item.start_mark.index, item.end_mark.index
        marks = [
            token.end_mark
            for token in self._tokens
            if start <= token.start_mark.index < token.end_mark.index <= end  # those that have characters
        ]
        mark = max(marks, key=lambda one: one.index, default=item.end_mark)
        is_over = mark.line >= len(lines) or not lines[mark.line][: mark.column].strip()
        last = min(mark.line, len(lines)) - 1 if is_over else mark.line
        while not lines[last].strip():
            last -= 1
        return last

    @cached_property
    def _tokens(self) -> list[Any]:
        return list(yaml.scan(self.text, Loader=yaml.SafeLoader))

    def _checked(self, text: str, entries: list[dict[str, Any]]) -> NamedList:
        """Return the changed list, if it says what it is to say."""
        expected = {**self.document, self.key: entries}
        try:
            made = NamedList(self.path, self.key, text)
        except HelmExtError:
            made = None
        if made is None or made.document != expected:
            raise HelmExtError(
                f"{self.path}: this file is written in a way in which no entry can be changed here (anchors?)\n"
                "  hint: change it by hand"
            )
        return made


def write_entry(entry: Mapping[str, Any], column: int, newline: str = "\n") -> str:
    """Return an entry as an item of a list that begins in this column."""
    text = yaml.dump(
        [dict(entry)], Dumper=_Dumper, sort_keys=False, allow_unicode=True, default_flow_style=False, width=1000
    )
    return textwrap.indent(text, " " * column).replace("\n", newline)


class _Dumper(yaml.SafeDumper):
    """Escapes whatever cannot be seen: some of it ends a line, and would not survive that lines are indented."""

    def represent_str(self, data: str) -> Any:
        return self.represent_scalar("tag:yaml.org,2002:str", data, style=None if data.isprintable() else '"')


_Dumper.add_representer(str, _Dumper.represent_str)
