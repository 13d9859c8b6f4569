"""What a call is refused with."""

from collections.abc import Callable

import pytest


def refused(error: type[BaseException], function: Callable[..., object], *arguments: object, **named: object) -> str:
    """Return the message of the error that the call raises, which must be one of that type."""
    with pytest.raises(error) as caught:
        function(*arguments, **named)
    return str(caught.value)
