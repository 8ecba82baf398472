"""The measures of the house, on small trees."""

from __future__ import annotations

import ast
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"
sys.path.insert(0, str(FOLDER))  # the benchmarks are scripts, which find each other beside themselves

import house  # noqa: E402

TREE = {
    "scrapy_ubi/__init__.py": "",
    "scrapy_ubi/addon.py": '''"""One line."""
# a comment

from scrapy.core import _secret


class Addon:
    """Two
    lines."""

    def __init__(self, a, b, *c, d, **e):
        self._engine = a

    def twice(self, crawler):
        return crawler.engine._slot or self._engine
''',
    "scrapy_ubi/node/__init__.py": "",
    "scrapy_ubi/node/mail.py": "from twisted.internet import defer\nclass Link: pass\n",
    "scrapy_ubi/fast/__init__.py": "import scrapy._private\n",
    "scrapy_ubi/fast/mail.py": "class Link: pass\n",
    "tests/test_addon.py": """from scrapy_ubi.addon import Addon


def test_it():
    addon = Addon(1, 2, d=3)
    assert addon._engine == getattr(addon, "_engine")
    assert addon._unknown
""",
    "setup.cfg": """[importlinter:contract:layers]
layers =
    addon
    ; a comment
    node : fast
    errors | clock
""",
}


def grow(top: Path, tree: Mapping[str, str] = TREE) -> None:
    for name, text in tree.items():
        path = top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


@pytest.fixture
def code(tmp_path: Path) -> list[house.Source]:
    grow(tmp_path)
    return house.sources(tmp_path / "scrapy_ubi")


@pytest.mark.parametrize(
    ("body", "statements", "points"),
    [
        ("pass", 1, 1),
        ("if a and b or c: pass\n elif d: pass\n else: pass", 3, 5),
        ("for a in b:\n  while c: pass", 3, 3),
        ("try: pass\n except A: pass\n except B: pass\n finally: pass", 3, 3),
        ("return [a if b else c for a in d if e if f]", 1, 4),
        ("match a:\n  case 1: pass\n  case _: pass", 3, 3),
        ("def g():\n  if a: pass\n return lambda: a or b", 1, 2),
    ],
)
def test_points_of_a_function(body: str, statements: int, points: int) -> None:
    function = ast.parse(f"def f():\n {body}\n").body[0]
    assert (house.statements(function), house.points(function)) == (statements, points)


def test_nested_functions_count_for_themselves(tmp_path: Path) -> None:
    grow(tmp_path, {"a.py": "class A:\n  def f(self):\n    def g():\n      return 1 if a else 2\n    return g\n"})
    assert house.complex_functions(house.sources(tmp_path), 1) == {"a.A.f.g": 2}


def test_modules_are_at_the_root_or_in_a_room(code: list[house.Source]) -> None:
    assert house.modules_at_root(code) == {"__init__": 1, "addon": 1}


def test_lines(code: list[house.Source]) -> None:
    assert house.long_files(code, 14) == {"addon": 15}
    assert house.long_files(code, 15) == {}
    assert house.lines_of_code(code)["addon"] == 6


def test_parameters_are_counted_without_self(code: list[house.Source]) -> None:
    assert house.parameters(code, 4) == {"addon.Addon": 5}
    assert house.parameters(code, 5) == {}


def test_parameters_that_others_have_chosen(code: list[house.Source], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(house.SIGNATURES_OF_OTHERS, "addon.Addon", "has to")
    assert house.parameters(code, 4) == {}


def test_names_used_twice(code: list[house.Source]) -> None:
    assert house.double_modules(code) == {"mail": 2}
    assert house.double_classes(code) == {"Link": 2}


def test_private_names_of_others_have_their_rooms(code: list[house.Source]) -> None:
    assert house.strays(code) == {"addon": 2}


def test_imports_of_scrapy_in_node(code: list[house.Source]) -> None:
    assert house.scrapy_in_node(code) == {"node.mail": 1}


def test_private_attributes_used_by_tests(code: list[house.Source], tmp_path: Path) -> None:
    assert house.uses_by_tests(house.sources(tmp_path / "tests"), code) == {"test_addon": 2}


def test_layers(code: list[house.Source], tmp_path: Path) -> None:
    rows = house.layers(tmp_path / "setup.cfg")
    assert rows == ["addon", "node : fast", "errors | clock"]
    assert house.mutual_rows(rows) == {"node : fast": 1}


def test_a_measure_that_is_missed_is_named(
    code: list[house.Source], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = house.measures(tmp_path)
    assert house.show(found, details=False) == 1
    shown = capsys.readouterr().out
    assert "node : fast" in shown
    assert house.show([measure for measure in found if measure.met is not False], details=False) == 0
    assert "MISSED" not in capsys.readouterr().out


def test_every_exception_is_of_a_class_that_is_there() -> None:
    code = {module.name: module for module in house.sources(house.TOP / house.PACKAGE)}
    for name in house.SIGNATURES_OF_OTHERS:
        module, _, owner = name.rpartition(".")
        assert any(isinstance(node, ast.ClassDef) and node.name == owner for node in ast.walk(code[module].tree)), name
