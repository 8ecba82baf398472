"""How much is there to hold? The whole of the source, counted, beside what it should come to.

    python benchmarks/house.py [--all | --picture]      (or: make house)

With `--picture` it draws the wings, as docs/explanation/house.md shows them. Else it
prints one line for each measure: its value, and its aim. Under the table stands what the measures found that are over
their aims, the largest first (`--all`: all of it). It judges nothing: the exit status is 0. No file and no function is
measured by itself: a big idea may be a big file (limits for them shaped the code once, and did not serve it).

How is counted:

* Names at the top are modules and packages right below the package.
* A circle is a set of modules that import each other at their top, directly or by others; imports for types alone
  (`if TYPE_CHECKING`) and those inside functions count in the second row only.
* Two sub-rooms are mutual where they lie in one room and modules of each import modules of the other.
* The fan-out of a module is how many other modules of ours it imports.
* Attributes of an object are what its class assigns to `self`: a dataclass, which only has fields, has none.
* A feature that may be missing is an own attribute that is compared with None (`self._x is None`, `is not None`).
* An ambiguous name is one that more than `MANY` functions or methods have, and that Python or Scrapy did not choose.
* Lines of code are those without blank lines, comments and docstrings. Words are those of README and docs without
  decisions, outside of blocks of code.
* A private name of Scrapy or Twisted is one that begins with one underscore, is used of something other than `self` and
  `cls`, and is not defined in the module that uses it; or is imported from Scrapy or Twisted. `fast/` and
  `adapter/scrapy_private/` may use them. A private attribute used by tests is counted likewise.

Rules of this module: it reads source text and imports nothing of it. Each measure is a function that returns what was
found, by name, so that a test can try it on a small tree.
"""

from __future__ import annotations

import argparse
import ast
import configparser
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

from rounds import table

TOP = Path(__file__).resolve().parents[1]
PACKAGE = "scrapy_ubi"
FOREIGN = ("scrapy", "twisted")
PRIVATE_ROOMS = ("fast", "scrapy_private")
MANY = 15  # definitions from which on a name is ambiguous
WIDE = 20  # imports of our modules from which on a module is listed
MOST_HELD = 25  # attributes of one object
SHOWN = 12  # lines under the table for each measure

# What others have chosen: Python's protocols, Scrapy's components, the contracts of stores and transports.
_CHOSEN_BY_OTHERS = frozenset(
    "from_crawler from_settings process_request process_response process_exception process_spider_output "
    "process_spider_input process_start process_item open_spider close_spider close write read get put add main "
    "run".split()
)
# Private by their underscore only: documented by Python.
_OF_PYTHON = frozenset(
    "_replace _make _fields _asdict _field_defaults _exit _getframe _current_frames _name_ _value_".split()
)  # fmt: skip
_BY_NAME = frozenset(("getattr", "setattr", "hasattr", "delattr"))
_blocks = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)

Found = dict[str, int]  # what a measure counts, by name
Graph = dict[str, set[str]]  # module -> modules that it imports


@dataclass(frozen=True)
class Source:
    """A module: its name (without that of the package), its text, its tree."""

    name: str
    text: str
    tree: ast.Module
    is_package: bool

    @property
    def room(self) -> str:
        """The first part of its name."""
        return self.name.partition(".")[0]


class Measure(NamedTuple):
    """One line of the table. `aim` is None for what is only shown."""

    name: str
    value: int
    aim: int | None
    found: Found


# ---------------------------------------------------------------------- reading


def sources(folder: Path) -> list[Source]:
    """Read every module below a folder. The folder itself, where it is a package, has the name ``__init__``."""
    found = []
    for path in sorted(folder.rglob("*.py")):
        parts = path.relative_to(folder).with_suffix("").parts
        is_package = parts[-1] == "__init__" and len(parts) > 1
        text = path.read_text(encoding="utf-8")
        name = ".".join(parts[:-1] if is_package else parts)
        found.append(Source(name, text, ast.parse(text, str(path)), is_package))
    return found


def imports(modules: list[Source], at_the_top: bool) -> Graph:
    """Return who imports whom of these. `at_the_top`: only what runs when a module is imported."""
    names = {module.name for module in modules}
    graph: Graph = {name: set() for name in names}
    for module in modules:
        for whence, name in imported(module.tree, at_the_top):
            if whence != PACKAGE and not whence.startswith(f"{PACKAGE}."):
                continue
            whole = f"{whence}.{name}".removeprefix(f"{PACKAGE}.").rstrip(".")
            target = whole if whole in names else whole.rpartition(".")[0]
            if target in names and target != module.name:
                graph[module.name].add(target)
    return graph


def imported(tree: ast.AST, at_the_top: bool = False) -> Iterator[tuple[str, str]]:
    """Yield what a module imports absolutely: module, name (empty for the module itself)."""
    for node in _at_the_top(tree) if at_the_top else ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from ((node.module, alias.name) for alias in node.names)


def _at_the_top(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the statements that run when a module is imported."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        yield child
        yield from _at_the_top(child)


# ---------------------------------------------------------------------- how it hangs together


def top_names(modules: list[Source]) -> Found:
    """Return the modules and packages right below the package."""
    return {module.room: 1 for module in modules if module.name != "__init__"}


def circles(graph: Graph) -> Found:
    """Return sets of modules that import each other, directly or by others, with their sizes (Tarjan, 1972)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: Found = {}

    def visit(name: str) -> None:
        index[name] = low[name] = len(index)
        stack.append(name)
        for other in sorted(graph[name]):
            if other not in index:
                visit(other)
                low[name] = min(low[name], low[other])
            elif other in stack:
                low[name] = min(low[name], index[other])
        if low[name] == index[name]:
            at = stack.index(name)
            circle = sorted(stack[at:])
            del stack[at:]
            if len(circle) > 1:
                found[", ".join(circle)] = len(circle)

    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, 10 * len(graph) + 1000))
    try:
        for name in sorted(graph):
            if name not in index:
                visit(name)
    finally:
        sys.setrecursionlimit(limit)
    return found


def mutual_rooms(graph: Graph) -> Found:
    """Return pairs of sub-rooms of one room of which each imports the other, with the fewer of their imports."""
    arrows: Counter[tuple[str, str]] = Counter()
    for name, targets in graph.items():
        for target in targets:
            one, other = name.split("."), target.split(".")
            if one[0] == other[0] and len(one) > 2 and len(other) > 2 and one[1] != other[1]:
                arrows[".".join(one[:2]), ".".join(other[:2])] += 1
    rooms = sorted({room for pair in arrows for room in pair})
    return {
        f"{one} and {other}": least
        for one, other in combinations(rooms, 2)
        if (least := min(arrows[one, other], arrows[other, one]))
    }


def fan_out(graph: Graph, above: int = WIDE) -> Found:
    """Return the modules that import more of ours than these."""
    return {name: len(targets) for name, targets in graph.items() if len(targets) > above}


def imported_once(graph: Graph) -> Found:
    """Return the modules that one other module imports, and none else."""
    by = Counter(target for targets in graph.values() for target in targets)
    return {name: 1 for name in graph if by[name] == 1}


# ---------------------------------------------------------------------- what it holds


def attributes(modules: list[Source]) -> Found:
    """Return of each class how many attributes its objects have."""
    found: Found = {}
    for module in modules:
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ClassDef):
                names = {
                    each.attr
                    for each in ast.walk(node)
                    if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store) and _is_self(each.value)
                }
                if names:
                    found[f"{module.name}.{node.name}"] = len(names)
    return found


def missing_features(modules: list[Source]) -> Found:
    """Return of each module how often an own attribute is compared with None."""
    found: Counter[str] = Counter()
    for module in modules:
        for node in ast.walk(module.tree):
            if not isinstance(node, ast.Compare) or not isinstance(node.ops[0], ast.Is | ast.IsNot):
                continue
            against = node.comparators[0]
            if isinstance(node.left, ast.Attribute) and _is_self(node.left.value) and ast.unparse(against) == "None":
                found[module.name] += 1
    return dict(found)


def ambiguous_names(modules: list[Source], above: int = MANY) -> Found:
    """Return public names that more functions and methods have than these."""
    counts = Counter(
        node.name
        for module in modules
        for node in ast.walk(module.tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    return {
        name: count
        for name, count in counts.items()
        if count > above and not name.startswith("_") and name not in _CHOSEN_BY_OTHERS
    }


def lines_of_code(modules: list[Source]) -> Found:
    """Return of each room the lines that are neither blank nor a comment nor a docstring."""
    found: Counter[str] = Counter()
    for module in modules:
        found[module.room] += _code(module)
    return dict(found)


def _code(module: Source) -> int:
    docstrings: set[int] = set()
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and type(first.value.value) is str:
                docstrings.update(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    return sum(
        bool(line.strip()) and not line.lstrip().startswith("#") and number not in docstrings
        for number, line in enumerate(module.text.splitlines(), 1)
    )


def settings(page: str) -> Found:
    """Return the settings that the reference page describes."""
    return dict.fromkeys(re.findall(r"^## (UBI_[A-Z_]+)$", page, re.MULTILINE), 1)


def words(top: Path) -> Found:
    """Return of README and of each folder of docs the words for users, without blocks of code and decisions."""
    found: Counter[str] = Counter()
    pages = [top / "README.md", *(top / "docs").rglob("*.md")]
    for page in pages:
        if page.exists() and page.parent.name != "decisions":
            text = _blocks.sub("", page.read_text(encoding="utf-8"))
            found[str(page.parent.relative_to(top))] += len(text.split())
    return dict(found)


# ---------------------------------------------------------------------- borders


def _is_self(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id in ("self", "cls")


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and len(name) > 1 and name not in _OF_PYTHON


def defined(tree: ast.AST) -> set[str]:
    """Return the private names that a module defines: functions, classes, variables, attributes, slots."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            if _is_self(node.value):
                found.add(node.attr)
        elif isinstance(node, ast.Assign) and any(
            isinstance(target, ast.Name) and target.id == "__slots__" for target in node.targets
        ):
            found.update(
                each.value
                for each in ast.walk(node.value)
                if isinstance(each, ast.Constant) and isinstance(each.value, str)
            )
    return {name for name in found if _is_private(name)}


def private_uses(tree: ast.AST) -> Iterator[str]:
    """Yield the private names used of something other than `self` and `cls`, or asked for by name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            of, name = node.value, node.attr
        elif isinstance(node, ast.Call) and len(node.args) > 1 and _called(node) in _BY_NAME:
            of, asked = node.args[:2]
            name = str(asked.value) if isinstance(asked, ast.Constant) else ""
        else:
            continue
        if _is_private(name) and not _is_self(of):
            yield name


def _called(call: ast.Call) -> str:
    """Return the name of a function that is called, without what it is an attribute of."""
    return call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")


def strays(modules: list[Source]) -> Found:
    """Return modules that use private names of Scrapy or Twisted and stand in no room for that, with their uses."""
    found: Found = {}
    for module in modules:
        if not set(PRIVATE_ROOMS).isdisjoint(module.name.split(".")):
            continue
        own = defined(module.tree)
        uses = sum(name not in own for name in private_uses(module.tree))
        uses += sum(
            any(map(_is_private, [*whence.split("."), name]))
            for whence, name in imported(module.tree)
            if whence.partition(".")[0] in FOREIGN
        )
        if uses:
            found[module.name] = uses
    return found


def uses_by_tests(tests: list[Source], modules: list[Source]) -> Found:
    """Return test files that use private attributes of the package, with the number of uses."""
    ours = set().union(*(defined(module.tree) for module in modules))
    found: Found = {}
    for test in tests:
        here = ours - defined(test.tree)
        uses = sum(name in here for name in private_uses(test.tree))
        uses += sum(name in here for whence, name in imported(test.tree) if whence.partition(".")[0] == PACKAGE)
        if uses:
            found[test.name] = uses
    return found


# ---------------------------------------------------------------------- the picture


def layers(top: Path) -> list[list[str]]:
    """Return the rows of setup.cfg, from the top: the names right below the package that stand in each."""
    read = configparser.ConfigParser()
    read.read(top / "setup.cfg")
    text = read["importlinter:contract:layers"]["layers"]
    return [[name.strip() for name in re.split(r"[|:]", line)] for line in text.split("\n") if line.strip()]


def picture(top: Path) -> str:
    """Return the wings as text: a box for each layer, and on its right the wings that those in it import."""
    rooms: dict[str, set[str]] = {}
    for name, targets in imports(sources(top / PACKAGE), at_the_top=False).items():
        rooms.setdefault(name.partition(".")[0], set()).update(target.partition(".")[0] for target in targets)
    order = [name for row in layers(top) for name in row]
    lines = []
    for row in layers(top):
        used = set().union(*(rooms.get(name, set()) for name in row)) - set(row)
        lines.append((" ".join(f"{name:<9}" for name in row), " ".join(name for name in order if name in used)))
    wide = max(len(left) for left, _ in lines)
    bar = "─" * (wide + 2)
    drawn = [f"│ {left:<{wide}} │" + (f" → {right}" if right else "") for left, right in lines]
    return "\n".join([f"┌{bar}┐", *f"\n├{bar}┤\n".join(drawn).split("\n"), f"└{bar}┘"])


# ---------------------------------------------------------------------- the table


def measures(top: Path) -> list[Measure]:
    """Take all measures of a repository."""
    code, tests = sources(top / PACKAGE), sources(top / "tests")
    at_top, all_of_them = imports(code, at_the_top=True), imports(code, at_the_top=False)
    held = attributes(code)
    page = top / "docs/reference/settings.md"
    described = settings(page.read_text(encoding="utf-8") if page.exists() else "")

    def count(name: str, found: Found, aim: int | None) -> Measure:
        return Measure(name, len(found), aim, found)

    def total(name: str, found: Found, aim: int | None) -> Measure:
        return Measure(name, sum(found.values()), aim, found)

    return [
        count("names at the top", top_names(code), 13),
        count("circles of modules", circles(at_top), 0),
        count("circles with imports for types and in functions", circles(all_of_them), None),
        count("mutual sub-rooms", mutual_rooms(at_top), 0),
        count(f"modules that import more than {WIDE} others", fan_out(all_of_them), 2),
        Measure("most attributes of one object", max(held.values(), default=0), MOST_HELD, _over(held, MOST_HELD)),
        total("own attributes compared with None", missing_features(code), 220),
        total(f"definitions of names that more than {MANY} have", ambiguous_names(code), 60),
        count("modules that one other imports", imported_once(all_of_them), 120),
        total("lines of code", lines_of_code(code), 48_000),
        count("settings", described, 80),
        total("words for users", words(top), 80_000),
        count("modules with stray private names", strays(code), 0),
        total("private attributes used by tests", uses_by_tests(tests, code), 59),
    ]


def _over(found: Found, most: int) -> Found:
    return {name: count for name, count in found.items() if count > most}


def show(found: list[Measure], details: bool) -> None:
    """Print the table, and what lies behind the measures that are over their aims."""
    rows: Mapping[str, list[str]] = {
        m.name: [f"{m.value:,}", "" if m.aim is None else f"{m.aim:,}"] for m in found
    }  # fmt: skip
    table("measure", [" value", "   aim"], dict(rows))
    for measure in found:
        is_over = measure.aim is not None and measure.value > measure.aim
        if not measure.found or not (is_over or details):
            continue
        print(f"\n{measure.name}:")
        listed = sorted(measure.found.items(), key=lambda each: (-each[1], each[0]))
        for name, count in listed if details else listed[:SHOWN]:
            print(f"    {count:>6,} {name}")
        if not details and len(listed) > SHOWN:
            print(f"           and {len(listed) - SHOWN:,} more (--all)")


def main() -> None:
    parser = argparse.ArgumentParser(description="The whole of the source, counted, beside what it should come to.")
    parser.add_argument("--all", action="store_true", help="show all that every measure has found")
    parser.add_argument("--picture", action="store_true", help="draw the wings and what each imports")
    options = parser.parse_args()
    if options.picture:
        print(picture(TOP))
    else:
        show(measures(TOP), options.all)


if __name__ == "__main__":
    main()
