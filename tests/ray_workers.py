"""Workers for tests of `RayEngine`: what Ray's processes import."""

from __future__ import annotations

import functools
import os
import signal
import threading
import time
from pathlib import Path

from helm_ext.errors import DatasetError


def note(folder, text):
    with (Path(folder) / "notes").open("a") as file:
        file.write(f"{text}\n")


def make_squarer(folder, *, seconds=0.0, deadly=None, raising=None):
    note(folder, f"made {os.getpid()}")
    return functools.partial(square, folder, seconds, deadly, raising)


def square(folder, seconds, deadly, raising, number):
    note(folder, f"begun {number} {os.getpid()} {threading.get_ident()}")
    time.sleep(seconds * (3 if number % 5 == 0 else 1))
    if number == deadly:
        os.kill(os.getpid(), signal.SIGKILL)
    if number == raising:
        raise KeyError(number)
    note(folder, f"done {number}")
    return number * number


def make_lister(deadly):
    return functools.partial(list_all, deadly)


def list_all(deadly, numbers):
    if deadly in numbers:
        os.kill(os.getpid(), signal.SIGKILL)
    return list(numbers)


def make_nothing():
    raise DatasetError("no worker today")


def make_dead():
    os.kill(os.getpid(), signal.SIGKILL)


def make_lambda_result():
    return lambda _: threading.Lock()
