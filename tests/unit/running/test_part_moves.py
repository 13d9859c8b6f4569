"""Parts of a file that other processes write, moved into the room that was left for them."""

import pickle

import pytest

from helm_ext.fast.serialise import ArrayWriter
from helm_ext.running.fold import PartMove


def leave_room(path, elements, *, depth=0):
    """Write an array, of which some elements (those given as paths) are still elsewhere; return what is to be moved."""
    moves = []
    with path.open("wb") as file:
        writer = ArrayWriter(file, depth)
        for element in elements:
            if isinstance(element, bytes):
                writer.add_encoded(element)
            else:
                moves.append(PartMove(element, path, *writer.leave_room(element.stat().st_size)))
        writer.close()
    return moves


def make_parts(folder, *contents):
    parts = []
    for number, content in enumerate(contents):
        parts.append(folder / f"{number}.part")
        parts[-1].write_bytes(content)
    return parts


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("places", [(0,), (1,), (2,), (0, 1, 2), (0, 2)])
def test_the_file_is_that_of_one_writer_in_whatever_order_parts_are_moved(tmp_path, places, order):
    contents = [b'{"a": 1},\n{"b": 2}', b"[]", b'"' + b"x" * 100_000 + b'"']
    whole, joined = tmp_path / "whole", tmp_path / "joined"
    leave_room(whole, contents)
    parts = make_parts(tmp_path, *contents)
    for move in leave_room(joined, [parts[at] if at in places else contents[at] for at in range(3)])[::order]:
        pickle.loads(pickle.dumps(move))()
    assert joined.read_bytes() == whole.read_bytes()
    assert not any(parts[at].exists() for at in places)


def test_a_part_is_moved_again_by_the_next_process(tmp_path):
    parts = make_parts(tmp_path, b"1,\n2", b"3")
    first, second = leave_room(tmp_path / "joined", parts)
    first()
    second()
    expected = (tmp_path / "joined").read_bytes()
    first()  # the process that moved it was lost before it could say so
    parts[1].write_bytes(b"3")  # or before it had removed the part
    second()
    assert (tmp_path / "joined").read_bytes() == expected
    assert not parts[1].exists()


def test_a_part_that_is_gone_and_was_not_moved_is_an_error(tmp_path):
    parts = make_parts(tmp_path, b"1,\n2", b"3")
    first, _ = leave_room(tmp_path / "joined", parts)
    parts[0].unlink()
    with pytest.raises(FileNotFoundError):
        first()
