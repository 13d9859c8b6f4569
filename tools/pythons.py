"""`make pythons`: import the modules and run the unit tests on every Python of 3.10 to 3.13 that is found here.

A light installation: HELM without what it needs for models in this process (torch, transformers, spacy: over 2 GB, and
not built for every Python). The rule: a test that fails for want of one of `ABSENT` (`No module named ...`) is not run
rather than failed, and is counted; everything else must pass. `--few` imports the modules, and runs the tests of `FEW`.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HOMES = (Path.home() / ".pyenv" / "versions", Path("/usr/bin"), Path("/usr/local/bin"), Path("/opt/python"))
VERSIONS = ("3.10", "3.11", "3.12", "3.13")
ABSENT = (
    "torch", "torchvision", "transformers", "spacy", "calibration", "ray", "moto", "statsmodels", "rouge_score",
    "sklearn", "s3fs", "mkdocs",
)  # fmt: skip
FEW = ("tests/unit/adaptation", "tests/unit/errors", "tests/unit/files")
TESTS = ("bottle", "pandas<3", "pytest", "pytest-timeout", "hypothesis", "tomli", "wheel")
"""What tests import, beside requirements-light.txt and what pyproject.toml names."""
IMPORTS = """
import importlib, pkgutil, sys
import helm_ext
absent, names = set(sys.argv[1:]), []
for found in pkgutil.walk_packages(helm_ext.__path__, "helm_ext."):
    if found.name.endswith("__main__"):
        continue
    try:
        importlib.import_module(found.name)
    except ModuleNotFoundError as error:
        if error.name.partition(".")[0] not in absent:
            raise
        names.append(found.name)
print("not imported, for want of what is left out:", ", ".join(names) or "none")
"""


def find_pythons() -> dict[str, Path]:
    """Return the newest interpreter of each version that is found."""
    found: dict[str, Path] = {}
    for home in HOMES:
        for path in sorted(
            [*home.glob("3.1[0-3]*/bin/python"), *home.glob("python3.1[0-3]"), *home.glob("*/bin/python3.1[0-3]")]
        ):
            done = subprocess.run([path, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"],
                                  capture_output=True, text=True, check=False)  # fmt: skip
            if done.returncode == 0 and done.stdout.strip() in VERSIONS:
                found.setdefault(done.stdout.strip(), path)
    return dict(sorted(found.items()))


def install(version: str, python: Path) -> Path:
    """Make the version's environment, unless it is there; return its interpreter."""
    folder = ROOT / "build" / "pythons" / version
    own, ready = folder / "bin" / "python", folder / ".ready"
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    if ready.exists() and ready.read_text(encoding="utf-8") == project:
        return own
    subprocess.run([python, "-m", "venv", folder], check=True)
    pip = [own, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--prefer-binary"]
    listed = re.search(r"^dependencies = \[\n(.*?)^\]", project, re.MULTILINE | re.DOTALL)
    assert listed
    needed = re.findall(r'^\s*"([^"]+)"', listed[1], re.MULTILINE)
    left_out = {"crfm-helm", "torch", "transformers"}
    subprocess.run(
        [
            *pip,
            "-r",
            ROOT / "requirements-light.txt",
            *TESTS,
            *(one for one in needed if re.split(r"[<>=]", one)[0] not in left_out),
        ],
        check=True,
    )
    subprocess.run([*pip, "--no-deps", next(one for one in needed if one.startswith("crfm-helm"))], check=True)
    subprocess.run([*pip, "--no-deps", "-e", ROOT], check=True)
    ready.write_text(project, encoding="utf-8")
    return own


def check(python: Path, selected: list[str]) -> bool:
    """Import and test; say what was not run. Return whether all that ran passed."""
    if subprocess.run([python, "-c", IMPORTS, *ABSENT], cwd=ROOT, check=False).returncode:
        return False
    report = python.parent.parent / "report.xml"
    report.unlink(missing_ok=True)
    options = ["-m", "not slow", "--hypothesis-profile=check", "--continue-on-collection-errors", "--tb=line"]
    command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options, f"--junitxml={report}", *selected]
    subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, check=False)
    if not report.exists():
        print("  pytest did not start")
        return False
    counts = {"passed": 0, "skipped": 0, "not run": 0, "failed": 0}
    wanted = re.compile(rf"No module named '(?:{'|'.join(ABSENT)})\b")
    for case in ET.parse(report).iter("testcase"):
        wrong = [part for part in case if part.tag in ("failure", "error")]
        if not wrong:
            counts["skipped" if case.find("skipped") is not None else "passed"] += 1
        elif all(wanted.search(f"{part.get('message')}{part.text}") for part in wrong):
            counts["not run"] += 1
        else:
            counts["failed"] += 1
            print(f"  failed: {case.get('classname')}::{case.get('name')}: {(wrong[0].get('message') or '')[:300]}")
    print("  " + ", ".join(f"{number} {what}" for what, number in counts.items()))
    return not counts["failed"] and counts["passed"] > 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--few", action="store_true")
    parser.add_argument("tests", nargs="*", help="Instead of all unit tests.")
    given = parser.parse_args()
    wrong = []
    found = find_pythons()
    for version, path in found.items():
        print(f"{version}: {path}", flush=True)
        if not check(install(version, path), given.tests or list(FEW if given.few else ("tests/unit",))):
            wrong.append(version)
    print(f"not found: {', '.join(set(VERSIONS) - set(found)) or 'none'}; failed: {', '.join(wrong) or 'none'}")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
