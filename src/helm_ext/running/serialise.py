"""HELM's dataclasses as JSON, written piece by piece.

HELM writes a run with `json.dumps(asdict_without_nones(everything), indent=2)`: a copy of all objects, then one string
of the whole file. Here each element of the big lists is encoded by orjson and written at once. What comes out parses to
the same values (helm/common/general.py, `asdict_without_nones`):

- a dataclass field that is None is left out; None inside lists and dicts stays null;
- only dataclass fields are written, of subclasses too; attributes that are no fields are not;
- NaN and infinities are written as Python's json writes them (orjson would write null);
- everything is ASCII, two spaces a level, so that files are read alike under any locale.

What orjson refuses (integers beyond 64 bits, keys that are no strings, lone surrogates) is written by `json`, for that
element alone. Bytes differ from HELM's only in the exponent of very large and very small floats (`1e-5`, `1e-05`).

Plain equivalent: HELM's line above; `json.dumps` alone is a dozen times as slow (docs/speed.md), and holds the whole
file. Held equal by tests/unit/running/test_serialise.py, test_any_dataclass_in_arrays and test_request_states.
"""

from __future__ import annotations

import codecs
import json
import math
import re
from dataclasses import fields
from itertools import repeat
from json.encoder import encode_basestring_ascii
from typing import IO, TYPE_CHECKING, Any, TypeVar

import orjson
from helm.benchmark.metrics.statistic import Stat
from helm.common.hierarchical_logger import hwarn

from helm_ext.scoring.basic.row_stats import RowStats, to_stat

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from helm.benchmark.metrics.metric import PerInstanceStats
    from helm.benchmark.metrics.metric_name import MetricName

    from helm_ext.scoring.basic.row_stats import Names

T = TypeVar("T")

_OPTIONS = (
    orjson.OPT_INDENT_2
    | orjson.OPT_PASSTHROUGH_DATACLASS
    | orjson.OPT_PASSTHROUGH_SUBCLASS
    | orjson.OPT_PASSTHROUGH_DATETIME
)
_NULL = re.compile(rb"null(?:,?\n|\Z)")
"""A null that orjson wrote: with indentation it ends its line, and no string does, for a quote comes after it."""


def _make_encoder(cls: Any) -> Callable[[Any], dict[str, Any]]:
    """Return a function that makes a dict of the fields of a `cls`, a dataclass, that are not None; they stay as is.

    It is written out field by field, as dataclasses' own `__init__` is: a loop over the names takes twice as long, 4 %
    of a recorded run.
    """
    lines = [f"    if (item := value.{one.name}) is not None: made[{one.name!r}] = item" for one in fields(cls)]
    scope: dict[str, Any] = {}
    exec("\n".join(["def encode(value):", "    made = {}", *lines, "    return made"]), scope)  # noqa: S102 - of names
    encode: Callable[[Any], dict[str, Any]] = scope["encode"]
    return encode


def _choose_encoder(cls: type) -> Callable[[Any], Any]:
    if hasattr(cls, "__dataclass_fields__"):
        return _make_encoder(cls)
    for base, convert in (
        (str, str.__str__),
        (int, int.__int__),
        (float, float.__float__),
        (dict, dict),
        (list, list),
        (tuple, list),
    ):
        if issubclass(cls, base):
            return convert
    raise TypeError(f"Object of type {cls.__name__} is not JSON serializable")


class _Encoders(dict[type, "Callable[[Any], Any]"]):
    def __missing__(self, cls: type) -> Callable[[Any], Any]:
        encode = self[cls] = _choose_encoder(cls)
        return encode


_encoders = _Encoders()


def _default(value: Any) -> Any:
    """Turn what orjson does not know into what it does: dataclasses, and subclasses of JSON's own types."""
    return _encoders[type(value)](value)


def to_plain(value: Any) -> Any:
    """Return `value` as `asdict_without_nones` would leave it: dicts, lists and scalars."""
    if hasattr(type(value), "__dataclass_fields__"):
        return {name: to_plain(item) for name, item in _default(value).items()}
    if isinstance(value, dict):
        return {key: to_plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_plain(item) for item in value]
    return value


def _has_nonfinite(value: Any) -> bool:
    if isinstance(value, float):
        return not math.isfinite(value)
    if isinstance(value, dict):
        return any(map(_has_nonfinite, value.values()))
    if isinstance(value, (list, tuple)):
        return any(map(_has_nonfinite, value))
    if hasattr(type(value), "__dataclass_fields__"):
        return _has_nonfinite(_default(value))
    return False


def _escape(error: UnicodeError) -> tuple[str, int]:
    """Replace a run of characters that are not ASCII as json does."""
    assert isinstance(error, UnicodeEncodeError)
    return encode_basestring_ascii(error.object[error.start : error.end])[1:-1], error.end


codecs.register_error("helm_ext.json", _escape)


_OTHERWISE = b"\xc2\xc3\xf0\xf1\xf2\xf3\xf4"
"""First bytes, in UTF-8, of what Python escapes otherwise than JSON: U+0080 to U+00FF, and beyond U+FFFF."""


def _to_ascii(data: bytes) -> bytes:
    if not data.isascii():
        is_alike = not any(first in data for first in _OTHERWISE)
        data = data.decode().encode("ascii", "backslashreplace" if is_alike else "helm_ext.json")
    # DEL, which json escapes too. A search for one byte looks at many at once, a replacement does not.
    return data.replace(b"\x7f", b"\\u007f") if b"\x7f" in data else data


def _encode(value: Any) -> bytes:
    """Encode one value, by orjson where that is exact and by json where it is not.

    Raises TypeError for what json cannot write either.
    """
    try:
        data = orjson.dumps(value, _default, _OPTIONS)
    except TypeError:  # orjson.JSONEncodeError is one
        return json.dumps(to_plain(value), indent=2).encode("ascii")
    if _NULL.search(data) and _has_nonfinite(value):
        return json.dumps(to_plain(value), indent=2).encode("ascii")
    return _to_ascii(data)


def dumps(value: Any, depth: int = 0) -> bytes:
    """Return `value` as JSON bytes, its lines after the first indented by `depth` levels."""
    data = _encode(value)
    return data.replace(b"\n", b"\n" + b"  " * depth) if depth else data


def _encode_element(item: Any, depth: int) -> bytes:
    """Encode an element of a list that stands `depth` levels deep: indented."""
    nested: Any = [item]
    for _ in range(depth):
        nested = [nested]  # so that orjson indents it
    try:
        data = orjson.dumps(nested, _default, _OPTIONS)
        exact = not (_NULL.search(data) and _has_nonfinite(item))
    except TypeError:
        exact = False
    if not exact:
        return b"  " * (depth + 1) + dumps(item, depth + 1)
    brackets = (depth + 1) * (depth + 2)  # "[\n", "  [\n", ...; the same length at the end
    return _to_ascii(data[brackets:-brackets])


class ArrayWriter:
    """Writes a JSON array that stands `depth` levels deep, element by element.

    `is_part`: write elements only, joined, for an array that is put together elsewhere (`add_encoded`).
    """

    def __init__(self, file: IO[bytes], depth: int = 0, *, is_part: bool = False) -> None:
        self.file = file
        self._depth = depth
        self._before = b"" if is_part else b"[\n"
        self._after, self._nothing = (b"", b"") if is_part else (b"\n" + b"  " * depth + b"]", b"[]")
        self.is_empty = True

    def add(self, item: Any) -> None:
        """Write an element."""
        self.add_encoded(_encode_element(item, self._depth))

    def add_encoded(self, data: bytes) -> None:
        """Write elements that are encoded as they stand in the array, joined by commas."""
        self.begin_element()
        self.file.write(data)

    def begin_element(self) -> None:
        """Write what stands before an element; the caller writes the element."""
        self.file.write(self._before if self.is_empty else b",\n")
        self.is_empty = False

    def close(self) -> None:
        """Write the closing bracket."""
        self.file.write(self._nothing if self.is_empty else self._after)


def write_array(file: IO[bytes], items: Iterable[Any]) -> None:
    """Write `items` as a JSON array."""
    writer = ArrayWriter(file)
    for item in items:
        writer.add(item)
    writer.close()


def consume(items: list[T]) -> Iterator[T]:
    """Yield the elements and take them off the list: what was written is freed at once, while it is at hand.

    Plain equivalent: `iter(items)`. Saves nothing at 10,000 rows; at a million, freeing all of them at the end waits
    for memory that has left the processor's caches.
    """
    items.reverse()
    while items:
        yield items.pop()


def around_field(value: Any, field: str) -> tuple[bytes, bytes]:
    """Return what stands before and behind one field of a dataclass instance that is written as a JSON object.

    The field's own value is written between them, a level deeper.
    """
    name = orjson.dumps(field) + b": "
    before, _, behind = dumps({**_default(value), field: ""}).partition(b"\n  " + name + b'""')
    return before + b"\n  " + name, behind


_COMMA = b",\n      "
"""Before each Stat of a row."""
_NUMBERS = b",\n        ".join(
    [
        *(b'"%b": %%b' % one for one in b"sum sum_squared min max mean".split()),
        b'"variance": 0.0',
        b'"stddev": 0.0\n      }',
    ]
)
"""Those of a Stat of one value, and its end."""
_LARGE = 2**31
"""Squares of numbers below it fit into 64 bits."""


class _StatsOfName:
    """Writes the Stats of one name that are of one value each."""

    def __init__(self, name: MetricName) -> None:
        self._name = name
        self.known: dict[bytes, bytes] = {}
        """By how the value is written. What is NaN is written as nothing."""
        head, _, _ = dumps(Stat(name).add(0), depth=3).partition(b'"sum":')
        self._template = _COMMA + head.replace(b"%", b"%%") + _NUMBERS

    def encode(self, values: Sequence[Any]) -> bytes | Sequence[bytes]:
        """Return the Stats of these values; where all are written alike, that one."""
        try:  # how it is written tells 1 from 1.0, and 0.0 from -0.0
            written = orjson.dumps(values, None, orjson.OPT_PASSTHROUGH_SUBCLASS)[1:-1].split(b",")
        except TypeError:  # larger than 64 bits, or of another library
            written = [b"null"] * len(values)
        if b"null" in written:  # None, NaN, or infinite, too
            texts = zip(values, written, strict=True)
            written = [f"?{value!r}".encode() if text == b"null" else text for value, text in texts]
        distinct = dict(zip(written, values, strict=True))
        found = self.known
        if new := distinct.keys() - found.keys():
            found = dict(self._make({text: distinct[text] for text in new}))
            if len(self.known) + len(new) <= StatRenderer.REMEMBERED:
                self.known |= found
            found |= self.known
        if len(distinct) == 1 and found[written[0]]:
            return found[written[0]]
        encoded = list(map(found.__getitem__, written))
        for _ in range(encoded.count(b"")):
            _warn_of_nan(self._name)
        return encoded

    def _make(self, values: Mapping[bytes, Any]) -> Iterator[tuple[bytes, bytes]]:
        """Yield how each value is written, and its Stat.

        Plain equivalent: `dumps(to_stat(name, value), 3)`. Saves 5 % of a row of W3: times differ from row to row. Held
        equal by test_stats_of_values_are_those_of_their_stats.
        """
        squares = [
            one * one if type(one) in (int, float) and abs(one) < _LARGE and one * one == float(one) ** 2 else None
            for one in values.values()
        ]
        for (text, value), square in zip(values.items(), orjson.dumps(squares)[1:-1].split(b","), strict=True):
            if square != b"null" and text != b"-0.0" and not text.startswith(b"?"):
                mean = text if type(value) is float else text + b".0"
                yield text, self._template % (text, square, text, text, mean)
            else:
                stat = to_stat(self._name, value)
                yield text, b"" if math.isnan(stat.sum) else _COMMA + dumps(stat, 3)


class StatRenderer:
    """Writes the elements of `per_instance_stats.json`, stats that are NaN left out, as HELM's runner does.

    Of rows that are values (`scoring.basic.row_stats`), each value of a name is encoded once, and what all rows
    have alike is joined once; Stats that are shared between rows are encoded once, too (`scoring.basic.one_pass`).

    Plain equivalent: `write_array`, after `remove_per_instance_stats_nans`. Saves 7 % of a recorded run. Held equal by
    test_stats_are_helms_and_nans_go and test_stats_of_values_are_those_of_their_stats of test_serialise.py.
    """

    REMEMBERED = 500
    """How many values of a name are remembered; scores repeat, times do not. Of Stats of other metrics, how many before
    all are forgotten."""
    AT_A_TIME = 200
    """Rows whose stats are encoded together."""

    def __init__(self) -> None:
        self._met: dict[int, tuple[Stat, bytes]] = {}
        """By id. The Stats are kept, so that no id is used again."""
        self._by_name: dict[MetricName, _StatsOfName] = {}

    def render(self, rows: Sequence[PerInstanceStats]) -> Iterator[bytes]:
        """Yield rows as elements of an array, indented."""
        for start in range(0, len(rows), self.AT_A_TIME):
            some = rows[start : start + self.AT_A_TIME]
            yield from map(_render_row, some, self._encode_rows(some))

    def _encode_rows(self, rows: Sequence[PerInstanceStats]) -> list[Sequence[bytes]]:
        """Return the Stats of each row, each behind a comma. Values are encoded name by name."""
        encoded: list[Sequence[bytes]] = [()] * len(rows)
        alike: dict[Names, list[int]] = {}
        for place, row in enumerate(rows):
            if isinstance(row.stats, RowStats):
                alike.setdefault(row.stats.names, []).append(place)
            else:
                encoded[place] = list(map(self._encode, row.stats))
        for names, places in alike.items():
            columns = zip(*[rows[place].stats.values for place in places], strict=True)
            parts: list[Iterable[bytes]] = []
            same = b""
            for name, values in zip(names.names, columns, strict=True):
                stats = self._encode_column(name, values)
                if isinstance(stats, bytes):
                    same += stats
                else:
                    parts += repeat(same), stats
                    same = b""
            for place, stats in zip(places, zip(*parts, repeat(same), strict=False), strict=False):
                encoded[place] = stats
        return encoded

    def _encode_column(self, name: MetricName, values: Sequence[Any]) -> bytes | Sequence[bytes]:
        if name not in self._by_name:
            self._by_name[name] = _StatsOfName(name)
        return self._by_name[name].encode(values)

    def _encode(self, stat: Stat) -> bytes:
        """Return a Stat; nothing if it is NaN."""
        known = self._met.get(id(stat))
        if known is None:
            if math.isnan(stat.sum):
                _warn_of_nan(stat.name)
                return b""
            if len(self._met) >= self.REMEMBERED:
                self._met.clear()
            known = self._met[id(stat)] = stat, _COMMA + dumps(stat, depth=3)
        return known[1]


def _render_row(row: PerInstanceStats, encoded: Sequence[bytes]) -> bytes:
    more = "" if row.perturbation is None else ',\n    "perturbation": ' + dumps(row.perturbation, 2).decode()
    stats = b"".join(encoded)
    return b'  {\n    "instance_id": %b,\n    "train_trial_index": %d,\n    "stats": [%b]\n  }' % (
        (encode_basestring_ascii(row.instance_id) + more).encode(),
        row.train_trial_index,
        stats[1:] + b"\n    " if stats else b"",
    )


def _warn_of_nan(name: MetricName) -> None:
    """Say of a Stat that is left out because it is NaN what HELM says."""
    hwarn(f"Removing stat {name.name} because its value is NaN")
