"""This package with each version of Scrapy that it supports: `make scrapy-versions`.

    python tests/conformance/versions.py [--only 2.18] [--quick]

For each version a virtual environment `.venv-scrapy-X.Y` is made (once), with Scrapy X.Y.* and this package, and a part
of the tests is run in it: the canaries of private names, whole crawls in this process, crawls of real processes, and
two projects of the matrix beside plain Scrapy. At the end a table says how many passed, and the exit status is 1 where
one failed. `--quick` leaves out what starts processes.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path

from scrapy_ubi.adapter.scrapy_private.versions import TRIED

ROOT = Path(__file__).resolve().parents[2]
CRAWLS = "crawls features seeds travel scope transfers plain_crawls idle".split()
PARTS = {
    "canaries": "tests/adapter/scrapy_private tests/fast tests/test_addon.py".split(),
    "crawls": [f"tests/crawls/test_{name}.py" for name in CRAWLS]
    + "tests/adapter/components tests/outputs tests/adapter/scheduling tests/adapter/process".split(),
    "processes": ["tests/crawls/test_processes.py"],
    "matrix": ["tests/matrix"],
}
MARKS = {"canaries": "not processes", "crawls": "not processes", "processes": "processes", "matrix": "not faults"}
# What Scrapy's own handler needs without a reactor, as crawls in a test's process are.
HANDLERS = {"2.17": ["httpx[http2]"], "2.18": ["httpx2[http2]"]}
QUICK = ("canaries", "crawls")


def environment(version: str) -> Path:
    """The Python of an environment with this version of Scrapy; made where it is not there."""
    place = ROOT / f".venv-scrapy-{version}"
    python = place / "bin" / "python"
    ready = place / ".stamp"
    if not ready.exists():
        print(f"making {place.name} (once)", flush=True)
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(place)], check=True)
        pip = [str(python), "-m", "pip", "--quiet", "--disable-pip-version-check", "install"]
        subprocess.run(
            [*pip, "--editable", f"{ROOT}[dev]", f"scrapy=={version}.*", *HANDLERS.get(version, [])], check=True
        )
        ready.touch()
    return python


def run(python: Path, part: str) -> tuple[str, bool]:
    """A part of the tests: what pytest says of it in short, and whether none failed."""
    command = [str(python), "-m", "pytest", "-p", "no:randomly", "-m", MARKS[part], "-r", "fE", *PARTS[part]]
    ended = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "PYTEST_ADDOPTS": "--durations=0 --verbosity=0"},
        capture_output=True, text=True,
    )  # fmt: skip
    if ended.returncode:
        print(ended.stdout[-20_000:], ended.stderr[-2_000:], sep="\n", flush=True)
    told = re.findall(r"\d+ (?:passed|failed|errors?|skipped)", ended.stdout)
    return ", ".join(told[-4:]) or f"exit status {ended.returncode}", not ended.returncode


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", metavar="X.Y", help="one version of Scrapy")
    parser.add_argument("--quick", action="store_true", help="without tests that start processes")
    args = parser.parse_args()
    versions = [".".join(map(str, each)) for each in TRIED]
    rows, fine = [], True
    for version in versions if args.only is None else [args.only]:
        python = environment(version)
        for part in QUICK if args.quick else PARTS:
            told, passed = run(python, part)
            rows.append((version, part, told))
            fine &= passed
            print(f"Scrapy {version}, {part}: {told}", flush=True)
    print("\n| Scrapy | part | tests |\n|---|---|---|")
    for row in rows:
        print("| " + " | ".join(row) + " |")
    sys.exit(not fine)


if __name__ == "__main__":
    main()
