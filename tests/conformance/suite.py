"""Scrapy's own tests, of the version that is installed, with the add-on in every crawl: `make scrapy-suite`.

    python tests/conformance/suite.py [--into DIRECTORY] [--only WORD] [-- PYTEST-ARGUMENTS]

The tests of crawls, engine, download handlers, middlewares, feeds, pipelines, extensions and signals run with
`ADDONS = {"scrapy_ubi.Addon": 500}` as the default (addonin.py). What must differ stands in differences.toml, each
with its reason. The exit status is 1 where a test fails that is not there, and where one that is there passes. A test
that fails without the add-on as well, on this machine, is named and does not count.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from run import HERE, QUIET, scrapys_tree

DIFFERENCES = HERE / "differences.toml"
FILES = re.compile(
    r"test_(addons|closespider|core_.*|crawl|crawler|downloader.*|engine.*|extension_.*|feedexport.*|logstats|pipeline.*"
    r"|request_attribute_binding|request_cb_kwargs|request_left|scheduler|signal.*|spider|spider_.*|spidermiddleware.*"
    r"|spiderstate|stats)\.py"
)
# As conformance: what needs mitmproxy or the real web is left out. Reruns would hide what fails now and then.
ALWAYS = [*QUIET, "-p", "no:rerunfailures", "-m", "not requires_mitmproxy and not requires_internet", "--tb=short"]
LINE = re.compile(r"^(?:FAILED|ERROR) (\S+)")


def pytest(tree: Path, arguments: Sequence[str]) -> tuple[int, list[str], str]:
    """A run in Scrapy's tree: exit code, ids of the tests that fail, all that it said."""
    path = os.pathsep.join([str(HERE), str(HERE.parent.parent), str(tree)])
    command = [sys.executable, "-m", "pytest", *ALWAYS, "-rfE", *arguments]
    ended = subprocess.run(
        command, cwd=tree, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, errors="replace"
    )
    failed = [found[1] for line in ended.stdout.splitlines() if (found := LINE.match(line))]
    return ended.returncode, sorted({*failed}), ended.stdout


def differences(text: str) -> dict[str, str]:
    """Pattern of ids of tests -> why they must differ, or cannot be had."""
    found = {}
    for entry in tomllib.loads(text).get("difference", ()):
        for pattern in entry["tests"]:
            found[pattern] = entry["reason"]
    return found


def judged(failed: Sequence[str], expected: Sequence[str]) -> tuple[list[str], list[str]]:
    """Of the tests that fail those that nothing expects; of the patterns those that no test meets."""

    def meets(test: str, pattern: str) -> bool:
        return test == pattern or fnmatchcase(test, pattern.replace("[", "[[]"))

    new = [test for test in failed if not any(meets(test, pattern) for pattern in expected)]
    stale = [pattern for pattern in expected if not any(meets(test, pattern) for test in failed)]
    return new, stale


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--into", type=Path, default=HERE.parent.parent / ".venv" / "conformance")
    parser.add_argument("--only", metavar="WORD", default="", help="files with this word in their names")
    parser.add_argument("rest", nargs="*", metavar="PYTEST-ARGUMENT")
    args = parser.parse_args()
    tree = scrapys_tree(args.into.resolve())
    names = sorted(path.name for path in (tree / "tests").glob("test_*.py"))
    files = [f"tests/{name}" for name in names if FILES.fullmatch(name) and args.only in name]
    code, failed, said = pytest(tree, ["-p", "addonin", *files, *args.rest])
    if code not in (0, 1):
        sys.exit(f"{said[-5000:]}\npytest ended with {code}")
    ran = {pattern for pattern in differences(DIFFERENCES.read_text()) if pattern.partition("::")[0] in files}
    new, stale = judged(failed, sorted(ran))
    if new:
        _, plain, _ = pytest(tree, new)
        for test in plain:
            print(f"fails without the add-on as well: {test}")
        new = [test for test in new if test not in plain]
    print(said.strip().splitlines()[-1])
    for test in new:
        print(f"NEW: {test}")
    for pattern in stale:
        print(f"PASSES NOW, take it out of differences.toml: {pattern}")
    print(f"{len(files)} files, {len(failed)} tests differ, {len(new)} of them without a reason")
    if new:
        print(said[-30_000:])
    sys.exit(bool(new or stale))


if __name__ == "__main__":
    main()
