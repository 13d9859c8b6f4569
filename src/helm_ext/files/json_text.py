"""JSON text to values: strict, or with comments and trailing commas; and where a value stands in it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
import orjson

from helm_ext.errors import DatasetError, DatasetSchemaError, DatasetSyntaxError, Path, show

MAX_DEPTH = 254
"""Levels of objects and lists inside one another. As deep as orjson writes; Python's recursion, on which HELM's own
writing and copying rely, goes about twice as deep."""

ZIP_MAGIC = b"PK\x03\x04"

_STRING_PATTERN = r'"[^"\\]*(?:\\.[^"\\]*)*"'
_COMMENT = r"//[^\n]*|/\*(?:[^*]|\*(?!/))*\*/"
_TOKEN = re.compile(rf"{_COMMENT}|{_STRING_PATTERN}|[{{}}\[\]:,]|[^\s{{}}\[\]:,\"/]+", re.DOTALL)


def decode(data: bytes, path: str, line: int = 1) -> str:
    """Decode UTF-8 that starts at `line` of the file. Raises DatasetSyntaxError with line and column."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        if data.startswith(_UTF_16):
            message, hint = "not UTF-8 but UTF-16", "save the file as UTF-8"
            raise DatasetSyntaxError.at(path, message, hint, line, code="not-utf-8") from error
        start = data.rfind(b"\n", 0, error.start) + 1
        column = len(data[start : error.start].decode("utf-8")) + 1
        message, hint = f"not UTF-8: byte 0x{data[error.start]:02x} at column {column}", _cp1252_hint(data, error.start)
        if data.startswith(ZIP_MAGIC):
            hint = "this is a ZIP file, as Innodata bundles are: innodata:path=FILE"
        at = line + data.count(b"\n", 0, error.start)
        raise DatasetSyntaxError.at(path, message, hint, at, code="not-utf-8") from error


_UTF_16 = (b"\xff\xfe", b"\xfe\xff")


def _cp1252_hint(data: bytes, at: int) -> str:
    """Show the bad byte as Windows programs would write it: the usual cause, and easy to find by eye."""
    before = data[max(0, at - 10) : at].rpartition(b"\n")[2].decode("utf-8", "ignore")
    try:
        rest = data[at : at + 11].partition(b"\n")[0].decode("cp1252")
    except UnicodeDecodeError:
        return "save the file as UTF-8"
    return f"save the file as UTF-8; in cp1252 it reads {show(before + rest)}"


_DECODER = msgspec.json.Decoder()


def parse_json(data: bytes, path: str, line: int = 1, *, allow_nan: bool = False) -> Any:
    """Parse strict JSON that starts at `line` of the file.

    Refused, with line and column: what is not UTF-8 or not JSON, a key given twice in one object, NaN and Infinity
    unless `allow_nan`, lone surrogates (text that cannot be written to a file again), and what is nested more than
    MAX_DEPTH levels deep. Integers of any size are exact, up to Python's limit of digits.
    Raises DatasetSyntaxError, or DatasetSchemaError for the doubled key.
    """
    try:
        value = _DECODER.decode(data)  # orjson, a little quicker, rounds integers of more than 64 bits
        if is_faithful(data, value):
            return value
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        pass
    return _parse_carefully(decode(data, path, line), path, line, allow_nan=allow_nan)


def is_faithful(data: bytes, value: Any) -> bool:
    """Whether `value`, what msgspec made of `data`, has all its keys, and is not too deep.

    `value` is written again and the quotes are counted. A parser that keeps one of two equal keys drops at least two,
    and nothing adds any but an escaped quote. False also where this cannot be told: there is such an escape, an integer
    of more than 64 bits, or the value is nested more than MAX_DEPTH levels deep. Its numbers are finite: msgspec
    refuses those that are too large, and words that are no JSON.
    """
    try:
        written = orjson.dumps(value)
    except TypeError:
        return False
    return data.count(b'"') == written.count(b'"') and not (b"\\" in written and b"\\u0022" in data)


def _parse_carefully(text: str, path: str, line: int, *, allow_nan: bool) -> Any:
    """Parse with the standard library: slower, and it knows where an error is."""
    constants: list[str] = []
    doubled: list[str] = []

    def pairs_to_dict(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        if len(made) != len(pairs):
            seen: set[str] = set()
            doubled.extend(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        return made

    def constant(name: str) -> float:
        constants.append(name)
        return float(name)

    if text.startswith("\ufeff"):
        message = "starts with a byte order mark (BOM)"
        raise DatasetSyntaxError.at(path, message, "save as UTF-8 without BOM", line, code="bom")
    try:
        value = json.loads(text, object_pairs_hook=pairs_to_dict, parse_constant=constant)
    except json.JSONDecodeError as error:
        message, at = f"not JSON: {_json_message(error)} (column {error.colno})", line + error.lineno - 1
        raise DatasetSyntaxError.at(path, message, _json_hint(error), at, code="not-json") from None
    except RecursionError:
        raise _too_deep(text, path, line) from None
    except ValueError:  # sys.set_int_max_str_digits
        message = "not usable JSON: a number has too many digits"
        raise DatasetSyntaxError.at(path, message, line=line, code="not-json") from None
    if is_deeper(value, MAX_DEPTH):
        raise _too_deep(text, path, line)
    if doubled:
        at = line - 1 + _line_of_doubled(text, doubled[0])
        message = f"the key {json.dumps(doubled[0], ensure_ascii=False)} is given twice in one object"
        raise DatasetSchemaError.at(path, message, "remove one of the two", at, code="duplicate-key")
    if constants and not allow_nan:
        offset = next((match.start() for match in _TOKEN.finditer(text) if match[0] == constants[0]), 0)
        at = line + text.count("\n", 0, offset)
        raise DatasetSyntaxError.at(path, f"{constants[0]} is not JSON", "write a number or null", at, code="not-json")
    if not allow_nan and not is_finite(value):
        message = "not usable JSON: a number is too large"
        raise DatasetSyntaxError.at(path, message, "write a number or null", line, code="not-json")
    _require_whole_characters(text, path, line)
    return value


def _require_whole_characters(text: str, path: str, line: int) -> None:
    """Raise DatasetSyntaxError where a string holds half of a surrogate pair: no file can hold that."""
    for string in _STRING.finditer(text) if _SURROGATE.search(text) else ():
        try:
            json.loads(string[0], strict=False).encode()
        except UnicodeEncodeError as error:
            message = "a string holds half of a surrogate pair, which is no character"
            hint = "write the character itself, or both halves"
            at = line + text.count("\n", 0, string.start())
            raise DatasetSyntaxError.at(path, message, hint, at, code="lone-surrogate") from error


def is_finite(value: Any) -> bool:
    """Whether there is neither NaN nor Infinity in a value that was read from JSON."""
    try:
        json.dumps(value, allow_nan=False)
    except ValueError:
        return False
    return True


def is_deeper(value: Any, limit: int) -> bool:
    """Whether objects and lists stand inside one another in more than `limit` levels."""
    level = [value] if isinstance(value, (dict, list)) else []
    for _ in range(limit):
        level = [
            child
            for container in level
            for child in (container.values() if isinstance(container, dict) else container)
            if isinstance(child, (dict, list))
        ]
        if not level:
            return False
    return True


def _too_deep(text: str, path: str, line: int) -> DatasetError:
    depth = at = 0
    for match in _TOKEN.finditer(text):
        depth += (match[0] in ("{", "[")) - (match[0] in ("}", "]"))
        if depth > MAX_DEPTH:
            at = text.count("\n", 0, match.start())
            break
    message = f"objects and lists are nested more than {MAX_DEPTH} levels deep"
    return DatasetSchemaError.at(path, message, "write what is deeper as a string", line + at, code="too-deep")


_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]", re.ASCII)
_STRING = re.compile(_STRING_PATTERN, re.DOTALL)


def _line_of_doubled(text: str, key: str) -> int:
    """Return the line, from 1, on which `key` is given again in the same object."""
    seen: set[Path] = set()
    for place, line in _walk(text):
        if place and place[-1] == key:
            if place in seen:
                return line
            seen.add(place)
    return 1


_MESSAGES = {
    "Expecting value": "a value is expected here",
    "Expecting property name enclosed in double quotes": "a key in double quotes is expected here",
    "Expecting ':' delimiter": "a colon is expected here",
    "Expecting ',' delimiter": "a comma is expected here",
    "Extra data": "there is more after the end of the JSON value",
    "Unterminated string starting at": "this string has no end",
    "Invalid control character at": "a line break or control character stands inside a string",
    "Illegal trailing comma before end of object": "a comma stands before the closing brace",
    "Illegal trailing comma before end of array": "a comma stands before the closing bracket",
}


def _json_message(error: json.JSONDecodeError) -> str:
    if error.pos >= len(error.doc.rstrip()) and error.msg != "Extra data":
        return "the text ends too early"
    return _MESSAGES.get(error.msg, error.msg[:1].lower() + error.msg[1:])


def _json_hint(error: json.JSONDecodeError) -> str:
    rest = error.doc[error.pos : error.pos + 1_000]
    if error.msg == "Extra data" and rest.startswith(("{", ",")):
        return "one record per line, without commas between them, is JSON Lines: name the file .jsonl"
    if rest.startswith("'"):
        return "keys and strings stand in double quotes"
    if error.msg == "Invalid control character at":
        return "write \\n for a line break inside a string"
    return ""


def canonical_json(value: Any) -> bytes:
    """Return JSON bytes that are equal for equal values, keys sorted: for hashing and comparing."""
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except TypeError:  # an integer of more than 64 bits
        return json.dumps(value, sort_keys=True, ensure_ascii=False).encode("utf-8")


_COMMENT_OR_COMMA = re.compile(rf"({_STRING_PATTERN})|({_COMMENT})|,(?=(?:\s|{_COMMENT})*[\]}}])", re.DOTALL)


def parse_relaxed_json(data: bytes, path: str) -> Any:
    """Parse JSON with comments and trailing commas, after the strict parse has failed.

    They are blanked out in place, so that any remaining error keeps its position. NaN and Infinity are read. Raises
    DatasetError as `parse_json` does.
    """

    def blank(match: re.Match[str]) -> str:
        return match[1] or re.sub(r"[^\n]", " ", match[0])

    return parse_json(_COMMENT_OR_COMMA.sub(blank, decode(data, path)).encode("utf-8"), path, allow_nan=True)


def locate(text: str, paths: Iterable[Path]) -> dict[Path, int]:
    """Return the line (from 1) of each path such as ("request_states", 3, "instance", "id") in JSON text.

    A value stands where its key does; a path that is not there gets the line of the nearest ancestor that is. One pass
    for all paths, ended as soon as all are found.
    """
    wanted = dict.fromkeys(paths, 1)
    asked = {path[:length] for path in wanted for length in range(len(path) + 1)}
    found: dict[Path, int] = {}
    for place, line in _walk(text) if wanted else ():
        if place in asked:
            found.setdefault(place, line)
            if len(found) == len(asked):
                break
    for path in wanted:
        ancestors = (path[:length] for length in range(len(path), -1, -1))
        wanted[path] = next((found[ancestor] for ancestor in ancestors if ancestor in found), 1)
    return wanted


def _walk(text: str) -> Iterator[tuple[Path, int]]:
    """Yield the path and the line of each value, with comments or without, also of text that is no whole JSON."""
    path: list[str | int] = []
    """Keys and numbers of the open objects and lists; of the innermost, that of the value that comes next."""
    expects_key, line, last = False, 1, 0
    for match in _TOKEN.finditer(text):
        piece = match[0]
        line += text.count("\n", last, match.start())
        last = match.start()
        if piece.startswith(("//", "/*")) or piece == ":":
            continue
        if piece in "}]":
            expects_key = False
            del path[-1:]
        elif piece == ",":
            if path and isinstance(path[-1], int):
                path[-1] += 1
            else:
                expects_key = bool(path)
        elif expects_key:
            path[-1] = _unquote(piece)
            expects_key = False
            yield tuple(path), line
        else:
            if not path or isinstance(path[-1], int):  # else its key was there before
                yield tuple(path), line
            if piece in "{[":
                expects_key = piece == "{"
                path.append("" if expects_key else 0)


def _unquote(piece: str) -> str:
    if piece[0] != '"':
        return piece
    try:
        return str(json.loads(piece, strict=False))
    except json.JSONDecodeError:
        return piece[1:-1]
