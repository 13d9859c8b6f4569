"""What a quick parser loses is found, in text written to hide it: compared with Python's own parser, pair by pair."""

import json
import math

import msgspec
import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from helm_ext import files as sources

MANY = settings(max_examples=600, deadline=None, suppress_health_check=list(HealthCheck))

pieces = st.sampled_from(
    ["a", "b", "é", "null", "nul", "ull", r"\null", r"\n", r"\"", r"\\", r"\\u0022", r"\u0022", r"\u006eull", "0022", "NaN", r"\/"]
)  # fmt: skip
strings = st.lists(pieces, max_size=4).map(lambda parts: f'"{"".join(parts)}"')
keys = st.sampled_from(['"a"', '"b"', r'"\u0061"', '"null"', r'"\""', r'"\u0022"', '"t"', '""'])
numbers = st.sampled_from(["0", "-1.5", "1e300", "1e999", "-1e400", "NaN", "Infinity", "-Infinity", str(1 << 63), "1" + "0" * 30])  # fmt: skip
blanks = st.sampled_from(["", " ", "\t"])


def objects(inner):
    pairs = st.lists(st.tuples(keys, blanks, inner), max_size=4)
    return pairs.map(lambda some: "{" + ", ".join(f"{key}:{blank}{value}" for key, blank, value in some) + "}")


values = st.recursive(
    strings | numbers | st.sampled_from(["null", "true", "[" * 250 + "]" * 250, '{"a":' * 3 + "null" + "}" * 3]),
    lambda inner: st.lists(inner, max_size=3).map(lambda some: "[" + ",".join(some) + "]") | objects(inner),
    max_leaves=10,
)


def is_whole(text):
    """Whether no key is given twice and all numbers are finite."""
    found = []

    def pairs(some):
        found.append(len(dict(some)) == len(some))
        return dict(some)

    def number(text):
        found.append(math.isfinite(float(text)))
        return float(text)

    json.loads(text, object_pairs_hook=pairs, parse_float=number, parse_constant=number)
    return all(found)


def is_hard_to_tell(text):
    """Whether there are escapes that no writer of JSON needs, or a whole number that is no machine's."""
    return any(part in text for part in (r"\u0022", r"\u006e", "0" * 30))


@pytest.mark.long
@MANY
@given(objects(values), st.sampled_from([orjson.loads, msgspec.json.decode]))
def test_what_a_quick_parser_loses_is_found(text, parse):
    data = text.encode()
    try:
        value = parse(data)
    except ValueError:
        return
    whole = is_whole(text)
    told = sources.is_faithful(data, value)
    assert whole or not told
    if whole and not is_hard_to_tell(text):
        assert told
