"""axe-core's rules for accessible pages, in headless Chromium; `make axe` brings axe-core from the npm registry."""

import base64
import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

from browser import CHROMIUM, page_text

AXE = Path(__file__).parents[1] / "build" / "axe" / "node_modules" / "axe-core" / "axe.min.js"

WHY_NOT = (
    "Chromium is not installed" if CHROMIUM is None
    else "axe-core is not there: make axe fetches it from the npm registry" if not AXE.is_file()
    else ""
)  # fmt: skip
"""Why pages cannot be judged here; "" where they can."""

_JUDGE = """
addEventListener("load", async () => {
  document.querySelectorAll("details").forEach((one) => { one.open = true; });
  await new Promise((done) => setTimeout(done, 300));
  const found = await axe.run(document, { resultTypes: ["violations"] });
  parent.postMessage({
    dark: matchMedia("(prefers-color-scheme: dark)").matches,
    width: innerWidth,
    wide: document.documentElement.scrollWidth,
    passes: found.passes.length,
    violations: found.violations.map((one) => ({
      id: one.id, help: one.help, where: one.nodes.slice(0, 3).map((node) => node.html + " " + node.failureSummary) })),
  }, "*");
});
"""
_FRAME = """<!doctype html><title>frame</title><style>body {{ margin: 0 }}</style>
<iframe width="{width}" height="2000" style="border: 0" srcdoc="{page}"></iframe><pre id="found"></pre>
<script>addEventListener("message", (event) => {{
  document.getElementById("found").textContent = btoa(unescape(encodeURIComponent(JSON.stringify(event.data))));
}});</script>"""


def judge(page: Path, folder: Path, *, width: int, dark: bool) -> dict[str, Any]:
    """Return what axe-core finds in a page `width` pixels wide; `wide` is how wide its contents are.

    The page is judged in a frame, for a window has a least width, without its rule that no other script may run.
    """
    text = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page.read_text(encoding="utf-8"))
    script = f"<script>{AXE.read_text(encoding='utf-8')}</script><script>{_JUDGE}</script></body>"
    assert text.count("</body>") == 1
    frame = folder / f"frame-{width}-{'dark' if dark else 'light'}.html"
    frame.write_text(_FRAME.format(width=width, page=html.escape(text.replace("</body>", script))), encoding="utf-8")
    shown = page_text(frame.as_uri(), folder / "profile", 8000, _scheme(dark=dark))
    found = re.search(r'<pre id="found">([^<]+)</pre>', shown)
    assert found is not None, "axe-core said nothing"
    result: dict[str, Any] = json.loads(base64.b64decode(found[1]))
    return result


def picture(page: Path, target: Path, *, width: int, dark: bool, height: int = 2400) -> None:
    """Take a picture of a page as it is that wide."""
    frame = target.with_suffix(".html")
    text = html.escape(page.read_text(encoding="utf-8"))
    frame.write_text(_FRAME.format(width=width, page=text).replace('"2000"', f'"{height}"'), encoding="utf-8")
    assert CHROMIUM is not None
    profile = target.parent / "picture-profile"
    arguments = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}", "--hide-scrollbars"]
    shown = [f"--window-size={max(width, 500)},{height}", f"--screenshot={target}", _scheme(dark=dark), frame.as_uri()]
    subprocess.run([CHROMIUM, *arguments, *shown], check=True, capture_output=True)
    shutil.rmtree(profile, ignore_errors=True)


def _scheme(*, dark: bool) -> str:
    return f"--blink-settings=preferredColorScheme={0 if dark else 1}"
