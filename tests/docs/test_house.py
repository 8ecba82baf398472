"""docs/explanation/house.md and protocol.md say what the tree says; and what docstrings cite exists.

Rules of this module:

* The wings of house.md are the layers of setup.cfg, in their order; its picture is what benchmarks/house.py draws.
* Every file, and every function in it (`file.py: name`), that the two pages name exists.
* Every `(P5)` and every path of docs/ in the package and its tests leads somewhere.
"""

from __future__ import annotations

import ast
import configparser
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.test_documented import anchors

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))  # the benchmarks are scripts, which find each other beside themselves

import house  # noqa: E402

PACKAGE = ROOT / "scrapy_ubi"
EXPLANATION = ROOT / "docs" / "explanation"
HOUSE = (EXPLANATION / "house.md").read_text()
PROTOCOL = (EXPLANATION / "protocol.md").read_text()
FEWEST_HOPS, MOST_HOPS = 15, 30
FEWEST_CHANGES = 10

OUTSIDE = re.compile(r"\bDESIGN\b")  # a page outside of the repository


def section(title: str) -> str:
    found = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", HOUSE, re.MULTILINE | re.DOTALL)
    assert found, title
    return found[1]


def rows(text: str) -> list[list[str]]:
    """The rows of all tables in this text, without their heads."""
    found = [re.split(r"(?<!\\)\|", line)[1:-1] for line in text.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in row] for row in found]
    lines = [number for number, row in enumerate(cells) if set("".join(row)) <= {"-", " ", ":"}]
    heads = {number - 1 for number in lines} | set(lines)
    return [row for number, row in enumerate(cells) if number not in heads]


def quoted(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def layers() -> list[list[str]]:
    read = configparser.ConfigParser()
    read.read(ROOT / "setup.cfg")
    text = read["importlinter:contract:layers"]["layers"]
    return [[room.strip() for room in re.split(r"[|:]", line)] for line in text.split("\n") if line.strip()]


def room_rows() -> list[list[str]]:
    return [row for row in rows(section("Wings")) if len(row) == 4]


def test_the_rooms_are_those_of_the_layers_in_their_order() -> None:
    assert [sorted(quoted(row[0])) for row in room_rows()] == [sorted(rooms) for rooms in layers()]


def test_every_room_and_every_main_module_exists() -> None:
    for row in room_rows():
        names = quoted(row[0])
        for name in names:
            assert (PACKAGE / name).is_dir() or (PACKAGE / f"{name}.py").is_file(), name
        assert row[1], row
        for module in quoted(row[2]):
            places = [PACKAGE / f"{module}.py", *(PACKAGE / name / f"{module}.py" for name in names)]
            assert any(place.is_file() for place in places), f"{names}: {module}"


def test_every_room_of_a_wing_is_named() -> None:
    named = [quoted(row[0])[0] for row in rows(section("Wings")) if len(row) == 2]
    there = sorted(str(place.parent.relative_to(PACKAGE)) for place in PACKAGE.glob("*/*/__init__.py"))
    assert named == there


def test_the_picture_is_what_the_code_draws_and_fits_on_one_screen() -> None:
    drawn = house.picture(ROOT)
    assert f"```text\n{drawn}\n```" in section("Wings"), "python benchmarks/house.py --picture"
    assert len(drawn.split("\n")) <= 40 and max(map(len, drawn.split("\n"))) <= 130


def defined(file: Path) -> set[str]:
    """The functions and classes of a module, methods as `Class.method`."""
    found: set[str] = set()
    for node in ast.parse(file.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            found |= {
                f"{node.name}.{part.name}"
                for part in node.body
                if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef)
            }
    return found


def named_files(page: str) -> Iterator[tuple[str, str]]:
    """Each file that a page names, and the function in it, '' for none."""
    yield from re.findall(r"`([\w/]+\.py)(?:: ([\w.]+))?`", page)


def place_of(file: str) -> Path:
    places = [base / file for base in (ROOT, PACKAGE, PACKAGE / "protocol")]
    found = [place for place in places if place.is_file()]
    assert found, f"{file} does not exist"
    return found[0]


@pytest.mark.parametrize("page", [HOUSE, PROTOCOL], ids=["house", "protocol"])
def test_every_file_and_function_named_exists(page: str) -> None:
    named = [*named_files(page)]
    assert len(named) > 20
    for file, function in named:
        place = place_of(file)
        assert not function or function in defined(place), f"{file} has no {function}"


def test_the_pages_name_only_directories_that_exist() -> None:
    for page in (HOUSE, PROTOCOL):
        for directory in re.findall(r"`((?:scrapy_ubi|tests|docs)/[\w/]+/?)`", page):
            assert (ROOT / directory).exists(), directory


@pytest.mark.parametrize("way", ["One link's way", "One response's way", "An agent's death"])
def test_a_way_is_short_and_every_hop_names_a_function(way: str) -> None:
    hops = rows(section(way))
    assert [int(row[0]) for row in hops] == [*range(1, len(hops) + 1)]
    assert FEWEST_HOPS <= len(hops) <= MOST_HOPS
    for row in hops:
        assert [function for _, function in named_files(row[1]) if function], row


def test_where_to_change_what() -> None:
    changes = rows(section("Where do I change ..."))
    assert len(changes) >= FEWEST_CHANGES
    for row in changes:
        assert quoted(row[1]), row


def test_every_module_of_the_protocol_is_told_of() -> None:
    modules = {file.name for file in (PACKAGE / "protocol").glob("*.py")} - {"__init__.py"}
    unnamed = {name for name in modules if not re.search(rf"`{name}\b", PROTOCOL)}
    assert unnamed <= {"config.py", "frontier_contract.py"}, "docs/explanation/protocol.md lacks these"


def promises() -> set[str]:
    return set(re.findall(r"^\| \*\*(P\d)\*\* \|", PROTOCOL, re.MULTILINE))


def sources() -> list[Path]:
    return [*sorted(PACKAGE.rglob("*.py")), *sorted((ROOT / "tests").rglob("*.py"))]


def test_every_promise_cited_is_one_of_the_page() -> None:
    assert promises() == {f"P{number}" for number in range(1, 10)}
    for source in sources():
        cited = set(re.findall(r"(?<![\w.\"'])P\d\b", source.read_text()))
        assert cited <= promises(), f"{source} cites promises that docs/explanation/protocol.md does not have"


def test_every_page_cited_exists() -> None:
    for source in sources():
        for page, anchor in re.findall(r"(docs/[\w/-]+\.md)(?:#([\w-]+))?", source.read_text()):
            there = ROOT / page
            assert there.is_file(), f"{source}: {page}"
            assert not anchor or anchor in anchors(there), f"{source}: {page}#{anchor}"


def test_no_page_is_cited_that_readers_do_not_have() -> None:
    for source in sources():
        if source != Path(__file__):
            assert not OUTSIDE.search(source.read_text()), f"{source} cites a page outside of the repository"


def test_every_decision_cited_exists() -> None:
    numbers = {file.name[:4] for file in (ROOT / "docs" / "decisions").glob("0*.md")}
    for source in sources():
        for number in re.findall(r"decision (\d{4})\b", source.read_text()):
            assert number in numbers, f"{source}: decision {number}"
