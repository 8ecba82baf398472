"""What pyproject.toml promises to pip: each import has its distribution, each extra is named where it lacks.

Rules of this module:

* The whole package is read as text; nothing of it is imported.
* An import is free (a dependency, or one of Scrapy's own that each of its versions has), or it is an extra's.
"""

from __future__ import annotations

import ast
import functools
import re
import runpy
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from scrapy_ubi.cli.commands.version import OF_DEVELOPERS
from tests.support.parsed import parsed

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "scrapy_ubi"
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = PYPROJECT["project"]
OWN = "scrapy_ubi"

# Distributions whose module has another name.
MODULES = {"prometheus-client": "prometheus_client"}
# What every supported version of Scrapy installs.
OF_SCRAPY = {
    "OpenSSL",
    "cryptography",
    "cssselect",
    "itemadapter",
    "lxml",
    "packaging",
    "parsel",
    "pydispatch",
    "service_identity",
    "twisted",
    "w3lib",
    "zope",
}
# What is used where the user's project has it, and not missed where it has not: attrs classes as items; what Scrapy
# 2.19 brings and older versions do not (brotli, zstd; the download handler that needs aiohttp is Scrapy's).
OF_THE_PROJECT = {"attr", "aiohttp", "backports", "brotli", "brotlicffi", "compression"}
# Extras that make something faster: nothing is refused without them.
FASTER = {"fast", "warc"}
LOADERS = {"import_module", "find_spec", "_first_installed"}


def modules_of(requirements: list[str]) -> set[str]:
    """The top modules of these distributions."""
    names = [re.match(r"[\w.-]+", text) for text in requirements]
    return {MODULES.get(name[0], name[0].replace("-", "_")) for name in names if name}


def imported(source: Path) -> Iterator[str]:
    """The modules that a file imports, also those that it names to `import_module`."""
    for node in ast.walk(parsed(source.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
        elif isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) in LOADERS:
            yield from (arg.value for arg in node.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str))


@functools.cache
def foreign() -> dict[str, set[str]]:
    """Top modules of others -> the files that import them."""
    found: dict[str, set[str]] = defaultdict(set)
    for source in PACKAGE.rglob("*.py"):
        for name in imported(source):
            found[name.partition(".")[0]].add(str(source.relative_to(ROOT)))
    return {name: files for name, files in found.items() if name not in sys.stdlib_module_names and name != OWN}


def extras_of_users() -> dict[str, list[str]]:
    return {name: parts for name, parts in PROJECT["optional-dependencies"].items() if name not in OF_DEVELOPERS}


def test_every_import_is_a_dependency_or_an_extra() -> None:
    always = modules_of(PROJECT["dependencies"]) | OF_SCRAPY | OF_THE_PROJECT
    optional = {module for parts in extras_of_users().values() for module in modules_of(parts)}
    homeless = {name: files for name, files in foreign().items() if name not in always | optional}
    assert len(foreign()) > 15 and not homeless


def test_every_dependency_and_every_extra_is_used() -> None:
    used = foreign().keys() | {"hiredis", "protego"}  # imported by redis-py and by Scrapy, and wanted in a late version
    assert modules_of(PROJECT["dependencies"]) <= used
    for name, parts in extras_of_users().items():
        assert modules_of(parts) & used, name


@pytest.mark.parametrize("extra", sorted(extras_of_users()))
def test_what_lacks_an_extra_names_it(extra: str) -> None:
    command = re.compile(rf"pip install [\"']scrapy-ubi\[{extra}\][\"']")
    files = {file for part in modules_of(extras_of_users()[extra]) for file in foreign().get(part, ())}
    texts = "\n".join(source.read_text() for source in PACKAGE.rglob("*.py"))
    assert files and (command.search(texts) or extra in FASTER)
    named = "\n".join(page.read_text() for page in (ROOT / "docs").rglob("*.md"))
    assert f"scrapy-ubi[{extra}]" in named


def test_what_pip_and_an_index_show_is_complete() -> None:
    assert PROJECT["license"] == "BSD-3-Clause" and PROJECT["license-files"] == ["LICENSE"]
    assert "the scrapy-ubi authors" in (ROOT / "LICENSE").read_text()
    assert not [text for text in PROJECT["classifiers"] if text.startswith("License ::")]  # the expression says it
    assert PROJECT["description"]
    oldest = PROJECT["requires-python"].removeprefix(">=")
    assert f"Programming Language :: Python :: {oldest}" in PROJECT["classifiers"]


def test_on_an_index_the_links_of_the_readme_lead_to_the_repository() -> None:
    hook = runpy.run_path(str(ROOT / PYPROJECT["tool"]["hatch"]["metadata"]["hooks"]["custom"]["path"]))
    text = (ROOT / "README.md").read_text()
    assert hook["absolute"](text, "", "1.2.3") == text
    files = "https://host.example/owner/scrapy-ubi/blob/v1.2.3/"
    links = re.findall(r"\]\(([^)]+)\)", hook["absolute"](text, "https://host.example/owner/scrapy-ubi", "1.2.3"))
    assert len(links) > 40 and all(link.startswith(files) for link in links)
    assert f"{files}docs/how-to/add-to-a-project.md#3-check-first-what-can-lose-items" in links
    others = "[a](https://b.example/) [c](#d)"
    assert hook["absolute"](others, "https://e.example", "1") == others


def test_nothing_beside_the_modules_is_ignored_by_git() -> None:
    # What .gitignore names is in no wheel; these are what modules read.
    patterns = [line.strip("/*") for line in (ROOT / ".gitignore").read_text().split()]
    beside = [file for file in PACKAGE.rglob("*") if file.is_file() and file.suffix not in (".py", ".pyc")]
    assert {file.name for file in beside} >= {"py.typed", "parameters.toml", "known_paths.toml"}
    assert [file for file in beside if file.suffix in patterns] == []
