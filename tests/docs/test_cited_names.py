"""What docstrings, comments and messages cite in backquotes exists: modules, their names, members of classes.

Rules of this module:

* `Class.member`: a class of the package has this member, or a base of it that is not of the package may have it.
* `room.module`, `module.name`: what begins with a wing, a room or a module leads to a module, or to a name in it. A
  word that is a variable or somebody else's package where it is cited is not looked at.
* `room/module.py`, and `module.py: name`: the file exists, and has this name.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "scrapy_ubi"
FILES = sorted(PACKAGE.rglob("*.py"))
USERS = frozenset(("settings.py", "prices.py", "items.py", "pipelines.py", "spiders.py"))  # files of a user's project
OTHERS = frozenset(("Class.name", "Connection._ssl", "redis.sha1hex"))  # a pattern, OpenSSL's, and Redis's in Lua
THEIRS = frozenset(("engine", "process"))  # variables of Scrapy's that are modules or rooms here, too
SUFFIXES = frozenset(("gz", "html", "json", "jsonl", "log", "md", "toml", "txt", "xml", "css", "js"))

_OWN = re.compile(r"\bself\.(\w+)")
_CITED = re.compile(r"`([^`\n]+)`")
_DOTTED = re.compile(r"(?:scrapy_ubi\.)?([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+)(?:\(.*\))?")
_FILE = re.compile(r"((?:[\w-]+/)*\w+\.py)(?:: ([\w.]+))?")


class Module(NamedTuple):
    """A module of the package: its dotted path below it, and the names it has."""

    path: str
    names: frozenset[str]


class Class(NamedTuple):
    """What classes of one name have, and their bases."""

    members: frozenset[str]
    bases: frozenset[str]


@cache
def trees() -> dict[Path, ast.Module]:
    return {file: ast.parse(file.read_text()) for file in FILES}


def path_of(file: Path) -> str:
    parts = file.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


def bound(body: list[ast.stmt]) -> Iterator[str]:
    """The names that these statements bind; what is within a function or class is not looked at."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
            continue
        for one in ast.walk(node):
            if isinstance(one, ast.Import | ast.ImportFrom):
                yield from ((alias.asname or alias.name).split(".")[0] for alias in one.names)
            elif isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                yield one.name
            elif isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store):
                yield one.id


@cache
def variables(file: Path) -> frozenset[str]:
    """Variables and parameters; what is imported from other packages, too."""
    found = set()
    for node in ast.walk(trees()[file]):
        if isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.arg):
            found.add(node.arg)
        elif isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.module.startswith("scrapy_ubi"):
            found |= {*node.module.split(".")}
    return frozenset(found)


@cache
def modules() -> tuple[Module, ...]:
    return tuple(Module(path_of(file), frozenset(bound(tree.body))) for file, tree in trees().items())


@cache
def by_ending() -> dict[str, tuple[Module, ...]]:
    """Modules and rooms by every ending of their paths: `hosts.host_notes` is `agent.hosts.host_notes`."""
    found = defaultdict(list)
    for module in modules():
        parts = module.path.split(".")
        for first in range(len(parts)):
            found[".".join(parts[first:])].append(module)
    return {ending: tuple(those) for ending, those in found.items()}


def classes_of(body: list[ast.stmt]) -> Iterator[ast.ClassDef]:
    """The classes of a module, with those that stand in a class."""
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield node
            yield from classes_of(node.body)


@cache
def classes() -> dict[str, Class]:
    members, bases = defaultdict(set), defaultdict(set)
    for file, tree in trees().items():
        lines = file.read_text().splitlines()
        for node in classes_of(tree.body):
            own = _OWN.findall("\n".join(lines[node.lineno : node.end_lineno]))
            members[node.name] |= {*own, *bound(node.body)}
            bases[node.name] |= {re.split(r"[\[(]", ast.unparse(base))[0].split(".")[-1] for base in node.bases}
    return {name: Class(frozenset(members[name]), frozenset(bases[name])) for name in members}


PLAIN = frozenset(("NamedTuple", "Protocol", "ABC", "Generic", "Enum", "StrEnum", "IntEnum", "object"))


def has(name: str, member: str) -> bool:
    """Whether a class of this name has this member, or may have it from a base that is not of the package."""
    if name not in classes():
        return name not in PLAIN
    of = classes()[name]
    return member in of.members or any(has(base, member) for base in of.bases - {name})


def is_member(parts: list[str]) -> bool:
    return len(parts) < 2 or parts[0] not in classes() or has(parts[0], parts[1])


def leads_somewhere(parts: list[str]) -> bool:
    """Whether a path that begins with a wing, a room or a module ends at a module, or at a name in one."""
    for length in range(len(parts), 0, -1):
        those = by_ending().get(".".join(parts[:length]), ())
        rest = parts[length:]
        if those:
            return not rest or (any(rest[0] in module.names for module in those) and is_member(rest))
    return False


@cache
def words_of_paths() -> frozenset[str]:
    """The names of wings, rooms and modules."""
    return frozenset(part for module in modules() for part in module.path.split("."))


def untrue_name(cited: str, file: Path) -> bool:
    found = _DOTTED.fullmatch(cited)
    if found is None or cited in OTHERS or _FILE.fullmatch(cited):
        return False
    parts = found[1].split(".")
    if parts[0] in classes():
        return not is_member(parts)
    if parts[0] in THEIRS or parts[-1] in SUFFIXES or parts[0] not in words_of_paths():
        return False
    return not leads_somewhere(parts) and parts[0] not in variables(file)


@cache
def files() -> tuple[str, ...]:
    """All modules of the repository, by their paths below it."""
    tops = ("benchmarks", "docs", "example_project", "scrapy_ubi", "tests")
    return tuple(str(file.relative_to(ROOT)) for top in tops for file in (ROOT / top).rglob("*.py"))


def untrue_file(cited: str) -> bool:
    found = _FILE.fullmatch(cited)
    if found is None or found[1] in USERS:
        return False
    places = [place for place in files() if f"/{place}".endswith(f"/{found[1]}")]
    if not places or found[2] is None:
        return not places
    first, *more = found[2].split(".")
    there = any(first in bound(ast.parse((ROOT / place).read_text()).body) for place in places)
    return not there or not is_member([first, *more])


def untrue(file: Path) -> list[str]:
    text = file.read_text()
    return [
        f"{file.relative_to(ROOT)}:{1 + text.count(chr(10), 0, found.start())}: `{found[1]}`"
        for found in _CITED.finditer(text)
        if untrue_name(found[1], file) or untrue_file(found[1])
    ]


def test_what_is_cited_exists() -> None:
    found = [said for file in FILES for said in untrue(file)]
    assert not found, "\n".join(["these names are gone, or elsewhere:", *found])


def test_a_name_that_is_gone_is_found() -> None:
    file = PACKAGE / "errors.py"
    for gone in ("Agent.nobody", "agent.report.nobody", "protocol.agent.Nobody", "scrapy_ubi.agent.nobody"):
        assert untrue_name(gone, file), gone
    for there in ("Agent.drain", "agent.profile.idle_reason", "protocol.agent.Agent.drain", "settings.json", "a.b"):
        assert not untrue_name(there, file), there
    assert untrue_file("protocol/nobody.py") and untrue_file("protocol/agent.py: nobody")
    assert not untrue_file("protocol/agent.py: Agent.drain") and not untrue_file("settings.py")
