"""Words in a reply: whether those of an expected text stand there, one behind the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

_AFTER_CONSONANT = (
    "은 이 을 과 으로 으로서 으로써 이나 이랑 이라고 이란 이며 이고 이라는 이에요 이야 이었다 이었습니다 아 이여"
)
_AFTER_VOWEL = "는 가 를 와 로 로서 로써 나 랑 라고 란 며 고 라는 예요 야 였다 였습니다 다 지만 죠 지 여"
_AFTER_BOTH = (
    "의 에 에서 에게 에게서 께 께서 한테 한테서 도 만 까지 부터 "
    "보다 처럼 마다 조차 밖에 하고 입니다 이다 입니다만 이지만 인데 이죠 이지"
)
"""What may follow a Korean noun without a space: particles and forms of the copula. A closed list."""
_TOPICS = ("은", "는", "도", "만", "이", "의")
"""What may follow another particle ("까지는")."""
_WRONG_AFTER_CONSONANT = frozenset(_AFTER_VOWEL.split())
_WRONG_AFTER_VOWEL = frozenset(_AFTER_CONSONANT.split())
_PARTICLES = _WRONG_AFTER_CONSONANT | _WRONG_AFTER_VOWEL | frozenset(_AFTER_BOTH.split())
_ENDINGS = _PARTICLES | {
    first + topic for first in _PARTICLES for topic in _TOPICS if len(first) > 1 or first in "에로만"
}  # fmt: skip


def _may_follow(ending: str, word: str) -> bool:
    """Tell whether `ending` is a Korean particle that may follow the last sound of `word`."""
    if ending not in _ENDINGS:
        return False
    last = ord(word[-1]) - 0xAC00
    if not 0 <= last < 28 * 399:  # no syllable: how the word sounds is not known
        return True
    final = last % 28
    if final == 8 and ending.startswith("로"):
        return True
    return ending not in (_WRONG_AFTER_CONSONANT if final else _WRONG_AFTER_VOWEL)


def f1(wanted: Sequence[str], said: Sequence[str]) -> float:
    """Return the F1 of two texts' words, each as often as it stands (SQuAD's rule); without words they are equal."""
    if not wanted or not said:
        return float(len(wanted) == len(said))
    return 2 * sum((Counter(wanted) & Counter(said)).values()) / (len(wanted) + len(said))


def find(wanted: tuple[str, ...], said: tuple[str, ...], *, at_start: bool) -> bool:
    """Tell whether `wanted` (not empty) stands in `said`, or at its start; a Korean particle may follow it."""
    needle, text = "\n".join(("", *wanted)), "\n".join(("", *said, ""))
    place = text.find(needle)
    while place != -1 and not (at_start and place):
        end = place + len(needle)
        ending = text[end : text.index("\n", end)]
        if not ending or _may_follow(ending, wanted[-1]):
            return True
        place = text.find(needle, end)
    return False
