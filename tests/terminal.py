"""Commands on a terminal, a pseudo-terminal of 140 columns, and what stands there in the end."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
from collections.abc import Mapping, Sequence
from pathlib import Path


def run_on_terminal(command: Sequence[str | Path], env: Mapping[str, str], folder: Path | None = None) -> str:
    """Run a command whose three streams are a terminal; return what it wrote there. Fails if the command does."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 140, 0, 0))
    process = subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env={**os.environ, "TERM": "xterm", **env}, cwd=folder
    )
    os.close(theirs)
    written = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # the last who held the other end is gone
            break
        if not part:
            break
        written += part
    os.close(ours)
    assert process.wait() == 0, written.decode()
    return written.decode()


def screen(written: str) -> list[str]:
    """Return the lines that stand on the terminal: what the cursor has moved to is written over."""
    lines = [""]
    row = column = 0
    for part in re.findall(r"\x1b\[A|\x1b\[[0-9;]*m|\r|\n|[^\x1b\r\n]+", written):
        if part == "\x1b[A":
            row = max(0, row - 1)
        elif part == "\n":
            row += 1
            lines += [""] * (row + 1 - len(lines))
        elif part == "\r":
            column = 0
        elif not part.startswith("\x1b"):
            lines[row] = lines[row][:column].ljust(column) + part + lines[row][column + len(part) :]
            column += len(part)
    return [line.rstrip() for line in lines]
