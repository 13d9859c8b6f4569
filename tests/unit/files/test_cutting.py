"""Ranges of a file: whole lines."""

import io
import random
from hashlib import sha256

import pytest

from helm_ext.errors import DatasetChangedError
from helm_ext.files.cutting import LineRanges, cut_lines


@pytest.mark.parametrize("end", [b"", b"\n"])
def test_ranges_are_whole_lines_and_name_them(end):
    draw = random.Random(3)
    for _ in range(200):
        texts = [b"x" * draw.choice([0, 0, 1, 5, 30]) for _ in range(draw.randint(1, 12))]
        data = b"\n".join([b"head", *texts]) + end
        above, size = draw.randint(1, 3), draw.choice([1, 2, 7, 40, 1000])
        *found, digest = cut_lines(io.BytesIO(data), above, size)
        assert digest == sha256(data).hexdigest()
        rest = data.split(b"\n", above)[above] if data.count(b"\n") >= above else b""
        assert b"".join(data[one.start : one.stop] for one in found) == rest
        for one in found[:-1]:
            assert data[one.stop - 1 : one.stop] == b"\n"
            assert one.stop - one.start >= size
        for one in found:
            assert one.first == data[: one.start].count(b"\n") + 1
            assert one.lines == len(data[one.start : one.stop].removesuffix(b"\n").split(b"\n"))


def test_the_ranges_of_a_file_that_changes_are_refused(tmp_path):
    path = tmp_path / "rows of mine.jsonl"
    path.write_bytes(b"head\n" + b"".join(b"row %d\n" % number for number in range(50_000)))
    *found, digest = cut_lines(io.BytesIO(path.read_bytes()), 1, 1000)
    ranges = LineRanges(str(path), 1, 1000)
    assert list(ranges) == found
    assert (ranges.digest, ranges.last) == (digest, found[-1])
    ranges.require_same()
    path.write_bytes(path.read_bytes() + b"\n")
    with pytest.raises(DatasetChangedError, match=r"rows of mine\.jsonl: the file was changed while it was read"):
        ranges.require_same()
    path.unlink()
    with pytest.raises(DatasetChangedError):
        ranges.require_same()
