"""Is the house in order? Sizes, names and borders of the source, counted, beside their targets.

    python benchmarks/house.py [--all]      (or: make house)

Prints one line for each measure: its value, its target, and whether it is met. Under the table stands what a measure
that is missed found (`--all`: what every measure found). The exit status is 1 when a measure is missed.

How is counted:

* Lines are lines of the file. Lines of code are those without blank lines, comments and docstrings.
* McCabe: 1, and 1 more for each `if`, `for`, `while`, `except`, `match` case, conditional expression, `if` of a
  comprehension, and each operand of `and` and `or` behind the first. A nested function counts for itself, a lambda for
  the function it is in. (`statements` counts the first five only; the package mccabe has the same, and 1 more for each
  `try` and for nested functions.)
* A private name of Scrapy or Twisted is one that begins with one underscore, is used of something other than `self` and
  `cls`, and is not defined in the module that uses it; or is imported from Scrapy or Twisted. `fast/` and
  `scrapy_private/` may use them.
* A private attribute used by tests is one that begins with one underscore, is used of something other than `self` and
  `cls` (or is named in a text to `getattr`, `setattr` and their like), is not defined in the file of the test, and is
  defined in the package.
* Names of modules include those of packages. Classes count wherever they are defined, private ones too.

Rules of this module: it reads source text and imports nothing of it. Each measure is a function that returns what was
found, by name, so that a test can try it on a small tree.
"""

from __future__ import annotations

import argparse
import ast
import configparser
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from rounds import table

TOP = Path(__file__).resolve().parents[1]
PACKAGE = "scrapy_ubi"
FOREIGN = ("scrapy", "twisted")
PRIVATE_ROOMS = ("fast", "scrapy_private")

MOST_MODULES_AT_THE_ROOT = 10
LEAST_LAYERS = 15
COMPLEX, MOST_COMPLEX = 15, 8  # McCabe points that are too many, and how many functions may have more
BRANCHED = 10
MOST_PARAMETERS = 8
MOST_LINES = 350
MOST_LINES_OF_TESTS = 600
MOST_DOUBLE_NAMES = 5
MOST_PRIVATE_USES = 59

# Constructors whose parameters another program has chosen.
SIGNATURES_OF_OTHERS = {
    "linkextractor.UbiLinkExtractor": "takes the parameters of Scrapy's LxmlLinkExtractor, in whose place it stands",
    "plainlinks.PlainLinks": "takes what a Request takes, by the same names, for many links at once",
}
# Private by their underscore only: documented by Python.
_OF_PYTHON = frozenset(("_replace", "_make", "_fields", "_asdict", "_field_defaults", "_exit", "_getframe", "_name_"))
_BY_NAME = frozenset(("getattr", "setattr", "hasattr", "delattr"))

Found = dict[str, int]  # what a measure counts, by name


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
    """One line of the table. `value` is None for what is only shown."""

    name: str
    value: int
    target: str
    met: bool | None
    found: Found


# ---------------------------------------------------------------------- reading


def sources(folder: Path) -> list[Source]:
    """Every module below a folder. The folder itself, where it is a package, has the name ``__init__``."""
    found = []
    for path in sorted(folder.rglob("*.py")):
        parts = path.relative_to(folder).with_suffix("").parts
        is_package = parts[-1] == "__init__" and len(parts) > 1
        text = path.read_text(encoding="utf-8")
        name = ".".join(parts[:-1] if is_package else parts)
        found.append(Source(name, text, ast.parse(text, str(path)), is_package))
    return found


def _functions(
    tree: ast.AST, prefix: str = ""
) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef, ast.ClassDef | None]]:
    """All functions with their dotted names and the class that each is a method of."""

    def walk(
        node: ast.AST, name: str, owner: ast.ClassDef | None
    ) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef, ast.ClassDef | None]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ClassDef):
                yield from walk(child, f"{name}{child.name}.", child)
            elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                yield f"{name}{child.name}", child, owner
                yield from walk(child, f"{name}{child.name}.", None)
            else:
                yield from walk(child, name, owner)

    yield from walk(tree, prefix, None)


def _own(function: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function without those of the functions and classes in it."""
    for child in ast.iter_child_nodes(function):
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield child
            yield from _own(child)


# ---------------------------------------------------------------------- McCabe

_STATEMENTS = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.ExceptHandler, ast.match_case)


def statements(function: ast.AST) -> int:
    """McCabe's count of the statements of a function."""
    return 1 + sum(isinstance(node, _STATEMENTS) for node in _own(function))


def points(function: ast.AST) -> int:
    """McCabe's count of a function, with conditions inside expressions."""
    more = 0
    for node in _own(function):
        if isinstance(node, ast.BoolOp):
            more += len(node.values) - 1
        elif isinstance(node, ast.comprehension):
            more += len(node.ifs)
        elif isinstance(node, ast.IfExp):
            more += 1
    return statements(function) + more


def complex_functions(modules: list[Source], above: int) -> Found:
    """The functions with more points than these."""
    return {
        f"{module.name}.{name}": count
        for module in modules
        for name, function, _ in _functions(module.tree)
        if (count := points(function)) > above
    }


# ---------------------------------------------------------------------- sizes


def modules_at_root(modules: list[Source]) -> Found:
    """Modules beside the rooms."""
    return {module.name: 1 for module in modules if "." not in module.name and not module.is_package}


def long_files(modules: list[Source], most: int) -> Found:
    """Files with more lines than these."""
    return {module.name: lines for module in modules if (lines := len(module.text.splitlines())) > most}


def parameters(modules: list[Source], most: int) -> Found:
    """Constructors that are written out and take more parameters than these, `self` not counted."""
    found = {}
    for module in modules:
        for name, function, owner in _functions(module.tree):
            if owner is None or function.name not in ("__init__", "__new__"):
                continue
            taken = function.args
            every = [*taken.posonlyargs, *taken.args, *taken.kwonlyargs, taken.vararg, taken.kwarg]
            count = sum(each is not None for each in every) - 1
            where = f"{module.name}.{name.rpartition('.')[0]}"
            if count > most and where not in SIGNATURES_OF_OTHERS:
                found[where] = count
    return found


def lines_of_code(modules: list[Source]) -> Found:
    """Of each module: lines that are neither blank nor a comment nor a docstring."""
    return {module.name: _code(module) for module in modules}


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


# ---------------------------------------------------------------------- names


def double_modules(modules: list[Source]) -> Found:
    """Names that several modules or packages have. A package whose `__init__` holds nothing counts like any other."""
    return _several(
        name.rpartition(".")[2]
        for module in modules
        for name in [module.name]
        if name.rpartition(".")[2] not in ("__init__", "__main__")
    )


def double_classes(modules: list[Source]) -> Found:
    """Names that several classes have."""
    return _several(node.name for module in modules for node in ast.walk(module.tree) if isinstance(node, ast.ClassDef))


def _several(names: Iterator[str]) -> Found:
    counts: dict[str, int] = defaultdict(int)
    for name in names:
        counts[name] += 1
    return {name: count for name, count in sorted(counts.items()) if count > 1}


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and len(name) > 1 and name not in _OF_PYTHON


def defined(tree: ast.AST) -> set[str]:
    """The private names that a module defines: functions, classes, variables, attributes, slots."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            if isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"):
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
    """The private names used of something other than `self` and `cls`, or asked for by name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            of, name = node.value, node.attr
        elif isinstance(node, ast.Call) and len(node.args) > 1 and _called(node) in _BY_NAME:
            of, asked = node.args[:2]
            name = str(asked.value) if isinstance(asked, ast.Constant) else ""
        else:
            continue
        if _is_private(name) and not (isinstance(of, ast.Name) and of.id in ("self", "cls")):
            yield name


def _called(call: ast.Call) -> str:
    """The name of a function that is called, without what it is an attribute of."""
    return call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")


def imported(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """What a module imports absolutely: module, name (empty for the module itself)."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from ((node.module, alias.name) for alias in node.names)


# ---------------------------------------------------------------------- borders


def strays(modules: list[Source]) -> Found:
    """Modules that use private names of Scrapy or Twisted and stand in no room for that, with the number of uses."""
    found: dict[str, int] = {}
    for module in modules:
        if module.room in PRIVATE_ROOMS:
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


def scrapy_in_node(modules: list[Source]) -> Found:
    """Modules of `node/` that import Scrapy or Twisted, with the number of imports. (What they reach by others is
    checked by the contract node-without-scrapy.)"""
    return _counted(
        (module.name, sum(whence.partition(".")[0] in FOREIGN for whence, _ in imported(module.tree)))
        for module in modules
        if module.room == "node"
    )


def uses_by_tests(tests: list[Source], modules: list[Source]) -> Found:
    """Test files that use private attributes of the package, with the number of uses."""
    ours = set().union(*(defined(module.tree) for module in modules))
    found = []
    for test in tests:
        ours_here = ours - defined(test.tree)
        uses = sum(name in ours_here for name in private_uses(test.tree))
        uses += sum(name in ours_here for whence, name in imported(test.tree) if whence.partition(".")[0] == PACKAGE)
        found.append((test.name, uses))
    return _counted(iter(found))


def _counted(pairs: Iterator[tuple[str, int]]) -> Found:
    return {name: count for name, count in pairs if count}


def layers(config: Path) -> list[str]:
    """The rows of the contract of layers."""
    parser = configparser.ConfigParser(comment_prefixes=(";", "#"), interpolation=None)
    parser.read(config, encoding="utf-8")
    rows = parser["importlinter:contract:layers"]["layers"].splitlines()
    return [row.strip() for row in rows if row.strip()]


def mutual_rows(rows: list[str]) -> Found:
    """Rows whose modules may import each other: import-linter writes them with a colon."""
    return {row: row.count(":") for row in rows if ":" in row}


# ---------------------------------------------------------------------- the table


def measures(top: Path) -> list[Measure]:
    """All measures of a repository."""
    code, tests = sources(top / PACKAGE), sources(top / "tests")
    rows = layers(top / "setup.cfg")

    def most(name: str, found: Found, limit: int | None, value: Callable[[Found], int] = len) -> Measure:
        count = value(found)
        target = "" if limit is None else f"<= {limit}" if limit else "0"
        return Measure(name, count, target, None if limit is None else count <= limit, found)

    total = {"lines": sum(len(module.text.splitlines()) for module in code)}
    return [
        most("modules at the root", modules_at_root(code), MOST_MODULES_AT_THE_ROOT),
        Measure("rows of layers", len(rows), f">= {LEAST_LAYERS}", len(rows) >= LEAST_LAYERS, dict.fromkeys(rows, 1)),
        most("rows of layers with mutual imports", mutual_rows(rows), 0),
        most(f"functions of more than {COMPLEX} points (McCabe)", complex_functions(code, COMPLEX), MOST_COMPLEX),
        most(f"functions of more than {BRANCHED} points", complex_functions(code, BRANCHED), None),
        most(f"constructors of more than {MOST_PARAMETERS} parameters", parameters(code, MOST_PARAMETERS), 0),
        most(f"source files over {MOST_LINES} lines", long_files(code, MOST_LINES), 0),
        most(f"test files over {MOST_LINES_OF_TESTS} lines", long_files(tests, MOST_LINES_OF_TESTS), 0),
        most("modules with stray private names", strays(code), 0),
        most("module names used twice", double_modules(code), MOST_DOUBLE_NAMES),
        most("class names used twice", double_classes(code), MOST_DOUBLE_NAMES),
        most("private attributes used by tests", uses_by_tests(tests, code), MOST_PRIVATE_USES, _sum),
        most("imports of Scrapy and Twisted in node", scrapy_in_node(code), 0, _sum),
        most("lines", total, None, _sum),
        most("lines of code", lines_of_code(code), None, _sum),
    ]


def _sum(found: Found) -> int:
    return sum(found.values())


def show(found: list[Measure], details: bool) -> int:
    """Print the table. The exit status: 1 when a measure is missed."""
    words: Mapping[bool | None, str] = {True: "met", False: "MISSED", None: ""}
    table("measure", [" value", "target", "     "], {m.name: [str(m.value), m.target, words[m.met]] for m in found})
    for measure in found:
        if measure.found and (measure.met is False or details):
            print(f"\n{measure.name}:")
            for name, count in sorted(measure.found.items(), key=lambda each: -each[1]):
                print(f"    {count:>6} {name}")
    print("\nnot counted among the constructors:")
    for name, reason in SIGNATURES_OF_OTHERS.items():
        print(f"    {name} {reason}")
    return int(any(measure.met is False for measure in found))


def main() -> int:
    parser = argparse.ArgumentParser(description="Sizes, names and borders of the source beside their targets.")
    parser.add_argument("--all", action="store_true", help="show what every measure has found")
    return show(measures(TOP), parser.parse_args().all)


if __name__ == "__main__":
    sys.exit(main())
