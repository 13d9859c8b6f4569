"""Take the pictures of helm-server's pages that the documentation shows, after `make demo`.

    make pictures

Headless Chromium loads each page at a width of 1200 pixels. The pictures are those of the demo's suite, so they show
what a reader sees who runs it. Without a font for Chinese (fonts-wqy-zenhei), one column's title is a row of boxes.
They are stored with a palette, which is enough for a page of text and keeps them small.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from demo import FOLDER, SUITE
from PIL import Image

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))
from browser import CHROMIUM, helm_server  # noqa: E402 - tests/ is put on the path above

IMAGES = ROOT / "docs" / "images"
WIDTH = 1200
COLORS = 64
MAX_BYTES = 150_000
"""Pictures are part of every clone."""
RUN = "adapter_spec:dataset=multiple_choice,"
"""How the name of the run begins whose pages are shown."""


def take(address: str, name: str, *, top: int = 0, height: int, zoom: float = 1.0) -> None:
    """Write a part of one page of helm-server, from `top` on, to docs/images.

    Raises SystemExit if the picture is too large to be kept.
    """
    with tempfile.TemporaryDirectory() as folder:
        raw = Path(folder) / "page.png"
        subprocess.run(
            [
                str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
                "--disable-dev-shm-usage", "--disable-background-networking", f"--user-data-dir={folder}/profile",
                f"--force-device-scale-factor={zoom}",
                f"--window-size={round(WIDTH / zoom)},{round((top + height) / zoom)}", "--virtual-time-budget=20000",
                f"--screenshot={raw}", address,
            ],
            check=True,
            capture_output=True,
            timeout=180,
        )  # fmt: skip
        target = IMAGES / f"{name}.png"
        with Image.open(raw) as picture:
            shown = picture.convert("RGB").crop((0, top, WIDTH, top + height))
            shown.quantize(COLORS).save(target, optimize=True)
    size = target.stat().st_size
    print(f"{target.relative_to(ROOT)}: {size:,} bytes")
    if size > MAX_BYTES:
        raise SystemExit(f"larger than {MAX_BYTES:,} bytes: show less of the page")


def main() -> None:
    """Take them all."""
    if CHROMIUM is None:
        raise SystemExit("Chromium is not installed")
    IMAGES.mkdir(exist_ok=True)
    (run,) = [path.name for path in (FOLDER / "benchmark_output" / "runs" / SUITE).glob(f"{RUN}*first-model")]
    with helm_server(FOLDER, SUITE) as address:
        take(f"{address}/#/leaderboard", "leaderboard", height=260, zoom=0.57)
        take(f"{address}/#/runs/{run}", "run", height=740)
        take(f"{address}/#/runs/{run}", "predictions", top=760, height=950)


if __name__ == "__main__":
    main()
