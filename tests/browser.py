"""helm-server in a real browser: headless Chromium prints the page after its scripts ran."""

import contextlib
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@contextlib.contextmanager
def helm_server(folder: Path, suite: str):
    """Serve the suite; yields the address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = (folder / "helm-server.log").open("w")
    process = subprocess.Popen(
        [str(Path(sys.executable).parent / "helm-server"), "--suite", suite, "-p", str(port)],
        cwd=folder,
        stdout=log,
        stderr=log,
    )
    address = f"http://127.0.0.1:{port}"
    try:
        while True:
            try:
                urllib.request.urlopen(f"{address}/config.js").read()
                break
            except OSError:
                assert process.poll() is None, (folder / "helm-server.log").read_text()
                time.sleep(0.2)
        yield address
    finally:
        process.terminate()
        process.wait()
        log.close()


def page_text(address: str, profile: Path, budget_ms: int = 20000, *options: str) -> str:
    """Return the page's HTML after its scripts have run for `budget_ms` of the page's own time."""
    done = subprocess.run(
        [
            CHROMIUM,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--disable-dev-shm-usage",
            f"--user-data-dir={profile}",
            "--window-size=1600,2400",
            f"--virtual-time-budget={budget_ms}",
            *options,
            "--dump-dom",
            address,
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout
