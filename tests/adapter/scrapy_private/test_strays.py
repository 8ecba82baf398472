"""Private and undocumented names of Scrapy and Twisted stand in scrapy_private and fast, and nowhere else.

Every module outside these rooms is read. Found are: imports of private names and modules; private attributes that this
package does not define itself; attributes that Scrapy does not document; functions put in the place of others.
"""

from __future__ import annotations

import ast
from collections.abc import Container, Iterator
from functools import cache
from pathlib import Path

import pytest
import scrapy

import scrapy_ubi
from tests.support.parsed import parsed

_OF_PYTHON = frozenset(("_current_frames", "_value_"))  # documented: sys._current_frames, Enum._value_
PACKAGE = Path(scrapy_ubi.__file__).parent
ROOMS = ("scrapy_private", "fast")
FOREIGN = ("scrapy", "twisted", "pydispatch", "aiohttp", "parsel", "itemadapter", "itemloaders")
# Attributes of Scrapy's parts that its documentation does not name.
UNDOCUMENTED = {
    "scraper", "spidermw", "itemproc", "handlers", "start_itemproc_async", "call_spider_async", "enqueue_scrape",
    "handle_spider_output_async", "domains_seen", "get_host_regex", "maxlength", "maxdepth", "prio", "verbose_stats",
    "nextcall", "close_if_idle", "send_catch_log_async", "downloader",
}  # fmt: skip
# Private attributes of others that are documented, or mean what we look at only.
KNOWN = {"_asdict", "_field_defaults", "_fields", "_value_"}  # named tuples; enum


def sources() -> list[Path]:
    return [path for path in sorted(PACKAGE.rglob("*.py")) if not {*path.relative_to(PACKAGE).parts} & {*ROOMS}]


def trees() -> dict[str, ast.Module]:
    return {str(path.relative_to(PACKAGE)): parsed(path.read_text()) for path in sources()}


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name not in _OF_PYTHON


def defined(tree: ast.Module) -> Iterator[str]:
    """The private names that a module gives something to."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
            if isinstance(node, ast.ClassDef):
                yield from slots(node)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            if isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"):
                yield node.attr
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def slots(cls: ast.ClassDef) -> Iterator[str]:
    for node in cls.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__slots__":
            yield from (str(each.value) for each in ast.walk(node.value) if isinstance(each, ast.Constant))


def imported(node: ast.AST) -> Iterator[str]:
    """What is imported of private names of others, and PyDispatcher, which only Scrapy's signals are for."""
    if isinstance(node, ast.ImportFrom) and not node.level and node.module:
        names, modules = [alias.name for alias in node.names], [node.module]
    elif isinstance(node, ast.Import):
        names, modules = [], [alias.name for alias in node.names]
    else:
        return
    for module in modules:
        first, *rest = module.split(".")
        if first in FOREIGN and (first == "pydispatch" or any(map(is_private, [*rest, *names]))):
            yield f"import of {module} {' '.join(names)}"


def functions_of(tree: ast.Module, but: Container[int] = ()) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and id(node) not in but:
            yield node.name


@cache
def scrapys_functions() -> set[str]:
    """The names of all functions of Scrapy's core."""
    paths = [path for room in ("core", "utils") for path in (Path(scrapy.__file__).parent / room).rglob("*.py")]
    return {name for path in paths for name in functions_of(parsed(path.read_text()))}


def replaced(node: ast.AST, functions: set[str]) -> Iterator[str]:
    """Functions put in the place of one of Scrapy's core."""
    if not isinstance(node, ast.Assign):
        return
    value = node.value
    is_function = isinstance(value, ast.Lambda) or (isinstance(value, ast.Name) and value.id in functions)
    for target in node.targets:
        if not is_function or not isinstance(target, ast.Attribute) or target.attr not in scrapys_functions():
            continue
        if ast.unparse(target.value) not in ("self", "cls"):
            yield f"{ast.unparse(target)} is replaced"


def strays(tree: ast.Module, ours: set[str]) -> Iterator[str]:
    methods = {id(each) for cls in ast.walk(tree) if isinstance(cls, ast.ClassDef) for each in cls.body}
    functions = set(functions_of(tree, methods))
    for node in ast.walk(tree):
        found = [*imported(node), *replaced(node, functions)]
        if isinstance(node, ast.Attribute):
            text = ast.unparse(node)
            others = is_private(node.attr) and node.attr not in ours | KNOWN
            undocumented = node.attr in UNDOCUMENTED and not text.startswith(("self.", "logging."))
            if others or undocumented:
                found.append(text)
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("getattr", "hasattr", "setattr"):
            name = node.args[1]
            if isinstance(name, ast.Constant) and is_private(str(name.value)) and name.value not in ours | KNOWN:
                found.append(ast.unparse(node))
        yield from (f"line {getattr(node, 'lineno', '?')}: {each}" for each in found)


def test_no_module_outside_these_rooms_has_such_names() -> None:
    modules = trees()
    ours = {name for tree in modules.values() for name in defined(tree) if is_private(name)}
    found = {path: list(strays(tree, ours)) for path, tree in modules.items()}
    assert len(found) > 150
    assert {path: lines for path, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    "line",
    [
        "from scrapy.utils.defer import _process_pending_io",
        "from scrapy.utils._download_handlers import x",
        "from pydispatch import dispatcher",
        "import twisted.web._newclient",
        "engine._slot.close()",
        "getattr(spider, '_parse', None)",
        "crawler.engine.scraper.slot",
        "def f(): ...\nengine.download_async = f",
        "engine.crawl = lambda request: None",
    ],
)
def test_each_kind_is_found(line: str) -> None:
    assert list(strays(ast.parse(line), set()))


def room_imports() -> Iterator[str]:
    """Who imports the room of what is faster."""
    for path, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom | ast.Import):
                words = ast.unparse(node)
                if "scrapy_ubi.fast" in words or words == "from scrapy_ubi import fast":
                    yield path


def test_only_the_add_on_opens_the_room_of_what_is_faster() -> None:
    assert list(room_imports()) == ["addon/turn_on.py"]
