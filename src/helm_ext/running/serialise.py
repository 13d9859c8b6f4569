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
from itertools import chain
from json.encoder import encode_basestring_ascii
from operator import attrgetter
from typing import IO, TYPE_CHECKING, Any, TypeVar

import orjson
from helm.benchmark.metrics.statistic import Stat
from helm.common.hierarchical_logger import hwarn

from helm_ext.scoring.basic.row_stats import RowStats, to_stat

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

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
    before, behind = [], []
    names = list(_default(value))
    for name, item in _default(value).items():
        text = b"  " + orjson.dumps(name) + b": "
        if name == field:
            before.append(text)
        elif names.index(name) < names.index(field):
            before.append(text + dumps(item, depth=1) + b",\n")
        else:
            behind.append(b",\n" + text + dumps(item, depth=1))
    return b"{\n" + b"".join(before), b"".join([*behind, b"\n}"])


_OF_STAT = ("sum", "sum_squared", "min", "max", "mean", "variance", "stddev")
"""What Stats of one name differ in, when each is of one value."""
_find_numbers = attrgetter(*_OF_STAT)


def _sum_up(value: float) -> tuple[float, ...]:
    """Return the numbers of a Stat of one value.

    Plain equivalent: `_find_numbers(Stat(name).add(value))`. Saves 1.5 % of a row of W3: times differ from row to row.
    Held equal by test_stats_of_values_are_those_of_their_stats.
    """
    total = 0 + value  # 0.0 for -0.0
    mean = total / 1
    variance = max(value * value / 1 - mean**2, 0)
    return total, value * value, value, value, mean, variance, math.sqrt(variance)


class _StatsOfName:
    """Writes the Stats of one name that are of one value each."""

    def __init__(self, name: MetricName) -> None:
        self._name = name
        self.known: dict[bytes, bytes] = {}
        """By how the value is written."""
        head, _, _ = dumps(Stat(name).add(0), depth=3).partition(b'"sum":')
        fields = b",\n        ".join([b'"%b": %%b' % one.encode() for one in _OF_STAT])
        self._template = head.replace(b"%", b"%%") + fields + b"\n      }"

    def encode(self, values: Sequence[Any]) -> list[bytes]:
        """Return the Stats of these values; nothing for those that are NaN."""
        try:  # how it is written tells 1 from 1.0, and 0.0 from -0.0
            written = orjson.dumps(values, None, orjson.OPT_PASSTHROUGH_SUBCLASS)[1:-1].split(b",")
        except TypeError:  # larger than 64 bits, or of another library
            written = [repr(value).encode() for value in values]
        known, encode = self.known, self._encode
        return [known.get(text) or encode(value, text) for value, text in zip(values, written, strict=True)]

    def _encode(self, value: Any, written: bytes) -> bytes:
        """Return the Stat of a value that was not met, or is written like others ("null"); nothing if it is NaN."""
        if written == b"null":
            written = repr(value).encode()
            if written in self.known:
                return self.known[written]
        found = _sum_up(value) if type(value) in (int, float) else _find_numbers(to_stat(self._name, value))
        if _warn_of_nan(self._name, found[0]):
            return b""
        try:
            numbers = orjson.dumps(found, None, orjson.OPT_PASSTHROUGH_SUBCLASS)[1:-1].split(b",")
        except TypeError:
            numbers = [b"null"]
        encoded = dumps(to_stat(self._name, value), 3) if b"null" in numbers else self._template % tuple(numbers)
        if len(self.known) < StatRenderer.REMEMBERED:
            self.known[written] = encoded
        return encoded


class StatRenderer:
    """Writes the elements of `per_instance_stats.json`, stats that are NaN left out, as HELM's runner does.

    Of rows that are values (`scoring.basic.row_stats`), each value of a name is encoded once; Stats that are shared
    between rows are, too (`scoring.basic.one_pass`).

    Plain equivalent: `write_array`, after `remove_per_instance_stats_nans`. Saves 7 % of a recorded run. Held equal by
    test_stats_are_helms_and_nans_go and test_stats_of_values_are_those_of_their_stats of test_serialise.py.
    """

    REMEMBERED = 500
    """How many values of a name are remembered; scores repeat, times do not. Of Stats of other metrics, how many before
    all are forgotten."""
    AT_A_TIME = 200
    """Rows whose stats are encoded together."""

    def __init__(self) -> None:
        self._met: dict[int, Stat] = {}
        """By id. The Stats are kept, so that no id is used again."""
        self._encoded: dict[int, bytes] = {}
        """Those that were met twice."""
        self._by_name: dict[MetricName, _StatsOfName] = {}

    def render(self, rows: Sequence[PerInstanceStats]) -> Iterator[bytes]:
        """Yield rows as elements of an array, indented."""
        pieces = (rows[start : start + self.AT_A_TIME] for start in range(0, len(rows), self.AT_A_TIME))
        for row, encoded in chain.from_iterable(zip(some, self._encode_rows(some), strict=True) for some in pieces):
            stats = list(filter(None, encoded))
            more = "" if row.perturbation is None else ',\n    "perturbation": ' + dumps(row.perturbation, 2).decode()
            yield b'  {\n    "instance_id": %b,\n    "train_trial_index": %d,\n    "stats": %b\n  }' % (
                (encode_basestring_ascii(row.instance_id) + more).encode(),
                row.train_trial_index,
                b"[\n      " + b",\n      ".join(stats) + b"\n    ]" if stats else b"[]",
            )

    def _encode_rows(self, rows: Sequence[PerInstanceStats]) -> Sequence[Sequence[bytes]]:
        """Return the Stats of each row; those that are left out are empty. Values are encoded name by name."""
        encoded: list[Sequence[bytes]] = [()] * len(rows)
        alike: dict[Names, list[int]] = {}
        for place, row in enumerate(rows):
            if isinstance(row.stats, RowStats):
                alike.setdefault(row.stats.names, []).append(place)
            else:
                encoded[place] = [self._encoded.get(id(stat)) or self._encode(stat) for stat in row.stats]
        for names, places in alike.items():
            values = zip(*[rows[place].stats.values for place in places], strict=True)
            columns = [self._of_name(name).encode(column) for name, column in zip(names.names, values, strict=True)]
            for place, stats in zip(places, zip(*columns, strict=True), strict=True):
                encoded[place] = stats
        return encoded

    def _of_name(self, name: MetricName) -> _StatsOfName:
        known = self._by_name.get(name)
        if known is None:
            known = self._by_name[name] = _StatsOfName(name)
        return known

    def _encode(self, stat: Stat) -> bytes:
        """Return a Stat that was met once, or never; nothing if it is NaN."""
        if _warn_of_nan(stat.name, stat.sum):
            return b""
        key, encoded = id(stat), dumps(stat, depth=3)
        if key in self._met:
            self._encoded[key] = encoded
            return encoded
        if len(self._met) >= self.REMEMBERED:
            self._met.clear()
            self._encoded.clear()
        self._met[key] = stat
        return encoded


def _warn_of_nan(name: MetricName, total: float) -> bool:
    """Whether a Stat is NaN, and left out: in HELM's words."""
    if math.isnan(total):
        hwarn(f"Removing stat {name.name} because its value is NaN")
        return True
    return False
