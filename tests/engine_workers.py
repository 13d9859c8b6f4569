"""Workers for tests of engines: what their processes import."""

import functools
import os
import resource
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


def make_meeting(folder, number):
    return functools.partial(meet, folder, number)


def meet(folder, number, task):
    """Wait until so many tasks were begun: who does fewer at once waits for ever."""
    note(folder, f"begun {task}")
    while (Path(folder) / "notes").read_text().count("begun ") < number:
        time.sleep(0.01)
    note(folder, f"done {task}")
    return task


def make_lister(deadly):
    return functools.partial(list_all, deadly)


def list_all(deadly, numbers):
    if deadly in numbers:
        os.kill(os.getpid(), signal.SIGKILL)
    return list(numbers)


def make_hungry(folder, *, tries):
    return functools.partial(take_too_much, folder, tries)


def take_too_much(folder, tries, number):
    """Square; with 7, so often, take more memory than this process may have, as it says itself."""
    note(folder, f"begun {number} {os.getpid()}")
    if number == 7 and (Path(folder) / "notes").read_text().count("begun 7 ") <= tries:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + 50_000_000,) * 2)
        bytearray(1_000_000_000)
    return number * number


def make_nothing():
    raise DatasetError("no worker today")


def make_dead():
    os.kill(os.getpid(), signal.SIGKILL)


def make_squarer_late(folder, *, deaths):
    """As make_squarer, but so many processes die before they have made anything."""
    note(folder, f"started {os.getpid()}")
    if (Path(folder) / "notes").read_text().count("started ") <= deaths:
        make_dead()
    return make_squarer(folder)


def make_lambda_result():
    return lambda _: threading.Lock()
