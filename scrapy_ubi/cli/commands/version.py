"""`scrapy ubi version`: what a report of a fault, or a comparison of two machines, has to name.

Rules of this module:

* Nothing is imported to learn its version, and no reactor is installed: versions come from what pip has written.
* The extras are those of the package's own metadata, so that none is missing here; those for the people who work on
  the package are left out.
"""

from __future__ import annotations

import argparse
import platform
from collections.abc import Iterator
from importlib import metadata

from packaging.requirements import Requirement
from scrapy.settings import BaseSettings

import scrapy_ubi
from scrapy_ubi.cli.commands.query import QueryReport
from scrapy_ubi.cli.monitor.text_table import pairs

PACKAGE = "scrapy-ubi"
LIBRARIES = ("Scrapy", "Twisted", "redis", "hiredis", "aiohttp", "rocksdict")
OF_DEVELOPERS = frozenset(("dev", "bench", "docs", "release"))
ABSENT = "not installed"


def run(settings: BaseSettings, opts: argparse.Namespace) -> QueryReport:
    """Look and show. It asks neither Redis nor agents."""
    reactor = str(settings.get("TWISTED_REACTOR") or "the default of Twisted")
    python = f"{platform.python_version()} ({platform.python_implementation()})"
    libraries = {name: installed(name) for name in LIBRARIES}
    present = extras()
    rows = [
        (PACKAGE, scrapy_ubi.__version__),
        *((name, found or ABSENT) for name, found in libraries.items()),
        ("Python", python),
        ("reactor", reactor),
        ("platform", platform.platform()),
        *((f"[{extra}]", _shown(parts)) for extra, parts in present.items()),
    ]
    document = {
        "scrapy_ubi": scrapy_ubi.__version__,
        "libraries": libraries,
        "python": {"version": platform.python_version(), "implementation": platform.python_implementation()},
        "reactor": reactor,
        "platform": platform.platform(),
        "extras": present,
    }
    return QueryReport(pairs(rows), document)


def installed(distribution: str) -> str | None:
    """The version of a distribution, None where it is not installed."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def extras() -> dict[str, dict[str, str | None]]:
    """Of each extra of the package what it brings, and the version that is installed, None for none. Empty where the
    package runs from a directory and was never installed."""
    found: dict[str, dict[str, str | None]] = {}
    for extra, requirement in _optional():
        found.setdefault(extra, {})[requirement.name] = installed(requirement.name)
    return found


def _optional() -> Iterator[tuple[str, Requirement]]:
    """Each requirement of an extra that this Python needs."""
    try:
        about = metadata.metadata(PACKAGE)
    except metadata.PackageNotFoundError:
        return
    requirements = [Requirement(text) for text in about.get_all("Requires-Dist") or ()]
    names = [name for name in about.get_all("Provides-Extra") or () if name not in OF_DEVELOPERS]
    for requirement in requirements:
        marker = requirement.marker
        if marker is None or marker.evaluate({"extra": ""}):
            continue  # of the package itself
        for name in names:
            if marker.evaluate({"extra": name}):
                yield name, requirement


def _shown(parts: dict[str, str | None]) -> str:
    return ", ".join(f"{name} {version or ABSENT}" for name, version in parts.items())
